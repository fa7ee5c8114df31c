"""BaMSOO: simultaneous optimistic optimisation over a tree of cells, which measures a cell's centre only if the model
leaves it a chance to beat the best known (Wang, Shakibi, Jin, de Freitas 2014).

| paper of BaMSOO | here |
|---|---|
| (h, j), cell of depth h | `Cell`: corner and size, in shares of the domain's extent |
| x_{h,j} | `Cell.point`: its centre; in a finite domain the point of the cell that is nearest to it |
| g(x_{h,j}) | value of the cell: measured, or the lower bound L_N |
| f^+ | `best`: the largest value so far |
| U_N, L_N = mu +- B_N sigma | B_N^2 = 2 log(pi^2 N^2 / (6 eta)), N the number of cells so far |
| h_max(n) | sqrt(n) after n expansions |

The tree is no state: it is grown anew for every choice, by their algorithm, from what was visited and the posterior of
now, until it reaches a cell that must be measured. So the bounds of a cell left unmeasured are those of now, where the
original keeps those of the time when the cell came up. A measured or pending cell has the posterior mean as its value,
which without noise is what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log, pi, sqrt

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import Confidence, Schedule, bounds
from truvar.acquisition.utils import at_level, bookkeeping, moments, of_target, refuse
from truvar.domain.candidates import Candidates
from truvar.domain.domain import SAME_POINT
from truvar.exceptions import TruvarError

__all__ = ["BaMSOO"]

CHILDREN = 3
FINEST = 1e-7  # share of the extent: cells are not split below
PATIENCE = 2000  # expansions without a cell to measure: then nothing is left to find


@dataclass(frozen=True)
class BaMSOO:
    """Bayesian multi-scale optimistic optimisation (Wang, Shakibi, Jin, de Freitas 2014). It names one point, which
    scores 1; all others score 0.

    eta  the bounds hold for all cells of the tree with probability 1 - eta
    """

    eta: float = 0.05
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        if self.per_cost:
            raise TruvarError("BaMSOO names one point and weighs it against no other; leave out per_cost")
        if not 0 < self.eta < 1:
            raise TruvarError(f"eta must lie between 0 and 1, got {self.eta}")

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum", self.level)

    def propose(self, context: PolicyContext) -> Array:
        """The one point (1, d) to measure, or none (0, d)."""
        point = context.cached(("bamsoo", self.eta), lambda: next_point(context, self.eta))
        return np.empty((0, len(context.domain.columns))) if point is None else point[None, :]

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        points, score = self.propose(context), np.zeros(len(candidates.points))
        for point in points:
            here = np.abs(candidates.points[:, : len(point)] - point) <= SAME_POINT * context.domain.extent
            score = here.all(axis=1).astype(float)
        return at_level(context, candidates, self.level, score)


@dataclass(frozen=True)
class Cell:
    """A box of the tree, in shares of the domain's extent."""

    corner: Array  # (d,)
    size: Array  # (d,)
    point: Array  # (d,), in the user's units
    inside: Index | None = None  # the points of a finite domain in it
    site: int | None = None  # and which of them `point` is


@dataclass
class Tree:
    """The tree of one choice, as far as it is grown."""

    context: PolicyContext
    eta: float
    leaves: list[list[tuple[float, Cell]]] = field(default_factory=list)  # by depth
    best: float = -np.inf  # f^+
    cells: int = 0  # N
    expansions: int = 0  # n
    known: dict[bytes, tuple[Array, Array, bool]] = field(default_factory=dict)  # of points: mean, variance, visited


@blas_in_one_thread()
def next_point(context: PolicyContext, eta: float) -> Array | None:
    """The first point that BaMSOO needs and that is neither measured nor pending; None if it needs none."""
    tree = Tree(context, eta)
    wanted = _enter(tree, list(_root(context)), depth=0)
    while wanted is None and any(tree.leaves) and tree.expansions < PATIENCE:
        floor = -np.inf
        for depth in range(min(len(tree.leaves), int(sqrt(tree.expansions)) + 1)):  # h <= h_max(n)
            if not tree.leaves[depth]:
                continue
            value, cell = max(tree.leaves[depth], key=lambda leaf: leaf[0])
            if value >= floor:
                floor = value
                tree.leaves[depth] = [leaf for leaf in tree.leaves[depth] if leaf[1] is not cell]
                tree.expansions += 1
                wanted = _enter(tree, list(_split(context, cell)), depth + 1)
                if wanted is not None:
                    break
        else:
            if floor == -np.inf:  # every leaf is deeper than h_max: it grows with n
                tree.expansions += 1
    return wanted


