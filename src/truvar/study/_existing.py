"""Studies that exist already: opening them in place of creating them (`if_exists="load"`)."""

from __future__ import annotations

from typing import Any

from truvar.exceptions import (
    InvalidArgumentError,
    StoreNotFoundError,
    StudyExistsError,
)
from truvar.messages import unknown_name
from truvar.storage.base import EventLog, check_study_name
from truvar.storage.serialization import dump_json, serialize
from truvar.study._events import StudyConfig

CHOICES = ("fail", "load")
_MAX_TEXT = 60  # characters of a setting in a message


def check_if_exists(if_exists: str, store: Any) -> None:
    """Check what is to be done if the study exists.

    Raises:
        InvalidArgumentError: If there is no such choice, or no store to load the study from.
    """
    if if_exists not in CHOICES:
        raise InvalidArgumentError(unknown_name("if_exists", if_exists, CHOICES))
    if if_exists == "load" and store is None:
        raise InvalidArgumentError(
            'if_exists="load" needs the store that has the study, got none; give '
            'store="sqlite:///lab.db" and a name, or leave out if_exists'
        )


def existing_event_log(store: Any, name: str | None) -> EventLog | None:
    """Return the event log of a study that the store has; None if it has no such study.

    Args:
        store: URL of a database, or an event log.
        name: Name of the study.
    """
    if hasattr(store, "transaction"):
        return store if store.since(0) else None
    from truvar.storage import open_storage

    name = check_study_name(name)
    try:
        return open_storage(store).find_event_log(name)
    except StoreNotFoundError:
        return None


def check_same_settings(given: StudyConfig, stored: StudyConfig, name: str | None) -> None:
    """Check that a study was created with the settings that are given now.

    Args:
        given: The settings, after a serialization round trip.
        stored: Those of the stored study.
        name: Name of the study.

    Raises:
        StudyExistsError: If they differ; the message names the settings.
    """
    now = given.to_details()
    before = stored.to_details()
    differing = [
        key
        for key in dict.fromkeys([*before, *now])
        if _serialized(before.get(key), key) != _serialized(now.get(key), key)
    ]
    if not differing:
        return
    texts = []
    for key in differing:
        old = _short(before.get(key))
        new = _short(now.get(key))
        texts.append(key if old == new else f"{key} (stored: {old}, given: {new})")
    raise StudyExistsError(
        f"the study {name!r} exists with other settings: {', '.join(texts)}; open it unchanged with "
        "tv.load(store, name), or give another name"
    )


def _serialized(value: Any, what: str) -> str:
    return dump_json(serialize(value, what))


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."
