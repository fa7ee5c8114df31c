"""The versions in pyproject.toml, in the recipe of conda-forge and in the code agree."""

from __future__ import annotations

import importlib.util
import re
import tomllib
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
