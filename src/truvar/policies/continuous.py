"""The best point of a box: DIRECT (Jones et al. 1993) over the score, polished locally."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import direct, minimize

from truvar.domain import Array

EVALUATIONS_PER_DIMENSION = 500
SIMPLEX = 0.01  # of the box: how far the polish looks at first
POLISH = 1e-6  # of the box: how closely it pins the point down


def best_in_box(score: Callable[[Array], Array], bounds: Array, start: Array) -> Array:
    """The point (d,) of the box with the highest score, at least as good as `start`. `score` maps (q, d) to (q,)."""
    low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    d = len(bounds)
    found = direct(
        lambda unit: -float(score((low + unit * width)[None, :])[0]),
        [(0.0, 1.0)] * d,
        maxfun=EVALUATIONS_PER_DIMENSION * d,
        vol_tol=0,
        len_tol=1e-4,
    )
    leaders = np.stack([low + np.asarray(found.x) * width, start])
    return polish(score, bounds, leaders[int(np.argmax(score(leaders)))])


def polish(score: Callable[[Array], Array], bounds: Array, start: Array) -> Array:
    """A local maximum of the score near `start`, at least as good as it, inside the box."""
    low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    d = len(bounds)

    def loss(unit: Array) -> float:
        return -float(score((low + np.clip(unit, 0.0, 1.0) * width)[None, :])[0])

    centre = np.clip((start - low) / width, 0.0, 1.0)
    simplex = np.vstack([centre, centre + np.diag(np.where(centre > 0.5, -SIMPLEX, SIMPLEX))])
    found = minimize(
        loss,
        centre,
        method="Nelder-Mead",
        bounds=[(0.0, 1.0)] * d,
        options={"xatol": POLISH, "fatol": 0.0, "maxfev": 100 * d, "initial_simplex": simplex},
    )
    return np.asarray(low + np.clip(found.x, 0.0, 1.0) * width) if found.fun < loss(centre) else start
