"""The public names: the same for Python, type checkers and `__all__`, and imported only when
used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import truvar
import truvar.acquisition
from truvar._names import PUBLIC_MODULES

PACKAGES = sorted(
    path.parent.name
    for path in Path(truvar.__file__).parent.glob("[a-z]*/__init__.py")
    if path.parent.name != "service" or find_spec("fastapi")
)

HEAVY = (
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "numba",
    "sqlalchemy",
    "matplotlib",
    "pydantic",
    "jinja2",
)


def loaded_by(code: str) -> set[str]:
    """Return the heavy libraries that a fresh interpreter has imported after running the code."""
    whole = (
        f"{code}\nimport sys\nprint()\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def names_for_type_checkers(package: object) -> dict[str, str]:
    """Return name -> module for the imports under `if TYPE_CHECKING:` in the package's
    `__init__.py`."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    found = {}
    for statement in (statement for block in blocks for statement in block.body):
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            names = import_module(statement.module).__all__ if alias.name == "*" else [alias.name]
            assert alias.asname in (None, alias.name)
            found.update(dict.fromkeys(names, statement.module))
    return found


@pytest.mark.parametrize(
    ("package", "table"),
    [(truvar, PUBLIC_MODULES), (truvar.acquisition, truvar.acquisition._MODULES)],
    ids=["truvar", "acquisition"],
)
def test_table_type_checking_block_and_all_agree(package, table):
    assert names_for_type_checkers(package) == table
    assert set(table) <= set(package.__all__) <= set(dir(package))


def test_truvar_offers_its_version_and_the_names_of_the_table():
    assert set(truvar.__all__) == {"__version__", *PUBLIC_MODULES}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_resolves_the_names_that_it_offers(name):
    package = import_module(f"truvar.{name}")
    assert package.__doc__
    for offered in package.__all__:
        if name == "integrations":  # modules, most of which need a library
            assert Path(package.__file__).with_name(f"{offered}.py").exists()
        else:
            assert getattr(package, offered) is not None
            assert not Path(package.__file__).with_name(f"{offered}.py").exists()


def test_importing_packages_that_offer_names_loads_no_numerical_library():
    lazy = ("acquisition", "algorithm", "domain", "inference", "models", "paper", "problem")
    lazy += ("remote", "service", "storage", "study", "tabular")
    assert loaded_by("import " + ", ".join(f"truvar.{name}" for name in lazy)) == set()


@pytest.mark.parametrize("name", truvar.__all__)
def test_every_public_name_resolves_to_the_object_of_its_module(name):
    value = getattr(truvar, name)
    if name in PUBLIC_MODULES:
        assert value is getattr(import_module(PUBLIC_MODULES[name]), name)


@pytest.mark.parametrize("name", sorted(truvar._SUBPACKAGES))
def test_subpackages_are_attributes_without_an_import_of_their_own(name):
    assert getattr(truvar, name) is sys.modules[f"truvar.{name}"]


def test_every_subpackage_can_be_reached_by_attribute():
    folders = {path.parent.name for path in Path(truvar.__file__).parent.glob("*/__init__.py")}
    assert folders - {"_numba", "cli", "backtest"} == truvar._SUBPACKAGES
    for name in truvar._PUBLIC_MODULES:
        assert getattr(truvar, name).__name__ == f"truvar.{name}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'truvar' has no attribute 'Nonsense'"):
        _ = truvar.Nonsense


def test_backtest_is_the_function_even_after_its_package_is_imported():
    code = "import truvar, truvar.backtest.simulation; assert truvar.backtest.__name__ == 'backtest', truvar.backtest"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_truvar_loads_no_numerical_library():
    assert loaded_by("import truvar") == set()
    assert "numpy" in loaded_by("import truvar; truvar.Domain")


def test_completion_shows_public_names_only() -> None:
    truvar.Study.ask  # noqa: B018 - whatever was used before
    shown = set(dir(truvar))
    modules = {"exceptions", "integrations", "notebook", "paper", "plot", "testing", "theory"}
    assert shown == {*truvar.__all__, *modules}
    for name in shown:
        assert getattr(truvar, name) is not None
