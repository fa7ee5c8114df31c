"""Limits of a run that are statements about the answer: expected F1, expected regret, value of the next measurement.

| symbol | here |
|---|---|
| C, the points reported on the side asked for | `StatementInputs.reported` |
| q(x), the probability that the class of x is wrong | `error` |
| alpha, the largest P(F1 < g) or P(regret > g) at which the goal g is reached | `_MAX_TAIL` |
| E[max(f(x) - c, 0)], c the best posterior mean at a measured point | `expected_improvement` |

Joint statements take draws. A limit is therefore first compared with what single points allow,
which is a necessary condition that is quick to check:

- F1: with FP errors inside C and FN outside, F1 >= g is (2 - g) FP + g FN <= 2 (1 - g) |C|. Where
  F1 < g, which has probability alpha at most, the error at x adds at most min(q(x), alpha) to the
  mean of the left side. So sum w(x) max(q(x) - alpha, 0) <= 2 (1 - g) |C|, with w = 2 - g inside C
  and g outside.
- Regret: no single point exceeds the recommended one by more than g with a probability above alpha.
  The standard deviation of the difference of two values is at least the difference of their
  standard deviations.

A statement that the measurements contradict must not end a run: where the model check fails because
the model is overconfident or a value does not fit, no limit of this module is reached. None is
reached either before there are enough measurements for that check (fewer are enough if they are as
many as there are points), and with a learned model before `Learned.min_observations` values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.acquisition.mixed_search import climbing
from truvar.acquisition.optimizer import search_together
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.recommendation import best_point, eligible_observations
from truvar.domain.goals import Bands, Goal
from truvar.domain.vehicles import Origin
from truvar.exceptions import UnsupportedGoalError
from truvar.inference import _map, bands
from truvar.inference._level_set import screening_f1
from truvar.inference._mixtures import normal_distribution
from truvar.inference.inputs import StatementInputs, predict
from truvar.inference.joint import StatementSource
from truvar.models.diagnostics import MIN_MEASUREMENTS, ModelCheck
from truvar.models.transforms import OutputTransform

_MAX_TAIL = 0.04  # alpha: 0.025, and three standard errors of the share of draws that estimates it
_F1_MARGIN = 0.05  # distance from the goal at which a rough estimate of F1 is worth a better one
_N_NODES = 16  # of the quadrature over the tail of a transformed value
_N_STARTS = 3  # local searches of a box for the largest expected improvement per cost


@dataclass(frozen=True)
class StatementLimits:
    """Statements at which a run ends; None: no limit.

    Attributes:
        f1: Lower end of the 95 % interval of the expected F1 score.
        regret: Upper end of the 95 % interval of the expected regret.
        relative_regret: The same, as a share of the range of the posterior mean over the domain.
        improvement_per_cost: Expected improvement per unit cost below which no measurement is worth
            its cost.
        accuracy: Distance from f that a map exceeds at 1 % of the points at most, with probability
            95 %.
    """

    f1: float | None = None
    regret: float | None = None
    relative_regret: float | None = None
    improvement_per_cost: float | None = None
    accuracy: float | None = None

    @property
    def given(self) -> bool:
        """Whether there is a limit."""
        return any(limit is not None for limit in vars(self).values())


@dataclass(frozen=True)
class StopCheck:
    """Whether a statement allows a run to end.

    Attributes:
        reason: The statement that reached its limit, as a sentence; None if none did.
        obstacle: Why a limit that may be reached does not count: the measurements contradict the
            model. None if they do not.
    """

    reason: str | None = None
    obstacle: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the check for JSON."""
        return dict(vars(self))


def check_stop(
    learner: ActiveLearner,
    limits: StatementLimits,
    inputs: Callable[[], StatementSource],
    model_check: Callable[[], ModelCheck],
    last: Origin,
) -> StopCheck:
    """Return whether one of the limits is reached.

    Args:
        learner: The state of the study.
        limits: The limits, which suit the goal.
        inputs: Returns what joint statements depend on; called if there is a model.
        model_check: Returns the model check; called if a limit may be reached.
        last: The position that travel starts from; None before the first.
    """
    if not limits.given or not _has_model(learner):
        return StopCheck()
    source = inputs()
    if not source.fitted:
        return StopCheck()
    state = _LimitState(learner, source, limits, last)
    near = [reason for find in _NEAR_LIMITS if (reason := find(state)) is not None]
    if not near:
        return StopCheck()
    check = model_check()
    if check.is_contradiction:
        return StopCheck(obstacle=check.message)
    reached = (reason() for reason in near)
    return StopCheck(next((reason for reason in reached if reason is not None), None))


class _LimitState(NamedTuple):
    """Everything that a limit is compared with; see `check_stop`."""

    learner: ActiveLearner
    source: StatementSource
    limits: StatementLimits
    last: Origin


# Returns why a limit is reached, from joint draws; None: it is not.
_Reason = Callable[[], str | None]


