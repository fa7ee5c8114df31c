"""python -m benchmarks [--quick] [--only NAME] [--json FILE]"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from benchmarks import (
    accuracy,
    baselines,
    box,
    cluster,
    failures,
    learned,
    learning,
    overhead,
    peers,
    runs,
    samplers,
    scaling,
    search,
    service,
    startup,
    step,
    tracks,
    weighted,
)
from benchmarks.measure import Row, machine, one_thread

GROUPS: dict[str, Callable[[bool], list[Row]]] = {
    "step": step.rows,
    "runs": runs.rows,
    "peers": peers.rows,
    "scaling": scaling.rows,
    "weighted": weighted.rows,
    "accuracy": accuracy.rows,
    "overhead": overhead.rows,
    "baselines": baselines.rows,
    "learning": learning.rows,
    "learned": learned.rows,
    "profile": learned.profile,
    "search": search.rows,
    "optuna": samplers.rows,
    "box": box.rows,
    "startup": startup.rows,
    "cluster": cluster.rows,
    "service": service.rows,
    "failures": failures.rows,
    "tracks": tracks.rows,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed of truvar compared with alternatives."
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, to check that everything runs; the numbers are meaningless",
    )
    parser.add_argument(
        "--only", action="append", choices=GROUPS, help="run this group only; may be repeated"
    )
    parser.add_argument(
        "--json", type=Path, default=Path("build/bench.json"), help="file for the numbers"
    )
    given = parser.parse_args(arguments)
    found: list[Row] = []
    with one_thread():
        start = time.perf_counter()
        for name in given.only or GROUPS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            found += GROUPS[name](given.quick)
        taken = time.perf_counter() - start
    print(table(found, judged=not given.quick))
    record = {
        "date": date.today().isoformat(),
        "quick": given.quick,
        "seconds": round(taken, 1),
        "machine": machine(),
        "rows": [row.as_json() for row in found],
    }
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def table(rows: Sequence[Row], judged: bool = True) -> str:
    """Return the rows as a Markdown table whose columns are aligned for a terminal."""
    head = ("row", "measured", "target", "met?", "note")
    verdicts = {True: "yes", False: "NO", None: ""} if judged else {}
    cells = [
        head,
        *((r.what, _measured(r), _target(r), verdicts.get(r.met, ""), r.note) for r in rows),
    ]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head) - 1)]
    lines = [
        "| "
        + " | ".join(
            [*(cell.ljust(w) for cell, w in zip(line[:-1], widths, strict=True)), line[-1]]
        )
        + " |"
        for line in cells
    ]
    separator = "|" + "|".join(["-" * (w + 2) for w in widths] + ["---"]) + "|"
    return "\n".join([lines[0], separator, *lines[1:]])


def _measured(row: Row) -> str:
    if row.measured is None:
        return "-"
    return f"{row.measured:.3g}{f' {row.unit}' if row.unit else ''}"


def _target(row: Row) -> str:
    if row.target is None:
        return "reported"
    return f"{row.target} {row.unit}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
