"""Studies in a database: what is stored is what was done, and whatever fails leaves the study as it was."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy
from sqlalchemy import text
from tests.helpers.problems import GRID, KINDS, KNOWN, answer, assert_same, truth

import truvar as tv
from truvar.problem import problem_from_dict
from truvar.storage import models
from truvar.storage.base import MAX_NAME_LENGTH, MAX_STORED_NAME_LENGTH
from truvar.storage.rdb import RDBStorage

VERSION_1 = Path(__file__).parents[1] / "data" / "store-v1.sql"


def lake(url: str, name: str = "lake", kind: str = "level set with travel") -> tv.Study:
    return KINDS[kind].study(store=url, name=name)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """An empty store in SQLite, for what does not depend on the database."""
    return f"sqlite:///{tmp_path / 'file.db'}"


# -- what is stored ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["level set with travel", "learned kernel and noise", "tasks", "table with arrays"])
def test_a_study_loaded_before_every_step_goes_as_one_in_memory(url: str, kind: str) -> None:
    memory, stored = KINDS[kind].study(), lake(url, kind=kind)
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


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # tests/stress/test_workers.py has processes on both
def test_another_process_suggests_the_same(url: str) -> None:
    memory, stored = KINDS["level set with travel"].study(), lake(url)
    for study in (memory, stored):
        study.run(truth, steps=4)
    code = "import sys, truvar as tv; s = tv.load(sys.argv[1], 'lake', who='Ada').ask(); print(repr(s), end='')"
    run = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
    assert run.stdout == repr(memory.ask())
    stored.refresh()
    assert stored.pending == memory.pending
    assert stored.events["who"].iloc[-1] == "Ada"


def test_two_who_work_at_once_see_what_the_other_did(url: str) -> None:
    one, other = lake(url), tv.load(url, "lake")
    first, second = one.ask(), other.ask()
    assert (first.id, second.id) == (1, 2)
    assert first.point != second.point
    one.tell(second, 0.2)
    other.tell(first, 0.1)
    assert one.steps == 1
    one.refresh()
    assert_same(one, other)
    with pytest.raises(tv.TruvarError, match=r"told already, with 0\.2"):
        other.tell(2, 0.3)
    other.tell(2, 0.2)
    other.withdraw(1)
    with pytest.raises(tv.TruvarError, match="must be pending, but 1 is not"):
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


def test_a_batch_that_fails_half_way_is_not_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = lake(url)
    study.ask()
    choose = study._choose
    monkeypatch.setattr(study, "_choose", lambda: choose() if len(study.pending) < 3 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.ask(4)
    assert len(study.pending) == 1
    assert_same(study, tv.load(url, "lake"))
    monkeypatch.undo()
    assert study.ask() == KINDS["level set with travel"].study().ask(2)[1]


def test_the_model_fitted_to_other_data_is_stored(url: str) -> None:
    frame = GRID.to_frame().assign(value=[truth(GRID.point(k)) for k in range(len(GRID))])
    memory = KINDS["learned kernel, known noise"].study()
    stored = KINDS["learned kernel, known noise"].study(store=url, name="lake")
    for study in (memory, stored):
        study.fit(frame.iloc[::3], "value")
    loaded = tv.load(url, "lake")
    assert loaded.kernel == stored.kernel == memory.kernel
    assert loaded.ask() == memory.ask()


def test_hyperparameters_that_were_learned_are_not_learned_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = lake(url, kind="learned kernel and noise")
    study.run(truth, steps=7)
    study.correct(2, 0.7)
    monkeypatch.setattr("truvar.algorithm.learner.fit", lambda *_: pytest.fail("a fit that was made before"))
    assert_same(study, tv.load(url, "lake"))


def test_a_whole_study_goes_from_store_to_text_to_another_store(url: str, file: str) -> None:
    study = lake(url, kind="table with columns")
    study.run(truth, steps=3)
    study.ask(2)
    other = tv.Study.from_json(study.to_json(), store=file, name="copy")
    assert_same(study, other)
    assert other.events.astype(str).equals(study.events.astype(str))
    loaded = tv.load(file, "copy")
    assert loaded.domain.frame is not None
    assert study.domain.frame is not None
    pd.testing.assert_frame_equal(loaded.domain.frame, KINDS["table with columns"].domain.frame, check_dtype=False)
    assert tv.load(file, "copy").ask() == study.ask()
    assert tv.studies(file)["steps"].tolist() == [3]
    with pytest.raises(tv.TruvarError, match="has a study 'copy' already"):
        tv.Study.from_json(study.to_json(), store=file, name="copy")


def test_the_list_of_studies_says_where_each_stands(url: str) -> None:
    first, second = lake(url, "b"), lake(url, "a", "optimum with noise levels")
    lake(url, "c", "tasks")
    first.run(truth, steps=3)
    first.ask(2)
    second.tell(second.ask(), 0.1, cost=2.5)
    second.withdraw(second.ask())
    found = tv.studies(url)
    assert found.columns.tolist() == ["name", "goal", "steps", "spent", "pending", "created", "changed"]
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
    database = RDBStorage(url)
    sqlalchemy.event.listen(database._connected(), "before_cursor_execute", lambda *call: statements.append(call[2]))
    assert len(database.overview()) == 1
    assert statements
    assert not any("truvar_events" in statement for statement in statements)


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "studies.md", "exec"), {})
    assert tv.load(f"sqlite:///{tmp_path / 'lake.db'}", "lake").measurements["value"].tolist() == [8.3]


def test_catching_up_reads_only_what_is_new(url: str) -> None:
    study, other = lake(url), tv.load(url, "lake")
    other.run(truth, steps=5)
    seen: list[int] = []
    fold = study._state.fold
    study._state.fold = lambda events: (seen.append(len(events)), fold(events))[1]  # type: ignore[method-assign]
    suggestion = study.ask()
    study.tell(suggestion, 0.0)
    assert seen == [10, 1, 0, 1]  # five asked and told, then its own


# -- mistakes ----------------------------------------------------------------------------------------------------------


def refused(mistake, *parts: str) -> None:
    with pytest.raises(tv.TruvarError) as caught:
        mistake()
    message = str(caught.value)
    assert "\n" not in message
    assert ";" in message
    for part in parts:
        assert part in message


def test_an_existing_name_is_refused_with_the_remedy(url: str) -> None:
    study = lake(url)
    study.ask()
    refused(lambda: lake(url), "has a study 'lake' already", "tv.load(url, 'lake')", "another name")
    assert_same(study, tv.load(url, "lake"))


def test_a_study_that_is_not_there_is_refused_with_those_that_are(url: str) -> None:
    lake(url, "b")
    lake(url, "a")
    refused(lambda: tv.load(url, "lake"), "no study 'lake'", "it has a, b")


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lake.db'}"
    refused(lambda: tv.load(url, "lake"), "there is no store", "lake.db", "check the URL")
    refused(lambda: tv.studies(url), "there is no store")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_no_store(url: str) -> None:
    if url.startswith("sqlite"):
        sqlite3.connect(url.removeprefix("sqlite:///")).close()
    refused(lambda: tv.studies(url), "there is no store", "begin a study there")


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
def test_what_is_no_url_of_a_store_is_refused(store: str, parts: list[str]) -> None:
    refused(lambda: lake(store), *parts)
    refused(lambda: tv.studies(store), *parts)


@pytest.mark.parametrize("name", [None, "", " lake", 7, "x" * 101, "x" * 201])
def test_a_stored_study_needs_a_name(file: str, name: object) -> None:
    refused(lambda: KINDS["tasks"].study(store=file, name=name), "needs a name of 1 to 100 characters", "name=")


@pytest.mark.parametrize("name", [".", "..", "a\nb", "a\x00b", "\ud800"])
def test_a_name_that_a_url_or_database_cannot_contain_is_refused(file: str, name: str) -> None:
    refused(lambda: lake(file, name), "must not contain control characters", "give another name")


def test_store_service_and_command_line_have_the_same_limit_for_names(
    file: str, served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from truvar.cli import main

    api, _ = served
    longest = "x" * MAX_NAME_LENGTH
    too_long = longest + "x"
    problem = tmp_path / "line.toml"
    problem.write_text("[domain]\ngrid = {x = [0, 1, 3]}\n[goal]\nmaximize = true\n", encoding="utf-8")
    assert lake(file, longest).name == longest
    assert api.create(longest)
    assert main(["new", str(problem), "--name", longest]) == 0
    with pytest.raises(tv.TruvarError):
        lake(file, too_long)
    api.post("/studies", {"name": too_long, "problem": problem.read_text(encoding="utf-8")}, 422)
    assert main(["new", str(problem), "--name", too_long]) == 1
    assert f"1 to {MAX_NAME_LENGTH} characters" in capsys.readouterr().err


def test_a_stored_study_with_a_longer_name_can_still_be_used(url: str) -> None:
    lake(url, "short")
    old = "x" * MAX_STORED_NAME_LENGTH
    with RDBStorage(url).writing() as connection:
        connection.execute(text("UPDATE truvar_studies SET name = :name"), {"name": old})
    assert tv.studies(url)["name"].tolist() == [old]
    study = tv.load(url, old)
    study.tell(study.ask(), 0.25)
    assert tv.load(url, old).steps == 1


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    refused(lambda: lake(f"sqlite:///{tmp_path / 'no' / 'lake.db'}"), "there is no folder", "no", "make it first")


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "lake.csv"
    path.write_text("x,y\n" + "0.1,0.2\n" * 500)
    before = path.read_bytes()
    refused(lambda: lake(f"sqlite:///{path}"), "is no SQLite database", "another file")
    refused(lambda: tv.load(f"sqlite:///{path}", "lake"), "is no SQLite database")
    assert path.read_bytes() == before


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused(lambda: tv.studies("postgresql://localhost/lake"), "needs psycopg", 'pip install "truvar[store]"')
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    refused(lambda: tv.studies("sqlite:///lake.db"), "a store needs sqlalchemy", 'pip install "truvar[store]"')


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    with pytest.raises(tv.TruvarError) as caught:
        tv.studies("postgresql://ada:secret@127.0.0.1:1/lake?connect_timeout=5")
    assert "cannot be reached" in str(caught.value)
    assert "check the URL" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_database_that_does_not_exist_is_named(postgres: str) -> None:
    refused(lambda: tv.studies(f"{postgres}/nowhere"), "nowhere", "does not exist")


def test_what_cannot_be_written_down_is_refused_before_anything_is_stored(file: str, tmp_path: Path) -> None:
    class Own(tv.TruVaR):
        """A rule of one's own."""

    mistakes = {
        "cost": {"cost": lambda points, last: np.ones(len(points))},
        "policy": {"policy": Own()},
        "engine": {"engine": lambda posterior, domain: None},
    }
    for what, option in mistakes.items():
        if what == "engine":
            option = {"engine": __import__("truvar.engines", fromlist=["ENGINES"]).ENGINES["dense"]}
        refused(
            lambda option=option: tv.Study(GRID, tv.Maximize(), **{**KNOWN, **option}, store=file, name="lake"),
            f"{what} cannot be written down",
            "store",
        )
    beta = tv.TruVaR(beta=lambda start: 4.0)
    refused(lambda: tv.Study(GRID, tv.Maximize(), **KNOWN, policy=beta, store=file, name="lake"), "beta of policy")
    box = tv.Domain.box(x=(0, 1), y=(0, 2), representers=9)
    options = {**KNOWN, "noise": lambda points: np.full(len(points), 0.1)}
    refused(lambda: tv.Study(box, tv.Maximize(), **options, store=file, name="lake"), "noise cannot be written down")
    assert list(tmp_path.iterdir()) == []


