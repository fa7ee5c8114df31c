"""The calibration benchmark: its problems, and its transcription of the statements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.calibration import __main__ as calibration
from benchmarks.calibration import runs
from benchmarks.calibration.models import truvar
from benchmarks.calibration.problems import HALVES, PROBLEMS
from benchmarks.calibration.score import Drawn, level_set_check, optimum_check, within_check

import truvar as tv


def drawn(values: list[list[float]]) -> Drawn:
    draws = np.array(values, dtype=float)
    weights = np.full(draws.shape[1], 1.0 / draws.shape[1])
    return Drawn(draws, weights, draws @ weights)


def test_what_is_tuned_and_what_is_reported_are_at_least_twenty_different_problems() -> None:
    by_half = {
        half: {name for name, each in PROBLEMS.items() if each.half == half} for half in HALVES
    }
    assert not by_half["tuning"] & by_half["reported"]
    assert min(len(names) for names in by_half.values()) >= 20
    truths = [
        {PROBLEMS[name].instance("level set", 0).truth.round(6).tobytes() for name in names}
        for names in by_half.values()
    ]
    assert not truths[0] & truths[1]


def test_a_level_set_is_shown_as_far_as_the_draws_allow() -> None:
    # Four draws: the first two points are above in all, the third in three, the fourth in two.
    sample = drawn([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, -1], [1, 1, -1, -1]])
    check = level_set_check(sample, np.array([1.0, 1.0, -1.0, 1.0]), 0.0)
    assert check["0 0.99"] == (True, 0.5)
    assert check["0 0.5"] == (False, 0.0)  # all four are shown, and the third is below
    assert check["pointwise"] == (True, 0.5)
    assert check["answer"] == pytest.approx(6 / 7)


def test_points_within_a_margin_are_those_of_each_draw() -> None:
    # In the first draw two points are within 1 of the best, in the second only the second one is.
    sample = drawn([[5.0, 0.0], [5.5, 9.0], [0.0, 1.0]])
    check = within_check(sample, np.array([4.8, 5.0, 1.0]), 1.0)
    assert check["brier"] == pytest.approx(0.5**2 / 3)
    assert check["0 0.95"] == (True, pytest.approx(1 / 3))
    assert check["answer"] == 1.0


def test_the_set_that_holds_an_optimum_is_as_small_as_the_draws_allow() -> None:
    sample = drawn([[2, 2, 2, 2], [1, 1, 1, 1], [0, 0, 0, 0]])
    check = optimum_check(sample, np.array([0.0, 1.0, 0.5]), 1, [2, 0], [0.5, 0.0])
    assert check["0 0.95"] == (False, pytest.approx(1 / 3))
    assert (check["answer"], check["measured"]) == (1.0, 0.5)


def test_the_transcription_agrees_with_what_a_study_states() -> None:
    axis = np.linspace(0.0, 1.0, 12)
    domain = tv.Domain.grid(x=axis, y=axis)
    truth = np.sin(5 * domain.points[:, 0]) * np.cos(4 * domain.points[:, 1])
    study = tv.Study(domain, tv.LevelSet(0.2))
    for row in np.random.default_rng(1).choice(len(truth), 20, replace=False):
        study.tell(domain.point(row), float(truth[row]))
    check = level_set_check(truvar(study), truth, 0.2)
    result = study.result()
    stated = result.classify(pointwise=0.95).undecided.mean()
    assert check["pointwise"][1] == pytest.approx(stated, abs=0.02)
    assert check["0 0.95"][1] == pytest.approx(result.classify(0.95).undecided.mean(), abs=0.1)
    tolerated = result.classify(0.95, tolerance=0.02).undecided.mean()
    assert check["0.02 0.95"][1] == pytest.approx(tolerated, abs=0.1)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("goal", ["level set", "within", "optimum", "map"])
def test_every_run_has_a_study_that_is_possible(half: str, goal: str) -> None:
    found = calibration.keys(half, [goal], None, 1)
    assert {PROBLEMS[key.problem].half for key in found} == {half}
    outcomes = [key for key in found if PROBLEMS[key.problem].outcome is not None]
    for key in [*outcomes, found[0]]:
        problem = PROBLEMS[key.problem]
        instance = problem.instance(key.goal, key.start)
        tv.Study(instance.domain, instance.goal, outcome=problem.outcome)


def test_stored_measurements_are_checked_again_and_none_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs, "CHECKPOINTS", (4, 6))
    made = runs.run(runs.Key("gramacy", "level set", 0), ["truvar"], None)
    stored = tmp_path / "runs.jsonl"
    runs.write(stored, made)
    monkeypatch.setattr(calibration, "run", None)
    again = tmp_path / "again.jsonl"
    arguments = ["--half", "tuning", "--models", "truvar,plain", "--starts", "1"]
    calibration.main([*arguments, "--recheck", str(stored), "--json", str(again)])
    found = runs.read(again)[made.key]
    assert (found.rows, found.values) == (made.rows, made.values)
    assert list(found.checks) == ["truvar", "plain"]
    assert runs.read(stored)[made.key].checks["truvar"] == found.checks["truvar"]
    assert "gramacy" in capsys.readouterr().out


def test_the_picture_is_drawn_of_stored_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.calibration import figure

    monkeypatch.setattr(runs, "CHECKPOINTS", (4, 6))
    monkeypatch.setattr(figure, "AT", 6)
    stored = tmp_path / "runs.jsonl"
    runs.write(stored, runs.run(runs.Key("gramacy", "level set", 0), ["truvar"], None))
    assert figure.main([str(stored), str(tmp_path / "calibration.png")]) == 0
    assert (tmp_path / "calibration.png").read_bytes().startswith(b"\x89PNG")
