"""Studies of a store are renamed and deleted, in SQLite and PostgreSQL."""

import re
from uuid import uuid4

import numpy as np
import pytest

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError, StudyExistsError, StudyNotFoundError
from truvar.storage.administration import delete_study, rename_study
from truvar.storage.backup import copy_store
from truvar.storage.base import now, whoami
from truvar.storage.deletions import read_deletions
from truvar.storage.rdb import RDBStorage

sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs truvar[store]")


def study(url, name):
    found = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 5)), tv.Maximize(), store=url, name=name)
    found.tell({"x": 0.0}, 1.0)
    return found


def test_a_renamed_study_keeps_its_events_and_those_who_have_it_open_go_on(url):
    opened = study(url, "lake")
    study(url, "taken")
    storage = RDBStorage(url)
    before = opened.to_json()
    with pytest.raises(StudyExistsError, match="already a study 'taken'"):
        rename_study(storage, "lake", "taken")
    with pytest.raises(InvalidArgumentError, match="name of 1 to 100 characters"):
        rename_study(storage, "lake", " ")
    with pytest.raises(StudyNotFoundError, match="no study 'sea'"):
        rename_study(storage, "sea", "ocean")
    rename_study(storage, "lake", "sea")
    assert storage.study_names() == ["sea", "taken"]
    renamed = tv.load(url, "sea")
    assert renamed.to_json().replace("sea", "lake") == before
    opened.tell({"x": 0.5}, 2.0)
    renamed.refresh()
    assert renamed.steps == 2


def test_a_deleted_study_is_gone_for_those_who_have_it_open(url):
    opened = study(url, "old")
    kept = study(url, "kept")
    storage = RDBStorage(url)
    assert delete_study(storage, "old") == 2
    with pytest.raises(StudyNotFoundError):
        delete_study(storage, "old")
    with pytest.raises(StudyNotFoundError, match="no longer in the store"):
        opened.tell({"x": 0.5}, 2.0)
    assert storage.study_names() == ["kept"]
    kept.tell({"x": 0.5}, 2.0)
    assert study(url, "old").steps == 1


def test_a_store_tells_which_studies_were_deleted_by_whom_also_in_a_copy(url, tmp_path, capsys):
    study(url, "old")
    study(url, "older")
    study(url, "kept")
    storage = RDBStorage(url)
    assert read_deletions(storage) == []
    delete_study(storage, "old", "anna")
    delete_study(storage, "older")
    study(url, "old")  # another one of that name
    delete_study(storage, "old", "bo" * 200)
    found = read_deletions(storage)
    assert [(each.name, each.events) for each in found] == [("old", 2), ("older", 2), ("old", 2)]
    assert [each.who for each in found] == ["anna", whoami(), "bo" * 100]
    assert abs((found[0].time - now()).total_seconds()) < 600
    assert main(["check", url]) == 0
    assert re.search(
        r"^old: deleted by anna, 20..-..-.. ..:.. UTC, with 2 events$",
        capsys.readouterr().out,
        re.M,
    )
    copy = RDBStorage(f"sqlite:///{tmp_path}/copy.db")
    copy_store(storage, copy)
    assert read_deletions(copy) == found


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_server_that_may_not_create_tables_deletes_without_a_note(url):
    study(url, "old")
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    role = f"crew_{uuid4().hex[:8]}"  # roles belong to the server, not to the database
    with engine.begin() as connection:
        for command in (
            f"CREATE ROLE {role} LOGIN",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
        ):
            connection.execute(sqlalchemy.text(command))
    engine.dispose()
    storage = RDBStorage(url.replace("//truvar@", f"//{role}@"))
    assert delete_study(storage, "old", "anna") == 2
    assert storage.study_names() == []
    assert read_deletions(storage) == []
