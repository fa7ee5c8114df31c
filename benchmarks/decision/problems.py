"""The suite: problems with known truth, split into a half for tuning and one held out, fixed here.

A problem is one or several fields of a kind; the starts are shared out among them. Rules are tuned
on the tuning half alone; the held-out half is for the report. What is `apart` is in neither: many
more of a kind, to tell policies apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmarks.decision import fields
from benchmarks.decision.fields import TRUTH, Array
from truvar.domain.domain import Domain
from truvar.models.fit import Model
from truvar.models.kernels import named_kernel
from truvar.paper import lake, svm
from truvar.problem import Problem

Half = Literal["tuning", "held-out", "apart"]
F1 = (0.9, 0.95)
REGRET = (1e-1, 1e-2, 1e-3)  # in standard deviations of the truth
SURVEY = {
    "base": 4.0,
    "travel": {"distance_m": 0.25},
    "magnitude": {"depth_m": 4.0},
}  # the paper's, of its lake
LEVELS = [
    {"variance": 1e-6, "cost": 15.0},
    {"variance": 1e-3, "cost": 10.0},
    {"variance": 0.05, "cost": 2.0},
]


@dataclass(frozen=True)
class Case:
    """A problem of the suite. `budget` is where a run that has not reached its goal is given up."""

    name: str
    half: Half
    budget: float
    make: Callable[[int], Sequence[Problem]]  # from the number of points along an axis
    levels: bool = False
    costly: bool = False  # measurements differ in cost

    @property
    def level_set(self) -> bool:
        return not self.name.startswith(("bo", "svm", "gpu"))

    def targets(self, truth: Array) -> tuple[float, ...]:
        """The scores whose cost is compared: F1, or regret in the units of the truth."""
        return F1 if self.level_set else tuple(share * float(truth.std()) for share in REGRET)


def cases() -> Iterator[Case]:
    """The whole suite; what needs TRUVAR_DATA is left out without it."""
    yield from _lakes()
    yield from _terrain()
    yield Case(
        "levels",
        "tuning",
        700,
        lambda side: _several_levels(side, 1.5, 100),
        levels=True,
        costly=True,
    )
    yield Case(
        "levels-rare",
        "held-out",
        900,
        lambda side: _several_levels(side, 2.25, 200),
        levels=True,
        costly=True,
    )
    yield Case("bo", "tuning", 90, lambda side: _optima(side, range(30)))
    yield Case("bo-other", "held-out", 90, lambda side: _optima(side, range(30, 60)))
    for name, cost, budget in (("svm", None, 100), ("svm-seconds", {"column": svm.COST}, 1.2)):
        yield Case(
            name,
            "tuning",
            budget,
            _with_cost(lambda side: [_svm_grid()], cost),
            costly=cost is not None,
        )
    yield from _measured()
    yield Case("lake-many", "apart", 150, _many_lakes)
    yield Case("lake-many-survey", "apart", 8000, _with_cost(_many_lakes, SURVEY), costly=True)
    yield Case("bo-many", "apart", 90, lambda side: _optima(side, range(1000, 1100)))
    walk = {"base": 1.0, "travel": {"x": 10.0, "y": 10.0}}
    yield Case(
        "bo-walk",
        "apart",
        400,
        _with_cost(lambda side: _optima(side, range(1100, 1130)), walk),
        costly=True,
    )


def _lakes() -> Iterator[Case]:
    kinds: tuple[tuple[str, Half, Callable[[int], Sequence[Problem]]], ...] = (
        ("zurich", "tuning", lambda side: [_zurich(side, 118, 7.0)]),
        ("long", "tuning", lambda side: _drawn(side, "matern52", (400.0, 4.0), 0.75, 10)),
        ("layered", "tuning", lambda side: _drawn(side, "matern52", (600.0, 1.5), 0.7, 20)),
        ("rough", "tuning", lambda side: _drawn(side, "matern32", (300.0, 4.0), 0.85, 30)),
        ("zurich-low", "held-out", lambda side: [_zurich(side, 7, 5.5)]),
        ("patchy", "held-out", lambda side: _drawn(side, "matern52", (150.0, 2.2), 0.8, 40)),
        ("columns", "held-out", lambda side: _drawn(side, "matern52", (150.0, 8.0), 0.85, 50)),
        ("smooth", "held-out", lambda side: _drawn(side, "rbf", (200.0, 3.0), 0.9, 60)),
    )
    for name, half, make in kinds:
        yield Case(f"lake-{name}", half, 150, make)
        yield Case(f"lake-{name}-survey", half, 8000, _with_cost(make, SURVEY), costly=True)


def _terrain() -> Iterator[Case]:
    travel = {"base": 10.0, "travel": {"north": 0.5, "east": 0.5}}
    halves: tuple[tuple[str, Half, bool], ...] = (
        ("west", "tuning", False),
        ("east", "held-out", True),
    )
    for name, half, east in halves:

        def make(side: int, east: bool = east) -> Sequence[Problem]:
            frame, heights = fields.terrain(side, east)
            return [
                _field(frame, heights, "matern32", (40.0, 40.0), 0.8, signal=float(heights.var()))
            ]

        yield Case(f"terrain-{name}", half, 250, make)
        yield Case(f"terrain-{name}-walk", half, 8000, _with_cost(make, travel), costly=True)


def _measured() -> Iterator[Case]:
    folder = fields.data_folder()
    if folder is None:
        return
    glider = {"base": 5.0, "travel": {"distance_km": 8.0}, "magnitude": {"depth_m": 0.5}}
    for name, cost, budget in (("glider", None, 150), ("glider-survey", glider, 8000)):
        make = _with_cost(lambda side: [_glider(folder, side)], cost)
        yield Case(name, "tuning", budget, make, costly=cost is not None)
    for name, cost, budget in (("reservoir", None, 150), ("reservoir-survey", SURVEY, 8000)):
        make = _with_cost(lambda side: [_reservoir(folder, side)], cost)
        yield Case(name, "held-out", budget, make, costly=cost is not None)
    for name, cost, budget in (("gpu", None, 120), ("gpu-seconds", {"column": "cost_s"}, 150)):
        make = _with_cost(lambda side: [_gpu(folder, side)], cost)
        yield Case(name, "tuning", budget, make, costly=cost is not None)
    for name, cost, budget in (
        ("svm-paper", None, 100),
        ("svm-paper-seconds", {"column": "duration_s"}, 40000),
    ):
        make = _with_cost(lambda side: [_svm(folder)], cost)
        yield Case(name, "held-out", budget, make, costly=cost is not None)


# -- one problem
# --------------------------------------------------------------------------------------------------


def _problem(frame: pd.DataFrame, columns: Sequence[str], spec: Mapping[str, Any]) -> Problem:
    return Problem("decision", spec, Path(), Domain.table(frame, columns))


def _with_cost(make: Callable[[int], Sequence[Problem]], cost: Mapping[str, Any] | None) -> Any:
    def priced(side: int) -> Sequence[Problem]:
        extra = {} if cost is None else {"cost": cost}
        return [Problem(p.name, {**p.spec, **extra}, p.folder, p.domain) for p in make(side)]

    return priced


def _field(
    frame: pd.DataFrame,
    values: Array,
    kernel: str,
    lengths: Sequence[float],
    quantile: float,
    *,
    signal: float = 1.0,
    mean: float | None = None,
    noise: float | None = None,
    threshold: float | None = None,
) -> Problem:
    """A level set at a quantile of the field, or at a threshold; noise of 1 % of the signal's
    variance."""
    h = float(np.quantile(values, quantile)) if threshold is None else threshold
    model: dict[str, Any] = {"kernel": kernel, "lengthscales": list(lengths), "variance": signal}
    model["exact"] = True
    if mean is not None:
        model["mean"] = mean
    noise = 0.01 * signal if noise is None else noise
    spec = {"goal": {"level_set": h}, "model": model, "noise": {"variance": noise}}
    return _problem(frame.assign(**{TRUTH: values}), list(frame.columns), spec)


def _zurich(side: int, seed: int, threshold: float) -> Problem:
    frame = lake.simulate(side, side, seed)
    values = frame.pop("chlorophyll").to_numpy()
    prior = {"signal": lake.SIGNAL_SD**2, "mean": lake.MEAN, "noise": lake.NOISE_SD**2}
    return _field(frame, values, "matern52", lake.LENGTHSCALES, 0.0, **prior, threshold=threshold)


def _drawn(
    side: int, kernel: str, lengths: tuple[float, float], quantile: float, seed: int, count: int = 5
) -> list[Problem]:
    values = fields.draws(kernel, lengths, side, range(seed, seed + count))
    return [_field(fields.section(side), v, kernel, lengths, quantile, mean=0.0) for v in values]


def _many_lakes(side: int) -> list[Problem]:
    """25 of each of four kinds."""
    kinds = (
        ("matern52", (400.0, 4.0), 0.75),
        ("matern52", (600.0, 1.5), 0.7),
        ("matern32", (300.0, 4.0), 0.85),
        ("rbf", (250.0, 4.0), 0.8),
    )
    return [
        problem
        for i, kind in enumerate(kinds)
        for problem in _drawn(side, *kind, 1000 + 25 * i, 25)
    ]


def _several_levels(side: int, threshold: float, seed: int) -> list[Problem]:
    """The paper's three noise levels: draws of the squared exponential, l = 0.1, at least 2 % of
    them above h."""

    def make(seed: int) -> Array:
        return fields.draws("rbf", (0.1, 0.1), side, range(seed, seed + 1), square=True)[0]

    fitting = fields.first(make, 5, lambda v: bool((v >= threshold).mean() >= 0.02), seed)
    problems = []
    for values in fitting:
        p = _field(
            fields.unit_square(side), values, "rbf", (0.1, 0.1), 0.0, mean=0.0, threshold=threshold
        )
        problems.append(
            Problem(p.name, {**p.spec, "noise": {"levels": LEVELS}}, p.folder, p.domain)
        )
    return problems


def _optima(side: int, seeds: range) -> list[Problem]:
    spec = {
        "goal": {"maximize": True},
        "model": {"kernel": "rbf", "lengthscales": [0.1, 0.1], "variance": 1.0, "mean": 0.0},
        "noise": {"variance": 1e-6},
    }
    frame = fields.unit_square(side)
    return [
        _problem(frame.assign(**{TRUTH: fields.synthetic_optimum(side, s)}), ["x", "y"], spec)
        for s in seeds
    ]


def _glider(folder: Path, side: int) -> Problem:
    """Dives of one half of the section as a field. The dives are 3 km apart, so that they do not
    tell the length-scale
    along the section: it is taken to be 4 km."""
    frame = pd.read_csv(folder / "glider_transect.csv").dropna(subset=["chl_mg_m3"])
    columns = ["distance_km", "depth_m"]
    value = "chl_mg_m3"
    later = frame[frame["dive"] > 311]
    kernel = named_kernel("matern52", [4.0, 25.0], float(later[value].var()))
    model = Model(kernel, float(later[value].mean()), 0.01, float("nan"))
    return _smooth(
        fields.smoothed(frame[frame["dive"] <= 311], columns, value, side, model), model, 0.8
    )


def _reservoir(folder: Path, side: int) -> Problem:
    """One day of a reservoir as a field, with the hyperparameters of another day."""
    columns = ["distance_m", "depth_m"]
    value = "total_chl_ugL"
    model = fields.fitted(pd.read_csv(folder / "reservoir_transect_second.csv"), columns, value)
    first = pd.read_csv(folder / "reservoir_transect.csv")
    return _smooth(fields.smoothed(first, columns, value, side, model), model, 0.8)


def _smooth(field: pd.DataFrame, model: Model, quantile: float) -> Problem:
    values = field.pop(TRUTH).to_numpy()
    parameters = model.kernel.get_params()
    signal = float(parameters["k1__constant_value"])
    lengths = np.atleast_1d(parameters["k2__length_scale"]).tolist()
    return _field(
        field,
        values,
        "matern52",
        lengths,
        quantile,
        signal=signal,
        mean=model.mean,
        noise=model.noise,
    )


def _gpu(folder: Path, side: int) -> Problem:
    """The fastest configuration of a kernel on a graphics processor: log time, the model learned
    on the way."""
    frame = pd.read_csv(folder / "convolution_A4000.csv")
    if side < 50:
        frame = frame.sample(900, random_state=0).reset_index(drop=True)
    columns = list(frame.columns[:7])
    frame = frame.assign(**{TRUTH: np.log(frame["time_ms_mean"])})
    frame[columns[:4]] = np.log2(frame[columns[:4]])
    return _problem(
        frame,
        columns,
        {"goal": {"minimize": True}, "model": {"kernel": "matern52", "refit_every": 3}},
    )


def _svm_grid() -> Problem:
    """The SVM grid that comes with truvar: the model learned on the way, no noise."""
    frame = svm.table()
    return _tuning(frame.assign(**{TRUTH: frame[svm.VALUE]}), svm.COLUMNS)


def _svm(folder: Path) -> Problem:
    """The paper's SVM on grid: the logarithms of its parameters."""
    frame = pd.read_csv(folder / "svm_on_grid.csv")
    columns = ["C", "alpha", "epsilon"]
    frame = frame.assign(**{TRUTH: frame["validation_error"]})
    frame[columns] = np.log(frame[columns])
    return _tuning(frame, columns)


def _tuning(frame: pd.DataFrame, columns: Sequence[str]) -> Problem:
    spec = {
        "goal": {"minimize": True},
        "model": {"kernel": "matern52", "refit_every": 3, "learn_noise": False},
    }
    return _problem(frame, columns, {**spec, "noise": {"variance": 1e-8}})
