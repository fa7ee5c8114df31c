"""Configurations of an estimator: where they come from, and their coordinates.

A space is a grid, a list of grids, or the same with distributions of `scipy.stats` in place of some
lists. Small grids are listed; of anything larger a sample is drawn, and neighbours of the best
configurations are added to it later.

| value of a parameter | coordinate |
|---|---|
| number of a list | from 0 to 1; by its logarithm if the list is spaced geometrically |
| number of a distribution | its cumulative probability, so that equally probable intervals are equally long |
| anything else: text, Booleans, None, estimators | a category |
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.domain.parameters import Categorical, Parameter, Range
from truvar.domain.scales import is_geometric

NUMBER = "(number)"  # category of all numbers of a parameter that has other values too
# Value of a parameter that a configuration does not have, as in a list of grids.
ABSENT = "(absent)"
# Standard deviations with which a number of a distribution is changed, as a quantile.
NEIGHBOUR_SCALES = (0.15, 0.03)
OTHER_CHANGE = 0.25  # probability that a further parameter is changed, for each of the others
# of the largest and the smallest number of a distribution without quantiles that make it
# logarithmic
RATIO = 100.0

Configuration = dict[str, Any]


class ConfigurationSpace:
    """The configurations of a grid, a list of grids, or of distributions.

    Args:
        grids: As for `GridSearchCV` and `RandomizedSearchCV`.

    Attributes:
        grids: The grids.
        size: Number of configurations; infinite with distributions, and where it is too large for
            an index.

    Raises:
        ValueError: If a list is empty, as in scikit-learn.
        TypeError: If a parameter has neither a list nor a distribution, as in scikit-learn.
    """

    def __init__(self, grids: Any) -> None:
        self.grids: list[Mapping[str, Any]] = [grids] if isinstance(grids, Mapping) else list(grids)
        self.size = float("inf")
        if any(is_distribution(axis) for grid in self.grids for axis in grid.values()):
            self._sampler(1, 0)
        else:
            self._grid = ParameterGrid(grids)
            self._ends = list(
                accumulate(math.prod(len(axis) for axis in grid.values()) for grid in self.grids)
            )
            if self._ends[-1] <= sys.maxsize:
                self.size = float(self._ends[-1])
        self._origins: dict[
            int, tuple[Configuration, Mapping[str, Any]]
        ] = {}  # by the identity of a configuration

    def listed(self) -> list[Configuration]:
        """Return all configurations, in the order of `GridSearchCV`."""
        return list(self._grid)

    def draw(self, count: int, rng: np.random.Generator) -> list[Configuration]:
        """Return random configurations."""
        if math.isinf(self.size):
            own = rng.integers(len(self.grids), size=count)
            drawn: list[Configuration] = [{} for _ in range(count)]
            for number, grid in enumerate(self.grids):
                rows = np.flatnonzero(own == number)
                for name, axis in grid.items():
                    for row, value in zip(rows, _drawn_values(axis, len(rows), rng), strict=True):
                        drawn[row][name] = value
                self._remember([drawn[row] for row in rows], grid)
            return drawn
        indices = (
            np.arange(int(self.size)) if self.size <= count else self._drawn_indices(count, rng)
        )
        found: list[Configuration] = []
        for index in indices.tolist():
            found.append(self._grid[index])
            self._remember(found[-1:], self.grids[bisect_right(self._ends, index)])
        return found

    def neighbours(
        self, configuration: Configuration, count: int, rng: np.random.Generator
    ) -> list[Configuration]:
        """Return configurations that differ from one in few parameters, and little.

        Args:
            configuration: The configuration, as `draw` or this method returned it. Its neighbours
                are of the same grid.
            count: Number of neighbours.
            rng: Source of randomness.
        """
        _, own = self._origins[id(configuration)]
        names = [name for name in own if is_distribution(own[name]) or len(own[name]) > 1]
        if not names:
            return []
        found = [dict(configuration) for _ in range(count)]
        for position, name in enumerate(names):
            is_changed = (np.arange(count) % len(names) == position) | (
                rng.random(count) < OTHER_CHANGE
            )
            rows = np.flatnonzero(is_changed)
            values = _changed_values(own[name], configuration[name], len(rows), rng)
            for row, value in zip(rows, values, strict=True):
                found[row][name] = value
        self._remember(found, own)
        return found

    def _drawn_indices(self, count: int, rng: np.random.Generator) -> Index:
        """Return random, distinct indices of configurations; there may be fewer than asked for."""
        return rng.permutation(np.unique(rng.integers(int(self.size), size=count)))

    def _remember(self, configurations: Sequence[Configuration], grid: Mapping[str, Any]) -> None:
        """Record which grid configurations are of: several grids may have the same parameters.

        The configurations are kept too, so that no other object has the identity of one of them.
        """
        self._origins.update((id(each), (each, grid)) for each in configurations)

    def _sampler(self, count: int, seed: int) -> ParameterSampler:
        return ParameterSampler(self.grids, count, random_state=seed)


def is_distribution(axis: Any) -> bool:
    """Return whether a parameter has a distribution of `scipy.stats`, and not a list."""
    return hasattr(axis, "rvs")


def _drawn_values(axis: Any, count: int, rng: np.random.Generator) -> list[Any]:
    """Return random values of a parameter."""
    if not is_distribution(axis):
        values = list(axis)
        return [values[index] for index in rng.integers(len(values), size=count)]
    if hasattr(axis, "ppf"):  # of scipy.stats, which draws many values as quickly as one
        return list(
            np.asarray(axis.rvs(size=count, random_state=int(rng.integers(2**31)))).tolist()
        )
    # Others are given what scikit-learn gives them.
    return [
        axis.rvs(random_state=np.random.RandomState(int(rng.integers(2**31)))) for _ in range(count)
    ]


def _changed_values(axis: Any, value: Any, count: int, rng: np.random.Generator) -> list[Any]:
    """Return other values of a parameter, near the present one if there is an order."""
    if is_distribution(axis):
        if not (hasattr(axis, "ppf") and hasattr(axis, "cdf")):
            return _drawn_values(axis, count, rng)
        scale = rng.choice(NEIGHBOUR_SCALES, size=count)
        quantile = np.clip(axis.cdf(value) + scale * rng.standard_normal(count), 1e-6, 1 - 1e-6)
        kind = int if isinstance(value, Integral) else type(value)
        return [kind(near) for near in axis.ppf(quantile).tolist()]
    values = list(axis)
    if all(is_number(each) for each in values):
        order = sorted(range(len(values)), key=lambda k: values[k])
        position = next(k for k, index in enumerate(order) if values[index] == value)
        steps = np.clip(position + rng.choice([-2, -1, 1, 2], size=count), 0, len(values) - 1)
        return [values[order[step]] for step in steps]
    return _drawn_values(axis, count, rng)


class ConfigurationEncoder:
    """Coordinates of configurations, the same ones whenever a configuration is encoded.

    Args:
        space: The space, which the scales of the numbers come from.
        sample: Configurations that tell which columns there are: those that never change, or that
            repeat or mirror another one, are left out.
    """

    def __init__(self, space: ConfigurationSpace, sample: Sequence[Configuration]) -> None:
        self._categories: dict[str, dict[str, int]] = {}
        self._hashes: dict[int, tuple[Any, str]] = {}
        self._scales: dict[str, Callable[[Array], Array]] = {}
        self._numeric: dict[str, bool] = {}
        for name in dict.fromkeys(name for grid in space.grids for name in grid):
            axes = [grid[name] for grid in space.grids if name in grid]
            self._scales[name], self._numeric[name] = _scale(
                axes, [c[name] for c in sample if name in c]
            )
        self._kept = list(self._columns(sample))
        distinct: dict[bytes, str] = {}
        for name, (coordinates, _) in self._columns(sample).items():
            mirrored = (coordinates.max() - coordinates).tobytes()
            if np.ptp(coordinates) > 0 and mirrored not in distinct:
                distinct.setdefault(coordinates.tobytes(), name)
        self._kept = list(distinct.values())

    @property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the columns of categories."""
        return tuple(
            position for position, name in enumerate(self._kept) if name in self._categories
        )

    def points(self, configurations: Sequence[Configuration]) -> Array:
        """Return the coordinates of configurations: (n, d), without columns if all are the same."""
        columns = self._columns(configurations)
        if not self._kept:
            return np.zeros((len(configurations), 0))
        return np.column_stack([columns[name][0] for name in self._kept])

    def domain(self, points: Array) -> Domain:
        """Return the domain of coordinates (n, d)."""
        parameters: list[Parameter] = []
        bounds = []
        for name in self._kept:
            categories = self._categories.get(name)
            parameter: Parameter = Range(0.0, 1.0)
            if categories is not None:
                parameter = Categorical(list(range(max(len(categories), 2))))
            parameters.append(parameter)
            bounds.append(parameter.bounds)
        return Domain(
            tuple(self._kept), points, np.array(bounds, dtype=float), parameters=tuple(parameters)
        )

    def _columns(self, configurations: Sequence[Configuration]) -> dict[str, tuple[Array, bool]]:
        """Return coordinates by column, and whether they are categories."""
        columns: dict[str, tuple[Array, bool]] = {}
        for name in self._scales:
            values = [configuration.get(name, ABSENT) for configuration in configurations]
            has_column = self._numeric[name]
            numbers = _numbers_of(values) if has_column else np.full(len(values), np.nan)
            numeric = ~np.isnan(numbers)
            if has_column:
                coordinate = np.full(len(values), 0.5)
                coordinate[numeric] = self._scales[name](numbers[numeric])
                columns[name] = (coordinate, False)
            key = f"{name}=" if has_column else name
            if not has_column or key in self._categories or not numeric.all():
                pairs = zip(values, numeric, strict=True)
                hashes = [NUMBER if is_one else self._hash(value) for value, is_one in pairs]
                known = self._categories.setdefault(key, {NUMBER: 0} if has_column else {})
                codes = [known.setdefault(each, len(known)) for each in hashes]
                columns[key] = (np.array(codes, dtype=float), True)
        return columns

    def _hash(self, value: Any) -> str:
        """Return a text that is equal for equal values; the hash of an object is computed once."""
        if isinstance(value, (str, bool, type(None))):
            return f"{type(value).__name__} {value}"
        known = self._hashes.get(id(value))
        if known is None or known[0] is not value:
            known = (value, value_hash(value))
            self._hashes[id(value)] = known
        return known[1]


