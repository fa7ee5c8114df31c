"""Confidence: the schedules of beta against formulas by hand, Theorem 3.1 against brute force,
and the epochs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from math import e, log, pi, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE, Confidence, Epoch, EpochStart, bounds

LINE = tv.Domain.grid(x=np.linspace(0, 1, 10))


def a_start(**known: Any) -> EpochStart:
    """Return the state that a schedule is given, with some attributes set."""
    usual = EpochStart(
        t=1,
        eta=1.0,
        slack=0.1,
        n_points=10,
        n_actions=10,
        n_targets=10,
        log_beta_factor=1.0,
        spent=0.0,
        min_cost=1.0,
        max_cost=1.0,
        cover_cost=lambda xi: 0.0,
        information_bound=lambda steps: 0.0,
    )
    return replace(usual, **known)


class Spy:
    """A schedule that keeps what it was shown and answers as another would."""

    def __init__(self, schedule: Any) -> None:
        self.schedule = schedule
        self.seen = []
        self.said = []

    def __call__(self, start: EpochStart) -> float:
        self.seen.append(start)
        self.said.append(self.schedule(start))
        return self.said[-1]


def a_study(
    domain: tv.Domain = LINE, goal: Any = None, policy: Any = "truvar", **settings: Any
) -> tv.Study:
    known = {"kernel": RBF(0.2), "mean": 0.0, "noise": 0.01, **settings}
    return tv.Study(domain, goal or tv.LevelSet(0.5), policy=policy, **known)


# -- the schedules by hand
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("points", "t"), [(2, 1), (10, 1), (2500, 1), (2500, 40)])
def test_log_beta_is_a_log_of_the_points_times_t_squared(points: int, t: int) -> None:
    start = a_start(n_points=points, n_actions=3 * points, t=t)
    assert tv.LogBeta(2.0)(start) == pytest.approx(2.0 * (log(points) + 2 * log(t)))


def test_log_beta_is_half_as_large_for_an_optimum_as_for_a_level_set_unless_a_is_given() -> None:
    assert tv.LogBeta()(a_start(log_beta_factor=1.0, t=7)) == pytest.approx(1.0 * log(10 * 49))
    assert tv.LogBeta()(a_start(log_beta_factor=0.5, t=7)) == pytest.approx(0.5 * log(10 * 49))
    assert tv.LogBeta(1.0)(a_start(log_beta_factor=0.5)) == tv.LogBeta(1.0)(
        a_start(log_beta_factor=1.0)
    )
    assert a_study(goal=tv.LevelSet(0.5)).epoch.beta == pytest.approx(log(10))
    assert a_study(goal=tv.Maximize()).epoch.beta == pytest.approx(0.5 * log(10))


def test_log_beta_is_positive_on_a_domain_of_one_point() -> None:
    assert tv.LogBeta()(a_start(n_points=1)) > 0


def test_constant_beta_is_the_same_whenever_it_is_asked() -> None:
    assert {
        tv.ConstantBeta(9.0)(a_start(t=t, eta=eta)) for t in (1, 50) for eta in (1.0, 1e-3)
    } == {9.0}


@pytest.mark.parametrize(("t", "horizon"), [(1, 10), (10, 10), (11, 20), (35, 40)])
def test_rkhs_beta_is_that_of_srinivas_et_al_at_a_horizon_that_covers_t(
    t: int, horizon: int
) -> None:
    asked: list[int] = []

    def information(steps: int) -> float:
        asked.append(steps)
        return 0.3 * steps

    beta = tv.RKHSBeta(norm=3.0, delta=0.05, horizon=10)(
        a_start(t=t, information_bound=information)
    )
    assert beta == pytest.approx(2 * 3.0**2 + 300 * (0.3 * horizon) * log(horizon / 0.05) ** 3)
    assert asked == [horizon]


def test_bounds_are_root_beta_standard_deviations_wide() -> None:
    lower, upper = bounds(np.array([1.0, -2.0]), np.array([4.0, 0.0]), 9.0)
    assert lower.tolist() == [-5.0, -2.0]
    assert upper.tolist() == [7.0, -2.0]


# -- what a schedule is shown
# ------------------------------------------------------------------------------------------


def test_a_schedule_is_shown_what_is_known_when_the_epoch_starts() -> None:
    spy = Spy(tv.ConstantBeta(4.0))
    levels = tv.NoiseLevels([1e-6, 0.1], [5.0, 2.0])
    study = a_study(
        noise=levels,
        cost=np.linspace(1, 2, 10),
        policy=tv.TruVaR(beta=spy, slack=0.2, r=0.5, eta=2.0),
    )
    first = spy.seen[0]
    assert (first.t, first.eta, first.slack) == (1, 2.0, 0.2)
    assert (first.n_points, first.n_actions, first.n_targets) == (10, 20, 10)
    assert (first.spent, first.min_cost, first.max_cost, first.log_beta_factor) == (
        0.0,
        3.0,
        7.0,
        1.0,
    )
    seen = len(spy.seen)
    while len(spy.seen) == seen:
        suggestion = study.ask()
        study.tell(suggestion, 0.9 if suggestion.point["x"] < 0.5 else 0.1)
    start = spy.seen[seen]
    assert start.t == study.steps + 1
    assert start.spent == pytest.approx(study.spent)
    assert start.n_targets == study.result().potential.sum()
    assert start.eta == spy.seen[seen - 1].eta * 0.5


# -- brute force
# --------------------------------------------------------------------------------------------------


def multisets(actions: int, largest: int) -> Iterator[tuple[int, ...]]:
    for size in range(largest + 1):
        yield from combinations_with_replacement(range(actions), size)


def variance_after(
    kernel: Any, points: np.ndarray, places: list[int], noise: list[float]
) -> np.ndarray:
    """Eq. (2), by inversion."""
    prior = kernel(points)
    if not places:
        return np.diag(prior)
    across = prior[np.ix_(range(len(points)), places)]
    inverse = np.linalg.inv(prior[np.ix_(places, places)] + np.diag(noise))
    return np.diag(prior - across @ inverse @ across.T)


def exact_cover(
    kernel: Any,
    points: np.ndarray,
    noise: np.ndarray,
    cost: np.ndarray,
    xi: float,
    observed: list[tuple[int, float]],
) -> float:
    """C*: the least cost of measurements, after those told, that bring every standard deviation
    down to xi."""
    n, levels = noise.shape
    cheapest = np.inf
    for chosen in multisets(n * levels, 9 if levels == 1 else 6):
        spent = sum(cost[a // levels, a % levels] for a in chosen)
        if spent >= cheapest:
            continue
        places = [p for p, _ in observed] + [a // levels for a in chosen]
        noises = [v for _, v in observed] + [noise[a // levels, a % levels] for a in chosen]
        if variance_after(kernel, points, places, noises).max() <= xi * xi * (1 + 1e-9):
            cheapest = spent
    assert np.isfinite(cheapest), "the brute force must look at larger sets"
    return cheapest


COVERS: dict[str, dict[str, Any]] = {
    "even": {"kernel": RBF(0.5), "noise": 0.01},
    "uneven noise": {"kernel": RBF(0.5), "noise": np.array([0.2, 0.01, 0.1, 0.002])},
    "uneven cost": {"kernel": RBF(0.5), "noise": 0.02, "cost": np.array([1.0, 7.0, 2.0, 0.5])},
    "both": {
        "kernel": Matern(0.6, nu=1.5),
        "noise": np.array([0.2, 0.01, 0.1, 0.002]),
        "cost": [1.0, 7.0, 2.0, 3.0],
    },
    "other units": {"kernel": ConstantKernel(25.0) * RBF(0.5), "noise": 0.25},
    "levels": {"kernel": RBF(0.8), "noise": tv.NoiseLevels([1e-3, 0.1], [4.0, 1.0])},
    "hardly related": {"kernel": RBF(0.05), "noise": 0.01},
}


@pytest.mark.parametrize("name", COVERS)
@pytest.mark.parametrize("observed", [[], [0, 1, 2, 3]], ids=["at the start", "on the way"])
def test_the_cover_bound_is_never_below_the_exact_least_cost(
    name: str, observed: list[int]
) -> None:
    domain = tv.Domain.grid(x=[0.0, 0.3, 0.55, 1.0])
    spy = Spy(tv.ConstantBeta(4.0))
    study = a_study(domain, tv.LevelSet(0.0), tv.TruVaR(beta=spy, r=0.9, eta=50.0), **COVERS[name])
    for index in observed:
        study.tell(domain.point(index), 0.0, level=1 if name == "levels" else None)
    start = spy.seen[-1]
    assert (start.n_targets, start.t) == (
        4,
        len(observed) + 1,
    )  # 0 told at a threshold of 0: all points stay open
    kernel = COVERS[name]["kernel"]
    candidates = study.candidates()
    known = [(i, float(candidates.noise[i, -1])) for i in observed]
    widest = study.result().sd.max()
    scale = sqrt(kernel.diag(domain.points)[0])
    for share in (0.75, 0.95):
        xi = share * widest
        exact = exact_cover(kernel, domain.points, candidates.noise, candidates.cost, xi, known)
        bound = start.cover_cost(xi / scale)  # in prior standard deviations, as eta
        singly = (
            (candidates.cost * np.maximum(1, np.ceil(candidates.noise / xi**2))).min(axis=1).sum()
        )
        assert exact - 1e-9 <= bound <= 2 * singly  # and not absurdly above
    assert start.cover_cost(1.01 * widest / scale) == 0.0  # already there


@pytest.mark.parametrize("noise", [0.1, np.array([0.5, 0.02, 0.1, 1.0])], ids=["even", "uneven"])
@pytest.mark.parametrize("length", [0.05, 0.4, 3.0])
def test_the_information_bound_is_never_below_the_exact_gamma(length: float, noise: Any) -> None:
    domain = tv.Domain.grid(x=[0.0, 0.3, 0.55, 1.0])
    kernel = ConstantKernel(2.0) * RBF(length)
    spy = Spy(tv.ConstantBeta(4.0))
    a_study(domain, policy=tv.TruVaR(beta=spy), kernel=kernel, noise=noise)
    prior = kernel(domain.points)
    noises = np.broadcast_to(noise, 4)
    for steps in range(1, 6):
        exact = max(
            0.5
            * np.linalg.slogdet(np.eye(steps) + prior[np.ix_(s, s)] / noises[list(s)][:, None])[1]
            for s in combinations_with_replacement(range(4), steps)
        )
        bound = spy.seen[0].information_bound(steps)
        assert exact <= bound + 1e-9
        assert bound <= exact / (1 - 1 / e) + 1e-9


# -- Theorem 3.1
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["even", "uneven noise", "uneven cost", "both", "other units"])
@pytest.mark.parametrize("delta", [0.3, 0.01])
def test_the_theorems_beta_satisfies_both_of_its_inequalities_with_the_exact_cover(
    name: str, delta: float
) -> None:
    """C_(i) >= C* log(|M| beta / (slack eta)^2) + c_max, beta >= 2 log(|D| (sum of C)^2 pi^2 /
    (6 delta c_min^2))."""
    domain = tv.Domain.grid(x=[0.0, 0.3, 0.55, 1.0])
    spy = Spy(tv.TheoremBeta(delta))
    slack = 0.2
    policy = tv.TruVaR(beta=spy, slack=slack, eta=3.0, r=0.6)
    study = a_study(domain, tv.LevelSet(0.0), policy, **COVERS[name])
    kernel = COVERS[name]["kernel"]
    candidates = study.candidates()
    scale = sqrt(kernel.diag(domain.points)[0])
    observed: list[tuple[int, float]] = []
    checked = 0
    for _ in range(4):
        while checked < len(spy.seen):
            start = spy.seen[checked]
            beta = spy.said[checked]
            total = start.min_cost * sqrt(
                6 * delta * np.exp(beta / 2) / (4 * pi**2)
            )  # (beta_i) with equality
            epoch = (
                total - start.spent
            )  # C_(i); what was spent is at most the sum of the earlier ones
            xi = start.eta / sqrt(beta) * scale
            exact = exact_cover(
                kernel, domain.points, candidates.noise, candidates.cost, xi, observed
            )
            assert start.n_targets == 4
            assert exact <= start.cover_cost(start.eta / sqrt(beta)) + 1e-9
            assert (
                epoch
                >= exact * max(0.0, log(start.n_targets * beta / (slack * start.eta) ** 2))
                + start.max_cost
                - 1e-9
            )
            checked += 1
        suggestion = study.ask()
        study.tell(suggestion, 0.0)  # at the threshold: M stays D
        observed.append((suggestion.index, suggestion.noise))
    assert checked >= 2


def test_the_theorems_beta_grows_as_delta_shrinks_and_as_cost_is_spent() -> None:
    def beta(delta: float, **known: Any) -> float:
        return tv.TheoremBeta(delta)(a_start(cover_cost=lambda xi: 1 / xi, **known))

    assert beta(0.2) < beta(0.1) < beta(0.001)
    assert beta(0.1) < beta(0.1, spent=100.0)
    assert beta(0.1, n_actions=10) < beta(0.1, n_actions=30)  # D0 x K
    assert beta(0.1) < beta(0.1, eta=0.1)


def test_the_theorems_bounds_hold_on_draws_from_the_prior() -> None:
    """12 draws, delta = 0.2, all points at all times: more than 7 failures have a probability below
    0.1 % if the
    theorem holds. Its beta is so large that none is expected. Seeded."""
    domain = tv.Domain.grid(x=np.linspace(0, 1, 8))
    kernel = Matern(0.3, nu=2.5)
    root = np.linalg.cholesky(kernel(domain.points) + 1e-10 * np.eye(8))
    broken = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        f = root @ rng.standard_normal(8)
        policy = tv.TruVaR(beta=tv.TheoremBeta(0.2), slack=0.2)
        study = a_study(domain, tv.Maximize(), policy, kernel=kernel, noise=0.05)
        held = True
        for _ in range(6):
            try:
                suggestion = study.ask()
            except tv.Finished:
                break
            study.tell(suggestion, f[suggestion.index] + sqrt(0.05) * rng.standard_normal())
            result = study.result()
            held &= bool(
                ((result.lower <= f) & (f <= result.upper)).all() and result.potential[np.argmax(f)]
            )
        broken += not held
    assert broken <= 7


# -- epochs
# --------------------------------------------------------------------------------------------------


def starts(eta: float) -> EpochStart:
    return a_start(eta=eta, t=5)


def test_the_first_epoch_has_the_first_target_and_starts_with_the_first_choice() -> None:
    assert Confidence(tv.ConstantBeta(4.0), eta=0.7).first(lambda eta: a_start(eta=eta)) == Epoch(
        1, 0.7, 4.0, 1
    )
    assert a_study().epoch.start == 1


def test_the_truncation_is_eta_squared_over_beta() -> None:
    assert Epoch(1, 0.5, 4.0, 1).tau == 0.0625


@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_an_epoch_ends_when_the_widest_confidence_is_within_the_target_and_its_slack(
    slack: float,
) -> None:
    confidence = Confidence(tv.ConstantBeta(4.0), eta=1.0, r=0.5, slack=slack)
    epoch = Epoch(1, 1.0, 4.0, 1)
    target = ((1 + slack) * 1.0 / 2.0) ** 2  # sqrt(beta) sigma = (1 + slack) eta
    assert confidence.advance(epoch, 1.001 * target, starts) == epoch
    assert confidence.advance(epoch, 0.999 * target, starts) == Epoch(2, 0.5, 4.0, 5)


@pytest.mark.parametrize(
    ("widest", "index"), [(0.25, 2), (0.0026, 2), (0.0024, 3), (2.4e-5, 4), (2.4e-7, 5)]
)
def test_several_epochs_can_end_at_once(widest: float, index: int) -> None:
    """beta = 4: epoch i is over when sigma <= 0.5 x 0.1^(i - 1)."""
    epoch = Confidence(tv.ConstantBeta(4.0)).advance(Epoch(1, 1.0, 4.0, 1), widest, starts)
    assert (epoch.index, epoch.start) == (index, 5)
    assert epoch.eta == pytest.approx(0.1 ** (index - 1))


def test_one_precise_value_ends_several_epochs_of_a_study_at_once() -> None:
    spy = Spy(tv.LogBeta())
    study = a_study(
        tv.Domain.grid(x=[0.0, 1e-6]),
        kernel=RBF(1.0),
        noise=1e-7,
        policy=tv.TruVaR(beta=spy, r=0.1),
    )
    before = study.epoch.index
    study.tell({"x": 0.0}, 0.5)
    assert study.epoch.index >= before + 2
    inside = spy.seen[-(study.epoch.index - before) :]
    assert {start.t for start in inside} == {2}  # observations so far + 1, also inside the while
    assert study.epoch.beta == pytest.approx(log(2 * 2**2))
    sigma = study.result().sd.max()
    assert sqrt(study.epoch.beta) * sigma > study.epoch.eta  # the while has run to its end
    assert sqrt(spy.said[-2]) * sigma <= spy.seen[-2].eta


@pytest.mark.parametrize("widest", [0.0, MIN_VARIANCE_SHARE / 2])
def test_no_epoch_ends_where_no_width_is_left(widest: float) -> None:
    epoch = Epoch(3, 0.01, 4.0, 7)
    assert Confidence(tv.ConstantBeta(4.0)).advance(epoch, widest, starts) == epoch


def test_the_epochs_stop_where_eta_drowns_in_rounding() -> None:
    epoch = Confidence(tv.ConstantBeta(4.0)).advance(
        Epoch(1, 1.0, 4.0, 1), 1.01 * MIN_VARIANCE_SHARE, starts
    )
    assert epoch.tau <= 1.01 * MIN_VARIANCE_SHARE
    assert epoch.index < 12


def test_a_schedule_that_grows_faster_than_eta_shrinks_still_ends() -> None:
    calls: list[float] = []

    def steep(start: EpochStart) -> float:
        calls.append(start.eta)
        return 4.0 / start.eta**1.5

    epoch = Confidence(steep, r=0.5).advance(Epoch(1, 1.0, 4.0, 1), 1e-9, starts)
    assert epoch.tau < 1e-9
    assert calls == [0.5**k for k in range(1, epoch.index)]


def test_before_the_first_choice_epochs_that_the_prior_satisfies_are_passed_over() -> None:
    study = a_study(
        tv.Domain.grid(x=[0.0, 1.0]), tv.Maximize(), kernel=RBF(0.1)
    )  # beta = 0.5 log 2 < 1
    assert study.epoch.index == 2
    assert study.epoch.start == 1
    assert study.gains().max() > 0


def test_eta_shrinks_by_r_from_epoch_to_epoch_and_beta_is_computed_again() -> None:
    spy = Spy(tv.LogBeta(1.0))
    study = a_study(policy=tv.TruVaR(beta=spy, eta=0.8, r=0.25), noise=1e-4)
    study.run(lambda point: point["x"], steps=10)
    epochs = study.history[["epoch", "eta", "beta"]].drop_duplicates()
    assert len(epochs) >= 2
    np.testing.assert_allclose(epochs["eta"], 0.8 * 0.25 ** (epochs["epoch"] - 1))
    for row in epochs.itertuples():
        assert row.beta == pytest.approx(log(10 * spy.seen[row.epoch - 1].t ** 2))


def test_bounds_are_drawn_with_the_beta_of_the_epoch_in_which_the_value_was_told() -> None:
    """Line 4 of Algorithm 1 comes before lines 5-6: the sets follow from beta_(i), then
    beta_(i+1) is drawn."""
    betas = iter([4.0, 9.0, 16.0, 25.0, 36.0, 49.0])
    study = a_study(policy=tv.TruVaR(beta=lambda start: next(betas), r=0.5), noise=1e-4)
    before = study.epoch
    while study.epoch == before:
        suggestion = study.ask()
        study.tell(suggestion, suggestion.point["x"])
    result = study.result()
    np.testing.assert_allclose(result.upper - result.mean, sqrt(before.beta) * result.sd)
    assert study.epoch.beta > before.beta


def test_certificates_name_the_regime_of_their_beta() -> None:
    frame = pd.DataFrame({"x": [0.0, 0.5, 1.0]})
    domain = tv.Domain.table(frame)
    theorem = (
        a_study(domain, policy=tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.1)).result().certificate
    )
    assert (theorem.regime, theorem.delta) == ("theorem", 0.1)
    assert "probability at least 0.9" in theorem.bounds_statement
    rule_of_thumb = a_study(domain).result().certificate
    assert (rule_of_thumb.regime, rule_of_thumb.delta) == ("heuristic", None)
