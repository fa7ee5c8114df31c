"""Noise levels, costs and tasks of measurements, as callers give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError, InvalidModelError
from truvar.validation import check_finite, check_nonnegative

NoiseLike: TypeAlias = "float | str | ArrayLike | Callable[[Array], ArrayLike] | NoiseLevels"
CostLike: TypeAlias = "float | str | ArrayLike | Callable[[Array, Array | None], ArrayLike] | Cost"

NEGATIVE_EIGENVALUE = -1e-10  # times the trace: smallest eigenvalue of a covariance that counts as rounding error


@dataclass(frozen=True)
class NoiseLevels:
    """Precisions to choose from at every point.

    Attributes:
        variance: Noise variance of each level.
        cost: Cost that each level adds to that of the point.

    Raises:
        InvalidArgumentError: If the lists differ in length, are empty, or contain a negative number.

    Example:
        >>> NoiseLevels(variance=[1e-6, 1e-3, 0.05], cost=[15, 10, 2])
    """

    variance: Sequence[float]
    cost: Sequence[float]

    def __post_init__(self) -> None:
        if np.ndim(self.variance) != 1 or np.shape(self.variance) != np.shape(self.cost) or len(self.variance) == 0:
            raise InvalidArgumentError(
                f"noise levels need as many costs as variances, at least one, got variances {self.variance!r} and "
                f"costs {self.cost!r}; give two lists of the same length"
            )
        for k, (variance, cost) in enumerate(zip(self.variance, self.cost, strict=True)):
            check_nonnegative(variance, f"the variance of noise level {k}")
            check_nonnegative(cost, f"the cost of noise level {k}")


@dataclass(frozen=True)
class Cost:
    """Cost of a measurement: base + sum of travel rate x |x - last x| + sum of magnitude rate x |x|, by column.

    Attributes:
        base: A number, or the name of a column of the domain.
        travel: Rate per unit of distance from the last position, by column. The first measurement pays no travel.
        magnitude: Rate per unit of the absolute coordinate, by column.

    Raises:
        InvalidArgumentError: If a rate is negative or not a number.

    Example:
        The cost 0.25 |x1 - x1'| + 4 (|x2| + 1) of the paper:

        >>> Cost(base=4, travel={"x1": 0.25}, magnitude={"x2": 4})
    """

    base: float | str = 0.0
    travel: Mapping[str, float] = field(default_factory=dict)
    magnitude: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in ("travel", "magnitude"):
            rates = getattr(self, kind)
            if not isinstance(rates, Mapping):
                raise InvalidArgumentError(
                    f"{kind} must be a dict of rates by column, got {rates!r}; give one such as {{'x': 0.25}}"
                )
            for name, rate in rates.items():
                check_nonnegative(rate, f"the {kind} rate of {name!r}")


@dataclass(frozen=True)
class Tasks:
    """Correlated quantities that can be measured instead of the target, which is task 0.

    The covariance between quantity i at x and quantity j at x' is `covariance[i][j]` k(x, x').

    Attributes:
        covariance: Symmetric, positive semi-definite matrix between the tasks; None: learned from the measurements,
            with a unit and a constant mean of its own for every task.
        names: Name of each task, the target first.
        noise: Noise variance of each task, or with noise levels one per level for each task; None: that of the study,
            and one that is learned is learned for each task.
        cost: Cost of each task instead of the base cost of the study; None: that of the study.
        mean: Prior mean of each task; None: that of the study, but of the target alone if the covariance is learned:
            then the means of the others are learned, too.

    Raises:
        InvalidModelError: If the names, the covariance or the numbers per task are invalid.

    Example:
        A cheap quantity whose relation to the target is not known:

        >>> Tasks(names=["yield", "assay"], cost=[10, 1])
    """

    covariance: Sequence[Sequence[float]] | None = None
    names: Sequence[str] = ()
    noise: Sequence[float] | Sequence[Sequence[float]] | None = None
    cost: Sequence[float] | None = None
    mean: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or len(self.names) < 2 or len(set(self.names)) != len(self.names):
            raise InvalidModelError(
                f"tasks need a list of at least two different names, got {self.names!r}; "
                "give one such as ['target', 'proxy'], the target first"
            )
        if self.covariance is not None:
            self._check_covariance()
        for kind in ("noise", "cost", "mean"):
            values = getattr(self, kind)
            if values is None:
                continue
            if kind == "noise" and self._is_by_level(values):
                continue
            if np.shape(values) != (len(self.names),):
                raise InvalidModelError(
                    f"tasks need one {kind} per task, got {values!r}; give {len(self.names)} numbers"
                )
            check = check_finite if kind == "mean" else check_nonnegative
            for name, value in zip(self.names, values, strict=True):
                check(value, f"the {kind} of task {name!r}")

    @property
    def learned(self) -> bool:
        """Whether the covariance is learned."""
        return self.covariance is None

    def noise_of(self, task: int, n_levels: int) -> Array | None:
        """Return the noise variances (K,) that a task has at each of K noise levels; None: those of the study.

        Raises:
            InvalidModelError: If there is not one variance per level.
        """
        if self.noise is None:
            return None
        own = np.atleast_1d(np.asarray(self.noise[task], dtype=float))
        if len(own) == n_levels:
            return own
        if n_levels == 1:
            raise InvalidModelError(
                f"the noise of the tasks has {len(own)} variances for {self.names[task]!r}, but the study has no noise "
                "levels; give one number per task, or noise=NoiseLevels(...)"
            )
        raise InvalidModelError(
            f"the study has {n_levels} noise levels, and the tasks need one variance for each of them, got "
            f"{self.noise[task]!r} for {self.names[task]!r}; give the noise of the tasks as one list of {n_levels} "
            "numbers per task, or leave it out to use the variances of the levels for every task"
        )

    def _is_by_level(self, values: Any) -> bool:
        """Return whether the noise is given as one list per task, whose numbers are checked here."""
        if isinstance(values, str) or len(values) != len(self.names) or not all(np.ndim(row) == 1 for row in values):
            return False
        for name, row in zip(self.names, values, strict=True):
            if len(row) != len(values[0]) or len(row) == 0:
                raise InvalidModelError(
                    f"tasks need as many noise variances as there are noise levels for each task, got {values!r}; give "
                    "lists of the same length"
                )
            for level, value in enumerate(row):
                check_nonnegative(value, f"the noise of task {name!r} at level {level}")
        return True

    def _check_covariance(self) -> None:
        count = len(self.names)
        try:
            matrix = np.asarray(self.covariance, dtype=float)
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.shape != (count, count) or not np.isfinite(matrix).all():
            raise InvalidModelError(
                f"{count} tasks need a covariance of {count} x {count} finite numbers, got {self.covariance!r}; "
                "give one row per task"
            )
        smallest = np.linalg.eigvalsh(matrix)[0]
        if not np.allclose(matrix, matrix.T) or smallest < NEGATIVE_EIGENVALUE * np.trace(matrix):
            raise InvalidModelError(
                f"the covariance between tasks must be symmetric and positive semi-definite, got "
                f"{matrix.tolist()}, whose smallest eigenvalue is {smallest:.3g}; lower the covariances off its "
                "diagonal"
            )
