"""`truvar backtest`: compare policies on a table of known values."""

from __future__ import annotations

import argparse
from pathlib import Path

from truvar.acquisition.registry import DEFAULT_POLICY
from truvar.cli._common import Command, add_json, add_path, cluster, positive


def _backtest_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(sub, "problem", metavar="PROBLEM.toml", help="the problem file")
    truth = "column of the problem's table that has the true values"
    sub.add_argument("--truth", metavar="COLUMN", required=True, help=truth)
    policies = 'names of policies; "/cost" divides their scores by the cost (default: auto)'
    sub.add_argument("--policies", metavar="A,B,...", default=DEFAULT_POLICY, help=policies)
    sub.add_argument(
        "--replicates",
        type=positive(int),
        default=20,
        metavar="N",
        help="random starts (default: 20)",
    )
    sub.add_argument(
        "--budget", type=positive(float), metavar="COST", help="total cost at which each run stops"
    )
    sub.add_argument(
        "--seed", type=int, default=0, help="seed of the starts and of the noise (default: 0)"
    )
    sub.add_argument(
        "--jobs",
        type=positive(int),
        default=1,
        metavar="N",
        help="number of processes (default: 1)",
    )
    sub.add_argument(
        "--dask", metavar="ADDRESS", help="address of a Dask scheduler, to use its workers instead"
    )
    regret = (
        "regret of the point of the best estimate (reported, default) or of the best measured "
        "point (measured)"
    )
    sub.add_argument("--regret", choices=["reported", "measured"], default="reported", help=regret)
    add_path(
        sub,
        "--out",
        metavar="DIR",
        type=Path,
        help="folder of the results (default: NAME-backtest)",
    )
    add_json(sub, "the summary")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _backtest(arguments: argparse.Namespace) -> int:
    """Run the backtest, write its results into a folder and print a summary."""
    from truvar.backtest import backtest
    from truvar.problem import load_problem
    from truvar.report.backtest_plot import plot_backtest
    from truvar.report.progress import progress_bar
    from truvar.report.style import import_matplotlib
    from truvar.report.tables import to_json

    problem = load_problem(arguments.problem)
    folder = arguments.out or Path(f"{problem.name}-backtest")
    import_matplotlib(
        "figure"
    )  # the figure needs it: a missing library is reported before the runs
    with cluster(arguments.dask) as client:
        result = backtest(
            problem,
            arguments.truth,
            [name.strip() for name in arguments.policies.split(",") if name.strip()],
            replicates=arguments.replicates,
            budget=arguments.budget,
            seed=arguments.seed,
            judged=arguments.regret,
            jobs=arguments.jobs,
            executor=client,
            folder=folder,
            progress=None if arguments.quiet else progress_bar("runs"),
        )
    summary = result.summary
    plot_backtest(result, problem.name).savefig(folder / "curves.png")
    result.curves.to_csv(folder / "curves.csv", index=False)
    summary.to_csv(folder / "summary.csv")
    settings = {
        "problem": problem.name,
        "truth": arguments.truth,
        "seed": arguments.seed,
        "folder": str(folder),
    }
    data = {**settings, **result.to_dict()}
    (folder / "summary.json").write_text(to_json(data) + "\n", encoding="utf-8")
    if arguments.json:
        print(to_json(data))
    else:
        print(summary.T.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-"))
        print(f"results: {folder}/ (curves.png, curves.csv, summary.csv, summary.json)")
    return 0


BACKTEST = Command(
    "backtest",
    "compare policies on a table of known values, at equal cost",
    "truvar backtest examples/lake.toml --truth chlorophyll --policies truvar,gchk,straddle "
    "--budget 6000",
    _backtest_arguments,
    _backtest,
)
