"""`truvar token`: tokens of a store, for those who use it through a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from truvar.cli._common import Command, add_json, add_path, seconds
from truvar.cli._store import store_url
from truvar.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from truvar.storage.tokens import Access, StoredToken


def _arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("add", "list", "revoke"), help="what to do")
    add_path(sub, "store", metavar="STORE", help="the store: lake.db or a URL")
    sub.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="name of the token's holder, which the event log shows",
    )
    sub.add_argument("--read", action="store_true", help="the token is for reading only")
    sub.add_argument(
        "--study",
        action="append",
        metavar="STUDY",
        help="a study that the token is for (default: all)",
    )
    sub.add_argument(
        "--expires", type=seconds, metavar="TIME", help="how long it is valid, such as 12h or 30d"
    )
    add_json(sub, "the tokens")


def _token(arguments: argparse.Namespace) -> int:
    """Add, list or revoke tokens."""
    from truvar.report.tables import to_json
    from truvar.storage import open_storage
    from truvar.storage.tokens import add_token, list_tokens, revoke_token

    storage = open_storage(store_url(arguments.store))
    if arguments.action == "list":
        tokens = [_shown(token) for token in list_tokens(storage)]
        if arguments.json:
            print(to_json({"tokens": tokens}))
        else:
            for token in tokens:
                print(
                    f"{token['name']}: {token['access']}, {token['studies'] or 'all studies'}, "
                    f"{token['state']}"
                )
        return 0
    if arguments.name is None:
        raise InvalidArgumentError(
            f"truvar token {arguments.action} needs the name of the token; give it after the store"
        )
    if arguments.action == "revoke":
        revoke_token(storage, arguments.name)
        print(f"{arguments.name}: revoked")
        return 0
    access: Access = "read" if arguments.read else "write"
    secret = add_token(storage, arguments.name, access, arguments.study, arguments.expires)
    print(to_json({"name": arguments.name, "token": secret}) if arguments.json else secret)
    return 0


def _shown(token: StoredToken) -> dict[str, object]:
    from truvar.storage.base import now

    state = "valid" if token.expires is None else f"valid until {token.expires:%Y-%m-%d %H:%M} UTC"
    if token.is_damaged:
        state = "damaged, refused"
    elif token.revoked is not None:
        state = f"revoked {token.revoked:%Y-%m-%d %H:%M} UTC"
    elif not token.is_valid(now()):
        state = f"expired {token.expires:%Y-%m-%d %H:%M} UTC"
    studies = None if token.studies is None else ", ".join(token.studies)
    return {"name": token.name, "access": token.access, "studies": studies, "state": state}


TOKEN = Command(
    "token",
    "make, list and revoke tokens for those who use a store through a server",
    "truvar token add lake.db anna --study lake --expires 30d\ntruvar token revoke lake.db anna",
    _arguments,
    _token,
)