def _enter(tree: Tree, cells: list[Cell], depth: int) -> Array | None:
    """Puts cells into the tree, each with its value; returns the point of the first that must be measured instead."""
    if len(tree.leaves) <= depth:
        tree.leaves.append([])
    for cell in cells:
        tree.cells += 1
        if cell.point.tobytes() not in tree.known:
            _look_up(tree, cells)
        mean, variance, visited = tree.known[cell.point.tobytes()]
        lower, upper = bounds(mean, variance, 2 * log(pi**2 * tree.cells**2 / (6 * tree.eta)))  # L_N, U_N
        if not visited and upper >= tree.best:
            return cell.point
        value = float(mean if visited else lower)
        tree.best = max(tree.best, value)
        tree.leaves[depth].append((value, cell))
    return None


def _look_up(tree: Tree, cells: list[Cell]) -> None:
    """What is known at the points of cells; in a box also of their children and of those children, since many at once
    are cheaper."""
    context, brood, where = tree.context, list(cells), None
    if context.domain.continuous:
        children = [child for cell in cells for child in _split(context, cell)]
        brood += children + [grandchild for child in children for grandchild in _split(context, child)]
    else:
        where = np.array([cell.site for cell in cells])
    points = np.stack([cell.point for cell in brood])
    sites, ones = np.zeros((len(points), context.posterior.sites.shape[1])), np.ones((len(points), 1))
    sites[:, : points.shape[1]] = points  # of the target
    mean, sd = moments(context, Candidates(sites, ones, ones, where))
    visited = _visited(context, points)
    for i, cell in enumerate(brood):
        tree.known[cell.point.tobytes()] = mean[i, ...], sd[i, ...] ** 2, bool(visited[i])


def _visited(context: PolicyContext, points: Array) -> Mask:
    """Which of the points (q, d) were measured, or are about to be."""
    visited = context.queried_points[of_target(context, context.queried_points), : points.shape[1]]
    near = np.abs(points[:, None, :] - visited[None, :, :]) <= SAME_POINT * context.domain.extent
    return np.asarray(np.any(np.all(near, axis=2), axis=1))


def _root(context: PolicyContext) -> Iterator[Cell]:
    d = len(context.domain.columns)
    inside = None if context.domain.continuous else np.arange(len(context.domain))
    yield from _cell(context, np.zeros(d), (np.ptp(context.domain.bounds, axis=1) > 0).astype(float), inside)


def _split(context: PolicyContext, cell: Cell) -> Iterator[Cell]:
    """The thirds of a cell along its longest side; none if there is nothing left to tell apart."""
    side = int(np.argmax(cell.size))
    if cell.size[side] < FINEST or (cell.inside is not None and len(cell.inside) == 1):
        return
    size = cell.size.copy()
    size[side] /= CHILDREN
    for k in range(CHILDREN):
        corner = cell.corner.copy()
        corner[side] += k * size[side]
        inside = cell.inside
        if inside is not None:
            x = (context.domain.points[inside, side] - context.domain.bounds[side, 0]) / context.domain.extent[side]
            third = np.clip(((x - cell.corner[side]) / size[side]).astype(int), 0, CHILDREN - 1)
            inside = inside[third == k]
        yield from _cell(context, corner, size, inside)


def _cell(context: PolicyContext, corner: Array, size: Array, inside: Index | None) -> Iterator[Cell]:
    """The cell with its point; none if it holds no point of a finite domain."""
    centre = context.domain.bounds[:, 0] + (corner + size / 2) * context.domain.extent
    if inside is None:
        yield Cell(corner, size, centre)
    elif len(inside):
        points = context.domain.points[inside]
        nearest = int(np.argmin((((points - centre) / context.domain.extent) ** 2).sum(axis=1)))
        yield Cell(corner, size, points[nearest], inside, int(inside[nearest]))
