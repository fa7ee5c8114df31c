"""Tokens of a store: who may read or change which studies through a server, until when.

A token itself is shown once, when it is made. The store keeps its digest.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, delete, insert, select, update

from truvar.exceptions import InvalidArgumentError
from truvar.storage._checksums import token_checksum
from truvar.storage._models import TOKENS
from truvar.storage.base import now
from truvar.storage.rdb import RDBStorage

Access = Literal["read", "write"]
_MAX_TOKEN_NAME = 40  # characters
_MAX_SECONDS = 100 * 366 * 86_400  # a hundred years


@dataclass(frozen=True)
class StoredToken:
    """A token as the store knows it.

    Attributes:
        name: Name of its holder, which the event log shows.
        digest: SHA-256 digest of the token.
        access: What it allows.
        studies: Names of the studies that it is for; None: all.
        created: When it was made.
        expires: When it ends; None: never.
        revoked: When it was revoked; None: it was not.
        is_damaged: Whether its row does not match its checksum. Such a token is refused.
    """

    name: str
    digest: str
    access: Access
    studies: tuple[str, ...] | None
    created: datetime | None
    expires: datetime | None
    revoked: datetime | None
    is_damaged: bool = False

    def is_valid(self, moment: datetime) -> bool:
        """Return whether the token is accepted at a time."""
        return (
            not self.is_damaged
            and self.revoked is None
            and (self.expires is None or moment < self.expires)
        )


def _token_digest(token: str) -> str:
    """Return the digest of a token, by which it is found."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add_token(
    storage: RDBStorage,
    name: str,
    access: Access = "write",
    studies: Sequence[str] | None = None,
    seconds: float | None = None,
) -> str:
    """Make a token and return it. It is not stored, and cannot be shown again.

    Args:
        storage: The store.
        name: Name of its holder; every token of a store has another one.
        access: What it allows.
        studies: Names of the studies that it is for; None: all.
        seconds: How long it is valid; None: until it is revoked.

    Raises:
        InvalidArgumentError: If the name is taken or cannot be used.
    """
    if not 0 < len(name) <= _MAX_TOKEN_NAME or not name.isprintable() or name != name.strip():
        raise InvalidArgumentError(
            f"a token needs a name of 1 to {_MAX_TOKEN_NAME} printable characters, got {name!r}; "
            "give another"
        )
    if seconds is not None and not 0 < seconds <= _MAX_SECONDS:
        raise InvalidArgumentError(
            f"a token must be valid for > 0 s and <= {_MAX_SECONDS:g} s, got {seconds:g}; change it"
        )
    token = secrets.token_urlsafe(32)
    created = now()
    expires = None if seconds is None else created + timedelta(seconds=seconds)
    names = None if studies is None else json.dumps(sorted(studies))
    values: dict[str, Any] = {
        "name": name,
        "digest": _token_digest(token),
        "access": access,
        "studies": names,
        "created": created,
        "expires": expires,
        "revoked": None,
    }
    values["checksum"] = token_checksum(values)
    with storage.write_transaction() as connection:
        if connection.scalar(select(TOKENS.c.id).where(TOKENS.c.name == name)) is not None:
            raise InvalidArgumentError(
                f"there is already a token {name!r}, valid or not; give another name"
            )
        connection.execute(insert(TOKENS).values(values))
    return token


def list_tokens(storage: RDBStorage) -> list[StoredToken]:
    """Return the tokens of a store, by name, also those that are damaged or no longer valid."""
    with storage.read_transaction() as connection:
        rows = read_token_rows(connection)
    return [_stored_token(row) for row in rows]


def read_token_rows(connection: Connection) -> list[dict[str, Any]]:
    """Return the rows of tokens, by name. One that cannot be read has its id and name alone."""
    rows: list[dict[str, Any]] = []
    query = select(TOKENS)
    try:
        found = connection.execute(query.order_by(TOKENS.c.name)).mappings().all()
        return [dict(row) for row in found]
    except (TypeError, ValueError):  # such as a damaged time
        for token_id, name in connection.execute(select(TOKENS.c.id, TOKENS.c.name)).all():
            try:
                rows.append(
                    dict(connection.execute(query.where(TOKENS.c.id == token_id)).mappings().one())
                )
            except (TypeError, ValueError):
                rows.append({"id": token_id, "name": name})
    return rows


def _is_damaged(row: Mapping[str, Any]) -> bool:
    return "checksum" not in row or row["checksum"] != token_checksum(row)


def _stored_token(row: Mapping[str, Any]) -> StoredToken:
    if _is_damaged(row):
        return StoredToken(row["name"], "", "read", (), None, None, None, is_damaged=True)
    studies = None if row["studies"] is None else tuple(json.loads(row["studies"]))
    return StoredToken(
        row["name"],
        row["digest"],
        row["access"],
        studies,
        row["created"],
        row["expires"],
        row["revoked"],
    )


def revoke_token(storage: RDBStorage, name: str) -> None:
    """Revoke a token. Servers refuse it within a second. One that is damaged is deleted.

    Raises:
        InvalidArgumentError: If there is no valid token of that name.
    """
    with storage.write_transaction() as connection:
        named = [
            row
            for row in read_token_rows(connection)
            if row["name"] == name and row.get("revoked") is None
        ]
        if not named:
            raise InvalidArgumentError(
                f"there is no token {name!r} to revoke; truvar token list STORE lists them"
            )
        (row,) = named
        found = TOKENS.c.id == row["id"]
        if _is_damaged(row):  # there is nothing in it to keep
            connection.execute(delete(TOKENS).where(found))
            return
        revoked = now()
        checksum = token_checksum(row | {"revoked": revoked})
        connection.execute(update(TOKENS).where(found).values(revoked=revoked, checksum=checksum))
