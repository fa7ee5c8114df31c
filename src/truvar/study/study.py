"""`Study`: the one stateful class. It asks, is told, and says what is proven at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from truvar._deprecation import deprecated_alias
from truvar._typing import Array
from truvar.acquisition import Policy, PolicyContext, policy_named
from truvar.acquisition.confidence import Epoch
from truvar.algorithm import loop
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.domain.costs import CostLike, NoiseLevels, NoiseLike, Tasks
from truvar.domain.domain import Domain, as_table
from truvar.domain.goals import Goal
from truvar.engines import EngineLike
from truvar.exceptions import DamagedStudyError, Finished, TruvarError
from truvar.messages import for_interface, format_point
from truvar.models.fit import Learned, Model
from truvar.models.kernels import to_sklearn
from truvar.models.surrogate import Prior
from truvar.storage.base import Event, EventLog, now, whoami
from truvar.storage.memory import InMemoryEventLog
from truvar.storage.serialization import study_from_json, study_to_json
from truvar.study._resolve import action_at, checked, last_position, measured, resolve_action, with_measured
from truvar.study._state import HISTORY, StudyConfig, StudyState
from truvar.study._views import measurements, result, suggestion
from truvar.study.lookahead import Lookahead, lookahead
from truvar.study.result import Result
from truvar.study.suggestion import Suggestion
from truvar.validation import check_finite, check_integer, check_nonnegative

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel

    from truvar.theory import TheorySetting


class Study:
    """A search for an optimum or a level set: `ask` where to measure, `tell` the value, `result` at any time.

    domain, goal   where to look, and what for: `Domain.grid(...)`, `LevelSet(7.0)`
    kernel, mean   the prior; kernel None or a name: learned as the values come in; mean None: learned
    noise          variance of a measurement: number, column, array, function of the points, `NoiseLevels`; None:
                   learned, with a kernel that is learned
    cost           of a measurement: number, column, array, function of the points and the last one, `Cost`; default 1
    tasks          other quantities that may be measured instead
    policy         the decision rule, or its name; default `TruVaR()`
    start          the first suggestion: "random", an index, a point; default: the rule's own choice
    engine         how scores are computed: "dense", "dense32", "dense64", "lazy", or what makes one; default: by size
    limits         budget, steps and epsilon that it is meant to end at, for those who work on it; `run` has its own
    store, name    where the study is kept: a URL such as "sqlite:///lake.db", and its name there; default: in memory;
                   or an empty `EventLog` of your own
    who            who works on it, for the journal; default: the user and the machine

    The study is the fold of its `events`. One that is kept in a store may be worked on by many at once: `ask`, `tell`
    and all that changes it first catch up with what the others did; what it says in between is of then (`refresh`).
    """

    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        *,
        kernel: Kernel | str | Learned | None = None,
        mean: float | None = None,
        noise: NoiseLike | None = None,
        cost: CostLike | None = None,
        tasks: Tasks | None = None,
        policy: Policy | str | None = None,
        start: Literal["random"] | int | Mapping[str, float] | None = None,
        seed: int = 0,
        engine: EngineLike = None,
        limits: Mapping[str, float] | None = None,
        store: str | EventLog | None = None,
        name: str | None = None,
        who: str | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise TruvarError(f"domain must be a Domain, got {domain!r}; give one such as Domain.grid(x=[0, 1])")
        if isinstance(goal, type) or not hasattr(goal, "update"):
            raise TruvarError(f"goal must be Maximize(), Minimize() or LevelSet(h), got {goal!r}; give one of them")
        seed = check_integer(seed, "seed", minimum=0)
        prior, rule = Prior(kernel, mean, noise, tasks), policy_named(policy or "truvar")
        begin, ends = _start_index(domain, start, seed), _limits(limits)
        config = StudyConfig(domain, goal, rule, prior, cost, begin, seed, engine, ends)
        self._begin(config, InMemoryEventLog(), name, who)
        if store is not None:
            self._begin(config.written(), _stored(store, name), name, who)  # as everyone else will have it
        with self._transaction() as write:
            write("created", **self._state.config.parts())

    def _begin(self, config: StudyConfig, event_log: EventLog, name: str | None, who: str | None) -> None:
        self.domain, self.goal, self.policy = config.domain, config.goal, config.policy
        self.seed, self.name, self.who = config.seed, name, who or whoami()
        self._event_log = event_log
        self._state = StudyState(config)
        self._stopped: str | None = None
        self._write: Callable[..., None] | None = None  # while a turn lasts

    @classmethod
    def from_event_log(cls, event_log: EventLog, name: str | None, who: str | None = None) -> Study:
        """The study whose events are in a journal, where they stand with the whole problem."""
        study = cls.__new__(cls)
        try:
            events = event_log.since(0)
            study._begin(StudyConfig.of(events[0].details), event_log, name, who)
            study._state.fold(events)
        except TruvarError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DamagedStudyError(
                f"the events of the study {name!r} are damaged ({error!r}); go on with a copy of its store that is not"
            ) from error
        return study

    # -- asking --------------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, *, lease: float | None = None) -> Suggestion: ...
    @overload
    def ask(self, n: int, *, lease: float | None = None) -> list[Suggestion]: ...
    def ask(self, n: int | None = None, *, lease: float | None = None) -> Suggestion | list[Suggestion]:
        """Where to measure next. `ask(n)` gives up to n suggestions, chosen as a batch.

        Suggestions stay pending until they are told or withdrawn, and later ones take them into account; with a `lease`
        only for so many seconds: the next `ask` after that takes it that they will not be measured. Raises `Finished`
        when there is nothing left to ask for.
        """
        count = 1 if n is None else check_integer(n, "the number of suggestions", minimum=1)
        if lease is not None and not check_finite(lease, "lease") > 0:
            raise TruvarError(f"lease must be a number of seconds above 0, got {lease!r}; give 3600, say")
        batch: list[Suggestion] = []
        end: Finished | None = None
        with self._transaction() as write:
            for id_ in self._state.overdue(now()):
                write("expired", id=id_)
            until_when = None if lease is None else (now() + timedelta(seconds=lease)).isoformat()
            while len(batch) < count and end is None:
                try:
                    action = self._choose_action()
                except Finished as finished:
                    end = finished
                    if self.finished is None and not self._state.pending:
                        write("exhausted")
                        end = Finished(str(self.finished))
                else:
                    write("asked", **self._state.details(action), until=until_when)
                    batch.append(suggestion(self._state, action))
        if end is not None and not batch:
            raise end
        return batch[0] if n is None else batch

    def _choose_action(self) -> Action:
        if self.finished is not None:
            raise Finished(self.finished)
        table, choice = self._choose()
        if choice is None:
            raise Finished("nothing is left to gain before the pending measurements are told")
        row = choice.row, choice.level
        site = None if table.sites is None else int(table.sites[choice.row])
        level = None if self._learner.actions.noise_levels is None else choice.level
        return action_at(self._state, table, row, site, level, choice.gain)

    def _choose(self) -> tuple[Candidates, loop.Choice | None]:
        study_state, start = self._state, self._state.config.start
        if start is None or study_state.trail:
            return self._learner.choose(
                last_position(self._state), list(study_state.pending.values()), study_state.next_id
            )
        table = self.candidates()
        here = table.take(np.array([start]))
        gains = self.policy.score(self._learner.context(0), here)[0]
        scores = gains / here.cost[0] if self.policy.per_cost else gains
        level = int(np.argmax(np.where(np.isfinite(scores), scores, -np.inf)))  # that the rule likes best there
        return table, loop.Choice(start, level, float(gains[level]))

    def candidates(self) -> Candidates:
        """The table of what can be done next: places, noise, cost."""
        return self._learner.actions.candidates(last_position(self._state))

    def policy_context(self) -> PolicyContext:
        """Return what the policy sees at the next choice."""
        return self._learner.context(self._state.next_id)

    def gains(self) -> Array:
        """The gain of every candidate, in the order of the table's flat rows (place-major, level-minor)."""
        return self.policy.score(self.policy_context(), self.candidates()).ravel()

    # -- telling -------------------------------------------------------------------------------------------------------

    def tell(
        self,
        what: Suggestion | int | Mapping[str, float],
        y: float,
        *,
        noise: float | None = None,
        level: int | None = None,
        task: str | None = None,
        cost: float | None = None,
        key: str | None = None,
    ) -> int:
        """The measured value of a suggestion (or its id), or of any other point, which need not have been asked for.

        `noise` and `cost` replace the expected ones; `level` and `task` say how an unasked point was measured. Returns
        the id of the measurement. To tell the same value of a suggestion again changes nothing, nor does it to tell a
        point again with the same `key`, any text that whoever measured it chose.
        """
        value, noise, cost = checked(y, noise, cost)
        with self._transaction() as write:
            before = None if key is None else self._state.id_with_key(key)
            if before is not None:
                return before
            action = resolve_action(self._state, what, level, task, told=True, expired=True)
            known = None if action.id in self._state.pending else self._state.observation(action.id)
            told = with_measured(action if known is None else known[0], noise, cost)
            if known is None:
                write("told", **self._state.details(told), y=value, **({} if key is None else {"key": str(key)}))
            elif (known[1], known[0].noise, known[0].cost) != (value, told.noise, told.cost):
                raise TruvarError(
                    f"suggestion {action.id} was told already, with {known[1]:.10g}, but {value:.10g} came; if the "
                    f"first was wrong, correct it: {_correction(action.id, value)}; a second measurement of the place "
                    f"is told by its point: {format_point(suggestion(self._state, known[0]).point)}"
                )
        self._stopped = None
        return action.id

    def correct(
        self, what: Suggestion | int, y: float, *, noise: float | None = None, cost: float | None = None
    ) -> None:
        """Replaces a value that was told wrong, by the id of the measurement. All stands as if it had been told right
        at the time; what was asked for in between stays as it was.
        """
        value, noise, cost = checked(y, noise, cost)
        with self._transaction() as write:
            known = measured(self._state, what)
            write("corrected", **self._state.details(with_measured(known, noise, cost)), y=value)
        self._stopped = None

    def withdraw(self, what: Suggestion | int) -> None:
        """Takes back a suggestion that will not be measured, or a measurement that was a mistake, by its id: all stands
        as if it had never been made.
        """
        if isinstance(what, Mapping):
            raise TruvarError(
                f"withdraw takes a suggestion or its id, but a point came, {format_point(what)}; give the id"
            )
        with self._transaction() as write:
            write("withdrawn", id=resolve_action(self._state, what, told=True).id)

    def note(self, text: str) -> None:
        """A remark for the journal."""
        with self._transaction() as write:
            write("noted", text=str(text))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is told, corrected, withdrawn or asked within it is kept together when it ends; if anything in it fails,
        nothing of it happened.
        """
        with self._transaction():
            yield

    def refresh(self) -> None:
        """Catches up with what others did to the study in its store."""
        self._state.fold(self._event_log.since(self._state.number))

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of the last event that is known here."""
        return self._state.number

    @property
    def steps(self) -> int:
        """The number of values told."""
        return len(self._learner.observations)

    @property
    def spent(self) -> float:
        """The cost of what was told."""
        return self._learner.spent

    @property
    def pending(self) -> list[Suggestion]:
        """Suggestions that are neither told nor withdrawn."""
        return [suggestion(self._state, action) for action in self._state.pending.values()]

    @property
    def limits(self) -> dict[str, float]:
        """The budget, steps and epsilon that it is meant to end at."""
        return dict(self._state.config.limits)

    @property
    def epsilon(self) -> float:
        """How far from exact the answer can be if the bounds hold; the certificate says of which point."""
        return self._learner.epsilon

    @property
    def epoch(self) -> Epoch:
        """Epoch i with eta_(i), beta_(i) and t_(i)."""
        return self._learner.state.epoch

    @property
    def tasks(self) -> Tasks | None:
        """The tasks that may be measured, if there are any."""
        return self._state.config.prior.tasks

    @property
    def levels(self) -> NoiseLevels | None:
        """The noise levels to choose from, if there are any."""
        return self._learner.actions.noise_levels

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position."""
        return self._learner.actions.travels

    @property
    def engine(self) -> str:
        """The name of the engine that computes the scores."""
        return self._learner.engine.name

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: as given, or as learned so far."""
        return to_sklearn(self._learner.surrogate.kernel)

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to measure, or None."""
        return self._learner.finished or ("no measurement would gain anything more" if self._state.exhausted else None)

    @property
    def measurements(self) -> pd.DataFrame:
        """One row per value told, in order: id, index, the coordinates, level, task, noise, cost, spent, value.

        A name that a coordinate has already gets an underscore behind it.
        """
        return measurements(self._state)

    @property
    def history(self) -> pd.DataFrame:
        """One row per value told: how the epoch, the regions and epsilon went."""
        import pandas as pd

        return pd.DataFrame(self._state.history, columns=list(HISTORY))

    @property
    def events(self) -> pd.DataFrame:
        """What happened, in order: number, time, who, kind, details."""
        import pandas as pd

        rows = [(event.number, event.time, event.who, event.kind, event.details) for event in self._event_log.since(0)]
        frame = pd.DataFrame(rows, columns=["number", "time", "who", "kind", "details"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True))

    def result(self) -> Result:
        """Where the study stands now."""
        return result(self._state, self.finished or self._stopped)

    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and standard deviation at any points (q, d), which need not be the domain's."""
        at, d = np.atleast_2d(np.asarray(points, dtype=float)), len(self.domain.columns)
        if at.ndim != 2 or at.shape[1] != d:
            raise TruvarError(f"points must have shape (q, {d}), got {at.shape}; give one row per point")
        mean, variance = self._learner.surrogate.predict(at)
        return mean, np.sqrt(variance)

    def theory_setting(self) -> TheorySetting:
        """What `truvar.theory` speaks of: the prior, the noise and cost of every measurement, and how the epochs go."""
        from truvar.theory import TheorySetting

        if self._learner.surrogate.is_learned:
            given = for_interface("kernel and mean", problem="[model] lengthscales and mean")
            raise TruvarError(f"bounds are about a known model, but part of this one is learned; give {given}")
        return TheorySetting.of(self._learner.posterior, self._learner.actions.candidates(None), self.policy.confidence)

    def predict_measurement(self, what: Suggestion | int | Mapping[str, float]) -> tuple[float, float]:
        """The mean and standard deviation of the value that a pending suggestion, or a point, would give now. The
        latter is infinite as long as the model is not learned.
        """
        action = resolve_action(self._state, what)
        mean, variance = self._learner.surrogate.predict_measurement(action)
        return mean, float(np.sqrt(variance)) if self._learner.surrogate.fitted else float("inf")

    def sample_measurement(self, what: Suggestion | int, rng: np.random.Generator) -> float:
        """A value that a pending suggestion could give, drawn from what is believed now. A study that is told such
        values is run on a function drawn from its own prior.
        """
        action = resolve_action(self._state, what)
        mean, variance = self._learner.surrogate.predict_measurement(action)
        return float(rng.normal(mean, np.sqrt(variance)))

    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        """What a pending suggestion would settle by itself; None as long as the model is not learned."""
        return lookahead(self._learner, resolve_action(self._state, what))

    def to_json(self) -> str:
        """The whole study, problem and events, as text; `Study.from_json` reads it."""
        return study_to_json(self.name, self._event_log.since(0))

    @classmethod
    def from_json(
        cls, text: str, *, store: str | EventLog | None = None, name: str | None = None, who: str | None = None
    ) -> Study:
        """The study that `to_json` wrote, in memory or in a store, under its own name or another."""
        own, events = study_from_json(text)
        study = cls.from_event_log(InMemoryEventLog(events), name or own, who)
        if store is not None:
            study._event_log = _stored(store, study.name)
            with study._event_log.transaction(0) as transaction:
                transaction.appended, transaction.summary = events, study._state.summary
        return study

    def plot(self, truth: Any = None) -> Any:
        """A picture of where the study stands: a matplotlib Figure."""
        from truvar.report import plot_study

        return plot_study(self, truth=truth)

    # -- doing it all --------------------------------------------------------------------------------------------------

    def run(
        self,
        f: Callable[..., float],
        *,
        budget: float | None = None,
        steps: int | None = None,
        epsilon: float | None = None,
        executor: Any = None,
        workers: int | None = None,
        retries: int | None = None,
        resume: bool | Sequence[Suggestion] = False,
        lease: float | None = None,
        progress: bool | Callable[[Study], object] = False,
    ) -> Result:
        """Asks, measures and tells until the first limit is reached; the result's `reason` says which.

        `f(point)` measures (`f(point, level)` with noise levels, `f(point, task)` with tasks). The limits are the cost
        spent and the number of values told, both counted from the study's beginning, and epsilon. `progress` shows
        the run, or is called with the study.

        An `executor` is anything with `submit`: a pool of threads or processes, loky's, a `dask.distributed.Client`, an
        MPI pool. As many measurements run at once as it has workers, or as `workers` says. One that fails is made again
        (`retries`, 1 on an executor), then the run goes on without it and warns; without an executor and `retries` it
        ends the run. `resume` measures first what is pending (or those suggestions of it), as a run that died
        has left it. `lease` is that of every suggestion, so that others need not wait for a run that died.
        """
        from truvar.study.runner import RunLimits, run

        limits, how = RunLimits(budget, steps, epsilon), (workers, retries, resume, lease)
        if progress is True:
            from truvar.report import Progress

            with Progress(self, budget=budget, steps=steps) as display:
                self._stopped = run(self, f, limits, executor, display, *how)
        else:
            self._stopped = run(self, f, limits, executor, progress or (lambda study: None), *how)
        return self.result()

    def fit(self, frame: pd.DataFrame | str | Path, value: str | None = None) -> Model:
        """Learns the model from another data set, before the first measurement, and takes it as known from then on.

        `frame`, or the CSV file of that path, has the domain's columns and the `value` column (default: the only
        other one).
        """
        table = as_table(frame)
        with self._transaction() as write:
            if self._state.trail:
                raise TruvarError("fit comes before the first suggestion, but this study has begun; make a new one")
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

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def _learner(self) -> ActiveLearner:
        return self._state.learner

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., None]]:
        """A turn to change the study, up to date with what others did: yields `write(kind, **details)`. What is written
        counts at once, and is stored when the turn ends; if that fails, it has never counted.
        """
        if self._write is not None:  # one turn around several changes
            yield self._write
            return
        study_state = self._state
        written: list[Event] = []
        mark = study_state.mark()
        try:
            with self._event_log.transaction(study_state.number) as transaction:
                study_state.fold(transaction.new_events)
                mark = study_state.mark()
                written = transaction.appended

                def write(kind: str, **details: Any) -> None:
                    event = Event(study_state.number + 1, now(), self.who, kind, details)
                    models = study_state.fold([event])
                    if models:
                        details["models"] = {str(count): model for count, model in models.items()}
                    written.append(event)

                self._write = write
                yield write
                transaction.summary = study_state.summary
        except BaseException:
            study_state.return_to(mark, intact=not written)
            raise
        finally:
            self._write = None


