"""Runs a study on a function: asks, measures, tells, until the first limit is reached; serially or on any executor."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TYPE_CHECKING, Any

from truvar.actions import not_negative
from truvar.domain import whole_number
from truvar.errors import Finished, TruvarError
from truvar.result import Suggestion

if TYPE_CHECKING:
    from truvar.study import Study


class _Inline(Executor):
    """Measures at once, in this thread."""

    _max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # raised again by whoever asks for the result
            future.set_exception(error)
        return future


def run(
    study: Study,
    f: Callable[..., float],
    budget: float | None,
    steps: int | None,
    epsilon: float | None,
    executor: Executor | None,
    progress: Callable[[Study], object],
) -> str:
    """Runs the study and says why it stopped. A measurement that raises is withdrawn, with those still running."""
    _check_run(f, budget, steps, epsilon, executor)
    pool = executor or _Inline()
    workers = getattr(pool, "_max_workers", None) or os.cpu_count() or 1
    running: dict[Future[float], Suggestion] = {}
    try:
        while True:
            reason = limit_reached(study, budget, steps, epsilon)
            while reason is None and len(running) < workers and (steps is None or study.steps + len(running) < steps):
                try:
                    suggestion = study.ask()
                except Finished as end:
                    if not running:
                        return end.reason
                    break
                left = float("inf") if budget is None else budget - study.spent - sum(s.cost for s in running.values())
                if suggestion.cost > left:
                    study.withdraw(suggestion)
                    reason = f"the next measurement costs {suggestion.cost:.4g}, more than the {left:.4g} left"
                    break
                running[pool.submit(f, *_arguments(suggestion))] = suggestion
            if not running:
                return reason or "nothing is left to do"
            failure: BaseException | None = None
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                try:
                    study.tell(running[future], future.result())
                except Exception as error:  # the others that are done are told all the same
                    failure = failure or error
                    continue
                del running[future]
                progress(study)
            if failure is not None:
                raise failure
    finally:
        for suggestion in running.values():
            if suggestion in study.pending:
                study.withdraw(suggestion)


def limit_reached(study: Study, budget: float | None, steps: int | None, epsilon: float | None) -> str | None:
    """The first limit that the study has reached, in words."""
    if study.finished is not None:
        return study.finished
    if budget is not None and study.spent >= budget:
        return f"the budget of {budget:g} is spent"
    if steps is not None and study.steps >= steps:
        return f"{steps} measurements are made"
    if epsilon is not None and study.steps > 0 and study.epsilon <= epsilon:
        return f"epsilon is down to {epsilon:g}"
    return None


def check_limits(budget: Any = None, steps: Any = None, epsilon: Any = None) -> None:
    """Refuses limits that could never be reached."""
    for limit, what in ((budget, "budget"), (epsilon, "epsilon")):
        if limit is not None:
            not_negative(limit, what)
    if steps is not None:
        whole_number(steps, "steps", least=0)


def _check_run(f: Any, budget: Any, steps: Any, epsilon: Any, executor: Any) -> None:
    if not callable(f):
        raise TruvarError(f"f must be a function that measures a point, but it was {f!r}; give one: f(point) -> y")
    check_limits(budget, steps, epsilon)
    if executor is not None and not hasattr(executor, "submit"):
        raise TruvarError(
            f"executor must have a method submit, but it was {executor!r}; give a ThreadPoolExecutor, say"
        )


def _arguments(suggestion: Suggestion) -> list[Any]:
    """What the function is called with: the point, and the level or task where there is a choice of them."""
    choice = [value for value in (suggestion.level, suggestion.task) if value is not None]
    return [suggestion.point, *choice]
