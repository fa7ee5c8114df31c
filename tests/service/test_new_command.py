"""A command that is added to the tables is one of Python, of HTTP and of the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Self

import pytest
from tests.helpers.server import CURVE, store_url

import truvar as tv
from truvar import cli
from truvar.cli.changes import subcommands
from truvar.exceptions import InvalidArgumentError
from truvar.study._handlers import HANDLERS
from truvar.study._resolve import resolve_observed
from truvar.study._session import EventWriter
from truvar.study._state import StudyState
from truvar.study.commands import ARGUMENTS, INTERFACES, Argument, Command, Interface, Receipt

SEVERITIES = ("low", "high")


@dataclass(frozen=True)
class Recheck(Command):
    """Mark a measurement for a second look."""

    name: ClassVar[str] = "recheck"

    what: int
    severity: str = "low"

    def check(self) -> Self:
        if self.severity not in SEVERITIES:
            raise InvalidArgumentError(f"severity must be low or high, got {self.severity!r}")
        return self


def handle_recheck(state: StudyState, command: Recheck, write: EventWriter) -> Receipt:
    action = resolve_observed(state, command.what)
    write("noted", text=f"measurement {action.id}: {command.severity}")
    return Receipt((action.id,), state.version)


class CheckedStudy(tv.Study):
    def recheck(self, what: int, *, severity: str = "low") -> None:
        self.execute(Recheck(what, severity))


@pytest.fixture(autouse=True)
def recheck(monkeypatch):
    """The entries of the tables, as a new command has them."""
    severity = Argument(str, "How bad it is.", {"pattern": "^(low|high)$"}, is_option=True)
    interface = Interface(
        target="measurement",
        done="marked",
        summary="Mark a measurement for a second look",
        help="mark measurements for a second look",
        words="ids of the measurements",
        example="truvar recheck 3 --severity high",
    )
    monkeypatch.setitem(ARGUMENTS, "severity", severity)
    monkeypatch.setitem(INTERFACES, Recheck, interface)
    monkeypatch.setitem(HANDLERS, Recheck, handle_recheck)
    own = [each for each in subcommands() if each.name == "recheck"]
    monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, *own))


def notes(study: tv.Study) -> list[str]:
    return [details["text"] for details in study.events["details"] if "text" in details]


def test_python_takes_the_option_of_a_new_command():
    study = CheckedStudy(tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.LevelSet(0.5))
    study.tell({"x": 0.5}, 0.7)
    study.recheck(1, severity="high")
    assert notes(study) == ["measurement 1: high"]
    with pytest.raises(InvalidArgumentError, match="severity"):
        study.recheck(1, severity="odd")


def test_a_request_takes_the_option_of_a_new_command(tmp_path, application):
    url = store_url(tmp_path / "s.db")
    client = application(url)
    client.post("/api/studies", json={"name": "s", "problem": CURVE})
    client.post("/api/studies/s/tell", json={"point": {"x": 0.0}, "y": 0.5})
    answer = client.post("/api/studies/s/recheck", json={"id": 1, "severity": "high"})
    assert (answer.status_code, answer.json()["id"]) == (200, 1)
    assert (
        client.post("/api/studies/s/recheck", json={"id": 1, "severity": "odd"}).status_code == 422
    )
    assert client.post("/api/studies/s/recheck", json={"severity": "low"}).status_code == 422
    assert notes(tv.load(url, "s")) == ["measurement 1: high"]
    described = client.get("/api/openapi.json").json()
    route = described["paths"]["/api/studies/{name}/recheck"]["post"]
    assert route["summary"] == "Mark a measurement for a second look"
    assert "severity" in described["components"]["schemas"]["Recheck"]["properties"]


def test_the_command_line_takes_the_option_of_a_new_command(tmp_path, capsys):
    url = store_url(tmp_path / "s.db")
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.LevelSet(0.5), store=url, name="s", noise=0.01
    )
    study.tell({"x": 0.5}, 0.7)
    study.tell({"x": 0.0}, 0.1)
    assert cli.main(["recheck", "1", "2", "--severity", "high", "--store", url]) == 0
    assert capsys.readouterr().out.startswith("marked 1, 2: ")
    assert cli.main(["recheck", "1", "--json", "--store", url]) == 0
    assert json.loads(capsys.readouterr().out)["marked"] == [1]
    assert cli.main(["recheck", "1", "--severity", "odd", "--store", url]) == 1
    assert notes(tv.load(url, "s")) == [
        "measurement 1: high",
        "measurement 2: high",
        "measurement 1: low",
    ]
    cli.main(["help", "recheck"])
    assert "how bad it is" in capsys.readouterr().out
