"""The layers declared in pyproject.toml hold, and an import against them is found."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason='needs import-linter: pip install "truvar[lint]"')

ROOT = Path(__file__).parents[2]

# The extras of pyproject.toml, by the name one imports.
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
    "gest_api",
    "bluesky",
    "mlflow",
    "mcp",
    "ray",
)


def lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with this repository's contracts on the package below `source`."""
    code = "import sys; from importlinter.cli import lint_imports_command as run; run(sys.argv[1:])"
    command = [sys.executable, "-c", code, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source tree that a test may break."""
    shutil.copytree(
        ROOT / "src",
        tmp_path / "src",
        ignore=shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc"),
    )
    return tmp_path / "src"


def test_the_package_keeps_its_layers() -> None:
    done = lint_imports(ROOT / "src")
    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        (
            "domain/goals/_base.py",
            "from truvar.study.study import Study",
            "truvar.domain is not allowed to import",
        ),
        (
            "models/fit.py",
            "def f():\n    import matplotlib",
            "truvar.models is not allowed to import matplotlib",
        ),
        ("study/result.py", "import sqlite3", "truvar.study is not allowed to import sqlite3"),
    ],
)
def test_an_import_against_the_layers_is_found(
    copy: Path, module: str, line: str, broken: str
) -> None:
    path = copy / "truvar" / module
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert broken in done.stdout


def test_a_package_without_a_layer_is_found(copy: Path) -> None:
    (copy / "truvar" / "helpers.py").write_text(
        '"""Nobody said where this belongs."""\n', encoding="utf-8"
    )
    done = lint_imports(copy)
    assert done.returncode == 1
    assert "helpers" in done.stdout


def test_importing_truvar_loads_no_optional_library() -> None:
    code = f"import sys, truvar; truvar.Study; print(*[name for name in {OPTIONAL} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []
