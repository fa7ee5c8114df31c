"""The cost of an accuracy: the planner, which simulates, and `truvar bounds`."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from tests.helpers.theory_settings import GRID, THEOREM

import truvar as tv
from truvar.cli import main
from truvar.report.plan_summary import bounds_summary, bounds_text, plot_plan
from truvar.theory import epoch_cost, simulate, theorem

# -- the planner
# --------------------------------------------------------------------------------------------------


class RecordingGenerator:
    """A random generator that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float, float]] = []  # mean, standard deviation, the draw
        self.rng = np.random.default_rng(11)

    def normal(self, mean: float, sd: float) -> float:
        draw = float(self.rng.normal(mean, sd))
        self.calls.append((mean, sd, draw))
        return draw


def test_sampled_measurements_have_the_joint_density_of_a_draw_from_the_prior():
    """The densities of the draws, each given those before it, multiply to the density of noisy
    values of one f."""
    domain = tv.Domain.grid(x=[0.0, 0.3, 0.8])
    kernel = ConstantKernel(1.5) * Matern(0.5, nu=2.5)
    policy = tv.TruVaR(beta=tv.ConstantBeta(1e4))  # so wide that no point is decided
    study = tv.Study(domain, tv.Maximize(), kernel=kernel, mean=1.0, noise=0.2, policy=policy)
    rng = RecordingGenerator()
    sites = []
    for _ in range(6):
        suggestion = study.ask()
        sites.append(suggestion.index)
        study.tell(suggestion, study.sample_measurement(suggestion, rng))
    y = np.array([draw for _, _, draw in rng.calls])
    covariance = kernel(domain.points[sites]) + 0.2 * np.eye(6)
    joint = (
        -0.5 * (y - 1) @ np.linalg.solve(covariance, y - 1)
        - 0.5 * np.linalg.slogdet(2 * pi * covariance)[1]
    )
    chained = sum(
        -0.5 * ((draw - mean) / sd) ** 2 - log(sd * sqrt(2 * pi)) for mean, sd, draw in rng.calls
    )
    assert chained == pytest.approx(joint, abs=1e-9)


def plan(epsilon: float = 1.0, **limits: object) -> object:
    known = {"kernel": RBF(0.3), "mean": 0.0, "noise": 1e-3, "cost": 2.0}

    def new(number: int) -> tv.Study:
        return tv.Study(GRID, tv.LevelSet(0.3), policy="truvar", seed=number, **known)

    return simulate(new, epsilon, runs=6, **limits)


def test_a_plan_gives_the_cost_of_epsilon():
    found = plan()
    assert np.isfinite(found.reached).all()
    assert (found.reached % 2 == 0).all()  # every measurement costs 2
    assert found.budget(0.5) <= found.budget(1.0) == found.reached.max() == found.cost[-1]
    assert found.mean[-1] <= 1.0 < found.mean[0]
    assert (found.quantile(0.1) <= found.quantile(0.9)).all()
    assert np.array_equal(plan().paths, found.paths)  # seeded
    assert plan(budget=6.0).budget(0.5) is None
    assert plan(steps=3).cost[-1] == 6


def test_a_simulation_reports_progress_and_starts_no_threads_for_small_products():
    from threadpoolctl import threadpool_info, threadpool_limits

    threads: list[int] = []

    def new(number: int) -> tv.Study:
        threads.extend(
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        )
        return tv.Study(GRID, tv.LevelSet(0.3), kernel=RBF(0.3), mean=0.0, noise=1e-3, seed=number)

    done: list[tuple[int, int]] = []
    with threadpool_limits(2, user_api="blas"):
        simulate(new, 1.0, runs=2, steps=2, progress=lambda *count: done.append(count))
    assert done == [(0, 2), (1, 2), (2, 2)]
    assert set(threads) == {1}


