"""A program written for a `Study` does the same with a study on a server."""

import numpy as np
import pandas as pd
import pytest
from tests.helpers.server import CURVE, GRID

import truvar as tv
from truvar.exceptions import (
    AccessDeniedError,
    DamagedStudyError,
    InvalidArgumentError,
    InvalidProblemError,
    LimitExceededError,
    SerializationError,
    ServiceError,
    StorageError,
    StudyExistsError,
    StudyNotFoundError,
    StudyStartedError,
    TruvarError,
    UnsupportedGoalError,
)
from truvar.service import Server


def measure(point):
    return float(np.sin(3 * point["x"]) * np.cos(2 * point.get("y", 0.0)))


def program(study):
    """Use every method that changes a study."""
    for _ in range(4):
        s = study.ask()
        study.tell(s, measure(s.point))
    batch = study.ask(3, lease=3600)
    study.tell(batch[1].id, np.float64(0.125), cost=2.0)
    study.withdraw(batch[0])
    last = study.tell({"x": 0.0, "y": 1.0}, 0.75, noise=0.02)
    study.correct(last, 0.5)
    study.note("a remark")
    return study.run(measure, steps=8)


@pytest.fixture
def pair(served, tmp_path):
    """One problem as a local study and as one on the server."""
    from truvar.service._limits import ServiceLimits
    from truvar.service._uploads import uploaded_problem

    api, _ = served
    name = f"pair {tmp_path.name}"
    local = uploaded_problem(name, GRID, {}, ServiceLimits()).study()
    remote = Server(api.url).create(GRID, name)
    return local, remote


def test_the_side_of_a_threshold_reaches_the_server_and_comes_back(served):
    api, _ = served
    remote = Server(api.url).create(GRID.replace("level_set", "level_set_below"), "low")
    for x in (0.0, 0.5, 1.0):
        remote.tell({"x": x, "y": 0.0}, x)
    assert remote.goal.side == "below"
    here = tv.Study(
        remote.domain, remote.goal, kernel=remote.kernel, mean=0.0, noise=1e-3, policy="auto"
    )
    for x in (0.0, 0.5, 1.0):
        here.tell({"x": x, "y": 0.0}, x)
    assert remote.result().expected_f1 == here.result().expected_f1
    np.testing.assert_array_equal(remote.result().classification, here.result().classification)


def test_a_program_moves_from_a_local_study_to_a_server_by_one_line(pair):
    local, remote = pair
    here = program(local)
    there = program(remote)
    for name in ("mean", "sd", "lower", "upper", "potential", "above", "below"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name), err_msg=name)
    assert (here.best, here.epsilon, here.spent, here.steps, here.reason, here.measured) == (
        there.best,
        there.epsilon,
        there.spent,
        there.steps,
        there.reason,
        there.measured,
    )
    assert here.certificate == there.certificate == remote.certificate
    pd.testing.assert_frame_equal(local.measurements, remote.measurements)
    pd.testing.assert_frame_equal(local.history, remote.history)
    pd.testing.assert_frame_equal(here.to_frame(), there.to_frame())
    assert local.pending == remote.pending
    assert (local.steps, local.spent, local.epsilon, local.finished) == (
        remote.steps,
        remote.spent,
        remote.epsilon,
        remote.finished,
    )
    kinds = remote.events["kind"].tolist()
    assert kinds == local.events["kind"].tolist()
    assert remote.events["who"].iloc[-1] == local.events["who"].iloc[-1]
    assert tv.Study.from_json(remote.to_json()).steps == local.steps
    assert remote.plot() is not None


def test_connect_finds_the_study_by_address_or_name(served):
    api, _ = served
    api.create("a/b <i>", CURVE)
    assert tv.connect(f"{api.url}/#/study/a%2Fb%20%3Ci%3E").name == "a/b <i>"
    assert tv.connect(api.url, name="a/b <i>").steps == 0
    with pytest.raises(StudyNotFoundError, match="expected one where no name is given"):
        tv.connect(api.url)
    with pytest.raises(StudyNotFoundError, match="no study 'nowhere'"):
        tv.connect(api.url, name="nowhere")
    with pytest.raises(InvalidArgumentError, match="address of a server must be like"):
        tv.connect("lake.db")


def test_a_server_that_cannot_be_reached_is_named(monkeypatch):
    from truvar.remote import client

    monkeypatch.setattr(client, "RETRY_SECONDS", 0.0)
    with pytest.raises(ServiceError, match="cannot reach the server http://127"):
        tv.connect("http://127.0.0.1:9", name="lake")


