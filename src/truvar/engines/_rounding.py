"""Bounds on rounding errors, which are part of every bound that an engine prunes candidates with.

| symbol | here |
|---|---|
| u, unit roundoff of double precision, 2^-53 | `UNIT` |
| gamma_n = n u / (1 - n u) | `gamma` |
| C_jx = k(j, x) - v_j . v_x over t steps, formed from the factor | `entry_error` bounds its error |

Bounds may prune only what cannot be best, rounding included:

- *An entry* C_jx = k(j, x) - v_j . v_x over t steps errs by at most (gamma_(t+8) + 16 u) max k: the
  inner product has t terms whose magnitudes sum to at most |v_j| |v_x| <= max k, and the kernel
  value itself is good to 16 u.
- *A sum* of a non-negative terms by tiles of 2048 errs by gamma_32768 of itself, to sixty million
  rows. The square root of S is the norm of the vector min(|C_jx|, (e_j d_x)^1/2), which moves by no
  more than C does, so entry errors add at most a^1/2 of one entry's error to it.
- *Column norms* are down-dated by q' = q - 2 u_x p_x + u_x^2 |u_B|^2. Each step adds to the bound
  what p_x can be off by (the error of the product with K, plus gamma of the two passes over the
  factor times the norms, |v_x| <= (max k)^1/2), and gamma_12 of the magnitudes of the three terms.
  The errors of all steps so far are thus in the bound: it drifts upwards, never below.
- *Products by FFT* err by at most 16 u per binary digit of the length, times (2 max |spectrum| +
  length^1/2 |table|) |w|; an axis that is not evenly spaced to the last bit adds the kernel's slope
  times the drift. *Interpolated* products on scattered points add the remainder of interpolation,
  from the sixth derivative. *Low-rank* products add (E_jj E_xx)^1/2 for the remainder E.
- *Noise levels*: S(d) grows with d and S(d) / d falls, so S(d_k) <= S(d_0) max(1, d_k / d_0), with
  1e-11 for the rounding of sums of up to 40,000 positive terms.
- *Single precision*: every store of an entry rounds by 2^-24 of at most max k, and the steps are
  made with rounded u, which adds 3 x 2^-24 max k over all of them, as the |u_j u_x| sum up to at
  most max k; a step that is undone leaves as much behind. After s stores the root of a sum over a
  rows is off by at most a^1/2 (s + 5) 2^-24 max k, and sums of 128 terms in single by 64 x 2^-24 of
  themselves. Candidates that could win within that are scored again in double.
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
