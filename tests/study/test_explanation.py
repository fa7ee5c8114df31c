"""Why a measurement is suggested, and batches as tables."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar._representation import format_uncertain
from truvar.exceptions import UnknownSuggestionError
from truvar.service import Server

LINE = tv.Domain.grid(x=np.linspace(0, 1, 41))
PROBLEM = """
[domain]
grid = {x = [0, 1, 41]}
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [0.2]
variance = 1.0
mean = 0.0
[noise]
variance = 0.01
"""


def known(goal=None, **options):
    study = tv.Study(
        LINE, goal or tv.LevelSet(0.5), kernel=RBF(0.2), mean=0.0, noise=0.01, **options
    )
    for row in (0, 12, 30):
        study.tell(LINE.point(row), float(np.sin(5 * row / 40)))
    return study


def test_an_explanation_has_expected_value_chance_effect_and_cost():
    study = known(quantity="oxygen", unit="mg/l", cost=3.0)
    suggestion = study.ask()
    found = study.explain(suggestion)
    assert (found.mean, found.sd) == study.predict_measurement(suggestion)
    assert found.lookahead == study.lookahead(suggestion)
    assert found.chance == study.result().probability[suggestion.index]
    text = repr(found)
    assert f"expected value  {format_uncertain(found.mean, found.sd)} mg/l" in text
    assert "chance to be above 0.5; " in text
    assert f"of {found.lookahead.undecided} points that the policy has not decided" in text
    assert "cost            3\n" in text
    assert f"study.tell({suggestion.id}, VALUE)" in text
    assert study.explain(suggestion.id) == found
    assert json.loads(json.dumps(found.to_dict()))["why"] == found.why


def test_the_chance_of_an_optimum_is_that_of_a_better_value():
    study = known(tv.Minimize())
    suggestion = study.ask()
    found = study.explain(suggestion)
    mean, sd = study.predict_measurement(suggestion)
    best = study.measurements["value"].min()
    assert found.reference == best
    assert found.chance == pytest.approx(ndtr((best - mean) / sd))
    assert "chance to be below" in found.why


def test_only_pending_suggestions_are_explained():
    study = known()
    suggestion = study.ask()
    study.tell(suggestion, 0.2)
    with pytest.raises(UnknownSuggestionError, match=r"got 4; pending are none"):
        study.explain(suggestion)


@pytest.mark.parametrize("what", [{"x": 0.5}, [1], True, "1", None])
def test_other_things_than_suggestions_are_refused(what):
    study = known()
    study.ask()
    with pytest.raises(UnknownSuggestionError, match="a pending suggestion can be explained"):
        study.explain(what)


def test_before_there_is_a_model_nothing_is_expected():
    study = tv.Study(LINE, tv.Maximize())
    batch = study.ask(3)
    found = study.explain(batch[0])
    assert found.expected == "not known yet"
    assert "no model yet" in found.why
    assert found.to_dict()["expected"] == {"mean": None, "sd": None}
    assert repr(batch).startswith("3 suggestions, spread out to learn a model from\n  id  x ")
    assert "why" not in repr(batch)


def test_a_batch_is_a_list_and_a_table():
    study = known(cost=3.0)
    batch = study.ask(3)
    assert isinstance(batch, list)
    assert batch == study.pending
    lines = repr(batch).splitlines()
    assert lines[0] == "3 suggestions"
    assert lines[1].split() == ["id", "x", "cost", "expected", "value", "why"]
    assert len(lines) == 5
    for suggestion, line in zip(batch, lines[2:], strict=True):
        found = study.explain(suggestion)
        assert line.split()[:3] == [str(suggestion.id), f"{suggestion.point['x']:.6g}", "3"]
        assert line.endswith(found.why)
        assert found.expected in line
        assert found.why in batch._repr_html_()
    assert study.ask(1)[0].id == 7
    assert repr(type(batch)()) == "[]"


def test_a_batch_that_is_first_shown_later_has_no_stale_expectations():
    study = known()
    batch = study.ask(2)
    study.tell(batch[0], 0.1)
    assert "expected" not in repr(batch)
    shown = study.ask(2)
    before = repr(shown)
    study.tell(shown[0], 0.1)
    assert repr(shown) == before


@pytest.mark.parametrize("copied", [copy.copy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_copies_hold_the_suggestions_alone(copied):
    batch = known().ask(2)
    other = copied(batch)
    assert other == batch
    assert other._study is None
    assert "2 suggestions" in repr(other)


def test_labels_tasks_and_text_are_shown_and_escaped():
    table = pd.DataFrame({"x": [0.0, 0.5, 1.0], "name": ["<b>A", "B", "C"]}).set_index("name")
    study = tv.Study(
        tv.Domain.table(table, columns=["x"]),
        tv.Maximize(),
        tasks=tv.Tasks(covariance=[[1, 0.9], [0.9, 1]], names=["full", "quick"], cost=[5, 1]),
        kernel=RBF(0.3),
        mean=0.0,
        noise=0.01,
    )
    batch = study.ask(3)
    assert "label" in repr(batch)
    assert "task" in repr(batch)
    html = batch._repr_html_()
    assert "<b>A" not in html
    assert f"{batch[0].task} at " in repr(study.explain(batch[0]))


def test_a_coordinate_may_be_called_cost():
    study = tv.Study(tv.Domain.grid(cost=[0.0, 5.0]), tv.Maximize(), cost=3.0)
    assert repr(study.ask(2)).splitlines()[1].split() == ["id", "cost", "cost_"]


def test_several_quantities_and_boxes_are_explained():
    study = tv.Study(
        tv.Domain.box(x=(0, 1), y=(0, 1), representers=60),
        tv.AllOf(tv.LevelSet(0.5, of="yield"), tv.LevelSet(below=1, of="impurity")),
    )
    for x in np.linspace(0, 1, 8):
        study.tell({"x": x, "y": 1 - x}, {"yield": x, "impurity": 1.5 - x})
    batch = study.ask(2)
    assert "yield and impurity at x " in repr(study.explain(batch[0]))
    assert study.explain(batch[0]).chance is None
    assert "quantities" in repr(batch)


def test_a_study_on_a_server_explains_alike(served, request):
    api, _ = served
    remote = Server(api.url).create(PROBLEM, request.node.name)
    local = known()
    for row in (0, 12, 30):
        remote.tell(LINE.point(row), float(np.sin(5 * row / 40)))
    ours = local.ask(2)
    theirs = remote.ask(2)
    assert repr(theirs) == repr(ours)
    assert repr(remote.explain(theirs[1])) == repr(local.explain(ours[1]))


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (71.2345, 5.512, "71.2 ± 5.5"),
        (0.00123456, 0.000012, "0.001235 ± 0.000012"),
        (123456.0, 2300.0, "123500 ± 2300"),
        (-0.001, 0.5, "0.00 ± 0.50"),
        (7.3, 0.0, "7.3"),
        (7.3, float("inf"), "7.3"),
        (1.5e12, 2e9, "1.5e+12 ± 2e+09"),
    ],
)
def test_digits_fit_the_standard_deviation(value, sd, text):
    assert format_uncertain(value, sd) == text
