"""Learned costs in problem files, on the command line, over HTTP and on the page."""

from pathlib import Path

import pytest
from tests.helpers.page import DESKTOP, PHONE
from tests.helpers.server import CURVE

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidProblemError

LEARNED = f"{CURVE}[cost]\nlearned = true\nprior = 20\n"


def problem_file(folder: Path, cost: str) -> Path:
    path = folder / "ovens.toml"
    path.write_text(f"{CURVE}[cost]\n{cost}\n")
    return path


def test_a_problem_file_has_a_learned_cost(tmp_path: Path) -> None:
    path = problem_file(tmp_path, "learned = true\nprior = 20\nfactor = 3\ntravel = {x = 2}")
    study = tv.load_problem(path).study()
    assert study.learns_cost
    assert study.travels
    assert study.ask().cost == pytest.approx(20)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("learned = true\nbase = 4", "needs either learned or base, got both"),
        ('learned = true\ncolumn = "x"', "needs either learned or column, got both"),
        ("prior = 20", "has prior, which needs learned = true"),
        ("learned = true\nprior = -1", "prior"),
        ("learned = true\nfactor = 1", "factor of a learned cost must be above 1"),
        ('learned = true\nprior = "plan"', "plan"),
        ("learned = 1", "learned"),
    ],
)
def test_mistakes_in_a_problem_file_get_one_message(
    tmp_path: Path, cost: str, message: str
) -> None:
    with pytest.raises(tv.TruvarError, match=message):
        tv.load_problem(problem_file(tmp_path, cost))


def test_a_cost_that_is_not_learned_is_as_before(tmp_path: Path) -> None:
    assert not tv.load_problem(problem_file(tmp_path, "learned = false")).study().learns_cost
    with pytest.raises(InvalidProblemError, match="learned"):
        tv.load_problem(problem_file(tmp_path, "learnt = true"))


def test_the_command_line_tells_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    problem_file(tmp_path, "learned = true\nprior = 20")
    assert main(["new", "ovens.toml"]) == 0
    assert "learned from the costs that are told, 20 expected before" in capsys.readouterr().out
    assert main(["ask"]) == 0
    assert "expected 20 (" in capsys.readouterr().out
    assert main(["tell", "1", "0.4", "--cost", "12.5"]) == 0
    assert "12.5" in capsys.readouterr().out
    assert main(["ask"]) == 0
    assert main(["tell", "2", "0.5"]) == 0
    capsys.readouterr()
    assert main(["status"]) == 0
    status = " ".join(capsys.readouterr().out.split())
    assert "1 measurement without a cost, for which the expected one counts" in status
    assert main(["ask"]) == 0
    assert main(["tell", "3", "0.5", "--cost", "0"]) != 0
    assert "must be above 0" in capsys.readouterr().err


def test_a_program_prints_value_and_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = problem_file(tmp_path, "learned = true")
    store = ["--store", "sqlite:///o.db"]
    assert main(["new", str(path), *store]) == 0
    assert main(["run", "--command", "echo {x} 7.5", "--steps", "3", "--quiet", *store]) == 0
    capsys.readouterr()
    study = tv.load("sqlite:///o.db", "ovens")
    assert [record.cost for record in study.measurement_records()] == [7.5, 7.5, 7.5]


def test_requests_tell_costs_and_say_what_is_expected(served) -> None:
    api, store = served
    api.create("ovens", LEARNED)
    (first,) = api.post("/studies/ovens/ask", {})["suggestions"]
    assert first["cost"] == pytest.approx(20)
    low, high = first["cost_interval"]
    assert low < 20 < high
    api.post("/studies/ovens/tell", {"id": first["id"], "y": 0.3, "cost": 5})
    (second,) = api.post("/studies/ovens/ask", {})["suggestions"]
    assert second["cost"] < 20
    api.post("/studies/ovens/tell", {"id": second["id"], "y": 0.3, "cost": 0}, status=422)
    remote = tv.connect(api.url, "ovens")
    assert remote.learns_cost
    local = tv.load(store, "ovens")
    assert remote.pending == local.pending


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_asks_for_the_cost(page_on, served, device) -> None:
    api, _ = served
    name = f"kilns {device['viewport']['width']}"
    page = page_on(device)
    page.get_by_role("link", name="New study").first.click()
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_text("Ranges", exact=True).click()
    page.get_by_label("Cost of a measurement").fill("20")
    page.get_by_label("The cost").select_option("learned")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name=name, level=1).wait_for()
    page.get_by_role("button", name="Suggest next").click()
    suggestion = page.locator('.suggestion[data-id="1"]')
    assert "expected cost 20 (" in suggestion.inner_text()
    suggestion.get_by_label("Measured value").fill("1.5")
    suggestion.get_by_label("Actual cost").fill("12,5")
    suggestion.get_by_role("button", name="Save").click()
    page.locator('.measurements tbody tr[data-id="1"]').wait_for()
    (row,) = api.get(f"/studies/{name}/measurements")["measurements"]
    assert (row["cost"], row["cost_told"]) == (12.5, True)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
