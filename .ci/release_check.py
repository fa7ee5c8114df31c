"""Checks that a release must pass: `make release-check`.

Wheel and sdist are built into `dist/` from a clean state, the sdist holds what git tracks and
nothing else, the wheel holds the package and nothing else, and the wheel, installed in an empty
environment with the light core alone, shows its help and runs the README's example. The package
index takes both: the wheel is for every system, and no requirement is an address.

With the name of a tag, such as v0.3.0, the version must be the tag's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# Libraries of extras that dependencies of the core bring: scikit-learn 1.9 needs it.
WITH_DEPENDENCIES = {"narwhals"}
NOT_IN_SDIST = (".binder/", ".ci/", ".github/", ".pre-commit-config.yaml")


def main(tag: str | None = None) -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    (wheel,) = DIST.glob("*.whl")
    (sdist,) = DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    check_contents(wheel, sdist)
    check_metadata(wheel, tag)
    with tempfile.TemporaryDirectory() as folder:
        try_wheel(wheel, Path(folder))
    print(f"{wheel.name} and {sdist.name} are fit to be released")
    return 0


def check_contents(wheel: Path, sdist: Path) -> None:
    """Everything that git tracks, and nothing else."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listing.stdout.split("\0") if name}
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    same(
        "the sdist",
        inside - {"PKG-INFO"},
        {name for name in tracked if not name.startswith(NOT_IN_SDIST)},
    )
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    same("the wheel", inside, package)


def check_metadata(wheel: Path, tag: str | None) -> None:
    """Check what the package index refuses, and that the wheel has the version of the tag."""
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"the wheel must be for every system, got {wheel.name}")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
    addresses = [each for each in metadata.get_all("Requires-Dist", []) if "@" in each]
    if addresses:
        raise SystemExit(f"the package index takes no requirement by address, got {addresses}")
    version = metadata["Version"]
    if "+" in version:
        raise SystemExit(f"the package index takes no local version, got {version}")
    if tag is not None and tag != f"v{version}":
        raise SystemExit(f"the tag {tag} must be v{version}, the version in src/truvar/__init__.py")


def same(what: str, found: set[str], wanted: set[str]) -> None:
    if found != wanted:
        raise SystemExit(
            f"{what} lacks {sorted(wanted - found)} and has {sorted(found - wanted)} too many"
        )


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel, ask for help and run the README's example outside the repository."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    truvar = folder / "venv" / "bin" / "truvar"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    names = re.findall(
        r"^([\w.-]+)==", run(python, "-m", "pip", "list", "--format=freeze", cwd=folder), flags=re.M
    )
    heavy = ({name.lower() for name in names} & optional_libraries()) - WITH_DEPENDENCIES
    if heavy:
        raise SystemExit(
            f"the light core brings no optional library, but {sorted(heavy)} came with the wheel"
        )
    run(truvar, "--help", cwd=folder)
    if wheel.name.split("-")[1] not in run(truvar, "--version", cwd=folder):
        raise SystemExit("truvar --version is not the wheel's")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    if example is None:
        raise SystemExit("README.md has no example")
    print(run(python, "-c", example[1], cwd=folder), end="")


def optional_libraries() -> set[str]:
    """Return the libraries of the extras that users may install, without truvar itself."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    chosen = re.findall(r"[a-z]+", extras["all"][0].partition("[")[2])
    return {re.match(r"[\w-]+", library)[0] for extra in chosen for library in extras[extra]} - {
        "truvar"
    }


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return the output of a command; end the check if it fails."""
    print("+", *(str(word).split("\n", 1)[0] for word in command), flush=True)
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
