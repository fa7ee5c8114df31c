"""The learned model of several tasks: likelihood, prior, fit, averaged posterior, and studies
that use it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Hyperparameter, Kernel, Matern

import truvar as tv
from truvar.models._coregionalization import (
    TaskEnsemble,
    TaskModel,
    correlation_matrix,
    partial_correlations,
    power_of_two,
)
from truvar.models._learned_tasks import (
    TaskData,
    TaskLikelihood,
    fit_tasks,
    task_outliers,
    task_prior,
    unfitted_tasks,
)
from truvar.models.ensemble import CONSTANT
from truvar.models.transforms import OutputTransform
from truvar.storage.serialization import deserialize, serialize

LINE = tv.Domain.grid(x=np.linspace(0, 1, 41))
KNOWN = ConstantKernel(2.0) * RBF([0.3, 0.5])
PAIR = tv.Tasks(names=["yield", "assay"], cost=[10.0, 1.0])

# -- the likelihood
# --------------------------------------------------------------------------------------------------

CASES = [
    (count, kernel, covariance, noise)
    for count in (2, 3)
    for kernel in ("learned", "given")
    for covariance in ("learned", "given")
    for noise in ("learned", "given")
    if "learned" in (kernel, covariance)
]


def given_covariance(count: int) -> np.ndarray:
    factor = np.random.default_rng(7).normal(size=(count, count))
    return factor @ factor.T + 0.5 * np.eye(count)


def task_data(count: int, kernel: str, covariance: str, noise: str, t: int = 15) -> TaskData:
    rng = np.random.default_rng(count)
    points = rng.random((t, 2)) * [1.0, 2.0]
    tasks = np.arange(t) % count
    variances = rng.uniform(0.01, 0.2, t)
    if noise == "learned":
        variances[::2] = np.nan  # every second measurement was told with its own noise
    means: tuple[float | None, ...] = (None, 0.7, None)
    known: dict[str, Any] = {"family": "matern32"}
    if kernel == "given":
        known = {"family": None, "kernel": KNOWN(points), "kernel_variance": 2.0}
    if covariance == "given":
        known["covariance"] = given_covariance(count)
    return TaskData(
        points=points,
        tasks=tasks,
        values=rng.normal(size=t) * np.array([1.0, 3.0, 0.2])[tasks] + 2.0,
        noise=variances,
        learn_noise=noise == "learned",
        extent=np.array([1.0, 2.0]),
        spacing=np.full(2, 0.01),
        means=means[:count],
        **known,
    )


def naive_parts(
    data: TaskData, theta: np.ndarray, scales: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
    """Return B, the constants' variances, the correlation function and the noise of each task,
    read off theta."""
    theta = list(theta)
    count = data.count
    lengths = [np.exp(theta.pop(0)) for _ in range(2)] if data.family is not None else []
    if data.covariance is not None:
        a = [np.exp(theta.pop(0))] * count
    else:
        a = [1.0] if data.family is None else [np.exp(theta.pop(0))]
        while len(a) < count:
            a.append(np.exp(theta.pop(0)))
    correlation = np.eye(count)
    if data.covariance is None:
        first = np.tanh(theta.pop(0))
        correlation[0, 1] = correlation[1, 0] = first
        if count == 3:
            second = np.tanh(theta.pop(0))
            partial = np.tanh(theta.pop(0))
            between = first * second + partial * np.sqrt((1 - first**2) * (1 - second**2))
            correlation[0, 2] = correlation[2, 0] = second
            correlation[1, 2] = correlation[2, 1] = between
    else:
        for i in range(count):
            for j in range(count):
                relative = data.covariance[i, j] / data.covariance[0, 0]
                correlation[i, j] = relative * scales[0] ** 2 / (scales[i] * scales[j])
    B = np.array([[a[i] * a[j] * correlation[i, j] for j in range(count)] for i in range(count)])
    constants = np.array([9.0 * a[i] ** 2 if data.means[i] is None else 0.0 for i in range(count)])

    def between_points(p: int, q: int) -> float:
        if data.kernel is not None:
            return float(data.kernel[p, q] / data.kernel_variance)
        scaled = (data.points[[p]] - data.points[[q]]) / data.extent / lengths
        return float(Matern(1.0, nu=1.5)(scaled, np.zeros((1, 2)))[0, 0])

    return B, constants, between_points, np.exp(theta)


def naive_log_likelihood(
    data: TaskData, theta: np.ndarray, shifts: np.ndarray, scales: np.ndarray
) -> float:
    """Return log p(u given theta) up to a constant, one entry of the covariance after the other."""
    B, constants, between_points, noise = naive_parts(data, theta, scales)
    t = len(data.values)
    K = np.empty((t, t))
    u = np.empty(t)
    for p in range(t):
        i = data.tasks[p]
        u[p] = (data.values[p] - shifts[i]) / scales[i]
        for q in range(t):
            j = data.tasks[q]
            K[p, q] = B[i, j] * between_points(p, q)
            if i == j:
                K[p, q] += constants[i]
        K[p, p] += noise[i] if np.isnan(data.noise[p]) else data.noise[p] / scales[i] ** 2
    return float(-0.5 * u @ np.linalg.solve(K, u) - 0.5 * np.linalg.slogdet(K)[1])


def some_theta(data: TaskData, seed: int) -> np.ndarray:
    prior = task_prior(data)
    return prior.mean + 0.4 * prior.sd * np.random.default_rng(seed).normal(size=len(prior.mean))


@pytest.mark.parametrize(("count", "kernel", "covariance", "noise"), CASES)
def test_the_likelihood_is_the_naive_one_and_its_gradient_that_of_differences(
    count: int, kernel: str, covariance: str, noise: str
) -> None:
    data = task_data(count, kernel, covariance, noise)
    shifts = np.array([1.5, 0.7, 2.0])[:count]
    scales = np.array([1.5, 3.0, 0.25])[:count]
    likelihood = TaskLikelihood(data, np.arange(len(data.values)), shifts, scales)
    for seed in range(3):
        theta = some_theta(data, seed)
        value, gradient = likelihood.value_and_gradient(theta)
        assert value == pytest.approx(naive_log_likelihood(data, theta, shifts, scales), rel=1e-6)
        assert likelihood.value(theta) == pytest.approx(value, rel=1e-12)
        for k in range(len(theta)):
            step = 1e-5 * np.eye(len(theta))[k]
            difference = (likelihood.value(theta + step) - likelihood.value(theta - step)) / 2e-5
            assert gradient[k] == pytest.approx(difference, rel=1e-5, abs=1e-5)


def test_the_mode_is_a_maximum_of_the_posterior() -> None:
    data = task_data(2, "learned", "learned", "learned", t=24)
    model = fit_tasks(data, None, 0)
    again = fit_tasks(data, model, 0)
    assert again.log_posterior == pytest.approx(
        model.log_posterior, abs=1e-3
    )  # a warm start finds nothing better
    assert again.log_posterior >= model.log_posterior - 1e-6


# -- correlation matrices
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 5])
def test_any_partial_correlations_give_a_correlation_matrix_and_back(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(20):
        partials = rng.uniform(-0.99, 0.99, count * (count - 1) // 2)
        matrix = correlation_matrix(partials, count)
        np.testing.assert_allclose(np.diag(matrix), 1.0, atol=1e-12)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12
        np.testing.assert_allclose(partial_correlations(matrix), partials, atol=1e-4)


def test_the_prior_expects_a_moderate_positive_correlation_with_the_target() -> None:
    unfitted = unfitted_tasks(task_data(3, "learned", "learned", "learned"))
    covariance = unfitted.covariance[0]
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    assert correlation[0, 1] == pytest.approx(np.tanh(0.5))
    assert correlation[0, 2] == pytest.approx(np.tanh(0.5))
    assert correlation[1, 2] == pytest.approx(np.tanh(0.5) ** 2)  # related through the target alone


def test_units_are_powers_of_two() -> None:
    assert power_of_two(np.array([1.0, 3.0, 1e-6])).tolist() == [1.0, 4.0, 2.0**-20]


# -- the averaged posterior
# --------------------------------------------------------------------------------------------


def a_model(known_kernel: bool = False, members: int = 3) -> TaskModel:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(members + 1, 2, 2))
    lengthscales = rng.uniform(0.2, 1.0, (members + 1, 2))
    family = (
        {"family": None, "lengthscales": None}
        if known_kernel
        else {"family": "matern52", "lengthscales": lengthscales}
    )
    return TaskModel(
        **family,
        covariance=np.einsum("jab,jcb->jac", factors, factors) * np.outer([1.0, 50.0], [1.0, 50.0]),
        noise=rng.uniform(0.01, 0.1, (members + 1, 2)) * [1.0, 2500.0],
        shifts=np.array([0.7, 300.0]),
        known_means=np.array([False, True]),
        means=np.array([0.8, 300.0]),
        units=np.array([1.0, 64.0]),
        transform=OutputTransform(0.7, 2.0),
    )


def observations(t: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points with their tasks, and values in the user's units."""
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.random((t, 2)), np.arange(t) % 2])
    return points, np.where(
        points[:, 2] == 0, np.sin(6 * points[:, 0]), 300 + 40 * np.cos(points[:, 1])
    )


