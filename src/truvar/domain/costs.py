"""Noise levels, costs and tasks of measurements, as callers give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from truvar._deprecation import deprecated_attribute, renamed_arguments
from truvar._typing import Array
from truvar.domain.learned_cost import LearnedCost
from truvar.domain.travel import (
    Location,
    Network,
    Travel,
    TravelMatrix,
    check_travel,
    travel_parts,
)
from truvar.exceptions import InvalidArgumentError, InvalidModelError
from truvar.validation import (
    check_boolean,
    check_callable,
    check_cost,
    check_finite,
    check_nonnegative,
    check_nonnegative_array,
)

NoiseLike: TypeAlias = "float | str | ArrayLike | Callable[[Array], ArrayLike] | NoiseLevels"
CostLike: TypeAlias = (
    "float | str | ArrayLike | Callable[[Array, Array | None], ArrayLike] | Cost | LearnedCost"
)

_SAMPLINGS = ("stops", "along")

# Times the trace: smallest eigenvalue of a covariance that counts as rounding error.
_NEGATIVE_EIGENVALUE = -1e-10


@dataclass(frozen=True)
class NoiseLevels:
    """Precisions to choose from at every point.

    Attributes:
        variance: Noise variance of each level: a number; or where it varies by place, the name of a
            column of the domain, an array with a value per point, or a function of the points.
        cost: Cost that each level adds to that of the point.

    Raises:
        InvalidArgumentError: If the lists differ in length, are empty, or contain a negative
            number.

    Example:
        >>> NoiseLevels(variance=[1e-6, 1e-3, 0.05], cost=[15, 10, 2])
        >>> NoiseLevels(variance=[1e-6, "variance of the cheap sensor"], cost=[15, 2])
    """

    variance: Sequence[float | str | ArrayLike | Callable[[Array], ArrayLike]]
    cost: Sequence[float]

    def __post_init__(self) -> None:
        lists = [isinstance(each, (list, tuple, np.ndarray)) for each in vars(self).values()]
        if not all(lists) or len(self.variance) != len(self.cost) or len(self.variance) == 0:
            raise InvalidArgumentError(
                "noise levels need as many costs as variances, at least one, got variances "
                f"{self.variance!r} and "
                f"costs {self.cost!r}; give two lists of the same length"
            )
        for k, (variance, cost) in enumerate(zip(self.variance, self.cost, strict=True)):
            what = f"the variance of noise level {k}"
            if callable(variance):
                check_callable(variance, what, "points")
            elif np.ndim(variance) == 1:
                check_nonnegative_array(variance, what, count=len(variance))  # type: ignore[arg-type]
            elif not isinstance(variance, str):
                check_nonnegative(variance, what)
            check_cost(cost, f"the cost of noise level {k}")

    @property
    def varies(self) -> bool:
        """Whether a variance varies by place."""
        return any(
            isinstance(variance, str) or callable(variance) or np.ndim(variance) > 0
            for variance in self.variance
        )


@renamed_arguments("0.5.0", returns="must_return")
@dataclass(frozen=True)
class Cost:
    """Cost of a measurement: base, travel, set-up, and the sum of magnitude rate x |x| by column.

    Attributes:
        base: A number, the name of a column of the domain, or `LearnedCost()` for a part that is
            only known after a measurement.
        travel: Cost of the leg from the last position: rates per unit of distance by column, which
            are added up; `Euclidean`, `GreatCircle`, `Network` or `TravelMatrix`; or a list of such
            parts, whose costs are added. A rate may differ by direction: `{"depth_m":
            {"increasing": 0.5, "decreasing": 0.1}}`. Without `start`, the first measurement pays no
            travel.
        magnitude: Rate per unit of the absolute coordinate, by column.
        setup: Cost that is added where a column changes, by column: "hard to change" factors.
        start: Position before the first measurement, which then pays travel and set-up too: the
            coordinates by column that travel and set-up depend on, not necessarily a point of the
            domain; or the name of a place of the network or matrix.
        must_return: Whether the return leg to the start must fit into the budget. Measurements that
            leave too little for it are not suggested.
        sampling: "stops" if values are measured at the suggested points only; "along" if they are
            sampled en route too, in a straight line: then the gain of a suggestion counts what
            the leg to it passes, and `Study.tell_track` takes the values.

    Raises:
        InvalidArgumentError: If a rate is negative or not a number, `must_return` lacks travel, or
            `sampling` is "along" without travel in straight lines.

    Example:
        The cost 0.25 |x1 - x1'| + 4 (|x2| + 1) of the paper:

        >>> Cost(base=4, travel={"x1": 0.25}, magnitude={"x2": 4})
    """

    base: float | str | LearnedCost = 0.0
    travel: Travel = field(default_factory=dict)
    magnitude: Mapping[str, float] = field(default_factory=dict)
    setup: Mapping[str, float] = field(default_factory=dict)
    start: Location | None = None
    must_return: bool = False
    sampling: str = "stops"

    returns = deprecated_attribute("must_return", removed_in="0.5.0")

    def __post_init__(self) -> None:
        check_travel(self.travel)
        for kind in ("magnitude", "setup"):
            rates = getattr(self, kind)
            if not isinstance(rates, Mapping):
                raise InvalidArgumentError(
                    f"{kind} must be a dict of rates by column, got {rates!r}; give one such as "
                    f"{{'x': 0.25}}"
                )
            for name, rate in rates.items():
                check_nonnegative(rate, f"the {kind} rate of {name!r}")
        if self.start is not None and not isinstance(self.start, (Mapping, str)):
            raise InvalidArgumentError(
                f"the start of a cost must be a point such as {{'x': 0}} or the name of a place, "
                f"got {self.start!r}; "
                "give one of them"
            )
        check_boolean(self.must_return, "must_return")
        if self.must_return and not self.has_travel:
            raise InvalidArgumentError(
                "must_return needs a cost of travel, got none; give travel=..., or leave it out"
            )
        self._check_sampling()

    def _check_sampling(self) -> None:
        if self.sampling not in _SAMPLINGS:
            raise InvalidArgumentError(
                f"sampling must be one of {', '.join(_SAMPLINGS)}, got {self.sampling!r}; give one "
                "of them"
            )
        is_straight = not any(
            isinstance(part, (Network, TravelMatrix)) for part in travel_parts(self.travel)
        )
        if self.sampling == "along" and not (self.has_travel and is_straight):
            raise InvalidArgumentError(
                'sampling="along" needs travel in straight lines; give travel as rates by column, '
                "Euclidean or GreatCircle, or leave sampling out"
            )

    @property
    def has_travel(self) -> bool:
        """Whether travel costs something."""
        return any(
            not isinstance(part, Mapping) or _positive(part) for part in travel_parts(self.travel)
        )

    @property
    def depends_on_position(self) -> bool:
        """Whether the cost depends on the last position."""
        return self.has_travel or any(self.setup.values())


def _positive(rates: Mapping[str, Any]) -> bool:
    """Return whether a rate, in any direction, is above 0."""
    return any(any(rate.values()) if isinstance(rate, Mapping) else rate for rate in rates.values())


@dataclass(frozen=True)
class Tasks:
    """Correlated quantities that can be measured instead of the target, which is task 0.

    The covariance between quantity i at x and quantity j at x' is `covariance[i][j]` k(x, x').

    Attributes:
        covariance: Symmetric, positive semi-definite matrix between the tasks; None: learned from
            the measurements, with a unit and its own constant mean for every task.
        names: Name of each task, the target first.
        noise: Noise variance of each task, or with noise levels one per level for each task; None:
            that of the study, and one that is learned is learned for each task.
        cost: Cost of each task instead of the base cost of the study; None: that of the study.
        mean: Prior mean of each task; None: that of the study, but of the target alone if the
            covariance is learned: then the means of the others are learned, too.

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
        if (
            isinstance(self.names, str)
            or len(self.names) < 2
            or len(set(self.names)) != len(self.names)
        ):
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
                    f"tasks need one {kind} per task, got {values!r}; give {len(self.names)} "
                    "numbers"
                )
            check = {"noise": check_nonnegative, "cost": check_cost, "mean": check_finite}[kind]
            for name, value in zip(self.names, values, strict=True):
                check(value, f"the {kind} of task {name!r}")

    @property
    def learned(self) -> bool:
        """Whether the covariance is learned."""
        return self.covariance is None

    def noise_of(self, task: int, n_levels: int) -> Array | None:
        """Return a task's noise variances (K,) by noise level; None: those of the study.

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
                f"the noise of the tasks has {len(own)} variances for {self.names[task]!r}, but "
                "the study has no noise "
                "levels; give one number per task, or noise=NoiseLevels(...)"
            )
        raise InvalidModelError(
            f"the study has {n_levels} noise levels, and the tasks need one variance for each of "
            "them, got "
            f"{self.noise[task]!r} for {self.names[task]!r}; give the noise of the tasks as one "
            f"list of {n_levels} "
            "numbers per task, or leave it out to use the variances of the levels for every task"
        )

    def _is_by_level(self, values: Any) -> bool:
        """Return whether the noise is given as one list per task, and check its numbers."""
        if (
            isinstance(values, str)
            or len(values) != len(self.names)
            or not all(np.ndim(row) == 1 for row in values)
        ):
            return False
        for name, row in zip(self.names, values, strict=True):
            if len(row) != len(values[0]) or len(row) == 0:
                raise InvalidModelError(
                    "tasks need as many noise variances as there are noise levels for each task, "
                    f"got {values!r}; give "
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
                f"{count} tasks need a covariance of {count} x {count} finite numbers, got "
                f"{self.covariance!r}; "
                "give one row per task"
            )
        smallest = np.linalg.eigvalsh(matrix)[0]
        if not np.allclose(matrix, matrix.T) or smallest < _NEGATIVE_EIGENVALUE * np.trace(matrix):
            raise InvalidModelError(
                f"the covariance between tasks must be symmetric and positive semi-definite, got "
                f"{matrix.tolist()}, whose smallest eigenvalue is {smallest:.3g}; lower the "
                "covariances off its "
                "diagonal"
            )
