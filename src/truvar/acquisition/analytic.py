"""Policies that score a candidate by the mean and standard deviation at that candidate alone.

| papers | here | shape |
|---|---|---|
| mu_{t-1}(x), sigma_{t-1}(x) | `mean`, `sd`: signed so that high is good | (c,) |
| xi_t, best value observed | `incumbent(context)` | |
| beta_t of GP-UCB | `exploration(...)` | |
| C_t(x) of Gotovos et al. | [`lower`, `upper`] | (c,) |
| a_t(x), w_t(x) of Gotovos et al. | ambiguity and width of C_t(x) | (c,) |

The options `level`, `per_cost` and `beta` are those of `BasePolicy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from truvar._typing import Array, Mask
from truvar.acquisition.base import LEVEL_SET, OPTIMUM, BasePolicy, PolicyContext
from truvar.acquisition.confidence import (
    Confidence,
    ConstantBeta,
    Schedule,
    bounds,
    intersection,
    lemma_beta,
)
from truvar.acquisition.utils import (
    expected_improvement,
    incumbent,
    level_set_goal,
    moments,
    thresholds,
)
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Bands
from truvar.validation import check_at_least, check_fraction, check_positive

__all__ = ["EI", "GCHK", "PI", "UCB", "UCBPE", "Straddle", "Variance"]

Exploration = float | Callable[[int, int], float] | None

_TIE_TOLERANCE_SDS = (
    1e-9  # in prior standard deviations: upper bounds that differ by less are equal
)


def exploration(explore: Exploration, delta: float, divisor: float, points: int, t: int) -> float:
    """Return beta_t of GP-UCB.

    Args:
        explore: A number, a function of |D| and t, or None for 2 log(|D| t^2 pi^2 / (6 delta)) /
            divisor.
        delta: Probability that the bounds fail.
        divisor: Divides the default.
        points: |D|, the number of points.
        t: Index of the choice, from 1.
    """
    if explore is None:
        return lemma_beta(points, t, delta) / divisor
    return float(explore(points, t) if callable(explore) else explore)


def _check_exploration(explore: Exploration, delta: float, divisor: float) -> None:
    """Check the options of `exploration`.

    Raises:
        InvalidArgumentError: If one of them is out of range.
    """
    check_fraction(delta, "delta")
    check_positive(divisor, "divisor", example="5.0")
    if explore is not None and not callable(explore):
        check_at_least(explore, 0.0, "explore (beta_t of the upper confidence bound)")


# -- optima
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EI(BasePolicy):
    """Expected improvement (Mockus 1978; Jones, Schonlau, Welch 1998).

    Attributes:
        margin: Added to the best value observed, in prior standard deviations: more exploration.
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    margin: float = 0.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return E max(f(x) - xi, 0). Shape (c, K)."""
        mean, sd = moments(context, candidates)
        best = incumbent(context) + self.margin * context.posterior.scale
        return self.score_table(context, candidates, expected_improvement(mean, sd, best))


@dataclass(frozen=True)
class PI(BasePolicy):
    """Probability of improvement (Kushner 1964).

    Attributes:
        margin: Required improvement in prior standard deviations. The default is Lizotte's (2008);
            with a margin of 0 the policy never leaves the best point found.
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    margin: float = 0.01
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return P(f(x) > xi + margin). Shape (c, K)."""
        mean, sd = moments(context, candidates)
        gap = mean - incumbent(context) - self.margin * context.posterior.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            probability = np.where(sd > 0, ndtr(gap / sd), gap > 0)
        return self.score_table(context, candidates, probability)


@dataclass(frozen=True)
class UCB(BasePolicy):
    """GP-UCB (Srinivas, Krause, Kakade, Seeger 2012).

    Attributes:
        explore: beta_t as a number or a function of |D| and t; None for 2 log(|D| t^2 pi^2 / (6
            delta)) / divisor.
        delta: Probability that the bounds fail, for the default of `explore`.
        divisor: Divides the default of `explore`; 5 in their experiments and in the paper's.
        level: See `BasePolicy`.
        per_cost: Must be False, since scores can be negative.
        beta: See `BasePolicy`.
    """

    explore: Exploration = None
    delta: float = 0.1
    divisor: float = 5.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM
    signed = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_exploration(self.explore, self.delta, self.divisor)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return mu(x) + beta_t^(1/2) sigma(x). Shape (c, K)."""
        t = context.posterior.n_observed + 1
        beta = exploration(self.explore, self.delta, self.divisor, len(context.domain), t)
        mean, sd = moments(context, candidates)
        return self.score_table(context, candidates, bounds(mean, sd**2, beta)[1])


