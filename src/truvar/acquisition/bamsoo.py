"""BaMSOO: optimistic optimisation over a tree of cells (Wang, Shakibi, Jin, de Freitas 2014).

The centre of a cell is measured only if the model leaves it a chance to beat the best value so far.

| paper of BaMSOO | here |
|---|---|
| (h, j), cell of depth h | `Cell`: corner and size, as shares of the domain's extent |
| x_{h,j} | `Cell.point`: its centre; in a finite domain the point of the cell that is nearest to the centre |
| g(x_{h,j}) | value of the cell: the posterior mean if queried, otherwise the lower bound L_N |
| f^+ | `best`: the largest value so far |
| U_N, L_N = mu +- B_N sigma | B_N^2 = 2 log(pi^2 N^2 / (6 eta)), N the number of cells so far |
| h_max(n) | sqrt(n) after n expansions |

The tree is not stored: for every choice it is grown from the root, by their algorithm, from the
queried points and the present posterior, until it reaches a cell that must be measured. So the
bounds of an unmeasured cell are the present ones, where the original keeps those of the time when
the cell was created. A measured or pending cell has the posterior mean as its value, which without
noise is the measured value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log, pi, sqrt

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import OPTIMUM, BasePolicy, PolicyContext
from truvar.acquisition.confidence import Schedule, bounds
from truvar.acquisition.utils import moments
from truvar.domain.candidates import Candidates
from truvar.domain.grid import SAME_POINT
from truvar.exceptions import InvalidArgumentError
from truvar.validation import check_fraction

__all__ = ["BaMSOO"]

_CHILDREN = 3  # parts into which a cell is split
_SMALLEST_SIDE = 1e-7  # share of the extent: shorter cells are not split
_MAX_EXPANSIONS = 2000  # expansions without a cell to measure, after which nothing is left to find


@dataclass(frozen=True)
class BaMSOO(BasePolicy):
    """Bayesian multi-scale optimistic optimisation (Wang, Shakibi, Jin, de Freitas 2014).

    It proposes one point, which scores 1; all others score 0.

    Attributes:
        eta: Probability that the bounds fail for some cell of the tree.
        level: See `BasePolicy`.
        per_cost: Must be False, since the policy compares no points.
        beta: See `BasePolicy`.
    """

    eta: float = 0.05
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_cost:
            raise InvalidArgumentError(
                "BaMSOO proposes one point and compares it with no other, so it cannot divide by "
                "the cost; leave out per_cost"
            )
        check_fraction(self.eta, "eta", example="0.05")

    def propose(self, context: PolicyContext) -> Array:
        """Return the one point to measure, (1, d), or none, (0, d)."""
        point = context.cached(("bamsoo", self.eta), lambda: _next_point(context, self.eta))
        return np.empty((0, len(context.domain.columns))) if point is None else point[None, :]

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return 1 at the proposed point and 0 elsewhere. Shape (c, K)."""
        scores = np.zeros(len(candidates.points))
        for point in self.propose(context):
            same = (
                np.abs(candidates.points[:, : len(point)] - point)
                <= SAME_POINT * context.domain.extent
            )
            scores = same.all(axis=1).astype(float)
        return self.score_table(context, candidates, scores)


@dataclass(frozen=True)
class Cell:
    """A box of the tree.

    Attributes:
        corner: Lowest corner as a share of the domain's extent. Shape (d,).
        size: Side lengths as shares of the extent. Shape (d,).
        point: The point that represents the cell, in the user's units. Shape (d,).
        inside: Indices of the points of a finite domain in the cell.
        site: Index of `point` among them.
    """

    corner: Array
    size: Array
    point: Array
    inside: Index | None = None
    site: int | None = None


@dataclass(frozen=True)
class Prediction:
    """Moments at the point of a cell, and whether it was measured or is pending."""

    mean: Array  # ()
    variance: Array  # ()
    queried: bool


@dataclass
class _Tree:
    """The tree of one choice, as far as it is grown.

    Attributes:
        context: The context of the choice.
        eta: Probability that the bounds fail.
        leaves: Value and cell of the leaves, by depth.
        best: f^+.
        n_cells: N, the number of cells so far.
        n_expansions: n, the number of expansions so far.
        predictions: Predictions by the bytes of the point.
    """

    context: PolicyContext
    eta: float
    leaves: list[list[tuple[float, Cell]]] = field(default_factory=list)
    best: float = -np.inf
    n_cells: int = 0
    n_expansions: int = 0
    predictions: dict[bytes, Prediction] = field(default_factory=dict)


