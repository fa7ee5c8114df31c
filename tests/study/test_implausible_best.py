"""A value far beyond all others is not shown as the best so far."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.warning_checks import ignored_outliers

import truvar as tv
from truvar.report.status import status_text
from truvar.report.terminal import TerminalStyle
from truvar.service import Server

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 41))
PROBLEM = "[domain]\ngrid = {x = [0, 1, 41]}\n[goal]\nmaximize = true\n"
VALUES = (61.0, 64.0, 76.0, 70.0, 66.0)


def told(values, **options):
    study = tv.Study(DOMAIN, options.pop("goal", tv.Maximize()), **options)
    with ignored_outliers():
        for row, value in enumerate(values):
            study.tell(DOMAIN.point(6 * row), value)
    return study


def test_the_best_of_the_others_comes_first_and_the_value_is_named():
    study = told((*VALUES, 412.0))
    best = study.result().best_observed
    assert best.value == 412.0
    assert best.shown.value == 76.0
    assert best.shown.id == 3
    shown = "best so far  76 at x 0.3 (measurement 3); measurement 6 has 412, far beyond all others"
    assert shown in repr(study)
    terminal = status_text(study, TerminalStyle(width=400))
    assert " ".join(shown.split()) in " ".join(terminal.split())
    for card in (study._repr_html_(), study.result()._repr_html_()):
        assert "76 at x 0.3" in card
        assert "measurement 6 has 412, far beyond all others: check it" in card


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (VALUES, {}),
        ((*VALUES, 95.0), {}),  # beyond the others, but not far
        ((*VALUES, 412.0, 409.0), {}),  # a second value like it
        ((1.0, 10.0, 100.0, 3.0, 1e4), {"transform": "log"}),
        ((61.0, 64.0, 66.0, 412.0), {}),  # three others say little
        ((60.0, 60.1, 60.2, 60.1, 76.0), {}),  # a peak on a plateau
        ((*VALUES, 412.0), {"goal": tv.Minimize()}),
    ],
)
def test_other_values_are_shown(values, options):
    best = told(values, **options).result().best_observed
    assert best.plausible is None
    assert best.shown is best
    assert "plausible" not in best.to_dict()


def test_a_minimum_is_guarded_too():
    best = told((*VALUES, -300.0), goal=tv.Minimize()).result().best_observed
    assert (best.value, best.shown.value) == (-300.0, 61.0)


def test_a_server_says_the_same(served):
    api, _ = served
    study = told((*VALUES, 412.0))
    remote = Server(api.url).create(PROBLEM, "implausible best")
    with ignored_outliers():
        for row, value in enumerate((*VALUES, 412.0)):
            remote.tell(DOMAIN.point(6 * row), value)
    assert remote.result().best_observed == study.result().best_observed
