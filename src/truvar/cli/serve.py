"""`truvar serve`: the studies of a store over HTTP, with a page to watch and work on them."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from truvar.cli._common import Command
from truvar.cli._store import store_of
from truvar.exceptions import TruvarError
from truvar.service.server import DEFAULT_PORT

if TYPE_CHECKING:
    from truvar.service import Tokens


def _serve_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("words", nargs="?", metavar="STORE", help="where the studies are: lake.db or a URL")
    sub.add_argument("--store", metavar="STORE", help="the same (default: $TRUVAR_STORE, or the only store here)")
    sub.add_argument("--host", default="127.0.0.1", help="the address to serve at (default: this machine alone)")
    sub.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"(default: {DEFAULT_PORT})")
    sub.add_argument("--token", help="what others must know to work here (default: $TRUVAR_TOKEN)")
    sub.add_argument("--read-token", help="what they must know to look only (default: $TRUVAR_READ_TOKEN)")
    sub.add_argument("--max-points", type=int, metavar="N", help="the largest domain that may be sent (default: 10000)")
    sub.add_argument("--verbose", action="store_true", help="print every request")


def _serve(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from truvar.service import ServiceLimits, Tokens, serve
    from truvar.service.auth import check_address

    tokens = Tokens(
        write=_given(arguments.token, "TRUVAR_TOKEN"), read=_given(arguments.read_token, "TRUVAR_READ_TOKEN")
    )
    check_address(arguments.host, tokens)
    if not 0 < arguments.port < 65536:
        raise TruvarError(f"--port must be from 1 to 65535, got {arguments.port}; give another")
    limits = ServiceLimits(points=arguments.max_points) if arguments.max_points else ServiceLimits()
    level = "info" if arguments.verbose else "warning"

    def ready() -> None:
        print(f"truvar: {_address(arguments, tokens)} (Ctrl-C to stop)", flush=True)

    serve(store_of(arguments), arguments.host, arguments.port, tokens, limits, level, ready)
    return 0


def _given(option: str | None, variable: str) -> tuple[str, ...]:
    token = option or os.environ.get(variable)
    return (token,) if token else ()


def _address(arguments: argparse.Namespace, tokens: Tokens) -> str:
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    return f"http://{host}:{arguments.port}/" + (" with a token behind it: #token=..." if tokens else "")


SERVE = Command(
    "serve",
    "serve the studies of a store, with a page to watch and work on them",
    "truvar serve lake.db\ntruvar serve --store postgresql://host/lake",
    _serve_arguments,
    _serve,
)
