"""`Study`: the one stateful class. It asks, is told, and says what is proven at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel

from truvar import loop
from truvar.actions import Candidates, CostLike, NoiseLike, Tasks, not_negative
from truvar.belief import Action, Belief, Prior
from truvar.confidence import Epoch
from truvar.cover import information_bound
from truvar.domain import Array, Domain, as_table, number, whole_number
from truvar.engines import EngineLike
from truvar.errors import Finished, TruvarError
from truvar.fit import Learned, Model
from truvar.outlook import Outlook, outlook
from truvar.policies import Policy, Scene, policy_named
from truvar.regions import Goal
from truvar.result import Best, Result, Suggestion
from truvar.theory import Grounds, Setting, certify


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
    engine         how scores are computed: "dense", "dense32", "lazy", or what makes one; default: by size
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
        store: str | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise TruvarError(f"domain must be a Domain, but it was {domain!r}; give one such as Domain.grid(x=[0, 1])")
        if isinstance(goal, type) or not hasattr(goal, "update"):
            raise TruvarError(
                f"goal must be Maximize(), Minimize() or LevelSet(h), but it was {goal!r}; give one of them"
            )
        if store is not None:
            raise TruvarError(f"this version keeps studies in memory only, but store was {store!r}; leave it out")
        seed = whole_number(seed, "seed", least=0)
        self.domain, self.goal, self.seed, self.name = domain, goal, seed, name
        self.policy: Policy = policy_named(policy or "truvar")
        self._belief = Belief(domain, goal, self.policy, Prior(kernel, mean, noise, cost, tasks), seed, engine)
        self.policy.places(self._belief.scene(0), self._belief.actions.candidates(None))  # refused now, or never
        self._start = _start_index(domain, start, seed)
        self._pending: dict[int, Action] = {}
        self._trail: list[tuple[int, Array]] = []  # id and place of what was asked, or told unasked, in order
        self._next_id = 1
        self._history: list[dict[str, Any]] = []
        self._betas: list[float] = []  # with which the bounds after each value told were drawn
        self._exhausted = False
        self._stopped: str | None = None

    # -- asking --------------------------------------------------------------------------------------------------------

    @overload
    def ask(self) -> Suggestion: ...
    @overload
    def ask(self, n: int) -> list[Suggestion]: ...
    def ask(self, n: int | None = None) -> Suggestion | list[Suggestion]:
        """Where to measure next. `ask(n)` gives up to n suggestions, chosen as a batch.

        Suggestions stay pending until they are told or withdrawn, and later ones take them into account. Raises
        `Finished` when there is nothing left to ask for.
        """
        if n is None:
            return self._ask()
        whole_number(n, "the number of suggestions", least=1)
        next_id = self._next_id
        batch = [self._ask()]
        while len(batch) < n:
            try:
                batch.append(self._ask())
            except Finished:
                break
            except Exception:  # all or nothing
                for suggestion in batch:
                    self.withdraw(suggestion)
                self._next_id = next_id
                raise
        return batch

    def _ask(self) -> Suggestion:
        if self.finished is not None:
            raise Finished(self.finished)
        table, choice = self._choose()
        if choice is None:
            if self._pending:
                raise Finished("nothing is left to gain before the pending measurements are told")
            self._exhausted = True
            raise Finished(str(self.finished))
        row = choice.place, choice.level
        site = None if table.where is None else int(table.where[choice.place])
        level = None if self._belief.actions.levels is None else choice.level
        action = self._action(table, row, site, level, choice.gain)
        self._belief.add(action)
        self._pending[action.id] = action
        self._go_to(action)
        return self._suggestion(action)

    def _choose(self) -> tuple[Candidates, loop.Choice | None]:
        if self._start is None or self._trail:
            return self._belief.choose(self._last, list(self._pending.values()), self._next_id)
        table = self.candidates()
        gains = self.policy.score(self._belief.scene(0), table.take(np.array([self._start])))[0]
        level = int(np.argmax(np.isfinite(gains)))  # the first that the rule would use
        return table, loop.Choice(self._start, level, float(gains[level]))

    def candidates(self) -> Candidates:
        """The table of what can be done next: places, noise, cost."""
        return self._belief.actions.candidates(self._last)

    def scene(self) -> Scene:
        """What the policy sees."""
        return self._belief.scene(self._next_id)

    def gains(self) -> Array:
        """The gain of every candidate, in the order of the table's flat rows (place-major, level-minor)."""
        return self.policy.score(self.scene(), self.candidates()).ravel()

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
    ) -> None:
        """The measured value of a suggestion (or its id), or of any other point, which need not have been asked for.

        `noise` and `cost` replace the expected ones; `level` and `task` say how an unasked point was measured.
        """
        value = number(y, "the measured value y")
        action = self._resolve(what, level, task)
        if noise is not None:
            action = replace(action, noise=not_negative(noise, "noise"), noise_told=True)
        if cost is not None:
            action = replace(action, cost=not_negative(cost, "cost"))
        beta = self.epoch.beta
        self._belief.observe(action, value, list(self._pending.values()))
        self._betas.append(beta)
        if self._pending.pop(action.id, None) is None:
            self._go_to(action)
        self._exhausted, self._stopped = False, None
        self._record(action)

    def withdraw(self, what: Suggestion | int) -> None:
        """Takes back a suggestion that will not be measured."""
        if isinstance(what, Mapping):
            raise TruvarError(f"withdraw takes a suggestion or its id, but a point came, {dict(what)}; give the id")
        action = self._resolve(what, None, None)
        del self._pending[action.id]
        self._trail = [(id_, place) for id_, place in self._trail if id_ != action.id]
        self._exhausted = False
        self._belief.pend(self._pending.values())

    def _resolve(self, what: Suggestion | int | Mapping[str, float], level: int | None, task: str | None) -> Action:
        if isinstance(what, Mapping):
            return self._unasked(what, level, task)
        if level is not None or task is not None:
            raise TruvarError(
                f"a suggestion has its own level and task, but level={level!r}, task={task!r} came; leave them out, or "
                "tell the point if it was measured otherwise"
            )
        id_: Any = what.id if isinstance(what, Suggestion) else what
        if not isinstance(id_, (int, np.integer)) or isinstance(id_, bool):
            raise TruvarError(
                f"a suggestion, its id or a point such as {self.domain.point(0)} must come, but it was {what!r}; "
                "give one of them"
            )
        id_ = int(id_)
        if id_ in self._pending:
            own = self._suggestion(self._pending[id_])
            if isinstance(what, Suggestion) and (what.point, what.level, what.task) != (own.point, own.level, own.task):
                raise TruvarError(
                    f"suggestion {id_} of this study is at {own.point}, but the one that came is at {what.point}: "
                    "it belongs to another study; tell it there"
                )
            return self._pending[id_]
        if any(action.id == id_ for action, _ in self._belief.told):
            raise TruvarError(
                f"suggestion {id_} was told already; a second measurement of the place is told by its point, "
                "for example study.tell(suggestion.point, y)"
            )
        waiting = ", ".join(map(str, self._pending)) or "none"
        raise TruvarError(
            f"a suggestion must be pending, but {id_!r} is not (pending: {waiting}); give one that is, or the point"
        )

    def _unasked(self, point: Mapping[str, float], level: int | None, task: str | None) -> Action:
        index, x = self.domain.locate(point)
        actions, t = self._belief.actions, self._belief.actions.task_index(task)
        if actions.levels is None and level is not None:
            raise TruvarError(f"this study has no noise levels, but level={level!r} was given; leave it out")
        count = 0 if actions.levels is None else len(actions.levels.variance)
        if count and (not isinstance(level, (int, np.integer)) or isinstance(level, bool) or not 0 <= level < count):
            raise TruvarError(
                f"level must say which noise level was used, 0 to {count - 1}, but it was {level!r}; give its index"
            )
        if index is None:
            return self._action(actions.at(x[None, :], self._last), (t, level or 0), None, level)
        site = t * len(self.domain) + index
        return self._action(self.candidates(), (site, level or 0), site, level)

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The number of values told."""
        return len(self._belief.told)

    @property
    def spent(self) -> float:
        """The cost of what was told."""
        return self._belief.spent

    @property
    def pending(self) -> list[Suggestion]:
        """Suggestions that are neither told nor withdrawn."""
        return [self._suggestion(action) for action in self._pending.values()]

    @property
    def epsilon(self) -> float:
        """How far from exact the answer can be if the bounds hold; the certificate says of which point."""
        return self._belief.epsilon

    @property
    def epoch(self) -> Epoch:
        """Epoch i with eta_(i), beta_(i) and t_(i)."""
        return self._belief.state.epoch

    @property
    def tasks(self) -> Tasks | None:
        """The tasks that may be measured, if there are any."""
        return self._belief.tasks

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position."""
        return self._belief.actions.travels

    @property
    def engine(self) -> str:
        """The name of the engine that computes the scores."""
        return self._belief.engine.name

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: as given, or as learned so far."""
        return self._belief.kernel

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to measure, or None."""
        return self._belief.end or ("no measurement would gain anything more" if self._exhausted else None)

    @property
    def measurements(self) -> pd.DataFrame:
        """One row per value told, in order: id, index, the coordinates, level, task, noise, cost, spent, value.

        A name that a coordinate has already gets an underscore behind it.
        """
        rows, spent = [], 0.0
        for action, y in self._belief.told:
            spent += action.cost
            given = self._suggestion(action)
            how = (given.level, given.task, given.noise, given.cost, spent, y)
            rows.append((given.id, given.index, *given.point.values(), *how))
        names = [f"{name}_" if name in self.domain.columns else name for name in MEASUREMENT]
        frame = pd.DataFrame(rows, columns=[*names[:2], *self.domain.columns, *names[2:]])
        return frame.astype({names[1]: "Int64", names[2]: "Int64"})

    @property
    def history(self) -> pd.DataFrame:
        """One row per value told: how the epoch, the regions and epsilon went."""
        return pd.DataFrame(self._history, columns=list(HISTORY))

    def result(self) -> Result:
        """Where the study stands now."""
        belief, n = self._belief, len(self.domain)
        state, posterior = belief.state, belief.posterior
        index, point, mean, sd = belief.best()
        certificate = certify(
            Grounds(
                domain=self.domain,
                goal=self.goal,
                state=state,
                policy=self.policy,
                actions=belief.actions,
                scale=posterior.scale,
                learned=belief.is_learned,
                betas=self._betas,
                information=lambda steps: information_bound(posterior, steps, belief.actions.candidates(None)),
                tolerance=float(getattr(belief.engine, "tolerance", 0.0)),
                epsilon=belief.epsilon,
            )
        )
        return Result(
            domain=self.domain,
            goal=self.goal,
            potential=state.regions.potential,
            above=state.regions.above,
            below=state.regions.below,
            mean=posterior.mean[:n],
            sd=np.sqrt(posterior.variance[:n]),
            lower=state.lower,
            upper=state.upper,
            best=Best(index, self.domain.named(point), mean, sd),
            epsilon=certificate.epsilon,
            certificate=certificate,
            spent=self.spent,
            steps=self.steps,
            reason=self.finished or self._stopped,
            measured=tuple(a.site for a, _ in belief.told if a.task == 0 and a.site is not None),
        )

    def setting(self) -> Setting:
        """What `truvar.theory` speaks of: the prior, the noise and cost of every measurement, and how the epochs go."""
        if self._belief.is_learned:
            raise TruvarError("bounds are about a known model, but part of this one is learned; give kernel and mean")
        return Setting.of(self._belief.posterior, self._belief.actions.candidates(None), self.policy.confidence)

    def imagine(self, what: Suggestion | int, rng: np.random.Generator) -> float:
        """A value that a pending suggestion could give, drawn from what is believed now. A study that is told such
        values is run on a function drawn from its own prior."""
        action = self._resolve(what, None, None)
        mean, variance = self._belief.posterior.predict(action.point[None, :])
        return float(rng.normal(mean[0], np.sqrt(variance[0] + action.noise)))

    def outlook(self, what: Suggestion | int) -> Outlook | None:
        """What a pending suggestion would settle by itself; None as long as the model is not learned."""
        return outlook(self._belief, self._resolve(what, None, None))

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
        progress: bool | Callable[[Study], object] = False,
    ) -> Result:
        """Asks, measures and tells until the first limit is reached; the result's `reason` says which.

        `f(point)` measures (`f(point, level)` with noise levels, `f(point, task)` with tasks). The limits are the cost
        spent and the number of values told, both counted from the study's beginning, and epsilon. `progress` shows
        them, or is called with the study.

        An `executor` is anything with `submit`: a pool of threads or processes, loky's, a `dask.distributed.Client`, an
        MPI pool. As many measurements run at once as it has workers, or as `workers` says. One that fails is made again
        (`retries`, 1 on an executor), then the run goes on without it and warns; without an executor and `retries` it
        ends the run.
        """
        from truvar.runner import Limits, run

        limits, how = Limits(budget, steps, epsilon), (workers, retries)
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
        if self._trail:
            raise TruvarError("fit comes before the first suggestion, but this study has begun; make a new one")
        return self._belief.fit(as_table(frame), value)

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def _last(self) -> Array | None:
        """The last position (d,)."""
        return self._trail[-1][1][: len(self.domain.columns)] if self._trail else None

    def _go_to(self, action: Action) -> None:
        self._trail.append((action.id, action.point))
        self._next_id += 1

    def _action(
        self, table: Candidates, row: tuple[int, int], site: int | None, level: int | None, gain: float = float("nan")
    ) -> Action:
        point = table.points[row[0]]
        task = int(point[-1]) if self._belief.tasks is not None else 0
        return Action(self._next_id, point, site, level, task, float(table.noise[row]), float(table.cost[row]), gain)

    def _suggestion(self, action: Action) -> Suggestion:
        tasks = self._belief.tasks
        return Suggestion(
            id=action.id,
            index=None if action.site is None else action.site % len(self.domain),
            point=self.domain.named(action.point[: len(self.domain.columns)]),
            level=action.level,
            task=None if tasks is None else tasks.names[action.task],
            noise=action.noise,
            cost=action.cost,
            gain=action.gain,
        )

    def _record(self, action: Action) -> None:
        state, mean = self._belief.state, self._belief.posterior.mean[: len(self.domain)]
        index = int(np.argmax(self.goal.sign * mean))
        spent = action.cost + (self._history[-1]["spent"] if self._history else 0.0)
        values = (
            self.steps,
            spent,
            state.epoch.index,
            state.epoch.eta,
            state.epoch.beta,
            int(state.regions.potential.sum()),
            int(state.regions.above.sum()),
            int(state.regions.below.sum()),
            self._belief.epsilon,
            index,
            float(mean[index]),
        )
        self._history.append(dict(zip(HISTORY, values, strict=True)))


MEASUREMENT = ("id", "index", "level", "task", "noise", "cost", "spent", "value")
HISTORY = (
    *("step", "spent", "epoch", "eta", "beta", "n_potential", "n_above", "n_below"),
    *("epsilon", "best_index", "best_mean"),
)


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
            f"start must be 'random', a point or an index below {len(domain)}, but it was {start!r}; give one of them"
        )
    return int(start)
