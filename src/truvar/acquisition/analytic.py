"""Rules that judge a candidate by mean and standard deviation at the candidate alone.

| papers | here | shape |
|---|---|---|
| mu_{t-1}(x), sigma_{t-1}(x) | `mean`, `sd`: in the goal's sense, so that high is good | (c,) |
| xi_t, best value observed | `to_beat(scene)` | |
| beta_t of GP-UCB | `exploration(...)` | |
| C_t(x) of Gotovos et al. | [`lower`, `upper`] | (c,) |
| a_t(x), w_t(x) of Gotovos et al. | ambiguity and width of C_t(x) | (c,) |

`per_cost`: the score is divided by the cost. `level`: the noise level to measure with. `beta`: of the bounds behind M,
H and L, which all but GCHK keep only for the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from truvar._typing import Array, Index, Mask
from truvar.acquisition.base import PolicyContext, expected_improvement
from truvar.acquisition.confidence import Confidence, ConstantBeta, Schedule, bounds, intersection, lemma_beta
from truvar.acquisition.utils import (
    at_level,
    bookkeeping,
    level_set,
    moments,
    of_target,
    refuse,
    refuse_per_cost,
    threshold,
    to_beat,
)
from truvar.domain.candidates import Candidates
from truvar.exceptions import TruvarError
from truvar.validation import check_at_least

__all__ = ["EI", "GCHK", "PI", "UCB", "UCBPE", "Random", "Straddle", "Variance"]

Exploration = float | Callable[[int, int], float] | None


def exploration(explore: Exploration, delta: float, divisor: float, points: int, t: int) -> float:
    """beta_t of GP-UCB: a number, a function of |D| and t, or None: 2 log(|D| t^2 pi^2 / (6 delta)) / divisor."""
    if explore is None:
        return lemma_beta(points, t, delta) / divisor
    return float(explore(points, t) if callable(explore) else explore)


def check_exploration(explore: Exploration, delta: float, divisor: float) -> None:
    """Refuses what `exploration` cannot use."""
    if not 0 < delta < 1 or not divisor > 0:
        raise TruvarError(f"delta must lie between 0 and 1 and divisor above 0, got {delta} and {divisor}")
    if explore is not None and not callable(explore):
        check_at_least(explore, 0.0, "explore, beta_t of the upper confidence bound,")


# -- optima ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EI:
    """Expected improvement: E max(f(x) - xi, 0), xi the best value observed (Mockus 1978; Jones, Schonlau, Welch 1998).

    margin  is added to xi, in prior standard deviations: more exploration
    """

    margin: float = 0.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        mean, sd = moments(context, candidates)
        bar = to_beat(context) + self.margin * context.posterior.scale
        return at_level(context, candidates, self.level, expected_improvement(mean, sd, bar))


@dataclass(frozen=True)
class PI:
    """Probability of improvement: P(f(x) > xi + margin), xi the best value observed (Kushner 1964).

    margin  in prior standard deviations, by default Lizotte's (2008); with none it never leaves the best point found
    """

    margin: float = 0.01
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        mean, sd = moments(context, candidates)
        gap = mean - to_beat(context) - self.margin * context.posterior.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            probability = np.where(sd > 0, ndtr(gap / sd), gap > 0)
        return at_level(context, candidates, self.level, probability)


@dataclass(frozen=True)
class UCB:
    """GP-UCB: mu(x) + beta_t^(1/2) sigma(x) (Srinivas, Krause, Kakade, Seeger 2012).

    explore         beta_t as a number or a function of |D| and t; None: their 2 log(|D| t^2 pi^2 / (6 delta)) over
    delta, divisor  `divisor`, which they and the paper set to five
    """

    explore: Exploration = None
    delta: float = 0.1
    divisor: float = 5.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = True

    def __post_init__(self) -> None:
        refuse_per_cost(self, self.per_cost)
        check_exploration(self.explore, self.delta, self.divisor)

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        beta = exploration(
            self.explore, self.delta, self.divisor, len(context.domain), context.posterior.n_observed + 1
        )
        mean, sd = moments(context, candidates)
        return at_level(context, candidates, self.level, bounds(mean, sd**2, beta)[1])


@dataclass(frozen=True)
class UCBPE:
    """GP-UCB-PE: the point with the highest upper confidence bound, then pure exploration, the largest sigma given what
    is pending, within the relevant region (Contal, Buffoni, Robicquet, Vayatis 2013).

    The first of a batch leads in mu + beta_t^(1/2) sigma of what was told alone, and the others follow while it is
    pending; the same holds for workers that never all rest. beta_t is that of `UCB`, by default undivided; t is the
    number of values told plus one.
    """

    explore: Exploration = None
    delta: float = 0.1
    divisor: float = 1.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = True

    def __post_init__(self) -> None:
        refuse_per_cost(self, self.per_cost)
        check_exploration(self.explore, self.delta, self.divisor)

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "an optimum", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        now, next_ = (
            exploration(
                self.explore, self.delta, self.divisor, len(context.domain), context.posterior.n_observed + ahead
            )
            for ahead in (1, 2)
        )
        mean, variance = _told(context, candidates)
        if not context.cached("leader is pending", lambda: _leader_is_pending(context, now)):
            return at_level(context, candidates, self.level, bounds(mean, variance, now)[1])
        floor = context.cached("floor", lambda: bounds(*_told(context), now)[0].max())
        relevant = bounds(mean, 4 * variance, next_)[1] >= floor  # R+: mu + 2 beta^(1/2) sigma reaches the best l_t
        return at_level(context, candidates, self.level, np.where(relevant, moments(context, candidates)[1], -np.inf))


def _leader_is_pending(context: PolicyContext, beta: float) -> bool:
    """Whether a pending point has, of what was told alone, the highest upper confidence bound of all."""
    asked = context.queried_points[context.posterior.n_observed :]
    asked = asked[of_target(context, asked)]
    if len(asked) == 0:
        return False
    mean, variance = context.posterior.predict(asked)
    best = bounds(*_told(context), beta)[1].max()
    return bool(bounds(context.goal.sign * mean, variance, beta)[1].max() >= best - 1e-9 * context.posterior.scale)


def _told(context: PolicyContext, candidates: Candidates | None = None) -> tuple[Array, Array]:
    """Mean, in the goal's sense, and variance at the candidates, or on the domain, from what was told alone."""
    posterior = context.posterior
    if candidates is not None and candidates.sites is None:
        mean, variance = posterior.predict(candidates.points)
        return context.goal.sign * mean, variance
    where = np.arange(len(context.domain)) if candidates is None else candidates.sites
    return context.goal.sign * posterior.mean[where], posterior.variance[where]