@dataclass(frozen=True)
class UCBPE(BasePolicy):
    """GP-UCB-PE: GP-UCB first, then pure exploration (Contal, Buffoni, Robicquet, Vayatis 2013).

    The first suggestion of a batch has the highest upper confidence bound given the observations
    alone. While it is pending, the next suggestions have the largest standard deviation, given
    pending points, within the relevant region. The same holds for parallel workers that never all
    rest. t is the number of observations plus one.

    Attributes:
        explore: beta_t, as in `UCB`.
        delta: As in `UCB`.
        divisor: As in `UCB`, but 1 by default.
        level: See `BasePolicy`.
        per_cost: Must be False, since scores can be negative.
        beta: See `BasePolicy`.
    """

    explore: Exploration = None
    delta: float = 0.1
    divisor: float = 1.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = OPTIMUM
    signed = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_exploration(self.explore, self.delta, self.divisor)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the upper confidence bound; sigma(x) while its maximiser is pending: (c, K)."""
        t = context.posterior.n_observed + 1
        beta = exploration(self.explore, self.delta, self.divisor, len(context.domain), t)
        next_beta = exploration(self.explore, self.delta, self.divisor, len(context.domain), t + 1)
        mean, variance = _observed_moments(context, candidates)
        if not context.cached(
            "ucb maximiser is pending", lambda: _ucb_maximiser_is_pending(context, beta)
        ):
            return self.score_table(context, candidates, bounds(mean, variance, beta)[1])
        best_lower = context.cached(
            "best lower bound", lambda: bounds(*_observed_moments(context), beta)[0].max()
        )
        # R+: mu + 2 beta^(1/2) sigma >= max l_t
        relevant = bounds(mean, 4 * variance, next_beta)[1] >= best_lower
        sd = moments(context, candidates)[1]
        return self.score_table(context, candidates, np.where(relevant, sd, -np.inf))


def _ucb_maximiser_is_pending(context: PolicyContext, beta: float) -> bool:
    """Return whether a pending point has the highest upper bound given the observations alone."""
    pending = context.pending_points
    pending = pending[context.is_target(pending)]
    if len(pending) == 0:
        return False
    mean, variance = context.posterior.predict(pending)
    best = bounds(*_observed_moments(context), beta)[1].max()
    best_pending = bounds(context.goal.sign * mean, variance, beta)[1].max()
    return bool(best_pending >= best - _TIE_TOLERANCE_SDS * context.posterior.scale)


def _observed_moments(
    context: PolicyContext, candidates: Candidates | None = None
) -> tuple[Array, Array]:
    """Return signed moments given the observations alone, at the candidates or on the domain."""
    posterior = context.posterior
    if candidates is None:
        sites = np.arange(len(context.domain))
    elif candidates.sites is None:
        mean, variance = posterior.predict(candidates.points)
        return context.goal.sign * mean, variance
    else:
        sites = candidates.sites
    return context.goal.sign * posterior.mean[sites], posterior.variance[sites]


# -- level sets
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GCHK(BasePolicy):
    """LSE: the unclassified point of largest ambiguity (Gotovos, Casati, Hitz, Krause 2013).

    The confidence interval C_t is the intersection of those of all steps so far. An implicit
    threshold lies between `fraction_of_max` times the largest min C_t and max C_t; the score is
    then the width of C_t, among points that are unclassified or may be the maximum. Of several
    thresholds the one with the largest ambiguity counts. Pending measurements narrow C_t as in
    their batch version. Between the points of a box, C_t is the interval of the present step. Until
    there is a model, the score is the standard deviation.

    Attributes:
        epsilon: Accuracy: a point is classified, and not measured again, once min C_t + epsilon > h
            or max C_t - epsilon <= h.
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: Schedule of the intervals; None for beta^(1/2) = 3, as in their paper and in TruVaR's.
    """

    epsilon: float = 0.0
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = LEVEL_SET
    supports_bands = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.epsilon, 0.0, "epsilon")

    @property
    def confidence(self) -> Confidence:
        """Schedules of the intervals C_t, which never widen."""
        return Confidence(ConstantBeta(9.0) if self.beta is None else self.beta, intersect=True)

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the ambiguity a_t(x), or the width w_t(x) with an implicit threshold: (c, K)."""
        mean, sd = moments(context, candidates)
        if not context.has_bounds:
            return self.score_table(context, candidates, sd)
        present = context.signed_bounds
        implicit = not isinstance(context.goal, Bands) and level_set_goal(context).threshold is None
        levels = [(h, h) for h in thresholds(context)]
        if implicit:
            least, greatest = level_set_goal(context).thresholds(context.lower, context.upper)
            sign = context.goal.sign
            levels = [(least, greatest) if sign > 0 else (-greatest, -least)]

        def unclassified(lower: Array, upper: Array) -> Mask:
            found = np.zeros(len(lower), bool)
            for least, greatest in levels:
                found |= (lower + self.epsilon <= greatest) & (upper - self.epsilon > least)
            return found

        lower, upper = bounds(mean, sd**2, context.epoch.beta)
        allowed = unclassified(lower, upper)
        if candidates.sites is not None:
            rows = candidates.sites % len(context.domain)
            # C_t
            lower, upper = intersection((present[0][rows], present[1][rows]), (lower, upper))
            allowed = unclassified(lower, upper) & context.regions.potential[rows]
        if not (unclassified(*present) & context.regions.potential).any():
            allowed[:] = False
        elif implicit:
            allowed |= upper >= present[0].max()  # these points may be the maximum
        ambiguity = upper - lower
        if not implicit:
            ambiguity = np.max([np.minimum(upper - h, h - lower) for h, _ in levels], axis=0)
        return self.score_table(
            context, candidates, np.where(allowed, np.maximum(ambiguity, 0.0), 0.0)
        )


