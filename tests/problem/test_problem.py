"""A problem file gives the same study, with the same suggestions, as one made in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.exceptions import UnsupportedGoalError
from truvar.problem import problem_from_dict

TABLE = pd.DataFrame(
    {
        "distance_m": np.repeat(np.linspace(0, 1400, 8), 4),
        "depth_m": np.tile(np.linspace(-18, 0, 4), 8),
        "variance": np.linspace(0.05, 0.4, 32),
        "duration_s": np.linspace(10, 40, 32),
        "algae": np.linspace(0, 10, 32) ** 1.3 / 2,
    }
)
LAKE = tv.Domain.table(TABLE, ["distance_m", "depth_m"])
GRID = tv.Domain.grid(x=np.linspace(0, 1, 6), y=np.linspace(-1, 1, 5))
FIELD = ConstantKernel(4.48) * Matern([244.7, 2.72], nu=2.5)

DOMAIN = "[domain]\ngrid = {x = [0, 1, 6], y = [-1, 1, 5]}\n"
GOAL = "[goal]\nlevel_set = 0.4\n"
MODEL = "[model]\nkernel = 'rbf'\nlengthscales = [0.3, 0.8]\nvariance = 2.0\nmean = 0.1\n"
NOISE = "[noise]\nvariance = 0.01\n"
KERNEL = ConstantKernel(2.0) * RBF([0.3, 0.8])


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Write a problem file beside its tables, and load it."""

    def loaded(text: str) -> tv.Problem:
        TABLE.to_csv(tmp_path / "lake.csv", index=False)
        (tmp_path / "problem.toml").write_text(text)
        return tv.load_problem(tmp_path / "problem.toml")

    return loaded


def made_in_python(domain: tv.Domain = GRID, goal: Any = None, **settings: Any) -> tv.Study:
    known = {"kernel": KERNEL, "mean": 0.1, "noise": 0.01, **settings}
    return tv.Study(domain, goal or tv.LevelSet(0.4), **known)


def value(point: dict[str, float]) -> float:
    return float(np.sin(3 * sum(x / (1 + abs(x)) for x in point.values())))


def assert_alike(one: tv.Study, other: tv.Study, steps: int = 5) -> None:
    """Both suggest the same, and have the same result after it was measured."""
    assert type(one.goal) is type(other.goal)
    np.testing.assert_array_equal(one.domain.points, other.domain.points)
    taken = 0
    for _ in range(steps):
        if other.finished is not None:
            break
        mine = one.ask()
        theirs = other.ask()
        assert (mine.index, mine.level) == (theirs.index, theirs.level)
        assert mine.point == pytest.approx(theirs.point)
        assert (mine.noise, mine.cost, mine.gain) == pytest.approx(
            (theirs.noise, theirs.cost, theirs.gain)
        )
        one.tell(mine, value(mine.point))
        other.tell(theirs, value(theirs.point))
        taken += 1
    assert taken >= 2
    a = one.result()
    b = other.result()
    np.testing.assert_allclose(a.mean, b.mean)
    np.testing.assert_array_equal(a.potential, b.potential)
    assert a.epsilon == pytest.approx(b.epsilon)
    assert one.epoch == other.epoch


# -- whole problems
# --------------------------------------------------------------------------------------------------


def test_the_lake_of_the_documentation(load: Any) -> None:
    problem = load(
        """
        name = "lake"
        [domain]
        table = "lake.csv"
        columns = ["distance_m", "depth_m"]
        [goal]
        level_set = 4.0
        [model]
        kernel = "matern52"
        lengthscales = [244.7, 2.72]
        variance = 4.48
        mean = 2.4
        [noise]
        variance = 0.136
        [cost]
        base = 4.0
        travel = {distance_m = 0.25}
        magnitude = {depth_m = 4.0}
        [policy]
        name = "truvar"
        """
    )
    assert problem.name == "lake"
    cost = tv.Cost(base=4, travel={"distance_m": 0.25}, magnitude={"depth_m": 4})
    expected = tv.Study(
        LAKE, tv.LevelSet(4.0), kernel=FIELD, mean=2.4, noise=0.136, cost=cost, policy=tv.TruVaR()
    )
    assert problem.study().name == "lake"
    assert_alike(problem.study(), expected)


