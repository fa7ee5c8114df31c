"""The result of a backtest: curves, scores at equal cost, costs to reach targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from truvar._typing import Array

# Scores for which the summary has the cost to reach them.
F1_TARGETS = (0.8, 0.9, 0.95)
REGRET_TARGETS = (1e-1, 1e-2, 1e-3)
SHARES = (0.25, 0.5, 0.75, 1.0)  # shares of the budget at which the summary has scores


@dataclass(frozen=True)
class Backtest:
    """The result of a backtest.

    Attributes:
        curves: A row per measurement with the columns policy, replicate, step, spent, score,
            seconds (that the suggestion took), the coordinates, and level if there are noise
            levels.
        measure: Name of the score, "F1" or "regret".
        budget: Cost that each run could spend.

    Example:
        ```python
        policies = ["truvar", "gchk"]
        result = tv.backtest("lake.toml", "chlorophyll", policies, replicates=5, budget=2000)
        print(result.summary)
        ```
    """

    curves: pd.DataFrame
    measure: str
    budget: float

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order in which they were given."""
        return list(dict.fromkeys(self.curves["policy"]))

    def scores(self, spent: Array) -> dict[str, Array]:
        """Return the scores of every policy at given costs.

        Args:
            spent: Costs, shape (m,).

        Returns:
            For each policy an array of shape (replicates, m): the score after the last measurement
            that the cost pays for, NaN before the first.
        """
        count = int(self.curves["replicate"].max()) + 1
        table: dict[str, Array] = {
            policy: np.full((count, len(spent)), np.nan) for policy in self.policies
        }
        for key, run in self.curves.groupby(["policy", "replicate"], sort=False):
            policy, replicate = cast(tuple[str, int], key)
            last = np.searchsorted(run["spent"].to_numpy(), spent * (1 + 1e-12), side="right") - 1
            table[policy][replicate] = np.where(last >= 0, run["score"].to_numpy()[last], np.nan)
        return table

    def at(self, spent: float) -> pd.DataFrame:
        """Return the score of every replicate (rows) and policy (columns) at the cost `spent`."""
        scores = {policy: values[:, 0] for policy, values in self.scores(np.array([spent])).items()}
        return pd.DataFrame(scores).rename_axis(index="replicate", columns="policy")

    def costs_to(self, target: float) -> pd.DataFrame:
        """Return the cost at which each replicate (row) and policy (column) first reached a score.

        Args:
            target: A score: F1 must be at least this, regret at most.

        Returns:
            The costs; infinite where the target was not reached.
        """
        scores = self.curves["score"]
        better = scores >= target if self.measure == "F1" else scores <= target
        reached = (
            self.curves[better].groupby(["replicate", "policy"])["spent"].min().unstack("policy")
        )
        return reached.reindex(
            index=self.curves["replicate"].unique(), columns=self.policies
        ).fillna(np.inf)

    @property
    def targets(self) -> tuple[float, ...]:
        """Scores for which the summary has the cost to reach them."""
        return F1_TARGETS if self.measure == "F1" else REGRET_TARGETS

    @property
    def summary(self) -> pd.DataFrame:
        """A row per policy.

        The columns are the mean score and the half-width of its 95 % interval at shares of the
        budget, the median cost to reach each target with its ratio to that of the first policy, and
        the median seconds per suggestion.
        """
        table = pd.DataFrame(index=pd.Index(self.policies, name="policy"))
        for share in SHARES:
            scores = self.at(share * self.budget)
            table[f"{self.measure} at {share:.0%}"] = scores.mean()
            table[f"± at {share:.0%}"] = 1.96 * scores.std(ddof=1) / np.sqrt(scores.notna().sum())
        for target in self.targets:
            costs = self.costs_to(target).median()
            table[f"cost to {target:g}"] = costs
            table[f"ratio to {target:g}"] = (
                costs / costs.iloc[0] if np.isfinite(costs.iloc[0]) else np.nan
            )
        table["seconds"] = self.curves.groupby("policy")["seconds"].median()
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as nested dicts and lists, for JSON."""
        summary = self.summary
        reached = {target: np.isfinite(self.costs_to(target)).mean() for target in self.targets}
        policies = []
        for policy in self.policies:
            row = cast(dict[str, float], summary.loc[policy].astype(float).to_dict())
            shares_reached = {target: float(share[policy]) for target, share in reached.items()}
            policies.append(
                {
                    "policy": policy,
                    "scores": self._scores_to_list(row),
                    "costs": self._costs_to_list(row, shares_reached),
                    "seconds_per_suggestion": row["seconds"],
                }
            )
        return {
            "measure": self.measure.lower(),
            "budget": self.budget,
            "replicates": int(self.curves["replicate"].nunique()),
            "policies": policies,
        }

    def _scores_to_list(self, row: dict[str, float]) -> list[dict[str, Any]]:
        """Return the scores at shares of the budget, from a row of the summary."""
        scores = []
        for share in SHARES:
            mean = row[f"{self.measure} at {share:.0%}"]
            half = row[f"± at {share:.0%}"]
            interval = [mean - half, mean + half] if np.isfinite(half) else None
            scores.append(
                {
                    "share": share,
                    "spent": share * self.budget,
                    "mean": mean,
                    "interval_95": interval,
                }
            )
        return scores

    def _costs_to_list(
        self, row: dict[str, float], shares_reached: dict[float, float]
    ) -> list[dict[str, Any]]:
        """Return the costs to reach the targets, from a row of the summary."""
        return [
            {
                "target": target,
                "median_cost": row[f"cost to {target:g}"],
                "ratio_to_first": row[f"ratio to {target:g}"],
                "share_of_runs_that_reach_it": shares_reached[target],
            }
            for target in self.targets
        ]
