"""The factor V = L^-1 K(X_t, sites) of the posterior, and the sums over targets that it gives.

| symbol | here | shape |
|---|---|---|
| v_x, the column of site x | `Factor.at` | (t, c) |
| u, the row that a measurement adds | `Factor.append`, `Factor.row` | (m,) |
| C_jx = k(j, x) - v_j . v_x | formed a tile of targets at a time | (c, a) |
| sum over targets j of w_j min(C_jx^2, e_j d_x) | `Factor.sums`, `Factor.sums_everywhere` | (c, K), (m, K) |

The targets are the first n sites. `LocalFactor` keeps the columns of all sites in this process;
`truvar.integrations.sharded` has one whose columns are distributed over the workers of a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from truvar._numba import truncated_sums
from truvar._numba.threads import run_tiles, tiles
from truvar._typing import Array, Index
from truvar.models._tiles import solved_tiles
from truvar.models.kernels import covariance_function

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

# a measurement's point (d',), its column (t,) and the root of its predictive variance
Row = tuple[Array, Array, float]
# rows near some sites; those sites (c,); their d (c, K)
Neighbourhood = tuple[Index, Index, Array]
# the same with the points of the sites (c, d') and their columns (c, t)
LocatedNeighbourhood = tuple[Index, Array, Array, Array]

# terms summed at a time: the error of a sum grows with the size of a block and with their number
BLOCK = 4096
# targets processed at a time
_TARGET_TILE = 2048
# sites processed at a time where all of them are scored
_SITE_TILE = 4096
# candidates scored at a time: their covariance with a tile of targets is 128 MB
_MAX_CANDIDATES = 8192


class Factor(ABC):
    """V over all sites.

    In the sums over targets j, `e` is the excess of every target (n,), `w` its weight (n,) and
    `predictive` holds d. A method whose name ends in `_of` takes points with their columns, which
    may lie in another shard.

    Args:
        sites: Coordinates of the sites. (m, d')

    Attributes:
        local: Whether the entries are in this process.
    """

    local = False

    def __init__(self, sites: Array) -> None:
        self.sites = sites

    @abstractmethod
    def append(self, point: Array, column: Array, root: float) -> Array:
        """Append the row of a measurement.

        Args:
            point: Coordinates of the measurement. (d',)
            column: Its column of V. (t,)
            root: Square root of its predictive variance; infinite if the measurement gives no
                information.

        Returns:
            The new row, which is zero if the measurement gives no information. (m,)
        """

    @abstractmethod
    def truncate(self, n_rows: int) -> None:
        """Remove all rows behind the first `n_rows`."""

    @property
    @abstractmethod
    def v(self) -> Array:
        """All entries, in this process: (t, m)."""

    @abstractmethod
    def row(self, i: int) -> Array:
        """Return row i: (m,)."""

    @abstractmethod
    def at(self, sites: Index | slice) -> Array:
        """Return the columns of some sites: (t, c)."""

    @abstractmethod
    def inner(self, i: int, base: Array) -> Array:
        """Return sum_j b_j u_j v_j with u the row i, over the rows before it, b (n,): (i,)."""

    @abstractmethod
    def combine(self, weights: Array) -> Array:
        """Return the combination of the first rows with weights (t,) or (c, t): (m,) or (c, m)."""

    @abstractmethod
    def gram(self, n_rows: int, base: Array) -> Array:
        """Return sum_j b_j v_j v_j^T over the first rows, with b (n,): (n_rows, n_rows)."""

    @abstractmethod
    def quadratic_forms(self, middle: Array) -> Array:
        """Return v_x^T middle v_x over the first rows: (m,)."""

    @abstractmethod
    def sums_of(
        self,
        points: Array,
        columns: Array,
        predictive: Array,
        e: Array,
        w: Array,
        rows: Index | None = None,
    ) -> Array:
        """Return the truncated sums of some points (c, d') with columns (c, t), see `sums`."""

    @abstractmethod
    def sums_everywhere_of(
        self, points: Array, columns: Array, excess: Array, weight: Array, predictive: Array
    ) -> Array:
        """Return the truncated sums at every site, over some targets.

        Args:
            points: Coordinates of the targets. (a, d')
            columns: Their columns of V. (a, t)
            excess: Their e. (a,)
            weight: Their w. (a,)
            predictive: d of each site and noise level. (m, K)

        Returns:
            The sums. (m, K)
        """

    @abstractmethod
    def bound_gaps_of(
        self, neighbourhoods: Sequence[LocatedNeighbourhood], e: Array, w: Array, base: Array
    ) -> list[tuple[Array, Array]]:
        """Compute by how much a bound exceeds the truncated sums on rows near some points.

        Args:
            neighbourhoods: For each: rows (a,), points (c, d'), their columns (c, t) and their d
                (c, K).
            e: Excess of every target. (n,)
            w: Weight of every target. (n,)
            base: b of every target, which the bound is made of, see
                `truncated_sums.candidate_bound_gaps`. (n,)

        Returns:
            For each neighbourhood: the gaps (c, K) and the sums of squares (c,).
        """

    def sums(
        self, e: Array, w: Array, sites: Index, predictive: Array, rows: Index | None = None
    ) -> Array:
        """Return the truncated sums of candidates at some sites.

        Args:
            e: Excess of every target. (n,)
            w: Weight of every target. (n,)
            sites: Sites of the candidates. (c,)
            predictive: Their d. (c, K)
            rows: Targets to sum over, among those with e > 0; None: all.

        Returns:
            The sums. (c, K)
        """
        out = np.zeros_like(predictive)
        if not (e.any() if rows is None else len(rows)):
            return out
        for part in tiles(len(sites), _MAX_CANDIDATES):
            points, columns = self._located(sites[part])
            out[part] = self.sums_of(points, columns, predictive[part], e, w, rows)
        return out

    def sums_everywhere(self, e: Array, w: Array, predictive: Array) -> Array:
        """Return the truncated sums at every site, with d (m, K): (m, K)."""
        rows = np.flatnonzero(e > 0)
        out = np.zeros_like(predictive)
        for tile in tiles(len(rows), _TARGET_TILE):
            these = rows[tile]
            out += self.sums_everywhere_of(*self._located(these), e[these], w[these], predictive)
        return out

    def bound_gaps(
        self, neighbourhoods: Sequence[Neighbourhood], e: Array, w: Array, base: Array
    ) -> list[tuple[Array, Array]]:
        """Compute the gaps of a bound on rows near some sites, see `bound_gaps_of`."""
        points, columns = self._located(np.concatenate([sites for _, sites, _ in neighbourhoods]))
        ends = np.cumsum([len(sites) for _, sites, _ in neighbourhoods])[:-1]
        parts = zip(neighbourhoods, np.split(points, ends), np.split(columns, ends), strict=True)
        located = [(near, some, own, d) for (near, _, d), some, own in parts]
        return self.bound_gaps_of(located, e, w, base)

    def _located(self, sites: Index) -> tuple[Array, Array]:
        """Return the points of some sites (c, d') and their columns (c, t)."""
        return self.sites[sites], np.ascontiguousarray(self.at(sites).T)


class LocalFactor(Factor):
    """V over all sites, or over those of one shard, in this process.

    Args:
        kernel: Kernel of the prior.
        sites: Coordinates of the sites. (m, d')
    """

    local = True

    def __init__(self, kernel: Kernel, sites: Array) -> None:
        super().__init__(sites)
        self.k = covariance_function(kernel)
        self.n_rows = 0
        self._v = np.empty((16, len(sites)))
        # e, and the targets where it is positive
        self._active: tuple[Array, Index] | None = None
        # a point, and its covariance with the sites
        self._last_covariance: tuple[Array, Array] | None = None

    def append(self, point: Array, column: Array, root: float) -> Array:
        """Append the row of a measurement, see `Factor.append`."""
        t = self.n_rows
        if t == len(self._v):
            grown = np.empty((2 * t, len(self.sites)))
            grown[:t] = self._v
            self._v = grown
        if np.isfinite(root):
            np.divide(self._covariance(point, column), root, out=self._v[t])
        else:
            self._v[t] = 0.0
        self.n_rows = t + 1
        self._last_covariance = None
        return self.row(t)

    def fill(self, points: Array, lower: Array) -> Iterator[tuple[slice, Array]]:
        """Set the rows of measurements at points (t, d'), given L (t, t), instead of any before.

        Yields:
            Slices of the sites with their columns, (t, q).
        """
        t = len(points)
        if t > len(self._v):
            self._v = np.empty((t + max(16, t // 4), len(self.sites)))
        self.n_rows = t
        self._last_covariance = None
        for tile, solved in solved_tiles(
            lower, lambda tile: self.k(points, self.sites[tile]), len(self.sites)
        ):
            self._v[:t, tile] = solved
            yield tile, solved

    def truncate(self, n_rows: int) -> None:
        """Remove all rows behind the first `n_rows`."""
        if n_rows < self.n_rows:
            self.n_rows = n_rows
            self._last_covariance = None

    def _covariance(self, point: Array, column: Array) -> Array:
        """Return C_jx of every site j with a point x (d',), whose column is given: (m,).

        The last result is cached, since the candidate scored last is often the one measured next.
        """
        if self._last_covariance is None or (self._last_covariance[0] != point).any():
            across = self.k(self.sites, point[None, :])[:, 0] - column @ self.v
            self._last_covariance = point.copy(), across
        return self._last_covariance[1]

    @property
    def v(self) -> Array:
        """All entries: (t, m)."""
        return self._v[: self.n_rows]

    def row(self, i: int) -> Array:
        """Return row i: (m,)."""
        return np.asarray(self._v[i])

    def at(self, sites: Index | slice) -> Array:
        """Return the columns of some sites: (t, c)."""
        return self._v[: self.n_rows, sites]

    def inner(self, i: int, base: Array) -> Array:
        """Return sum_j b_j u_j v_j, see `Factor.inner`."""
        n = len(base)
        return blocked_product(self._v[:i, :n], base * self._v[i, :n])

    def combine(self, weights: Array) -> Array:
        """Return a combination of the first rows, see `Factor.combine`."""
        return np.asarray(weights @ self._v[: weights.shape[-1]])

    def gram(self, n_rows: int, base: Array) -> Array:
        """Return sum_j b_j v_j v_j^T, see `Factor.gram`."""
        return weighted_gram(self._v[:n_rows], base)

    def quadratic_forms(self, middle: Array) -> Array:
        """Return v_x^T middle v_x over the first rows: (m,)."""
        return quadratic_forms(self._v[: len(middle)], middle)

    def sums_of(
        self,
        points: Array,
        columns: Array,
        predictive: Array,
        e: Array,
        w: Array,
        rows: Index | None = None,
    ) -> Array:
        """Return the truncated sums of some points over the targets here, see `Factor.sums`."""
        if rows is None and len(points) == 1:
            out = np.zeros(predictive.shape)
            active = self._active_targets(e)
            covariance = self._covariance(points[0], columns[0])[active, None]
            truncated_sums.truncated_sums(covariance, e[active], w[active], predictive, out)
            return out
        all_targets = False
        if rows is None:
            rows = self._active_targets(e)
            # Terms with e = 0 are zero, and if they are few it is quicker to add them than to pick
            # the others.
            all_targets = 2 * len(rows) > len(e)
        count = len(e) if all_targets else len(rows)
        picked: slice | Index = slice(None) if all_targets else rows
        excess = e[picked]
        weight = w[picked]
        parts = tiles(count, _TARGET_TILE)
        sums = np.zeros((len(parts), *predictive.shape))

        def work(tile: slice) -> None:
            these: slice | Index = tile if all_targets else rows[tile]
            prior = np.ascontiguousarray(self.k(points, self.sites[these]))
            out = sums[tile.start // _TARGET_TILE]
            explained = columns @ self.at(these)
            truncated_sums.candidate_sums(
                prior, explained, excess[tile], weight[tile], predictive, out
            )

        run_tiles(work, parts, count * len(points) * (1 + self.n_rows // 8))
        return np.asarray(sums.sum(axis=0))

    def _active_targets(self, e: Array) -> Index:
        """Return the targets with a positive excess; cached, as many sums have the same excess."""
        if self._active is None or self._active[0] is not e:
            self._active = e, np.flatnonzero(e > 0)
        return self._active[1]

    def sums_everywhere_of(
        self, points: Array, columns: Array, excess: Array, weight: Array, predictive: Array
    ) -> Array:
        """Return the sums at every site here, see `Factor.sums_everywhere_of`."""
        out = np.zeros_like(predictive)

        def work(tile: slice) -> None:
            covariance = np.ascontiguousarray(self.k(points, self.sites[tile]))
            covariance -= columns @ self.at(tile)
            truncated_sums.truncated_sums(covariance, excess, weight, predictive[tile], out[tile])

        entries = len(points) * len(out) * (1 + self.n_rows // 8)
        run_tiles(work, tiles(len(out), _SITE_TILE), entries)
        return out

    def bound_gaps_of(
        self, neighbourhoods: Sequence[LocatedNeighbourhood], e: Array, w: Array, base: Array
    ) -> list[tuple[Array, Array]]:
        """Compute the gaps of a bound on rows here, see `Factor.bound_gaps_of`."""
        found = [(np.zeros(d.shape), np.zeros(len(d))) for *_, d in neighbourhoods]

        def work(part: slice) -> None:
            for (near, points, columns, d), (gaps, squares) in zip(
                neighbourhoods[part], found[part], strict=True
            ):
                if len(near):
                    prior = np.ascontiguousarray(self.k(points, self.sites[near]))
                    explained = columns @ self.at(near)
                    truncated_sums.candidate_bound_gaps(
                        prior, explained, e[near], w[near], base[near], d, gaps, squares
                    )

        entries = sum(len(near) * len(points) for near, points, *_ in neighbourhoods)
        run_tiles(work, tiles(len(neighbourhoods), 4), entries * (1 + self.n_rows // 8))
        return found


def blocked_product(matrix: Array, vector: Array) -> Array:
    """Return matrix (r, n) @ vector (n,), summed by blocks: (r,)."""
    total = np.zeros(len(matrix))
    for block in tiles(len(vector), BLOCK):
        total += matrix[:, block] @ vector[block]
    return total


def weighted_gram(matrix: Array, weights: Array) -> Array:
    """Return the sum over columns j, the first n, of w_j x_j x_j^T, summed by blocks: (r, r)."""
    total = np.zeros((len(matrix), len(matrix)))
    chosen = np.flatnonzero(weights)
    for block in tiles(len(chosen), BLOCK):
        these = chosen[block]
        part = matrix[:, these]
        total += (part * weights[these]) @ part.T
    return total


def quadratic_forms(matrix: Array, middle: Array) -> Array:
    """Return x^T middle x for every column x of the matrix."""
    out = np.empty(matrix.shape[1])
    for block in tiles(matrix.shape[1], BLOCK):
        part = matrix[:, block]
        out[block] = (part * (middle @ part)).sum(axis=0)
    return out