def test_a_simulation_refuses_limits_that_allow_no_run():
    with pytest.raises(tv.TruvarError, match="does not pay for one measurement"):
        plan(budget=1.0)
    with pytest.raises(tv.TruvarError, match="at least one run and one step"):
        plan(epsilon=-1.0)
    with pytest.raises(tv.TruvarError, match="share must be > 0 and <= 1"):
        plan(steps=2).budget(0.0)


def test_a_learned_model_has_no_bounds():
    with pytest.raises(tv.TruvarError, match="known model"):
        tv.Study(GRID, tv.Maximize()).theory_setting()


def test_the_setting_of_a_study_is_in_units_of_the_prior():
    study = tv.Study(
        GRID, tv.Maximize(), kernel=ConstantKernel(4.0) * RBF(0.3), mean=0.0, noise=tv.NoiseLevels([0.4, 2.0], [3, 1]),
        policy=THEOREM,
    )  # fmt: skip
    setting = study.theory_setting()
    assert setting.levels == [(0.1, 3.0), (0.5, 1.0)]
    assert (setting.points, setting.actions) == (64, 128)
    assert (setting.min_cost, setting.max_cost) == (1.0, 3.0)
    assert np.allclose(setting.matrix(), RBF(0.3)(GRID.points))
    assert (setting.eta, setting.r, setting.slack, setting.scale) == (
        1.0,
        0.5,
        0.1,
        pytest.approx(2.0),
    )
    # twice the standard deviation: twice the epsilon costs the same
    unit = replace(setting, scale=1.0)
    assert theorem(setting, 2.0, 0.1).cost == theorem(unit, 1.0, 0.1).cost


def test_an_epoch_without_undecided_points_costs_nothing():
    assert epoch_cost(5.0, 0, 20.0, 0.5, 0.1, 3.0) == 0
    assert epoch_cost(5.0, 10, 20.0, 0.5, 0.1, 3.0) == pytest.approx(5 * log(200 / 0.0025) + 3)


# -- truvar bounds
# --------------------------------------------------------------------------------------------------

PROBLEM = """
name = "hill"
[domain]
grid = {{x = [0, 1, 6], y = [0, 1, 6]}}
[goal]
maximize = true
[model]
kernel = "rbf"
lengthscales = [0.4, 0.4]
variance = 4.0
mean = 0.0
[noise]
{noise}
[cost]
base = 1.0
{cost}
"""


@pytest.fixture
def problem(tmp_path):
    def problem(noise: str = "variance = 0.01", cost: str = "") -> str:
        path = tmp_path / "hill.toml"
        path.write_text(PROBLEM.format(noise=noise, cost=cost))
        return str(path)

    return problem


def test_the_command_prints_text(problem, capsys):
    assert main(["bounds", problem(), "--epsilon", "2", "--runs", "2"]) == 0
    output = capsys.readouterr().out
    for part in (
        "36 points",
        "Lemma 5.1",
        "gamma_T",
        "C_epsilon = ",
        "Corollary 3.1",
        "Assumption 3.1",
        "2 of 2 functions drawn from the prior",
    ):
        assert part in output
    assert "smaller than the lemma requires" in output


def test_the_command_simulates_truvar_where_the_problem_names_no_policy(problem, capsys):
    arguments = ["bounds", problem(), "--epsilon", "2", "--runs", "2"]
    assert main(arguments) == 0
    assert (
        "policy: truvar, which the theory is about; a study of this problem uses auto"
        in capsys.readouterr().out
    )
    found = {}
    for name in ("", "truvar", "auto"):
        path = Path(problem())
        if name:
            path.write_text(path.read_text() + f'[policy]\nname = "{name}"\n')
        assert main([*arguments, "--json"]) == 0
        found[name] = json.loads(capsys.readouterr().out)
        assert main(arguments) == 0
        assert ("policy: truvar" in capsys.readouterr().out) == (not name)
    assert found[""] == found["truvar"]
    assert (found["truvar"]["policy"], found["auto"]["policy"]) == ("TruVaR", "WeightedTruVaR")
    assert found["truvar"]["outside"] == []
    assert "the choices are not made by eq. (3)" in found["auto"]["outside"]