def _scale(axes: Sequence[Any], sample: Sequence[Any]) -> tuple[Callable[[Array], Array], bool]:
    """Return a function from numbers to [0, 1], and whether it applies to the parameter."""
    lists = [value for axis in axes if not is_distribution(axis) for value in axis]
    numbers = [value for value in lists if is_number(value)]
    distributions = [axis for axis in axes if is_distribution(axis)]
    if distributions:
        drawn = [value for value in sample if is_number(value)]
        if not drawn:
            return np.asarray, False
        if len(axes) == 1 and hasattr(distributions[0], "cdf"):
            return lambda values: np.asarray(distributions[0].cdf(values), dtype=float), True
        numbers = [*numbers, *drawn]
    elif mixes_equal_types(numbers):
        return (
            np.asarray,
            False,
        )  # 1 and 1.0 mean different things to some estimators, so they become categories
    if not numbers:
        return np.asarray, False
    values = np.unique(np.array([float(value) for value in numbers]))
    if distributions and values[0] > 0 and values[-1] / values[0] > RATIO:
        return lambda given: np.interp(np.log(given), np.log(values[[0, -1]]), [0.0, 1.0]), True
    if distributions:
        return lambda given: np.interp(given, values[[0, -1]], [0.0, 1.0]), True
    units = scale_to_unit(values)
    return lambda given: np.interp(given, values, units), True


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number. Booleans are not."""
    return (
        not isinstance(value, (bool, np.bool_)) and isinstance(value, Real) and math.isfinite(value)
    )


def _numbers_of(values: Sequence[Any]) -> Array:
    """Return finite numbers as they are and NaN in place of all other values."""
    if {type(value) for value in values} <= {
        float,
        int,
    }:  # by far the most frequent, and then there is a quick way
        numbers = np.array(values, dtype=float)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    return np.array([float(value) if is_number(value) else np.nan for value in values], dtype=float)


def scale_to_unit(values: Array) -> Array:
    """Scale numbers to [0, 1], by their logarithms if they are spaced geometrically.

    A zero before a geometric sequence (0, 0.1, 1, 10) is placed one step below its smallest number.
    """
    positive = np.unique(values[values > 0])
    if is_geometric(positive) and values.min() >= 0:
        step = float(np.diff(np.log(positive)).mean())
        values = np.log(np.where(values > 0, values, positive[0] * np.exp(-step)))
    low = values.min()
    high = values.max()
    return np.asarray((values - low) / (high - low)) if high > low else np.zeros(len(values))


def value_hash(value: Any) -> str:
    """Return a text that is equal for equal parameters, estimators and arrays included."""
    import joblib

    try:
        return str(joblib.hash(value))
    except Exception:  # an object that cannot be pickled is only equal to itself
        return f"object {id(value)}"


def mixes_equal_types(numbers: Iterable[Any]) -> bool:
    """Return whether some number occurs both as an integer and as a float."""
    typed = {(isinstance(value, Integral), float(value)) for value in numbers}
    return len(typed) > len({value for _, value in typed})
