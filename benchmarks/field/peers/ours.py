"""The default study."""

from __future__ import annotations

import numpy as np

import truvar as tv
from benchmarks.field.problems import Priced
from benchmarks.instances import Array


class Default:
    """The default study: nothing given but the domain, the goal and the cost."""

    def __init__(self, priced: Priced) -> None:
        instance = priced.instance
        self.study = tv.Study(
            instance.domain, instance.goal, cost=priced.price.for_study(), seed=instance.seed[1]
        )
        self.suggestion: tv.Suggestion | None = None

    def tell(self, row: int, value: float) -> None:
        self.study.tell(self.suggestion or self.study.domain.point(row), value)
        self.suggestion = None

    def ask(self, costs: Array) -> int:
        self.suggestion = self.study.ask()
        assert self.suggestion.index is not None
        return self.suggestion.index

    def report(self) -> int | np.ndarray:
        result = self.study.result()
        if result.classification is not None:
            return result.classification
        assert result.best.index is not None
        return result.best.index
