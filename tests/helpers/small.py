"""A small study of one's own, for tests of a single behaviour."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import truvar as tv

LINE = tv.Domain.grid(x=np.linspace(0, 1, 11))
SQUARE = tv.Domain.grid(x=np.linspace(0, 1, 6), y=np.linspace(0, 1, 6))
LEVELS = tv.NoiseLevels(variance=[1e-6, 1e-3, 0.05], cost=[15, 10, 2])


def a_study(domain: tv.Domain = LINE, goal: Any = None, **settings: Any) -> tv.Study:
    known = {"kernel": RBF(0.2), "mean": 0.0, "noise": 1e-4, **settings}
    return tv.Study(domain, goal or tv.LevelSet(0.2), **known)


def hill(point: dict[str, float]) -> float:
    """Highest at x = 0.6: above 0.2 for 0.15 < x < 1.05."""
    return 1.0 - 4 * (point["x"] - 0.6) ** 2


def on(domain: tv.Domain, f: Any) -> np.ndarray:
    return np.array([f(domain.point(i)) for i in range(len(domain))])
