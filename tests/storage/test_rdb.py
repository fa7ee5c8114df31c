"""Studies in a database: they continue as studies in memory do, and an error leaves them
unchanged."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy
from sqlalchemy import text
from tests.helpers.problems import GRID, KINDS, KNOWN, answer, assert_same, truth

import truvar as tv
from truvar._names import STORED_MODULES
from truvar.cli import main
from truvar.engines import ENGINES
from truvar.exceptions import (
    DamagedStudyError,
    InvalidArgumentError,
    MissingDependencyError,
    SerializationError,
    StorageError,
    StoreNotFoundError,
    StudyExistsError,
    StudyNotFoundError,
)
from truvar.problem import problem_from_dict
from truvar.storage import _migrations as migrations
from truvar.storage import _models as models
from truvar.storage._migrations import UPGRADES, read_version
from truvar.storage.base import MAX_NAME_LENGTH, MAX_STORED_NAME_LENGTH
from truvar.storage.rdb import RDBStorage
from truvar.study import _handlers as handlers

VERSION_1 = Path(__file__).parents[1] / "data" / "store-v1.sql"


def lake(url: str, name: str = "lake", kind: str = "level set with travel") -> tv.Study:
    return KINDS[kind].study(store=url, name=name)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the URL of an empty store in SQLite, for tests that do not depend on the database."""
    return f"sqlite:///{tmp_path / 'file.db'}"


# -- stored studies
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["level set with travel", "learned kernel and noise", "tasks", "table with arrays"]
)
def test_a_study_that_is_loaded_before_every_step_continues_as_one_in_memory(
    url: str, kind: str
) -> None:
    memory = KINDS[kind].study()
    stored = lake(url, kind=kind)
    for k in range(4):
        batch = memory.ask(2)
        assert tv.load(url, "lake").ask(2) == batch
        for suggestion in reversed(batch):
            stored = tv.load(url, "lake")
            for study in (memory, stored):
                study.tell(suggestion, answer(suggestion) + (k == 1))
    stored = tv.load(url, "lake")
    for study in (memory, stored):
        study.correct(3, 0.4)
        study.withdraw(2)
        study.tell(study.domain.point(5), truth(study.domain.point(5)))
        study.note("ümlauts and 'quotes'")
    assert_same(memory, tv.load(url, "lake"))
    assert tv.load(url, "lake").ask() == memory.ask()


@pytest.mark.parametrize(
    "url", ["sqlite"], indirect=True
)  # tests/stress/test_workers.py uses both databases
def test_another_process_makes_the_same_suggestion(url: str) -> None:
    memory = KINDS["level set with travel"].study()
    stored = lake(url)
    for study in (memory, stored):
        study.run(truth, steps=4)
    code = "import sys, truvar as tv; s = tv.load(sys.argv[1], 'lake', author='Ada').ask(); print(repr(s), end='')"
    run = subprocess.run(
        [sys.executable, "-c", code, url], capture_output=True, text=True, check=True
    )
    assert run.stdout == repr(memory.ask())
    stored.refresh()
    assert stored.pending == memory.pending
    assert stored.events["who"].iloc[-1] == "Ada"


def test_two_users_see_the_changes_of_each_other(url: str) -> None:
    one = lake(url)
    other = tv.load(url, "lake")
    first = one.ask()
    second = other.ask()
    assert (first.id, second.id) == (1, 2)
    assert first.point != second.point
    one.tell(second, 0.2)
    other.tell(first, 0.1)
    assert one.steps == 1
    one.refresh()
    assert_same(one, other)
    with pytest.raises(tv.TruvarError, match=r"already has the value 0\.2"):
        other.tell(2, 0.3)
    other.tell(2, 0.2)
    other.withdraw(1)
    with pytest.raises(tv.TruvarError, match="suggestion 1 is not pending"):
        one.withdraw(1)


