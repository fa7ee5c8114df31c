"""The inner loops of a level set's expected loss, compiled, each with its NumPy twin (`..._twin`) beside it.

A row of mean mu and standard deviation sigma lies above h with probability p = Phi(u), u = (mu - h) / sigma. Taking the
likelier side is wrong with probability min(p, 1 - p), two guesses at random from what is believed differ with
2 p (1 - p). Measurements that explain the share rho of sigma^2 lower p (1 - p), on average over their values, by

    G(rho, u^2) = 1 / (2 pi) times the integral of exp(-u^2 / (1 + sin t)) over 0 < t < arcsin(rho),

whatever the measurements are. With 1 - rho = (1 - v)^2 the integrand is smooth in v up to rho = 1,
exp(-u^2 / (1 + rho)) / (pi (1 + rho)^(1/2)), so that a polynomial of degree 10 in v is G to 1e-7: no table and no
branch, and the sum over rows is made of vector instructions.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

DEGREE = 10
NODES = (1.0 - np.cos(np.linspace(0.0, np.pi, DEGREE))) / 2  # where the slope is exact, among them v = 0 and v = 1
FIT = np.linalg.inv(NODES[:, None] ** np.arange(DEGREE)).T / np.arange(1, DEGREE + 1)
EQUAL = 1e-9  # stops and places in a tour this close, relatively, are equal: the first of them is taken


def doubt_curves(square: Array, worth: Array) -> Array:
    """worth_j G(., square_j) as a polynomial in v: the coefficients of v, v^2, ... (rows, DEGREE)."""
    return np.asarray(_slope(NODES, square) @ FIT * worth[:, None])


def _slope(v: Array, square: Array) -> Array:
    """dG / dv at the shares 1 - (1 - v)^2, for every row. (rows, len(v))"""
    whole = 2.0 - (1.0 - v) ** 2  # 1 + rho
    return np.exp(-square[:, None] / whole) / (np.pi * np.sqrt(whole))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _fall(left, c):  # type: ignore[no-untyped-def]
    """The polynomial where the share `left` of the variance is not explained; never below 0, as G is not."""
    v = 1.0 - np.sqrt(max(left, 0.0))
    high = c[5] + v * (c[6] + v * (c[7] + v * (c[8] + v * c[9])))
    return max(v * (c[0] + v * (c[1] + v * (c[2] + v * (c[3] + v * (c[4] + v * high))))), 0.0)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _numbers(curve):  # type: ignore[no-untyped-def]
    """The coefficients out of memory, so that they stay in registers."""
    low = curve[0], curve[1], curve[2], curve[3], curve[4]
    return *low, curve[5], curve[6], curve[7], curve[8], curve[9]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def doubt_falls(covariance, inverse, variance, curves, out):  # type: ignore[no-untyped-def]
    """out_kx += the sum over rows j of what a measurement of x at level k takes from the doubt there, with
    rho = C_jx^2 inverse_kx / variance_j: covariance (rows, c), inverse and out (K, c)."""
    for j in range(len(variance)):
        row, base = covariance[j], 1.0 / variance[j]
        c = _numbers(curves[j])
        for k in range(len(inverse)):
            one, sums = inverse[k], out[k]
            for x in range(len(row)):
                sums[x] += _fall(1.0 - row[x] * row[x] * base * one[x], c)


def doubt_falls_twin(covariance: Array, inverse: Array, variance: Array, curves: Array, out: Array) -> None:
    """The same, level by level."""
    for one, sums in zip(inverse, out, strict=True):
        rho = np.minimum(covariance**2 * one / variance[:, None], 1.0)
        powers = (1.0 - np.sqrt(1.0 - rho))[:, :, None] ** np.arange(1, DEGREE + 1)
        sums += np.maximum((curves[:, None] * powers).sum(axis=2), 0.0).sum(axis=0)


@njit(cache=True, nogil=True, error_model="numpy")
def _insertion(path, count, legs, first, x):  # type: ignore[no-untyped-def]
    """Where x goes into the path at the least extra cost, and that cost."""
    best, place = np.inf, 0
    for s in range(count + 1):
        extra = first[x] if s == 0 else legs[path[s - 1], x]
        if s < count:
            old = first[path[s]] if s == 0 else legs[path[s - 1], path[s]]
            extra += legs[x, path[s]] - old
        if extra < best - EQUAL * first[x]:
            best, place = extra, s
    return best, place


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def tour(across, among, noise, variance, curves, legs, first, share, path):  # type: ignore[no-untyped-def]
    """A tour by greedy insertion: at each stage the stop with the highest fall of doubt per extra cost, put where that
    is least, while its rate is at least `share` of the first one's and the path has room. Fills the path in the order
    of travel and returns the number of stops.

    across (rows, q) and among (q, q) are covariances and overwritten, legs_ab the cost of b coming from a, first_b that
    from where one is. Since the fall of doubt depends on the share of variance explained alone, what a tour takes is
    had exactly, without a look at the values that will be found on it.
    """
    rows, stops = across.shape
    rho, falls, inverse = np.zeros(rows), np.empty(stops), np.empty(stops)
    taken, top, count = 0.0, 0.0, 0
    while count < len(path):
        falls[:] = 0.0
        for x in range(stops):
            d = among[x, x] + noise[x]
            inverse[x] = 1.0 / d if d > 0 else 0.0
        for j in range(rows):
            row, base, left = across[j], 1.0 / variance[j], 1.0 - rho[j]
            c = _numbers(curves[j])
            for x in range(stops):
                falls[x] += _fall(left - row[x] * row[x] * base * inverse[x], c)
        rate, chosen, place = 0.0, -1, 0
        for x in range(stops):
            extra, at = _insertion(path, count, legs, first, x)
            value = (falls[x] - taken) / max(extra, 1e-12 * first[x])
            if value > rate * (1.0 + EQUAL):
                rate, chosen, place = value, x, at
        if chosen < 0 or rate < share * top:
            break
        top = rate if count == 0 else top
        taken = falls[chosen]
        for s in range(count, place, -1):
            path[s] = path[s - 1]
        path[place] = chosen
        count += 1
        d = among[chosen, chosen] + noise[chosen]
        column, line = across[:, chosen].copy(), among[chosen].copy()
        for j in range(rows):
            rho[j] = min(rho[j] + column[j] * column[j] / (d * variance[j]), 1.0)
            for x in range(stops):
                across[j, x] -= column[j] * line[x] / d
        for a in range(stops):
            for x in range(stops):
                among[a, x] -= line[a] * line[x] / d
    return count
