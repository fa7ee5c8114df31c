"""Examples of README and the documentation run as they are, and print and draw what the pages
show."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from docs.command_help import add_commands
from docs.pages import (
    DOCS,
    FROM_ELSEWHERE,
    ROOT,
    blocks,
    check,
    pages,
    pictures,
    quiet_terminal,
    run,
    same_output,
)

import truvar
from truvar.acquisition import policy_classes
from truvar.cli import COMMANDS
from truvar.problem.schema import SECTIONS, ProblemSpec
from truvar.study.limits import LIMITS

# Every block that is not run, by its page and reason. They shall be few: a new one needs a line
# here.
NOT_RUN = [
    ("docs/cluster.md", "it needs a cluster; tests/stress/test_sharded_cluster.py starts one"),
    ("docs/how-to/deploy.md", "needs Docker"),
    ("docs/how-to/deploy.md", "needs Docker"),
    ("docs/how-to/deploy.md", "needs Docker"),
    ("docs/how-to/deploy.md", "changes the system"),
    ("docs/how-to/deploy.md", "changes the system"),
    ("docs/how-to/plots.md", "needs a notebook"),
    ("docs/how-to/ros2.md", "it needs ROS 2; tests/docs/test_ros2_page.py runs it with a stand-in"),
    ("docs/index.md", "README.md has the same block, and a test compares them"),
    ("docs/reliability.md", "the store is an example"),
    ("docs/reliability.md", "the stores are examples"),
    ("docs/reproduction.md", "minutes to hours; tests/paper/test_reproduce.py has small ones"),
    ("docs/service.md", "tests/docs/test_service_page.py runs it, against a server with tokens"),
    ("docs/service.md", "an address of nobody"),
    ("docs/service.md", "a server"),
    ("docs/theory.md", "it simulates twenty surveys, which takes a minute"),
]

OWN_TEST = {
    "docs/integrations.md": "tests/docs/test_integrations_page.py"
}  # it skips what is not installed


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text(page: Path | str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [page for page in pages() if blocks(text(page)) and name(page) not in OWN_TEST],
    ids=name,
)
def test_the_page_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    with quiet_terminal():
        check(page, run(page, tmp_path))


def test_few_blocks_are_not_run_and_all_of_them_are_listed_here() -> None:
    found = [
        (name(page), block.why_not)
        for page in pages()
        for block in blocks(text(page))
        if block.why_not
    ]
    assert found == NOT_RUN


def test_the_first_steps_are_at_most_six_thousand_words() -> None:
    first_steps = text(ROOT / "mkdocs.yml").split("\n  - First steps:\n")[1].split("\n  - ")[0]
    path = [DOCS / page for page in re.findall(r": (\S+\.md)$", first_steps, re.MULTILINE)]
    notebook = json.loads(text(ROOT / "examples" / "first.ipynb"))  # start.md names it
    cells = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert len(path) >= 8
    assert sum(len(words.split()) for words in [*map(text, path), *cells]) <= 6_000


def test_the_documentation_is_shorter_than_that_of_release_0_2_0() -> None:
    words = {name(page): len(text(page).split()) for page in DOCS.rglob("*.md")}
    assert sum(words.values()) + len(text("README.md").split()) <= 65_500  # it had 66,676


def test_every_picture_is_there_and_is_used() -> None:
    used = {picture for page in pages() for picture in pictures(text(page))}
    kept = {path.name for path in (DOCS / "images").glob("*.png")}
    assert used == kept
    assert set(FROM_ELSEWHERE) <= kept
    too_large = [
        path.name for path in (DOCS / "images").glob("*.png") if path.stat().st_size > 300_000
    ]
    assert too_large == []


def test_outputs_are_compared_by_words_and_by_numbers() -> None:
    assert same_output("cost 11,971\n  of 12000", "cost 11,970 of  12000\n")
    assert not same_output("cost 100", "cost 101")
    assert not same_output("cost 100", "price 100")
    assert same_output("0.12 and 1.5e-07", "0.13 and 1.4e-07")
    assert not same_output("0.12", "0.14")
    assert same_output("first 2 ... last 3", "first 2 second 7 last 3")
    assert not same_output("first ... last 3", "first second last 4")
    assert not same_output("first ... last 3", "first second third")


def test_what_a_learned_model_states_may_differ_by_as_much_as_is_promised() -> None:
    shown = (
        "819 of 2500 points are shown: 109 above 7 and 710 below; at most 31 of them are wrong; 1681 "
        "are undecided. Between 7.1 and 9.2 % of all points. Expected F1 0.94 (0.60 to 0.997)."
    )
    assert same_output(
        shown,
        "829 of 2500 points are shown: 113 above 7 and 716 below; at most 27 of them are wrong; 1720 "
        "are undecided. Between 6.3 and 10.1 % of all points. Expected F1 0.93 (0.58 to 1.00).",
    )
    assert not same_output(shown, shown.replace("109", "116"))  # more than 5 %
    assert not same_output(shown, shown.replace("1681", "1590"))
    assert not same_output(shown, shown.replace("819", "870"))
    assert not same_output(shown, shown.replace("31 of", "40 of"))  # more than a quarter
    assert not same_output(shown, shown.replace("9.2 %", "11 %"))
    assert not same_output(shown, shown.replace("0.60", "0.57"))  # more than 0.02
    assert not same_output(shown, shown.replace("above 7", "above 8"))
    assert same_output("Classification(9 above, 2 below)", "Classification(10 above, 1 below)")
    assert not same_output("Classification(9 above, 2 below)", "Classification(11 above, 2 below)")


def test_the_reference_has_every_key_of_a_problem_file() -> None:
    page = text("docs/reference/problem-file.md")
    keys = set(ProblemSpec.model_fields)
    for section in SECTIONS:
        keys |= set(ProblemSpec.model_fields[section].annotation.model_fields)
    missing = [key for key in sorted(keys) if f"`{key}" not in page and f"`[{key}]`" not in page]
    assert missing == []


def test_the_page_on_stopping_has_every_limit() -> None:
    page = text("docs/how-to/stop.md").split("\n## ")[0]
    assert [limit for limit in LIMITS if f"`{limit}`" not in page] == []


def test_the_reference_has_every_public_name() -> None:
    there = re.findall(
        r"^::: truvar\.(?:\w+\.)*(\w+)$", text("docs/reference/python.md"), flags=re.MULTILINE
    )
    assert sorted(set(truvar.__all__) - {*there, "__version__"}) == []


def test_the_pages_name_every_policy_and_every_command() -> None:
    policies = text("docs/policies.md")
    commands = add_commands(text("docs/reference/command-line.md"))
    assert [name for name in policy_classes() if f"(`{name}`)" not in policies] == []
    assert [command.name for command in COMMANDS if f"`{command.name}`" not in commands] == []


def test_the_architecture_has_every_package_in_the_order_that_is_enforced() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    declared = [
        re.findall(r"\w+", layer)
        for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]
    ]
    page = text("docs/architecture.md")
    rows = re.findall(
        r"^\| ((?:`\w+/?`(?:, )?)+) \|",
        page[: page.index("## One measurement")],
        flags=re.MULTILINE,
    )
    described = [re.findall(r"\w+", row) for row in rows]
    names = {
        path.stem
        for path in (ROOT / "src" / "truvar").iterdir()
        if path.is_dir() or path.suffix == ".py"
    }
    names -= {"__init__", "__main__", "__pycache__"}
    assert {name for row in described for name in row} == names
    height = {name: -number for number, layer in enumerate(declared) for name in layer}
    lowest = [min(height[name] for name in row) for row in described]
    assert lowest == sorted(lowest)


def test_the_files_that_the_pages_name_exist() -> None:
    for page in pages():
        if page.name != "comparison.md":  # whose files are those of others
            named = re.findall(
                r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+?)(?:::\w+)?`", text(page)
            )
            assert [file for file in named if not (ROOT / file).exists()] == [], page
