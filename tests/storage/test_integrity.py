"""Damaged, deleted and replaced stores are noticed; what is undamaged can be saved and copied."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.helpers.problems import KINDS, assert_same, truth

import truvar as tv
from truvar.cli import main
from truvar.exceptions import DamagedStudyError, StorageError
from truvar.storage import _postgres as postgres_storage
from truvar.storage.rdb import RDBStorage
from truvar.study.integrity import check_store


def lake(url: str, name: str = "lake") -> tv.Study:
    return KINDS["level set with travel"].study(store=url, name=name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lake.db"


@pytest.fixture
def file(path: Path) -> str:
    return f"sqlite:///{path}"


def execute(url: str, statement: str) -> None:
    with RDBStorage(url).write_transaction() as connection:
        connection.exec_driver_sql(statement)


# -- files that are deleted or replaced
# --------------------------------------------------------------------------------


def test_a_deleted_file_is_noticed_before_a_value_is_taken(file: str, path: Path) -> None:
    study = lake(file)
    suggestion = study.ask()
    moved = path.with_name("moved.db")
    path.rename(moved)
    with pytest.raises(StorageError, match=r"deleted or replaced.*nothing was stored"):
        study.tell(suggestion, 0.3)
    assert (study.steps, study.pending) == (0, [suggestion])
    assert not path.exists()
    moved.rename(path)
    study.tell(suggestion, 0.3)
    assert tv.load(file, "lake").steps == 1


def test_a_replaced_file_is_noticed_before_a_value_is_taken(file: str, path: Path) -> None:
    study = lake(file)
    suggestion = study.ask()
    other = path.with_name("other.db")
    lake(f"sqlite:///{other}", "another")
    os.replace(other, path)
    for leftover in ("-wal", "-shm"):
        Path(f"{path}{leftover}").unlink(missing_ok=True)
    with pytest.raises(StorageError, match="deleted or replaced"):
        study.tell(suggestion, 0.3)
    with pytest.raises(tv.TruvarError):  # the other file has other events
        study.tell(suggestion, 0.3)
    assert study.steps == 0


def test_a_file_that_is_replaced_during_a_transaction_is_noticed_before_it_returns(
    file: str, path: Path
) -> None:
    study = lake(file)

    def change() -> None:
        with study.transaction():
            study.tell(study.domain.point(0), 0.3)
            path.rename(path.with_name("moved.db"))

    with pytest.raises(StorageError, match="deleted or replaced"):
        change()
    assert study.steps == 0


def test_an_older_copy_in_the_place_of_the_file_is_noticed(file: str, path: Path) -> None:
    study = lake(file)
    study.ask()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = path.read_bytes()
    study.tell(1, 0.4)
    del study
    reopened = tv.load(file, "lake")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    reopened._session.event_log.storage._get_engine().dispose()  # type: ignore[attr-defined]
    path.write_bytes(old)  # the inode stays the same
    with pytest.raises(DamagedStudyError, match="older copy"):
        reopened.tell(reopened.domain.point(0), 0.3)
    assert tv.load(file, "lake").steps == 0


# Statements by which another program looks at the file, in a process that shares nothing with this
# one.
COUNT_VALUES = "SELECT count(*) FROM truvar_events WHERE kind = 'told'"
CREATE_TABLE = "CREATE TABLE other (x)"
OTHER_PROGRAM = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
print(connection.execute(sys.argv[2]).fetchall(), flush=True)
os._exit(0)
"""


def in_another_program(path: Path, statement: str) -> str:
    command = [sys.executable, "-c", OTHER_PROGRAM, str(path), statement]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def remove_log(path: Path) -> None:
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink()


def copy_over(path: Path, backup: Path) -> None:
    shutil.copyfile(backup, path)  # into the same inode
    remove_log(path)


def copy_over_and_use(path: Path, backup: Path) -> None:
    copy_over(path, backup)
    in_another_program(path, CREATE_TABLE)


