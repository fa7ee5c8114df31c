"""`truvar reproduce`: the paper's figures, from runs of our own."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from truvar.cli._common import Command, cluster, positive
from truvar.paper import FIGURES, FIGURES_WITH_DATA


def _arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("figure", choices=[*FIGURES, "all"], metavar="FIGURE", help=f"{', '.join(FIGURES)}, or all")
    sub.add_argument("--replicates", type=positive(int), metavar="N", help="runs, or functions (default: the paper's)")
    sub.add_argument("--quick", action="store_true", help="a few runs: about a minute for each figure")
    sub.add_argument("--data", type=Path, metavar="FILE", help=f"a table of one's own, for {', '.join(FIGURES_WITH_DATA)}")
    sub.add_argument("--jobs", type=positive(int), metavar="N", help="processes (default: one for each processor)")
    sub.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler whose workers share the work instead")
    sub.add_argument("--out", type=Path, default=Path("reproduction"), metavar="DIR", help="folder of the results")
    sub.add_argument("--json", action="store_true", help="print what was found as JSON")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _reproduce(arguments: argparse.Namespace) -> int:
    """Make one figure, or all; runs that are in the folder already are not made again."""
    from truvar.paper.experiment import ReproductionConfig, reproduce
    from truvar.report.progress import progress_bar
    from truvar.report.tables import to_json

    with cluster(arguments.dask) as client:
        config = ReproductionConfig(
            arguments.out,
            replicates=arguments.replicates,
            quick=arguments.quick,
            jobs=arguments.jobs or len(os.sched_getaffinity(0)),
            executor=client,
            data=arguments.data,
            progress=None if arguments.quiet else progress_bar,
        )
        said = []
        for name in FIGURES if arguments.figure == "all" else [arguments.figure]:
            outcome, paths = reproduce(name, config)
            said.append({**outcome.to_dict(name), "files": [str(path) for path in paths]})
            if not arguments.json:
                print(f"{name}: {outcome.title}\n{outcome.text()}")
                print(f"files: {', '.join(map(str, paths))}\n", flush=True)
    if arguments.json:
        print(to_json(said[0] if len(said) == 1 else said))
    return 0


REPRODUCE = Command(
    "reproduce",
    "make the figures of the paper, from runs of our own",
    "truvar reproduce fig2b --quick",
    _arguments,
    _reproduce,
)