def test_a_problem_without_a_name_has_that_of_its_file(load: Any) -> None:
    assert load(DOMAIN + GOAL + MODEL + NOISE).name == "problem"


# -- domains
# --------------------------------------------------------------------------------------------------


def test_a_grid_is_low_high_and_number_of_points_per_column(load: Any) -> None:
    assert_alike(load(DOMAIN + GOAL + MODEL + NOISE).study(), made_in_python())


def test_a_table_without_columns_has_all_of_them_as_coordinates(load: Any, tmp_path: Path) -> None:
    TABLE[["distance_m", "depth_m"]].to_csv(tmp_path / "two.csv", index=False)
    problem = load(
        "[domain]\ntable = 'two.csv'\n[goal]\nmaximize = true\n[noise]\nvariance = 0.1\n"
    )
    assert problem.domain.columns == ("distance_m", "depth_m")
    np.testing.assert_allclose(problem.domain.points, LAKE.points)


def test_a_box_with_its_number_of_representers(load: Any) -> None:
    text = "[domain]\nbox = {x = [0, 1]}\nrepresenters = 12\n[goal]\nminimize = true\n[noise]\nvariance = 0.01\n"
    study = load(text + "[model]\nkernel = 'rbf'\nlengthscales = 0.3\nmean = 0.0\n").study()
    assert study.domain.continuous
    expected = made_in_python(
        tv.Domain.box(x=(0, 1), representers=12), tv.Minimize(), kernel=RBF(0.3), mean=0.0
    )
    assert_alike(study, expected, steps=3)


def test_a_box_without_it_has_2500(load: Any) -> None:
    text = "[domain]\nbox = {x = [0, 1], y = [0, 2]}\n[goal]\nmaximize = true\n"
    assert len(load(text).domain) == 2500


# -- goals
# --------------------------------------------------------------------------------------------------

GOALS = {
    "level_set = 0.4": tv.LevelSet(0.4, monotone=False),
    "level_set = 1": tv.LevelSet(1.0, monotone=False),
    "level_set = 0.4\nmonotone = true": tv.LevelSet(0.4, monotone=True),
    "level_set = 0.4\nmonotone = false": tv.LevelSet(0.4, monotone=False),
    "level_set_below = 0.4": tv.LevelSet(below=0.4, monotone=False),
    "fraction_of_max = 0.8": tv.LevelSet(fraction_of_max=0.8, monotone=False),
    "maximize = true": tv.Maximize(monotone=False),
    "maximize = true\nmonotone = false": tv.Maximize(monotone=False),
    "minimize = true": tv.Minimize(monotone=False),
    "minimize = true\nmonotone = true": tv.Minimize(monotone=True),
}


@pytest.mark.parametrize("text", GOALS)
def test_every_goal(text: str, load: Any) -> None:
    study = load(DOMAIN + f"[goal]\n{text}\n" + MODEL + NOISE).study()
    assert study.goal == GOALS[text]
    assert_alike(study, made_in_python(goal=GOALS[text]))


@pytest.mark.parametrize(
    ("goal", "policy", "monotone"),
    [
        ("", "", False),
        ("", "name = 'truvar'", True),
        ("", "name = 'gchk'", True),
        ("", "name = 'straddle'", False),
        ("", "name = 'straddle'\nbeta = {rkhs = 2.0, delta = 0.1}", True),
        ("monotone = true", "", True),
        ("monotone = false", "name = 'truvar'", False),
    ],
)
def test_the_policy_decides_whether_m_is_monotone_unless_the_goal_does(
    goal: str, policy: str, monotone: bool, load: Any
) -> None:
    text = f"{DOMAIN}[goal]\nlevel_set = 0.4\n{goal}\n{MODEL}{NOISE}[policy]\n{policy}\n"
    assert load(text).study().goal == tv.LevelSet(0.4, monotone=monotone)


# -- models
# --------------------------------------------------------------------------------------------------

