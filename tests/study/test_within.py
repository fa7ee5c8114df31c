"""`LevelSet(within=...)`: all points that are as good as the best up to a margin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError, InvalidProblemError, UnsupportedGoalError
from truvar.report.goal_views import view_of
from truvar.report.html_report import render_html_report
from truvar.report.status import status_text
from truvar.report.terminal import TerminalStyle

X = np.linspace(0, 1, 21)
F = np.sin(5 * X) + 0.3 * X
DOMAIN = tv.Domain.grid(x=X)


def measured(goal: tv.LevelSet, values: np.ndarray, steps: int = 8, **more: object) -> tv.Study:
    """Return a study after some measurements."""
    settings = {"kernel": RBF(0.2), "mean": 0.0, "noise": 1e-4, **more}
    study = tv.Study(DOMAIN, goal, **settings)
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, float(values[suggestion.index]))
    return study


def rows(study: tv.Study) -> list[int]:
    """Return the measured rows, in order."""
    return [int(np.argmin(np.abs(X - x))) for x in study.measurements["x"]]


def test_it_finds_the_points_within_the_margin() -> None:
    study = measured(tv.LevelSet(within=0.1), F)
    result = study.result()
    assert result.f1(F) >= 0.9
    assert result.threshold == pytest.approx(F.max() - 0.1, abs=0.03)
    true = F.max() - 0.1 <= F
    assert (result.classify(pointwise=0.95).above <= true).all()
    assert "within 0.1 of the highest" in " ".join(result.certificate.further)
    assert study.goal.question == "where is the value within 0.1 of the highest one?"


@pytest.mark.parametrize("policy", ["auto", "truvar", "gchk", "straddle", "plus", "variance"])
def test_a_minimum_is_the_maximum_of_the_negative(policy: str) -> None:
    above = measured(tv.LevelSet(within=0.1), F, policy=policy)
    below = measured(tv.LevelSet(within_of_min=0.1), -F, policy=policy)
    assert rows(above) == rows(below)
    one = above.result()
    other = below.result()
    assert (one.classification == other.classification).all()
    assert one.f1(F) == other.f1(-F)
    assert one.expected_f1.mean == pytest.approx(other.expected_f1.mean, abs=0.03)
    assert one.threshold == pytest.approx(-other.threshold)


@pytest.mark.parametrize("learned", [False, True])
def test_units_do_not_matter(learned: bool) -> None:
    more: tuple[dict[str, object], ...] = (
        {"kernel": ConstantKernel(1.0) * RBF(0.2), "noise": 1e-4},
        {"kernel": ConstantKernel(100.0) * RBF(0.2), "noise": 1e-2},
    )
    if learned:
        more = ({"kernel": None, "mean": None, "noise": None},) * 2
    one = measured(tv.LevelSet(within=0.1), F, steps=10, **more[0])
    ten = measured(tv.LevelSet(within=1.0), 10 * F, steps=10, **more[1])
    assert rows(one) == rows(ten)
    assert (one.result().classification == ten.result().classification).all()


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    names = [f"p{k}" for k in range(len(X))]
    seen = []
    for rows_of in (np.arange(len(X)), order):
        frame = pd.DataFrame({"x": X[rows_of]}, index=np.array(names)[rows_of])
        study = tv.Study(
            tv.Domain.table(frame), tv.LevelSet(within=0.1), kernel=RBF(0.2), mean=0.0, noise=1e-4
        )
        study.tell({"x": 0.0}, F[0])
        own = []
        for _ in range(6):
            suggestion = study.ask()
            own.append(suggestion.label)
            study.tell(suggestion, F[names.index(suggestion.label)])
        seen.append(own)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("goal", [tv.LevelSet(within=0.1), tv.LevelSet(within_of_min=0.1)])
def test_a_replay_equals_the_live_study(goal: tv.LevelSet) -> None:
    study = measured(goal, F, steps=5)
    copy = tv.Study.from_json(study.to_json())
    assert copy.goal == study.goal
    assert copy.ask().index == study.ask().index
    assert copy.result().expected_f1 == study.result().expected_f1


def test_a_run_stops_at_f1() -> None:
    study = tv.Study(DOMAIN, tv.LevelSet(within=0.2), kernel=RBF(0.2), mean=0.0, noise=1e-6)
    result = study.run(lambda point: float(np.interp(point["x"], X, F)), f1=0.9, steps=21)
    assert result.expected_f1.low >= 0.9
    assert result.f1(F) >= 0.9


@pytest.mark.parametrize("margin", [0, -0.02, float("nan"), float("inf"), "0.02", True])
@pytest.mark.parametrize("name", ["within", "within_of_min"])
def test_bad_margins_get_one_clear_message(name: str, margin: object) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} must be"):
        tv.LevelSet(**{name: margin})  # type: ignore[arg-type]


def test_one_way_to_give_a_threshold() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got threshold=1\.0 and within=0\.1"):
        tv.LevelSet(1.0, within=0.1)
    with pytest.raises(InvalidArgumentError, match="several of them"):
        tv.LevelSet([1.0, 2.0], within=0.1)
    with pytest.raises(InvalidArgumentError, match="give the threshold itself"):
        tv.LevelSet(within=0.1, side="below")


def test_what_does_not_go_with_a_margin_says_so() -> None:
    with pytest.raises(UnsupportedGoalError, match="anticipate"):
        tv.Study(DOMAIN, tv.LevelSet(within=0.1), policy=tv.TruVaR(anticipate="mean"))
    with pytest.raises(tv.TruvarError, match="no margin in your units"):
        tv.Study(DOMAIN, tv.LevelSet(within=0.1), transform="log")


def test_problem_files_and_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": X}).to_csv("line.csv", index=False)
    for word, name in (("within", "within"), ("within-min", "within_of_min")):
        options = ["--goal", word, "--threshold", "0.02", "--defaults", "--force"]
        assert main(["init", "line.csv", "--columns", "x", *options]) == 0
        assert tv.load_problem("line.toml").study().goal == tv.LevelSet(
            **{name: 0.02}, monotone=False
        )
    text = Path("line.toml").read_text().replace("within_of_min = 0.02", "within = -1.0")
    Path("line.toml").write_text(text)
    with pytest.raises(InvalidProblemError, match=r"\[goal\] within must be > 0, got -1"):
        tv.load_problem("line.toml")


def test_terminal_and_report_name_the_margin() -> None:
    study = measured(tv.LevelSet(within=0.1), F, steps=10)
    assert "within 0.1 of the highest" in render_html_report(study)
    assert "within 0.1 of the highest" in status_text(study, TerminalStyle())
    page = render_html_report(study)
    assert "of the points within 0.1 of the highest" in page
    assert "of the points above" not in page
    caption = view_of(study.goal).regions_caption("note")
    assert (
        caption
        == "Points within 0.1 of the highest, those that are not, and undecided points (note)"
    )
