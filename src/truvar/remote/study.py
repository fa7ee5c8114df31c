"""`RemoteStudy`: a study on a server, with the methods of a `Study`."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pandas as pd

from truvar._deprecation import deprecated_alias
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.domain.quantity import QuantityName
from truvar.exceptions import ServiceError, StudyStartedError
from truvar.inference.certificate import Certificate
from truvar.inference.limits import StatementLimits, StopCheck, check_improvement_goal
from truvar.remote._copied import CopiedViews
from truvar.remote._decoding import (
    decode_certificate,
    decode_number,
    decode_result,
    decode_suggestion,
    with_label,
)
from truvar.remote._encoding import encode_command, encode_target, plain
from truvar.storage.serialization import deserialize
from truvar.study.commands import Command, Correct, Extend, Fit, Receipt, Tell, TellRepeats
from truvar.study.records import FailureRecord, MeasurementRecord
from truvar.study.result import Result
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion

if TYPE_CHECKING:
    from truvar.remote.client import Server

_REPEATABLE = (Tell, TellRepeats, Correct)  # commands that count once, however often they arrive


class RemoteStudy(CopiedViews):
    """A study on a server, with the methods of a `Study`. Every call is a request to the server.

    Values are sent again if the connection fails, and count once. If it fails before the answer to
    `ask` arrives, the suggestions stay pending; a lease ends that. Every row of `tell_frame` is
    stored separately.

    Args:
        server: The server.
        name: Name of the study.

    Attributes:
        server: The server.

    Raises:
        StudyNotFoundError: If the server has no such study.
    """

    name: str

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.author = server.author
        self._path = study_path(name)
        self._stop_reason = None
        self._copy: Study | None = None
        definition = self._read_definition()
        self.policy = deserialize(definition["policy"])
        self.tasks = deserialize(definition["tasks"])
        self.levels = deserialize(definition["levels"])
        self.vehicles = deserialize(definition.get("vehicles", {}))
        self.repeats = deserialize(definition.get("repeats"))
        self.travels = definition["travels"]
        self.learns_cost = definition.get("learns_cost", False)
        self.quantity = QuantityName(definition.get("quantity"), definition.get("unit"))
        self.must_return = definition.get("returns", False)
        self.seed = definition["seed"]

    def _read_definition(self) -> Mapping[str, Any]:
        """Return what the study is about, and take over its domain and goal."""
        definition: Mapping[str, Any] = self._get("domain")
        self._domain: Domain = deserialize(definition["domain"])
        self._goal: Goal = deserialize(definition["goal"])
        return definition

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def goal(self) -> Goal:
        return self._goal

    def execute(self, command: Command) -> Receipt:
        if isinstance(command, Fit):
            raise StudyStartedError(
                "a model cannot be fitted on a server; fit that of a local study, then send it: "
                "server.create(study)"
            )
        body = encode_command(command.check(), self.domain)
        answer = self._post(command.name, body, repeatable=isinstance(command, _REPEATABLE))
        if isinstance(command, Extend):
            self._read_definition()
        suggestions = tuple(
            decode_suggestion(form, self._domain_with(form))
            for form in answer.get("suggestions", ())
        )
        ids = answer.get("ids") or [each.id for each in suggestions] or [answer.get("id", 0)]
        messages = answer.get("warnings", ())
        warned = answer.get(
            "warning_ids", range(-len(messages), 0)
        )  # an earlier release does not say of which
        warnings = dict(zip(warned, messages, strict=True))
        return Receipt(tuple(map(int, ids)), answer.get("version", 0), warnings, suggestions)

    def transaction(self) -> Any:
        raise ServiceError(
            "changes on a server are stored one by one; make them without a transaction, or open "
            "the store with tv.load"
        )

    together = deprecated_alias("transaction", removed_in="0.4.0")

    def refresh(self) -> None:
        """Take over the domain, which others may have extended; every other call asks the server."""
        self._read_definition()

    # -- what is known
    # ----------------------------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        """Counters, result, certificate and pending suggestions, as JSON values."""
        found: dict[str, Any] = self._get("status")
        return found

    @property
    def version(self) -> int:
        return int(self.status["version"])

    @property
    def steps(self) -> int:
        return int(self.status["result"]["steps"])

    @property
    def spent(self) -> float:
        return float(self.status["result"]["spent"])

    @property
    def epsilon(self) -> float:
        return decode_number(self.status["result"]["epsilon"], inf)

    @property
    def finished(self) -> str | None:
        reason: str | None = self.status["finished"]
        return reason

    @property
    def exhausted(self) -> str | None:
        reason: str | None = self.status["exhausted"]
        return reason

    @property
    def pending(self) -> list[Suggestion]:
        return [decode_suggestion(form, self._domain_with(form)) for form in self.status["pending"]]

    @property
    def limits(self) -> dict[str, float]:
        return dict(self.status["limits"])

    @property
    def failures(self) -> list[FailureRecord]:
        rows = self._get("failures")["failures"]
        return [FailureRecord(**with_label(row, self._domain_with(row))) for row in rows]

    @property
    def certificate(self) -> Certificate:
        """The certificate: statements with their probabilities and assumptions."""
        return decode_certificate(self._get("certificate"))

    def result(self) -> Result:
        posterior = self._get("posterior")
        if posterior["points"] != self.domain.values(self.domain.points).tolist():
            self._read_definition()
        return decode_result(self.domain, self.goal, posterior, self._stop_reason)

    def check_value(
        self,
        what: Suggestion | int | Mapping[str, Any],
        y: float,
        *,
        level: int | None = None,
        task: str | None = None,
    ) -> str | None:
        body = {"y": plain(y), "level": level, "task": task, **encode_target(what)}
        findings: list[str] = self._post("check", body, repeatable=True)["warnings"]
        return findings[0] if findings else None

    def _check_statements(self, limits: StatementLimits) -> StopCheck:
        given = {
            name: repr(float(limit)) for name, limit in vars(limits).items() if limit is not None
        }
        return StopCheck(**self._get(f"stop?{urlencode(given)}"))

    def improvement_per_cost(self) -> float:
        check_improvement_goal(self.goal)
        return decode_number(self._get("improvement")["improvement_per_cost"], inf)

    def measurement_records(self) -> list[MeasurementRecord]:
        rows = self._get("measurements")["measurements"]
        return [MeasurementRecord(**with_label(row, self._domain_with(row))) for row in rows]

    @property
    def history(self) -> pd.DataFrame:
        frame = pd.DataFrame(self._get("history"))
        return frame.assign(epsilon=frame["epsilon"].astype(float).fillna(inf))

    @property
    def events(self) -> pd.DataFrame:
        rows = self._get("events?newest=100000")["events"]
        frame = pd.DataFrame(rows[::-1], columns=["number", "time", "who", "kind", "details"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True, format="ISO8601"))

    def _domain_with(self, form: Mapping[str, Any]) -> Domain:
        """Return the domain; if it lacks the row of an answer, others have extended it."""
        if form["index"] is not None and form["index"] >= len(self.domain):
            self._read_definition()
        return self.domain

    def copy(self) -> Study:
        version = self.version
        if self._copy is None or self._copy.version != version:
            self._copy = Study.from_json(self.to_json())
        return self._copy

    def to_json(self) -> str:
        return self.server.get_text(f"{self._path}/export")

    def _get(self, what: str) -> Any:
        return self.server.get(f"{self._path}/{what}")

    def _post(self, what: str, body: Mapping[str, Any], *, repeatable: bool = False) -> Any:
        return self.server.post(f"{self._path}/{what}", body, repeatable=repeatable)


def study_path(name: str) -> str:
    """Return the path of a study below /api."""
    return f"/studies/{quote(name, safe='')}"
