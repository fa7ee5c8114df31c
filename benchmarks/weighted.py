"""The default policy, `WeightedTruVaR`, beside TruVaR in one run: time per suggestion by size, and
long studies.

Both policies take turns on the same grid, with the same known kernel; each asks and tells for
itself. Large sizes and long studies run by themselves.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import truvar as tv
from benchmarks.cases import LENGTHSCALE
from benchmarks.measure import Row, Stopwatch, at_least, at_most, median
from benchmarks.scaling import MAX_GAP, NOISE, THRESHOLD, _domain, _function, _peak_gb
from truvar._typing import Array
from truvar.models.kernels import named_kernel

SIZES = (2_500, 10_000, 100_000)
QUICK_SIZES = (100, 144)
STEPS = 15
MILLION = 1_000_000
TEN_MILLION = 3163**2
GOALS = ("level set", "optimum")


def rows(quick: bool) -> list[Row]:
    found = []
    if quick:
        for goal in GOALS:
            found += [_beside_truvar(n, goal, 3) for n in QUICK_SIZES]
            found += _million(400, goal, 3)
        found += _million(400, "level set", 3, "matern52")
        return [*found, _long(100, 20), _long(400, 20), _loading(100, 20), _ten_million(900)]
    found.append(_long(2_500, 3_000))  # first, as the peak of memory is that of all rows so far
    for goal in GOALS:
        found += [_beside_truvar(n, goal, STEPS) for n in SIZES]
        found += _million(MILLION, goal, 40)
    found += _million(MILLION, "level set", 40, "matern52")
    return [*found, _long(100_000, 1_000), _loading(2_500, 1_000), _ten_million(TEN_MILLION)]


def _study(
    domain: tv.Domain, goal: str, policy: str, store: str | None = None, kernel: str = "rbf"
) -> tv.Study:
    aim = tv.LevelSet(THRESHOLD) if goal == "level set" else tv.Maximize()
    known = named_kernel(kernel, [LENGTHSCALE, LENGTHSCALE])
    name = None if store is None else "long"
    return tv.Study(
        domain, aim, kernel=known, mean=0.0, noise=NOISE, policy=policy, store=store, name=name
    )


def _step(study: tv.Study, truth: Array) -> float:
    """Ask and tell once and return the processor time."""
    with Stopwatch() as watch:
        suggestion = study.ask()
        study.tell(suggestion, float(truth[suggestion.index or 0]))
    return watch.seconds


def _beside_truvar(n: int, goal: str, steps: int) -> Row:
    domain = _domain(n, "grid")
    truth = _function(domain.points)
    studies = {policy: _study(domain, goal, policy) for policy in ("auto", "truvar")}
    taken: dict[str, list[float]] = {policy: [] for policy in studies}
    for _ in range(steps):
        for policy, study in studies.items():
            taken[policy].append(_step(study, truth))
    own = median(taken["auto"])
    other = median(taken["truvar"])
    note = f"{1e3 * own:.2f} against {1e3 * other:.2f} ms; {steps} steps"
    what = f"default policy / TruVaR, a suggestion, N={n}, {goal}"
    return Row(f"weighted-{n}-{goal.replace(' ', '-')}", what, own / other, "x", at_most(2.5), note)


def _million(n: int, goal: str, steps: int, kernel: str = "rbf") -> list[Row]:
    domain = _domain(n, "grid")
    truth = _function(domain.points)
    study = _study(domain, goal, "auto", kernel=kernel)
    taken = []
    certified = 0
    while study.steps < steps and study.finished is None:
        taken.append(_step(study, truth))
        certified += getattr(study._learner.engine, "optimality_gap", 0.0) <= MAX_GAP
    label = goal.replace(" ", "-")
    if kernel != "rbf":
        label = f"{label}-{kernel}"
        goal = f"{goal}, {kernel}"
    note = f"{len(taken)} steps, first {taken[0]:.2g} s, slowest {max(taken):.2g} s; {_peak_gb():.2g} GB at most so far"
    share = certified / len(taken)
    return [
        Row(f"weighted-1M-{label}", f"default policy, a step, N={n}, {goal}", median(taken), "s", at_most(3.0), note),
        Row(f"weighted-1M-{label}-certified", "... steps certified to 2 %", share, "", at_least(0.95), ""),
    ]  # fmt: skip


def _long(n: int, t: int) -> Row:
    """Return the time of a step after t measurements that were told without being asked for."""
    domain = _domain(n, "grid")
    truth = _function(domain.points)
    study = _study(domain, "level set", "auto")
    for index in np.random.default_rng(0).integers(len(domain), size=t):
        study.tell(domain.point(int(index)), float(truth[index]))
    first = _step(study, truth)
    taken = [_step(study, truth) for _ in range(10)]
    limit = 10.0 if n <= 2_500 else 500.0
    note = f"first {1e3 * first:.0f} ms, which builds what the engine keeps; {_peak_gb():.2g} GB at most so far"
    what = f"default policy, a step after t = {t} measurements, N={n}"
    return Row(f"weighted-long-{n}", what, 1e3 * median(taken), "ms", at_most(limit), note)


def _ten_million(n: int) -> Row:
    """Return the time by the clock of a suggestion on a regular grid of millions of points, with
    its first step."""
    domain = _domain(n, "grid")
    truth = _function(domain.points)
    study = _study(domain, "level set", "auto")
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        _step(study, truth)
        taken.append(time.perf_counter() - begin)
    gap = getattr(study._learner.engine, "optimality_gap", 0.0)
    note = f"first {taken[0]:.2g} s; gap {gap:.1g} of the last choice; {_peak_gb():.2g} GB at most so far"
    what = f"default policy, a step by the clock, N={n}, level set"
    return Row(f"weighted-{n}", what, max(taken), "s", at_most(60.0), note)


def _loading(n: int, events: int) -> Row:
    """Return the time to load a stored study."""
    domain = _domain(n, "grid")
    truth = _function(domain.points)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'long.db'}"
        study = _study(domain, "level set", "auto", url)
        for index in np.random.default_rng(0).integers(len(domain), size=events):
            study.tell(domain.point(int(index)), float(truth[index]))
        late = _step(study, truth)
        with Stopwatch() as watch:
            tv.load(url, "long")
    note = f"a step through SQLite at the end {1e3 * late:.0f} ms"
    return Row(
        f"weighted-load-{n}",
        f"loading {events} stored events, N={n}",
        watch.seconds,
        "s",
        at_most(1.0),
        note,
    )
