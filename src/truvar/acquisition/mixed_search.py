"""Maximisation of a score over a box some of whose sides have finitely many values.

A box without such sides is searched by `optimizer`. In a mixed one every combination of the values
is looked at, or a sample of them where they are many; from the best combinations a local search
goes on that exchanges one value at a time and moves in the continuous sides in between. Every point
that is scored is a point of the box: nothing is relaxed.

| symbol | here |
|---|---|
| combination | one level for each side that has levels |
| exchange | another level of one side, all others kept |
"""

from __future__ import annotations

from functools import cache

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition.optimizer import (
    EVALUATIONS_PER_DIMENSION,
    LocalSearch,
    Score,
    best_in_box,
    polishing,
    search_together,
)
from truvar.domain.domain import Domain
from truvar.domain.grid import mesh
from truvar.domain.parameters import Parameter

_MAX_COMBINATIONS = 256  # of which all are looked at; from more, a sample of this size is drawn
_MIN_POINTS = 4  # in the continuous sides, for each combination
_MAX_LOCAL_SEARCHES = 4  # combinations from which a local search starts, beside the best start
# levels of a side that are all tried in an exchange; of more, those at distances 1, 2, 4, ...
_MAX_LISTED_LEVELS = 48
_MAX_EXCHANGES = 20  # of a local search


def best_in_domain(score: Score, domain: Domain, start: Array) -> Array:
    """Return the point of a box with the highest score that was found, at least as good as `start`.

    Args:
        score: Maps points (q, d) to scores (q,).
        domain: The box.
        start: A point of it, or several of them. Shape (d,) or (s, d).
    """
    if not domain.discrete:
        return best_in_box(score, domain.bounds, start)
    starts = np.atleast_2d(start)
    combinations = _combinations(domain, starts)
    points = _spread(domain, combinations, starts)
    scores = score(np.concatenate([starts, points]))
    scores = np.where(np.isnan(scores), -np.inf, scores)
    n_each = len(points) // len(combinations)
    by_combination = scores[len(starts) :].reshape(len(combinations), n_each)
    found = [starts[int(np.argmax(scores[: len(starts)]))]]
    for row in np.argsort(-by_combination.max(axis=1), kind="stable")[:_MAX_LOCAL_SEARCHES]:
        if np.isneginf(by_combination[row].max()):
            break  # nothing of this combination is allowed
        point = points[row * n_each + int(np.argmax(by_combination[row]))]
        if not np.array_equal(point, found[0]):
            found.append(point)
    ends = search_together(score, [climbing(domain, each) for each in found])
    best, value = max(ends, key=lambda end: -np.inf if np.isnan(end[1]) else end[1])
    return best if value > scores[: len(starts)].max() else found[0]


def climb(score: Score, domain: Domain, start: Array) -> Array:
    """Return a local maximum of the score in a box, near `start` and at least as good.

    Args:
        score: Maps points (q, d) to scores (q,).
        domain: The box.
        start: A point of it. Shape (d,).
    """
    return search_together(score, [climbing(domain, start)])[0][0]


def climbing(domain: Domain, start: Array) -> LocalSearch:
    """Search a box for a local maximum near `start` (d,), at least as good; as `polishing`."""
    if not domain.discrete:
        return (yield from polishing(domain.bounds, start))
    x = np.array(start, dtype=float)
    value = float((yield x[None, :])[0])
    for _ in range(_MAX_EXCHANGES):
        sides = _free_sides(domain, x)
        if len(sides):
            x, value = yield from polishing(domain.bounds, x, sides)
        exchanged = _exchanges(domain, x)
        if len(exchanged) == 0:
            break
        values = yield exchanged
        best = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
        if not values[best] > value:
            break
        x = exchanged[best]
        value = float(values[best])
    return x, value


def _free_sides(domain: Domain, x: Array) -> Index:
    """Return the continuous sides along which a point can move."""
    sides = np.array([k for k in range(len(x)) if k not in domain.discrete], dtype=int)
    return np.asarray(sides[_is_free(domain, x[None, :], sides)[0]])


