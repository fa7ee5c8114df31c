"""Tie-breaking: which scores count as equal, and a choice among them free of rounding.

The rounding of an engine depends on the sequence of updates that it made, among them suggestions
that were withdrawn since. Candidates on whose rounding the choice depends are therefore scored
again one at a time, from the factor alone: the choice is a function of the observations and the
pending actions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from truvar._typing import Array, Index

# relative: scores this close to the best are tied with it, and the first of them is chosen
TIE_TOLERANCE = 1e-9
# relative: a score below the best by more than this cannot be tied with it
NEAR_TIE = 2 * TIE_TOLERANCE
_MAX_RESCORED = 64  # candidates scored again, at most


def near_best(scores: Array) -> Index:
    """Return the rows on whose rounding the choice of the highest score depends.

    That is the first of the tied rows or, if the score of any row lies so close to the limit of a
    tie that rounding decides on which side, all rows that could be tied.

    Args:
        scores: Scores of all rows. (m,)

    Returns:
        Rows, at most `_MAX_RESCORED`; none if no score is positive.
    """
    best = scores.max(initial=0.0)
    if not best > 0:
        return np.empty(0, np.intp)
    near_ties = np.flatnonzero(scores >= best * (1 - NEAR_TIE))
    below = 1 - scores[near_ties] / best
    if (np.abs(below - TIE_TOLERANCE) < TIE_TOLERANCE / 2).any():
        return near_ties[:_MAX_RESCORED]
    return np.asarray(near_ties[below <= TIE_TOLERANCE][:1])


def rescore_near_best(sums: Array, weight: Array, rescore: Callable[[Index], Array]) -> None:
    """Score again, one at a time, the rows on whose rounding the choice depends.

    Args:
        sums: Sums of all rows and noise levels, overwritten where they are computed again. (m, K)
        weight: Factor that turns a sum into a score. (m, K)
        rescore: Function that returns the sums (c, K) of some rows (c,).
    """
    scores = sums * weight  # (c, K)
    for row in near_best(scores[:, 0] if scores.shape[1] == 1 else scores.max(axis=1)):
        sums[row] = rescore(np.array([row]))[0]
