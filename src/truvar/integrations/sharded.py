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
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.engines.lazy import Lazy
from truvar.engines.search import BUDGET
from truvar.exceptions import ExecutorError, InvalidArgumentError
from truvar.models.cholesky import Columns, Factor, History, Job
from truvar.models.posterior import Posterior
from truvar.validation import check_integer

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

PATIENCE = 60.0  # seconds to wait for a worker if there is none
CHECK_INTERVAL = 2.0  # seconds to wait for an answer before checking that the worker still exists
POLL_INTERVAL = 0.05  # seconds between two looks at the list of workers


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
    patience: float = PATIENCE

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

    def factor(self, kernel: Kernel, sites: Array, targets: int) -> Factor:
        """Return the Cholesky factor of a study, divided among the present workers.

        Args:
            kernel: The kernel.
            sites: Sites of the model, shape (N, d).
            targets: Number of sites, from the first on, that can be targets.

        Raises:
            ExecutorError: If the cluster has no workers.
        """
        workers = _Workers(self.client, self.patience)
        count = min(self.shards or len(workers.addresses()), len(sites))
        return Factor(sites, _DaskShards(workers, kernel, sites, targets, count))


class _Shard:
    """Columns of the factor on a worker. Workers may share a machine, so matrix products use one thread."""

    columns: Columns

    def initialize(self, kernel: Kernel, sites: Array, targets: int) -> None:
        self.columns = Columns(kernel, sites, targets)

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        with blas_in_one_thread():
            return getattr(self.columns, method)(*arguments)


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
            time.sleep(POLL_INTERVAL)
        return sorted(found)

    def exists(self, address: str) -> bool:
        return address in self.client.nthreads()


class _DaskShards:
    """The shards of a factor, as Dask actors, which keep their state and are called without the scheduler.

    Attributes:
        slices: Sites of each shard.
    """

    def __init__(
        self, workers: _Workers, kernel: Kernel, sites: Array, targets: int, count: int
    ) -> None:
        edges = np.linspace(0, len(sites), count + 1).round().astype(int).tolist()
        self.slices: Sequence[slice] = [slice(*pair) for pair in pairwise(edges)]
        self._workers = workers
        self._kernel = kernel
        self._sites = sites
        self._targets = targets
        self._actors: list[Any] = [None] * count
        addresses = workers.addresses()
        self._addresses = [
            addresses[number % len(addresses)] for number in range(count)
        ]  # the worker of each shard
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
            method: Name of a method of `Columns`.
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
        return self._workers.client.submit(_Shard, actor=True, pure=False, workers=[address])

    def _initialize(self, number: int) -> Any:
        """Send a shard its sites, which are too many to send through the scheduler; return the future."""
        part = self.slices[number]
        targets = max(0, min(part.stop, self._targets) - part.start)
        return self._actors[number].initialize(self._kernel, self._sites[part], targets)

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
                return future.result(timeout=CHECK_INTERVAL)
            except TimeoutError as error:
                if not self._workers.exists(address):
                    raise _WorkerGone from error
            except Exception as error:
                # The connection may break before the scheduler knows that the worker is gone.
                if self._disappears(address, within=CHECK_INTERVAL):
                    raise _WorkerGone from error
                raise

    def _disappears(self, address: str, within: float) -> bool:
        """Return whether a worker is gone, or disappears within some seconds."""
        deadline = time.monotonic() + within
        while self._workers.exists(address):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_INTERVAL)
        return True

    def _rebuild(self, number: int, history: History) -> None:
        """Create a shard again, on the worker with the fewest shards, and repeat the calls that it missed."""
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
