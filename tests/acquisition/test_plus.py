"""The policy `plus` against plain transcriptions: conditioning by `inv`, integrals by
quadrature, tours by loops."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from tests.reference import compiled
from tests.study.test_properties import EXAMPLES, Problem, observations, problems, tell_all

import truvar as tv
from truvar._numba import ambiguity
from truvar.acquisition import policy_named
from truvar.domain.candidates import ActionSpace

N = 12
NOISE = 0.05
H = 0.3
X = np.linspace(0, 1, N)
KERNEL = ConstantKernel(1.5) * Matern(0.2, nu=2.5)
LEVELS = tv.NoiseLevels(variance=[0.01, 0.3], cost=[4.0, 1.0])
TOLD = ((1, 0.9), (5, -0.2), (9, 0.5))


def study(policy=None, goal=None, **options):
    settings = {"kernel": KERNEL, "mean": 0.1, "noise": NOISE, **options}
    made = tv.Study(
        tv.Domain.grid(x=X), goal or tv.LevelSet(H), policy=policy or tv.Plus(), **settings
    )
    for index, y in TOLD:
        made.tell({"x": X[index]}, y, **({"level": 0} if "level" in options else {}))
    return made


# -- the transcriptions
# ------------------------------------------------------------------------------------------------


def conditioned(covariance, where, noise):
    """The covariance after measuring there: Sigma - Sigma_w (Sigma_ww + noise)^-1 Sigma_w^T."""
    inside = covariance[np.ix_(where, where)] + np.diag(noise)
    return covariance - covariance[:, where] @ np.linalg.inv(inside) @ covariance[where]


Z = np.linspace(-9, 9, 6001)
DENSITY = norm.pdf(Z) * (Z[1] - Z[0])


def ambiguity_reduction(u, rho):
    """p (1 - p) now, less its mean after a measurement that explains the share rho, by its
    definition."""
    now = ndtr(u) * ndtr(-u)
    if rho <= 0 or rho >= 1:
        return now * (rho >= 1)
    moved = (u + sqrt(rho) * Z) / sqrt(1 - rho)
    return now - (ndtr(moved) * ndtr(-moved)) @ DENSITY


def posterior(noises=(NOISE, NOISE, NOISE), pending=()):
    where = [index for index, _ in TOLD]
    prior = KERNEL(X[:, None])
    gram = prior[np.ix_(where, where)] + np.diag(noises)
    mean = 0.1 + prior[:, where] @ np.linalg.inv(gram) @ (np.array([y for _, y in TOLD]) - 0.1)
    return mean, conditioned(prior, [*where, *pending], [*noises, *(NOISE for _ in pending)])


def expected_reductions(mean, covariance, rows, noises):
    """Candidates by noise levels: the sum over the rows."""
    variance = np.diag(covariance)
    return np.array(
        [
            [
                sum(
                    ambiguity_reduction(
                        (mean[j] - H) / sqrt(variance[j]),
                        covariance[j, x] ** 2 / variance[j] / (variance[x] + s),
                    )
                    for j in rows
                )
                for s in noises
            ]
            for x in range(N)
        ]
    )


def greedy_tour(mean, covariance, rows, noise, legs, first, most, share):
    """Stops in the order of travel: every stage looks at every point and every place in the
    path."""
    variance = np.diag(covariance)
    path = []
    chosen = []
    taken = 0.0
    top = None
    while len(path) < most:
        best = (0.0, None, None, None)
        for x in range(N):
            after = np.diag(conditioned(covariance, [*chosen, x], [noise] * (len(chosen) + 1)))
            shares = np.clip(1 - after / variance, 0, 1)
            fall = sum(
                ambiguity_reduction((mean[j] - H) / sqrt(variance[j]), shares[j]) for j in rows
            )
            for place in range(len(path) + 1):
                longer = [*path[:place], x, *path[place:]]
                extra = length(longer, legs, first) - length(path, legs, first)
                rate = (fall - taken) / extra
                if rate > best[0] * (1 + 1e-9):
                    best = (rate, x, place, fall)
        rate, x, place, fall = best
        if x is None or (top is not None and rate < share * top):
            break
        top = rate if top is None else top
        taken = fall
        chosen.append(x)
        path.insert(place, x)
    return path


def length(path, legs, first):
    return (first[path[0]] if path else 0.0) + sum(legs[a, b] for a, b in pairwise(path))


# -- level sets
# --------------------------------------------------------------------------------------------------


@given(u=st.floats(-7, 7), rho=st.floats(0, 0.999) | st.just(1.0))
@EXAMPLES
def test_the_compiled_ambiguity_reduction_follows_its_definition(u, rho):
    square = np.array([u * u])
    out = np.zeros((1, 1))
    curves = ambiguity.ambiguity_curves(square, np.ones(1))
    ambiguity.ambiguity_reductions(
        np.array([[sqrt(rho)]]), np.ones((1, 1)), np.ones(1), curves, out
    )
    assert out[0, 0] == pytest.approx(ambiguity_reduction(u, rho), abs=1e-7)
    assert out[0, 0] >= 0


@given(u=st.floats(-5, 5), rho=st.floats(0, 1))
@EXAMPLES
def test_the_ambiguity_falls_by_no_more_than_the_share_explained_and_no_less_than_its_tangent(
    u, rho
):
    fall = ambiguity_reduction(u, rho)
    assert fall <= rho * ndtr(u) * ndtr(-u) + 1e-7
    assert fall >= rho * np.exp(-u * u) / (2 * np.pi) - 1e-7


def test_the_compiled_sum_is_that_of_its_reference():
    rng = np.random.default_rng(0)
    covariance = rng.uniform(-1, 1, (30, 8)) ** 5
    variance = rng.uniform(1, 2, 30)
    inverse = rng.uniform(0.1, 1, (2, 8))
    square = rng.uniform(0, 9, 30)
    curves = ambiguity.ambiguity_curves(square, rng.uniform(0.5, 2, 30))
    sums = np.zeros((2, 8)), np.zeros((2, 8))
    ambiguity.ambiguity_reductions(covariance, inverse, variance, curves, sums[0])
    compiled.ambiguity_reductions_reference(covariance, inverse, variance, curves, sums[1])
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-10)


def test_gains_are_the_expected_fall_summed_over_all_points():
    running = study()
    mean, covariance = posterior()
    rows = range(N)
    np.testing.assert_allclose(
        running.gains(), expected_reductions(mean, covariance, rows, [NOISE])[:, 0], atol=1e-6
    )


def test_pending_measurements_count_as_made():
    running = study()
    first = running.ask()
    mean, covariance = posterior(pending=(first.index,))
    rows = range(N)
    np.testing.assert_allclose(
        running.gains(), expected_reductions(mean, covariance, rows, [NOISE])[:, 0], atol=1e-6
    )
    assert len({suggestion.index for suggestion in running.ask(3)}) > 1


def test_noise_levels_are_chosen_by_the_fall_per_cost():
    running = tv.Study(
        tv.Domain.grid(x=X), tv.LevelSet(H), policy="plus", kernel=KERNEL, mean=0.1, noise=LEVELS
    )
    for index, y in TOLD:
        running.tell({"x": X[index]}, y, level=0)
    mean, covariance = posterior((0.01,) * 3)
    rows = range(N)
    wanted = expected_reductions(mean, covariance, rows, LEVELS.variance)
    np.testing.assert_allclose(running.gains().reshape(N, 2), wanted, atol=1e-6)
    place, level = np.unravel_index(np.argmax(wanted / np.array(LEVELS.cost)), wanted.shape)
    suggestion = running.ask()
    assert (suggestion.index, suggestion.level) == (place, level)


def test_a_cheap_proxy_is_measured_in_place_of_the_target():
    tasks = tv.Tasks(covariance=[[1.0, 0.99], [0.99, 1.0]], names=["f", "proxy"], cost=[10.0, 1.0])
    for goal in (tv.LevelSet(H), tv.Maximize()):
        assert study(goal=goal, tasks=tasks).ask().task == "proxy"


def test_few_rows_stand_for_many():
    """A systematic sample, each row with what it stands for: about the same sum."""
    fine = tv.Domain.grid(x=np.linspace(0, 1, 300))
    gains = []
    for rows in (300, 60):
        running = tv.Study(
            fine, tv.LevelSet(H), kernel=KERNEL, mean=0.1, noise=NOISE, policy=tv.Plus(rows=rows)
        )
        running.tell({"x": 0.5}, 0.4)
        gains.append(running.gains())
    np.testing.assert_allclose(gains[0], gains[1], atol=0.02 * gains[0].max())


# -- tours
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cost", [tv.Cost(base=0.5, travel={"x": 1.0}), tv.Cost(base=0.1, travel={"x": 3.0})]
)
def test_the_first_stop_of_a_tour_is_that_of_a_plain_greedy_insertion(cost):
    running = study(cost=cost)
    mean, covariance = posterior()
    rows = range(N)
    rate = cost.travel["x"]
    legs = cost.base + rate * np.abs(X[:, None] - X)
    first = cost.base + rate * np.abs(X - X[TOLD[-1][0]])
    path = greedy_tour(mean, covariance, rows, NOISE, legs, first, 8, 0.5)
    assert len(path) > 1
    assert running.ask().index == path[0]


def test_some_tour_starts_elsewhere_than_at_the_best_single_measurement():
    """Otherwise tours would be for nothing."""
    differ = 0
    for seed in range(12):
        ys = np.random.default_rng(seed).normal(size=2)
        firsts = []
        for stops in (1, 8):
            settings = {
                "kernel": KERNEL,
                "mean": 0.1,
                "noise": NOISE,
                "cost": tv.Cost(base=0.1, travel={"x": 3.0}),
            }
            running = tv.Study(
                tv.Domain.grid(x=X), tv.LevelSet(H), policy=tv.Plus(stops=stops), **settings
            )
            for index, y in zip((2, 4 + seed % 5), ys, strict=True):
                running.tell({"x": X[index]}, y)
            firsts.append(running.ask().index)
        differ += firsts[0] != firsts[1]
    assert 0 < differ < 12


def test_pairwise_costs_are_the_costs_from_each_point():
    domain = tv.Domain.grid(x=X)
    sites = np.array([0, 3, 7])
    for cost in (
        2.0,
        np.linspace(1, 2, N),
        tv.Cost(base=1.0, travel={"x": 2.0}, magnitude={"x": 1.0}),
        lambda points, last: 1.0 + np.abs(points[:, 0] - (0.0 if last is None else last[0])),
    ):
        for noise in (0.1, LEVELS):
            actions = ActionSpace(domain, noise, cost, None)
            wanted = np.stack(
                [actions.candidates(domain.points[site]).cost[sites] for site in sites]
            )
            np.testing.assert_allclose(actions.pairwise_costs(sites), wanted)


# -- optima
# --------------------------------------------------------------------------------------------------


def test_for_an_optimum_it_is_the_fall_of_the_entropy_of_the_maximiser():
    ours = study(goal=tv.Maximize())
    theirs = study(tv.PES(50, 1024), goal=tv.Maximize())
    np.testing.assert_array_equal(ours.gains(), theirs.gains())
    assert ours.policy.per_cost


def test_where_all_draws_agree_expected_improvement_goes_on():
    made = []
    for policy in ("plus", "pes", "ei"):
        running = tv.Study(
            tv.Domain.grid(x=X), tv.Maximize(), kernel=KERNEL, mean=0.0, noise=1e-4, policy=policy
        )
        for x in X:
            running.tell({"x": x}, 9.0 - 400 * (x - X[4]) ** 2)
        made.append(running.gains())
    assert (made[0] != made[1]).any()
    assert made[2].max() > 0
    np.testing.assert_array_equal(made[0], made[2])


# -- names and refusals
# ------------------------------------------------------------------------------------------------


def test_it_has_a_name_and_divides_by_the_cost_as_it_is():
    assert tv.TruVaR.plus() == tv.Plus() == policy_named("plus")
    assert tv.TruVaR() == tv.TruVaR(beta=None, eta=1.0, r=0.1)
    with pytest.raises(tv.TruvarError, match="plus always divides by the cost"):
        policy_named("plus/cost")
    spec = {
        "policy": {"name": "plus", "stops": 3},
        "goal": {"level_set": H},
        "model": {"kernel": "rbf"},
    }
    assert tv.Problem("p", spec, Path(), tv.Domain.grid(x=X)).study().policy == tv.Plus(stops=3)
    spec["policy"]["name"] = "plus/cost"
    with pytest.raises(tv.TruvarError, match="plus always divides by the cost"):
        tv.Problem("p", spec, Path(), tv.Domain.grid(x=X)).study()


@pytest.mark.parametrize("option", ["stops", "rows", "representers", "draws"])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(tv.TruvarError, match=f"{option} must be >="):
        tv.Plus(**{option: 0})


# -- properties
# --------------------------------------------------------------------------------------------------


def plus(problem: Problem, **options) -> tv.Study:
    return problem.study(policy=tv.Plus(**options))


@given(problem=problems(goal="level", cost=None), values=observations(6))
@EXAMPLES
def test_no_measurement_removes_more_than_all_the_ambiguity(problem, values):
    running = plus(problem)
    tell_all(running, problem.domain, values)
    mean, sd = running.policy_context().moments
    u = (mean - problem.threshold) / np.maximum(sd, 1e-150)
    total = (ndtr(u) * ndtr(-u)).sum()
    assert running.gains().max(initial=0.0) <= total * (1 + 1e-6) + 1e-9
    assert running.gains().min() >= 0


@given(
    problem=problems(goal="level", mean=0.0, uneven=False, noise=1e-2),
    values=observations(6),
    factor=st.sampled_from([0.1, 5.0]),
)
@EXAMPLES
def test_the_unit_of_the_values_does_not_matter(problem, values, factor):
    scaled = replace(
        problem,
        scale=problem.scale * factor**2,
        threshold=problem.threshold * factor,
        noise=problem.noise * factor**2,
    )
    one = plus(problem)
    other = plus(scaled)
    tell_all(one, problem.domain, values)
    tell_all(other, problem.domain, [(share, factor * y) for share, y in values])
    np.testing.assert_allclose(one.gains(), other.gains(), rtol=1e-4, atol=1e-9)
