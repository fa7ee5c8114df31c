"""Domains, policies and priors shared by the tests of the theory."""

from __future__ import annotations

import numpy as np

import truvar as tv
from truvar.theory import TheorySetting

GRID = tv.Domain.grid(x=np.linspace(0, 1, 8), y=np.linspace(0, 1, 8))
THEOREM = tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.1, r=0.5)
THREE = np.eye(3)  # three independent points


def line(n: int, lengthscale: float) -> np.ndarray:
    x = np.linspace(0, 1, n)
    return np.exp(-((x[:, None] - x) ** 2) / (2 * lengthscale**2))


def random_settings() -> list[TheorySetting]:
    rng = np.random.default_rng(7)
    found = []
    for _ in range(12):
        n = int(rng.integers(2, 5))
        half = rng.normal(size=(n, 2))
        matrix = half @ half.T + rng.uniform(0.05, 1) * np.eye(n)
        sd = np.sqrt(matrix.diagonal())
        found.append(
            TheorySetting.from_covariance(
                matrix / np.outer(sd, sd), rng.uniform(0.05, 1, n), rng.choice([0.5, 1, 2], n)
            )
        )
    return found
