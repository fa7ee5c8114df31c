"""Choices from a sample of rows and candidates: what they lose, and that they can be repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.acquisition import _sampled as sampled
from truvar.acquisition.weighted import undecided_rows
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.selection import candidates_of_choice, policy_context
from truvar.domain.action import Action
from truvar.domain.layout import curve_rank
from truvar.models.priors import Learned, Prior

N_POINTS = 2700


def field(seed, dimension, n=N_POINTS):
    rng = np.random.default_rng(seed)
    points = rng.random((n, dimension))
    waves = rng.normal(size=(40, dimension)) * 6
    values = np.cos(points @ waves.T + rng.uniform(0, 6.3, 40)) @ rng.normal(size=40) / 4
    columns = "xyzuv"[:dimension]
    table = dict(zip(columns, points.T, strict=True))
    return tv.Domain.table(table, columns=list(columns)), values


def learner_with(seed, dimension, t, quantile, cost=None):
    domain, values = field(seed, dimension)
    goal = tv.LevelSet(float(np.quantile(values, quantile)))
    learner = ActiveLearner(
        domain, goal, tv.WeightedTruVaR(), Prior(Learned(), None, None), seed=seed, cost=cost
    )
    rows = np.random.default_rng(seed).permutation(len(domain))[:t]
    learner.observe_all(
        [
            (Action(i, domain.points[row], int(row), None, 0, 0.0, 1.0), float(values[row]))
            for i, row in enumerate(rows)
        ]
    )
    return learner


def shares_of_best(learner, seeds):
    """Return the exact score of sampled choices, divided by that of the best candidate."""
    context = replace(policy_context(learner, 0), only_best=True)
    table = candidates_of_choice(learner, None, None).table
    rows = undecided_rows(context)
    posterior = learner.posterior
    w = np.zeros(len(learner.domain))
    w[rows.sites] = rows.weight
    d = posterior.candidate_variance(table)[:, None] + table.noise
    exact = posterior.factor.sums_everywhere(posterior.pending_variance, w, d) / d / table.cost
    found = []
    for seed in seeds:
        drawn = replace(context, seed=(seed, 1), cache={})
        assert sampled.can_sample(drawn, table)
        gains = sampled.sampled_reduction(drawn, rows.sites, rows.weight, table)
        chosen = np.argmax((gains / table.cost).max(axis=1))
        found.append(float(exact[chosen, 0] / exact.max()))
    return found


def test_a_sampled_choice_gains_nearly_as_much_as_the_best():
    found = []
    for seed, (dimension, t, quantile) in enumerate(
        [(2, 20, 0.5), (2, 60, 0.8), (2, 60, 0.97), (3, 40, 0.7), (5, 60, 0.6)]
    ):
        found += shares_of_best(learner_with(seed, dimension, t, quantile), range(6))
    assert np.mean(found) >= 0.98
    assert min(found) >= 0.9


def test_a_sampled_choice_takes_costs_into_account():
    domain, _ = field(7, 2)
    cost = np.where(domain.points[:, 0] < 0.3, 1.0, 20.0)
    assert np.mean(shares_of_best(learner_with(7, 2, 40, 0.7, cost=cost), range(6))) >= 0.98


def test_small_changes_of_the_model_leave_nearly_the_same_sample():
    rng = np.random.default_rng(0)
    ambiguity = rng.random(5000)
    numbers = sampled._spread_numbers(curve_rank(rng.random((5000, 2))), 0.3)
    before, shares = sampled._sample(ambiguity, 500, numbers)
    after, _ = sampled._sample(ambiguity * (1 + 1e-3 * rng.normal(size=5000)), 500, numbers)
    assert len(np.setxor1d(before, after)) <= 5
    assert len(before) == pytest.approx(500, abs=40)
    # Each drawn row stands for as many as its probability says.
    assert float((ambiguity[before] / shares).sum()) == pytest.approx(ambiguity.sum(), rel=0.05)


def test_the_first_of_tied_candidates_leads_whatever_rounding_does():
    scores = np.array([0.5, 1.0, 1.0 + 1e-13, 1.0 - 1e-13, 0.2])
    assert sampled._highest(scores, 3).tolist() == [1, 2, 3]
    assert sampled._highest(np.zeros(4), 2).tolist() == [0, 1]


def test_neighbours_on_the_curve_are_near_each_other():
    points = np.random.default_rng(1).random((4000, 2))
    rank = curve_rank(points)
    assert sorted(rank) == list(range(4000))
    in_order = points[np.argsort(rank)]
    assert np.median(np.linalg.norm(np.diff(in_order, axis=0), axis=1)) < 0.05


def test_a_study_that_samples_is_replayed_exactly():
    domain, values = field(3, 2)
    study = tv.Study(domain, tv.LevelSet(0.5), seed=5)
    rows = np.random.default_rng(0).permutation(len(domain))[:8]
    for row in rows:
        study.tell(domain.point(int(row)), float(values[row]))
    for _ in range(4):
        again = tv.Study.from_json(study.to_json())
        suggestion = study.ask()
        assert again.ask() == suggestion
        study.tell(suggestion, float(values[suggestion.index]))


def test_known_kernels_and_truvar_search_everything(monkeypatch):
    def refuse(*_):
        raise AssertionError("a sample was drawn")

    monkeypatch.setattr("truvar.acquisition.weighted.sampled_reduction", refuse)
    domain, _ = field(3, 2)
    known = {"kernel": Matern(0.3, nu=2.5), "mean": 0.0, "noise": 0.01}
    for options in (known, {"policy": "truvar"}):
        study = tv.Study(domain, tv.LevelSet(0.5), **options)
        for row in range(0, 80, 8):
            study.tell(domain.point(row), float(row % 3))
        study.ask()
