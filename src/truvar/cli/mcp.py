"""`truvar mcp`: serve the studies of a store to an assistant."""

from __future__ import annotations

import argparse

from truvar.cli._common import Command, add_path
from truvar.cli._store import selected_store


def _mcp_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(
        sub, "words", nargs="?", metavar="STORE", help="store of the studies: lake.db or a URL"
    )
    add_path(
        sub,
        "--store",
        metavar="STORE",
        help="the store, instead of the first word (default: $TRUVAR_STORE or the only store here)",
    )
    sub.add_argument(
        "--write", action="store_true", help="also create and change studies (default: only read)"
    )
    sub.add_argument(
        "--author",
        "--who",
        metavar="NAME",
        help="author of the events in the log (default: user@machine)",
    )


def _mcp(arguments: argparse.Namespace) -> int:
    """Serve standard input and output until the client closes them."""
    from truvar.integrations.mcp import make_server

    make_server(selected_store(arguments), write=arguments.write, author=arguments.author).run()
    return 0


MCP = Command(
    "mcp",
    "serve the studies of a store to an assistant (Model Context Protocol, over standard input and "
    "output)",
    "truvar mcp --store lake.db\ntruvar mcp --store lake.db --write --author assistant",
    _mcp_arguments,
    _mcp,
)
