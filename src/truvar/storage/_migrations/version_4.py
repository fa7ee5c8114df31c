"""Migration from version 3 to version 4: checksums of tokens and of the names of studies."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
    text,
    update,
)

# The definitions in this module are those of version 4 and must not be changed, nor imported from
# elsewhere.
METADATA = MetaData()
STUDIES = Table(
    "truvar_studies",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("name_checksum", String(64), nullable=False),
)
TOKENS = Table(
    "truvar_tokens",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(40), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("access", String(5), nullable=False),
    Column("studies", Text),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("expires", DateTime(timezone=True)),
    Column("revoked", DateTime(timezone=True)),
    Column("checksum", String(64), nullable=False),
)


def upgrade(connection: Connection) -> None:
    """Add the columns, and compute the checksums of what is stored.

    A token whose row cannot be read, or whose access is neither "read" nor "write", keeps an empty
    checksum, and is refused.
    """
    connection.execute(
        text("ALTER TABLE truvar_studies ADD COLUMN name_checksum VARCHAR(64) DEFAULT '' NOT NULL")
    )
    connection.execute(
        text("ALTER TABLE truvar_tokens ADD COLUMN checksum VARCHAR(64) DEFAULT '' NOT NULL")
    )
    for study_id, name in connection.execute(select(STUDIES.c.id, STUDIES.c.name)).all():
        checksum = _digest([name])
        connection.execute(
            update(STUDIES).where(STUDIES.c.id == study_id).values(name_checksum=checksum)
        )
    for token_id in connection.scalars(select(TOKENS.c.id)).all():
        try:
            _add_checksum(connection, token_id)
        except (LookupError, TypeError, ValueError):
            continue


def _add_checksum(connection: Connection, token_id: int) -> None:
    of_token = TOKENS.c.id == token_id
    token = connection.execute(select(TOKENS).where(of_token)).one()
    if token.access not in ("read", "write"):
        return
    values = [
        token.name,
        token.digest,
        token.access,
        token.studies,
        token.created,
        token.expires,
        token.revoked,
    ]
    connection.execute(update(TOKENS).where(of_token).values(checksum=_digest(values)))


def _digest(values: list[Any]) -> str:
    parts = [_utc(value) if isinstance(value, datetime) else value for value in values]
    joined = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


def _utc(time: datetime) -> str:
    moment = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    return moment.isoformat(timespec="microseconds")
