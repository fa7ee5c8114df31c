"""Every policy satisfies the contract suite of `truvar.testing`, and the suite finds broken
policies."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.acquisition import policy_classes
from truvar.acquisition.confidence import Confidence
from truvar.acquisition.utils import moments
from truvar.exceptions import UnsupportedGoalError, UnsupportedNoiseLevelsError
from truvar.testing import CHECKS, check_policy, supported_goals
from truvar.testing import _policies as contract

POLICIES = policy_classes()
VARIANTS = (
    tv.TruVaR(among="potential"),
    tv.TruVaR(among=tv.TopK(5, by="ei")),
    tv.TruVaR(eta=0.0, anticipate="mean"),
    tv.WeightedTruVaR(stops=3, representers=8, draws=64),
    tv.Plus(stops=3, rows=5, representers=8, draws=64),
    tv.EI(margin=0.1, per_cost=True),
    tv.UCB(explore=4.0),
    tv.UCB(explore=lambda points, t: np.log(points * t)),
    tv.UCBPE(divisor=5.0),
    tv.Thompson(representers=8),
    tv.ES(per_cost=True, representers=8, draws=64),
    tv.PES(per_cost=True, representers=8, draws=64),
    tv.MRS(per_cost=True, representers=8, draws=64),
    tv.MES(per_cost=True, representers=8, draws=64),
    tv.GCHK(epsilon=0.1, per_cost=True),
    tv.GCHK(beta=tv.LogBeta(1.0)),
    tv.SUR(representers=5, per_cost=True),
    tv.BES(per_cost=True),
    tv.ITL(representers=5, per_cost=True),
    tv.Variance(per_cost=True),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_satisfies_the_check(name, check):
    check(POLICIES[name]())


@pytest.mark.parametrize("policy", VARIANTS, ids=lambda policy: type(policy).__name__)
def test_options_satisfy_the_contract(policy):
    check_policy(policy)


def test_the_names_are_those_of_the_command_line():
    names = "truvar plus ei pi ucb ucbpe es pes mrs mes bamsoo gchk straddle sur variance random"
    assert set(names.split()) <= set(POLICIES)  # they stay
    assert all(getattr(tv, policy.__name__) is policy for policy in POLICIES.values())


def test_each_policy_supports_the_goals_of_its_section_in_the_docs_and_is_named_in_messages():
    page = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    optimum = [False, False]
    level_set = [True, True]
    goals = {
        "optima and level sets": optimum + level_set,
        "optima": optimum,
        "level sets": level_set,
    }
    for name, policy in POLICIES.items():
        serves = [goal.has_thresholds for goal in supported_goals(policy())]
        (heading,) = re.findall(
            rf"^## For ([a-z ]+)\n(?:(?!^## ).*\n)*### .* \(`{name}`\)$", page, flags=re.MULTILINE
        )
        assert serves == goals[heading], name
        for other, goal, is_level_set in (
            (tv.GCHK(), tv.Maximize(), False),
            (tv.EI(), tv.LevelSet(1.0), True),
        ):
            with pytest.raises(UnsupportedGoalError) as refused:
                other.check_supported(goal, 1)
            alternatives = str(refused.value).rpartition(": ")[2].split(", ")
            assert (name in alternatives) == (is_level_set in serves), name


# -- errors
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_an_unsupported_goal_is_an_error_when_the_study_is_made(name):
    policy = POLICIES[name]()
    for goal in (tv.Maximize(), tv.Minimize(), tv.LevelSet(1.0), tv.LevelSet(fraction_of_max=0.5)):
        fits = goal.has_thresholds in [
            supported.has_thresholds for supported in supported_goals(policy)
        ]
        if fits:
            study(policy, goal)
        else:
            with pytest.raises(
                UnsupportedGoalError,
                match=f"{type(policy).__name__} is for .*, but the goal is {type(goal).__name__}",
            ):
                study(policy, goal)


@pytest.mark.parametrize(
    "policy", [tv.UCB, tv.UCBPE, tv.Straddle], ids=lambda policy: policy.__name__
)
def test_a_score_that_can_be_negative_is_not_divided_by_the_cost(policy):
    with pytest.raises(tv.TruvarError, match="can be negative"):
        policy(per_cost=True)


def test_a_policy_that_proposes_one_point_is_not_divided_by_the_cost():
    with pytest.raises(tv.TruvarError, match="proposes one point"):
        tv.BaMSOO(per_cost=True)


@pytest.mark.parametrize(
    "policy",
    [tv.EI, tv.PI, tv.UCB, tv.UCBPE, tv.MES, tv.BaMSOO],
    ids=lambda policy: policy.__name__,
)
def test_noise_levels_need_the_one_to_use(policy):
    levels = tv.NoiseLevels(variance=[1e-3, 0.1], cost=[3, 1])
    with pytest.raises(
        UnsupportedNoiseLevelsError,
        match=rf"cannot choose among the 2 noise levels.*{policy.__name__}\(level=1\)",
    ):
        study(policy(), tv.Maximize(), noise=levels)
    with pytest.raises(
        UnsupportedNoiseLevelsError, match="is not one of the study's 2 noise levels"
    ):
        study(policy(level=2), tv.Maximize(), noise=levels)
    assert study(policy(level=1), tv.Maximize(), noise=levels).ask().level == 1


def test_the_first_point_of_a_study_is_measured_at_the_level_of_the_policy():
    levels = tv.NoiseLevels(variance=[1e-3, 0.1], cost=[3, 1])
    assert study(tv.EI(level=1), tv.Maximize(), noise=levels, start=4).ask().level == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tv.UCB(delta=0.0), "delta must lie between 0 and 1"),
        (lambda: tv.UCB(explore=-1.0), "explore.* must be >= 0"),
        (lambda: tv.GCHK(epsilon=-0.1), "epsilon must be >= 0"),
        (lambda: tv.Straddle(width=float("nan")), "width must be >= 0"),
        (lambda: tv.ES(draws=0), "draws must be >= 2"),
        (lambda: tv.SUR(representers=1), "representers must be >= 2"),
        (lambda: tv.BaMSOO(eta=1.0), "eta must lie between 0 and 1"),
        (lambda: study(tv.EI(beta=3.0), tv.Maximize()), "beta must be a schedule"),
    ],
)
def test_options_out_of_range_are_errors(make, message):
    with pytest.raises(tv.TruvarError, match=message):
        make()


def test_the_given_start_is_measured_at_the_level_of_highest_score() -> None:
    levels = tv.NoiseLevels(variance=[1e-6, 1e-3, 0.05], cost=[15.0, 10.0, 2.0])
    at = study(tv.TruVaR(), tv.LevelSet(0.5), noise=levels, start=4)
    table = at.candidates()
    gains = at.gains().reshape(-1, 3)
    assert at.ask().level == int(np.argmax(gains[4] / table.cost[4])) == 2


# -- tasks
# --------------------------------------------------------------------------------------------------


def test_policies_without_tasks_measure_the_target():
    tasks = tv.Tasks(covariance=[[1.0, 0.9], [0.9, 1.0]], names=["f", "proxy"], cost=[10.0, 1.0])
    for name, goal in (
        ("ei", tv.Maximize()),
        ("mes", tv.Minimize()),
        ("gchk", tv.LevelSet(0.0)),
        ("random", tv.Maximize()),
    ):
        running = study(name, goal, tasks=tasks)
        for _ in range(3):
            suggestion = running.ask()
            assert suggestion.task == "f"
            running.tell(suggestion, np.sin(9 * suggestion.point["x"]))


def test_policies_that_look_ahead_measure_the_cheap_proxy_per_unit_cost():
    tasks = tv.Tasks(covariance=[[1.0, 0.99], [0.99, 1.0]], names=["f", "proxy"], cost=[10.0, 1.0])
    for policy, goal in (
        (tv.ES(per_cost=True), tv.Maximize()),
        (tv.SUR(per_cost=True), tv.LevelSet(0.0)),
    ):
        assert study(policy, goal, tasks=tasks).ask().task == "proxy"
    assert study(tv.MRS(), tv.Maximize(), tasks=tasks).ask().task == "f"


# -- the suite finds broken policies
# -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deviation:
    """A valid policy that derives from nothing of ours; the broken ones below change one thing
    of it."""

    per_cost = False
    signed = False
    confidence = Confidence()

    def check_supported(self, goal, n_levels):
        pass

    def candidate_rows(self, context, candidates):
        return None

    def score(self, context, candidates):
        return np.repeat(moments(context, candidates)[1][:, None], candidates.n_levels, axis=1)


class LevelSetsOnly(Deviation):
    def check_supported(self, goal, n_levels):
        if goal.seeks_optimum:
            raise UnsupportedGoalError("for level sets")


class WithoutSigned(Deviation):
    signed = None


class WithoutCandidateRows(Deviation):
    candidate_rows = None


class SupportsNoGoal(Deviation):
    def check_supported(self, goal, n_levels):
        raise UnsupportedGoalError("for nothing")


class FailsOnLevelSets(Deviation):
    def check_supported(self, goal, n_levels):
        if goal.has_thresholds:
            raise tv.TruvarError("a bug")


class NotANumber(Deviation):
    def score(self, context, candidates):
        return np.full(candidates.noise.shape, np.nan)


class OfTheWrongShape(Deviation):
    def score(self, context, candidates):
        return np.ones(len(candidates.points))


class Negative(Deviation):
    def score(self, context, candidates):
        return super().score(context, candidates) - 5


class ChoosesAnotherThanItsBest(Deviation):
    def score(self, context, candidates):
        score = super().score(context, candidates)
        return 2 - score if context.only_best else score


class NoScoreBetweenRepresenters(Deviation):
    def score(self, context, candidates):
        score = super().score(context, candidates)
        return score * np.nan if candidates.sites is None else score


class NothingToGain(Deviation):
    def score(self, context, candidates):
        return np.zeros(candidates.noise.shape)


class IgnoresPending(Deviation):
    def score(self, context, candidates):
        if candidates.sites is None:
            return super().score(context, candidates)
        return np.sqrt(context.posterior.variance[candidates.sites])[:, None]


class IgnoresPendingWithRandomTies(IgnoresPending):
    def score(self, context, candidates):
        score = super().score(context, candidates)
        return score * (1 + 1e-3 * context.cached("ties", lambda: context.rng.random(score.shape)))


class FirstRow(Deviation):
    """Suggests the batch [0, 0, 0, 0]."""

    def score(self, context, candidates):
        return np.arange(candidates.noise.size, 0.0, -1.0).reshape(candidates.noise.shape)


@dataclass(frozen=True)
class MeasuresAtAnotherLevel(Deviation):
    level: int | None = None

    def check_supported(self, goal, n_levels):
        if n_levels > 1 and self.level is None:
            raise UnsupportedNoiseLevelsError("give a level")

    def score(self, context, candidates):
        return super().score(context, candidates) * (np.arange(candidates.n_levels) == 0)


class FailsOnNoiseLevels(Deviation):
    def check_supported(self, goal, n_levels):
        if n_levels > 1:
            raise tv.TruvarError("a bug")


class DependsOnTheUnitOfCost(Deviation):
    def score(self, context, candidates):
        return super().score(context, candidates) / (1 + candidates.cost)


class OwnGenerator(Deviation):
    rng = np.random.default_rng(0)

    def score(self, context, candidates):
        return self.rng.random(candidates.noise.shape)


class DividesByTheDeviation(Deviation):
    def score(self, context, candidates):
        with np.errstate(invalid="ignore"):
            return super().score(context, candidates) / super().score(context, candidates)


BROKEN = {
    contract.check_interface: [
        (WithoutSigned(), "signed is True or False"),
        (WithoutCandidateRows(), "candidate_rows is a method"),
        (SupportsNoGoal(), "supports at least one goal"),
        (FailsOnLevelSets(), "or raises UnsupportedGoalError, got TruvarError"),
    ],
    contract.check_finite_domain: [
        (NotANumber(), "NaN"),
        (OfTheWrongShape(), "one number per candidate"),
        (Negative(), "is not negative"),
        (ChoosesAnotherThanItsBest(), "highest score"),
    ],
    contract.check_box: [(NoScoreBetweenRepresenters(), "NaN")],
    contract.check_batch: [(NothingToGain(), "something to measure")],
    contract.check_pending: [
        (IgnoresPending(), r"takes pending points into account .*\[100, 100, 100, 100\]"),
        (IgnoresPendingWithRandomTies(), "takes pending points into account"),
        (FirstRow(), r"takes pending points into account .*\[0, 0, 0, 0\]"),
    ],
    contract.check_levels: [(MeasuresAtAnotherLevel(), "noise level of")],
    contract.check_travel_cost: [(DependsOnTheUnitOfCost(), "unit of the cost")],
    contract.check_seeds: [(OwnGenerator(), "same seed")],
    contract.check_finished: [(DividesByTheDeviation(), "NaN")],
}


def test_every_check_is_tried_on_a_broken_policy():
    assert list(BROKEN) == list(CHECKS)


@pytest.mark.parametrize(
    ("check", "policy", "message"),
    [(check, policy, message) for check, cases in BROKEN.items() for policy, message in cases],
    ids=lambda part: type(part).__name__ if isinstance(part, Deviation) else "",
)
def test_a_broken_policy_fails_its_check(check, policy, message):
    with pytest.raises(AssertionError, match=message):
        check(policy)


def test_an_error_about_noise_levels_that_is_not_declared_is_a_failure():
    with pytest.raises(tv.TruvarError, match="a bug"):
        contract.check_levels(FailsOnNoiseLevels())


def test_a_goal_that_is_not_supported_is_skipped():
    assert [goal.has_thresholds for goal in supported_goals(LevelSetsOnly())] == [True, True]
    check_policy(LevelSetsOnly())


def test_a_valid_policy_that_is_not_ours_passes():
    check_policy(Deviation())


def study(policy, goal, **options):
    settings = {"kernel": Matern(0.2, nu=2.5), "mean": 0.0, "cost": 1.0}
    if not isinstance(options.get("noise"), tv.NoiseLevels):
        settings["noise"] = 1e-3
    return tv.Study(
        tv.Domain.grid(x=np.linspace(0, 1, 12)), goal, policy=policy, **{**settings, **options}
    )
