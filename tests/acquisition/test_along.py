"""Gains of legs that are sampled en route."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.acquisition._along import AlongPolicy, _evenly, _remaining_shares
from truvar.algorithm.selection import in_model_units, policy_context
from truvar.domain.bins import Bins

DOMAIN = tv.Domain.grid(x=np.linspace(0, 6, 7), y=np.linspace(0, 4, 5))


def study(lengthscale: float) -> tv.Study:
    cost = tv.Cost(1.0, travel={"x": 0.1, "y": 0.1}, start={"x": 0.0, "y": 0.0}, sampling="along")
    return tv.Study(
        DOMAIN, tv.LevelSet(0.1), kernel=RBF(lengthscale), mean=0.0, noise=0.01, cost=cost
    )


def parts(made: tv.Study):
    learner = made._learner
    context = policy_context(learner, 0)
    table = in_model_units(learner.surrogate, learner.actions.candidates(np.zeros(2)))
    return context, table, learner.policy


def test_the_shares_are_those_of_conditioning_one_after_the_other() -> None:
    context, table, _ = parts(study(1.5))
    legs = np.array([[8, 3, 4, -1], [0, 20, -1, -1]])
    noise = table.noise[:, 0]
    shares = _remaining_shares(context, table, legs, noise)
    for leg, found in zip(legs, shares, strict=True):
        rows = leg[leg >= 0]
        covariance = context.posterior.covariance(rows, table.take(rows))
        for k in range(len(rows)):
            before = covariance[:k, :k] + np.diag(noise[rows[:k]])
            cross = covariance[k, :k]
            total = covariance[k, k] + noise[rows[k]]
            left = total - cross @ np.linalg.solve(before, cross) if k else total
            np.testing.assert_allclose(found[k], left / total, rtol=1e-6)


def test_independent_points_add_up() -> None:
    """With a tiny length-scale nothing tells of its neighbours: the gain of a leg is a sum."""
    context, table, policy = parts(study(0.05))
    one_by_one = type(policy)(stops=1).score(context, table)[:, 0]
    leg = AlongPolicy(policy, Bins(DOMAIN), np.zeros(2)).score(context, table)[:, 0]
    last = int(DOMAIN.nearest(np.array([6.0, 0.0])))
    passed = [int(DOMAIN.nearest(np.array([x, 0.0]))) for x in range(7)]
    rate = leg[last] / table.cost[last, 0]
    assert rate >= one_by_one[passed].sum() / table.cost[last, 0] - 1e-6
    assert (leg / table.cost[:, 0] >= one_by_one / table.cost[:, 0] - 1e-9).all()


def test_points_of_a_leg_are_thinned_evenly() -> None:
    chosen = np.ones((2, 40), bool)
    chosen[1, 5:] = False
    kept = _evenly(chosen, 16)
    assert kept.sum(axis=1).tolist() == [16, 5]
    assert np.diff(np.flatnonzero(kept[0])).max() == 3


def test_without_sampling_nothing_changes() -> None:
    """A study that samples at stops only chooses as one that knows nothing of sampling."""
    stops = tv.Cost(1.0, travel={"x": 0.1, "y": 0.1})
    chosen = []
    for cost in (stops, tv.Cost(1.0, travel={"x": 0.1, "y": 0.1}, sampling="stops")):
        made = tv.Study(DOMAIN, tv.LevelSet(0.1), kernel=RBF(1.0), mean=0.0, noise=0.01, cost=cost)
        run = made.run(lambda point: np.sin(point["x"]) * point["y"], steps=8)
        chosen.append([record.point for record in made.measurement_records()])
        assert run.steps == 8
    assert chosen[0] == chosen[1]