def test_a_refused_value_is_not_stored(url: str) -> None:
    study = tv.Study(GRID, tv.Maximize(), **{**KNOWN, "noise": 0.0}, store=url, name="exact")
    study.tell(GRID.point(3), 1.0)
    suggestion = study.ask()
    with pytest.raises(tv.TruvarError, match="already known to be 1"):
        study.tell(GRID.point(3), 2.0)
    with pytest.raises(tv.TruvarError, match="already known to be"):
        study.correct(study.tell(GRID.point(3), 1.0), 3.0)
    assert study.events["kind"].tolist() == ["created", "told", "asked", "told"]
    assert study.pending == [suggestion]
    assert_same(study, tv.load(url, "exact"))


def test_a_batch_that_fails_after_some_suggestions_is_not_stored(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = lake(url)
    study.ask()
    choose = handlers.choose
    monkeypatch.setattr(
        handlers,
        "choose",
        lambda *arguments: choose(*arguments) if len(study.pending) < 3 else 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        study.ask(4)
    assert len(study.pending) == 1
    assert_same(study, tv.load(url, "lake"))
    monkeypatch.undo()
    assert study.ask() == KINDS["level set with travel"].study().ask(2)[1]


def test_a_model_that_was_fitted_to_other_data_is_stored(url: str) -> None:
    frame = GRID.to_frame().assign(value=[truth(GRID.point(k)) for k in range(len(GRID))])
    memory = KINDS["learned kernel, known noise"].study()
    stored = KINDS["learned kernel, known noise"].study(store=url, name="lake")
    for study in (memory, stored):
        study.fit(frame.iloc[::3], "value")
    loaded = tv.load(url, "lake")
    assert loaded.kernel == stored.kernel == memory.kernel
    assert loaded.ask() == memory.ask()


def test_stored_hyperparameters_are_not_fitted_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = lake(url, kind="learned kernel and noise")
    study.run(truth, steps=7)
    study.correct(2, 0.7)
    monkeypatch.setattr(
        "truvar.models.hyperparameters.point_estimate.fit",
        lambda *_: pytest.fail("the model was fitted again"),
    )
    assert_same(study, tv.load(url, "lake"))


def test_a_study_can_be_copied_to_another_store_as_json(url: str, file: str) -> None:
    study = lake(url, kind="table with columns")
    study.run(truth, steps=3)
    study.ask(2)
    other = tv.Study.from_json(study.to_json(), store=file, name="copy")
    assert_same(study, other)
    assert other.events.astype(str).equals(study.events.astype(str))
    loaded = tv.load(file, "copy")
    assert loaded.domain.frame is not None
    assert study.domain.frame is not None
    pd.testing.assert_frame_equal(
        loaded.domain.frame, KINDS["table with columns"].domain.frame, check_dtype=False
    )
    assert tv.load(file, "copy").ask() == study.ask()
    assert tv.studies(file)["steps"].tolist() == [3]
    with pytest.raises(StudyExistsError, match="already has a study 'copy'"):
        tv.Study.from_json(study.to_json(), store=file, name="copy")


def test_the_list_of_studies_has_the_counters_and_times_of_each(url: str) -> None:
    first = lake(url, "b")
    second = lake(url, "a", "optimum with noise levels")
    lake(url, "c", "tasks")
    first.run(truth, steps=3)
    first.ask(2)
    second.tell(second.ask(), 0.1, cost=2.5)
    second.withdraw(second.ask())
    found = tv.studies(url)
    assert found.columns.tolist() == [
        "name",
        "goal",
        "steps",
        "spent",
        "pending",
        "created",
        "changed",
    ]
    assert found["name"].tolist() == ["a", "b", "c"]
    assert found["goal"].tolist() == ["maximum", "above 0.6", "above 70 % of the maximum"]
    assert found["steps"].tolist() == [1, 3, 0]
    assert found["spent"].tolist() == [2.5, first.spent, 0.0]
    assert found["pending"].tolist() == [0, 2, 0]
    events = second.events["time"]
    assert (found["created"][0], found["changed"][0]) == (events.iloc[0], events.iloc[-1])


def test_the_list_of_studies_reads_no_events(url: str) -> None:
    lake(url).run(truth, steps=2)
    statements: list[str] = []
    storage = RDBStorage(url)
    sqlalchemy.event.listen(
        storage._get_engine(), "before_cursor_execute", lambda *call: statements.append(call[2])
    )
    assert len(storage.list_studies()) == 1
    assert statements
    assert not any("truvar_events" in statement for statement in statements)


def test_the_example_in_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "studies.md", "exec"), {})
    assert tv.load(f"sqlite:///{tmp_path / 'lake.db'}", "lake").measurements["value"].tolist() == [
        8.3
    ]


