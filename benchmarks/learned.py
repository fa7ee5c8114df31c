"""The default study with nothing known on large domains, beside a script of twenty lines.

Each row is the processor time of one measurement, ask and tell with everything, fits included:
the mean over the steps from one fit to the next, so that it contains exactly one fit. The script
fits scikit-learn's Gaussian process every tenth measurement and measures where the straddle score
is highest. Both get to t by telling random points. Beside them stand BoTorch over all points, with
straddle or LogEI, and Optuna's GPSampler, which knows no tables, in the unit square; both are in the
extra `peers`. Further rows are the times of a result, and of a table of measurements. With
TRUVAR_DATA both also study the wafer.

The group `profile` has the time of a measurement, and of a result, for more sizes and t, without the
others.
"""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.learning import _has_botorch, _interval
from benchmarks.measure import Row, Stopwatch, Target, at_most

# points, kind, measurements, target in milliseconds
CASES: tuple[tuple[int, str, int, float], ...] = (
    (2500, "grid", 60, 40),
    (2500, "grid", 150, 60),
    (20_000, "scattered", 60, 80),
    (20_000, "scattered", 200, 150),
    (100_000, "scattered", 200, 300),
)
QUICK: tuple[tuple[int, str, int, float], ...] = (
    (400, "grid", 12, 40),
    (2700, "scattered", 12, 80),
)
# points, kind, measurements
OPTIMA: tuple[tuple[int, str, int], ...] = (
    (2500, "grid", 60),
    (20_000, "scattered", 60),
    (100_000, "scattered", 60),
)
QUICK_OPTIMA: tuple[tuple[int, str, int], ...] = ((400, "grid", 12),)
PROFILE = tuple(product((2500, 20_000, 100_000), ("grid", "scattered"), (50, 150, 500)))
QUICK_PROFILE = ((400, "grid", 12),)
TABLE_CASE = (20_000, 1000, 10.0)  # points, rows of the table, target in seconds
QUICK_TABLE_CASE = (2700, 30, 10.0)
SCRIPT_REFIT = 10  # measurements between two fits of the script
MAX_RATIO = 2.0  # time of a measurement over that of the script, at 20,000 points
MAX_RESULT = 1.0  # seconds of a result at 20,000 points
BATCH = 2048  # points that BoTorch scores at a time
THRESHOLD = 0.5
MARKS = (30, 60, 100, 150)  # measurements of the wafer after which F1 is computed
WAFER_THRESHOLD = 230.0


class Script:
    """A script as one would write it: a Gaussian process of scikit-learn, and straddle.

    Args:
        points: All points. (n, d)
        threshold: The level.
    """

    def __init__(self, points: np.ndarray, threshold: float) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        low = points.min(axis=0)
        self.points = (points - low) / (points.max(axis=0) - low)
        self.threshold = threshold
        self.rows: list[int] = []
        self.values: list[float] = []
        self.fitted = 0
        kernel = ConstantKernel(1.0) * Matern([0.3] * points.shape[1], nu=2.5) + WhiteKernel(0.01)
        self.model = GaussianProcessRegressor(kernel, normalize_y=True)

    def tell(self, row: int, value: float) -> None:
        self.rows.append(row)
        self.values.append(value)

    def ask(self) -> int:
        mean, sd = self.predict()
        score = 1.96 * sd - np.abs(mean - self.threshold)
        score[self.rows] = -np.inf
        return int(np.argmax(score))

    def predict(self) -> tuple[np.ndarray, np.ndarray]:
        refit = self.fitted == 0 or len(self.rows) >= self.fitted + SCRIPT_REFIT
        if refit:
            self.fitted = len(self.rows)
        self.model.optimizer = "fmin_l_bfgs_b" if refit else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(self.points[self.rows], self.values)
            if refit:
                self.model.kernel = self.model.kernel_  # the next search starts there
            return self.model.predict(self.points, return_std=True)


def rows(quick: bool) -> list[Row]:
    found = [row for case in (QUICK if quick else CASES) for row in _case_rows(*case)]
    for case in QUICK_OPTIMA if quick else OPTIMA:
        found += _optimum_rows(*case)
    found.append(_table_row(*(QUICK_TABLE_CASE if quick else TABLE_CASE)))
    data = os.environ.get("TRUVAR_DATA")
    if quick or data is None:
        note = "needs TRUVAR_DATA, a directory with wafer_lifetime.csv"
        return [*found, Row("learned-wafer", "the wafer", None, note=note)]
    return found + _wafer_rows(Path(data) / "wafer_lifetime.csv", MARKS)