def naive_moments(
    model: TaskModel, kernel: Any, points: np.ndarray, y: np.ndarray, at: np.ndarray, row: int
) -> tuple[list[float], list[float]]:
    """Return mean and variance of a member at points of any task, in the user's units, entry by
    entry."""

    def covariance(p: np.ndarray, q: np.ndarray) -> float:
        i = int(p[2])
        j = int(q[2])
        entry = model.covariance[row][i, j] * float(kernel(p[None, :2], q[None, :2])[0, 0])
        if i == j and not model.known_means[i]:
            entry += CONSTANT * model.covariance[row][i, i] * float(kernel.diag(p[None, :2])[0])
        return entry

    t = len(points)
    K = np.array([[covariance(p, q) for q in points] for p in points])
    for p in range(t):
        K[p, p] += model.noise[row][int(points[p, 2])]
    residuals = y - model.shifts[points[:, 2].astype(int)]
    means = []
    variances = []
    for x in at:
        across = np.array([covariance(x, p) for p in points])
        means.append(float(model.shifts[int(x[2])] + across @ np.linalg.solve(K, residuals)))
        variances.append(float(covariance(x, x) - across @ np.linalg.solve(K, across)))
    return means, variances


@pytest.mark.parametrize("known_kernel", [False, True])
def test_the_mixture_has_the_moments_of_its_members_by_the_naive_formulas(
    known_kernel: bool,
) -> None:
    model = a_model(known_kernel)
    points, y = observations(14)
    sites = np.column_stack([np.random.default_rng(1).random((9, 2)), np.zeros(9)])
    others = np.column_stack([sites[:, :2], np.ones(9)])
    z = y / model.units[points[:, 2].astype(int)]
    for first in (0, 5, 14):
        ensemble = TaskEnsemble(model, sites, KNOWN if known_kernel else None, 14)
        ensemble.condition(points[:first], z[:first], np.zeros(first), np.ones(first, bool))
        for i in range(first, 14):
            ensemble.append(points[i], float(z[i]), 0.0, True)
        for member, row in enumerate((1, 2, 3)):
            kernel = KNOWN if known_kernel else Matern(model.lengthscales[row], nu=2.5)
            means, variances = naive_moments(model, kernel, points, y, sites, row)
            np.testing.assert_allclose(ensemble.means[member], means, rtol=1e-6)
            np.testing.assert_allclose(ensemble.variances[member], variances, rtol=1e-6)
            means, variances = naive_moments(model, kernel, points, y, others, row)
            found = ensemble.member_moments(others)
            np.testing.assert_allclose(64.0 * found[0][member], means, rtol=1e-6)
            np.testing.assert_allclose(64.0**2 * found[1][member], variances, rtol=1e-6)


