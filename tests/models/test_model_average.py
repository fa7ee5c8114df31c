"""The average over smoothness, hyperparameters and scale agrees with direct formulas and quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.models._conditions import Conditions
from truvar.models.ensemble import CONSTANT, EnsembleModel
from truvar.models.hyperposterior import (
    HyperPrior,
    MarginalLikelihood,
    find_mode,
    sample_posterior,
)
from truvar.models.model_average import (
    FAMILIES,
    MIN_FAMILY_WEIGHT,
    N_MEMBERS,
    _scaled,
    affordable_members,
    freeze_member,
    tempered,
)
from truvar.models.transforms import OutputTransform

X = np.array([[0.05], [0.2], [0.45], [0.7], [0.9]])
Z = np.array([0.3, 0.9, -0.4, -0.8, 0.5])
QUERY = np.linspace(0, 1, 9)[:, None]
SHAPES: dict[str, Any] = {
    "matern12": Matern(0.3, nu=0.5),
    "matern32": Matern(0.3, nu=1.5),
    "matern52": Matern(0.3, nu=2.5),
    "rbf": RBF(0.3),
}
LINE = tv.Domain.grid(x=np.linspace(0, 1, 33))


def model(family: str = "matern52", noise: float | None = 0.02) -> EnsembleModel:
    return EnsembleModel(
        family,
        np.array([[0.3]]),
        np.array([1.7]),
        None if noise is None else np.array([noise]),
        OutputTransform(shift=0.1),
    )


def conditions(learned: list[bool] | None = None, mean: float | None = None) -> Conditions:
    is_learned = np.ones(5, dtype=bool) if learned is None else np.array(learned)
    noise = np.array([0.01, 0.02, 0.03, 0.04, 0.05])
    return Conditions(X, Z, noise, is_learned, mean, None)


# -- members
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [None, 0.4])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_is_the_posterior_of_the_direct_formulas(family: str, mean: float | None) -> None:
    member = freeze_member(model(family), conditions(mean=mean))
    constant = CONSTANT if mean is None else 0.0
    shift = 0.1 if mean is None else mean

    def kernel(points: Any, others: Any) -> Any:
        return 1.7 * (SHAPES[family](points, others) + constant)

    inverse = np.linalg.inv(kernel(X, X) + 0.02 * np.eye(5))
    across = kernel(QUERY, X)
    covariance = kernel(QUERY, QUERY) - across @ inverse @ across.T
    found_mean, variance = member.predict(QUERY)
    np.testing.assert_allclose(found_mean, shift + across @ inverse @ (Z - shift), atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(covariance), atol=1e-9)
    draws = member.draw(QUERY, np.arange(9), 20_000, np.random.default_rng(0))
    # 45 entries, standard errors of at most sqrt(2 / 20,000) variances: six of them.
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.06 * variance.max())


def test_given_noise_is_not_learned() -> None:
    learned = [True, False, True, False, True]
    member = freeze_member(model(), conditions(learned))
    noise = np.diag(member.lower @ member.lower.T) - member.prior_variance(X)
    np.testing.assert_allclose(noise, [0.02, 0.02, 0.02, 0.04, 0.02], atol=1e-9)


def test_the_scale_is_that_of_signal_and_learned_noise_only() -> None:
    learned = [True, False, True, False, True]
    plain = freeze_member(model(), conditions(learned))
    scaled = freeze_member(_scaled(model(), 0, 3.0), conditions(learned))
    np.testing.assert_allclose(scaled.prior_variance(X), 9.0 * plain.prior_variance(X))
    noise = np.diag(scaled.lower @ scaled.lower.T) - scaled.prior_variance(X)
    np.testing.assert_allclose(noise, [0.18, 0.02, 0.18, 0.04, 0.18], atol=1e-9)


def test_without_given_noise_the_scale_leaves_the_mean_as_it_is() -> None:
    plain = freeze_member(model(), conditions())
    scaled = freeze_member(_scaled(model(), 0, 3.0), conditions())
    np.testing.assert_allclose(scaled.predict(QUERY)[0], plain.predict(QUERY)[0], atol=1e-9)
    np.testing.assert_allclose(scaled.predict(QUERY)[1], 9.0 * plain.predict(QUERY)[1], atol=1e-9)


# -- evidence
# ------------------------------------------------------------------------------------------------


def sparse(t: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    points = np.sort(rng.random((t, 1)), axis=0)
    values = np.sin(6 * points[:, 0]) + 0.1 * rng.standard_normal(t)
    return points, (values - values.mean()) / values.std()


@pytest.mark.parametrize("smoothness", [0, 1, 5])
def test_the_evidence_is_that_of_quadrature(smoothness: int) -> None:
    """Given noise, one length-scale and the signal: two dimensions, on a grid."""
    points, values = sparse()
    likelihood = MarginalLikelihood(points, values, smoothness, np.full(len(values), 0.02))
    prior = HyperPrior.default(1, False, False)
    axes = [np.linspace(prior.low[k], prior.high[k], 81) for k in range(2)]
    log_density = np.array([[likelihood.value(np.array([a, b])) for b in axes[1]] for a in axes[0]])
    weights = [norm.pdf(axes[k], prior.mean[k], prior.sd[k]) for k in range(2)]
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    top = log_density.max()
    expected = np.log(weights[0] @ np.exp(log_density - top) @ weights[1] * cell) + top
    mode = find_mode(likelihood, prior, [prior.mean])
    found = sample_posterior(likelihood, prior, mode, 32, 256, 3, seed=1)
    assert found.log_evidence == pytest.approx(expected, abs=0.1)


def test_the_evidence_of_a_narrow_prior_is_the_marginal_likelihood_of_scikit_learn() -> None:
    points, values = sparse()
    centre = np.array([np.log(0.4), np.log(1.2)])
    narrow = HyperPrior(centre, np.full(2, 1e-3), centre - 0.01, centre + 0.01)
    likelihood = MarginalLikelihood(points, values, 5, np.full(len(values), 0.02))
    found = sample_posterior(likelihood, narrow, centre, 16, 64, 2, seed=0)
    kernel = ConstantKernel(1.44) * (Matern(0.4, nu=2.5) + ConstantKernel(CONSTANT))
    reference = GaussianProcessRegressor(kernel, alpha=0.02, optimizer=None).fit(points, values)
    expected = reference.log_marginal_likelihood_value_ + 0.5 * len(values) * np.log(2 * np.pi)
    assert found.log_evidence == pytest.approx(expected, abs=0.1)


def test_weights_are_powers_of_the_evidence() -> None:
    weights = tempered(np.array([-3.0, -5.0, -9.0]))
    powers = np.exp(np.array([-3.0, -5.0, -9.0])) ** 0.4
    np.testing.assert_allclose(weights, powers / powers.sum())
    np.testing.assert_allclose(tempered(np.array([-4e5, -4e5])), 0.5)


# -- studies
# -------------------------------------------------------------------------------------------------


def study_of(
    rows: Any, unit: float = 1.0, extent: float = 1.0, noise: Any = None, **settings: Any
) -> tv.Study:
    domain = tv.Domain.grid(x=extent * LINE.points[:, 0])
    study = tv.Study(domain, tv.LevelSet(0.3 * unit), transform="none", seed=0, **settings)
    for row in rows:
        x = float(LINE.points[row, 0])
        value = unit * (np.sin(6 * x) + 0.05 * np.cos(91 * x))
        study.tell(domain.point(int(row)), value, noise=noise)
    return study


def average(study: tv.Study) -> Any:
    return study._learner.surrogate.freeze_average()


def test_the_shares_add_up_and_no_family_of_them_is_negligible() -> None:
    posterior = average(study_of(range(0, 33, 3)))
    assert posterior.shares.sum() == pytest.approx(1.0)
    assert abs(len(posterior.members) - N_MEMBERS) <= len(FAMILIES)
    assert posterior.shares.min() > 0.1 * MIN_FAMILY_WEIGHT / N_MEMBERS


def test_values_given_as_exact_are_exact_in_every_member() -> None:
    study = study_of(range(0, 33, 3), noise=0.0)
    values = study.measurements["value"].to_numpy()
    means, variances = average(study).predict(LINE.points[::3])
    np.testing.assert_allclose(means, np.broadcast_to(values, means.shape), atol=1e-5)
    assert variances.max() < 1e-6


def test_the_average_is_a_function_of_the_measurements() -> None:
    once = study_of(range(0, 33, 3)).result().probability
    np.testing.assert_array_equal(study_of(range(0, 33, 3)).result().probability, once)


@pytest.mark.parametrize(("unit", "extent"), [(2.0**20, 1.0), (1.0, 2.0**-12)])
def test_probabilities_have_no_unit(unit: float, extent: float) -> None:
    plain = study_of(range(0, 33, 3)).result().probability
    scaled = study_of(range(0, 33, 3), unit, extent).result().probability
    np.testing.assert_allclose(scaled, plain, atol=1e-6)


def test_the_order_of_the_measurements_hardly_matters() -> None:
    """The mode is searched for from fits of the first measurements, to the precision of a search."""
    rows = np.arange(0, 33, 3)
    plain = study_of(rows).result().probability
    permuted = study_of(np.random.default_rng(0).permutation(rows)).result().probability
    np.testing.assert_allclose(permuted, plain, atol=0.02)


def test_large_domains_have_fewer_members() -> None:
    assert affordable_members(2500, 60) == N_MEMBERS
    assert 4 <= affordable_members(10**6, 500) < 8
    assert affordable_members(100, 0) == N_MEMBERS
