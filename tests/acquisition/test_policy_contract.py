"""Every decision rule keeps the laws of `truvar.testing`, and a rule that breaks one is found out."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.acquisition import policy_classes
from truvar.acquisition.confidence import Confidence
from truvar.exceptions import UnsupportedGoalError, UnsupportedNoiseLevelsError
from truvar.testing import CHECKS, check_policy, served
from truvar.testing.policies import check_finite_domain, check_seeds

POLICIES = policy_classes()
VARIANTS = (
    tv.TruVaR(among="potential"),
    tv.TruVaR(among=tv.TopK(5, by="ei")),
    tv.TruVaR(eta=0.0, anticipate="mean"),
    tv.Plus(stops=3, rows=5, representers=8, draws=64),
    tv.EI(margin=0.1, per_cost=True),
    tv.UCB(explore=4.0),
    tv.UCB(explore=lambda points, t: np.log(points * t)),
    tv.UCBPE(divisor=5.0),
    tv.ES(per_cost=True, representers=8, draws=64),
    tv.PES(per_cost=True, representers=8, draws=64),
    tv.MRS(per_cost=True, representers=8, draws=64),
    tv.MES(per_cost=True, representers=8, draws=64),
    tv.GCHK(epsilon=0.1, per_cost=True),
    tv.GCHK(beta=tv.LogBeta(1.0)),
    tv.SUR(representers=5, per_cost=True),
    tv.Variance(per_cost=True),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_every_rule_keeps_the_law(name, check):
    check(POLICIES[name]())


@pytest.mark.parametrize("policy", VARIANTS, ids=lambda policy: type(policy).__name__)
def test_options_keep_the_laws(policy):
    check_policy(policy)


def test_the_names_are_those_of_the_command_line():
    names = "truvar plus ei pi ucb ucbpe es pes mrs mes bamsoo gchk straddle sur variance random"
    assert set(names.split()) <= set(POLICIES)  # they stay
    assert all(getattr(tv, rule.__name__) is rule for rule in POLICIES.values())


def test_each_rule_serves_the_goals_that_its_page_says_and_is_named_where_others_refuse():
    page = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
    optimum, level_set = [False, False], [True, True]
    goals = {"optima and level sets": optimum + level_set, "optima": optimum, "level sets": level_set}
    for name, rule in POLICIES.items():
        serves = [goal.level_set for goal in served(rule())]
        (heading,) = re.findall(rf"^## For ([a-z ]+)\n(?:(?!^## ).*\n)*### .* \(`{name}`\)$", page, flags=re.MULTILINE)
        assert serves == goals[heading], name
        for other, goal, level_set in ((tv.GCHK(), tv.Maximize(), False), (tv.EI(), tv.LevelSet(1.0), True)):
            with pytest.raises(UnsupportedGoalError) as refused:
                other.check_supported(goal, 1)
            alternatives = str(refused.value).rpartition(": ")[2].split(", ")
            assert (name in alternatives) == (level_set in serves), name


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_a_goal_that_does_not_fit_is_refused_when_the_study_is_made(name):
    rule = POLICIES[name]()
    for goal in (tv.Maximize(), tv.Minimize(), tv.LevelSet(1.0), tv.LevelSet(fraction_of_max=0.5)):
        fits = goal.level_set in [served_goal.level_set for served_goal in served(rule)]
        if fits:
            study(rule, goal)
        else:
            with pytest.raises(
                UnsupportedGoalError, match=f"{type(rule).__name__} is for .*, but the goal is {type(goal).__name__}"
            ):
                study(rule, goal)


@pytest.mark.parametrize("rule", [tv.UCB, tv.UCBPE, tv.Straddle], ids=lambda rule: rule.__name__)
def test_a_score_that_can_be_negative_is_not_divided_by_the_cost(rule):
    with pytest.raises(tv.TruvarError, match="can be negative"):
        rule(per_cost=True)


def test_a_rule_that_names_one_point_is_not_divided_by_the_cost():
    with pytest.raises(tv.TruvarError, match="proposes one point"):
        tv.BaMSOO(per_cost=True)


@pytest.mark.parametrize("rule", [tv.EI, tv.PI, tv.UCB, tv.UCBPE, tv.MES, tv.BaMSOO], ids=lambda rule: rule.__name__)
def test_noise_levels_need_the_one_to_use(rule):
    levels = tv.NoiseLevels(variance=[1e-3, 0.1], cost=[3, 1])
    with pytest.raises(UnsupportedNoiseLevelsError, match=rf"cannot choose among the 2 noise levels.*{rule.__name__}\(level=1\)"):
        study(rule(), tv.Maximize(), noise=levels)
    with pytest.raises(UnsupportedNoiseLevelsError, match="is not one of the study's 2 noise levels"):
        study(rule(level=2), tv.Maximize(), noise=levels)
    assert study(rule(level=1), tv.Maximize(), noise=levels).ask().level == 1


def test_the_first_point_of_a_study_is_measured_at_the_level_of_the_rule():
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
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(tv.TruvarError, match=message):
        make()


def test_the_given_start_is_measured_at_the_level_that_the_rule_likes_best_there() -> None:
    levels = tv.NoiseLevels(variance=[1e-6, 1e-3, 0.05], cost=[15.0, 10.0, 2.0])
    at = study(tv.TruVaR(), tv.LevelSet(0.5), noise=levels, start=4)
    table, gains = at.candidates(), at.gains().reshape(-1, 3)
    assert at.ask().level == int(np.argmax(gains[4] / table.cost[4])) == 2


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_rules_without_a_notion_of_tasks_measure_the_target():
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


def test_rules_that_look_ahead_take_the_cheap_proxy_when_they_count_costs():
    tasks = tv.Tasks(covariance=[[1.0, 0.99], [0.99, 1.0]], names=["f", "proxy"], cost=[10.0, 1.0])
    for policy, goal in ((tv.ES(per_cost=True), tv.Maximize()), (tv.SUR(per_cost=True), tv.LevelSet(0.0))):
        assert study(policy, goal, tasks=tasks).ask().task == "proxy"
    assert study(tv.MRS(), tv.Maximize(), tasks=tasks).ask().task == "f"


# -- rules that break a law --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """What the breakers share: a rule that always scores by its position."""

    per_cost = False
    signed = False
    confidence = Confidence()

    def check_supported(self, goal, n_levels):
        pass

    def candidate_rows(self, context, candidates):
        return None

    def score(self, context, candidates):
        return np.arange(candidates.noise.size, dtype=float).reshape(candidates.noise.shape)


class WithoutSeed(Bad):
    rng = np.random.default_rng(0)

    def score(self, context, candidates):
        return self.rng.random(candidates.noise.shape)


class NotANumber(Bad):
    def score(self, context, candidates):
        return np.full(candidates.noise.shape, np.nan)


class OfTheWrongShape(Bad):
    def score(self, context, candidates):
        return np.ones(3)


class Negative(Bad):
    def score(self, context, candidates):
        return super().score(context, candidates) - 5


def test_a_rule_that_ignores_the_seed_is_found_out():
    with pytest.raises(AssertionError, match="same seed"):
        check_seeds(WithoutSeed())


@pytest.mark.parametrize(
    ("policy", "law"),
    [(NotANumber(), "NaN"), (OfTheWrongShape(), "one number per candidate"), (Negative(), "is not negative")],
    ids=lambda case: type(case).__name__,
)
def test_a_score_that_is_none_is_found_out(policy, law):
    with pytest.raises(AssertionError, match=law):
        check_finite_domain(policy)


def test_a_rule_from_elsewhere_passes_if_it_keeps_the_laws():
    check_policy(Bad())


def study(policy, goal, **options):
    settings = {"kernel": Matern(0.2, nu=2.5), "mean": 0.0, "cost": 1.0}
    if not isinstance(options.get("noise"), tv.NoiseLevels):
        settings["noise"] = 1e-3
    return tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 12)), goal, policy=policy, **{**settings, **options})