@blas_in_one_thread()
def _next_point(context: PolicyContext, eta: float) -> Array | None:
    """Return the first point that BaMSOO needs and neither has nor awaits; None if none."""
    tree = _Tree(context, eta)
    wanted = _insert(tree, list(_root(context)), depth=0)
    while wanted is None and any(tree.leaves) and tree.n_expansions < _MAX_EXPANSIONS:
        floor = -np.inf
        # h <= h_max(n)
        for depth in range(min(len(tree.leaves), int(sqrt(tree.n_expansions)) + 1)):
            if not tree.leaves[depth]:
                continue
            value, cell = max(tree.leaves[depth], key=lambda leaf: leaf[0])
            if value >= floor:
                floor = value
                tree.leaves[depth] = [leaf for leaf in tree.leaves[depth] if leaf[1] is not cell]
                tree.n_expansions += 1
                wanted = _insert(tree, list(_split(context, cell)), depth + 1)
                if wanted is not None:
                    break
        else:
            if floor == -np.inf:  # every leaf is deeper than h_max, which grows with n
                tree.n_expansions += 1
    return wanted


def _insert(tree: _Tree, cells: list[Cell], depth: int) -> Array | None:
    """Insert cells with their values; return the point of the first that must be measured."""
    if len(tree.leaves) <= depth:
        tree.leaves.append([])
    for cell in cells:
        tree.n_cells += 1
        if cell.point.tobytes() not in tree.predictions:
            _predict(tree, cells)
        at = tree.predictions[cell.point.tobytes()]
        beta = 2 * log(pi**2 * tree.n_cells**2 / (6 * tree.eta))  # B_N^2
        lower, upper = bounds(at.mean, at.variance, beta)  # L_N, U_N
        if not at.queried and upper >= tree.best:
            return cell.point
        value = float(at.mean if at.queried else lower)
        tree.best = max(tree.best, value)
        tree.leaves[depth].append((value, cell))
    return None


def _predict(tree: _Tree, cells: list[Cell]) -> None:
    """Store predictions for cells; in a box for two more generations, which costs little."""
    context = tree.context
    family = list(cells)
    sites = None
    if context.domain.continuous:
        children = [child for cell in cells for child in _split(context, cell)]
        family += children + [
            grandchild for child in children for grandchild in _split(context, child)
        ]
    else:
        sites = np.array([cell.site for cell in cells])
    points = np.stack([cell.point for cell in family])
    model_points = np.zeros((len(points), context.posterior.sites.shape[1]))
    model_points[:, : points.shape[1]] = points  # a task coordinate stays 0, the target task
    ones = np.ones((len(points), 1))
    mean, sd = moments(context, Candidates(model_points, ones, ones, sites))
    queried = _is_queried(context, points)
    for i, cell in enumerate(family):
        tree.predictions[cell.point.tobytes()] = Prediction(
            mean[i, ...], sd[i, ...] ** 2, bool(queried[i])
        )


def _is_queried(context: PolicyContext, points: Array) -> Mask:
    """Return which of the points (q, d) were measured or are pending."""
    queried = context.queried_points[context.is_target(context.queried_points), : points.shape[1]]
    near = np.abs(points[:, None, :] - queried[None, :, :]) <= SAME_POINT * context.domain.extent
    return np.asarray(np.any(np.all(near, axis=2), axis=1))


def _root(context: PolicyContext) -> Iterator[Cell]:
    d = len(context.domain.columns)
    inside = None if context.domain.continuous else np.arange(len(context.domain))
    yield from _cell(
        context, np.zeros(d), (np.ptp(context.domain.bounds, axis=1) > 0).astype(float), inside
    )


def _split(context: PolicyContext, cell: Cell) -> Iterator[Cell]:
    """Yield the thirds of a cell along its longest side; none if it has no points to separate."""
    side = int(np.argmax(cell.size))
    if cell.size[side] < _SMALLEST_SIDE or (cell.inside is not None and len(cell.inside) == 1):
        return
    size = cell.size.copy()
    size[side] /= _CHILDREN
    for k in range(_CHILDREN):
        corner = cell.corner.copy()
        corner[side] += k * size[side]
        inside = cell.inside
        if inside is not None:
            x = (context.domain.points[inside, side] - context.domain.bounds[side, 0]) / _widths(
                context
            )[side]
            third = np.clip(((x - cell.corner[side]) / size[side]).astype(int), 0, _CHILDREN - 1)
            inside = inside[third == k]
        yield from _cell(context, corner, size, inside)


def _cell(
    context: PolicyContext, corner: Array, size: Array, inside: Index | None
) -> Iterator[Cell]:
    """Yield the cell with its point; nothing if it holds no point of a finite domain."""
    centre = context.domain.bounds[:, 0] + (corner + size / 2) * _widths(context)
    if context.domain.continuous and context.domain.discrete:
        centre = context.domain.snap(centre[None, :])[0]
    if inside is None:
        yield Cell(corner, size, centre)
    elif len(inside):
        points = context.domain.points[inside]
        nearest = int(np.argmin((((points - centre) / context.domain.extent) ** 2).sum(axis=1)))
        yield Cell(corner, size, points[nearest], inside, int(inside[nearest]))


def _widths(context: PolicyContext) -> Array:
    """Return the width of the domain along each column, (d,), or 1 where that is 0."""
    width = np.ptp(context.domain.bounds, axis=1)
    return np.where(width > 0, width, 1.0)