def _is_free(domain: Domain, points: Array, sides: Index) -> Mask:
    """Return which points (q, d) change by moving along which continuous sides: (q, sides)."""
    moved = np.repeat(points, len(sides), axis=0)
    rows = np.arange(len(moved))
    columns = np.tile(sides, len(points))
    low = domain.bounds[columns, 0]
    moved[rows, columns] = np.where(moved[rows, columns] == low, domain.bounds[columns, 1], low)
    same = domain.canonical(moved)[rows, columns] == moved[rows, columns]
    return np.asarray(same.reshape(len(points), len(sides)))


def _exchanges(domain: Domain, x: Array) -> Array:
    """Return the points that differ from x in one level, and in sides that it decides: (q, d)."""
    rows: list[Array] = []
    for k in domain.discrete:
        levels = _other_levels(domain.parameters[k], float(x[k]))
        changed = np.tile(x, (len(levels), 1))
        changed[:, k] = levels
        rows.append(changed)
    return domain.canonical(np.concatenate(rows))


def _other_levels(parameter: Parameter, x: float) -> Array:
    """Return the levels that a side may be changed to."""
    count = parameter.n_levels or 1
    here = int(parameter.level_of(np.array([x]))[0])
    if count <= _MAX_LISTED_LEVELS:
        return parameter.level_at(np.delete(np.arange(count), here))
    steps = 2 ** np.arange(int(np.log2(count)) + 1)
    others = np.concatenate([here - steps, here + steps])
    return parameter.level_at(others[(others >= 0) & (others < count)])


def _combinations(domain: Domain, starts: Array) -> Array:
    """Return combinations to look at, those of the starts included: (m, sides with levels)."""
    parameters = [domain.parameters[k] for k in domain.discrete]
    if np.prod([float(parameter.n_levels or 1) for parameter in parameters]) <= _MAX_COMBINATIONS:
        return _different(domain, mesh([parameter.levels for parameter in parameters]))
    # The same for every choice: a search is a function of the score alone.
    rng = np.random.default_rng(0)
    unit = rng.random((_MAX_COMBINATIONS, len(parameters)))
    drawn = np.column_stack(
        [parameter.from_unit(unit[:, j]) for j, parameter in enumerate(parameters)]
    )
    own = starts[:, list(domain.discrete)]
    near = np.concatenate([_exchanges(domain, start) for start in starts])[:, list(domain.discrete)]
    return _different(domain, np.concatenate([own, drawn, near]))


def _different(domain: Domain, combinations: Array) -> Array:
    """Return the combinations (m, sides with levels) that are different points of the box."""
    points = domain.canonical(_placed(domain, combinations))
    return np.unique(points[:, list(domain.discrete)], axis=0)


def _placed(domain: Domain, combinations: Array) -> Array:
    """Return a point (m, d) of each combination (m, sides with levels), alike in other sides."""
    points = np.tile(domain.points[0], (len(combinations), 1))
    points[:, list(domain.discrete)] = combinations
    return points


def _spread(domain: Domain, combinations: Array, starts: Array) -> Array:
    """Return equally many points of every combination, one combination after the other: (q, d)."""
    d = len(domain.columns)
    free = [k for k in range(d) if k not in domain.discrete]
    if not free:
        return _placed(domain, combinations)
    is_free = _is_free(domain, _placed(domain, combinations), np.array(free))
    n_sides = len(domain.discrete) + is_free.sum(axis=1).mean()
    count = max(_MIN_POINTS, int(EVALUATIONS_PER_DIMENSION * n_sides) // len(combinations))
    unit = _unit_points(count, len(free))
    low = domain.bounds[free, 0]
    inside = np.concatenate([starts[:, free], low + unit * (domain.bounds[free, 1] - low)])
    points = np.empty((len(combinations) * len(inside), d))
    points[:, list(domain.discrete)] = np.repeat(combinations, len(inside), axis=0)
    points[:, free] = np.tile(inside, (len(combinations), 1))
    return domain.canonical(points)


@cache
def _unit_points(count: int, d: int) -> Array:
    """Return the first points of one scrambled Sobol sequence in the unit cube: (count, d)."""
    from scipy.stats import qmc  # imports slowly

    sobol = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(0))
    return np.asarray(sobol.random_base2(int(np.ceil(np.log2(count))))[:count])
