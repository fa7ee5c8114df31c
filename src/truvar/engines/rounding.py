"""What rounding can do to sums of min(C_jx^2, e_j d_x) that are formed from the factor, C_jx = k(j, x) - v_j . v_x; and
which scores count as equal because of it.

An engine rounds according to the way it took, say over suggestions that were withdrawn; so what a choice depends on is
scored again by itself, from the factor alone: the choice is a function of what was told and is pending.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from truvar._typing import Array, Index
from truvar.engines.products import KERNEL_ROUNDING, gamma
from truvar.models.posterior import Posterior

EQUAL = 1e-9  # scores this close, relatively, are equal: the first of them is chosen
TIE = 2 * EQUAL  # below the best by more than this, relatively, is no contender
CONTENDERS = 64  # scored again at most
SUM_ROUNDING = gamma(1 << 15)  # relative error of a sum by tiles of 2048, to sixty million rows


def entry_error(posterior: Posterior, top: float) -> float:
    """How far a computed C_jx is from the exact one at most; `top` is the largest prior variance, |v_x|^2 below it."""
    return (gamma(posterior.rows + 8) + KERNEL_ROUNDING) * top


def near_best(scores: Array) -> Index:
    """The places whose rounding the choice depends on: the first of the equals and, if any place is about as far below
    the best as equals can be, all that could be among them."""
    best = scores.max(initial=0.0)
    if not best > 0:
        return np.empty(0, np.intp)
    contenders = np.flatnonzero(scores >= best * (1 - TIE))
    below = 1 - scores[contenders] / best
    if (np.abs(below - EQUAL) < EQUAL / 2).any():
        return contenders[:CONTENDERS]
    return np.asarray(contenders[below <= EQUAL][:1])


def _highest(scores: Array) -> Array:
    """Over the levels: (c, K) to (c,)."""
    return scores[:, 0] if scores.shape[1] == 1 else np.asarray(scores.max(axis=1))


def settle(sums: Array, worth: Array, again: Callable[[Index], Array]) -> None:
    """Scores by themselves the places (c, K) whose rounding the choice of the highest sum x worth depends on."""
    for place in near_best(_highest(sums * worth)):
        sums[place] = again(np.array([place]))[0]
