"""Runs a study on a function: asks, measures, tells, until the first limit is reached; serially or on any executor.

On an executor a new suggestion is asked for the moment a worker is free, given all that is still running. A measurement
that fails is tried again, then set aside: it stays pending until the run ends, so that the study looks elsewhere, and
is withdrawn then. A pool of processes that broke is replaced by one like it. Which of the measurements broke it nobody
knows, so that those that were running are made again one by one.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truvar.exceptions import Finished, TruvarError
from truvar.messages import format_point
from truvar.study.executors import WorkerPool
from truvar.study.suggestion import Suggestion
from truvar.validation import check_integer, check_nonnegative

if TYPE_CHECKING:
    from truvar.study.study import Study

RETRIES = 1  # on an executor, where nothing else is said
IN_A_ROW = 3  # measurements, or as many as there are workers, that may fail before the run gives up


@dataclass(frozen=True)
class RunLimits:
    """Where a run ends, whichever comes first: cost spent, values told, epsilon."""

    budget: float | None = None
    steps: int | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        check_limits(self.budget, self.steps, self.epsilon)


def run(
    study: Study,
    f: Callable[..., float],
    limits: RunLimits,
    executor: Any,
    progress: Callable[[Study], object],
    workers: int | None = None,
    retries: int | None = None,
    resume: bool | Sequence[Suggestion] = False,
    lease: float | None = None,
) -> str:
    """Runs the study and says why it stopped. Without an executor and `retries`, a measurement that raises ends it.
    `resume`: what is pending, or these of it, is measured first. `lease`: that of every suggestion, in seconds."""
    if not callable(f):
        raise TruvarError(f"f must be a function that measures a point, got {f!r}; give one: f(point) -> y")
    if retries is not None:
        check_integer(retries, "retries", minimum=0)
    elif executor is not None:
        retries = RETRIES
    whole = _Run(study, f, limits, WorkerPool(executor, workers), progress, retries, lease)
    whole.take_over(study.pending if resume is True else resume or ())
    return whole.go()


def limit_reached(study: Study, limits: RunLimits) -> str | None:
    """The first limit that the study has reached, in words."""
    if study.finished is not None:
        return study.finished
    if limits.budget is not None and study.spent >= limits.budget:
        return f"budget ({limits.budget:g}) spent"
    if limits.steps is not None and study.steps >= limits.steps:
        return f"step limit ({limits.steps}) reached"
    if limits.epsilon is not None and study.steps > 0 and study.epsilon <= limits.epsilon:
        return f"epsilon ({limits.epsilon:g}) reached"
    return None


def check_limits(budget: Any = None, steps: Any = None, epsilon: Any = None) -> None:
    """Refuses limits that could never be reached."""
    for limit, what in ((budget, "budget"), (epsilon, "epsilon")):
        if limit is not None:
            check_nonnegative(limit, what)
    if steps is not None:
        check_integer(steps, "steps", minimum=0)


class _Run:
    """One run: what is running, what is to be tried again, and what has failed."""

    def __init__(
        self,
        study: Study,
        f: Callable[..., float],
        limits: RunLimits,
        pool: WorkerPool,
        progress: Callable[[Study], object],
        retries: int | None,
        lease: float | None,
    ) -> None:
        self.study, self.f, self.limits, self.pool, self.progress = study, f, limits, pool, progress
        self.lease = lease
        self.retries = retries  # None: a measurement that raises ends the run
        self.running: dict[Any, Suggestion] = {}  # by their futures
        self.again: deque[Suggestion] = deque()
        self.suspects: deque[Suggestion] = deque()  # one of them broke the pool: made again one by one
        self.asked: list[Suggestion] = []
        self.tries: dict[int, int] = {}  # that failed, by the suggestion's id
        self.failed = 0  # measurements that were given up
        self.in_a_row = 0

    def take_over(self, pending: Sequence[Suggestion]) -> None:
        """These are measured first, as if this run had asked for them."""
        self.asked += pending
        self.again.extend(pending)

    def go(self) -> str:
        try:
            while True:
                reason = self._fill()
                if not self.running:
                    return reason + self._failures
                self._take(self.pool.wait())
        finally:
            self._end()

    # -- handing out ---------------------------------------------------------------------------------------------------

    def _fill(self) -> str:
        """Every free worker gets something to do. Why no more was handed out."""
        while True:
            reason = limit_reached(self.study, self.limits)
            if reason is not None:
                return reason
            if self.suspects and self.running:
                return "a measurement runs alone"
            if self.suspects:
                self._submit(self.suspects.popleft())
                return "a measurement runs alone"
            if len(self.running) >= self.pool.workers:
                return "all workers are busy"
            if self.again:
                self._submit(self.again.popleft())
                continue
            steps = self.limits.steps
            if steps is not None and self.study.steps + len(self.running) >= steps:
                return "enough is running"
            try:
                suggestion = self.study.ask(lease=self.lease)
            except Finished as end:
                return end.reason
            budget = float("inf") if self.limits.budget is None else self.limits.budget
            left = budget - self.study.spent - sum(s.cost for s in self.running.values())
            if suggestion.cost > left:
                self.study.withdraw(suggestion)
                return (
                    f"the next measurement costs {suggestion.cost:.4g}, more than the {left:.4g} left of the budget "
                    f"({budget:g}); a cheaper one may be affordable, but gains less per unit cost"
                )
            self.asked.append(suggestion)
            self._submit(suggestion)

    def _submit(self, suggestion: Suggestion) -> None:
        choice = [value for value in (suggestion.level, suggestion.task) if value is not None]
        try:
            future = self.pool.submit(self.f, suggestion.point, *choice)
        except BrokenExecutor as error:  # since the last look
            self._broken([suggestion], error)
        else:
            self.running[future] = suggestion

    # -- taking in -----------------------------------------------------------------------------------------------------

    def _take(self, futures: list[Any]) -> None:
        """Tells what was measured; what failed is tried again or given up."""
        broke, error = self._collect(futures)
        if error is not None:
            self._broken(broke, error)

    def _collect(self, futures: list[Any]) -> tuple[list[Suggestion], BrokenExecutor | None]:
        """The same; those that ended with the pool itself are given back, with its error."""
        failures: list[tuple[Suggestion, Exception]] = []
        broke: list[Suggestion] = []
        broken: BrokenExecutor | None = None
        for future in futures:
            suggestion = self.running[future]
            try:
                self.study.tell(suggestion, future.result())
            except BrokenExecutor as error:
                broke.append(suggestion)
                broken = error
            except Exception as error:
                failures.append((suggestion, error))
            else:
                self.in_a_row = 0
                self.progress(self.study)
            del self.running[future]
        for suggestion, failure in failures:  # when all that succeeded is told
            self._fails(suggestion, failure, self.again)
        return broke, broken

    def _broken(self, broke: list[Suggestion], error: BrokenExecutor) -> None:
        """The pool is gone with all that was running."""
        while self.running:
            broke = broke + self._collect(self.pool.wait())[0]
        self.pool.renew(error)
        if len(broke) == 1:
            self._fails(broke[0], error, self.suspects)
        else:
            self.suspects.extend(broke)

    def _fails(self, suggestion: Suggestion, error: Exception, again: deque[Suggestion]) -> None:
        if self.retries is None:
            raise error
        tries = self.tries[suggestion.id] = self.tries.get(suggestion.id, 0) + 1
        if tries <= self.retries:
            again.append(suggestion)
            return
        self.failed += 1
        self.in_a_row += 1
        where = format_point(suggestion.point)
        what = f"the measurement at {where} failed {_times(tries)} ({type(error).__name__}: {error})"
        if self.in_a_row >= max(IN_A_ROW, self.pool.workers):
            raise TruvarError(
                f"{self.in_a_row} measurements in a row failed, the last: {what}; what was told before is kept: mend "
                "the function or the workers, and run again"
            ) from error
        warnings.warn(f"{what}; the run goes on without it", RuntimeWarning, stacklevel=7)

    @property
    def _failures(self) -> str:
        if self.failed == 0:
            return ""
        plural = "s" * (self.failed != 1)
        return f" ({self.failed} failed measurement{plural} withdrawn)"

    def _end(self) -> None:
        """What is done is told, what is not is withdrawn, however the run ends."""
        try:
            for future in [future for future in self.running if future.done()]:
                with suppress(BaseException):  # the run ends for another reason
                    self.study.tell(self.running[future], future.result())
            for future in self.running:
                future.cancel()
        finally:
            pending = {suggestion.id for suggestion in self.study.pending}
            for suggestion in self.asked:
                if suggestion.id in pending:
                    self.study.withdraw(suggestion)
            self.pool.close()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