# -- level sets --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GCHK:
    """LSE of Gotovos, Casati, Hitz, Krause (2013): the unclassified point of largest ambiguity, with confidence
    intervals C_t that are the intersection of those of all steps so far.

    epsilon  a point counts as classified, and is measured no more, once min C_t + epsilon > h or max C_t - epsilon <= h
    beta     of the intervals; None: beta^(1/2) = 3, as they and the paper take it

    An implicit threshold lies between `fraction_of_max` times the largest min C_t and max C_t; then the widest C_t is
    taken, among the points unclassified or possibly the maximum. Pending measurements narrow C_t as in their batch
    version. Between the points of a box, C_t is the interval of the present step. As long as there is no model, the
    widest point is taken.
    """

    epsilon: float = 0.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    def __post_init__(self) -> None:
        check_at_least(self.epsilon, 0.0, "epsilon")

    @property
    def confidence(self) -> Confidence:
        return Confidence(ConstantBeta(9.0) if self.beta is None else self.beta, intersect=True)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "a level set", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        goal, (mean, sd) = level_set(context), moments(context, candidates)
        if not context.has_bounds:
            return at_level(context, candidates, self.level, sd)
        least, greatest = goal.thresholds(context.lower, context.upper)

        def unclassified(lower: Array, upper: Array) -> Mask:
            return np.asarray((lower + self.epsilon <= greatest) & (upper - self.epsilon > least))

        lower, upper = bounds(mean, sd**2, context.epoch.beta)
        among = unclassified(lower, upper)
        if candidates.sites is not None:
            at = candidates.sites % len(context.domain)
            lower, upper = intersection((context.lower[at], context.upper[at]), (lower, upper))  # C_t
            among = unclassified(lower, upper) & context.regions.potential[at]
        if not (unclassified(context.lower, context.upper) & context.regions.potential).any():
            among[:] = False
        elif goal.threshold is None:
            among |= upper >= context.lower.max()  # it may be the maximum
        ambiguity = upper - lower if goal.threshold is None else np.minimum(upper - greatest, least - lower)
        return at_level(context, candidates, self.level, np.where(among, np.maximum(ambiguity, 0.0), 0.0))


@dataclass(frozen=True)
class Straddle:
    """The straddle heuristic: width sigma(x) - |mu(x) - h| (Bryan, Schneider, Nichol, Miller, Genovese, Wasserman
    2005).

    An implicit threshold is taken to be its fraction of the largest posterior mean.
    """

    width: float = 1.96
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = True

    def __post_init__(self) -> None:
        refuse_per_cost(self, self.per_cost)
        check_at_least(self.width, 0.0, "width")

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "a level set", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        mean, sd = moments(context, candidates)
        return at_level(context, candidates, self.level, self.width * sd - np.abs(mean - threshold(context)))


# -- either ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variance:
    """Maximum variance (VAR of the paper; uncertainty sampling): sigma(x), whatever the goal."""

    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        return refuse(self, context, candidates, "any goal", self.level)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        return at_level(context, candidates, self.level, moments(context, candidates)[1])


@dataclass(frozen=True)
class Random:
    """A point of the domain at random, every one as likely as the others; in a box, one of its representers."""

    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    signed = False

    @property
    def confidence(self) -> Confidence:
        return bookkeeping(self.beta)

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        refuse(self, context, candidates, "any goal", self.level)
        return np.arange(len(candidates.points))  # a random score cannot be searched between the points

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        lots = context.cached("lots", lambda: context.rng.random(len(context.domain)))
        drawn = np.zeros(len(candidates.points)) if candidates.sites is None else lots[candidates.sites % len(lots)]
        return at_level(context, candidates, self.level, drawn)
