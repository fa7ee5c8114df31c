"""Certificates: the statement, its regime, and the conditions under which it may be made."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import ceil, inf, log, pi

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.helpers.theory_settings import GRID, THEOREM
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.acquisition.confidence import Epoch, lemma_beta, rkhs_beta
from truvar.algorithm.loop import State
from truvar.domain.goals import Regions
from truvar.problem.build import _build_beta
from truvar.problem.schema import RKHSBetaSpec
from truvar.report import summary
from truvar.report.tables import to_json

GOALS = {
    "maximum": tv.Maximize(),
    "minimum": tv.Minimize(),
    "level set": tv.LevelSet(0.2),
    "implicit": tv.LevelSet(fraction_of_max=0.6),
}
BIG_WORDS = re.compile(
    r"prov(e|en|es|ably)\b|proof|guarant|certif|certain|assur|\bsure", re.IGNORECASE
)


def study_of(
    goal: object, steps: int = 12, domain: tv.Domain = GRID, **settings: object
) -> tv.Study:
    given = {"kernel": RBF(0.4), "mean": 0.0, "noise": 1e-3, **settings}
    study = tv.Study(domain, goal, **given)
    rng = np.random.default_rng(3)

    def measure(point: dict[str, float], *how: object) -> float:
        return float(np.sin(5 * point["x"]) * np.cos(3 * point["y"]) + 0.03 * rng.standard_normal())

    study.run(measure, steps=steps)
    return study


def certificate_of(goal: object, steps: int = 12, **settings: object) -> tv.Certificate:
    return study_of(goal, steps, **settings).result().certificate


def words_of(certificate: tv.Certificate) -> str:
    return " ".join(
        [
            certificate.statement,
            certificate.bounds_statement,
            certificate.because,
            *certificate.assumes,
            *certificate.caveats,
        ]
    )


@pytest.mark.parametrize("goal", GOALS)
def test_theorem_beta_gives_a_statement_with_a_probability(goal):
    certificate = certificate_of(GOALS[goal], policy=THEOREM)
    assert certificate.regime == ("outside" if goal == "implicit" else "theorem")
    assert certificate.delta == 0.1
    assert certificate.bounds_statement.startswith("With probability at least 0.9, ")
    assert certificate.shortfall <= 1
    assert certificate.beta >= certificate.beta_needed == pytest.approx(lemma_beta(64, 12, 0.1))
    words = {
        "maximum": "maximisers",
        "minimum": "minimisers",
        "level set": "0.2",
        "implicit": "the threshold (between",
    }
    assert words[goal] in certificate.bounds_statement
    assert str(certificate) == certificate.statement


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("model", ["known", "learned", "learned mean"])
def test_heuristic_and_learned_regimes_give_no_probability(goal, model):
    settings = {"known": {}, "learned": {"kernel": "matern52"}, "learned mean": {"mean": None}}[
        model
    ]
    study = study_of(GOALS[goal], **settings)
    certificate = study.result().certificate
    assert certificate.regime == ("heuristic" if model == "known" else "learned")
    assert certificate.delta is None
    assert certificate.epoch_ends_by is None
    assert certificate.bounds_statement.startswith("If ")
    assert not BIG_WORDS.search(words_of(certificate)), words_of(certificate)
    assert "robability at least" not in words_of(certificate)
    texts = re.findall(
        r'"([^"\n]*)"[,\n]', to_json(summary(study))
    )  # every string that a report shows
    assert not [text for text in texts if BIG_WORDS.search(text) and text != "certificate"]


def test_the_heuristic_regime_states_by_how_much_beta_falls_short():
    certificate = certificate_of(tv.Maximize(), steps=9)
    needed = 2 * log(64 * 81 * pi**2 / 0.6)
    assert certificate.beta_needed == pytest.approx(needed)
    assert f"{needed:.4g} that Lemma 5.1" in certificate.because
    assert "t = 9, |D| = 64 and delta = 0.1" in certificate.because
    assert f"is {certificate.beta / needed:.2g} of the" in certificate.because
    assert certificate.shortfall >= needed / certificate.beta > 1


def test_a_large_constant_beta_supports_the_statement_but_not_the_bound_on_the_cost():
    certificate = certificate_of(tv.Maximize(), policy=tv.TruVaR(beta=tv.ConstantBeta(60.0)))
    assert certificate.regime == "outside"
    assert certificate.delta == 0.1
    assert "beta was not solved for together with the cost" in certificate.because
    assert (
        certificate_of(tv.Maximize(), policy=tv.TruVaR(beta=tv.ConstantBeta(9.0))).regime
        == "heuristic"
    )


def test_travel_voids_the_bound_on_the_cost_and_nothing_else():
    travel = tv.Cost(base=1, travel={"x": 3})
    certificate = certificate_of(tv.LevelSet(0.2), policy=THEOREM, cost=travel)
    assert certificate.regime == "outside"
    assert certificate.delta == 0.1
    assert certificate.epoch_ends_by is None
    assert certificate.bounds_statement.startswith("With probability at least 0.9")
    assert (
        "the cost depends on the last position: the bounds of Theorem 3.1 on the cost"
        in certificate.because
    )
    assert "The statement itself does not depend on the cost" in certificate.because
    assert "after each of the 12 measurements so far" in certificate.because
    heuristic = certificate_of(tv.LevelSet(0.2), cost=travel)
    assert heuristic.regime == "heuristic"
    assert any("the cost depends on the last position" in caveat for caveat in heuristic.caveats)


@pytest.mark.parametrize(
    ("goal", "policy", "reason"),
    [
        (tv.Maximize(monotone=False), THEOREM, "M may grow again"),
        (tv.LevelSet(fraction_of_max=0.6), THEOREM, "the threshold is implicit"),
        (tv.Maximize(), replace(THEOREM, among="potential"), "a variation of eq. (3)"),
        (tv.Maximize(), replace(THEOREM, anticipate="mean"), "a variation of eq. (3)"),
    ],
)
def test_other_reasons_for_the_regime_outside_are_named(goal, policy, reason):
    certificate = certificate_of(goal, policy=policy)
    assert certificate.regime == "outside"
    assert reason in certificate.because
    assert any(reason in void for void in certificate.cost_void)


def test_an_engine_with_a_tolerance_has_the_regime_outside(monkeypatch):
    study = study_of(tv.Maximize(), policy=THEOREM)
    monkeypatch.setattr(study._learner.engine, "tolerance", 0.02, raising=False)
    certificate = study.result().certificate
    assert certificate.regime == "outside"
    assert certificate.cost_void == ("a choice may gain up to 0.02 less than the best, relatively",)


def test_in_a_box_the_statement_is_about_representer_points():
    box = tv.Domain.box(x=(0, 1), y=(0, 1), representers=36)
    certificate = certificate_of(tv.Maximize(), steps=4, domain=box, policy=THEOREM)
    assert "representer points" in certificate.statement
    assert any(
        "nothing is claimed about f between them" in caveat for caveat in certificate.caveats
    )
    assert certificate.regime == "outside"


def test_more_measurements_than_theorem_beta_allows_for_end_the_regime_theorem():
    """Measurements that were not suggested do not end the epoch, and in time there are more than
    beta allows for."""
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 1.0, 2.0]),
        tv.Maximize(),
        kernel=RBF(0.1),
        mean=0.0,
        noise=1e-4,
        policy=THEOREM,
    )
    allowed = study.result().certificate.epoch_ends_by
    assert allowed is not None
    regimes = []
    for _ in range(ceil(allowed) + 2):
        study.tell({"x": 0.0}, 0.5)
        regimes.append(study.result().certificate.regime)
    # |D| of the lemma is that of the theorem here: three points, one level. So beta is enough up to
    # that very cost.
    assert regimes == ["theorem"] * int(allowed) + ["heuristic"] * (len(regimes) - int(allowed))


def test_theorem_beta_works_without_noise():
    with no_warnings():
        study = tv.Study(GRID, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.0, policy=THEOREM)
        result = study.run(lambda point: float(np.sin(5 * point["x"])), steps=30)
    assert result.certificate.regime == "theorem"


def test_the_epoch_ends_by_the_cost_that_beta_was_solved_for():
    study = study_of(tv.Maximize(), policy=THEOREM)
    by = study.result().certificate.epoch_ends_by
    assert by is not None
    assert lemma_beta(64, by, 0.1) == pytest.approx(study.epoch.beta)
    assert by > study.spent


def test_rkhs_beta_is_a_theorem_up_to_its_horizon():
    policy = tv.TruVaR(beta=tv.RKHSBeta(3.0, 0.1, horizon=8))
    certificate = certificate_of(tv.Maximize(), steps=7, policy=policy)
    assert certificate.regime == "theorem"
    assert "RKHS norm of at most 3" in " ".join(certificate.assumes)
    assert "Theorem 3 of Srinivas" in certificate.because
    late = certificate_of(tv.Maximize(), steps=8, policy=policy)
    assert late.regime == "heuristic"
    assert late.shortfall > 1
    assert rkhs_beta(2.0, 5.0, 10, 0.1) == pytest.approx(8 + 1500 * log(100) ** 3)
    assert _build_beta(RKHSBetaSpec(rkhs=3.0, delta=0.1, horizon=8)) == policy.beta


def test_epsilon_is_about_one_point_and_accuracy_about_all_of_m():
    """Bounds [0, 1] and [0.9, 2]: the second point is within 2 - 0.9 of the maximum, but the first
    may be 2 away from
    it."""
    lower = np.array([0.0, 0.9])
    upper = np.array([1.0, 2.0])
    m = np.ones(2, bool)
    regions = Regions(m, ~m, ~m)
    state = State(regions, m, lower, upper, Epoch(1, 1.0, 4.0, 1))
    assert tv.Maximize().epsilon(regions, lower, upper) == pytest.approx(1.1)
    assert tv.Maximize().accuracy_of_undecided(
        state.regions, state.lower, state.upper
    ) == pytest.approx(2.0)
    mirrored = State(regions, m, -upper, -lower, Epoch(1, 1.0, 4.0, 1))
    assert tv.Minimize().accuracy_of_undecided(
        mirrored.regions, mirrored.lower, mirrored.upper
    ) == pytest.approx(2.0)
    alone = State(Regions(np.array([False, True]), ~m, ~m), m, lower, upper, Epoch(1, 1.0, 4.0, 1))
    assert tv.Maximize().accuracy_of_undecided(alone.regions, alone.lower, alone.upper) == 0.0


@pytest.mark.parametrize("goal", ["maximum", "minimum"])
def test_accuracy_is_never_below_epsilon_while_several_points_are_left(goal):
    study = study_of(GOALS[goal], steps=0)
    for steps in range(1, 15):
        study.run(lambda point: float(np.sin(5 * point["x"])), steps=steps)
        result = study.result()
        if result.potential.sum() > 1:
            assert result.certificate.accurate_to >= result.epsilon - 1e-12


def test_the_epsilon_of_the_epoch_is_in_the_users_units():
    before = certificate_of(tv.Maximize(), steps=1, policy=THEOREM)
    assert before.epoch_epsilon == inf
    assert before.to_dict()["epoch_epsilon"] is None
    study = study_of(tv.Maximize(), steps=60, kernel=ConstantKernel(9.0) * RBF(0.4), policy=THEOREM)
    assert study.epoch.index > 1
    assert study.result().certificate.epoch_epsilon == pytest.approx(
        4 * 1.1 * study.epoch.eta / 0.5 * 3
    )
    implicit = study_of(tv.LevelSet(fraction_of_max=0.6), steps=60, policy=THEOREM)
    assert implicit.epoch.index > 1
    assert implicit.result().certificate.epoch_epsilon == pytest.approx(
        4 * 1.1 * 1.6 * implicit.epoch.eta / 0.5
    )


def test_a_certificate_can_be_written_as_json():
    for settings in ({}, {"policy": THEOREM}, {"kernel": "rbf"}):
        certificate = certificate_of(tv.Maximize(), steps=2, **settings).to_dict()
        assert json.loads(json.dumps(certificate, allow_nan=False)) == certificate


def test_a_run_stops_when_the_certificate_reaches_epsilon():
    study = study_of(tv.Maximize(), steps=1)
    result = study.run(
        lambda point: float(np.sin(5 * point["x"]) * np.cos(3 * point["y"])), epsilon=0.8, steps=60
    )
    assert result.reason == "epsilon (0.8) reached"
    assert result.certificate.epsilon <= 0.8 < study.history["epsilon"].iloc[-2]
