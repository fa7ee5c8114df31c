"""What the rival rules share: moments at the candidates, the one noise level they use, and what they refuse.

| here | what | shape |
|---|---|---|
| mean, sd | of f at the candidates, in the goal's sense (high is good) | (c,) |
| score | minus infinity where the rule never measures: other tasks, other noise levels | (c, K) |

A pending measurement counts as made, with the posterior mean as its value (the constant liar at the mean): to
condition on the mean itself leaves the mean as it is and narrows the variance, which is what the posterior does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import PolicyContext, incumbent
from truvar.acquisition.confidence import Confidence, LogBeta, Schedule
from truvar.domain.candidates import Candidates
from truvar.domain.goals import LevelSet
from truvar.exceptions import TruvarError
from truvar.messages import for_interface

Serves = Literal["an optimum", "a level set", "any goal"]
OTHERS = {  # what to take instead, by what the refused rule serves
    "an optimum": "another goal or a rule for level sets: truvar, plus, gchk, straddle, sur, variance or random",
    "a level set": "another goal or a rule for optima: truvar, plus, ei, pi, ucb, ucbpe, es, pes, mrs, mes, bamsoo, "
    "variance or random",
}


def bookkeeping(beta: Schedule | None) -> Confidence:
    """How M, H and L are kept under a rule that does not use them: with the theory's constant, a = 2, so that no study
    is called finished by an aggressive beta."""
    return Confidence(LogBeta(2.0) if beta is None else beta)


def moments(context: PolicyContext, candidates: Candidates) -> tuple[Array, Array]:
    """Mean (c,), in the goal's sense, and standard deviation (c,) of f at the candidates, given what is pending too."""
    posterior = context.posterior
    if candidates.sites is not None:
        mean, variance = posterior.mean[candidates.sites], posterior.pending_variance[candidates.sites]
    else:
        mean, variance = posterior.predict(candidates.points)
        if posterior.n_rows > posterior.n_observed:  # some are pending
            variance = posterior.candidate_variance(candidates)
    return context.goal.sign * mean, np.sqrt(variance)


def to_beat(context: PolicyContext) -> float:
    """The best value observed, in the goal's sense, with the posterior mean for those pending; before that, the prior
    mean."""
    return context.cached("to beat", lambda: _to_beat(context))


def _to_beat(context: PolicyContext) -> float:
    pending = context.queried_points[context.posterior.n_observed :]
    pending = pending[of_target(context, pending)]
    if len(pending) == 0:
        return incumbent(context)
    lies = context.goal.sign * context.posterior.predict(pending)[0]
    return float(lies.max()) if context.best_y is None else max(incumbent(context), float(lies.max()))


def of_target(context: PolicyContext, points: Array) -> Mask:
    """Which of the points (q, d') belong to the target itself and not to another task."""
    if len(context.posterior.sites) == len(context.domain):
        return np.ones(len(points), bool)
    return np.asarray(points[:, -1] == 0)


def at_level(context: PolicyContext, candidates: Candidates, level: int | None, score: Array) -> Array:
    """The score (c,) of measuring the target with that noise level, as a table (c, K)."""
    table = np.full(candidates.noise.shape, -np.inf)
    target = of_target(context, candidates.points)
    table[target, level or 0] = score[target]
    return table


def level_set(context: PolicyContext) -> LevelSet:
    """The goal, which is one that has a threshold."""
    if not isinstance(context.goal, LevelSet):
        raise TruvarError(
            f"a threshold is needed, as of {for_interface('LevelSet(7.0)', problem='level_set = 7.0')}, "
            f"but the goal is {_said(context)}"
        )
    return context.goal


def threshold(context: PolicyContext) -> float:
    """h of a level set; the fraction of the largest posterior mean where it is implicit."""
    mean = context.posterior.mean[: len(context.domain)]
    return level_set(context).thresholds(mean, mean)[0]


def refuse(
    rule: object,
    context: PolicyContext,
    candidates: Candidates,
    serves: Serves,
    level: int | Literal["any"] | None = "any",
) -> Index | None:
    """Refuses a goal that the rule is not made for and, unless it can use any, noise levels without the one to use."""
    if serves != "any goal" and context.goal.level_set != (serves == "a level set"):
        raise TruvarError(f"{_name(rule)} is for {serves}, but the goal is {_said(context)}; take {OTHERS[serves]}")
    count = candidates.n_levels
    if level is None and count > 1:
        raise TruvarError(
            f"{_name(rule)} cannot choose among the {count} noise levels of this study; say which to use, from "
            f"{_level(rule, 0)} to {_level(rule, count - 1)}"
        )
    if level not in (None, "any", *range(count)):
        raise TruvarError(f"{_level(rule, level)} should be one of the study's {count} noise levels, from 0; give one")
    return None


def refuse_per_cost(rule: object, per_cost: bool) -> None:
    """Refuses to divide a score by the cost that can be negative."""
    if per_cost:
        raise TruvarError(
            f"the score of {_name(rule)} can be negative, and divided by its cost a dear measurement would then beat a "
            "cheap one; leave out per_cost, or take a rule whose score cannot: truvar, ei, gchk"
        )


def _name(rule: object) -> str:
    return type(rule).__name__


def _level(rule: object, level: object) -> str:
    return for_interface(f"{_name(rule)}(level={level!r})", problem=f"[policy] level = {level}")


def _said(context: PolicyContext) -> str:
    """The goal as it was given."""
    return for_interface(str(context.goal), problem="a level set" if context.goal.level_set else "an optimum")
