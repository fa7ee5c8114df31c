"""Terminal output of a study: map, curve, columns, suggestion card and status."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.report._text_map import text_map
from truvar.report.status import status_text
from truvar.report.suggestion_card import suggestion_card
from truvar.report.terminal import TerminalStyle


def study_on_grid(goal=None, **settings) -> tv.Study:
    domain = tv.Domain.grid(x_m=np.linspace(0, 4, 9), y_m=np.linspace(-2, 0, 5))
    return tv.Study(
        domain, goal or tv.LevelSet(0.0), kernel=RBF(0.5), mean=0.0, noise=1e-4, **settings
    )


def test_the_map_has_high_coordinates_at_the_top_and_marks_measurements() -> None:
    study = study_on_grid()
    study.tell({"x_m": 0.0, "y_m": 0.0}, 3.0)
    study.tell({"x_m": 4.0, "y_m": -2.0}, -3.0)
    lines = text_map(study, TerminalStyle(80)).splitlines()
    rows = [line.split("│")[1] for line in lines if "│" in line]
    assert len(rows) == 10
    assert {len(row) for row in rows} == {36}
    assert "●" in rows[0][:4] + rows[1][:4]
    assert "●" in rows[-1][-4:] + rows[-2][-4:]
    assert rows[0].startswith("█")
    assert rows[-1].endswith("░")
    assert "·" in rows[5]
    assert lines[1].startswith("   0 │")
    assert any(line.strip().endswith("x (m)") for line in lines)


def test_the_number_of_letters_of_a_class_is_proportional_to_its_points() -> None:
    study = study_on_grid(tv.Maximize())
    for x in (0.0, 2.0, 4.0):
        study.tell({"x_m": x, "y_m": -1.0}, x)
    suggestion = study.ask()
    rows = [
        line.split("│")[1]
        for line in text_map(study, TerminalStyle(80)).splitlines()
        if "│" in line
    ]
    result = study.result()
    letters = "".join(rows)
    marks = len(re.findall("[●◆★]", letters))
    assert abs(letters.count("▒") - 8 * result.classify().undecided.sum()) <= marks
    assert letters.count("★") == 1
    assert letters.count("◆") == (suggestion.point != result.best.point)


def test_a_curve_shows_measurements_at_their_height() -> None:
    domain = tv.Domain.grid(t=np.linspace(0, 10, 30))
    study = tv.Study(domain, tv.LevelSet(0.5), kernel=RBF(1.0), mean=0.0, noise=1e-4)
    study.tell({"t": 0.0}, 9.0)
    study.tell({"t": 10.0}, -9.0)
    rows = [
        line.split("│")[1]
        for line in text_map(study, TerminalStyle(80)).splitlines()
        if "│" in line
    ]
    assert rows[0][:2].count("●") == 1
    assert rows[-1][-2:].count("●") == 1


@pytest.mark.parametrize("points", [1, 2, 400])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 5])
@pytest.mark.parametrize("goal", [tv.LevelSet(0.2), tv.Minimize()])
@pytest.mark.parametrize("width", [40, 100])
def test_maps_of_every_shape_fit_the_terminal(
    points: int, dimensions: int, goal, width: int
) -> None:
    table = np.random.default_rng(0).lognormal(0, 2, (points, dimensions))
    frame = pd.DataFrame(table, columns=[f"x{k}_m" for k in range(dimensions)])
    study = tv.Study(tv.Domain.table(frame), goal, kernel=RBF(1.0), mean=0.0, noise=0.01)
    for terminal in (TerminalStyle(width), TerminalStyle(width, unicode=False)):
        first = text_map(study, terminal)
        assert first
        body = [line for line in first.splitlines() if "│" in line or "|" in line]
        assert all(len(line) <= max(width, 24) for line in body)
        assert terminal.unicode or first.isascii()
    study.tell(study.domain.point(0), 0.4)
    assert re.search("1 measured|[●★]", text_map(study, TerminalStyle(width)))


def test_colours_are_optional_and_control_characters_are_removed() -> None:
    study = study_on_grid(name="lake\x1b[2J\x07")
    suggestion = study.ask()
    for text in (
        text_map(study, TerminalStyle()),
        status_text(study, TerminalStyle()),
        suggestion_card(study, suggestion, TerminalStyle()),
    ):
        assert "\x1b" not in text
        assert "\x07" not in text
    painted = status_text(study, TerminalStyle(colour=True))
    assert "\x1b[38;5;" in painted
    assert "\x1b[2J" not in painted


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_control_characters_of_categories_are_removed(dimensions: int) -> None:
    kinds = tv.Categorical(["\x1b[31ma", "b", "\u202ec"])
    domain = tv.Domain.grid(**{f"x{k}": kinds for k in range(dimensions)})
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(1.0), noise=0.01, mean=0.0)
    study.tell(domain.point(0), 1.0)
    lines = text_map(
        study, TerminalStyle(80, colour=False, unicode=True, is_terminal=False)
    ).splitlines()
    assert all(line.isprintable() for line in lines)


def test_the_card_names_noise_level_and_task() -> None:
    levels = tv.NoiseLevels(variance=[0.01, 0.25], cost=[9, 1])
    domain = tv.Domain.grid(x=np.linspace(0, 1, 9))
    study = tv.Study(domain, tv.LevelSet(0.2), kernel=RBF(0.3), mean=0.0, noise=levels)
    suggestion = study.ask()
    assert f"level {suggestion.level}: ± " in suggestion_card(study, suggestion, TerminalStyle())
    tasks = tv.Tasks(
        [[1.0, 0.9], [0.9, 1.0]], names=["target", "proxy"], noise=[0.01, 0.01], cost=[9, 1]
    )
    study = tv.Study(domain, tv.LevelSet(0.2), kernel=RBF(0.3), mean=0.0, noise=0.01, tasks=tasks)
    suggestion = study.ask()
    assert f"measure    {suggestion.task} at x " in suggestion_card(
        study, suggestion, TerminalStyle()
    )
