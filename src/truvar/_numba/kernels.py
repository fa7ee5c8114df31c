"""Stationary covariance functions, compiled, with an exponential that vectorises."""

from __future__ import annotations

import numpy as np
from numba import njit

CHUNK = 1024  # kernel values computed at a time: they and their squares stay in the nearest cache


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exponentials(z, work):  # type: ignore[no-untyped-def]
    """Replace z <= 0 by exp(z), accurate to an ulp or two; below -700 the result stays at exp(-700).

    There is no branch and no call, so that the loops vectorise: exp(z) = 2^k exp(r) with |r| <= log(2) / 2, where
    exp(r) is a polynomial and 2^k is applied by adding k to the bits of the exponent.

    Args:
        z: Arguments, overwritten by the results. (n,)
        work: Scratch space. (n,)
    """
    shift = 6755399441055744.0  # 1.5 x 2^52: adding it rounds to an integer, which stays in the low bits
    for i in range(len(z)):
        x = max(z[i], -700.0)
        moved = x * 1.4426950408889634 + shift
        work[i] = moved
        k = moved - shift
        r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10  # log(2) in two parts
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
def stationary(points, others, lengthscales, smoothness, variance, out):  # type: ignore[no-untyped-def]
    """Compute k(points, others) of a stationary kernel. Fastest where `others` has many rows.

    Args:
        points: Coordinates. (p, d)
        others: Coordinates. (q, d)
        lengthscales: One per column. (d,)
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


@njit(cache=True, nogil=True, error_model="numpy")
def likelihood_gradient(  # type: ignore[no-untyped-def]
    points, lengthscales, columns, smoothness, variance, constant, alpha, inverse, out
):
    """Add up the derivatives of a log marginal likelihood by log length-scales and log signal standard deviation.

    With K = variance (R + constant) + noise, d log p / d theta = tr((alpha alpha^T - K^-1) dK / d theta) / 2.

    Args:
        points: Coordinates. (t, d')
        lengthscales: One per column of the points. (d',)
        columns: The derivative that each column of the points contributes to, from 0 to d - 1. (d',)
        smoothness: 0 for RBF; 1, 3 or 5, which is twice nu, for a Matern kernel.
        variance: Signal variance.
        constant: Variance of the constant mean, in units of the signal variance.
        alpha: K^-1 z. (t,)
        inverse: K^-1, of which the upper triangle is read. (t, t)
        out: The derivatives by the d log length-scales, then that by the log signal standard deviation. (d + 1,)
    """
    out[:] = 0.0
    t, d = points.shape
    squares = np.empty(d)
    for i in range(t):
        out[-1] += (alpha[i] * alpha[i] - inverse[i, i]) * variance * (1.0 + constant)
        for j in range(i):
            square = 0.0
            for k in range(d):
                distance = (points[i, k] - points[j, k]) / lengthscales[k]
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
            weight = (alpha[i] * alpha[j] - inverse[j, i]) * variance  # counts twice, as K is symmetric
            out[-1] += 2.0 * weight * (correlation + constant)
            for k in range(d):
                out[columns[k]] += weight * slope * squares[k]
