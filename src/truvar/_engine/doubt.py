"""The inner loops of a level set's expected loss, compiled, each with its NumPy twin (`..._twin`) beside it.

A row of mean mu and standard deviation sigma lies above h with probability p = Phi(u), u = (mu - h) / sigma. Taking the
likelier side is wrong with probability min(p, 1 - p), two guesses at random from what is believed differ with
2 p (1 - p). Measurements that explain the share rho of sigma^2 lower p (1 - p), on average over their values, by

    G(rho, u^2) = 1 / (2 pi) times the integral of exp(-u^2 / (1 + sin t)) over 0 < t < arcsin(rho),

whatever the measurements are. With 1 - rho = (1 - v)^2 the integrand is smooth in v up to rho = 1,
exp(-u^2 / (1 + rho)) / (pi (1 + rho)^(1/2)), so that a cubic spline in v with 32 pieces is G to about 1e-7 of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PIECES = 32
FAINT = 5e-3  # shares of variance below this by two terms of the series
NODES, WEIGHTS = np.polynomial.legendre.leggauss(2)


def doubt_splines(square: Array, worth: Array) -> Array:
    """worth_j G(., square_j): the coefficients of the cubic on each piece, (rows, PIECES, 4)."""
    ends = np.linspace(0.0, 1.0, PIECES + 1)
    middle = (ends[:-1] + ends[1:])[:, None] / 2 + NODES / (2 * PIECES)  # (PIECES, nodes)
    rise = _slope(middle.ravel(), square).reshape(len(square), *middle.shape) @ WEIGHTS / (2 * PIECES)
    slope = _slope(ends, square) / PIECES
    level = np.cumsum(rise, axis=1) - rise
    left, right = np.minimum(slope[:, :-1], 3 * rise), np.minimum(slope[:, 1:], 3 * rise)  # so that no piece ever falls
    parts = (level, left, 3 * rise - 2 * left - right, left + right - 2 * rise)
    return np.ascontiguousarray(np.stack(parts, axis=2) * worth[:, None, None])


def _slope(v: Array, square: Array) -> Array:
    """dG / dv at the shares 1 - (1 - v)^2, for every row. (rows, len(v))"""
    whole = 2.0 - (1.0 - v) ** 2  # 1 + rho
    return np.exp(-square[:, None] / whole) / (np.pi * np.sqrt(whole))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _fall(place, spline):  # type: ignore[no-untyped-def]
    """The spline at `place` = PIECES v."""
    i = min(int(place), PIECES - 1)
    t = place - i
    return spline[i, 0] + t * (spline[i, 1] + t * (spline[i, 2] + t * spline[i, 3]))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def doubt_falls(covariance, inverse, variance, square, splines, out):  # type: ignore[no-untyped-def]
    """out_kx += the sum over rows j of what a measurement of x at level k takes from the doubt there, with
    rho = C_jx^2 inverse_kx / variance_j: covariance (rows, c), inverse and out (K, c). Roots first: they vectorise."""
    rho, place = np.empty(covariance.shape[1]), np.empty(covariance.shape[1])
    for j in range(len(variance)):
        row, spline, base = covariance[j], splines[j], 1.0 / variance[j]
        faint, bend = spline[0, 1] * PIECES / 2, square[j] / 2
        for k in range(len(inverse)):
            one, sums = inverse[k], out[k]
            for x in range(len(rho)):
                rho[x] = row[x] * row[x] * base * one[x]
                place[x] = (1.0 - np.sqrt(max(1.0 - rho[x], 0.0))) * PIECES
            for x in range(len(rho)):
                if rho[x] < FAINT:
                    sums[x] += faint * rho[x] * (1.0 + bend * rho[x])
                else:
                    sums[x] += _fall(place[x], spline)


def doubt_falls_twin(
    covariance: Array, inverse: Array, variance: Array, square: Array, splines: Array, out: Array
) -> None:
    """The same, level by level, without the short cut for faint shares."""
    pick = np.arange(len(variance))[:, None]
    for one, sums in zip(inverse, out, strict=True):
        rho = np.minimum(covariance**2 * one / variance[:, None], 1.0)
        place = (1.0 - np.sqrt(1.0 - rho)) * PIECES
        i = np.minimum(place.astype(int), PIECES - 1)
        powers = (place - i)[:, :, None] ** np.arange(4)
        sums += (splines[pick, i] * powers).sum(axis=(0, 2))


@njit(cache=True, nogil=True, error_model="numpy")
def _insertion(path, count, legs, first, x):  # type: ignore[no-untyped-def]
    """Where x goes into the path at the least extra cost, and that cost."""
    best, place = np.inf, 0
    for s in range(count + 1):
        extra = first[x] if s == 0 else legs[path[s - 1], x]
        if s < count:
            old = first[path[s]] if s == 0 else legs[path[s - 1], path[s]]
            extra += legs[x, path[s]] - old
        if extra < best:
            best, place = extra, s
    return best, place


@njit(cache=True, nogil=True, error_model="numpy")
def tour(across, among, noise, variance, splines, legs, first, share, path):  # type: ignore[no-untyped-def]
    """A tour by greedy insertion: at each stage the stop with the highest fall of doubt per extra cost, put where that
    is least, while its rate is at least `share` of the first one's and the path has room. Fills the path in the order
    of travel and returns the number of stops.

    across (rows, q) and among (q, q) are covariances and overwritten, legs_ab the cost of b coming from a, first_b that
    from where one is. Since the fall of doubt depends on the share of variance explained alone, what a tour takes is
    had exactly, without a look at the values that will be found on it.
    """
    rows, stops = across.shape
    rho, falls, inverse, place_of = np.zeros(rows), np.empty(stops), np.empty(stops), np.empty(stops)
    taken, top, count = 0.0, 0.0, 0
    while count < len(path):
        falls[:] = 0.0
        for x in range(stops):
            d = among[x, x] + noise[x]
            inverse[x] = 1.0 / d if d > 0 else 0.0
        for j in range(rows):
            row, base, spline = across[j], 1.0 / variance[j], splines[j]
            for x in range(stops):
                left = 1.0 - rho[j] - row[x] * row[x] * base * inverse[x]
                place_of[x] = (1.0 - np.sqrt(max(left, 0.0))) * PIECES
            for x in range(stops):
                falls[x] += _fall(place_of[x], spline)
        rate, chosen, place = 0.0, -1, 0
        for x in range(stops):
            extra, at = _insertion(path, count, legs, first, x)
            value = (falls[x] - taken) / max(extra, 1e-12 * first[x])
            if value > rate:
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
