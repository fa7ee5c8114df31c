"""Noise that is learned with a known kernel: the mode of its posterior, and studies that use it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import truvar as tv
from truvar.models._noise import LOG_NOISE_BOUNDS, NoiseLikelihood, NoiseModel, fit_noise
from truvar.models.priors import is_refit_step

KERNEL = ConstantKernel(2.5) * Matern([0.3, 0.5], nu=2.5)
VARIANCE = 2.5
GRID = tv.Domain.grid(x=np.linspace(0, 1, 12), y=np.linspace(0, 2, 9))
MEDIAN = float(np.exp(-6.0))


def drawn(
    count: int, noise: float, seed: int, mean: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, values with that noise variance, and the prior covariance."""
    rng = np.random.default_rng(seed)
    points = rng.random((count, 2)) * [1, 2]
    covariance = KERNEL(points)
    exact = np.linalg.cholesky(covariance + 1e-10 * np.eye(count)) @ rng.standard_normal(count)
    return points, mean + exact + np.sqrt(noise) * rng.standard_normal(count), covariance


def naive_log_posterior(
    theta: float, covariance: np.ndarray, y: np.ndarray, known: np.ndarray, estimate_mean: bool
) -> float:
    """Return log p(y given theta) + log p(theta) up to a constant, as it is written."""
    noise = np.where(np.isnan(known), VARIANCE * np.exp(theta), known)
    total = covariance + np.diag(noise)
    inverse = np.linalg.inv(total)
    ones = np.ones(len(y))
    r = y - (ones @ inverse @ y) / (ones @ inverse @ ones) if estimate_mean else y
    return float(
        -0.5 * r @ inverse @ r
        - 0.5 * np.linalg.slogdet(total)[1]
        - 0.5 * ((theta + 6.0) / 1.5) ** 2
    )


def mixed(count: int, share: int) -> np.ndarray:
    """Return noise variances of which every so many-th is known."""
    known = np.full(count, np.nan)
    if share:
        known[::share] = np.linspace(0.05, 0.4, len(known[::share]))
    return known


@pytest.mark.parametrize("estimate_mean", [False, True])
@pytest.mark.parametrize("share", [0, 3])
@pytest.mark.parametrize(
    ("count", "noise"), [(2, 0.1), (7, 1e-4), (25, 0.05), (25, 20.0), (60, 0.8)]
)
def test_the_mode_is_that_of_brute_force(
    count: int, noise: float, share: int, estimate_mean: bool
) -> None:
    _, y, covariance = drawn(count, noise, seed=count)
    known = mixed(count, share)
    fitted = fit_noise(covariance, y, known, prior_variance=VARIANCE, estimate_mean=estimate_mean)
    grid = np.arange(*LOG_NOISE_BOUNDS, 0.01)
    densities = [naive_log_posterior(theta, covariance, y, known, estimate_mean) for theta in grid]
    theta = np.log(fitted.variance / VARIANCE)
    assert theta == pytest.approx(grid[int(np.argmax(densities))], abs=0.011)
    assert naive_log_posterior(theta, covariance, y, known, estimate_mean) >= max(densities) - 1e-9


