"""Labels and counts: Laplace's approximation, its evidence, links, and what a label tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import expit, ndtr
from scipy.stats import norm, poisson
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv
from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError
from truvar.models._labels import Labels
from truvar.models._laplace import LaplaceEvidence, approximate
from truvar.models.likelihoods import OUTCOMES, Binary, Count, Outcome

OUTCOMES_TO_TRY = (Binary(), Binary(guess=0.5, lapse=0.02), Count(), Count(exposure=2.5))


@dataclass(frozen=True)
class Logistic(Binary):
    """Labels with the logistic link, as scikit-learn has it; the constant mean is known."""

    constant: ClassVar[float] = 0.0

    def derivatives(self, f: Array, values: Array, exposures: Array) -> tuple[Array, Array, Array]:
        sign = 2.0 * values - 1.0
        share = expit(f)
        return -np.logaddexp(0.0, -sign * f), values - share, share * (1.0 - share)


def sampled(outcome: Outcome, count: int, seed: int = 0) -> Labels:
    """Return outcomes of a wavy function of two coordinates."""
    rng = np.random.default_rng(seed)
    points = rng.random((count, 2))
    f = 1.5 * np.sin(6 * points[:, 0]) + points[:, 1]
    truth = outcome.link().inverse(f)
    exposures = np.full(count, outcome.default_exposure)
    values = np.array([outcome.sample(each, outcome.default_exposure, rng) for each in truth])
    return Labels(points, values, exposures, outcome)


def test_mode_and_evidence_are_those_of_scikit_learn() -> None:
    labels = sampled(Logistic(), 40)
    kernel = ConstantKernel(3.0) * RBF([0.4, 0.8])
    peer = GaussianProcessClassifier(kernel, optimizer=None).fit(labels.points, labels.values)
    found = approximate(labels, kernel(labels.points), 0.0)
    np.testing.assert_allclose(found.mode, peer.base_estimator_.f_cached, atol=1e-4)
    assert found.log_evidence == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-5)
    theta = np.append(np.log([0.4, 0.8]), 0.5 * np.log(3.0))
    value, gradient = LaplaceEvidence(labels, 0.0, 0).value_and_gradient(theta)
    _, expected = peer.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert value == pytest.approx(found.log_evidence, abs=1e-9)
    np.testing.assert_allclose(gradient[:2], expected[1:], atol=1e-4)
    assert gradient[2] == pytest.approx(2 * expected[0], abs=1e-4)  # of the sd, not the variance


@pytest.mark.parametrize("outcome", OUTCOMES_TO_TRY, ids=str)
@pytest.mark.parametrize("smoothness", [0, 1, 3, 5])
def test_the_gradient_of_the_evidence_is_that_of_differences(
    outcome: Outcome, smoothness: int
) -> None:
    labels = sampled(outcome, 25)
    mean = outcome.prior_mean(labels.values, labels.exposures)
    evidence = LaplaceEvidence(labels, mean, smoothness)
    theta = np.array([-0.7, -0.3, 0.2])
    _, gradient = evidence.value_and_gradient(theta)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-5
        difference = (evidence.value(theta + step) - evidence.value(theta - step)) / 2e-5
        assert gradient[k] == pytest.approx(difference, abs=2e-3, rel=1e-3)


@pytest.mark.parametrize("outcome", OUTCOMES_TO_TRY, ids=str)
def test_derivatives_are_those_of_the_log_density(outcome: Outcome) -> None:
    f = np.linspace(-3, 3, 13)
    for y in (0.0, 1.0):
        values = np.full(13, y)
        exposures = np.full(13, outcome.default_exposure)
        log_density, gradient, curvature = outcome.derivatives(f, values, exposures)
        ahead, slope_ahead, _ = outcome.derivatives(f + 1e-5, values, exposures)
        behind, slope_behind, _ = outcome.derivatives(f - 1e-5, values, exposures)
        np.testing.assert_allclose(gradient, (ahead - behind) / 2e-5, atol=1e-6)
        np.testing.assert_allclose(curvature, (slope_behind - slope_ahead) / 2e-5, atol=1e-5)
        truth = outcome.link().inverse(f)
        if isinstance(outcome, Binary):
            np.testing.assert_allclose(np.exp(log_density), truth if y else 1 - truth)
        else:
            np.testing.assert_allclose(
                np.exp(log_density), poisson.pmf(y, outcome.default_exposure * truth)
            )


def test_labels_that_are_far_off_have_finite_derivatives() -> None:
    f = np.array([-60.0, 60.0])
    for outcome in OUTCOMES_TO_TRY:
        for y in (0.0, 1.0):
            found = outcome.derivatives(f, np.full(2, y), np.ones(2))
            assert all(np.isfinite(part).all() for part in found)


@pytest.mark.parametrize("outcome", [Binary(), Binary(guess=0.2), Count()], ids=str)
def test_one_measurement_is_approximated_well(outcome: Outcome) -> None:
    """Brute-force quadrature in one dimension: evidence, mean and sd of f."""
    labels = Labels(np.zeros((1, 1)), np.ones(1), np.ones(1), outcome)
    variance = 1.5

    def density(f: float) -> float:
        log_density = outcome.derivatives(np.array([f]), labels.values, labels.exposures)[0][0]
        return float(np.exp(log_density) * norm.pdf(f, scale=np.sqrt(variance)))

    total = quad(density, -12, 12)[0]
    mean = quad(lambda f: f * density(f), -12, 12)[0] / total
    found = approximate(labels, np.array([[variance]]), 0.0)
    z, noise = found.pseudo_values
    own_mean = variance / (variance + noise[0]) * z[0]
    assert found.mode[0] == pytest.approx(own_mean)
    assert found.log_evidence == pytest.approx(np.log(total), abs=0.06)
    assert own_mean == pytest.approx(mean, abs=0.25)


def test_two_labels_are_approximated_well() -> None:
    """Brute-force quadrature in two dimensions."""
    outcome = Binary()
    labels = Labels(np.zeros((2, 1)), np.array([1.0, 0.0]), np.ones(2), outcome)
    covariance = np.array([[2.0, 1.0], [1.0, 2.0]])
    inverse = np.linalg.inv(covariance)
    constant = 2 * np.pi * np.sqrt(np.linalg.det(covariance))

    def density(a: float, b: float) -> float:
        f = np.array([a, b])
        prior = np.exp(-0.5 * f @ inverse @ f) / constant
        return float(ndtr(a) * ndtr(-b) * prior)

    total = dblquad(density, -7, 7, -7, 7, epsabs=1e-6)[0]
    found = approximate(labels, covariance, 0.0)
    assert found.log_evidence == pytest.approx(np.log(total), abs=0.1)
    assert found.mode[0] == pytest.approx(-found.mode[1])


@pytest.mark.parametrize("outcome", OUTCOMES_TO_TRY, ids=str)
def test_the_mode_is_where_the_gradient_balances_the_prior(outcome: Outcome) -> None:
    labels = sampled(outcome, 30, seed=3)
    covariance = 4.0 * RBF(0.3)(labels.points) + 1e-6 * np.eye(30)
    found = approximate(labels, covariance, 0.3)
    np.testing.assert_allclose(found.mode, 0.3 + covariance @ found.gradient, atol=1e-6)
    # The posterior with the pseudo-values as measurements has its mean there.
    z, noise = found.pseudo_values
    weights = np.linalg.solve(covariance + np.diag(noise), z - 0.3)
    np.testing.assert_allclose(0.3 + covariance @ weights, found.mode, atol=1e-5)


@pytest.mark.parametrize("outcome", [Binary(), Binary(guess=0.5, lapse=0.02)], ids=str)
@pytest.mark.parametrize("mean", [-1.5, 0.0, 2.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 9.0])
def test_a_label_removes_the_variance_that_it_is_said_to(
    outcome: Binary, mean: float, variance: float
) -> None:
    """The expected posterior variance of f after one label, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    f = mean + np.sqrt(variance) * nodes
    left = 0.0
    for y in (0.0, 1.0):
        probability = np.exp(outcome.derivatives(f, np.full(200, y), np.ones(200))[0])
        total = weights @ probability
        centre = weights @ (probability * f) / total
        left += weights @ (probability * (f - centre) ** 2)
    noise = outcome.label_variance(np.array([mean]), np.array([variance]), 1.0)[0]
    assert variance - variance**2 / (variance + noise) == pytest.approx(left, rel=1e-6)