def profile(quick: bool) -> list[Row]:
    """Return the time of a measurement and of a result by size, kind of domain and t."""
    found = []
    for n, kind, t in QUICK_PROFILE if quick else PROFILE:
        domain, values = _field(n, kind)
        study = _told(domain, tv.LevelSet(THRESHOLD), values, _start(n, t))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _step(study, values)  # compiles what is missing
            taken = _mean_step(lambda study=study, v=values: _step(study, v), _interval(t + 1))
        name = f"profile-{n}-{kind}-{t}"
        what = f"default study, a measurement, {n} points, {kind}, t = {t}"
        found += [Row(name, what, 1e3 * taken, "ms"), *_result_rows(name, study)]
    return found


def _start(n: int, t: int) -> list[int]:
    """Return t - 1 random rows of n."""
    return np.random.default_rng(1).permutation(n)[: t - 1].tolist()


def _told(domain: tv.Domain, goal: tv.Goal, values: np.ndarray, start: list[int]) -> tv.Study:
    """Return a study with nothing known that was told the values of some rows."""
    study = tv.Study(domain, goal, seed=1)
    with warnings.catch_warnings(), study.transaction():
        warnings.simplefilter("ignore")
        for row in start:
            study.tell(domain.point(row), float(values[row]))
    return study


def _field(n: int, kind: str) -> tuple[tv.Domain, np.ndarray]:
    """Return a domain in the unit square and the values of a sum of waves there."""
    rng = np.random.default_rng(0)
    if kind == "grid":
        axis = np.linspace(0, 1, round(n**0.5))
        domain = tv.Domain.grid(x=axis, y=axis)
    else:
        points = rng.random((n, 2))
        domain = tv.Domain.table({"x": points[:, 0], "y": points[:, 1]}, columns=["x", "y"])
    waves = 9 * rng.normal(size=(60, 2))
    phases = rng.uniform(0, 2 * np.pi, 60)
    return domain, np.cos(domain.points @ waves.T + phases) @ rng.normal(size=60) / 30**0.5


