"""Context: coordinates that are given when a measurement is chosen, such as the temperature of the day.

The model knows them as coordinates like all others; a choice is made among the points whose context is nearest to the
given one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Index
from truvar.exceptions import InvalidArgumentError, InvalidDomainError
from truvar.messages import for_interface, unknown_name
from truvar.validation import check_finite

if TYPE_CHECKING:
    from truvar.domain.domain import Domain


def check_context_columns(columns: Iterable[str], coordinates: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of a context.

    Raises:
        InvalidDomainError: If one is not a coordinate, or no coordinate is left to choose.
    """
    if isinstance(columns, str):
        raise InvalidDomainError(f"context must be a list of columns, got {columns!r}; give [{columns!r}]")
    names = tuple(columns)
    for name in names:
        if name not in coordinates:
            raise InvalidDomainError(f"context: {unknown_name('column', name, coordinates)}")
    if names and set(names) == set(coordinates):
        raise InvalidDomainError(
            f"context must leave a column to choose, got all of them ({', '.join(names)}); leave out one"
        )
    return names


def rows_in_context(domain: Domain, context: Mapping[str, Any] | None) -> Index | None:
    """Return the rows of the domain whose context is nearest to the given one; None if the domain has no context.

    Distances are those of the context columns, each divided by its extent.

    Args:
        domain: The domain.
        context: The given value of every context column.

    Raises:
        InvalidArgumentError: If the context is missing, or has other columns than the domain's.
    """
    if not domain.context:
        if context is None:
            return None
        raise InvalidArgumentError(
            f"this study has no context, got {dict(context)}; leave it out, or declare its columns: "
            + for_interface("Domain.table(..., context=[...])", problem="[domain] context = [...]")
        )
    example = ", ".join(f"{name!r}: ..." for name in domain.context)
    words = " ".join(f"--context {name}=VALUE" for name in domain.context)
    remedy = for_interface(f"ask(context={{{example}}})", cli=words, http="context")
    if context is None:
        raise InvalidArgumentError(
            f"the context ({', '.join(domain.context)}) is given, not chosen, got none; give {remedy}"
        )
    for name in context:
        if name not in domain.context:
            raise InvalidArgumentError(f"context: {unknown_name('column', name, domain.context)}")
    distance = np.zeros(len(domain))
    for name in domain.context:
        if name not in context:
            raise InvalidArgumentError(f"the context needs {name!r}, got {dict(context)}; give {remedy}")
        k = domain.columns.index(name)
        if domain.parameters:
            given = domain.parameters[k].encode(context[name], name)
        else:
            given = check_finite(context[name], f"context {name!r}")
        distance += ((domain.points[:, k] - given) / domain.extent[k]) ** 2
    return np.flatnonzero(distance <= distance.min() + 1e-12)
