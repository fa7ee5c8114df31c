"""Outliers among the measurements are named, in Python, at the command line, in reports and
over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.warning_checks import ignored_outliers, no_warnings

import truvar as tv
from truvar.cli import main
from truvar.exceptions import OutlierWarning
from truvar.messages import interface
from truvar.report._plot_data import PlotData
from truvar.report.html_report import render_html_report
from truvar.report.status import status_data, status_text
from truvar.report.terminal import TerminalStyle
from truvar.service import Server
from truvar.study.commands import Tell

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 41))
PROBLEM = "[domain]\ngrid = {x = [0, 1, 41]}\n[goal]\nmaximize = true\n"
TYPING_ERROR = 1e4
N_BEFORE = 8  # right values before the wrong one
WRONG = N_BEFORE + 1  # id of the measurement with the wrong value


def measure(point: dict[str, float]) -> float:
    return float(np.sin(6 * point["x"]))


def tell_with_an_error(study: Any) -> None:
    """Tell eight right values and a wrong one."""
    for index in range(0, 40, 5):
        study.tell(DOMAIN.point(index), measure(DOMAIN.point(index)))
    study.tell(DOMAIN.point(12), TYPING_ERROR)


@pytest.fixture
def study() -> tv.Study:
    study = tv.Study(DOMAIN, tv.Maximize(), name="typing error")
    with ignored_outliers():
        tell_with_an_error(study)
    return study


def test_tell_warns_once_and_names_id_point_value_and_remedy() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    with pytest.warns(OutlierWarning) as caught:
        tell_with_an_error(study)
    with no_warnings():
        study.tell(study.ask(), 0.5)
    (warning,) = [str(each.message) for each in caught]
    assert warning.startswith("measurement 9 (value 10000 at x 0.3) ")
    assert "leaves it out" in warning
    assert "correct(9, VALUE)" in warning
    assert "withdraw(9)" in warning
    assert caught[0].filename == __file__  # the warning points at the caller's line
    assert study.result().outliers == (WRONG,)


def test_a_right_value_is_not_named() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    with no_warnings():
        for index in range(0, 40, 4):
            study.tell(DOMAIN.point(index), measure(DOMAIN.point(index)))
    assert study.result().outliers == ()
    assert study.result().to_dict()["outliers"] == []


def test_correcting_or_withdrawing_the_measurement_ends_the_warning(study: tv.Study) -> None:
    study.correct(WRONG, measure(DOMAIN.point(12)))
    assert study.result().outliers == ()
    with pytest.warns(OutlierWarning, match="value 20000"):
        study.correct(WRONG, 2e4)
    study.withdraw(WRONG)
    assert study.result().outliers == ()


def test_the_warning_disappears_when_further_values_support_the_measurement(
    study: tv.Study,
) -> None:
    for index in (11, 13, 14):
        study.tell(DOMAIN.point(index), 0.9 * TYPING_ERROR)
    assert study.result().outliers == ()
    assert status_data(study)["warnings"] == []


def test_a_reopened_study_knows_the_outlier_and_does_not_warn_again(study: tv.Study) -> None:
    reopened = tv.Study.from_json(study.to_json())
    assert reopened.result().outliers == (WRONG,)
    with no_warnings():
        reopened.tell(DOMAIN.point(3), measure(DOMAIN.point(3)))


def test_status_report_and_figures_show_it(study: tv.Study) -> None:
    with interface("cli"):
        text = " ".join(status_text(study, TerminalStyle(width=200)).split())
        data = status_data(study)
    assert "warning measurement 9 (value 10000 at x 0.3)" in text
    assert "truvar withdraw 9" in text
    (warning,) = data["warnings"]
    assert "truvar correct 9 VALUE" in warning
    assert data["result"]["outliers"] == [WRONG]
    page = render_html_report(study)
    assert "Measurement 9 (value 10000 at x 0.3)" in page
    assert re.search(r"10000(\.0+)? \(left out\)", page)
    assert (
        np.nanmax(PlotData.from_study(study).values) < 2
    )  # the wrong value does not stretch the axes
    assert study.result().best_observed.value < 2


def test_the_command_line_names_it_instead_of_an_unexpected_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("peak.toml").write_text(PROBLEM)
    assert main(["new", "peak.toml"]) == 0
    words = [
        word
        for index in range(0, 40, 5)
        for word in (f"x={index / 40}", str(measure({"x": index / 40})))
    ]
    assert main(["tell", *words]) == 0
    assert capsys.readouterr().err == ""
    assert main(["tell", "x=0.3", "10000"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("truvar: measurement 9 (value 10000 at x 0.3) ")
    assert "truvar correct 9 VALUE" in line
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["outliers"] == [WRONG]
    assert main(["correct", "9", "20000", "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert "value 20000" in warning
    assert main(["correct", "9", "0.97", "--json"]) == 0
    corrected = json.loads(capsys.readouterr().out)
    assert (corrected["warnings"], corrected["result"]["outliers"]) == ([], [])


def test_a_study_on_a_server_warns_and_answers_alike(
    served: Any, request: pytest.FixtureRequest
) -> None:
    api, _ = served
    remote = Server(api.url).create(PROBLEM, request.node.name)
    with pytest.warns(OutlierWarning, match=r"measurement 9 .*correct\(9, VALUE\)") as caught:
        tell_with_an_error(remote)
    assert caught[0].filename == __file__
    assert remote.result().outliers == (WRONG,)
    assert (
        "correct or withdraw it" in api.get(f"/studies/{request.node.name}/status")["warnings"][0]
    )
    remote.withdraw(WRONG)
    assert remote.result().outliers == ()


def test_the_messages_of_a_receipt_are_not_issued() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    with no_warnings():
        receipts = [
            study.execute(Tell(DOMAIN.point(index), measure(DOMAIN.point(index))))
            for index in range(0, 40, 5)
        ]
        wrong = study.execute(Tell(DOMAIN.point(12), TYPING_ERROR))
    assert all(not receipt.warnings for receipt in receipts)
    assert wrong.ids == (WRONG,)
    assert list(wrong.warnings) == [WRONG]


# -- a value that its neighbours contradict
# ----------------------------------------------------------------------------

NEIGHBOUR = 20  # position of the measurement that is wrong by a few units only
OFF = 3.0


def tell_with_a_contradiction(study: Any) -> None:
    """Tell a value at every second point, one of them wrong by less than twice the range of the
    others."""
    for position, index in enumerate(range(0, 41, 2)):
        error = OFF * (index == NEIGHBOUR) + 0.01 * (-1) ** position
        study.tell(DOMAIN.point(index), measure(DOMAIN.point(index)) + error)


CONTRADICTED = NEIGHBOUR // 2 + 1  # id of the wrong measurement


def test_a_value_that_its_neighbours_contradict_is_named_and_left_out() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    with pytest.warns(
        OutlierWarning, match=rf"measurement {CONTRADICTED} .* measure there again"
    ) as caught:
        tell_with_a_contradiction(study)
    messages = [str(each.message) for each in caught if each.category is OutlierWarning]
    assert len([message for message in messages if "leaves it out" in message]) == 1
    assert len(messages) <= 2  # when it is told it may be named as a typing mistake already
    result = study.result()
    assert result.outliers == (CONTRADICTED,)
    assert result.best_observed is not None
    assert result.best_observed.value < 1.1
    truth = np.array([measure(DOMAIN.point(index)) for index in range(41)])
    assert np.abs(result.mean - truth).max() < 0.1
    with interface("cli"):
        assert f"truvar withdraw {CONTRADICTED}" in " ".join(
            status_text(study, TerminalStyle(width=200)).split()
        )
    assert "(left out)" in render_html_report(study)


def test_a_second_measurement_like_it_is_believed() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    with ignored_outliers():
        tell_with_a_contradiction(study)
        assert study.result().outliers == (CONTRADICTED,)
        study.tell(DOMAIN.point(NEIGHBOUR), measure(DOMAIN.point(NEIGHBOUR)) + OFF - 0.02)
    assert study.result().outliers == ()
    assert study.result().best.index == NEIGHBOUR


def test_a_study_with_a_contradiction_is_replayed_to_the_last_bit() -> None:
    study = tv.Study(DOMAIN, tv.LevelSet(0.5))
    with ignored_outliers():
        tell_with_a_contradiction(study)
    reopened = tv.Study.from_json(study.to_json())
    assert reopened.result().outliers == study.result().outliers == (CONTRADICTED,)
    assert (reopened.result().mean == study.result().mean).all()
    assert (reopened.result().sd == study.result().sd).all()
    assert (reopened.result().probability == study.result().probability).all()


def test_the_command_line_and_a_server_name_a_contradicted_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("peak.toml").write_text(PROBLEM)
    assert main(["new", "peak.toml"]) == 0
    words = []
    for position, index in enumerate(range(0, 41, 2)):
        error = OFF * (index == NEIGHBOUR) + 0.01 * (-1) ** position
        words += [f"x={index / 40}", str(measure({"x": index / 40}) + error)]
    assert main(["tell", *words]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"truvar: measurement {CONTRADICTED} ")


# -- values that were told as exact
# ------------------------------------------------------------------------------------


def test_a_value_told_as_exact_is_never_left_out() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    for index in range(0, 40, 5):
        study.tell(DOMAIN.point(index), measure(DOMAIN.point(index)))
    with ignored_outliers():
        exact = study.tell(DOMAIN.point(12), TYPING_ERROR, noise=0.0)
    result = study.result()
    assert result.outliers == ()
    assert result.best_observed is not None
    assert result.best_observed.id == exact
    assert result.mean[12] == pytest.approx(TYPING_ERROR, rel=1e-3)


def test_neighbours_do_not_contradict_a_value_told_as_exact() -> None:
    study = tv.Study(DOMAIN, tv.LevelSet(0.5))
    with ignored_outliers():
        for position, index in enumerate(range(0, 41, 2)):
            value = measure(DOMAIN.point(index)) + 0.01 * (-1) ** position
            if index == NEIGHBOUR:
                study.tell(DOMAIN.point(index), value + OFF, noise=0.0)
            else:
                study.tell(DOMAIN.point(index), value)
    assert study.result().outliers == ()


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(0.5)])
def test_draws_of_a_study_without_noise_leave_out_no_value(goal: tv.Goal) -> None:
    study = tv.Study(DOMAIN, goal, noise=0.0, kernel=tv.Learned("matern12"))
    with ignored_outliers():
        for index in range(0, 41, 2):
            study.tell(
                DOMAIN.point(index), measure(DOMAIN.point(index)) + OFF * (index == NEIGHBOUR)
            )
    members = study.result().source.posterior.members
    assert {len(member.points) for member in members} == {21}


# -- what can be the answer
# --------------------------------------------------------------------------------------------

BOX = tv.Domain.box(x=(0, 1))


@pytest.mark.parametrize(
    ("policy", "domain"), [("ei", DOMAIN), ("pi", DOMAIN), ("mes", DOMAIN), ("auto", BOX)]
)
def test_a_policy_does_not_compare_with_a_value_that_the_model_leaves_out(
    policy: str, domain: tv.Domain
) -> None:
    study = tv.Study(domain, tv.Maximize(), policy=policy)
    with ignored_outliers():
        tell_with_an_error(study)
    assert study.result().outliers == (WRONG,)
    right = max(measure(DOMAIN.point(index)) for index in range(0, 40, 5))
    best = study.policy_context().best_y
    assert best is not None
    assert study.transform.inverse(best) == pytest.approx(right)
    assert study.gains().max() > 0  # something may be better than the best right value


def test_the_best_value_so_far_is_not_at_an_excluded_place() -> None:
    study = tv.Study(DOMAIN, tv.Maximize())
    for index in range(0, 40, 5):
        study.tell(DOMAIN.point(index), measure(DOMAIN.point(index)))
    best = study.result().best_observed
    assert best is not None
    assert best.index == 10
    study.exclude(DOMAIN.point(10))
    second = study.result().best_observed
    assert second is not None
    assert second.index == 15
    assert study.transform.inverse(study.policy_context().best_y) == pytest.approx(second.value)
    study.allow(DOMAIN.point(10))
    assert study.result().best_observed == best
