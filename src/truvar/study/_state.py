"""The fold of a study's events: what was asked, told and taken back, and what follows from it.

An event of the journal becomes a *step*, and the steps are done one after the other. Nothing is chosen here, so the
same events always lead to the same state, in whatever process. A correction changes a step of the past, a measurement
that is taken back is no longer part of it: the steps are then done again from the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

import numpy as np

from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.costs import CostLike
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.engines import EngineLike
from truvar.exceptions import TruvarError
from truvar.models.fit import Model
from truvar.models.surrogate import Prior
from truvar.storage.base import Event, StudySummary
from truvar.storage.serialization import deserialize, serialize

HISTORY = (
    *("step", "spent", "epoch", "eta", "beta", "n_potential", "n_above", "n_below"),
    *("epsilon", "best_index", "best_mean"),
)


@dataclass(frozen=True)
class StudyConfig:
    """All that a study is begun with."""

    domain: Domain
    goal: Goal
    policy: Policy
    prior: Prior
    cost: CostLike | None
    start: int | None
    seed: int
    engine: EngineLike
    limits: Mapping[str, float] = field(default_factory=dict)

    def learner(self) -> ActiveLearner:
        """What is believed before the first measurement."""
        return ActiveLearner(self.domain, self.goal, self.policy, self.prior, self.cost, self.seed, self.engine)

    def parts(self) -> dict[str, Any]:
        """As the first event of a journal has them."""
        given = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "prior"}
        return given | {part.name: getattr(self.prior, part.name) for part in fields(Prior)}

    @staticmethod
    def of(parts: Mapping[str, Any]) -> StudyConfig:
        """The settings that a first event has."""
        prior = Prior(**{part.name: parts[part.name] for part in fields(Prior)})
        rest = {part.name: parts[part.name] for part in fields(StudyConfig) if part.name in parts}
        return StudyConfig(**rest | {"prior": prior})

    def written(self) -> StudyConfig:
        """As they are once they were written down and read. A Python function cannot be written down; that of the noise
        becomes its values, if there are finitely many.
        """
        noise: Any = self.prior.noise
        if callable(noise) and not self.domain.continuous:
            noise = np.asarray(noise(self.domain.points), dtype=float)
        parts = self.parts() | {"noise": noise}
        return StudyConfig.of({name: deserialize(serialize(part, name)) for name, part in parts.items()})


@dataclass(frozen=True)
class Step:
    """An event as far as it counts now."""

    kind: Literal["fitted", "asked", "told", "withdrawn", "expired", "exhausted"]
    action: Action | None = None
    value: Any = None  # told: y; fitted: the model
    key: str | None = None  # told: by which a second telling is known

    def is_of(self, kind: str, id_: int) -> bool:
        return self.kind == kind and self.action is not None and self.action.id == id_


class StudyState:
    """Where a study stands after the events that it was given."""

    def __init__(self, config: StudyConfig) -> None:
        self.config = config
        self.number = 0  # of the last event
        self.next_id = 1  # ids are never used twice, whatever is withdrawn
        self.leases: dict[int, datetime] = {}  # until when pending suggestions are reserved
        self._steps: list[Step] = []
        self._models: dict[int, Model] = {}  # that were learned on the way, by the number of values told
        self._begin()

    def _begin(self) -> None:
        """The state before the first step."""
        self.learner = self.config.learner()
        self.pending: dict[int, Action] = {}
        self.expired: dict[int, Action] = {}
        self.trail: list[tuple[int, Array]] = []  # id and place of what was asked, or told unasked, in order
        self.history: list[dict[str, Any]] = []
        self.betas: list[float] = []  # with which the bounds after each value told were drawn
        self.exhausted = False
        self._done = 0

    # -- events ------------------------------------------------------------------------------------------------------

    def fold(self, events: Sequence[Event]) -> dict[int, Model]:
        """Takes note of the events; returns the models that had to be learned. If one is refused, none has counted."""
        if not events:
            return {}
        before = self.mark()
        past_changed = False
        try:
            for event in events:
                past_changed |= self._note(event)
            known = set(self._models)
            if past_changed:
                self._begin()
            self._do_the_rest()
        except BaseException as error:
            new = self._steps[len(before[2]) :]
            refused = isinstance(error, TruvarError) and [step.kind for step in new] == ["told"]  # all or nothing
            self.return_to(before, intact=refused and not past_changed)
            raise
        self._models = self.learner.surrogate.fitted_models
        return {count: model for count, model in self._models.items() if count not in known}

    def mark(self) -> tuple[int, int, list[Step], dict[int, Model], dict[int, datetime]]:
        """What `return_to` needs to know."""
        return self.number, self.next_id, list(self._steps), dict(self._models), dict(self.leases)

    def return_to(self, mark: tuple[int, int, list[Step], dict[int, Model], dict[int, datetime]], intact: bool) -> None:
        """Makes the events after the mark undone; `intact`: they never counted."""
        self.number, self.next_id, self._steps, self._models, self.leases = mark
        if not intact:
            self._begin()
            self._do_the_rest()

    def overdue(self, moment: datetime) -> list[int]:
        """Pending suggestions whose leases have run out."""
        return [id_ for id_ in self.pending if id_ in self.leases and self.leases[id_] <= moment]

    @property
    def summary(self) -> StudySummary:
        """In short."""
        spent = self.history[-1]["spent"] if self.history else 0.0
        return StudySummary(len(self.history), spent, len(self.pending))

    def observation(self, id_: int) -> tuple[Action, float] | None:
        """The measurement with that id, as it was told or corrected."""
        return next(((s.action, s.value) for s in self._steps if s.is_of("told", id_) and s.action is not None), None)

    def id_with_key(self, key: str) -> int | None:
        """The id of the measurement that was told with that key."""
        return next((s.action.id for s in self._steps if s.key == key and s.action is not None), None)

    def _note(self, event: Event) -> bool:
        """The event as a step; whether it changes the past."""
        details, self.number = event.details, event.number
        self.next_id = max(self.next_id, int(details.get("id", 0)) + 1)
        match event.kind:
            case "created" | "noted":
                return False
            case "asked":
                action = self._action(details)
                if details.get("until") is not None:
                    self.leases[action.id] = datetime.fromisoformat(details["until"])
                self._steps.append(Step("asked", action))
                return False
            case "told":
                self._steps.append(Step("told", self._action(details), details["y"], details.get("key")))
                past_changed = False
            case "corrected":
                at = self._place_of("told", details["id"])
                self._steps[at] = Step("told", self._action(details), details["y"], self._steps[at].key)
                self._forget_models(at)
                past_changed = True
            case "withdrawn" if any(step.is_of("told", details["id"]) for step in self._steps):
                at = self._place_of("told", details["id"])
                self._forget_models(at)
                self._steps = [s for s in self._steps if s.action is None or s.action.id != details["id"]]
                past_changed = True
            case "withdrawn" | "expired":
                asked = self._steps[self._place_of("asked", details["id"])]
                self._steps.append(Step("withdrawn" if event.kind == "withdrawn" else "expired", asked.action))
                return False
            case "exhausted":
                self._steps.append(Step("exhausted"))
                return False
            case "fitted":
                self._steps.append(Step("fitted", value=details["model"]))
                return False
            case _:
                raise TruvarError(
                    f"this version of truvar does not know the event {event.kind!r}, which another wrote; update it"
                )
        self._models.update({int(count): model for count, model in details.get("models", {}).items()})
        return past_changed

    def _place_of(self, kind: str, id_: int) -> int:
        for k, step in enumerate(self._steps):
            if step.is_of(kind, id_):
                return k
        raise KeyError(f"{id_} was never {kind}")

    def _forget_models(self, at: int) -> None:
        """What was learned with the value of that step is no longer so."""
        before = sum(step.kind == "told" for step in self._steps[:at])
        self._models = {count: model for count, model in self._models.items() if count <= before}

    def details(self, action: Action) -> dict[str, Any]:
        """The action as an event has it."""
        tasks = self.config.prior.tasks
        return {
            "id": action.id,
            "point": self.config.domain.named(action.point[: len(self.config.domain.columns)]),
            "site": action.site,
            "level": action.level,
            "task": None if tasks is None else tasks.names[action.task],
            "noise": action.noise,
            "cost": action.cost,
            "gain": None if np.isnan(action.gain) else action.gain,
            "noise_told": action.noise_given,
        }

    def _action(self, details: Mapping[str, Any]) -> Action:
        tasks = self.config.prior.tasks
        task = 0 if tasks is None else list(tasks.names).index(details["task"])
        where = [details["point"][name] for name in self.config.domain.columns]
        point = np.array([*where, *([] if tasks is None else [task])], dtype=float)
        gain = float("nan") if details["gain"] is None else details["gain"]
        how = details["level"], task, details["noise"], details["cost"], gain, details["noise_told"]
        return Action(details["id"], point, details["site"], *how)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _do_the_rest(self) -> None:
        self.learner.surrogate.fitted_models = self._models
        while self._done < len(self._steps):
            self._do(self._steps[self._done])
            self._done += 1

    def _do(self, step: Step) -> None:
        learner, action = self.learner, step.action
        if step.kind == "fitted":
            learner.adopt(step.value)
        elif step.kind == "exhausted":
            self.exhausted = True
        elif action is None:
            raise AssertionError(f"a step {step.kind!r} without an action")
        elif step.kind == "asked":
            learner.add_pending(action)
            self.pending[action.id] = action
            self.trail.append((action.id, action.point))
        elif step.kind == "told":
            self._tell(action, step.value)
        else:
            if step.kind == "expired":
                self.expired[action.id] = action
            del self.pending[action.id]
            self.trail = [(id_, place) for id_, place in self.trail if id_ != action.id]
            self.exhausted = False
            learner.set_pending(self.pending.values())

    def _tell(self, action: Action, y: float) -> None:
        asked = self.pending.get(action.id)
        if asked is not None and _same(asked, action):
            action = asked  # whose row is in the posterior already
        beta = self.learner.state.epoch.beta
        self.learner.observe(action, y, list(self.pending.values()))
        self.betas.append(beta)
        if self.pending.pop(action.id, None) is None:
            self.trail.append((action.id, action.point))
        self.expired.pop(action.id, None)
        self.exhausted = False
        self._record(action)

    def _record(self, action: Action) -> None:
        learner = self.learner
        state, mean = learner.state, learner.posterior.mean[: len(self.config.domain)]
        index = int(np.argmax(self.config.goal.sign * mean))
        values = (
            len(learner.observations),
            action.cost + (self.history[-1]["spent"] if self.history else 0.0),
            state.epoch.index,
            state.epoch.eta,
            state.epoch.beta,
            int(np.count_nonzero(state.regions.potential)),
            int(np.count_nonzero(state.regions.above)),
            int(np.count_nonzero(state.regions.below)),
            learner.epsilon,
            index,
            float(mean[index]),
        )
        self.history.append(dict(zip(HISTORY, values, strict=True)))


def _same(asked: Action, told: Action) -> bool:
    """Whether it was measured as it was asked for."""
    return (asked.noise, asked.cost, told.noise_given) == (told.noise, told.cost, False)