class Coregionalised(Kernel):
    """B[i, j] k(x, x') as a kernel of scikit-learn; the task is the last column."""

    def __init__(self, base: Kernel, covariance: Any) -> None:
        self.base = base
        self.covariance = covariance

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        return []

    def __call__(
        self, X: np.ndarray, Y: np.ndarray | None = None, eval_gradient: bool = False
    ) -> np.ndarray:
        Y = X if Y is None else Y
        between = np.asarray(self.covariance)[X[:, -1].astype(int)][:, Y[:, -1].astype(int)]
        return between * self.base(X[:, :-1], Y[:, :-1])

    def diag(self, X: np.ndarray) -> np.ndarray:
        return np.diag(self.covariance)[X[:, -1].astype(int)] * self.base.diag(X[:, :-1])

    def is_stationary(self) -> bool:
        return False


def test_the_most_probable_model_is_that_of_scikit_learn_with_the_same_kernel() -> None:
    study = tv.Study(LINE, tv.Maximize(), kernel=tv.Learned(marginalise=False), tasks=PAIR)
    rng = np.random.default_rng(4)
    for i in range(16):
        row = int(rng.integers(41))
        task = PAIR.names[i % 2]
        value = np.sin(5 * LINE.points[row, 0])
        study.tell(
            LINE.point(row), value if i % 2 == 0 else 1000 + 200 * value + rng.normal(), task=task
        )
    tasks = study.learned_tasks
    assert tasks is not None
    records = study.measurement_records()
    index = np.array([PAIR.names.index(record.task) for record in records])
    X = np.column_stack([[record.point["x"] for record in records], index])
    means = np.array(tasks.mean)
    regressor = GaussianProcessRegressor(
        Coregionalised(study.kernel, tasks.covariance),
        alpha=np.array(tasks.noise)[index],
        optimizer=None,
    )
    regressor.fit(X, np.array([record.value for record in records]) - means[index])
    expected, sd = regressor.predict(np.column_stack([LINE.points, np.zeros(41)]), return_std=True)
    mean, own_sd = study.predict(LINE.points)
    np.testing.assert_allclose(mean, expected + means[0], rtol=1e-5)
    np.testing.assert_allclose(own_sd, sd, rtol=1e-3)