def _stored(store: Any, name: str | None) -> EventLog:
    """A new journal: in the store of that URL, or the one given."""
    if not hasattr(store, "transaction"):
        from truvar.storage import open_storage

        return open_storage(store).create_study(name)
    if store.since(0):
        raise TruvarError(
            "a new study needs an empty journal, but the one given has events; go on with it by Study.resumed(journal, "
            "name), or give another"
        )
    event_log: EventLog = store
    return event_log


def _correction(id_: int, value: float) -> str:
    return for_interface(
        f"correct({id_}, {value:.10g})", cli=f"truvar correct {id_} {value:.10g}", http=f"id {id_}, y {value:.10g}"
    )


def _limits(given: Mapping[str, float] | None) -> dict[str, float]:
    known = ("budget", "steps", "epsilon")
    for name, limit in (given or {}).items():
        if name not in known:
            raise TruvarError(f"limits may have {', '.join(known)}, but {name!r} came; correct the name")
        check_nonnegative(limit, name)
    return dict(given or {})


def _start_index(domain: Domain, start: Any, seed: int) -> int | None:
    """The index of the point to start from, or None."""
    if start is None:
        return None
    if isinstance(start, Mapping):
        index, x = domain.locate(start)
        return domain.nearest(x) if index is None else index
    if isinstance(start, str) and start == "random":
        return int(np.random.default_rng(seed).integers(len(domain)))
    if isinstance(start, bool) or start not in range(len(domain)):
        raise TruvarError(
            f"start must be 'random', a point or an index below {len(domain)}, got {start!r}; give one of them"
        )
    return int(start)