def rename_over(path: Path, backup: Path) -> None:
    os.replace(backup, path)
    remove_log(path)


def replace_log(path: Path, backup: Path) -> None:
    log = Path(f"{path}-wal")
    content = log.read_bytes()
    log.unlink()
    log.write_bytes(content)


def empty_log(path: Path, backup: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"")


REPLACEMENTS = [copy_over, copy_over_and_use, rename_over, replace_log, empty_log]


@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_no_value_is_acknowledged_that_a_replaced_file_or_log_loses(
    file: str, path: Path, replace: Callable[[Path, Path], None]
) -> None:
    study = lake(file)
    other = tv.load(file, "lake")  # has connections of its own, which share the log within SQLite
    for index in range(3):
        study.tell(study.domain.point(index), 0.3)
    backup = path.with_name("backup.db")
    assert main(["backup", str(path), str(backup)]) == 0
    study.tell(study.domain.point(3), 0.3)
    other.refresh()
    replace(path, backup)
    with pytest.raises(StorageError, match="deleted or replaced"):
        study.tell(study.domain.point(4), 0.3)
    assert study.steps == 4
    acknowledged = 0
    for index in range(5, 9):
        with suppress(tv.TruvarError):
            (study if index % 2 else other).tell(study.domain.point(index), 0.3)
            acknowledged += 1
    stored = in_another_program(path, COUNT_VALUES) if acknowledged else "[(0,)]"
    assert acknowledged == 0 or int(stored.strip("[(,)]\n")) >= 4 + acknowledged


def test_a_copy_over_the_file_that_leaves_its_log_is_noticed(file: str, path: Path) -> None:
    study = lake(file)
    backup = path.with_name("backup.db")
    assert main(["backup", str(path), str(backup)]) == 0
    for index in range(40):
        study.tell(study.domain.point(index), 0.3)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "PRAGMA wal_checkpoint(RESTART)"
        )  # the file has the values, and the log begins again
    study.tell(study.domain.point(40), 0.3)
    shutil.copyfile(backup, path)
    for index in (41, 42):
        with pytest.raises(tv.TruvarError, match="damaged"):
            study.tell(study.domain.point(index), 0.3)
    assert study.steps == 41


# -- damaged records
# --------------------------------------------------------------------------------------------------

