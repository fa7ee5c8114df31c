"""The posterior agrees with scikit-learn for any noise from large to none, in any order, repeats
included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, RationalQuadratic

import truvar as tv
from truvar.domain.candidates import Candidates
from truvar.models.posterior import Posterior

SITES = np.random.default_rng(0).uniform(size=(40, 2))
SITES.setflags(write=False)
KERNELS = {
    "rbf": RBF(0.3),
    "rbf, variance": ConstantKernel(4.5) * RBF([0.3, 0.6]),
    "matern 5/2": ConstantKernel(0.2) * Matern([0.4, 0.2], nu=2.5),
    "matern 3/2": Matern(0.5, nu=1.5),
    "sum": ConstantKernel(2.0) * RBF(0.2) + RationalQuadratic(0.7, 1.3),
}
# conditioning: the smaller the noise, the fewer digits any algorithm can keep
NOISES = {0.3: 1e-10, 1e-2: 1e-10, 1e-6: 1e-8, 1e-10: 1e-5}


def conditioned(
    kernel: Kernel, sites: np.ndarray, noise: np.ndarray, y: np.ndarray, mean: float | None = 0.0
) -> Posterior:
    posterior = Posterior(kernel, SITES, mean=mean)
    for site, variance, value in zip(sites, noise, y, strict=True):
        posterior.add(SITES[site], float(variance), site=int(site))
        posterior.observe(float(value))
    return posterior


def reference(
    kernel: Kernel, sites: np.ndarray, noise: np.ndarray, y: np.ndarray
) -> GaussianProcessRegressor:
    return GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(SITES[sites], y)


def smooth(points: np.ndarray) -> np.ndarray:
    return np.sin(5 * points[:, 0]) + points[:, 1] ** 2


@pytest.mark.parametrize("variance", NOISES)
@pytest.mark.parametrize("name", KERNELS)
def test_mean_and_variance_are_those_of_scikit_learn(name: str, variance: float) -> None:
    rng = np.random.default_rng(1)
    kernel = KERNELS[name]
    tolerance = NOISES[variance]
    sites = rng.permutation(len(SITES))[:25]
    noise = variance * rng.uniform(0.5, 2.0, size=25)
    y = smooth(SITES[sites])
    posterior = conditioned(kernel, sites, noise, y)
    gpr = reference(kernel, sites, noise, y)
    mean, sd = gpr.predict(SITES, return_std=True)
    scale = posterior.scale
    np.testing.assert_allclose(posterior.mean, mean, rtol=0, atol=tolerance * max(scale, 1.0))
    np.testing.assert_allclose(posterior.variance, sd**2, rtol=0, atol=tolerance * scale**2)


@pytest.mark.parametrize("variance", NOISES)
def test_repeats_of_one_point_are_averaged_as_in_scikit_learn(variance: float) -> None:
    rng = np.random.default_rng(2)
    sites = np.array([3, 3, 7, 3, 7, 11, 3, 3, 20, 7, *[3] * 9, 11])
    noise = np.full(len(sites), variance)
    y = smooth(SITES[sites]) + np.sqrt(variance) * rng.standard_normal(len(sites))
    kernel = KERNELS["matern 5/2"]
    posterior = conditioned(kernel, sites, noise, y)
    gpr = reference(kernel, sites, noise, y)
    mean, sd = gpr.predict(SITES, return_std=True)
    np.testing.assert_allclose(posterior.mean, mean, rtol=0, atol=NOISES[variance])
    np.testing.assert_allclose(posterior.variance, sd**2, rtol=0, atol=NOISES[variance])
    assert posterior.variance[3] <= variance / 14 * (1 + 1e-4)


def test_noise_may_differ_by_orders_of_magnitude_between_observations() -> None:
    sites = np.array([0, 1, 2, 2, 5, 8, 13, 21, 34, 2])
    noise = np.array([1e-6, 10.0, 1e-1, 1e-4, 1e-3, 5.0, 1e-5, 1e-2, 1.0, 1e-6])
    y = smooth(SITES[sites])
    for kernel in KERNELS.values():
        posterior = conditioned(kernel, sites, noise, y)
        gpr = reference(kernel, sites, noise, y)
        mean, sd = gpr.predict(SITES, return_std=True)
        np.testing.assert_allclose(posterior.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(posterior.variance, sd**2, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Predicted variances smaller than 0")
def test_without_noise_the_mean_interpolates_and_the_variance_vanishes() -> None:
    sites = np.arange(15)
    y = smooth(SITES[sites])
    kernel = KERNELS["matern 3/2"]
    posterior = conditioned(kernel, sites, np.zeros(15), y)
    mean, sd = reference(kernel, sites, np.zeros(15), y).predict(SITES, return_std=True)
    np.testing.assert_allclose(posterior.mean, mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(posterior.variance, sd**2, rtol=0, atol=1e-9)
    np.testing.assert_allclose(posterior.mean[sites], y, rtol=0, atol=1e-10)
    assert (posterior.variance[sites] < 1e-12).all()


def test_a_point_known_without_noise_can_be_told_again_and_changes_nothing() -> None:
    sites = np.arange(6)
    y = smooth(SITES[sites])
    kernel = KERNELS["matern 5/2"]
    once = conditioned(kernel, sites, np.zeros(6), y)
    twice = conditioned(kernel, np.append(sites, [2, 2]), np.zeros(8), np.append(y, [y[2], y[2]]))
    np.testing.assert_allclose(twice.mean, once.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(twice.variance, once.variance, rtol=0, atol=1e-12)
    further = conditioned(kernel, [2, 2, 4], np.zeros(3), y[[2, 2, 4]])
    plain = conditioned(kernel, [2, 4], np.zeros(2), y[[2, 4]])
    np.testing.assert_allclose(further.mean, plain.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(further.variance, plain.variance, rtol=0, atol=1e-12)


def test_a_numerically_singular_kernel_without_noise_stays_finite_and_interpolates() -> None:
    line = np.linspace(0, 1, 60)[:, None]
    kernel = RBF(0.5)  # condition number far beyond 1e16
    y = kernel(line, np.array([[0.2], [0.9]])) @ np.array(
        [1.0, -0.7]
    )  # smooth enough for the kernel
    posterior = Posterior(kernel, line)
    for site in np.random.default_rng(3).permutation(60):
        posterior.add(line[site], 0.0, site=int(site))
        posterior.observe(float(y[site]))
        assert np.isfinite(posterior.mean).all()
        assert ((posterior.variance >= 0) & (posterior.variance <= 1)).all()
    np.testing.assert_allclose(posterior.mean, y, rtol=0, atol=1e-6)
    assert (posterior.variance < 1e-10).all()


def test_predictions_elsewhere_and_covariances_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(4)
    sites = np.array([0, 5, 9, 12, 30])
    elsewhere = rng.uniform(size=(7, 2))
    noise = np.array([1e-3, 1e-2, 1e-3, 0.1, 1e-4])
    kernel = KERNELS["rbf, variance"]
    y = smooth(SITES[sites])
    posterior = conditioned(kernel, sites, noise, y)
    gpr = reference(kernel, sites, noise, y)
    mean, variance = posterior.predict(elsewhere)
    expected_mean, expected_sd = gpr.predict(elsewhere, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(variance, expected_sd**2, rtol=0, atol=1e-10)

    rows = np.array([1, 2, 3])
    n = len(elsewhere)
    free = Candidates(elsewhere, np.full((n, 1), 0.1), np.ones((n, 1)), sites=None)
    _, joint = gpr.predict(np.vstack([SITES[rows], elsewhere]), return_cov=True)
    np.testing.assert_allclose(posterior.covariance(rows, free), joint[:3, 3:], rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        posterior.candidate_variance(free), np.diag(joint)[3:], rtol=0, atol=1e-10
    )


def test_pending_actions_shrink_the_variance_for_choices_and_leave_mean_and_variance_alone() -> (
    None
):
    kernel = KERNELS["matern 5/2"]
    sites = np.array([0, 5, 9])
    noise = np.array([1e-3, 1e-2, 1e-3])
    posterior = conditioned(kernel, sites, noise, smooth(SITES[sites]))
    mean = posterior.mean.copy()
    variance = posterior.variance.copy()
    for site in (20, 30):
        posterior.add(SITES[site], 0.05, site=site)
    np.testing.assert_array_equal(posterior.mean, mean)
    np.testing.assert_array_equal(posterior.variance, variance)
    everything = np.append(sites, [20, 30])
    noises = np.append(noise, [0.05, 0.05])
    expected = reference(kernel, everything, noises, np.zeros(5))
    _, sd = expected.predict(SITES, return_std=True)
    np.testing.assert_allclose(posterior.pending_variance, sd**2, rtol=0, atol=1e-12)
    posterior.drop_pending()
    np.testing.assert_array_equal(posterior.pending_variance, variance)


@pytest.mark.parametrize("variance", [0.1, 1e-3, 1e-6])
def test_the_estimated_constant_mean_is_that_of_generalised_least_squares(variance: float) -> None:
    sites = np.array([0, 5, 9, 12, 30, 9])
    noise = variance * np.array([1.0, 2.0, 1.0, 3.0, 1.0, 0.5])
    kernel = KERNELS["rbf, variance"]
    y = 200.0 + smooth(SITES[sites])
    posterior = conditioned(kernel, sites, noise, y, mean=None)
    A = np.linalg.inv(kernel(SITES[sites]) + np.diag(noise))
    constant = (A @ y).sum() / A.sum()
    assert posterior.prior_mean == pytest.approx(constant, rel=1e-9)
    expected = constant + reference(kernel, sites, noise, y - constant).predict(SITES)
    np.testing.assert_allclose(posterior.mean, expected, rtol=0, atol=1e-7)


def test_one_observation_makes_the_estimated_mean_its_value() -> None:
    posterior = conditioned(RBF(0.3), np.array([4]), np.array([0.1]), np.array([17.0]), mean=None)
    np.testing.assert_allclose(posterior.mean, 17.0, rtol=0, atol=1e-12)


DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 8), y=np.linspace(0, 1, 6))


@pytest.mark.filterwarnings("ignore:Predicted variances smaller than 0")
@pytest.mark.parametrize("variance", [0.0, 1e-10, 1e-4, 0.2])
@pytest.mark.parametrize("mean", [0.0, 3.5])
def test_a_study_reports_the_posterior_of_scikit_learn(variance: float, mean: float) -> None:
    kernel = ConstantKernel(2.0) * Matern(0.4, nu=2.5)
    rng = np.random.default_rng(5)
    sites = rng.permutation(len(DOMAIN))[:20]
    y = mean + smooth(DOMAIN.points[sites])
    study = tv.Study(DOMAIN, tv.LevelSet(mean), kernel=kernel, mean=mean, noise=variance)
    for site, value in zip(sites, y, strict=True):
        study.tell(DOMAIN.point(int(site)), float(value))
    result = study.result()
    gpr = GaussianProcessRegressor(kernel, alpha=variance, optimizer=None)
    expected, sd = gpr.fit(DOMAIN.points[sites], y - mean).predict(DOMAIN.points, return_std=True)
    tolerance = 1e-8 if variance > 1e-9 else 1e-6
    np.testing.assert_allclose(result.mean, mean + expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(result.sd**2, sd**2, rtol=0, atol=tolerance)


def test_a_study_takes_the_noise_of_each_measurement_from_its_point_or_from_the_tell() -> None:
    kernel = Matern(0.4, nu=2.5)
    per_point = np.linspace(1e-3, 0.3, len(DOMAIN))
    study = tv.Study(DOMAIN, tv.Maximize(), kernel=kernel, mean=0.0, noise=per_point)
    measured: list[tuple[int, float, float]] = []
    for k, site in enumerate([3, 40, 17, 3, 25, 8]):
        options: dict[str, Any] = {"noise": 0.5} if k == 2 else {}
        y = float(smooth(DOMAIN.points[[site]])[0])
        study.tell(DOMAIN.point(site), y, **options)
        measured.append((site, options.get("noise", per_point[site]), y))
    sites, noise, values = (np.array(column) for column in zip(*measured, strict=True))
    gpr = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(
        DOMAIN.points[sites], values
    )
    mean, sd = gpr.predict(DOMAIN.points, return_std=True)
    result = study.result()
    np.testing.assert_allclose(result.mean, mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(result.sd, sd, rtol=0, atol=1e-10)
    np.testing.assert_allclose(study.measurements["noise"], noise)
