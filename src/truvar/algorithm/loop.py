"""Algorithms 1 and 2 of the paper: choosing a measurement, updating the sets, and the epochs.

| paper | here |
|---|---|
| Algorithm 1, line 1 | `begin` |
| Algorithm 1, line 3 | `choose`, `choose_ahead` |
| Algorithm 1, line 4 (all of Algorithm 2), lines 5-6 | `update` |
| M_t, H_t, L_t | `State.regions` |
| l_t, u_t | `State.lower`, `State.upper` |
| i, eta_(i), beta_(i), t_(i) | `State.epoch` |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import Policy, PolicyContext
from truvar.acquisition.confidence import (
    MIN_VARIANCE_SHARE,
    Epoch,
    EpochStart,
    bounds,
    intersection,
)
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Goal, Regions
from truvar.engines.ties import TIE_TOLERANCE
from truvar.models.posterior import Posterior

StartOfEpoch = Callable[[float, Mask], EpochStart]
"""Function of eta and the targets that returns what is known when an epoch starts."""


@dataclass(frozen=True)
class State:
    """The state of Algorithm 1 after t observations.

    Attributes:
        regions: M_t, H_t and L_t.
        targets: The points whose variance is to be reduced: M, and what else the goal must know.
        lower: l_t. Read-only, as results share it.
        upper: u_t. Read-only, as results share it.
        epoch: i, eta_(i), beta_(i) and t_(i).
    """

    regions: Regions
    targets: Mask
    lower: Array
    upper: Array
    epoch: Epoch

    def __post_init__(self) -> None:
        self.lower.setflags(write=False)
        self.upper.setflags(write=False)


@dataclass(frozen=True)
class Choice:
    """A row and noise level of the candidate table, and the gain of measuring there."""

    row: int
    level: int
    gain: float


def begin(posterior: Posterior, policy: Policy, n: int, start: StartOfEpoch) -> State:
    """Algorithm 1, line 1: return the first state, with i = 1 and M = D.

    Args:
        posterior: The prior, before the first observation.
        policy: The policy, whose `confidence` sets beta and eta.
        n: Number of points of the domain.
        start: Returns what is known now.
    """
    regions = Regions.unknown(n)
    epoch = policy.confidence.first(lambda eta: start(eta, regions.potential))
    lower, upper = bounds(posterior.mean[:n], posterior.variance[:n], epoch.beta)
    return _advance_epochs(
        posterior, policy, State(regions, regions.potential, lower, upper, epoch), start
    )


def choose(context: PolicyContext, policy: Policy, candidates: Candidates) -> Choice | None:
    """Algorithm 1, line 3: choose the highest score, eq. (3).

    Returns:
        The best candidate among the rows that the policy allows, or among all if those gain
        nothing; None if no row gains anything. Rows where a success is less probable than
        `context.min_feasibility` are left out.
    """
    candidates = candidates.likely(context.min_feasibility)
    rows = policy.candidate_rows(context, candidates)
    affordable = candidates.affordable
    if not affordable.all():
        context = replace(context, limited=True)
        everything = np.flatnonzero(affordable)
        rows = everything if rows is None else rows[affordable[rows]]
        choice = _highest(context, policy, candidates, rows)
        return _highest(context, policy, candidates, everything) if choice is None else choice
    choice = _highest(context, policy, candidates, rows)
    if choice is None and rows is not None:
        choice = _highest(context, policy, candidates, None)
    return choice


def _highest(
    context: PolicyContext, policy: Policy, candidates: Candidates, rows: Index | None
) -> Choice | None:
    """Return the first of `rows` with the highest score up to rounding; None if none gains."""
    table = candidates if rows is None else candidates.take(rows)
    if len(table.points) == 0:
        return None
    gains = policy.score(replace(context, only_best=True), table)
    scores = comparable_scores(context, policy, table, gains)
    scores = np.where(np.isfinite(table.cost), scores, -np.inf).ravel()
    highest = scores.max(initial=-np.inf)
    if np.isneginf(highest) or (not policy.signed and not highest > 0):
        return None
    row, level = divmod(
        int(np.argmax(scores >= highest - TIE_TOLERANCE * abs(highest))), table.n_levels
    )
    return Choice(row if rows is None else int(rows[row]), level, float(gains[row, level]))


def comparable_scores(
    context: PolicyContext, policy: Policy, table: Candidates, gains: Array
) -> Array:
    """Return the scores to compare candidates by: gains per cost, times P(success).

    Scores that can be negative are counted from the lowest that the context has seen, so that a
    smaller probability always makes them smaller.

    Args:
        context: The context of the choice.
        policy: The policy.
        table: The candidates.
        gains: The policy's scores of them. (c, K)

    Returns:
        The scores, minus infinity where no measurement is allowed. (c, K)
    """
    if table.feasibility is None:
        return gains / table.cost if policy.per_cost else gains
    allowed = table.feasibility[:, None] > 0
    if policy.signed:
        finite = gains[np.isfinite(gains)]
        lowest = context.cached("lowest score", lambda: float(finite.min(initial=0.0)))
        return np.where(
            allowed & np.isfinite(gains), (gains - lowest) * table.feasibility[:, None], -np.inf
        )
    if policy.per_cost:
        return np.where(allowed, gains / np.where(allowed, table.effective_cost, 1.0), -np.inf)
    return np.where(allowed & np.isfinite(gains), gains * table.feasibility[:, None], -np.inf)


def choose_ahead(
    context: PolicyContext, policy: Policy, candidates: Candidates
) -> tuple[PolicyContext, Choice | None]:
    """Line 3 where pending measurements leave nothing to gain: choose with a later epoch's eta.

    This fills a batch, so that no worker is idle.

    Returns:
        The context with that eta, and the choice; None if there is no gain in any later epoch.
    """
    choice = None
    while choice is None and context.epoch.tau > MIN_VARIANCE_SHARE:
        context = replace(
            context, epoch=replace(context.epoch, eta=policy.confidence.r * context.epoch.eta)
        )
        choice = choose(context, policy, candidates)
    return context, choice


def update(
    posterior: Posterior,
    moments: tuple[Array, Array],
    goal: Goal,
    policy: Policy,
    state: State,
    start: StartOfEpoch,
    nested: bool,
) -> State:
    """Algorithm 2 after an observation, then lines 5-6 of Algorithm 1.

    Args:
        posterior: The posterior with the observation, which the epochs depend on.
        moments: Its mean and variance on the domain, or those of a mixture of posteriors: the
            bounds are made of them.
        goal: Classifies the points by their bounds.
        policy: The policy, whose `confidence` sets beta and eta.
        state: The state before the observation.
        start: Returns what is known now.
        nested: Whether the bounds are intersected with the earlier ones, so that they never widen.
    """
    lower, upper = bounds(*moments, state.epoch.beta)  # eq. (4)
    if nested:
        lower, upper = intersection((state.lower, state.upper), (lower, upper))
    regions = goal.update(state.regions, lower, upper)  # eqs. (5)-(7)
    state = State(regions, goal.targets(regions, lower, upper), lower, upper, state.epoch)
    return _advance_epochs(posterior, policy, state, start)


def _advance_epochs(
    posterior: Posterior, policy: Policy, state: State, start: StartOfEpoch
) -> State:
    """Algorithm 1, lines 5-6: start epochs while the variance on the targets is small enough.

    It runs before the first choice too: where the prior itself is within eta (beta < 1, on a domain
    of a few points), the first epoch would leave nothing to choose.
    """
    variance = posterior.variance[: len(state.targets)][state.targets]
    widest = variance.max(initial=0.0) / posterior.scale**2
    return replace(
        state,
        epoch=policy.confidence.advance(state.epoch, widest, lambda eta: start(eta, state.targets)),
    )
