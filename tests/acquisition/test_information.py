"""ITL and BES against their definitions: conditioning on the targets, and integration over y."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import entr, ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.algorithm.selection import policy_context

X = np.linspace(0, 1, 25)[:, None]
KERNEL = Matern(0.2, nu=2.5)
NOISE = 0.01
WHERE = [3, 12, 20]
Y = np.array([0.4, -0.3, 0.7])


def study(policy, goal, noise=NOISE, **options):
    made = tv.Study(
        tv.Domain.grid(x=X[:, 0]),
        goal,
        kernel=KERNEL,
        mean=0.0,
        noise=noise,
        policy=policy,
        **options,
    )
    for row, y in zip(WHERE, Y, strict=True):
        made.tell({"x": X[row, 0]}, y, level=0 if isinstance(noise, tv.NoiseLevels) else None)
    return made


def posterior(noise=NOISE):
    inverse = np.linalg.inv(KERNEL(X[WHERE]) + noise * np.eye(len(WHERE)))
    across = KERNEL(X, X[WHERE])
    return across @ inverse @ Y, KERNEL(X) - across @ inverse @ across.T


def side_entropy(p):
    return entr(p) + entr(1 - p)


@pytest.mark.parametrize("goal", [tv.LevelSet(0.2), tv.Maximize()], ids=["level set", "optimum"])
def test_itl_is_the_information_about_the_undecided_points(goal):
    made = study(tv.ITL(), goal)
    targets = np.flatnonzero(policy_context(made._learner, n_asked=0).targets)
    assert len(targets) > 1
    _, covariance = posterior()
    among = covariance[np.ix_(targets, targets)] + 1e-12 * np.eye(len(targets))
    across = covariance[:, targets]
    left = np.diag(covariance) - np.einsum("ij,ji->i", across, np.linalg.solve(among, across.T))
    wanted = 0.5 * np.log((np.diag(covariance) + NOISE) / (np.maximum(left, 0) + NOISE))
    np.testing.assert_allclose(made.gains(), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.3, 5.0])
def test_bes_is_the_information_about_the_side_of_its_own_place(noise):
    made = study(tv.BES(), tv.LevelSet(0.2), noise)
    mean, covariance = posterior(noise)
    for row in range(0, len(X), 4):
        mu = mean[row]
        variance = covariance[row, row]
        total = np.sqrt(variance + noise)
        left = np.sqrt(variance * noise) / total

        def after(z, mu=mu, variance=variance, total=total, left=left):
            moved = mu + variance / total * z
            return norm.pdf(z) * side_entropy(ndtr((moved - 0.2) / left))

        wanted = (
            side_entropy(ndtr((mu - 0.2) / np.sqrt(variance)))
            - quad(after, -9, 9, limit=500, points=[(0.2 - mu) * total / variance])[0]
        )
        assert made.gains()[row] == pytest.approx(wanted, abs=1e-6)


def test_an_exact_value_tells_its_own_side_altogether():
    made = study(tv.BES(), tv.LevelSet(0.2), noise=0.0)
    mean, covariance = posterior(1e-12)
    sd = np.sqrt(np.maximum(np.diag(covariance), 0))
    unmeasured = np.setdiff1d(np.arange(len(X)), WHERE)
    wanted = side_entropy(ndtr((mean[unmeasured] - 0.2) / sd[unmeasured]))
    np.testing.assert_allclose(made.gains()[unmeasured], wanted, atol=1e-6)


@pytest.mark.parametrize("policy", [tv.ITL(per_cost=True), tv.BES(per_cost=True)])
def test_precise_values_tell_more_and_are_chosen_where_they_are_worth_their_cost(policy):
    levels = {"noise": tv.NoiseLevels([0.5, 0.01], [1.0, 1.1])}
    assert study(policy, tv.LevelSet(0.2), **levels).ask().level == 1
    levels = {"noise": tv.NoiseLevels([0.5, 0.49], [1.0, 100.0])}
    assert study(policy, tv.LevelSet(0.2), **levels).ask().level == 0


def test_a_sample_of_the_targets_is_enough_to_find_a_good_point():
    whole = study(tv.ITL(), tv.LevelSet(0.2)).gains()
    sampled = study(tv.ITL(representers=6), tv.LevelSet(0.2)).gains()
    assert whole[int(np.argmax(sampled))] > 0.8 * whole.max()


@pytest.mark.parametrize("policy", ["itl", "bes", "itl/cost", "bes/cost"])
def test_both_reach_a_good_answer_by_name(policy):
    truth = np.sin(9 * X[:, 0])
    made = tv.Study(
        tv.Domain.grid(x=X[:, 0]), tv.LevelSet(0.5), kernel=KERNEL, noise=1e-4, policy=policy
    )
    made.run(lambda point: float(np.sin(9 * point["x"])), steps=12)
    assert made.result().f1(truth) > 0.9
