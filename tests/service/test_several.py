"""Several quantities in problem files, on the command line, over HTTP and on a server."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from tests.helpers.page import DESKTOP
from tests.helpers.server import store_url

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidMeasurementError, InvalidProblemError, TruvarError
from truvar.messages import interface
from truvar.report.html_report import render_html_report
from truvar.report.status import status_text
from truvar.report.terminal import TerminalStyle
from truvar.service import Server

DOMAIN = "[domain]\ngrid = {x = [0, 1, 30], y = [0, 1, 4]}\n"
MODEL = "[model]\nlengthscales = 0.2\nmean = 0.0\n[noise]\nvariance = 1e-4\n"
REGION = f'{DOMAIN}[goal]\nall_of = ["yield >= 0", "impurity <= 0.2"]\n{MODEL}'
OPTIMUM = f'{DOMAIN}[goal]\nmaximize = "yield"\nsubject_to = "impurity <= 0.2"\n{MODEL}'
PRICED = f"{REGION}[quantities.yield]\ncost = 4.0\n[quantities.impurity]\nnoise = 0.01\n"
PAGES = {"region": REGION, "optimum": OPTIMUM, "priced": PRICED}


def measure(point):
    return {"yield": float(np.sin(7 * point["x"])), "impurity": float(np.cos(5 * point["x"]))}


def problem(text, tmp_path):
    path = tmp_path / "tank.toml"
    path.write_text(f'name = "tank"\n{text}')
    return tv.load_problem(path)


# -- problem files
# --------------------------------------------------------------------------------------------------


def test_goals_and_quantities_of_a_problem_file(tmp_path):
    study = problem(PRICED, tmp_path).study()
    assert study.goal.parts.keys() == {"yield", "impurity"}
    assert study.ask().quantities
    assert study._learner.parts["impurity"].surrogate.noise == 0.01
    best = problem(OPTIMUM, tmp_path).study().goal
    assert str(best) == str(tv.Maximize("yield", subject_to="impurity <= 0.2"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (REGION.replace('"yield >= 0", ', '"yield", '), "must compare quantities"),
        (REGION.replace('["yield >= 0", "impurity <= 0.2"]', "3"), "comparisons such as"),
        (OPTIMUM.replace('"yield"', "true"), "subject_to needs the quantity"),
        (f"{REGION}[quantities.zinc]\ncost = 1\n", "unknown quantity 'zinc'"),
        (f"{REGION}[quantities.yield]\ncost = -1\n", "cost"),
        (f'{REGION}[policy]\nname = "ei"\n', "EI is for"),
    ],
)
def test_a_mistake_in_a_problem_file_has_one_message(text, words, tmp_path):
    with pytest.raises(TruvarError, match=words) as error:
        problem(text, tmp_path).study()
    assert "\n" not in str(error.value) or isinstance(error.value, InvalidProblemError)


def test_two_limits_of_a_quantity_in_a_problem_file_are_to_be_written_as_one(tmp_path):
    text = REGION.replace('"yield >= 0"', '"impurity >= 0"')
    with interface("cli"), pytest.raises(TruvarError, match='such as "5 <= impurity <= 7"'):
        problem(text, tmp_path).study()


# -- command line
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def tank(tmp_path, monkeypatch, capsys):
    """A function that runs a command on a stored study and returns its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUVAR_STORE", store_url(tmp_path / "tank.db"))
    (tmp_path / "tank.toml").write_text(f'name = "tank"\n{REGION}')

    def run(*words):
        code = main(list(words))
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    assert run("new", "tank.toml")[0] == 0
    return run


def test_the_command_line_tells_several_values(tank):
    assert tank("ask")[0] == 0
    code, text = tank("tell", "1", "yield=0.4", "impurity=-0.1")
    assert code == 0
    assert "told 1: inside" in text
    code, text = tank("tell", "x=0", "y=0", "yield=0.2", "x=1", "y=0", "impurity=0.9")
    assert (code, "told 2, 3" in text) == (0, True)
    code, text = tank("correct", "1", "yield=0.5", "impurity=-0.2")
    assert code == 0
    code, text = tank("status")
    assert "where is yield above 0 and impurity below 0.2?" in text
    code, text = tank("export")
    assert "yield" in text


