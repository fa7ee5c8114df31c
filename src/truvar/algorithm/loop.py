"""Algorithms 1 and 2 of the paper: choose, update, and the epochs between.

`begin` is line 1 of Algorithm 1, `choose` line 3, `update` line 4 (all of Algorithm 2) with lines 5-6."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import Policy, PolicyContext
from truvar.acquisition.confidence import RESOLUTION, Epoch, EpochStart, bounds, intersection
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Goal, Regions
from truvar.engines.ties import TIE_TOLERANCE
from truvar.models.posterior import Posterior

StartOfEpoch = Callable[[float, Mask], EpochStart]  # what is known now, given eta and the targets


@dataclass(frozen=True)
class State:
    """Where Algorithm 1 stands after t observations."""

    regions: Regions  # M_t, H_t, L_t
    targets: Mask  # the rows of M, and what else the goal must know
    lower: Array  # l_t
    upper: Array  # u_t
    epoch: Epoch  # i, eta_(i), beta_(i), t_(i)

    def __post_init__(self) -> None:
        for bound in (self.lower, self.upper):
            bound.setflags(write=False)  # results share them


@dataclass(frozen=True)
class Choice:
    """A row and noise level of the candidate table, and the gain of measuring there."""

    row: int
    level: int
    gain: float


def begin(posterior: Posterior, policy: Policy, n: int, start: StartOfEpoch) -> State:
    """Algorithm 1, line 1: i = 1, M = D."""
    regions = Regions.unknown(n)
    epoch = policy.confidence.first(lambda eta: start(eta, regions.potential))
    lower, upper = bounds(posterior.mean[:n], posterior.variance[:n], epoch.beta)
    return _next_epochs(posterior, policy, State(regions, regions.potential, lower, upper, epoch), start)


def choose(context: PolicyContext, policy: Policy, candidates: Candidates) -> Choice | None:
    """Algorithm 1, line 3: choose the highest score, eq. (3).

    Returns:
        The best candidate among the rows that the policy allows, or among all if those gain nothing; None if no row
        gains anything.
    """
    rows = policy.candidate_rows(context, candidates)
    choice = _highest(context, policy, candidates, rows)
    return choice if choice is not None or rows is None else _highest(context, policy, candidates, None)


def _highest(context: PolicyContext, policy: Policy, candidates: Candidates, rows: Index | None) -> Choice | None:
    table = candidates if rows is None else candidates.take(rows)
    gains = policy.score(replace(context, only_best=True), table)
    scores = (gains / table.cost if policy.per_cost else gains).ravel()
    highest = scores.max(initial=-np.inf)
    if not policy.signed and not highest > 0:
        return None
    row, level = divmod(int(np.argmax(scores >= highest - TIE_TOLERANCE * abs(highest))), table.n_levels)
    return Choice(row if rows is None else int(rows[row]), level, float(gains[row, level]))


def choose_ahead(context: PolicyContext, policy: Policy, candidates: Candidates) -> tuple[PolicyContext, Choice | None]:
    """Line 3 where the pending measurements leave nothing to gain in this epoch: the next one's eta is looked at, so
    that a batch is filled and no worker idles. Also the scene with that eta."""
    choice = None
    while choice is None and context.epoch.tau > RESOLUTION:
        context = replace(context, epoch=replace(context.epoch, eta=policy.confidence.r * context.epoch.eta))
        choice = choose(context, policy, candidates)
    return context, choice


def update(posterior: Posterior, goal: Goal, policy: Policy, state: State, start: StartOfEpoch, nested: bool) -> State:
    """Algorithm 2 after an observation, then lines 5-6 of Algorithm 1. `nested`: the bounds never widen."""
    n = len(state.lower)
    lower, upper = bounds(posterior.mean[:n], posterior.variance[:n], state.epoch.beta)  # eq. (4)
    if nested:
        lower, upper = intersection((state.lower, state.upper), (lower, upper))
    regions = goal.update(state.regions, lower, upper)  # eqs. (5)-(7)
    state = State(regions, goal.targets(regions, lower, upper), lower, upper, state.epoch)
    return _next_epochs(posterior, policy, state, start)


def _next_epochs(posterior: Posterior, policy: Policy, state: State, start: StartOfEpoch) -> State:
    """Algorithm 1, lines 5-6. Also before the first choice: where the prior itself is within eta (beta < 1, on a domain
    of a few points), the first epoch would have nothing to choose by."""
    widest = posterior.variance[: len(state.targets)][state.targets].max(initial=0.0) / posterior.scale**2
    return replace(state, epoch=policy.confidence.advance(state.epoch, widest, lambda eta: start(eta, state.targets)))
