"""Context: coordinates given when a measurement is chosen, such as the day's temperature.

The model knows them as coordinates like all others. On a grid or table a choice is made among the
points whose context is nearest to the given one; in a box, among all points that have exactly that
context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.parameters import Range
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, PointNotInDomainError
from truvar.messages import for_interface, unknown_name
from truvar.validation import check_finite

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

_SIMILAR_CONTEXT_SHARE = (
    0.1  # share of the representers of a box that count as having a similar context
)
_MIN_SIMILAR_REPRESENTERS = 64  # least number of representers with a similar context
_MAX_OUTSIDE_EXTENTS = 1e-9  # extents by which a context may lie outside a box: rounding


def check_context_columns(columns: Iterable[str], coordinates: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of a context.

    Raises:
        InvalidDomainError: If one is not a coordinate, or no coordinate is left to choose.
    """
    if isinstance(columns, str):
        raise InvalidDomainError(
            f"context must be a list of columns, got {columns!r}; give [{columns!r}]"
        )
    names = tuple(columns)
    for name in names:
        if name not in coordinates:
            raise InvalidDomainError(f"context: {unknown_name('column', name, coordinates)}")
    if names and set(names) == set(coordinates):
        raise InvalidDomainError(
            f"context must leave a column to choose, got all of them ({', '.join(names)}); leave "
            "out one"
        )
    return names


@dataclass(frozen=True)
class ContextSlice:
    """The part of a domain that belongs to a given context.

    Attributes:
        rows: Rows of the domain whose context is nearest to the given one; in a box the
            representers that have a similar context.
        fixed: Coordinates of the context by position of their column in a box; None on a finite
            domain, where a choice is made among the rows.
        reach: Largest distance of the rows from the context.
        given: The context in coordinates, by position of its column.
        domain: The domain.
        is_setting: Whether the columns are chosen once for a batch, so that the goal stays that of
            the whole domain, or of `context`.
        context: The given context that a setting is chosen in; None: there is none.
    """

    rows: Index
    fixed: dict[int, float] | None
    reach: float
    given: dict[int, float]
    domain: Domain
    is_setting: bool = False
    context: ContextSlice | None = None

    def contains(self, points: Array) -> Mask:
        """Return which points (q, d) have a context as near as the rows: (q,)."""
        return _distances(self.domain, self.given, points) <= self.reach

    def place(self, points: Array) -> Array:
        """Return points (q, d) of a box moved into the context, each of them once. Shape (m, d)."""
        moved = np.array(points, dtype=float)
        for k, x in (self.fixed or {}).items():
            moved[:, k] = x
        _, first = np.unique(moved, axis=0, return_index=True)
        return moved[np.sort(first)]

    @property
    def free(self) -> list[int]:
        """Positions of the columns that are chosen."""
        return [k for k in range(len(self.domain.columns)) if k not in self.given]


def rows_in_context(domain: Domain, context: Mapping[str, Any] | None) -> Index | None:
    """Return the rows whose context is nearest to the given one; None without a context.

    Args:
        domain: The domain.
        context: The given value of every context column.

    Raises:
        InvalidArgumentError: If the context is missing, or has other columns than the domain's.
    """
    found = slice_in_context(domain, context)
    return None if found is None else found.rows


def slice_in_context(domain: Domain, context: Mapping[str, Any] | None) -> ContextSlice | None:
    """Return the part of the domain that belongs to a context; None if the domain has no context.

    Distances are those of the context columns, each divided by its extent; two categories are 1
    apart.

    Args:
        domain: The domain.
        context: The given value of every context column.

    Raises:
        InvalidArgumentError: If the context is missing, or has other columns than the domain's.
        PointNotInDomainError: If it lies outside a box.
    """
    given = _checked_context(domain, context)
    if not given:
        return None
    distance = _distances(domain, given, domain.points)
    if not domain.continuous:
        reach = float(distance.min()) + 1e-12
        return ContextSlice(np.flatnonzero(distance <= reach), None, reach, given, domain)
    for k, x in given.items():
        low, high = domain.bounds[k]
        slack = _MAX_OUTSIDE_EXTENTS * float(domain.extent[k])
        if not low - slack <= x <= high + slack:
            name = domain.columns[k]
            ends = [domain.named(end)[name] for end in domain.bounds.T]
            raise PointNotInDomainError(
                f"context {name!r} must lie in the box, {ends[0]} to {ends[1]}, got "
                f"{(context or {})[name]!r}; give a "
                "box that holds it"
            )
    count = min(
        len(distance), max(_MIN_SIMILAR_REPRESENTERS, int(_SIMILAR_CONTEXT_SHARE * len(distance)))
    )
    reach = float(np.partition(distance, count - 1)[count - 1])
    return ContextSlice(np.flatnonzero(distance <= reach), given, reach, given, domain)


