"""Expected reduction of a level set's ambiguity, compiled; and the tours that are planned with it.

| symbol | argument | shape |
|---|---|---|
| p = Phi(u), probability that a row lies above h; u = (mu - h) / sigma | `square` holds u^2 | (rows,) |
| p (1 - p), the ambiguity of a row, weighted | `weight` | (rows,) |
| sigma_j^2 | `variance` | (rows,) |
| C_jx, posterior covariance of row j and candidate x | `covariance`, `step` | (rows, c) |
| rho, share of sigma_j^2 that a measurement explains | C_jx^2 / (sigma_j^2 d_x) | |

Choosing the likelier side of h is wrong with probability min(p, 1 - p); two independent draws of
the side differ with probability 2 p (1 - p). Measurements that explain the share rho of sigma^2
reduce p (1 - p), on average over their values, by

    G(rho, u^2) = 1 / (2 pi) times the integral of exp(-u^2 / (1 + sin t)) over 0 < t < arcsin(rho),

whatever the measurements are. With 1 - rho = (1 - v)^2 the integrand is smooth in v up to rho = 1,
exp(-u^2 / (1 + rho)) / (pi (1 + rho)^(1/2)), so that a polynomial of degree 10 in v approximates G
to 1e-7. It needs no table and no branch, and the sum over rows vectorises.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from truvar._typing import Array

DEGREE = 10
# v at which the slope is exact, among them 0 and 1
SLOPE_NODES = (1.0 - np.cos(np.linspace(0.0, np.pi, DEGREE))) / 2
SLOPE_FIT = np.linalg.inv(SLOPE_NODES[:, None] ** np.arange(DEGREE)).T / np.arange(1, DEGREE + 1)
# relative: stops, and positions in a tour, this close are tied, and the first is taken
TIE_TOLERANCE = 1e-9
SMALL_SHARE = 1e-3  # shares of variance below this reduce the ambiguity in proportion


def ambiguity_curves(square: Array, weight: Array) -> Array:
    """Return weight_j G(., square_j) as polynomials, coefficients from v on: (rows, DEGREE)."""
    return np.asarray(_slope(SLOPE_NODES, square) @ SLOPE_FIT * weight[:, None])


def linear_curves(total: Array) -> Array:
    """Return total_j times the share explained, 2 v - v^2, as polynomials: (rows, DEGREE)."""
    curves = np.zeros((len(total), DEGREE))
    curves[:, 0] = 2 * total
    curves[:, 1] = -total
    return curves


def _slope(v: Array, square: Array) -> Array:
    """Return dG / dv at the shares 1 - (1 - v)^2, for every row: (rows, len(v))."""
    one_plus_rho = 2.0 - (1.0 - v) ** 2
    return np.exp(-square[:, None] / one_plus_rho) / (np.pi * np.sqrt(one_plus_rho))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _reduction(unexplained, c):  # type: ignore[no-untyped-def]
    """Evaluate the polynomial c at an unexplained share of the variance; at least 0, as G is."""
    v = 1.0 - np.sqrt(max(unexplained, 0.0))
    high = c[5] + v * (c[6] + v * (c[7] + v * (c[8] + v * c[9])))
    return max(v * (c[0] + v * (c[1] + v * (c[2] + v * (c[3] + v * (c[4] + v * high))))), 0.0)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _coefficients(curve):  # type: ignore[no-untyped-def]
    """Read the coefficients of a row into a tuple, so that they stay in registers."""
    low = curve[0], curve[1], curve[2], curve[3], curve[4]
    return *low, curve[5], curve[6], curve[7], curve[8], curve[9]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def ambiguity_reductions(covariance, inverse, variance, curves, out):  # type: ignore[no-untyped-def]
    """Add to out_kx the expected reduction of the ambiguity by measuring x at noise level k.

    Args:
        covariance: C_jx. (rows, c)
        inverse: 1 / d_kx, the inverse predictive variance; 0 where nothing is left to learn. (K, c)
        variance: sigma_j^2. (rows,)
        curves: Result of `ambiguity_curves`. (rows, DEGREE)
        out: The reductions. (K, c)
    """
    for j in range(len(variance)):
        row = covariance[j]
        base = 1.0 / variance[j]
        c = _coefficients(curves[j])
        for k in range(len(inverse)):
            level = inverse[k]
            sums = out[k]
            for x in range(len(row)):
                sums[x] += _reduction(1.0 - row[x] * row[x] * base * level[x], c)


@njit(cache=True, nogil=True, error_model="numpy")
def ambiguity_reductions_by_quadrature(step, square, variance, weight, nodes, weights, out):  # type: ignore[no-untyped-def]
    """Set out_x to the expected reduction of the weighted ambiguity, by numerical integration of G.

    Args:
        step: C_jx / d_x^(1/2). (rows, c)
        square: u_j^2. (rows,)
        variance: sigma_j^2. (rows,)
        weight: Weights of the rows. (rows,)
        nodes: Quadrature nodes between 0 and 1. (q,)
        weights: Quadrature weights. (q,)
        out: The reductions. (c,)
    """
    out[:] = 0.0
    for j in range(len(step)):
        part = weight[j] / (2 * np.pi)
        slope_at_zero = part * np.exp(-square[j])
        for x in range(len(out)):
            rho = min(step[j, x] * step[j, x] / variance[j], 1.0)
            if rho < SMALL_SHARE:
                out[x] += slope_at_zero * rho
                continue
            end = np.arcsin(rho)
            total = 0.0
            for i in range(len(nodes)):
                total += weights[i] * np.exp(-square[j] / (1 + np.sin(end * nodes[i])))
            out[x] += part * end * total


@njit(cache=True, nogil=True, error_model="numpy")
def _insertion(path, count, legs, first, x):  # type: ignore[no-untyped-def]
    """Return the smallest extra cost of inserting stop x into the path, and the position for it."""
    best = np.inf
    position = 0
    for s in range(count + 1):
        extra = first[x] if s == 0 else legs[path[s - 1], x]
        if s < count:
            old = first[path[s]] if s == 0 else legs[path[s - 1], path[s]]
            extra += legs[x, path[s]] - old
        if extra < best - TIE_TOLERANCE * first[x]:
            best = extra
            position = s
    return best, position


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def tour(across, among, noise, variance, curves, legs, first, share, path):  # type: ignore[no-untyped-def]
    """Plan a tour by greedy insertion and return its number of stops.

    At each stage the stop with the highest reduction of ambiguity per extra cost is inserted where
    it costs least, while its rate is at least `share` of the first one's and the path has room. The
    reduction depends on the share of variance explained alone, so that a tour's total is exact
    without knowing the values that will be measured.

    Args:
        across: Covariance of rows and possible stops, overwritten. (rows, q)
        among: Covariance of the possible stops, overwritten. (q, q)
        noise: Noise variance of each stop. (q,)
        variance: sigma_j^2. (rows,)
        curves: Result of `ambiguity_curves`. (rows, DEGREE)
        legs: legs_ab is the cost of b coming from a. (q, q)
        first: Cost of each stop coming from the present position. (q,)
        share: Least rate of a stop, as a share of the first one's.
        path: Filled with the stops in the order of travel; its length is the largest number of
            stops.
    """
    rows, stops = across.shape
    rho = np.zeros(rows)
    reductions = np.empty(stops)
    inverse = np.empty(stops)
    reached = 0.0
    first_rate = 0.0
    count = 0
    while count < len(path):
        reductions[:] = 0.0
        for x in range(stops):
            d = among[x, x] + noise[x]
            inverse[x] = 1.0 / d if d > 0 else 0.0
        for j in range(rows):
            row = across[j]
            base = 1.0 / variance[j]
            left = 1.0 - rho[j]
            c = _coefficients(curves[j])
            for x in range(stops):
                reductions[x] += _reduction(left - row[x] * row[x] * base * inverse[x], c)
        best_rate = 0.0
        chosen = -1
        position = 0
        for x in range(stops):
            extra, best_position = _insertion(path, count, legs, first, x)
            rate = (reductions[x] - reached) / max(extra, 1e-12 * first[x])
            if rate > best_rate * (1.0 + TIE_TOLERANCE):
                best_rate = rate
                chosen = x
                position = best_position
        if chosen < 0 or best_rate < share * first_rate:
            break
        first_rate = best_rate if count == 0 else first_rate
        reached = reductions[chosen]
        for s in range(count, position, -1):
            path[s] = path[s - 1]
        path[position] = chosen
        count += 1
        d = among[chosen, chosen] + noise[chosen]
        column = across[:, chosen].copy()
        line = among[chosen].copy()
        for j in range(rows):
            rho[j] = min(rho[j] + column[j] * column[j] / (d * variance[j]), 1.0)
            for x in range(stops):
                across[j, x] -= column[j] * line[x] / d
        for a in range(stops):
            for x in range(stops):
                among[a, x] -= line[a] * line[x] / d
    return count
