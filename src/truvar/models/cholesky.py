"""The factor V = L^-1 K(X_t, sites), and all that is done with it: by columns, so that they can lie in several places.

| symbol | here | shape |
|---|---|---|
| v_x, the column of site x | `Factor.at` | (t, c) |
| u, the row that a measurement adds | `Factor.append`, `Factor.row` | (m,) |
| C_jx = k(j, x) - v_j . v_x | formed where the column of target j is, a tile at a time | (c, a) |
| sum over targets j of min(C_jx^2, e_j d_x) | `Factor.sums`, `Factor.sums_everywhere` | (c, K), (m, K) |

`Columns` holds the columns of some sites and never needs those of another: what it is asked is a sum over its own
targets, or something of each of its own sites, given a few points with their columns. `Factor` adds the answers up, or
joins them, whether there is one `Columns` in this process or one on each machine of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from truvar._numba import truncated_sums
from truvar._numba.threads import run_tiles
from truvar._typing import Array, Index
from truvar.models.kernels import covariance_function

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

Mask = NDArray[np.bool_]
Row = tuple[Array, Array, float]  # a measurement's point (d',), its column (t,) and the root of its variance
Look = tuple[Index, Index, Array]  # rows near some sites; those sites (c,); their d (c, K)
Job = tuple[int, tuple[Any, ...]]  # the number of some `Columns`, and what they are asked with
History = Callable[[int], list[tuple[str, tuple[Any, ...]]]]  # what to ask new ones, so that they are as the old

BLOCK = 4096  # terms summed at a time: a sum errs by gamma of a block and of their number
TILE = 2048  # targets at a time
SITES = 4096  # sites at a time, where all of them are scored
ENTRIES = 1 << 24  # numbers held at a time


class Columns:
    """The columns of V at some sites, the first of which are targets."""

    def __init__(self, kernel: Kernel, sites: Array, targets: int) -> None:
        self.k, self.sites, self.targets = covariance_function(kernel), sites, targets
        self.rows = 0
        self._v = np.empty((16, len(sites)))
        self._held: dict[str, Array] = {}
        self._active: Index = np.empty(0, np.intp)
        self._across: tuple[Array, Array] | None = None  # a point, and its covariance with the sites

    def read(self) -> Array:
        """All of it. (rows, m)"""
        return self._v[: self.rows]

    def append(self, point: Array, column: Array, root: float) -> Array:
        """The row of a measurement at the point (d',), whose column is given; empty if it tells nothing new. (m,)"""
        t = self.rows
        if t == len(self._v):
            grown = np.empty((2 * t, len(self.sites)))
            grown[:t] = self._v
            self._v = grown
        if np.isfinite(root):
            np.divide(self._covariance(point, column), root, out=self._v[t])
        else:
            self._v[t] = 0.0
        self.rows, self._across = t + 1, None
        return self.row(t)

    def replay(self, log: Sequence[Row]) -> None:
        """Many rows at once, none of them given back."""
        for row in log:
            self.append(*row)

    def truncate(self, rows: int) -> None:
        self.rows, self._across = rows, None

    def _covariance(self, point: Array, column: Array) -> Array:
        """C_jx of every site j with a point x (d',), whose column is given. The last answer is kept: what was scored
        last is measured next. (m,)"""
        if self._across is None or (self._across[0] != point).any():
            across = self.k(self.sites, point[None, :])[:, 0] - column @ self._v[: self.rows]
            self._across = point.copy(), across
        return self._across[1]

    def hold(self, role: str, values: Array) -> None:
        """Remembers numbers over the sites, or over the targets, until others come for the same role."""
        self._held[role] = values
        if role == "excess":
            self._active = np.flatnonzero(values > 0)

    def row(self, i: int) -> Array:
        return np.asarray(self._v[i])

    def at(self, sites: Index | slice) -> Array:
        return self._v[: self.rows, sites]

    def inner(self, i: int) -> Array:
        """V_B u_B with u the row i, over the rows before it and the targets chosen. (i,)"""
        weights = np.where(self._held["chosen"], self._v[i, : self.targets], 0.0)
        return blocked_product(self._v[:i, : self.targets], weights)

    def combine(self, weights: Array) -> Array:
        """The combination of the first rows with these weights (t,), or with each of several. (m,) or (c, m)"""
        return np.asarray(weights @ self._v[: weights.shape[-1]])

    def gram(self, rows: int) -> Array:
        """V_B V_B^T over the first rows and the targets chosen. (rows, rows)"""
        total, chosen = np.zeros((rows, rows)), np.flatnonzero(self._held["chosen"])
        for start in range(0, len(chosen), BLOCK):
            part = self._v[:rows, chosen[start : start + BLOCK]]
            total += part @ part.T
        return total

    def quadratic_forms(self, middle: Array) -> Array:
        """v_x^T middle v_x over the first rows. (m,)"""
        return quadratic_forms(self._v[: len(middle)], middle)

    def sums(self, points: Array, columns: Array, predictive: Array, rows: Index | None = None) -> Array:
        """Over the targets here, or some of them, for points (c, d') with their columns (c, t) and d (c, K). (c, K)"""
        v, dense = self._v[: self.rows], False
        if rows is None and len(points) == 1:
            out, these = np.zeros(predictive.shape), self._active
            covariance = self._covariance(points[0], columns[0])[these, None]
            truncated_sums.truncated_sums(covariance, self._held["excess"][these], predictive, out)
            return out
        if rows is None:  # it may be quicker to sum over all: where e is zero there is nothing to add
            rows, dense = self._active, 2 * len(self._active) > self.targets
        count = self.targets if dense else len(rows)
        excess = self._held["excess"] if dense else self._held["excess"][rows]
        tiles = [slice(start, min(start + TILE, count)) for start in range(0, count, TILE)]
        sums = np.zeros((len(tiles), *predictive.shape))

        def work(tile: slice) -> None:
            these: slice | Index = tile if dense else rows[tile]
            prior = np.ascontiguousarray(self.k(points, self.sites[these]))
            truncated_sums.candidate_sums(
                prior, columns @ v[:, these], excess[tile], predictive, sums[tile.start // TILE]
            )

        run_tiles(work, tiles, count * len(points) * (1 + self.rows // 8))
        return np.asarray(sums.sum(axis=0))

    def sums_here(self, points: Array, columns: Array, excess: Array) -> Array:
        """At every site here, over targets anywhere: their points (a, d'), columns (a, t) and e (a,). (m, K)"""
        v, predictive = self._v[: self.rows], self._held["predictive"]
        out = np.zeros_like(predictive)

        def work(tile: slice) -> None:
            covariance = np.ascontiguousarray(self.k(points, self.sites[tile]))
            covariance -= columns @ v[:, tile]
            truncated_sums.truncated_sums(covariance, excess, predictive[tile], out[tile])

        tiles = [slice(begin, min(begin + SITES, len(out))) for begin in range(0, len(out), SITES)]
        run_tiles(work, tiles, len(points) * len(out) * (1 + self.rows // 8))
        return out

    def losses(self, looks: Sequence[tuple[Index, Array, Array, Array]]) -> list[tuple[Array, Array]]:
        """What a bound gives away on some of the rows here (`candidate_losses`), for points (c, d') with their
        columns (c, t) and d (c, K), look by look. (c, K), and the sums of squares (c,)"""
        v, excess, sign = self._v[: self.rows], self._held["excess"], self._held["sign"]
        found = [(np.zeros(d.shape), np.zeros(len(d))) for *_, d in looks]

        def look(part: slice) -> None:
            for (near, points, columns, d), (out, squares) in zip(looks[part], found[part], strict=True):
                prior = np.ascontiguousarray(self.k(points, self.sites[near]))
                truncated_sums.candidate_bound_gaps(
                    prior, columns @ v[:, near], excess[near], sign[near], d, out, squares
                )

        entries = sum(len(near) * len(points) for near, points, *_ in looks) * (1 + self.rows // 8)
        run_tiles(look, [slice(i, i + 4) for i in range(0, len(looks), 4)], entries)
        return found


class Shards(Protocol):
    """Several `Columns`, wherever they are."""

    @property
    def slices(self) -> Sequence[slice]:
        """The sites of each."""
        ...

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        """Asks some of them at once. One that is lost is made again, with its history, and asked again."""
        ...


class Here:
    """One `Columns` for all sites, in this process."""

    def __init__(self, kernel: Kernel, sites: Array, targets: int) -> None:
        self.slices = (slice(0, len(sites)),)
        self._columns = Columns(kernel, sites, targets)

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        return [getattr(self._columns, method)(*given) for _, given in jobs]


class Factor:
    """V over all sites. What is given by its place (sites, targets) may lie in any of the shards."""

    def __init__(self, sites: Array, shards: Shards) -> None:
        self.sites, self.rows = sites, 0
        self._shards = shards
        self._starts = np.array([part.start for part in shards.slices])
        self._log: list[Row] = []
        self._held: dict[str, Array] = {}
        self._latest: tuple[int, Array] | None = None  # the last row that was read

    # -- what changes it -----------------------------------------------------------------------------------------------

    def append(self, point: Array, column: Array, root: float) -> Array:
        """The row of a measurement at the point (d',), whose column is given; empty if it tells nothing new. (m,)"""
        row = self._joined("append", point, column, root)
        self._log.append((point.copy(), column, root))
        self.rows += 1
        self._latest = self.rows - 1, row
        return row

    def truncate(self, rows: int) -> None:
        """Forgets the rows behind the first ones."""
        if rows < self.rows:
            self._all("truncate", rows)
            del self._log[rows:]
            self.rows, self._latest = rows, None

    # -- its entries ---------------------------------------------------------------------------------------------------

    @property
    def v(self) -> Array:
        """All of it, in this process. (rows, m)"""
        return self._joined("read")

    def row(self, i: int) -> Array:
        """Row i. (m,)"""
        if self._latest is None or self._latest[0] != i:
            self._latest = i, self._joined("row", i)
        return self._latest[1]

    def at(self, sites: Index | slice) -> Array:
        """The columns of some sites. (rows, c)"""
        if len(self._starts) == 1:
            return np.asarray(self._call("at", [(0, (sites,))])[0])
        if isinstance(sites, slice):
            sites = np.arange(*sites.indices(len(self.sites)))
        owner = np.searchsorted(self._starts, sites, side="right") - 1
        owners = np.unique(owner)
        jobs = [(int(number), (sites[owner == number] - self._starts[number],)) for number in owners]
        out = np.empty((self.rows, len(sites)))
        for number, columns in zip(owners, self._call("at", jobs), strict=True):
            out[:, owner == number] = columns
        return out

    # -- products ------------------------------------------------------------------------------------------------------

    def inner(self, i: int, chosen: Mask) -> Array:
        """V_B u_B with u the row i, over the rows before it, for a set B of targets. (i,)"""
        self._hold("chosen", chosen)
        return self._added("inner", i)

    def combine(self, weights: Array) -> Array:
        """The combination of the first rows with these weights (t,), or with each of several. (m,) or (c, m)"""
        return self._joined("combine", weights)

    def gram(self, rows: int, chosen: Mask) -> Array:
        """V_B V_B^T over the first rows, for a set B of targets. (rows, rows)"""
        self._hold("chosen", chosen)
        return self._added("gram", rows)

    def quadratic_forms(self, middle: Array) -> Array:
        """v_x^T middle v_x over the first rows. (m,)"""
        return self._joined("quadratic_forms", middle)

    # -- sums over the targets, of which e (n,) says how much of each is wanted ----------------------------------------

    def sums(self, e: Array, sites: Index, predictive: Array, rows: Index | None = None) -> Array:
        """For candidates at some sites (c,) with d (c, K); over all rows, or a few of those with e > 0. (c, K)"""
        most = ENTRIES // TILE
        if len(sites) > most:
            parts = [slice(start, start + most) for start in range(0, len(sites), most)]
            return np.concatenate([self.sums(e, sites[part], predictive[part], rows) for part in parts])
        self._hold("excess", e)
        given = self.sites[sites], np.ascontiguousarray(self.at(sites).T), predictive
        jobs: list[Job] = []
        for number, part in enumerate(self._shards.slices):
            if rows is None:
                jobs += [(number, given)] if e[part].any() else []
            elif len(here := self._own(rows, part)):
                jobs.append((number, (*given, here)))
        return np.asarray(sum(self._call("sums", jobs), np.zeros_like(predictive)))

    def sums_everywhere(self, e: Array, predictive: Array) -> Array:
        """At every site, with d (m, K). (m, K)"""
        self._hold("predictive", predictive)
        rows, out = np.flatnonzero(e > 0), np.zeros_like(predictive)
        for start in range(0, len(rows), TILE):
            these = rows[start : start + TILE]
            columns = np.ascontiguousarray(self.at(these).T)
            out += self._joined("sums_here", self.sites[these], columns, e[these], axis=0)
        return out

    def losses(self, looks: Sequence[Look], e: Array, sign: Array) -> list[tuple[Array, Array]]:
        """What a bound gives away on some rows (`truncated_sums.candidate_bound_gaps`), look by look: with e and sign over the
        targets (n,). (c, K), and the sums of squares (c,)"""
        self._hold("excess", e)
        self._hold("sign", sign)
        ends = np.cumsum([len(sites) for _, sites, _ in looks])
        columns = np.ascontiguousarray(self.at(np.concatenate([sites for _, sites, _ in looks])).T)
        parts = np.split(columns, ends[:-1])
        found = [(np.zeros(d.shape), np.zeros(len(d))) for *_, d in looks]
        jobs: list[Job] = []
        members: list[list[int]] = []
        for number, part in enumerate(self._shards.slices):
            asked, own = [], []
            for i, (near, sites, d) in enumerate(looks):
                if len(here := self._own(near, part)):
                    asked.append((here, self.sites[sites], parts[i], d))
                    own.append(i)
            if asked:
                jobs.append((number, (asked,)))
                members.append(own)
        for own, answers in zip(members, self._call("losses", jobs), strict=True):
            for i, (loss, squares) in zip(own, answers, strict=True):
                found[i][0][...] += loss
                found[i][1][...] += squares
        return found

    # -- inside --------------------------------------------------------------------------------------------------------

    def _own(self, sites: Index, part: slice) -> Index:
        """Those of the sites that lie in a part, counted from its start."""
        return sites if len(self._starts) == 1 else sites[(sites >= part.start) & (sites < part.stop)] - part.start

    def _call(self, method: str, jobs: Sequence[Job]) -> list[Any]:
        return self._shards.call(method, jobs, self._history)

    def _all(self, method: str, *given: Any) -> list[Any]:
        return self._call(method, [(number, given) for number in range(len(self._starts))])

    def _joined(self, method: str, *given: Any, axis: int = -1) -> Array:
        parts = self._all(method, *given)
        return np.asarray(parts[0]) if len(parts) == 1 else np.concatenate(parts, axis=axis)

    def _added(self, method: str, *given: Any) -> Array:
        return np.asarray(sum(self._all(method, *given)))

    def _hold(self, role: str, values: Any) -> None:
        """Numbers over the sites or targets are sent once, each shard its own."""
        if self._held.get(role) is not values:
            self._held[role] = values
            self._call("hold", [(i, (role, values[part])) for i, part in enumerate(self._shards.slices)])

    def _history(self, number: int) -> list[tuple[str, tuple[Any, ...]]]:
        part = self._shards.slices[number]
        held = [("hold", (role, values[part])) for role, values in self._held.items()]
        return [("replay", (self._log,)), *held]


def local_factor(kernel: Kernel, sites: Array, targets: int) -> Factor:
    """The factor in this process; the first sites are the targets."""
    return Factor(sites, Here(kernel, sites, targets))


def blocked_product(matrix: Array, vector: Array) -> Array:
    """matrix (r, n) @ vector (n,), summed by blocks."""
    total = np.zeros(len(matrix))
    for start in range(0, len(vector), BLOCK):
        total += matrix[:, start : start + BLOCK] @ vector[start : start + BLOCK]
    return total


def quadratic_forms(matrix: Array, middle: Array) -> Array:
    """x^T middle x for every column x of the matrix."""
    out = np.empty(matrix.shape[1])
    for start in range(0, matrix.shape[1], BLOCK):
        part = matrix[:, start : start + BLOCK]
        out[start : start + BLOCK] = (part * (middle @ part)).sum(axis=0)
    return out
