"""Sobol indices: which share of the variance of a function each of its columns explains.

| symbol | here | shape |
|---|---|---|
| A, B: two independent samples of the columns | `a`, `b` | (m, d) |
| AB_k: A with column k of B | `mixed` | (m, d) |
| S_k = Var(E[f given x_k]) / Var f | `SobolIndices.first` | (d,) |
| T_k = 1 - Var(E[f given the others]) / Var f | `SobolIndices.total` | (d,) |

S_k is estimated as by Saltelli et al. (2010), T_k as by Jansen (1999). The columns vary
independently of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truvar._typing import Array

_LOG2_SAMPLES = 11  # binary logarithm of the number of points in each of the two samples


@dataclass(frozen=True, eq=False)
class SobolIndices:
    """Shares of the variance of a function that its columns explain.

    Attributes:
        first: Share that each column explains alone. (d,)
        total: Share that would vanish if the column were held constant: also together with others.
            (d,)
        sd: Standard deviation of the function over the sample.
    """

    first: Array
    total: Array
    sd: float


def sobol_indices(f: Callable[[Array], Array], columns: Array, seed: int = 0) -> SobolIndices:
    """Estimate the Sobol indices of a function whose columns vary independently.

    Args:
        f: The function, from points (q, d) to values (q,).
        columns: Points (n, d); each column is drawn from its values here, independently of the
            others.
        seed: Seed of the quasi-random sample.

    Returns:
        The indices, from 0 to 1; all 0 for a constant function.
    """
    a, b = _samples(columns, seed)
    d = columns.shape[1]
    mixed = np.repeat(a[None, :, :], d, axis=0)
    for k in range(d):
        mixed[k, :, k] = b[:, k]
    values = np.asarray(f(np.concatenate([a, b, mixed.reshape(-1, d)])), dtype=float)
    m = len(a)
    of_a = values[:m]
    of_b = values[m : 2 * m]
    of_mixed = values[2 * m :].reshape(d, m)
    variance = float(values[: 2 * m].var())
    if variance <= 0.0:
        return SobolIndices(np.zeros(d), np.zeros(d), 0.0)
    centre = values[: 2 * m].mean()
    first = ((of_b - centre) * (of_mixed - of_a)).mean(axis=1) / variance
    total = ((of_a - of_mixed) ** 2).mean(axis=1) / (2 * variance)
    return SobolIndices(
        np.clip(first, 0.0, 1.0), np.clip(total, 0.0, 1.0), float(np.sqrt(variance))
    )


def _samples(columns: Array, seed: int) -> tuple[Array, Array]:
    """Return two independent samples (m, d), each column drawn by its quantiles."""
    from scipy.stats import qmc  # slow to import, and few need it

    n, d = columns.shape
    uniform = qmc.Sobol(2 * d, rng=np.random.default_rng(seed)).random_base2(_LOG2_SAMPLES)
    rows = np.minimum((uniform * n).astype(int), n - 1)
    ordered = np.sort(columns, axis=0)
    a = np.take_along_axis(ordered, rows[:, :d], axis=0)
    b = np.take_along_axis(ordered, rows[:, d:], axis=0)
    return a, b
