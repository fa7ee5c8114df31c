"""Consistent copies of a store that is in use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import insert, select

from truvar.exceptions import InvalidArgumentError, StorageError
from truvar.storage._models import EVENTS, STUDIES, TOKENS
from truvar.storage.deletions import copy_deletions
from truvar.storage.rdb import RDBStorage

_BLOCK = 200  # rows that are copied together


def copy_store(source: RDBStorage, target: RDBStorage) -> int:
    """Copy all studies of a store, as of one moment, to a new one. Others may go on working.

    Args:
        source: The store.
        target: Where the copy is to be. An SQLite file must not exist, a database must have no
            studies.

    Returns:
        The number of studies.

    Raises:
        InvalidArgumentError: If the target is not empty.
        StorageError: If a store cannot be used. Nothing is left at the target then.
    """
    path = target.path
    if path is not None and path.exists():
        raise InvalidArgumentError(
            f"a copy needs a new file, got {path}, which exists; give another name"
        )
    if path is None or source.path is None:
        return _copy_rows(source, target)
    count = len(source.study_names())
    partial = path.with_name(f"{path.name}.part")
    try:
        _copy_file(source.path, partial)
        os.replace(partial, path)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            partial.unlink()
        raise StorageError(
            f"the store cannot be copied to {path} ({error}); check the folder and its space"
        ) from None
    return count


def _copy_file(source: Path, target: Path) -> None:
    """Copy an SQLite file with its own means, which see one state of it."""
    with closing(sqlite3.connect(source)) as reader, closing(sqlite3.connect(target)) as writer:
        reader.backup(writer)
        writer.execute("PRAGMA journal_mode = DELETE")  # the copy is one file
    with target.open("rb") as written:
        os.fsync(written.fileno())


def _copy_rows(source: RDBStorage, target: RDBStorage) -> int:
    with source.read_transaction() as reader, target.write_transaction() as writer:
        if writer.scalar(select(STUDIES.c.id).limit(1)) is not None:
            raise InvalidArgumentError(
                f"a copy needs an empty store, got {target.label}, which has studies; give another"
            )
        studies = reader.execute(select(STUDIES).order_by(STUDIES.c.id)).mappings().all()
        for study in studies:
            values = {name: value for name, value in study.items() if name != "id"}
            key = writer.execute(insert(STUDIES).values(values)).inserted_primary_key
            query = select(EVENTS).where(EVENTS.c.study_id == study["id"]).order_by(EVENTS.c.number)
            for block in reader.execute(query).mappings().partitions(_BLOCK):
                writer.execute(
                    insert(EVENTS), [{**row, "study_id": key[0] if key else 0} for row in block]
                )
        tokens = reader.execute(select(TOKENS)).mappings().all()
        if tokens:
            writer.execute(insert(TOKENS), [dict(token) for token in tokens])
        copy_deletions(reader, writer)
    return len(studies)