def test_a_program_prints_the_values_by_name(tank):
    code, text = tank(
        "run", "--command", "echo yield={x:.2f} impurity=0.4 7", "--steps", "3", "--quiet", "--json"
    )
    assert code == 0, text
    assert json.loads(text)["result"]["steps"] == 3
    (line, *_) = tank("export", "--csv")[1].strip().splitlines()[1:]
    assert line.endswith("0.4")
    code, text = tank("run", "--command", "echo 0.4", "--steps", "5", "--quiet", "--retries", "0")
    assert code == 1
    assert "must print yield=VALUE impurity=VALUE, got '0.4'" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1", "0.4"), "quantity of the value '0.4' is missing"),
        (("1", "yeild=0.4"), "did you mean 'yield'"),
        (("1", "yield=high"), "the value of yield must be"),
        (("1", "yield=nan"), "at least one of the quantities"),
        (("1",), "values of a measurement are missing"),
        (("yield=3",), "id or point of values is missing"),
        (("1", "yield=3", "yield=4"), "given twice"),
    ],
)
def test_words_that_cannot_be_told_have_one_line(tank, words, message):
    tank("ask")
    code, text = tank("tell", *words)
    assert code == 1
    assert message in text
    assert len(text.strip().splitlines()) == 1
    assert json.loads(tank("status", "--json")[1])["result"]["steps"] == 0


def test_a_csv_file_has_a_column_per_quantity(tank, tmp_path):
    table = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0], "yield": [1, 2], "impurity": [None, 3]})
    table.to_csv(tmp_path / "values.csv", index=False)
    code, text = tank("tell", "--csv", "values.csv")
    assert (code, "told 1, 2" in text) == (0, True)
    code, text = tank("tell", "--csv", "values.csv")
    assert "nothing" in text


# -- service
# --------------------------------------------------------------------------------------------------


def test_values_by_name_over_http(application, tmp_path):
    client = application(store_url(tmp_path / "s.db"))
    assert client.post("/api/studies", json={"name": "s", "problem": PRICED}).status_code == 201
    asked = client.post("/api/studies/s/ask", json={}).json()["suggestions"][0]
    assert asked["quantities"]
    for y, words in ((3.0, "single value"), ({"zinc": 1.0}, "zinc"), ({"yield": "a"}, "y")):
        answer = client.post("/api/studies/s/tell", json={"id": asked["id"], "y": y})
        assert answer.status_code == 422
        assert words in answer.json()["error"]
    values = measure(asked["point"])
    answer = client.post("/api/studies/s/tell", json={"id": asked["id"], "y": values})
    assert answer.status_code == 200
    point = {"x": 0.0, "y": 0.0}
    answer = client.post("/api/studies/s/tell", json={"point": point, "y": {"impurity": 0.3}})
    assert answer.status_code == 200
    rows = client.get("/api/studies/s/measurements").json()["measurements"]
    assert rows[0]["values"] == values
    assert rows[1]["value"] is None
    assert client.get("/api/studies/s/view").status_code in (200, 404)
    assert client.get("/api/studies/s/status").status_code == 200
    assert client.get("/api/studies/s/posterior").status_code == 200


@pytest.mark.parametrize("name", PAGES)
def test_a_study_on_a_server_answers_as_a_local_one(served, name, tmp_path):
    api, _ = served
    local = problem(PAGES[name], tmp_path).study()
    remote = Server(api.url).create(PAGES[name], f"several {name}")
    for study in (local, remote):
        for _ in range(5):
            suggestion = study.ask()
            values = measure(suggestion.point)
            study.tell(suggestion, {each: values[each] for each in suggestion.quantities})
        study.tell({"x": 0.0, "y": 0.0}, {"impurity": 0.3})
    ours = local.result()
    theirs = remote.result()
    assert np.allclose(ours.probability, theirs.probability)
    assert np.allclose(ours.quantities["impurity"].mean, theirs.quantities["impurity"].mean)
    assert str(ours.certificate) == str(theirs.certificate)
    assert ours.best == theirs.best
    pd.testing.assert_frame_equal(local.measurements, remote.measurements)
    with pytest.raises(InvalidMeasurementError, match="zinc"):
        remote.tell({"x": 0.0, "y": 0.0}, {"zinc": 0.3})


