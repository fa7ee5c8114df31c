"""Tokens and addresses: who may read and write.

A server with tokens accepts requests that present one of them; a read-only token may read. A server
without tokens accepts requests from programs on its own machine, and only under a host name of that
machine, so that a page from elsewhere cannot reach it through a host name that resolves to it (DNS
rebinding). Tokens are sent in a header that browsers never add by themselves, bodies must be JSON,
and other origins are refused, so pages of other sites cannot write.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from truvar.exceptions import InvalidArgumentError, StorageError
from truvar.storage.base import now

if TYPE_CHECKING:
    from truvar.storage.tokens import StoredToken

Access = Literal["read", "write"]

MIN_TOKEN_LENGTH = 16  # characters
# between two looks at the tokens of the store: a revoked one is accepted no longer than that
TOKEN_SECONDS = 1.0
MAX_TOKEN_WAIT = 0.5  # seconds that a request waits for the tokens of a store that is slow
STUDIES_PATH = "/api/studies/"  # path of a study and what it has
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Tokens:
    """The tokens that a server accepts. Without any it serves its own machine alone.

    Attributes:
        write: Tokens that may read and write.
        read: Tokens that may read.
    """

    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for token in (*self.write, *self.read):
            if (
                len(token) < MIN_TOKEN_LENGTH
                or not token.isascii()
                or not token.isprintable()
                or " " in token
            ):
                raise InvalidArgumentError(
                    f"a token must have at least {MIN_TOKEN_LENGTH} characters, ASCII without "
                    "spaces, got one of "
                    f"{len(token)}; make one: python -c 'import secrets; "
                    "print(secrets.token_urlsafe(32))'"
                )
        if set(self.write) & set(self.read):
            raise InvalidArgumentError(
                "the read-only token must differ from the other one, got the same; change one"
            )

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def access(self, presented: str) -> Access | None:
        """Return what a token allows. All tokens are compared, each in constant time."""
        can_write = _is_among(presented, self.write)
        can_read = _is_among(presented, self.read)
        if can_write:
            return "write"
        return "read" if can_read else None


@dataclass(frozen=True)
class Grant:
    """The rights of a request.

    Attributes:
        access: Whether it may write or only read.
        studies: Names of the studies that it may see; None: all.
        name: Name of the token's holder; None: the token has no name.
    """

    access: Access
    studies: tuple[str, ...] | None = None
    name: str | None = None

    def covers(self, path: str) -> bool:
        """Return whether a path is within the studies of the grant, or the shortened list."""
        if self.studies is None or not path.startswith(STUDIES_PATH):
            return True
        return path.removeprefix(STUDIES_PATH).rpartition("/")[0] in self.studies


class TokenStore:
    """The tokens that `truvar token` made for a store, read again every second.

    Args:
        read: Returns the tokens.

    Raises:
        StorageError: If they cannot be read.
    """

    def __init__(self, read: Callable[[], list[StoredToken]]) -> None:
        self._read = read
        self._tokens = read()
        self._read_at = time.monotonic()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tokens")
        self._reading: asyncio.Future[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._tokens)

    @property
    def is_reading(self) -> bool:
        """Whether the store has not answered yet."""
        return self._reading is not None and not self._reading.done()

    async def update(self) -> None:
        """Read the tokens again if that was done more than a second ago.

        A store that does not answer is not waited for: without it a server can do nothing that a
        token allows.
        """
        if time.monotonic() < self._read_at + TOKEN_SECONDS:
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().run_in_executor(
                self._thread, self._read_again
            )
        await asyncio.wait({self._reading}, timeout=MAX_TOKEN_WAIT)

    def grant(self, presented: str) -> Grant | None:
        """Return what a token allows; None if it is unknown, expired or revoked."""
        digest = hashlib.sha256(presented.encode("utf-8", "replace")).hexdigest()
        found = None
        for token in self._tokens:
            if hmac.compare_digest(digest, token.digest) and token.is_valid(now()):
                found = Grant(token.access, token.studies, token.name)
        return found

    def _read_again(self) -> None:
        with suppress(StorageError):
            self._tokens = self._read()
        self._read_at = time.monotonic()


def _is_among(presented: str, tokens: Sequence[str]) -> bool:
    # Digests have equal lengths, so that the comparison does not reveal the length of a token.
    digest = hashlib.sha256(presented.encode("utf-8", "replace")).digest()
    found = False
    for token in tokens:
        found |= hmac.compare_digest(digest, hashlib.sha256(token.encode()).digest())
    return found


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from its own machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(host: str, tokens: Tokens | bool) -> None:
    """Check that an address which other machines can reach is protected by a token.

    Raises:
        InvalidArgumentError: If it is not.
    """
    if not is_loopback(host) and not tokens:
        raise InvalidArgumentError(
            f"{host} can be reached from other machines, which needs a token, got none; give one "
            "(--token, or "
            "TRUVAR_TOKEN in the environment), or leave out --host to serve this machine alone"
        )


def host_name(host: str) -> str:
    """Return the name in a Host header or an origin, without its port."""
    name = host.rpartition("//")[2]
    if name.startswith("["):
        return name[1:].partition("]")[0].lower()
    return name.partition(":")[0].lower()
