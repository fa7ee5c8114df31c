"""The scale of f, which the one-step-ahead errors tell: evenly probable factors on its sd.

| symbol | here | shape |
|---|---|---|
| e_i = (z_i - its mean given the values before) / the sd of that, for a Gaussian process | `errors` | (t,) |
| nu, s: e_i is Student-t with nu degrees of freedom, times s | `_FREEDOMS`, `_SCALES` | |
| s (nu / chi^2_nu)^(1/2), nu and s from their posterior | the factors | (count,) |

The errors are those of the values in the order in which they came, with the most probable
hyperparameters: the whitened residuals. If f is smooth here and rough there, or flat but for a
corner, most of them are small and a few are large. A Gaussian process cannot say so but a Student-t
can, and the next errors are expected to be like those so far. If the model is right, the
errors are normal, and with many of them the factors tend to 1. Errors count only in part, as the
evidence of families does: a policy looks where they are large, and claims are about all points.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri, gammaln

from truvar._typing import Array

_FREEDOMS = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 100.0, 1e6])  # nu
_SCALES = np.exp(np.linspace(-0.5, 1.0, 13))  # s
_LOG_SCALE_SD = 0.25  # prior standard deviation of log s, around 0; every nu is equally probable
_LEARNING_RATE = 0.25  # power of the likelihood of nu and s
_TAIL = 0.01  # probability at either end of the factors of each nu that is not sampled
_N_QUANTILES = 100  # factors of each nu that the quantiles of all are taken from
_GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo 1 are evenly spread, however many


def scale_factors(count: int, errors: Array, first: int = 0, is_noise_given: bool = False) -> Array:
    """Return evenly probable factors on the standard deviation of f, in an even order: (count,).

    Args:
        count: Their number.
        errors: The one-step-ahead errors, in their standard deviations. (t,)
        first: Number of factors that were taken before, of the same or of another family.
        is_noise_given: Whether the factors leave the noise as it is. Errors that are smaller than
            expected then say that the noise is, and s is at least 1.
    """
    probability = _posterior(errors)  # (nu, s)
    if is_noise_given:
        probability[:, _SCALES < 1.0 - 1e-9] = 0.0
        probability /= probability.sum()
    quantiles = _TAIL + (1.0 - 2.0 * _TAIL) * (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
    student = np.sqrt(_FREEDOMS[:, None] / chdtri(_FREEDOMS[:, None], quantiles))
    factors = (student[:, None, :] * _SCALES[:, None]).ravel()
    order = np.argsort(factors, kind="stable")
    shares = np.repeat(probability.ravel() / _N_QUANTILES, _N_QUANTILES)[order]
    wanted = (0.5 + _GOLDEN_RATIO * (first + np.arange(count))) % 1.0
    return np.asarray(np.interp(wanted, np.cumsum(shares) - 0.5 * shares, factors[order]))


def _posterior(errors: Array) -> Array:
    """Return the probability of each pair of nu and s, given the errors: (nu, s)."""
    nu = _FREEDOMS[:, None, None]
    squares = (errors / _SCALES[:, None]) ** 2  # (s, t)
    log_density = (-0.5 * (nu + 1.0) * np.log1p(squares / nu)).sum(axis=2)
    constant = gammaln((_FREEDOMS + 1.0) / 2.0) - gammaln(_FREEDOMS / 2.0)
    constant -= 0.5 * np.log(_FREEDOMS)
    log_density += len(errors) * (constant[:, None] - np.log(_SCALES))
    log_density *= _LEARNING_RATE
    log_density -= 0.5 * (np.log(_SCALES) / _LOG_SCALE_SD) ** 2
    probability = np.exp(log_density - log_density.max())
    return np.asarray(probability / probability.sum())
