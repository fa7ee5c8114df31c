"""The technical note can be printed, has its pictures, and gives a command for its numbers."""

import re
import shutil
from pathlib import Path

import pytest

NOTE = Path(__file__).parents[2] / "docs" / "note.md"


def test_the_pictures_of_the_note_exist_and_have_a_command() -> None:
    text = NOTE.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)\n\n(.*)", text)
    assert len(pictures) == text.count("![") >= 3
    for path, caption in pictures:
        assert (NOTE.parent / path).is_file()
        assert re.match(r"\*Figure \d\. .*`(truvar|python) [^`]+`", caption), caption


def test_every_table_of_results_follows_the_command_that_prints_it() -> None:
    text = NOTE.read_text(encoding="utf-8")
    for section in (
        "### How often they are true",
        "**The paper's experiment.**",
        "**Two rules that count costs.**",
    ):
        before = text.split(section, 1)[1].split("\n|", 1)[0]
        assert re.search(r"`(truvar|python -m) [^`]+`", before), section


def test_the_note_is_printed_as_a_pdf(tmp_path: Path) -> None:
    pytest.importorskip("markdown", reason="needs Markdown: pip install truvar[note]")
    pytest.importorskip("playwright", reason="needs playwright: pip install truvar[note]")
    if not (shutil.which("chromium") or shutil.which("chromium-browser")):
        pytest.skip("needs Chromium: apt install chromium")
    from docs.note import build, html

    assert ".md" not in "".join(re.findall(r'href="([^"]*)"', html()))
    build(tmp_path / "note.pdf")
    printed = (tmp_path / "note.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 100_000  # with its pictures


def test_the_results_of_the_note_are_those_of_the_pages() -> None:
    text = NOTE.read_text(encoding="utf-8").split("### How often they are true", 1)[1]
    names = ("trust.md", "reproduction.md", "decision-quality.md")
    pages = " ".join((NOTE.parent / name).read_text(encoding="utf-8") for name in names)
    cells = [
        cell.strip().replace("–", "-")
        for row in re.findall(r"^\|(.*)\|$", text, re.M)
        for cell in row.split("|")
    ]
    results = [cell for cell in cells if re.match(r"\.?\d", cell)]
    assert len(results) > 40
    assert [cell for cell in results if cell not in pages] == []


def test_the_note_defines_every_statement_about_a_level_set_and_how_often_it_is_true() -> None:
    text = (
        NOTE.read_text(encoding="utf-8").split("## 5. Joint statements", 1)[1].split("\n## ", 1)[0]
    )
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    for words in ("classes", "strict", "with a tolerance", "with a margin"):
        assert any(row.startswith(words) for row in rows), words
    calibrated = next(line for line in text.splitlines() if line.startswith("| model |"))
    for words in ("number wrong", "strict", "1 % wrong", "F1", "set true", "regret"):
        assert words in calibrated


def test_the_note_and_the_page_on_trust_state_the_same_shares() -> None:
    """Each row of the calibration of level sets is that of the page, column by column."""
    columns = {
        "bound on the number wrong: true": 4,
        "strict: true": 0,
        "at most 1 % wrong: true": 2,
    }
    page = table("trust.md", "| model | all classes true |")
    note = table("note.md", "| model | bound on the number wrong")
    heading = note.pop(0)[1:]
    shown = {row[0].split(" (")[0]: row[1:] for row in note}
    expected = {row[0]: row[1:] for row in page[1:]}
    assert shown.keys() == expected.keys()
    for name, row in shown.items():
        for column, position in columns.items():
            assert row[heading.index(column)] == expected[name][position], (name, column)


def table(name: str, beginning: str) -> list[list[str]]:
    """Return the cells of the table that begins so, without the line below its heading."""
    text = (NOTE.parent / name).read_text(encoding="utf-8")
    lines = (beginning + text.split(beginning, 1)[1]).split("\n\n", 1)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]