def _near_f1(state: _LimitState) -> _Reason | None:
    """Return the test of the limit of F1; None if single points rule out that it is reached."""
    goal = state.limits.f1
    if goal is None or not may_reach_f1(state.source, goal):
        return None

    def reason() -> str | None:
        f1 = state.source.joint.expected_f1
        return None if f1 is None or f1.low < goal else f"expected F1 {f1} reached {goal:g}"

    return reason


def _near_regret(state: _LimitState) -> _Reason | None:
    """Return the test of the limit of regret; None if single points rule out that it is reached."""
    goal = _regret_goal(state.learner, state.limits)
    if goal is None:
        return None
    if not state.learner.goal.parts and not may_reach_regret(state.source, goal):
        return None

    def reason() -> str | None:
        regret = state.source.joint.expected_regret
        if regret is None or regret.high > goal:
            return None
        return f"expected regret {regret} reached {_describe_regret_goal(state.limits, goal)}"

    return reason


def _near_accuracy(state: _LimitState) -> _Reason | None:
    """Return the test of the limit of accuracy; None if single points rule out that it is reached."""
    goal = state.limits.accuracy
    if goal is None or not _map.may_reach_accuracy(state.source, goal):
        return None
    return lambda: _map.accuracy_reached(state.source.joint, goal)


def _near_worthless(state: _LimitState) -> _Reason | None:
    """Return the reason that no measurement is worth its cost; None if one is, or without that limit."""
    worthless = _worthless(state)
    return None if worthless is None else lambda: worthless


def _worthless(state: _LimitState) -> str | None:
    limit = state.limits.improvement_per_cost
    if limit is None:
        return None
    rate = improvement_per_cost(state.learner, state.source, state.last)
    if not rate < limit:  # nor where it is NaN
        return None
    return (
        "no measurement is worth its cost: the largest expected improvement per unit cost is "
        f"{rate:.3g}, less than "
        f"{limit:g}"
    )


# A test of each limit, in the order in which they are reported. Each is a necessary condition that is
# quick to check, and returns one that may take draws.
_NEAR_LIMITS = (_near_f1, _near_regret, _near_accuracy, _near_worthless)


def _has_model(learner: ActiveLearner) -> bool:
    """Return whether there is a model, with enough measurements to state anything with and to contradict it."""
    needed = MIN_MEASUREMENTS
    if not learner.domain.continuous:
        needed = min(needed, len(learner.domain))
    for each in learner.learners.values():
        surrogate = each.surrogate
        least = max(needed, surrogate.min_observations)
        if not surrogate.fitted or len(each.observations) < least:
            return False
    return True


def _regret_goal(learner: ActiveLearner, limits: StatementLimits) -> float | None:
    """Return the regret at which a run ends, in the user's units: the one that is reached first, if two are given."""
    goals = []
    if limits.regret is not None:
        goals.append(limits.regret)
    if limits.relative_regret is not None:
        goals.append(limits.relative_regret * _mean_range(learner))
    return max(goals, default=None)


def _mean_range(learner: ActiveLearner) -> float:
    """Return the range of the posterior mean over the domain, in the user's units."""
    return float(np.ptp(learner.moments[0]))


def _describe_regret_goal(limits: StatementLimits, goal: float) -> str:
    if limits.relative_regret is None or goal == limits.regret:
        return f"{goal:g}"
    return f"{100 * limits.relative_regret:g} % of the range of the estimates, {goal:.3g}"


# -- necessary conditions
# ----------------------------------------------------------------------------------------------


def may_reach_f1(inputs: StatementInputs, goal: float) -> bool:
    """Return whether single points do not rule out that F1 reaches the goal with 97.5 % probability."""
    if isinstance(inputs.goal, Bands):
        return bands.screening_f1(inputs, inputs.goal) >= goal - _F1_MARGIN
    reported = inputs.reported()
    if reported is None:
        return False
    probability = inputs.marginal_probability()
    if (
        probability is None
    ):  # the threshold is a share of the maximum, which takes draws: a few, at a few points
        return screening_f1(inputs) >= goal - _F1_MARGIN
    error = inputs.error(reported, probability)
    weight = np.where(reported, 2.0 - goal, goal)
    return bool(weight @ np.maximum(error - _MAX_TAIL, 0.0) <= 2.0 * (1.0 - goal) * reported.sum())


def may_reach_regret(inputs: StatementInputs, goal: float) -> bool:
    """Return whether single points do not rule out that the regret is below the goal with 97.5 % probability."""
    sign = inputs.goal.sign
    best_mean, best_variance = inputs.posterior.predict(inputs.best[None, :])  # (members, 1)
    beyond = inputs.transform.forward(inputs.transform.inverse(best_mean) + sign * goal)
    lead = sign * (inputs.means - beyond)
    # With the smallest possible standard deviation of the difference, unless the mean itself is
    # better than allowed.
    difference = np.abs(np.sqrt(inputs.variances) - np.sqrt(best_variance)) + np.finfo(float).tiny
    with np.errstate(over="ignore"):  # a difference without uncertainty is certain: the tail is 0
        distance = np.minimum(lead, 0.0) / difference
    exceeds = np.where(lead > 0, 0.5, normal_distribution(distance))
    if inputs.excluded is not None:
        exceeds = np.where(inputs.excluded, 0.0, exceeds)
    return bool((inputs.posterior.shares @ exceeds).max() <= _MAX_TAIL)


