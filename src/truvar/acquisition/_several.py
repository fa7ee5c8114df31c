"""Choices for several quantities: the score of a candidate is the sum over what is measured there.

The models of the quantities are independent, so that what a measurement removes of each adds up.

| symbol | here |
|---|---|
| p_q(x) = P(the requirement on q holds at x) | `_probabilities` |
| importance of x for q: a region | product of p_r(x) over the others r, that q decides there |
| importance of x for q: an optimum | share of the draws in which x would be it if q allowed it |
| sum of q | that of `WeightedTruVaR`, every point times its importance |

Columns of the candidate table are sets of quantities that can be measured together; the gain of a
column is the sum over its set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition._representers import representer_sites
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.truncation import contrast_reduction
from truvar.acquisition.utils import expected_improvement, moments
from truvar.acquisition.weighted import (
    WeightedRows,
    WeightedTruVaR,
    contrast_weights,
    joint_draws,
)
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Goal, probability_of

_MIN_FEASIBILITY = 1e-3  # of a point that can be the optimum with constraints


@dataclass(frozen=True)
class QuantityContext:
    """The view of a policy on one quantity.

    Attributes:
        context: The view on its model, with its part of the goal in the units of that.
        goal: Its part of the goal.
        fitted: Whether there is a model of it to make claims with.
        table: Returns candidates with the noise of this quantity, in the units of its model.
        success: Returns the probability that candidates have a value of it, (c,); None: they all do.
    """

    context: PolicyContext
    goal: Goal
    fitted: bool
    table: Callable[[Candidates], Candidates]
    success: Callable[[Candidates], Array | None]


@dataclass(frozen=True)
class SeveralContext(PolicyContext):
    """The view of a policy on several quantities; all else is that of the leading one.

    Attributes:
        parts: The view on each quantity.
        measures: Quantities that each column of the candidate table measures.
    """

    parts: Mapping[str, QuantityContext] = field(default_factory=dict)
    measures: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class SumPolicy:
    """A policy whose scores are added up over the quantities of a study.

    Attributes:
        policy: The policy.
        exploring: Whether the targets and the epoch are those of the choice, not of each quantity.
    """

    policy: Any
    exploring: bool = False

    def __getattr__(self, name: str) -> Any:
        """Return everything else from the policy."""
        return getattr(object.__getattribute__(self, "policy"), name)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the sum of the scores of what each column of the table measures. (c, K)."""
        if not isinstance(context, SeveralContext):
            raise AssertionError("several quantities have a view each")
        gains = {
            name: _expected_gain(context.parts[name], candidates, gain)
            for name, gain in self._gains(context, candidates).items()
        }
        unfitted = {name for name, part in context.parts.items() if not part.fitted}
        # An initial design measures what has no model yet, all of that, and only that if possible.
        has_own_column = any(set(names) == unfitted for names in context.measures)
        columns = []
        for names in context.measures:
            column = sum(gains[name][:, :1] for name in sorted(names))
            if self.exploring and has_own_column and set(names) != unfitted:
                column = np.zeros_like(column)
            columns.append(column)
        return np.hstack(columns)

    def _gains(self, context: SeveralContext, candidates: Candidates) -> dict[str, Array]:
        """Return the score of measuring each quantity alone, by its name: (c, 1) each."""
        if len(context.parts) == 1:
            name, part = next(iter(context.parts.items()))
            own = replace(part.context, only_best=context.only_best, limited=context.limited)
            if self.exploring:
                own = replace(own, targets=context.targets, epoch=context.epoch)
            own = replace(own, excluded=context.excluded, cache=context.cache)
            return {name: self.policy.score(own, part.table(candidates))}
        if isinstance(self.policy, WeightedTruVaR):
            one_step = replace(self.policy, stops=1)
            if context.goal.seeks_optimum:
                return _constrained_gains(one_step, context, candidates)
            return _region_gains(one_step, context, candidates)
        return {
            name: self._own_gain(name, part, context, candidates)
            for name, part in context.parts.items()
        }

    def _own_gain(
        self, name: str, part: QuantityContext, context: SeveralContext, candidates: Candidates
    ) -> Array:
        """Return the score of a quantity in units of its prior variance, which can be compared."""
        own = part.context
        if self.exploring:
            own = replace(own, targets=context.targets, epoch=context.epoch)
        own = replace(own, limited=context.limited, cache=context.cached(("cache", name), dict))
        scores = self.policy.score(own, part.table(candidates))
        return np.asarray(scores / own.posterior.scale**2)


def _expected_gain(part: QuantityContext, candidates: Candidates, gain: Array) -> Array:
    """Return the gain of measuring a quantity times the probability that it has a value. (c, 1)."""
    success = part.success(candidates)
    own = gain[:, :1]
    return own if success is None else own * success[:, None]


# -- the region where all requirements hold
# ------------------------------------------------------------------------------------------------


def _probabilities(context: SeveralContext) -> dict[str, Array]:
    """Return the probability that each requirement holds, given what is pending, by quantity: (n,)."""

    def of(part: QuantityContext) -> Array:
        mean, sd = part.context.moments
        goal = part.context.goal
        return probability_of(goal, goal.sign * mean, sd, scipy.special.ndtr)

    def compute() -> dict[str, Array]:
        return {name: of(part) for name, part in context.parts.items() if part.goal.has_thresholds}

    return context.cached("probabilities of requirements", compute)


def _product(probabilities: Mapping[str, Array], without: str | None, n: int) -> Array:
    """Return the probability that all requirements but one hold. (n,)."""
    product = np.ones(n)
    for name in sorted(probabilities):
        if name != without:
            product = product * probabilities[name]
    return product


