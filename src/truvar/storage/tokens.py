"""Tokens of a store: who may read or change which studies through a server, until when.

A token itself is shown once, when it is made. The store keeps its digest.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import insert, select, update

from truvar.exceptions import InvalidArgumentError
from truvar.storage.base import now
from truvar.storage.models import TOKENS
from truvar.storage.rdb import RDBStorage

Access = Literal["read", "write"]
MAX_TOKEN_NAME = 40  # characters
MAX_SECONDS = 100 * 366 * 86_400  # a hundred years


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
    """

    name: str
    digest: str
    access: Access
    studies: tuple[str, ...] | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None

    def is_valid(self, moment: datetime) -> bool:
        """Return whether the token is accepted at a time."""
        return self.revoked is None and (self.expires is None or moment < self.expires)


def token_digest(token: str) -> str:
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
    if not 0 < len(name) <= MAX_TOKEN_NAME or not name.isprintable() or name != name.strip():
        raise InvalidArgumentError(
            f"a token needs a name of 1 to {MAX_TOKEN_NAME} printable characters, got {name!r}; give another"
        )
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:
        raise InvalidArgumentError(
            f"a token must be valid for > 0 s and <= {MAX_SECONDS:g} s, got {seconds:g}; change it"
        )
    token = secrets.token_urlsafe(32)
    created = now()
    expires = None if seconds is None else created + timedelta(seconds=seconds)
    names = None if studies is None else json.dumps(sorted(studies))
    values = {
        "name": name,
        "digest": token_digest(token),
        "access": access,
        "studies": names,
        "created": created,
        "expires": expires,
    }
    with storage.write_transaction() as connection:
        if connection.scalar(select(TOKENS.c.id).where(TOKENS.c.name == name)) is not None:
            raise InvalidArgumentError(f"there is already a token {name!r}, valid or not; give another name")
        connection.execute(insert(TOKENS).values(values))
    return token


def list_tokens(storage: RDBStorage) -> list[StoredToken]:
    """Return the tokens of a store, by name, also those that are no longer valid."""
    with storage.read_transaction() as connection:
        rows = connection.execute(select(TOKENS).order_by(TOKENS.c.name)).all()
    tokens = []
    for row in rows:
        studies = None if row.studies is None else tuple(json.loads(row.studies))
        tokens.append(StoredToken(row.name, row.digest, row.access, studies, row.created, row.expires, row.revoked))
    return tokens


def revoke_token(storage: RDBStorage, name: str) -> None:
    """Revoke a token. Servers refuse it within a second.

    Raises:
        InvalidArgumentError: If there is no valid token of that name.
    """
    with storage.write_transaction() as connection:
        found = (TOKENS.c.name == name, TOKENS.c.revoked.is_(None))
        if connection.scalar(select(TOKENS.c.id).where(*found)) is None:
            raise InvalidArgumentError(f"there is no token {name!r} to revoke; truvar token list STORE lists them")
        connection.execute(update(TOKENS).where(*found).values(revoked=now()))
