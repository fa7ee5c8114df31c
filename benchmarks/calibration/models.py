"""The models whose statements are compared, on the same measurements.

| column | statements drawn from |
|---|---|
| truvar | the model average of this code |
| plain | its averaged Matern-5/2 alone, without a scale or other families |
| scikit-learn | `GaussianProcessRegressor`, Matern-5/2 with a length-scale per column and noise, most probable |
| BoTorch | `SingleTaskGP` with its default priors, most probable |
| release | another release of truvar, from a checkout that `--release` names |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.calibration.score import Drawn
from benchmarks.instances import Instance

N_DRAWS = 2048
JITTER = 1e-8

Model = Callable[[tv.Study, Instance, list[int], list[float]], Drawn]
"""A function of a study, its problem, and the rows and values told so far."""


def from_mixture(inputs: Any, posterior: Any) -> Drawn:
    """Return the draws of a mixture, given the inputs of a study's statements."""
    sites = inputs.sites
    draws = posterior.draw(sites, N_DRAWS, inputs.seed)
    counts = getattr(posterior, "draw_counts", None)
    if counts is None:  # all members have the same number of draws
        weights = np.full(draws.shape[1], 1.0 / draws.shape[1])
        shares = np.full(len(posterior.members), 1.0 / len(posterior.members))
    else:
        shares = np.asarray(posterior.shares)
        each = counts(N_DRAWS)
        weights = np.repeat(shares / np.maximum(each, 1), each)
    means, variances = posterior.predict(sites)
    probability = None
    if inputs.threshold is not None:
        from scipy.special import ndtr

        below = (inputs.threshold - means) / np.sqrt(np.maximum(variances, 1e-300))
        probability = shares @ ndtr(-below)
    mean = inputs.transform.inverse(shares @ means)
    return Drawn(inputs.transform.inverse(draws), weights / weights.sum(), mean, probability)


def truvar(study: tv.Study, *_: Any) -> Drawn:
    """Return the draws that a study's own statements are made with."""
    from truvar.study._conclusions import statement_inputs

    inputs = statement_inputs(study._state)
    return from_mixture(inputs, inputs.posterior)


def plain(study: tv.Study, *_: Any) -> Drawn:
    """Return draws of the model that choices are made with."""
    from truvar.study._conclusions import statement_inputs

    inputs = statement_inputs(study._state)
    return from_mixture(inputs, study._state.learner.surrogate.freeze())


def release(study: tv.Study, *_: Any) -> Drawn:
    """Return the draws of release 0.2.0, of whose statements the inputs are elsewhere."""
    from truvar.study._views import statement_inputs  # type: ignore[import-not-found]

    inputs = statement_inputs(study._state)
    return from_mixture(inputs, inputs.posterior)


def sklearn(_: tv.Study, instance: Instance, rows: list[int], values: list[float]) -> Drawn:
    """Return draws of scikit-learn's regressor."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    sites = _unit_cube(instance)
    d = sites.shape[1]
    kernel = ConstantKernel(1.0) * Matern(np.full(d, 0.3), (0.01, 10.0), nu=2.5)
    kernel += WhiteKernel(0.01, (1e-6, 1.0))
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    )
    model.fit(sites[rows], values)
    mean, covariance = model.predict(sites, return_cov=True)
    white = model.kernel_.k2.noise_level * np.var(values)  # of f, not of a measurement
    covariance = covariance - white * np.eye(len(sites))
    return _normal(mean, covariance)


def botorch(_: tv.Study, instance: Instance, rows: list[int], values: list[float]) -> Drawn:
    """Return draws of BoTorch's default model."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    sites = torch.tensor(_unit_cube(instance), dtype=torch.double)
    y = torch.tensor(values, dtype=torch.double)[:, None]
    model = SingleTaskGP(sites[rows], y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        posterior = model.posterior(sites)
        mean = posterior.mean[:, 0].numpy()
        covariance = posterior.distribution.covariance_matrix.numpy()
    return _normal(mean, covariance)


def _unit_cube(instance: Instance) -> np.ndarray:
    points = instance.domain.points
    low = points.min(axis=0)
    high = points.max(axis=0)
    return (points - low) / np.where(high > low, high - low, 1.0)


def _normal(mean: np.ndarray, covariance: np.ndarray) -> Drawn:
    n = len(mean)
    jitter = JITTER * float(np.diag(covariance).max())
    values, vectors = np.linalg.eigh(covariance + jitter * np.eye(n))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = mean[:, None] + root @ np.random.default_rng(0).standard_normal((n, N_DRAWS))
    return Drawn(draws, np.full(N_DRAWS, 1.0 / N_DRAWS), mean)


MODELS: dict[str, Model] = {
    "truvar": truvar,
    "plain": plain,
    "scikit-learn": sklearn,
    "BoTorch": botorch,
    "release": release,
}
TAKE_A_KERNEL = ("truvar", "plain")  # models that use a kernel that the study was given
TAKE_OUTCOMES = ("truvar", "plain")  # models of what is not a number with normal noise