def test_noise_as_a_function_becomes_its_values_on_the_domain(file: str) -> None:
    options = {**KNOWN, "noise": lambda points: 0.01 + 0.02 * points[:, 0]}
    memory, stored = (
        tv.Study(GRID, tv.LevelSet(0.6), **options, **kept) for kept in ({}, {"store": file, "name": "n"})
    )
    assert memory.ask(3) == stored.ask(3)
    assert tv.load(file, "n").ask() == memory.ask()


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def version_1(url: str) -> str:
    """A store as version 1 left it: in SQLite by its own dump, in PostgreSQL the same rows in the same tables."""
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
            "CREATE TABLE truvar_studies (id SERIAL NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL UNIQUE)"
        )
        connection.execute(
            "CREATE TABLE truvar_events (study_id INTEGER NOT NULL REFERENCES truvar_studies (id), "
            "number INTEGER NOT NULL, time TIMESTAMP WITH TIME ZONE NOT NULL, who VARCHAR(200) NOT NULL, "
            "kind VARCHAR(20) NOT NULL, details TEXT NOT NULL, PRIMARY KEY (study_id, number))"
        )
        for table, columns in (("schema", 1), ("studies", 2), ("events", 6)):
            for row in source.execute(f"SELECT * FROM truvar_{table}"):
                values = [f"{value}+00" if table == "events" and k == 2 else value for k, value in enumerate(row)]
                connection.execute(f"INSERT INTO truvar_{table} VALUES ({', '.join(['%s'] * columns)})", values)
        connection.execute("SELECT setval('truvar_studies_id_seq', 2)")
    source.close()
    return url


