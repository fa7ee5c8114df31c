"""How a rule compares with the best rival of each problem, and how sure that is.

ratio = (mean cost of the rule to reach the target) / (the least mean cost of any rival on that problem). The least of
several noisy means is lower than the mean of the best, so a rule that only equals the best rival scores above 1.
A run that never reaches the target counts as the budget, less than it would have cost: where rivals do that, ratios
are too high; where the rule itself does, too low, which `missed` shows.
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
    """A rule on a problem, or the geometric mean over problems, with its 95 % interval (bootstrap over the starts)."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


def ratio(outcome: Outcome, target: float, rule: str, rivals: Sequence[str]) -> float:
    """The rule's mean cost over that of the best of the rivals, the rule itself not among them."""
    means = outcome.mean(target)
    return float(means[rule] / means[[name for name in rivals if name != rule]].min())


def bootstrapped(outcomes: Sequence[Outcome], rule: str, rivals: Sequence[Sequence[str]], seed: int = 0) -> Ratio:
    """The geometric mean of the ratios over all problems and targets. The starts of a problem are drawn anew together
    for all rules and targets, since they share them."""
    rng = np.random.default_rng(seed)
    found, resampled = [], []
    for outcome, names in zip(outcomes, rivals, strict=True):
        count = len(next(iter(outcome.costs.values())))
        starts = rng.integers(count, size=(RESAMPLES, count))
        for target, table in outcome.costs.items():
            others = [name for name in names if name != rule]
            means = table.clip(upper=outcome.budget)[[rule, *others]].to_numpy()[starts].mean(axis=1)
            resampled.append(np.log(means[:, 0] / means[:, 1:].min(axis=1)))
            found.append(np.log(ratio(outcome, target, rule, names)))
    low, high = np.quantile(np.exp(np.mean(resampled, axis=0)), [0.025, 0.975])
    return Ratio(float(np.exp(np.mean(found))), float(low), float(high))


def by_target(outcome: Outcome, rule: str) -> str:
    """The rule against the best rival of this problem, target by target."""
    others = [name for name in outcome.seconds.index if name != rule]
    single = {target: replace(outcome, costs={target: table}) for target, table in outcome.costs.items()}
    return ", ".join(f"{target:g}: {bootstrapped([one], rule, [others])}" for target, one in single.items())


def costs(outcome: Outcome) -> pd.DataFrame:
    """Per rule: mean cost to each target, with the share of runs that missed it where there are any."""
    table = pd.DataFrame(index=outcome.seconds.index)
    for target in outcome.costs:
        mean, missed = outcome.mean(target), outcome.missed(target)
        cells = {
            name: f"{mean[name]:.4g}" + (f" ({missed[name]:.0%} missed)" if missed[name] else "") for name in mean.index
        }
        table[f"cost to {target:g}"] = pd.Series(cells)
    table["ms"] = (1000 * outcome.seconds).round(2)
    return table
