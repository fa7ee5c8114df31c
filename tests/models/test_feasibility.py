"""The probability that a measurement succeeds, against a naive transcription and on cases with a
known answer."""

import numpy as np
import pytest
from scipy.stats import norm

from truvar.models import feasibility
from truvar.models.feasibility import FeasibilityModel


def naive_kernel(a: np.ndarray, b: np.ndarray, lengthscale: float, deviation: float) -> float:
    r = np.sqrt(5.0) * np.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True))) / lengthscale
    return feasibility.CONSTANT_VARIANCE + deviation**2 * (1 + r + r**2 / 3) * np.exp(-r)


def naive_laplace(points, labels, x, lengthscale, deviation, success):
    """Return evidence and P(success) at x: Newton's method and every formula of the book with
    inverses."""
    t = len(labels)
    prior = np.array([[naive_kernel(a, b, lengthscale, deviation) for b in points] for a in points])
    mean = norm.ppf(success) * np.sqrt(1 + feasibility.CONSTANT_VARIANCE + deviation**2)
    f = np.full(t, mean)
    for _ in range(40):
        gradient = np.array(
            [y * norm.pdf(v) / norm.cdf(y * v) for y, v in zip(labels, f, strict=True)]
        )
        curvature = np.array(
            [
                (norm.pdf(v) / norm.cdf(y * v)) ** 2 + y * v * norm.pdf(v) / norm.cdf(y * v)
                for y, v in zip(labels, f, strict=True)
            ]
        )
        inverse = np.linalg.inv(np.linalg.inv(prior) + np.diag(curvature))
        f = mean + inverse @ (curvature * (f - mean) + gradient)
    gradient = np.array([y * norm.pdf(v) / norm.cdf(y * v) for y, v in zip(labels, f, strict=True)])
    likelihood = sum(np.log(norm.cdf(y * v)) for y, v in zip(labels, f, strict=True))
    determinant = np.linalg.slogdet(np.eye(t) + prior @ np.diag(curvature))[1]
    evidence = likelihood - 0.5 * (f - mean) @ np.linalg.inv(prior) @ (f - mean) - 0.5 * determinant
    across = np.array([naive_kernel(x, a, lengthscale, deviation) for a in points])
    variance = naive_kernel(x, x, lengthscale, deviation)
    variance -= across @ np.linalg.inv(prior + np.diag(1 / curvature)) @ across
    return evidence, norm.cdf((mean + across @ gradient) / np.sqrt(1 + variance))


@pytest.mark.parametrize("seed", range(3))
def test_the_classifier_agrees_with_a_naive_transcription(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(9, 2))
    succeeded = rng.uniform(size=9) < 0.6
    x = rng.uniform(size=2)
    total = 0.0
    evidences = []
    probabilities = []
    labels = np.where(succeeded, 1.0, -1.0)
    often = feasibility.PRIOR_SUCCESS
    seldom = feasibility.MOSTLY_FAILING_SUCCESS
    region = feasibility.REGION_DEVIATION
    settings = []
    for lengthscale in feasibility.LENGTHSCALES:
        settings.append(([0, 1], lengthscale, feasibility.CHANCE_DEVIATION, often))
        settings.append(([0, 1], lengthscale, region, often))
        settings.append(([0, 1], lengthscale, region, seldom))
    for k in range(2):  # a strip: one column counts
        settings.append(([k], feasibility.STRIP_LENGTHSCALE, region, often))
        settings.append(([k], feasibility.STRIP_LENGTHSCALE, region, seldom))
    for own, lengthscale, deviation, success in settings:
        evidence, probability = naive_laplace(
            points[:, own], labels, x[own], lengthscale, deviation, success
        )
        if success == seldom:
            evidence += np.log(feasibility.MOSTLY_FAILING_ODDS)
        evidences.append(evidence)
        probabilities.append(probability)
    weights = np.exp(np.array(evidences) - max(evidences))
    weights /= weights.sum()
    weights[weights < feasibility.MIN_EVIDENCE_SHARE] = 0.0
    total = weights @ probabilities / weights.sum()
    assert FeasibilityModel.fit(points, succeeded).probability(x[None, :])[0] == pytest.approx(
        total, abs=1e-7
    )


def test_a_region_that_fails_is_learned():
    rng = np.random.default_rng(1)
    points = rng.uniform(size=(60, 2))
    model = FeasibilityModel.fit(points, points[:, 0] < 0.7)
    inside = np.column_stack([np.full(9, 0.9), np.linspace(0.1, 0.9, 9)])
    outside = np.column_stack([np.full(9, 0.3), np.linspace(0.1, 0.9, 9)])
    assert model.probability(inside).max() < 0.3
    assert model.probability(outside).min() > 0.8


def test_failures_that_have_nothing_to_do_with_the_place_leave_the_probability_flat():
    rng = np.random.default_rng(2)
    points = rng.uniform(size=(100, 2))
    model = FeasibilityModel.fit(points, rng.uniform(size=100) > 0.2)
    probability = model.probability(rng.uniform(size=(400, 2)))
    assert abs(probability.mean() - 0.8) < 0.1
    assert np.ptp(probability) < 0.25


def test_many_labels_are_thinned_and_points_are_predicted_in_parts(monkeypatch):
    rng = np.random.default_rng(3)
    points = rng.uniform(size=(80, 1))
    succeeded = points[:, 0] < 0.5
    x = np.linspace(0, 1, 50)[:, None]
    whole = FeasibilityModel.fit(points, succeeded).probability(x)
    monkeypatch.setattr(feasibility, "CHUNK", 7)
    np.testing.assert_allclose(
        FeasibilityModel.fit(points, succeeded).probability(x), whole, rtol=1e-12
    )
    monkeypatch.setattr(feasibility, "MAX_LABELS", 40)
    thinned = FeasibilityModel.fit(points, succeeded)
    assert len(thinned.members[0].points) == 40
    assert np.abs(thinned.probability(x) - whole).mean() < 0.1