def test_a_store_of_version_1_opens_after_a_migration(version_1: str) -> None:
    found = tv.studies(version_1)
    assert found["name"].tolist() == ["lake", "peak"]
    assert found["goal"].tolist() == ["above 0.5", "maximum"]
    assert found["steps"].tolist() == [4, 0]
    assert found["spent"].tolist() == [4.25, 0.0]
    assert found["pending"].tolist() == [1, 0]
    study = tv.load(version_1, "lake")
    assert (study.steps, study.spent, len(study.pending)) == (4, 4.25, 1)
    assert study.measurements["value"].tolist()[0] == 0.9318054774372899
    assert (found["created"][0], found["changed"][0]) == (study.events["time"].iloc[0], study.events["time"].iloc[-1])
    study.tell(study.ask(), 0.3)
    assert tv.studies(version_1)["steps"].tolist() == [5, 0]
    tv.Study(GRID, tv.Maximize(), **KNOWN, store=version_1, name="new")
    assert tv.load(version_1, "lake").steps == 5
    with RDBStorage(version_1).reading() as connection:
        assert models.version_of(connection) == models.VERSION


@pytest.mark.parametrize("damage", ["not JSON", "{}", '{"goal": {"is": "nothing known"}}'])
def test_one_damaged_study_does_not_keep_the_others_from_a_migration(version_1: str, damage: str) -> None:
    with sqlalchemy.create_engine(version_1.replace("postgresql:", "postgresql+psycopg:")).begin() as connection:
        query = "UPDATE truvar_events SET details = :damage WHERE study_id = 1 AND number = 1"
        connection.execute(text(query), {"damage": damage})
    found = tv.studies(version_1)
    assert dict(zip(found["name"], found["goal"], strict=True)) == {"lake": "damaged", "peak": "maximum"}
    assert tv.load(version_1, "peak").ask() is not None
    refused(lambda: tv.load(version_1, "lake"), "lake")


