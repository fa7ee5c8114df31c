"""Joint statements about the points above a threshold, or below it.

The points are ordered by certainty. A point is decided with confidence q if all points up to it in
that order lie on their more probable side of h *jointly* with probability >= q (the excursion
function for contour avoiding sets of Bolin and Lindgren, 2015). The probability is estimated from
joint draws of f, over the hyperparameters too if they are learned.

The most certain points are not drawn, as long as the probabilities of their errors add up to
`MAX_NEGLECTED_ERROR` at most. That sum is subtracted instead, which is a union bound.

Share of the optimum: h is unknown too. It is drawn first, among the points that can be the optimum,
which gives p(x) in closed form: given a draw at the points that are the optimum most often, f(x) is
normal. Other draws, with their own thresholds, then count the errors, as draws that decided the
order of the points would count too few.

If more than `MAX_DRAWN_POINTS` points would have to be drawn, that many of them, chosen at
random, stand for the others: `JointStatements.n_drawn` and `n_relevant` say so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.domain.goals import LevelSet, Maximize, Minimize
from truvar.inference._mixtures import probability_above
from truvar.inference._optimum import MAX_DRAWN_POINTS, N_DRAWS, most_promising, potential_optima
from truvar.inference.errors import ClassErrors
from truvar.inference.inputs import StatementInputs, unknown_statements
from truvar.inference.statements import UNKNOWN_SHARE, Estimate, JointStatements

MAX_NEGLECTED_ERROR = 0.002  # total probability of an error at the points that are not drawn
REGRESSION_BLOCK = 4096  # points for which p is computed together, which bounds the memory
MAX_POTENTIAL_OPTIMA = (
    1000  # points among which the optimum that a threshold is a share of is drawn, at most
)
MAX_WINNERS = (
    32  # points that are the optimum most often, given which f is normal elsewhere, at most
)
COUNTING_BLOCK = 128  # rows that are counted together, which stay in the processor's cache
SCREENING_DRAWS = 128  # joint draws of a rough estimate
SCREENING_ROWS = 300  # points that they are made at
FIRST_LOOK_ROWS = 64  # points of a first look, at most, before all that can be the optimum
CLEARLY_UNCERTAIN = 0.8  # certainty of a class in the first look that settles it


def level_set_statements(inputs: StatementInputs, goal: LevelSet) -> JointStatements:
    """Return what can be stated about all points jointly."""
    if inputs.threshold is None:
        return _implicit_level_set(inputs, goal)
    probability = probability_above(
        inputs.means, inputs.variances, inputs.threshold, inputs.posterior.shares
    )
    if not inputs.fitted:
        return unknown_statements(inputs, probability, UNKNOWN_SHARE, None)
    error = np.minimum(probability, 1.0 - probability)
    relevant = uncertain_rows(error)
    rows = rows_to_draw(relevant, inputs.seed)
    draws = inputs.posterior.draw(inputs.sites[rows], N_DRAWS, inputs.seed)
    is_above = draws >= inputs.threshold
    return from_draws(inputs, probability, error, relevant, rows, is_above)


def _implicit_level_set(inputs: StatementInputs, goal: LevelSet) -> JointStatements:
    """Return the statements for a threshold that is a share of the unknown optimum, which every draw has its own of."""
    optima = optimum_rows(inputs, goal)
    probability, error = implicit_probability(inputs, goal, optima)
    if not inputs.fitted:
        return unknown_statements(inputs, probability, UNKNOWN_SHARE, None)
    relevant = uncertain_rows(error)
    rows = rows_to_draw(relevant, inputs.seed)
    drawn = np.union1d(rows, optima)
    draws = inputs.posterior.draw(inputs.sites[drawn], N_DRAWS, inputs.seed)
    is_above = draws[np.searchsorted(drawn, rows)] >= implicit_thresholds(goal, draws)
    return from_draws(inputs, probability, error, relevant, rows, is_above)


def optimum_rows(inputs: StatementInputs, goal: LevelSet) -> Index:
    """Return the points among which the optimum that the threshold is a share of is drawn."""
    source = _as_optimum(inputs, goal)
    optima = potential_optima(source)
    return (
        optima
        if len(optima) <= MAX_POTENTIAL_OPTIMA
        else most_promising(source, optima, MAX_POTENTIAL_OPTIMA)
    )


def _as_optimum(inputs: StatementInputs, goal: LevelSet) -> StatementInputs:
    """Return the inputs of the optimum that the threshold is a share of."""
    optimum = Minimize() if goal.is_from_minimum else Maximize()
    # Points that must not be measured are classified, too.
    return replace(inputs, goal=optimum, excluded=None)


@blas_in_one_thread()
def implicit_probability(
    inputs: StatementInputs, goal: LevelSet, optima: Index, shift: float = 0.0
) -> tuple[Array, Array]:
    """Return p at every point for a share of the optimum, and the probability that its class is wrong.

    Both are averages over draws at the possible optima, of which each member has its own. In a draw
    the threshold is known, and f is normal given its values at the points that are the optimum most
    often.

    Args:
        inputs: The inputs.
        goal: The goal.
        optima: Rows that can be the optimum.
        shift: Number that is added to the threshold.

    Returns:
        p, (n,), and the error, (n,), at least as large as if f(x) were independent of the
        threshold: what happens in none of the draws is not impossible.
    """
    count = N_DRAWS if inputs.n <= MAX_DRAWN_POINTS else N_DRAWS // 4
    draws = inputs.posterior.draw(inputs.sites[optima], count, (*inputs.seed, 1))
    thresholds = implicit_thresholds(goal, draws) + shift
    winner = draws.argmin(axis=0) if goal.is_from_minimum else draws.argmax(axis=0)
    probability = np.zeros(inputs.n)
    independent = np.zeros(inputs.n)
    begin = 0
    counts = inputs.posterior.draw_counts(count)
    for j, (member, share) in enumerate(
        zip(inputs.posterior.members, inputs.posterior.shares, strict=True)
    ):
        own = slice(begin, begin + counts[j])
        begin += counts[j]
        wins = np.bincount(winner[own], minlength=len(optima))
        winners = np.flatnonzero(wins)
        winners = winners[np.argsort(-wins[winners], kind="stable")[:MAX_WINNERS]]
        deviation = draws[winners, own] - inputs.means[j, optima[winners], None]  # (k, S_j)
        threshold = thresholds[own, None]
        for rows in np.array_split(np.arange(inputs.n), -(-inputs.n // REGRESSION_BLOCK)):
            mean = inputs.means[j : j + 1, rows]
            weights, variance = member.regression(inputs.sites[rows], inputs.sites[optima[winners]])
            given_draw = mean + deviation.T @ weights  # (S_j, rows)
            probability[rows] += share * probability_above(given_draw, variance[None, :], threshold)
            alone = probability_above(mean, inputs.variances[j : j + 1, rows], threshold[::4])
            independent[rows] += share * alone
    # As if one draw more were independent of the threshold: certainties that the draws do not tell
    # apart differ.
    probability = (len(winner) * probability + independent) / (len(winner) + 1)
    probability = np.clip(probability, 0.0, 1.0)  # rounding of the shares
    error = np.minimum(probability, 1.0 - probability)
    return probability, np.maximum(
        error, np.where(probability >= 0.5, 1.0 - independent, independent)
    )


def implicit_thresholds(goal: LevelSet, draws: Array) -> Array:
    """Return the threshold in every draw, (S,), which depends on its maximum or minimum."""
    optimum = draws.min(axis=0) if goal.is_from_minimum else draws.max(axis=0)
    return goal.implicit_threshold(optimum)


def screening_f1(inputs: StatementInputs) -> float:
    """Return a rough estimate of the expected F1 score, from few draws at few points.

    Args:
        inputs: The inputs of a level set whose threshold is a share of the maximum.
    """
    reported = inputs.reported()
    if reported is None or not isinstance(inputs.goal, LevelSet):
        raise AssertionError("a level set reports points")
    rng = np.random.default_rng(inputs.seed)
    direction = -1 if inputs.goal.is_from_minimum else 1
    top = int(np.argmax(direction * (inputs.posterior.shares @ inputs.means)))
    rows = rng.permutation(inputs.n)[:SCREENING_ROWS]
    draws = inputs.posterior.draw(inputs.sites[np.append(rows, top)], SCREENING_DRAWS, inputs.seed)
    is_asked = inputs.asked(draws[:-1] >= implicit_thresholds(inputs.goal, draws))
    n_both = is_asked.sum(axis=0) + int(reported[rows].sum())
    hits = (reported[rows, None] & is_asked).sum(axis=0)
    return float(np.divide(2.0 * hits, n_both, out=np.ones(len(n_both)), where=n_both > 0).mean())


def screening_certainty(inputs: StatementInputs, goal: LevelSet) -> float:
    """Return a rough estimate, from few draws, of the certainty of the class that is the least certain.

    Args:
        inputs: The inputs.
        goal: The goal, whose threshold is a share of the optimum. Only points that can be the
            optimum are looked at, and few of them if these are clearly undecided.
    """
    rows = optimum_rows(inputs, goal)
    if len(rows) > FIRST_LOOK_ROWS:
        certainty = _drawn_certainty(inputs, goal, _hardest_rows(inputs, goal, rows))
        if certainty < CLEARLY_UNCERTAIN:
            return certainty
    return _drawn_certainty(inputs, goal, rows)


def _drawn_certainty(inputs: StatementInputs, goal: LevelSet, rows: Index) -> float:
    """Return the certainty of the least certain class of some rows, the optimum being one of them."""
    draws = inputs.posterior.draw(inputs.sites[rows], SCREENING_DRAWS, (*inputs.seed, 1))
    above = (draws >= implicit_thresholds(goal, draws)).mean(axis=1)
    return float(np.maximum(above, 1.0 - above).min())


def _hardest_rows(inputs: StatementInputs, goal: LevelSet, rows: Index) -> Index:
    """Return the rows that are the likeliest optima, and those that are the hardest to classify."""
    half = FIRST_LOOK_ROWS // 2
    likeliest = most_promising(_as_optimum(inputs, goal), rows, half)
    extreme = np.min if goal.is_from_minimum else np.max
    threshold = goal.implicit_threshold(extreme(inputs.means, axis=1, keepdims=True))
    sd = np.sqrt(inputs.variances[:, rows]) + np.finfo(float).tiny
    distance = inputs.posterior.shares @ (np.abs(inputs.means[:, rows] - threshold) / sd)
    return np.union1d(likeliest, rows[np.argsort(distance, kind="stable")[:half]])


def from_draws(
    inputs: StatementInputs,
    probability: Array,
    error: Array,
    relevant: Index,
    rows: Index,
    is_above: Mask,
) -> JointStatements:
    """Return the statements of a level set.

    Args:
        inputs: The inputs.
        probability: p at every point. (n,)
        error: Probability that the class of a point is wrong, at most. (n,)
        relevant: Rows that are not certain marginally.
        rows: Those of them that were drawn. (r,)
        is_above: Whether f lies above the threshold there, by draw. (r, S)
    """
    certainty = np.maximum(probability, 1.0 - probability)
    class_above = probability >= 0.5
    wrong = is_above != class_above[rows, None]
    decided = decided_confidence(certainty, error, relevant, rows, wrong)
    reported = inputs.reported()
    if reported is None:
        raise AssertionError("a level set reports points")
    certain_above = class_above.copy()
    certain_above[relevant] = False
    weight = row_weights(inputs, relevant, rows)
    certain = inputs.asked(class_above).copy()
    certain[relevant] = False
    f1 = f1_draws(reported, certain, relevant, rows, inputs.asked(is_above), weight)
    n_above = _weighted_counts(weight[None, :], is_above)[0] + int(certain_above.sum())
    lower, upper = inputs.interval()
    return JointStatements(
        goal=inputs.goal,
        probability=probability,
        decided_confidence=decided,
        reported=reported,
        lower=lower,
        upper=upper,
        expected_f1=Estimate.of(f1),
        expected_regret=None,
        optimal_probability=None,
        expected_misclassified=float(inputs.error(reported, probability).sum()),
        n_drawn=len(rows),
        n_relevant=len(relevant),
        share_above=Estimate.of(n_above / inputs.n),
        errors=ClassErrors.of(certainty, error, relevant, rows, wrong),
    )


def decided_confidence(
    certainty: Array, error: Array, relevant: Index, rows: Index, wrong: Mask
) -> Array:
    """Return the highest confidence at which each point is decided, (n,).

    Args:
        certainty: Probability of the class of each point. (n,)
        error: Probability that the class of a point is wrong, at most. (n,)
        relevant: Rows that are not certain marginally.
        rows: Those of them that were drawn. (r,)
        wrong: Whether the class of a drawn row is wrong, by draw. (r, S)
    """
    is_relevant = np.zeros(len(certainty), bool)
    is_relevant[relevant] = True
    neglected = float(error[~is_relevant].sum())
    decided = np.maximum(certainty - neglected, 0.0)
    if len(rows) == 0:
        return decided
    order = np.argsort(-certainty[rows], kind="stable")
    joint = np.maximum(_joint_confidence(wrong[order]) - neglected, 0.0)
    of_row = np.empty(len(rows))
    of_row[order] = joint
    interpolated = _interpolate_confidence(certainty, rows[order], joint, relevant)
    decided[relevant] = np.minimum(interpolated, certainty[relevant])
    decided[rows] = np.minimum(of_row, certainty[rows])
    return decided


def uncertain_rows(error: Array) -> Index:
    """Return the rows that must be drawn.

    They are all but the most certain ones, whose errors add up to `MAX_NEGLECTED_ERROR` at most.

    Args:
        error: Probability that the class of a point is wrong. (n,)
    """
    order = np.argsort(error, kind="stable")
    n_certain = int(np.searchsorted(np.cumsum(error[order]), MAX_NEGLECTED_ERROR, side="right"))
    return np.sort(order[n_certain:])


def rows_to_draw(relevant: Index, seed: tuple[int, int]) -> Index:
    """Return the rows to draw: all, or a random choice of `MAX_DRAWN_POINTS` of them."""
    if len(relevant) <= MAX_DRAWN_POINTS:
        return relevant
    return np.sort(np.random.default_rng(seed).choice(relevant, MAX_DRAWN_POINTS, replace=False))


def _joint_confidence(wrong: Mask) -> Array:
    """Return the share of draws without an error up to each row, (r,), given which rows are wrong in which draw."""
    r, count = wrong.shape
    first = np.where(wrong.any(axis=0), wrong.argmax(axis=0), r)
    failed = np.cumsum(np.bincount(first, minlength=r + 1)[:r])
    return np.asarray(
        1.0 - (failed + 1) / (count + 1)
    )  # one more error, as draws cannot show certainty


def _interpolate_confidence(
    certainty: Array, ordered: Index, joint: Array, relevant: Index
) -> Array:
    """Return the joint confidence of rows that were not drawn: that of the drawn one of the next lower certainty."""
    ascending = certainty[ordered][::-1]
    position = np.searchsorted(ascending, certainty[relevant], side="right") - 1
    lowest = 0.0
    carried = np.where(position >= 0, joint[::-1][np.maximum(position, 0)], lowest)
    return np.asarray(carried)


def row_weights(inputs: StatementInputs, relevant: Index, rows: Index) -> Array:
    """Return the number of relevant points that each drawn row stands for: those nearest to it. (r,)."""
    if len(rows) == len(relevant):
        return np.ones(len(rows))
    nearest = _nearest(inputs.sites[rows], inputs.sites[relevant])
    return np.bincount(nearest, minlength=len(rows)).astype(float)


def f1_draws(
    reported: Mask, certain_above: Mask, relevant: Index, rows: Index, is_above: Mask, weight: Array
) -> Array:
    """Return the F1 score of the reported points in every draw, (S,).

    Args:
        reported: Points that are reported as above, or as being on the side asked for. (n,)
        certain_above: Points that are not drawn, as they are there in every draw. (n,)
        relevant: Rows that are not certain marginally.
        rows: Those of them that were drawn. (r,)
        is_above: Whether f lies there, by draw. (r, S)
        weight: Number of relevant points that each of them stands for. (r,)
    """
    certain_hits = int((reported & certain_above).sum())
    certain_reported = int(reported.sum()) - int(reported[relevant].sum())
    hits, n_true = _weighted_counts(np.stack([weight * reported[rows], weight]), is_above)
    hits += certain_hits
    n_true += int(certain_above.sum())
    n_both = n_true + float(weight @ reported[rows]) + certain_reported
    return np.asarray(
        np.divide(2.0 * hits, n_both, out=np.ones_like(n_both), where=n_both > 0), dtype=float
    )


def _weighted_counts(weights: Array, is_above: Mask) -> Array:
    """Return the weighted numbers of rows above in every draw, (k, S).

    Args:
        weights: Weights of the rows. (k, r)
        is_above: Whether f lies above there, by draw. (r, S)
    """
    counts: Array = np.zeros((len(weights), is_above.shape[1]))
    for begin in range(0, len(is_above), COUNTING_BLOCK):
        block = slice(begin, begin + COUNTING_BLOCK)
        counts += weights[:, block] @ is_above[block].astype(float)
    return counts


def _nearest(points: Array, others: Array) -> Index:
    """Return for each of the others the position of the nearest point, distances in units of the spread."""
    from scipy.spatial import cKDTree  # imports slowly, and few domains are that large

    spread = np.where(np.ptp(others, axis=0) > 0, others.std(axis=0), 1.0)
    return np.asarray(cKDTree(points / spread).query(others / spread)[1], dtype=np.intp)