# -- value of the next measurement
# -------------------------------------------------------------------------------------


def check_improvement_goal(goal: Goal) -> None:
    """Check that a goal has something to improve.

    Raises:
        UnsupportedGoalError: If it is no optimum.
    """
    if not goal.seeks_optimum:
        raise UnsupportedGoalError(
            f"the expected improvement needs an optimum, got the goal {goal}; for {goal.one} use "
            f"expected_{goal.score.key}"
        )


@blas_in_one_thread()
def improvement_per_cost(learner: ActiveLearner, inputs: StatementInputs, last: Origin) -> float:
    """Return the largest expected improvement per unit cost over all candidates, in the user's units.

    The improvement is that of the function's value, noise left out, over the best posterior mean at
    a measured point. The cost is that of the cheapest noise level, and of the cheapest task. In a
    box the best candidates are improved by a local search.

    Args:
        learner: The state of a study whose goal is an optimum.
        inputs: What statements depend on.
        last: The position that travel starts from; None before the first.

    Returns:
        The rate; infinite as long as nothing is known.

    Raises:
        UnsupportedGoalError: If the goal is no optimum.
    """
    check_improvement_goal(learner.goal)
    incumbent = _incumbent(learner)
    if not inputs.fitted or incumbent is None:
        return inf
    sign = inputs.goal.sign

    def rates(means: Array, variances: Array, cost: Array) -> Array:
        improvement = expected_improvement(means, variances, incumbent, sign, inputs.transform)
        cheapest = cost.reshape(-1, means.shape[1], cost.shape[1]).min(
            axis=(0, 2)
        )  # over tasks and noise levels
        return np.asarray(inputs.posterior.shares @ improvement / cheapest)

    on_domain = rates(
        inputs.means, inputs.variances, learner.actions.candidates(last).effective_cost
    )
    if inputs.bounds is None:
        return float(on_domain.max())

    def rates_at(points: Array) -> Array:
        sites = np.hstack([points, np.zeros((len(points), len(inputs.best) - points.shape[1]))])
        return rates(
            *inputs.posterior.predict(sites),
            learner.actions.candidates_at(points, last).effective_cost,
        )

    starts = [learner.domain.points[row] for row in np.argsort(-on_domain)[:_N_STARTS]]
    starts.append(inputs.best[: len(inputs.bounds)])
    ends = search_together(rates_at, [climbing(learner.domain, start) for start in starts])
    return float(max(on_domain.max(), *(rate for _, rate in ends)))


def _incumbent(learner: ActiveLearner) -> float | None:
    """Return the best posterior mean at a measured point that can be the answer; None before the first value.

    If all of them are excluded, it is the best one at any point that can be recommended.
    """
    d = len(learner.domain.columns)
    points = [action.point[:d] for action, _ in eligible_observations(learner)]
    if not points and any(action.task == 0 for action, _ in learner.observations):
        points = [best_point(learner)[1]]
    if not points:
        return None
    mean, _ = predict(learner, np.unique(np.stack(points), axis=0))
    sign = learner.goal.sign
    return float(sign * (sign * mean).max())


def expected_improvement(
    means: Array, variances: Array, incumbent: float, sign: int, transform: OutputTransform
) -> Array:
    """Return the expected improvement over a value, in the user's units.

    Args:
        means: Means in the units of the model. (members, n)
        variances: Variances in the units of the model. (members, n)
        incumbent: The value to improve on, in the user's units.
        sign: 1 for a maximum, -1 for a minimum.
        transform: From the user's values to those of the model.

    Returns:
        The expected improvement by member. (members, n)
    """
    sd = np.sqrt(variances)
    beyond = transform.forward(incumbent)
    lead = sign * (means - beyond)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(sd > 0, lead / sd, np.where(lead > 0, np.inf, -np.inf))
    probability = normal_distribution(u)
    if transform.is_identity:
        density = np.exp(-0.5 * np.minimum(u**2, 1e3)) / np.sqrt(2 * np.pi)
        return np.asarray(np.maximum(lead * probability + sd * density, 0.0))
    from scipy.special import ndtri  # imports slowly

    # The improvement given that there is one, by Gauss-Legendre quadrature over its quantiles.
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    total = np.zeros_like(means)
    possible = probability > np.finfo(float).tiny
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        quantile = -ndtri(np.where(possible, node * probability, 0.5))
        value = sign * (transform.inverse(means + sign * sd * quantile) - incumbent)
        total += weight * np.where(possible, np.maximum(value, 0.0), 0.0)
    return np.asarray(probability * total)
