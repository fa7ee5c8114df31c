"""Configurations of an estimator: where they come from, and their coordinates.

A space is a grid, a list of grids, or the same with distributions of `scipy.stats` in place of some lists. Small grids
are listed; of anything larger a sample is drawn, and neighbours of the best configurations are added to it later.

| value of a parameter | coordinate |
|---|---|
| number of a list | from 0 to 1; by its logarithm if the list is spaced geometrically |
| number of a distribution | its cumulative probability, so that equally probable intervals are equally long |
| anything else: text, Booleans, None, estimators | a category |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.domain.parameters import Categorical, Parameter, Range
from truvar.domain.scales import is_geometric

NUMBER = "(number)"  # category of all numbers of a parameter that has other values too
ABSENT = "(absent)"  # value of a parameter that a configuration does not have, as in a list of grids
NEIGHBOUR_SCALES = (0.15, 0.03)  # standard deviations with which a number of a distribution is changed, as a quantile
OTHER_CHANGE = 0.25  # probability that a further parameter is changed, for each of the others
RATIO = 100.0  # of the largest and the smallest number of a distribution without quantiles that make it logarithmic

Configuration = dict[str, Any]


class ConfigurationSpace:
    """The configurations of a grid, a list of grids, or of distributions.

    Args:
        grids: As for `GridSearchCV` and `RandomizedSearchCV`.

    Attributes:
        grids: The grids.
        size: Number of configurations; infinite with distributions.

    Raises:
        ValueError: If a list is empty, as in scikit-learn.
        TypeError: If a parameter has neither a list nor a distribution, as in scikit-learn.
    """

    def __init__(self, grids: Any) -> None:
        self.grids: list[Mapping[str, Any]] = [grids] if isinstance(grids, Mapping) else list(grids)
        self._has_distributions = any(is_distribution(axis) for grid in self.grids for axis in grid.values())
        if self._has_distributions:
            self._sampler(1, 0)
            self.size = float("inf")
        else:
            self._grid = ParameterGrid(grids)
            self.size = float(len(self._grid))

    def listed(self) -> list[Configuration]:
        """Return all configurations, in the order of `GridSearchCV`."""
        return list(self._grid)

    def draw(self, count: int, rng: np.random.Generator) -> list[Configuration]:
        """Return random configurations."""
        if self._has_distributions:
            return list(self._sampler(count, int(rng.integers(2**31))))
        if self.size <= count:
            return self.listed()
        drawn = np.unique(rng.integers(int(self.size), size=count))
        return [self._grid[int(index)] for index in rng.permutation(drawn)]

    def neighbours(self, configuration: Configuration, count: int, rng: np.random.Generator) -> list[Configuration]:
        """Return configurations that differ from one in few parameters, and little.

        Args:
            configuration: The configuration.
            count: Number of neighbours.
            rng: Source of randomness.
        """
        own = next(grid for grid in self.grids if grid.keys() == configuration.keys())
        names = [name for name in own if is_distribution(own[name]) or len(own[name]) > 1]
        found = []
        for number in range(count if names else 0):
            changed = dict(configuration)
            first = names[number % len(names)]
            for name in names:
                if name == first or rng.random() < OTHER_CHANGE:
                    changed[name] = _changed_value(own[name], configuration[name], rng)
            found.append(changed)
        return found

    def _sampler(self, count: int, seed: int) -> ParameterSampler:
        return ParameterSampler(self.grids, count, random_state=seed)


def is_distribution(axis: Any) -> bool:
    """Return whether a parameter has a distribution, as `scipy.stats` makes them, and not a list."""
    return hasattr(axis, "rvs")


def _changed_value(axis: Any, value: Any, rng: np.random.Generator) -> Any:
    """Return another value of a parameter, near the present one if there is an order."""
    if is_distribution(axis):
        if not (hasattr(axis, "ppf") and hasattr(axis, "cdf")):
            return axis.rvs(random_state=int(rng.integers(2**31)))
        scale = NEIGHBOUR_SCALES[int(rng.integers(len(NEIGHBOUR_SCALES)))]
        quantile = float(np.clip(axis.cdf(value) + scale * rng.standard_normal(), 1e-6, 1 - 1e-6))
        near = axis.ppf(quantile)
        return int(near) if isinstance(value, Integral) else type(value)(near)
    values = list(axis)
    if all(is_number(each) for each in values):
        order = sorted(range(len(values)), key=lambda k: values[k])
        position = next(k for k, index in enumerate(order) if values[index] == value)
        step = int(rng.choice([-2, -1, 1, 2]))
        return values[order[int(np.clip(position + step, 0, len(values) - 1))]]
    return values[int(rng.integers(len(values)))]


class ConfigurationEncoder:
    """Coordinates of configurations, the same ones whenever a configuration is encoded.

    Args:
        space: The space, which the scales of the numbers come from.
        sample: Configurations that tell which columns there are: those that never change, or that repeat or mirror
            another one, are left out.
    """

    def __init__(self, space: ConfigurationSpace, sample: Sequence[Configuration]) -> None:
        self._categories: dict[str, dict[str, int]] = {}
        self._hashes: dict[int, tuple[Any, str]] = {}
        self._scales: dict[str, Callable[[Array], Array]] = {}
        self._numeric: dict[str, bool] = {}
        for name in dict.fromkeys(name for grid in space.grids for name in grid):
            axes = [grid[name] for grid in space.grids if name in grid]
            self._scales[name], self._numeric[name] = _scale(axes, [c[name] for c in sample if name in c])
        self._kept = list(self._columns(sample))
        distinct: dict[bytes, str] = {}
        for name, (coordinates, _) in self._columns(sample).items():
            mirrored = (coordinates.max() - coordinates).tobytes()
            if np.ptp(coordinates) > 0 and mirrored not in distinct:
                distinct.setdefault(coordinates.tobytes(), name)
        self._kept = list(distinct.values())

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
        return Domain(tuple(self._kept), points, np.array(bounds, dtype=float), parameters=tuple(parameters))

    def _columns(self, configurations: Sequence[Configuration]) -> dict[str, tuple[Array, bool]]:
        """Return coordinates by column, and whether they are categories."""
        columns: dict[str, tuple[Array, bool]] = {}
        for name in self._scales:
            values = [configuration.get(name, ABSENT) for configuration in configurations]
            numeric = np.array([self._numeric[name] and is_number(value) for value in values], dtype=bool)
            has_column = self._numeric[name]
            if has_column:
                coordinate = np.full(len(values), 0.5)
                numbers = [float(value) for value, is_one in zip(values, numeric, strict=True) if is_one]
                coordinate[numeric] = self._scales[name](np.array(numbers))
                columns[name] = (coordinate, False)
            key = f"{name}=" if has_column else name
            hashes = [NUMBER if is_one else self._hash(value) for value, is_one in zip(values, numeric, strict=True)]
            if not has_column or key in self._categories or not numeric.all():
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
    """Return a function from numbers to [0, 1], and whether the parameter has numbers that it is for."""
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
        return np.asarray, False  # 1 and 1.0 mean different things to some estimators, so they become categories
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
    return not isinstance(value, (bool, np.bool_)) and isinstance(value, Real) and math.isfinite(value)


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
    """Return a text that is equal for equal parameters of any type, including estimators and arrays."""
    import joblib

    try:
        return str(joblib.hash(value))
    except Exception:  # an object that cannot be pickled is only equal to itself
        return f"object {id(value)}"


def mixes_equal_types(numbers: Iterable[Any]) -> bool:
    """Return whether some number occurs both as an integer and as a float."""
    typed = {(isinstance(value, Integral), float(value)) for value in numbers}
    return len(typed) > len({value for _, value in typed})
