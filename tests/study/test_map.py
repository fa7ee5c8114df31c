"""The goal `Map`: choices, statements, limits and what does not change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import truvar as tv
from truvar.exceptions import InvalidArgumentError, TruvarError, UnsupportedGoalError
from truvar.report.html_report import render_html_report
from truvar.report.problem_summary import problem_summary
from truvar.report.status import status_text
from truvar.report.suggestion_card import describe_gain
from truvar.report.terminal import TerminalStyle
from truvar.storage.serialization import deserialize, serialize

SQUARE = tv.Domain.grid(x=np.linspace(0.0, 1.0, 8), y=np.linspace(0.0, 1.0, 8))
KNOWN: dict[str, Any] = {"kernel": Matern(0.4, nu=2.5), "mean": 0.0, "noise": 1e-3}
POLICIES = ["auto", "truvar", "variance", "random"]


def wave(point: dict[str, float]) -> float:
    return float(np.sin(7 * point["x"]) + 0.5 * point["y"])


def chosen(study: tv.Study, steps: int, unit: float = 1.0) -> list[dict[str, Any]]:
    """Return the points of so many suggestions, each told."""
    points = []
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, unit * wave(suggestion.point))
        points.append(suggestion.point)
    return points


# -- choices
# --------------------------------------------------------------------------------------------------


def test_the_paper_and_the_default_remove_the_same_variance() -> None:
    """Both are eq. (3) with eta = 0 and M = D."""
    runs = [
        chosen(tv.Study(SQUARE, tv.Map(0.1), policy=policy, **KNOWN), 8)
        for policy in ("auto", "truvar")
    ]
    assert runs[0] == runs[1]


def test_the_first_choice_removes_most_variance() -> None:
    points = SQUARE.points
    covariance = KNOWN["kernel"](points)
    gains = (covariance**2).sum(axis=0) / (np.diag(covariance) + KNOWN["noise"])
    suggestion = tv.Study(SQUARE, tv.Map(0.1), **KNOWN).ask()
    assert gains[suggestion.index] == pytest.approx(gains.max())


@pytest.mark.parametrize("policy", ["auto", "truvar"])
def test_points_of_weight_zero_are_not_worth_a_measurement(policy: str) -> None:
    weight = [1.0 if x > 0.5 else 0.0 for x in SQUARE.points[:, 0]]
    study = tv.Study(SQUARE, tv.Map(0.1, weight=weight), policy=policy, **KNOWN)
    assert all(point["x"] > 0.3 for point in chosen(study, 8))
    everywhere = tv.Study(SQUARE, tv.Map(0.1), policy=policy, **KNOWN)
    assert any(point["x"] < 0.3 for point in chosen(everywhere, 8))


def test_a_weight_is_a_column_numbers_or_a_function() -> None:
    frame = SQUARE.to_frame().assign(area=np.arange(1.0, 65.0))
    table = tv.Domain.table(frame, columns=["x", "y"])
    goals = (
        tv.Map(0.1, weight="area"),
        tv.Map(0.1, weight=frame["area"]),
        tv.Map(0.1, weight=lambda p: 1.0 + 8 * round(7 * p["x"]) + round(7 * p["y"])),
    )
    runs = [chosen(tv.Study(table, goal, **KNOWN), 5) for goal in goals]
    assert runs[0] == runs[1] == runs[2]


def test_the_unit_of_the_weights_does_not_matter() -> None:
    weight = 1.0 + np.arange(64.0)
    runs = [
        chosen(tv.Study(SQUARE, tv.Map(0.1, weight=unit * weight), **KNOWN), 4)
        for unit in (1.0, 2.0**-1000, 2.0**1017)
    ]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize(
    "settings",
    [
        {"cost": tv.Cost(base=1.0, travel={"x": 5.0})},
        {"noise": tv.NoiseLevels(variance=[1e-6, 0.1], cost=[5, 1])},
        {"noise": None},
        {"kernel": None, "mean": None, "noise": None},
    ],
)
def test_costs_travel_noise_levels_and_learned_models_are_possible(
    settings: dict[str, Any],
) -> None:
    study = tv.Study(SQUARE, tv.Map(0.1), seed=1, **{**KNOWN, **settings})
    batch = study.ask(3)
    assert len({suggestion.index for suggestion in batch}) == 3
    for suggestion in batch:
        study.tell(suggestion, wave(suggestion.point))
    chosen(study, 3)
    assert study.finished is None


def test_a_box_is_possible() -> None:
    box = tv.Domain.box(x=(0, 1), y=(0, 1), representers=100)
    study = tv.Study(box, tv.Map(0.3), seed=0, **KNOWN)
    chosen(study, 6)
    assert "representer points" in str(study.result().certificate)


# -- what changes nothing
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, tuple(range(64))])
def test_a_replay_continues_as_the_study_itself(tmp_path: Path, weight: Any) -> None:
    url = f"sqlite:///{tmp_path / 'map.db'}"
    live = tv.Study(SQUARE, tv.Map(0.1, weight), store=url, name="map", seed=3, **KNOWN)
    chosen(live, 4)
    replayed = tv.load(url, "map")
    assert replayed.goal == live.goal
    assert replayed.result().to_dict() == live.result().to_dict()
    again = tv.Study(SQUARE, tv.Map(0.1, weight), seed=3, **KNOWN)
    assert chosen(replayed, 2) == chosen(again, 6)[4:]


def test_a_map_is_stored() -> None:
    for goal in (tv.Map(0.3), tv.Map(0.3, "area"), tv.Map(0.3, (1.0, 2.0))):
        assert deserialize(serialize(goal)) == goal


def test_the_order_of_the_rows_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    points = rng.random((60, 2))
    order = rng.permutation(60)
    runs = []
    for rows in (points, points[order]):
        domain = tv.Domain.table({"x": rows[:, 0], "y": rows[:, 1]})
        study = tv.Study(domain, tv.Map(0.1), **KNOWN)
        runs.append((chosen(study, 8), study.result().mean))
    assert runs[0][0] == runs[1][0]
    assert runs[0][1][order] == pytest.approx(runs[1][1], abs=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("is_known", [True, False])
def test_the_unit_of_the_values_does_not_matter(policy: str, is_known: bool) -> None:
    model = {**KNOWN, "exact_model": True} if is_known else {}
    scaled = model
    if is_known:
        scaled = {**model, "kernel": ConstantKernel(100.0) * Matern(0.4, nu=2.5), "noise": 0.1}
    study = tv.Study(SQUARE, tv.Map(0.1), policy=policy, seed=1, **model)
    other = tv.Study(SQUARE, tv.Map(1.0), policy=policy, seed=1, **scaled)
    steps = 8 if is_known else 5
    assert chosen(study, steps) == chosen(other, steps, unit=10.0)
    if is_known:
        result = study.result()
        of_other = other.result()
        assert of_other.accuracy == pytest.approx(10 * result.accuracy, rel=1e-6)
        assert of_other.expected_rmse.mean == pytest.approx(10 * result.expected_rmse.mean)


# -- statements
# --------------------------------------------------------------------------------------------------


def draw_of_the_model(rng: np.random.Generator) -> Any:
    covariance = KNOWN["kernel"](SQUARE.points) + 1e-9 * np.eye(len(SQUARE))
    return np.linalg.cholesky(covariance) @ rng.standard_normal(len(SQUARE))


def statements_hold(seed: int) -> tuple[bool, bool, bool]:
    """Return whether accuracy, accuracy everywhere and the interval of RMSE hold for a draw."""
    rng = np.random.default_rng(seed)
    truth = draw_of_the_model(rng)
    study = tv.Study(SQUARE, tv.Map(0.3), seed=seed, exact_model=True, **KNOWN)
    for suggestion in study.ask(12):
        noise = np.sqrt(KNOWN["noise"]) * rng.standard_normal()
        study.tell(suggestion, truth[suggestion.index] + noise)
    result = study.result()
    error = np.abs(result.mean - truth)
    score = result.expected_rmse
    return (
        bool((error <= result.accuracy).mean() >= 0.99),
        bool((error <= result.accuracy_everywhere).all()),
        score.low <= result.rmse(truth) <= score.high,
    )


def test_statements_hold_for_most_draws_of_the_model() -> None:
    """With 95 % each, at least 19 of 24 hold but for one seed in 2,000."""
    held = np.array([statements_hold(seed) for seed in range(24)])
    assert (held.sum(axis=0) >= 19).all()


@pytest.mark.slow
def test_statements_hold_as_often_as_they_say() -> None:
    """Of 400 at 95 %, 366 are three standard deviations below the mean."""
    held = np.array([statements_hold(1000 + seed) for seed in range(400)])
    assert (held.sum(axis=0) >= 366).all()


def test_statements_agree_with_each_other() -> None:
    study = tv.Study(SQUARE, tv.Map(0.3), **KNOWN)
    before = study.result()
    assert not before.statements.is_known or before.accuracy > 0.3
    chosen(study, 10)
    result = study.result()
    statements = result.statements
    assert result.expected_rmse.mean <= result.accuracy <= result.accuracy_everywhere
    assert (statements.share_within >= 0.99) == (result.accuracy <= 0.3)
    assert f"±{result.accuracy:.3g} at 99 % of them" in str(result.certificate)
    assert set(result.to_frame()["class"]) <= {"within ±0.3", "undecided"}
    data = result.to_dict()
    assert data["expected_rmse"]["mean"] == result.expected_rmse.mean
    assert data["accuracy"] == result.accuracy


def test_a_run_stops_at_the_accuracy_and_a_study_where_it_holds_everywhere() -> None:
    study = tv.Study(SQUARE, tv.Map(0.3), **KNOWN)
    result = study.run(wave, accuracy=0.5, progress=False)
    assert result.accuracy <= 0.5
    assert "reached 0.5" in result.reason
    n_first = result.steps
    result = study.run(wave, progress=False)  # the default: the accuracy of the goal
    assert result.steps > n_first
    assert result.accuracy <= 0.3
    assert study.finished is None
    while study.finished is None:
        chosen(study, 1)
    assert study.finished.startswith("the map is within ±0.3 at every point with 99.7 % prob")


# -- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accuracy", [0, -0.3, float("nan"), "much", None])
def test_an_accuracy_is_a_positive_number(accuracy: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="the accuracy of a map"):
        tv.Map(accuracy)


@pytest.mark.parametrize("weight", [[1.0, -1.0], [0.0, 0.0], [1.0, float("nan")], 2.0, [["a"]], []])
def test_a_weight_that_is_none_gets_one_message(weight: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="the weight of a map must be a number >= 0"):
        tv.Map(0.3, weight=weight)


def test_a_weight_of_another_length_or_an_unknown_column_gets_one_message() -> None:
    with pytest.raises(InvalidArgumentError, match="each of the 64 points, got 2"):
        tv.Study(SQUARE, tv.Map(0.3, weight=[1.0, 2.0]))
    with pytest.raises(TruvarError, match="area"):
        tv.Study(SQUARE, tv.Map(0.3, weight="area"))
    with pytest.raises(InvalidArgumentError, match=r"number >= 0.*got -1.0 for point 0; give"):
        tv.Study(SQUARE, tv.Map(0.3, weight=lambda point: -1.0))
    with pytest.raises(InvalidArgumentError, match=r"number >= 0.*got 'a' for point 0; give"):
        tv.Study(SQUARE, tv.Map(0.3, weight=lambda point: "a"))


def test_limits_and_scores_of_other_goals_get_one_message() -> None:
    study = tv.Study(SQUARE, tv.Map(0.3), **KNOWN)
    with pytest.raises(UnsupportedGoalError, match=r"f1 needs a level set, got.*give accuracy"):
        study.run(wave, f1=0.9)
    with pytest.raises(UnsupportedGoalError, match="accuracy needs a map, got the goal Maximize"):
        tv.Study(SQUARE, tv.Maximize(), **KNOWN).run(wave, accuracy=0.9)
    with pytest.raises(UnsupportedGoalError, match="EI is for an optimum, but the goal is Map"):
        tv.Study(SQUARE, tv.Map(0.3), policy="ei", **KNOWN)
    with pytest.raises(UnsupportedGoalError, match=r"F1 needs.*for a map use expected_rmse"):
        _ = study.result().expected_f1
    with pytest.raises(UnsupportedGoalError, match=r"classified.*for a map use expected_rmse"):
        _ = study.result().expected_misclassified
    with pytest.raises(UnsupportedGoalError, match=r"F1 needs.*for a map use rmse\(truth\)"):
        study.result().f1(np.zeros(len(SQUARE)))
    with pytest.raises(UnsupportedGoalError, match="expected_rmse needs a map"):
        _ = tv.Study(SQUARE, tv.LevelSet(0.3), **KNOWN).result().expected_rmse


# -- other interfaces
# --------------------------------------------------------------------------------------------------


def test_a_problem_file_has_a_map(tmp_path: Path) -> None:
    frame = SQUARE.to_frame().assign(area=1.0)
    frame.to_csv(tmp_path / "lake.csv", index=False)
    text = 'name = "lake"\n[domain]\ntable = "lake.csv"\ncolumns = ["x", "y"]\n[goal]\nmap = 0.3\n'
    (tmp_path / "lake.toml").write_text(text + 'weight = "area"\n[limits]\naccuracy = 0.4\n')
    study = tv.load_problem(tmp_path / "lake.toml").study()
    assert study.goal == tv.Map(0.3, "area")
    assert study.limits == {"accuracy": 0.4}
    problem = tv.load_problem(tmp_path / "lake.toml")
    assert "power" not in problem_summary(problem, study, TerminalStyle(width=100))
    (tmp_path / "lake.toml").write_text(text.replace("0.3", "-1"))
    with pytest.raises(TruvarError, match="map"):
        tv.load_problem(tmp_path / "lake.toml").study()


@pytest.mark.parametrize("n_columns", [1, 2])
def test_status_and_report_show_the_map(n_columns: int) -> None:
    axes = {"x": np.linspace(0, 1, 8), "y": np.linspace(0, 1, 8)}
    domain = tv.Domain.grid(**dict(list(axes.items())[:n_columns]))
    study = tv.Study(domain, tv.Map(0.3), limits={"accuracy": 0.3}, **KNOWN)
    for _ in range(5):
        suggestion = study.ask()
        study.tell(suggestion, suggestion.point["x"])
    assert "% of the variance of all points together" in describe_gain(study, study.ask())
    text = status_text(study, TerminalStyle(width=100))
    assert "what is the value everywhere, within ±0.3?" in text
    assert "expected RMSE" in text
    assert "maximum" not in text
    page = render_html_report(study)
    assert "expected RMSE" in page
    assert "maximum" not in page


def test_a_weight_that_cannot_be_used_is_named_as_it_was_given() -> None:
    weights = np.ones(64)
    weights[3] = -1.0
    with pytest.raises(InvalidArgumentError, match=r"got -1\.0 for point 3"):
        tv.Study(SQUARE, tv.Map(0.1, weight=weights), **KNOWN)
