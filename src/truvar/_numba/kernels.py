"""Stationary covariance functions, compiled, with an exponential that vectorises."""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 128  # points whose solutions are computed at a time: they stay in the cache
CHUNK = 1024  # kernel values computed at a time: they and their squares stay in the nearest cache


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exponentials(z, work):  # type: ignore[no-untyped-def]
    """Replace z <= 0 by exp(z), accurate to an ulp or two, and by exp(-700) below -700.

    There is no branch and no call, so that the loops vectorise: exp(z) = 2^k exp(r) with |r| <=
    log(2) / 2, where exp(r) is a polynomial and 2^k is applied by adding k to the bits of the
    exponent.

    Args:
        z: Arguments, overwritten by the results. (n,)
        work: Scratch space. (n,)
    """
    # 1.5 x 2^52: adding it rounds to an integer, which stays in the low bits
    shift = 6755399441055744.0
    for i in range(len(z)):
        x = max(z[i], -700.0)
        moved = x * 1.4426950408889634 + shift
        work[i] = moved
        k = moved - shift
        # log(2) in two parts
        r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        z[i] = p * r + 1.0
    power = work.view(np.int64)
    value = z.view(np.int64)
    for i in range(len(z)):
        value[i] += power[i] << 52


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def stationary(  # type: ignore[no-untyped-def]
    points, others, lengthscales, categorical, smoothness, variance, out
):
    """Compute k(points, others) of a stationary kernel. Fastest where `others` has many rows.

    Args:
        points: Coordinates. (p, d)
        others: Coordinates. (q, d)
        lengthscales: One per column. (d,)
        categorical: Which columns have categories, whose distance is 1 if they differ. (d,)
        smoothness: 0 for RBF; 1, 3 or 5, which is twice nu, for a Matern kernel.
        variance: k(x, x).
        out: The kernel values. (p, q)
    """
    columns = np.empty((others.shape[1], len(others)))
    for k in range(others.shape[1]):
        for j in range(len(others)):
            columns[k, j] = others[j, k] / lengthscales[k]
    square = np.empty(CHUNK)
    work = np.empty(CHUNK)
    for i in range(len(points)):
        for start in range(0, len(others), CHUNK):
            stop = min(start + CHUNK, len(others))
            r = square[: stop - start]
            value = out[i, start:stop]
            r[:] = 0.0
            for k in range(points.shape[1]):
                x = points[i, k] / lengthscales[k]
                y = columns[k, start:stop]
                if categorical[k]:
                    apart = 1.0 / (lengthscales[k] * lengthscales[k])
                    for j in range(len(r)):
                        r[j] += apart if y[j] != x else 0.0
                else:
                    for j in range(len(r)):
                        r[j] += (x - y[j]) * (x - y[j])
            if smoothness == 0:
                for j in range(len(r)):
                    value[j] = -0.5 * r[j]
            else:
                for j in range(len(r)):
                    r[j] = np.sqrt(smoothness * r[j])
                    value[j] = -r[j]
            exponentials(value, work[: stop - start])
            if smoothness == 3:
                for j in range(len(r)):
                    value[j] *= 1.0 + r[j]
            elif smoothness == 5:
                for j in range(len(r)):
                    value[j] *= 1.0 + r[j] + r[j] * r[j] * (1.0 / 3.0)
            for j in range(len(r)):
                value[j] *= variance


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def mixture_moments(  # type: ignore[no-untyped-def]
    observed,
    points,
    lengthscales,
    categorical,
    smoothness,
    variances,
    constants,
    factors,
    whitened,
    means,
    left,
):
    """Subtract from prior moments what the observations explain, for every member of a mixture.

    Made for a few hundred observations at most: a library call for each member would take longer
    than the arithmetic.

    Args:
        observed: Coordinates of the observations. (t, d)
        points: Coordinates of the points. (q, d)
        lengthscales: One per member and column. (M, d)
        categorical: Which columns have categories. (d,)
        smoothness: 0 for RBF; 1, 3 or 5, which is twice nu, for a Matern kernel.
        variances: Signal variances. (M,)
        constants: Variances of the constant mean. (M,)
        factors: Lower Cholesky factors L of the covariance of the observed values. (M, t, t)
        whitened: L^-1 times the observed values minus the prior mean. (M, t)
        means: The prior means, to which L^-1 k times `whitened` is added. (M, q)
        left: The prior variances, from which the squares of L^-1 k are subtracted; at least 0. (M,
            q)
    """
    t = len(observed)
    for m in range(len(variances)):
        for start in range(0, len(points), BLOCK):
            stop = min(start + BLOCK, len(points))
            few = points[start:stop]
            solved = _covariance_rows(
                observed, few, lengthscales[m], categorical, smoothness, variances[m]
            )
            for i in range(t):
                for j in range(stop - start):
                    solved[i, j] += constants[m]
            forward_substitution(factors[m], solved)
            for i in range(t):
                value = whitened[m, i]
                for j in range(stop - start):
                    means[m, start + j] += value * solved[i, j]
                    left[m, start + j] -= solved[i, j] * solved[i, j]
        for j in range(len(points)):
            left[m, j] = max(left[m, j], 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _covariance_rows(points, others, lengthscales, categorical, smoothness, variance):  # type: ignore[no-untyped-def]
    """Return k(points, others), computed along the longer side: (p, q)."""
    out = np.empty((len(points), len(others)))
    if len(others) >= len(points):
        stationary(points, others, lengthscales, categorical, smoothness, variance, out)
        return out
    transposed = np.empty((len(others), len(points)))
    stationary(others, points, lengthscales, categorical, smoothness, variance, transposed)
    for i in range(len(points)):
        for j in range(len(others)):
            out[i, j] = transposed[j, i]
    return out


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def forward_substitution(lower, columns):  # type: ignore[no-untyped-def]
    """Replace columns b by the solutions of L x = b.

    Args:
        lower: L, lower triangular. (t, t)
        columns: Right-hand sides, overwritten by the solutions. (t, q)
    """
    q = columns.shape[1]
    for i in range(len(lower)):
        row = columns[i]
        k = 0
        # Four rows at a time, so that the present one is loaded and stored less often.
        while k + 4 <= i:
            first = columns[k]
            second = columns[k + 1]
            third = columns[k + 2]
            fourth = columns[k + 3]
            for j in range(q):
                row[j] -= (
                    lower[i, k] * first[j]
                    + lower[i, k + 1] * second[j]
                    + lower[i, k + 2] * third[j]
                    + lower[i, k + 3] * fourth[j]
                )
            k += 4
        while k < i:
            first = columns[k]
            for j in range(q):
                row[j] -= lower[i, k] * first[j]
            k += 1
        for j in range(q):
            row[j] /= lower[i, i]


@njit(cache=True, nogil=True, error_model="numpy")
def likelihood_gradient(  # type: ignore[no-untyped-def]
    points, lengthscales, categorical, smoothness, variance, constant, alpha, inverse, out
):
    """Add up the derivatives of a log marginal likelihood by log length-scales and log signal sd.

    With K = variance (R + constant) + noise, d log p / d theta = tr((alpha alpha^T - K^-1) dK / d
    theta) / 2.

    Args:
        points: Coordinates. (t, d)
        lengthscales: One per column. (d,)
        categorical: Which columns have categories. (d,)
        smoothness: 0 for RBF; 1, 3 or 5, which is twice nu, for a Matern kernel.
        variance: Signal variance.
        constant: Variance of the constant mean, in units of the signal variance.
        alpha: K^-1 z. (t,)
        inverse: K^-1, of which the upper triangle is read. (t, t)
        out: The derivatives by the d log length-scales, then that by the log signal standard
            deviation. (d + 1,)
    """
    out[:] = 0.0
    t, d = points.shape
    squares = np.empty(d)
    for i in range(t):
        out[-1] += (alpha[i] * alpha[i] - inverse[i, i]) * variance * (1.0 + constant)
        for j in range(i):
            square = 0.0
            for k in range(d):
                distance = points[i, k] - points[j, k]
                if categorical[k]:
                    distance = 1.0 if distance != 0.0 else 0.0
                distance /= lengthscales[k]
                squares[k] = distance * distance
                square += squares[k]
            if smoothness == 0:
                correlation = np.exp(-0.5 * square)
                slope = correlation
            else:
                r = np.sqrt(smoothness * square)
                decay = np.exp(-r)
                if smoothness == 5:
                    correlation = (1.0 + r + r * r / 3.0) * decay
                    slope = (5.0 / 3.0) * (1.0 + r) * decay
                elif smoothness == 3:
                    correlation = (1.0 + r) * decay
                    slope = 3.0 * decay
                else:
                    correlation = decay
                    slope = decay / r if r > 0.0 else 0.0
            # Counts twice, as K is symmetric.
            weight = (alpha[i] * alpha[j] - inverse[j, i]) * variance
            out[-1] += 2.0 * weight * (correlation + constant)
            for k in range(d):
                out[k] += weight * slope * squares[k]
