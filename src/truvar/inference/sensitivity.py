"""Importance of columns: Sobol indices of the posterior mean.

| symbol | here | shape |
|---|---|---|
| f, the posterior mean | `predict` | |
| V = Var(f), if all columns vary independently | `variance` | |
| S_i = Var(E[f given x_i]) / V, the share that column i explains by itself | `ColumnImportance.first` | |
| T_i = E[Var(f given the other columns)] / V, the share that needs column i | `ColumnImportance.total` | |
| A, B, two independent samples of points; A with column i of B | `first`, `second`, `mixed` | (N, d) |

S_i is estimated by mean(f(B) (f(A_i) - f(A))) / V (Saltelli et al., 2010) and T_i by mean((f(A) - f(A_i))^2) / (2 V)
(Jansen, 1999), where A_i is A with column i taken from B. The columns vary over the values that the domain has, or
uniformly over a box, each by itself. A column that T_i calls unimportant does not change the answer; one with T_i much
larger than S_i acts together with others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from truvar._typing import Array
from truvar.domain.domain import Domain

SAMPLES = 1024  # N: points of each sample
NEGLIGIBLE = 1e-12  # variance of the mean, as a share of its square, below which it is constant


@dataclass(frozen=True)
class ColumnImportance:
    """Share of the variation of the posterior mean that a column explains.

    Attributes:
        column: Name of the column.
        first: Share that it explains by itself.
        total: Share that it explains together with the others; the rest does not depend on it.
    """

    column: str
    first: float
    total: float

    def to_dict(self) -> dict[str, str | float]:
        """Return the fields for JSON."""
        return asdict(self)


def column_importance(
    domain: Domain, predict: Callable[[Array], Array], seed: int = 0, samples: int = SAMPLES
) -> list[ColumnImportance] | None:
    """Return how much of the variation of a function over a domain each column explains.

    Args:
        domain: The domain.
        predict: Function of points (q, d) in the coordinates of the model that returns (q,).
        seed: Seed of the points that it is evaluated at.
        samples: Number of points of each of the two samples.

    Returns:
        One entry per column, in order; None if the function is constant.
    """
    from scipy.stats import qmc

    d = len(domain.columns)
    uniform = qmc.Sobol(2 * d, seed=np.random.default_rng(seed)).random(samples)
    first = _spread(domain, uniform[:, :d])
    second = _spread(domain, uniform[:, d:])
    at_first = predict(first)
    at_second = predict(second)
    values = np.concatenate([at_first, at_second])
    centre = float(values.mean())
    variance = float(values.var())
    if not variance > NEGLIGIBLE * centre**2:
        return None
    found = []
    for k, column in enumerate(domain.columns):
        mixed = first.copy()
        mixed[:, k] = second[:, k]
        at_mixed = predict(mixed)
        explained = float(np.mean((at_second - centre) * (at_mixed - at_first))) / variance
        total = float(np.mean((at_first - at_mixed) ** 2)) / (2 * variance)
        found.append(ColumnImportance(column, min(max(explained, 0.0), 1.0), min(total, 1.0)))
    return found


def _spread(domain: Domain, uniform: Array) -> Array:
    """Return points (q, d) from numbers between 0 and 1: each column by itself over the values that it can have."""
    if domain.continuous:
        low = domain.bounds[:, 0]
        points = low + uniform * (domain.bounds[:, 1] - low)
        return domain.snap(points) if domain.discrete else points
    ordered = np.sort(domain.points, axis=0)
    rows = np.minimum((uniform * len(ordered)).astype(int), len(ordered) - 1)
    return np.take_along_axis(ordered, rows, axis=0)
