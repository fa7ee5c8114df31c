"""A release is one version everywhere, and its core runs alone. `make release-check` tries the
wheel itself."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.repository.test_layers import OPTIONAL
from tests.repository.test_packaging import release_check

from truvar import __version__

ROOT = Path(__file__).parents[2]
HIDDEN = (
    f"import sys; sys.modules.update(dict.fromkeys({[*OPTIONAL, 'distributed', 'playwright']}))"
)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads(text("pyproject.toml"))
    assert (
        project["tool"]["hatch"]["version"]["path"] == "src/truvar/__init__.py"
    )  # the wheel's is that of the package
    (cited,) = re.findall(r'^version: "(.+)"$', text("CITATION.cff"), flags=re.MULTILINE)
    (day,) = re.findall(r"^date-released: (.+)$", text("CITATION.cff"), flags=re.MULTILINE)
    released = re.findall(r"^## \[(\d.*?)\] - (.+)$", text("CHANGELOG.md"), flags=re.MULTILINE)
    assert released[0] == (cited, day) == (__version__, day)


def without_extras(code: str, folder: Path) -> str:
    """Return what the code prints where no optional library is installed."""
    done = subprocess.run(
        [sys.executable, "-c", f"{HIDDEN}\n{code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_light_core_runs_the_readme_and_shows_its_help(tmp_path: Path):
    example = release_check().readme_example(tmp_path)  # as `make release-check` runs it
    out = without_extras(f"{example}\nfrom truvar.cli import main\nmain(['--help'])", tmp_path)
    assert "each with a probability of at least 95 %, given the model" in out
    assert "usage: truvar" in out
