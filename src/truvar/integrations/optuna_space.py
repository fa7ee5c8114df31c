"""Search spaces of Optuna as points of [0, 1]^d.

A number is one coordinate, on a logarithmic scale if its distribution is logarithmic; a categorical parameter has one
indicator per choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log, log2
from typing import Any

import numpy as np
from scipy.stats import qmc

from truvar._typing import Array

# Standard deviations with which candidates are drawn near the best trials, as shares of each parameter's range.
NEIGHBOURHOODS = (0.1, 0.01)
NEIGHBOUR_SHARE = 16  # one in so many candidates is drawn per best trial and neighbourhood
CATEGORY_CHANGE = 0.2  # probability that a neighbour of a trial has another category


class SearchSpace:
    """Named distributions, and the coordinates of their values.

    Args:
        distributions: Optuna's distributions by parameter.

    Attributes:
        distributions: Optuna's distributions by parameter.
        columns: Names of the coordinates.
    """

    def __init__(self, distributions: Mapping[str, Any]) -> None:
        self.distributions = dict(distributions)
        columns: list[str] = []
        for name, distribution in self.distributions.items():
            if _is_number(distribution):
                columns.append(name)
            else:
                columns += [f"{name}={i}" for i in range(len(distribution.choices))]
        self.columns = tuple(columns)

    def encode(self, params: Sequence[Mapping[str, Any]]) -> Array:
        """Return the points of sets of parameters, shape (n, d)."""
        points = np.zeros((len(params), len(self.columns)))
        column = 0
        for name, distribution in self.distributions.items():
            if _is_number(distribution):
                points[:, column] = [_relative_position(distribution, each[name]) for each in params]
                column += 1
            else:
                for row, each in enumerate(params):
                    points[row, column + int(distribution.to_internal_repr(each[name]))] = 1.0
                column += len(distribution.choices)
        return points

    def candidates(
        self, count: int, seen: Sequence[Mapping[str, Any]], best: Sequence[Mapping[str, Any]], rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        """Draw candidates to choose among.

        Args:
            count: Number of candidates that are spread over the space.
            seen: Parameters of earlier trials, the first `count` of which become candidates: a noisy objective may be
                evaluated again.
            best: Parameters of the best trials, near which further candidates are drawn.
            rng: Source of randomness.

        Returns:
            Different sets of parameters.
        """
        names = list(self.distributions)
        distributions = list(self.distributions.values())
        size = len(names)
        categorical = np.array([not _is_number(distribution) for distribution in distributions])
        change_probability = np.where(categorical, CATEGORY_CHANGE, 0.0)
        sobol = qmc.Sobol(size, rng=rng)
        unit = [sobol.random_base2(ceil(log2(count)))[:count]]
        for params in best:
            centre = np.array([_unit_value(self.distributions[name], params[name]) for name in names])
            for scale in NEIGHBOURHOODS:
                near = np.clip(centre + scale * rng.standard_normal((count // NEIGHBOUR_SHARE, size)), 0.0, 1.0)
                change = rng.random(near.shape) < change_probability
                near[:, categorical] = np.where(change, rng.random(near.shape), centre)[:, categorical]
                unit.append(near)
        drawn = [
            {name: _value_at(self.distributions[name], u) for name, u in zip(names, row, strict=True)}
            for row in np.vstack(unit)
        ]
        tried = [{name: params[name] for name in names} for params in seen[:count]]
        different = {self.encode([params]).tobytes(): params for params in [*drawn, *tried]}
        return list(different.values())


def _is_number(distribution: Any) -> bool:
    return not hasattr(distribution, "choices")


def _is_integer(distribution: Any) -> bool:
    return _is_number(distribution) and isinstance(distribution.low, int)


def _relative_position(distribution: Any, value: float) -> float:
    """Return the position of a number between the bounds of its distribution, from 0 to 1."""
    low = distribution.low
    high = distribution.high
    if distribution.log:
        return (log(value) - log(low)) / (log(high) - log(low))
    return float((value - low) / (high - low))


def _unit_value(distribution: Any, value: Any) -> float:
    """Return the middle of the numbers in [0, 1] that `_value_at` maps to a value."""
    if _is_number(distribution):
        return _relative_position(distribution, value)
    return (int(distribution.to_internal_repr(value)) + 0.5) / len(distribution.choices)


def _value_at(distribution: Any, u: float) -> Any:
    """Return the value of a distribution for a number u in [0, 1]; steps and choices have equal shares of [0, 1]."""
    if not _is_number(distribution):
        return distribution.choices[min(int(u * len(distribution.choices)), len(distribution.choices) - 1)]
    low = distribution.low
    high = distribution.high
    if distribution.log:
        value = float(np.exp(log(low) + u * (log(high) - log(low))))
        value = round(value) if _is_integer(distribution) else value
    elif distribution.step is not None:
        steps = round((high - low) / distribution.step)
        value = low + min(int(u * (steps + 1)), steps) * distribution.step
    else:
        value = low + u * (high - low)
    value = min(max(value, low), high)
    return int(value) if _is_integer(distribution) else float(value)
