"""Output transforms are those of SciPy, strictly increasing, and inverted exactly."""

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.stats import norm, yeojohnson

import truvar as tv
from truvar.models.transforms import OutputTransform, power_slope, yeo_johnson

VALUES = np.array([-30.0, -2.5, -1e-9, 0.0, 1e-9, 0.7, 4.0, 300.0])
POWERS = [-1.2, 0.0, 1e-7, 0.4, 1.0, 1.7, 2.0, 2.0 - 1e-7, 3.1]


@pytest.mark.parametrize("power", POWERS)
def test_the_power_transform_is_that_of_scipy(power: float) -> None:
    np.testing.assert_allclose(
        yeo_johnson(VALUES, power), yeojohnson(VALUES, power), rtol=1e-5, atol=1e-12
    )


@pytest.mark.parametrize("power", POWERS)
def test_the_inverse_gives_the_value_back(power: float) -> None:
    transform = OutputTransform(shift=2.0, scale=3.0, power=power)
    values = np.linspace(-20.0, 25.0, 46)
    np.testing.assert_allclose(
        transform.inverse(transform.forward(values)), values, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("power", POWERS)
def test_it_is_strictly_increasing_with_slope_one_at_the_shift(power: float) -> None:
    transform = OutputTransform(shift=-1.0, scale=0.5, power=power)
    assert (np.diff(transform.forward(np.linspace(-4.0, 4.0, 41))) > 0).all()
    assert transform.forward(-1.0) == -1.0
    step = 1e-6
    slope = (transform.forward(-1.0 + step) - transform.forward(-1.0 - step)) / (2 * step)
    assert slope == pytest.approx(1.0, rel=1e-5)


def test_a_power_of_one_is_the_identity_and_the_logarithm_comes_first() -> None:
    values = np.array([0.5, 2.0, 70.0])
    assert (OutputTransform(shift=3.0, scale=2.0).forward(values) == values).all()
    np.testing.assert_allclose(OutputTransform(log=True).forward(values), np.log(values))
    np.testing.assert_allclose(OutputTransform(1.0, 2.0, 0.4, log=True).inverse([1.0]), [np.e])
    assert OutputTransform(log=True).forward(0.0) == -np.inf


@pytest.mark.parametrize("log_sd", [0.0, 0.5, 3.0, 4.0])
def test_moments_in_the_units_of_the_user_are_those_of_the_lognormal_distribution(
    log_sd: float,
) -> None:
    mean, sd = OutputTransform(log=True).inverse_moments(np.array([[0.3]]), np.array([[log_sd**2]]))
    np.testing.assert_allclose(mean, np.exp(0.3 + log_sd**2 / 2), rtol=1e-12)
    np.testing.assert_allclose(sd, mean * np.sqrt(np.exp(log_sd**2) - 1), rtol=1e-9, atol=1e-12)


def test_moments_of_a_mixture_of_logarithms_are_those_of_draws() -> None:
    means = np.array([0.3, 0.8, -1.0])
    sds = np.array([0.2, 0.5, 0.9])
    mean, sd = OutputTransform(log=True).inverse_moments(means[:, None], sds[:, None] ** 2)
    rng = np.random.default_rng(0)
    draws = np.exp(means[:, None] + sds[:, None] * rng.standard_normal((3, 400_000)))
    np.testing.assert_allclose(mean, draws.mean(), rtol=0.005)  # six standard errors
    np.testing.assert_allclose(sd, draws.std(), rtol=0.02)


def test_moments_of_extreme_logarithms_are_infinite_and_not_missing() -> None:
    mean, sd = OutputTransform(log=True).inverse_moments(
        np.array([[0.0, 0.0], [0.0, 2000.0]]), np.full((2, 2), 900.0)
    )
    assert (sd > mean).tolist() == [True, False]
    assert sd[1] == np.inf


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0, 1.6, 2.0])
@pytest.mark.parametrize("sd", [0.0, 0.4, 2.0, 5.0])
def test_moments_in_the_units_of_the_user_are_the_integrals(power: float, sd: float) -> None:
    """By the rule of Simpson on a fine grid; the standard deviation is 2.5 units of the
    transform at most."""
    transform = OutputTransform(shift=1.0, scale=2.0, power=power)
    for centre in (-2.0, 1.0, 5.0):
        u = np.linspace(-14.0, 14.0, 40_001)
        density = norm.pdf(u)
        values = transform.inverse(centre + sd * u)
        expected_mean = simpson(values * density, x=u)
        expected_sd = np.sqrt(simpson((values - expected_mean) ** 2 * density, x=u))
        mean, own_sd = transform.inverse_moments(np.array([[centre]]), np.array([[sd**2]]))
        np.testing.assert_allclose(mean, expected_mean, rtol=2e-3, atol=1e-3)
        np.testing.assert_allclose(own_sd, expected_sd, rtol=2e-3, atol=1e-7)


def test_a_study_states_the_moments_of_the_mixture_that_its_claims_are_made_of() -> None:
    """Values that vary by factors: mean and sd by a fine sum over the members, at the domain and at
    any point. Values beyond the stated bounds count as those."""
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 30))
    study = tv.Study(domain, tv.Maximize(), transform="log")
    for row in (0, 6, 12, 17, 23, 29):
        study.tell(domain.point(row), float(np.exp(4 * np.sin(5 * domain.points[row, 0]))))
    result = study.result()
    posterior = study._learner.surrogate.freeze_average()
    means, variances = posterior.predict(study._learner.surrogate.target_sites)
    assert len(means) > 1
    u = np.linspace(-8.0, 8.0, 4001)
    weights = np.outer(posterior.shares, norm.pdf(u) / norm.pdf(u).sum())
    for row in (3, 20):
        values = np.exp(means[:, row, None] + np.sqrt(variances[:, row, None]) * u)
        values = np.clip(values, result.statements.lower[row], result.statements.upper[row])
        mean = (weights * values).sum()
        sd = np.sqrt((weights * (values - mean) ** 2).sum()) / 0.9117  # that of a bounded normal
        assert result.mean[row] == pytest.approx(mean, rel=0.01)
        assert result.sd[row] == pytest.approx(sd, rel=0.01)
        np.testing.assert_allclose(
            np.ravel(study.predict([domain.point(row)])), [result.mean[row], result.sd[row]]
        )


def test_a_recommended_point_has_the_moments_of_its_row() -> None:
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 30))
    for transform in ("log", "none"):
        study = tv.Study(domain, tv.Minimize(), kernel=tv.Learned(transform=transform))
        for row in (0, 6, 12, 17, 23, 29):
            study.tell(domain.point(row), float(np.exp(4 * np.sin(5 * domain.points[row, 0]))))
        result = study.result()
        assert result.best.mean == result.mean[result.best.index]
        assert result.best.sd == result.sd[result.best.index]


def test_beyond_the_range_of_the_transform_the_inverse_is_infinite() -> None:
    assert OutputTransform(power=-1.0).inverse(1.5) == np.inf  # it never exceeds 1
    assert OutputTransform(power=3.0).inverse(-1.5) == -np.inf


@pytest.mark.parametrize("power", POWERS)
def test_the_slope_in_the_power_is_that_of_differences(power: float) -> None:
    step = 1e-5
    values = VALUES[np.abs(VALUES) < 10]
    differences = (yeo_johnson(values, power + step) - yeo_johnson(values, power - step)) / (
        2 * step
    )
    np.testing.assert_allclose(power_slope(values, power), differences, rtol=1e-5, atol=1e-8)
