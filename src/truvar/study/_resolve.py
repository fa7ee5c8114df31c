"""What a caller means by a suggestion, its id or a point, as an `Action`; what cannot be meant is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.exceptions import TruvarError
from truvar.messages import for_interface, format_point
from truvar.study._state import StudyState
from truvar.study._views import suggestion
from truvar.study.suggestion import Suggestion
from truvar.validation import check_finite, check_nonnegative


def resolve_action(
    study_state: StudyState,
    what: Suggestion | int | Mapping[str, float],
    level: int | None = None,
    task: str | None = None,
    told: bool = False,
    expired: bool = False,
) -> Action:
    """A point, what is pending or, where allowed, what was told or has expired."""
    if isinstance(what, Mapping):
        return unasked(study_state, what, level, task)
    if level is not None or task is not None:
        came = f"{'a task' if level is None else 'a level'} came ({task if level is None else level})"
        raise TruvarError(
            f"a suggestion has its own level and task, but {came}; leave it out, or tell the point if it was measured "
            "otherwise"
        )
    id_ = _id(study_state, what)
    found = study_state.pending.get(id_) or (study_state.expired.get(id_) if expired else None)
    if found is None and told:
        known = study_state.observation(id_)
        found = None if known is None else known[0]
    if found is None:
        waiting = ", ".join(map(str, study_state.pending)) or "none"
        other = ", or the point" if expired else " or was told" if told else ""
        raise TruvarError(
            f"a suggestion must be pending, but {id_!r} is not (pending: {waiting}); give one that is{other}"
        )
    own = suggestion(study_state, found)
    if isinstance(what, Suggestion) and (what.point, what.level, what.task) != (own.point, own.level, own.task):
        raise TruvarError(
            f"suggestion {id_} of this study is at {format_point(own.point)}, but the one that came is at "
            f"{format_point(what.point)}: it belongs to another study; tell it there"
        )
    return found


def measured(study_state: StudyState, what: Suggestion | int) -> Action:
    """The measurement with that id."""
    id_ = _id(study_state, what)
    known = study_state.observation(id_)
    if known is None:
        ids = [action.id for action, _ in study_state.learner.observations]
        have = f"those told so far are {', '.join(map(str, ids))}" if ids else "none was told so far"
        raise TruvarError(f"correct takes the id of a value that was told, but {id_} was not; {have}")
    return known[0]


def unasked(study_state: StudyState, point: Mapping[str, float], level: int | None, task: str | None) -> Action:
    """The measurement of a point that nobody asked for."""
    domain, actions = study_state.config.domain, study_state.learner.actions
    index, x = domain.locate(point)
    t = actions.task_index(task)
    if actions.noise_levels is None and level is not None:
        raise TruvarError(f"this study has no noise levels, but level {level!r} was given; leave it out")
    count = 0 if actions.noise_levels is None else len(actions.noise_levels.variance)
    if count and (not isinstance(level, (int, np.integer)) or isinstance(level, bool) or not 0 <= level < count):
        came = "none came" if level is None else f"it was {level!r}"
        raise TruvarError(
            f"of a point it must be said which noise level was used, 0 to {count - 1}, but {came}; give "
            f"{for_interface('level=...', cli='--level N', http='level')}"
        )
    last = last_position(study_state)
    if index is None:
        return action_at(study_state, actions.candidates_at(x[None, :], last), (t, level or 0), None, level)
    site = t * len(domain) + index
    return action_at(study_state, actions.candidates(last), (site, level or 0), site, level)


def action_at(
    study_state: StudyState,
    table: Candidates,
    row: tuple[int, int],
    site: int | None,
    level: int | None,
    gain: float = float("nan"),
) -> Action:
    """The place and level of a row of the table, as the next action of the study."""
    point = table.points[row[0]]
    task = int(point[-1]) if study_state.config.prior.tasks is not None else 0
    return Action(study_state.next_id, point, site, level, task, float(table.noise[row]), float(table.cost[row]), gain)


def last_position(study_state: StudyState) -> Array | None:
    """Where one stands (d,): at the latest suggestion, or at a later value told unasked."""
    return study_state.trail[-1][1][: len(study_state.config.domain.columns)] if study_state.trail else None


def with_measured(action: Action, noise: float | None, cost: float | None) -> Action:
    """The action with the noise and cost that it turned out to have."""
    if noise is not None:
        action = replace(action, noise=noise, noise_given=True)
    return action if cost is None else replace(action, cost=cost)


def checked(y: Any, noise: Any, cost: Any) -> tuple[float, float | None, float | None]:
    """Value, noise and cost as they were told, or a message."""
    value = check_finite(y, "the measured value y")
    noise = None if noise is None else check_nonnegative(noise, "noise")
    return value, noise, None if cost is None else check_nonnegative(cost, "cost")


def _id(study_state: StudyState, what: Any) -> int:
    id_: Any = what.id if isinstance(what, Suggestion) else what
    if not isinstance(id_, (int, np.integer)) or isinstance(id_, bool):
        point = format_point(study_state.config.domain.point(0))
        raise TruvarError(f"a suggestion, its id or a point such as {point} must come, got {what!r}; give one of them")
    return int(id_)
