"""`Study(..., if_exists="load")`: a notebook that is run again continues its study."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidArgumentError, SerializationError, StudyExistsError
from truvar.storage import InMemoryEventLog

LINE = tv.Domain.grid(x=np.linspace(0, 1, 41))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/lab.db"


def create(url, goal=None, domain=LINE, **options):
    given = {"store": url, "name": "lab", "if_exists": "load", **options}
    return tv.Study(domain, goal or tv.LevelSet(0.5), **given)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": RBF(0.2), "mean": 0.0, "noise": 0.01, "cost": tv.Cost(base=2.0)},
        {"noise": lambda points: 0.01 + points[:, 0], "limits": {"budget": 30}},
        {"policy": "truvar", "noise": tv.NoiseLevels([0.01, 0.1], [5.0, 1.0]), "start": "random"},
        {"kernel": tv.Learned("matern32"), "quantity": "oxygen", "unit": "mg/l", "repeats": False},
        {"outcome": "binary"},
        {"vehicles": ["A", "B"], "cost": tv.Cost(base=1.0, travel={"x": 2.0})},
    ],
)
def test_the_first_call_creates_and_the_second_continues(url, options):
    first = create(url, **options)
    vehicle = "A" if "vehicles" in options else None
    suggestion = first.ask(vehicle=vehicle)
    first.tell(suggestion, 1.0)
    second = create(url, **options)
    assert second.steps == 1
    assert second.version == first.version
    suggestion = second.ask(vehicle=vehicle)
    first.refresh()
    assert first.pending == [suggestion]
    second.tell(suggestion, 1.0)
    assert len(tv.studies(url)) == 1
    assert tv.load(url, "lab").steps == 2


def test_a_table_is_compared_by_its_contents(url, tmp_path):
    path = tmp_path / "plates.csv"
    path.write_text("name,x\nA,0.0\nB,0.5\nC,1.0\n")
    create(url, domain=tv.Domain.table(path, columns=["x"]))
    assert create(url, domain=tv.Domain.table(path, columns=["x"])).steps == 0
    path.write_text("name,x\nA,0.0\nB,0.5\nC,2.0\n")
    with pytest.raises(StudyExistsError, match="with other settings: domain"):
        create(url, domain=tv.Domain.table(path, columns=["x"]))


def test_other_settings_are_named_in_one_message(url):
    create(url, noise=0.01).tell({"x": 0.5}, 1.0)
    with pytest.raises(StudyExistsError) as caught:
        create(url, tv.LevelSet(0.7), noise=0.02)
    message = str(caught.value)
    assert "'lab' exists with other settings: goal (stored: LevelSet(" in message
    assert "noise (stored: 0.01, given: 0.02)" in message
    assert message.endswith("tv.load(store, name), or give another name")
    assert "\n" not in message
    assert tv.load(url, "lab").steps == 1


def test_by_default_a_name_is_taken_once(url):
    create(url)
    with pytest.raises(StudyExistsError):
        create(url, if_exists="fail")


def test_what_is_no_choice_is_refused(url):
    with pytest.raises(InvalidArgumentError, match=r"'lod'.*did you mean 'load'"):
        create(url, if_exists="lod")
    with pytest.raises(InvalidArgumentError, match=r"needs the store .* give store="):
        tv.Study(LINE, tv.Maximize(), if_exists="load")
    with pytest.raises(InvalidArgumentError, match="name"):
        create(url, name=None)


def test_an_event_log_is_continued():
    log = InMemoryEventLog()
    tv.Study(LINE, tv.Maximize(), store=log, if_exists="load").tell({"x": 0.5}, 1.0)
    assert tv.Study(LINE, tv.Maximize(), store=log, if_exists="load").steps == 1


def test_the_loser_of_a_race_continues_the_winner(url, monkeypatch):
    create(url).tell({"x": 0.5}, 1.0)
    from truvar.study import study as module

    found = module.existing_event_log
    answers = iter([lambda *_: None, found])
    monkeypatch.setattr(module, "existing_event_log", lambda *given: next(answers)(*given))
    assert create(url).steps == 1


def test_a_learned_model_continues_with_its_fits(url):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = create(url, tv.Maximize())
        study.run(lambda point: float(np.sin(5 * point["x"])), steps=8)
    again = create(url, tv.Maximize())
    np.testing.assert_array_equal(again.result().mean, study.result().mean)


def test_a_python_cost_function_says_what_can_be_stored(url):
    with pytest.raises(SerializationError, match=r'array.*Cost\(.*cost="learned"'):
        create(url, cost=lambda points, last: 1.0 + points[:, 0])