DAMAGES = {
    "a value": "UPDATE truvar_events SET details = replace(details, '\"y\":', '\"y\":1') WHERE number = 3",
    "an author": "UPDATE truvar_events SET who = 'Eve' WHERE number = 2",
    "a kind": "UPDATE truvar_events SET kind = 'noted' WHERE number = 3",
    "a gap": "DELETE FROM truvar_events WHERE number = 4",
    "the end": "DELETE FROM truvar_events WHERE number = 7",
    "a number": "UPDATE truvar_events SET number = 9 WHERE number = 7",
    "counters": "UPDATE truvar_studies SET steps = 2",
    "the checksum": "UPDATE truvar_events SET checksum = 'x' WHERE number = 5",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_when_a_study_is_opened(url: str, damage: str) -> None:
    lake(url).run(truth, steps=3)
    assert [check.problem for check in check_store(url)] == [None]
    execute(url, DAMAGES[damage])
    with pytest.raises(DamagedStudyError, match="'lake' are damaged"):
        tv.load(url, "lake")
    (check,) = check_store(url)
    assert check.problem is not None


def test_a_changed_name_of_a_study_is_reported(
    file: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake(file).run(truth, steps=1)
    execute(file, "UPDATE truvar_studies SET name = 'make'")
    with pytest.raises(DamagedStudyError, match="its name"):
        tv.load(file, "make")
    assert tv.studies(file)["goal"].tolist() == ["damaged"]
    assert main(["check", str(path)]) == 1
    assert "its name in the list of studies does not match its checksum" in capsys.readouterr().out


def test_events_that_were_changed_are_reported_to_a_study_that_is_open(url: str) -> None:
    study = lake(url)
    study.run(truth, steps=2)
    other = tv.load(url, "lake")
    study.note("rain")
    execute(url, "UPDATE truvar_events SET who = 'Eve' WHERE number = 6")
    with pytest.raises(DamagedStudyError, match="event 6"):
        other.refresh()


def test_repair_keeps_the_longest_undamaged_beginning(
    file: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = KINDS["level set with travel"].study()
    for study in (memory, lake(file), lake(file, "well")):
        study.run(truth, steps=3)
    execute(file, f"{DAMAGES['the checksum']} AND study_id = 1")
    saved = path.with_name("saved.db")
    assert main(["check", str(path)]) == 1
    assert "event 5 does not match its checksum" in capsys.readouterr().out
    assert main(["check", str(path), "--repair", str(saved), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["events"], row["steps"]) for row in report["studies"]] == [
        ("lake", 4, 1),
        ("well", 7, 3),
    ]
    assert main(["check", str(saved)]) == 0
    assert tv.load(f"sqlite:///{saved}", "lake").steps == 1
    assert_same(tv.load(f"sqlite:///{saved}", "well"), memory)
    assert main(["check", str(path), "--repair", str(saved)]) == 1
    assert "exists already" in capsys.readouterr().err


def test_an_undamaged_store_is_said_to_be(
    file: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake(file).run(truth, steps=2)
    assert main(["check", str(path)]) == 0
    assert "lake: 5 events, 2 measurements: undamaged" in capsys.readouterr().out


# -- backups
# --------------------------------------------------------------------------------------------------


def test_a_backup_of_a_store_in_use_is_one_state_of_it(url: str, tmp_path: Path) -> None:
    study = lake(url)
    study.run(truth, steps=3)
    copy = tmp_path / "copy.db"
    assert main(["backup", url, str(copy)]) == 0
    before = tv.load(url, "lake")
    study.tell(study.ask(), 0.1)
    assert_same(tv.load(f"sqlite:///{copy}", "lake"), before)
    restored = tmp_path / "restored.db"
    shutil.copy(copy, restored)
    assert tv.load(f"sqlite:///{restored}", "lake").steps == 3


def test_a_backup_does_not_overwrite_a_file(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake(file)
    target = tmp_path / "copy.db"
    target.write_text("mine")
    assert main(["backup", file, str(target)]) == 1
    assert "which exists; give another name" in capsys.readouterr().err
    assert target.read_text() == "mine"


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_backup_is_restored_to_postgresql(url: str, file: str, path: Path) -> None:
    study = lake(file)
    study.run(truth, steps=3)
    assert main(["backup", str(path), url]) == 0
    restored = tv.load(url, "lake")
    assert_same(restored, study)
    assert restored.ask() == study.ask()


# -- PostgreSQL
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_silent_transaction_is_ended_by_the_server_and_a_slow_one_is_not(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake(url)
    monkeypatch.setattr(postgres_storage, "IDLE_TIMEOUT", 1)
    monkeypatch.setattr(postgres_storage, "ALIVE_SECONDS", 0.4)
    monkeypatch.setattr(postgres_storage, "_thread", None)
    study = tv.load(url, "lake")
    with study.transaction():
        study.tell(study.domain.point(0), 0.3)
        time.sleep(2.5)
    assert tv.load(url, "lake").steps == 1
    monkeypatch.setattr(postgres_storage, "ALIVE_SECONDS", 60.0)

    def stop() -> None:
        with study.transaction():
            study.tell(study.domain.point(1), 0.3)
            time.sleep(2.5)

    with pytest.raises(StorageError):
        stop()
    assert tv.load(url, "lake").steps == study.steps == 1
    study.tell(study.domain.point(1), 0.3)
    assert tv.load(url, "lake").steps == 2
