"""The default study."""

from __future__ import annotations

import truvar as tv
from benchmarks.field.cases import Priced
from benchmarks.instances import Array
from benchmarks.scratch.methods import DefaultStudy

MIN_F1 = 0.9  # that the lower bound of the expected F1 score must reach
MAX_REGRET = 0.01  # share of the range that the upper bound of the expected regret may have


class Default(DefaultStudy):
    """The default study with the cost of the problem, and with its model where that is given."""

    def __init__(self, priced: Priced) -> None:
        instance = priced.instance
        seed = instance.seed[1]
        cost = priced.price.for_study()
        if priced.known is not None:
            self.study = priced.known.problem.study(seed=seed, cost=cost)
        else:
            noise = priced.levels
            self.study = tv.Study(instance.domain, instance.goal, noise=noise, cost=cost, seed=seed)
        self.levels = priced.levels
        self.suggestion: tv.Suggestion | None = None

    def tell(self, row: int, value: float) -> None:
        if self.suggestion is not None or self.levels is None:
            super().tell(row, value)
            return
        n_rows = len(self.study.domain)
        self.study.tell(self.study.domain.point(row % n_rows), value, level=row // n_rows)

    def ask(self, costs: Array) -> int:
        row = super().ask()
        assert self.suggestion is not None
        return row + (self.suggestion.level or 0) * len(self.study.domain)

    def is_sure(self) -> bool:
        """Return whether `run(f1=0.9)`, or `run(relative_regret=0.01)`, would stop here."""
        is_level_set = isinstance(self.study.goal, tv.LevelSet)
        limits = {"f1": MIN_F1} if is_level_set else {"relative_regret": MAX_REGRET}
        return self.study.check_stop(**limits).reason is not None