@pytest.mark.parametrize("estimate_mean", [False, True])
def test_the_likelihood_is_the_naive_one_up_to_a_constant(estimate_mean: bool) -> None:
    _, y, covariance = drawn(20, 0.1, seed=3, mean=4.0)
    known = mixed(20, 4)
    thetas = np.linspace(-10, 3, 7)
    ours = (
        NoiseLikelihood(covariance, y, known, VARIANCE, estimate_mean)(thetas)
        - 0.5 * ((thetas + 6.0) / 1.5) ** 2
    )
    naive = np.array(
        [naive_log_posterior(theta, covariance, y, known, estimate_mean) for theta in thetas]
    )
    np.testing.assert_allclose(ours - ours[0], naive - naive[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_without_the_prior_it_is_the_fit_of_scikit_learn(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truvar.models._noise.LOG_NOISE_SD", 1e9)
    points, y, covariance = drawn(80, noise, seed=11)
    fixed = ConstantKernel(2.5, "fixed") * Matern([0.3, 0.5], "fixed", nu=2.5)
    peer = GaussianProcessRegressor(
        fixed + WhiteKernel(0.1, (1e-6, 1e2)), alpha=0.0, n_restarts_optimizer=2
    )
    expected = peer.fit(points, y).kernel_.k2.noise_level
    fitted = fit_noise(covariance, y, mixed(80, 0), prior_variance=VARIANCE, estimate_mean=False)
    assert fitted.variance == pytest.approx(expected, rel=1e-3)


def test_much_data_find_the_noise() -> None:
    # The standard deviation of log(estimate / truth) is at least sqrt(2 / 200) = 0.1, that of its
    # mean a fifth of it.
    errors = []
    for seed in range(20):
        _, y, covariance = drawn(200, 0.2, seed)
        fitted = fit_noise(
            covariance, y, mixed(200, 0), prior_variance=VARIANCE, estimate_mean=True
        )
        errors.append(np.log(fitted.variance / 0.2))
    assert abs(np.mean(errors)) < 0.1
    assert np.std(errors) < 0.25


# -- studies
# --------------------------------------------------------------------------------------------------


def field(point: Any) -> float:
    return float(np.sin(5 * point["x"]) + np.cos(3 * point["y"]))


def told(count: int, true_noise: float, **options: Any) -> tv.Study:
    options = {"kernel": KERNEL, "mean": 0.0, **options}
    study = tv.Study(GRID, tv.LevelSet(0.5), **options)
    rng = np.random.default_rng(4)
    for row in rng.integers(len(GRID), size=count):
        study.tell(
            GRID.point(int(row)),
            field(GRID.point(int(row))) + np.sqrt(true_noise) * rng.standard_normal(),
        )
    return study


def used_noise(study: tv.Study) -> float:
    return float(study.candidates().noise[0, 0])


def test_before_the_second_measurement_the_noise_is_the_median_of_its_prior() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.5), kernel=KERNEL, mean=0.0)
    assert used_noise(study) == pytest.approx(MEDIAN * VARIANCE)
    study.tell(GRID.point(3), 0.4)
    assert used_noise(study) == pytest.approx(MEDIAN * VARIANCE)
    study.tell(GRID.point(3), 0.9)
    assert used_noise(study) > 3 * MEDIAN * VARIANCE


@pytest.mark.parametrize("mean", [0.0, None, "y"])
def test_a_study_uses_the_mode(mean: Any) -> None:
    study = told(20, 0.3, mean=mean)
    rows = study.measurements
    points = rows[["x", "y"]].to_numpy()
    y = rows["value"].to_numpy() - (points[:, 1] if mean == "y" else 0.0)
    expected = fit_noise(
        KERNEL(points), y, mixed(20, 0), prior_variance=VARIANCE, estimate_mean=mean is None
    )
    assert used_noise(study) == pytest.approx(expected.variance, rel=1e-5)
    assert (rows["noise"] == used_noise(study)).all()
    known = told(20, 0.3, mean=mean, noise=used_noise(study)).result()
    result = study.result()
    np.testing.assert_allclose(result.mean, known.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.sd, known.sd, rtol=0, atol=1e-9)


def test_noise_that_is_told_is_not_learned() -> None:
    study = told(15, 0.01)
    before = used_noise(study)
    for row, value in ((5, 40.0), (50, -30.0)):  # two very noisy measurements that say so
        study.tell(GRID.point(row), value, noise=1e4)
    assert list(study.measurements["noise"][-2:]) == [1e4, 1e4]
    assert used_noise(study) == pytest.approx(before, rel=0.3)


def test_it_is_refitted_on_a_geometric_schedule() -> None:
    study = told(30, 0.1)
    fitted = study._learner.surrogate.fitted_models
    assert (
        list(fitted)
        == [t for t in range(2, 31) if is_refit_step(t)]
        == [*range(2, 21), 22, 24, 26, 28, 30]
    )
    assert all(isinstance(model, NoiseModel) for model in fitted.values())


def test_the_certificate_says_that_part_of_the_model_is_learned() -> None:
    study = told(8, 0.1)
    assert study.result().certificate.regime == "learned"
    with pytest.raises(tv.TruvarError, match="give kernel, mean and noise"):
        study.theory_setting()


def test_a_reopened_study_continues_bit_for_bit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'noise.db'}"
    options: dict[str, Any] = {"kernel": KERNEL, "seed": 2}
    memory = tv.Study(GRID, tv.LevelSet(0.5), **options)
    tv.Study(GRID, tv.LevelSet(0.5), store=url, name="lake", **options)
    rng = np.random.default_rng(8)
    for step in range(24):
        stored = tv.load(url, "lake")
        suggestion = stored.ask()
        assert suggestion == memory.ask()
        value = field(suggestion.point) + 0.3 * rng.standard_normal()
        stored.tell(suggestion, value)
        memory.tell(suggestion, value)
        if step == 12:
            for study in (stored, memory):
                study.correct(3, 0.2)
    again = tv.load(url, "lake")
    assert used_noise(again) == used_noise(memory)
    np.testing.assert_array_equal(again.result().mean, memory.result().mean)
    np.testing.assert_array_equal(again.result().sd, memory.result().sd)