KERNELS = {
    "kernel = 'rbf'\nlengthscales = [0.3, 0.8]": RBF([0.3, 0.8]),
    "kernel = 'matern32'\nlengthscales = [0.3, 0.8]\nvariance = 3": ConstantKernel(3.0)
    * Matern([0.3, 0.8], nu=1.5),
    "kernel = 'matern52'\nlengthscales = [0.5]": Matern([0.5], nu=2.5),
    "lengthscales = 0.5": Matern(0.5, nu=2.5),
}


@pytest.mark.parametrize("text", KERNELS)
def test_every_known_kernel(text: str, load: Any) -> None:
    study = load(DOMAIN + GOAL + f"[model]\n{text}\nmean = 0.0\n" + NOISE).study()
    assert_alike(study, made_in_python(kernel=KERNELS[text], mean=0.0))


def test_a_mean_that_is_left_out_is_learned(load: Any) -> None:
    problem = load(DOMAIN + GOAL + MODEL.replace("mean = 0.1\n", "") + NOISE)
    assert_alike(problem.study(), made_in_python(mean=None))
    study = problem.study()
    study.tell({"x": 0.0, "y": 0.0}, 50.0)
    np.testing.assert_allclose(study.result().mean, 50.0)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("lengthscales = [244.7, 2.72]\nvariance = 4.48\n", {"kernel": FIELD, "noise": 0.1}),
        ("kernel = 'rbf'\n", {"kernel": "rbf", "noise": 0.1}),
    ],
)
def test_a_mean_from_a_column(model: str, known: dict[str, Any], load: Any) -> None:
    text = (
        "[domain]\ntable = 'lake.csv'\ncolumns = ['distance_m', 'depth_m']\n[goal]\nlevel_set = "
        "0.4\n"
        f"[model]\n{model}mean = 'algae'\n[noise]\nvariance = 0.1\n"
    )
    assert_alike(
        load(text).study(), tv.Study(LAKE, tv.LevelSet(0.4), mean="algae", **known), steps=4
    )


LEARNED = {
    "[model]\nkernel = 'rbf'\nrefit_every = 2\n" + NOISE: (tv.Learned("rbf", refit_every=2), 0.01),
    "[model]\nkernel = 'matern32'\n" + NOISE: (tv.Learned("matern32", refit_every=3), 0.01),
    NOISE: (tv.Learned("matern52", refit_every=3), 0.01),
    "": (tv.Learned("matern52", refit_every=3, noise=True), None),
    "[model]\nlearn_noise = true\nkernel = 'rbf'\n": (tv.Learned("rbf", noise=True), None),
    MODEL.replace("mean = 0.1\n", ""): (KERNEL, None),
    MODEL.replace("mean = 0.1\n", "learn_noise = true\n"): (KERNEL, None),
    "[model]\ntransform = 'none'\n": (tv.Learned(transform="none"), None),
    "[model]\nmarginalise = false\n": (tv.Learned(marginalise=False), None),
    "[model]\ninitial = 3\n": (tv.Learned(n_initial=3), None),
}


@pytest.mark.parametrize("text", LEARNED)
def test_every_model_that_is_learned_as_the_data_come(text: str, load: Any) -> None:
    kernel, noise = LEARNED[text]
    assert_alike(
        load(DOMAIN + GOAL + text).study(),
        made_in_python(kernel=kernel, mean=None, noise=noise),
        steps=4,
    )


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_given_kernel_may_be_exact(is_exact: bool, load: Any) -> None:
    model = MODEL + "exact = true\n" if is_exact else MODEL
    study = load(DOMAIN + GOAL + model + NOISE).study()
    assert study._state.config.prior.exact_model == is_exact


def test_a_model_that_is_learned_from_a_training_file(load: Any) -> None:
    text = (
        "[domain]\ntable = 'lake.csv'\ncolumns = ['distance_m', 'depth_m']\n[goal]\nlevel_set = "
        "5.0\n"
        "[model]\nkernel = 'matern52'\ntraining = 'lake.csv'\nvalue = 'algae'\n[noise]\nvariance = "
        "0.1\n"
    )
    expected = tv.Study(LAKE, tv.LevelSet(5.0), kernel="matern52", noise=0.1)
    expected.fit(TABLE, value="algae")
    study = load(text).study()
    np.testing.assert_allclose(study.kernel.theta, expected.kernel.theta, rtol=1e-4)
    assert study.ask().index == expected.ask().index


