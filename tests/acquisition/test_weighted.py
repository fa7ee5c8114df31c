"""The policy `WeightedTruVaR` against plain transcriptions, in every engine and with every kind
of measurement."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, stdtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from tests.reference import weighted as reference
from tests.study.test_properties import EXAMPLES, observations, problems, tell_all

import truvar as tv
from truvar.acquisition import policy_named
from truvar.acquisition._tours import tour_rows
from truvar.acquisition.weighted import (
    _student_ambiguity,
    possible_maximisers,
    undecided_rows,
)
from truvar.engines._nodes import NodeBounds, axis_error, node_bounds
from truvar.engines.lazy import Lazy
from truvar.models.posterior import Posterior

N = 14
NOISE = 0.05
H = 0.3
X = np.linspace(0, 1, N)
KERNEL = ConstantKernel(1.5) * Matern(0.2, nu=2.5)
TOLD = ((1, 0.9), (5, -0.2), (9, 0.5))
ENGINES = ("dense", "dense32", "dense64", "lazy")


def study(goal=None, policy=None, **options):
    settings = {"kernel": KERNEL, "mean": 0.1, "noise": NOISE, **options}
    policy = policy or tv.WeightedTruVaR(stops=1)
    made = tv.Study(tv.Domain.grid(x=X), goal or tv.LevelSet(H), policy=policy, **settings)
    for index, y in TOLD:
        made.tell({"x": X[index]}, y)
    return made


def posterior(noise=NOISE, pending=()):
    where = [index for index, _ in TOLD]
    prior = KERNEL(X[:, None])
    noises = [noise] * len(where)
    gram = prior[np.ix_(where, where)] + np.diag(noises)
    mean = 0.1 + prior[:, where] @ np.linalg.inv(gram) @ (np.array([y for _, y in TOLD]) - 0.1)
    return mean, reference.conditioned(
        prior, [*where, *pending], [*noises, *(noise for _ in pending)]
    )


# -- level sets
# --------------------------------------------------------------------------------------------------


def test_the_weights_of_several_thresholds_add_up():
    mean, covariance = posterior()
    weights = np.sum(
        [reference.level_set_weights(mean, covariance, h) for h in (-0.2, H, 0.8)], axis=0
    )
    expected = reference.weighted_reduction(covariance, weights, [NOISE])[:, 0]
    running = study(tv.LevelSet([-0.2, H, 0.8]))
    np.testing.assert_allclose(running.gains().ravel(), expected, rtol=1e-9)
    assert running.ask().index == int(np.argmax(expected))


@pytest.mark.parametrize("engine", ENGINES)
def test_gains_of_a_level_set_are_those_of_the_transcription_in_every_engine(engine):
    mean, covariance = posterior()
    weights = reference.level_set_weights(mean, covariance, H)
    expected = reference.weighted_reduction(covariance, weights, [NOISE])[:, 0]
    running = study(engine=engine)
    np.testing.assert_allclose(running.gains().ravel(), expected, rtol=1e-9)
    suggestion = running.ask()
    assert suggestion.index == int(np.argmax(expected))
    assert suggestion.gain == pytest.approx(expected.max(), rel=1e-9)


def test_pending_measurements_count_as_made():
    running = study()
    first = running.ask()
    mean, covariance = posterior(pending=[first.index])
    weights = reference.level_set_weights(mean, covariance, H)
    expected = reference.weighted_reduction(covariance, weights, [NOISE])[:, 0]
    np.testing.assert_allclose(running.gains().ravel(), expected, rtol=1e-9)


def test_noise_levels_are_chosen_per_cost():
    levels = tv.NoiseLevels(variance=[0.01, 0.3], cost=[4.0, 1.0])
    made = tv.Study(
        tv.Domain.grid(x=X),
        tv.LevelSet(H),
        kernel=KERNEL,
        mean=0.1,
        noise=levels,
        policy=tv.WeightedTruVaR(),
    )
    covariance = KERNEL(X[:, None])
    weights = reference.level_set_weights(np.full(N, 0.1), covariance, H)
    expected = reference.weighted_reduction(covariance, weights, levels.variance)
    np.testing.assert_allclose(made.gains(), expected.ravel(), rtol=1e-9)
    suggestion = made.ask()
    row, level = np.unravel_index(int(np.argmax(expected / levels.cost)), expected.shape)
    assert (suggestion.index, suggestion.level) == (row, level)


def test_without_noise_nothing_is_measured_twice_and_the_study_ends_well():
    running = study(noise=0.0)
    seen = {index for index, _ in TOLD}
    for _ in range(N - len(TOLD)):
        try:
            suggestion = running.ask()
        except tv.Finished:
            break
        assert suggestion.index not in seen
        seen.add(suggestion.index)
        running.tell(suggestion, float(np.sin(7 * X[suggestion.index])))
    assert len(seen) > 6


@pytest.mark.parametrize("engine", ENGINES)
def test_of_tied_candidates_the_first_one_is_chosen(engine):
    made = tv.Study(
        tv.Domain.grid(x=X),
        tv.LevelSet(H),
        kernel=KERNEL,
        mean=0.1,
        noise=NOISE,
        policy="auto",
        engine=engine,
    )
    gains = made.gains()
    np.testing.assert_allclose(gains, gains[::-1], rtol=1e-12)
    assert made.ask().index == N // 2 - 1


def test_a_learned_model_has_the_tails_of_a_student_t_with_sixteen_degrees_of_freedom():
    u = np.array([-1e9, -40.0, -3.0, -0.5, 0.0, 1e-9, 2.0, 11.0, 1e9, np.inf])
    expected = stdtr(16, u) * stdtr(16, -u)
    np.testing.assert_allclose(_student_ambiguity(u), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("border", [(0.3, 0.4), (0.4, 0.3)])
def test_a_point_at_the_threshold_does_not_keep_the_study_from_an_island(border):
    # Of two islands one is known, and a point of its border lies at the threshold: with normal
    # tails all four measurements were repeats, as the model ruled another island out.
    axis = np.linspace(0, 1, 21)
    domain = tv.Domain.grid(x=axis, y=axis)
    points = domain.points
    known = np.hypot(*(points - [0.3, 0.3]).T)
    hidden = np.hypot(*(points - [0.75, 0.7]).T)
    f = 0.6 * points[:, 0] + 1.5 * np.exp(-50 * known**2) + 1.2 * np.exp(-102 * hidden**2)
    row, column = np.divmod(np.arange(len(points)), 21)
    is_told = (row % 4 == 0) & (column % 4 == 0)
    is_told |= (known > 0.03) & (known < 0.2) & ((row + column) % 2 == 0)
    is_told &= hidden > 0.15
    at_threshold = int(np.argmin(((points - border) ** 2).sum(axis=1)))
    is_told[at_threshold] = True
    rng = np.random.default_rng(0)
    values = f + 0.005 * rng.normal(size=len(f))

    running = tv.Study(domain, tv.LevelSet(float(f[at_threshold])), seed=0)
    running.tell_frame(
        pd.DataFrame(points[is_told], columns=["x", "y"]).assign(v=values[is_told]), "v"
    )
    n_near_hidden = 0
    for _ in range(4):
        suggestion = running.ask()
        n_near_hidden += bool(hidden[suggestion.index] < known[suggestion.index])
        running.tell(suggestion, float(values[suggestion.index]))
    assert n_near_hidden >= 2


# -- optima
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_gains_of_an_optimum_are_the_weighted_fall_of_the_variance_of_differences(engine):
    running = study(goal=tv.Maximize(), engine=engine)
    context = running.policy_context()
    rows = possible_maximisers(context, 100, 1024)
    _, covariance = posterior()
    expected = reference.contrast_reduction(
        covariance, list(rows.sites), list(rows.weight), int(rows.sites[rows.leader]), NOISE
    )
    np.testing.assert_allclose(running.gains().ravel(), expected, rtol=1e-8, atol=1e-12)
    assert running.ask().index == int(np.argmax(expected))


def test_the_weights_of_an_optimum_are_those_of_many_independent_draws():
    """A false alarm, five standard errors, in less than one run of ten thousand."""
    context = study(goal=tv.Maximize()).policy_context()
    rows = possible_maximisers(context, 100, 4096)
    mean, covariance = posterior()
    draws = np.random.default_rng(0).multivariate_normal(mean, covariance, 40_000)
    share = np.bincount(draws.argmax(axis=1), minlength=N) / len(draws)
    leader = int(np.argmax(share))
    assert rows.sites[rows.leader] == leader
    difference = draws - draws[:, [leader]]
    better = (difference > 0).mean(axis=0)
    variance = np.diag(covariance) - 2 * covariance[leader] + covariance[leader, leader]
    for site, weight in zip(rows.sites, rows.weight, strict=True):
        if site != leader:
            undecided = share[site] * better[site] * (1 - better[site])
            error = 5 * (undecided / share[site]) * np.sqrt(share[site] / 4096) + 0.004
            assert weight * variance[site] == pytest.approx(undecided, abs=error)


def test_minimising_is_maximising_the_negative_function():
    up = study(goal=tv.Maximize())
    down = tv.Study(
        tv.Domain.grid(x=X),
        tv.Minimize(),
        kernel=KERNEL,
        mean=-0.1,
        noise=NOISE,
        policy=tv.WeightedTruVaR(stops=1),
    )
    for index, y in TOLD:
        down.tell({"x": X[index]}, -y)
    np.testing.assert_allclose(up.gains(), down.gains(), rtol=1e-6)


def test_with_travel_costs_the_first_stop_of_a_tour_is_preferred():
    cost = tv.Cost(1.0, {"x": 30.0})
    for goal in (tv.LevelSet(H), tv.Maximize()):
        plain = study(goal=goal, cost=cost)
        touring = study(goal=goal, cost=cost, policy=tv.WeightedTruVaR(stops=4))
        table = plain.candidates()
        rates = plain.policy.score(plain.policy_context(), table) / table.cost
        toured = touring.policy.score(touring.policy_context(), table) / table.cost
        assert toured.max() == pytest.approx(rates.max() * (1 + 1e-6), rel=1e-9)
        assert (np.abs(toured - rates) > 1e-12).sum() <= 1


def test_the_rows_of_a_tour_have_the_variance_of_the_differences():
    context = study(goal=tv.Maximize()).policy_context()
    rows = possible_maximisers(context, 100, 1024)
    tour = tour_rows(context, rows.sites, rows.weight, rows.leader)
    _, covariance = posterior()
    leader = rows.sites[rows.leader]
    variance = (
        np.diag(covariance)[rows.sites]
        - 2 * covariance[leader, rows.sites]
        + covariance[leader, leader]
    )
    others = rows.sites != leader
    np.testing.assert_allclose(tour.variance[others], variance[others], rtol=1e-9)
    assert (tour.curves[~others] == 0).all()


def test_in_a_box_it_refines_as_plus_does():
    made = tv.Study(
        tv.Domain.box(x=(0, 1), y=(0, 1), representers=60),
        tv.Maximize(),
        kernel=RBF(0.5),
        mean=0.0,
        noise=1e-8,
        policy=tv.WeightedTruVaR(),
    )

    def value(point):
        return -((point["x"] - 0.31) ** 2) - (point["y"] - 0.72) ** 2

    for _ in range(14):
        suggestion = made.ask()
        made.tell(suggestion, value(suggestion.point))
    best = made.result().best.point
    assert abs(best["x"] - 0.31) < 0.02
    assert abs(best["y"] - 0.72) < 0.02


def test_a_learned_model_is_drawn_from_as_a_mixture():
    made = tv.Study(tv.Domain.grid(x=X), tv.Maximize(), policy=tv.WeightedTruVaR())
    for index in (0, 3, 6, 9, 12, 13):
        made.tell({"x": X[index]}, float(np.sin(5 * X[index])))
    context = made.policy_context()
    assert context.ensemble is not None
    rows = possible_maximisers(context, 100, 1024)
    assert (rows.weight >= 0).all()
    assert made.ask().gain > 0


def test_a_cheap_task_is_measured_in_place_of_the_target():
    tasks = tv.Tasks([[1, 0.95], [0.95, 1]], ["yield", "proxy"], noise=[1e-2, 1e-2], cost=[20, 1])
    for goal in (tv.LevelSet(H), tv.Maximize()):
        made = tv.Study(
            tv.Domain.grid(x=X),
            goal,
            kernel=KERNEL,
            mean=0.0,
            noise=1e-2,
            tasks=tasks,
            policy=tv.WeightedTruVaR(),
        )
        assert made.ask().task == "proxy"


# -- bounds from nodes
# -------------------------------------------------------------------------------------------------


def smooth_problem(layout, lengthscale, steps, seed=0):
    import pandas as pd

    rng = np.random.default_rng(seed)
    if layout == "grid":
        domain = tv.Domain.grid(x=np.linspace(0, 1, 23), y=np.linspace(0, 2, 19))
    elif layout == "line":
        domain = tv.Domain.grid(x=np.linspace(0, 1, 200))
    else:
        frame = pd.DataFrame(rng.random((400, 2)), columns=["x", "y"])
        domain = tv.Domain.table(frame)
    made = Posterior(ConstantKernel(2.0) * RBF(lengthscale), domain.points)
    for site in rng.permutation(len(domain))[:steps]:
        made.add(domain.points[site], 1e-4, int(site))
        made.observe(0.0)
    return domain, made


@pytest.mark.parametrize(
    ("layout", "lengthscale", "steps"),
    list(product(["grid", "line", "scattered"], [0.3, 1.0], [0, 5, 60])),
)
def test_the_bound_from_nodes_is_never_below_the_sum_and_close(layout, lengthscale, steps):
    domain, made = smooth_problem(layout, lengthscale, steps)
    nodes = node_bounds(made, domain)
    assert isinstance(nodes, NodeBounds)
    w = np.random.default_rng(1).random(len(domain)) / made.variance
    for pending in range(3):
        estimate, error = nodes.bounds(w, made.pending_variance)
        v = made.factor.v.astype(np.longdouble)
        prior = (2 * np.exp(-0.5 * _squares(domain.points / lengthscale))).astype(np.longdouble)
        exact = w.astype(np.longdouble) @ (prior - v.T @ v) ** 2
        assert (np.abs(estimate - exact) <= error).all()
        if steps < 60:
            assert error.max() <= 1e-3 * exact.max()
        if pending == 1:
            made.drop_pending()
        else:
            made.add(domain.points[7 + pending], 1e-4, 7 + pending)


def _squares(points):
    return ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)


@pytest.mark.parametrize(("extent", "count"), [(1.0, 8), (3.0, 14), (8.0, 30)])
def test_the_interpolation_error_of_the_squared_kernel_is_within_its_bound(extent, count):
    from truvar.engines._nodes import _chebyshev, _weights

    nodes = _chebyshev(0.0, extent, count)
    x = np.linspace(0, extent, 301)
    omega = _weights(x, nodes)
    between = np.exp(-((x[:, None] - nodes) ** 2))
    among = np.exp(-((nodes[:, None] - nodes) ** 2))
    residual = 1 - 2 * (omega * between).sum(axis=1) + ((omega @ among) * omega).sum(axis=1)
    assert np.sqrt(residual.max()) <= axis_error(extent, count)
    assert axis_error(extent, count) < 2.0


def test_rough_kernels_and_long_domains_have_no_nodes():
    domain, _ = smooth_problem("grid", 0.3, 0)
    assert node_bounds(Posterior(Matern(0.3, nu=2.5), domain.points), domain) is None
    assert node_bounds(Posterior(RBF(0.005), domain.points), domain) is None


def test_the_lazy_engine_with_nodes_chooses_what_the_dense_one_does(monkeypatch):
    monkeypatch.setattr(Lazy, "_prefers_norms", lambda *_: False)
    domain = tv.Domain.grid(x=np.linspace(0, 1, 25), y=np.linspace(0, 1, 25))
    known = {"kernel": RBF(0.3), "mean": 0.0, "noise": 1e-3, "policy": "weightedtruvar"}
    by_nodes = tv.Study(domain, tv.LevelSet(0.3), engine="lazy", **known)
    dense = tv.Study(domain, tv.LevelSet(0.3), engine="dense64", **known)
    for _ in range(15):
        one = by_nodes.ask()
        other = dense.ask()
        assert (one.index, one.gain) == (other.index, pytest.approx(other.gain, rel=1e-9))
        y = float(np.sin(5 * one.point["x"]) * np.cos(4 * one.point["y"]))
        by_nodes.tell(one, y)
        dense.tell(other, y)
    engine = by_nodes.policy_context().engine
    assert isinstance(engine, Lazy)
    assert engine._nodes_cache is not None
    assert engine._nodes_cache[0] is not None


# -- names, options and properties
# -------------------------------------------------------------------------------------


def test_the_name_auto_stands_for_it_and_plus_keeps_its_own():
    assert policy_named("auto") == policy_named("weightedtruvar") == tv.WeightedTruVaR()
    assert policy_named("plus") == tv.Plus()
    with pytest.raises(tv.TruvarError, match="always divides by the cost"):
        policy_named("auto/cost")


@pytest.mark.parametrize("option", ["stops", "representers", "draws"])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(tv.TruvarError, match=f"{option} must be >="):
        tv.WeightedTruVaR(**{option: 0})


@given(problem=problems(goal="level", cost=None), values=observations(6))
@EXAMPLES
def test_no_measurement_gains_more_than_all_the_ambiguity(problem, values):
    running = problem.study(policy=tv.WeightedTruVaR())
    tell_all(running, problem.domain, values)
    mean, sd = running.policy_context().moments
    u = (mean - problem.threshold) / np.maximum(sd, 1e-150)
    total = (ndtr(u) * ndtr(-u)).sum()
    assert running.gains().max(initial=0.0) <= total * (1 + 1e-6) + 1e-9
    assert running.gains().min() >= 0


@given(
    problem=problems(goal="level", mean=0.0, uneven=False, noise=1e-2),
    values=observations(5),
    factor=st.just(5.0),
)
@EXAMPLES
def test_the_rows_of_a_level_set_do_not_depend_on_the_unit(problem, values, factor):
    from dataclasses import replace

    scaled = replace(
        problem,
        scale=problem.scale * factor**2,
        threshold=problem.threshold * factor,
        noise=problem.noise * factor**2,
    )
    one = problem.study(policy=tv.WeightedTruVaR())
    other = scaled.study(policy=tv.WeightedTruVaR())
    tell_all(one, problem.domain, values)
    tell_all(other, problem.domain, [(share, factor * y) for share, y in values])
    rows = undecided_rows(one.policy_context())
    rescaled = undecided_rows(other.policy_context())
    np.testing.assert_array_equal(rows.sites, rescaled.sites)
    np.testing.assert_allclose(rows.weight, rescaled.weight * factor**2, rtol=1e-6)
