"""The state of a study, rebuilt from its event log.

Every event that takes effect becomes an operation, and the operations are applied one after the
other. Nothing is chosen here, so that the same events lead to the same state in every process. A
correction replaces an operation of the past and a withdrawn measurement loses its operation; all
operations are then applied again from the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar

from truvar.domain.action import Action
from truvar.domain.exclusions import Place
from truvar.domain.extension import Extension, Relocation
from truvar.exceptions import SerializationError, TruvarError
from truvar.models.fit import Model
from truvar.models.hyperparameters import AnyModel
from truvar.storage.base import Event, StudySummary
from truvar.study._conclusions import Conclusions
from truvar.study._events import (
    ModelKey,
    StudyConfig,
    action_from_details,
    fits_after,
    with_fits,
)
from truvar.study.operations import (
    ActionOperation,
    Allowed,
    Asked,
    DeferredValues,
    Excluded,
    Exhausted,
    Expired,
    Extended,
    Failed,
    Fitted,
    HistoryRow,
    Operation,
    Told,
    Visit,
    Withdrawn,
)

# kinds of events whose details hold an action
WITH_ACTION = frozenset({"asked", "told", "corrected", "failed"})


A = TypeVar("A", bound=ActionOperation)


class Snapshot(NamedTuple):
    """The part of a state from which `StudyState.rollback` rebuilds the rest."""

    version: int
    changed_at: datetime | None
    next_id: int
    operations: list[Operation]
    models: dict[ModelKey, AnyModel]
    leases: dict[int, datetime]


class StudyState:
    """The state of a study after the events that it was given.

    Args:
        config: The settings that the study was created with.

    Attributes:
        config: The present settings; only an extension of the domain changes them.
        first_config: The settings that the study was created with.
        settled_config: The settings after the last change that was completed, which may be read
            while another thread changes the study.
        version: Number of the last event.
        changed_at: Time of the last event; None before the first.
        next_id: Id of the next suggestion or measurement; ids are never reused.
        leases: Until when pending suggestions are reserved, by id.
        learner: The model and Algorithm 1.
        fitted: The model that was fitted to another data set; None: there is none.
        pending: Suggestions that are neither measured nor withdrawn, by id.
        expired: Suggestions whose leases ran out, by id; their values may still be told.
        positions: Every suggestion, or measurement that was not suggested, in order, but no
            repeats.
        history: One row per measurement.
        conclusions: What follows from the state, computed when it is asked for.
        beta_history: The beta that the bounds after each measurement were computed with.
        exhausted: Whether the policy found nothing to gain at its last choice.
        defers_values: Whether the model takes the values that are told only after the last of them.
        deferred: The values that it has not taken yet.
        restore_point: Snapshot to return to if a change was interrupted so that it could not even
            be undone.
        n_updates: Number of changes to the model and its measurements; what is stated about f
            depends on nothing else.
    """

    def __init__(self, config: StudyConfig) -> None:
        self.first_config = config
        self.settled_config = config
        self.version = 0
        self.changed_at: datetime | None = None
        self.next_id = 1
        self.leases: dict[int, datetime] = {}
        self._operations: list[Operation] = []
        self._models: dict[ModelKey, AnyModel] = {}  # fitted hyperparameters
        self.n_updates = 0
        self.restore_point: Snapshot | None = None
        self.conclusions = Conclusions(self)
        self._restart()
        self._learner_version: int | None = (
            0  # version that the learner is at; None while it changes
        )

    def _restart(self) -> None:
        """Return to the state before the first operation."""
        self.config = self.first_config
        self.learner = self.config.make_learner()
        self.fitted: Model | None = None
        # the extensions so far, each with the number of operations before it
        self._relocations: list[tuple[int, Relocation]] = []
        self._n_fits: int | None = None  # fits that the learner knows; None: not those of `_models`
        self.n_updates += 1
        self.pending: dict[int, Action] = {}
        self.expired: dict[int, Action] = {}
        self.positions: list[Visit] = []
        self.history: list[HistoryRow] = []
        self.beta_history: list[float] = []
        self.exhausted = False
        self.defers_values = False
        self.deferred: DeferredValues | None = None
        self._n_applied = 0

    # -- events
    # ----------------------------------------------------------------------------------------------

    def replay(self, events: Sequence[Event]) -> None:
        """Take the effects of stored events. If one of them fails, none has taken effect.

        Raises:
            SerializationError: If a kind of event is unknown.
        """
        entries: list[tuple[Event, Action | None]] = []
        for event in events:
            action = (
                action_from_details(self.config, event.details)
                if event.kind in WITH_ACTION
                else None
            )
            entries.append((event, action))
        self._take(entries)

    def apply(self, event: Event, action: Action | None = None) -> dict[ModelKey, AnyModel]:
        """Take the effect of a new event.

        Args:
            event: The event.
            action: The action that its details hold, if its kind has one.

        Returns:
            Hyperparameters that had to be fitted, by number of observations, to be stored with the
            event.

        Raises:
            TruvarError: If the event is refused. It has not taken effect then.
        """
        return self._take([(event, action)])

    def _take(self, entries: Sequence[tuple[Event, Action | None]]) -> dict[ModelKey, AnyModel]:
        if not entries:
            return {}
        outermost = self.restore_point is None
        before = self.restore_point
        if (
            before is None or before.version != self.version
        ):  # the first event of a change needs no second snapshot
            before = self.snapshot()
        self.restore_point = self.restore_point or before
        past_changed = False
        self._learner_version = None
        try:
            for event, action in entries:
                first_changed = self._record(event, action)
                past_changed |= first_changed < self._n_applied
            known_models = set(self._models)
            if past_changed:
                self._restart()
            self._apply_operations()
        except BaseException as error:
            new = [type(operation) for operation in self._operations[len(before.operations) :]]
            # The learner refuses an observation without changing; anything else may have failed
            # half way.
            refused = isinstance(error, TruvarError) and new == [Told]
            if refused and not past_changed:
                self._learner_version = before.version
            self._return_to(before)
            if outermost:
                self.restore_point = None
            raise
        self._learner_version = self.version
        if outermost:
            self.restore_point = None
        if self._models.keys() <= known_models:
            return {}
        return {count: model for count, model in self._models.items() if count not in known_models}

    @contextmanager
    def deferred_values(self) -> Iterator[dict[ModelKey, AnyModel]]:
        """Have the model take the values told within after the last of them.

        If one of them is refused, none has taken effect.

        Yields:
            Hyperparameters that had to be fitted, by number of observations; filled at the end.
        """
        before = self.snapshot()
        models: dict[ModelKey, AnyModel] = {}
        self.defers_values = True
        try:
            yield models
            self.defers_values = False
            models |= self._take_deferred()
        except BaseException:
            self.defers_values = False
            self._learner_version = None
            self._return_to(before)
            raise

    def _take_deferred(self) -> dict[ModelKey, AnyModel]:
        """Have the model take the deferred values; return the fits that were made."""
        last = self._operations[-1] if self._operations else None
        if self.deferred is None or not isinstance(last, Told):
            return {}
        known_models = set(self._models)
        self._learner_version = None
        self._operations[-1] = replace(last, with_next=False)
        self.deferred.observe(self)
        self._apply_operations()  # keeps the fits; there are no further operations
        self._learner_version = self.version
        return {count: model for count, model in self._models.items() if count not in known_models}

    @staticmethod
    def past(config: StudyConfig, snapshot: Snapshot) -> Iterator[StudyState]:
        """Yield the state after each measurement up to a snapshot: one object, which changes.

        Args:
            config: Settings that the study was created with.
            snapshot: The operations, with the values as they are known now.
        """
        state = StudyState(config)
        state._models = dict(snapshot.models)
        for operation in snapshot.operations:
            state._operations.append(operation)
            state._apply_operations()
            if isinstance(operation, Told):
                yield state

    def copy(self) -> StudyState:
        """Return an independent copy, which shares the settings."""
        shared: list[Any] = []
        for config in (self.first_config, self.config):
            shared += [config, *vars(config).values(), *vars(config.prior).values()]
        return deepcopy(self, {id(part): part for part in shared})

    def snapshot(self) -> Snapshot:
        """Return a snapshot for `rollback`."""
        return Snapshot(
            self.version,
            self.changed_at,
            self.next_id,
            list(self._operations),
            dict(self._models),
            dict(self.leases),
        )

    def rollback(self, snapshot: Snapshot) -> None:
        """Undo the events after a snapshot. The learner is rebuilt unless it never took them."""
        self.restore_point = snapshot
        self._return_to(snapshot)
        self.restore_point = None

    def invalidate(self) -> None:
        """Have the learner rebuilt before its next use, as an exception may have changed it.

        Even a method that only reads can do that: engines compute what they lack at the first use.
        """
        self._learner_version = None
        if self.restore_point is None:
            self.restore_point = self.snapshot()

    def restore(self) -> None:
        """Undo what an interrupted change has left, if there is anything."""
        if self.restore_point is not None:
            self.rollback(self.restore_point)

    def _return_to(self, snapshot: Snapshot) -> None:
        self.version = snapshot.version
        self.changed_at = snapshot.changed_at
        self.next_id = snapshot.next_id
        self._operations = list(snapshot.operations)  # the snapshot itself may be returned to again
        self._models = dict(snapshot.models)
        self.leases = dict(snapshot.leases)
        if self._learner_version != snapshot.version:
            self._learner_version = None
            self._restart()
            self._apply_operations()
            self._learner_version = snapshot.version

    def _record(self, event: Event, action: Action | None) -> int:
        """Turn an event into an operation; return the index of the first one changed or added."""
        details = event.details
        self.version = event.number
        self.changed_at = event.time
        self.next_id = max(self.next_id, int(details.get("id", 0)) + 1)
        first_changed = len(self._operations)
        match event.kind, action:
            case "created" | "noted", _:
                pass
            case "asked", Action():
                if details.get("until") is not None:
                    self.leases[action.id] = datetime.fromisoformat(details["until"])
                self._operations.append(Asked(action))
            case "told", Action():
                with_next = details.get("with_next", False)
                told = Told(
                    action,
                    details["y"],
                    details.get("key"),
                    with_next,
                    details.get("reference"),
                    details.get("passing", False),
                )
                self._operations.append(told)
            case "corrected", Action():
                first_changed, told = self._find(Told, details["id"])
                # A correction does not move a measurement: the event has its present site.
                action = replace(action, site=told.action.site)
                self._operations[first_changed] = replace(told, action=action, y=details["y"])
                self._discard_models_after(first_changed)
            case "withdrawn", _ if self.observation(details["id"]) is not None:
                self._discard_models_after(self._find(Told, details["id"])[0])
                first_changed = self._remove_operations_on(details["id"])
            case "withdrawn", _:
                self._operations.append(Withdrawn(self._find(Asked, details["id"])[1].action))
            case "expired", _:
                self._operations.append(Expired(self._find(Asked, details["id"])[1].action))
            case "failed", Action():
                self._operations.append(Failed(action, details["reason"]))
            case "excluded", _:
                place = Place.from_details(details)
                self._operations.append(Excluded(place, details.get("reason")))
            case "allowed", _:
                self._operations.append(Allowed(Place.from_details(details)))
            case "exhausted", _:
                self._operations.append(Exhausted())
            case "fitted", _:
                self._operations.append(Fitted(details["model"]))
            case "extended", _:
                self._operations.append(Extended(Extension.from_details(details)))
            case _:
                raise SerializationError(
                    f"unknown kind of event {event.kind!r}, written by another version of truvar; "
                    "update truvar"
                )
        for key, model in details.get("models", {}).items():
            self._models[ModelKey.parse(key)] = model
            self._n_fits = None
        return first_changed

    def _find(self, kind: type[A], id_: int) -> tuple[int, A]:
        """Return the first operation of that class on an action, and its index."""
        for index, operation in enumerate(self._operations):
            if isinstance(operation, kind) and operation.action.id == id_:
                return index, operation
        raise KeyError(f"{id_} was never {kind.__name__.lower()}")

    def _remove_operations_on(self, id_: int) -> int:
        """Remove every operation on that action; return the index of the first."""
        on_action = [
            isinstance(each, ActionOperation) and each.action.id == id_ for each in self._operations
        ]
        told, removed = self._find(Told, id_)
        previous = self._operations[told - 1] if told else None
        if isinstance(previous, Told) and previous.with_next:
            # The model takes the values before it without it.
            self._operations[told - 1] = replace(previous, with_next=removed.with_next)
        self._operations = [
            each for each, gone in zip(self._operations, on_action, strict=True) if not gone
        ]
        return on_action.index(True)

    def _discard_models_after(self, index: int) -> None:
        """Discard the hyperparameters that were fitted with the observation of that operation."""
        told = [each for each in self._operations[:index] if isinstance(each, Told)]

        def n_before(key: ModelKey) -> int:
            if key.quantity is None:
                return len(told)
            return sum(key.quantity in each.y for each in told)

        self._models = {
            key: model for key, model in self._models.items() if key.n_observations <= n_before(key)
        }

    # -- queries
    # ----------------------------------------------------------------------------------------------

    @property
    def summary(self) -> StudySummary:
        """The counters that are stored with the study."""
        return StudySummary(len(self.history), self.spent, len(self.pending))

    @property
    def spent(self) -> float:
        """Total cost of the measurements, those that failed included."""
        spent = self.history[-1].spent if self.history else 0.0
        failed = 0.0
        n_observations = len(self.learner.observations)
        for failure in self.learner.failures:
            if failure.n_before == n_observations:
                failed += failure.action.cost
        return spent + failed

    def expired_leases(self, moment: datetime) -> list[int]:
        """Return the ids of pending suggestions whose leases have run out."""
        return [id_ for id_ in self.pending if id_ in self.leases and self.leases[id_] <= moment]

    def observation(self, id_: int) -> tuple[Action, Any] | None:
        """Return the measurement with that id and its present value; None if there is none."""
        for index, operation in enumerate(self._operations):
            if isinstance(operation, Told) and operation.action.id == id_:
                return _relocated(self._relocations, index, operation.action), operation.y
        return None

    def attempt(self, id_: int) -> Action | None:
        """Return the suggestion or measurement with that id, withdrawn or not; None: unknown."""
        for index, operation in reversed(list(enumerate(self._operations))):
            if isinstance(operation, ActionOperation) and operation.action.id == id_:
                return _relocated(self._relocations, index, operation.action)
        return None

    def observed_so_far(self) -> list[tuple[Action, Any]]:
        """Return the measurements of the operations that were applied, with their present sites."""
        return [
            (_relocated(self._relocations, index, operation.action), operation.y)
            for index, operation in enumerate(self._operations[: self._n_applied])
            if isinstance(operation, Told)
        ]

    def id_with_key(self, key: str) -> int | None:
        """Return the id of the measurement that was told with that key; None if there is none."""
        for operation in self._operations:
            if isinstance(operation, Told) and operation.key == key:
                return operation.action.id
        return None

    def ids_with_keys(self, keys: Sequence[str | None]) -> list[int]:
        """Return the ids of the measurements with these keys, in the order of the keys."""
        found = [self.id_with_key(key) for key in keys if key is not None]
        return [id_ for id_ in found if id_ is not None]

    def told_texts(self, name: Literal["key", "reference"]) -> dict[int, str]:
        """Return the caller's keys of measurements, or references to their raw data, by id."""
        told = [each for each in self._operations if isinstance(each, Told)]
        return {each.action.id: getattr(each, name) for each in told if getattr(each, name)}

    # -- operations
    # ----------------------------------------------------------------------------------------------

    def extend(self, config: StudyConfig) -> Relocation:
        """Go on with the settings of an extended domain, and a learner without measurements.

        Returns:
            Where the points of the domain before are now.
        """
        self._models = with_fits(self._models, len(self._relocations), self.learner.fitted_models)
        relocation = Relocation(self.config.domain, config.domain)
        self.config = config
        self.learner = config.make_learner()
        self._relocations.append((self._n_applied, relocation))
        self._give_fits()
        self.pending = {id_: relocation.action(each) for id_, each in self.pending.items()}
        self.expired = {id_: relocation.action(each) for id_, each in self.expired.items()}
        return relocation

    def _give_fits(self) -> None:
        """Let the learner know the fits on the present domain, so that none is repeated."""
        fits = fits_after(self._models, len(self._relocations))
        self.learner.fitted_models = fits
        self._n_fits = len(fits)

    def _apply_operations(self) -> None:
        """Apply the operations that were not applied yet, and keep the fits that were made."""
        if self._n_fits is None:
            self._give_fits()
        while self._n_applied < len(self._operations):
            self._operations[self._n_applied].apply(self)
            self._n_applied += 1
        fits = self.learner.fitted_models
        if len(fits) != self._n_fits:
            self._models = with_fits(self._models, len(self._relocations), fits)
            self._n_fits = len(fits)
        self.settled_config = self.config


def _relocated(relocations: Sequence[tuple[int, Relocation]], index: int, action: Action) -> Action:
    """Return the action of an operation with its site in the present domain.

    Args:
        relocations: The extensions, each with the number of operations before it.
        index: Index of the operation.
        action: Its action.
    """
    for n_before, relocation in relocations:
        if index < n_before:
            action = relocation.action(action)
    return action