@pytest.mark.parametrize(
    "mistake",
    [
        lambda study: study.tell({"x": 9.0, "y": 9.0}, 1.0),
        lambda study: study.tell({"x": 0.0}, 1.0),
        lambda study: study.tell(99, 1.0),
        lambda study: study.correct(99, 1.0),
        lambda study: study.withdraw(99),
    ],
)
def test_a_mistake_raises_the_same_exception_as_a_local_study(pair, mistake):
    local, remote = pair
    with pytest.raises(tv.TruvarError) as here:
        mistake(local)
    with pytest.raises(tv.TruvarError) as there:
        mistake(remote)
    assert type(there.value) is type(here.value)
    assert str(there.value) == str(here.value)


def test_refused_uploads_raise_exceptions_that_a_program_can_react_to(served):
    api, _ = served
    server = Server(api.url)
    server.create(CURVE, "taken")
    with pytest.raises(StudyExistsError, match="already a study 'taken'"):
        server.create(CURVE, "taken")
    with pytest.raises(InvalidProblemError, match=r"\[noise\] variance must be >= 0, got -1"):
        server.create(CURVE.replace("1e-3", "-1"), "negative")
    with pytest.raises(LimitExceededError, match="at most 10,000 points"):
        server.create(CURVE.replace("30]", "30000]"), "large")
    with pytest.raises(SerializationError, match="list of events"):
        server.post("/studies", {"name": "empty", "study": {}})


def test_a_token_that_is_not_accepted_raises_access_denied(guarded):
    url, write, read = guarded
    with pytest.raises(AccessDeniedError, match="unknown token"):
        Server(url, "x" * 20).studies()
    with pytest.raises(AccessDeniedError, match="reading only"):
        Server(url, read).create(CURVE, "mine")
    assert isinstance(Server(url, write).studies(), pd.DataFrame)


@pytest.mark.parametrize(
    ("status", "content", "expected"),
    [
        (401, b"", AccessDeniedError),
        (403, b"<html>Forbidden</html>", AccessDeniedError),
        (404, b"{}", StudyNotFoundError),
        (409, b'{"error": "x", "exception": "DamagedStudyError"}', DamagedStudyError),
        (409, b'{"error": "x", "finished": "all classified"}', tv.Finished),
        (413, b"", LimitExceededError),
        (422, b'{"error": "x", "exception": "import_optional"}', ServiceError),
        (422, b'{"error": "x", "exception": "KeyboardInterrupt"}', ServiceError),
        (502, b"Bad Gateway", ServiceError),
        (503, b"", StorageError),
    ],
)
def test_exceptions_follow_the_status_code_where_the_server_names_none(status, content, expected):
    import httpx

    answers = httpx.MockTransport(lambda request: httpx.Response(status, content=content))
    server = Server("http://127.0.0.1:1")
    server._http = httpx.Client(transport=answers, base_url="http://127.0.0.1:1/api")
    with pytest.raises(expected) as caught:
        server.get("/studies")
    assert type(caught.value) is expected


def test_a_finished_study_raises_finished(served):
    api, _ = served
    study = Server(api.url).create(CURVE.replace("[0, 1, 30]", "[0, 1, 2]"), "ends")
    result = study.run(lambda point: point["x"])
    assert result.reason
    assert study.finished
    with pytest.raises(tv.Finished):
        study.ask()


def test_a_local_study_is_sent_to_the_server_with_its_events(served):
    api, _ = served
    study = tv.Study(
        tv.Domain.table(pd.DataFrame({"t": [1.0, 2.0, 4.0], "note": ["a", "b", "c"]}), ["t"]),
        tv.Maximize(),
    )
    study.tell({"t": 2.0}, 3.0)
    remote = Server(api.url).create(study, "sent")
    assert remote.steps == 1
    assert remote.domain.frame.to_dict() == study.domain.frame.to_dict()
    assert (Server(api.url).studies()["name"] == "sent").any()


def test_learned_tasks_with_noise_levels_are_measured_on_a_server(served):
    api, _ = served
    tasks = {"names": ["truth", "proxy"], "cost": [5, 1]}
    levels = [{"variance": 1e-4, "cost": 2}, {"variance": 0.04, "cost": 0}]
    text = (
        "[domain]\ngrid = {x = [0, 1, 21]}\n[goal]\nmaximize = true\n"
        f"[tasks]\nnames = {tasks['names']}\ncost = {tasks['cost']}\n"
        "[noise]\nlevels = [{variance = 1e-4, cost = 2}, {variance = 0.04, cost = 0}]\n"
    )
    remote = Server(api.url).create(text, "learned tasks")
    assert remote.tasks == tv.Tasks(**tasks)
    assert remote.levels == tv.NoiseLevels(
        [each["variance"] for each in levels], [each["cost"] for each in levels]
    )
    remote.run(lambda point, level, task: measure(point) * (1 if task == "truth" else 3), steps=9)
    local = remote.copy()
    assert set(local.measurements["task"]) == {"truth", "proxy"}
    assert remote.learned_tasks == local.learned_tasks
    assert np.array_equal(remote.result().mean, local.result().mean)
    s = remote.ask()
    assert s.task in tasks["names"]
    remote.tell({"x": 0.5}, 1.0, level=1, task="proxy")
    assert remote.measurement_records()[-1].cost == 1.0