def test_the_model_of_a_fixed_covariance_is_that_of_botorch() -> None:
    torch = pytest.importorskip(
        "torch", reason="needs botorch, which is large: pip install 'truvar[botorch]'"
    )
    gpytorch = pytest.importorskip(
        "gpytorch", reason="needs botorch, which is large: pip install 'truvar[botorch]'"
    )
    models = pytest.importorskip(
        "botorch.models", reason="needs botorch, which is large: pip install 'truvar[botorch]'"
    )
    model = replace(
        a_model(), known_means=np.array([True, True]), shifts=np.zeros(2), units=np.ones(2)
    )
    points, y = observations(14)
    tasks = points[:, 2].astype(int)
    y = y - np.array([0.0, 300.0])[tasks]
    sites = np.column_stack([np.random.default_rng(1).random((9, 2)), np.zeros(9)])
    peer = models.MultiTaskGP(
        torch.tensor(points),
        torch.tensor(y)[:, None],
        task_feature=-1,
        train_Yvar=torch.tensor(model.noise[1][tasks])[:, None],
        mean_module=gpytorch.means.ZeroMean(),
        outcome_transform=None,
    )
    within = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2, active_dims=[0, 1]).double()
    within.lengthscale = torch.tensor(model.lengthscales[1])
    between = gpytorch.kernels.IndexKernel(num_tasks=2, rank=2, active_dims=[2]).double()
    between.covar_factor.data = torch.tensor(np.linalg.cholesky(model.covariance[1]))
    between.raw_var.data = torch.full(
        (2,), -60.0, dtype=torch.float64
    )  # no variance beyond that of the factor
    peer.covar_module = within * between  # instead of its own, which scales the covariance
    posterior = peer.posterior(torch.tensor(sites[:, :2]), output_indices=[0])
    ensemble = TaskEnsemble(model, sites, None, 14)
    ensemble.condition(points, y, np.zeros(14), np.ones(14, bool))
    np.testing.assert_allclose(
        ensemble.means[0], posterior.mean.detach().numpy().ravel(), rtol=1e-5
    )
    np.testing.assert_allclose(
        ensemble.variances[0], posterior.variance.detach().numpy().ravel(), rtol=1e-4
    )


