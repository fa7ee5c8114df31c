"""What rounding can do to sums of min(C_jx^2, e_j d_x) that are formed from the factor, C_jx = k(j, x) - v_j . v_x; and
which scores count as equal because of it."""

from __future__ import annotations

from truvar.engines.products import KERNEL_ROUNDING, gamma
from truvar.posterior import Posterior

EQUAL = 1e-9  # scores this close, relatively, are equal: the first of them is chosen
TIE = 2 * EQUAL  # below the best by more than this, relatively, is no contender
SUM_ROUNDING = gamma(1 << 15)  # relative error of a sum by tiles of 2048, to sixty million rows


def entry_error(posterior: Posterior, top: float) -> float:
    """How far a computed C_jx is from the exact one at most; `top` is the largest prior variance, |v_x|^2 below it."""
    return (gamma(posterior.rows + 8) + KERNEL_ROUNDING) * top
