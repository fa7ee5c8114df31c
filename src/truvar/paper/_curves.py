"""Curves of scores over the runs of a backtest, and tables made from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from truvar._typing import Array
from truvar.backtest import Backtest

_TRIM = 0.05  # share of the best and of the worst runs that the paper leaves out of its means


def trimmed_mean(values: Array) -> Array:
    """Return the mean of each column without the largest and the smallest 5 % of its values."""
    ordered = np.sort(values, axis=0)
    cut = int(_TRIM * len(ordered))
    return np.asarray(ordered[cut : len(ordered) - cut].mean(axis=0))


def curves(result: Backtest, costs: Array) -> pd.DataFrame:
    """Return statistics of the scores over the runs, at given costs.

    Args:
        result: The backtest.
        costs: Costs at which the scores are taken.

    Returns:
        A row per policy and cost with the columns policy, spent, mean, low and high (the 95 %
        interval of the mean), median, trimmed_mean and sd. Costs that are too small for some run to
        have a score are left out.
    """
    parts = []
    for policy, values in result.scores(costs).items():
        known = ~np.isnan(values).any(axis=0)
        scores = values[:, known]
        mean = scores.mean(axis=0)
        half_width = np.zeros(scores.shape[1])
        if len(scores) > 1:
            half_width = 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
        columns = {
            "policy": policy,
            "spent": costs[known],
            "mean": mean,
            "low": mean - half_width,
            "high": mean + half_width,
            "median": np.median(scores, axis=0),
            "trimmed_mean": trimmed_mean(scores),
            "sd": scores.std(axis=0),
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _first_cost(frame: pd.DataFrame, policy: str, target: float, column: str = "mean") -> float:
    """Return the cost from which on a curve stays at or above a target.

    Args:
        frame: Curves, from `curves`.
        policy: Name of the policy.
        target: The score to reach.
        column: Name of the statistic.

    Returns:
        The cost; infinite if the curve ends below the target.
    """
    curve = frame[frame["policy"] == policy]
    below = np.flatnonzero(curve[column].to_numpy() < target)
    after = 0 if len(below) == 0 else int(below[-1]) + 1
    return float(curve["spent"].iloc[after]) if after < len(curve) else float("inf")


def leaders(frame: pd.DataFrame, column: str = "mean") -> pd.DataFrame:
    """Return which policy has the highest score at which costs.

    Args:
        frame: Curves, from `curves`.
        column: Name of the statistic.

    Returns:
        A row per stretch of costs with the columns policy, from and to. Costs at which some policy
        has no score yet are left out. Of policies with the same score the one that comes first in
        the frame counts.
    """
    policies = list(dict.fromkeys(frame["policy"]))
    wide = frame.pivot(index="spent", columns="policy", values=column)[policies].dropna()
    best = wide.idxmax(axis=1)
    stretch = (best != best.shift()).cumsum()
    rows = [
        (part.iloc[0], float(part.index[0]), float(part.index[-1]))
        for _, part in best.groupby(stretch)
    ]
    return pd.DataFrame(rows, columns=["policy", "from", "to"])


def level_set_table(
    result: Backtest, frame: pd.DataFrame, reference: str, costs: Sequence[float] | None = None
) -> pd.DataFrame:
    """Return the table of a level-set figure.

    Args:
        result: The backtest.
        frame: Its curves, from `curves`.
        reference: Name of the policy whose costs the others are divided by.
        costs: Costs at which F1 is shown. None: a quarter of the budget, half of it, and all of it.

    Returns:
        A row per policy: F1 at the costs, the cost at which the mean F1 reaches each target, the
        median over the runs of the cost to reach it, also divided by that of the reference, and
        seconds per suggestion.
    """
    table = pd.DataFrame(index=pd.Index(result.policies, name="policy"))
    if costs is None:
        costs = [share * result.budget for share in (0.25, 0.5, 1.0)]
    for cost in costs:
        table[f"F1 at {cost:g}"] = result.at(cost).mean()
    for target in result.targets:
        table[f"mean F1 {target:g} at"] = [
            _first_cost(frame, policy, target) for policy in result.policies
        ]
    for target in result.targets:
        medians = result.costs_to(target).median()
        ratios = medians / medians[reference] if np.isfinite(medians[reference]) else np.nan
        table[f"median cost to {target:g}"] = medians
        table[f"over {reference}'s at {target:g}"] = ratios
    table["seconds"] = result.curves.groupby("policy")["seconds"].median()
    return table
