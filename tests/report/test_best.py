"""Status, report and run show the recommended point beside the best measurement, and the
transform in use."""

from __future__ import annotations

import numpy as np
import pytest

import truvar as tv
from truvar.models.transforms import OutputTransform
from truvar.report.html_report import render_html_report
from truvar.report.status import describe_transform, status_data, status_text
from truvar.report.terminal import TerminalStyle

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 41))


def status_words(study: tv.Study) -> str:
    return " ".join(status_text(study, TerminalStyle(width=200)).split())


def new_study(goal: tv.Maximize | tv.Minimize | tv.LevelSet, steps: int) -> tv.Study:
    study = tv.Study(DOMAIN, goal, name="peak")
    study.run(lambda point: float(np.sin(6 * point["x"])), steps=steps)
    return study


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.Minimize()])
def test_an_optimum_has_both_in_status_and_report(goal: tv.Maximize | tv.Minimize) -> None:
    study = new_study(goal, 10)
    result = study.result()
    measured = result.best_observed
    assert measured.value == goal.sign * max(goal.sign * study.measurements["value"])
    best = result.best
    value = result.statements.recommended_value
    digits = 1 - int(np.floor(np.log10(best.sd)))  # two digits of the standard deviation
    estimated = f"{best.mean:.{digits}f} ± {best.sd:.{digits}f}"
    low, high = (f"{end:.{digits}f}" for end in (value.low, value.high))
    recommended = f"x {best.point['x']:.6g}, estimated value {estimated} (95 %: {low} to {high})"
    assert value.low <= result.best.mean <= value.high
    observed = f"{measured.value:.6g} at x {measured.point['x']:.6g} (measurement {measured.id})"
    assert f"best so far {observed} recommended {recommended}" in status_words(study)
    page = render_html_report(study)
    assert f"<b>Recommended:</b> {recommended}" in page
    assert f"<b>Best so far:</b> {observed}" in page
    data = status_data(study)["result"]
    assert data["best_observed"] == {
        "id": measured.id,
        "index": measured.index,
        "point": measured.point,
        "value": measured.value,
        "label": None,
    }
    assert data["best"]["mean"] == result.best.mean


def test_before_there_is_a_model_only_the_best_measurement_is_shown() -> None:
    words = status_words(new_study(tv.Maximize(), 2))
    assert "best so far" in words
    assert "recommended" not in words


def test_a_level_set_has_neither() -> None:
    study = new_study(tv.LevelSet(0.5), 10)
    assert "best so far" not in status_words(study)
    assert "Best so far" not in render_html_report(study)


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (OutputTransform(3.0, 2.0), None),
        (OutputTransform(log=True), "values are modelled as their logarithms"),
        (OutputTransform(power=0.4), "values are modelled as their power 0.4"),
        (OutputTransform(power=1e-9), "values are modelled as their power 0, a logarithm"),
    ],
)
def test_a_transform_is_described_unless_it_is_the_identity(
    transform: OutputTransform, words: str | None
) -> None:
    assert describe_transform(transform) == words
