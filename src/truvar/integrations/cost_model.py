"""Prediction of the cost of a measurement from observed costs: a Gaussian process over the logarithm of the cost."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from truvar._typing import Array
from truvar.models.fit import Learned, fit

MIN_OBSERVED = 3  # costs before a model is fitted
MAX_FACTOR = 10.0  # a prediction exceeds the observed range by at most this factor
NOISE_SHARE = 0.1  # share of the variance of the logarithms that is taken to be noise
MIN_NOISE_SD = 0.05  # standard deviation of the logarithms that is taken to be noise at least, about 5 % of the cost


def predict_costs(observed: Array, costs: Array, points: Array, seed: int) -> Array:
    """Predict costs at points from observed costs.

    Args:
        observed: Points of [0, 1]^d with an observed cost, shape (t, d).
        costs: Their costs, shape (t,).
        points: Points to predict at, shape (n, d).
        seed: Seed of the restarts of the fit.

    Returns:
        The predicted costs, shape (n,). With fewer than three observations, or equal ones, this is their median, and 1
        without any.
    """
    logs = np.log(np.maximum(costs, 1e-9))
    if len(logs) == 0:
        return np.ones(len(points))
    if len(logs) < MIN_OBSERVED or np.ptp(logs) == 0:
        return np.full(len(points), float(np.exp(np.median(logs))))
    noise = _noise_variance(logs)
    model = fit(Learned(restarts=2), observed, logs, noise, np.ones(observed.shape[1]), None, seed)
    factor = cho_factor(model.kernel(observed) + noise * np.eye(len(logs)), lower=True)
    mean = model.mean + model.kernel(points, observed) @ cho_solve(factor, logs - model.mean)
    margin = np.log(MAX_FACTOR)
    return np.asarray(np.exp(np.clip(mean, logs.min() - margin, logs.max() + margin)))


def _noise_variance(logs: Array) -> float:
    """Return the noise variance of the logarithms: running times vary even if a fit is repeated."""
    return max(NOISE_SHARE * float(np.var(logs)), MIN_NOISE_SD**2)
