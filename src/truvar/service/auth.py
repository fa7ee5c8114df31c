"""Tokens and addresses: who may read and write.

A server with tokens accepts requests that present one of them; a read-only token may read. A server without tokens
accepts requests from programs on its own machine, and only under a host name of that machine, so that a page from
elsewhere cannot reach it through a host name that resolves to it (DNS rebinding). Tokens are sent in a header that
browsers never add by themselves, bodies must be JSON, and other origins are refused, so pages of other sites cannot
write.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal

from truvar.exceptions import InvalidArgumentError

Access = Literal["read", "write"]

MIN_TOKEN_LENGTH = 16  # characters
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
            if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
                raise InvalidArgumentError(
                    f"a token must have at least {MIN_TOKEN_LENGTH} characters, ASCII without spaces, got one of "
                    f"{len(token)}; make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
                )
        if set(self.write) & set(self.read):
            raise InvalidArgumentError("the read-only token must differ from the other one, got the same; change one")

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def access(self, presented: str) -> Access | None:
        """Return what a token allows. All tokens are compared, each in constant time."""
        can_write = _is_among(presented, self.write)
        can_read = _is_among(presented, self.read)
        if can_write:
            return "write"
        return "read" if can_read else None


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


def check_address(host: str, tokens: Tokens) -> None:
    """Check that an address which other machines can reach is protected by a token.

    Raises:
        InvalidArgumentError: If it is not.
    """
    if not is_loopback(host) and not tokens:
        raise InvalidArgumentError(
            f"{host} can be reached from other machines, which needs a token, got none; give one (--token, or "
            "TRUVAR_TOKEN in the environment), or leave out --host to serve this machine alone"
        )


def host_name(host: str) -> str:
    """Return the name in a Host header or an origin, without its port."""
    name = host.rpartition("//")[2]
    if name.startswith("["):
        return name[1:].partition("]")[0].lower()
    return name.partition(":")[0].lower()
