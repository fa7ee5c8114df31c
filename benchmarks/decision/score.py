"""Comparison of a policy with the best baseline of each problem, with bootstrap intervals.

ratio = (mean cost of the policy to reach the target) / (least mean cost of any baseline on that
problem). The least of several noisy means is lower than the mean of the best, so a policy that only
equals the best baseline scores above 1. A run that never reaches the target counts as the budget,
less than it would have cost: where baselines do that, ratios are too high; where the policy itself
does, too low, which `missed` shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from benchmarks.decision.runs import Outcome

RESAMPLES = 1000


@dataclass(frozen=True)
class Ratio:
    """Ratio of a policy on a problem, or geometric mean over problems, with its 95 % bootstrap
    interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


def ratio(outcome: Outcome, target: float, policy: str, baselines: Sequence[str]) -> float:
    """The policy's mean cost over that of the best of the baselines, the policy itself not among
    them."""
    means = outcome.mean(target)
    return float(means[policy] / means[[name for name in baselines if name != policy]].min())


def bootstrapped(
    outcomes: Sequence[Outcome], policy: str, baselines: Sequence[Sequence[str]], seed: int = 0
) -> Ratio:
    """The geometric mean of the ratios over all problems and targets. The starts of a problem are
    drawn again together
    for all policies and targets, since they share them."""
    rng = np.random.default_rng(seed)
    found = []
    resampled = []
    for outcome, names in zip(outcomes, baselines, strict=True):
        count = len(next(iter(outcome.costs.values())))
        starts = rng.integers(count, size=(RESAMPLES, count))
        for target, table in outcome.costs.items():
            others = [name for name in names if name != policy]
            means = (
                table.clip(upper=outcome.budget)[[policy, *others]].to_numpy()[starts].mean(axis=1)
            )
            resampled.append(np.log(means[:, 0] / means[:, 1:].min(axis=1)))
            found.append(np.log(ratio(outcome, target, policy, names)))
    low, high = np.quantile(np.exp(np.mean(resampled, axis=0)), [0.025, 0.975])
    return Ratio(float(np.exp(np.mean(found))), float(low), float(high))


def by_target(outcome: Outcome, policy: str) -> str:
    """The policy against the best baseline of this problem, target by target."""
    others = [name for name in outcome.seconds.index if name != policy]
    single = {
        target: replace(outcome, costs={target: table}) for target, table in outcome.costs.items()
    }
    return ", ".join(
        f"{target:g}: {bootstrapped([one], policy, [others])}" for target, one in single.items()
    )


def costs(outcome: Outcome) -> pd.DataFrame:
    """Per policy: mean cost to each target, with the share of runs that missed it where there
    are any."""
    table = pd.DataFrame(index=outcome.seconds.index)
    for target in outcome.costs:
        mean = outcome.mean(target)
        missed = outcome.missed(target)
        cells = {
            name: f"{mean[name]:.4g}" + (f" ({missed[name]:.0%} missed)" if missed[name] else "")
            for name in mean.index
        }
        table[f"cost to {target:g}"] = pd.Series(cells)
    table["ms"] = (1000 * outcome.seconds).round(2)
    return table
