"""Sums for the anticipating variants of eq. (3), compiled: which targets stay in M after a measurement.

| symbol | argument | shape |
|---|---|---|
| C_jx, posterior covariance of target j and candidate x | `covariance` | (a, c) |
| 1 / d_x^(1/2), d_x the predictive variance of x | `scale` | (c,) |
| sigma_j^2, mu_j | `variance`, `mean` | (a,) |
| beta^(1/2) | `root_beta` | |
| max(share s2, floor), the truncated variance | `share`, `floor` | |

A measurement of x with the standardised value z moves the mean of target j by z C_jx scale_x and leaves it the variance
s2 = sigma_j^2 - (C_jx scale_x)^2.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_bounds(  # type: ignore[no-untyped-def]
    covariance, scale, variance, mean, root_beta, share, floor, nodes, weights, fraction, member, out
):
    """Add to out_x the sum over targets of P(the target stays in M) max(share s2, floor), after x is measured.

    Args:
        covariance: C_jx. (a, c)
        scale: 1 / d_x^(1/2). (c,)
        variance: sigma_j^2. (a,)
        mean: mu_j. (a,)
        root_beta: beta^(1/2).
        share: Factor of the variance.
        floor: Truncation.
        nodes: Values z over which the measurement is averaged. (q,)
        weights: Their probabilities. (q,)
        fraction: 0 for an optimum: a target stays while its upper bound reaches the highest lower bound. Otherwise the
            threshold is this fraction of the maximum, and members of M also stay while they are undecided.
        member: Whether each target is in M. (a,)
        out: The sums. (c,)
    """
    rows, width = covariance.shape
    step = np.empty(width)
    half = np.empty(width)
    s2 = np.empty(width)
    max_lower = np.full((len(nodes), width), -np.inf)  # highest lower bound over the targets, per node
    max_upper = np.full((len(nodes), width), -np.inf)  # highest upper bound
    for sweep in range(2):  # the first finds the highest bounds, the second compares with them
        for j in range(rows):
            row = covariance[j]
            own = variance[j]
            centre = mean[j]
            for x in range(width):
                move = row[x] * scale[x]
                rest = max(own - move * move, 0.0)
                step[x] = move
                s2[x] = rest
                half[x] = root_beta * np.sqrt(rest)
            for q in range(len(nodes)):
                z = nodes[q]
                weight = weights[q]
                low = max_lower[q]
                high = max_upper[q]
                if sweep == 0:
                    for x in range(width):
                        low[x] = max(low[x], centre + z * step[x] - half[x])
                        high[x] = max(high[x], centre + z * step[x] + half[x])
                else:
                    inside = member[j]
                    for x in range(width):
                        moved = centre + z * step[x]
                        stays = moved + half[x] >= low[x]
                        if inside and fraction > 0.0:
                            stays |= (moved + half[x] >= fraction * low[x]) & (moved - half[x] <= fraction * high[x])
                        out[x] += weight * max(share * s2[x], floor) if stays else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_level(covariance, scale, variance, mean, root_beta, share, floor, threshold, average, out):  # type: ignore[no-untyped-def]
    """Add to out_x the sums of `anticipated_bounds` for an explicit threshold: a target stays while undecided.

    Args:
        covariance: C_jx. (a, c)
        scale: 1 / d_x^(1/2). (c,)
        variance: sigma_j^2. (a,)
        mean: mu_j. (a,)
        root_beta: beta^(1/2).
        share: Factor of the variance.
        floor: Truncation.
        threshold: h.
        average: Whether to average over the value of the measurement, in closed form, or to take its mean.
        out: The sums. (c,)
    """
    rows, width = covariance.shape
    root2 = np.sqrt(2.0)
    for j in range(rows):
        row = covariance[j]
        own = variance[j]
        gap = threshold - mean[j]
        for x in range(width):
            move = abs(row[x] * scale[x])
            rest = max(own - move * move, 0.0)
            half = root_beta * np.sqrt(rest)
            low = gap - half
            high = gap + half
            if average and move > 0.0 and min(abs(low), abs(high)) < 10.0 * move:  # beyond, the cdf is 0 or 1
                stays = 0.5 * (math.erfc(low / (root2 * move)) - math.erfc(high / (root2 * move)))
            else:
                stays = 1.0 if low <= 0.0 <= high else 0.0
            out[x] += stays * max(share * rest, floor)
