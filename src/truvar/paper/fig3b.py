"""Figure 3 (b): the runs of Figure 3 (a), mean regret without the outer 5 % on each side."""

from __future__ import annotations

from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.paper.fig3a import regrets

_TITLE = "BO of synthetic functions: mean regret, outliers left out"


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    return regrets(config, "trimmed_mean", _TITLE)
