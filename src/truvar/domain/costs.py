"""What callers say about measurements: noise levels, costs and tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.exceptions import TruvarError
from truvar.validation import check_finite, check_nonnegative

NoiseLike: TypeAlias = "float | str | ArrayLike | Callable[[Array], ArrayLike] | NoiseLevels"
CostLike: TypeAlias = "float | str | ArrayLike | Callable[[Array, Array | None], ArrayLike] | Cost"


@dataclass(frozen=True)
class NoiseLevels:
    """Precisions to choose from at every point: their noise variances, and what each adds to the cost."""

    variance: Sequence[float]
    cost: Sequence[float]

    def __post_init__(self) -> None:
        if np.ndim(self.variance) != 1 or np.shape(self.variance) != np.shape(self.cost) or len(self.variance) == 0:
            raise TruvarError(
                "noise levels need as many costs as variances and at least one, but the variances were "
                f"{self.variance!r} and the costs {self.cost!r}; give two lists of the same length"
            )
        for k, (variance, cost) in enumerate(zip(self.variance, self.cost, strict=True)):
            check_nonnegative(variance, f"the variance of noise level {k}")
            check_nonnegative(cost, f"the cost of noise level {k}")


@dataclass(frozen=True)
class Cost:
    """base + sum of travel rate x |x - last x| + sum of magnitude rate x |x|, by column.

    The paper's 0.25 |x1 - x1'| + 4 (|x2| + 1) is `Cost(base=4, travel={"x1": 0.25}, magnitude={"x2": 4})`.
    """

    base: float | str = 0.0
    travel: Mapping[str, float] = field(default_factory=dict)
    magnitude: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in ("travel", "magnitude"):
            rates = getattr(self, kind)
            if not isinstance(rates, Mapping):
                raise TruvarError(
                    f"{kind} must be the rates by column, got {rates!r}; give a dict such as {{'x': 0.25}}"
                )
            for name, rate in rates.items():
                check_nonnegative(rate, f"the {kind} rate of {name!r}")


@dataclass(frozen=True)
class Tasks:
    """Correlated quantities that can be measured instead of the target, which is task 0.

    The covariance between quantity i at x and j at x' is `covariance[i][j]` k(x, x'). Each task may have its own noise,
    cost and prior mean; None takes over the study's.
    """

    covariance: Sequence[Sequence[float]]
    names: Sequence[str]
    noise: Sequence[float] | None = None
    cost: Sequence[float] | None = None
    mean: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or len(self.names) < 2 or len(set(self.names)) != len(self.names):
            raise TruvarError(
                f"tasks need a list of at least two different names, got {self.names!r}; "
                "give one such as ['target', 'proxy'], the target first"
            )
        count = len(self.names)
        try:
            matrix = np.asarray(self.covariance, dtype=float)
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.shape != (count, count) or not np.isfinite(matrix).all():
            raise TruvarError(
                f"{count} tasks need a covariance of {count} x {count} finite numbers, got {self.covariance!r}; "
                "give one row per task"
            )
        least = np.linalg.eigvalsh(matrix)[0]
        if not np.allclose(matrix, matrix.T) or least < -1e-10 * np.trace(matrix):
            raise TruvarError(
                f"the covariance between tasks must be symmetric and positive semi-definite, got "
                f"{matrix.tolist()}, whose smallest eigenvalue is {least:.3g}; lower the covariances off its diagonal"
            )
        for kind in ("noise", "cost", "mean"):
            values = getattr(self, kind)
            if values is None:
                continue
            if np.shape(values) != (count,):
                raise TruvarError(f"tasks need one {kind} per task, {count} numbers, got {values!r}; mend it")
            for name, value in zip(self.names, values, strict=True):
                check = check_finite if kind == "mean" else check_nonnegative
                check(value, f"the {kind} of task {name!r}")
