"""The page on decision quality: its summary follows from its tables, and the README from the page."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LEVEL = 1.03  # ratio up to which two programs are level


def page() -> str:
    return (ROOT / "docs" / "decision-quality.md").read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def ratios_of(heading: str) -> list[float]:
    """Return the ratios of the first table with problems below a heading."""
    section = page().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = section.split("| problem |", 1)[1].split("\n\n", 1)[0]
    rows = [cells(line) for line in table.splitlines()[2:]]
    return [float(row[-1].split()[0]) for row in rows]


@pytest.mark.parametrize(
    ("number", "heading"),
    [
        (0, "How far ahead at equal cost, nothing known?"),
        (1, "And with a known kernel?"),
        (2, "How much to spend until F1 0.9?"),
    ],
)
def test_the_summary_is_that_of_the_table(number: int, heading: str) -> None:
    summary = [line for line in page().splitlines() if line.startswith("| [")][number]
    mean, level, worst = cells(summary)[1:4]
    ratios = ratios_of(heading)
    stated = float(re.findall(r"\*\*([\d.]+)\*\*", mean)[0])
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(stated, abs=0.011)  # of rounded ratios
    assert level == f"{sum(ratio <= LEVEL for ratio in ratios)} of {len(ratios)} problems"
    assert worst.startswith(f"{max(ratios):.2f} ")


def test_the_readme_has_the_figure_of_the_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    summary = next(line for line in page().splitlines() if line.startswith("| ["))
    stated, high = re.findall(r"\*\*([\d.]+)\*\* \([\d.]+ to ([\d.]+)\)", cells(summary)[1])[0]
    claim = " ".join(readme.split("- **Compared at equal cost.**")[1].split("\n- ")[0].split())
    assert f"its error is {stated} of that of the best other program" in claim
    assert ("not a clear lead" in claim) == (float(high) >= 1)  # the interval includes a draw


def test_the_note_has_the_figures_of_the_page() -> None:
    note = (ROOT / "docs" / "note.md").read_text(encoding="utf-8")
    field = " ".join(note.split("**The field.**")[1].split("\n\n")[0].split())
    for line in [line for line in page().splitlines() if line.startswith("| [")][:2]:
        mean, level = cells(line)[1:3]
        assert f" {mean.replace('**', '')} " in field
        assert f"over {level.split()[2]} problems" in field
