"""`truvar serve-aepsych`: serve clients of AEPsych."""

from __future__ import annotations

import argparse

from truvar.cli._common import Command, add_path
from truvar.cli._store import store_url
from truvar.exceptions import InvalidArgumentError

_PORT = 5555  # of AEPsych, which its clients connect to unless told otherwise


def _arguments(sub: argparse.ArgumentParser) -> None:
    add_path(
        sub,
        "--store",
        metavar="STORE",
        help="store of the studies: hearing.db or a URL (default: they are lost at the end)",
    )
    sub.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to serve at (default: 127.0.0.1, this machine only)",
    )
    sub.add_argument("--port", type=int, default=_PORT, help=f"port to serve at (default: {_PORT})")


def _serve_aepsych(arguments: argparse.Namespace) -> int:
    """Serve until a client sends exit, or Ctrl-C."""
    from truvar.integrations.aepsych import AEPsychServer

    if not 0 <= arguments.port < 65536:
        raise InvalidArgumentError(
            f"--port must be from 0 to 65535, got {arguments.port}; give another"
        )
    store = None if arguments.store is None else store_url(arguments.store)

    def ready(port: int) -> None:
        print(
            f"truvar: AEPsych clients connect to {arguments.host}:{port} (Ctrl-C to stop)",
            flush=True,
        )

    AEPsychServer(store).serve(arguments.host, arguments.port, ready)
    return 0


SERVE_AEPSYCH = Command(
    "serve-aepsych",
    "serve clients of AEPsych (JSON over a socket), which ask for trials and tell their outcomes",
    "truvar serve-aepsych --store hearing.db",
    _arguments,
    _serve_aepsych,
)
