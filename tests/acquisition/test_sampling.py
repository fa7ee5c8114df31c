"""Thompson sampling: against a transcription with `inv` and loops, and the frequencies of its
choices."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import truvar as tv
from truvar.exceptions import InvalidArgumentError

KERNEL = ConstantKernel(1.5) * Matern(0.3, nu=2.5)


def study_with_data(goal, policy, n=12, noise=0.05, pending=0, **options):
    """A study with three observations and some pending points."""
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, n))
    study = tv.Study(domain, goal, kernel=KERNEL, mean=0.3, noise=noise, policy=policy, **options)
    for index, y in ((0, 0.1), (n // 2, 1.2), (n - 1, -0.4)):
        study.tell(domain.point(index), y)
    if pending:
        study.ask(pending)
    return study


def naive_posterior(study, noise):
    """Mean and covariance on the domain; pending points are observations of the mean."""
    x = study.domain.points
    rows = [int(i) for i in study.measurements["index"]]
    y = study.measurements["value"].to_numpy()
    for suggestion in study.pending:
        inverse = np.linalg.inv(KERNEL(x[rows]) + noise * np.eye(len(rows)))
        mean = 0.3 + KERNEL(x[[suggestion.index]], x[rows]) @ inverse @ (y - 0.3)
        rows = [*rows, suggestion.index]
        y = np.append(y, mean)
    inverse = np.linalg.inv(KERNEL(x[rows]) + noise * np.eye(len(rows)))
    across = KERNEL(x, x[rows])
    return 0.3 + across @ inverse @ (y - 0.3), KERNEL(x) - across @ inverse @ across.T


def naive_draw(mean, covariance, normal, sign):
    """mu + L z by a Cholesky factorisation that always continues with the largest variance that
    is left, of equal ones with the first."""
    n = len(mean)
    left = covariance + np.diag(1e-11 * np.diag(covariance).max() * np.linspace(1.0, 0.0, n))
    draw = sign * mean
    for k in range(n):
        pivot = int(np.argmax(np.diag(left)))
        if left[pivot, pivot] < 1e-10 * np.diag(covariance).max():
            break
        column = left[:, pivot] / sqrt(left[pivot, pivot])
        draw = draw + column * normal[k]
        for i in range(n):
            for j in range(n):
                left[i, j] = left[i, j] - column[i] * column[j]
    return draw


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()], ids=["maximize", "minimize"])
@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_the_score_is_the_naive_draw(goal, pending, noise):
    study = study_with_data(goal, tv.Thompson(), noise=noise, pending=pending, seed=3)
    context = study.policy_context()
    normal = np.random.default_rng(context.seed).standard_normal(12)
    expected = naive_draw(*naive_posterior(study, noise), normal, goal.sign)
    np.testing.assert_allclose(study.gains(), expected, atol=1e-7)
    assert study.ask().index == int(np.argmax(expected))


def choices(study, policy, count):
    """The rows that the policy chooses in `count` draws of its own."""
    context = study.policy_context()
    candidates = study.candidates()
    rows = []
    for seed in range(count):
        score = policy.score(replace(context, seed=(seed, 0), cache={}), candidates)
        rows.append(int(np.argmax(score)))
    return np.bincount(rows, minlength=len(candidates.points))


def test_a_point_is_chosen_with_the_probability_that_it_is_the_best():
    """Pearson's test of 1,500 choices; with other seeds it would raise a false alarm in 0.1 % of
    the cases."""
    study = study_with_data(tv.Maximize(), tv.Thompson(), n=8)
    mean, covariance = naive_posterior(study, 0.05)
    draws = np.random.default_rng(0).multivariate_normal(
        mean, covariance, size=500_000, method="cholesky"
    )
    probability = np.bincount(draws.argmax(axis=1), minlength=8) / len(draws)
    counts = choices(study, tv.Thompson(), 1500)
    frequent = probability * 1500 >= 5  # the others together are one class
    observed = np.append(counts[frequent], counts[~frequent].sum())
    expected = 1500 * np.append(probability[frequent], probability[~frequent].sum())
    observed = observed[expected > 0]
    expected = expected[expected > 0]
    assert len(expected) >= 4
    assert ((observed - expected) ** 2 / expected).sum() < chi2.ppf(0.999, len(expected) - 1)


def test_every_suggestion_of_a_batch_has_its_own_draw_given_the_points_before():
    study = study_with_data(tv.Maximize(), tv.Thompson(), n=40, noise=1e-4)
    seeds = []
    for _ in range(4):
        context = study.policy_context()
        seeds.append(context.seed)
        study.ask()
    assert len(set(seeds)) == 4
    context = study.policy_context()
    rows = [suggestion.index for suggestion in study.pending]
    mean = context.posterior.mean[rows]
    np.testing.assert_allclose(
        study.gains()[rows], mean, atol=6 * sqrt(1e-4)
    )  # nothing is left to draw there


def test_one_instance_gives_the_same_draws_as_two():
    policy = tv.Thompson()
    first = [study_with_data(tv.Maximize(), policy, seed=seed).ask(3) for seed in (0, 1, 0)]
    assert [s.index for s in first[0]] == [s.index for s in first[2]]


def test_on_a_large_domain_only_points_of_the_joint_draw_are_chosen():
    policy = tv.Thompson(representers=20)
    study = study_with_data(tv.Maximize(), policy, n=300)
    context = study.policy_context()
    rows = policy.candidate_rows(context, study.candidates())
    assert len(rows) == 20
    assert int(np.argmax(context.moments[0])) in rows
    assert study.ask().index in rows
    others = [
        policy.candidate_rows(replace(context, seed=(seed, 0), cache={}), study.candidates())
        for seed in (1, 2)
    ]
    assert not np.array_equal(*others)  # sampled again for every choice


def test_off_the_representers_the_score_is_the_mean_of_f_given_the_draw():
    policy = tv.Thompson(representers=6)
    study = study_with_data(tv.Minimize(), policy, n=30)
    score = study.gains()
    mean, covariance = naive_posterior(study, 0.05)
    rows = policy.candidate_rows(study.policy_context(), study.candidates())
    weights = np.linalg.solve(covariance[np.ix_(rows, rows)], score[rows] + mean[rows])
    np.testing.assert_allclose(score, -mean + covariance[:, rows] @ weights, atol=1e-6)


def test_with_few_representers_the_choices_are_nearly_those_of_the_joint_draw():
    """Shares of the thirds of the domain in two samples of 300 choices; 0.15 is more than 3.6
    standard errors, which
    one of three shares exceeds by chance in 0.1 % of the cases."""
    study = study_with_data(tv.Maximize(), tv.Thompson(), n=150)
    exact = choices(study, tv.Thompson(), 300)
    reduced = np.zeros(150)
    policy = tv.Thompson(representers=50)
    context = study.policy_context()
    for seed in range(300):
        own = replace(context, seed=(seed, 1), cache={})
        rows = policy.candidate_rows(own, study.candidates())
        reduced[rows[np.argmax(policy.score(own, study.candidates().take(rows)))]] += 1
    thirds = [counts.reshape(3, 50).sum(axis=1) / 300 for counts in (exact, reduced)]
    assert np.abs(thirds[0] - thirds[1]).max() < 0.15


def test_in_a_box_the_draw_is_maximised_between_the_representers():
    study = tv.Study(
        tv.Domain.box(x=(0.0, 1.0), representers=15), tv.Maximize(), kernel=KERNEL, mean=0.0, noise=1e-3,
        policy="thompson", seed=1,
    )  # fmt: skip
    between = 0
    for _ in range(5):
        score = study.gains()
        suggestion = study.ask()
        between += int(np.abs(study.domain.points[:, 0] - suggestion.point["x"]).min() > 1e-6)
        assert suggestion.gain >= score.max() - 1e-9
        study.tell(suggestion, float(np.sin(7 * suggestion.point["x"])))
    assert between >= 3


def test_it_finds_the_maximum():
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 60))
    study = tv.Study(domain, tv.Maximize(), kernel=KERNEL, mean=0.0, noise=1e-4, policy="thompson")
    study.run(lambda point: float(np.sin(8 * point["x"])), steps=25)
    assert study.result().best.point["x"] == pytest.approx(np.pi / 16, abs=0.03)


def test_it_is_not_divided_by_the_cost():
    with pytest.raises(InvalidArgumentError, match="can be negative"):
        tv.Thompson(per_cost=True)


def test_representers_out_of_range_are_an_error():
    with pytest.raises(InvalidArgumentError, match="representers must be >= 2"):
        tv.Thompson(representers=1)
