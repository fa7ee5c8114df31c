"""Convergence, model, problems that are checked, renaming and deleting: what the page needs
beside the view."""

import logging

import pytest
from tests.helpers.server import CURVE, GRID

from truvar.storage.deletions import read_deletions

TABLE = "x;group;y\n0,5;a;1\n1,5;b;2\n2,5;b;4\n"
BANDS = GRID.replace("level_set = 0.2", "level_set = [0.0, 0.5]")
CONTEXT = """
[domain]
grid = {dose = [0, 1, 6], warmth = [10, 20, 3]}
context = ["warmth"]
[goal]
maximize = true
"""


@pytest.fixture
def client(application, tmp_path):
    return application(f"sqlite:///{tmp_path}/studies.db")


def create(client, name, problem=CURVE, **more):
    answer = client.post("/api/studies", json={"name": name, "problem": problem, **more})
    assert answer.status_code == 201, answer.text


def tell(client, name, **body):
    answer = client.post(f"/api/studies/{name}/tell", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def get(client, path, status=200):
    answer = client.get(f"/api{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


def test_convergence_has_the_best_value_and_the_score_after_each_checkpoint(client):
    create(client, "run", CURVE + "[run]\nregret = 0.05\n")
    assert get(client, "/studies/run/convergence")["scores"] == []
    for k, y in enumerate((0.2, 1.0, 0.5, 1.5)):
        tell(client, "run", point={"x": k / 4}, y=y)
    found = get(client, "/studies/run/convergence")
    assert [row["best"] for row in found["best"]] == [0.2, 1.0, 1.0, 1.5]
    assert (found["score"], found["goal"]) == ("regret", 0.05)
    assert [row["steps"] for row in found["scores"]] == [1, 2, 3, 4]
    status = get(client, "/studies/run/status")["result"]["expected_regret"]
    assert {name: found["scores"][-1][name] for name in status} == status
    before = found["scores"][:2]
    assert client.post("/api/studies/run/correct", json={"id": 3, "y": 0.6}).status_code == 200
    again = get(client, "/studies/run/convergence")
    assert again["scores"][:2] == before  # what came before the corrected value stays
    assert again["scores"][2] != found["scores"][2]
    assert get(client, "/studies/nobody/convergence", 404)["exception"] == "StudyNotFoundError"


def test_model_has_check_importance_and_curves_through_a_point(client):
    create(client, "model", GRID)
    assert get(client, "/studies/model/model")["check"]["values"] == []
    for k in range(6):
        tell(client, "model", point={"x": k / 5, "y": 0.5}, y=float(k % 3))
    found = get(client, "/studies/model/model")
    assert len(found["check"]["z_scores"]) == len(found["check"]["ids"]) == 6
    assert [row["column"] for row in found["importance"]] == ["x", "y"]
    assert found["importance"][0]["total"] > 0.2
    curve = found["profiles"][0]
    assert curve["column"] == "x"
    assert all(
        low < mean < high
        for low, mean, high in zip(curve["low"], curve["mean"], curve["high"], strict=True)
    )
    other = get(client, "/studies/model/model?at=0.25,0.75")
    assert other["at"] == {"x": 0.25, "y": 0.75}
    assert other["profiles"][0]["mean"] != curve["mean"]
    assert "one number per column" in get(client, "/studies/model/model?at=1", 422)["error"]
    assert "at" in get(client, "/studies/model/model?at=0.25,east", 422)["error"]
    assert get(client, "/studies/nobody/model", 404)["exception"] == "StudyNotFoundError"


def test_a_mean_that_the_domain_alone_has_is_reported_instead_of_curves(client):
    problem = '[domain]\ntable = "t.csv"\ncolumns = ["x"]\n[goal]\nmaximize = true\n'
    problem += (
        '[model]\nkernel = "rbf"\nlengthscales = [1.0]\nmean = "y"\n[noise]\nvariance = 0.01\n'
    )
    create(client, "column", problem, tables={"t.csv": TABLE})
    tell(client, "column", point={"x": 0.5}, y=1.0)
    found = get(client, "/studies/column/model")
    assert found["profiles"] is None
    assert "cannot be drawn between them" in found["problem"]


def test_view_has_expected_values_bands_and_context(client):
    create(client, "bands", BANDS)
    tell(client, "bands", point={"x": 0.0, "y": 0.0}, y=1.0)
    (suggestion,) = client.post("/api/studies/bands/ask", json={}).json()["suggestions"]
    view = get(client, "/studies/bands/view")
    (pending,) = view["pending"]
    assert pending["id"] == suggestion["id"]
    assert pending["expected"]["low"] < pending["expected"]["mean"] < pending["expected"]["high"]
    assert pending["lookahead"]["variance_reduction"] > 0
    assert view["bands"]["names"] == ["below 0", "0 to 0.5", "above 0.5"]
    assert set(view["bands"]["of"]) <= {-1, 0, 1, 2}
    assert len(view["bands"]["of"]) == view["shown"]
    create(client, "given", CONTEXT)
    assert [column["context"] for column in get(client, "/studies/given/view")["columns"]] == [
        False,
        True,
    ]
    assert get(client, "/studies/given/view")["bands"] is None


def test_a_problem_is_checked_as_truvar_new_does_and_nothing_is_stored(client):
    body = {"problem": GRID.replace("0.3, 0.3", "0.001, 0.3"), "tables": {}}
    found = client.post("/api/problems/check", json=body).json()
    assert found["points"] == 120
    assert "neighbouring points" in found["warnings"][0]
    assert {row["name"]: row["text"] for row in found["rows"]}["domain"].startswith(
        "120 points of a grid"
    )
    assert [len(column) for column in found["coordinates"]] == [120, 120]
    assert get(client, "/studies")["studies"] == []
    wrong = client.post(
        "/api/problems/check", json={"problem": "[domain]\ngrid = {x = [0, 1, 20000]}\n"}
    )
    assert wrong.status_code == 422
    assert "goal" in wrong.json()["error"]
    large = client.post("/api/problems/check", json={"problem": GRID.replace("12]", "12000]")})
    assert "at most 10,000 points of the grid" in large.json()["error"]


def test_columns_of_a_table_are_described(client, application, tmp_path):
    found = client.post("/api/problems/columns", json={"text": TABLE}).json()
    assert found["rows"] == 3
    assert [column["kind"] for column in found["columns"]] == ["number", "text", "number"]
    assert (found["columns"][0]["low"], found["columns"][0]["high"]) == (0.5, 2.5)
    assert found["columns"][1]["examples"] == ["a", "b"]
    small = application(f"sqlite:///{tmp_path}/small.db", points=2)
    refused = small.post("/api/problems/columns", json={"text": TABLE})
    assert refused.status_code == 422
    assert "at most" in refused.json()["error"]


def test_repeats_with_a_key_count_once(client):
    create(client, "repeats")
    body = {"point": {"x": 0.0}, "values": [1.0, 1.2, 0.9], "key": "a-key-of-mine"}
    first = client.post("/api/studies/repeats/tell-repeats", json=body).json()
    again = client.post("/api/studies/repeats/tell-repeats", json=body).json()
    assert first["ids"] == again["ids"] == [1, 2, 3]
    assert again["steps"] == 3
    more = {"id": 1, "values": [1.1], "key": "another-key"}
    assert client.post("/api/studies/repeats/tell-repeats", json=more).json()["ids"] == [4]
    assert client.post("/api/studies/repeats/tell-repeats", json=more).json()["ids"] == [4]


def test_a_study_is_renamed_and_its_event_log_notes_it(client):
    create(client, "lake")
    tell(client, "lake", point={"x": 0.0}, y=1.0)
    headers = {"X-Truvar-Who": "anna"}
    unconfirmed = client.post("/api/studies/lake/rename", json={"name": "sea", "confirm": "sea"})
    assert unconfirmed.status_code == 422
    assert "confirm must be the name of the study, 'lake'" in unconfirmed.json()["error"]
    create(client, "taken")
    body = {"name": "taken", "confirm": "lake"}
    assert client.post("/api/studies/lake/rename", json=body).status_code == 409
    body = {"name": "sea", "confirm": "lake"}
    assert client.post("/api/studies/lake/rename", json=body, headers=headers).json() == {
        "name": "sea"
    }
    get(client, "/studies/lake/view", 404)
    event = get(client, "/studies/sea/events")["events"][0]
    assert (event["who"], event["details"]["text"]) == ("anna", "renamed from 'lake' to 'sea'")
    assert tell(client, "sea", point={"x": 0.5}, y=2.0)["steps"] == 2


def test_a_study_is_deleted_after_a_confirmation_and_the_log_tells_of_it(client, caplog):
    create(client, "old")
    create(client, "kept")
    tell(client, "old", point={"x": 0.0}, y=1.0)
    assert client.post("/api/studies/old/delete", json={"confirm": "Old"}).status_code == 422
    with caplog.at_level(logging.WARNING, "truvar.service"):
        answer = client.post(
            "/api/studies/old/delete", json={"confirm": "old"}, headers={"X-Truvar-Who": "anna"}
        )
    assert answer.json() == {"name": "old", "events": 2}
    assert "the study 'old' with 2 events was deleted by anna" in caplog.text
    (deletion,) = read_deletions(client.app.state.sessions._storage)
    assert (deletion.name, deletion.who, deletion.events) == ("old", "anna", 2)
    assert (
        client.post("/api/studies/old/tell", json={"point": {"x": 0.0}, "y": 1.0}).status_code
        == 404
    )
    assert client.post("/api/studies/old/delete", json={"confirm": "old"}).status_code == 404
    assert [row["name"] for row in get(client, "/studies")["studies"]] == ["kept"]
    create(client, "old")
    assert get(client, "/studies/old/view")["measurements"] == []


def test_tokens_follow_a_renamed_study_and_cannot_administer_it(client, tmp_path):
    from truvar.storage.administration import delete_study, rename_study
    from truvar.storage.rdb import RDBStorage
    from truvar.storage.tokens import add_token, list_tokens

    create(client, "mine")
    create(client, "other")
    storage = RDBStorage(f"sqlite:///{tmp_path}/studies.db")
    token = add_token(storage, "anna", studies=["mine", "other"])
    answer = client.post(
        "/api/studies/mine/delete",
        json={"confirm": "mine"},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code in (401, 403)  # a second may pass until the server knows the token
    rename_study(storage, "mine", "ours")
    assert list_tokens(storage)[0].studies == ("ours", "other")
    delete_study(storage, "ours")
    assert list_tokens(storage)[0].studies == ("other",)


def test_a_study_that_another_program_deletes_is_not_found(client, tmp_path):
    from truvar.storage.administration import delete_study
    from truvar.storage.rdb import RDBStorage

    create(client, "mine")
    get(client, "/studies/mine/view")
    delete_study(RDBStorage(f"sqlite:///{tmp_path}/studies.db"), "mine")
    assert client.get("/api/studies/mine/events").status_code == 404
    assert client.get("/api/studies/mine/view").status_code == 404