# -- noise and cost
# --------------------------------------------------------------------------------------------------


def lake_text(more: str) -> str:
    return (
        "[domain]\ntable = 'lake.csv'\ncolumns = ['distance_m', 'depth_m']\n[goal]\nlevel_set = "
        "0.4\n"
        "[model]\nlengthscales = [244.7, 2.72]\nvariance = 4.48\nmean = 0.1\n" + more
    )


NOISES = {
    "variance = 0.2": 0.2,
    "variance = 0": 0.0,
    "column = 'variance'": TABLE["variance"].to_numpy(),
    "levels = [{variance = 1e-6, cost = 15}, {variance = 0.05, cost = 2}]": tv.NoiseLevels(
        [1e-6, 0.05], [15, 2]
    ),
}


@pytest.mark.parametrize("text", NOISES)
def test_every_noise(text: str, load: Any) -> None:
    assert_alike(
        load(lake_text(f"[noise]\n{text}\n")).study(),
        made_in_python(LAKE, kernel=FIELD, noise=NOISES[text]),
    )


COSTS = {
    "base = 4.0": 4.0,
    "column = 'duration_s'": TABLE["duration_s"].to_numpy(),
    "base = 1\ntravel = {distance_m = 0.25}": tv.Cost(1, travel={"distance_m": 0.25}),
    "base = 1\nmagnitude = {depth_m = 4}": tv.Cost(1, magnitude={"depth_m": 4}),
    "column = 'duration_s'\ntravel = {distance_m = 0.25, depth_m = 3}": tv.Cost(
        "duration_s", travel={"distance_m": 0.25, "depth_m": 3}
    ),
}


@pytest.mark.parametrize("text", COSTS)
def test_every_cost(text: str, load: Any) -> None:
    study = load(lake_text(f"[noise]\nvariance = 0.1\n[cost]\n{text}\n")).study()
    assert_alike(study, made_in_python(LAKE, kernel=FIELD, noise=0.1, cost=COSTS[text]))


def test_without_a_cost_every_measurement_costs_one(load: Any) -> None:
    assert (load(DOMAIN + GOAL + MODEL + NOISE).study().candidates().cost == 1.0).all()


# -- policies
# --------------------------------------------------------------------------------------------------

TRUVAR_OPTIONS = {
    "": tv.TruVaR(),
    "eta = 0.5\nr = 0.3\nslack = 0.1": tv.TruVaR(eta=0.5, r=0.3, slack=0.1),
    "eta = 0": tv.TruVaR(eta=0),
    "beta = 9": tv.TruVaR(beta=tv.ConstantBeta(9.0)),
    "beta = {log = 0.25}": tv.TruVaR(beta=tv.LogBeta(0.25)),
    "beta = {theorem = 0.1}\nslack = 0.2": tv.TruVaR(beta=tv.TheoremBeta(0.1), slack=0.2),
    "beta = {rkhs = 2.0, delta = 0.1}": tv.TruVaR(beta=tv.RKHSBeta(2.0, 0.1)),
    "among = 'potential'": tv.TruVaR(among="potential"),
    "among = {top = 7}": tv.TruVaR(among=tv.TopK(7, by="ucb")),
    "among = {top = 7, by = 'ei'}": tv.TruVaR(among=tv.TopK(7, by="ei")),
    "anticipate = 'mean'": tv.TruVaR(anticipate="mean"),
    "anticipate = 'average'": tv.TruVaR(anticipate="average"),
}


@pytest.mark.parametrize("text", TRUVAR_OPTIONS)
def test_every_option_of_truvar(text: str, load: Any) -> None:
    study = load(DOMAIN + GOAL + MODEL + NOISE + f"[policy]\nname = 'truvar'\n{text}\n").study()
    assert study.policy == TRUVAR_OPTIONS[text]
    assert_alike(study, made_in_python(policy=TRUVAR_OPTIONS[text]), steps=3)


DEFAULT_POLICIES = {
    "": tv.WeightedTruVaR(),
    "[policy]\n": tv.WeightedTruVaR(),
    "[policy]\nname = 'auto'\n": tv.WeightedTruVaR(),
    "[policy]\nstops = 1\n": tv.WeightedTruVaR(stops=1),
    "[policy]\nbeta = {log = 0.25}\n": tv.WeightedTruVaR(beta=tv.LogBeta(0.25)),
}


