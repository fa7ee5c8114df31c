"""The noise of a learned model: from repeated measurements, as told, and from place to place."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from tests.helpers.warning_checks import ignored_outliers

import truvar as tv
from truvar.models._learned import FitData, fit_ensemble
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.hyperposterior import HyperPrior, MarginalLikelihood
from truvar.storage.serialization import deserialize, serialize

LINE = np.linspace(0.0, 1.0, 60)[:, None]
AXIS = np.linspace(0.0, 1.0, 31)


def data(points: np.ndarray, values: np.ndarray, noise: np.ndarray | None = None) -> FitData:
    d = points.shape[1]
    return FitData(points, values, noise, np.ones(d), np.full(d, 0.01))


def fitted(
    points: np.ndarray, values: np.ndarray, noise: np.ndarray | None = None
) -> EnsembleModel:
    return fit_ensemble("matern52", data(points, values, noise), None, 0)


def growing(points: np.ndarray, seed: int) -> np.ndarray:
    """Return values whose noise grows from 0.01 on the left to 0.6 on the right."""
    x = points[:, 0]
    return np.sin(5 * x) + 0.01 * 60**x * np.random.default_rng(seed).standard_normal(len(x))


# -- repeated measurements
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_repeated_measurements_tell_the_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = rng.random((8, 2))
    points = np.repeat(places, 4, axis=0)
    values = np.repeat(np.sin(9 * places[:, 0]) + places[:, 1], 4) + 0.3 * rng.standard_normal(32)
    pooled = float(np.mean([values[points[:, 0] == x].var(ddof=1) for x in places[:, 0]]))
    model = fitted(points, values)
    assert model.mode_noise is not None
    assert 0.6 * pooled < model.mode_noise < 1.6 * pooled
    once = fitted(places, values[::4])  # without repeats the same spread may be a rough function
    assert once.noise is not None
    assert model.noise is not None
    assert np.log(model.noise).std() < 0.5 * np.log(once.noise).std()


def test_exact_values_around_an_optimum_have_hardly_any_noise() -> None:
    rng = np.random.default_rng(0)
    close = np.array([0.3, 0.8]) + 0.02 * rng.standard_normal((30, 2))
    points = np.vstack([rng.random((30, 2)), close])
    exact = np.sin(5 * points[:, 0]) * np.cos(4 * points[:, 1])
    optimum = replace(data(points, exact), direction=1)
    model = fit_ensemble("matern52", optimum, None, 0)
    assert model.mode_noise is not None
    assert model.mode_noise < np.exp(-13) * exact.var()
    noisy = fit_ensemble(
        "matern52", replace(optimum, values=exact + 0.03 * rng.standard_normal(60)), None, 0
    )
    assert noisy.mode_noise is not None
    assert 0.5 < noisy.mode_noise / 0.03**2 < 2


# -- noise that is told
# ------------------------------------------------------------------------------------------------


def test_a_told_noise_is_not_mistaken_for_that_of_the_others() -> None:
    rng = np.random.default_rng(0)
    told = np.where(np.arange(60) % 2 == 0, 1.0, np.nan)
    values = np.sin(6 * LINE[:, 0]) + np.where(np.isnan(told), 0.02, 1.0) * rng.standard_normal(60)
    model = fitted(LINE, values, told)
    assert model.mode_noise is not None
    assert model.mode_noise < 0.01
    assert fitted(LINE, values).mode_noise > 0.2  # type: ignore[operator]


def test_a_study_weighs_values_by_the_noise_they_were_told_with() -> None:
    domain = tv.Domain.grid(x=AXIS)
    study = tv.Study(domain, tv.Maximize())
    rng = np.random.default_rng(0)
    with ignored_outliers():
        for index in range(0, 31, 2):
            point = domain.point(index)
            truth = np.sin(6 * point["x"])
            study.tell(point, truth + 0.5 * rng.standard_normal(), noise=0.25)
            study.tell(point, truth + 0.02 * rng.standard_normal(), noise=4e-4)
    truth = np.sin(6 * AXIS)
    result = study.result()
    assert np.abs(result.mean - truth).max() < 0.1
    assert (result.sd < 0.1).all()
    assert sorted(set(study.measurements["noise"])) == [4e-4, 0.25]
    assert study.transform.power == 1.0
    restored = tv.Study.from_json(study.to_json())
    assert (restored.result().mean == result.mean).all()


# -- noise that differs from place to place
# ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_grows_along_a_coordinate_is_learned(seed: int) -> None:
    model = fitted(LINE, growing(LINE, seed))
    assert model.noise_slopes is not None
    found = model.mode_noise_at(np.array([[0.1], [0.9]]))
    true = 0.01**2 * 60 ** np.array([0.2, 1.8])
    assert (np.abs(np.log(found / true)) < np.log(5)).all()


@pytest.mark.parametrize("seed", range(12))
def test_equal_noise_is_taken_for_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.random((60, 2))
    values = np.sin(5 * points[:, 0]) + points[:, 1] + 0.2 * rng.standard_normal(60)
    assert fitted(points, values).noise_slopes is None


def test_the_statistic_is_chi_squared_where_the_noise_is_equal() -> None:
    """The 95 % quantile is exceeded in 5 % of the draws; by more than 9 % of 300 with a
    probability of 0.1 %."""
    rng = np.random.default_rng(0)
    points = rng.random((50, 2))
    theta = np.array([np.log(0.3), np.log(0.3), 0.0, np.log(0.05)])
    prior = MarginalLikelihood(points, np.zeros(50), 5, constant=0.0)
    found = prior.factor(theta)
    assert found is not None
    lower, _ = found
    statistics = [
        MarginalLikelihood(
            points, lower @ rng.standard_normal(50), 5, constant=0.0
        ).slope_statistic(theta)
        for _ in range(300)
    ]
    assert 0.02 < np.mean(np.array(statistics) > 5.99) < 0.09


def test_gradients_with_slopes_and_known_noise_are_those_of_the_value() -> None:
    rng = np.random.default_rng(3)
    points = rng.random((12, 2))
    values = rng.standard_normal(12)
    noise = np.where(np.arange(12) < 5, 0.3, np.nan)
    theta = np.array([-0.5, 0.2, 0.1, -2.0, 1.5, -0.7])
    slopes = MarginalLikelihood(points, values, 5, noise, learn_slopes=True)
    power = MarginalLikelihood(
        points, values, 5, noise, learn_power=True, relative=rng.random(12) + 0.5
    )
    for likelihood, at in ((slopes, theta), (power, np.array([-0.5, 0.2, 0.1, -2.0, 0.6]))):
        value, gradient = likelihood.value_and_gradient(at)
        assert value == pytest.approx(likelihood.value(at))
        np.testing.assert_allclose(
            gradient, approx_fprime(at, likelihood.value, 1e-6), rtol=1e-3, atol=1e-4
        )
    assert len(HyperPrior.default(2, True, False, learn_slopes=True).mean) == len(theta)


def test_members_are_conditioned_with_the_noise_of_each_point() -> None:
    model = fitted(LINE, growing(LINE, 0))
    assert model.noise is not None
    values = growing(LINE, 0)
    ensemble = Ensemble(model, LINE, None, 60)
    ensemble.condition(LINE, model.transform.forward(values), np.zeros(60), np.ones(60, bool))
    told = model.noise[1:, None] * model.noise_factor(LINE)
    for j, row in enumerate(model.members(1000)):
        kernel = ensemble.kernels[j]
        constant = 9.0 * model.signal[row]
        covariance = kernel(LINE, LINE) + constant
        weights = np.linalg.solve(covariance + np.diag(told[row - 1]), covariance)
        mean = model.transform.shift + weights.T @ (
            model.transform.forward(values) - model.transform.shift
        )
        np.testing.assert_allclose(ensemble.means[j], mean, rtol=1e-6, atol=1e-8)


def test_suggestions_predictions_and_replays_know_the_noise_of_each_place() -> None:
    domain = tv.Domain.grid(x=AXIS)
    study = tv.Study(domain, tv.LevelSet(0.5))
    rng = np.random.default_rng(1)
    for index in np.tile(np.arange(0, 31, 3), 5):
        point = domain.point(int(index))
        study.tell(point, np.sin(5 * point["x"]) + 0.01 * 60 ** point["x"] * rng.standard_normal())
    noise = study.candidates().noise[:, 0]
    assert noise.shape == (31,)
    assert noise[-1] > 100 * noise[0]
    assert (np.diff(noise) > 0).all()
    assert (study.measurements.groupby("x")["noise"].nunique() == 1).all()
    restored = tv.Study.from_json(study.to_json())
    assert (restored.candidates().noise == study.candidates().noise).all()
    assert (restored.result().mean == study.result().mean).all()
    assert (restored.result().sd == study.result().sd).all()


def test_a_box_has_a_noise_at_every_point() -> None:
    domain = tv.Domain.box(x=(0, 1), representers=64)
    study = tv.Study(domain, tv.Maximize())
    for x, y in zip(LINE[:, 0], growing(LINE, 0), strict=True):
        study.tell({"x": float(x)}, float(y))
    suggestion = study.ask()
    point = np.array([list(suggestion.point.values())])
    model = study._learner.surrogate.model
    assert isinstance(model, EnsembleModel)
    assert model.noise_slopes is not None
    assert suggestion.noise == pytest.approx(float(model.mode_noise_at(point)[0]))


def test_a_model_stored_without_the_later_fields_opens() -> None:
    model = fitted(LINE, growing(LINE, 0))
    stored = serialize(model)
    assert (deserialize(stored).noise_slopes == model.noise_slopes).all()
    for name in ("separate", "noise_slopes", "noise_centre"):
        del stored[name]
    restored = deserialize(stored)
    assert restored.noise_slopes is None
    assert (restored.noise_factor(LINE) == 1.0).all()
