"""Status, report, figure, table, progress and service show the same classes, those of
`Result.classes`, and claim no more."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.inference.statements import Classification
from truvar.report import Progress
from truvar.report._text_map import text_map
from truvar.report.html_report import render_html_report
from truvar.report.status import BOUNDS_TITLE, progress_texts, status_text
from truvar.report.tables import write_report
from truvar.report.tell_summary import tell_summary
from truvar.report.terminal import TerminalStyle
from truvar.service import serializers

DOMAIN = tv.Domain.grid(x_m=np.linspace(0, 4, 9), y_m=np.linspace(-2, 0, 6))
GOALS = {"level set": tv.LevelSet(0.3), "maximum": tv.Maximize(), "minimum": tv.Minimize()}
# "not finished" and "no probability" are fine; what claims certainty is not.
UNSUPPORTED = re.compile(r"identified|proven|guarantee|\bcertain\b|finished", re.IGNORECASE)
PAPER_SETS = re.compile(r"\((H|L|M)\)")


def height(point: dict[str, float]) -> float:
    return float(np.sin(point["x_m"]) + 0.5 * point["y_m"] + 0.6)


@pytest.fixture(scope="module", params=list(GOALS))
def study(request: pytest.FixtureRequest) -> tv.Study:
    known = {"kernel": RBF([1.0, 1.0]), "mean": 0.0, "noise": 1e-3}
    study = tv.Study(DOMAIN, GOALS[request.param], name="bay", **known)
    study.tell({"x_m": 4.0, "y_m": -2.0}, height({"x_m": 4.0, "y_m": -2.0}))
    study.withdraw(1)  # so that ids and the order of the measurements differ
    study.run(height, steps=9)
    assert study.finished is None
    assert study.result().certificate.regime == "heuristic"
    return study


@pytest.fixture(scope="module")
def page_words(study: tv.Study) -> str:
    """The words of the HTML report of the study."""
    return words_of(render_html_report(study))


def counts(classes: Classification) -> dict[str, int]:
    return {name: int(getattr(classes, name).sum()) for name in ("above", "below", "undecided")}


def shown_labels(study: tv.Study) -> list[str]:
    """Return the labels of the classes that every text must have."""
    n = counts(study.result().classes)
    if study.goal.has_thresholds:
        return [
            f"above 0.3: {n['above']}",
            f"undecided: {n['undecided']}",
            f"below 0.3: {n['below']}",
        ]
    name = "maximum" if study.goal.sign > 0 else "minimum"
    return [f"possible {name}: {n['undecided']}", f"ruled out: {n['above'] + n['below']}"]


def words_of(page: str) -> str:
    without_images = re.sub(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", "", page)
    return re.sub(r"<style>.*?</style>|<[^>]+>", " ", without_images, flags=re.DOTALL)


def test_the_classes_differ_from_the_paper_s_sets(study: tv.Study) -> None:
    result = study.result()
    assert (
        counts(result.classes)["undecided"] != result.potential.sum()
    )  # otherwise the tests below show nothing


def test_every_text_counts_the_points_of_a_result(study: tv.Study, page_words: str) -> None:
    figure_texts = [
        text.get_text()
        for axes in study.plot().axes
        if axes.get_legend()
        for text in axes.get_legend().get_texts()
    ]
    status = " ".join(status_text(study, TerminalStyle(width=300)).split())
    for label in shown_labels(study):
        assert label in status
        assert label in page_words
        assert label in figure_texts
    note = "95 % that it is one of these"
    if study.goal.has_thresholds:
        n_wrong = study.result().classify(pointwise=0.95).max_wrong
        note = f"each with at least 95 %; at most {n_wrong} wrong"
    assert f"({note})" in status
    assert f"({note})" in page_words
    assert f"({note})" in figure_texts


def test_the_map_in_letters_has_the_class_of_each_point() -> None:
    study = tv.Study(DOMAIN, tv.LevelSet(0.3), kernel=RBF([1.0, 1.0]), mean=0.0, noise=1e-3)
    study.run(height, steps=9)
    rows = [
        line.split("│")[1]
        for line in text_map(study, TerminalStyle(80)).splitlines()
        if "│" in line
    ]
    letters = {"█": "above", "░": "below", "·": "undecided"}
    labels = study.result().classes.labels.reshape(9, 6).T[::-1]  # high y at the top
    drawn = np.array([list(row) for row in rows])
    repeat_y = drawn.shape[0] // 6
    repeat_x = drawn.shape[1] // 9
    for (row, column), label in np.ndenumerate(labels):
        cell = drawn[
            row * repeat_y : (row + 1) * repeat_y, column * repeat_x : (column + 1) * repeat_x
        ]
        assert {letters[letter] for letter in cell.ravel() if letter in letters} <= {label}


def test_tables_and_the_service_have_the_classes_of_a_result(
    study: tv.Study, tmp_path: Path
) -> None:
    result = study.result()
    labels = result.classes.labels.tolist()
    assert result.to_frame()["class"].tolist() == labels
    paths = write_report(study, tmp_path)
    assert pd.read_csv(paths["points"])["class"].tolist() == labels
    codes = {"H": "above", "L": "below", "M": "undecided"}
    view = serializers.view(study)
    assert [codes[letter] for letter in view["classes"]] == labels
    classified = view["result"]["classified"]
    assert {name: classified[name] for name in ("above", "below", "undecided")} == counts(
        result.classes
    )
    assert view["class_note"] in status_text(study, TerminalStyle(width=300))
    posterior = serializers.posterior(study)
    assert [codes[letter] for letter in posterior["classes"]] == labels
    sets = np.array(list(posterior["sets"]))
    assert np.array_equal(sets == "M", result.potential)
    assert np.allclose(view["lower"], result.statements.lower, atol=1e-4)
    assert np.allclose(view["probability"], result.probability, atol=1e-5)


def test_the_progress_line_counts_the_points_of_a_result(study: tv.Study) -> None:
    stream = io.StringIO()
    with Progress(study, stream=stream):
        pass
    n = counts(study.result().classes)
    line = " ".join(stream.getvalue().split())
    assert f"undecided {n['undecided']}" in line
    assert "epsilon" not in line
    assert "ε" not in line
    if study.goal.has_thresholds:
        assert f"above {n['above']} below {n['below']}" in line
        assert "expected F1" in line
    else:
        assert f"best so far {study.result().best_observed.value:.4g}" in line
        assert "expected regret" in line


def test_the_certificate_counts_the_same_points(study: tv.Study) -> None:
    result = study.result()
    n = counts(result.classes)
    statement = result.certificate.statement
    if study.goal.has_thresholds:
        n_shown = n["above"] + n["below"]
        assert f"{n_shown} of {len(result.mean)} points are shown" in statement
        assert f"{n['above']} above 0.3 and {n['below']} below" in statement
        assert f"at most {result.classes.max_wrong} of them" in statement
        assert f"{n['undecided']} are undecided" in statement
        for further in result.certificate.further:
            assert further in " ".join(status_text(study, TerminalStyle(width=300)).split())
    elif n["undecided"] > 1:
        assert f"one of {n['undecided']} points" in statement


def test_cards_and_answers_to_values_count_the_same_points(study: tv.Study) -> None:
    result = study.result()
    n = counts(result.classes)
    told = tell_summary([1], result, study.result())
    assert f"undecided {n['undecided']}" in told
    if study.goal.has_thresholds:
        assert f"above {n['above']}, below {n['below']}" in told
        card = f"{n['above']} above, {n['below']} below, {n['undecided']} undecided of"
        assert card in repr(study)
        assert card in study._repr_html_()


def test_no_default_figure_shows_the_paper_s_sets(study: tv.Study) -> None:
    figure = study.plot()
    texts = [axes.get_title(loc="left") for axes in figure.axes]
    texts += [text.get_text() for axes in figure.axes for text in axes.texts]
    assert not any("bounds" in text for text in texts)
    bars = next(axes for axes in figure.axes if "share" in axes.get_title(loc="left"))
    widths = [bar.get_width() for bar in bars.patches]
    if study.goal.has_thresholds:
        n = counts(study.result().classes)
        shares = [100 * n[name] / len(DOMAIN) for name in ("below", "undecided", "above")]
        assert widths == pytest.approx(shares)


def test_the_paper_s_sets_and_epsilon_are_in_their_own_section_only(
    study: tv.Study, page_words: str
) -> None:
    assert BOUNDS_TITLE not in status_text(study, TerminalStyle(width=300))
    with_theorem = status_text(study, TerminalStyle(width=300), theorem=True)
    assert BOUNDS_TITLE not in page_words
    page_with_theorem = words_of(render_html_report(study, theorem=True))
    for text in (with_theorem, page_with_theorem):
        before, _, section = text.partition(BOUNDS_TITLE)
        assert not PAPER_SETS.search(before)
        assert "epsilon" not in before
        assert "ε" not in before
        assert "accuracy" not in before
        assert "heuristic" in section
        assert "epsilon" in section
        result = study.result()
        for part in (f"H (above) {result.above.sum()}", f"M (undecided) {result.potential.sum()}"):
            assert part in section
        assert result.certificate.bounds_statement in " ".join(section.split())


def test_a_heuristic_study_claims_nothing_without_support(study: tv.Study, page_words: str) -> None:
    stream = io.StringIO()
    with Progress(study, stream=stream):
        pass
    texts = [
        status_text(study, TerminalStyle(width=300)),
        page_words,
        stream.getvalue(),
        str(study.result().certificate),
        *(str(text) for text in serializers.view(study)["paper"].values()),
    ]
    for text in texts:
        assert not UNSUPPORTED.search(text), UNSUPPORTED.search(text)


def test_an_exhausted_policy_is_not_called_finished() -> None:
    study = tv.Study(
        DOMAIN,
        tv.LevelSet(0.3),
        kernel=RBF([0.5, 0.5]),
        mean=0.0,
        noise=1e-3,
        policy="truvar",
        exact_model=True,
    )
    study.run(height, steps=200)
    assert study.finished is None
    assert "not enough to call the study finished" in str(study.result().reason)
    rows = status_text(study, TerminalStyle(width=300)).splitlines()
    assert any(row.split()[:1] == ["stopped"] for row in rows)
    assert not any(row.split()[:1] == ["finished"] for row in rows)
    page = render_html_report(study)
    assert "<b>Stopped:</b>" in page
    assert "<b>Finished:</b>" not in page


def test_figures_number_measurements_by_their_ids(study: tv.Study) -> None:
    ids = set(map(str, study.measurements["id"]))
    numbers = {text.get_text() for text in study.plot().axes[0].texts}
    assert numbers
    assert numbers <= ids
    assert "1" not in numbers  # withdrawn


def test_progress_towards_a_limit_on_the_answer_is_shown_in_words_and_that_towards_epsilon_is_not() -> (
    None
):
    progress = {
        "budget": {"text": "cost 3, goal 9"},
        "epsilon": {"text": "epsilon 2, goal 1"},
        "f1": {"text": "F1 0.8"},
    }
    assert progress_texts({"progress": progress}) == ["F1 0.8"]
    assert progress_texts({"progress": {}}) == []
    assert progress_texts({}) == []
