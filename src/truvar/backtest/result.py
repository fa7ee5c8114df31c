"""What came out of a backtest: curves, scores at equal cost, costs to targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from truvar._typing import Array

F1_TARGETS = (0.8, 0.9, 0.95)
REGRET_TARGETS = (1e-1, 1e-2, 1e-3)
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the budget


@dataclass(frozen=True)
class Backtest:
    """What came out: `curves`, a row per measurement, and `summary`, a row per policy."""

    curves: pd.DataFrame  # policy, replicate, step, spent, score, seconds, coordinates; level where there are any
    measure: str  # what the score is: "F1" or "regret"
    budget: float

    @property
    def policies(self) -> list[str]:
        """The names of the policies, in the order they were given."""
        return list(dict.fromkeys(self.curves["policy"]))

    def scores(self, spent: Array) -> dict[str, Array]:
        """By policy, the score of every replicate (rows) once each of the costs is spent (columns): it keeps its last
        value, and is nan before the first."""
        count = int(self.curves["replicate"].max()) + 1
        table: dict[str, Array] = {policy: np.full((count, len(spent)), np.nan) for policy in self.policies}
        for key, run in self.curves.groupby(["policy", "replicate"], sort=False):
            policy, replicate = cast(tuple[str, int], key)
            last = np.searchsorted(run["spent"].to_numpy(), spent * (1 + 1e-12), side="right") - 1
            table[policy][replicate] = np.where(last >= 0, run["score"].to_numpy()[last], np.nan)
        return table

    def at(self, spent: float) -> pd.DataFrame:
        """The score of every replicate (rows) and policy (columns) once that much is spent."""
        scores = {policy: values[:, 0] for policy, values in self.scores(np.array([spent])).items()}
        return pd.DataFrame(scores).rename_axis(index="replicate", columns="policy")

    def costs_to(self, target: float) -> pd.DataFrame:
        """What every replicate (rows) and policy (columns) had spent when it first reached the target; inf: never."""
        better = self.curves["score"] >= target if self.measure == "F1" else self.curves["score"] <= target
        reached = self.curves[better].groupby(["replicate", "policy"])["spent"].min().unstack("policy")
        return reached.reindex(index=self.curves["replicate"].unique(), columns=self.policies).fillna(np.inf)

    @property
    def targets(self) -> tuple[float, ...]:
        """The levels whose cost the summary gives."""
        return F1_TARGETS if self.measure == "F1" else REGRET_TARGETS

    @property
    def summary(self) -> pd.DataFrame:
        """Per policy: mean score and the half-width of its 95 % interval at shares of the budget, median cost to each
        target with its ratio to the first policy's, and seconds per suggestion."""
        table = pd.DataFrame(index=pd.Index(self.policies, name="policy"))
        for share in SHARES:
            scores = self.at(share * self.budget)
            table[f"{self.measure} at {share:.0%}"] = scores.mean()
            table[f"± at {share:.0%}"] = 1.96 * scores.std(ddof=1) / np.sqrt(scores.notna().sum())
        for target in self.targets:
            costs = self.costs_to(target).median()
            table[f"cost to {target:g}"] = costs
            table[f"ratio to {target:g}"] = costs / costs.iloc[0] if np.isfinite(costs.iloc[0]) else np.nan
        table["seconds"] = self.curves.groupby("policy")["seconds"].median()
        return table

    def to_dict(self) -> dict[str, Any]:
        """The summary, for JSON."""
        summary, reached = self.summary, {target: np.isfinite(self.costs_to(target)).mean() for target in self.targets}

        def of(policy: str) -> dict[str, Any]:
            row = cast(dict[str, float], summary.loc[policy].astype(float).to_dict())
            scores = []
            for share in SHARES:
                mean, half = row[f"{self.measure} at {share:.0%}"], row[f"± at {share:.0%}"]
                interval = [mean - half, mean + half] if np.isfinite(half) else None
                scores.append({"share": share, "spent": share * self.budget, "mean": mean, "interval_95": interval})
            costs = [
                {
                    "target": target,
                    "median_cost": row[f"cost to {target:g}"],
                    "ratio_to_first": row[f"ratio to {target:g}"],
                    "share_of_runs_that_reach_it": float(reached[target][policy]),
                }
                for target in self.targets
            ]
            return {"policy": policy, "scores": scores, "costs": costs, "seconds_per_suggestion": row["seconds"]}

        return {
            "measure": self.measure.lower(),
            "budget": self.budget,
            "replicates": int(self.curves["replicate"].nunique()),
            "policies": [of(policy) for policy in self.policies],
        }
