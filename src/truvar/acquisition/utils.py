"""Functions that several policies share: moments, the incumbent value, the threshold.

| name | meaning | shape |
|---|---|---|
| mean, sd | moments of f at the candidates, signed so that high is good | (c,) |
| incumbent | best value so far, signed likewise | |

A pending measurement counts as made with the posterior mean as its value (the "constant liar" at
the mean): this leaves the mean unchanged and reduces the variance, which is what
`Posterior.pending_variance` does.
"""

from __future__ import annotations

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar._typing import Array
from truvar.acquisition.base import PolicyContext
from truvar.domain.candidates import Candidates
from truvar.domain.goals import Bands, LevelSet
from truvar.exceptions import UnsupportedGoalError
from truvar.messages import for_interface


def moments(context: PolicyContext, candidates: Candidates) -> tuple[Array, Array]:
    """Return mean and sd of f at the candidates, given pending points; high means are good.

    Returns:
        The means and the standard deviations. Shape (c,) each.
    """
    posterior = context.posterior
    if context.ensemble is not None and candidates.sites is not None:
        own_mean, own_sd = context.moments
        sites = candidates.sites
        if len(posterior.sites) == len(own_mean):
            return own_mean[sites], own_sd[sites]
        # The ensemble has the sites of the target alone.
        mean = context.goal.sign * posterior.mean[sites]
        sd = np.sqrt(posterior.pending_variance[sites])
        target = sites < len(own_mean)
        mean[target] = own_mean[sites[target]]
        sd[target] = own_sd[sites[target]]
        return mean, sd
    if context.ensemble is not None:
        mean, variance = context.ensemble.predict(candidates.points)
        if posterior.n_rows > posterior.n_observed:
            before = posterior.predict(candidates.points)[1]
            pending = posterior.candidate_variance(candidates)
            variance = variance * np.divide(
                pending, before, out=np.zeros_like(before), where=before > 0
            )
    elif candidates.sites is not None:
        mean = posterior.mean[candidates.sites]
        variance = posterior.pending_variance[candidates.sites]
    else:
        mean, variance = posterior.predict(candidates.points)
        if posterior.n_rows > posterior.n_observed:  # some measurements are pending
            variance = posterior.candidate_variance(candidates)
    return context.goal.sign * mean, np.sqrt(variance)


def best_observed(context: PolicyContext) -> float:
    """Return the best observation, signed; the best prior mean before the first."""
    if context.best_y is None:
        return float(
            (context.goal.sign * context.posterior.prior_means[: len(context.domain)]).max()
        )
    return context.goal.sign * context.best_y


def incumbent(context: PolicyContext) -> float:
    """Return the best value so far, signed, with the posterior mean for pending points."""
    return context.cached("incumbent", lambda: _incumbent(context))


def _incumbent(context: PolicyContext) -> float:
    pending = context.pending_points
    pending = pending[context.is_target(pending)]
    if len(pending) == 0:
        return best_observed(context)
    best_pending = float((context.goal.sign * context.posterior.predict(pending)[0]).max())
    return best_pending if context.best_y is None else max(best_observed(context), best_pending)


def expected_improvement(mean: Array, sd: Array, best: float) -> Array:
    """Return E max(f - best, 0) for f ~ N(mean, sd^2)."""
    gap = mean - best
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(sd > 0, gap / sd, np.where(gap > 0, np.inf, -np.inf))
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.where(sd > 0, gap * scipy.special.ndtr(z) + sd * density, np.maximum(gap, 0.0))


def level_set_goal(context: PolicyContext) -> LevelSet:
    """Return the goal, which must have a threshold.

    Raises:
        UnsupportedGoalError: If it has none.
    """
    if not isinstance(context.goal, LevelSet):
        example = for_interface("LevelSet(7.0)", problem="level_set = 7.0")
        given = for_interface(str(context.goal), problem="an optimum")
        raise UnsupportedGoalError(
            f"a threshold is needed, but the goal is {given}; use a goal such as {example}"
        )
    return context.goal


def thresholds(context: PolicyContext) -> tuple[float, ...]:
    """Return all thresholds of a level set in the units of the model, as `threshold` does one."""
    if isinstance(context.goal, Bands):
        return context.goal.thresholds
    return (threshold(context),)


def threshold(context: PolicyContext) -> float:
    """Return h of a level set, signed like the means; an implicit one is a fraction of the largest mean."""
    mean = context.posterior.mean[: len(context.domain)]
    return context.goal.sign * level_set_goal(context).thresholds(mean, mean)[0]
