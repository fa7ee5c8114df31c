"""Settings of a reproduction, running its experiments and writing the results.

A figure is a module with a function `make(config) -> FigureResult`. Its runs are a backtest that is
kept in the folder of the results: an interrupted figure continues where it stopped, and figures
with the same runs share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.backtest import Backtest, Truth, backtest
from truvar.backtest.simulation import Judged
from truvar.exceptions import InvalidArgumentError
from truvar.paper import FIGURES_WITH_DATA
from truvar.problem import Problem
from truvar.report.tables import make_folder, to_json


@dataclass(frozen=True)
class ReproductionConfig:
    """Options of a reproduction: how much to run, on what data, and where the results go.

    Attributes:
        folder: Folder of the results.
        replicates: Number of replicates. None: the paper's number, or a few if `quick`.
        quick: Whether to run a few replicates with smaller budgets.
        scale: Factor on every budget.
        jobs: Number of processes.
        executor: Executor to use in place of processes, such as a Dask client.
        data: Path of a table of the user's, in place of the built-in one.
        progress: Called with the name of an experiment; returns a function of the numbers of
            finished and of all runs.
    """

    folder: Path
    replicates: int | None = None
    quick: bool = False
    scale: float = 1.0
    jobs: int = 1
    executor: Any = None
    data: Path | None = None
    progress: Callable[[str], Callable[[int, int], object]] | None = None

    def count(self, full: int, quick: int) -> int:
        """Return the number of replicates, given that of the paper and that of a quick run."""
        return self.replicates or (quick if self.quick else full)

    def budget(self, full: float, quick: float | None = None) -> float:
        """Return the budget of a run: that of the paper, or of a quick run if smaller."""
        return round(self.scale * (quick if self.quick and quick is not None else full))


@dataclass(frozen=True)
class Experiment:
    """A backtest of several policies.

    Attributes:
        name: Name for the progress display.
        problem: The problem.
        truth: True values on the domain, or a function of the number of the replicate that returns
            them.
        policies: Policies by the names to report them under.
        budget: Cost that each run may spend.
        noisy: Whether noise is added to the true values.
        judged: Which point regret refers to, "reported" or "measured".
    """

    name: str
    problem: Problem
    truth: Array | Callable[[int], Truth]
    policies: Mapping[str, Policy | str]
    budget: float
    noisy: bool = False
    judged: Judged = "reported"

    def run(self, config: ReproductionConfig, replicates: int) -> Backtest:
        """Return the backtest; runs that are in the folder already are not repeated."""
        return backtest(
            self.problem,
            self.truth,
            self.policies,
            replicates=replicates,
            budget=self.budget,
            noisy=self.noisy,
            judged=self.judged,
            jobs=config.jobs,
            executor=config.executor,
            folder=config.folder,
            progress=None if config.progress is None else config.progress(self.name),
        )


@dataclass(frozen=True)
class FigureResult:
    """A reproduced figure.

    Attributes:
        title: Title.
        table: The table that is printed.
        facts: Settings, for the JSON file.
        tables: Further tables by name.
        pictures: matplotlib Figures by name; "" is the figure itself.
    """

    title: str
    table: pd.DataFrame
    facts: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    pictures: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, name: str) -> dict[str, Any]:
        """Return title, settings and table of the figure called `name`, for JSON."""
        return {
            "figure": name,
            "title": self.title,
            **self.facts,
            "table": self.table.reset_index().to_dict("records"),
        }

    def text(self) -> str:
        """Return the table as text, with a column per policy."""
        return self.table.T.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-")

    def write(self, name: str, folder: Path) -> list[Path]:
        """Write NAME.json, NAME.csv, a CSV file per further table and the pictures.

        Args:
            name: Name of the figure.
            folder: Folder to write into.

        Returns:
            The paths of the files.
        """
        make_folder(folder)
        paths = [folder / f"{name}.json", folder / f"{name}.csv"]
        paths[0].write_text(to_json(self.to_dict(name)) + "\n", encoding="utf-8")
        self.table.to_csv(paths[1], float_format="%.6g", lineterminator="\n")
        for part, frame in self.tables.items():
            paths.append(folder / f"{name}-{part}.csv")
            frame.to_csv(paths[-1], index=False, float_format="%.6g", lineterminator="\n")
        for part, picture in self.pictures.items():
            paths.append(folder / (f"{name}-{part}.png" if part else f"{name}.png"))
            picture.savefig(paths[-1], dpi=110)
        return paths


def reproduce(name: str, config: ReproductionConfig) -> tuple[FigureResult, list[Path]]:
    """Make a figure of the paper and write it.

    Args:
        name: Name of the figure, one of `truvar.paper.FIGURES`.
        config: How much to run, and where the results go.

    Returns:
        The figure, and the paths of the files.

    Raises:
        InvalidArgumentError: If a table is given for a figure that does not use one.

    Example:
        ```python
        figure, paths = reproduce("fig2b", ReproductionConfig(Path("reproduction"), quick=True))
        print(figure.text())
        ```
    """
    if config.data is not None and name not in FIGURES_WITH_DATA:
        raise InvalidArgumentError(
            f"--data is for {', '.join(FIGURES_WITH_DATA)}, got it with {name}; leave out --data"
        )
    make_folder(config.folder)
    result: FigureResult = import_module(f"truvar.paper.{name}").make(config)
    return result, result.write(name, config.folder)