def _region_gains(
    policy: WeightedTruVaR, context: SeveralContext, candidates: Candidates
) -> dict[str, Array]:
    probabilities = _probabilities(context)
    n = len(context.domain)
    importance = {name: _product(probabilities, name, n) for name in probabilities}
    return _requirement_gains(policy, context, candidates, importance)


def _requirement_gains(
    policy: WeightedTruVaR,
    context: SeveralContext,
    candidates: Candidates,
    importance: Mapping[str, Array],
) -> dict[str, Array]:
    """Return the weighted variance reduction of each quantity that a requirement is on."""
    gains = {}
    for name, weight in importance.items():
        part = context.parts[name]
        cache: dict[Any, Any] = context.cached(("cache", name), dict)
        own = replace(part.context, importance=weight, cache=cache, limited=context.limited)
        gains[name] = policy.score(own, part.table(candidates))
    return gains


# -- an optimum with constraints
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FeasibleMaximisers:
    """Points that can be the optimum with constraints.

    Attributes:
        rows: Rows of the sum over the quantity to optimise.
        importance: How often each point would be the optimum if one requirement allowed it, by
            quantity. (n,)
    """

    rows: WeightedRows
    importance: Mapping[str, Array]


@blas_in_one_thread()
def _constrained_gains(
    policy: WeightedTruVaR, context: SeveralContext, candidates: Candidates
) -> dict[str, Array]:
    lead = next(iter(context.parts))
    key = ("feasible maximisers", policy.representers, policy.draws)
    found = context.cached(key, lambda: _feasible_maximisers(policy, context, lead))
    gains = _requirement_gains(policy, context, candidates, found.importance)
    part = context.parts[lead]
    table = part.table(candidates)
    if found.rows.weight.any() and found.rows.leader is not None:
        gains[lead] = contrast_reduction(
            part.context.posterior,
            found.rows.sites,
            found.rows.weight,
            found.rows.leader,
            table,
            only_best=False,
        )
    else:
        gains[lead] = np.zeros_like(table.noise)
    if not any(each.any() for each in gains.values()):
        gains[lead] = _feasible_improvement(context, lead, table)
    return gains


def _feasible_maximisers(
    policy: WeightedTruVaR, context: SeveralContext, lead: str
) -> _FeasibleMaximisers:
    """Draw all quantities jointly, and find the best point that satisfies everything in each draw."""
    probabilities = _probabilities(context)
    n = len(context.domain)
    together = _product(probabilities, None, n)
    excluded = together < min(_MIN_FEASIBILITY, float(together.max()))
    if context.excluded is not None:
        excluded = excluded | context.excluded
    own = replace(context.parts[lead].context, excluded=excluded)
    own = replace(own, best_y=context.best_y, cache=context.cached(("cache", lead), dict))
    sites = representer_sites(own, policy.representers)
    f, _ = joint_draws(own, sites, policy.representers, policy.draws)  # (S, R)
    satisfied = {
        name: _satisfied_draws(policy, context.parts[name], context, sites, name)
        for name in sorted(probabilities)
    }
    inside = np.logical_and.reduce(list(satisfied.values()))
    feasible = np.where(inside, f, -np.inf)
    best = feasible.max(axis=1, keepdims=True)
    importance = {}
    for name in satisfied:
        others = [satisfied[other] for other in satisfied if other != name]
        allowed = np.logical_and.reduce(others) if others else np.ones_like(inside)
        decisive = allowed & (f >= best)  # the optimum, or better if only this one allowed it
        importance[name] = np.zeros(n)
        importance[name][sites] = decisive.mean(axis=0)
    has_optimum = np.isfinite(best[:, 0])
    if not has_optimum.any():
        return _FeasibleMaximisers(WeightedRows(sites[:0], np.zeros(0)), importance)
    winner = feasible[has_optimum].argmax(axis=1)
    share = np.bincount(winner, minlength=len(sites)) / len(f)
    return _FeasibleMaximisers(contrast_weights(own, sites, share, f), importance)


def _satisfied_draws(
    policy: WeightedTruVaR, part: QuantityContext, context: SeveralContext, sites: Index, name: str
) -> Mask:
    """Return where a requirement holds at some sites, by draw: (S, R)."""
    own = replace(part.context, cache=dict(context.cached(("draws", name), dict)))
    seed = (*context.seed, sum(name.encode()))
    own.cache["rng"] = np.random.default_rng(seed)
    goal: Any = own.goal
    values, offset = joint_draws(own, sites, policy.representers, policy.draws)
    if hasattr(goal, "band_thresholds"):
        low, high = goal.thresholds
        held = (values >= low - offset) & (values <= high - offset)
    else:
        held = values >= goal.sign * goal.threshold - offset
    # Members of a mixture are drawn in blocks: in another order they are independent of those of
    # the other quantities.
    order = np.random.default_rng((*seed, 1)).permutation(len(held))
    return np.asarray(held[order])


def _feasible_improvement(context: SeveralContext, lead: str, table: Candidates) -> Array:
    """Return the expected improvement times the probability of being feasible, (c, 1)."""
    own = context.parts[lead].context
    mean, sd = moments(own, table)
    best = context.best_y
    gain = np.ones(len(mean))
    if best is not None:
        gain = expected_improvement(mean, sd, context.goal.sign * best)
    together = _product(_probabilities(context), None, len(context.domain))
    if table.sites is None:
        return np.asarray((gain * float(together.max()))[:, None])
    return np.asarray((gain * together[table.sites])[:, None])
