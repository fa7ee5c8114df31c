"""Time and memory per suggestion from 2,500 to 1,000,000 points, on grids and scattered, and how
they grow.

Every run has a process of its own, so that its peak of memory is its own:

    python -m benchmarks.scaling 100000 scattered level-set 100
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from math import isqrt
from pathlib import Path

import numpy as np

import truvar as tv
from benchmarks.cases import LENGTHSCALE, Array
from benchmarks.measure import Row, Stopwatch, Target, at_most, median, one_thread
from truvar.acquisition.truncation import truncated_reduction
from truvar.engines import EngineLike
from truvar.engines.lazy import Lazy
from truvar.models.kernels import covariance_function, named_kernel

SIZES = {2_500: "2.5k", 10_000: "10k", 100_000: "100k", 1_000_000: "1M"}
LAYOUTS = ("grid", "scattered")
GOALS = ("optimum", "level-set")
STEPS = 100  # measurements of a run
NOISE = 1e-6  # noise variance
THRESHOLD = 1.0  # of the level set
EXACT = 2e-9  # relative gap up to which a choice counts as exact: the limit of a tie
MAX_GAP = 0.02  # relative gap that the search accepts if it may stop early


@dataclass(frozen=True)
class Run:
    """Time of a run, in seconds of processor time per suggestion, `tell` included; `wall` is the
    wall clock's."""

    points: int
    steps: int
    first: float
    median: float
    slowest: float
    wall: float
    memory_gb: float  # the peak of the process
    engine: str
    worst: float  # largest optimality gap of the run, as a share of the chosen score
    certified: int  # steps with a gap of at most 2 %


def rows(quick: bool) -> list[Row]:
    sizes = {100: "2.5k", 144: "10k", 196: "100k", 256: "1M"} if quick else SIZES
    found = []
    for layout in LAYOUTS:
        for goal in GOALS:
            runs = [measured(n, layout, goal, 4 if quick else STEPS, quick) for n in sizes]
            for run, size in zip(runs, sizes.values(), strict=True):
                found += _rows(run, size, layout, goal)
            seconds = np.log([run.median for run in runs])
            exponent = np.polyfit(np.log([run.points for run in runs]), seconds, 1)[0]
            what = f"growth of the time per suggestion, {layout}, {goal}: exponent of N"
            found.append(
                Row(
                    f"growth-{layout}-{goal}",
                    what,
                    float(exponent),
                    "",
                    None,
                    "fitted to the four sizes",
                )
            )
    return [*found, early_stop_loss(400, 4) if quick else early_stop_loss(150_000, 80)]


def early_stop_loss(n: int, steps: int) -> Row:
    """Return the loss of choices by a search that may stop early, against an exact search beside
    it."""
    study, truth = _study(n, "scattered", "level-set", engine=partial(Lazy, tolerance=MAX_GAP))
    losses = []
    gaps = []
    exact = Lazy(study.policy_context().posterior, study.domain, tolerance=0.0)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        context = study.policy_context()
        table = study.candidates()
        scale = context.posterior.scale**2
        gains = truncated_reduction(
            exact, context.targets, context.epoch.tau * scale, table, only_best=True
        )
        best = float((gains / table.cost).max()) * context.epoch.beta / scale
        suggestion = study.ask()
        losses.append(1 - suggestion.score / best)
        gaps.append(getattr(study._learner.engine, "optimality_gap", 0.0))
        study.tell(
            suggestion, float(truth[suggestion.index or 0] + np.sqrt(NOISE) * rng.standard_normal())
        )
    loose = sum(gap > MAX_GAP for gap in gaps)
    note = f"{steps} steps, {loose} of them with a gap above 2 %; {100 * np.mean(losses):.2g} % on average"
    what = f"loss by the search that may stop early, at worst, N={n}, scattered, level-set"
    return Row("given-away", what, 100 * float(max(losses)), "%", None, note)


