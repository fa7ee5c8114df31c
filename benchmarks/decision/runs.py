"""The runs of one problem, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.decision.fields import TRUTH
from benchmarks.decision.problems import F1, REGRET, Case
from truvar.acquisition import Policy
from truvar.backtest import backtest


@dataclass(frozen=True)
class Outcome:
    """Cost of every start (rows) and policy (columns) to reach each target; infinite: not within
    the budget."""

    name: str
    budget: float
    costs: Mapping[float, pd.DataFrame]
    seconds: pd.Series  # per suggestion

    def mean(self, target: float) -> pd.Series:
        """The mean cost by policy; a run that never got there counts as the budget, which it
        would have exceeded."""
        return self.costs[target].clip(upper=self.budget).mean()

    def missed(self, target: float) -> pd.Series:
        """The share of runs that never got there."""
        return np.isinf(self.costs[target]).mean()


def run(
    case: Case,
    policies: Mapping[str, Policy],
    starts: int,
    side: int,
    folder: Path | None = None,
    jobs: int = 1,
) -> Outcome:
    """Run every policy from every start until the last target; each field or function has at
    least one start."""
    problems = case.make(side)
    shares = [
        len(part) for part in np.array_split(np.arange(max(starts, len(problems))), len(problems))
    ]
    names = F1 if case.level_set else REGRET
    costs: dict[float, list[pd.DataFrame]] = {name: [] for name in names}
    seconds = []
    for field, (problem, share) in enumerate(zip(problems, shares, strict=True)):
        targets = case.targets(problem.domain.column(TRUTH))
        found = backtest(
            problem,
            TRUTH,
            policies,
            replicates=share,
            budget=case.budget,
            until=targets[-1],
            seed=field,
            folder=folder,
            jobs=jobs,
        )
        for name, target in zip(names, targets, strict=True):
            costs[name].append(found.costs_to(target))
        seconds.append(found.curves.groupby("policy")["seconds"].median())
    tables = {name: pd.concat(parts, ignore_index=True) for name, parts in costs.items()}
    return Outcome(case.name, case.budget, tables, pd.concat(seconds, axis=1).mean(axis=1))
