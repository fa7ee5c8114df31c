"""Prediction of costs from observed ones: a Gaussian process over the logarithm of the cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.models.fit import fit
from truvar.models.kernels import indicator_columns
from truvar.models.priors import Learned

MIN_OBSERVED = 3  # costs before a model is fitted
MAX_FACTOR = 10.0  # a prediction exceeds the observed range by at most this factor
NOISE_SHARE = 0.1  # share of the variance of the logarithms that is taken to be noise
# standard deviation of the logarithms that is taken to be noise at least, about 5 % of the cost
MIN_NOISE_SD = 0.05
MIN_COST = 1e-9  # costs below it count as this much: their logarithm must be finite

CostPredictor = Callable[[Array], Array]
"""Function of points (n, d) of a domain that returns their predicted costs (n,)."""


def cost_predictor(domain: Domain, observed: Array, costs: Array, seed: int) -> CostPredictor:
    """Return a function that predicts costs from observed ones.

    Args:
        domain: The domain.
        observed: Points with an observed cost, shape (t, d).
        costs: Their costs, shape (t,).
        seed: Seed of the restarts of the fit.

    Returns:
        The function. With fewer than three observations, or equal ones, it returns their median,
        and 1 without any.
    """

    def unit(points: Array) -> Array:
        shifted = (points - domain.bounds[:, 0]) / domain.extent
        levels = [int(np.ptp(domain.bounds[k])) + 1 for k in domain.categorical]
        extremes = np.zeros(
            (max(levels, default=1), points.shape[1])
        )  # every category has a column, seen or not
        for k, count in zip(domain.categorical, levels, strict=True):
            extremes[:, k] = np.minimum(np.arange(len(extremes)), count - 1)
        return indicator_columns(np.vstack([shifted, extremes]), domain.categorical)[0][
            : len(points)
        ]

    logs = np.log(np.maximum(costs, MIN_COST))
    if len(logs) < MIN_OBSERVED or np.ptp(logs) == 0:
        usual = 1.0 if len(logs) == 0 else float(np.exp(np.median(logs)))
        return lambda points: np.full(len(points), usual)
    seen = unit(observed)
    noise = max(
        NOISE_SHARE * float(np.var(logs)), MIN_NOISE_SD**2
    )  # times vary even if a measurement is repeated
    model = fit(Learned(restarts=2), seen, logs, noise, np.ones(seen.shape[1]), None, seed)
    factor = cho_factor(model.kernel(seen) + noise * np.eye(len(logs)), lower=True)
    weights = cho_solve(factor, logs - model.mean)
    margin = np.log(MAX_FACTOR)

    def predict(points: Array) -> Array:
        mean = model.mean + model.kernel(unit(points), seen) @ weights
        return np.asarray(np.exp(np.clip(mean, logs.min() - margin, logs.max() + margin)))

    return predict
