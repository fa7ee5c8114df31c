"""The first example of the README states nothing that is false of its lake."""

from __future__ import annotations

import contextlib
from typing import Any

from docs.pages import ROOT, blocks

import truvar as tv


def first(page: str, kind: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return next(block.code for block in blocks(text) if block.kind == kind)


def test_the_landing_page_has_the_example_of_the_readme() -> None:
    for kind in ("python", "text"):
        assert first("docs/index.md", kind) == first("README.md", kind)


def test_the_example_is_the_problem_of_make_run() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "truvar run examples/bloom.toml --truth chlorophyll --report build/lake" in makefile
    names: dict[str, Any] = {}
    setup = first("README.md", "python").partition("result =")[0]
    with contextlib.chdir(ROOT):
        exec(compile(setup, "README.md", "exec"), names)
    study = names["study"]
    problem = tv.load_problem(ROOT / "examples" / "bloom.toml")
    assert (study.domain.points == problem.domain.points).all()
    same = problem.study()
    assert (study.goal, study.seed) == (same.goal, same.seed)
    chosen = [(each.point, each.cost) for each in study.ask(3)]
    assert chosen == [(each.point, each.cost) for each in same.ask(3)]
    assert f"f1={problem.run['f1']})" in first("README.md", "python")


def test_the_first_answer_of_the_readme_is_true(capsys: Any) -> None:
    names: dict[str, Any] = {}
    with contextlib.chdir(ROOT):
        exec(compile(first("README.md", "python"), "README.md", "exec"), names)
    result = names["result"]
    truth = names["lake"]["chlorophyll"].to_numpy()
    classes = result.classify()
    assert str(result.certificate) in capsys.readouterr().out
    assert classes.above.sum() >= 50
    assert not (classes.above & (truth < 7.0)).any()
    assert not (classes.below & (truth >= 7.0)).any()
    shown = result.classes
    wrong = (shown.above & (truth < 7.0)) | (shown.below & (truth >= 7.0))
    assert wrong.sum() <= shown.max_wrong
    assert result.expected_f1.low <= result.f1(truth) <= result.expected_f1.high
