"""The posterior of a study after 200 steps against the same formulas in 80-bit arithmetic.

The reference evaluates the kernel, factorises K_t + Sigma_t and solves in `numpy.longdouble`: eqs.
(1)-(2) as they are, no recursion. The study looks for the zero level of a draw of the prior, so
that its measurements crowd along curves, which is where arithmetic suffers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import truvar as tv
from benchmarks.cases import LENGTHSCALE, gp_on_grid
from benchmarks.measure import Row, Target, at_most
from truvar.models.kernels import named_kernel

Long = NDArray[np.longdouble]


def rows(quick: bool) -> list[Row]:
    side, steps = (12, 20) if quick else (50, 200)
    return [
        *errors(side, steps, LENGTHSCALE, 1e-6, at_most(1e-8)),
        *errors(side, steps, LENGTHSCALE, 1e-10, at_most(1e-8)),
        *errors(side, steps, 5 * LENGTHSCALE, 1e-10, None),
    ]


def errors(
    side: int, steps: int, lengthscale: float, noise: float, target: Target | None
) -> list[Row]:
    """Return the largest errors of variance and mean; the prior variance is 1."""
    axis = np.linspace(0, 1, side)
    truth = gp_on_grid(side, lengthscale, seed=1)
    study = tv.Study(
        tv.Domain.grid(x=axis, y=axis),
        tv.LevelSet(0.0),
        kernel=named_kernel("rbf", [lengthscale, lengthscale]),
        mean=0.0,
        noise=noise,
        policy="truvar",
    )
    where = []
    values = []
    rng = np.random.default_rng(0)
    while study.steps < steps and study.finished is None:
        try:
            suggestion = study.ask()
        except tv.Finished:
            break
        where.append(int(suggestion.index or 0))
        values.append(float(truth[where[-1]] + np.sqrt(noise) * rng.standard_normal()))
        study.tell(suggestion, values[-1])
    name = f"-{noise:g}{'' if target else '-long'}"
    what = (
        f"after {study.steps} steps, N={side * side}, noise {noise:g}, length-scale {lengthscale:g}"
    )
    if np.finfo(np.longdouble).eps > 1e-18:
        why = "not measured: the long double of this platform is no wider than a double"
        return [
            Row(f"{of}{name}", f"error of the {of} {what}", None, "", target, why)
            for of in ("variance", "mean")
        ]
    result = study.result()
    mean, variance = reference(
        study.domain.points, np.array(where), np.array(values), lengthscale, noise
    )
    off = {
        "variance": float(np.abs(study._learner.posterior.variance - variance).max()),
        "mean": float(np.abs(result.mean - mean).max()),
    }
    note = f"worst of {side * side} points; least variance {float(variance.min()):.0e}"
    return [
        Row(f"{of}{name}", f"error of the {of} {what}", error, "", target, note)
        for of, error in off.items()
    ]


def reference(
    points: Any, where: Any, values: Any, lengthscale: float, noise: float
) -> tuple[Long, Long]:
    """mu_t and sigma_t^2 at the points, eqs. (1)-(2), in 80 bits."""
    x = points.astype(np.longdouble) / np.longdouble(lengthscale)
    square = ((x[where][:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    across: Long = np.exp(square / np.longdouble(-2))  # (t, n)
    right = np.column_stack([across, values.astype(np.longdouble)])
    gram = across[:, where] + np.longdouble(noise) * np.eye(len(where), dtype=np.longdouble)
    factor = np.zeros_like(gram)
    for i in range(len(where)):  # Cholesky and forward substitution, a row at a time
        for j in range(i):
            factor[i, j] = (gram[i, j] - factor[i, :j] @ factor[j, :j]) / factor[j, j]
        factor[i, i] = np.sqrt(gram[i, i] - factor[i, :i] @ factor[i, :i])
        right[i] = (right[i] - factor[i, :i] @ right[:i]) / factor[i, i]
    v = right[:, :-1]
    weights = right[:, -1]
    return weights @ v, np.longdouble(1) - (v * v).sum(axis=0)
