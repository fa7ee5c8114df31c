"""Classes that hold up to a margin: f exceeds h - margin where shown as above, and h + margin nowhere below.

This is the epsilon-accuracy of the paper and of Gotovos et al. (2013), as a joint statement with a
probability. A point keeps its more probable side of h, so that no statement contradicts another.

| symbol | here | shape |
|---|---|---|
| P(f(x) > h - margin) where shown as above, P(f(x) <= h + margin) where below | `certainty` | (n,) |
| P(h_j - margin < f(x) <= h_(j+1) + margin) in the band from h_j to h_(j+1) | `certainty` | (n,) |
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.goals import Bands, LevelSet
from truvar.inference._level_set import (
    decided_confidence,
    implicit_probability,
    implicit_thresholds,
    optimum_rows,
    rows_to_draw,
    uncertain_rows,
)
from truvar.inference._mixtures import probability_above
from truvar.inference._optimum import N_DRAWS
from truvar.inference.inputs import StatementInputs
from truvar.inference.statements import Classification, JointStatements, classes_of


def classify_with_margin(
    inputs: StatementInputs, statements: JointStatements, confidence: float, margin: float
) -> Classification:
    """Return the points that are right up to the margin, all of them jointly with a probability.

    Args:
        inputs: The inputs of a level set.
        statements: The joint statements that follow from them.
        confidence: The probability.
        margin: The margin in the user's units, > 0.
    """
    shown = statements.decided_confidence >= confidence
    if inputs.fitted and isinstance(inputs.goal, LevelSet) and inputs.threshold is None:
        shown |= _implicit_confidence(inputs, inputs.goal, statements, margin) >= confidence
    elif inputs.fitted:
        shown |= _explicit_confidence(inputs, statements, margin) >= confidence
    return replace(classes_of(statements, shown, confidence), margin=margin)


def _explicit_confidence(
    inputs: StatementInputs, statements: JointStatements, margin: float
) -> Array:
    """Return the highest confidence at which each point is right up to the margin, (n,)."""
    lowest, highest = _accepted_values(inputs, statements, margin)
    weights = inputs.posterior.shares
    above_lowest = probability_above(inputs.means, inputs.variances, lowest, weights)
    above_highest = probability_above(inputs.means, inputs.variances, highest, weights)
    certainty = np.clip(above_lowest - above_highest, 0.0, 1.0)
    error = np.clip(1.0 - above_lowest, 0.0, 1.0) + above_highest
    relevant = uncertain_rows(error)
    rows = rows_to_draw(relevant, inputs.seed)
    draws = inputs.posterior.draw(inputs.sites[rows], N_DRAWS, inputs.seed)
    wrong = (draws < lowest[rows, None]) | (draws > highest[rows, None])
    return decided_confidence(certainty, error, relevant, rows, wrong)


def _accepted_values(
    inputs: StatementInputs, statements: JointStatements, margin: float
) -> tuple[Array, Array]:
    """Return the lowest and the highest value of f with which the class of each point is right: (n,) each.

    They are in the units of the model.
    """
    if isinstance(inputs.goal, Bands):
        if statements.bands is None:
            raise AssertionError("several thresholds have bands")
        levels = np.array(inputs.goal.thresholds)
        band = statements.bands.reported
    else:
        levels = np.array([getattr(inputs.goal, "threshold", None)], dtype=float)
        band = (statements.probability >= 0.5).astype(int)
    lowest = np.append(-np.inf, inputs.transform.forward(levels - margin))[band]
    highest = np.append(inputs.transform.forward(levels + margin), np.inf)[band]
    return lowest, highest


def _implicit_confidence(
    inputs: StatementInputs, goal: LevelSet, statements: JointStatements, margin: float
) -> Array:
    """Return the confidence of `_explicit_confidence` for a threshold that is a share of the optimum."""
    optima = optimum_rows(inputs, goal)
    class_above = statements.probability >= 0.5
    above_lower, error_above = implicit_probability(inputs, goal, optima, -margin)
    above_upper, error_below = implicit_probability(inputs, goal, optima, margin)
    certainty = np.where(class_above, above_lower, 1.0 - above_upper)
    error = np.where(class_above, error_above, error_below)
    error = np.maximum(error, 1.0 - certainty)
    relevant = uncertain_rows(error)
    rows = rows_to_draw(relevant, inputs.seed)
    drawn = np.union1d(rows, optima)
    draws = inputs.posterior.draw(inputs.sites[drawn], N_DRAWS, inputs.seed)
    distance = draws[np.searchsorted(drawn, rows)] - implicit_thresholds(goal, draws)
    wrong: Mask = np.where(class_above[rows, None], distance < -margin, distance >= margin)
    return decided_confidence(certainty, error, relevant, rows, wrong)
