"""The first example of the README states nothing that is false of its lake."""

from __future__ import annotations

from typing import Any

from docs.pages import ROOT, blocks

from truvar.paper.lake import concentration


def test_the_first_answer_of_the_readme_is_true(capsys: Any) -> None:
    example = next(
        block
        for block in blocks((ROOT / "README.md").read_text(encoding="utf-8"))
        if block.kind == "python"
    )
    names: dict[str, Any] = {}
    exec(compile(example.code, "README.md", "exec"), names)
    result = names["result"]
    truth = concentration(*names["lake"].points.T)
    classes = result.classify()
    assert str(result.certificate) in capsys.readouterr().out
    assert classes.above.sum() >= 50
    assert not (classes.above & (truth < 7.0)).any()
    assert not (classes.below & (truth >= 7.0)).any()
    shown = result.classes
    wrong = (shown.above & (truth < 7.0)) | (shown.below & (truth >= 7.0))
    assert wrong.sum() <= shown.max_wrong
    assert result.expected_f1.low <= result.f1(truth) <= result.expected_f1.high
