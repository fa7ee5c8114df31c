"""Checks of whole stores, and copies of what is undamaged."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from truvar.exceptions import StorageError, TruvarError
from truvar.storage import open_storage
from truvar.storage.base import Event
from truvar.storage.tokens import list_tokens
from truvar.study._events import StudyConfig
from truvar.study._state import StudyState

if TYPE_CHECKING:
    from truvar.storage.rdb import RDBStorage


@dataclass(frozen=True)
class StudyCheck:
    """The undamaged beginning of a stored study.

    Attributes:
        name: Name of the study.
        events: Number of its first events that are undamaged and make a study.
        steps: Number of measurements after these events.
        problem: What is wrong; None: nothing.
    """

    name: str
    events: int
    steps: int
    problem: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a dictionary."""
        return asdict(self)


def check_store(url: str, repaired: str | None = None) -> list[StudyCheck]:
    """Check every event of every study of a store, and whether they make a study.

    The names of the studies and the tokens are checked too.

    Args:
        url: URL of the store. It is not changed.
        repaired: URL of a new store, for the longest undamaged beginning of each study; None: check
            only.

    Returns:
        One check per study, sorted by name; then one without a name for each damage of the store
        itself.

    Raises:
        StorageError: If the database itself is damaged so that its list of studies cannot be read.
    """
    storage = open_storage(url)
    copy = None if repaired is None else open_storage(repaired)
    if copy is not None and copy.path is not None and copy.path.exists():
        raise StorageError(f"the copy {copy.label} exists already; give a new file")
    checks = [_check_study(storage, name, copy) for name in storage.study_names()]
    for token in list_tokens(storage):
        if token.is_damaged:
            remedy = "it is refused: revoke it and make another"
            checks.append(
                StudyCheck(
                    "", 0, 0, f"the token {token.name!r} does not match its checksum; {remedy}"
                )
            )
    problem = storage.find_damage()
    if problem is not None:
        checks.append(StudyCheck("", 0, 0, f"the database is damaged: {problem}"))
    return checks


def _check_study(storage: RDBStorage, name: str, copy: RDBStorage | None) -> StudyCheck:
    try:
        event_log = storage.get_event_log(name)
        events, problem = event_log.read_prefix()
    except TruvarError as error:
        return StudyCheck(name, 0, 0, str(error))
    state, valid, refused = _replay(events)
    problem = refused or problem
    if state is None:
        return StudyCheck(name, 0, 0, problem or "it has no events")
    if problem is None:
        try:
            event_log.check_summary(state.summary)
        except TruvarError as error:
            problem = str(error)
    if copy is not None:
        with copy.create_event_log(name).transaction(0) as transaction:
            transaction.appended += events[:valid]
            transaction.summary = state.summary
    return StudyCheck(name, valid, len(state.history), problem)


def _replay(events: list[Event]) -> tuple[StudyState | None, int, str | None]:
    """Return the state before the first refused event, the number of events, and the reason."""
    if not events:
        return None, 0, None
    try:
        state = StudyState(StudyConfig.from_details(events[0].details))
    except Exception as error:  # damaged settings can be wrong in any way
        return None, 0, f"the first event makes no study: {error!r}"
    try:
        state.replay(events)
    except Exception:
        state = StudyState(state.first_config)
    else:
        return state, len(events), None
    for count, event in enumerate(events):
        try:
            state.replay([event])
        except Exception as error:
            return state, count, f"event {event.number} cannot be applied: {error!r}"
    return state, len(events), None
