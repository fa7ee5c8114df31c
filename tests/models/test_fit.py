"""Hyperparameters: close to the truth with enough data, and reasonable with little."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

import truvar as tv
from truvar.exceptions import InvalidModelError
from truvar.models import fit as fitting
from truvar.models.fit import Model, fit, fit_kernel
from truvar.models.kernels import named_kernel
from truvar.models.priors import Learned

UNIT = np.ones(2)


def draw(
    kernel: Any, n: int, seed: int, noise: float = 0.0, mean: float = 0.0, extent: Any = UNIT
) -> tuple[np.ndarray, np.ndarray]:
    """Return points in [0, extent] and values of a draw from the Gaussian process there."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n, len(extent))) * extent
    root = np.linalg.cholesky(kernel(points) + 1e-9 * kernel.diag(points)[0] * np.eye(n))
    return points, mean + root @ rng.standard_normal(n) + np.sqrt(noise) * rng.standard_normal(n)


def hyper(model: Model) -> tuple[float, np.ndarray]:
    """Return variance and length-scales."""
    return model.kernel.k1.constant_value, np.atleast_1d(model.kernel.k2.length_scale)


# -- enough data
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "matern32", "matern52"])
@pytest.mark.parametrize("seed", range(3))
def test_length_scales_of_a_draw_from_a_known_process_are_recovered(name: str, seed: int) -> None:
    """120 values: length-scales within a factor of 1.7, the variance (few independent patches)
    within 3.5. Seeded."""
    extent = np.array([1000.0, 5.0])
    lengths = np.array([150.0, 2.0])
    variance = 40.0
    points, values = draw(
        named_kernel(name, lengths, variance), 120, seed, noise=0.04, mean=300.0, extent=extent
    )
    model = fit(Learned(name), points, values, 0.04, extent, None, seed)
    learned_variance, learned_lengths = hyper(model)
    assert np.abs(np.log(learned_lengths / lengths)).max() < np.log(1.7)
    assert abs(np.log(learned_variance / variance)) < np.log(3.5)
    assert abs(model.mean - 300.0) < 2 * np.sqrt(variance)


@pytest.mark.parametrize("noise", [0.01, 0.25])
def test_noise_is_learned_on_request(noise: float) -> None:
    """100 values: the noise variance within a factor of 2. Seeded."""
    kernel = named_kernel("matern52", [0.3, 0.3], 1.0)
    for seed in range(3):
        points, values = draw(kernel, 100, seed, noise=noise)
        model = fit(Learned(noise=True), points, values, 0.0, UNIT, None, seed)
        assert model.noise is not None
        assert abs(np.log(model.noise / noise)) < np.log(2)


def test_a_column_that_does_not_matter_gets_a_long_length_scale() -> None:
    points, values = draw(named_kernel("rbf", [0.15, 50.0], 1.0), 60, 1, noise=1e-4)
    _, lengths = hyper(fit(Learned("rbf"), points, values, 1e-4, UNIT, None, 0))
    assert lengths[1] > 8 * lengths[0]


