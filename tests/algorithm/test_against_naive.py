"""The package takes the same steps as a naive transcription of the paper: every number agrees to
1e-8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from tests.reference.naive import Action, NaiveTruVaR

import truvar as tv

TOLERANCE = 1e-8
TIE = 1e-9

GRID = tv.Domain.grid(x=np.linspace(0, 1, 5), y=np.linspace(0, 1, 6))
FINER = tv.Domain.grid(x=np.linspace(0, 1, 6), y=np.linspace(0, 1, 7))
LINE = tv.Domain.grid(x=np.linspace(-1, 2, 40))
SHORT = tv.Domain.grid(x=np.linspace(-1, 2, 30))
LAKE = tv.Domain.grid(distance_m=np.linspace(0, 1400, 8), depth_m=np.linspace(-18, 0, 6))
SCATTER = tv.Domain.table(
    pd.DataFrame(np.random.default_rng(5).uniform(size=(36, 2)), columns=["x", "y"])
)

SMOOTH = RBF(0.25)
ROUGH = Matern([0.3, 0.45], nu=2.5)
LAKE_KERNEL = ConstantKernel(4.48) * Matern([245, 2.72], nu=2.5)
LINE_KERNEL = ConstantKernel(0.3) * Matern(0.4, nu=1.5)
LEVELS = [(1e-6, 15.0), (1e-3, 10.0), (0.05, 2.0)]
EVEN_LEVELS = [(1e-6, 4.0), (1e-2, 3.5), (0.2, 1.5)]
UNEVEN = 10.0 ** np.random.default_rng(1).uniform(-4, -0.5, size=200)
PRICES = np.random.default_rng(2).uniform(0.5, 8.0, size=200)
TASKS = {
    "tasks": np.array([[1.0, 0.8], [0.8, 1.0]]),
    "task_noise": [1e-3, 2e-3],
    "task_cost": [5.0, 1.0],
}

LOG_BO = ("log", 0.5)


def goal_of(spec: dict[str, Any]) -> Any:
    monotone = spec.get("monotone", True)
    if spec["goal"] == "max":
        return tv.Maximize(monotone=monotone)
    if spec["goal"] == "min":
        return tv.Minimize(monotone=monotone)
    if spec["goal"] == "level":
        return tv.LevelSet(spec["threshold"], monotone=monotone)
    return tv.LevelSet(fraction_of_max=spec["threshold"], monotone=monotone)


def policy_of(spec: dict[str, Any]) -> tv.TruVaR:
    kind, constant = spec.get("beta_schedule", ("log", 1.0))
    among = spec.get("among")
    if isinstance(among, tuple):
        among = tv.TopK(among[1], by=among[2])
    return tv.TruVaR(
        beta=tv.LogBeta(constant) if kind == "log" else tv.ConstantBeta(constant),
        among=among,
        **{name: spec[name] for name in ("eta", "r", "slack", "anticipate") if name in spec},
    )


def cost_of(domain: tv.Domain, spec: dict[str, Any]) -> Any:
    if "travel" not in spec and "magnitude" not in spec:
        return spec.get("cost")
    rates = {
        kind: {name: rate for name, rate in zip(domain.columns, spec[kind], strict=True) if rate}
        for kind in ("travel", "magnitude")
        if kind in spec
    }
    return tv.Cost(base=spec.get("cost", 0.0), **rates)


def study_and_reference(domain: tv.Domain, **spec: Any) -> tuple[tv.Study, NaiveTruVaR]:
    """Return a study and its naive reference, both made from the arguments of the reference."""
    for name in ("noise", "cost"):
        if isinstance(spec.get(name), np.ndarray):
            spec[name] = spec[name][: len(domain)]
    spec = {"mean": 0.0, "noise": 1e-2, **spec}
    if "levels" in spec:
        spec.setdefault("cost", 0.0)
        noise: Any = tv.NoiseLevels(*(list(column) for column in zip(*spec["levels"], strict=True)))
    else:
        noise = spec["noise"]
    tasks = None
    if "tasks" in spec:
        names = [f"task{k}" for k in range(len(spec["tasks"]))]
        own = {name: spec.get(f"task_{name}") for name in ("noise", "cost", "mean")}
        tasks = tv.Tasks(covariance=spec["tasks"].tolist(), names=names, **own)
    study = tv.Study(
        domain,
        goal_of(spec),
        kernel=spec["kernel"],
        mean=spec["mean"],
        noise=noise,
        cost=cost_of(domain, spec),
        tasks=tasks,
        policy=policy_of(spec),
    )
    return study, NaiveTruVaR(points=domain.points, **spec)


def measured(naive: NaiveTruVaR, seed: int) -> Callable[[Action], float]:
    """A function drawn from the prior, one row per task, and its noisy measurement."""
    rng = np.random.default_rng(seed)
    n_tasks = 1 if naive.tasks is None else len(naive.tasks)
    where = [(task, x) for task in range(n_tasks) for x in naive.D]
    K = np.array([[naive.k(a, x, b, z) for b, z in where] for a, x in where])
    values, vectors = np.linalg.eigh(K)
    f = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(len(where)))
    prior = [naive.prior(task) for task, _ in where]
    table = dict(zip(where, f + prior, strict=True))

    def measure(action: Action) -> float:
        exact = table.get((action.task, action.x), 0.0)
        return float(exact + np.sqrt(action.noise) * rng.standard_normal())

    return measure


def row_of(naive: NaiveTruVaR, suggestion: tv.Suggestion) -> int:
    """Tasks outermost, then points, then levels."""
    wanted = (
        0 if suggestion.task is None else int(suggestion.task.removeprefix("task")),
        suggestion.index,
        suggestion.level or 0,
    )
    (row,) = [k for k, r in enumerate(naive.rows()) if (r.task, r.point, r.level) == wanted]
    return row


def assert_close(actual: Any, expected: Any, what: str, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=tolerance, err_msg=what)


def assert_same_state(study: tv.Study, naive: NaiveTruVaR) -> None:
    result = study.result()
    assert_close(result.mean, naive.mu, "posterior mean, eq. (1)")
    assert_close(result.sd**2, naive.sd**2, "posterior variance, eq. (2)")
    # a point measured without noise keeps the variance that rounding leaves, 1e-16: sd = 1e-8
    width = TOLERANCE if all(action.noise > 0 for action in naive.actions) else 10 * TOLERANCE
    assert_close(result.sd, naive.sd, "posterior standard deviation", width)
    assert_close(result.lower, naive.lower, "lower bound, eq. (4)", width)
    assert_close(result.upper, naive.upper, "upper bound, eq. (4)", width)
    assert set(np.flatnonzero(result.potential)) == naive.sets.M
    assert set(np.flatnonzero(result.above)) == naive.sets.H
    assert set(np.flatnonzero(result.below)) == naive.sets.L
    assert study.epoch.index == naive.i
    assert study.epoch.start == naive.start
    assert study.epoch.eta == pytest.approx(naive.eta, rel=1e-12)
    assert study.epoch.beta == pytest.approx(naive.beta, rel=1e-12)


def assert_best_choice(naive: NaiveTruVaR, gains: np.ndarray, row: int) -> None:
    """No allowed candidate scores better than the chosen one, which is allowed itself."""
    scores = gains / naive.costs()
    sure = np.array([r.point in naive.allowed() for r in naive.rows()])
    if isinstance(
        naive.among, tuple
    ):  # points that tie with the last of the prefilter may be in or out
        values = naive.acquisition()[[r.point for r in naive.rows()]]
        last = np.sort(naive.acquisition())[-naive.among[1]]
        assert values[row] >= last - TIE
        sure &= values > last + TIE
        sure[row] = True
    assert sure[row]
    assert scores[row] >= scores[sure].max() * (1 - TIE)
    assert scores[row] > 0


def assert_same_ask(
    naive: NaiveTruVaR, suggestion: tv.Suggestion, gains: np.ndarray | None = None
) -> Action:
    """Check that the suggestion is a best choice of the reference, which then takes it too."""
    if gains is None:
        gains = naive.gains_ahead()
    row = row_of(naive, suggestion)
    assert_best_choice(naive, gains, row)
    assert suggestion.gain == pytest.approx(gains[row], rel=TOLERANCE, abs=TOLERANCE)
    assert suggestion.cost == pytest.approx(naive.costs()[row], rel=1e-12)
    assert suggestion.noise == pytest.approx(naive.rows()[row].noise, rel=1e-12)
    return naive.ask(row)


def assert_same_gains(study: tv.Study, naive: NaiveTruVaR) -> np.ndarray:
    gains = naive.gains()
    assert_close(study.gains(), gains, "eq. (3), over all candidates")
    return gains


def assert_same_steps(study: tv.Study, naive: NaiveTruVaR, steps: int, seed: int = 0) -> None:
    """Ask, tell, ask, tell; the reference follows the study's choice, so that a tie does not
    separate them."""
    measure = measured(naive, seed)
    assert_same_state(study, naive)
    for _ in range(steps):
        gains = assert_same_gains(study, naive)
        suggestion = study.ask()
        action = assert_same_ask(naive, suggestion, gains)
        y = measure(action)
        study.tell(suggestion, y)
        naive.tell(action, y)
        assert_same_state(study, naive)


# name: (domain, arguments of the reference, the epoch that the run must reach so that the case
# shows something)
CASES: dict[str, tuple[tv.Domain, dict[str, Any], int]] = {
    "maximum": (GRID, {"goal": "max", "kernel": SMOOTH, "beta_schedule": LOG_BO}, 2),
    "minimum": (SCATTER, {"goal": "min", "kernel": ROUGH, "beta_schedule": LOG_BO}, 2),
    "level set": (GRID, {"goal": "level", "threshold": 0.3, "kernel": SMOOTH}, 1),
    "level set, Matern ARD": (SCATTER, {"goal": "level", "threshold": 0.3, "kernel": ROUGH}, 1),
    "constant beta": (
        LINE,
        {"goal": "max", "kernel": LINE_KERNEL, "beta_schedule": ("constant", 4.0), "noise": 1e-3},
        2,
    ),
    "signal variance, prior mean": (
        LINE,
        {"goal": "level", "threshold": 7.0, "kernel": LINE_KERNEL, "mean": 6.8, "noise": 1e-3},
        2,
    ),
    "cost per point": (SCATTER, {"goal": "max", "kernel": ROUGH, "cost": PRICES}, 1),
    "travel and depth cost": (
        LAKE,
        {
            "goal": "level",
            "threshold": 1.5,
            "kernel": LAKE_KERNEL,
            "mean": 1.0,
            "noise": 0.136,
            "cost": 4.0,
            "travel": [0.25, 0.0],
            "magnitude": [0.0, 4.0],
        },
        1,
    ),
    "maximum with travel": (
        LINE,
        {"goal": "max", "kernel": LINE_KERNEL, "cost": 0.5, "travel": [2.0], "noise": 1e-3},
        1,
    ),
    "uneven noise": (
        SCATTER,
        {"goal": "level", "threshold": 0.3, "kernel": SMOOTH, "noise": UNEVEN},
        1,
    ),
    "uneven noise and prices": (
        GRID,
        {"goal": "max", "kernel": ROUGH, "noise": UNEVEN, "cost": PRICES, "beta_schedule": LOG_BO},
        1,
    ),
    "no noise": (
        SCATTER,
        {"goal": "max", "kernel": Matern(0.2, nu=2.5), "noise": 0.0},
        1,
    ),
    "level set without noise": (
        LINE,
        {"goal": "level", "threshold": 0.1, "kernel": LINE_KERNEL, "noise": 0.0},
        2,
    ),
    "three noise levels": (
        GRID,
        {"goal": "level", "threshold": 0.3, "kernel": SMOOTH, "levels": LEVELS},
        1,
    ),
    "noise levels and prices": (
        SHORT,
        {
            "goal": "max",
            "kernel": LINE_KERNEL,
            "levels": EVEN_LEVELS,
            "cost": PRICES,
            "beta_schedule": LOG_BO,
        },
        2,
    ),
    "noise levels and travel": (
        SHORT,
        {
            "goal": "level",
            "threshold": 0.1,
            "kernel": LINE_KERNEL,
            "levels": EVEN_LEVELS,
            "cost": 1.0,
            "travel": [3.0],
        },
        1,
    ),
    "tasks": (GRID, {"goal": "max", "kernel": SMOOTH, "beta_schedule": LOG_BO, **TASKS}, 1),
    "tasks of unlike scale": (
        SHORT,
        {
            "goal": "level",
            "threshold": 0.1,
            "kernel": LINE_KERNEL,
            "tasks": np.array([[1.0, 1.6], [1.6, 4.0]]),
            "task_noise": [1e-3, 1e-2],
            "task_cost": [3.0, 1.0],
        },
        1,
    ),
    "tasks with their own means": (
        SHORT,
        {"goal": "max", "kernel": LINE_KERNEL, **TASKS, "task_mean": [-3.0, 12.0]},
        1,
    ),
    "tasks with noise levels": (
        SHORT,
        {
            "goal": "level",
            "threshold": 0.1,
            "kernel": LINE_KERNEL,
            "levels": EVEN_LEVELS,
            "tasks": np.array([[1.0, 1.6], [1.6, 4.0]]),
            "task_cost": [6.0, 0.5],
        },
        1,
    ),
    "tasks with their own noise levels": (
        GRID,
        {
            "goal": "max",
            "kernel": SMOOTH,
            "beta_schedule": LOG_BO,
            "levels": EVEN_LEVELS,
            "tasks": np.array([[1.0, 0.8], [0.8, 1.0]]),
            "task_noise": [[1e-4, 1e-3, 1e-2], [1e-3, 1e-2, 1e-1]],
            "task_cost": [6.0, 0.5],
        },
        1,
    ),
    "first target met by the prior": (
        GRID,
        {"goal": "max", "kernel": SMOOTH, "beta_schedule": ("constant", 0.8), "noise": 0.05},
        2,
    ),
    "not monotone": (
        GRID,
        {
            "goal": "max",
            "kernel": SMOOTH,
            "monotone": False,
            "beta_schedule": ("log", 0.3),
            "noise": 0.05,
        },
        2,
    ),
    "level set, not monotone": (
        GRID,
        {
            "goal": "level",
            "threshold": 0.3,
            "kernel": SMOOTH,
            "monotone": False,
            "noise": 0.2,
            "beta_schedule": ("log", 0.3),
        },
        2,
    ),
    "among potential": (
        GRID,
        {"goal": "max", "kernel": SMOOTH, "among": "potential", "beta_schedule": LOG_BO},
        2,
    ),
    "level set among potential": (
        SCATTER,
        {"goal": "level", "threshold": 0.3, "kernel": ROUGH, "among": "potential"},
        1,
    ),
    "top by ucb": (SCATTER, {"goal": "max", "kernel": SMOOTH, "among": ("top", 8, "ucb")}, 1),
    "top by ei": (SCATTER, {"goal": "max", "kernel": SMOOTH, "among": ("top", 8, "ei")}, 1),
    "minimum, top by ucb": (
        SCATTER,
        {"goal": "min", "kernel": ROUGH, "among": ("top", 8, "ucb")},
        1,
    ),
    "minimum, top by ei": (SCATTER, {"goal": "min", "kernel": ROUGH, "among": ("top", 8, "ei")}, 1),
    "pure variance reduction": (
        GRID,
        {"goal": "max", "kernel": SMOOTH, "eta": 0.0, "beta_schedule": LOG_BO},
        1,
    ),
    "level set, pure variance reduction": (
        GRID,
        {"goal": "level", "threshold": 0.3, "kernel": ROUGH, "eta": 0.0},
        1,
    ),
    "implicit threshold": (
        GRID,
        {"goal": "implicit", "threshold": 0.6, "kernel": SMOOTH, "mean": 2.0},
        1,
    ),
    "implicit threshold, not monotone": (
        LINE,
        {
            "goal": "implicit",
            "threshold": 0.8,
            "kernel": LINE_KERNEL,
            "mean": 2.0,
            "noise": 1e-3,
            "monotone": False,
        },
        2,
    ),
    "maximum anticipating the mean": (
        SCATTER,
        {"goal": "max", "kernel": SMOOTH, "anticipate": "mean"},
        1,
    ),
    "level set anticipating the mean": (
        SCATTER,
        {"goal": "level", "threshold": 0.3, "kernel": ROUGH, "anticipate": "mean"},
        1,
    ),
    "maximum anticipating the average": (
        SCATTER,
        {"goal": "max", "kernel": SMOOTH, "anticipate": "average"},
        1,
    ),
    "minimum anticipating the average": (
        LINE,
        {"goal": "min", "kernel": LINE_KERNEL, "anticipate": "average", "mean": 3.0},
        1,
    ),
    "level set anticipating the average": (
        SCATTER,
        {"goal": "level", "threshold": 0.3, "kernel": ROUGH, "anticipate": "average"},
        1,
    ),
    "not monotone, anticipating the mean": (
        LINE,
        {
            "goal": "max",
            "kernel": LINE_KERNEL,
            "anticipate": "mean",
            "monotone": False,
            "noise": 1e-3,
        },
        1,
    ),
    "level set, not monotone, anticipating the average": (
        SCATTER,
        {
            "goal": "level",
            "threshold": 0.3,
            "kernel": ROUGH,
            "anticipate": "average",
            "monotone": False,
            "beta_schedule": ("log", 0.4),
        },
        1,
    ),
    "noise levels, anticipating the average": (
        SHORT,
        {
            "goal": "level",
            "threshold": 0.1,
            "kernel": LINE_KERNEL,
            "levels": EVEN_LEVELS,
            "anticipate": "average",
        },
        1,
    ),
    "tasks anticipating the mean": (
        SHORT,
        {"goal": "level", "threshold": 0.1, "kernel": LINE_KERNEL, "anticipate": "mean", **TASKS},
        1,
    ),
    "implicit threshold anticipating the mean": (
        SHORT,
        {
            "goal": "implicit",
            "threshold": 0.8,
            "kernel": LINE_KERNEL,
            "mean": 2.0,
            "noise": 1e-3,
            "anticipate": "mean",
        },
        1,
    ),
    "implicit threshold anticipating the average": (
        SHORT,
        {
            "goal": "implicit",
            "threshold": 0.6,
            "kernel": LINE_KERNEL,
            "mean": 2.0,
            "noise": 1e-3,
            "anticipate": "average",
        },
        1,
    ),
    "implicit threshold among potential": (
        SHORT,
        {
            "goal": "implicit",
            "threshold": 0.5,
            "kernel": LINE_KERNEL,
            "mean": 2.0,
            "noise": 1e-3,
            "among": "potential",
        },
        1,
    ),
    "tasks, top by ei": (
        SHORT,
        {
            "goal": "max",
            "kernel": LINE_KERNEL,
            **TASKS,
            "task_cost": [1.5, 1.0],
            "among": ("top", 8, "ei"),
        },
        1,
    ),
    "slack": (
        FINER,
        {"goal": "max", "kernel": SMOOTH, "slack": 0.3, "r": 0.5, "beta_schedule": LOG_BO},
        3,
    ),
    "level set, slack, r": (
        LINE,
        {
            "goal": "level",
            "threshold": 0.1,
            "kernel": LINE_KERNEL,
            "slack": 0.1,
            "r": 0.3,
            "noise": 1e-3,
        },
        2,
    ),
    "learned constant mean": (
        SCATTER,
        {"goal": "level", "threshold": 0.3, "kernel": ROUGH, "mean": None},
        1,
    ),
    "maximum, learned constant mean": (
        GRID,
        {"goal": "max", "kernel": ROUGH, "mean": None, "beta_schedule": LOG_BO},
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_step_is_the_naive_step(name: str) -> None:
    domain, spec, epoch = CASES[name]
    study, naive = study_and_reference(domain, **spec)
    assert_same_steps(study, naive, steps=12, seed=3)
    assert naive.i >= epoch
    assert len(naive.sets.M) < len(domain)


@pytest.mark.parametrize("goal", ["max", "level"])
def test_a_batch_is_greedy_steps_on_pending_variance(goal: str) -> None:
    study, naive = study_and_reference(
        GRID, goal=goal, threshold=0.3, kernel=SMOOTH, beta_schedule=("log", 1.0)
    )
    measure = measured(naive, seed=4)
    for _ in range(3):
        batch = study.ask(4)
        actions = []
        for suggestion in batch:
            actions.append(assert_same_ask(naive, suggestion))
        assert len({s.id for s in study.pending}) == 4
        assert_same_gains(study, naive)  # what a fifth worker would be told
        for suggestion, action in zip(batch, actions, strict=True):
            y = measure(action)
            study.tell(suggestion, y)
            naive.tell(action, y)
            assert_same_state(study, naive)


def test_a_batch_lowers_the_target_for_itself_when_pending_points_leave_nothing_to_gain() -> None:
    study, naive = study_and_reference(
        GRID, goal="max", kernel=RBF(0.6), beta_schedule=("constant", 2.0), noise=1e-3
    )
    measure = measured(naive, seed=5)
    for _ in range(3):
        batch = study.ask(4)
        actions = [assert_same_ask(naive, s) for s in batch]
        epoch = study.epoch
        assert (epoch.index, epoch.eta) == (naive.i, naive.eta)  # only virtually
        for suggestion, action in zip(batch, actions, strict=True):
            y = measure(action)
            study.tell(suggestion, y)
            naive.tell(action, y)
            assert_same_state(study, naive)
    assert naive.lowered > 0


@pytest.mark.parametrize("travel", [False, True])
def test_pending_points_told_out_of_order_or_withdrawn(travel: bool) -> None:
    spec: dict[str, Any] = {
        "goal": "level",
        "threshold": 0.1,
        "kernel": LINE_KERNEL,
        "noise": UNEVEN,
    }
    if travel:
        spec |= {"cost": 1.0, "travel": [2.0]}
    study, naive = study_and_reference(SHORT, **spec)
    measure = measured(naive, seed=6)
    rng = np.random.default_rng(6)
    open_: list[tuple[tv.Suggestion, Action]] = []
    n_observed = 0
    for step in range(30):
        if len(open_) < 2 or (len(open_) < 5 and rng.uniform() < 0.5):
            assert_same_gains(study, naive)
            suggestion = study.ask()
            open_.append((suggestion, assert_same_ask(naive, suggestion)))
            continue
        suggestion, action = open_.pop(int(rng.integers(len(open_))))
        if step % 9 == 8:
            study.withdraw(suggestion, again=True)
            naive.withdraw(action)
        else:
            y = measure(action)
            study.tell(suggestion, y)
            naive.tell(action, y)
            n_observed += 1
        assert_same_state(study, naive)
        assert_same_gains(study, naive)
    assert n_observed >= 12


def test_unsolicited_measurements_on_and_between_the_points() -> None:
    study, naive = study_and_reference(
        GRID,
        goal="max",
        kernel=ROUGH,
        noise=1e-2,
        cost=1.0,
        travel=[1.0, 3.0],
        beta_schedule=LOG_BO,
    )
    rng = np.random.default_rng(7)
    measure = measured(naive, seed=7)
    for step in range(12):
        if step % 3 == 2:
            x = rng.uniform(size=2) if step % 2 else GRID.points[int(rng.integers(len(GRID)))]
            y = float(rng.normal())
            study.tell({"x": x[0], "y": x[1]}, y)
            naive.tell(Action(0, tuple(float(c) for c in x), 1e-2), y)
        else:
            assert_same_gains(study, naive)
            suggestion = study.ask()
            action = assert_same_ask(naive, suggestion)
            y = measure(action)
            study.tell(suggestion, y)
            naive.tell(action, y)
        assert_same_state(study, naive)
        assert_same_gains(study, naive)


def mixture(rng: np.random.Generator) -> tuple[tv.Domain, dict[str, Any]]:
    """A small problem in which any of the options may meet any other."""

    def one_of(*options: Any) -> Any:
        return options[int(rng.integers(len(options)))]

    points = rng.uniform(size=(int(rng.integers(10, 24)), 2))
    domain = tv.Domain.table(pd.DataFrame(points, columns=["x", "y"]))
    goal = one_of("max", "min", "level", "implicit")
    mean = 2.0 if goal == "implicit" else one_of(0.0, 2.0, None)
    spec: dict[str, Any] = {
        "goal": goal,
        "monotone": one_of(True, False),
        "kernel": ConstantKernel(one_of(0.1, 1.0, 9.0))
        * one_of(RBF(0.3), Matern([0.2, 0.4], nu=2.5)),
        "mean": mean,
        "noise": one_of(1e-3, 0.2, UNEVEN),
        "beta_schedule": one_of(LOG_BO, ("log", 1.0), ("constant", 3.0), ("constant", 0.7)),
        "eta": one_of(1.0, 0.5, 0.0),
        "r": one_of(0.1, 0.5),
        "slack": one_of(0.0, 0.3),
    }
    if goal in ("level", "implicit"):
        spec["threshold"] = 0.5 if goal == "implicit" else (mean or 0.0) + 0.3
        spec["among"] = one_of(None, "potential")
    else:
        spec["among"] = one_of(None, "potential", ("top", 5, "ucb"), ("top", 5, "ei"))
    spec["anticipate"] = one_of(None, "mean", "average")
    spec |= one_of(
        {}, {"cost": PRICES}, {"cost": 1.0, "travel": [3.0, 1.0], "magnitude": [0.0, 2.0]}
    )
    spec |= one_of({}, {"levels": EVEN_LEVELS}, {"tasks": np.array([[1.0, 1.2], [1.2, 3.0]])})
    return domain, spec


@pytest.mark.parametrize("seed", range(12))
def test_options_in_any_combination_and_pending_measurements_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain, spec = mixture(rng)
    study, naive = study_and_reference(domain, **spec)
    measure = measured(naive, seed)
    workers = 1 if isinstance(naive.among, tuple) else 3
    pending: list[tuple[tv.Suggestion, Action]] = []
    for _ in range(14):
        if study.finished or study.exhausted:
            break
        assert_same_gains(study, naive)
        if not pending or (len(pending) < workers and rng.uniform() < 0.4):
            suggestion = study.ask()
            pending.append((suggestion, assert_same_ask(naive, suggestion)))
        else:
            suggestion, action = pending.pop(int(rng.integers(len(pending))))
            y = measure(action)
            study.tell(suggestion, y)
            naive.tell(action, y)
        assert_same_state(study, naive)
    assert len(naive.y) > 0


def test_the_naive_reference_alone_takes_the_path_that_the_study_takes() -> None:
    study, naive = study_and_reference(SCATTER, goal="level", threshold=0.3, kernel=ROUGH)
    f = np.sin(6 * SCATTER.points[:, 0]) + SCATTER.points[:, 1]
    at = {tuple(x): float(value) for x, value in zip(SCATTER.points.tolist(), f, strict=True)}
    trace = naive.run(lambda action: at[action.x], steps=12)
    for seen in trace:
        suggestion = study.ask()
        assert suggestion.index == seen["choice"]
        study.tell(suggestion, float(f[suggestion.index]))
        result = study.result()
        assert_close(result.lower, seen["lower"], "lower bound")
        assert set(np.flatnonzero(result.potential)) == seen["M"]
        assert (study.epoch.index, study.epoch.eta) == (seen["i"], pytest.approx(seen["eta"]))
