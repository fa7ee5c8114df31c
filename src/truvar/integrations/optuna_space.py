"""Search spaces of Optuna as parameters of truvar, and candidates of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np
from scipy.stats import qmc

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.domain.parameters import Categorical, Integer, Log, Parameter, Range

# Standard deviations with which candidates are drawn near the best trials, as shares of each parameter's range.
NEIGHBOURHOODS = (0.1, 0.01)
NEIGHBOUR_SHARE = 16  # one in so many candidates is drawn per best trial and neighbourhood
CATEGORY_CHANGE = 0.2  # probability that a neighbour of a trial has another category


class SearchSpace:
    """Named distributions as parameters of truvar.

    Args:
        distributions: Optuna's distributions by parameter.

    Attributes:
        distributions: Optuna's distributions by parameter.
        parameters: The parameter of each; that of choices, which may be of any type, has their positions as values.
    """

    def __init__(self, distributions: Mapping[str, Any]) -> None:
        self.distributions = dict(distributions)
        self.parameters = tuple(as_parameter(distribution) for distribution in self.distributions.values())

    def domain(self, points: Array) -> Domain:
        """Return the domain of candidates (n, d)."""
        return Domain(tuple(self.distributions), points, self.bounds, parameters=self.parameters)

    @cached_property
    def bounds(self) -> Array:
        """Smallest and largest coordinate of each parameter, (d, 2)."""
        return np.array([parameter.bounds for parameter in self.parameters])

    def encode(self, params: Sequence[Mapping[str, Any]]) -> Array:
        """Return the coordinates of sets of parameters, (n, d)."""
        points = np.empty((len(params), len(self.parameters)))
        for k, (name, distribution) in enumerate(self.distributions.items()):
            for row, each in enumerate(params):
                value = each[name]
                if isinstance(self.parameters[k], Categorical):
                    value = int(distribution.to_internal_repr(value))
                points[row, k] = self.parameters[k].encode(value, name)
        return points

    def decode(self, point: Array) -> dict[str, Any]:
        """Return the set of parameters at a point (d,)."""
        params: dict[str, Any] = {}
        for k, (name, distribution) in enumerate(self.distributions.items()):
            value = self.parameters[k].decode(float(point[k]))
            params[name] = distribution.choices[value] if isinstance(self.parameters[k], Categorical) else value
        return params

    def candidates(
        self, count: int, seen: Sequence[Mapping[str, Any]], best: Sequence[Mapping[str, Any]], rng: np.random.Generator
    ) -> Array:
        """Draw candidates to choose among.

        Args:
            count: Number of candidates that are spread over the space.
            seen: Parameters of earlier trials, the first `count` of which become candidates: a noisy objective may be
                evaluated again.
            best: Parameters of the best trials, near which further candidates are drawn.
            rng: Source of randomness.

        Returns:
            Different points, (n, d).
        """
        size = len(self.parameters)
        sobol = qmc.Sobol(size, rng=rng)
        unit = sobol.random_base2(ceil(log2(count)))[:count]
        drawn = [np.column_stack([each.from_unit(unit[:, k]) for k, each in enumerate(self.parameters)])]
        width = self.bounds[:, 1] - self.bounds[:, 0]
        categorical = np.array([parameter.categorical for parameter in self.parameters])
        for centre in self.encode(best):
            for scale in NEIGHBOURHOODS:
                near = centre + scale * width * rng.standard_normal((count // NEIGHBOUR_SHARE, size))
                others = rng.random(near.shape) * width
                change = rng.random(near.shape) < CATEGORY_CHANGE
                near[:, categorical] = np.where(change, others, centre)[:, categorical]
                drawn.append(np.column_stack([each.snap(near[:, k]) for k, each in enumerate(self.parameters)]))
        points = np.concatenate([*drawn, self.encode(seen[:count])])
        _, first = np.unique(points, axis=0, return_index=True)
        return np.asarray(points[np.sort(first)])


def as_parameter(distribution: Any) -> Parameter:
    """Return a distribution of Optuna as a parameter."""
    if hasattr(distribution, "choices"):
        return Categorical(list(range(len(distribution.choices))))
    if isinstance(distribution.low, int):
        return Integer(distribution.low, distribution.high, step=distribution.step or 1, log=bool(distribution.log))
    if distribution.log:
        return Log(distribution.low, distribution.high)
    return Range(distribution.low, distribution.high, step=distribution.step)
