"""The versions in pyproject.toml, in the recipe of conda-forge and in the code agree."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import truvar

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)["project"]
RECIPE = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8")


def minimum_versions() -> Any:
    spec = importlib.util.spec_from_file_location(
        "minimum_versions", ROOT / ".ci" / "minimum_versions.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.minimum_versions


def section(name: str) -> set[str]:
    """Return the items of a list of the recipe."""
    match = re.search(rf"^ *{name}:\n((?: +- .*\n)+)", RECIPE, flags=re.M)
    assert match is not None
    return {line.strip().removeprefix("- ") for line in match[1].splitlines()}


def as_recipe(requirement: str) -> str:
    """Return a requirement as the recipe writes it: "numpy >=1.26,<3"."""
    return re.sub(r"(?<=[a-z0-9])>=", " >=", requirement, count=1)


def test_the_recipe_has_the_requirements_of_the_project() -> None:
    assert section("run") - {"python >=${{ python_min }}"} == {
        as_recipe(each) for each in PROJECT["dependencies"]
    }
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in RECIPE
    assert f'version: "{truvar.__version__}"' in RECIPE
    assert PROJECT["description"] in RECIPE


def test_what_the_recipe_says_about_extras_is_what_the_extras_say() -> None:
    extras = {
        as_recipe(each)
        for extra in ("plot", "store", "xarray", "geo")
        for each in PROJECT["optional-dependencies"][extra]
    }
    extras = {each.replace("matplotlib ", "matplotlib-base ") for each in extras}
    assert section("run_constraints") <= extras


def test_the_oldest_versions_are_read_from_the_project() -> None:
    pinned = minimum_versions()(PYPROJECT, ["plot", "store"])
    assert pinned[:2] == ["numpy==1.26", "scipy==1.16"]
    assert "matplotlib==3.8" in pinned
    assert "psycopg[binary]==3.1.4" in pinned


def test_a_requirement_without_a_floor_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"must have a floor, such as numpy>=1.26, got 'numpy'"):
        minimum_versions()('[project]\ndependencies = ["numpy"]\n', [])


def test_scipy_has_the_argument_that_its_floor_is_for() -> None:
    """`qmc.Sobol(rng=...)` came with SciPy 1.15; before it was `seed`. `optimize.nnls` is right
    from 1.16 on."""
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert "qmc.Sobol" in code
    assert not re.search(r"qmc\.Sobol\([^)]*seed=", code)
    (floor,) = [each for each in PROJECT["dependencies"] if each.startswith("scipy")]
    assert floor == "scipy>=1.16,<2"


def release_check() -> Any:
    spec = importlib.util.spec_from_file_location(
        "release_check", ROOT / ".ci" / "release_check.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def workflow(name: str) -> str:
    path = ROOT / ".github" / "workflows" / name
    if not path.exists():
        pytest.skip("the sdist has no workflows")
    return path.read_text(encoding="utf-8")


def test_every_python_version_of_the_classifiers_is_tested_and_tried_by_ci() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    listed = ", ".join(f'"{version}"' for version in named)
    assert workflow("ci.yml").count(f"matrix: {{ python: [{listed}] }}") == 2
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert f"Python {named[0]} to {named[-1]}" in (ROOT / "PUBLISHING.md").read_text("utf-8")


def test_the_release_workflow_needs_no_password() -> None:
    text = workflow("release.yml")
    assert "id-token: write" in text
    assert "make release-check TAG=" in text
    assert "secrets." not in text
    assert "password" not in text.replace("there is no password", "")


def test_every_tracked_file_is_in_the_sdist_or_left_out_by_the_release_check() -> None:
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    sdist = tomllib.loads(PYPROJECT)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    # hatchling adds the last four to every sdist.
    taken = (*sdist, "/pyproject.toml", "/README.md", "/LICENSE", "/.gitignore")
    left_out = release_check().NOT_IN_SDIST
    for name in filter(None, listing.stdout.split("\0")):
        is_taken = any(f"/{name}" == each or f"/{name}".startswith(f"{each}/") for each in taken)
        assert is_taken != name.startswith(left_out), name


def test_the_lock_file_satisfies_the_project_and_names_no_index() -> None:
    requirements = pytest.importorskip("packaging.requirements")
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|\s@\s|--(?:index|extra|find|trusted)", lock)
    lines = [line for line in lock.splitlines() if not line.startswith("#")]
    pinned: dict[str, set[str]] = {}
    for line in lines:
        match = re.match(r"([a-z0-9.-]+)(?:\[[a-z,]+\])?==([^\s;]+)", line)
        assert match is not None, line
        pinned.setdefault(match[1], set()).add(match[2])
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"]]
    for extra in ("test", "lint", "release", "audit"):
        wanted += extras[extra]
    for text in wanted:
        each = requirements.Requirement(text)
        if each.name == "truvar":
            wanted_by = [each for name in each.extras for each in extras[name]]
            wanted += [further for further in wanted_by if further not in wanted]
            continue
        name = re.sub(r"[-_.]+", "-", each.name).lower()
        assert name in pinned, f"{name} is missing: make lock"
        assert all(each.specifier.contains(version) for version in pinned[name]), text


def test_what_the_audit_leaves_out_is_explained() -> None:
    marks = set()
    for path in (ROOT / "src").rglob("*.py"):
        for mark in re.findall(r"#\s*nosec(.*)", path.read_text(encoding="utf-8")):
            codes = re.findall(r"B\d{3}", mark)
            assert codes, f"{path.name}: a mark names what it leaves out, such as # nosec B602"
            marks |= set(codes)
    explained = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert marks
    assert not [code for code in marks if code not in explained]


@pytest.mark.parametrize("kernel", [None, "matern52"])
def test_a_study_with_a_learned_or_named_kernel_does_not_load_scikit_learn(
    kernel: str | None,
) -> None:
    """Why it is no extra: start-up would not gain."""
    code = (
        "import sys\n"
        "import numpy as np, truvar as tv\n"
        "domain = tv.Domain.grid(x=np.linspace(0, 1, 11))\n"
        f"study = tv.Study(domain, tv.LevelSet(0.5), kernel={kernel!r}, noise=0.01)\n"
        "for _ in range(6):\n"
        "    suggestion = study.ask()\n"
        "    study.tell(suggestion, suggestion.point['x'])\n"
        "study.result().classify()\n"
        "print('sklearn' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def a_wheel(folder: Path, name: str = "truvar-1.0-py3-none-any.whl", **fields: str) -> Path:
    wheel = folder / name
    lines = {"Metadata-Version": "2.4", "Name": "truvar", "Version": "1.0"} | fields
    with zipfile.ZipFile(wheel, "w") as archive:
        metadata = "".join(f"{key}: {value}\n" for key, value in lines.items())
        archive.writestr("truvar-1.0.dist-info/METADATA", metadata)
    return wheel


def test_a_wheel_that_the_package_index_refuses_is_no_release(tmp_path: Path) -> None:
    check = release_check().check_metadata
    check(a_wheel(tmp_path), None)
    check(a_wheel(tmp_path), "v1.0")
    with pytest.raises(SystemExit, match=r"the tag v1\.1 must be v1\.0"):
        check(a_wheel(tmp_path), "v1.1")
    with pytest.raises(SystemExit, match="takes no local version"):
        check(a_wheel(tmp_path, Version="1.0+mine"), None)
    with pytest.raises(SystemExit, match="takes no requirement by address"):
        check(a_wheel(tmp_path, **{"Requires-Dist": "numpy @ file:///numpy.whl"}), None)
    with pytest.raises(SystemExit, match="must be for every system"):
        check(a_wheel(tmp_path, "truvar-1.0-cp312-cp312-linux_x86_64.whl"), None)
