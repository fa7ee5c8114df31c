"""Learned noise that differs from place to place, compared with equal noise on simulated fields.

    python -m benchmarks.heteroscedastic              # 16 fields of each kind, 60 and 150
    measurements python -m benchmarks.heteroscedastic --fields 4   # a glance

Simulated fields on 28 x 28 points with unit variance, measured at random points. The standard
deviation of the noise is 0.02 to 0.6 from left to right (*growing*), 0.05 on the left and 0.5 on
the right (*two levels*), 0.05 at the sides and 0.55 in the middle (*middle*), or the same
everywhere (*equal*, 0.2, and *small*, 0.02). Every line compares the learned model, with its noise
as it is learned, with the same model restricted to equal noise:

- share of the fields on which unequal noise was learned;
- root mean square error of the posterior mean;
- mean negative log density of the truth under the marginal posteriors (lower is better);
- share of the domain whose 95 % interval contains a threshold, the 80 % quantile of the field, and
  of the domain that lies on the wrong side of it with 95 % certainty.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np

import truvar as tv
from benchmarks.decision.fields import Array, draws
from benchmarks.measure import one_thread
from truvar.models import _learned as learned
from truvar.models._learned import FitData, fit_ensemble
from truvar.models.ensemble import Ensemble

SIDE = 28
SIZES = (60, 150)
FIELDS = 16
NEVER = 10**9  # observations that slopes need, to switch them off
KINDS = ("growing", "two levels", "middle", "equal", "small")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.heteroscedastic", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--fields", type=int, default=FIELDS, help=f"fields of each kind; default {FIELDS}"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="numbers of measurements"
    )
    given = parser.parse_args(arguments)
    print(
        "| noise | t | learned unequal | error | error, equal | density | density, equal | "
        "undecided | ..., equal |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with one_thread():
        for kind in KINDS:
            for t in given.sizes:
                print(line(kind, t, given.fields), flush=True)
    return 0


def line(kind: str, t: int, fields: int) -> str:
    """Return the line of the table for a kind of noise and a number of measurements."""
    found = np.array([compare(kind, t, start) for start in range(fields)])  # (fields, 2, 5)
    free, equal = found.mean(axis=0)
    cells = [f"{100 * free[0]:.0f} %"]
    cells += [f"{free[1]:.3f}", f"{equal[1]:.3f}", f"{free[2]:.2f}", f"{equal[2]:.2f}"]
    cells += [f"{100 * each[3]:.1f} ({100 * each[4]:.2f}) %" for each in (free, equal)]
    return f"| {kind} | {t} | {' | '.join(cells)} |"


def compare(kind: str, t: int, start: int) -> list[tuple[float, ...]]:
    """Return the figures of the learned model, and of the one with equal noise, on one field."""
    axis = np.linspace(0.0, 1.0, SIDE)
    domain = tv.Domain.grid(x=axis, y=axis)
    truth = draws(("rbf", "matern52")[start % 2], (0.2, 0.2), SIDE, [4000 + start], square=True)[0]
    truth = truth / truth.std()
    rng = np.random.default_rng([9, start, t])
    rows = rng.choice(len(domain), t)
    values = truth[rows] + noise_sd(kind, domain.points[rows, 0]) * rng.standard_normal(t)
    data = FitData(domain.points[rows], values, None, domain.extent, domain.spacing)
    figures = []
    for least in (learned.MIN_OBSERVATIONS_FOR_SLOPES, NEVER):
        with patch.object(learned, "MIN_OBSERVATIONS_FOR_SLOPES", least):
            figures.append(evaluate(data, domain, truth))
    return figures


def noise_sd(kind: str, x: Array) -> Array:
    """Return the standard deviation of the noise at points with this first coordinate."""
    if kind == "growing":
        return 0.02 + 0.58 * x
    if kind == "two levels":
        return np.where(x < 0.5, 0.05, 0.5)
    if kind == "middle":
        return 0.05 + 0.5 * np.exp(-(((x - 0.5) / 0.15) ** 2))
    return np.full(len(x), 0.2 if kind == "equal" else 0.02)


def evaluate(data: FitData, domain: tv.Domain, truth: Array) -> tuple[float, ...]:
    """Return whether slopes were learned, error, log density, share undecided and share on the
    wrong side."""
    model = fit_ensemble("matern52", data, None, 0)
    kept = np.setdiff1d(np.arange(len(data.values)), model.outliers)
    ensemble = Ensemble(model, domain.points, None, len(kept))
    z = model.transform.forward(data.values[kept])
    ensemble.condition(data.points[kept], z, np.zeros(len(kept)), np.ones(len(kept), bool))
    mean, sd = model.transform.inverse_moments(ensemble.mean, np.sqrt(ensemble.variance))
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    density = float(np.mean(np.log(sd) + 0.5 * ((truth - mean) / sd) ** 2))
    threshold = np.quantile(truth, 0.8)
    score = (mean - threshold) / sd
    undecided = float(np.mean(np.abs(score) < 1.96))
    wrong = float(np.mean((np.abs(score) >= 1.96) & ((score > 0) != (truth >= threshold))))
    return float(model.noise_slopes is not None), error, density, undecided, wrong


if __name__ == "__main__":
    sys.exit(main())