def test_only_new_events_are_replayed(url: str) -> None:
    study = lake(url)
    other = tv.load(url, "lake")
    other.run(truth, steps=5)
    seen: list[int] = []
    replay = study._state.replay
    study._state.replay = lambda events: (seen.append(len(events)), replay(events))[1]  # type: ignore[method-assign]
    suggestion = study.ask()
    study.tell(suggestion, 0.0)
    assert seen == [10]  # five suggestions with their values; its own events are not replayed


# -- error messages
# --------------------------------------------------------------------------------------------------


def refused(mistake: Callable[[], object], error: type[tv.TruvarError], *parts: str) -> None:
    """Check that a call raises this error, with a message of one line that has the parts and a
    remedy."""
    with pytest.raises(error) as caught:
        mistake()
    message = str(caught.value)
    assert "\n" not in message
    assert ";" in message
    for part in parts:
        assert part in message


def test_a_name_that_is_taken_is_refused(url: str) -> None:
    study = lake(url)
    study.ask()
    refused(
        lambda: lake(url),
        StudyExistsError,
        "already has a study 'lake'",
        "tv.load(url, 'lake')",
        "give another name",
    )
    assert_same(study, tv.load(url, "lake"))


def test_the_message_for_an_unknown_study_lists_the_existing_ones(url: str) -> None:
    lake(url, "b")
    lake(url, "a")
    refused(lambda: tv.load(url, "lake"), StudyNotFoundError, "no study 'lake'", "it has a, b")


