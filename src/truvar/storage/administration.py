"""Rename and delete studies of a store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, delete, select, update

from truvar.exceptions import StudyExistsError, StudyNotFoundError
from truvar.storage._checksums import name_checksum, token_checksum
from truvar.storage._models import EVENTS, STUDIES, TOKENS
from truvar.storage.base import check_study_name, whoami
from truvar.storage.deletions import note_deletion
from truvar.storage.rdb import RDBStorage
from truvar.storage.tokens import read_token_rows


def rename_study(storage: RDBStorage, name: str, new_name: str) -> None:
    """Give a study another name. Tokens for it stay tokens for it; its events are not changed.

    Args:
        storage: The store.
        name: Its present name.
        new_name: The other name.

    Raises:
        StudyNotFoundError: If there is no such study.
        StudyExistsError: If the other name is taken.
        InvalidArgumentError: If the other name cannot be used.
    """
    check_study_name(new_name)
    with storage.write_transaction() as connection:
        study_id = _study_id(connection, name)
        if connection.scalar(select(STUDIES.c.id).where(STUDIES.c.name == new_name)) is not None:
            raise StudyExistsError(f"there is already a study {new_name!r}; give another name")
        values = {"name": new_name, "name_checksum": name_checksum(new_name)}
        connection.execute(update(STUDIES).where(STUDIES.c.id == study_id).values(values))
        _change_tokens(
            connection, lambda names: [new_name if each == name else each for each in names]
        )


def delete_study(storage: RDBStorage, name: str, who: str | None = None) -> int:
    """Delete a study with all its events permanently.

    The store keeps a line about it (see `deletions`).

    Args:
        storage: The store.
        name: Its name.
        who: Author of the deletion; default: the user of this process.

    Returns:
        The number of events that it had.

    Raises:
        StudyNotFoundError: If there is no such study.
    """
    with storage.write_transaction() as connection:
        study_id = _study_id(connection, name)
        deleted = connection.execute(delete(EVENTS).where(EVENTS.c.study_id == study_id)).rowcount
        connection.execute(delete(STUDIES).where(STUDIES.c.id == study_id))
        # A later study of the same name is another one.
        _change_tokens(connection, lambda names: [each for each in names if each != name])
        note_deletion(connection, name, who or whoami(), int(deleted))
    return int(deleted)


def _study_id(connection: Connection, name: str) -> int:
    query = select(STUDIES.c.id).where(STUDIES.c.name == name).with_for_update()
    study_id = connection.scalar(query)
    if study_id is None:
        raise StudyNotFoundError(f"there is no study {name!r}; it may have been renamed or deleted")
    return int(study_id)


def _change_tokens(connection: Connection, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lists of studies that tokens are for.

    A damaged token is refused anyway, and stays so.
    """
    for row in read_token_rows(connection):
        if row.get("studies") is None or row["checksum"] != token_checksum(row):
            continue
        names: list[Any] = json.loads(row["studies"])
        changed = change(names)
        if changed != names:
            values = {"studies": json.dumps(changed)}
            values["checksum"] = token_checksum(row | values)
            connection.execute(update(TOKENS).where(TOKENS.c.id == row["id"]).values(values))
