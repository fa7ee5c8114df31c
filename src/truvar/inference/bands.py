"""Joint statements about the bands between several thresholds.

| symbol | here | shape |
|---|---|---|
| P_k(x) = P(f(x) > h_k) | `StatementInputs.exceedance` | (m, n) |
| b_j(x) = P_{j-1}(x) - P_j(x) with P_{-1} = 1 and P_m = 0 | `BandStatements.probability` | (m + 1, n) |
| the band reported, the number of thresholds with P_k >= 1/2 | `BandStatements.reported` | (n,) |
| c(x), the probability of that band | `certainty` | (n,) |

A point is decided with confidence q if all points up to it, in descending order of c, lie in their
reported bands *jointly* with probability >= q, as for one threshold. The F1 score is that of the
points above a threshold, averaged over the thresholds; for `LevelSet(between=...)` it is that of
the points between the two.
"""

from __future__ import annotations

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.goals import Bands
from truvar.inference._level_set import (
    decided_confidence,
    f1_draws,
    row_weights,
    rows_to_draw,
    uncertain_rows,
)
from truvar.inference._mixtures import band_probabilities, certainty_of, reported_bands
from truvar.inference._optimum import N_DRAWS
from truvar.inference.errors import ClassErrors
from truvar.inference.inputs import StatementInputs
from truvar.inference.statements import UNKNOWN_SHARE, BandStatements, Estimate, JointStatements


def band_statements(inputs: StatementInputs, goal: Bands) -> JointStatements:
    """Return what can be stated about all points jointly."""
    exceeds = inputs.exceedance()
    reported = reported_bands(exceeds)
    certainty = certainty_of(exceeds)
    probability = band_probabilities(exceeds)
    marginal = probability[1] if goal.inside else exceeds[0]
    relevant = uncertain_rows(1.0 - certainty)
    rows = rows_to_draw(relevant, inputs.seed)
    decided = np.zeros(inputs.n)
    n_drawn = 0
    n_relevant = inputs.n
    n_scores = 1 if goal.inside else len(inputs.thresholds)
    f1: tuple[Estimate, ...] = (UNKNOWN_SHARE,) * n_scores
    total = UNKNOWN_SHARE
    lower = np.full(inputs.n, -np.inf)
    upper = -lower
    share_above = UNKNOWN_SHARE
    errors = None
    if inputs.fitted:
        draws = inputs.posterior.draw(inputs.sites[rows], N_DRAWS, inputs.seed)
        bands = np.searchsorted(np.array(inputs.thresholds), draws, side="right")  # (r, S)
        wrong = bands != reported[rows, None]
        decided = decided_confidence(certainty, 1.0 - certainty, relevant, rows, wrong)
        errors = ClassErrors.of(certainty, 1.0 - certainty, relevant, rows, wrong)
        weight = row_weights(inputs, relevant, rows)
        scores = []
        is_certain = np.ones(inputs.n, bool)
        is_certain[relevant] = False
        for is_above, is_reported in _membership(goal, bands, reported):
            certain_above = is_reported & is_certain
            scores.append(f1_draws(is_reported, certain_above, relevant, rows, is_above, weight))
        is_member = goal.is_above(bands)  # (r, S)
        n_certain = int((goal.is_above(reported) & is_certain).sum())
        share_above = Estimate.of((weight @ is_member + n_certain) / inputs.n)
        f1 = tuple(Estimate.of(score) for score in scores)
        total = Estimate.of(np.mean(scores, axis=0))
        lower, upper = inputs.interval()
        n_drawn = len(rows)
        n_relevant = len(relevant)
    return JointStatements(
        goal=goal,
        probability=marginal.copy(),
        decided_confidence=decided,
        reported=goal.is_above(reported),
        lower=lower,
        upper=upper,
        expected_f1=total,
        expected_regret=None,
        optimal_probability=None,
        expected_misclassified=float((1.0 - certainty).sum()),
        n_drawn=n_drawn,
        n_relevant=n_relevant,
        bands=BandStatements(probability, reported, f1),
        share_above=share_above,
        errors=errors,
    )


def _membership(goal: Bands, bands: Index, reported: Index) -> list[tuple[Mask, Mask]]:
    """Return for each score which draws, (r, S), and which reported points, (n,), belong to its class."""
    if goal.inside:
        return [(bands == 1, reported == 1)]
    return [(bands > k, reported > k) for k in range(len(goal.thresholds))]


def screening_f1(inputs: StatementInputs, goal: Bands) -> float:
    """Return a rough estimate of the expected F1 score from single points: the ratio of expected counts."""
    exceeds = inputs.exceedance()
    reported = reported_bands(exceeds)
    classes = [(exceeds[k], reported > k) for k in range(len(exceeds))]
    if goal.inside:
        classes = [(band_probabilities(exceeds)[1], reported == 1)]
    scores = []
    for probability, chosen in classes:
        n_both = float(probability.sum()) + float(chosen.sum())
        scores.append(1.0 if n_both == 0 else 2.0 * float(probability[chosen].sum()) / n_both)
    return float(np.mean(scores))


def true_f1(goal: Bands, reported: Index, truth: Array) -> float:
    """Return the F1 score of reported bands by the true values: the mean over the thresholds."""
    scores = []
    for true, chosen in _membership(goal, goal.band_of(truth), reported):
        n_both = int(true.sum()) + int(chosen.sum())
        scores.append(1.0 if n_both == 0 else 2.0 * int((true & chosen).sum()) / n_both)
    return float(np.mean(scores))
