"""Learning the hyperparameters: the mean cost per measurement, beside a plug-in fit every third one
and other people's.

The cost per measurement at t is that of one refit divided by the number of measurements until the
next, and that of the update in between. It is divided by the cost of the plug-in fit that release
0.1.0 made every third measurement, in the same run. One fit of scikit-learn and of BoTorch to the
same observations is listed beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Row, Stopwatch, at_most, median
from truvar.models._learned import FitData, fit_ensemble
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.fit import fit
from truvar.models.priors import Learned

SIDE = 50  # points along each axis of the grid that is predicted
SIZES = (30, 100, 300, 1000)
TARGETS = {300: at_most(0.1), 1000: None}
SECONDS = {1000: at_most(0.1)}


def rows(quick: bool) -> list[Row]:
    if quick:
        return [row for t in (10, 20) for row in _rows_at(t, side=10, rounds=1)]
    return [row for t in SIZES for row in _rows_at(t, SIDE, rounds=3 if t <= 300 else 1)]


def _rows_at(t: int, side: int, rounds: int) -> list[Row]:
    rng = np.random.default_rng(0)
    points = rng.random((t, 2))
    values = np.sin(6 * points[:, 0]) * np.cos(4 * points[:, 1]) + 0.05 * rng.standard_normal(t)
    axis = np.linspace(0, 1, side)
    sites = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    extent = np.ones(2)
    interval = _interval(t)
    earlier = max(t - interval, 5)
    spacing = np.full(2, 1 / side)
    warm = fit_ensemble(
        "matern52", FitData(points[:earlier], values[:earlier], None, extent, spacing), None, 0
    )
    data = FitData(points, values, None, extent, spacing)
    taken: dict[str, list[float]] = {"refit": [], "update": [], "plug-in": []}
    peers: dict[str, Callable[[], object]] = {"scikit-learn": lambda: _scikit_learn(points, values)}
    if _has_botorch():
        peers["botorch"] = lambda: _botorch(points, values)
    for _ in range(rounds):
        with Stopwatch() as watch:
            model = fit_ensemble("matern52", data, warm, 0)
            ensemble = _conditioned(model, sites, data)
        taken["refit"].append(watch.seconds)
        with Stopwatch() as watch:
            ensemble.append(sites[7], 0.0, 0.0, learned=True, site=7)
        taken["update"].append(watch.seconds)
        with Stopwatch() as watch:
            fit(Learned(noise=True, marginalise=False), points, values, 0.0, extent, None, 0)
        taken["plug-in"].append(watch.seconds)
        for name, call in peers.items():
            with Stopwatch() as watch, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
            taken.setdefault(name, []).append(watch.seconds)
    ours = median(taken["refit"]) / interval + median(taken["update"])
    plug_in = median(taken["plug-in"]) / 3
    note = f"one refit {median(taken['refit']):.2g} s every {interval}, one update {median(taken['update']):.2g} s"
    name = f"learning-{t}"
    found = [
        Row(name, f"learning per measurement, t = {t}", ours, "s", SECONDS.get(t), note),
        Row(
            f"{name}-ratio",
            "... divided by the plug-in fit of release 0.1.0 every third measurement",
            ours / plug_in,
            target=TARGETS.get(t),
            note=f"{plug_in:.2g} s per measurement",
        ),
    ]
    for peer in ("scikit-learn", "botorch"):
        seconds = median(taken[peer]) if peer in taken else None
        found.append(
            Row(
                f"{name}-{peer}",
                f"... one fit of {peer}",
                seconds,
                "s",
                note="" if seconds else "not installed",
            )
        )
    return found


def _interval(t: int) -> int:
    """Return the number of measurements from the last refit at or before t to the next."""
    family = Learned()
    due = [count for count in range(2, 2 * t + 5) if family.is_refit_due(count)]
    before = max(count for count in due if count <= t)
    return min(count for count in due if count > before) - before


def _conditioned(model: EnsembleModel, sites: np.ndarray, data: FitData) -> Ensemble:
    ensemble = Ensemble(model, sites, None, len(data.values))
    count = len(data.values)
    ensemble.condition(
        data.points, model.transform.forward(data.values), np.zeros(count), np.ones(count, bool)
    )
    return ensemble


def _scikit_learn(points: np.ndarray, values: np.ndarray) -> object:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(1.0) * Matern([0.3, 0.3], nu=2.5) + WhiteKernel(0.01)
    return GaussianProcessRegressor(kernel, normalize_y=True).fit(points, values)


def _has_botorch() -> bool:
    from importlib.util import find_spec

    return find_spec("botorch") is not None


def _botorch(points: np.ndarray, values: np.ndarray) -> object:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.tensor(points, dtype=torch.double)
    y = torch.tensor(values, dtype=torch.double)[:, None]
    model = SingleTaskGP(x, y)
    return fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
