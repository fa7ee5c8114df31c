"""Large domains on a Dask cluster: the factor's columns are shared out over its workers, the study stays here.

    study = tv.Study(domain, goal, ..., engine=Sharded(client))

A factor of N sites and t rows takes 8 N t bytes. A step sends every worker the new point and its column, t + d
numbers; each answers with its part of the new row. To choose, a few candidates at a time are sent with their columns,
and each worker answers with the sums over its own targets. The choices are those of the engine "lazy": the same bounds
in the same order, kept here as vectors of N numbers.

A worker that is lost takes its columns with it. They are made again on another one from the points that were measured.
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
from truvar.exceptions import TruvarError
from truvar.models.cholesky import Columns, Factor, History, Job
from truvar.models.posterior import Posterior
from truvar.validation import check_integer

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

PATIENCE = 60.0  # seconds to wait for a worker where there is none
GLANCE = 2.0  # seconds after which a call that has not come back makes one look whether its worker is still there


@dataclass(frozen=True)
class Sharded:
    """The engine of a study whose factor lies on the workers of a Dask cluster.

    client     a `dask.distributed.Client`; its workers need truvar installed
    shards     parts that the domain is cut into; default: one per worker
    tolerance, budget   as of the engine "lazy", whose choices these are
    patience   seconds to wait for a worker before giving up, where one is needed and there is none
    """

    client: Any
    shards: int | None = None
    tolerance: float | None = None
    budget: int = BUDGET
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        if not all(hasattr(self.client, name) for name in ("submit", "scheduler_info", "nthreads")):
            raise TruvarError(
                f"Sharded needs a dask.distributed.Client, got {self.client!r}; give one, for example "
                'truvar.integrations.dask.connect("tcp://10.0.0.1:8786")'
            )
        if self.shards is not None:
            check_integer(self.shards, "shards", minimum=1)

    def __call__(self, posterior: Posterior, domain: Domain) -> Lazy:
        engine = Lazy(posterior, domain, self.tolerance, self.budget)
        engine.name = "sharded"
        return engine

    def factor(self, kernel: Kernel, sites: Array, targets: int) -> Factor:
        """The factor of a study, on the workers there are now."""
        crew = _Crew(self.client, self.patience)
        count = min(self.shards or len(crew.addresses()), len(sites))
        return Factor(sites, _DaskShards(crew, kernel, sites, targets, count))


class _Shard:
    """The columns of one worker. Many workers may share a machine: the products inside a tile take one thread."""

    columns: Columns

    def make(self, kernel: Kernel, sites: Array, targets: int) -> None:
        self.columns = Columns(kernel, sites, targets)

    def ask(self, method: str, given: tuple[Any, ...]) -> Any:
        with blas_in_one_thread():
            return getattr(self.columns, method)(*given)


class _Lost(Exception):
    """The worker is gone."""


class _Crew:
    """The workers of the cluster."""

    def __init__(self, client: Any, patience: float) -> None:
        self.client, self._patience = client, patience

    def addresses(self) -> list[str]:
        """Of the workers there are; waits for the first."""
        until = time.monotonic() + self._patience
        while not (found := self._now()):
            if time.monotonic() > until:
                raise TruvarError(
                    f"the Dask cluster has had no worker for {self._patience:g} s; start some with "
                    "`dask worker ADDRESS`, then go on: what was told is kept"
                )
            time.sleep(0.1)
        return sorted(found)

    def has(self, address: str) -> bool:
        return address in self._now()

    def _now(self) -> list[str]:
        return list(self.client.nthreads())


class _DaskShards:
    """`Columns` as Dask actors, which keep their state and are spoken to without a detour over the task graph."""

    def __init__(self, crew: _Crew, kernel: Kernel, sites: Array, targets: int, count: int) -> None:
        edges = np.linspace(0, len(sites), count + 1).round().astype(int).tolist()
        self.slices: Sequence[slice] = [slice(*pair) for pair in pairwise(edges)]
        self._crew, self._kernel, self._sites, self._targets = crew, kernel, sites, targets
        self._actors: list[Any] = [None] * count
        addresses = crew.addresses()
        self._homes = [addresses[number % len(addresses)] for number in range(count)]
        placing = [self._place(home) for home in self._homes]
        for number, (home, future) in enumerate(zip(self._homes, placing, strict=True)):
            try:
                self._actors[number] = self._wait(future, home)
                self._wait(self._make(number), home)
            except _Lost:
                self._restore(number, lambda _: [])

    def call(self, method: str, jobs: Sequence[Job], history: History) -> list[Any]:
        asked = [(number, given, self._ask(number, method, given)) for number, given in jobs]
        answers = []
        for number, given, promise in asked:
            while True:
                try:
                    if promise is None:
                        raise _Lost
                    answers.append(self._wait(promise, self._homes[number]))
                    break
                except _Lost:
                    self._restore(number, history)
                    promise = self._ask(number, method, given)
        return answers

    def _place(self, home: str) -> Any:
        """An empty shard on its way to a worker: a future."""
        return self._crew.client.submit(_Shard, actor=True, pure=False, workers=[home])

    def _make(self, number: int) -> Any:
        """What a shard is about, sent to it: the coordinates are too many for the scheduler."""
        part = self.slices[number]
        targets = max(0, min(part.stop, self._targets) - part.start)
        return self._actors[number].make(self._kernel, self._sites[part], targets)

    def _ask(self, number: int, method: str, given: tuple[Any, ...]) -> Any:
        """The answer on its way; None if the worker is known to be gone."""
        try:
            return self._actors[number].ask(method, given)
        except RuntimeError:  # Dask has heard of it already
            if self._crew.has(self._homes[number]):
                raise
            return None

    def _wait(self, promise: Any, home: str) -> Any:
        """What a worker answers, or `_Lost` if it is gone."""
        while True:
            try:
                return promise.result(timeout=GLANCE)
            except Exception as error:
                slow = isinstance(error, TimeoutError)
                until = time.monotonic() + (0.0 if slow else GLANCE)  # the scheduler may hear of it later than we
                while self._crew.has(home):
                    if time.monotonic() >= until:
                        break
                    time.sleep(0.05)
                else:
                    raise _Lost from error
                if not slow:
                    raise

    def _restore(self, number: int, history: History) -> None:
        """Makes a shard again, on the worker that has the fewest."""
        while True:
            addresses = self._crew.addresses()
            home = self._homes[number] = min(addresses, key=self._homes.count)
            try:
                self._actors[number] = self._wait(self._place(home), home)
                self._wait(self._make(number), home)
                for method, given in history(number):
                    self._wait(self._actors[number].ask(method, given), home)
                return
            except (_Lost, RuntimeError):
                if self._crew.has(home):
                    raise
