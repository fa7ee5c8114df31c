"""Objects as a console and a notebook show them: short, escaped, without arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv


def new_study(goal: Any, steps: int = 4, **options: Any) -> tv.Study:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 30), y=np.linspace(0, 1, 20))
    study = tv.Study(domain, goal, kernel=RBF(0.3), mean=0.0, noise=0.01, name="pond", **options)
    if steps:
        study.run(lambda point: float(np.sin(4 * point["x"])), steps=steps)
    return study


def test_a_study_says_what_it_looks_for_what_it_spent_its_answer_and_what_is_next() -> None:
    study = new_study(tv.LevelSet(0.5), limits={"budget": 30})
    text = repr(study)
    assert text.splitlines()[0] == "Study 'pond': where is the value above 0.5?"
    assert "measured  4 times" in text
    assert "spent     4 of 30" in text
    assert "undecided of 600 points" in text
    assert "nothing is pending: ask() suggests a measurement" in text
    study.ask(2)
    assert "next      5: x " in repr(study)
    assert "1 more pending" in repr(study)
    html = study._repr_html_()
    assert "expected F1" in html
    assert "where is the value above 0.5?" in html


@pytest.mark.parametrize(
    "goal", [tv.Maximize(), tv.Minimize(), tv.LevelSet(fraction_of_max=0.8), tv.LevelSet([0, 0.5])]
)
@pytest.mark.parametrize("steps", [0, 4])
def test_no_object_shows_arrays(goal: Any, steps: int) -> None:
    study = new_study(goal, steps)
    suggestion = study.ask()
    result = study.result()
    for each in (study, result, suggestion, study.domain, result.certificate):
        for text in (repr(each), each._repr_html_()):  # type: ignore[attr-defined]
            assert 20 < len(text) < 4000
            assert "array(" not in text
            assert "[0." not in text


def test_text_is_escaped_in_notebooks() -> None:
    domain = tv.Domain.grid(**{"<b>x": np.linspace(0, 1, 8)})
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01, name="<script>")
    study.tell({"<b>x": 0.0}, 1.0)
    for each in (study, study.ask(), study.domain, study.result()):
        html = each._repr_html_()  # type: ignore[attr-defined]
        assert "<script" not in html
        assert "<b>x" not in html


def test_representations_name_what_matters() -> None:
    study = new_study(tv.Maximize())
    suggestion = study.ask()
    assert repr(suggestion).startswith(
        f"Suggestion(id=5, point={suggestion.point!r}, noise=0.01, cost=1.0, gain="
    )
    assert (
        repr(study.domain)
        == "<Domain: grid of 600 points; x: 0 to 1, 30 values; y: 0 to 1, 20 values>"
    )
    box = tv.Domain.box(lr=tv.Log(1e-4, 1e-1), solver=tv.Categorical(["a", "b"]), representers=40)
    assert repr(box) == "<Domain: box of 40 points; lr: 0.0001 to 0.1 on a log scale; solver: a, b>"
    result = study.result()
    assert repr(result).startswith(
        "Result: 4 measurements, cost 4, 600 points\n  answer  With 95 % probability"
    )
    assert str(result.certificate) in repr(result.certificate)
    assert (
        "best so far</th><td style='text-align:left;padding:.1em "
        f"0'>{result.best_observed.value:.6g}"
        in (  # type: ignore[union-attr]
            result._repr_html_()
        )
    )


def test_a_study_says_how_many_measurements_failed() -> None:
    study = new_study(tv.Maximize(), steps=2)
    study.fail(study.ask(), "no signal")
    assert "2 times; 1 failed" in repr(study)
    assert "2 times; 1 failed" in study._repr_html_()


def test_a_result_counts_failures_outliers_and_exclusions() -> None:
    study = new_study(tv.Maximize())
    assert "failed" not in repr(study.result())
    study.fail(study.ask(), "broken vial")
    study.exclude({"x": 0.0, "y": 0.0}, "unsafe")
    result = study.result()
    assert result.n_excluded == 2
    for text in (repr(result), result._repr_html_()):
        assert "1 measurement" in text
        assert "2 of 600 points" in text
    assert repr(result).splitlines()[-2:] == [
        "  failed    1 measurement",
        "  excluded  2 of 600 points",
    ]


def test_a_given_kernel_is_said_to_be_fixed() -> None:
    study = new_study(tv.Maximize(), steps=0)
    hint = "kernel    RBF(length_scale=0.3), fixed as given; kernel=tv.Learned(kernel=...) learns"
    assert hint in repr(study)
    assert "fixed as given; kernel=tv.Learned" in study._repr_html_()
    study.tell(study.ask(), 0.5)
    assert "RBF(length_scale=0.3), fixed as given\n" in repr(study)
    learned = tv.Study(study.domain, tv.Maximize(), kernel=tv.Learned(kernel=RBF(0.3)))
    for other in (learned, tv.Study(study.domain, tv.Maximize())):
        assert "fixed" not in repr(other)