def test_reading_does_not_create_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lake.db'}"
    refused(
        lambda: tv.load(url, "lake"),
        StoreNotFoundError,
        "there is no store",
        "lake.db",
        "check the URL",
    )
    refused(
        lambda: tv.studies(url), StoreNotFoundError, "there is no store", "create a study there"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_not_a_store(url: str) -> None:
    if url.startswith("sqlite"):
        sqlite3.connect(url.removeprefix("sqlite:///")).close()
    refused(
        lambda: tv.studies(url), StoreNotFoundError, "there is no store", "create a study there"
    )


@pytest.mark.parametrize(
    ("store", "parts"),
    [
        ("lake.db", ["must be a URL such as sqlite:///lake.db", "'lake.db'"]),
        ("", ["must be a URL such as"]),
        (7, ["must be a URL such as", "7"]),
        ("mysql://user@host/lake", ["SQLite or PostgreSQL", "mysql"]),
        ("sqlite://", ["must be a file", "leave it out"]),
        ("sqlite:///:memory:", ["must be a file", "leave it out"]),
    ],
)
def test_an_invalid_url_is_refused(store: str, parts: list[str]) -> None:
    refused(lambda: lake(store), InvalidArgumentError, *parts)
    refused(lambda: tv.studies(store), InvalidArgumentError, *parts)


@pytest.mark.parametrize("name", [None, "", " lake", 7, "x" * 101, "x" * 201])
def test_a_stored_study_needs_a_name(file: str, name: object) -> None:
    study = KINDS["tasks"].study
    refused(
        lambda: study(store=file, name=name),
        InvalidArgumentError,
        "needs a name of 1 to 100 characters",
        "name=",
    )


@pytest.mark.parametrize("name", [".", "..", "a\nb", "a\x00b", "\ud800"])
def test_a_name_that_a_url_or_database_cannot_contain_is_refused(file: str, name: str) -> None:
    refused(
        lambda: lake(file, name),
        InvalidArgumentError,
        "must not contain control characters",
        "give another name",
    )


def test_store_service_and_command_line_have_the_same_limit_for_names(
    file: str, served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:

    api, _ = served
    longest = "x" * MAX_NAME_LENGTH
    too_long = longest + "x"
    problem = tmp_path / "line.toml"
    problem.write_text(
        "[domain]\ngrid = {x = [0, 1, 3]}\n[goal]\nmaximize = true\n", encoding="utf-8"
    )
    assert lake(file, longest).name == longest
    assert api.create(longest)
    assert main(["new", str(problem), "--name", longest]) == 0
    with pytest.raises(InvalidArgumentError):
        lake(file, too_long)
    api.post("/studies", {"name": too_long, "problem": problem.read_text(encoding="utf-8")}, 422)
    assert main(["new", str(problem), "--name", too_long]) == 1
    assert f"1 to {MAX_NAME_LENGTH} characters" in capsys.readouterr().err


def test_a_stored_study_with_a_longer_name_can_still_be_used(url: str) -> None:
    lake(url, "short")
    old = "x" * MAX_STORED_NAME_LENGTH
    with RDBStorage(url).write_transaction() as connection:
        # A study that a release without checksums of names created has none.
        connection.execute(
            text("UPDATE truvar_studies SET name = :name, name_checksum = ''"), {"name": old}
        )
    assert tv.studies(url)["name"].tolist() == [old]
    study = tv.load(url, old)
    study.tell(study.ask(), 0.25)
    assert tv.load(url, old).steps == 1


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'no' / 'lake.db'}"
    refused(
        lambda: lake(url), StoreNotFoundError, "there is no folder", "no", "create the folder first"
    )


def test_a_file_that_is_not_a_database_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "lake.csv"
    path.write_text("x,y\n" + "0.1,0.2\n" * 500)
    before = path.read_bytes()
    refused(
        lambda: lake(f"sqlite:///{path}"), StorageError, "is not an SQLite database", "another file"
    )
    refused(lambda: tv.load(f"sqlite:///{path}", "lake"), StorageError, "is not an SQLite database")
    assert path.read_bytes() == before


def test_the_message_for_a_missing_driver_has_the_command_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    install = 'pip install "truvar[store]"'
    refused(
        lambda: tv.studies("postgresql://localhost/lake"),
        MissingDependencyError,
        "needs psycopg",
        install,
    )
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    refused(
        lambda: tv.studies("sqlite:///lake.db"),
        MissingDependencyError,
        "a store needs sqlalchemy",
        install,
    )


def test_the_message_for_an_unreachable_server_does_not_contain_the_password() -> None:
    with pytest.raises(StorageError) as caught:
        tv.studies("postgresql://ada:secret@127.0.0.1:1/lake?connect_timeout=5")
    assert "cannot be reached" in str(caught.value)
    assert "check the URL" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_missing_database_on_a_server_is_named(postgres: str) -> None:
    refused(lambda: tv.studies(f"{postgres}/nowhere"), StorageError, "nowhere", "does not exist")


def test_an_object_that_cannot_be_stored_is_refused_before_anything_is_written(
    file: str, tmp_path: Path
) -> None:
    class Own(tv.TruVaR):
        """A policy class of the user's own."""

    mistakes = {
        "cost": {"cost": lambda points, last: np.ones(len(points))},
        "policy": {"policy": Own()},
        "engine": {"engine": ENGINES["dense"]},
    }
    for what, option in mistakes.items():
        refused(
            lambda option=option: tv.Study(
                GRID, tv.Maximize(), **{**KNOWN, **option}, store=file, name="lake"
            ),
            SerializationError,
            f"{what} cannot be stored",
            "store",
        )
    beta = tv.TruVaR(beta=lambda start: 4.0)
    refused(
        lambda: tv.Study(GRID, tv.Maximize(), **KNOWN, policy=beta, store=file, name="lake"),
        SerializationError,
        "beta of policy",
    )
    box = tv.Domain.box(x=(0, 1), y=(0, 2), representers=9)
    options = {**KNOWN, "noise": lambda points: np.full(len(points), 0.1)}
    refused(
        lambda: tv.Study(box, tv.Maximize(), **options, store=file, name="lake"),
        SerializationError,
        "noise cannot be stored",
    )
    half = tv.Domain.box(x=(0, 1), y=(0, 2), constraints=lambda points: points[:, 0] < 0.5)
    refused(
        lambda: tv.Study(half, tv.Maximize(), **KNOWN, store=file, name="lake"),
        SerializationError,
        "constraint of the domain cannot be stored, got the function",
        "write it as text",
    )
    assert list(tmp_path.iterdir()) == []


def test_noise_as_a_function_becomes_its_values_on_the_domain(file: str) -> None:
    options = {**KNOWN, "noise": lambda points: 0.01 + 0.02 * points[:, 0]}
    memory = tv.Study(GRID, tv.LevelSet(0.6), **options)
    stored = tv.Study(GRID, tv.LevelSet(0.6), **options, store=file, name="n")
    assert memory.ask(3) == stored.ask(3)
    assert tv.load(file, "n").ask() == memory.ask()


# -- versions
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def version_1(url: str) -> str:
    """Return the URL of a store with the tables of version 1, which an early version of truvar
    wrote."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.executescript(VERSION_1.read_text(encoding="utf-8"))
        connection.close()
        return url
    import psycopg

    source = sqlite3.connect(":memory:")
    source.executescript(VERSION_1.read_text(encoding="utf-8"))
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE truvar_schema (version INTEGER NOT NULL PRIMARY KEY)")
        connection.execute(
            "CREATE TABLE truvar_studies (id SERIAL NOT NULL PRIMARY KEY, name VARCHAR(200) NOT "
            "NULL UNIQUE)"
        )
        connection.execute(
            "CREATE TABLE truvar_events (study_id INTEGER NOT NULL REFERENCES truvar_studies (id), "
            "number INTEGER NOT NULL, time TIMESTAMP WITH TIME ZONE NOT NULL, who VARCHAR(200) NOT "
            "NULL, "
            "kind VARCHAR(20) NOT NULL, details TEXT NOT NULL, PRIMARY KEY (study_id, number))"
        )
        for table, columns in (("schema", 1), ("studies", 2), ("events", 6)):
            for row in source.execute(f"SELECT * FROM truvar_{table}"):
                values = [
                    f"{value}+00" if table == "events" and k == 2 else value
                    for k, value in enumerate(row)
                ]
                connection.execute(
                    f"INSERT INTO truvar_{table} VALUES ({', '.join(['%s'] * columns)})", values
                )
        connection.execute("SELECT setval('truvar_studies_id_seq', 2)")
    source.close()
    return url


def test_a_store_of_version_1_is_migrated_when_it_is_opened(version_1: str) -> None:
    found = tv.studies(version_1)
    assert found["name"].tolist() == ["lake", "peak"]
    assert found["goal"].tolist() == ["above 0.5", "maximum"]
    assert found["steps"].tolist() == [4, 0]
    assert found["spent"].tolist() == [4.25, 0.0]
    assert found["pending"].tolist() == [1, 0]
    study = tv.load(version_1, "lake")
    assert (study.steps, study.spent, len(study.pending)) == (4, 4.25, 1)
    assert study.measurements["value"].tolist()[0] == 0.9318054774372899
    assert (found["created"][0], found["changed"][0]) == (
        study.events["time"].iloc[0],
        study.events["time"].iloc[-1],
    )
    study.tell(study.ask(), 0.3)
    assert tv.studies(version_1)["steps"].tolist() == [5, 0]
    tv.Study(GRID, tv.Maximize(), **KNOWN, store=version_1, name="new")
    assert tv.load(version_1, "lake").steps == 5
    with RDBStorage(version_1).read_transaction() as connection:
        assert read_version(connection) == models.SCHEMA_VERSION


def test_a_migration_does_not_depend_on_the_present_tables_and_classes(
    version_1: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns and classes may be renamed later; a migration must still find those of its own
    version."""
    storage = RDBStorage(version_1)
    with monkeypatch.context() as changed:
        changed.setattr(models.EVENTS.c.details, "name", "payload")
        changed.setattr(models.EVENTS.c.number, "name", "position")
        changed.setattr(models.STUDIES.c.goal, "name", "purpose")
        changed.setattr("truvar.domain.goals.LevelSet", None)
        changed.delitem(STORED_MODULES, "Maximize")
        with storage._get_engine().begin() as connection:
            UPGRADES[2](connection)
            connection.execute(text("UPDATE truvar_schema SET version = 2"))
    found = tv.studies(version_1)
    assert found["goal"].tolist() == ["above 0.5", "maximum"]
    assert found["steps"].tolist() == [4, 0]
    assert found["spent"].tolist() == [4.25, 0.0]
    assert found["pending"].tolist() == [1, 0]
    assert tv.load(version_1, "lake").steps == 4


def test_migrations_import_nothing_of_truvar() -> None:
    """They would change with what they import."""
    modules = list(Path(migrations.__file__).parent.glob("version_*.py"))
    assert len(modules) == len(UPGRADES) == models.SCHEMA_VERSION - 1
    for module in modules:
        assert "truvar" not in re.findall(
            r"^\s*(?:from|import) (\w+)", module.read_text(encoding="utf-8"), flags=re.M
        )


@pytest.mark.parametrize("damage", ["not JSON", "{}", '{"goal": {"is": "nothing known"}}'])
def test_a_damaged_study_does_not_stop_the_migration_of_the_others(
    version_1: str, damage: str
) -> None:
    with sqlalchemy.create_engine(
        version_1.replace("postgresql:", "postgresql+psycopg:")
    ).begin() as connection:
        query = "UPDATE truvar_events SET details = :damage WHERE study_id = 1 AND number = 1"
        connection.execute(text(query), {"damage": damage})
    found = tv.studies(version_1)
    assert dict(zip(found["name"], found["goal"], strict=True)) == {
        "lake": "damaged",
        "peak": "maximum",
    }
    assert tv.load(version_1, "peak").ask() is not None
    with pytest.raises(DamagedStudyError, match="'lake'"):
        tv.load(version_1, "lake")


def test_creating_a_study_migrates_a_store_of_version_1(version_1: str) -> None:
    tv.Study(GRID, tv.Maximize(), **KNOWN, store=version_1, name="new")
    assert tv.studies(version_1)["steps"].tolist() == [4, 0, 0]


def test_migrated_tables_have_the_columns_of_new_ones(version_1: str, tmp_path: Path) -> None:
    tv.studies(version_1)
    with RDBStorage(version_1).read_transaction() as connection:
        migrated = {
            column["name"]
            for column in sqlalchemy.inspect(connection).get_columns("truvar_studies")
        }
    assert migrated == {column.name for column in models.STUDIES.columns}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE truvar_schema SET version = 2",
        "UPDATE truvar_schema SET version = 0",
        "UPDATE truvar_schema SET version = -3",
        "DELETE FROM truvar_schema",
        "INSERT INTO truvar_schema VALUES (1)",
    ],
)
def test_a_wrong_version_is_reported_and_nothing_is_migrated(
    url: str, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake(url)
    with RDBStorage(url).write_transaction() as connection:
        connection.execute(text(statement))
        before = connection.execute(text("SELECT version FROM truvar_schema")).all()
    assert main(["check", url]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert f"must name version {models.SCHEMA_VERSION}, which its tables have, got" in message
    refused(lambda: tv.load(url, "lake"), StorageError, "truvar_schema", "use an undamaged copy")
    refused(lambda: lake(url, "other"), StorageError, "truvar_schema")
    with sqlalchemy.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:")
    ).begin() as connection:
        assert connection.execute(text("SELECT version FROM truvar_schema")).all() == before


def test_a_version_that_is_no_number_is_reported(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake(file)
    with RDBStorage(file).write_transaction() as connection:
        connection.execute(text("DROP TABLE truvar_schema"))
        connection.execute(text("CREATE TABLE truvar_schema (version INTEGER)"))
        connection.execute(text("INSERT INTO truvar_schema VALUES ('three')"))
    assert main(["check", file]) == 1
    assert "got 'three'" in " ".join(capsys.readouterr().err.split())


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    lake(url)
    with RDBStorage(url).write_transaction() as connection:
        connection.execute(text("UPDATE truvar_schema SET version = 99"))
    refused(
        lambda: tv.load(url, "lake"), StorageError, "newer version of truvar", "99", "update truvar"
    )
    refused(lambda: lake(url, "other"), StorageError, "newer version of truvar")


# -- errors of the database and the disk
# -------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a file system of half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder, "size=512k"):
        yield folder


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root and mount, to make a small disk")
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(
            f"needs to mount a small disk, which is not allowed here: {made.stderr.strip()}"
        )
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as out, suppress(OSError):
        while out.write(b"\0" * 1024) == 1024:
            pass


def write_much(study: tv.Study) -> None:
    """Write more than fits into the pages that SQLite's write-ahead log has reserved already."""
    for _ in range(40):
        study.note("x" * 2000)


def test_a_full_disk_gives_a_clear_message_and_leaves_the_study_intact(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'lake.db'}"
    study = lake(url)
    suggestion = study.ask()
    filler = small_disk / "filler"
    fill(filler)
    refused(
        lambda: write_much(study),
        StorageError,
        "lake.db is full",
        "free some space",
        "nothing was changed",
    )
    refused(lambda: study.tell(suggestion, 0.25), StorageError, "is full", "free some space")
    assert study.steps == 0
    assert study.pending == [suggestion]
    assert_same(study, tv.load(url, "lake"))
    filler.unlink()
    study.tell(suggestion, 0.25)
    assert tv.load(url, "lake").measurements["value"].tolist() == [0.25]
    assert_same(study, tv.load(url, "lake"))


def test_a_disk_without_space_for_the_tables_is_left_without_a_study(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"\0" * 500 * 1024)
    url = f"sqlite:///{small_disk / 'lake.db'}"
    with pytest.raises(StorageError, match=r"is full|cannot be opened|cannot be read or written"):
        lake(url)
    (small_disk / "filler").unlink()
    lake(url).ask()


def test_a_read_only_disk_gives_a_clear_message_and_leaves_the_study_intact(
    small_disk: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{small_disk / 'lake.db'}"
    suggestion = lake(url).ask()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused(
        lambda: tv.load(url, "lake"),
        StorageError,
        "cannot be opened",
        "even to read it",
        "copy the database",
    )
    refused(
        lambda: lake(url, "other"), StorageError, "cannot be", "to a folder that you can write to"
    )
    shutil.copy(small_disk / "lake.db", tmp_path / "copy.db")
    copy = tv.load(f"sqlite:///{tmp_path / 'copy.db'}", "lake")
    assert copy.pending == [suggestion]
    copy.tell(suggestion, 0.25)


@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_a_file_of_another_user_gives_a_clear_message(mode: int) -> None:
    """For root no file is read-only, so the test changes to a user who owns nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lake.db"
        url = f"sqlite:///{path}"
        suggestion = lake(url).ask()
        path.chmod(0o444)
        Path(folder).chmod(mode)
        with nobody():
            if os.access(folder, os.W_OK, effective_ids=True):
                study = tv.load(url, "lake")
                refused(
                    lambda: study.tell(suggestion, 0.25),
                    StorageError,
                    "cannot be written to",
                    "permissions",
                )
                assert study.pending == [suggestion]
                del study
            else:  # SQLite cannot create its files beside the database
                refused(
                    lambda: tv.load(url, "lake"), StorageError, "to a folder that you can write to"
                )
        path.chmod(0o644)
        Path(folder).chmod(0o755)
        assert tv.load(url, "lake").pending == [suggestion]


@contextmanager
def nobody() -> Iterator[None]:
    """Give up the rights of root, if the tests have them."""
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65534)
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_read_only_file_gives_a_clear_message_and_leaves_the_study_intact(
    file: str, tmp_path: Path
) -> None:
    suggestion = lake(file).ask()
    read_only = f"sqlite:///file:{tmp_path / 'file.db'}?mode=ro&uri=true"
    study = tv.load(read_only, "lake")
    refused(
        lambda: study.tell(suggestion, 0.25),
        StorageError,
        "cannot be written to",
        "permissions",
        "nothing was changed",
    )
    assert study.pending == [suggestion]
    tv.load(file, "lake").tell(suggestion, 0.25)
    study.refresh()
    assert study.steps == 1


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_read_only_database_in_postgresql_gives_a_clear_message(url: str) -> None:
    suggestion = lake(url).ask()
    study = tv.load(f"{url}?options=-c%20default_transaction_read_only%3Don", "lake")
    refused(
        lambda: study.tell(suggestion, 0.25),
        StorageError,
        "cannot be written to",
        "nothing was changed",
    )
    assert study.pending == [suggestion]


def test_a_failed_commit_leaves_the_study_in_the_state_of_the_database(url: str) -> None:
    study = lake(url)
    suggestion = study.ask()
    engine = study._session.event_log.storage._get_engine()  # type: ignore[attr-defined]
    failing = True

    def fail(_: object) -> None:
        if failing:
            raise sqlalchemy.exc.OperationalError("COMMIT", {}, RuntimeError("the cable was cut"))

    sqlalchemy.event.listen(engine, "commit", fail)
    for change in (
        lambda: study.tell(suggestion, 0.25),
        lambda: study.ask(3),
        lambda: study.withdraw(suggestion),
        lambda: study.note("rain"),
    ):
        refused(change, StorageError, "the cable was cut")
        assert study.pending == [suggestion]
        assert study.steps == 0
    failing = False
    assert_same(study, tv.load(url, "lake"))
    study.tell(suggestion, 0.25)
    assert_same(study, tv.load(url, "lake"))


def test_a_damaged_event_is_named(file: str) -> None:
    study = lake(file)
    study.ask()
    with RDBStorage(file).write_transaction() as connection:
        connection.execute(
            text("UPDATE truvar_events SET details = :none WHERE number = 2"),
            {"none": json.dumps({})},
        )
    refused(lambda: tv.load(file, "lake"), DamagedStudyError, "'lake' are damaged", "copy")


def test_a_problem_with_training_data_is_stored_with_its_model_or_not_at_all(
    file: str, tmp_path: Path
) -> None:
    points = np.linspace(0, 1, 12)
    pd.DataFrame({"x": points, "y": np.sin(6 * points)}).to_csv(
        tmp_path / "before.csv", index=False
    )
    spec = {
        "domain": {"grid": {"x": [0, 1, 20]}},
        "goal": {"level_set": 0.5},
        "model": {"training": "before.csv"},
        "noise": {"variance": 0.01},
    }
    problem = problem_from_dict(spec, folder=tmp_path)
    study = problem.study(store=file, name="learned", author="anna")
    events = study.events
    assert (events["kind"].tolist(), set(events["who"])) == (["created", "fitted"], {"anna"})
    assert tv.load(file, "learned").ask() == problem.study().ask()
    (tmp_path / "before.csv").unlink()
    refused(lambda: problem.study(store=file, name="unlearned"), tv.TruvarError, "before.csv")
    assert tv.studies(file)["name"].tolist() == ["learned"]