def _rows(run: Run, size: str, layout: str, goal: str) -> list[Row]:
    limits: dict[str, Target] = {"100k": at_most(1.0), "1M": at_most(1.0)}
    sure = f"within 2 % in {run.certified} of {run.steps} steps, {100 * run.worst:.2g} % at worst"
    exact = "exact" if run.worst <= EXACT else sure
    note = (
        f"{run.engine} engine, {exact}; {run.steps} steps, first {run.first:.2g} s, slowest "
        f"{run.slowest:.2g} s, "
        f"median by the wall clock {run.wall:.2g} s; {run.memory_gb:.2g} GB at most"
    )
    what = f"suggestion, N={run.points}, {layout}, {goal}"
    found = [
        Row(f"suggestion-{size}-{layout}-{goal}", what, run.median, "s", limits.get(size), note)
    ]
    if size == "1M":
        what = f"memory, N={run.points}, {layout}, {goal}, t = {run.steps}"
        found.append(
            Row(
                f"memory-{size}-{layout}-{goal}",
                what,
                run.memory_gb,
                "GB",
                at_most(8.0),
                "peak of the process",
            )
        )
    return found


def measured(n: int, layout: str, goal: str, steps: int, here: bool) -> Run:
    """A run in a process of its own, or `here`."""
    if here:
        return run(n, layout, goal, steps)
    command = [sys.executable, "-m", "benchmarks.scaling", str(n), layout, goal, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    return Run(**json.loads(done.stdout))


def run(n: int, layout: str, goal: str, steps: int) -> Run:
    """Asks and tells `steps` times, or until the study is finished."""
    study, truth = _study(n, layout, goal)
    rng = np.random.default_rng(0)
    taken = []
    wall = []
    gaps = []
    while study.steps < steps and study.finished is None:
        start = time.perf_counter()
        try:
            with Stopwatch() as asking:
                suggestion = study.ask()
        except tv.Finished:
            break
        y = float(truth[suggestion.index or 0] + np.sqrt(NOISE) * rng.standard_normal())
        with Stopwatch() as telling:
            study.tell(suggestion, y)
        wall.append(time.perf_counter() - start)
        taken.append(asking.seconds + telling.seconds)
        gaps.append(getattr(study._learner.engine, "optimality_gap", 0.0))
    return Run(
        points=len(study.domain),
        steps=study.steps,
        first=taken[0],
        median=median(taken),
        slowest=max(taken[1:]),
        wall=median(wall),
        memory_gb=_peak_gb(),
        engine=study._learner.engine.name,
        worst=max(gaps),
        certified=sum(gap <= MAX_GAP for gap in gaps),
    )


def _study(n: int, layout: str, goal: str, engine: EngineLike = None) -> tuple[tv.Study, Array]:
    """A study, and the true values."""
    domain = _domain(n, layout)
    study = tv.Study(
        domain,
        tv.Maximize() if goal == "optimum" else tv.LevelSet(THRESHOLD),
        kernel=named_kernel("rbf", [LENGTHSCALE, LENGTHSCALE]),
        mean=0.0,
        noise=NOISE,
        engine=engine,
        policy="truvar",
    )
    return study, _function(domain.points)


def _domain(n: int, layout: str) -> tv.Domain:
    if layout == "grid":
        rows = max(divisor for divisor in range(1, isqrt(n) + 1) if n % divisor == 0)
        return tv.Domain.grid(x=np.linspace(0, 1, rows), y=np.linspace(0, 1, n // rows))
    import pandas as pd

    points = np.random.default_rng(1).random((n, 2))
    return tv.Domain.table(pd.DataFrame(points, columns=["x", "y"]))


def _function(points: Array) -> Array:
    """The paper's synthetic function, as in `cases.optimum`, a part of the points at a time."""
    rng = np.random.default_rng(0)
    k = covariance_function(named_kernel("rbf", [LENGTHSCALE, LENGTHSCALE]))
    knots = rng.random((200, 2))
    gram = k(knots, knots) + 1e-8 * np.eye(len(knots))
    weights = np.linalg.solve(gram, np.linalg.cholesky(gram) @ rng.standard_normal(len(knots)))
    parts = np.array_split(points, max(1, len(points) // 10_000))
    return np.concatenate([k(part, knots) @ weights for part in parts])


def _peak_gb() -> float:
    """The most memory that this process has had; 0 where the system does not say.

    Not by `getrusage`, whose peak a process inherits from the one that started it.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(peak.split()[1]) * 1024 / 1e9


if __name__ == "__main__":
    with one_thread():
        print(json.dumps(asdict(run(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))))
