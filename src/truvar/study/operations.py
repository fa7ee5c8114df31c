"""Operations: the effects of events on the state of a study, one class each.

An extension goes on with another learner. A correction replaces the `Told` of the measurement that
it corrects, and a withdrawn measurement has no operation left. A new kind of event is a class here
and a case of `StudyState._record`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truvar._typing import Array
from truvar.algorithm.continuation import continue_learner
from truvar.domain.action import Action
from truvar.domain.exclusions import Place
from truvar.domain.extension import Extension
from truvar.study._extension import extended_config

if TYPE_CHECKING:
    from truvar.models.fit import Model
    from truvar.study._state import StudyState


class Visit(NamedTuple):
    """A position that travel can start from.

    Attributes:
        id: Id of the suggestion or measurement.
        point: Its coordinates, (d',).
        vehicle: The vehicle; None without vehicles, or if none of them was there.
    """

    id: int
    point: Array
    vehicle: str | None


class HistoryRow(NamedTuple):
    """The state after a measurement, as a row of `Study.history`."""

    step: int
    spent: float
    epoch: int
    eta: float
    beta: float
    n_potential: int
    n_above: int
    n_below: int
    epsilon: float
    best_index: int
    best_mean: float


class Operation(ABC):
    """A change of the state of a study."""

    @abstractmethod
    def apply(self, state: StudyState) -> None:
        """Change the state.

        Raises:
            TruvarError: If a value is refused.
        """


@dataclass(frozen=True)
class ActionOperation(Operation):
    """An operation on a suggestion or measurement.

    Attributes:
        action: The suggestion or measurement.
    """

    action: Action


@dataclass(frozen=True)
class Asked(ActionOperation):
    """A suggestion was made."""

    def apply(self, state: StudyState) -> None:
        action = self.action
        state.learner.add_pending(action)
        state.pending[action.id] = action
        state.positions.append(Visit(action.id, action.point, action.vehicle))


@dataclass(frozen=True)
class Told(ActionOperation):
    """A value was measured.

    Attributes:
        y: The value; by quantity, if there are several.
        key: The caller's key, by which a repeated `tell` is recognised.
        with_next: Whether the model takes it together with the next value, which follows
            immediately.
        reference: Where its raw data are; None without such.
        passing: Whether the vehicle only passed the point, so that it is not its position.
    """

    y: Any
    key: str | None = None
    with_next: bool = False
    reference: str | None = None
    passing: bool = False

    def apply(self, state: StudyState) -> None:
        action = self.action
        suggested = state.pending.get(action.id)
        if (
            suggested is not None
            and not action.noise_given
            and suggested.noise == action.noise
            and suggested.cost == action.cost
            and suggested.exposure == action.exposure
        ):
            action = suggested  # its row is in the posterior already
        is_deferred = self.with_next or state.deferred is not None
        pending = list(state.pending.values())
        beta = state.learner.state.epoch.beta
        state.n_updates += 1
        if is_deferred:
            state.learner.check_value(self.y)
            state.deferred = state.deferred or DeferredValues(pending, [])
            state.deferred.observations.append((action, self.y))
        else:
            state.learner.observe(action, self.y, pending)
            state.beta_history.append(beta)
        was_suggested = state.pending.pop(action.id, None) is not None
        if not was_suggested and action.repeats is None and not self.passing:
            state.positions.append(Visit(action.id, action.point, action.vehicle))
        state.expired.pop(action.id, None)
        state.exhausted = False
        if not is_deferred:
            state.history.append(_history_row(state, len(state.learner.observations), action.cost))
        elif state.deferred is not None and not self.with_next:
            state.deferred.observe(state)


@dataclass(frozen=True)
class DeferredValues:
    """Values that were told, and that the model takes together.

    Attributes:
        pending: The actions that were pending before the first of them.
        observations: The measurements with their values.
    """

    pending: list[Action]
    observations: list[tuple[Action, Any]]

    def observe(self, state: StudyState) -> None:
        """Have the model take the values. The rows of the history have the state after the last."""
        state.deferred = None
        beta = state.learner.state.epoch.beta
        state.learner.observe_all(self.observations, self.pending)
        first_step = len(state.learner.observations) - len(self.observations) + 1
        row = _history_row(state, first_step, self.observations[0][0].cost)
        state.history.append(row)
        for action, _ in self.observations[1:]:
            row = row._replace(step=row.step + 1, spent=row.spent + action.cost)
            state.history.append(row)
        state.beta_history += len(self.observations) * [beta]


@dataclass(frozen=True)
class Failed(ActionOperation):
    """A measurement was made without a value, so that travel starts from there.

    Attributes:
        reason: Why it failed, if that was given.
    """

    reason: str | None

    def apply(self, state: StudyState) -> None:
        action = self.action
        if state.pending.pop(action.id, None) is None:
            state.positions.append(Visit(action.id, action.point, action.vehicle))
        else:
            state.learner.set_pending(state.pending.values())
        state.expired.pop(action.id, None)
        state.learner.fail(action, self.reason)
        state.exhausted = False
        state.n_updates += 1


@dataclass(frozen=True)
class Withdrawn(ActionOperation):
    """A suggestion will not be measured."""

    def apply(self, state: StudyState) -> None:
        id_ = self.action.id
        del state.pending[id_]
        state.positions = [visit for visit in state.positions if visit.id != id_]
        state.exhausted = False
        state.learner.set_pending(state.pending.values())


@dataclass(frozen=True)
class Expired(Withdrawn):
    """The lease of a suggestion ran out; its value may still be told."""

    def apply(self, state: StudyState) -> None:
        state.expired[self.action.id] = state.pending[self.action.id]
        super().apply(state)


@dataclass(frozen=True)
class Exhausted(Operation):
    """The policy found nothing to gain."""

    def apply(self, state: StudyState) -> None:
        state.exhausted = True


@dataclass(frozen=True)
class Excluded(Operation):
    """A place cannot be measured.

    Attributes:
        place: The place.
        reason: Why, if that was given.
    """

    place: Place
    reason: str | None

    def apply(self, state: StudyState) -> None:
        state.learner.exclude(self.place, self.reason)
        state.exhausted = False
        state.n_updates += 1


@dataclass(frozen=True)
class Allowed(Operation):
    """A place can be measured again.

    Attributes:
        place: The place.
    """

    place: Place

    def apply(self, state: StudyState) -> None:
        state.learner.allow(self.place)
        state.exhausted = False
        state.n_updates += 1


@dataclass(frozen=True)
class Fitted(Operation):
    """The model was fitted to another data set.

    Attributes:
        model: The model.
    """

    model: Model

    def apply(self, state: StudyState) -> None:
        state.learner.adopt(self.model)
        state.fitted = self.model
        state.n_updates += 1


@dataclass(frozen=True)
class Extended(Operation):
    """The domain was extended: a new learner takes all that was measured so far.

    Attributes:
        extension: The further points.
    """

    extension: Extension

    def apply(self, state: StudyState) -> None:
        previous = state.learner
        relocation = state.extend(extended_config(state.config, self.extension))
        if state.fitted is not None:
            state.learner.adopt(state.fitted)
        beta = state.learner.state.epoch.beta
        continue_learner(
            state.learner,
            previous,
            relocation,
            state.observed_so_far(),
            list(state.pending.values()),
        )
        state.beta_history = len(state.beta_history) * [beta]
        state.exhausted = False
        state.n_updates += 1


def _history_row(state: StudyState, step: int, cost: float) -> HistoryRow:
    """Return the row of the history after so many measurements, the last of that cost."""
    learner = state.learner
    regions = learner.state.regions
    epoch = learner.state.epoch
    mean = learner.surrogate.transform.inverse(learner.surrogate.moments[0])
    signed = state.config.goal.sign * mean
    if learner.excluded is not None:
        signed = np.where(learner.excluded, -np.inf, signed)
    if learner.recommendable is not None:
        signed = np.where(learner.recommendable, signed, -np.inf)
    best_index = int(np.argmax(signed))
    spent = cost + (state.history[-1].spent if state.history else 0.0)
    failed = 0.0
    for failure in learner.failures:
        if failure.n_before == step - 1:
            failed += failure.action.cost
    return HistoryRow(
        step=step,
        spent=spent + failed,
        epoch=epoch.index,
        eta=epoch.eta,
        beta=epoch.beta,
        n_potential=int(np.count_nonzero(regions.potential)),
        n_above=int(np.count_nonzero(regions.above)),
        n_below=int(np.count_nonzero(regions.below)),
        epsilon=learner.epsilon,
        best_index=best_index,
        best_mean=float(mean[best_index]),
    )