@dataclass(frozen=True)
class Straddle(BasePolicy):
    """The straddle heuristic (Bryan, Schneider, Nichol, Miller, Genovese, Wasserman 2005).

    An implicit threshold is replaced by its fraction of the largest posterior mean. Of several
    thresholds the nearest one counts.

    Attributes:
        width: Factor of the standard deviation.
        level: See `BasePolicy`.
        per_cost: Must be False, since scores can be negative.
        beta: See `BasePolicy`.
    """

    width: float = 1.96
    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supported_goals = LEVEL_SET
    signed = True
    supports_bands = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self.width, 0.0, "width")

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return width sigma(x) - |mu(x) - h|, h the nearest threshold. Shape (c, K)."""
        mean, sd = moments(context, candidates)
        distance = np.min([np.abs(mean - h) for h in thresholds(context)], axis=0)
        return self.score_table(context, candidates, self.width * sd - distance)


# -- either
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variance(BasePolicy):
    """Uncertainty sampling (VAR of the paper): the largest standard deviation, whatever the goal.

    Attributes:
        level: See `BasePolicy`.
        per_cost: See `BasePolicy`.
        beta: See `BasePolicy`.
    """

    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None
    supports_bands = True

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return sigma(x). Shape (c, K)."""
        return self.score_table(context, candidates, moments(context, candidates)[1])
