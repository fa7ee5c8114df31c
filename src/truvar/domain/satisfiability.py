"""Whether a condition holds anywhere in a box, so that one which says nothing is refused.

Samples alone would not do: a region may be real and smaller than the distance of any samples. A
condition is only said to hold nowhere where that is certain. For linear inequalities it is a linear
program, with N of them

    min s   such that   (a_k . x + c_k) / size_k <= s,   low <= x <= high,   k = 1 ... N,

whose solution x lies as deep inside as possible; the condition holds somewhere if it holds there.

| name | meaning |
|---|---|
| a_k, c_k | coefficients and constant of an inequality a_k . x + c_k <= 0 |
| size_k | largest size of its terms in the box, so that inequalities are comparable |
| x | a point in the user's values, of which whole numbers are whole |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Array
from truvar.domain._constrained import satisfies_values
from truvar.domain.constraints import (
    Comparison,
    Constraint,
    LinearConstraint,
    PolygonConstraint,
    ValueComparison,
)
from truvar.domain.parameters import Integer

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

_MAX_LEVELS = 10_000  # of a column that are all tried; one with more is taken for a continuous one


def holds_somewhere(domain: Domain, condition: Constraint) -> bool:
    """Return whether a condition may hold in a box; False only where it certainly does not.

    Args:
        domain: The box.
        condition: The condition. One that is neither inequalities nor a polygon may always hold.

    Raises:
        InvalidDomainError: If the condition has an unknown column.
    """
    if domain.satisfies([condition], domain.points).any():
        return True
    if isinstance(condition, PolygonConstraint):
        return _polygon_meets(domain, condition)
    if not isinstance(condition, LinearConstraint):
        return True
    columns = {comparison.column for comparison in condition.value_comparisons}
    if not all(_some_value_satisfies(domain, condition, name) for name in columns):
        return False
    own = [
        constraint for constraint in domain.constraints if isinstance(constraint, LinearConstraint)
    ]
    linear = [condition, *own]
    x = _deepest_point(domain, [part for each in linear for part in each.comparisons])
    return all(bool(each.satisfied(x[None, :], domain.columns)[0]) for each in linear)


def _value_bounds(domain: Domain) -> Array:
    """Return each column's smallest and largest value as the user's numbers: (d, 2)."""
    bounds = np.array(domain.bounds, dtype=float)
    for k, parameter in enumerate(domain.parameters):
        if parameter.numeric:
            bounds[k] = [parameter.decode(float(end)) for end in domain.bounds[k]]
    return bounds


def _deepest_point(domain: Domain, comparisons: Sequence[Comparison]) -> Array:
    """Return the point of a box that minimizes the largest violation of the inequalities: (d,)."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    bounds = _value_bounds(domain)
    d = len(bounds)
    rows: list[Array] = []
    limits: list[float] = []
    for comparison in comparisons:
        a = np.zeros(d)
        for name, coefficient in comparison.coefficients.items():
            a[domain.columns.index(name)] = coefficient
        size = abs(comparison.constant) + np.abs(a) @ np.abs(bounds).max(axis=1)
        signs = (1.0, -1.0) if comparison.operator == "==" else (1.0,)
        for sign in signs:
            rows.append(np.append(sign * a / size, -1.0))
            limits.append(-sign * comparison.constant / size)
    if not rows:
        return np.asarray(bounds[:, 0])
    is_whole = [isinstance(parameter, Integer) for parameter in domain.parameters]
    solution = milp(
        np.append(np.zeros(d), 1.0),
        integrality=np.append(np.array(is_whole, dtype=int), 0),
        bounds=Bounds(np.append(bounds[:, 0], -np.inf), np.append(bounds[:, 1], np.inf)),
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(limits)),
    )
    return np.asarray(np.clip(solution.x[:d], bounds[:, 0], bounds[:, 1]))


def _some_value_satisfies(domain: Domain, condition: LinearConstraint, name: str) -> bool:
    """Return whether some value of a column satisfies all comparisons with its values."""
    k = domain.columns.index(name)
    comparisons = [each for each in condition.value_comparisons if each.column == name]
    parameter = domain.parameters[k]
    if parameter.n_levels is not None and parameter.n_levels <= _MAX_LEVELS:
        coordinates = parameter.levels
    else:
        coordinates = _between(domain, comparisons, k)
    points = np.repeat(domain.points[:1], len(coordinates), axis=0)
    points[:, k] = coordinates
    of_column = [satisfies_values(domain, each, condition.text, points) for each in comparisons]
    return bool(np.logical_and.reduce(of_column).any())


def _between(domain: Domain, comparisons: Sequence[ValueComparison], k: int) -> Array:
    """Return a column's ends, the values it is compared with, and points between these."""
    low, high = domain.bounds[k]
    ends = [float(low), float(high)]
    for comparison in comparisons:
        for value in comparison.values:
            code = domain.parameters[k].encode(value, comparison.column)
            if low <= code <= high:
                ends.append(code)
    sides = np.unique(ends)
    return np.concatenate([sides, (sides[1:] + sides[:-1]) / 2])


def _polygon_meets(domain: Domain, polygon: PolygonConstraint) -> bool:
    """Return whether an edge of a polygon crosses a box without points of the polygon."""
    names = polygon.columns or domain.columns[:2]
    bounds = _value_bounds(domain)[[domain.columns.index(name) for name in names]]
    for ring in polygon.rings:
        vertices = np.asarray(ring, dtype=float)
        if _edges_meet(vertices, np.roll(vertices, -1, axis=0), bounds):
            return True
    return False


def _edges_meet(starts: Array, ends: Array, bounds: Array) -> bool:
    """Return whether a line between points (q, 2) and others crosses a rectangle (2, 2)."""
    first = np.zeros(
        len(starts)
    )  # share of each line at which it is inside in all directions looked at
    last = np.ones(len(starts))
    for k, (low, high) in enumerate(bounds):
        origin = starts[:, k]
        length = ends[:, k] - origin
        is_level = length == 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shares = np.sort([(low - origin) / length, (high - origin) / length], axis=0)
        is_within = (low <= origin) & (origin <= high)
        first = np.maximum(first, np.where(is_level, np.where(is_within, 0.0, np.inf), shares[0]))
        last = np.minimum(last, np.where(is_level, 1.0, shares[1]))
    return bool((first <= last).any())
