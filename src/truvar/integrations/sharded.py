"""`Sharded`: an engine for domains that are too large for one machine, on a Dask cluster.

The columns of the Cholesky factor are divided into shards, each of which is kept by a worker; the
study stays in this process:

    study = tv.Study(domain, goal, ..., engine=Sharded(client))

A factor of N sites and t rows takes 8 N t bytes. Each step sends the new point and its column, t +
d numbers, to every worker, which answers with its part of the new row. To choose, a few candidates
at a time are sent with their columns, and every worker answers with the sums over its own targets.
The choices are those of the engine "lazy", which keeps the same bounds, as vectors of N numbers, in
this process.

If a worker is lost, its shards are rebuilt on another one from the points that were measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.engines.lazy import Lazy
from truvar.engines.search import BUDGET
from truvar.exceptions import ExecutorError, InvalidArgumentError
from truvar.models.factor import Factor, LocalFactor, LocatedNeighbourhood, Row
from truvar.models.posterior import Posterior
from truvar.validation import check_integer

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

# index of a shard, and the arguments of the method that is called on it
Job = tuple[int, tuple[Any, ...]]
# from the index of a shard to the calls that bring a new copy of it up to date
History = Callable[[int], list[tuple[str, tuple[Any, ...]]]]

_PATIENCE = 60.0  # seconds to wait for a worker if there is none
_CHECK_INTERVAL = 2.0  # seconds to wait for an answer before checking that the worker still exists
_POLL_INTERVAL = 0.05  # seconds between two looks at the list of workers


@dataclass(frozen=True)
class Sharded:
    """An engine whose Cholesky factor is kept by the workers of a Dask cluster.

    Args:
        client: A `dask.distributed.Client`. Its workers need truvar installed.
        shards: Number of parts that the domain is divided into. Default: one per worker.
        tolerance: Accepted gap between the choice and the best, as for the engine "lazy".
        budget: Work per choice before the tolerance is used, as for the engine "lazy".
        patience: Seconds to wait for a worker if there is none.

    Raises:
        InvalidArgumentError: If `client` is not a Dask client, or `shards` is not an integer of at
            least 1.

    Example:
        ```python
        client = truvar.integrations.dask.connect("tcp://10.0.0.1:8786")
        study = tv.Study(domain, goal, kernel=kernel, noise=0.01, engine=Sharded(client))
        ```
    """

    client: Any
    shards: int | None = None
    tolerance: float | None = None
    budget: int = BUDGET
    patience: float = _PATIENCE

    def __post_init__(self) -> None:
        if not all(hasattr(self.client, name) for name in ("submit", "scheduler_info", "nthreads")):
            raise InvalidArgumentError(
                f"Sharded needs a dask.distributed.Client, got {self.client!r}; give one, for "
                "example "
                'truvar.integrations.dask.connect("tcp://10.0.0.1:8786")'
            )
        if self.shards is not None:
            check_integer(self.shards, "shards", minimum=1)

    def __call__(self, posterior: Posterior, domain: Domain) -> Lazy:
        """Return the engine of a study."""
        engine = Lazy(posterior, domain, self.tolerance, self.budget)
        engine.name = "sharded"
        return engine

    def factor(self, kernel: Kernel, sites: Array) -> ShardedFactor:
        """Return the Cholesky factor of a study, divided among the present workers.

        Args:
            kernel: The kernel.
            sites: Sites of the model, shape (N, d).

        Raises:
            ExecutorError: If the cluster has no workers.
        """
        workers = _Workers(self.client, self.patience)
        count = min(self.shards or len(workers.addresses()), len(sites))
        return ShardedFactor(sites, _DaskShards(workers, kernel, sites, count))


class Stored(NamedTuple):
    """An argument of `Shard.call`: the numbers that the shard has stored for a role."""

    role: str


class Shard:
    """The factor over some of the sites, on a worker.

    It never needs the columns of other sites: its answers are sums over its own targets, or numbers
    for its own sites, given a few points with their columns. Workers may share a machine, so matrix
    products use one thread.
    """

    _factor: LocalFactor
    _stored: dict[str, Array]

    def initialize(self, kernel: Kernel, sites: Array) -> None:
        """Begin without rows. The sites are too many to send them through Dask's scheduler."""
        self._factor = LocalFactor(kernel, sites)
        self._stored = {}

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a method of this class or of `LocalFactor` and return its result."""
        if method in ("store", "replay", "entries"):
            return getattr(self, method)(*arguments)
        given = [
            self._stored[each.role] if isinstance(each, Stored) else each for each in arguments
        ]
        with blas_in_one_thread():
            return getattr(self._factor, method)(*given)

    def store(self, role: str, values: Array) -> None:
        """Keep numbers over the sites or targets here until others are sent for the same role."""
        self._stored[role] = values

    def replay(self, log: Sequence[Row]) -> None:
        """Append many rows without returning them."""
        for row in log:
            self.call("append", row)

    def entries(self) -> Array:
        """Return all entries: (t, m)."""
        return self._factor.v


class Shards(Protocol):
    """Several `Shard`s, in this process or elsewhere."""

    @property
    def slices(self) -> Sequence[slice]:
        """The sites of each shard."""
        ...

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        """Call a method on some shards concurrently, see `Shard.call`; return the results in order.

        A shard that is lost is created again, brought up to date by the calls in its history, and
        called again.
        """
        ...


class ShardedFactor(Factor):
    """V over all sites, divided into shards; see `Factor` for the methods.

    Args:
        sites: Coordinates of all sites. (m, d')
        shards: The shards.
    """

    def __init__(self, sites: Array, shards: Shards) -> None:
        super().__init__(sites)
        self._shards = shards
        self._starts = np.array([part.start for part in shards.slices])
        self._log: list[Row] = []
        self._stored: dict[str, Array] = {}
        # index and values of the row that was read last
        self._latest: tuple[int, Array] | None = None

    def append(self, point: Array, column: Array, root: float) -> Array:
        """Append the row of a measurement and return it: (m,)."""
        row = self._concatenated("append", point, column, root)
        self._latest = len(self._log), row
        self._log.append((point.copy(), column, root))
        return row

    def truncate(self, n_rows: int) -> None:
        """Remove all rows behind the first `n_rows`."""
        if n_rows < len(self._log):
            self._call_all("truncate", n_rows)
            del self._log[n_rows:]
            self._latest = None

    @property
    def v(self) -> Array:
        """All entries, in this process: (t, m)."""
        return self._concatenated("entries")

    def row(self, i: int) -> Array:
        """Return row i: (m,)."""
        if self._latest is None or self._latest[0] != i:
            self._latest = i, self._concatenated("row", i)
        return self._latest[1]

    def at(self, sites: Index | slice) -> Array:
        """Return the columns of some sites: (t, c)."""
        if isinstance(sites, slice):
            sites = np.arange(*sites.indices(len(self.sites)))
        owner = np.searchsorted(self._starts, sites, side="right") - 1
        owners = np.unique(owner)
        jobs = [
            (int(number), (sites[owner == number] - self._starts[number],)) for number in owners
        ]
        out = np.empty((len(self._log), len(sites)))
        for number, columns in zip(owners, self._call("at", jobs), strict=True):
            out[:, owner == number] = columns
        return out

    def inner(self, i: int, base: Array) -> Array:
        """Return sum_j b_j u_j v_j with u the row i: (i,)."""
        return np.asarray(sum(self._call_all("inner", i, self._store("base", base))))

    def combine(self, weights: Array) -> Array:
        """Return the combination of the first rows with weights (t,) or (c, t): (m,) or (c, m)."""
        return self._concatenated("combine", weights)

    def gram(self, n_rows: int, base: Array) -> Array:
        """Return sum_j b_j v_j v_j^T over the first rows: (n_rows, n_rows)."""
        return np.asarray(sum(self._call_all("gram", n_rows, self._store("base", base))))

    def quadratic_forms(self, middle: Array) -> Array:
        """Return v_x^T middle v_x over the first rows: (m,)."""
        return self._concatenated("quadratic_forms", middle)

    def sums_of(
        self,
        points: Array,
        columns: Array,
        predictive: Array,
        e: Array,
        w: Array,
        rows: Index | None = None,
    ) -> Array:
        """Return the truncated sums of some points: (c, K)."""
        arguments = points, columns, predictive, self._store("excess", e), self._store("weight", w)
        jobs: list[Job] = []
        for number, part in enumerate(self._shards.slices):
            if rows is None:
                if e[part].any():
                    jobs.append((number, arguments))
            elif len(here := _within(rows, part)):
                jobs.append((number, (*arguments, here)))
        return np.asarray(sum(self._call("sums_of", jobs), np.zeros_like(predictive)))

    def sums_everywhere_of(
        self, points: Array, columns: Array, excess: Array, weight: Array, predictive: Array
    ) -> Array:
        """Return the truncated sums at every site, over some targets: (m, K)."""
        arguments = points, columns, excess, weight, self._store("predictive", predictive)
        return np.concatenate(self._call_all("sums_everywhere_of", *arguments))

    def bound_gaps_of(
        self, neighbourhoods: Sequence[LocatedNeighbourhood], e: Array, w: Array, base: Array
    ) -> list[tuple[Array, Array]]:
        """Compute gaps (c, K) of a bound and sums of squares (c,) on rows near some points."""
        targets = self._store("excess", e), self._store("weight", w), self._store("base", base)
        found = [(np.zeros(d.shape), np.zeros(len(d))) for *_, d in neighbourhoods]
        jobs: list[Job] = []
        members: list[list[int]] = []
        for number, part in enumerate(self._shards.slices):
            asked = [(_within(near, part), *rest) for near, *rest in neighbourhoods]
            own = [i for i, (here, *_) in enumerate(asked) if len(here)]
            if own:
                jobs.append((number, ([asked[i] for i in own], *targets)))
                members.append(own)
        for own, answers in zip(members, self._call("bound_gaps_of", jobs), strict=True):
            for i, (gaps, squares) in zip(own, answers, strict=True):
                found[i][0][...] += gaps
                found[i][1][...] += squares
        return found

    def _call(self, method: str, jobs: Sequence[Job]) -> list[Any]:
        return self._shards.call(method, jobs, self._history)

    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._call(method, [(number, arguments) for number in range(len(self._starts))])

    def _concatenated(self, method: str, *arguments: Any) -> Array:
        return np.concatenate(self._call_all(method, *arguments), axis=-1)

    def _store(self, role: str, values: Array) -> Stored:
        """Send numbers over sites or targets to the shards, each its part, if they lack them."""
        if self._stored.get(role) is not values:
            self._stored[role] = values
            parts = enumerate(self._shards.slices)
            self._call("store", [(i, (role, values[part])) for i, part in parts])
        return Stored(role)

    def _history(self, number: int) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the calls that bring a new copy of a shard up to date."""
        part = self._shards.slices[number]
        stored = [("store", (role, values[part])) for role, values in self._stored.items()]
        return [("replay", (self._log,)), *stored]


def _within(sites: Index, part: slice) -> Index:
    """Return those of the sites that lie in a part, counted from its start."""
    return np.asarray(sites[(sites >= part.start) & (sites < part.stop)] - part.start)


class _WorkerGone(Exception):
    """The worker of a shard no longer exists."""


class _Workers:
    """The workers of a cluster."""

    def __init__(self, client: Any, patience: float) -> None:
        self.client = client
        self._patience = patience

    def addresses(self) -> list[str]:
        """Return the addresses of the workers; wait for the first one if there is none.

        Raises:
            ExecutorError: If there is still none after `patience` seconds.
        """
        deadline = time.monotonic() + self._patience
        while not (found := list(self.client.nthreads())):
            if time.monotonic() > deadline:
                raise ExecutorError(
                    f"the Dask cluster has had no worker for {self._patience:g} s; start some with "
                    "`dask worker ADDRESS`, then continue: all measurements are kept"
                )
            time.sleep(_POLL_INTERVAL)
        return sorted(found)

    def exists(self, address: str) -> bool:
        return address in self.client.nthreads()


class _DaskShards:
    """The shards of a factor, as Dask actors.

    An actor keeps its state and is called without the scheduler.

    Attributes:
        slices: Sites of each shard.
    """

    def __init__(self, workers: _Workers, kernel: Kernel, sites: Array, count: int) -> None:
        edges = np.linspace(0, len(sites), count + 1).round().astype(int).tolist()
        self.slices: Sequence[slice] = [slice(*pair) for pair in pairwise(edges)]
        self._workers = workers
        self._kernel = kernel
        self._sites = sites
        self._actors: list[Any] = [None] * count
        addresses = workers.addresses()
        # the worker of each shard
        self._addresses = [addresses[number % len(addresses)] for number in range(count)]
        futures = [self._submit_actor(address) for address in self._addresses]
        for number, (address, future) in enumerate(zip(self._addresses, futures, strict=True)):
            try:
                self._actors[number] = self._wait(future, address)
                self._wait(self._initialize(number), address)
            except _WorkerGone:
                self._rebuild(number, lambda _: [])

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        """Call a method of several shards and return their answers.

        Args:
            method: Name of a method, see `Shard.call`.
            jobs: Shards to call, and the arguments of each.
            history: Returns the calls that rebuild a shard whose worker is gone.
        """
        started = [
            (number, arguments, self._start_call(number, method, arguments))
            for number, arguments in jobs
        ]
        answers = []
        for number, arguments, future in started:
            while True:
                try:
                    if future is None:
                        raise _WorkerGone
                    answers.append(self._wait(future, self._addresses[number]))
                    break
                except _WorkerGone:
                    self._rebuild(number, history)
                    future = self._start_call(number, method, arguments)
        return answers

    def _submit_actor(self, address: str) -> Any:
        """Return a future of an empty shard on a worker."""
        return self._workers.client.submit(Shard, actor=True, pure=False, workers=[address])

    def _initialize(self, number: int) -> Any:
        """Send a shard its sites, past the scheduler, and return the future."""
        return self._actors[number].initialize(self._kernel, self._sites[self.slices[number]])

    def _start_call(self, number: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Return the future of a call, or None if the worker is known to be gone."""
        try:
            return self._actors[number].call(method, arguments)
        except RuntimeError:  # raised if Dask knows already that the worker is gone
            if self._workers.exists(self._addresses[number]):
                raise
            return None

    def _wait(self, future: Any, address: str) -> Any:
        """Return the result of a call to the worker at an address.

        Raises:
            _WorkerGone: If the worker no longer exists.
        """
        while True:
            try:
                return future.result(timeout=_CHECK_INTERVAL)
            except TimeoutError as error:
                if not self._workers.exists(address):
                    raise _WorkerGone from error
            except Exception as error:
                # The connection may break before the scheduler knows that the worker is gone.
                if self._disappears(address, within=_CHECK_INTERVAL):
                    raise _WorkerGone from error
                raise

    def _disappears(self, address: str, within: float) -> bool:
        """Return whether a worker is gone, or disappears within some seconds."""
        deadline = time.monotonic() + within
        while self._workers.exists(address):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL)
        return True

    def _rebuild(self, number: int, history: History) -> None:
        """Create a shard again, on the worker with the fewest, and repeat the calls it missed."""
        while True:
            address = min(self._workers.addresses(), key=self._addresses.count)
            self._addresses[number] = address
            try:
                self._actors[number] = self._wait(self._submit_actor(address), address)
                self._wait(self._initialize(number), address)
                for method, arguments in history(number):
                    self._wait(self._actors[number].call(method, arguments), address)
                return
            except (_WorkerGone, RuntimeError):
                if self._workers.exists(address):
                    raise
