"""Pandora's-box Gittins index with its stop, from the papers, on BoTorch's model.

Xie, Astudillo, Frazier, Scully, Terenin 2024 (arXiv 2406.20062): measure where the index g(x) is
largest, with EI(x; g) = lambda c(x). Xie, Cai, Terenin, Frazier, Scully 2025 (arXiv 2507.12453):
stop when no index exceeds the best value. lambda is 1e-4 as in the first paper, in standard
deviations of the values per median cost.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

import truvar as tv
from benchmarks.field.peers.botorch import Plain
from benchmarks.instances import Array

COST_SCALE = 1e-4  # lambda
N_BISECTIONS = 60
REACH = 12.0  # standard deviations in which the index is searched


class Gittins(Plain):
    """The index policy with the stop of the second paper."""

    def scores_at(self, costs: Array) -> Array:
        return self._index(costs)

    def ask(self, costs: Array) -> int:
        index = self._index(costs)
        index[self.rows] = -np.inf
        if index.max() <= max(self.values):
            raise tv.Finished("no index exceeds the best value")
        return int(np.argmax(index))

    def _index(self, costs: Array) -> Array:
        """Return g(x) by bisection: expected improvement falls as g grows."""
        mean, sd = self.posterior
        price = COST_SCALE * float(np.std(self.values)) * costs / float(np.median(costs))
        sd = np.maximum(sd, 1e-9 * (float(np.std(self.values)) or 1.0))
        low = mean - REACH * sd - price
        high = mean + REACH * sd
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            z = (mean - middle) / sd
            improvement = sd * (z * ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
            is_low = improvement > price
            low = np.where(is_low, middle, low)
            high = np.where(is_low, high, middle)
        return (low + high) / 2