def test_a_fitted_model_survives_storage_to_the_last_bit() -> None:
    for kernel, covariance in (("learned", "learned"), ("given", "learned"), ("learned", "given")):
        fitted = fit_tasks(task_data(2, kernel, covariance, "learned"), None, 0)
        restored = deserialize(serialize(fitted))
        assert isinstance(restored, TaskModel)
        for name in (
            "lengthscales",
            "covariance",
            "noise",
            "shifts",
            "known_means",
            "means",
            "units",
        ):
            assert np.array_equal(getattr(restored, name), getattr(fitted, name)), name
        assert (restored.transform, restored.outliers) == (fitted.transform, fitted.outliers)
        assert restored.log_posterior == fitted.log_posterior


# -- recovery
# --------------------------------------------------------------------------------------------------


def drawn(correlation: float, seed: int, t: int = 100) -> TaskData:
    """Return values of two tasks at different points, the second in another unit, with noise of
    0.1 of each."""
    rng = np.random.default_rng(seed)
    points = rng.random((t, 1))
    tasks = np.arange(t) % 2
    lower = np.linalg.cholesky(Matern(0.06, nu=2.5)(points) + 1e-9 * np.eye(t))
    own = lower @ rng.standard_normal(t)
    other = correlation * own + np.sqrt(1 - correlation**2) * (lower @ rng.standard_normal(t))
    values = np.where(tasks == 0, own, other) + 0.1 * rng.standard_normal(t)
    return TaskData(
        points=points,
        tasks=tasks,
        values=np.where(tasks == 0, values, 5000 + 300 * values),
        noise=np.full(t, np.nan),
        learn_noise=True,
        extent=np.ones(1),
        spacing=np.full(1, 1e-3),
        means=(None, None),
        family="matern52",
    )


def correlations(model: TaskModel) -> np.ndarray:
    covariance = model.covariance
    return covariance[:, 0, 1] / np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])


@pytest.mark.parametrize("truth", [-0.9, 0.0, 0.9])
def test_sign_and_size_of_a_correlation_are_recovered(truth: float) -> None:
    fits = [fit_tasks(drawn(truth, seed), None, seed) for seed in range(4)]
    modes = np.array([correlations(model)[0] for model in fits])
    assert np.abs(np.median(modes) - truth) < 0.2
    if truth != 0:
        assert (np.sign(modes) == np.sign(truth)).all()
        assert np.abs(modes).min() > 0.6
    for model in fits:
        sampled = correlations(model)[1:]
        assert sampled.min() - 0.15 < truth < sampled.max() + 0.15
        assert np.sqrt(model.noise[0]) == pytest.approx([0.1, 30.0], rel=0.6)
        assert model.means[1] == pytest.approx(5000, abs=600)
        assert model.units[1] in (128.0, 256.0, 512.0)  # 300, to a factor of about two


def test_few_values_leave_the_correlation_open() -> None:
    few = correlations(fit_tasks(drawn(0.9, 0, t=8), None, 0))[1:]
    many = correlations(fit_tasks(drawn(0.9, 0), None, 0))[1:]
    assert few.std() > 3 * many.std()


def test_a_task_without_values_has_the_prior_correlation_and_the_unit_of_the_target() -> None:
    whole = drawn(0.9, 0, t=30)
    target = whole.tasks == 0
    data = TaskData(**{**vars(whole), "points": whole.points[target], "tasks": whole.tasks[target]})
    object.__setattr__(data, "values", whole.values[target])
    object.__setattr__(data, "noise", whole.noise[target])
    model = fit_tasks(data, None, 0)
    assert correlations(model)[0] == pytest.approx(np.tanh(0.5), abs=1e-3)
    assert correlations(model)[1:].std() > 0.3
    assert model.units[1] == 1.0


def test_gross_errors_are_found_in_each_task_by_itself() -> None:
    values = np.concatenate([np.linspace(0, 1, 10), 1e6 + np.linspace(0, 1, 10)])
    noise = np.full(20, np.nan)

    def outliers() -> tuple[int, ...]:
        own = {
            "points": np.zeros((20, 2)),
            "tasks": np.repeat([0, 1], 10),
            "values": values.copy(),
            "noise": noise,
        }
        return task_outliers(replace(task_data(2, "learned", "learned", "learned"), **own))

    assert outliers() == ()
    values[13] = 0.0
    assert outliers() == (13,)
    values[4] = 1e6
    assert outliers() == (4, 13)
    noise[4] = 0.0  # given as exact
    assert outliers() == (13,)
