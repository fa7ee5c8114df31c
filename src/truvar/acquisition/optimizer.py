"""Maximisation of a score over a box: DIRECT (Jones et al. 1993), then a local search.

Hand-written because library versions of DIRECT (scipy.optimize.direct, NLopt) evaluate one point at
a time: scoring many points together costs little more than scoring one. For the same reason a round
divides the best rectangle of every size, as in the aggressive form (Baker, Watson, Grossman,
Haftka, Mason 2000), and not only those on the hull of value over size.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from truvar._typing import Array, Index

Score = Callable[[Array], Array]  # (q, d) -> (q,)
# yields points (q, d), is sent scores (q,)
LocalSearch = Generator[Array, Array, tuple[Array, float]]

EVALUATIONS_PER_DIMENSION = 500  # of DIRECT
_MAX_TRISECTIONS = 9  # of a side: rectangles down to 3^-9 of the box
_INITIAL_REACH = 0.01  # share of the box: distance of the first points of the local search
_MIN_REACH = 1e-6  # share of the box: the local search ends at this distance
_SHRINKAGE = 0.2  # factor of the reach when the local search finds nothing better
_MAX_ROUNDS = 40  # of the local search
_OFFSET_ROUNDING_SHARE = 1e-6  # share of the reach: offsets that differ less are equal
_MAX_STEP = 3.0  # of the quadratic model along an axis, in multiples of the reach


def best_in_box(score: Score, bounds: Array, start: Array) -> Array:
    """Return the best point of the box that a search finds, at least as good as `start`.

    Args:
        score: Maps points (q, d) to scores (q,).
        bounds: Lower and upper end of each side. Shape (d, 2).
        start: A point of the box, or several of them. Shape (d,) or (s, d).
    """
    low = bounds[:, 0]
    width = bounds[:, 1] - low
    found = low + width * direct(lambda unit: score(low + unit * width), len(bounds))
    starts = np.vstack([found, start])
    return polish(score, bounds, starts[int(np.argmax(score(starts)))])


def direct(score: Score, d: int) -> Array:
    """Return the best point (d,) of the unit cube that DIRECT finds, in rounds of rectangles."""
    centres = np.full((1, d), 0.5)
    cuts = np.zeros((1, d), dtype=int)  # trisections of each side
    values = score(centres)
    while len(values) < EVALUATIONS_PER_DIMENSION * d:
        chosen = _best_of_each_size(values, cuts)
        least = cuts[chosen].min(axis=1)
        # The longest sides of each rectangle.
        box, side = np.nonzero(cuts[chosen] == least[:, None])
        offset = np.zeros((len(box), d))
        offset[np.arange(len(box)), side] = 3.0 ** -(least[box] + 1.0)
        # (p, 2, d)
        pairs = np.stack([centres[chosen[box]] - offset, centres[chosen[box]] + offset], axis=1)
        sampled = score(pairs.reshape(-1, d)).reshape(-1, 2)
        # In each rectangle, the most promising side is cut first.
        order = np.lexsort([-sampled.max(axis=1), box])
        own = cuts[chosen].copy()
        children = np.empty((len(box), d), dtype=int)
        for k in order:
            own[box[k], side[k]] += 1
            children[k] = own[box[k]]
        cuts[chosen] = own
        centres = np.concatenate([centres, pairs.reshape(-1, d)])
        cuts = np.concatenate([cuts, np.repeat(children, 2, axis=0)])
        values = np.concatenate([values, sampled.ravel()])
    return np.asarray(centres[int(np.argmax(values))])


def _best_of_each_size(values: Array, cuts: NDArray[np.int_]) -> NDArray[np.intp]:
    """Return the rectangles to divide: the best of every size."""
    divisible = np.flatnonzero(cuts.min(axis=1) < _MAX_TRISECTIONS)
    # Equal for equal sides.
    size = np.sort(cuts[divisible], axis=1) @ (_MAX_TRISECTIONS + 1) ** np.arange(cuts.shape[1])
    order = np.lexsort([-values[divisible], size])
    return np.asarray(divisible[order[np.flatnonzero(np.diff(size[order], prepend=-1))]])


def polish(score: Score, bounds: Array, start: Array) -> Array:
    """Return a local maximum of the score inside the box, near `start` and at least as good.

    Args:
        score: Maps points (q, d) to scores (q,).
        bounds: Lower and upper end of each side. Shape (d, 2).
        start: A point of the box. Shape (d,).
    """
    return search_together(score, [polishing(bounds, start)])[0][0]


def search_together(score: Score, searches: Sequence[LocalSearch]) -> list[tuple[Array, float]]:
    """Run local searches side by side, so that their next points are scored together.

    Args:
        score: Maps points (q, d) to scores (q,).
        searches: The searches.

    Returns:
        The point (d,) that each search ends at, and the score there.
    """
    ends: dict[int, tuple[Array, float]] = {}
    wanted = {number: next(search) for number, search in enumerate(searches)}
    while wanted:
        values = score(np.concatenate(list(wanted.values())))
        start = 0
        for number, points in list(wanted.items()):
            try:
                wanted[number] = searches[number].send(values[start : start + len(points)])
            except StopIteration as end:
                ends[number] = end.value
                del wanted[number]
            start += len(points)
    return [ends[number] for number in range(len(searches))]


def polishing(bounds: Array, start: Array, sides: Index | None = None) -> LocalSearch:
    """Search for a local maximum of a score inside the box, near `start` and at least as good.

    Each round evaluates points around the present one and the peak of a quadratic fitted to them,
    and moves to the best; if none is better, the reach shrinks.

    Args:
        bounds: Lower and upper end of each side. Shape (d, 2).
        start: A point of the box. Shape (d,).
        sides: Sides along which it moves, at least one; None: all of them.

    Yields:
        Points (q, d) to score; their scores (q,) are to be sent back.

    Returns:
        The point and its score.
    """
    sides = np.arange(len(bounds)) if sides is None else sides
    low = bounds[sides, 0]
    width = bounds[sides, 1] - low
    directions = _directions(len(sides))
    x = np.clip((start[sides] - low) / width, 0.0, 1.0)

    def placed(unit: Array) -> Array:
        points = np.empty((len(unit), len(start)))
        points[:] = start
        points[:, sides] = low + unit * width
        return points

    value = -np.inf
    reach = _INITIAL_REACH
    moved = False
    for turn in range(_MAX_ROUNDS):
        if reach < _MIN_REACH:
            break
        near = _within_unit(x + reach * directions)
        if turn == 0:
            first = yield np.vstack([start, placed(near)])
            value = float(first[0])
            values = first[1:]
        else:
            values = yield placed(near)
        # Points that are not allowed have the score minus infinity.
        with np.errstate(invalid="ignore"):
            rise = values - value
        steps = _peak((near - x) / reach, rise)
        peaks = _within_unit(x + reach * steps)
        near = np.concatenate([near, peaks])
        values = np.concatenate([values, (yield placed(peaks))])
        best = int(np.argmax(values))
        if values[best] > value:
            reach = min(
                _INITIAL_REACH, max(2.0 * float(np.abs(near[best] - x).max()), _SHRINKAGE * reach)
            )
            x = near[best]
            value = float(values[best])
            moved = True
        else:
            reach *= _SHRINKAGE
    return (placed(x[None, :])[0] if moved else start), value


def _within_unit(points: Array) -> Array:
    """Return points moved into the unit cube, faster than `np.clip` for a few of them."""
    return np.minimum(np.maximum(points, 0.0), 1.0)


@cache
def _directions(d: int) -> Array:
    """Return offsets that determine a quadratic: along every axis and on diagonals of two axes."""
    axes = np.eye(d)
    diagonals = []
    for i in range(d):
        for j in range(i):
            diagonals.append(axes[i] + axes[j])
            diagonals.append(-axes[i] + axes[j])
    return np.vstack([axes, -axes, *diagonals])


@cache
def _pairs(d: int) -> tuple[Index, Index]:
    """Return the pairs of axes, an axis with itself included."""
    first, second = np.triu_indices(d)
    return first, second


@cache
def _quadratic_fit(d: int) -> Array:
    """Return the matrix from the rise in all `_directions` to the coefficients of a quadratic."""
    return np.asarray(np.linalg.pinv(_design(_directions(d))))


def _design(offsets: Array) -> Array:
    """Return the terms of a quadratic at offsets (q, d): linear, then products of two."""
    i, j = _pairs(offsets.shape[1])
    return np.hstack([offsets, offsets[:, i] * offsets[:, j]])


def _peak(offsets: Array, rise: Array) -> Array:
    """Return the step to the peak of a quadratic model, and half and twice that step.

    If the quadratic curves upwards, its slope is followed as if it curved downwards.

    Args:
        offsets: Offsets of the points from the centre. Shape (q, d).
        rise: Score at the points minus that at the centre. Shape (q,).

    Returns:
        Three steps, at most `_MAX_STEP` along an axis. Shape (3, d).
    """
    d = offsets.shape[1]
    i, j = _pairs(d)
    finite = np.where(np.isfinite(rise), rise, 0.0)
    if (np.abs(offsets - _directions(d)) < _OFFSET_ROUNDING_SHARE).all():
        coefficients = _quadratic_fit(d) @ finite
    else:  # points beyond the border were moved to it
        coefficients = np.asarray(
            np.linalg.lstsq(_design(offsets), finite, rcond=None)[0], dtype=float
        )
    slope = coefficients[:d]
    hessian = np.zeros((d, d))
    hessian[i, j] += coefficients[d:]
    hessian[j, i] += coefficients[d:]
    curvatures, axes = np.linalg.eigh(hessian)
    smallest = 1e-12 * max(float(np.abs(coefficients).max()), 1e-300)
    curvatures = np.maximum(np.abs(curvatures), smallest)
    step = axes @ (axes.T @ slope / curvatures)
    step = step * min(1.0, _MAX_STEP / max(float(np.abs(step).max()), 1e-300))
    return np.outer([1.0, 0.5, 2.0], step)