# -- outputs
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_status_report_and_figures(name, tmp_path):
    study = problem(PAGES[name], tmp_path).study()
    assert status_text(study, TerminalStyle(width=100))
    for _ in range(6):
        suggestion = study.ask()
        study.tell(suggestion, measure(suggestion.point))
    study.tell({"x": 0.0, "y": 0.0}, {"impurity": 0.3})
    text = status_text(study, TerminalStyle(width=100))
    assert study.goal.question in text
    page = render_html_report(study)
    assert "impurity" in page
    assert study.plot() is not None
    assert "impurity" in repr(study)
    assert study.result()._repr_html_()
    assert study._repr_html_()


def test_a_correction_is_in_the_report_and_in_a_request(application, tmp_path):
    client = application(store_url(tmp_path / "s.db"))
    client.post("/api/studies", json={"name": "s", "problem": REGION})
    client.post("/api/studies/s/ask", json={})
    assert client.post("/api/studies/s/tell", json={"id": 1, "y": {"yield": 1}}).status_code == 200
    late = client.post("/api/studies/s/tell", json={"id": 1, "y": {"impurity": 0.5}})
    assert 'id 1, y {"impurity": 0.5}' in late.json()["error"]
    body = {"id": 1, "y": {"impurity": 0.5}}
    assert client.post("/api/studies/s/correct", json=body).status_code == 200
    rows = client.get("/api/studies/s/measurements").json()["measurements"]
    assert rows[0]["values"] == {"yield": 1.0, "impurity": 0.5}
    report = client.get("/api/studies/s/report")
    assert report.status_code == 200
    assert "1 corrected to yield 1, impurity 0.5" in report.text


def test_the_page_takes_and_corrects_every_quantity(page_on, served):
    api, _ = served
    api.create("tank", REGION)
    page = page_on(DESKTOP, "#/study/tank")
    for k, values in enumerate([(0.4, 0.1), (0.1, 0.3), (0.5, None), (0.2, 0.0), (0.3, 0.1)]):
        page.get_by_role("button", name="Suggest next").click()
        card = page.locator(f'.suggestion[data-id="{k + 1}"]')
        card.get_by_label("yield").fill(str(values[0]))
        if values[1] is not None:
            card.get_by_label("impurity").fill(str(values[1]))
        card.get_by_role("button", name="Save").click()
        page.locator(f'.measurements tbody tr[data-id="{k + 1}"]').wait_for()
    page.get_by_role("button", name="Suggest next").click()
    page.locator('.suggestion[data-id="6"]', has_text="Expected: yield ").wait_for()
    text = page.locator('.suggestion[data-id="6"]').inner_text()
    assert re.search(r"Expected: yield \S+ \(95 %: .*\), impurity \S+ \(95 %: ", text)
    for id_, changes in ((3, {"impurity": "0.7"}), (2, {"impurity": ""})):
        page.get_by_role("button", name=f"Correct measurement {id_}").click()
        for name, value in changes.items():
            page.get_by_role("dialog").get_by_label(name).fill(value)
        page.get_by_role("dialog").get_by_role("button", name="Correct", exact=True).click()
        page.get_by_role("dialog").wait_for(state="detached")
    rows = api.get("/studies/tank/measurements")["measurements"]
    assert rows[2]["values"] == {"yield": 0.5, "impurity": 0.7}
    assert rows[1]["values"] == {"yield": 0.1}
    page.get_by_text("History and notes").click()
    page.get_by_text("#3 corrected to yield 0.5, impurity 0.7.").wait_for()
