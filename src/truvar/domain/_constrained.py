"""Domains under constraints: rows of a finite domain, representers of a box, and mixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.constraints import (
    MARGIN,
    Constraint,
    LinearConstraint,
    ValueComparison,
    as_constraint,
    as_list,
    is_geometry,
    is_storable,
    is_truth,
    values_satisfied,
)
from truvar.domain.parameters import Range
from truvar.exceptions import InvalidDomainError
from truvar.messages import unknown_name
from truvar.validation import check_finite

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

MAX_TRIED = 1 << 18  # points of a box that are looked at to find representers
MAX_MIXTURES = 200_000  # points of a mixture, before its intervals are applied
FRACTION_TOLERANCE = 1e-9  # of a fraction


def constrain(domain: Domain, constraints: Any) -> Domain:
    """Return the points of a finite domain that satisfy the constraints.

    Args:
        domain: A grid or table.
        constraints: Constraints as a user gives them, or None.

    Raises:
        InvalidDomainError: If a constraint cannot be used, or no point satisfies all of them.
    """
    kept: list[Constraint] = []
    mask = np.ones(len(domain), bool)
    # Whether the constraints say something about points that are not of the domain.
    everywhere = True
    for given in as_list(constraints):
        rows = _given_rows(domain, given)
        if rows is None:
            constraint = as_constraint(given)
            rows = domain.satisfies([constraint], domain.points)
            kept.append(constraint)
            everywhere &= is_storable(constraint)
        else:
            everywhere = False
        mask &= rows
    if mask.all():
        return domain
    if not mask.any():
        raise InvalidDomainError(
            f"no point of the domain satisfies the constraints, got {len(domain)} points; loosen a "
            "constraint"
        )
    source = None if domain.frame is None else domain.frame[mask].reset_index(drop=True)
    points = domain.points[mask]
    on_grid = domain.axes is not None and everywhere
    bounds = (
        domain.bounds if on_grid else np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
    )
    own = tuple(kept) if on_grid else ()
    labels = None if domain.labels is None else domain.labels.take(np.flatnonzero(mask))
    return replace(
        domain,
        points=points,
        bounds=bounds,
        axes=None,
        source=source,
        constraints=own,
        labels=labels,
    )


def satisfies_values(domain: Domain, comparison: ValueComparison, text: str, points: Array) -> Mask:
    """Return which points (q, d) satisfy a comparison of a column with its values.

    `text` holds the comparison.
    """
    name = comparison.column
    if name not in domain.columns:
        raise InvalidDomainError(
            f"the constraint {text!r} has an {unknown_name('column', name, domain.columns)}"
        )
    k = domain.columns.index(name)
    parameter = domain.parameters[k]

    def encode(value: Any) -> float:
        if isinstance(parameter, Range):
            return check_finite(value, f"the value of {name!r} in the constraint {text!r}")
        return parameter.encode(value, name)

    return values_satisfied(
        comparison, text, encode, points[:, k], ordered=not parameter.categorical
    )


def masks_of_rows(constraints: Any, rows: Index, n_given: int) -> list[Any]:
    """Return constraints of a table after rows were left out, with masks over those kept.

    Args:
        constraints: Constraints as a user gives them.
        rows: Rows of the given table that are kept.
        n_given: Number of rows of the given table.

    Raises:
        InvalidDomainError: If a mask is not one over the rows of the given table.
    """
    kept: list[Any] = []
    for given in as_list(constraints):
        if not _is_mask(given):
            kept.append(given)
            continue
        mask = np.asarray(given)
        if mask.shape != (n_given,) or not is_truth(mask):
            raise InvalidDomainError(
                f"a mask must hold one True or False per row of the table, shape ({n_given},), got "
                f"shape {mask.shape} "
                f"of {mask.dtype}; give one"
            )
        kept.append(mask[rows])
    return kept


def _is_mask(given: Any) -> bool:
    """Return whether a constraint is an array over the points."""
    return (
        hasattr(given, "dtype")
        and not isinstance(given, str)
        and not callable(given)
        and not is_geometry(given)
    )


def _given_rows(domain: Domain, given: Any) -> Mask | None:
    """Return the rows that a mask or a column of Booleans selects; None for another constraint."""
    if isinstance(given, str) and domain.frame is not None and given in domain.frame.columns:
        values = np.asarray(domain.frame[given])
        if not is_truth(values):
            raise InvalidDomainError(
                f"the column {given!r} as a constraint must hold True and False, or 1 and 0, got "
                f"{values.dtype} with "
                f"{values[0]!r}; write an inequality such as '{given} <= 1' if it is a number"
            )
        return values.astype(bool)
    if not _is_mask(given):
        return None
    values = np.asarray(given)
    if values.shape != (len(domain),) or not is_truth(values):
        raise InvalidDomainError(
            f"a mask must hold one True or False per point, shape ({len(domain)},), got shape "
            f"{values.shape} of "
            f"{values.dtype}; give one"
        )
    return values.astype(bool)


def constrain_box(make: Callable[[int], Domain], representers: int, constraints: Any) -> Domain:
    """Return a box under constraints, with about as many representers as wanted.

    Args:
        make: Returns the box without constraints, with some number of representers.
        representers: Number of representers that are wanted.
        constraints: Constraints as a user gives them.

    Raises:
        InvalidDomainError: If a constraint cannot be used in a box, or hardly any point satisfies
            all of them.
    """
    own: list[Constraint] = []
    for given in as_list(constraints):
        if hasattr(given, "dtype") and not callable(given):
            raise InvalidDomainError(
                "a mask belongs to a finite domain, got one for a box; give an inequality, a "
                "polygon or a function"
            )
        constraint = as_constraint(given)
        if isinstance(constraint, LinearConstraint) and constraint.has_equality:
            raise InvalidDomainError(
                f"an equation leaves no room in a box, got {constraint.text!r}; leave out the "
                "column that follows from "
                "the others, or use Domain.mixture for fractions that sum to one"
            )
        own.append(constraint)
    count = representers
    while True:
        box = make(count)
        if not box.continuous:  # all sides have few values
            return constrain(box, constraints)
        allowed = box.satisfies(own, box.points, -MARGIN)
        n_allowed = int(allowed.sum())
        if not own or allowed.all():
            return replace(box, constraints=tuple(own))
        if n_allowed >= 0.9 * representers or count >= MAX_TRIED:
            break
        needed = count * representers / max(n_allowed, 1)
        count = min(
            MAX_TRIED, max(2 * count, round(needed)) if n_allowed < 10 else round(1.05 * needed)
        )
    if n_allowed < 2:
        raise InvalidDomainError(
            f"hardly any point of the box satisfies the constraints, got {n_allowed} of {len(box)} "
            "that were tried; "
            "loosen a constraint or narrow the intervals"
        )
    points = box.points[allowed]
    if len(box.columns) > 2:
        points = points[:representers]  # any beginning of a Sobol sequence fills the space
    return replace(box, points=points, axes=None, constraints=tuple(own))


def simplex_lattice(
    names: tuple[str, ...], bounds: Array, parts: int
) -> tuple[Array, LinearConstraint]:
    """Return all mixtures of components in steps of 1/parts, and the equation they satisfy.

    Args:
        names: Names of the components.
        bounds: Least and largest fraction of each. (d, 2)
        parts: Number of steps from 0 to 1.

    Returns:
        The points (n, d), in ascending order, and the equation.

    Raises:
        InvalidDomainError: If there are fewer than two components, an interval is not within 0 to
            1, there would be too many points, or none.
    """
    d = len(names)
    if d < 2:
        raise InvalidDomainError(
            f"a mixture needs at least two components, got {d}; name them: a=(0, 1), b=(0, 1)"
        )
    if bounds.min() < 0 or bounds.max() > 1:
        raise InvalidDomainError(
            f"fractions of a mixture lie between 0 and 1, got {bounds.min():g} to "
            f"{bounds.max():g}; give shares of one"
        )
    count = comb(parts + d - 1, d - 1)
    if count > MAX_MIXTURES:
        raise InvalidDomainError(
            f"a mixture may have at most {MAX_MIXTURES} points, but {d} components in {parts} "
            f"parts have {count}; give "
            "fewer parts"
        )
    bars = np.array(list(combinations(range(parts + d - 1), d - 1)), dtype=int)
    edges = np.hstack([np.full((count, 1), -1), bars, np.full((count, 1), parts + d - 1)])
    points = (np.diff(edges, axis=1) - 1) / parts
    inside = (
        (points >= bounds[:, 0] - FRACTION_TOLERANCE)
        & (points <= bounds[:, 1] + FRACTION_TOLERANCE)
    ).all(axis=1)
    if not inside.any():
        raise InvalidDomainError(
            f"no mixture in steps of 1/{parts} satisfies the intervals; give more parts or wider "
            "intervals"
        )
    equation = LinearConstraint(" + ".join(f"`{name}`" for name in names) + " == 1")
    return points[inside], equation
