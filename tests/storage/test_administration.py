"""Studies of a store are renamed and deleted, in SQLite and PostgreSQL."""

import numpy as np
import pytest

import truvar as tv
from truvar.exceptions import InvalidArgumentError, StudyExistsError, StudyNotFoundError
from truvar.storage.administration import delete_study, rename_study
from truvar.storage.rdb import RDBStorage

pytest.importorskip("sqlalchemy", reason="needs truvar[store]")


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
