"""Bounds on rounding errors, which are part of every bound that an engine prunes candidates with.

| symbol | here |
|---|---|
| u, unit roundoff of double precision | `UNIT` |
| gamma_n = n u / (1 - n u) | `gamma` |
| C_jx = k(j, x) - v_j . v_x, formed from the factor | `entry_error` bounds its error |

The section "Rounding" of docs/performance.md derives the bounds.
"""

from __future__ import annotations

from truvar.models.factor import BLOCK
from truvar.models.posterior import Posterior

UNIT = 2.0**-53
KERNEL_ROUNDING = 16 * UNIT  # error of a kernel value, as a share of the prior variance


def gamma(terms: float) -> float:
    """Return the largest relative error of that many roundings."""
    return terms * UNIT / (1 - terms * UNIT)


# relative error of a sum by tiles of 2048 terms, up to sixty million terms
SUM_ROUNDING = gamma(1 << 15)


def block_error(terms: int) -> float:
    """Return the largest relative error of a sum of that many terms made by blocks.

    `blocked_product` is off by at most this share of the sum of the magnitudes, also where several
    shorter parts are summed so and then added.
    """
    return gamma(BLOCK + terms / BLOCK + 2)


def entry_error(posterior: Posterior, max_variance: float) -> float:
    """Return how far a computed C_jx can be from the exact one.

    Args:
        posterior: Posterior whose factor the entries are formed from.
        max_variance: Largest prior variance, which |v_x|^2 does not exceed.
    """
    return (gamma(posterior.n_rows + 8) + KERNEL_ROUNDING) * max_variance
