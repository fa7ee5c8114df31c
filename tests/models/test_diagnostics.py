"""Leave-one-out predictions equal refits, and the model check fails as often as it should, no more
and no less.

The rates below are simulated with fixed seeds. Each of the two tests of the check has a level of 1
%, so that a right model fails in at most 2 % of the checks; with n = 400 checks the share exceeds
4.5 % with a probability below 0.1 %, and with n = 2000 it exceeds 3 % with a probability of about
0.1 %.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern
from tests.reference import naive

from truvar.models.diagnostics import (
    MIN_MEASUREMENTS,
    NORMAL_95,
    ModelCheck,
    _chi2_upper_tail,
    _normal_limit,
    check_model,
)
from truvar.models.posterior import Posterior

KERNELS = {"rbf": RBF(0.4), "matern": ConstantKernel(3.0) * Matern([0.3, 0.7], nu=1.5)}


def conditioned(
    kernel: Kernel,
    points: np.ndarray,
    noise: np.ndarray | float,
    y: np.ndarray,
    mean: float | None = 0.0,
) -> Posterior:
    posterior = Posterior(
        kernel, np.zeros((1, points.shape[1])), mean=mean
    )  # the check does not depend on the sites
    for point, variance, value in zip(points, np.broadcast_to(noise, len(points)), y, strict=True):
        posterior.add(point, float(variance))
        posterior.observe(float(value))
    return posterior


def scattered(
    t: int, seed: int = 0, replicates: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, noise variances and values; every fourth point repeats the one before it."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(t, 2))
    if replicates:
        points[3::4] = points[2::4][: len(points[3::4])]
    noise = rng.uniform(0.01, 0.2, size=t)
    y = 5 + np.sin(6 * points[:, 0]) + points[:, 1] + np.sqrt(noise) * rng.standard_normal(t)
    return points, noise, y


def drawn(rng: np.random.Generator, kernel: Kernel, points: np.ndarray, noise: float) -> np.ndarray:
    covariance = kernel(points) + (noise + 1e-10) * np.eye(len(points))
    return np.linalg.cholesky(covariance) @ rng.standard_normal(len(points))


def failures(
    truth: Kernel,
    model: Kernel,
    d: int,
    t: int,
    n: int,
    true_noise: float = 0.01,
    noise: float = 0.01,
    mean: float | None = 0.0,
) -> list[str | None]:
    """Return what failed in n checks of draws from `truth` at random points by `model`."""
    rng = np.random.default_rng([d, t])
    found = []
    for _ in range(n):
        points = rng.uniform(size=(t, d))
        y = drawn(rng, truth, points, true_noise)
        found.append(check_model(conditioned(model, points, noise, y, mean), range(t)).failure)
    return found


def share_failed(found: list[str | None]) -> float:
    return float(np.mean([failure is not None for failure in found]))


# -- leave-one-out predictions
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_predictions_with_a_known_mean_are_those_of_scikit_learn_without_the_value(
    name: str,
) -> None:
    points, noise, y = scattered(18)
    means, variances = conditioned(KERNELS[name], points, noise, y, mean=4.5).leave_one_out()
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        gpr = GaussianProcessRegressor(KERNELS[name], alpha=noise[rest], optimizer=None)
        mean, sd = gpr.fit(points[rest], y[rest] - 4.5).predict(points[[i]], return_std=True)
        assert means[i] == pytest.approx(4.5 + mean[0], abs=1e-9)
        assert variances[i] == pytest.approx(sd[0] ** 2 + noise[i], rel=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_an_estimated_mean_is_estimated_again_without_the_value(name: str) -> None:
    points, noise, y = scattered(15, seed=1)
    kernel = KERNELS[name]
    means, variances = conditioned(kernel, points, noise, y, mean=None).leave_one_out()

    def k(_: int, a: tuple[float, ...], __: int, b: tuple[float, ...]) -> float:
        return float(kernel(np.array([a]), np.array([b]))[0, 0])

    actions = [
        naive.Action(0, tuple(x), v) for x, v in zip(points.tolist(), noise.tolist(), strict=True)
    ]
    for i in range(len(y)):
        rest = [j for j in range(len(y)) if j != i]
        others = [actions[j] for j in rest]
        values = [float(y[j]) for j in rest]
        constant = naive.generalised_least_squares(k, others, values)
        refit = conditioned(kernel, points[rest], noise[rest], y[rest], mean=None)
        assert refit.prior_mean == pytest.approx(constant, abs=1e-9)
        mean, variance = refit.predict(points[[i]])
        assert means[i] == pytest.approx(mean[0], abs=1e-9)
        # The constant is uncertain: universal kriging adds (1 - 1^T K^-1 k)^2 / (1^T K^-1 1).
        inverse = naive.inverse(k, others)
        across = naive.k_vector(k, others, 0, actions[i].x)
        extra = (1 - inverse.sum(axis=0) @ across) ** 2 / inverse.sum()
        assert variances[i] == pytest.approx(variance[0] + extra + noise[i], rel=1e-8)


def test_predictions_do_not_depend_on_when_they_are_asked_for() -> None:
    points, noise, y = scattered(120, seed=2)
    posterior = Posterior(KERNELS["matern"], points[:1], mean=None)
    for i in range(120):
        posterior.add(points[i], noise[i])
        posterior.observe(y[i])
        if i in (0, 3, 4, 20, 31, 32, 33, 70):
            posterior.leave_one_out()
    posterior.add(points[0] + 0.1, 0.1)  # pending, and so without influence
    means, variances = posterior.leave_one_out()
    expected = conditioned(KERNELS["matern"], points, noise, y, mean=None).leave_one_out()
    np.testing.assert_array_equal(means, expected[0])
    np.testing.assert_array_equal(variances, expected[1])
    np.testing.assert_array_equal(posterior.values, y)
    inverse = np.linalg.inv(KERNELS["matern"](points) + np.diag(noise))
    ones = inverse.sum(axis=0)
    np.testing.assert_allclose(
        variances, 1 / (inverse.diagonal() - ones**2 / ones.sum()), rtol=1e-9
    )


@pytest.mark.parametrize("mean", [0.0, None])
def test_exact_repeats_predict_each_other(mean: float | None) -> None:
    points, _, y = scattered(8, seed=3)
    y[3::4] = y[2::4]
    posterior = conditioned(RBF(0.4), points, 0.0, y, mean)
    means, variances = posterior.leave_one_out()
    repeated = [2, 3, 6, 7]
    np.testing.assert_allclose(means[repeated], y[repeated], atol=1e-6)
    assert (variances[repeated] < 1e-12).all()
    alone = [0, 1, 4, 5]
    first = [0, 1, 2, 4, 5, 6]
    once = conditioned(RBF(0.4), points[first], 0.0, y[first], mean).leave_one_out()
    np.testing.assert_allclose(means[alone], once[0][[0, 1, 3, 4]], atol=1e-6)
    np.testing.assert_allclose(variances[alone], once[1][[0, 1, 3, 4]], rtol=1e-6)
    assert posterior.misfit()[1] == 6 - (mean is None)


def test_exact_repeats_with_a_rounded_value_are_no_outliers() -> None:
    points, _, y = scattered(8, seed=3)
    y = drawn(np.random.default_rng(0), RBF(0.4), points, 0.0)
    y[3::4] = y[2::4] + 5e-5  # within the tolerance of `observe`
    check = check_model(conditioned(RBF(0.4), points, 0.0, y), range(8))
    assert np.abs(check.z_scores[[2, 3, 6, 7]]).max() < 0.1
    assert check.ok


def test_means_of_tasks_are_taken_into_account() -> None:
    points, noise, y = scattered(10, seed=4)
    tasks = np.arange(10) % 2
    with_task = np.column_stack([points, tasks])
    kernel = RBF([0.4, 0.4, 2.0])
    shift = np.array([0.0, 7.0])
    posterior = Posterior(
        kernel, with_task[:1], mean=5.0, offset=lambda points: shift[points[:, -1].astype(int)]
    )
    for i in range(10):
        posterior.add(with_task[i], noise[i])
        posterior.observe(y[i] + shift[tasks[i]])
    plain = conditioned(kernel, with_task, noise, y, mean=5.0).leave_one_out()
    means, variances = posterior.leave_one_out()
    np.testing.assert_allclose(means, plain[0] + shift[tasks], rtol=1e-12)
    np.testing.assert_allclose(variances, plain[1], rtol=1e-12)


def test_without_others_an_estimated_mean_predicts_nothing() -> None:
    points, noise, y = scattered(1)
    means, variances = conditioned(RBF(0.4), points, noise, y, mean=None).leave_one_out()
    assert np.isnan(means).all()
    assert np.isinf(variances).all()
    assert [len(part) for part in Posterior(RBF(0.4), points, mean=None).leave_one_out()] == [0, 0]


def test_misfit_is_the_quadratic_form() -> None:
    points, noise, y = scattered(12, seed=5)
    covariance = RBF(0.4)(points) + np.diag(noise)
    misfit, degrees = conditioned(RBF(0.4), points, noise, y, mean=5.0).misfit()
    assert misfit == pytest.approx((y - 5) @ np.linalg.solve(covariance, y - 5), rel=1e-9)
    assert degrees == 12
    posterior = conditioned(RBF(0.4), points, noise, y, mean=None)
    residual = y - posterior.prior_mean
    misfit, degrees = posterior.misfit()
    assert misfit == pytest.approx(residual @ np.linalg.solve(covariance, residual), rel=1e-9)
    assert degrees == 11


@pytest.mark.parametrize("degrees", [1, 2, 3, 8, 39, 400, 1001, 5000])
def test_tail_of_chi_squared_is_that_of_scipy(degrees: int) -> None:
    for quantile in (1e-8, 0.005, 0.3, 0.9, 0.995, 1 - 1e-8):
        x = float(chi2.ppf(quantile, degrees))
        assert _chi2_upper_tail(x, degrees) == pytest.approx(
            chi2.sf(x, degrees), rel=1e-7, abs=1e-11
        )
    assert _chi2_upper_tail(0.0, degrees) == 1.0
    assert _chi2_upper_tail(1e6, degrees) == 0.0


def test_limit_of_a_normal_variable_is_that_of_scipy() -> None:
    for level in (0.05, 0.01 / 5, 0.01 / 1000, 1e-12):
        assert _normal_limit(level) == pytest.approx(norm.isf(level / 2), abs=1e-9)
    assert _normal_limit(0.05) == pytest.approx(NORMAL_95, abs=1e-10)


# -- the check
# --------------------------------------------------------------------------------------------------


def check_of(t: int, *, shift: float = 0.0, learned: bool = False) -> ModelCheck:
    """Return the check of a draw from the model whose measurement with id 104 is wrong by
    `shift`."""
    points = np.random.default_rng(6).uniform(size=(t, 2))
    y = drawn(np.random.default_rng(7), RBF(0.4), points, 0.01)
    if t > 4:
        y[4] += shift
    return check_model(conditioned(RBF(0.4), points, 0.01, y), range(100, 100 + t), learned=learned)


@pytest.mark.parametrize("t", range(MIN_MEASUREMENTS))
def test_few_measurements_are_not_judged(t: int) -> None:
    check = check_of(t)
    assert check.ok
    assert check.message.startswith(f"Too few measurements to check the model: {t}, ")
    assert len(check.z_scores) == t


def test_a_right_model_passes() -> None:
    check = check_of(40)
    assert check.ok
    assert check.failure is None
    assert 0.85 <= check.coverage <= 1
    assert check.coverage == (np.abs(check.z_scores) < 1.96).mean()
    assert check.message.startswith("The measurements agree with the model: ")
    assert not check.outlying.any()


@pytest.mark.parametrize("shift", [1.5, -1.5, 50.0])
def test_one_wrong_value_is_named(shift: float) -> None:
    check = check_of(40, shift=shift)
    assert not check.ok
    assert check.failure == "outlier"
    assert check.message.startswith("Measurement 104 lies ")
    assert "agree with the model without it" in check.message
    assert np.argmax(np.abs(check.z_scores)) == 4
    assert 104 in check.to_dict()["outlying"]


def wrong_kernel(truth: float, model: float, learned: bool = False) -> ModelCheck:
    points = np.random.default_rng(8).uniform(size=(40, 2))
    y = drawn(np.random.default_rng(9), RBF(truth), points, 1e-4)
    return check_model(conditioned(RBF(model), points, 1e-4, y), range(1, 41), learned=learned)


def test_the_message_says_what_is_wrong_with_a_kernel_and_what_to_do() -> None:
    smooth = wrong_kernel(0.2, 0.6)
    assert smooth.failure == "overconfident"
    assert smooth.coverage < 0.8
    far = [i for i in np.argsort(-np.abs(smooth.z_scores)) if smooth.outlying[i]]
    named = ", ".join(str(smooth.ids[i]) for i in far[:5])
    assert smooth.message.startswith(
        f"{len(far)} of 40 measurements (ids {named} and {len(far) - 5} more) lie more "
    )
    assert "too smooth" in smooth.message
    rough = wrong_kernel(0.6, 0.2)
    assert rough.failure == "cautious"
    assert rough.coverage >= 0.9
    assert "too short" in rough.message


def test_a_learned_model_gets_another_advice() -> None:
    assert "leave out the kernel" in wrong_kernel(0.2, 0.6).message
    assert "leave out the kernel" not in wrong_kernel(0.2, 0.6, learned=True).message


@pytest.mark.parametrize("mean", [0.0, None])
@pytest.mark.parametrize(("d", "t"), [(1, 10), (2, 20), (1, 40)])
def test_right_models_seldom_fail(d: int, t: int, mean: float | None) -> None:
    assert share_failed(failures(RBF(0.2), RBF(0.2), d, t, 400, mean=mean)) <= 0.045


@pytest.mark.slow
@pytest.mark.parametrize("mean", [0.0, None])
@pytest.mark.parametrize("t", [10, 20, 40, 80])
@pytest.mark.parametrize("d", [1, 2])
def test_right_models_fail_in_at_most_three_percent(d: int, t: int, mean: float | None) -> None:
    assert share_failed(failures(RBF(0.2), RBF(0.2), d, t, 2000, mean=mean)) <= 0.03


@pytest.mark.parametrize("t", [20, 40])
@pytest.mark.parametrize("d", [1, 2])
def test_too_smooth_a_kernel_fails(d: int, t: int) -> None:
    found = failures(RBF(0.2), RBF(0.6), d, t, 50)
    assert found.count("overconfident") >= 0.8 * len(found)


@pytest.mark.parametrize(
    ("d", "t", "truth", "model"), [(1, 40, 0.15, 0.05), (2, 20, 0.6, 0.2), (2, 40, 0.6, 0.2)]
)
def test_too_rough_a_kernel_fails_where_it_can_be_told(
    d: int, t: int, truth: float, model: float
) -> None:
    """RBF(0.2) over one unit interval has too few degrees of freedom above the noise to be told
    from RBF(0.6)."""
    found = failures(RBF(truth), RBF(model), d, t, 50, true_noise=1e-6, noise=1e-6)
    assert found.count("cautious") >= 0.6 * len(found)


@pytest.mark.parametrize(("d", "t"), [(1, 20), (2, 20), (2, 40)])
def test_too_small_a_noise_fails(d: int, t: int) -> None:
    found = failures(RBF(0.3), RBF(0.3), d, t, 50, true_noise=0.1, noise=0.01)
    assert share_failed(found) >= 0.8
    assert "cautious" not in found


def test_a_broken_prediction_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates above tell a wrong variance: forgetting the noise of the left-out value fails
    half of the checks."""
    original = Posterior.leave_one_out

    def without_noise(self: Posterior) -> tuple[np.ndarray, np.ndarray]:
        means, variances = original(self)
        return means, np.maximum(variances - self._noise[: self.n_observed], 1e-12)

    monkeypatch.setattr(Posterior, "leave_one_out", without_noise)
    assert share_failed(failures(RBF(0.2), RBF(0.2), 1, 40, 50)) > 0.5
