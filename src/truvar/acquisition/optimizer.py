"""The best point of a box: the score is searched by DIRECT (Jones, Perttunen, Stuckman 1993) and polished.

Both ask for the scores of many points at once, which costs little more than that of one. To that end a round of DIRECT
divides the best rectangle of every size, as does its aggressive form (Baker, Watson, Grossman, Haftka, Mason 2000), and
not only those on the hull of value over size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from truvar._typing import Array

Score = Callable[[Array], Array]  # (q, d) -> (q,)

EVALUATIONS_PER_DIMENSION = 500
FINEST = 9  # trisections of a side: rectangles down to 3^-9 of the box
REACH = 0.01  # of the box: how far the polish looks at first
POLISH = 1e-6  # of the box: how closely it pins the point down
CLOSER = 0.2  # by how much the polish narrows its view when it finds nothing better
ROUNDS = 40  # of the polish, at most


def best_in_box(score: Score, bounds: Array, start: Array) -> Array:
    """The point (d,) of the box with the highest score, at least as good as `start`. `score` maps (q, d) to (q,)."""
    low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    found = low + width * direct(lambda unit: score(low + unit * width), len(bounds))
    leaders = np.stack([found, start])
    return polish(score, bounds, leaders[int(np.argmax(score(leaders)))])


def direct(score: Score, d: int) -> Array:
    """DIRECT: the best point (d,) of the unit cube that dividing rectangles finds, a round of them at a time."""
    centres, cuts = np.full((1, d), 0.5), np.zeros((1, d), dtype=int)  # cuts: trisections of each side
    values = score(centres)
    while len(values) < EVALUATIONS_PER_DIMENSION * d:
        chosen = _promising(values, cuts)
        least = cuts[chosen].min(axis=1)
        box, side = np.nonzero(cuts[chosen] == least[:, None])  # the longest sides of each
        offset = np.zeros((len(box), d))
        offset[np.arange(len(box)), side] = 3.0 ** -(least[box] + 1.0)
        pairs = np.stack([centres[chosen[box]] - offset, centres[chosen[box]] + offset], axis=1)  # (p, 2, d)
        sampled = score(pairs.reshape(-1, d)).reshape(-1, 2)
        order = np.lexsort([-sampled.max(axis=1), box])  # by rectangle, the most promising side is cut first
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


def _promising(values: Array, cuts: NDArray[np.int_]) -> NDArray[np.intp]:
    """The rectangles to divide: the best of every size."""
    divisible = np.flatnonzero(cuts.min(axis=1) < FINEST)
    size = np.sort(cuts[divisible], axis=1) @ (FINEST + 1) ** np.arange(cuts.shape[1])  # the same for the same sides
    order = np.lexsort([-values[divisible], size])
    return np.asarray(divisible[order[np.flatnonzero(np.diff(size[order], prepend=-1))]])


def polish(score: Score, bounds: Array, start: Array) -> Array:
    """A local maximum of the score near `start`, at least as good as it, inside the box: steps to the peak of a
    quadratic through points around, or to the best of those points; where neither is better, a closer look."""
    low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    around = _around(len(bounds))
    x, reach = np.clip((start - low) / width, 0.0, 1.0), REACH
    value = float(score((low + x * width)[None, :])[0])
    moved = False
    for _ in range(ROUNDS):
        if reach < POLISH:
            break
        near = np.clip(x + reach * around, 0.0, 1.0)
        values = score(low + near * width)
        peaks = np.clip(x + reach * _peak((near - x) / reach, values - value), 0.0, 1.0)
        near, values = np.vstack([near, peaks]), np.append(values, score(low + peaks * width))
        best = int(np.argmax(values))
        if values[best] > value:
            reach = min(REACH, max(2.0 * float(np.abs(near[best] - x).max()), CLOSER * reach))
            x, value, moved = near[best], float(values[best]), True
        else:
            reach *= CLOSER
    return np.asarray(low + x * width) if moved else start


def _around(d: int) -> Array:
    """Offsets that tell a quadratic apart: along every axis, both ways, and along every diagonal of two."""
    axes = np.eye(d)
    diagonals = [sign * axes[i] + axes[j] for i in range(d) for j in range(i) for sign in (1.0, -1.0)]
    return np.vstack([axes, -axes, *diagonals])


def _peak(offsets: Array, rise: Array) -> Array:
    """Where the quadratic through the rises (q,) over the middle at the offsets (q, d) is highest, and half-way and
    twice as far: (3, d), at most 3 along an axis. Where it curves upwards its slope is followed all the same."""
    d = offsets.shape[1]
    i, j = np.triu_indices(d)
    design = np.hstack([offsets, offsets[:, i] * offsets[:, j]])
    found = np.linalg.lstsq(design, np.where(np.isfinite(rise), rise, 0.0), rcond=None)[0]
    curvature = np.zeros((d, d))
    curvature[i, j] += found[d:]
    curvature[j, i] += found[d:]
    bends, axes = np.linalg.eigh(curvature)
    bends = np.maximum(np.abs(bends), 1e-12 * max(float(np.abs(found).max()), 1e-300))
    step = axes @ (axes.T @ found[:d] / bends)
    step = step * min(1.0, 3.0 / max(float(np.abs(step).max()), 1e-300))
    return np.outer([1.0, 0.5, 2.0], step)
