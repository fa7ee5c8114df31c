"""The factor V = L^-1 K(X_t, sites) of the posterior, stored by columns, which may lie in several processes.

| symbol | here | shape |
|---|---|---|
| v_x, the column of site x | `Factor.at` | (t, c) |
| u, the row that a measurement adds | `Factor.append`, `Factor.row` | (m,) |
| C_jx = k(j, x) - v_j . v_x | formed where the column of target j is, a tile at a time | (c, a) |
| sum over targets j of w_j min(C_jx^2, e_j d_x) | `Factor.sums`, `Factor.sums_everywhere` | (c, K), (m, K) |

`Columns` holds the columns of some sites and never needs those of others: each of its methods
returns a sum over its own targets, or a number for each of its own sites, given a few points with
their columns. `Factor` adds or concatenates these results, whether there is one `Columns` in this
process or one on each machine of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from truvar._numba import truncated_sums
from truvar._numba.threads import run_tiles
from truvar._typing import Array, Index
from truvar.models.kernels import covariance_function

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

Row = tuple[
    Array, Array, float
]  # a measurement's point (d',), its column (t,) and the root of its variance
Neighbourhood = tuple[Index, Index, Array]  # rows near some sites; those sites (c,); their d (c, K)
Job = tuple[
    int, tuple[Any, ...]
]  # index of a shard, and the arguments of the method that is called on it
History = Callable[
    [int], list[tuple[str, tuple[Any, ...]]]
]  # shard -> calls that bring a new copy of it up to date

# terms summed at a time: the error of a sum grows with the size of a block and with their number
BLOCK = 4096
TILE = 2048  # targets processed at a time
SITES = 4096  # sites processed at a time where all of them are scored
ENTRIES = 1 << 24  # numbers held in memory at a time


class Columns:
    """The columns of V at some sites.

    Args:
        kernel: Kernel of the prior.
        sites: Coordinates of the sites. (m, d')
        n_targets: How many of the first sites are targets.
    """

    def __init__(self, kernel: Kernel, sites: Array, n_targets: int) -> None:
        self.k = covariance_function(kernel)
        self.sites = sites
        self.n_targets = n_targets
        self.n_rows = 0
        self._v = np.empty((16, len(sites)))
        self._vectors: dict[str, Array] = {}
        self._active: Index = np.empty(0, np.intp)  # targets with a positive excess
        self._last_covariance: tuple[Array, Array] | None = (
            None  # a point, and its covariance with the sites
        )

    def read(self) -> Array:
        """Return all entries: (n_rows, m)."""
        return self._v[: self.n_rows]

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

    def replay(self, log: Sequence[Row]) -> None:
        """Append many rows without returning them."""
        for row in log:
            self.append(*row)

    def truncate(self, n_rows: int) -> None:
        """Remove all rows behind the first `n_rows`."""
        self.n_rows = n_rows
        self._last_covariance = None

    def _covariance(self, point: Array, column: Array) -> Array:
        """Return C_jx of every site j with a point x (d',), whose column is given: (m,).

        The last result is cached, since the candidate scored last is often the one measured next.
        """
        if self._last_covariance is None or (self._last_covariance[0] != point).any():
            across = self.k(self.sites, point[None, :])[:, 0] - column @ self._v[: self.n_rows]
            self._last_covariance = point.copy(), across
        return self._last_covariance[1]

    def set_vector(self, role: str, values: Array) -> None:
        """Keep numbers over the sites, or over the targets, until others are set for the same role."""
        self._vectors[role] = values
        if role == "excess":
            self._active = np.flatnonzero(values > 0)

    def row(self, i: int) -> Array:
        """Return row i: (m,)."""
        return np.asarray(self._v[i])

    def at(self, sites: Index | slice) -> Array:
        """Return the columns of some sites: (n_rows, c)."""
        return self._v[: self.n_rows, sites]

    def inner(self, i: int) -> Array:
        """Return the sum over targets j of b_j u_j v_j with u the row i, over the rows before it: (i,)."""
        weights = self._vectors["base"] * self._v[i, : self.n_targets]
        return blocked_product(self._v[:i, : self.n_targets], weights)

    def combine(self, weights: Array) -> Array:
        """Return the combination of the first rows with weights (t,) or (c, t): (m,) or (c, m)."""
        return np.asarray(weights @ self._v[: weights.shape[-1]])

    def gram(self, n_rows: int) -> Array:
        """Return the sum over targets j of b_j v_j v_j^T over the first rows: (n_rows, n_rows)."""
        total = np.zeros((n_rows, n_rows))
        base = self._vectors["base"]
        chosen = np.flatnonzero(base)
        for start in range(0, len(chosen), BLOCK):
            these = chosen[start : start + BLOCK]
            part = self._v[:n_rows, these]
            total += (part * base[these]) @ part.T
        return total

    def quadratic_forms(self, middle: Array) -> Array:
        """Return v_x^T middle v_x over the first rows: (m,)."""
        return quadratic_forms(self._v[: len(middle)], middle)

    def sums(
        self, points: Array, columns: Array, predictive: Array, rows: Index | None = None
    ) -> Array:
        """Return the truncated sums of some points over the targets here.

        Args:
            points: Coordinates of the points. (c, d')
            columns: Their columns of V. (c, t)
            predictive: d of each point and noise level. (c, K)
            rows: Targets to sum over; None: all.

        Returns:
            The sums. (c, K)
        """
        v = self._v[: self.n_rows]
        if rows is None and len(points) == 1:
            out = np.zeros(predictive.shape)
            active = self._active
            covariance = self._covariance(points[0], columns[0])[active, None]
            excess = self._vectors["excess"][active]
            truncated_sums.truncated_sums(
                covariance, excess, self._vectors["weight"][active], predictive, out
            )
            return out
        all_targets = False
        if rows is None:
            rows = self._active
            # Terms with e = 0 are zero, and if they are few it is quicker to add them than to pick
            # the others.
            all_targets = 2 * len(rows) > self.n_targets
        count = self.n_targets if all_targets else len(rows)
        picked: slice | Index = slice(None) if all_targets else rows
        excess = self._vectors["excess"][picked]
        weight = self._vectors["weight"][picked]
        tiles = [slice(start, min(start + TILE, count)) for start in range(0, count, TILE)]
        sums = np.zeros((len(tiles), *predictive.shape))

        def work(tile: slice) -> None:
            these: slice | Index = tile if all_targets else rows[tile]
            prior = np.ascontiguousarray(self.k(points, self.sites[these]))
            out = sums[tile.start // TILE]
            explained = columns @ v[:, these]
            truncated_sums.candidate_sums(
                prior, explained, excess[tile], weight[tile], predictive, out
            )

        run_tiles(work, tiles, count * len(points) * (1 + self.n_rows // 8))
        return np.asarray(sums.sum(axis=0))

    def sums_here(self, points: Array, columns: Array, excess: Array, weight: Array) -> Array:
        """Return the truncated sums at every site here, over targets anywhere.

        Args:
            points: Coordinates of the targets. (a, d')
            columns: Their columns of V. (a, t)
            excess: Their e. (a,)
            weight: Their w. (a,)

        Returns:
            The sums. (m, K)
        """
        v = self._v[: self.n_rows]
        predictive = self._vectors["predictive"]
        out = np.zeros_like(predictive)

        def work(tile: slice) -> None:
            covariance = np.ascontiguousarray(self.k(points, self.sites[tile]))
            covariance -= columns @ v[:, tile]
            truncated_sums.truncated_sums(covariance, excess, weight, predictive[tile], out[tile])

        tiles = [slice(begin, min(begin + SITES, len(out))) for begin in range(0, len(out), SITES)]
        run_tiles(work, tiles, len(points) * len(out) * (1 + self.n_rows // 8))
        return out

    def bound_gaps(
        self, neighbourhoods: Sequence[tuple[Index, Array, Array, Array]]
    ) -> list[tuple[Array, Array]]:
        """Compute by how much a bound exceeds the truncated sums on rows near some points.

        Args:
            neighbourhoods: For each: rows here (a,), points (c, d'), their columns (c, t) and their
                d (c, K).

        Returns:
            For each: the gaps (c, K) and the sums of squares (c,), see
            `truncated_sums.candidate_bound_gaps`.
        """
        v = self._v[: self.n_rows]
        excess = self._vectors["excess"]
        weight = self._vectors["weight"]
        base = self._vectors["base"]
        found = [(np.zeros(d.shape), np.zeros(len(d))) for *_, d in neighbourhoods]

        def work(part: slice) -> None:
            for (near, points, columns, d), (gaps, squares) in zip(
                neighbourhoods[part], found[part], strict=True
            ):
                prior = np.ascontiguousarray(self.k(points, self.sites[near]))
                explained = columns @ v[:, near]
                truncated_sums.candidate_bound_gaps(
                    prior, explained, excess[near], weight[near], base[near], d, gaps, squares
                )

        entries = sum(len(near) * len(points) for near, points, *_ in neighbourhoods) * (
            1 + self.n_rows // 8
        )
        run_tiles(work, [slice(i, i + 4) for i in range(0, len(neighbourhoods), 4)], entries)
        return found


class Shards(Protocol):
    """Several `Columns`, in this process or elsewhere."""

    @property
    def slices(self) -> Sequence[slice]:
        """The sites of each shard."""
        ...

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        """Call a method of `Columns` on some shards concurrently and return the results in order.

        A shard that is lost is created again, brought up to date by the calls in its history, and
        called again.
        """
        ...


class LocalShards:
    """One `Columns` for all sites, in this process."""

    def __init__(self, kernel: Kernel, sites: Array, n_targets: int) -> None:
        self.slices = (slice(0, len(sites)),)
        self._columns = Columns(kernel, sites, n_targets)

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        """Call a method of the columns, see `Shards.call`."""
        return [getattr(self._columns, method)(*arguments) for _, arguments in jobs]


class Factor:
    """V over all sites. Sites and targets are given by their index and may lie in any of the shards.

    Args:
        sites: Coordinates of all sites. (m, d')
        shards: The columns.
    """

    def __init__(self, sites: Array, shards: Shards) -> None:
        self.sites = sites
        self.n_rows = 0
        self._shards = shards
        self._starts = np.array([part.start for part in shards.slices])
        self._log: list[Row] = []
        self._vectors: dict[str, Array] = {}
        self._equal_weights: Array = np.empty(0)
        self._latest: tuple[int, Array] | None = (
            None  # index and values of the row that was read last
        )

    # -- changes
    # ----------------------------------------------------------------------------------------------

    def append(self, point: Array, column: Array, root: float) -> Array:
        """Append the row of a measurement, see `Columns.append`, and return it: (m,)."""
        row = self._concatenated("append", point, column, root)
        self._log.append((point.copy(), column, root))
        self.n_rows += 1
        self._latest = self.n_rows - 1, row
        return row

    def truncate(self, n_rows: int) -> None:
        """Remove all rows behind the first `n_rows`."""
        if n_rows < self.n_rows:
            self._call_all("truncate", n_rows)
            del self._log[n_rows:]
            self.n_rows = n_rows
            self._latest = None

    def rows_from(self, start: int) -> list[Row]:
        """Return what the rows from `start` on were appended with, to append them to another factor."""
        return self._log[start:]

    # -- entries
    # ----------------------------------------------------------------------------------------------

    @property
    def local(self) -> bool:
        """Whether the entries are in this process."""
        return isinstance(self._shards, LocalShards)

    @property
    def v(self) -> Array:
        """All entries, in this process: (n_rows, m)."""
        return self._concatenated("read")

    def row(self, i: int) -> Array:
        """Return row i: (m,)."""
        if self._latest is None or self._latest[0] != i:
            self._latest = i, self._concatenated("row", i)
        return self._latest[1]

    def at(self, sites: Index | slice) -> Array:
        """Return the columns of some sites: (n_rows, c)."""
        if len(self._starts) == 1:
            return np.asarray(self._call("at", [(0, (sites,))])[0])
        if isinstance(sites, slice):
            sites = np.arange(*sites.indices(len(self.sites)))
        owner = np.searchsorted(self._starts, sites, side="right") - 1
        owners = np.unique(owner)
        jobs = [
            (int(number), (sites[owner == number] - self._starts[number],)) for number in owners
        ]
        out = np.empty((self.n_rows, len(sites)))
        for number, columns in zip(owners, self._call("at", jobs), strict=True):
            out[:, owner == number] = columns
        return out

    # -- products
    # ----------------------------------------------------------------------------------------------

    def inner(self, i: int, base: Array) -> Array:
        """Return the sum over targets j of b_j u_j v_j with u the row i, over the rows before it, with b (n,): (i,)."""
        self._set_vector("base", base)
        return self._added("inner", i)

    def combine(self, weights: Array) -> Array:
        """Return the combination of the first rows with weights (t,) or (c, t): (m,) or (c, m)."""
        return self._concatenated("combine", weights)

    def gram(self, n_rows: int, base: Array) -> Array:
        """Return the sum over targets j of b_j v_j v_j^T over the first rows, with b (n,): (n_rows, n_rows)."""
        self._set_vector("base", base)
        return self._added("gram", n_rows)

    def quadratic_forms(self, middle: Array) -> Array:
        """Return v_x^T middle v_x over the first rows: (m,)."""
        return self._concatenated("quadratic_forms", middle)

    # -- sums over the targets
    # -----------------------------------------------------------------------------------------

    def sums(
        self,
        e: Array,
        sites: Index,
        predictive: Array,
        rows: Index | None = None,
        w: Array | None = None,
    ) -> Array:
        """Return the truncated sums of candidates at some sites.

        Args:
            e: Excess of every target. (n,)
            sites: Sites of the candidates. (c,)
            predictive: Their d. (c, K)
            rows: Targets to sum over, among those with e > 0; None: all.
            w: Weight of every target; None: 1. (n,)

        Returns:
            The sums. (c, K)
        """
        most = ENTRIES // TILE
        if len(sites) > most:
            parts = [slice(start, start + most) for start in range(0, len(sites), most)]
            return np.concatenate(
                [self.sums(e, sites[part], predictive[part], rows, w) for part in parts]
            )
        self._set_vector("excess", e)
        self._set_weights(len(e), w)
        arguments = self.sites[sites], np.ascontiguousarray(self.at(sites).T), predictive
        jobs: list[Job] = []
        for number, part in enumerate(self._shards.slices):
            if rows is None:
                if e[part].any():
                    jobs.append((number, arguments))
            elif len(here := self._within(rows, part)):
                jobs.append((number, (*arguments, here)))
        return np.asarray(sum(self._call("sums", jobs), np.zeros_like(predictive)))

    def sums_everywhere(self, e: Array, predictive: Array, w: Array | None = None) -> Array:
        """Return the truncated sums at every site, with e (n,), d (m, K) and w (n,), by default 1: (m, K)."""
        self._set_vector("predictive", predictive)
        rows = np.flatnonzero(e > 0)
        out = np.zeros_like(predictive)
        for start in range(0, len(rows), TILE):
            these = rows[start : start + TILE]
            columns = np.ascontiguousarray(self.at(these).T)
            weight = np.ones(len(these)) if w is None else w[these]
            out += self._concatenated(
                "sums_here", self.sites[these], columns, e[these], weight, axis=0
            )
        return out

    def bound_gaps(
        self, neighbourhoods: Sequence[Neighbourhood], e: Array, base: Array, w: Array | None = None
    ) -> list[tuple[Array, Array]]:
        """Compute by how much a bound exceeds the truncated sums on rows near some sites.

        Args:
            neighbourhoods: For each: rows, sites (c,) and their d (c, K).
            e: Excess of every target. (n,)
            base: b of every target, which the bound is made of, see
                `truncated_sums.candidate_bound_gaps`. (n,)
            w: Weight of every target; None: 1. (n,)

        Returns:
            For each neighbourhood: the gaps (c, K) and the sums of squares (c,).
        """
        self._set_vector("excess", e)
        self._set_vector("base", base)
        self._set_weights(len(e), w)
        ends = np.cumsum([len(sites) for _, sites, _ in neighbourhoods])
        columns = np.ascontiguousarray(
            self.at(np.concatenate([sites for _, sites, _ in neighbourhoods])).T
        )
        parts = np.split(columns, ends[:-1])
        found = [(np.zeros(d.shape), np.zeros(len(d))) for *_, d in neighbourhoods]
        jobs: list[Job] = []
        members: list[list[int]] = []
        for number, part in enumerate(self._shards.slices):
            asked = []
            own = []
            for i, (near, sites, d) in enumerate(neighbourhoods):
                if len(here := self._within(near, part)):
                    asked.append((here, self.sites[sites], parts[i], d))
                    own.append(i)
            if asked:
                jobs.append((number, (asked,)))
                members.append(own)
        for own, answers in zip(members, self._call("bound_gaps", jobs), strict=True):
            for i, (gaps, squares) in zip(own, answers, strict=True):
                found[i][0][...] += gaps
                found[i][1][...] += squares
        return found

    # -- calls to the shards
    # -------------------------------------------------------------------------------------------

    def _within(self, sites: Index, part: slice) -> Index:
        """Return those of the sites that lie in a part, counted from its start."""
        return (
            sites
            if len(self._starts) == 1
            else sites[(sites >= part.start) & (sites < part.stop)] - part.start
        )

    def _call(self, method: str, jobs: Sequence[Job]) -> list[Any]:
        return self._shards.call(method, jobs, self._history)

    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._call(method, [(number, arguments) for number in range(len(self._starts))])

    def _concatenated(self, method: str, *arguments: Any, axis: int = -1) -> Array:
        parts = self._call_all(method, *arguments)
        return np.asarray(parts[0]) if len(parts) == 1 else np.concatenate(parts, axis=axis)

    def _added(self, method: str, *arguments: Any) -> Array:
        return np.asarray(sum(self._call_all(method, *arguments)))

    def _set_vector(self, role: str, values: Any) -> None:
        """Send numbers over the sites or targets to the shards, unless they have them; each gets its own part."""
        if self._vectors.get(role) is not values:
            self._vectors[role] = values
            self._call(
                "set_vector",
                [(i, (role, values[part])) for i, part in enumerate(self._shards.slices)],
            )

    def _set_weights(self, n_targets: int, w: Array | None) -> None:
        """Send the weights of the targets to the shards."""
        if w is None:
            if len(self._equal_weights) != n_targets:
                self._equal_weights = np.ones(n_targets)
            w = self._equal_weights
        self._set_vector("weight", w)

    def _history(self, number: int) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the calls that bring a new copy of a shard up to date."""
        part = self._shards.slices[number]
        vectors = [("set_vector", (role, values[part])) for role, values in self._vectors.items()]
        return [("replay", (self._log,)), *vectors]


def local_factor(kernel: Kernel, sites: Array, n_targets: int) -> Factor:
    """Return a factor in this process; the first `n_targets` sites are the targets."""
    return Factor(sites, LocalShards(kernel, sites, n_targets))


def blocked_product(matrix: Array, vector: Array) -> Array:
    """Return matrix (r, n) @ vector (n,), summed by blocks: (r,)."""
    total = np.zeros(len(matrix))
    for start in range(0, len(vector), BLOCK):
        total += matrix[:, start : start + BLOCK] @ vector[start : start + BLOCK]
    return total


def quadratic_forms(matrix: Array, middle: Array) -> Array:
    """Return x^T middle x for every column x of the matrix."""
    out = np.empty(matrix.shape[1])
    for start in range(0, matrix.shape[1], BLOCK):
        part = matrix[:, start : start + BLOCK]
        out[start : start + BLOCK] = (part * (middle @ part)).sum(axis=0)
    return out
