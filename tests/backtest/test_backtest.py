"""Backtests give the same numbers however the work is spread or interrupted, and summarise them
correctly."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

import truvar as tv
from truvar.acquisition import policy_named
from truvar.backtest import Backtest, Function, Simulator, backtest, simulate_run
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError
from truvar.problem import problem_from_dict
from truvar.report.backtest_plot import plot_backtest
from truvar.report.tables import to_json

SPEC = {
    "domain": {"table": "hill.csv", "columns": ["x", "z"]},
    "goal": {"level_set": 0.5},
    "model": {"kernel": "rbf", "lengthscales": [0.3, 0.3], "variance": 1.0, "mean": 0.0},
    "noise": {"variance": 0.01},
    "cost": {"base": 1.0, "travel": {"x": 2.0}},
}
POLICIES = {"truvar": "truvar", "pure": tv.TruVaR(eta=0.0)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    x, z = (
        axis.ravel()
        for axis in np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9), indexing="ij")
    )
    hill = np.exp(-((x - 0.4) ** 2 + (z - 0.6) ** 2) / 0.1)
    pd.DataFrame({"x": x, "z": z, "height": hill}).to_csv(tmp_path / "hill.csv", index=False)
    return tmp_path


def numbers(result: Backtest) -> pd.DataFrame:
    return result.curves.drop(columns="seconds")


def test_results_do_not_depend_on_how_the_work_is_spread(folder: Path) -> None:
    problem = problem_from_dict(SPEC, folder)
    alone = backtest(problem, "height", POLICIES, replicates=3, budget=20)
    shared = backtest(problem, "height", POLICIES, replicates=3, budget=20, jobs=2)
    pd.testing.assert_frame_equal(numbers(alone), numbers(shared))


def test_the_score_of_a_goal_below_is_that_of_the_points_below(folder: Path) -> None:
    """The mirrored table gives the same curve, as far as the simulated noise is negligible."""
    spec = {**SPEC, "noise": {"variance": 1e-10}}
    table = pd.read_csv(folder / "hill.csv")
    table["depth"] = -table["height"]
    table.to_csv(folder / "hill.csv", index=False)
    below = problem_from_dict({**spec, "goal": {"level_set_below": -0.5}}, folder)
    above = problem_from_dict(spec, folder)
    options = {"policies": POLICIES, "replicates": 2, "budget": 15}
    one = numbers(backtest(below, "depth", **options))
    other = numbers(backtest(above, "height", **options))
    pd.testing.assert_frame_equal(one, other)


def test_an_address_without_a_scheduler_is_reported_in_one_line(folder: Path, capsys) -> None:
    (folder / "hill.toml").write_text(
        '[domain]\ntable = "hill.csv"\ncolumns = ["x", "z"]\n[goal]\nlevel_set = 0.5\n'
    )
    options = [
        "--truth",
        "height",
        "--budget",
        "5",
        "--out",
        str(folder / "out"),
        "--dask",
        "nonsense",
    ]
    assert main(["backtest", str(folder / "hill.toml"), *options]) == 1
    assert "no Dask scheduler answers at 'nonsense'" in capsys.readouterr().err


def test_policies_share_the_starting_point_of_a_replicate(folder: Path) -> None:
    result = backtest(problem_from_dict(SPEC, folder), "height", POLICIES, replicates=4, budget=12)
    first = result.curves[result.curves["step"] == 1].pivot(
        index="replicate", columns="policy", values="score"
    )
    assert (first["truvar"] == first["pure"]).all()
    other = backtest(
        problem_from_dict(SPEC, folder), "height", POLICIES, replicates=4, budget=12, seed=1
    )
    assert not numbers(result).equals(numbers(other))


def test_no_run_spends_more_than_the_budget(folder: Path) -> None:
    result = backtest(problem_from_dict(SPEC, folder), "height", POLICIES, replicates=2, budget=15)
    assert (result.curves["spent"] <= 15).all()
    assert (
        result.curves.groupby(["policy", "replicate"])["spent"].max() > 15 - 4
    ).all()  # no step costs more than 3


def test_until_ends_a_run_early_and_changes_nothing_else(folder: Path) -> None:
    problem = problem_from_dict(SPEC, folder)
    whole = numbers(backtest(problem, "height", POLICIES, replicates=2, budget=40))
    ended = numbers(backtest(problem, "height", POLICIES, replicates=2, budget=40, until=0.8))
    assert len(ended) < len(whole)
    for run, curve in whole.groupby(["policy", "replicate"]):
        part = ended[(ended["policy"] == run[0]) & (ended["replicate"] == run[1])]
        assert (part["score"].iloc[:-1] < 0.8).all()
        assert part["score"].iloc[-1] >= 0.8 or len(part) == len(curve)
        pd.testing.assert_frame_equal(
            part.reset_index(drop=True), curve.iloc[: len(part)].reset_index(drop=True)
        )


def test_the_score_of_a_level_set_is_the_f1_of_the_posterior_mean(folder: Path) -> None:
    problem = problem_from_dict(SPEC, folder)
    truth = problem.domain.column("height")
    study = problem.study()
    curve = simulate_run(study, Simulator(truth, noisy=True, seed=(3,)), 25.0, "truvar", 0)
    assert curve["score"].iloc[-1] == pytest.approx(
        f1_score(truth >= 0.5, study.result().mean >= 0.5)
    )
    assert curve["score"].iloc[-1] > curve["score"].iloc[0]


def test_an_interrupted_backtest_continues_without_repeating_finished_runs(folder: Path) -> None:
    problem = problem_from_dict(SPEC, folder)
    whole = backtest(problem, "height", POLICIES, replicates=3, budget=20)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backtest(
            problem,
            "height",
            POLICIES,
            replicates=3,
            budget=20,
            folder=folder / "kept",
            progress=stop,
        )
    before = {path: path.stat().st_mtime_ns for path in (folder / "kept" / "runs").glob("*.json")}
    assert len(before) == 2
    seen: list[tuple[int, int]] = []
    again = backtest(
        problem, "height", POLICIES, replicates=3, budget=20, folder=folder / "kept",
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    pd.testing.assert_frame_equal(numbers(again), numbers(whole))
    assert seen[0] == (2, 6)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_summary_has_costs_to_targets_and_ratios_to_the_first_policy() -> None:
    rows = [
        ("a", 0, 1, 2.0, 0.5, 0.1), ("a", 0, 2, 4.0, 0.85, 0.1),
        ("a", 1, 1, 2.0, 0.85, 0.1), ("a", 1, 2, 6.0, 0.9, 0.1),
        ("b", 0, 1, 6.0, 0.8, 0.3), ("b", 1, 1, 6.0, 0.9, 0.3),
    ]  # fmt: skip
    columns = ["policy", "replicate", "step", "spent", "score", "seconds"]
    result = Backtest(pd.DataFrame(rows, columns=columns), "F1", 8.0)
    assert result.costs_to(0.8)["a"].tolist() == [4.0, 2.0]
    assert result.costs_to(0.9)["a"].tolist() == [np.inf, 6.0]
    assert result.at(5.0)["a"].tolist() == [0.85, 0.85]
    assert result.at(5.0)["b"].isna().all()
    summary = result.summary
    assert summary.loc["a", "cost to 0.8"] == 3.0
    assert summary.loc["b", "ratio to 0.8"] == 2.0
    assert summary.loc["b", "F1 at 100%"] == pytest.approx(0.85)
    assert summary.loc["b", "seconds"] == pytest.approx(0.3)


def test_an_optimum_is_scored_by_the_regret_of_the_reported_point(folder: Path) -> None:
    problem = problem_from_dict({**SPEC, "goal": {"maximize": True}}, folder)
    result = backtest(problem, "height", ["truvar"], replicates=2, budget=30)
    assert result.measure == "regret"
    assert result.curves["score"].min() >= 0
    assert result.at(30.0)["truvar"].max() < 0.2


def test_every_replicate_may_have_its_own_function_on_a_box() -> None:
    spec = {
        **SPEC,
        "domain": {"box": {"x": [0, 1], "z": [0, 1]}, "representers": 64},
        "goal": {"maximize": True},
    }
    spec["cost"] = {"base": 1.0}

    def peak(replicate: int) -> Function:
        return Function(lambda x: 1 - ((x - 0.2 - 0.3 * replicate) ** 2).sum(axis=1), 1.0)

    result = backtest(
        problem_from_dict(spec), peak, {"truvar": "truvar"}, replicates=2, budget=14, noisy=False
    )
    assert result.curves["score"].min() >= 0
    assert result.at(14.0)["truvar"].max() < 0.02
    last = result.curves[result.curves["step"] > 10].groupby("replicate")[["x", "z"]].median()
    assert not np.allclose(last.loc[0], last.loc[1], atol=0.1)
    measured = backtest(
        problem_from_dict(spec),
        peak,
        {"truvar": "truvar"},
        replicates=1,
        budget=8,
        noisy=False,
        judged="measured",
    )
    assert measured.curves["score"].is_monotonic_decreasing


def test_the_summary_for_json_is_nested_and_has_no_infinity(folder: Path) -> None:
    result = backtest(problem_from_dict(SPEC, folder), "height", POLICIES, replicates=2, budget=12)
    data = json.loads(to_json(result.to_dict()))
    assert [policy["policy"] for policy in data["policies"]] == list(POLICIES)
    first = data["policies"][0]
    assert [score["share"] for score in first["scores"]] == [0.25, 0.5, 0.75, 1.0]
    low, high = first["scores"][-1]["interval_95"]
    assert low <= first["scores"][-1]["mean"] <= high
    assert [cost["target"] for cost in first["costs"]] == [0.8, 0.9, 0.95]
    for cost in first["costs"]:
        assert cost["ratio_to_first"] == (None if cost["median_cost"] is None else 1.0)
        assert 0 <= cost["share_of_runs_that_reach_it"] <= 1
    assert first["seconds_per_suggestion"] > 0


def test_backtest_is_a_public_name(folder: Path) -> None:
    assert tv.backtest is backtest
    result = tv.backtest(
        problem_from_dict(SPEC, folder), "height", ["truvar"], replicates=1, budget=6
    )
    assert {"policy", "replicate", "step", "spent", "score", "seconds", "x", "z"} <= set(
        result.curves.columns
    )


def test_the_plot_has_a_line_for_every_policy(folder: Path) -> None:
    result = backtest(problem_from_dict(SPEC, folder), "height", POLICIES, replicates=2, budget=12)
    (axes,) = plot_backtest(result).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["truvar", "pure"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"truth": "depth"}, "unknown column 'depth'"),
        ({"truth": "x"}, "coordinate"),
        ({"budget": None}, "budget"),
        ({"policies": []}, "at least one policy"),
        ({"policies": ["truvar", "truvar"]}, "two policies"),
        ({"policies": ["nonsense"]}, "nonsense"),
        ({"replicates": 0}, "replicates"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    folder: Path, changes: dict, words: str
) -> None:
    settings = {"truth": "height", "policies": ["truvar"], "budget": 10, "replicates": 1, **changes}
    with pytest.raises(tv.TruvarError, match=words) as mistake:
        backtest(problem_from_dict(SPEC, folder), **settings)
    assert "\n" not in str(mistake.value)


def test_the_svm_table_of_the_paper_can_be_backtested(real_data: Path) -> None:
    spec = {
        "domain": {
            "table": str(real_data / "svm_on_grid.csv"),
            "columns": ["C", "alpha", "epsilon"],
        },
        "goal": {"minimize": True, "monotone": False},
        "model": {"kernel": "matern52", "refit_every": 3},
        "noise": {"variance": 1e-6},
    }
    result = backtest(
        problem_from_dict(spec), "validation_error", ["truvar"], replicates=1, budget=12
    )
    assert len(result.curves) == 12
    assert result.curves["score"].iloc[-1] < 0.5 - 0.2411


def test_the_suffix_cost_divides_by_the_cost() -> None:
    assert policy_named("gchk/cost") == tv.GCHK(per_cost=True)
    assert policy_named("gchk") == tv.GCHK()
    with pytest.raises(tv.TruvarError, match="can be negative"):
        policy_named("ucb/cost")
    with pytest.raises(tv.TruvarError, match='leave out "/cost"'):
        policy_named("truvar/cost")
    with pytest.raises(tv.TruvarError, match="'gchk/time'"):
        policy_named("gchk/time")


def test_kept_runs_are_not_reused_for_a_table_with_other_costs(folder: Path) -> None:
    frame = pd.read_csv(folder / "hill.csv").assign(price=1.0)
    spec = {**SPEC, "cost": {"column": "price"}}
    for price in (1.0, 4.0):
        frame.assign(price=price).to_csv(folder / "hill.csv", index=False)
        problem = problem_from_dict(spec, folder)
        result = backtest(
            problem, "height", ["truvar"], replicates=1, budget=8, folder=folder / "kept"
        )
        assert len(result.curves) == 8 / price


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "count"}, "is a rate per unit of exposure of 0 or more, got -0.2 in row 3"),
        ({"outcome": "binary"}, "is a probability of yes between 0 and 1, got -0.2 in row 3"),
        ({"goal": {"all_of": ["A >= 1", "B <= 2"]}}, "one quantity, got a goal of A, B"),
    ],
)
def test_a_truth_that_no_measurement_can_have_is_reported_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], changes: dict, message: str
) -> None:
    table = pd.read_csv(folder / "hill.csv")
    table.loc[3, "height"] = -0.2
    table.to_csv(folder / "hill.csv", index=False)
    kept = {name: SPEC[name] for name in ("domain", "goal")}
    problem = problem_from_dict({**kept, **changes}, folder)
    with pytest.raises(InvalidArgumentError, match=message):
        backtest(problem, "height", ["auto"], replicates=1, budget=5)
    if "outcome" in changes:
        text = f'outcome = "{changes["outcome"]}"\n[domain]\ntable = "hill.csv"\n'
        text += 'columns = ["x", "z"]\n[goal]\nlevel_set = 0.5\n'
        (folder / "hill.toml").write_text(text)
        words = [str(folder / "hill.toml"), "--truth", "height", "--quiet"]
        assert main(["run", *words, "--report", str(folder / "hill.html")]) == 1
        assert main(["backtest", *words, "--budget", "5", "--out", str(folder / "out")]) == 1
        assert capsys.readouterr().err.count("of yes between" if "yes" in message else "rate") == 2


def test_a_policy_that_does_not_serve_the_goal_raises_before_anything_runs(folder: Path) -> None:
    seen: list[int] = []
    with pytest.raises(tv.TruvarError, match="EI is for"):
        backtest(
            problem_from_dict(SPEC, folder), "height", ["truvar", "ei"], replicates=1, budget=8,
            progress=lambda done, total: seen.append(done),
        )  # fmt: skip
    assert seen == []
