"""`Study`: suggests where to measure next, records the values, and reports the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from truvar._deprecation import deprecated_alias
from truvar._representation import visible
from truvar._typing import Array
from truvar.acquisition import Policy, PolicyContext, policy_named
from truvar.acquisition.confidence import Epoch
from truvar.acquisition.registry import DEFAULT_POLICY
from truvar.algorithm import loop
from truvar.algorithm.availability import place_of
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.recommendation import best_in_context
from truvar.algorithm.selection import in_model_units, policy_context, stops_at_sets
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.domain.costs import CostLike, NoiseLevels, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Exclusion, Place
from truvar.domain.given_context import ContextSlice, slice_in_context
from truvar.domain.goals import Goal
from truvar.domain.vehicles import Departure, Vehicle, check_vehicles
from truvar.engines import EngineLike
from truvar.exceptions import (
    BudgetSpent,
    ConflictingMeasurementError,
    DamagedStudyError,
    Finished,
    InvalidArgumentError,
    InvalidMeasurementError,
    InvalidModelError,
    StudyStartedError,
    TruvarError,
    UnknownSuggestionError,
)
from truvar.inference.joint import StatementSource
from truvar.inference.limits import StopCheck, improvement_per_cost
from truvar.messages import for_interface, format_point
from truvar.models.fit import Model
from truvar.models.kernels import to_sklearn
from truvar.models.mean import MeanLike
from truvar.models.priors import Learned, Prior
from truvar.models.transforms import OutputTransform
from truvar.storage.base import EventLog, now, whoami
from truvar.storage.memory import InMemoryEventLog
from truvar.storage.serialization import study_from_json, study_to_json
from truvar.study._events import StudyConfig
from truvar.study._inputs import PointLike, ValueLike
from truvar.study._places import is_recorded_exclusion, resolve_place
from truvar.study._resolve import (
    action_at,
    check_measurement,
    check_vehicle_of,
    is_corrected,
    recorded_failure,
    repeat_keys,
    repeated_action,
    resolve_action,
    resolve_observed,
    with_actual,
)
from truvar.study._state import HISTORY_COLUMNS, StudyState
from truvar.study._transactions import TransactionalStudy, WriteEvent, synchronized
from truvar.study._views import measurements, result, statement_inputs, stop_check, suggestion, why_finished
from truvar.study.limits import RunLimits, check_study_limits
from truvar.study.lookahead import Lookahead, lookahead
from truvar.study.outliers import outlier_ids, warn_of_outliers, warn_of_value
from truvar.study.plausibility import correction, implausible, too_small
from truvar.study.records import FailureRecord, MeasurementRecord, failure_records, measurement_records
from truvar.study.result import Best, Result
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import VehicleStatus, check_starts, departure, resolve_vehicle, vehicle_statuses
from truvar.tabular.tables import as_table
from truvar.validation import check_finite, check_integer, check_names, check_nonnegative

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

    from truvar.theory import TheorySetting

MAX_LEASE = 100 * 366 * 86_400  # seconds: a hundred years


@synchronized
class Study(TransactionalStudy):
    """A search for an optimum or a level set, one measurement at a time.

    `ask` says where to measure, `tell` takes the value, and `result` says at any time what is known.

    The state of a study is rebuilt from its event log. Several people or programs may work on a stored study at once:
    every method that changes it first takes over what the others did. What it says in between is as of its last
    change or `refresh`.

    One object may be shared by threads and by asyncio tasks: its methods wait for each other. A transaction keeps the
    others out until it ends, so a task must not await anything within one.

    Args:
        domain: Where to look, such as `Domain.grid(x=..., y=...)`.
        goal: What to look for: `Maximize()`, `Minimize()` or `LevelSet(7.0)`.
        kernel: A scikit-learn kernel; or the family to learn from the measurements: its name, `Learned(...)`, or None
            for the default family.
        mean: Prior mean. A number is a constant; None: a constant that is estimated from the measurements. The name of
            a column of the domain's table, an array with a value per point of the domain, or a function of points
            (q, d) that returns (q,) is a mean function, and the kernel describes the deviations from it. With a known
            kernel it is taken as it is; with a learned one a constant on top of it is learned too.
        noise: Noise variance of a measurement: a number, column name, array, function of the points, or
            `NoiseLevels`; None: learned from the measurements.
        transform: How values are transformed before they are modelled, as the field of `Learned`: "auto" for a power of
            them if they call for one, "log" for their logarithms, "none". With "log" a given mean or noise variance is
            that of the logarithms. Default: that of the kernel, "auto" if it is learned.
        cost: Cost of a measurement: a number, column name, array, function of the points and the last one, or `Cost`.
            Default: 1, or the cost of the noise level.
        tasks: Correlated quantities that may be measured instead of the target.
        vehicles: Vehicles or crews that work on the study, by name, each with a position of its own; or a list of
            their names. Default: a single crew.
        policy: How the next measurement is chosen: a policy or its name; default: "auto". `TruVaR()` is the algorithm
            of the paper.
        start: The first suggestion: "random", an index or a point; default: the policy's own choice.
        seed: Seed of everything that is drawn.
        engine: How scores are computed: "dense", "dense32", "dense64", "lazy" or a factory; default: chosen by the
            size of the domain.
        limits: Limits that the study is meant to end at, by the names that `run` has for them, kept with it for those
            who work on it; `run` uses them if it is given none.
        store: URL of the database that keeps the study, such as "sqlite:///lake.db", or an empty event log; default:
            memory.
        name: Name of the study; required in a database.
        who: Author of the events that this object writes; default: the user and the machine. If it is the name of a
            vehicle, that vehicle asks and measures.

    Attributes:
        domain: The domain.
        goal: The goal, with `monotone` as it is in use.
        policy: The policy.
        seed: The seed.
        name: The name.
        who: Author of the events that this object writes.

    Raises:
        InvalidArgumentError: If an argument has the wrong type or range.
        InvalidModelError: If kernel, mean, noise and tasks do not make a model.
        UnknownPolicyError: If there is no policy of that name.
        UnsupportedGoalError: If the policy or a limit does not serve the goal.
        SerializationError: If the study is to be stored and one of its settings cannot be.
        StudyExistsError: If the store has a study of that name already.

    Example:
        >>> study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 50)), tv.LevelSet(0.5))
        >>> suggestion = study.ask()
        >>> study.tell(suggestion, measure(suggestion.point))
        >>> study.result().above
    """

    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        *,
        kernel: Kernel | str | Learned | None = None,
        mean: MeanLike | None = None,
        noise: NoiseLike | None = None,
        transform: Literal["auto", "log", "none"] | None = None,
        cost: CostLike | None = None,
        tasks: Tasks | None = None,
        vehicles: Mapping[str, Vehicle] | Sequence[str] | None = None,
        policy: Policy | str | None = None,
        start: Literal["random"] | int | Mapping[str, Any] | None = None,
        seed: int = 0,
        engine: EngineLike = None,
        limits: Mapping[str, float] | None = None,
        store: str | EventLog | None = None,
        name: str | None = None,
        who: str | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise InvalidArgumentError(
                f"domain must be a Domain, got {domain!r}; give one such as Domain.grid(x=[0, 1])"
            )
        if isinstance(goal, type) or not hasattr(goal, "update"):
            raise InvalidArgumentError(
                f"goal must be Maximize(), Minimize() or LevelSet(h), got {goal!r}; give one of them"
            )
        seed = check_integer(seed, "seed", minimum=0)
        family = _family(kernel, transform)
        config = StudyConfig(
            domain=domain,
            goal=goal,
            policy=policy_named(policy or DEFAULT_POLICY),
            prior=Prior(family, mean, noise, tasks),
            cost=cost,
            start=_start_index(domain, start, seed),
            seed=seed,
            engine=engine,
            limits=check_study_limits(limits, goal),
            vehicles=check_vehicles(vehicles),
        )
        check_names(config.vehicles, "vehicle")
        if isinstance(tasks, Tasks):
            check_names(tasks.names, "task")
        if store is not None:
            config = _stored_config(config)
        state = StudyState(config)
        check_starts(state)
        event_log = InMemoryEventLog() if store is None else _new_event_log(store, name)
        self._initialize(state, event_log, name, who)
        with self._transaction() as write:
            write("created", **config.to_details())

    def _initialize(self, state: StudyState, event_log: EventLog, name: str | None, who: str | None) -> None:
        self.domain = state.config.domain
        self.goal = state.config.goal
        self.policy = state.config.policy
        self.seed = state.config.seed
        self.name = name
        self.who = who or whoami()
        self._event_log = event_log
        self._state = state
        self._finished: tuple[int, str | None] = (-1, None)  # update for which it is known whether it is finished
        self._statements: tuple[int, StatementSource | None] = (-1, None)  # update that the inputs belong to
        self._stop_reason: str | None = None  # of the last run, until something changes
        self._initialize_transactions()
        self._named_outliers = set(outlier_ids(state))  # measurements that a warning has named

    @classmethod
    def from_event_log(cls, event_log: EventLog, name: str | None, who: str | None = None) -> Study:
        """Open the study whose events an event log holds.

        Args:
            event_log: The event log; its first event holds the problem.
            name: Name of the study.
            who: Author of the events that this object writes; default: the user and the machine.

        Raises:
            DamagedStudyError: If the events do not make a study.
        """
        study = cls.__new__(cls)
        try:
            events = event_log.since(0)
            state = StudyState(StudyConfig.from_details(events[0].details))
            state.replay(events)
            check_summary = getattr(event_log, "check_summary", None)
            if check_summary is not None:
                check_summary(state.summary)
        except TruvarError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DamagedStudyError(
                f"the events of the study {name!r} are damaged ({error!r}); use an undamaged copy of its store"
            ) from error
        study._initialize(state, event_log, name, who)
        return study

    def __reduce__(self) -> Any:
        """Pickle and copy the study as its events: the state of some models holds functions that cannot be pickled."""
        return self._from_copy, (self._event_log, self.name, self.who, self._stop_reason)

    @classmethod
    def _from_copy(cls, event_log: EventLog, name: str | None, who: str, stop_reason: str | None) -> Study:
        study = cls.from_event_log(event_log, name, who)
        study._stop_reason = stop_reason
        return study

    # -- asking --------------------------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        n: None = None,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Suggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Suggestion]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Suggestion | list[Suggestion]:
        """Suggest where to measure next.

        A suggestion stays pending until its value is told or it is withdrawn; later suggestions take it into account.

        Args:
            n: Number of suggestions, chosen as a batch; None for a single one.
            lease: Seconds for which the suggestions are reserved. The first `ask` after that assumes that they will
                not be measured. Default: no end.
            who: Vehicle that the suggestions are for; needed if the study has several, unless the author of the study
                object is one of them. What is pending for the others is taken into account.
            budget: Total cost that the study must stay within, the way back included if it is compulsory; only what it
                allows is suggested. Default: the budget among the limits of a study whose vehicles must return.
            context: Value of every context column of the domain, which is given, not chosen: the suggestions are among
                the points whose context is nearest to it; in a box they have exactly that context.

        Returns:
            One suggestion; with `n` a list of up to n, fewer if nothing more is to be gained.

        Raises:
            Finished: If the study is finished, its policy sees nothing more to gain, or the budget allows nothing more.
            InvalidArgumentError: If there is no such vehicle, or it is not clear which one is meant.

        Example:
            >>> study.ask()
            >>> batch = study.ask(4, lease=3600)
        """
        count = 1 if n is None else check_integer(n, "the number of suggestions", minimum=1)
        if lease is not None and not 0 < check_finite(lease, "lease") <= MAX_LEASE:
            raise InvalidArgumentError(
                f"lease must be a number of seconds > 0 and <= {MAX_LEASE:g}, got {lease!r}; give one such as 3600, or "
                "leave it out for no end"
            )
        if budget is not None:
            check_nonnegative(budget, "budget")
        vehicle = resolve_vehicle(self._state.config, who, self.who, required=True)
        given = slice_in_context(self.domain, context)
        batch, finished = self._change(lambda write: self._ask(write, count, lease, vehicle, budget, context, given))
        if finished is not None and not batch:
            raise finished
        return batch[0] if n is None else batch

    def _ask(
        self,
        write: WriteEvent,
        count: int,
        lease: float | None,
        who: str | None,
        budget: float | None,
        context: Mapping[str, Any] | None,
        given: ContextSlice | None,
    ) -> tuple[list[Suggestion], Finished | None]:
        """Return up to `count` suggestions, and what says that there are no more."""
        batch: list[Suggestion] = []
        for id_ in self._state.expired_leases(now()):
            write("expired", id=id_)
        until = None if lease is None else (now() + timedelta(seconds=lease)).isoformat()
        while len(batch) < count:
            try:
                action = self._choose_action(who, budget, given)
            except BudgetSpent as end:
                return batch, end
            except Finished as end:
                if given is not None or self.finished is not None or self.exhausted is not None or self._state.pending:
                    return batch, end
                write("exhausted")
                return batch, Finished(str(self.exhausted))
            details = {} if context is None else {"context": dict(context)}
            write("asked", action, until=until, **details)
            batch.append(suggestion(self._state, action))
        return batch, None

    def _choose_action(self, who: str | None, budget: float | None, given: ContextSlice | None) -> Action:
        reason = self.finished or self.exhausted
        if reason is not None:
            raise Finished(reason)
        origin = departure(self._state, who, budget)
        table, choice = self._choose(origin, given)
        affordable = table.affordable
        if given is not None and given.fixed is None:
            affordable = affordable.reshape(-1, len(self.domain))[:, given.rows]  # of all tasks
        if choice is None and not affordable.all():  # with a larger budget there may be something to gain
            raise BudgetSpent(_nothing_affordable(origin, who, useful=bool(affordable.any())))
        excluded = self._learner.excluded
        if choice is None and given is not None and excluded is not None and excluded[given.rows].all():
            raise Finished("every place of this context is excluded or failed; allow some of them to continue")
        if choice is None and given is not None:
            raise Finished("nothing is left to gain in this context")
        if choice is None:
            raise Finished("nothing is left to gain before the pending measurements are told")
        site = None if table.sites is None else int(table.sites[choice.row])
        level = None if self._learner.actions.noise_levels is None else choice.level
        return action_at(
            self._state, table, choice.row, choice.level, site=site, level=level, gain=choice.gain, who=who
        )

    def _choose(self, origin: Departure, given: ContextSlice | None) -> tuple[Candidates, loop.Choice | None]:
        state = self._state
        if given is not None:
            return self._learner.choose(origin, list(state.pending.values()), state.next_id, given)
        start = state.config.start
        table = None if start is None or state.positions else self._learner.actions.candidates(origin)
        excluded = self._learner.excluded
        is_excluded = start is not None and excluded is not None and bool(excluded[start])
        if start is None or table is None or is_excluded or not table.affordable[start]:
            return self._learner.choose(origin, list(state.pending.values()), state.next_id)
        first = table.take(np.array([start]))
        gains = self.policy.score(policy_context(self._learner, 0), first)[0]
        scores = gains / first.cost[0] if self.policy.per_cost else gains
        level = int(np.argmax(np.where(np.isfinite(scores), scores, -np.inf)))  # the policy chooses the noise level
        return table, loop.Choice(start, level, float(gains[level]))

    def candidates(self, who: str | None = None) -> Candidates:
        """Return the table of everything that can be measured next, with its noise and cost.

        Args:
            who: The vehicle; if none of several is meant, no way is paid.
        """
        vehicle = resolve_vehicle(self._state.config, who, self.who, required=False)
        return self._learner.actions.candidates(departure(self._state, vehicle))

    def policy_context(self) -> PolicyContext:
        """Return what the policy sees at the next choice."""
        return policy_context(self._learner, self._state.next_id)

    def gains(self) -> Array:
        """Return the policy's score of every candidate before division by the cost.

        The order is that of the table's flat rows: the noise levels of the first row, then those of the second, ...
        """
        table = in_model_units(self._learner.surrogate, self.candidates())
        return self.policy.score(self.policy_context(), table).ravel()

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(
        self,
        what: Suggestion | int | PointLike,
        y: ValueLike,
        *,
        noise: float | None = None,
        level: int | None = None,
        task: str | None = None,
        cost: float | None = None,
        key: str | None = None,
        who: str | None = None,
    ) -> int:
        """Record a measured value.

        Telling the same value of a suggestion again changes nothing.

        Args:
            what: The suggestion or its id; or the point that was measured, which need not have been suggested: by
                column, as a Series such as a row of the domain's table, or as an array in the order of the columns.
            y: The value: a number, or an array, Series or dictionary of one number.
            noise: Noise variance that the measurement really had; default: the expected one.
            level: Noise level that was used; only for a point of a study with noise levels.
            task: Name of the task that was measured; only for a point. Default: the target.
            cost: Cost that the measurement really had; default: the expected one.
            key: Any text by which a repeated `tell` of the same measurement is recognised; it then changes nothing.
            who: Vehicle that measured; only for a point of a study with vehicles. Default: the author of the study
                object if it is a vehicle, otherwise none of them: then no vehicle moves, and no way is paid.

        Returns:
            The id of the measurement.

        Raises:
            InvalidMeasurementError: If value, noise, cost, level or task cannot be used.
            UnknownSuggestionError: If the suggestion is not one of this study, or was withdrawn.
            ConflictingMeasurementError: If another value was told for the same suggestion.
            InvalidDomainError: If the point is not in the domain.

        Warns:
            OutlierWarning: If the value may be a typing mistake (see `check_value`), and once for each measurement
                that a learned model leaves out as a gross error.

        Example:
            >>> study.tell(suggestion, 7.3)
            >>> study.tell({"distance_m": 300, "depth_m": -8}, 6.9, noise=0.2)
        """
        value, noise, cost = check_measurement(y, noise, cost)
        findings: dict[int, str | None] = {}

        def work(write: WriteEvent) -> int:
            repeated = None if key is None else self._state.id_with_key(key)
            if repeated is not None:
                return repeated
            vehicle = resolve_vehicle(self._state.config, who, self.who, required=False)
            action = resolve_action(
                self._state, what, level, task, who=vehicle, include_observed=True, include_expired=True
            )
            check_vehicle_of(action, who)
            observation = None if action.id in self._state.pending else self._state.observation(action.id)
            if observation is None:
                findings[action.id] = implausible(self._state, with_actual(action, noise, cost), value)
                options = {} if key is None else {"key": str(key)}
                write("told", with_actual(action, noise, cost), y=value, **options)
            else:
                self._check_repeated(observation, value, noise, cost)
            return action.id

        id_ = self._change(work)
        self._stop_reason = None
        self._warn_of_outliers()
        finding = findings.get(id_)
        if finding is not None and id_ not in self._named_outliers:
            warn_of_value(id_, f"{finding}; {correction(id_)}", stacklevel=3)
        small = too_small(self._state)
        if small is not None:
            warn_of_value(id_, small, stacklevel=3)
        return id_

    def tell_repeats(
        self,
        what: Suggestion | int | PointLike,
        values: Sequence[ValueLike],
        *,
        level: int | None = None,
        task: str | None = None,
        key: str | None = None,
        who: str | None = None,
    ) -> list[int]:
        """Record several measurements of the same place, made one after the other without moving.

        Each value counts with the noise of one measurement. The way to the place is paid by the first one alone, and
        the position of the vehicle stays what it was.

        Args:
            what: The suggestion or its id; or the point that was measured. Of a measurement, all values are repeats.
            values: The values, at least one.
            level: As for `tell`.
            task: As for `tell`.
            key: Any text by which a repeated `tell_repeats` of the same values is recognised; it then changes nothing.
            who: As for `tell`.

        Returns:
            The ids of the measurements; `measurements` has a column `repeats` with the id of the first.

        Raises:
            InvalidMeasurementError: If a value, the level or the task cannot be used. Nothing is recorded then.
            UnknownSuggestionError: If the suggestion is not one of this study, or was withdrawn.

        Example:
            >>> study.tell_repeats(study.ask(), [0.9, 1.1, 0.7])
        """
        checked = [check_measurement(value, None, None)[0] for value in values]
        if not checked:
            raise InvalidMeasurementError("tell_repeats needs at least one value, got none; give a list such as [0.9]")
        keys = repeat_keys(key, len(checked))
        with self._transaction() as write:
            known = self._state.ids_with_keys(keys)
            if known:
                return known
            measured = None if isinstance(what, Mapping) else self._state.observation(_id_of(what))
            ids: list[int] = []
            if measured is None:
                ids.append(self.tell(what, checked[0], level=level, task=task, key=keys[0], who=who))
                measured = self._state.observation(ids[0])
            if measured is None:
                raise AssertionError("a told measurement is missing")
            for position in range(len(ids), len(checked)):
                action = repeated_action(self._state, measured[0])
                options = {} if keys[position] is None else {"key": keys[position]}
                write("told", action, y=checked[position], **options)
                ids.append(action.id)
        self._stop_reason = None
        self._warn_of_outliers()
        return ids

    def check_value(
        self,
        what: Suggestion | int | Mapping[str, Any],
        y: float,
        *,
        level: int | None = None,
        task: str | None = None,
    ) -> str | None:
        """Return why a value may be a typing mistake, before it is told; None if it is plausible.

        It may be if it is many standard deviations from what the model predicts or, before there is a model, orders of
        magnitude from the other values and the threshold. `tell` accepts such a value with an `OutlierWarning`.

        Args:
            what: A suggestion or its id, or a point.
            y: The value.
            level: Noise level, of a point only.
            task: Name of the task, of a point only.

        Example:
            >>> study.check_value(suggestion, 73)
            '73 is 12.4 standard deviations from the expected 6.9 ± 5.3'
        """
        value, _, _ = check_measurement(y, None, None)
        action = resolve_action(self._state, what, level, task, include_observed=True, include_expired=True)
        return implausible(self._state, action, value)

    def tell_frame(self, frame: Any, value: str | None = None, *, again: bool = False) -> list[int]:
        """Record a table of measurements, all of them or none.

        The columns are those of the domain, or `id`, or labels of rows, as a column `label`, as one that is called as
        they are in the user's own table, or as index; and the column of values, and optionally noise, cost, level, task
        and who. A row with the id of a suggestion is its value. Rows without a value are left out: what was not
        measured yet stays pending. Rows that were told before, from a table or file, are left out with a warning.

        Args:
            frame: A table of pandas, polars, pyarrow or another library, or the path of a CSV file or Excel workbook.
            value: Name of the column of values; default: "value".
            again: Record rows that were told before as second measurements.

        Returns:
            The ids of the measurements recorded.

        Raises:
            InvalidMeasurementError: If a column is unknown or missing, or a row cannot be used.

        Warns:
            RepeatedMeasurementWarning: If rows were told before.

        Example:
            >>> todo = study.ask_frame(4)
            >>> study.tell_frame(todo.assign(value=[7.3, 6.9, 5.0, 8.1]))
        """
        from truvar.study.frames import new_measurements, read_frame
        from truvar.study.measurements_io import tell_all, without_keys

        measurements = read_frame(frame, self, value)
        if again:
            return tell_all(self, without_keys(measurements))
        return tell_all(self, new_measurements(self, measurements, stacklevel=4))  # one frame is that of `synchronized`

    def ask_frame(
        self,
        n: int = 1,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Suggest where to measure next, as a table.

        Args:
            n: Number of suggestions, chosen as a batch.
            lease: Seconds for which the suggestions are reserved, as for `ask`.
            who: Vehicle that the suggestions are for, as for `ask`.
            budget: Total cost that the study must stay within, as for `ask`.
            context: Value of every context column, as for `ask`.

        Returns:
            A DataFrame with the columns id, the coordinates, level, task and who if the study has some, and cost. Its
            index has the labels of the rows of the user's own table. With a column `value` it goes to `tell_frame`.

        Raises:
            Finished: If the study is finished, or its policy sees nothing more to gain.
        """
        from truvar.study.frames import suggestion_frame

        batch = self.ask(n, lease=lease, who=who, budget=budget, context=context)
        return suggestion_frame(batch, self.domain)

    def _warn_of_outliers(self) -> None:
        """Name the measurements that are left out as gross errors, each once; called by what the user calls."""
        new = [id_ for id_ in outlier_ids(self._state) if id_ not in self._named_outliers]
        self._named_outliers.update(new)
        if new:
            warn_of_outliers(self._state, new, stacklevel=4)  # the frame between is that of `synchronized`

    def _check_repeated(
        self, observation: tuple[Action, float], value: float, noise: float | None, cost: float | None
    ) -> None:
        """Refuse a measurement that differs from the one recorded under the same id."""
        action, known = observation
        again = with_actual(action, noise, cost)
        if (known, action.noise, action.cost) == (value, again.noise, again.cost):
            return
        id_ = action.id
        correction = for_interface(
            f"correct({id_}, {value:.10g})", cli=f"truvar correct {id_} {value:.10g}", http=f"id {id_}, y {value:.10g}"
        )
        raise ConflictingMeasurementError(
            f"suggestion {id_} already has the value {known:.10g}, got {value:.10g}; if the first was wrong, correct "
            f"it: {correction}; a second measurement of that point is told by its coordinates: "
            f"{format_point(suggestion(self._state, action).point)}"
        )

    def correct(
        self,
        what: Suggestion | int,
        y: float,
        *,
        noise: float | None = None,
        cost: float | None = None,
        was: float | None = None,
    ) -> None:
        """Replace the value of a measurement.

        Everything that follows from the value is computed again, as if the right one had been told at the time. The
        suggestions made in between stay as they were.

        Args:
            what: The measurement: its id, or the suggestion it belongs to.
            y: The right value.
            noise: Noise variance that the measurement really had; default: as before.
            cost: Cost that the measurement really had; default: as before.
            was: The value that is replaced, for a correction that may be made late or twice: if it has been made,
                nothing changes, and if the measurement has a third value by now, it is refused.

        Raises:
            InvalidMeasurementError: If value, noise or cost cannot be used.
            ConflictingMeasurementError: If the measurement has neither the value `was` nor the right one.
            UnknownSuggestionError: If nothing was measured under that id.

        Warns:
            OutlierWarning: If the model leaves out the corrected value too, or now another one.
        """
        value, noise, cost = check_measurement(y, noise, cost, corrects=True)

        def work(write: WriteEvent) -> int:
            action = resolve_observed(self._state, what)
            corrected = with_actual(action, noise, cost)
            if was is None or not is_corrected(self._state, corrected, value, was):
                write("corrected", corrected, y=value)
            return action.id

        id_ = self._change(work, rewrites=True)
        self._stop_reason = None
        self._named_outliers.discard(id_)
        self._warn_of_outliers()

    def withdraw(self, what: Suggestion | int, reason: str | None = None, *, again: bool = False) -> None:
        """Withdraw a suggestion that will not be measured, or remove a measurement that was a mistake.

        The place of a withdrawn suggestion is excluded: it is not suggested again until `allow`. With `again` it may
        be, and the study is as if the suggestion had never been made; so it is after a measurement was removed.

        Args:
            what: The suggestion or measurement, or its id.
            reason: Why, for the event log.
            again: Whether the place may be suggested again.

        Raises:
            UnknownSuggestionError: If there is no such suggestion or measurement.
        """
        if isinstance(what, Mapping):
            raise UnknownSuggestionError(
                f"withdraw takes a suggestion or its id, got the point {format_point(what)}; give the id"
            )

        def work(write: WriteEvent) -> None:
            action = resolve_action(self._state, what, include_observed=True)
            was_pending = action.id in self._state.pending
            details: dict[str, Any] = {"id": action.id}
            if reason is not None:
                details["reason"] = str(reason)
            write("withdrawn", None, **details)
            if was_pending and not again:
                place = place_of(action, self.domain)
                write("excluded", of=action.id, reason=str(reason or "withdrawn"), **place.to_details())

        self._change(work, rewrites=True)

    def exclude(self, what: Any, reason: str | None = None) -> None:
        """Exclude a place that cannot be measured, or must not be: it is not suggested until `allow`.

        A pending suggestion at the place is withdrawn. What was measured there counts as before. A level set includes
        the place, as the function has a value there too; an optimum does not, as it could not be used. Excluding it
        again for the same reason changes nothing.

        Args:
            what: A suggestion or measurement or its id; a point by column; a region, as an interval for some columns,
                such as {"x": (0, 10)}; a condition such as "x + y > 3"; a polygon; on a finite domain a Boolean mask
                or a function of its points (n, d). In a box, a point stands for those within 1 % of the box's sides.
            reason: Why, for the event log and the report.

        Raises:
            InvalidArgumentError: If it is nothing of that kind, or holds no point of the domain.
            UnknownSuggestionError: If there is no such suggestion.
            InvalidDomainError: If a point or condition cannot be used.

        Example:
            >>> study.exclude(suggestion, reason="under a jetty")
            >>> study.exclude("distance_m > 1200 and depth_m < -15", reason="rocks")
        """

        def work(write: WriteEvent) -> None:
            place, id_ = resolve_place(self._state, what)
            for action in list(self._state.pending.values()):
                if place.contains(self.domain, action.point[None, : len(self.domain.columns)])[0]:
                    write("withdrawn", id=action.id)
            if not is_recorded_exclusion(self._state, place, _text(reason)):
                write("excluded", of=id_, reason=_text(reason), **place.to_details())

        self._change(work)
        self._stop_reason = None

    def allow(self, what: Any = None) -> None:
        """Allow a place again that was excluded or withdrawn, or where a measurement failed.

        Failures there are forgotten: they say nothing any more about what can be measured.

        Args:
            what: The place, as for `exclude`; None: everywhere.

        Example:
            >>> study.allow("distance_m > 1200")
        """

        def work(write: WriteEvent) -> None:
            place, id_ = (Place(), None) if what is None else resolve_place(self._state, what)
            write("allowed", of=id_, **place.to_details())

        self._change(work)
        self._stop_reason = None

    def fail(
        self,
        what: Suggestion | int | Mapping[str, Any],
        reason: str | None = None,
        *,
        cost: float | None = None,
        who: str | None = None,
    ) -> int:
        """Record that a measurement failed, so that there is no value. Recording it again changes nothing.

        The place is not suggested again until `allow`, and from all failures and successes the study learns where
        measurements are likely to fail: the gain of a measurement is multiplied by the probability that it succeeds.

        Args:
            what: The suggestion or its id; or the point where it was tried.
            reason: Why, for the event log and the report.
            cost: What the attempt cost; default: what the measurement was expected to cost. It counts in `spent`, and
                in the budget of the vehicle that tried.
            who: Vehicle that tried; only for a point of a study with vehicles, as for `tell`.

        Returns:
            The id of the attempt.

        Raises:
            UnknownSuggestionError: If the suggestion is not one of this study, or no longer pending.
            InvalidMeasurementError: If the cost is not a number >= 0, or the suggestion is for another vehicle.

        Example:
            >>> study.fail(suggestion, reason="probe stuck in weed")
        """
        _, _, cost = check_measurement(0.0, None, cost)

        def work(write: WriteEvent) -> int:
            recorded = recorded_failure(self._state, what, _text(reason), cost)
            if recorded is not None:
                return recorded
            level = 0 if isinstance(what, Mapping) and self.levels is not None else None
            vehicle = resolve_vehicle(self._state.config, who, self.who, required=False)
            action = resolve_action(self._state, what, level, who=vehicle, include_expired=True)
            check_vehicle_of(action, who)
            write("failed", with_actual(action, None, cost), reason=_text(reason))
            return action.id

        id_ = self._change(work)
        self._stop_reason = None
        return id_

    @property
    def failures(self) -> list[FailureRecord]:
        """The measurements that failed, in order, with their reasons and costs."""
        return failure_records(self._state)

    @property
    def exclusions(self) -> list[Exclusion]:
        """The exclusions and permissions in the order they were made; a later one overrides earlier ones."""
        return list(self._learner.exclusions)

    def note(self, text: str) -> None:
        """Write a remark into the event log."""
        with self._transaction() as write:
            write("noted", text=str(text))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make several changes in one transaction: all of them are stored at the end, or none if one fails.

        Other threads wait until it ends. Another asyncio task cannot wait without blocking its event loop, so it gets a
        `StudyBusyError`: await nothing within a transaction.

        Example:
            >>> with study.transaction():
            ...     study.tell(1, 7.3)
            ...     study.tell(2, 6.9)
        """
        with self._transaction():
            yield

    def refresh(self) -> None:
        """Take over the changes that others made to the stored study."""
        if self._write is None:  # a transaction has taken them over, and nobody else can write while it lasts
            self._state.replay(self._event_log.since(self._state.version))

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of the last event that this object knows."""
        return self._state.version

    @property
    def steps(self) -> int:
        """Number of measurements."""
        return len(self._learner.observations)

    @property
    def spent(self) -> float:
        """Total cost of the measurements, those that failed included."""
        return self._learner.spent

    @property
    def pending(self) -> list[Suggestion]:
        """Suggestions that are neither measured nor withdrawn."""
        return [suggestion(self._state, action) for action in self._state.pending.values()]

    @property
    def limits(self) -> dict[str, float]:
        """Limits that the study is meant to end at, by name."""
        return dict(self._state.config.limits)

    @property
    def epsilon(self) -> float:
        """Largest error of the answer if the bounds hold; the certificate says of which point."""
        return self._learner.epsilon

    @property
    def epoch(self) -> Epoch:
        """The present epoch i, with eta_(i), beta_(i) and t_(i)."""
        return self._learner.state.epoch

    @property
    def tasks(self) -> Tasks | None:
        """The tasks that may be measured; None if there is only the target."""
        return self._state.config.prior.tasks

    @property
    def learned_tasks(self) -> Tasks | None:
        """The tasks with what is learned of them, in the user's units: covariance, noise and mean of each.

        The covariance multiplies `kernel`. The most probable values are given; as long as there are none, typical ones.
        """
        return self._learner.surrogate.learned_tasks

    @property
    def levels(self) -> NoiseLevels | None:
        """The noise levels to choose from; None if there are none."""
        return self._learner.actions.noise_levels

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position."""
        return self._learner.actions.travels

    @property
    def vehicles(self) -> dict[str, Vehicle]:
        """Vehicles or crews that work on the study, by name; none for a single crew."""
        return dict(self._state.config.vehicles)

    @property
    def vehicle_statuses(self) -> list[VehicleStatus]:
        """Position, costs, way back and budget of every vehicle, or of the single crew."""
        return vehicle_statuses(self._state)

    @property
    def returns(self) -> bool:
        """Whether the way back to the start is compulsory."""
        return self._learner.actions.returns

    @property
    def engine(self) -> str:
        """Name of the engine that computes the scores."""
        return self._learner.engine.name

    @property
    def kernel(self) -> Kernel:
        """The kernel in use, as given or as last fitted."""
        return to_sklearn(self._learner.surrogate.kernel)

    @property
    def transform(self) -> OutputTransform:
        """The transform of the values that are modelled, as given or as last fitted; the identity by default."""
        return self._learner.surrogate.transform

    @property
    def finished(self) -> str | None:
        """Why nothing is left to find out, with the probability that supports it; None as long as something is."""
        update, reason = self._finished
        if update != self._state.n_updates:
            reason = why_finished(self._state, self._statement_inputs)
            self._finished = (self._state.n_updates, reason)
        return reason

    @property
    def exhausted(self) -> str | None:
        """Why the policy suggests nothing more although the study is not finished; None as long as it does."""
        if self.finished is not None:
            return None
        if stops_at_sets(self._learner):
            return (
                "the policy's own bounds, a rule of thumb, leave nothing undecided, which is not enough to call the "
                'study finished; policy "auto" continues'
            )
        if not self._state.exhausted:
            return None
        excluded = self._learner.excluded
        if excluded is not None and excluded.all():
            return "every place is excluded or failed; allow some of them to continue"
        return "the policy sees nothing more to gain"

    @property
    def measurements(self) -> pd.DataFrame:
        """One row per measurement, in order: id, index, the coordinates, level, task, noise, cost, spent, value.

        Where a coordinate has one of these names, the latter gets an underscore: `value_`.
        """
        return measurements(self._state)

    def measurement_records(self) -> list[MeasurementRecord]:
        """Return the measurements in the order in which they were told, as records instead of a DataFrame."""
        return measurement_records(self._state)

    @property
    def history(self) -> pd.DataFrame:
        """One row per measurement: epoch, eta, beta, sizes of the regions, epsilon and best point after it."""
        import pandas as pd

        return pd.DataFrame(self._state.history, columns=list(HISTORY_COLUMNS))

    @property
    def events(self) -> pd.DataFrame:
        """The event log: number, time, who, kind, details."""
        import pandas as pd

        rows = [(event.number, event.time, event.who, event.kind, event.details) for event in self._event_log.since(0)]
        frame = pd.DataFrame(rows, columns=["number", "time", "who", "kind", "details"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True))

    def result(self) -> Result:
        """Return what is known now: regions, posterior, bounds, best point and certificate."""
        reason = self.finished or self.exhausted or self._stop_reason
        return result(self._state, reason, self._statement_inputs())

    def check_stop(
        self,
        *,
        f1: float | None = None,
        regret: float | None = None,
        relative_regret: float | None = None,
        improvement_per_cost: float | None = None,
    ) -> StopCheck:
        """Return whether what is known now allows to stop, as `run` checks it after every measurement.

        Joint statements are computed only where single points do not rule out that the limit is reached.

        Args:
            f1: Level set: reached when `result().expected_f1.low` is at least this.
            regret: Optimum: reached when `result().expected_regret.high` is at most this, in the user's units.
            relative_regret: Optimum: the same, as a share of the range of the posterior mean over the domain.
            improvement_per_cost: Optimum: reached when `improvement_per_cost()` is less than this.

        Returns:
            The `reason`, None as long as no limit is reached; and the `obstacle`, if the only one is that the
            measurements contradict the model.

        Raises:
            InvalidArgumentError: If a limit has the wrong type or range.
            UnsupportedGoalError: If a limit does not suit the goal.

        Example:
            >>> while study.check_stop(f1=0.95).reason is None:
            ...     suggestion = study.ask()
            ...     study.tell(suggestion, measure(suggestion.point))
        """
        limits = RunLimits(
            f1=f1, regret=regret, relative_regret=relative_regret, improvement_per_cost=improvement_per_cost
        )
        limits.check_goal(self.goal)
        checks = [
            stop_check(self._state, limits.statements, self._statement_inputs, origin)
            for origin in self._departures(every=improvement_per_cost is not None)
        ]
        return next((check for check in checks if check.reason is None), checks[0])

    def _departures(self, *, every: bool = True) -> list[Departure]:
        """Return the departures of all vehicles, or of the first; what does not travel is the same for all."""
        names: list[str | None] = [*self._state.config.vehicles] or [None]
        return [departure(self._state, name) for name in (names if every else names[:1])]

    def improvement_per_cost(self) -> float:
        """Return what the next measurement is worth: the largest expected improvement per unit cost.

        The improvement is that of the function's value over the best posterior mean at a measured point, in the user's
        units, averaged over the hyperparameters if they are learned. The cost is that of the cheapest noise level.

        Returns:
            The rate; infinite as long as there is no model.

        Raises:
            UnsupportedGoalError: If the goal is a level set.

        Example:
            >>> study.improvement_per_cost()
            0.0131
        """
        inputs = self._statement_inputs()
        return max(improvement_per_cost(self._learner, inputs, origin) for origin in self._departures())

    def _statement_inputs(self) -> StatementSource:
        """Return what joint statements depend on; they are computed once for all who ask."""
        update, inputs = self._statements
        if inputs is None or update != self._state.n_updates:
            inputs = statement_inputs(self._state)
            self._statements = (self._state.n_updates, inputs)
        return inputs

    def best_for(self, context: Mapping[str, Any]) -> Best:
        """Return the point of best posterior mean in a given context, excluded ones left out if others remain.

        Args:
            context: Value of every context column of the domain. On a grid or table the nearest one of the domain
                counts; in a box the point has exactly that context.

        Raises:
            InvalidArgumentError: If the domain has no context, or other columns.

        Example:
            >>> study.best_for({"temperature": 21.5}).point
        """
        given = slice_in_context(self.domain, context)
        if given is None or given.fixed is None:
            return self.result().best_for(context)
        x = best_in_context(self._learner, given)
        mean, variance = self._learner.surrogate.predict(x[None, :])
        return Best(None, self.domain.named(x), float(mean[0]), float(np.sqrt(variance[0])))

    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        """Predict the target at any points, which need not be the domain's.

        Args:
            points: Values, shape (q, d); also a list of points by column, or a DataFrame with the columns.

        Returns:
            Posterior mean (q,) and standard deviation (q,).

        Raises:
            InvalidArgumentError: If the shape is wrong.
            PointNotInDomainError: If the prior mean is a column or array, which has values at the points of the domain
                only, and a point is another one.
        """
        mean, variance = self._learner.surrogate.predict(self.domain.encode(points))
        return mean, np.sqrt(variance)

    def predict_measurement(self, what: Suggestion | int | Mapping[str, Any]) -> tuple[float, float]:
        """Predict the value that a measurement would give, its noise included.

        Args:
            what: A pending suggestion, its id, or a point.

        Returns:
            Mean and standard deviation; the latter is infinite as long as the model is not fitted.
        """
        surrogate = self._learner.surrogate
        mean, variance = surrogate.predict_measurement(resolve_action(self._state, what))
        sd = float(np.sqrt(variance)) if surrogate.fitted else float("inf")
        return mean, sd

    def sample_measurement(self, what: Suggestion | int, rng: np.random.Generator) -> float:
        """Draw a value that a pending suggestion could give.

        A study that is told such values runs on a function drawn from its own prior.

        Args:
            what: A pending suggestion or its id.
            rng: Source of randomness.
        """
        mean, variance = self._learner.surrogate.predict_measurement(resolve_action(self._state, what))
        return float(rng.normal(mean, np.sqrt(variance)))

    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        """Return the expected effect of a pending suggestion by itself; None as long as the model is not fitted.

        Args:
            what: A pending suggestion or its id.
        """
        return lookahead(self._learner, resolve_action(self._state, what))

    def theory_setting(self) -> TheorySetting:
        """Return what the functions of `truvar.theory` take: prior, noise and cost of every measurement, epochs.

        Raises:
            InvalidModelError: If part of the model is learned, as the theory is about a known model.
        """
        from truvar.theory import TheorySetting

        if self._learner.surrogate.is_learned:
            remedy = for_interface("kernel, mean and noise", problem="[model] lengthscales and mean, and [noise]")
            raise InvalidModelError(f"bounds need a known model, but part of this one is learned; give {remedy}")
        return TheorySetting.of(self._learner.posterior, self._learner.actions.candidates(None), self.policy.confidence)

    def to_json(self) -> str:
        """Return the whole study, problem and events, as text for `Study.from_json`.

        Raises:
            SerializationError: If a setting, such as a Python function, cannot be stored.
        """
        return study_to_json(self.name, self._event_log.since(0))

    @classmethod
    def from_json(
        cls, text: str, *, store: str | EventLog | None = None, name: str | None = None, who: str | None = None
    ) -> Study:
        """Open a study that `to_json` wrote.

        Args:
            text: The text.
            store: URL of the database to put the study into, or an empty event log; default: memory.
            name: Name of the study; default: its own.
            who: Author of the events that this object writes; default: the user and the machine.

        Raises:
            SerializationError: If the text is not an exported study, or of an unknown format.
            DamagedStudyError: If its events do not make a study.
            StudyExistsError: If the store has a study of that name already.
        """
        stored_name, events = study_from_json(text)
        study = cls.from_event_log(InMemoryEventLog(events), name or stored_name, who)
        if store is not None:
            study._event_log = _new_event_log(store, study.name)
            with study._event_log.transaction(0) as transaction:
                transaction.appended = events
                transaction.summary = study._state.summary
        return study

    def plot(self, truth: Any = None, kind: str = "overview", **options: Any) -> Any:
        """Draw the study.

        Args:
            truth: True values on the domain, where they are known.
            kind: What to draw, by the names of `tv.plot`: "overview", "map", "slices", "contours", "convergence",
                "importance", "model_check" or "route".
            options: Further arguments of that function, such as theme="dark" or backend="plotly".

        Returns:
            A matplotlib Figure, or one of Plotly.

        Raises:
            InvalidArgumentError: If there is no such kind, or it does not take an argument.
            MissingDependencyError: If matplotlib, or Plotly, is not installed.

        Example:
            >>> study.plot(kind="slices", theme="dark")
        """
        from truvar.plot import plot_kind

        return plot_kind(self, kind, truth=truth, **options)

    def plot_model_check(self) -> Any:
        """Draw every measured value against what the others predict, with 95 % intervals, and the calibration.

        Returns:
            A matplotlib Figure.

        Raises:
            MissingDependencyError: If matplotlib is not installed.
        """
        from truvar.report import plot_model_check

        return plot_model_check(self)

    def __repr__(self) -> str:
        from truvar.report import study_text

        return study_text(self)

    def _repr_html_(self) -> str:
        from truvar.report import study_html

        return study_html(self)

    # -- running -------------------------------------------------------------------------------------------------------

    def run(
        self,
        f: Callable[..., float],
        *,
        budget: float | None = None,
        steps: int | None = None,
        epsilon: float | None = None,
        f1: float | None = None,
        regret: float | None = None,
        improvement_per_cost: float | None = None,
        executor: Any = None,
        workers: int | None = None,
        retries: int | None = None,
        max_failures: int | None = None,
        resume: bool | Sequence[Suggestion] = False,
        lease: float | None = None,
        context: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        progress: bool | Callable[[Study], object] | None = None,
        callbacks: Sequence[Callable[[Study, Suggestion, float], object]] = (),
    ) -> Result:
        """Ask, measure and tell until the first limit is reached.

        Without any limit the run ends at those of the study; if it has none, at an expected F1 of 0.95 for a level set,
        and for an optimum at an expected regret of 1 % of the range of the posterior mean over the domain.

        `f1`, `regret` and `improvement_per_cost` are statements given the model. They end a run neither before there is
        a model and five measurements (with a learned model ten), nor while `result().model_check` fails because the
        model is overconfident or a value does not fit: a statement that the measurements contradict must not end it. A
        warning says so.

        Args:
            f: Measures a point: `f(point)`; with noise levels `f(point, level)`, with tasks `f(point, task)`,
                with both `f(point, level, task)`.
            budget: Stop before the total cost exceeds this, counted from the beginning of the study.
            steps: Stop after this number of measurements, counted from the beginning of the study.
            epsilon: Stop when the largest possible error is at most this.
            f1: Level set: stop when the F1 score of the classification is at least this with 97.5 % probability, that
                is when `result().expected_f1.low` is.
            regret: Optimum: stop when the regret of the recommended point is at most this with 97.5 % probability, that
                is when `result().expected_regret.high` is. In the user's units.
            improvement_per_cost: Optimum: stop when the next measurement is not worth its cost, that is when
                `improvement_per_cost()` is less than this.
            executor: Where to measure: anything with `submit`, such as a pool of threads or processes, loky's
                executor, a `dask.distributed.Client`, a `RayExecutor` or an MPI pool; or a `multiprocessing.Pool` or a
                `joblib.Parallel`. Default: one measurement after the other, here.
            workers: Number of measurements at once; default: the number of workers of the executor.
            retries: How often a measurement is repeated if `f` raises or returns None, NaN or an infinite number. Then
                it is recorded as failed, with the message as its reason (see `fail`), and the run continues elsewhere,
                with a warning. Default: that of the study's limits, or else 1 on an executor and 0 without.
            max_failures: Stop when more measurements than this have failed in this run. Default: that of the study's
                limits; without one a run ends, with an exception, only if the first 5 of a study fail, or later 10 in a
                row.
            resume: Measure the pending suggestions (or the given ones) first, as a run that died has left them.
            lease: Seconds for which every suggestion is reserved, so that others need not wait for a run that died.
            context: The context of all measurements, as for `ask`; or a function that returns it, called before each.
            progress: Show the progress, on stderr or in a notebook; or a function that is called with the study after
                each measurement. Default: only in a terminal or notebook, if neither the run nor the study has a limit.
            callbacks: Functions that are called with the study, the suggestion and its value after each measurement.
                One that returns True, or a text that says why, ends the run.

        Returns:
            The result; its `reason` says which limit was reached.

        Raises:
            InvalidArgumentError: If an argument has the wrong type or range.
            UnsupportedGoalError: If a limit does not suit the goal.
            MeasurementFailedError: If too many measurements in a row failed and `max_failures` is not given.
            ExecutorError: If the executor cannot be used.

        Example:
            >>> result = study.run(measure, f1=0.95, budget=500, progress=True)
            >>> result.reason
            'expected F1 0.967 (0.951 to 0.98) reached 0.95'
        """
        from truvar.study.runner import run

        self._stop_reason = run(
            self,
            f,
            RunLimits(budget, steps, epsilon, f1, regret, improvement_per_cost),
            executor=executor,
            workers=workers,
            retries=retries,
            max_failures=max_failures,
            resume=resume,
            lease=lease,
            context=context,
            progress=progress,
            callbacks=callbacks,
        )
        return self.result()

    def fit(self, frame: pd.DataFrame | str | Path, value: str | None = None) -> Model:
        """Fit the model to another data set and take it as known from then on.

        Args:
            frame: A table, or the path of a CSV file or Excel workbook, with the domain's columns and a column of
                values.
            value: Name of the column of values; default: the only other column.

        Returns:
            The fitted model.

        Raises:
            StudyStartedError: If the study has suggestions or measurements already.
        """
        table = as_table(frame)
        with self._transaction() as write:
            if self._state.positions:
                raise StudyStartedError(
                    "fit must come before the first suggestion, but this study has some; create a new study"
                )
            model = self._learner.surrogate.fit_table(table, value)
            write("fitted", model=model)
        return model

    # -- deprecated names ----------------------------------------------------------------------------------------------

    expects = deprecated_alias("predict_measurement", removed_in="0.4.0")
    imagine = deprecated_alias("sample_measurement", removed_in="0.4.0")
    outlook = deprecated_alias("lookahead", removed_in="0.4.0")
    resumed = deprecated_alias("from_event_log", removed_in="0.4.0")
    scene = deprecated_alias("policy_context", removed_in="0.4.0")
    setting = deprecated_alias("theory_setting", removed_in="0.4.0")
    together = deprecated_alias("transaction", removed_in="0.4.0")

    # -- private -------------------------------------------------------------------------------------------------------

    @property
    def _learner(self) -> ActiveLearner:
        return self._state.learner


def _nothing_affordable(origin: Departure, who: str | None, *, useful: bool) -> str:
    """Return why a vehicle is suggested nothing more; `useful`: it could pay for what gains nothing."""
    owner = "" if who is None else f" of {who}"
    back = "" if origin.home is None else " and the way back"
    measurement = "useful measurement" if useful else "measurement"
    return f"the {max(origin.left, 0.0):.6g} left of the budget{owner} do not pay for another {measurement}{back}"


def _id_of(what: Any) -> int:
    """Return the id of a suggestion or measurement; -1 if it is none, which `tell` then refuses."""
    id_ = what.id if isinstance(what, Suggestion) else what
    return int(id_) if isinstance(id_, (int, np.integer)) and not isinstance(id_, bool) else -1


def _stored_config(config: StudyConfig) -> StudyConfig:
    """Return the settings as they are in a store.

    Raises:
        TruvarError: If they cannot be stored, or are invalid in the first place, which is the better message.
    """
    try:
        return config.round_trip()
    except Exception:
        config.make_learner()
        raise


def _new_event_log(store: Any, name: str | None) -> EventLog:
    """Return an empty event log: in the database of that URL, or the one given."""
    if not hasattr(store, "transaction"):
        from truvar.storage import open_storage

        return open_storage(store).create_study(name)
    if store.since(0):
        raise InvalidArgumentError(
            "a new study needs an empty event log, got one with events; open it with Study.from_event_log(event_log, "
            "name), or give an empty one"
        )
    event_log: EventLog = store
    return event_log


def _text(reason: str | None) -> str | None:
    """Return a reason as text, as events hold it."""
    return None if reason is None else visible(str(reason))


def _family(kernel: Any, transform: Any) -> Any:
    """Return the kernel, or what `Learned(...)` a name or None stands for, with the transform if one is given."""
    if kernel is None or isinstance(kernel, str):
        kernel = Learned(kernel or "matern52")
    if transform is None:
        return kernel
    if not isinstance(kernel, Learned):
        raise InvalidModelError(
            f"transform={transform!r} is for a learned model, got the known kernel {kernel}; leave out the kernel to "
            "learn it, or leave out the transform and give transformed values"
        )
    return replace(kernel, transform=transform)


def _start_index(domain: Domain, start: Any, seed: int) -> int | None:
    """Return the row of the first suggestion, or None if the policy chooses it."""
    if start is None:
        return None
    if isinstance(start, Mapping):
        index, x = domain.locate(start)
        return domain.nearest(x) if index is None else index
    if isinstance(start, str) and start == "random":
        return int(np.random.default_rng(seed).integers(len(domain)))
    if isinstance(start, bool) or start not in range(len(domain)):
        raise InvalidArgumentError(
            f"start must be 'random', a point or an index below {len(domain)}, got {start!r}; give one of them"
        )
    return int(start)
