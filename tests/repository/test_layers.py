"""The rooms of src/truvar stand in one order, and a file imports only from the rooms above its own.

The check reads the source and runs none of it: an import inside a function or under `TYPE_CHECKING` counts as
much as one at the top of the file.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "truvar"

# From the top down; docs/architecture.md says what each is for.
LAYERS = (
    "errors",
    "wording",
    "frames",
    "domain",
    "kernels",
    "actions",
    "factor",
    "posterior",
    "engines",
    "fit",
    "confidence",
    "regions",
    "cover",
    "policies",
    "loop",
    "theory",
    "result",
    "belief",
    "outlook",
    "spelling",
    "journal",
    "ledger",
    "answers",
    "lookup",
    "study",
    "pool",
    "runner",
    "problem",
    "store",
    "intake",
    "backtest",
    "report",
    "service",
    "integrations",
    "paper",
    "testing",
    "cli",
    "__main__",
)
ENGINE = "_engine"  # arrays in, arrays out: open to all, knows none of them
NUMERICAL = frozenset({ENGINE, *LAYERS[: LAYERS.index("report")]})

# Imports against the order, each inside one function: (layer, function, imported layer).
UPWARD = frozenset(
    {
        ("study", "plot", "report"),
        ("study", "run", "report"),
        ("study", "run", "runner"),
        ("study", "_stored", "store"),
    }
)

# The extras of pyproject.toml, by what one imports.
OPTIONAL = (
    "matplotlib",
    "sqlalchemy",
    "psycopg",
    "fastapi",
    "uvicorn",
    "httpx",
    "dask",
    "optuna",
    "botorch",
    "xarray",
    "geopandas",
)

DATABASES = frozenset({"sqlalchemy", "psycopg", "sqlite3"})
NOT_NUMERICAL = DATABASES | {
    *("matplotlib", "PIL", "plotly", "seaborn"),
    *("fastapi", "starlette", "uvicorn", "httpx", "requests", "http", "urllib.request", "webbrowser"),
    *("argparse", "optparse", "getopt", "click", "typer", "rich", "tqdm"),
    *("dask", "distributed", "optuna", "torch", "gpytorch", "botorch"),
}
# What a numerical layer may import all the same.
PERMITTED = {"store": DATABASES}


@dataclass(frozen=True)
class Import:
    name: str  # dotted and absolute: `from .domain import Domain` in truvar.study.study is truvar.domain.domain.Domain
    line: int
    functions: tuple[str, ...]  # around it, outermost first


def imports(source: str, package: tuple[str, ...]) -> Iterator[Import]:
    """Every import of a file whose relative imports start from `package`."""

    def absolute(level: int, name: str) -> str:
        return ".".join([*package[: len(package) - level + 1], name] if level else [name])

    def walk(node: ast.AST, functions: tuple[str, ...]) -> Iterator[Import]:
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                prefix = f"{node.module}." if node.module else ""
                names = [absolute(node.level, prefix + alias.name) for alias in node.names]
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(dotted)), *_],
            ):
                name = dotted.lstrip(".")
                names = [absolute(len(dotted) - len(name), name)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions = (*functions, node.name)
        for name in names:
            yield Import(name, node.lineno, functions)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, functions)

    return walk(ast.parse(source), ())


def layers_reached(name: str, rooms: set[str], behind_root: frozenset[str]) -> frozenset[str]:
    """The layers behind an imported name: behind a public name of the package, all of its __init__."""
    root, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    if root != "truvar":
        return frozenset()
    return frozenset({first}) if first in rooms else behind_root


def outside_libraries(name: str) -> frozenset[str]:
    return frozenset(library for library in NOT_NUMERICAL if f"{name}.".startswith(f"{library}."))


def violations(tree: Path) -> list[str]:
    """What is wrong in a source tree whose root is the package `truvar`, one line each."""
    root = tree / "__init__.py"
    rooms = {ENGINE, *LAYERS, *(path.stem for path in tree.iterdir())}
    unplaced = rooms - {ENGINE, *LAYERS}  # reported once, for the file itself
    behind_root: frozenset[str] = frozenset()
    if root.exists():
        for found in imports(root.read_text(encoding="utf-8"), ("truvar",)):
            behind_root |= layers_reached(found.name, rooms, frozenset())

    wrong = []
    for path in sorted(tree.rglob("*.py")):
        if path == root:
            continue
        parts = path.relative_to(tree).with_suffix("").parts
        layer = parts[0]
        if layer not in LAYERS and layer != ENGINE:
            wrong.append(f"{'/'.join(parts)}.py: belongs to no layer; give {layer!r} its place in LAYERS")
            continue
        # The layers a file may import from, its own included: a package's files know each other.
        open_to_it = {ENGINE} if layer == ENGINE else {ENGINE, *LAYERS[: LAYERS.index(layer) + 1]}
        for found in imports(path.read_text(encoding="utf-8"), ("truvar", *parts[:-1])):
            where = f"{'/'.join(parts)}.py:{found.line}: {layer} imports {found.name}"
            excused = {upward for name, function, upward in UPWARD if name == layer and function in found.functions}
            too_low = layers_reached(found.name, rooms, behind_root) - open_to_it - excused - unplaced
            if too_low:
                wrong.append(f"{where}: {', '.join(sorted(too_low))} is not above {layer}")
            if layer in NUMERICAL and outside_libraries(found.name) - PERMITTED.get(layer, frozenset()):
                wrong.append(f"{where}: no business of the numerical part")
    return wrong


def test_a_file_imports_only_from_the_layers_above_it():
    assert list(SOURCE.rglob("*.py")), f"no source in {SOURCE}"
    wrong = violations(SOURCE)
    assert not wrong, "\n" + "\n".join(wrong)


def test_importing_truvar_loads_no_optional_library():
    code = f"import sys, truvar; print(*[name for name in {OPTIONAL} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


# The checker itself, on trees of one or two files.


@pytest.fixture
def check(tmp_path):
    def check(**files: str) -> list[str]:
        """Violations of a tree with these files; `policies__truvar` is policies/truvar.py."""
        tree = tmp_path / "truvar"
        for name, source in {"__init__": "", **files}.items():
            path = tree / ("__init__.py" if name == "__init__" else name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)
        return violations(tree)

    return check


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("study", "from truvar.domain.domain import Domain")("study", "from .domain import Domain"),
        ("study", "from . import domain, regions"),
        ("study", "import truvar.algorithm.loop"),
        ("study", "from truvar import _engine"),
        ("study", "def plot(self):\n    from .report import figure"),
        ("policies__truvar", "from ..regions import Regions"),
        ("policies__truvar", "from .myopic import EI"),
        ("_engine__gain", "from ._numpy import twin"),
        ("domain", "import numpy as np\nfrom scipy.stats import qmc"),
        ("store", "import sqlite3\ndef connect():\n    import sqlalchemy"),
        ("report__figures", "import matplotlib.pyplot as plt"),
        ("cli", "import argparse\nfrom truvar import Study"),
    ],
)
def test_imports_in_order_pass(check, name, source):
    assert check(**{name: source}) == []


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("domain", "from truvar.study.study import Study", "domain.py:1: domain imports truvar.study.study.Study")(
            "domain", "from .study import Study", "study is not above domain"
        ),
        ("domain", "from . import study", "study is not above domain"),
        ("domain", "import truvar.study.study as s", "study is not above domain"),
        ("domain", "def f():\n    from .study import Study", "domain.py:2"),
        ("domain", "class A:\n    async def f(self):\n        import truvar.study.study", "domain.py:3"),
        ("domain", "if TYPE_CHECKING:\n    from .study import Study", "domain.py:2"),
        ("domain", "import importlib\nimportlib.import_module('truvar.study.study')", "domain.py:2"),
        ("domain", "from importlib import import_module\nimport_module('.study', 'truvar')", "domain.py:2"),
        ("policies__truvar", "from ..loop import step", "loop is not above policies"),
        ("policies__truvar", "from .. import study", "study is not above policies"),
        ("study", "from .report import figure", "report is not above study"),
        ("study", "def result(self):\n    from .report import figure", "report is not above study"),
        ("loop", "def plot(self):\n    from .report import figure", "report is not above loop"),
        ("_engine__gain", "from ..errors import TruvarError", "errors is not above _engine"),
        ("_engine__gain", "from truvar.domain.domain import Domain", "domain is not above _engine")(
            "helpers", "", "helpers.py: belongs to no layer"
        ),
        (
            "study",
            "def plot(self):\n    import matplotlib.pyplot as plt",
            "no business of the numerical part",
        ),
        ("loop", "from matplotlib import pyplot", "no business of the numerical part"),
        ("_engine__gain", "import argparse", "no business of the numerical part"),
        ("problem", "import sqlite3", "no business of the numerical part"),
        ("store", "from fastapi import FastAPI", "no business of the numerical part"),
        ("backtest", "from urllib import request", "no business of the numerical part"),
    ],
)
def test_imports_against_the_order_are_found(check, name, source, expected):
    (found,) = check(**{name: source})
    assert expected in found


def test_a_public_name_counts_as_all_that_the_package_imports(check):
    public = "from .study import Study"
    assert check(__init__=public, problem="from truvar import Study") == []
    (found,) = check(__init__=public, problem="", loop="import truvar as tv")
    assert "study is not above loop" in found


def test_a_file_without_a_layer_is_found_once(check):
    (found,) = check(__init__="from .problem import load", study="from .helpers import help", helpers="")
    assert "helpers.py: belongs to no layer" in found


def test_libraries_are_told_apart_from_those_whose_name_starts_alike(check):
    assert check(domain="import httptools, richter, urllib.parse") == []