def test_a_stored_fit_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    text = told(12, 0.1).to_json()
    monkeypatch.setattr("truvar.models.hyperparameters.noise.fit_noise", None)
    assert tv.Study.from_json(text).steps == 12


def test_tasks_share_the_learned_noise_unless_they_have_their_own() -> None:
    covariance = [[1.0, 0.9], [0.9, 1.0]]
    study = tv.Study(
        GRID, tv.Maximize(), kernel=KERNEL, mean=0.0, tasks=tv.Tasks(covariance, ["f", "g"])
    )
    rng = np.random.default_rng(1)
    rows = rng.integers(30, size=39)
    tasks = rows % 2
    y = np.array([field(GRID.point(int(row))) for row in rows]) + 0.5 * rng.standard_normal(39)
    for row, task, value in zip(rows, tasks, y, strict=True):
        study.tell(GRID.point(int(row)), value, task=("f", "g")[task])
    between = np.array(covariance)[np.ix_(tasks, tasks)] * KERNEL(GRID.points[rows])
    expected = fit_noise(
        between, y, mixed(39, 0), prior_variance=VARIANCE, estimate_mean=False
    ).variance
    assert used_noise(study) == pytest.approx(expected, rel=1e-5)
    assert 0.05 < expected < 1.0
    own = tv.Study(
        GRID,
        tv.Maximize(),
        kernel=KERNEL,
        mean=0.0,
        tasks=tv.Tasks(covariance, ["f", "g"], noise=[0.1, 0.2]),
    )
    own.tell(GRID.point(0), 1.0)
    own.tell(GRID.point(0), 2.0)
    assert set(own.candidates().noise.ravel()) == {0.1, 0.2}
    assert own.result().certificate.regime != "learned"


def test_a_model_fitted_to_another_table_brings_its_noise() -> None:
    frame = GRID.to_frame()
    rng = np.random.default_rng(3)
    frame["value"] = [
        field(GRID.point(row)) + 0.3 * rng.standard_normal() for row in range(len(GRID))
    ]
    study = tv.Study(GRID, tv.Maximize(), kernel=1.0 * RBF(0.5), mean=0.0)
    model = study.fit(frame)
    assert model.noise == pytest.approx(0.09, rel=0.5)
    assert used_noise(study) == model.noise
    for row in (3, 8, 20):
        study.tell(GRID.point(row), field(GRID.point(row)))
    assert used_noise(study) == model.noise
    again = tv.Study.from_json(study.to_json())
    assert used_noise(again) == model.noise


def test_a_level_set_is_found_although_nobody_knew_the_noise() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.5), kernel=KERNEL, mean=0.0, seed=1)
    rng = np.random.default_rng(5)
    study.run(lambda point: field(point) + 0.3 * rng.standard_normal(), steps=60)
    truth = np.array([field(GRID.point(row)) for row in range(len(GRID))])
    result = study.result()
    predicted = result.mean > 0.5
    f1 = 2 * (predicted & (truth > 0.5)).sum() / (predicted.sum() + (truth > 0.5).sum())
    assert f1 > 0.9
    assert 0.03 < used_noise(study) < 0.3