def test_the_theorems_beta_needs_truvar(problem, capsys):
    path = Path(problem())
    path.write_text(path.read_text() + '[policy]\nname = "auto"\n')
    assert main(["bounds", str(path), "--epsilon", "2", "--runs", "1", "--theorem"]) == 1
    assert "--theorem needs the policy truvar" in (message := capsys.readouterr().err)
    assert 'give [policy] name = "truvar", or leave out --theorem' in message


def test_the_command_prints_json(problem, capsys):
    arguments = ["--epsilon", "2", "--delta", "0.05", "--runs", "2", "--json"]
    assert (
        main(
            [
                "bounds",
                problem("levels = [{variance = 0.01, cost = 3}, {variance = 0.2, cost = 1}]"),
                *arguments,
            ]
        )
        == 0
    )
    summary = json.loads(capsys.readouterr().out)
    assert summary["delta"] == 0.05
    assert summary["theorem"]["cost"] == summary["theorem"]["epochs"][-1]["total"]
    assert summary["corollaries"]["choice of noise (Corollary 3.2)"]["level"] in (0, 1)
    assert summary["simulation"]["runs"] == 2
    assert summary["actions"] == 72


def test_the_command_reports_that_the_theorem_does_not_apply(problem, capsys):
    assert (
        main(["bounds", problem(cost="travel = {x = 2.0}"), "--epsilon", "2", "--runs", "0"]) == 0
    )
    output = capsys.readouterr().out
    assert (
        "but the cost depends on the last position: the bound does not apply to this problem"
        in output
    )
    assert "simulation" not in output


def test_the_command_simulates_with_the_theorems_beta_and_plots(problem, capsys, tmp_path):
    picture = tmp_path / "plan.png"
    arguments = ["--epsilon", "4", "--runs", "2", "--theorem", "--plot", str(picture)]
    assert main(["bounds", problem(), *arguments]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "smaller than the lemma requires" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--epsilon", "2", "--runs", "0", "--plot", "x.png"],
            "--plot needs a simulation, got --runs 0",
        ),
        (["--epsilon", "2", "--delta", "1.5", "--runs", "0"], "delta must lie between 0 and 1"),
    ],
)
def test_the_command_refuses_options_that_contradict_each_other(
    problem, capsys, arguments, message
):
    assert main(["bounds", problem(), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_problem_with_a_learned_model_is_refused(tmp_path, capsys):
    path = tmp_path / "learned.toml"
    path.write_text(
        '[domain]\ngrid = {x = [0, 1, 5]}\n[goal]\nmaximize = true\n[model]\nkernel = "rbf"\n'
    )
    assert main(["bounds", str(path), "--epsilon", "1"]) == 1
    assert "known model" in capsys.readouterr().err


def test_a_plan_is_plotted_with_the_theorems_cost_near_or_far():
    found = plan()
    for cost in (None, 2 * found.cost[-1], 1e9):
        figure = plot_plan(found, cost)
        words = " ".join(
            text.get_text()
            for text in [*figure.axes[0].texts, *figure.axes[0].get_legend().get_texts()]
        )
        assert ("Theorem 3.1" in words) == (cost is not None)


def test_without_noise_there_is_no_gamma_but_a_bound():
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]),
        tv.Maximize(),
        kernel=RBF(0.3),
        mean=0.0,
        noise=0.0,
        policy="truvar",
        name="exact",
    )
    summary = bounds_summary(study, 1.0, 0.1)
    assert summary["gamma"] is None
    assert summary["corollaries"] == {}
    assert summary["theorem"]["epochs"][0]["cover"] == 3
    assert "gamma_T" not in bounds_text(summary)
