"""`Study`: suggests where to measure next, records the values, and reports the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truvar._deprecation import deprecated_alias, deprecated_argument
from truvar._typing import Array
from truvar.acquisition import Policy, policy_named
from truvar.acquisition.registry import DEFAULT_POLICY
from truvar.algorithm._several import learner_of
from truvar.algorithm.recommendation import best_in_context
from truvar.domain.costs import CostLike, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.domain.given_context import slice_in_context
from truvar.domain.goals import Goal
from truvar.domain.learned_cost import as_cost
from truvar.domain.noise_sd import given_variance
from truvar.domain.quantity import QuantityName
from truvar.domain.repeats import check_repeats
from truvar.domain.vehicles import Departure, Vehicle, check_vehicles
from truvar.engines import EngineLike
from truvar.exceptions import (
    DamagedStudyError,
    InvalidArgumentError,
    StudyExistsError,
    TruvarError,
)
from truvar.inference.inputs import predict, predict_measurement
from truvar.inference.limits import StatementLimits, StopCheck, improvement_per_cost
from truvar.models.likelihoods import Outcome, outcome_named
from truvar.models.mean import MeanLike
from truvar.models.priors import Learned, Prior, Quantity
from truvar.storage.base import Event as StoredEvent
from truvar.storage.base import EventLog, whoami
from truvar.storage.memory import InMemoryEventLog
from truvar.storage.serialization import study_from_json, study_to_json
from truvar.study._events import StudyConfig
from truvar.study._existing import check_if_exists, check_same_settings, existing_event_log
from truvar.study._handlers import HANDLERS
from truvar.study._inputs import check_measurement
from truvar.study._local_views import LocalViews
from truvar.study._plausibility import implausible
from truvar.study._quantities import check_quantities, check_values, family_of, name_of_quantity
from truvar.study._resolve import resolve_action
from truvar.study._session import StudySession, synchronized
from truvar.study._state import StudyState
from truvar.study.base import BaseStudy
from truvar.study.commands import Command, Correct, Receipt
from truvar.study.limits import check_study_limits
from truvar.study.lookahead import Lookahead, lookahead
from truvar.study.operations import HistoryRow
from truvar.study.outliers import outlier_ids, outlier_messages
from truvar.study.records import (
    FailureRecord,
    MeasurementRecord,
    failure_records,
    measurement_records,
)
from truvar.study.result import Best, Result
from truvar.study.suggestion import Suggestion, suggestion_of
from truvar.study.vehicles import VehicleStatus, check_starts, departure, vehicle_statuses
from truvar.validation import check_boolean, check_integer, check_names

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

    from truvar.study.measurements_io import MeasurementInput


@synchronized
class Study(BaseStudy, LocalViews):
    """A search for an optimum or a level set, one measurement at a time.

    `ask` says where to measure, `tell` takes the value, and `result` says at any time what is
    known.

    The state of a study is rebuilt from its event log. Several people or programs may work on a
    stored study at the same time. Each change first replays events written by others; reads reflect
    the last change or `refresh()`.

    One object may be shared by threads and by asyncio tasks: its methods wait for each other. A
    transaction keeps the others out until it ends, so a task must not await anything within one.

    Args:
        domain: Where to look, such as `Domain.grid(x=..., y=...)`.
        goal: What to look for: `Maximize()`, `Minimize()` or `LevelSet(7.0)`.
        kernel: A scikit-learn kernel, whose hyperparameters are fixed as given; or the family to
            learn from the measurements: its name, `Learned(...)`, or None for the default family.
            `Learned(kernel=ConstantKernel() * RBF())` learns those of a scikit-learn kernel.
        mean: Prior mean. A number is a constant; None: a constant that is estimated from the
            measurements. The name of a column of the domain's table, an array with a value per
            point of the domain, or a function of points (q, d) that returns (q,) is a mean
            function, and the kernel describes the deviations from it. With a known kernel it is
            taken unchanged; with a learned one a constant on top of it is learned too.
        noise: Noise variance of a measurement: a number, column name, array, function of the
            points, or `NoiseLevels`; None: learned from the measurements.
        noise_sd: Standard deviation of a measurement, the ± of the instrument, instead of `noise`:
            a number, column name, array or function of the points.
        outcome: What a measurement gives: None for a number with normal noise, "binary" or
            `Binary(...)` for yes (1) or no (0), "count" or `Count(...)` for a number of events.
            Thresholds and statements are then about the probability of a yes, or the rate of the
            events, and kernel, mean and noise are learned.
        transform: How values are transformed before they are modelled, as the field of `Learned`:
            "auto" for a power of them if they call for one, "log" for their logarithms, "none".
            With "log" a given mean or noise variance is that of the logarithms. Default: that of
            the kernel, "auto" if it is learned.
        exact_model: Whether claims take a given kernel as the truth. By default it is a prior: it
            shares claims with a learned kernel, by how well each explains the measurements.
        cost: Cost of a measurement: a number, column name, array, function of the points and the
            last one, or `Cost`; "learned" or `LearnedCost` where it is only known afterwards and
            told with the value. Default: 1, or the cost of the noise level.
        tasks: Correlated quantities that may be measured instead of the target.
        vehicles: Vehicles or crews that work on the study, by name, each with a position of its
            own; or a list of their names. Default: a single crew.
        quantities: Model and cost of each quantity by its name, where the goal is about several;
            those that are left out are as the study's own arguments say.
        repeats: Whether a place may be suggested again: False for exact or destructive
            measurements, a number for that many measurements of a place, True wherever it pays per
            unit cost. Default: where it pays, but a batch goes to other places rather than save
            travel. Values that are told are always taken.
        policy: How the next measurement is chosen: a policy or its name; default: "auto".
            `TruVaR()` is the algorithm of the paper.
        start: The first suggestion: "random", an index or a point; default: the policy's own
            choice.
        seed: Seed of everything that is drawn.
        engine: How scores are computed: "dense", "dense32", "dense64", "lazy" or a factory;
            default: chosen by the size of the domain.
        quantity: Name of what is measured, such as "oxygen", for axes, titles and sentences.
        unit: Its unit, such as "mg/l".
        limits: Limits that the study is meant to end at, by the names that `run` has for them, kept
            with it for those who work on it; `run` uses them if it is given none.
        store: URL of the database that keeps the study, such as "sqlite:///lake.db", or an empty
            event log; default: memory.
        name: Name of the study; required in a database.
        if_exists: What to do if the store has a study of that name: "fail", or "load" to continue
            it, which must have been created with the same settings.
        author: Author of the events that this object writes; default: the user and the machine. If
            it is the name of a vehicle, that vehicle asks and measures.

    Raises:
        InvalidArgumentError: If an argument has the wrong type or range.
        InvalidModelError: If kernel, mean, noise and tasks do not make a model.
        UnknownPolicyError: If there is no policy of that name.
        UnsupportedGoalError: If the policy or a limit does not serve the goal.
        SerializationError: If the study is to be stored and one of its settings cannot be.
        StudyExistsError: If the store has a study of that name already, and it is not to be
            loaded or has other settings.

    Example:
        >>> study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 50)), tv.LevelSet(0.5))
        >>> suggestion = study.ask()
        >>> study.tell(suggestion, measure(suggestion.point))
        >>> study.result().above
    """

    @deprecated_argument("who", "author", removed_in="0.5.0")
    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        *,
        kernel: Kernel | str | Learned | None = None,
        mean: MeanLike | None = None,
        noise: NoiseLike | None = None,
        noise_sd: float | str | ArrayLike | Callable[[Array], ArrayLike] | None = None,
        outcome: Literal["binary", "count"] | Outcome | None = None,
        transform: Literal["auto", "log", "none"] | None = None,
        exact_model: bool = False,
        cost: CostLike | None = None,
        tasks: Tasks | None = None,
        vehicles: Mapping[str, Vehicle] | Sequence[str] | None = None,
        quantities: Mapping[str, Quantity] | None = None,
        repeats: bool | int | None = None,
        policy: Policy | str | None = None,
        start: Literal["random"] | int | Mapping[str, Any] | None = None,
        seed: int = 0,
        engine: EngineLike = None,
        limits: Mapping[str, float] | None = None,
        quantity: str | None = None,
        unit: str | None = None,
        store: str | EventLog | None = None,
        name: str | None = None,
        if_exists: Literal["fail", "load"] = "fail",
        author: str | None = None,
    ) -> None:
        check_if_exists(if_exists, store)
        if not isinstance(domain, Domain):
            raise InvalidArgumentError(
                f"domain must be a Domain, got {domain!r}; give one such as Domain.grid(x=[0, 1])"
            )
        if isinstance(goal, type) or not hasattr(goal, "update"):
            raise InvalidArgumentError(
                f"goal must be Maximize(), Minimize() or LevelSet(h), got {goal!r}; give one of "
                "them"
            )
        seed = check_integer(seed, "seed", minimum=0)
        check_boolean(exact_model, "exact_model")
        prior = Prior(
            family_of(kernel, transform),
            mean,
            given_variance(noise, noise_sd, domain),
            tasks,
            exact_model,
            outcome_named(outcome),
        )
        named = QuantityName(name_of_quantity(quantity, goal), unit)
        config = StudyConfig(
            domain=domain,
            goal=goal,
            policy=policy_named(policy or DEFAULT_POLICY),
            prior=prior,
            cost=as_cost(cost, domain),
            start=_start_index(domain, start, seed),
            seed=seed,
            engine=engine,
            limits=check_study_limits(limits, goal),
            quantity=named.name,
            unit=named.unit,
            vehicles=check_vehicles(vehicles),
            quantities=check_quantities(quantities, goal, prior, domain),
            repeats=check_repeats(repeats),
        )
        check_names(config.vehicles, "vehicle")
        if isinstance(tasks, Tasks):
            check_names(tasks.names, "task")
        if store is not None:
            config = _stored_config(config)
        state = StudyState(config)
        check_starts(state)
        loaded = _existing_state(config, store, name) if if_exists == "load" else None
        if loaded is not None:
            self._initialize(*loaded, name, author)
            return
        event_log = InMemoryEventLog() if store is None else _new_event_log(store, name)
        self._initialize(state, event_log, name, author)
        try:
            with self._session.transaction(self.author) as write:
                write("created", **config.to_details())
        except StudyExistsError:  # another process was faster
            loaded = _existing_state(config, store, name) if if_exists == "load" else None
            if loaded is None:
                raise
            self._initialize(*loaded, name, author)

    def _initialize(
        self, state: StudyState, event_log: EventLog, name: str | None, author: str | None
    ) -> None:
        config = state.config
        actions = state.learner.actions
        self.name = name
        self.author = author or whoami()
        self.policy = config.policy
        self.seed = config.seed
        self.tasks = config.prior.tasks
        self.levels = None if config.goal.parts else actions.noise_levels
        self.travels = actions.travels
        self.learns_cost = actions.learns_cost
        self.quantity = QuantityName(config.quantity, config.unit)
        self.vehicles = dict(config.vehicles)
        self.repeats = config.repeats
        self.must_return = actions.must_return
        self._state = state
        self._session = StudySession(state, event_log)
        self._stop_reason = None  # of the last run, until something changes
        self._named_outliers = set(outlier_ids(state))  # measurements that a warning has named

    @classmethod
    @deprecated_argument("who", "author", removed_in="0.5.0")
    def from_event_log(
        cls,
        event_log: EventLog,
        name: str | None,
        author: str | None = None,
        *,
        source: Study | None = None,
    ) -> Study:
        """Open the study whose events an event log holds.

        Args:
            event_log: The event log; its first event holds the problem.
            name: Name of the study.
            author: Author of the events that this object writes; default: the user and the machine.
            source: Another object of the same study, whose state is copied, so that only the events
                after it are replayed.

        Raises:
            DamagedStudyError: If the events do not make a study.
        """
        study = cls.__new__(cls)
        study._initialize(_replayed(event_log, name, source), event_log, name, author)
        return study

    def __reduce__(self) -> Any:
        """Pickle and copy the study as its events; some models hold functions."""
        arguments = (self._session.event_log, self.name, self.author)
        return type(self).from_event_log, arguments, {"_stop_reason": self._stop_reason}

    @classmethod
    @deprecated_argument("who", "author", removed_in="0.5.0")
    def from_json(
        cls,
        text: str,
        *,
        store: str | EventLog | None = None,
        name: str | None = None,
        author: str | None = None,
    ) -> Study:
        """Open a study that `to_json` wrote.

        Args:
            text: The text.
            store: URL of the database to put the study into, or an empty event log; default:
                memory.
            name: Name of the study; default: its own.
            author: Author of the events that this object writes; default: the user and the machine.

        Raises:
            SerializationError: If the text is not an exported study, or of an unknown format.
            DamagedStudyError: If its events do not make a study.
            StudyExistsError: If the store has a study of that name already.
        """
        stored_name, events = study_from_json(text)
        study = cls.from_event_log(InMemoryEventLog(events), name or stored_name, author)
        if store is not None:
            event_log = _new_event_log(store, study.name)
            study._session.event_log = event_log
            with event_log.transaction(0) as transaction:
                transaction.appended = events
                transaction.summary = study._state.summary
        return study

    # -- changing
    # ----------------------------------------------------------------------------------------------

    def execute(self, command: Command, cancelled: Event | None = None) -> Receipt:
        """Execute a command, as `BaseStudy.execute` does.

        Args:
            command: The command.
            cancelled: Set by others once nobody waits for the change any longer; it is not stored
                then.

        Raises:
            ChangeCancelledError: If it was cancelled. Nothing has changed then.
        """
        state = self._state
        checked = command.check()
        receipt = self._session.change(
            partial(HANDLERS[type(checked)], state, checked),
            self.author,
            rewrites=command.rewrites,
            cancelled=cancelled,
        )
        if command.resumes:
            self._stop_reason = None
        if isinstance(command, Correct):
            self._named_outliers.difference_update(receipt.ids)
        outliers = outlier_ids(state)
        if self._named_outliers.issuperset(outliers):
            return receipt
        new = [id_ for id_ in outliers if id_ not in self._named_outliers]
        self._named_outliers.update(new)
        messages = outlier_messages(measurement_records(state), new)
        return replace(receipt, warnings={**messages, **receipt.warnings})

    def _tell_all(self, measurements: Sequence[MeasurementInput]) -> Receipt:
        from truvar.study.measurements_io import tell_all

        return tell_all(self, measurements)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._session.transaction(self.author):
            yield

    def refresh(self) -> None:
        self._session.refresh()

    # -- what is known
    # ----------------------------------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        return self._state.settled_config.domain

    @property
    def goal(self) -> Goal:
        return self._state.settled_config.goal

    @property
    def version(self) -> int:
        return self._state.version

    @property
    def steps(self) -> int:
        return len(self._learner.observations)

    @property
    def spent(self) -> float:
        return self._learner.spent

    @property
    def pending(self) -> list[Suggestion]:
        return [suggestion_of(self._state, action) for action in self._state.pending.values()]

    @property
    def limits(self) -> dict[str, float]:
        return dict(self._state.config.limits)

    @property
    def epsilon(self) -> float:
        return self._learner.epsilon

    @property
    def learned_tasks(self) -> Tasks | None:
        return self._learner.surrogate.learned_tasks

    @property
    def vehicle_statuses(self) -> list[VehicleStatus]:
        return vehicle_statuses(self._state)

    @property
    def finished(self) -> str | None:
        return self._state.conclusions.finished

    @property
    def exhausted(self) -> str | None:
        return self._state.conclusions.exhausted

    @property
    def failures(self) -> list[FailureRecord]:
        return failure_records(self._state)

    def measurement_records(self) -> list[MeasurementRecord]:
        return measurement_records(self._state)

    @property
    def history(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self._state.history, columns=list(HistoryRow._fields))

    @property
    def events(self) -> pd.DataFrame:
        import pandas as pd

        rows = [
            (event.number, event.time, event.who, event.kind, event.details)
            for event in self._session.event_log.since(0)
        ]
        frame = pd.DataFrame(rows, columns=["number", "time", "who", "kind", "details"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True))

    def result(self) -> Result:
        return self._state.conclusions.result(self._stop_reason)

    def check_value(
        self,
        what: Suggestion | int | Mapping[str, Any],
        y: float,
        *,
        level: int | None = None,
        task: str | None = None,
    ) -> str | None:
        value = check_values(self._state.config, check_measurement(y, None, None)[0])
        action = resolve_action(
            self._state, what, level, task, include_observed=True, include_expired=True
        )
        return implausible(self._state, action, value)

    def _check_statements(self, limits: StatementLimits) -> StopCheck:
        conclusions = self._state.conclusions
        departures = self._departures(every=limits.improvement_per_cost is not None)
        checks = [conclusions.check_stop(limits, origin) for origin in departures]
        return next((check for check in checks if check.reason is None), checks[0])

    def _departures(self, *, every: bool = True) -> list[Departure]:
        """Return the departures of all vehicles, or of the first alone."""
        names: list[str | None] = [*self._state.config.vehicles] or [None]
        return [departure(self._state, name) for name in (names if every else names[:1])]

    def improvement_per_cost(self) -> float:
        inputs = self._state.conclusions.statement_inputs()
        return max(
            improvement_per_cost(self._learner, inputs, origin) for origin in self._departures()
        )

    def best_for(self, context: Mapping[str, Any]) -> Best:
        given = slice_in_context(self.domain, context)
        if given is None or given.fixed is None:
            return self.result().best_for(context)
        x = best_in_context(self._learner, given)
        mean, sd = predict(self._learner, x[None, :])
        return Best(None, self.domain.named(x), float(mean[0]), float(sd[0]))

    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        return predict(self._learner, self.domain.encode(points))

    def predict_measurement(
        self, what: Suggestion | int | Mapping[str, Any], of: str | None = None
    ) -> tuple[float, float]:
        is_priced_point = isinstance(what, Mapping) and len(self._learner.goal.parts) > 1
        level = 0 if is_priced_point and self._learner.actions.noise_levels is not None else None
        action = resolve_action(self._state, what, level)  # where quantities have costs, of all
        learner, action = learner_of(self._learner, action, of)
        mean, sd = predict_measurement(learner, action)
        return mean, sd if learner.surrogate.fitted else float("inf")

    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        return lookahead(self._learner, resolve_action(self._state, what))

    def to_json(self) -> str:
        return study_to_json(self.name, self._session.event_log.since(0))

    expects = deprecated_alias("predict_measurement", removed_in="0.4.0")
    outlook = deprecated_alias("lookahead", removed_in="0.4.0")
    resumed = deprecated_alias("from_event_log", removed_in="0.4.0")
    together = deprecated_alias("transaction", removed_in="0.4.0")


def _replayed(event_log: EventLog, name: str | None, source: Study | None = None) -> StudyState:
    """Return the state that the events of a log lead to.

    Args:
        event_log: The event log; its first event holds the problem.
        name: Name of the study.
        source: Another object of the same study, whose state is copied.

    Raises:
        DamagedStudyError: If the events do not make a study.
    """
    try:
        events = event_log.since(0)
        state = None if source is None else _copied_state(source, events)
        state = state or StudyState(StudyConfig.from_details(events[0].details))
        state.replay(events[state.version :])
        check_summary = getattr(event_log, "check_summary", None)
        if check_summary is not None:
            check_summary(state.summary)
    except TruvarError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DamagedStudyError(
            f"the events of the study {name!r} are damaged ({error!r}); use an undamaged copy "
            "of its store"
        ) from error
    return state


def _copied_state(source: Study, events: Sequence[StoredEvent]) -> StudyState | None:
    """Return a copy of the state of a study, if these are its events; None otherwise."""
    state: StudyState = source._session.call(source._state.copy)
    if not 0 < state.version <= len(events):
        return None
    return state if events[state.version - 1].time == state.changed_at else None


def _stored_config(config: StudyConfig) -> StudyConfig:
    """Return the settings as they are in a store.

    Raises:
        TruvarError: If they cannot be stored, or are invalid in the first place, which is the
            better message.
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
            "a new study needs an empty event log, got one with events; open it with "
            "Study.from_event_log(event_log, "
            "name), or give an empty one"
        )
    event_log: EventLog = store
    return event_log


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
            f"start must be 'random', a point or an index below {len(domain)}, got {start!r}; give "
            "one of them"
        )
    return int(start)


def _existing_state(
    config: StudyConfig, store: Any, name: str | None
) -> tuple[StudyState, EventLog] | None:
    """Return the study that the store has under that name; None if it has none.

    Raises:
        StudyExistsError: If its settings differ from those given.
    """
    event_log = existing_event_log(store, name)
    if event_log is None:
        return None
    state = _replayed(event_log, name)
    check_same_settings(config, state.config, name)
    return state, event_log
