"""What the figures share: how much is run and where it is kept, curves as tables, and what is written.

A figure is a module with `make(config) -> FigureResult`. Its runs are a backtest, kept in the folder: a figure that was
interrupted continues where it stopped, and figures with the same runs share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.backtest import Backtest, Truth, backtest
from truvar.backtest.simulation import Judged
from truvar.exceptions import TruvarError
from truvar.paper import FIGURES_WITH_DATA
from truvar.problem import Problem
from truvar.report.tables import make_folder, to_json

TRIM = 0.05  # the share of best and of worst runs that the paper leaves out of its means


@dataclass(frozen=True)
class ReproductionConfig:
    """How much is run, by how many processes, and where the results go."""

    folder: Path
    replicates: int | None = None  # None: the paper's number, or a few where it has to be quick
    quick: bool = False
    scale: float = 1.0  # of every budget
    jobs: int = 1
    executor: Any = None  # a cluster in the place of processes
    data: Path | None = None  # a table of one's own in the place of the built-in one
    progress: Callable[[str], Callable[[int, int], object]] | None = None

    def count(self, full: int, quick: int) -> int:
        """The number of replicates."""
        return self.replicates or (quick if self.quick else full)

    def budget(self, full: float, quick: float | None = None) -> float:
        """What a run may spend: so much or, where it has to be quick, less."""
        return round(self.scale * (quick if self.quick and quick is not None else full))


@dataclass(frozen=True)
class Experiment:
    """Policies against known values, to a budget."""

    name: str
    problem: Problem
    truth: Array | Callable[[int], Truth]
    policies: Mapping[str, Policy | str]
    budget: float
    noisy: bool = False
    judged: Judged = "reported"

    def run(self, config: ReproductionConfig, replicates: int) -> Backtest:
        """All runs, those already in the folder as they are."""
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
    """A figure of the paper, reproduced: the table that is printed, tables behind it, and pictures."""

    title: str
    table: pd.DataFrame
    facts: Mapping[str, Any]  # settings, for the JSON file
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # further tables, by name
    pictures: Mapping[str, Any] = field(default_factory=dict)  # matplotlib Figures, by name; "" is the figure itself

    def to_dict(self, name: str) -> dict[str, Any]:
        """For JSON."""
        return {"figure": name, "title": self.title, **self.facts, "table": self.table.reset_index().to_dict("records")}

    def text(self) -> str:
        """The table as it is printed: what was compared beside each other."""
        return self.table.T.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-")

    def write(self, name: str, folder: Path) -> list[Path]:
        """NAME.json, NAME.csv, a CSV file for each further table, and the pictures."""
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
    """Makes the figure of that name, and writes it into the folder."""
    if config.data is not None and name not in FIGURES_WITH_DATA:
        raise TruvarError(f"a table of one's own is for {', '.join(FIGURES_WITH_DATA)}, but the figure was {name}; leave out --data")
    make_folder(config.folder)
    outcome: FigureResult = import_module(f"truvar.paper.{name}").make(config)
    return outcome, outcome.write(name, config.folder)


def trimmed_mean(values: Array) -> Array:
    """The mean of each column without the best and the worst 5 %."""
    ordered = np.sort(values, axis=0)
    cut = int(TRIM * len(ordered))
    return np.asarray(ordered[cut : len(ordered) - cut].mean(axis=0))


def curves(result: Backtest, costs: Array) -> pd.DataFrame:
    """The score over the runs once each of the costs is spent: mean with its 95 % interval, median, trimmed mean."""
    parts = []
    for policy, values in result.scores(costs).items():
        begun = ~np.isnan(values).any(axis=0)  # from where on every run has a score
        seen = values[:, begun]
        half = 1.96 * seen.std(axis=0, ddof=1) / np.sqrt(len(seen)) if len(seen) > 1 else np.zeros(seen.shape[1])
        mean = seen.mean(axis=0)
        part = {
            "policy": policy, "spent": costs[begun], "mean": mean, "low": mean - half, "high": mean + half,
            "median": np.median(seen, axis=0), "trimmed_mean": trimmed_mean(seen), "sd": seen.std(axis=0),
        }  # fmt: skip
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def first_cost(frame: pd.DataFrame, policy: str, target: float, column: str = "mean") -> float:
    """The cost from which on a rising curve stays at or above the target; inf: never."""
    curve = frame[frame["policy"] == policy]
    below = np.flatnonzero(curve[column].to_numpy() < target)
    after = 0 if len(below) == 0 else int(below[-1]) + 1
    return float(curve["spent"].iloc[after]) if after < len(curve) else float("inf")


def level_set_table(result: Backtest, frame: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Per policy: F1 at shares of the budget, the cost at which the mean F1 reaches its targets, the median cost of the
    runs to them, both compared with the reference, and seconds per suggestion."""
    table = pd.DataFrame(index=pd.Index(result.policies, name="policy"))
    for share in (0.25, 0.5, 1.0):
        scores = result.at(share * result.budget)
        table[f"F1 at {share * result.budget:g}"] = scores.mean()
    for target in result.targets:
        table[f"mean F1 {target:g} at"] = [first_cost(frame, policy, target) for policy in result.policies]
    for target in result.targets:
        costs = result.costs_to(target).median()
        table[f"median cost to {target:g}"] = costs
        table[f"over {reference}'s at {target:g}"] = (
            costs / costs[reference] if np.isfinite(costs[reference]) else np.nan
        )
    table["seconds"] = result.curves.groupby("policy")["seconds"].median()
    return table
