"""`truvar backtest`: policies against a table of known values."""

from __future__ import annotations

import argparse
from pathlib import Path

from truvar.cli._common import Command, cluster, positive


def _backtest_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--truth", metavar="COLUMN", required=True, help="the column of its table that answers")
    sub.add_argument(
        "--policies", metavar="A,B,...", default="truvar", help='rules by name; "/cost" divides by the cost'
    )
    sub.add_argument("--replicates", type=positive(int), default=20, metavar="N", help="random starts (default: 20)")
    sub.add_argument("--budget", type=positive(float), metavar="COST", help="what each run may spend")
    sub.add_argument("--seed", type=int, default=0, help="of the starts and of the noise")
    sub.add_argument("--jobs", type=positive(int), default=1, metavar="N", help="processes that share the work")
    sub.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler whose workers share the work instead")
    sub.add_argument(
        "--regret",
        choices=["reported", "measured"],
        default="reported",
        help="of an optimum: that of the point of best mean (default), or of the best point measured",
    )
    sub.add_argument("--out", metavar="DIR", type=Path, help="folder of the results (default: NAME-backtest)")
    sub.add_argument("--json", action="store_true", help="print the summary as JSON")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _backtest(arguments: argparse.Namespace) -> int:
    """Compare policies on a problem whose true values stand in its table."""
    from truvar.backtest import backtest
    from truvar.problem import load_problem
    from truvar.report.backtest_plot import plot_backtest
    from truvar.report.progress import progress_bar
    from truvar.report.style import import_matplotlib
    from truvar.report.tables import to_json

    problem = load_problem(arguments.problem)
    folder = arguments.out or Path(f"{problem.name}-backtest")
    import_matplotlib("figure")  # what the picture will need is asked for now, not after the runs
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
    settings = {"problem": problem.name, "truth": arguments.truth, "seed": arguments.seed, "folder": str(folder)}
    said = {**settings, **result.to_dict()}
    (folder / "summary.json").write_text(to_json(said) + "\n", encoding="utf-8")
    if arguments.json:
        print(to_json(said))
    else:
        print(summary.T.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-"))
        print(f"results: {folder}/ (curves.png, curves.csv, summary.csv, summary.json)")
    return 0


BACKTEST = Command(
    "backtest",
    "compare policies on a table of known values, at equal cost",
    "truvar backtest examples/lake.toml --truth chlorophyll --policies truvar,gchk,straddle --budget 6000",
    _backtest_arguments,
    _backtest,
)
