"""Figure 3 (b): the runs of Figure 3 (a), the mean of the regret without the best and the worst 5 % of them."""

from __future__ import annotations

from truvar.paper.experiment import Outcome, TheorySetting
from truvar.paper.fig3a import regrets

TITLE = "BO of synthetic functions: mean regret, outliers left out"


def make(setting: TheorySetting) -> Outcome:
    return regrets(setting, "trimmed_mean", TITLE)
