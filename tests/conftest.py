"""Settings for all tests: no windows, no time limit per Hypothesis example, the same examples in
every CI."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.helpers.postgres import server

os.environ.setdefault("MPLBACKEND", "Agg")
# The tests run in a process per processor. Threads of BLAS on top of these wait for one another in
# busy loops, which doubles the processor time. Set here, in the process that starts the workers, it
# holds for all that they start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

IN_CI = bool(os.environ.get("CI"))

# The first example of a test may compile a kernel, so a deadline would measure Numba.
settings.register_profile("truvar", deadline=None, derandomize=IN_CI, print_blob=IN_CI)
settings.load_profile("truvar")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Let the garbage collector pass over the modules and tests that were collected: they stay
    to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the matrix-free engine search as on a large domain; on a small one it would score
    every candidate."""
    monkeypatch.setattr("truvar.engines.lazy.MAX_NORMS_COST_SHARE", float("inf"))
    monkeypatch.setattr("truvar.engines.search.NEAR_COUNTS", (16, 64))
    monkeypatch.setattr("truvar.engines.search.MAX_EXAMINE_SHARE", float("inf"))
    monkeypatch.setattr("truvar.engines._norms.CELL_SIZE", 8)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of measured data sets, which are not part of the repository."""
    folder = os.environ.get("TRUVAR_DATA")
    if not folder:
        pytest.skip("needs measured data: set TRUVAR_DATA to their folder")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(
            f"TRUVAR_DATA should name a folder, and {folder!r} is none; correct it or unset it"
        )
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server, without the name of a database; skipped where there is
    none to be had."""
    pytest.importorskip("psycopg", reason="needs psycopg, the driver of PostgreSQL")
    with server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store: a file of SQLite, and the database of a real PostgreSQL server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lake.db'}"
    import psycopg

    url = f"{request.getfixturevalue('postgres')}/postgres"
    with psycopg.connect(url, autocommit=True) as connection:
        tables = "truvar_events, truvar_studies, truvar_schema, truvar_tokens, truvar_deletions"
        connection.execute(f"DROP TABLE IF EXISTS {tables}")
    return url


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """A server without tokens, as (Api, URL of its store)."""
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    from benchmarks.service import server
    from tests.helpers.server import Api, store_url

    store = store_url(tmp_path_factory.mktemp("served") / "studies.db")
    with server(store) as url:
        yield Api(url), store


@pytest.fixture(scope="session")
def guarded(tmp_path_factory):
    """A server with tokens, as (its address, the token to write, the token to read)."""
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    from benchmarks.service import server
    from tests.helpers.server import store_url

    write = "w" * 20
    read = "r" * 20
    store = store_url(tmp_path_factory.mktemp("guarded") / "studies.db")
    with server(store, environment={"TRUVAR_TOKEN": write, "TRUVAR_READ_TOKEN": read}) as url:
        yield url, write, read
