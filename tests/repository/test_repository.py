"""The repository is meant for anyone: no paths of one machine, no download hosts, no stale
commands."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.repository.test_packaging import release_check

ROOT = Path(__file__).parents[2]

# Written in pieces, so that this file does not contain what it looks for.
HOSTS = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "ana" + "conda.org",
    "npm" + "js.org",
    "npm" + "js.com",
]
FOLDERS = ["work", "root", "farm"]
WORDS = ["sub" + "agent", r"\bC" + "EO" + r"\b"]
UNWANTED = re.compile(
    "|".join(
        [
            *(re.escape(host) for host in HOSTS),
            # absolute, not a folder of that name somewhere
            rf"(?<![\w.~*-])/(?:{'|'.join(FOLDERS)})/",
            *WORDS,
        ]
    )
)


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))


def make_commands(markdown: str) -> list[str]:
    """The targets of the `make` commands in a page, in its code blocks and between backticks."""
    return re.findall(r"(?:^|`|\$ )make ([a-z-]+)", markdown, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def tracked_files() -> list[Path]:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_a_machine_or_a_download_host(tracked_files):
    found = []
    for path in tracked_files:
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
            found += [
                f"{path.relative_to(ROOT)}:{number}: {match.group()}"
                for match in UNWANTED.finditer(line)
            ]
    assert not found


def test_every_tracked_file_is_in_the_sdist_or_left_out_by_name(tracked_files):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    sdist = project["tool"]["hatch"]["build"]["targets"]["sdist"]
    included = {name.strip("/") for name in sdist["include"]}
    included |= {"pyproject.toml", "README.md", "LICENSE", ".gitignore"}  # always part of it
    left_out = {name.strip("/") for name in release_check().NOT_IN_SDIST}
    assert {path.relative_to(ROOT).parts[0] for path in tracked_files} == included | left_out
    assert not included & left_out


def test_unwanted_text_is_recognised():
    for folder in FOLDERS:
        assert UNWANTED.search(f"open('/{folder}/data.csv')")
        assert not UNWANTED.search(f"examples/{folder}/data.csv")
    for host in HOSTS:
        assert UNWANTED.search(f"https://{host}/simple")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md"])
def test_make_commands_in_the_pages_exist(page):
    commands = make_commands((ROOT / page).read_text(encoding="utf-8"))
    assert commands, f"{page} shows no make command"
    assert set(commands) <= make_targets()


def test_every_make_target_for_people_is_in_the_help():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    explained = set(re.findall(r"^([a-z-]+):.*## \S", makefile, flags=re.MULTILINE))
    assert set(phony.split()) == explained == make_targets()
