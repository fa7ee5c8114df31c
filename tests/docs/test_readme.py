"""README, landing page and `make run` give one answer, which states nothing false of its lake."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from docs.pages import ROOT, blocks, same_output

import truvar as tv
from truvar.cli import main
from truvar.problem import Problem


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


def test_make_run_gives_the_answer_of_the_readme_and_it_is_true(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    begin = Problem.study
    studies: list[tv.Study] = []

    def begin_and_keep(problem: Problem, **options: Any) -> tv.Study:
        studies.append(begin(problem, **options))
        return studies[-1]

    monkeypatch.setattr(Problem, "study", begin_and_keep)
    monkeypatch.chdir(ROOT)
    command = ["run", "examples/bloom.toml", "--truth", "chlorophyll", "--report"]
    assert main([*command, str(tmp_path / "lake")]) == 0
    printed = capsys.readouterr().out
    result = studies[0].result()
    answer = f"{result.steps} measurements at a cost of {result.spent:.0f}\n{result.certificate}\n"
    assert same_output(first("README.md", "text"), answer)

    lines = printed.splitlines()
    assert len(lines) <= 12
    assert lines[-1].startswith(f"report: {tmp_path / 'lake'}")
    assert " ".join(str(result.certificate).split()) in " ".join(printed.split())
    assert not re.search(r"\b(lemma|theorem|epoch|eta|beta|regime)\b", printed)

    truth = studies[0].domain.column("chlorophyll")
    classes = result.classify()
    assert classes.above.sum() >= 50
    assert not (classes.above & (truth < 7.0)).any()
    assert not (classes.below & (truth >= 7.0)).any()
    shown = result.classes
    wrong = (shown.above & (truth < 7.0)) | (shown.below & (truth >= 7.0))
    assert wrong.sum() <= shown.max_wrong
    assert result.expected_f1.low <= result.f1(truth) <= result.expected_f1.high


def test_the_landing_page_shows_the_code_before_its_output() -> None:
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    order = [page.index(part) for part in ("```python", "```text", "images/lake.png")]
    assert order == sorted(order)
    areas = (ROOT / "docs" / "style.css").read_text(encoding="utf-8")
    assert 'grid-template-areas: "what code" "sure sure" "map map";' in areas