def test_what_a_count_tells_grows_with_rate_and_exposure() -> None:
    variance = np.full(3, 0.5)
    means = np.log([0.5, 1.0, 4.0])
    np.testing.assert_allclose(Count().label_variance(means, variance, 2.0), [1.0, 0.5, 0.125])


@pytest.mark.parametrize("outcome", OUTCOMES_TO_TRY, ids=str)
def test_the_link_is_monotone_and_has_the_moments_of_a_sample(outcome: Outcome) -> None:
    link = outcome.link()
    f = np.linspace(-3, 3, 50)
    values = link.inverse(f)
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose(link.forward(values), f, atol=1e-9)
    low, high = outcome.value_range
    assert link.forward(low - 0.1) == -np.inf
    assert np.isinf(high) or link.forward(high + 0.01) == np.inf
    draws = np.random.default_rng(0).normal(0.4, 0.8, 400_000)
    mean, sd = link.inverse_each(np.array([0.4]), np.array([0.64]))
    assert mean[0] == pytest.approx(link.inverse(draws).mean(), rel=0.01)
    assert sd[0] == pytest.approx(link.inverse(draws).std(), rel=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tv.Binary(guess=1.2), "guess must be a probability"),
        (lambda: tv.Binary(lapse=-0.1), "lapse must be a probability"),
        (lambda: tv.Binary(guess=0.6, lapse=0.4), "guess . lapse must be at most"),
        (lambda: tv.Binary(guess="a"), "guess must be a number"),
        (lambda: tv.Count(exposure=0), "exposure must be > 0"),
        (lambda: tv.Count(exposure=float("nan")), "exposure must be a finite number"),
    ],
)
def test_options_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_outcomes_are_registered_by_name() -> None:
    assert {name: kind.name for name, kind in OUTCOMES.items()} == {
        "binary": "binary",
        "count": "count",
    }
