"""`truvar serve`: serve the studies of a store over HTTP, with a web page."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from truvar.cli._common import Command, add_path
from truvar.cli._store import selected_store
from truvar.exceptions import InvalidArgumentError
from truvar.service.server import DEFAULT_PORT

if TYPE_CHECKING:
    from truvar.service import Tokens


def _serve_arguments(sub: argparse.ArgumentParser) -> None:
    help_of_store = "store of the studies: lake.db, which is created if it is new, or a URL"
    add_path(sub, "words", nargs="?", metavar="STORE", help=help_of_store)
    add_path(
        sub,
        "--store",
        metavar="STORE",
        help="the store, instead of the first word (default: $TRUVAR_STORE or the only store here)",
    )
    sub.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to serve at (default: 127.0.0.1, this machine only)",
    )
    sub.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"port to serve at (default: {DEFAULT_PORT})"
    )
    sub.add_argument(
        "--token", help="token that clients need to read and write (default: $TRUVAR_TOKEN)"
    )
    sub.add_argument(
        "--read-token", help="token that clients need to read (default: $TRUVAR_READ_TOKEN)"
    )
    sub.add_argument(
        "--max-points",
        type=int,
        metavar="N",
        help="largest domain to accept, in points (default: 10000)",
    )
    sub.add_argument(
        "--max-choice-seconds",
        type=int,
        metavar="N",
        help="longest choice, in seconds (default: 600)",
    )
    sub.add_argument(
        "--root-path",
        default="",
        metavar="PATH",
        help="path below which a reverse proxy serves this server",
    )
    sub.add_argument("--verbose", action="store_true", help="print every request")


def _serve(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from truvar.service import ServiceLimits, Tokens, serve

    write = _tokens(arguments.token, "TRUVAR_TOKEN")
    tokens = Tokens(write=write, read=_tokens(arguments.read_token, "TRUVAR_READ_TOKEN"))
    if not 0 < arguments.port < 65536:
        raise InvalidArgumentError(
            f"--port must be from 1 to 65535, got {arguments.port}; give another"
        )
    given = {"points": arguments.max_points, "choice_seconds": arguments.max_choice_seconds}
    limits = ServiceLimits(**{name: value for name, value in given.items() if value})
    level = "info" if arguments.verbose else "warning"

    store = selected_store(arguments)
    notice = _new_store_notice(store)

    def ready() -> None:
        print(f"truvar: {_address(arguments, tokens)} (Ctrl-C to stop)", flush=True)
        if notice:
            print(f"truvar: {notice}", flush=True)

    serve(
        store,
        arguments.host,
        arguments.port,
        tokens,
        limits,
        level,
        ready,
        arguments.root_path,
    )
    return 0


def _new_store_notice(store: str) -> str:
    """Return a notice about the file of a store that serving creates; "" if it creates none."""
    path = store.removeprefix("sqlite:///")
    if path == store or Path(path).exists():
        return ""
    return (
        f"{path} is a new, empty store; create a study in it on the page, or with truvar new "
        "PROBLEM.toml --store "
        f"{shlex.quote(path)} (if another store was meant, check its path)"
    )


def _tokens(option: str | None, variable: str) -> tuple[str, ...]:
    token = option or os.environ.get(variable)
    return (token,) if token else ()


def _address(arguments: argparse.Namespace, tokens: Tokens) -> str:
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    suffix = " (append #token=... to the address)" if tokens else ""
    return f"http://{host}:{arguments.port}/{suffix}"


SERVE = Command(
    "serve",
    "serve the studies of a store over HTTP, with a web page",
    "truvar serve lake.db\ntruvar serve --store postgresql://host/lake",
    _serve_arguments,
    _serve,
)
