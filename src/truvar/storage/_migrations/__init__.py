"""Creation of the tables of a store, and migration from earlier versions.

| version | change |
|---|---|
| 1 | tables of studies and of events |
| 2 | goal, counters and times in the row of each study |
| 3 | checksums of events and studies, and the number of events in the row of each study; the table of tokens |
| 4 | checksums of tokens and of the names of studies |

Each migration is a module `version_N` with a function `upgrade(connection)`, which turns the tables
of version N - 1 into those of version N. It must give the same result for ever. For that reason it
defines the tables that it reads and writes itself, parses stored JSON itself, and imports nothing
from truvar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, insert, inspect, select, text, update

from truvar.exceptions import StorageError
from truvar.storage._migrations import version_2, version_3, version_4
from truvar.storage._models import METADATA, SCHEMA, SCHEMA_VERSION

# Key of the lock in PostgreSQL while tables are created or migrated.
ADVISORY_LOCK = 0x7472757661720001
# Migrations by the version that they lead to.
UPGRADES: dict[int, Callable[[Connection], None]] = {
    2: version_2.upgrade,
    3: version_3.upgrade,
    4: version_4.upgrade,
}
# A column that each version added, as (table, column).
ADDED_COLUMNS = {
    2: ("truvar_studies", "goal"),
    3: ("truvar_studies", "head"),
    4: ("truvar_tokens", "checksum"),
}


def read_version(connection: Connection) -> int:
    """Return the version of the tables, or 0 if there are none.

    Raises:
        StorageError: If the tables are newer than this version of truvar, or are not those of the
            version that the store names.
    """
    if not inspect(connection).has_table(SCHEMA.name):
        return 0
    versions: list[Any] = list(connection.scalars(select(SCHEMA.c.version)))
    version = versions[0] if len(versions) == 1 else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise StorageError(
            "the store was written by a newer version of truvar: its tables have version "
            f"{version}, and this truvar "
            f"supports up to {SCHEMA_VERSION}; update truvar"
        )
    present = _version_of_tables(connection)
    if version != present:
        found = ", ".join(map(repr, versions)) or "nothing"
        raise StorageError(
            f"the store is damaged: its table {SCHEMA.name} must name version {present}, which its "
            "tables have, got "
            f"{found}; use an undamaged copy of it"
        )
    return present


def _version_of_tables(connection: Connection) -> int:
    """Return the version that the columns of the tables are of."""
    tables = inspect(connection)
    version = 1
    for added, (table, column) in ADDED_COLUMNS.items():
        if tables.has_table(table) and column in {
            found["name"] for found in tables.get_columns(table)
        }:
            version = added
    return version


def prepare_tables(connection: Connection) -> None:
    """Create the tables if there are none, and migrate those of an earlier version.

    Raises:
        StorageError: If the tables are newer than this version of truvar.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
    version = read_version(connection)
    if version == 0:
        METADATA.create_all(connection)
        connection.execute(insert(SCHEMA).values(version=SCHEMA_VERSION))
        return
    for target in range(version + 1, SCHEMA_VERSION + 1):
        UPGRADES[target](connection)
        connection.execute(update(SCHEMA).values(version=target))