def shared_columns(domain: Domain, names: Any) -> list[int]:
    """Return the positions of columns that all suggestions of a batch are to share.

    Raises:
        InvalidArgumentError: If they are no list of columns that are chosen, or leave none to
            choose.
    """
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) == 0:
        raise InvalidArgumentError(
            f"same must be a list of columns, got {names!r}; give one such as "
            f"[{domain.columns[0]!r}]"
        )
    chosen = [name for name in domain.columns if name not in domain.context]
    for name in names:
        if name not in chosen:
            raise InvalidArgumentError(f"same: {unknown_name('column', str(name), chosen)}")
    if set(names) == set(chosen):
        raise InvalidArgumentError(
            f"same must leave a column to choose, got all of them ({', '.join(names)}); leave out "
            "one"
        )
    return [domain.columns.index(name) for name in dict.fromkeys(names)]


def slice_with_setting(
    domain: Domain, setting: Mapping[int, float], context: ContextSlice | None
) -> ContextSlice:
    """Return the part of a domain with given values of some columns.

    Args:
        domain: The domain.
        setting: Coordinates by position of their column.
        context: The given context, if the domain has one.
    """
    given = dict(setting) if context is None else {**context.given, **setting}
    rows = np.arange(len(domain)) if context is None else context.rows
    if domain.continuous:
        return ContextSlice(rows, given, np.inf, given, domain, True, context)
    shared = np.ones(len(rows), bool)
    for k, x in setting.items():
        shared &= np.abs(domain.points[rows, k] - x) <= domain.slack[k]
    return ContextSlice(rows[shared], None, 0.0, given, domain, True, context)


def _checked_context(domain: Domain, context: Mapping[str, Any] | None) -> dict[int, float]:
    """Return the coordinates of a context by column position; empty without a context."""
    if not domain.context:
        if context is None:
            return {}
        raise InvalidArgumentError(
            f"this study has no context, got {dict(context)}; leave it out, or declare its "
            "columns: "
            + for_interface("Domain.table(..., context=[...])", problem="[domain] context = [...]")
        )
    example = ", ".join(f"{name!r}: ..." for name in domain.context)
    words = " ".join(f"--context {name}=VALUE" for name in domain.context)
    remedy = for_interface(f"ask(context={{{example}}})", cli=words, http="context")
    if context is None:
        raise InvalidArgumentError(
            f"the context ({', '.join(domain.context)}) is given, not chosen, got none; give "
            f"{remedy}"
        )
    for name in context:
        if name not in domain.context:
            raise InvalidArgumentError(f"context: {unknown_name('column', name, domain.context)}")
    given: dict[int, float] = {}
    for name in domain.context:
        if name not in context:
            raise InvalidArgumentError(
                f"the context needs {name!r}, got {dict(context)}; give {remedy}"
            )
        k = domain.columns.index(name)
        parameter = domain.parameters[k]
        if isinstance(parameter, Range):
            given[k] = check_finite(context[name], f"context {name!r}")
        else:
            given[k] = parameter.encode(context[name], name)
    return given


def _distances(domain: Domain, given: Mapping[int, float], points: Array) -> Array:
    """Return the squared distances of the context of points (q, d) from the given one: (q,)."""
    distance = np.zeros(len(points))
    for k, x in given.items():
        difference = (points[:, k] - x) / domain.extent[k]
        distance += difference != 0 if k in domain.categorical else difference**2
    return distance
