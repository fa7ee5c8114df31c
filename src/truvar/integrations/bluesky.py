"""`TruVaROptimizer`: a study as an optimizer for the plans of bluesky-adaptive 1.0 (formerly Blop).

| protocol of bluesky-adaptive | here |
|---|---|
| `Optimizer`: `suggest`, `ingest`, `get_best_points` | `ask`, `tell`, the point that `result().best` recommends |
| `CanRegisterSuggestions` | custom points get an id, under which their outcomes come back |
| `TrialFaultAware` | the study learns where acquisitions fail; an aborted plan withdraws its points |
| `SupportsStoppingCriteria` | a limit on the answer, such as `regret=0.1`, and why it is reached |
| `Checkpointable` | a store, in which every outcome is when `ingest` returns |

The protocols are checked by their methods, so this module needs bluesky only to tell an aborted plan from a failed one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from uuid import uuid4

from truvar.domain.costs import Cost
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.exceptions import InvalidArgumentError, UnknownSuggestionError, import_optional
from truvar.integrations._continued import create_or_continue
from truvar.messages import unknown_name
from truvar.study.commands import Tell
from truvar.validation import check_integer, check_nonnegative

_utils = import_optional("bluesky.utils", "TruVaROptimizer", "bluesky")
_ABORTED: type[BaseException] = _utils.RunEngineControlException

_ID = "_id"  # key of the id of a suggestion, by the protocol
_BASELINE = "baseline"  # id that `acquire_baseline` gives the present positions
_TOTALS = ("steps", "budget")
_GIVEN_MODEL = ", with {} % probability given the model"
# Limits on the answer, and what is added to the reason: how probable it is that they are kept.
_STATEMENTS = {
    "f1": _GIVEN_MODEL.format(97.5),
    "regret": _GIVEN_MODEL.format(97.5),
    "relative_regret": _GIVEN_MODEL.format(97.5),
    "accuracy": _GIVEN_MODEL.format(95),
    "improvement_per_cost": "",  # an expectation
}
_MAX_REASON = 200  # characters of an exception that are recorded as the reason of a failure


class TruVaROptimizer:
    """Optimizer for the plans of bluesky-adaptive.

    Args:
        domain: Where can be measured. Its columns are the names of the actuators.
        goal: The goal, such as `Maximize()` or `LevelSet(7.0)`.
        objective: Name of the outcome that is told. With a goal of several quantities their names
            are those of the outcomes, and this is left out.
        cost_outcome: Name of an outcome that holds the actual cost, such as seconds; default: the
            cost is the expected one.
        reference_outcome: Name of an outcome that says where the raw data are, such as the id of
            the run.
        stop: Limits on the answer, as `Study.check_stop` takes them, such as `{"regret": 0.1}`;
            further "steps" and "budget". Default: only that nothing is left to measure.
        lease: Seconds for which suggestions are reserved; default: until they are told.
        **options: Further arguments of `Study`, such as `noise`, `cost` (see `motor_cost`), `store`
            and `name`. A study of that name in the store is continued.

    Attributes:
        study: The study, with `result()` and `plot()`.

    Raises:
        InvalidArgumentError: If a limit is not known.
        MissingDependencyError: If bluesky is not installed.

    Example:
        ```python
        from bluesky_adaptive.plans import optimize
        from bluesky_adaptive.protocols import OptimizationProblem

        optimizer = TruVaROptimizer(
            tv.Domain.box(x=(-5, 5), y=(-5, 5)),
            tv.Maximize(),
            objective="intensity",
            cost=motor_cost({"x": 2.0, "y": 0.5}, settle=0.3, count=1.0),
            stop={"regret": 0.05},
            store="sqlite:///beamline.db",
            name="alignment",
        )
        RE(optimize(OptimizationProblem(optimizer, [x, y], [detector], evaluate), iterations=40))
        ```
    """

    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        *,
        objective: str | None = None,
        cost_outcome: str | None = None,
        reference_outcome: str | None = None,
        stop: Mapping[str, float] | None = None,
        lease: float | None = None,
        **options: Any,
    ) -> None:
        if not goal.parts and objective is None:
            raise InvalidArgumentError(
                'objective must be the name of the outcome to tell, got none; give objective="..."'
            )
        self._objective = objective
        self._cost_outcome = cost_outcome
        self._reference_outcome = reference_outcome
        limits = dict(stop or {})
        for name in limits:
            if name not in (*_TOTALS, *_STATEMENTS):
                raise InvalidArgumentError(unknown_name("limit", name, (*_TOTALS, *_STATEMENTS)))
        self._totals = {
            name: check_nonnegative(limits.pop(name), name) for name in _TOTALS if name in limits
        }
        self._limits = limits
        self._lease = lease
        self._own_points: dict[str, dict[str, Any]] = {}  # by the id that they were registered with
        self.study, _ = create_or_continue(domain, goal, "domain", **options)
        self._is_stored = options.get("store") is not None
        self.should_stop()  # a limit that does not suit the goal is refused here, not after a scan

    # -- suggestions
    # ----------------------------------------------------------------------------------------------

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Return the points to measure next, chosen as a batch.

        Args:
            num_points: Their number; default: 1.

        Returns:
            The positions of each point, and its id under "_id".

        Raises:
            Finished: If there is nothing left to measure.
        """
        count = 1 if num_points is None else check_integer(num_points, "num_points", minimum=1)
        suggestions = self.study.ask(count, lease=self._lease)
        return [{**suggestion.point, _ID: suggestion.id} for suggestion in suggestions]

    def register_suggestions(
        self, suggestions: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return custom points with ids, under which their outcomes are ingested.

        A pending suggestion keeps its id. The others are not pending: suggestions that are made
        meanwhile do not take them into account.

        Args:
            suggestions: The positions of each point.

        Raises:
            PointNotInDomainError: If a point lies outside the domain.
        """
        pending = {each.id: each.point for each in self.study.pending}
        registered = []
        for suggestion in suggestions:
            point = self._point(suggestion)
            id_: Any = suggestion.get(_ID)
            if not (isinstance(id_, int) and pending.get(id_) == point):
                self.study.domain.locate(point)
                id_ = f"own-{uuid4().hex[:12]}"
                self._own_points[id_] = point
            registered.append({**suggestion, _ID: id_})
        return registered

    # -- outcomes
    # ----------------------------------------------------------------------------------------------

    def ingest(self, points: Sequence[Mapping[str, Any]]) -> None:
        """Record outcomes, all of them or none.

        An outcome is a number, or a number and its standard error. One that is not finite, or
        None, is recorded as a failure.

        Args:
            points: Outcomes by name, with the id of the suggestion under "_id", or with the
                positions if they were not suggested.

        Raises:
            InvalidArgumentError: If the outcome of the goal, or a position, is missing, or the
                outcome is no number.
            UnknownSuggestionError: If an id is not known.
        """
        with self.study.transaction():
            for outcome in points:
                self._ingest_one(outcome)

    def _ingest_one(self, outcome: Mapping[str, Any]) -> None:
        what = self._resolve(outcome)
        values, noise_sd = self._values(outcome)
        cost = None if self._cost_outcome is None else outcome.get(self._cost_outcome)
        missing = [name for name, value in values.items() if not isfinite(value)]
        if missing:
            self.study.fail(what, f"outcome {missing[0]}: got {values[missing[0]]}", cost=cost)
            return
        reference = None
        if self._reference_outcome is not None and outcome.get(self._reference_outcome) is not None:
            reference = str(outcome[self._reference_outcome])
        value: Any = values if self.study.goal.parts else next(iter(values.values()))
        self.study.execute(
            Tell(what, value, cost=cost, typed=False, noise_sd=noise_sd, reference=reference)
        )

    def _values(self, outcome: Mapping[str, Any]) -> tuple[dict[str, float], float | None]:
        """Return the outcomes that the goal asks for, and the standard error of a single one."""
        names = [*self.study.goal.parts] or [str(self._objective)]
        values: dict[str, float] = {}
        noise_sd = None
        for name in names:
            if name not in outcome:
                raise InvalidArgumentError(
                    f"the outcome {name!r} is missing, got {sorted(map(str, outcome))}; return it "
                    "from the evaluation function"
                )
            value, error = _number(name, outcome[name])
            values[name] = value
            noise_sd = None if len(names) > 1 else error
        return values, noise_sd

    def _resolve(self, outcome: Mapping[str, Any]) -> int | dict[str, Any]:
        """Return the id of the suggestion that was measured, or the point."""
        id_ = outcome.get(_ID)
        if id_ in self._own_points:
            return self._own_points[id_]
        if id_ is None or id_ == _BASELINE:
            return self._point(outcome)
        try:
            return int(id_)
        except (TypeError, ValueError):
            raise UnknownSuggestionError(
                f"no suggestion has the id {id_!r}; ids of own points hold for the optimizer that "
                "registered them: give the positions without an id"
            ) from None

    def _point(self, positions: Mapping[str, Any]) -> dict[str, Any]:
        missing = [name for name in self.study.domain.columns if name not in positions]
        if missing:
            raise InvalidArgumentError(
                f"a point needs a position of every actuator, got none of {missing[0]!r}; the "
                "columns of the domain must be named as the actuators are"
            )
        return {name: positions[name] for name in self.study.domain.columns}

    def register_failures(self, suggestions: Sequence[Mapping[str, Any]]) -> None:
        """Record that an acquisition failed, by the exception that is being handled.

        If the plan was aborted or stopped, the points are withdrawn instead and may be suggested
        again. The failure of a batch is one of all of its points.

        Args:
            suggestions: The points, with their ids.
        """
        error = sys.exception()
        reason = "the acquisition failed"
        if error is not None:
            reason = f"{type(error).__name__}: {error}"[:_MAX_REASON]
        pending = {each.id for each in self.study.pending}
        with self.study.transaction():
            for suggestion in suggestions:
                id_ = suggestion[_ID]
                own = self._own_points.pop(id_, None)
                if isinstance(error, _ABORTED):
                    if id_ in pending:
                        self.study.withdraw(id_, reason, again=True)
                elif own is not None or id_ in pending:
                    self.study.fail(id_ if own is None else own, reason)

    # -- answers
    # ----------------------------------------------------------------------------------------------

    def get_best_points(self) -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
        """Return the recommended point.

        It is that of the best expected value, not of the luckiest measurement. The outcomes are
        those of its last measurement; if it was not measured, its id is None and the outcome the
        expected value with its standard deviation.

        Returns:
            Id, positions and outcomes; nothing before the first outcome, or if the goal is a level
            set.
        """
        records = self.study.measurement_records()
        if not records or not self.study.goal.seeks_optimum:
            return []
        best = self.study.result().best
        for record in reversed(records):
            if record.point == best.point:
                values = record.values or {str(self._objective): record.value}
                return [(record.id, dict(best.point), dict(values))]
        name = next(iter(self.study.goal.parts), self._objective)
        return [(None, dict(best.point), {str(name): (best.mean, best.sd)})]

    def should_stop(self) -> tuple[bool, str | None]:
        """Return whether a limit is reached, and why, with the probability where it is a statement.

        Limits on the answer are not reached while the measurements contradict the model.

        Returns:
            Whether to stop, and the reason as a sentence; None as long as none is reached.
        """
        study = self.study
        for name, reached in (("steps", study.steps), ("budget", study.spent)):
            if name in self._totals and reached >= self._totals[name]:
                return True, f"{name} limit ({self._totals[name]:g}) reached: {reached:g}"
        for name, limit in self._limits.items():
            reason = study.check_stop(**{name: limit}).reason
            if reason is not None:
                return True, f"{reason}{_STATEMENTS[name]}"
        if study.finished is not None:
            return True, study.finished
        return False, None

    def checkpoint(self) -> None:
        """Check that the study is in its store, where every outcome is when `ingest` returns.

        Raises:
            InvalidArgumentError: If it has no store.
            StorageError: If the store cannot be read.
        """
        if not self._is_stored:
            raise InvalidArgumentError(
                "a checkpoint needs a store, got a study in memory; give store="
                '"sqlite:///beamline.db" and name='
            )
        self.study.refresh()


def _number(name: str, outcome: Any) -> tuple[float, float | None]:
    """Return an outcome as a number, and its standard error; None is NaN."""
    try:
        value, error = outcome if isinstance(outcome, tuple | list) else (outcome, None)
        number = float("nan" if value is None else value)
        return number, None if error is None else float(error)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"the outcome {name!r} must be a number, or a number and its standard error, got "
            f"{outcome!r}; return that from the evaluation function"
        ) from None


def motor_cost(
    velocity: Mapping[str, float], *, settle: float = 0.0, count: float = 0.0, **options: Any
) -> Cost:
    """Return the seconds that a measurement takes: motors that move one after another, and counting.

    Args:
        velocity: Units per second of each motor that takes time, by column.
        settle: Seconds that a motor which moved takes to settle.
        count: Seconds that the detector counts.
        **options: Further arguments of `Cost`, such as `start`.

    Raises:
        InvalidArgumentError: If a velocity is not positive, or a time negative.

    Example:
        >>> motor_cost({"x": 2.0}, settle=0.3, count=1.0)
    """
    for name, speed in velocity.items():
        if not check_nonnegative(speed, f"the velocity of {name!r}") > 0:
            raise InvalidArgumentError(
                f"the velocity of {name!r} must be > 0, got {speed!r}; leave out motors that take "
                "no time"
            )
    check_nonnegative(settle, "settle")
    return Cost(
        base=check_nonnegative(count, "count"),
        travel={name: 1 / speed for name, speed in velocity.items()},
        setup=dict.fromkeys(velocity, settle) if settle else {},
        **options,
    )
