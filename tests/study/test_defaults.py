"""Defaults of a study: its policy, and whether M is monotone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.problems import KINDS, answer
from tests.helpers.small import LEVELS, LINE, a_study, hill

import truvar as tv
from truvar.acquisition import policy_classes
from truvar.acquisition.confidence import Confidence

# -- the policy
# --------------------------------------------------------------------------------------------------

MODELS: dict[str, dict[str, Any]] = {
    "known": {"kernel": RBF(0.2), "mean": 0.0, "noise": 0.01},
    "mean and noise learned": {"kernel": RBF(0.2)},
    "learned": {},
    "family": {"kernel": "rbf"},
    "most probable hyperparameters": {"kernel": tv.Learned("rbf", marginalise=False)},
    "tasks": {
        "kernel": RBF(0.2),
        "mean": 0.0,
        "noise": 0.01,
        "tasks": tv.Tasks(np.eye(2), ["f", "g"]),
    },
}


@pytest.mark.parametrize("model", MODELS)
def test_the_default_policy_is_auto_whatever_the_model(model: str) -> None:
    study = tv.Study(LINE, tv.Maximize(), **MODELS[model])
    assert study.policy == policy_classes()["auto"]()
    assert study.policy == tv.Study(LINE, tv.Maximize(), policy="auto", **MODELS[model]).policy


def test_truvar_by_name_is_the_algorithm_of_the_paper() -> None:
    study = a_study(policy="truvar")
    assert study.policy == tv.TruVaR(
        beta=None, eta=1.0, r=0.1, slack=0.0, among=None, anticipate=None
    )
    assert study.policy.confidence.beta == tv.LogBeta()
    assert study.goal == tv.LevelSet(0.2, monotone=True)


GOALS = [tv.LevelSet(0.2), tv.LevelSet(fraction_of_max=0.8), tv.Maximize(), tv.Minimize()]
SETTINGS: dict[str, dict[str, Any]] = {
    "noise": {},
    "no noise": {"noise": 0.0},
    "noise levels": {"noise": LEVELS},
    "travel": {"cost": tv.Cost(1, travel={"x": 3.0})},
    "noise levels and travel": {"noise": LEVELS, "cost": tv.Cost(1, travel={"x": 3.0})},
    "tasks": {"tasks": tv.Tasks([[1, 0.5], [0.5, 1]], ["f", "g"], cost=[3, 1])},
    "tasks and travel": {
        "tasks": tv.Tasks([[1, 0.5], [0.5, 1]], ["f", "g"]),
        "cost": tv.Cost(1, travel={"x": 3.0}),
    },
    "engine dense32": {"engine": "dense32"},
    "engine dense64": {"engine": "dense64"},
    "engine lazy": {"engine": "lazy"},
    "random start": {"start": "random"},
}


@pytest.mark.parametrize("goal", GOALS, ids=str)
@pytest.mark.parametrize("points", [1, 2, 3, 11, "box"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_default_policy_works_with(settings: str, points: Any, goal: Any) -> None:
    domain = (
        tv.Domain.box(x=(0, 1), representers=12)
        if points == "box"
        else tv.Domain.grid(x=np.linspace(0, 1, points))
    )
    study = a_study(domain, goal, **SETTINGS[settings])
    asked = 0
    while asked < 6 and study.finished is None:
        batch = study.ask(2)
        asked += len(batch)
        for suggestion in batch:
            study.tell(suggestion, hill(suggestion.point))
    result = study.result()
    assert (result.potential.astype(int) + result.above + result.below == 1).all()
    assert study.steps == asked
    assert asked >= 6 or study.finished is not None


@pytest.mark.parametrize("threshold", [60.0, -60.0])
def test_a_threshold_that_the_model_rules_out_is_measured_before_it_is_said_to_be(
    threshold: float,
) -> None:
    study = a_study(goal=tv.LevelSet(threshold))
    assert study.gains().max() == 0.0  # in floating point
    result = study.run(hill, steps=5)
    assert study.steps == 1
    assert (result.below if threshold > 0 else result.above).all()


def test_an_implicit_threshold_is_pursued_until_every_point_is_decided() -> None:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 21))
    study = a_study(domain, tv.LevelSet(fraction_of_max=0.8), noise=0.0)
    values = {round(x, 6): float(np.sin(6 * x)) for x in domain.points[:, 0]}
    classes = study.run(lambda point: values[round(point["x"], 6)], steps=100).classify(0.997)
    assert study.finished is not None
    assert not classes.undecided.any()
    truth = np.array([values[round(x, 6)] for x in domain.points[:, 0]])
    np.testing.assert_array_equal(classes.above, truth > 0.8 * truth.max())


# -- monotone
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OtherPolicy:
    """A policy of somebody else, which derives from no class of ours."""

    confidence: Confidence
    per_cost = False
    signed = False

    def check_supported(self, goal: Any, n_levels: int) -> None:
        pass

    def candidate_rows(self, context: Any, candidates: Any) -> None:
        return None

    def score(self, context: Any, candidates: Any) -> np.ndarray:
        return np.ones(candidates.noise.shape)


REGIMES: dict[str, tuple[Any, bool]] = {
    "default": (None, False),
    "auto": ("auto", False),
    "truvar": ("truvar", True),
    "truvar with another beta": (
        tv.TruVaR(beta=tv.ConstantBeta(9.0), eta=0.0, anticipate="mean"),
        True,
    ),
    "truvar with the theorem's beta": (tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.1), True),
    "auto with the beta of a bounded norm": (tv.Plus(beta=tv.RKHSBeta(2.0, 0.1)), True),
    "auto with another beta": (tv.Plus(beta=tv.LogBeta(2.0)), False),
    "gchk, whose intervals never widen": ("gchk", True),
    "straddle": ("straddle", False),
    "variance": ("variance", False),
    "random with the beta of a bounded norm": (tv.Random(beta=tv.RKHSBeta(2.0, 0.1)), True),
    "another's": (OtherPolicy(Confidence()), False),
    "another's with intersected bounds": (OtherPolicy(Confidence(intersect=True)), True),
    "another's that says so": (OtherPolicy(Confidence(monotone=True)), True),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_the_policy_decides_whether_m_is_monotone_where_the_goal_leaves_it_open(
    regime: str,
) -> None:
    policy, monotone = REGIMES[regime]
    study = a_study(policy=policy)
    assert study.goal == tv.LevelSet(0.2, monotone=monotone)
    assert study.result().goal is study.goal
    assert study.policy_context().goal == study.goal


@pytest.mark.parametrize("policy", [None, "truvar", "gchk", "straddle"])
@pytest.mark.parametrize("monotone", [True, False])
def test_a_goal_that_says_whether_m_is_monotone_is_obeyed(monotone: bool, policy: Any) -> None:
    assert (
        a_study(goal=tv.LevelSet(0.2, monotone=monotone), policy=policy).goal.monotone is monotone
    )
    if policy in (None, "truvar"):
        assert a_study(goal=tv.Minimize(monotone), policy=policy).goal.monotone is monotone


@pytest.mark.parametrize(("policy", "is_undecided_again"), [(None, True), ("truvar", False)])
def test_a_point_that_the_data_contradict_is_undecided_again(
    policy: Any, is_undecided_again: bool
) -> None:
    study = a_study(tv.Domain.grid(x=[0.0, 1.0]), kernel=RBF(0.1), policy=policy)
    study.tell({"x": 0.0}, 5.0, noise=0.1)
    assert study.result().above.tolist() == [True, False]
    study.tell({"x": 0.0}, -4.5, noise=0.1)
    result = study.result()
    assert result.potential[0] == is_undecided_again
    assert result.above[0] == (not is_undecided_again)


def test_a_certificate_counts_the_present_bounds_alone_where_m_may_grow_again() -> None:
    for policy, may_grow in ((None, True), ("truvar", False)):
        study = a_study(policy=policy)
        study.tell(study.ask(), 0.1)
        reasons = " ".join(study.result().certificate.cost_void)
        assert ("M may grow again" in reasons) == may_grow


def test_a_stored_study_keeps_whether_m_is_monotone() -> None:
    for policy, monotone in ((None, False), ("truvar", True)):
        study = a_study(policy=policy)
        assert f'"monotone":{str(monotone).lower()}' in study.to_json()
        assert tv.Study.from_json(study.to_json()).goal == study.goal


def test_a_stored_goal_that_says_it_is_monotone_stays_so() -> None:
    text = a_study(goal=tv.LevelSet(0.2, monotone=True)).to_json()
    study = tv.Study.from_json(text)
    assert study.policy == policy_classes()["auto"]()
    assert study.goal.monotone is True


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "policy" not in KINDS[kind].options])
def test_a_stored_study_with_the_default_policy_continues_as_if_it_had_never_been_closed(
    kind: str,
) -> None:
    study = KINDS[kind].study()
    for _ in range(3):
        suggestion = study.ask()
        study.tell(suggestion, answer(suggestion))
    opened = tv.Study.from_json(study.to_json())
    assert (opened.policy, opened.goal) == (study.policy, study.goal)
    for _ in range(2):
        suggestion = study.ask()
        assert opened.ask() == suggestion
        for each in (study, opened):
            each.tell(suggestion, answer(suggestion))
    np.testing.assert_array_equal(opened.result().mean, study.result().mean)
