"""`truvar reproduce`: run the experiments of the paper and make its figures."""

from __future__ import annotations

import argparse
from pathlib import Path

from truvar.cli._common import Command, add_json, add_path, cluster, positive
from truvar.paper import FIGURES, FIGURES_WITH_DATA


def _arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "figure", choices=[*FIGURES, "all"], metavar="FIGURE", help=f"{', '.join(FIGURES)}, or all"
    )
    sub.add_argument(
        "--replicates",
        type=positive(int),
        metavar="N",
        help="runs per policy (default: as in the paper)",
    )
    sub.add_argument(
        "--quick", action="store_true", help="a few runs only: about a minute per figure"
    )
    data = (
        f"your own table in place of the built-in one, for {', '.join(FIGURES_WITH_DATA)} (without "
        "it, fig3c also runs "
        "on svm_on_grid.csv, the paper's table, if it is in the folder that TRUVAR_DATA names)"
    )
    add_path(sub, "--data", type=Path, metavar="FILE", help=data)
    sub.add_argument(
        "--jobs",
        type=positive(int),
        metavar="N",
        help="number of processes (default: one per processor)",
    )
    sub.add_argument(
        "--dask", metavar="ADDRESS", help="address of a Dask scheduler, to use its workers instead"
    )
    add_path(
        sub,
        "--out",
        type=Path,
        default=Path("reproduction"),
        metavar="DIR",
        help="folder of the results",
    )
    add_json(sub, "the results")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _reproduce(arguments: argparse.Namespace) -> int:
    """Make one figure or all of them; runs that are in the folder already are not repeated."""
    from truvar._numba.threads import available_processors
    from truvar.paper.experiment import ReproductionConfig, reproduce
    from truvar.report.progress import progress_bar
    from truvar.report.tables import to_json

    with cluster(arguments.dask) as client:
        config = ReproductionConfig(
            arguments.out,
            replicates=arguments.replicates,
            quick=arguments.quick,
            jobs=arguments.jobs or available_processors(),
            executor=client,
            data=arguments.data,
            progress=None if arguments.quiet else progress_bar,
        )
        results = []
        for name in FIGURES if arguments.figure == "all" else [arguments.figure]:
            figure, paths = reproduce(name, config)
            results.append({**figure.to_dict(name), "files": [str(path) for path in paths]})
            if not arguments.json:
                print(f"{name}: {figure.title}\n{figure.text()}")
                print(f"files: {', '.join(map(str, paths))}\n", flush=True)
    if arguments.json:
        print(to_json(results[0] if len(results) == 1 else results))
    return 0


REPRODUCE = Command(
    "reproduce",
    "run the experiments of the paper and make its figures",
    "truvar reproduce fig2b --quick",
    _arguments,
    _reproduce,
)
