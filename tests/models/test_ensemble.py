"""The averaged posterior is that of the naive formulas, incrementally or at once, here and after
a round trip."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from truvar.models._learned import FitData, fit_ensemble
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.hyperposterior import CONSTANT
from truvar.models.transforms import OutputTransform
from truvar.storage.serialization import deserialize, serialize

SITES = np.random.default_rng(1).random((40, 2))


def model(members: int = 3) -> EnsembleModel:
    rng = np.random.default_rng(0)
    lengthscales = rng.uniform(0.2, 1.0, (members + 1, 2))
    signal = rng.uniform(0.5, 2.0, members + 1)
    noise = rng.uniform(0.01, 0.1, members + 1)
    return EnsembleModel("matern52", lengthscales, signal, noise, OutputTransform(0.7, 2.0))


def observations(t: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    points = rng.random((t, 2))
    return points, np.sin(6 * points[:, 0]) + points[:, 1]


def naive_moments(
    fitted: EnsembleModel, points: np.ndarray, z: np.ndarray, at: np.ndarray, row: int
) -> tuple:
    """Return mean and variance of one member, by the textbook formula with a constant of
    variance 9 s^2."""
    kernel = ConstantKernel(fitted.signal[row]) * Matern(fitted.lengthscales[row], nu=2.5)
    constant = CONSTANT * fitted.signal[row]
    covariance = kernel(points) + constant + fitted.noise[row] * np.eye(len(points))
    across = kernel(at, points) + constant
    mean = fitted.transform.shift + across @ np.linalg.solve(covariance, z - fitted.transform.shift)
    variance = (
        fitted.signal[row]
        + constant
        - np.einsum("ij,ji->i", across, np.linalg.solve(covariance, across.T))
    )
    return mean, variance


def test_the_mixture_has_the_moments_of_its_members_by_the_naive_formulas() -> None:
    fitted = model()
    points, z = observations(12)
    ensemble = Ensemble(fitted, SITES, None, 12)
    ensemble.condition(points, z, np.zeros(12), np.ones(12, bool))
    members = [naive_moments(fitted, points, z, SITES, row) for row in (1, 2, 3)]
    means = np.array([mean for mean, _ in members])
    variances = np.array([variance for _, variance in members])
    np.testing.assert_allclose(ensemble.means, means, rtol=1e-8)
    np.testing.assert_allclose(ensemble.variances, variances, rtol=1e-6)
    np.testing.assert_allclose(ensemble.mean, means.mean(axis=0))
    np.testing.assert_allclose(
        ensemble.variance, variances.mean(axis=0) + means.var(axis=0), rtol=1e-6
    )
    np.testing.assert_allclose(ensemble.predict(SITES[:5])[1], ensemble.variance[:5], rtol=1e-8)


@pytest.mark.parametrize("first", [0, 1, 31, 40])
def test_one_by_one_and_all_at_once_agree(first: int) -> None:
    fitted = model()
    points, z = observations(70)
    noise = np.full(70, 0.03)
    learned = np.arange(70) % 3 > 0
    whole = Ensemble(fitted, SITES, None, 70)
    whole.condition(points, z, noise, learned)
    growing = Ensemble(fitted, SITES, None, 70)
    growing.condition(points[:first], z[:first], noise[:first], learned[:first])
    for i in range(first, 70):
        growing.append(points[i], float(z[i]), 0.03, bool(learned[i]))
    np.testing.assert_allclose(growing.mean, whole.mean, atol=1e-9)
    np.testing.assert_allclose(growing.variance, whole.variance, atol=1e-9)


def test_an_observation_at_a_site_may_name_it() -> None:
    points, z = observations(9)
    ensembles = [Ensemble(model(), SITES, None, 10) for _ in range(2)]
    for ensemble, site in zip(ensembles, (None, 4), strict=True):
        ensemble.condition(points, z, np.zeros(9), np.ones(9, bool))
        ensemble.append(SITES[4], 0.3, 0.0, True, site)
    np.testing.assert_allclose(ensembles[0].means, ensembles[1].means, atol=1e-9)
    np.testing.assert_allclose(ensembles[0].variances, ensembles[1].variances, atol=1e-9)


def test_a_known_mean_has_no_uncertainty() -> None:
    fitted = model()
    far = Ensemble(fitted, 100 + SITES, 5.0, 1)
    far.condition(SITES[:1], np.array([9.0]), np.zeros(1), np.ones(1, bool))
    np.testing.assert_allclose(far.mean, 5.0)
    np.testing.assert_allclose(far.variance, fitted.signal[1:].mean())


def test_a_large_domain_uses_fewer_members_and_at_last_the_mode() -> None:
    fitted = model(members=16)
    assert len(fitted.members(1000)) == 16
    assert len(fitted.members(5)) == len(set(fitted.members(5))) == 5
    assert 0 not in fitted.members(5)
    assert fitted.members(1).tolist() == [0]


def test_a_fitted_model_survives_storage_to_the_last_bit() -> None:
    points, values = observations(14)
    data = FitData(points, np.exp(values), None, np.ones(2), np.full(2, 0.02))
    fitted = fit_ensemble("matern52", data, None, 0)
    restored = deserialize(serialize(fitted))
    assert isinstance(restored, EnsembleModel)
    for name in ("lengthscales", "signal", "noise"):
        assert (getattr(restored, name) == getattr(fitted, name)).all()
    assert restored.transform == fitted.transform
    assert restored.outliers == fitted.outliers
