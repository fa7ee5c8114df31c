"""Joint statements about where the optimum is.

Points are ruled out in ascending order of how often they are the optimum in one half of the draws,
as long as the optimum is among them in at most a share 1 - q of the other half. The remaining
points hold it with probability >= q.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.inference._mixtures import normal_distribution
from truvar.inference.inputs import StatementInputs, unknown_statements
from truvar.inference.statements import CONFIDENCE, UNKNOWN_REGRET, Estimate, JointStatements

N_DRAWS = 2048  # joint draws of f
MAX_DRAWN_POINTS = 4000  # points that are drawn, at most
POTENTIAL_REACH = (
    4.5  # half width of the intervals that a potential optimum is found by, in standard deviations
)
EQUAL_VALUE_SDS = 1e-6  # prior standard deviations: values that differ less are equal
N_REFINED_POINTS = (
    200  # additional points of a box, around the recommended one, among which the optimum may be
)
REFINEMENT_RADII = (0.1, 0.01, 0.001)  # distances of those points from it, in extents of the box
SCREENING_DRAWS = 1024  # joint draws of a rough estimate
SCREENING_ROWS = 64  # points that they are made at


def optimum_statements(inputs: StatementInputs) -> JointStatements:
    """Return what can be stated about the optimum."""
    n = len(inputs.sites)
    if not inputs.fitted:
        uniform = np.full(n, 1.0 / n)
        return unknown_statements(inputs, uniform, None, UNKNOWN_REGRET)
    sign = inputs.goal.sign
    relevant = potential_optima(inputs)
    rows = relevant
    if inputs.excluded is not None:
        # Excluded points are drawn and left out afterwards, so that an exclusion does not change
        # the draws at the others.
        rows = np.union1d(relevant, potential_optima(replace(inputs, excluded=None)))
    if len(rows) > MAX_DRAWN_POINTS:
        rows = most_promising(inputs, rows, MAX_DRAWN_POINTS)
    points = np.vstack([inputs.best[None, :], inputs.sites[rows], _around_best(inputs)])
    draws = sign * inputs.posterior.draw(points, N_DRAWS, inputs.seed)  # signed: high is good
    if inputs.excluded is not None:
        draws[1 : len(rows) + 1][inputs.excluded[rows]] = -np.inf
    winner = rows[np.argmax(draws[1 : len(rows) + 1], axis=0)]
    probability = np.bincount(winner, minlength=n) / draws.shape[1]
    highest = inputs.transform.inverse(sign * draws.max(axis=0))
    recommended = inputs.transform.inverse(sign * draws[0])
    regret = np.maximum(sign * (highest - recommended), 0.0)
    expected_regret = Estimate.of(regret)
    regret_bound = float(np.quantile(regret, CONFIDENCE, method="higher"))
    lower, upper = inputs.interval()
    return JointStatements(
        goal=inputs.goal,
        probability=probability,
        decided_confidence=ruled_out_confidence(winner, promise(inputs)),
        reported=None,
        lower=lower,
        upper=upper,
        expected_f1=None,
        expected_regret=expected_regret,
        optimal_probability=float(
            (draws.max(axis=0) - draws[0] <= EQUAL_VALUE_SDS * inputs.scale).mean()
        ),
        expected_misclassified=None,
        n_drawn=len(rows),
        n_relevant=len(relevant),
        recommended_value=Estimate.of(recommended),
        regret_bound=max(regret_bound, expected_regret.mean),
    )


def potential_optima(inputs: StatementInputs, reach: float = POTENTIAL_REACH) -> Index:
    """Return the rows that can be the optimum in some member: others are many standard deviations short of it.

    Args:
        inputs: The inputs.
        reach: Half width of the intervals that are compared, in standard deviations.
    """
    return potential_rows(
        inputs.goal.sign * inputs.means, np.sqrt(inputs.variances), reach, inputs.excluded
    )


def potential_rows(signed: Array, sd: Array, reach: float, excluded: Mask | None) -> Index:
    """Return `potential_optima`, given signed means (high is good) and standard deviations by member: (members, n)."""
    if excluded is not None:
        signed = np.where(excluded, -np.inf, signed)
        sd = np.where(excluded, 0.0, sd)
    lower = (signed - reach * sd).max(axis=1, keepdims=True)
    return np.flatnonzero((signed + reach * sd >= lower).any(axis=0))


def screening_optimality(inputs: StatementInputs) -> float:
    """Return a rough estimate of `JointStatements.optimal_probability`, from few draws at few points."""
    rows = potential_optima(inputs)
    if len(rows) > SCREENING_ROWS:
        rows = most_promising(inputs, rows, SCREENING_ROWS)
    points = np.vstack([inputs.best[None, :], inputs.sites[rows]])
    draws = inputs.goal.sign * inputs.posterior.draw(points, SCREENING_DRAWS, (*inputs.seed, 1))
    return float((draws.max(axis=0) - draws[0] <= EQUAL_VALUE_SDS * inputs.scale).mean())


def promise(inputs: StatementInputs) -> Array:
    """Return the largest distance of each point from the best mean in units of its standard deviation, (n,)."""
    signed = inputs.goal.sign * inputs.means
    sd = np.sqrt(inputs.variances) + EQUAL_VALUE_SDS * inputs.scale
    return np.asarray(((signed - signed.max(axis=1, keepdims=True)) / sd).max(axis=0))


def most_promising(inputs: StatementInputs, relevant: Index, count: int) -> Index:
    """Return so many rows that are the most probable to exceed the best mean."""
    signed = inputs.goal.sign * inputs.means[:, relevant]
    sd = np.sqrt(inputs.variances[:, relevant]) + np.finfo(float).tiny
    exceeds = inputs.posterior.shares @ normal_distribution(
        (signed - signed.max(axis=1, keepdims=True)) / sd
    )
    return np.sort(relevant[np.argpartition(-exceeds, count)[:count]])


def _around_best(inputs: StatementInputs) -> Array:
    """Return points of a box around the recommended one, as a finite set of representers is too coarse there."""
    if inputs.bounds is None:
        return np.zeros((0, len(inputs.best)))
    low = inputs.bounds[:, 0]
    high = inputs.bounds[:, 1]
    d = len(low)
    rng = np.random.default_rng(inputs.seed)
    radius = np.repeat(REFINEMENT_RADII, -(-N_REFINED_POINTS // len(REFINEMENT_RADII)))[
        :N_REFINED_POINTS, None
    ]
    offsets = radius * (high - low) * rng.uniform(-1.0, 1.0, (N_REFINED_POINTS, d))
    around = np.tile(inputs.best, (N_REFINED_POINTS, 1))
    around[:, :d] = np.clip(inputs.best[:d] + offsets, low, high)
    if inputs.snap is not None:
        around[:, :d] = inputs.snap(around[:, :d])
    return around if inputs.allows is None else around[inputs.allows(around[:, :d])]


def ruled_out_confidence(winner: Index, promise: Array) -> Array:
    """Return the highest confidence at which each point is ruled out, (n,).

    The points are ordered by how often they are the optimum in one half of the draws, those of
    equal number by their promise; the probability of ruling out the optimum is counted in the other
    half. One set of draws for both would count nothing for the many points that are the optimum too
    seldom to be drawn, though together they often are.

    Args:
        winner: The point that is the optimum in each draw. (S,)
        promise: A number per point that grows with its probability of being the optimum. (n,)
    """
    n = len(promise)
    wins = np.bincount(winner[::2], minlength=n)
    order = np.lexsort((promise, wins))
    counted = winner[1::2]
    probability = np.bincount(counted, minlength=n) / len(counted)
    out = np.empty(n)
    out[order] = np.maximum(1.0 - np.cumsum(probability[order]), 0.0)
    return out