def _case_rows(n: int, kind: str, t: int, target: float) -> list[Row]:
    domain, values = _field(n, kind)
    start = _start(n, t)
    study = _told(domain, tv.LevelSet(THRESHOLD), values, start)
    script = Script(domain.points, THRESHOLD)
    for row in start:
        script.tell(row, float(values[row]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _step(study, values)  # compiles what is missing
        ours = _mean_step(lambda: _step(study, values), _interval(t + 1))
        script.ask()
        theirs = _mean_step(lambda: _script_step(script, values), SCRIPT_REFIT)
    where = f"{n} points, {kind}, t = {t}"
    name = f"learned-{n}-{t}"
    ratio_target: Target | None = at_most(MAX_RATIO) if n == 20_000 else None
    return [
        Row(name, f"default study, a measurement, {where}", 1e3 * ours, "ms", at_most(target)),
        Row(
            f"{name}-ratio",
            "... over the script",
            ours / theirs,
            "x",
            ratio_target,
            f"scikit-learn and straddle: {1e3 * theirs:.0f} ms",
        ),
        _botorch_row(name, domain.points, values, start, is_optimum=False),
        *(_result_rows(name, study) if kind == "scattered" else ()),
    ]


def _optimum_rows(n: int, kind: str, t: int) -> list[Row]:
    """Return the time of a measurement for an optimum, beside BoTorch and Optuna."""
    domain, values = _field(n, kind)
    start = _start(n, t)
    study = _told(domain, tv.Maximize(), values, start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _step(study, values)  # compiles what is missing
        ours = _mean_step(lambda: _step(study, values), _interval(t + 1))
    name = f"learned-optimum-{n}-{t}"
    what = f"default study, a measurement for an optimum, {n} points, {kind}, t = {t}"
    return [
        Row(name, what, 1e3 * ours, "ms"),
        _botorch_row(name, domain.points, values, start, is_optimum=True),
        _optuna_row(name, domain.points, values, start),
    ]


def _result_rows(name: str, study: tv.Study) -> list[Row]:
    """Return the times of a result, and of its joint statements."""
    with warnings.catch_warnings(), Stopwatch() as watch:
        warnings.simplefilter("ignore")
        result = study.result()
        _ = result.probability
    n_points = len(study.domain)
    target = at_most(MAX_RESULT) if n_points == 20_000 else None
    what = "... a result: mean, standard deviation and probability of every point"
    found = Row(f"{name}-result", what, watch.seconds, "s", target)
    with Stopwatch() as watch:
        _ = result.classes
        _ = str(result.certificate)
    what = "... its joint statements: classes, expected F1 and certificate"
    return [found, Row(f"{name}-statements", what, watch.seconds, "s")]


def _table_row(n: int, n_rows: int, target: float) -> Row:
    """Return the processor time of a table that is told to a study with nothing known."""
    domain, values = _field(n, "scattered")
    chosen = np.random.default_rng(1).permutation(n)[:n_rows]
    frame = domain.to_frame().iloc[chosen].assign(value=values[chosen])
    study = tv.Study(domain, tv.LevelSet(THRESHOLD), seed=1)
    with warnings.catch_warnings(), Stopwatch() as watch:
        warnings.simplefilter("ignore")
        study.tell_frame(frame)
    what = f"default study, a table of {n_rows} measurements, {n} points"
    return Row(f"learned-table-{n_rows}", what, watch.seconds, "s", at_most(target))


def _mean_step(step: Any, count: int) -> float:
    with Stopwatch() as watch:
        for _ in range(count):
            step()
    return watch.seconds / count


def _step(study: tv.Study, values: np.ndarray) -> None:
    suggestion = study.ask()
    study.tell(suggestion, float(values[suggestion.index]))


def _script_step(script: Script, values: np.ndarray) -> None:
    row = script.ask()
    script.tell(row, float(values[row]))


def _botorch_row(
    name: str, points: np.ndarray, values: np.ndarray, start: list[int], is_optimum: bool
) -> Row:
    """Return the time of BoTorch's fit, and of straddle or LogEI over all points, per measurement."""
    what = f"... BoTorch, SingleTaskGP and {'LogEI' if is_optimum else 'straddle'} over all points"
    if not _has_botorch():
        return Row(f"{name}-botorch", what, None, note="not installed")
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    with warnings.catch_warnings(), Stopwatch() as watch:
        warnings.simplefilter("ignore")
        y = torch.tensor(values[start])[:, None]
        model = SingleTaskGP(torch.tensor(points[start]), (y - y.mean()) / y.std())
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    fit = watch.seconds
    with warnings.catch_warnings(), Stopwatch() as watch, torch.no_grad():
        warnings.simplefilter("ignore")
        rule = LogExpectedImprovement(model, best_f=float(model.train_targets.max()))
        for batch in torch.tensor(points)[:, None, :].split(BATCH):
            if is_optimum:
                rule(batch)
            else:
                torch.sqrt(model.posterior(batch).variance)
    note = f"one fit {fit:.2g} s every {SCRIPT_REFIT}, one choice {watch.seconds:.2g} s"
    return Row(f"{name}-botorch", what, 1e3 * (fit / SCRIPT_REFIT + watch.seconds), "ms", note=note)


def _optuna_row(name: str, points: np.ndarray, values: np.ndarray, start: list[int]) -> Row:
    """Return the time of one suggestion of Optuna's GPSampler, which fits its model each time."""
    what = "... Optuna's GPSampler, a suggestion in the unit square"
    if find_spec("optuna") is None or find_spec("torch") is None:
        return Row(f"{name}-optuna", what, None, note="not installed")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    axis = optuna.distributions.FloatDistribution(0.0, 1.0)
    axes = {f"x{k}": axis for k in range(points.shape[1])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.GPSampler(seed=0)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for row in start:
            params = dict(zip(axes, points[row].tolist(), strict=True))
            value = float(values[row])
            trial = optuna.trial.create_trial(params=params, distributions=axes, value=value)
            study.add_trial(trial)
        study.ask(axes)  # imports what is missing
        with Stopwatch() as watch:
            study.ask(axes)
    return Row(f"{name}-optuna", what, 1e3 * watch.seconds, "ms")


def _wafer_rows(path: Path, marks: tuple[int, ...]) -> list[Row]:
    """Return F1 and the processor time so far of both on the measured table."""
    import pandas as pd

    frame = pd.read_csv(path)
    values = frame["lifetime_us"].to_numpy()
    domain = tv.Domain.table(frame[["x_mm", "y_mm"]])
    study = tv.Study(domain, tv.LevelSet(WAFER_THRESHOLD), seed=0)
    script = Script(domain.points, WAFER_THRESHOLD)
    for row in np.random.default_rng(0).permutation(len(values))[:5].tolist():
        script.tell(row, float(values[row]))
    found = []
    ours = theirs = 0.0
    for mark in marks:
        with Stopwatch() as watch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while study.steps < mark:
                _step(study, values)
        ours += watch.seconds
        with Stopwatch() as watch:
            while len(script.rows) < mark:
                _script_step(script, values)
        theirs += watch.seconds
        f1 = _f1(np.asarray(study.result().mean), values)
        note = f"{ours:.1f} s; the script {_f1(script.predict()[0], values):.3f} in {theirs:.1f} s"
        what = f"F1 on the wafer, {len(values)} rows, {mark} measurements"
        found.append(Row(f"learned-wafer-{mark}", what, f1, note=note))
    return found


def _f1(mean: np.ndarray, values: np.ndarray) -> float:
    said = mean > WAFER_THRESHOLD
    true = values > WAFER_THRESHOLD
    return float(2 * (said & true).sum() / (said.sum() + true.sum()))