@pytest.mark.parametrize(
    "model", [MODEL, "", "[model]\nmarginalise = false\n"], ids=["known", "learned", "plug-in"]
)
@pytest.mark.parametrize("text", DEFAULT_POLICIES)
def test_the_default_policy_is_auto_whatever_the_model(text: str, model: str, load: Any) -> None:
    assert load(DOMAIN + GOAL + model + NOISE + text).study().policy == DEFAULT_POLICIES[text]


# -- tasks
# --------------------------------------------------------------------------------------------------


def test_tasks(load: Any) -> None:
    text = (
        "[tasks]\nnames = ['target', 'proxy']\ncovariance = [[1, 0.5], [0.5, 1]]\n"
        "noise = [0.01, 0.1]\ncost = [5, 1]\nmean = [0.1, 0.0]\n"
    )
    tasks = tv.Tasks(
        [[1, 0.5], [0.5, 1]], ["target", "proxy"], noise=[0.01, 0.1], cost=[5, 1], mean=[0.1, 0.0]
    )
    study = load(DOMAIN + GOAL + MODEL + NOISE + text).study()
    expected = made_in_python(tasks=tasks)
    assert study.tasks == tasks
    for _ in range(3):
        suggestion = study.ask()
        assert (suggestion.index, suggestion.task) == (
            expected.ask().index,
            expected.pending[-1].task,
        )
        study.tell(suggestion, 0.3)
        expected.tell(expected.pending[-1], 0.3)


LEARNED_TASKS = {
    "learned kernel": (
        "",
        {"kernel": None, "mean": None, "noise": None},
        "[tasks]\nnames = ['target', 'proxy']\n",
        {},
    ),
    "known kernel": (
        MODEL + NOISE,
        {},
        "[tasks]\nnames = ['target', 'proxy']\ncost = [5, 1]\n",
        {"cost": [5, 1]},
    ),
    "noise levels": (
        MODEL + "[noise]\nlevels = [{variance = 1e-6, cost = 15}, {variance = 0.05, cost = 2}]\n",
        {"noise": tv.NoiseLevels([1e-6, 0.05], [15, 2])},
        "[tasks]\nnames = ['target', 'proxy']\nnoise = [[1e-6, 0.05], [1e-4, 5]]\n",
        {"noise": [[1e-6, 0.05], [1e-4, 5]]},
    ),
}


@pytest.mark.parametrize("name", LEARNED_TASKS)
def test_learned_tasks(name: str, load: Any) -> None:
    text, settings, section, options = LEARNED_TASKS[name]
    study = load(DOMAIN + GOAL + text + section).study()
    expected = made_in_python(tasks=tv.Tasks(names=["target", "proxy"], **options), **settings)
    assert study.tasks == expected.tasks
    for _ in range(9):
        suggestion = study.ask()
        other = expected.ask()
        assert (suggestion.index, suggestion.level, suggestion.task) == (
            other.index,
            other.level,
            other.task,
        )
        study.tell(suggestion, value(suggestion.point))
        expected.tell(other, value(other.point))


# -- start, seed, limits
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start"),
    [("start = 7", 7), ("start = {x = 0.2, y = 1.0}", {"x": 0.2, "y": 1.0}), ("", None)],
)
def test_the_first_suggestion(text: str, start: Any, load: Any) -> None:
    assert_alike(
        load(text + "\n" + DOMAIN + GOAL + MODEL + NOISE).study(), made_in_python(start=start)
    )


def test_a_random_start_follows_the_seed(load: Any) -> None:
    for seed in (0, 3, 11):
        text = f"start = 'random'\nseed = {seed}\n" + DOMAIN + GOAL + MODEL + NOISE
        assert (
            load(text).study().ask().index == made_in_python(start="random", seed=seed).ask().index
        )


def test_the_limits_of_a_run(load: Any) -> None:
    text = DOMAIN + GOAL + MODEL + NOISE
    assert load(text).run == {}
    problem = load(text + "[run]\nbudget = 3.5\nsteps = 20\nepsilon = 0.01\n")
    assert problem.run == {"budget": 3.5, "steps": 20, "epsilon": 0.01}
    assert problem.study().run(value, **problem.run).spent <= 3.5


