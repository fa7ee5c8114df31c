"""Who may do what: tokens, and for a server without them this machine alone.

A request is let in if its token is known; a read-only token reads. Without tokens only programs of this machine are
let in, and only under a name of this machine, so that no page from elsewhere can reach the server through a name of its
own that it points here (DNS rebinding). Tokens come in a header that browsers never add by themselves, bodies must be
JSON, and a foreign Origin is refused: other sites' pages cannot write.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal

from truvar.exceptions import TruvarError

Access = Literal["read", "write"]

SHORTEST = 16  # characters of a token
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Tokens:
    """The tokens that a server knows; none: it serves this machine alone."""

    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for token in (*self.write, *self.read):
            if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
                raise TruvarError(
                    f"a token has at least {SHORTEST} characters, letters and digits, but one had {len(token)}; make "
                    "one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
                )
        if set(self.write) & set(self.read):
            raise TruvarError("the read-only token must differ from the other one, but they are the same; change one")

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def access(self, presented: str) -> Access | None:
        """What the token allows. All are compared, each in constant time."""
        can_write, can_read = _among(presented, self.write), _among(presented, self.read)
        return "write" if can_write else "read" if can_read else None


def _among(presented: str, known: Sequence[str]) -> bool:
    digest = hashlib.sha256(presented.encode("utf-8", "replace")).digest()  # equal lengths
    found = False
    for token in known:
        found |= hmac.compare_digest(digest, hashlib.sha256(token.encode()).digest())
    return found


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(host: str, tokens: Tokens) -> None:
    """An address that others can reach needs a token."""
    if not is_loopback(host) and not tokens:
        raise TruvarError(
            f"{host} can be reached by others, which needs a token, but none came; give one (--token, or TRUVAR_TOKEN "
            "in the environment), or leave out --host to serve this machine alone"
        )


def host_name(host: str) -> str:
    """The name in a Host header or an origin, without its port."""
    name = host.rpartition("//")[2]
    if name.startswith("["):
        return name[1:].partition("]")[0].lower()
    return name.partition(":")[0].lower()
