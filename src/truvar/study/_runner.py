"""Run a study on a function, serially or on an executor, until the first limit is reached.

On an executor the next suggestion is made as soon as a worker is free, given all that is still
running. A failed measurement, one that raises or returns no finite number, is repeated and then
recorded as failed, with its message: the study looks elsewhere and learns where measurements fail.
A broken process pool is replaced by a new one. As nobody knows which of the running measurements
broke it, these are repeated one at a time.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.exceptions import (
    Finished,
    InvalidArgumentError,
    InvalidMeasurementError,
    MeasurementFailedError,
    ServiceError,
    StorageError,
)
from truvar.messages import for_interface, format_point
from truvar.study._inputs import check_only_value
from truvar.study.commands import Tell
from truvar.study.executors import SimulatedPool, WorkerPool
from truvar.study.limits import DEFAULT_RETRIES, RunLimits
from truvar.study.readings import Reading
from truvar.study.suggestion import Suggestion
from truvar.validation import check_integer

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy

MAX_FIRST_FAILURES = (
    5  # failed measurements that end a run before any succeeded; with more workers, as many
)
MAX_CONSECUTIVE_FAILURES = (
    10  # the same, in a row, once one succeeded: one in five may fail by chance
)
MAX_CONTEXTS_WITHOUT_GAIN = (
    20  # contexts in a row in which nothing is to be gained, which end a run
)
STOPPED = "a callback ended the run"  # the reason if it gives no other
MAX_REASON = 500  # characters of a failure's message that are recorded

Callback = Callable[[Any, Suggestion, float], object]


def run(
    study: BaseStudy,
    f: Callable[..., Any],
    limits: RunLimits,
    *,
    executor: Any = None,
    workers: int | None = None,
    retries: int | None = None,
    max_failures: int | None = None,
    resume: bool | Sequence[Suggestion] = False,
    lease: float | None = None,
    context: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    progress: bool | Callable[[Any], object] | None = None,
    callbacks: Sequence[Callback] = (),
) -> str:
    """Run a study and return why it stopped. `truvar.Study.run` documents the arguments.

    Raises:
        InvalidArgumentError: If an argument has the wrong type or range.
        UnsupportedGoalError: If a limit does not suit the goal.
        MeasurementFailedError: If too many measurements in a row failed.
        ExecutorError: If the executor cannot be used.
    """
    if not callable(f):
        raise InvalidArgumentError(
            f"f must be a function that measures a point, got {f!r}; give one: f(point) -> y"
        )
    if study.domain.context and context is None:
        columns = ", ".join(study.domain.context)
        remedy = for_interface(
            "give run a context, or a function that returns the context of the next measurement: "
            "run(f, context=...)",
            cli="a run cannot know it: use truvar ask --context and truvar tell",
        )
        raise InvalidArgumentError(
            f"the context ({columns}) is given, not chosen, got none; {remedy}"
        )
    given: Any = callbacks
    listed = given if np.iterable(given) else [None]
    if not all(callable(callback) for callback in listed):
        raise InvalidArgumentError(
            "callbacks must be functions of the study, the suggestion and the value, got "
            f"{callbacks!r}; give a list "
            "of functions"
        )
    own = study.limits
    retries = _option("retries", retries, own)
    if retries is None:
        retries = DEFAULT_RETRIES if executor is not None else 0
    max_failures = _option("max_failures", max_failures, own)
    limits = limits.or_default({} if limits.given else own, study.goal)
    pool: WorkerPool | SimulatedPool = WorkerPool(executor, workers)
    if executor is None and study.vehicles:
        pool = SimulatedPool(len(study.vehicles))
    with _progress_callback(study, limits, progress) as report_progress:
        this_run = _Run(
            study,
            f,
            limits,
            pool,
            report_progress,
            retries,
            max_failures,
            lease,
            context,
            callbacks,
        )
        this_run.resume(study.pending if resume is True else resume or ())
        return this_run.loop()


def _option(name: str, given: int | None, own: Mapping[str, float]) -> int | None:
    """Return an option of a run: as it is given, or else as the study has it."""
    if given is not None:
        return check_integer(given, name, minimum=0)
    return int(own[name]) if name in own else None


def limit_reached(
    study: BaseStudy, limits: RunLimits, on_obstacle: Callable[[str], None] | None = None
) -> str | None:
    """Return why a study must stop: finished, or a limit is reached. None: it may continue.

    Args:
        study: The study.
        limits: The limits.
        on_obstacle: Called with the message of the model check if it alone prevents that a limit is
            reached.
    """
    finished = study.finished
    if finished is not None:
        return finished
    if limits.budget is not None and study.spent >= limits.budget:
        return f"budget ({limits.budget:g}) spent"
    if limits.steps is not None and study.steps >= limits.steps:
        return f"step limit ({limits.steps}) reached"
    if limits.epsilon is not None and study.steps > 0 and study.epsilon <= limits.epsilon:
        return f"epsilon ({limits.epsilon:g}) reached"
    if not limits.statements.given:
        return None
    check = study.check_stop(**vars(limits.statements))
    if check.obstacle is not None and on_obstacle is not None:
        on_obstacle(check.obstacle)
    if check.reason is not None and limits.is_default:
        return f"{check.reason} (the default, as no limit was given)"
    return check.reason


@contextmanager
def _progress_callback(
    study: BaseStudy, limits: RunLimits, progress: bool | Callable[[Any], object] | None
) -> Iterator[Callable[[Any], object]]:
    """Yield a function that is called with the study after each measurement."""
    if progress is None and limits.is_default:  # nobody knows how long it will take
        from truvar.report import is_interactive

        progress = is_interactive()
    if callable(progress):
        yield progress
    elif progress:
        from truvar.report import Progress

        with Progress(study, limits=limits) as display:
            yield display
    else:
        yield lambda _: None


class _Run:
    """One run: the running measurements, those to repeat, and the failures so far."""

    def __init__(
        self,
        study: BaseStudy,
        f: Callable[..., Any],
        limits: RunLimits,
        pool: WorkerPool | SimulatedPool,
        progress: Callable[[Any], object],
        retries: int,
        max_failures: int | None,
        lease: float | None,
        context: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.study = study
        self.f = f
        self.limits = limits
        self.pool = pool
        self.progress = progress
        self.retries = retries
        self.max_failures = max_failures  # None: only many failures in a row end the run
        self.lease = lease
        self.context = context
        self.n_contexts_without_gain = 0  # one after the other
        self.callbacks = callbacks
        self.stopped: str | None = None  # why a callback ends the run
        self.running: dict[Any, Suggestion] = {}  # by future
        self.to_repeat: deque[Suggestion] = deque()
        self.to_repeat_alone: deque[Suggestion] = deque()  # one of these broke the pool
        self.suggestions: list[Suggestion] = []  # all that this run is responsible for
        self.failures: dict[int, int] = {}  # failed attempts by id of the suggestion
        self.obstacle_named = False  # whether a warning said why a limit does not end the run
        # Cost of all that a vehicle has tried or is measuring: the time at which it is free again.
        statuses = study.vehicle_statuses if study.vehicles else []
        self.clocks = {status.name: status.spent for status in statuses if status.name is not None}
        self.idle: dict[
            str, str
        ] = {}  # vehicles that nothing is suggested for at present, with the reason
        self.n_failed = 0
        self.n_consecutive = 0  # failed since the last success
        self.too_many: str | None = None  # why failures end the run

    def resume(self, pending: Sequence[Suggestion]) -> None:
        """Measure these suggestions first, as if this run had made them."""
        self.suggestions += pending
        self.to_repeat.extend(pending)

    def loop(self) -> str:
        """Measure until nothing more is to be done; return why."""
        try:
            while True:
                reason = self._submit_work()
                if not self.running:
                    return reason + ("" if self.too_many else self._failure_note)
                self._collect(self.pool.wait())
        finally:
            self._finish()

    # -- submitting
    # ----------------------------------------------------------------------------------------------

    def _submit_work(self) -> str:
        """Give every free worker something to measure; return why no more was submitted."""
        while True:
            if self.too_many is not None:
                return self.too_many
            if self.stopped is not None:
                return self.stopped
            reason = limit_reached(self.study, self.limits, self._warn_of_obstacle)
            if reason is not None:
                return reason
            if self.to_repeat_alone:
                if not self.running:
                    self._submit(self.to_repeat_alone.popleft())
                return "a measurement runs alone"
            if len(self.running) >= self.pool.workers:
                return "all workers are busy"
            if self.to_repeat:
                self._submit(self.to_repeat.popleft())
                continue
            steps = self.limits.steps
            if steps is not None and self.study.steps + len(self.running) >= steps:
                return "enough measurements are running"
            vehicle = self._next_vehicle()
            if vehicle is None and self.study.vehicles:
                return next(iter(self.idle.values()), "all vehicles are busy")
            context = self.context() if callable(self.context) else self.context
            try:
                suggestion = self.study.ask(
                    lease=self.lease, vehicle=vehicle, budget=self._return_budget, context=context
                )
            except Finished as end:
                self.n_contexts_without_gain += 1
                if (
                    callable(self.context)
                    and self.n_contexts_without_gain < MAX_CONTEXTS_WITHOUT_GAIN
                ):
                    continue
                if vehicle is None:
                    return end.reason
                self.idle[vehicle] = end.reason
                continue
            self.n_contexts_without_gain = 0
            reason = self._unaffordable(suggestion)
            if reason is not None:
                self.study.withdraw(suggestion, again=True)
                if vehicle is None:
                    return reason
                self.idle[vehicle] = reason
                continue
            self.suggestions.append(suggestion)
            self._submit(suggestion)

    def _next_vehicle(self) -> str | None:
        """Return a vehicle that measures nothing at present; None if there is none."""
        busy = {
            suggestion.vehicle
            for suggestion in [*self.running.values(), *self.to_repeat, *self.to_repeat_alone]
        }
        free = [name for name in self.study.vehicles if name not in busy and name not in self.idle]
        return min(free, key=lambda name: self.clocks[name], default=None)

    @property
    def _return_budget(self) -> float | None:
        """The budget that must pay for the return leg; None if nobody must return."""
        return self.limits.budget if self.study.must_return else None

    def _warn_of_obstacle(self, message: str) -> None:
        """Warn once that the run goes on because the measurements contradict the model."""
        if not self.obstacle_named:
            self.obstacle_named = True
            warnings.warn(
                "the model claims that a limit is near or reached, but the measurements contradict "
                "the model, so that "
                f"the run continues. {message}",
                RuntimeWarning,
                stacklevel=7,
            )

    def _unaffordable(self, suggestion: Suggestion) -> str | None:
        """Return why the budget does not allow a measurement, if so."""
        budget = self.limits.budget
        if budget is None:
            return None
        left = budget - self.study.spent - sum(running.cost for running in self.running.values())
        if suggestion.cost <= left:
            return None
        return (
            f"the next measurement costs {suggestion.cost:.4g}, more than the {left:.4g} left of "
            "the budget "
            f"({budget:g}); a cheaper one may be affordable, but gains less per unit cost"
        )

    def _submit(self, suggestion: Suggestion) -> None:
        options = [value for value in (suggestion.level, suggestion.task) if value is not None]
        if suggestion.vehicle is not None:
            self.clocks[suggestion.vehicle] += suggestion.cost
        try:
            if isinstance(self.pool, SimulatedPool):
                due = self.clocks.get(suggestion.vehicle or "", 0.0)
                future = self.pool.submit_until(due, self.f, suggestion.point, *options)
            else:
                future = self.pool.submit(self.f, suggestion.point, *options)
        except BrokenExecutor as error:
            self._replace_pool([suggestion], error)
        else:
            self.running[future] = suggestion

    # -- collecting
    # ----------------------------------------------------------------------------------------------

    def _collect(self, futures: list[Any]) -> None:
        """Tell the values that were measured; repeat or give up what failed."""
        self.idle.clear()  # a new value may make something worth measuring
        interrupted, error = self._tell_finished(futures)
        if error is not None:
            self._replace_pool(interrupted, error)

    def _tell_finished(self, futures: list[Any]) -> tuple[list[Suggestion], BrokenExecutor | None]:
        """Tell the values of finished futures.

        Returns:
            The suggestions whose measurement ended with the pool itself, and the pool's error.
        """
        failed: list[tuple[Suggestion, Exception]] = []
        interrupted: list[Suggestion] = []
        broken: BrokenExecutor | None = None
        for future in futures:
            suggestion = self.running[future]
            try:
                reading = _measured(future.result())
                self._tell(suggestion, reading)
            except BrokenExecutor as error:
                interrupted.append(suggestion)
                broken = error
            except (
                StorageError,
                ServiceError,
            ):  # the study cannot be written: not a matter of the measurement
                raise
            except Exception as error:
                failed.append((suggestion, error))
            else:
                self.n_consecutive = 0
                self.progress(self.study)
                self._call_back(suggestion, self._plain_value(reading.value))
            del self.running[future]
        for suggestion, failure in failed:  # only now, as a failure may end the run
            self._handle_failure(suggestion, failure, self.to_repeat)
        return interrupted, broken

    def _tell(self, suggestion: Suggestion, reading: Reading) -> None:
        """Tell a value that a program measured, which cannot be mistyped."""
        self.study.execute(_command(suggestion, reading)).warn(stacklevel=7)

    def _plain_value(self, value: Any) -> Any:
        """Return what callbacks get: the value as a number, or the values of several quantities."""
        return dict(value) if self.study.goal.parts else float(check_only_value(value))

    def _call_back(self, suggestion: Suggestion, value: float) -> None:
        """Call the callbacks, all of them; one that returns True or a text ends the run."""
        for callback in self.callbacks:
            answer = callback(self.study, suggestion, value)
            if self.stopped is None and isinstance(answer, str):
                self.stopped = answer or STOPPED
            elif self.stopped is None and answer is True:
                self.stopped = STOPPED

    def _replace_pool(self, interrupted: list[Suggestion], error: BrokenExecutor) -> None:
        """Replace a broken pool and schedule what was running on it again."""
        while self.running:
            more, _ = self._tell_finished(self.pool.wait())
            interrupted = interrupted + more
        self.pool.renew(error)
        if len(interrupted) == 1:
            self._handle_failure(interrupted[0], error, self.to_repeat_alone)
        else:
            self.to_repeat_alone.extend(interrupted)

    def _handle_failure(
        self, suggestion: Suggestion, error: Exception, queue: deque[Suggestion]
    ) -> None:
        """Put a failed measurement into the queue to be repeated, or record that it failed."""
        attempts = self.failures.get(suggestion.id, 0) + 1
        self.failures[suggestion.id] = attempts
        if attempts <= self.retries:
            queue.append(suggestion)
            return
        self.n_failed += 1
        self.n_consecutive += 1
        reason = _reason(error)
        self.study.fail(suggestion, reason)
        place = format_point(suggestion.point)
        message = f"the measurement at {place} failed {_times(attempts)} ({reason})"
        if self.max_failures is not None:
            if self.n_failed > self.max_failures:
                self.too_many = (
                    f"{_counted(self.n_failed)} failed, more than max_failures "
                    f"({self.max_failures}) allows, the last: "
                    f"{message}"
                )
        elif self.n_consecutive >= max(self._most_in_a_row, self.pool.workers):
            raise MeasurementFailedError(
                f"{self.n_consecutive} measurements in a row failed, the last: {message}; earlier "
                "measurements are "
                "kept: fix the function or the workers and run again, or give max_failures"
            ) from error
        warnings.warn(f"{message}; the run continues elsewhere", RuntimeWarning, stacklevel=7)

    @property
    def _most_in_a_row(self) -> int:
        return MAX_CONSECUTIVE_FAILURES if self.study.steps else MAX_FIRST_FAILURES

    @property
    def _failure_note(self) -> str:
        return f" ({_counted(self.n_failed)} failed)" if self.n_failed else ""

    def _finish(self) -> None:
        """Record finished measurements and withdraw the rest, however the run ends."""
        try:
            for future in [future for future in self.running if future.done()]:
                with suppress(
                    BaseException
                ):  # the run ends for another reason, which must not be hidden
                    reading = _measured(future.result())
                    self.study.execute(_command(self.running[future], reading))
            for future in self.running:
                future.cancel()
        finally:
            pending = {suggestion.id for suggestion in self.study.pending}
            for suggestion in self.suggestions:
                if suggestion.id in pending:
                    self.study.withdraw(suggestion, again=True)
            self.pool.close()


def _command(suggestion: Suggestion, reading: Reading) -> Tell:
    """Return the command that records a reading."""
    return Tell(
        suggestion,
        reading.value,
        cost=reading.cost,
        typed=False,
        noise_sd=reading.noise_sd,
        reference=reading.reference,
    )


def _measured(returned: Any) -> Reading:
    """Return what a function returned: a value, a value with its cost, or a reading.

    Raises:
        InvalidMeasurementError: If it returned None, NaN or an infinite number: it has no value.
    """
    reading = returned if isinstance(returned, Reading) else Reading(returned)
    if isinstance(returned, tuple) and len(returned) == 2:
        reading = Reading(*returned)
    value = reading.value
    if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
        raise InvalidMeasurementError(f"the function returned {value}")
    return reading


def _reason(error: Exception) -> str:
    """Return why a measurement failed, as it is recorded."""
    text = " ".join(str(error).split())
    if not isinstance(error, InvalidMeasurementError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:MAX_REASON]


def _counted(count: int) -> str:
    return "1 measurement" if count == 1 else f"{count} measurements"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