def test_a_new_study_in_a_store_of_version_1_migrates_it_too(version_1: str) -> None:
    tv.Study(GRID, tv.Maximize(), **KNOWN, store=version_1, name="new")
    assert tv.studies(version_1)["steps"].tolist() == [4, 0, 0]


def test_migrated_tables_have_the_columns_of_new_ones(version_1: str, tmp_path: Path) -> None:
    tv.studies(version_1)
    with RDBStorage(version_1).reading() as connection:
        migrated = {column["name"] for column in sqlalchemy.inspect(connection).get_columns("truvar_studies")}
    assert migrated == {column.name for column in models.StudyRow.__table__.columns}


def test_a_store_of_a_newer_version_is_left_alone(url: str) -> None:
    lake(url)
    with RDBStorage(url).writing() as connection:
        connection.execute(text("UPDATE truvar_schema SET version = 99"))
    refused(lambda: tv.load(url, "lake"), "newer truvar", "99", "update truvar")
    refused(lambda: lake(url, "other"), "newer truvar")


# -- what fails --------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
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
        pytest.skip(f"needs to mount a small disk, which is not allowed here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as out, suppress(OSError):
        while out.write(b"\0" * 1024) == 1024:
            pass


def write_much(study: tv.Study) -> None:
    """A log that is there already may have room for a little."""
    for _ in range(40):
        study.note("x" * 2000)


def test_a_full_disk_gives_a_clear_message_and_leaves_the_study_intact(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'lake.db'}"
    study = lake(url)
    suggestion = study.ask()
    filler = small_disk / "filler"
    fill(filler)
    refused(lambda: write_much(study), "lake.db is full", "make room", "nothing was changed")
    refused(lambda: study.tell(suggestion, 0.25), "is full", "make room")
    assert study.steps == 0
    assert study.pending == [suggestion]
    assert_same(study, tv.load(url, "lake"))
    filler.unlink()
    study.tell(suggestion, 0.25)
    assert tv.load(url, "lake").measurements["value"].tolist() == [0.25]
    assert_same(study, tv.load(url, "lake"))


def test_a_disk_that_is_too_small_to_begin_on_leaves_no_study(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"\0" * 500 * 1024)
    url = f"sqlite:///{small_disk / 'lake.db'}"
    with pytest.raises(tv.TruvarError, match=r"is full|cannot be opened|cannot be read or written"):
        lake(url)
    (small_disk / "filler").unlink()
    lake(url).ask()


def test_a_read_only_disk_gives_a_clear_message_and_leaves_the_study_intact(small_disk: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{small_disk / 'lake.db'}"
    suggestion = lake(url).ask()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused(lambda: tv.load(url, "lake"), "cannot be opened", "even to read it", "copy it to where you may")
    refused(lambda: lake(url, "other"), "cannot be", "copy it to where you may")
    shutil.copy(small_disk / "lake.db", tmp_path / "copy.db")
    copy = tv.load(f"sqlite:///{tmp_path / 'copy.db'}", "lake")
    assert copy.pending == [suggestion]
    copy.tell(suggestion, 0.25)


@pytest.mark.parametrize("folder", [0o777, 0o755])
def test_a_file_that_somebody_else_may_write_gives_a_clear_message(folder: int) -> None:
    """As root nothing is read-only: the test goes on as a user who owns nothing."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "lake.db"
        url = f"sqlite:///{path}"
        suggestion = lake(url).ask()
        path.chmod(0o444)
        Path(name).chmod(folder)
        with nobody():
            try:
                study = tv.load(url, "lake")
            except tv.TruvarError as error:
                assert "copy it to where you may" in str(error)  # noqa: PT017
                assert folder == 0o755
            else:
                refused(lambda: study.tell(suggestion, 0.25), "cannot be written to", "permissions")
                assert study.pending == [suggestion]
                del study
        path.chmod(0o644)
        Path(name).chmod(0o755)
        assert tv.load(url, "lake").pending == [suggestion]


@contextmanager
def nobody() -> Iterator[None]:
    """Whoever runs the tests, but not as root."""
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(65534)
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_read_only_file_gives_a_clear_message_and_leaves_the_study_intact(file: str, tmp_path: Path) -> None:
    suggestion = lake(file).ask()
    only = f"sqlite:///file:{tmp_path / 'file.db'}?mode=ro&uri=true"
    study = tv.load(only, "lake")
    refused(lambda: study.tell(suggestion, 0.25), "cannot be written to", "permissions", "nothing was changed")
    assert study.pending == [suggestion]
    tv.load(file, "lake").tell(suggestion, 0.25)
    study.refresh()
    assert study.steps == 1


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_database_of_postgresql_that_may_only_be_read_gives_a_clear_message(url: str) -> None:
    suggestion = lake(url).ask()
    study = tv.load(f"{url}?options=-c%20default_transaction_read_only%3Don", "lake")
    refused(lambda: study.tell(suggestion, 0.25), "cannot be written to", "nothing was changed")
    assert study.pending == [suggestion]


def test_a_commit_that_fails_leaves_the_study_as_the_database_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    study = lake(url)
    suggestion = study.ask()
    engine = study._event_log.database._connected()  # type: ignore[attr-defined]
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
        refused(change, "the cable was cut")
        assert study.pending == [suggestion]
        assert study.steps == 0
    failing = False
    assert_same(study, tv.load(url, "lake"))
    study.tell(suggestion, 0.25)
    assert_same(study, tv.load(url, "lake"))


def test_a_damaged_event_is_named(file: str) -> None:
    study = lake(file)
    study.ask()
    with RDBStorage(file).writing() as connection:
        connection.execute(text("UPDATE truvar_events SET details = :none WHERE number = 2"), {"none": json.dumps({})})
    refused(lambda: tv.load(file, "lake"), "'lake' are damaged", "copy")


def test_a_problem_with_a_training_file_is_begun_with_its_model_or_not_at_all(file: str, tmp_path: Path) -> None:
    points = np.linspace(0, 1, 12)
    pd.DataFrame({"x": points, "y": np.sin(6 * points)}).to_csv(tmp_path / "before.csv", index=False)
    spec = {
        "domain": {"grid": {"x": [0, 1, 20]}},
        "goal": {"level_set": 0.5},
        "model": {"training": "before.csv"},
        "noise": {"variance": 0.01},
    }
    problem = problem_from_dict(spec, folder=tmp_path)
    study = problem.study(store=file, name="learned", who="anna")
    events = study.events
    assert (events["kind"].tolist(), set(events["who"])) == (["created", "fitted"], {"anna"})
    assert tv.load(file, "learned").ask() == problem.study().ask()
    (tmp_path / "before.csv").unlink()
    refused(lambda: problem.study(store=file, name="unlearned"), "before.csv")
    assert tv.studies(file)["name"].tolist() == ["learned"]
