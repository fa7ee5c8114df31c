"""The posterior of the hyperparameters agrees with scikit-learn, with differences and with
brute-force integration."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from truvar.models.hyperposterior import (
    JITTER,
    HyperPrior,
    MarginalLikelihood,
    find_mode,
    sample_posterior,
)

SMOOTHNESS = {0: RBF, 1: 0.5, 3: 1.5, 5: 2.5}


def data(t: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.random((t, d))
    values = np.sin(5 * points[:, 0]) + points.sum(axis=1) + 0.1 * rng.standard_normal(t)
    return points, (values - values.mean()) / values.std()


@pytest.mark.parametrize("smoothness", [0, 1, 3, 5])
def test_the_likelihood_is_that_of_scikit_learn(smoothness: int) -> None:
    points, values = data(15, 2)
    theta = np.array([np.log(0.4), np.log(0.7), np.log(1.3), np.log(0.02)])
    scales = np.exp(theta[:2])
    shape = RBF(scales) if smoothness == 0 else Matern(scales, nu=smoothness / 2)
    kernel = ConstantKernel(1.3**2) * (shape + ConstantKernel(9.0)) + WhiteKernel(0.02 + JITTER)
    reference = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(points, values)
    found = MarginalLikelihood(points, values, smoothness).value(theta) - 0.5 * len(
        values
    ) * np.log(2 * np.pi)
    assert found == pytest.approx(reference.log_marginal_likelihood_value_, rel=1e-8)


@pytest.mark.parametrize("learn_power", [False, True])
@pytest.mark.parametrize("known_noise", [False, True])
@pytest.mark.parametrize("smoothness", [0, 1, 3, 5])
def test_the_gradient_is_that_of_differences(
    smoothness: int, known_noise: bool, learn_power: bool
) -> None:
    points, values = data(20, 3)
    rng = np.random.default_rng(1)
    noise = rng.uniform(0.01, 0.1, 20) if known_noise else None
    likelihood = MarginalLikelihood(points, values, smoothness, noise, learn_power=learn_power)
    prior = HyperPrior.default(3, not known_noise, learn_power)
    theta = prior.mean + 0.3 * prior.sd * rng.standard_normal(len(prior.mean))
    value, gradient = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(likelihood.value(theta))
    step = 1e-5
    differences = [
        (likelihood.value(theta + e) - likelihood.value(theta - e)) / (2 * step)
        for e in step * np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, atol=1e-4)


def test_the_sample_has_the_moments_of_brute_force_integration() -> None:
    points, values = data(12, 1)
    likelihood = MarginalLikelihood(points, values, 5)
    prior = HyperPrior.default(1, learn_noise=True, learn_power=False)
    mode = find_mode(likelihood, prior, [prior.mean])
    sample = sample_posterior(likelihood, prior, mode, members=64, proposals=256, rounds=3)
    axes = [
        np.linspace(m - 3.5 * s, m + 3.5 * s, 24) for m, s in zip(prior.mean, prior.sd, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    log_density = np.array([likelihood.value(theta) + prior.log_density(theta) for theta in grid])
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    assert sample.effective > 100
    np.testing.assert_allclose(sample.mean, mean, atol=0.15 * sd.max())
    np.testing.assert_allclose(np.sqrt(np.diag(sample.covariance)), sd, rtol=0.15)
    assert (np.abs(sample.thetas.mean(axis=0) - mean) < 0.35 * sd).all()


def test_the_mode_is_at_least_as_good_as_its_starts_and_the_same_data_give_the_same_sample() -> (
    None
):
    points, values = data(25, 2)
    likelihood = MarginalLikelihood(points, values, 5, learn_power=True)
    prior = HyperPrior.default(2, learn_noise=True, learn_power=True)
    start = prior.mean + 0.5 * prior.sd
    mode = find_mode(likelihood, prior, [prior.mean, start])
    density = [
        likelihood.value(theta) + prior.log_density(theta) for theta in (mode, prior.mean, start)
    ]
    assert density[0] == max(density)
    one, other = (sample_posterior(likelihood, prior, mode, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.thetas, other.thetas)
    assert one.thetas.shape == (16, 5)


def test_few_data_leave_the_length_scales_open_and_many_do_not() -> None:
    prior = HyperPrior.default(2, learn_noise=True, learn_power=False)
    spread = []
    for t in (4, 60):
        points, values = data(t, 2)
        likelihood = MarginalLikelihood(points, values, 5)
        sample = sample_posterior(likelihood, prior, find_mode(likelihood, prior, [prior.mean]))
        spread.append(np.sqrt(np.diag(sample.covariance))[:2])
    assert (spread[0] > 0.6).all()
    assert (spread[1] < 0.6 * spread[0]).all()