def test_limits_on_the_answer(load: Any) -> None:
    text = DOMAIN + GOAL + MODEL + NOISE
    problem = load(text + "[run]\nf1 = 0.9\n")
    assert problem.study().limits == problem.run == {"f1": 0.9}
    search = load(
        text.replace("level_set = 0.4", "maximize = true")
        + "[run]\nregret = 0.1\nimprovement_per_cost = 2\n"
    )
    assert search.study().limits == {"regret": 0.1, "improvement_per_cost": 2}
    with pytest.raises(tv.TruvarError, match=r"\[run\] f1.*1\.5"):
        load(text + "[run]\nf1 = 1.5\n")
    with pytest.raises(UnsupportedGoalError, match="the limit regret needs an optimum"):
        load(text + "[run]\nregret = 0.1\n")


# -- one problem, several studies
# --------------------------------------------------------------------------------------


def test_arguments_replace_what_the_file_says(load: Any) -> None:
    problem = load(DOMAIN + GOAL + MODEL + NOISE)
    other = problem.study(
        goal=tv.Maximize(), noise=0.2, policy=tv.TruVaR(eta=0.5), seed=4, name="other"
    )
    assert (other.goal, other.seed, other.name) == (tv.Maximize(monotone=True), 4, "other")
    assert_alike(other, made_in_python(goal=tv.Maximize(), noise=0.2, policy=tv.TruVaR(eta=0.5)))


def test_studies_of_one_problem_are_independent(load: Any) -> None:
    problem = load(DOMAIN + GOAL + MODEL + NOISE)
    first = problem.study()
    second = problem.study()
    first.run(value, steps=3)
    assert second.steps == 0
    assert_alike(second, made_in_python())


def test_a_problem_can_be_given_as_a_dict_and_gives_it_back(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "lake.csv", index=False)
    spec = {
        "name": "lake",
        "domain": {"table": "lake.csv", "columns": ["distance_m", "depth_m"]},
        "goal": {"maximize": True},
        "model": {"lengthscales": [244.7, 2.72], "variance": 4.48, "mean": 0.1},
        "noise": {"column": "variance"},
        "policy": {"name": "truvar", "among": {"top": 5}},
    }
    problem = problem_from_dict(spec, folder=tmp_path)
    assert problem.to_dict() == spec
    again = problem_from_dict(problem.to_dict(), folder=tmp_path)
    assert_alike(problem.study(), again.study())
    policy = tv.TruVaR(among=tv.TopK(5))
    assert_alike(
        problem.study(),
        made_in_python(LAKE, tv.Maximize(), kernel=FIELD, noise="variance", policy=policy),
    )


def test_paths_are_relative_to_the_problem_file(
    load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert len(load(lake_text("[noise]\nvariance = 0.1\n")).domain) == 32


def test_other_columns_of_a_table_are_kept(load: Any) -> None:
    problem = load(lake_text("[noise]\nvariance = 0.1\n"))
    np.testing.assert_allclose(problem.domain.column("algae"), TABLE["algae"])


def test_given_tables_are_used_instead_of_files(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    spec = {"domain": {"table": "t.csv"}, "goal": {"maximize": True}}
    assert len(problem_from_dict(spec, tmp_path).domain) == 2
    given = {"t.csv": pd.DataFrame({"x": [1.0, 2.0, 3.0]})}
    assert len(problem_from_dict(spec, tmp_path, tables=given).domain) == 3
    with pytest.raises(tv.TruvarError, match=r"'t.csv', which was not sent"):
        problem_from_dict(spec, tmp_path, tables={})


def test_limits_is_another_name_of_run() -> None:
    spec: dict[str, Any] = {"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"level_set": 0.5}}
    assert problem_from_dict({**spec, "limits": {"f1": 0.95}}).study().limits == {"f1": 0.95}
    with pytest.raises(tv.TruvarError, match=r"\[limits\] is another name of \[run\], got both"):
        problem_from_dict({**spec, "limits": {"f1": 0.95}, "run": {"steps": 3}})
