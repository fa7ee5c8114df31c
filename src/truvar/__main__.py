"""Entry point of the process: the command `truvar` and `python -m truvar`."""

from __future__ import annotations

import gc
import sys

# new objects between two garbage collections; with Python's default of 700 imports are slower
GC_THRESHOLD = 100_000
LONG_COMMANDS = frozenset(
    {"backtest", "bounds", "mcp", "reproduce", "run", "serve", "serve-aepsych"}
)  # these keep Python's default


def main() -> int:
    """Run the command line and return the exit code.

    A short command spends most of its time on imports. Fewer garbage collections, and none of all
    the imported objects when the process ends, make it faster. Commands that compute for long
    collect as usual, since cyclic garbage can hold large arrays.
    """
    if LONG_COMMANDS.isdisjoint(sys.argv[1:2]):
        gc.set_threshold(GC_THRESHOLD)
    from truvar.cli import main as run

    try:
        return run()
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
