"""The comparison names a version for each tool and its source; works that methods rest on are cited."""

from __future__ import annotations

import re

import pytest
from docs.pages import ROOT

TOOL = re.compile(r"([A-Za-z][\w-]*) (\d+(?:\.\d+)+)")
REQUIRED = {
    "KrigInv",
    "hetGPy",
    "GPmp-contrib",
    "sgp-tools",
    "Xopt",
    "bluesky-adaptive",
    "gpCAM",
    "AEPsych",
    "BoTorch",
    "Ax",
    "Trieste",
    "BayBE",
    "Optuna",
}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_every_compared_tool_has_its_version_a_source_and_a_use() -> None:
    compared, rest = text("docs/comparison.md").split("\n## What they do better\n")
    headings = [cells(line)[2:] for line in compared.splitlines() if line.startswith("| | truvar")]
    tools = dict(pair for row in headings for cell in row for pair in TOOL.findall(cell))
    assert set(tools) >= REQUIRED
    uses, sources = rest.split("\n## Sources\n")
    read = dict(
        pair
        for line in sources.splitlines()
        if line.startswith("|")
        for pair in TOOL.findall(cells(line)[0])
    )
    assert read == tools
    named = " ".join(cells(line)[0] for line in uses.splitlines() if line.startswith("|"))
    assert [tool for tool in tools if tool not in named] == []


def test_both_pages_that_speak_of_level_sets_in_optunahub_name_its_sampler() -> None:
    for page in ("docs/comparison.md", "docs/integrations.md"):
        assert "`DRLevelSetSampler`" in text(page)


@pytest.mark.parametrize(
    ("page", "authors", "title", "number"),
    [
        ("how-to/stop.md", "Xie et al.", "Cost-aware Stopping", "2507.12453"),
        ("how-to/stop.md", "Ishibashi et al.", "accurate level set estimation", "2503.20272"),
        ("policies.md", "Ewald et al.", "CASHomon Sets", "2603.15321"),
        ("policies.md", "Hübotter et al.", "Transductive Active Learning", None),
    ],
)
def test_works_are_cited_where_they_are_used_and_in_the_note(
    page: str, authors: str, title: str, number: str | None
) -> None:
    used = " ".join(text(f"docs/{page}").split())
    assert re.search(f"{re.escape(authors)},? \\*[^*]*{title}", used)
    references = text("docs/note.md").split("\n## References\n")[1]
    entry = next(line for line in references.splitlines() if title in line)
    assert authors.split()[0] in entry
    if number is not None:
        assert f"https://arxiv.org/abs/{number}" in used
        assert f"arXiv {number}" in entry