def test_a_problem_file_is_sent_with_its_tables(served, tmp_path):
    api, _ = served
    pd.DataFrame({"t": [1.0, 2.0, 4.0]}).to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "oven.toml"
    path.write_text('[domain]\ntable = "t.csv"\n[goal]\nmaximize = true\n')
    assert len(Server(api.url).create(path).domain) == 3


def test_what_a_study_can_do_one_on_a_server_can_do(pair):
    local, remote = pair
    beginnings = {"from_json", "from_event_log", "resumed"}
    names = {name for name in dir(tv.Study) if not name.startswith("_")} | set(vars(local))
    missing = [
        name
        for name in names - beginnings
        if not name.startswith("_") and not hasattr(remote, name)
    ]
    assert missing == []
    suggestion = local.ask()
    assert remote.ask() == suggestion
    assert remote.lookahead(suggestion) == local.lookahead(suggestion)
    assert remote.predict_measurement(suggestion) == local.predict_measurement(suggestion)
    np.testing.assert_array_equal(remote.predict([[0.33, 0.2]]), local.predict([[0.33, 0.2]]))
    assert (remote.limits, remote.epoch, remote.engine) == (local.limits, local.epoch, local.engine)
    remote.tell(suggestion, 0.5)
    assert remote.predict([[0.33, 0.2]])[1] < local.predict([[0.33, 0.2]])[1]
    with pytest.raises(AttributeError, match="no 'telepathy'"):
        remote.telepathy()


def test_methods_without_a_server_equivalent_say_what_to_do_instead(pair):
    _, remote = pair
    with pytest.raises(StudyStartedError, match=r"server\.create\(study\)"):
        remote.fit(pd.DataFrame())
    with pytest.raises(ServiceError, match="one by one"), remote.transaction():
        pass


def test_a_run_on_a_server_shows_its_progress_and_resumes_pending_suggestions(pair, capsys):
    _, remote = pair
    first = remote.ask()
    remote.run(measure, steps=2, resume=True, lease=3600, progress=True)
    assert first.id in list(remote.measurements["id"])
    assert "measurement    2/2" in capsys.readouterr().err


def test_limits_on_the_answer_end_a_run_on_a_server_where_they_end_it_here(pair):
    local, remote = pair
    here = local.run(measure, f1=0.9)
    there = remote.run(measure, f1=0.9)
    assert here.reason == there.reason
    assert str(here.reason).startswith("expected F1")
    assert remote.check_stop(f1=0.9) == local.check_stop(f1=0.9)


def test_the_limits_of_a_study_on_a_server_and_what_its_next_measurement_is_worth(served):
    api, _ = served
    limits = "[run]\nregret = 0.05\nimprovement_per_cost = 0.01\n"
    remote = Server(api.url).create(CURVE + limits, "limited")
    assert remote.limits == {"regret": 0.05, "improvement_per_cost": 0.01}
    assert remote.improvement_per_cost() == np.inf
    result = remote.run(measure)
    assert str(result.reason).startswith(("no measurement is worth its cost", "expected regret"))
    assert remote.improvement_per_cost() == remote.copy().improvement_per_cost()
    progress = remote.status["progress"]
    assert progress["regret"]["goal"] == 0.05
    assert progress["improvement_per_cost"]["value"] == remote.improvement_per_cost()
    with pytest.raises(UnsupportedGoalError, match="f1 needs a level set"):
        remote.run(measure, f1=0.9)


@pytest.mark.parametrize("query", ["f1=0.9", "regret=-1", "improvement_per_cost=x"])
def test_the_server_refuses_limits_that_make_no_sense(served, query):
    api, _ = served
    remote = Server(api.url).create(CURVE, f"refuses {query}")
    with pytest.raises(TruvarError):
        remote._get(f"stop?{query}")


def test_a_study_on_a_server_is_renamed_and_deleted(served):
    api, _ = served
    server = Server(api.url)
    server.create(CURVE, "a/name with ? signs")
    renamed = server.rename("a/name with ? signs", "renamed by a client")
    assert renamed.events["kind"].tolist() == ["created", "noted"]
    with pytest.raises(StudyNotFoundError):
        server.rename("a/name with ? signs", "again")
    server.delete("renamed by a client")
    with pytest.raises(StudyNotFoundError):
        server.study("renamed by a client")


def test_a_warning_names_the_measurement_that_it_is_about(pair):
    _, remote = pair
    for x in (0.0, 0.25, 0.5, 0.75, 1.0):
        remote.tell({"x": x, "y": 0.5}, 0.5 + 0.01 * x)
    with pytest.warns(tv.exceptions.OutlierWarning) as issued:
        id_ = remote.tell({"x": 0.3, "y": 0.5}, 1e6)
    assert {each.message.id for each in issued} == {id_}