# -- little data
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn_noise", [False, True])
def test_five_points_do_not_give_an_absurd_fit(learn_noise: bool) -> None:
    """Whatever the five values: length-scales from 3 % to 3 extents, and a variance within 20 of
    the values' own."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.uniform(size=(5, 2)) * [1000, 5]
        values = rng.normal(50, 3, size=5)
        family = Learned(noise=learn_noise)
        model = fit(family, points, values, 0.01, np.array([1000.0, 5.0]), None, seed)
        variance, lengths = hyper(model)
        assert ((lengths / [1000, 5] > 0.03) & (lengths / [1000, 5] < 3)).all()
        assert np.var(values) / 20 < variance < np.var(values) * 20
        assert values.min() <= model.mean <= values.max()
        if learn_noise:
            assert model.noise is not None
            assert 1e-6 * np.var(values) <= model.noise <= np.var(values)


def in_bounds(model: Model, extent: Any, values: np.ndarray) -> bool:
    variance, lengths = hyper(model)
    ratio = variance / max(float(np.var(values)), 1e-300)
    near = 1 + 1e-9
    return bool(
        (lengths / extent >= 0.01 / near).all()
        and (lengths / extent <= 10 * near).all()
        and (np.var(values) == 0 or 1e-2 / near <= ratio <= 1e2 * near)
    )


@pytest.mark.parametrize(
    "values",
    [
        [3.0, 3.0, 3.0, 3.0, 3.0],
        [0.0, 0.0, 0.0, 0.0, 1e9],
        [1e-12, 2e-12, 0.0, 1e-12, 3e-12],
        [0, 1, 2, 3, 4],
    ],
    ids=["constant", "outlier", "tiny", "a slope"],
)
def test_values_of_any_shape_and_size_are_fitted_within_the_bounds(values: list[float]) -> None:
    points = np.linspace(0, 1, 5)[:, None]
    y = np.array(values, dtype=float)
    model = fit(Learned("rbf"), points, y, 0.0, np.ones(1), None, 0)
    assert in_bounds(model, np.ones(1), y)
    assert np.isfinite([model.mean, model.log_likelihood]).all()


def test_repeated_points_without_noise_can_be_fitted() -> None:
    points = np.repeat(np.linspace(0, 1, 4), 2)[:, None]
    values = np.repeat([0.0, 1.0, 0.5, -1.0], 2)
    model = fit(Learned("rbf"), points, values, 0.0, np.ones(1), None, 0)
    assert in_bounds(model, np.ones(1), values)


def test_before_there_is_enough_to_fit_the_prior_has_the_spread_of_the_values() -> None:
    model = fitting.unfitted(Learned(), np.array([1000.0, 5.0]), np.array([10.0, 14.0]))
    variance, lengths = hyper(model)
    assert variance == pytest.approx(4.0)
    assert model.mean == 12.0
    np.testing.assert_allclose(lengths, [300.0, 1.5])


# -- the likelihood
# --------------------------------------------------------------------------------------------------


def likelihood(name: str, learn_noise: bool, learn_mean: bool) -> tuple[Any, np.ndarray]:
    """Return the loss on a small data set, and a point away from its optimum."""
    points, values = draw(named_kernel("matern52", [0.3, 0.6], 1.0), 15, 3, noise=0.01)
    z = (values - values.mean()) / values.std()
    known = np.linspace(0.01, 0.05, 15)
    problem = fitting._Likelihood(Learned(name, noise=learn_noise), points, z, known, learn_mean)
    rng = np.random.default_rng(0)
    return problem, rng.normal(problem.centre, 0.5)


@pytest.mark.parametrize("name", ["rbf", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("learn_noise", [False, True])
@pytest.mark.parametrize("learn_mean", [False, True])
def test_the_gradient_of_the_penalised_likelihood_is_that_of_finite_differences(
    name: str, learn_noise: bool, learn_mean: bool
) -> None:
    problem, theta = likelihood(name, learn_noise, learn_mean)
    error = check_grad(
        lambda t: problem.loss(t)[0], lambda t: problem.loss(t)[1], theta, epsilon=1e-6
    )
    assert error < 1e-4 * np.linalg.norm(problem.loss(theta)[1])


@pytest.mark.parametrize("name", ["rbf", "matern12", "matern32", "matern52"])
def test_without_the_priors_the_likelihood_is_scikit_learns(name: str) -> None:
    problem, theta = likelihood(name, learn_noise=False, learn_mean=False)
    kernel = named_kernel(name, np.exp(theta[1:]), float(np.exp(theta[0])))
    theirs = GaussianProcessRegressor(
        kernel, alpha=problem.known + fitting.JITTER_SHARE, optimizer=None
    )
    theirs.fit(problem.points, problem.z)
    pull = (theta - problem.centre) / problem.width
    assert problem.loss(theta)[0] - 0.5 * pull @ pull == pytest.approx(
        -theirs.log_marginal_likelihood(), rel=1e-10
    )


def test_with_many_data_the_likelihood_dominates_the_priors() -> None:
    points, values = draw(named_kernel("rbf", [0.2, 0.4], 1.0), 100, 0, noise=0.01)
    _, ours = hyper(fit(Learned("rbf"), points, values, 0.01, UNIT, 0.0, 0))
    theirs = GaussianProcessRegressor(ConstantKernel(1.0) * RBF([0.3, 0.3]), alpha=0.01).fit(
        points, values
    )
    np.testing.assert_allclose(ours, theirs.kernel_.k2.length_scale, rtol=0.1)


def test_more_restarts_never_find_a_worse_fit() -> None:
    points, values = draw(named_kernel("matern32", [0.1, 0.5], 1.0), 12, 7, noise=0.01)
    found = [
        fit(Learned(restarts=k), points, values, 0.01, UNIT, None, 1).log_likelihood
        for k in (1, 3, 6)
    ]
    assert found == sorted(found)


def test_the_constant_mean_is_that_of_generalised_least_squares() -> None:
    points, values = draw(named_kernel("rbf", [0.3, 0.3], 2.0), 20, 5, noise=0.1, mean=7.0)
    model = fit(Learned("rbf"), points, values, 0.1, UNIT, None, 0)
    inverse = np.linalg.inv(model.kernel(points) + 0.1 * np.eye(20))
    ones = np.ones(20)
    assert model.mean == pytest.approx(
        (ones @ inverse @ values) / (ones @ inverse @ ones), rel=1e-6
    )


def test_a_known_mean_is_kept_and_the_variance_is_about_it() -> None:
    points, values = draw(named_kernel("rbf", [0.3, 0.3], 1.0), 30, 2, mean=1000.0)
    model = fit(Learned("rbf"), points, values, 1e-4, UNIT, 0.0, 0)
    assert model.mean == 0.0
    assert (
        hyper(model)[0] > 1000.0**2 / 10
    )  # the values are a thousand away from the mean that is claimed


# -- units
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn_noise", [False, True])
def test_other_units_of_values_and_coordinates_give_the_same_fit_in_those_units(
    learn_noise: bool,
) -> None:
    points, values = draw(named_kernel("matern52", [0.2, 0.5], 1.0), 25, 4, noise=0.01)
    family = Learned(noise=learn_noise)
    factor = 50.0
    shift = -300.0
    extent = np.array([1e4, 1e-3])
    one = fit(family, points, values, 0.01, UNIT, None, 0)
    other = fit(family, points * extent, factor * values + shift, 0.01 * factor**2, extent, None, 0)
    assert hyper(other)[0] == pytest.approx(hyper(one)[0] * factor**2, rel=1e-3)
    np.testing.assert_allclose(hyper(other)[1], hyper(one)[1] * extent, rtol=1e-3)
    assert other.mean == pytest.approx(factor * one.mean + shift, rel=1e-3)
    if learn_noise:
        assert one.noise is not None
        assert other.noise == pytest.approx(one.noise * factor**2, rel=1e-2)


# -- before the study: another data set
# --------------------------------------------------------------------------------

GRID = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 9))
TRUE = named_kernel("rbf", [0.2, 0.5], 4.0)


def training(seed: int = 0, n: int = 60) -> pd.DataFrame:
    points, values = draw(TRUE, n, seed, noise=0.01, mean=20.0)
    return pd.DataFrame({"x": points[:, 0], "y": points[:, 1], "v": values})


def test_a_study_learns_its_model_from_another_data_set_and_takes_it_as_known() -> None:
    frame = training()
    study = tv.Study(GRID, tv.Maximize(), kernel="rbf", noise=0.01)
    model = study.fit(frame)
    expected = fit(
        Learned("rbf"), frame[["x", "y"]].to_numpy(), frame["v"].to_numpy(), 0.01, UNIT, None, 0
    )
    assert hyper(model)[0] == pytest.approx(hyper(expected)[0], rel=1e-6)
    np.testing.assert_allclose(hyper(model)[1], hyper(expected)[1], rtol=1e-6)
    np.testing.assert_allclose(study.result().mean, expected.mean)
    assert study.result().certificate.regime != "learned"
    study.run(lambda point: 20 + point["x"], steps=6)
    assert study.kernel == model.kernel  # not learned again


def test_a_fitted_study_chooses_as_one_that_is_given_the_same_model() -> None:
    fitted = tv.Study(GRID, tv.LevelSet(20.5), kernel="rbf", noise=0.01, policy="truvar")
    model = fitted.fit(training())
    given = tv.Study(
        GRID, tv.LevelSet(20.5), kernel=model.kernel, mean=model.mean, noise=0.01, policy="truvar"
    )
    for _ in range(5):
        mine = fitted.ask()
        theirs = given.ask()
        assert mine == theirs
        fitted.tell(mine, 20 + 2 * mine.point["x"])
        given.tell(theirs, 20 + 2 * theirs.point["x"])
    np.testing.assert_array_equal(fitted.result().above, given.result().above)


def test_noise_that_is_not_given_is_learned_from_the_data_set() -> None:
    study = tv.Study(GRID, tv.Maximize(), kernel="rbf")
    model = study.fit(training(n=100))
    assert model.noise == pytest.approx(0.01, rel=0.6)
    assert study.ask().noise == model.noise


def test_the_column_of_the_values_can_be_named_and_the_data_may_be_a_file(tmp_path: Path) -> None:
    frame = training()
    frame.assign(other=0.0).to_csv(tmp_path / "training.csv", index=False)
    from_file = tv.Study(GRID, tv.Maximize(), kernel="rbf", noise=0.01).fit(
        tmp_path / "training.csv", "v"
    )
    from_frame = tv.Study(GRID, tv.Maximize(), kernel="rbf", noise=0.01).fit(frame)
    assert hyper(from_file)[0] == pytest.approx(hyper(from_frame)[0], rel=1e-6)


def test_a_kernel_of_the_users_own_is_fitted_within_its_bounds() -> None:
    frame = training(n=100)
    kernel = ConstantKernel(1.0, (0.1, 100)) * RBF([0.3, 0.3], (0.05, 0.25))
    study = tv.Study(GRID, tv.Maximize(), kernel=kernel, noise=0.01)
    with pytest.warns(Warning, match="close to the specified upper bound"):
        study.fit(frame)
    lengths = study.kernel.k2.length_scale
    assert lengths[0] == pytest.approx(0.2, rel=0.3)
    assert lengths[1] == pytest.approx(0.25)  # the truth, 0.5, lies beyond what the user allows


def test_fixed_hyperparameters_stay_fixed() -> None:
    points, values = draw(TRUE, 40, 1)
    kernel = ConstantKernel(3.0, "fixed") * Matern([0.3, 0.3], (0.01, 10), nu=2.5)
    model = fit_kernel(kernel, points, values, 0.01, 0.0, 0)
    assert model.kernel.k1.constant_value == 3.0
    assert not np.allclose(model.kernel.k2.length_scale, 0.3)


@pytest.mark.parametrize("noise", [None, 0.01])
@pytest.mark.parametrize("exponent", [-40, 30])
def test_a_kernel_of_the_users_own_is_fitted_in_the_units_of_the_values(
    exponent: int, noise: float | None
) -> None:
    points, values = draw(TRUE, 40, 1)
    unit = 2.0**exponent
    kernel = ConstantKernel(1.0) * RBF([0.3, 0.3])
    one = fit_kernel(kernel, points, values, noise, None, 0)
    other = fit_kernel(
        kernel, points, unit * values, None if noise is None else noise * unit**2, None, 0
    )
    assert other.kernel.k1.constant_value / unit**2 == pytest.approx(
        one.kernel.k1.constant_value, rel=1e-3
    )
    np.testing.assert_allclose(other.kernel.k2.length_scale, one.kernel.k2.length_scale, rtol=1e-3)
    assert other.mean / unit == pytest.approx(one.mean, rel=1e-3)
    assert other.log_likelihood == pytest.approx(one.log_likelihood - 40 * np.log(unit), rel=1e-5)
    if noise is None:
        assert other.noise is not None
        assert other.noise / unit**2 == pytest.approx(one.noise, rel=1e-3)
    assert (
        other.kernel.k1.constant_value_bounds == kernel.k1.constant_value_bounds
    )  # as the user gave them


@pytest.mark.parametrize("unit", [1e-12, 1e9])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF([0.3, 0.3]),
        ConstantKernel(1.0, "fixed") * RBF([0.3, 0.3]),
        ConstantKernel(1.0, (0.1, 10)) * RBF(0.3),
    ],
)
def test_a_kernel_whose_variance_the_values_cannot_have_is_refused(
    kernel: Kernel, unit: float
) -> None:
    points, values = draw(TRUE, 40, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about the bounds
        with pytest.raises(
            InvalidModelError, match=r"within its bounds.*multiply it by ConstantKernel"
        ):
            fit_kernel(kernel, points, unit * values, None, None, 0)


def test_equal_values_are_fitted() -> None:
    points, _ = draw(TRUE, 10, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about the bounds
        model = fit_kernel(
            ConstantKernel(1.0) * RBF([0.3, 0.3]), points, np.full(10, 3.0), 0.01, None, 0
        )
    assert model.mean == pytest.approx(3.0)


def test_a_problem_file_names_its_training_data_relative_to_itself(tmp_path: Path) -> None:
    training().to_csv(tmp_path / "past.csv", index=False)
    (tmp_path / "p.toml").write_text(
        "[domain]\ngrid = {x = [0, 1, 9], y = [0, 1, 9]}\n[goal]\nmaximize = "
        "true\n[noise]\nvariance = 0.01\n"
        '[model]\nkernel = "rbf"\ntraining = "past.csv"\nvalue = "v"\n'
    )
    study = tv.load_problem(tmp_path / "p.toml").study()
    by_hand = tv.Study(GRID, tv.Maximize(), kernel="rbf", noise=0.01)
    by_hand.fit(training())
    assert hyper_of(study) == pytest.approx(hyper_of(by_hand), rel=1e-6)
    assert study.ask().index == by_hand.ask().index


def hyper_of(study: tv.Study) -> list[float]:
    return [study.kernel.k1.constant_value, *study.kernel.k2.length_scale]


# -- during the study
# --------------------------------------------------------------------------------------------------


def wave(point: dict[str, float]) -> float:
    return 100 + 10 * np.sin(6 * point["x"]) + 3 * point["y"]


@pytest.mark.parametrize("every", [2, 3, 5])
def test_the_model_is_learned_again_every_so_many_values(every: int) -> None:
    study = tv.Study(
        GRID,
        tv.Maximize(),
        kernel=tv.Learned("rbf", refit_every=every, restarts=1, marginalise=False),
        noise=0.01,
    )
    fitted: list[list[float]] = []
    rng = np.random.default_rng(0)
    for _ in range(11):
        point = GRID.point(int(rng.integers(len(GRID))))
        study.tell(point, wave(point))
        fitted.append(hyper_of(study))
    for t in range(
        every + 1, 12
    ):  # t values; before the first fit the prior follows the spread of the values
        assert (fitted[t - 1] != fitted[t - 2]) == (t % every == 0)


def test_the_model_learned_online_is_the_fit_to_the_measurements() -> None:
    study = tv.Study(
        GRID,
        tv.Maximize(),
        kernel=tv.Learned("rbf", refit_every=4, marginalise=False),
        noise=0.01,
        seed=3,
    )
    study.run(wave, steps=8)
    measured = study.measurements
    points = measured[["x", "y"]].to_numpy(dtype=float)
    values = measured["value"].to_numpy()
    expected = fit(Learned("rbf", refit_every=4), points, values, 0.01, UNIT, None, 3 + 8)
    assert hyper_of(study) == pytest.approx(
        [expected.kernel.k1.constant_value, *expected.kernel.k2.length_scale]
    )


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.5)], ids=["optimum", "level set"])
def test_with_a_learned_model_m_is_recomputed_from_the_whole_domain(goal: Any) -> None:
    """Three values that hardly differ make a narrow model, which decides points; three that do
    make it wide again."""
    domain = tv.Domain.grid(x=np.linspace(0, 1, 30))
    study = tv.Study(
        domain,
        goal,
        kernel=tv.Learned("rbf", refit_every=3, min_observations=0, restarts=1, marginalise=False),
        noise=1e-6,
    )
    sizes = []
    for x, y in ((0.0, 0.0), (0.5, 0.02), (1.0, 0.1), (0.25, 3.0), (0.75, -3.0), (0.6, 1.0)):
        study.tell({"x": x}, y)
        result = study.result()
        sizes.append(int(result.potential.sum()))
        if study.steps < 3:
            assert result.potential.all()  # no model yet, no claim
        elif goal.has_thresholds:
            np.testing.assert_array_equal(
                result.potential, (result.lower <= 0.5) & (result.upper >= 0.5)
            )
        else:
            np.testing.assert_array_equal(result.potential, result.upper >= result.lower.max())
    assert sizes[2] < 30
    assert sizes[-1] > sizes[2]  # a monotone M would not bind a model that may have been wrong


def test_without_a_kernel_the_model_and_the_noise_are_learned_and_the_regime_is_learned() -> None:
    rng = np.random.default_rng(1)
    study = tv.Study(GRID, tv.Maximize(monotone=False), policy=tv.TruVaR(beta=tv.ConstantBeta(9.0)))
    for i in rng.permutation(len(GRID))[:30]:
        point = GRID.point(int(i))
        study.tell(point, wave(point) + 2 * rng.standard_normal())
    assert 1.0 < study.measurements["noise"].iloc[-1] < 16.0  # a variance of 4 was put in
    result = study.result()
    assert result.certificate.regime == "learned"
    assert result.best.point["x"] in (0.125, 0.25, 0.375)  # sin(6 x) is highest at 0.26


def test_the_bounds_before_the_first_fit_are_about_the_mean_that_is_reported() -> None:
    study = tv.Study(GRID, tv.Maximize(), noise=0.01)
    study.tell(GRID.point(0), 5000.0)
    result = study.result()
    assert (result.lower <= result.mean).all()
    assert (result.mean <= result.upper).all()
    assert result.epsilon == np.inf
    assert "Nothing is claimed" in str(result.certificate)


def test_a_known_mean_stays_while_the_rest_is_learned() -> None:
    domain = tv.Domain.grid(x=np.linspace(0, 100, 11))
    study = tv.Study(
        domain,
        tv.Maximize(),
        kernel=tv.Learned("rbf", restarts=1, marginalise=False),
        mean=-4.0,
        noise=0.01,
    )
    data = np.array([[0.0, 10.0], [10.0, 11.0], [20.0, 9.0]])
    for x, y in data:
        study.tell({"x": x}, y)
    reference = GaussianProcessRegressor(study.kernel, alpha=0.01, optimizer=None).fit(
        data[:, :1], data[:, 1] + 4
    )
    np.testing.assert_allclose(study.result().mean, reference.predict(domain.points) - 4, rtol=1e-6)


def test_the_same_seed_gives_the_same_model() -> None:
    def learned(seed: int) -> list[float]:
        study = tv.Study(GRID, tv.Maximize(), noise=0.01, seed=seed)
        study.run(wave, steps=6)
        return hyper_of(study)

    assert learned(2) == learned(2)


def test_training_data_of_unknown_noise_do_not_give_tiny_length_scales() -> None:
    rng = np.random.default_rng(3)
    points = rng.uniform(size=(60, 1))
    truth = RBF(0.3)(points) + 1e-10 * np.eye(60)
    values = np.linalg.cholesky(truth) @ rng.standard_normal(60) + 0.5 * rng.standard_normal(60)
    frame = pd.DataFrame({"x": points[:, 0], "value": values})
    domain = tv.Domain.grid(x=np.linspace(0, 1, 20))
    scales = []
    for noise in (0.25, np.float32(0.25), np.full(20, 0.25), lambda x: np.full(len(x), 0.25)):
        study = tv.Study(
            domain, tv.Maximize(), kernel=ConstantKernel(1.0) * RBF(0.5), mean=0.0, noise=noise
        )
        scales.append(float(study.fit(frame).kernel.k2.length_scale))
    assert min(scales) > 0.1
    assert max(scales) < 1.0
