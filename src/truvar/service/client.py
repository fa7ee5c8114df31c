"""Client of a server in Python: `RemoteStudy` has the methods of a `Study`.

A program that works on a stored study works on one on a server after changing one line:

    study = tv.load("sqlite:///lake.db", "lake")
    study = tv.connect("http://127.0.0.1:8765/#/study/lake", token)
"""

from __future__ import annotations

import json
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import inf, nan
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import quote, unquote, urlencode, urlsplit

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from truvar import exceptions
from truvar._deprecation import deprecated_alias
from truvar._typing import Array, Mask
from truvar.domain.constraints import PolygonConstraint, is_geometry, polygon_of
from truvar.domain.costs import Tasks
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.domain.vehicles import Vehicle
from truvar.exceptions import (
    AccessDeniedError,
    Finished,
    InvalidArgumentError,
    LimitExceededError,
    OutlierWarning,
    ServiceError,
    StorageError,
    StudyNotFoundError,
    StudyStartedError,
    TruvarError,
    import_optional,
)
from truvar.inference.certificate import Certificate
from truvar.inference.limits import StopCheck, check_improvement_goal
from truvar.inference.statements import BandStatements, Estimate, JointStatements
from truvar.models.diagnostics import ModelCheck
from truvar.service.server import DEFAULT_PORT
from truvar.storage.base import whoami
from truvar.storage.serialization import deserialize
from truvar.study._inputs import PointLike, ValueLike, as_point, as_value
from truvar.study._views import measurement_frame
from truvar.study.frames import new_measurements, read_frame, suggestion_frame
from truvar.study.limits import RunLimits
from truvar.study.lookahead import Lookahead
from truvar.study.measurements_io import without_keys
from truvar.study.records import FailureRecord, MeasurementRecord
from truvar.study.result import Best, BestObserved, Result
from truvar.study.runner import run
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import VehicleStatus
from truvar.validation import check_integer

if TYPE_CHECKING:
    import httpx

# Attributes of `Study` that are computed here, on a copy of the study.
COPY_ATTRIBUTES = frozenset(
    {
        "candidates",
        "engine",
        "epoch",
        "exclusions",
        "gains",
        "kernel",
        "policy_context",
        "sample_measurement",
        "theory_setting",
    }
    | {"transform"}
    | {"expects", "imagine", "outlook", "scene", "setting"}  # deprecated names of some of these
)
MAX_ATTEMPTS = 4  # for a request that may be sent again
RETRY_SECONDS = 0.5  # before the second attempt; doubled before each further one

EXCEPTIONS_BY_STATUS: dict[int, type[TruvarError]] = {
    401: AccessDeniedError,
    403: AccessDeniedError,
    404: StudyNotFoundError,
    413: LimitExceededError,
    429: LimitExceededError,
    503: StorageError,
}
"""Exceptions for errors that do not name their class; `ServiceError` for any other status."""


def connect(url: str, token: str | None = None, name: str | None = None, *, who: str | None = None) -> RemoteStudy:
    """Return a study on a server.

    Args:
        url: Address of the server, or of the study as the browser shows it.
        token: Token of the server, if it needs one.
        name: Name of the study; not needed if the server has only one or `url` is that of the study.
        who: Who makes changes, for the event log; default: the user and the machine.

    Raises:
        StudyNotFoundError: If there is no such study, or several and no name.
        AccessDeniedError: If the server does not accept the token.
        ServiceError: If the server cannot be reached.
    """
    server = Server(url, token, who=who)
    name = name or server.study_in_url
    if name is None:
        names = list(server.studies()["name"])
        if len(names) != 1:
            listed = ", ".join(map(repr, names[:10])) or "none"
            raise StudyNotFoundError(
                f"the server has {len(names)} studies ({listed}), expected one where no name is given; give name=... "
                "or the address of the study"
            )
        (name,) = names
    return server.study(name)


class Server:
    """A server: lists its studies, opens and creates them.

    Args:
        url: Address of the server, such as http://127.0.0.1:8765.
        token: Token of the server, if it needs one.
        who: Who makes changes, for the event log; default: the user and the machine.
        timeout: Seconds to wait for an answer.

    Attributes:
        url: Address of the server.
        who: Who makes changes.
        study_in_url: Name of the study, if the address given was that of a study.
    """

    def __init__(self, url: str, token: str | None = None, *, who: str | None = None, timeout: float = 60.0) -> None:
        library = import_optional("httpx", "a connection to a server", "service")
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise InvalidArgumentError(
                f"the address of a server must be like http://127.0.0.1:{DEFAULT_PORT}, got {url!r}; correct it"
            )
        self.url = f"{address.scheme}://{address.netloc}"
        self.study_in_url = unquote(address.fragment.partition("/study/")[2]) or None
        self.who = (who or whoami()).encode("ascii", "replace").decode()
        headers = {"User-Agent": "truvar/python", "X-Truvar-Who": self.who}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http: httpx.Client = library.Client(base_url=f"{self.url}/api", headers=headers, timeout=timeout)
        weakref.finalize(self, self._http.close)  # a connection that is dropped leaves no open socket
        self._transport_error = library.TransportError

    def studies(self) -> pd.DataFrame:
        """Return a table of the studies of the server, like `truvar.studies`."""
        frame = pd.DataFrame(self.get("/studies")["studies"])
        if frame.empty:
            return pd.DataFrame(columns=["name", "goal", "steps", "spent", "pending", "created", "changed"])
        for column in ("created", "changed"):
            frame[column] = pd.to_datetime(frame[column], utc=True, format="ISO8601")
        return frame

    def study(self, name: str) -> RemoteStudy:
        """Return the study of that name.

        Raises:
            StudyNotFoundError: If there is none.
        """
        return RemoteStudy(self, name)

    def create(
        self,
        problem: str | Path | Mapping[str, Any] | Study,
        name: str | None = None,
        tables: Mapping[str, str | Path | pd.DataFrame] | None = None,
    ) -> RemoteStudy:
        """Create a study on the server.

        Args:
            problem: Text of a problem file, the `Path` of one (its tables are sent with it), a dict, or a local
                `Study`, which is copied with all its events.
            name: Name of the study; default: that of the file or of the local study.
            tables: Tables that the problem names: CSV text, the `Path` of a CSV file, or a DataFrame.

        Raises:
            StudyExistsError: If the name is taken.
            InvalidProblemError: If the problem has a mistake.
            LimitExceededError: If the problem is larger than the server allows.
        """
        body: dict[str, Any]
        if isinstance(problem, Study):
            body = {"study": json.loads(problem.to_json())}
            name = name or problem.name
        elif isinstance(problem, Path):
            body = {"problem": problem.read_text(encoding="utf-8")}
            tables = {**_tables_of_problem_file(problem), **(tables or {})}
            name = name or problem.stem
        else:
            body = {"problem": problem if isinstance(problem, str) else dict(problem)}
        if name is None:
            raise InvalidArgumentError("a study on a server needs a name, got none; give name=...")
        body["name"] = name
        body["tables"] = {key: _csv_text(table) for key, table in (tables or {}).items()}
        return self.study(self.post("/studies", body)["name"])

    def rename(self, name: str, new_name: str) -> RemoteStudy:
        """Give a study another name, which its event log notes, and return it.

        Args:
            name: Its present name.
            new_name: The other name.

        Raises:
            StudyNotFoundError: If there is no such study.
            StudyExistsError: If the other name is taken.
            InvalidArgumentError: If the other name cannot be used.
        """
        self.post(f"{_study_path(name)}/rename", {"name": new_name, "confirm": name})
        return self.study(new_name)

    def delete(self, name: str) -> None:
        """Delete a study with all its events, for good. The log of the server tells of it.

        Args:
            name: Its name.

        Raises:
            StudyNotFoundError: If there is no such study.
        """
        self.post(f"{_study_path(name)}/delete", {"confirm": name})

    def get(self, path: str) -> Any:
        """Return the answer to a GET request, from JSON.

        Args:
            path: Path below /api.

        Raises:
            TruvarError: If the server refuses the request; the class is that of the server's exception.
        """
        return self._request("GET", path, None, repeatable=True).json()

    def get_text(self, path: str) -> str:
        """Return the answer to a GET request as text.

        Args:
            path: Path below /api.

        Raises:
            TruvarError: If the server refuses the request.
        """
        return str(self._request("GET", path, None, repeatable=True).text)

    def post(self, path: str, body: Mapping[str, Any], *, repeatable: bool = False) -> Any:
        """Return the answer to a POST request, from JSON.

        Args:
            path: Path below /api.
            body: Sent as JSON.
            repeatable: Send it again if the connection fails, since the request counts once.

        Raises:
            Finished: If the study has nothing left to measure.
            TruvarError: If the server refuses the request.
        """
        return self._request("POST", path, body, repeatable).json()

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None, repeatable: bool) -> httpx.Response:
        attempts = MAX_ATTEMPTS if repeatable else 1
        for attempt in range(attempts):
            if attempt > 0:
                time.sleep(RETRY_SECONDS * 2 ** (attempt - 1))
            try:
                response = self._http.request(method, path, json=body)
            except self._transport_error as error:
                failure = error
                continue
            if response.is_success:
                return response
            raise _exception(response)
        raise ServiceError(f"cannot reach the server {self.url} ({failure}); check that it runs") from None


def _study_path(name: str) -> str:
    """Return the path of a study below /api."""
    return f"/studies/{quote(name, safe='')}"


def _exception(response: httpx.Response) -> Exception:
    """Return the exception for an error of the server: of the class that it names, or by the status code."""
    try:
        content = response.json()
    except ValueError:
        content = None
    if not isinstance(content, dict) or "error" not in content:  # not from truvar: a proxy, or another server
        content = {"error": response.text[:200] or "empty answer"}
    if "finished" in content:
        return Finished(content["finished"])
    named = getattr(exceptions, str(content.get("exception")), None)
    if isinstance(named, type) and issubclass(named, TruvarError):
        return named(content["error"])
    known = EXCEPTIONS_BY_STATUS.get(response.status_code, ServiceError)
    return known(f"{content['error']} (HTTP status {response.status_code})")


class RemoteStudy:
    """A study on a server, with the methods of a `Study`. Every call is a request to the server.

    Args:
        server: The server.
        name: Name of the study.

    Attributes:
        server: The server.
        name: Name of the study.
        who: Author of the changes that this object makes.
        domain: The candidate points.
        goal: The optimum or level set to find.
        policy: The policy that chooses the next measurement.
        tasks: Quantities that can be measured instead of the target, or None.
        levels: Noise levels to choose from, or None.
        vehicles: Vehicles or crews by name; none for a single crew.
        travels: Whether the cost depends on the point measured last.
        returns: Whether the way back to the start is compulsory.
        seed: Seed of the random choices.

    Raises:
        StudyNotFoundError: If the server has no such study.
    """

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.who = server.who
        self._path = _study_path(name)
        self._stop_reason: str | None = None
        self._copy: Study | None = None
        definition = self._get("domain")
        self.domain: Domain = deserialize(definition["domain"])
        self.goal: Goal = deserialize(definition["goal"])
        self.policy = deserialize(definition["policy"])
        self.tasks = deserialize(definition["tasks"])
        self.levels = deserialize(definition["levels"])
        self.vehicles: dict[str, Vehicle] = deserialize(definition.get("vehicles", {}))
        self.travels: bool = definition["travels"]
        self.returns: bool = definition.get("returns", False)
        self.seed: int = definition["seed"]

    # -- asking and telling --------------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        n: None = None,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Suggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Suggestion]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Suggestion | list[Suggestion]:
        """Suggest where to measure next, as `Study.ask`.

        If the connection fails before the answer arrives, the suggestions stay pending; a lease ends that.

        Args:
            n: Number of suggestions, chosen as a batch; None: one suggestion instead of a list.
            lease: Seconds for which the suggestions are reserved.
            who: Vehicle that the suggestions are for.
            budget: Total cost that the study must stay within.
            context: Value of every context column of the domain.

        Raises:
            Finished: If nothing is left to measure.
        """
        count = 1 if n is None else check_integer(n, "the number of suggestions", minimum=1)
        body: dict[str, Any] = {"n": count, "lease": lease, "who": who, "budget": budget}
        if context is not None:
            body["context"] = {str(name): _plain(value) for name, value in context.items()}
        answer = self._post("ask", body)
        batch = [_suggestion(form, self.domain) for form in answer["suggestions"]]
        return batch[0] if n is None else batch

    def tell(
        self,
        what: Suggestion | int | PointLike,
        y: ValueLike,
        *,
        noise: float | None = None,
        level: int | None = None,
        task: str | None = None,
        cost: float | None = None,
        key: str | None = None,
        who: str | None = None,
    ) -> int:
        """Record a measured value, as `Study.tell`, and return its id.

        The value is sent again if the connection fails, and counts once.

        Args:
            what: A suggestion, its id, or a point.
            y: The measured value.
            noise: Noise variance, if other than expected.
            level: Noise level, for a point.
            task: Task, for a point.
            cost: Cost, if other than expected.
            key: Text that identifies the measurement of a point; sent again with it, the value counts once.
            who: Vehicle that measured, for a point.
        """
        body: dict[str, Any] = {"y": _plain(as_value(y)), "noise": noise, "level": level, "task": task, "cost": cost}
        body["who"] = who
        what = as_point(self.domain, what)
        if isinstance(what, Mapping):
            point = {str(column): _plain(value) for column, value in what.items()}
            body |= {"point": point, "key": key or token_urlsafe(16)}
        else:
            body["id"] = _id(what)  # type: ignore[arg-type]
        answer = self._post("tell", body, repeatable=True)
        _warn_of_outliers(answer)
        return int(answer["id"])

    def tell_repeats(
        self,
        what: Suggestion | int | PointLike,
        values: Sequence[ValueLike],
        *,
        level: int | None = None,
        task: str | None = None,
        key: str | None = None,
        who: str | None = None,
    ) -> list[int]:
        """Record several measurements of the same place, as `Study.tell_repeats`, and return their ids.

        They are sent again if the connection fails, and count once.
        """
        body: dict[str, Any] = {"values": [_plain(as_value(y)) for y in values], "level": level, "task": task}
        body |= {"key": key or token_urlsafe(16), "who": who}
        what = as_point(self.domain, what)
        if isinstance(what, Mapping):
            body["point"] = {str(column): _plain(value) for column, value in what.items()}
        else:
            body["id"] = _id(what)  # type: ignore[arg-type]
        answer = self._post("tell-repeats", body, repeatable=True)
        _warn_of_outliers(answer)
        return [int(id_) for id_ in answer["ids"]]

    def check_value(
        self,
        what: Suggestion | int | Mapping[str, Any],
        y: float,
        *,
        level: int | None = None,
        task: str | None = None,
    ) -> str | None:
        """Return why a value may be a typing mistake, as `Study.check_value`; computed by the server."""
        body: dict[str, Any] = {"y": _plain(y), "level": level, "task": task}
        if isinstance(what, Mapping):
            body["point"] = {str(column): _plain(value) for column, value in what.items()}
        else:
            body["id"] = _id(what)
        findings: list[str] = self._post("check", body, repeatable=True)["warnings"]
        return findings[0] if findings else None

    def tell_frame(self, frame: Any, value: str | None = None, *, again: bool = False) -> list[int]:
        """Record a table of measurements, as `Study.tell_frame`; every row is stored by itself."""
        measurements = read_frame(frame, self, value)
        chosen = without_keys(measurements) if again else new_measurements(self, measurements)
        return [self.tell(each.what, each.value, **each.options) for each in chosen]

    def ask_frame(
        self,
        n: int = 1,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Suggest where to measure next, as a table, as `Study.ask_frame`."""
        batch = self.ask(n, lease=lease, who=who, budget=budget, context=context)
        return suggestion_frame(batch, self.domain)

    def correct(
        self,
        what: Suggestion | int,
        y: float,
        *,
        noise: float | None = None,
        cost: float | None = None,
        was: float | None = None,
    ) -> None:
        """Correct the value of a measurement, as `Study.correct`."""
        body = {"id": _id(what), "y": _plain(y), "noise": noise, "cost": cost}
        if was is not None:
            body["was"] = was
        _warn_of_outliers(self._post("correct", body, repeatable=True))

    def withdraw(self, what: Suggestion | int, reason: str | None = None, *, again: bool = False) -> None:
        """Withdraw a suggestion, or remove a measurement, as `Study.withdraw`."""
        self._post("withdraw", {"id": _id(what), "reason": reason, "again": again})

    def exclude(self, what: Any, reason: str | None = None) -> None:
        """Exclude a place, as `Study.exclude`; a function of the points is computed here."""
        place = what(self.domain.points) if callable(what) and not hasattr(what, "satisfied") else what
        self._post("exclude", {**_place(place), "reason": reason})

    def allow(self, what: Any = None) -> None:
        """Allow a place again, as `Study.allow`."""
        place = what(self.domain.points) if callable(what) and not hasattr(what, "satisfied") else what
        self._post("allow", {} if place is None else _place(place))

    def fail(
        self,
        what: Suggestion | int | Mapping[str, Any],
        reason: str | None = None,
        *,
        cost: float | None = None,
        who: str | None = None,
    ) -> int:
        """Record that a measurement failed, as `Study.fail`."""
        body: dict[str, Any] = {"reason": reason, "cost": cost, "who": who}
        if isinstance(what, Mapping):
            body["point"] = {str(column): _plain(value) for column, value in what.items()}
        else:
            body["id"] = _id(what)
        return int(self._post("fail", body)["id"])

    @property
    def failures(self) -> list[FailureRecord]:
        """The measurements that failed, as `Study.failures`."""
        return [FailureRecord(**row) for row in self._get("failures")["failures"]]

    def note(self, text: str) -> None:
        """Add a remark to the event log."""
        self._post("note", {"text": str(text)})

    def refresh(self) -> None:
        """Do nothing, since every call asks the server."""

    def run(
        self,
        f: Callable[..., float],
        *,
        budget: float | None = None,
        steps: int | None = None,
        epsilon: float | None = None,
        f1: float | None = None,
        regret: float | None = None,
        improvement_per_cost: float | None = None,
        executor: Any = None,
        workers: int | None = None,
        retries: int | None = None,
        max_failures: int | None = None,
        resume: bool | Sequence[Suggestion] = False,
        lease: float | None = None,
        context: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        progress: bool | Callable[[Any], object] | None = None,
        callbacks: Sequence[Callable[[Any, Suggestion, float], object]] = (),
    ) -> Result:
        """Ask, measure here and tell until the first limit is reached, as `Study.run`."""
        self._stop_reason = run(
            self,
            f,
            RunLimits(budget, steps, epsilon, f1, regret, improvement_per_cost),
            executor=executor,
            workers=workers,
            retries=retries,
            max_failures=max_failures,
            resume=resume,
            lease=lease,
            context=context,
            progress=progress,
            callbacks=callbacks,
        )
        return self.result()

    def fit(self, *_: Any, **__: Any) -> None:
        """Refuse: a model is fitted before the study is sent to the server.

        Raises:
            StudyStartedError: Always.
        """
        raise StudyStartedError(
            "a model cannot be fitted on a server; fit that of a local study, then send it: server.create(study)"
        )

    def transaction(self) -> None:
        """Refuse: every change on a server is stored by itself.

        Raises:
            ServiceError: Always.
        """
        raise ServiceError(
            "changes on a server are stored one by one; make them without a transaction, or open the store with tv.load"
        )

    together = deprecated_alias("transaction", removed_in="0.4.0")

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        """Counters, result, certificate and pending suggestions, as JSON values."""
        found: dict[str, Any] = self._get("status")
        return found

    @property
    def version(self) -> int:
        """The number of the last event."""
        return int(self.status["version"])

    @property
    def steps(self) -> int:
        """The number of measurements."""
        return int(self.status["result"]["steps"])

    @property
    def spent(self) -> float:
        """The total cost of the measurements."""
        return float(self.status["result"]["spent"])

    @property
    def epsilon(self) -> float:
        """The largest error of the answer, if the paper's confidence bounds hold."""
        return _number(self.status["result"]["epsilon"], inf)

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to measure, or None."""
        reason: str | None = self.status["finished"]
        return reason

    @property
    def exhausted(self) -> str | None:
        """Why the policy suggests nothing more although the study is not finished; None as long as it does."""
        reason: str | None = self.status["exhausted"]
        return reason

    @property
    def pending(self) -> list[Suggestion]:
        """The suggestions that are neither measured nor withdrawn."""
        return [_suggestion(form, self.domain) for form in self.status["pending"]]

    @property
    def certificate(self) -> Certificate:
        """The certificate: what can be stated, with which probability and under which assumptions."""
        return _certificate(self._get("certificate"))

    def result(self) -> Result:
        """Return the present result, equal to that of the study itself."""
        posterior = self._get("posterior")
        result = posterior["result"]
        sets = np.array(list(posterior["sets"]))
        best_observed = (
            None if result["best_observed"] is None else BestObserved(**_labelled(result["best_observed"], self.domain))
        )
        return Result(
            domain=self.domain,
            goal=self.goal,
            potential=sets == "M",
            above=sets == "H",
            below=sets == "L",
            mean=np.array(posterior["mean"], dtype=float),
            sd=np.array(posterior["sd"], dtype=float),
            lower=np.array([_number(value, -inf) for value in posterior["lower"]]),
            upper=np.array([_number(value, inf) for value in posterior["upper"]]),
            best=Best(**_labelled(result["best"], self.domain)),
            best_observed=best_observed,
            epsilon=_number(result["epsilon"], inf),
            bounds_certificate=_certificate(posterior["bounds_certificate"]),
            model_check=_model_check(posterior["model_check"]),
            spent=result["spent"],
            steps=result["steps"],
            reason=result["reason"] or self._stop_reason,
            measured=tuple(posterior["measured"]),
            source=_statements(self.goal, posterior["statements"]),
            outliers=tuple(result["outliers"]),
            excluded=_mask(posterior["excluded"], len(sets)),
            feasibility=None if posterior["feasibility"] is None else np.array(posterior["feasibility"], dtype=float),
            n_failed=result["failed"],
        )

    def check_stop(
        self,
        *,
        f1: float | None = None,
        regret: float | None = None,
        relative_regret: float | None = None,
        improvement_per_cost: float | None = None,
    ) -> StopCheck:
        """Return whether what is known now allows to stop, as `Study.check_stop`; computed by the server."""
        limits = RunLimits(
            f1=f1, regret=regret, relative_regret=relative_regret, improvement_per_cost=improvement_per_cost
        )
        limits.check_goal(self.goal)
        given = {name: repr(float(limit)) for name, limit in vars(limits.statements).items() if limit is not None}
        return StopCheck(**self._get(f"stop?{urlencode(given)}"))

    def improvement_per_cost(self) -> float:
        """Return the largest expected improvement per unit cost, as `Study.improvement_per_cost`.

        Raises:
            UnsupportedGoalError: If the goal is a level set.
        """
        check_improvement_goal(self.goal)
        return _number(self._get("improvement")["improvement_per_cost"], inf)

    @property
    def measurements(self) -> pd.DataFrame:
        """The measurements, as `Study.measurements`."""
        return measurement_frame(self.measurement_records(), self.domain)

    def measurement_records(self) -> list[MeasurementRecord]:
        """The measurements as records, as `Study.measurement_records`."""
        rows = self._get("measurements")["measurements"]
        return [MeasurementRecord(**_labelled(row, self.domain)) for row in rows]

    @property
    def history(self) -> pd.DataFrame:
        """The progress after each measurement, as `Study.history`."""
        frame = pd.DataFrame(self._get("history"))
        return frame.assign(epsilon=frame["epsilon"].astype(float).fillna(inf))

    @property
    def events(self) -> pd.DataFrame:
        """The event log, in order: number, time, who, kind, details."""
        rows = self._get("events?newest=100000")["events"]
        frame = pd.DataFrame(rows[::-1], columns=["number", "time", "who", "kind", "details"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True, format="ISO8601"))

    @property
    def limits(self) -> dict[str, float]:
        """Limits that the study is meant to end at, by name."""
        return dict(self.status["limits"])

    @property
    def vehicle_statuses(self) -> list[VehicleStatus]:
        """Position, costs, way back and budget of every vehicle, as `Study.vehicle_statuses`; computed here."""
        return self.copy().vehicle_statuses

    @property
    def learned_tasks(self) -> Tasks | None:
        """The tasks with what is learned of them, as `Study.learned_tasks`; computed here, on a copy of the study."""
        return self.copy().learned_tasks

    def best_for(self, context: Mapping[str, Any]) -> Best:
        """Return the point of best posterior mean in a given context, as `Study.best_for`; computed here."""
        return self.copy().best_for(context)

    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        """Predict the target at any points, as `Study.predict`; computed here, on a copy of the study."""
        return self.copy().predict(points)

    def predict_measurement(self, what: Suggestion | int | Mapping[str, Any]) -> tuple[float, float]:
        """Predict the value that a measurement would give, as `Study.predict_measurement`; computed here."""
        return self.copy().predict_measurement(what)

    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        """Return the expected effect of a pending suggestion, as `Study.lookahead`; computed here."""
        return self.copy().lookahead(what)

    def copy(self) -> Study:
        """Return a copy of the present study in memory."""
        version = self.version
        if self._copy is None or self._copy.version != version:
            self._copy = Study.from_json(self.to_json())
        return self._copy

    def __getattr__(self, name: str) -> Any:
        """Take what else a `Study` has, such as `kernel` or `gains`, from a copy."""
        if name not in COPY_ATTRIBUTES:
            raise AttributeError(f"a study on a server has no {name!r}")
        return getattr(self.copy(), name)

    def __repr__(self) -> str:
        from truvar.report import study_text

        return study_text(self)

    def _repr_html_(self) -> str:
        from truvar.report import study_html

        return study_html(self)

    def plot(self, truth: Any = None, kind: str = "overview", **options: Any) -> Any:
        """Draw the study, as `Study.plot`.

        Args:
            truth: True values of the points, to compare with.
            kind: What to draw, by the names of `tv.plot`.
            options: Further arguments of that function.

        Returns:
            A matplotlib Figure, or one of Plotly.
        """
        from truvar.plot import plot_kind

        return plot_kind(self, kind, truth=truth, **options)

    def plot_model_check(self) -> Any:
        """Plot every measured value against what the others predict, as `Study.plot_model_check`."""
        from truvar.report import plot_model_check

        return plot_model_check(self)  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Return the whole study as text, which `Study.from_json` reads."""
        return self.server.get_text(f"{self._path}/export")

    def _get(self, what: str) -> Any:
        return self.server.get(f"{self._path}/{what}")

    def _post(self, what: str, body: Mapping[str, Any], *, repeatable: bool = False) -> Any:
        return self.server.post(f"{self._path}/{what}", body, repeatable=repeatable)


def _suggestion(form: Mapping[str, Any], domain: Domain) -> Suggestion:
    return Suggestion(**{**_labelled(form, domain), "gain": _number(form["gain"], float("nan"))})


def _labelled(form: Mapping[str, Any], domain: Domain) -> dict[str, Any]:
    """Return the fields of an object with the label of its row, which JSON may not have the type for."""
    return {**form, "label": domain.label(form["index"])}


def _certificate(form: Mapping[str, Any]) -> Certificate:
    parts: dict[str, Any] = {}
    for name in (field.name for field in fields(Certificate)):
        value = form[name]
        if name in ("epsilon", "accurate_to", "epoch_epsilon"):
            value = _number(value, inf)
        parts[name] = tuple(value) if isinstance(value, list) else value
    return Certificate(**parts)


def _statements(goal: Goal, form: Mapping[str, Any]) -> JointStatements:
    return JointStatements(
        goal=goal,
        probability=np.array(form["probability"], dtype=float),
        decided_confidence=np.array(form["decided_confidence"], dtype=float),
        reported=None if form["reported"] is None else np.array(form["reported"], dtype=bool),
        lower=np.array([_number(value, -inf) for value in form["lower"]]),
        upper=np.array([_number(value, inf) for value in form["upper"]]),
        expected_f1=_estimate(form["expected_f1"]),
        expected_regret=_estimate(form["expected_regret"]),
        optimal_probability=form["optimal_probability"],
        expected_misclassified=form["expected_misclassified"],
        n_drawn=form["n_drawn"],
        n_relevant=form["n_relevant"],
        recommended_value=_estimate(form["recommended_value"], -inf),
        bands=_bands(form["bands"]),
    )


def _bands(form: Mapping[str, Any] | None) -> BandStatements | None:
    if form is None:
        return None
    scores = [Estimate(_number(f1["mean"], nan), f1["low"], f1["high"]) for f1 in form["expected_f1"]]
    return BandStatements(np.array(form["probability"], dtype=float), np.array(form["reported"], int), tuple(scores))


def _estimate(form: Mapping[str, Any] | None, lowest: float = 0.0) -> Estimate | None:
    if form is None:
        return None
    return Estimate(_number(form["mean"], nan), _number(form["low"], lowest), _number(form["high"], inf))


def _model_check(form: Mapping[str, Any]) -> ModelCheck:
    return ModelCheck(
        ok=form["ok"],
        finding=form["finding"],
        advice=form["advice"],
        coverage=_number(form["coverage"], nan),
        failure=form["failure"],
        misfit=form["misfit"],
        degrees=form["degrees"],
        limit=_number(form["limit"], inf),
        ids=tuple(form["ids"]),
        values=np.array(form["values"], dtype=float),
        means=np.array([_number(value, nan) for value in form["means"]]),
        sds=np.array([_number(value, inf) for value in form["sds"]]),
    )


def _warn_of_outliers(answer: Mapping[str, Any]) -> None:
    """Issue the warnings of a server about gross errors, as from the line that called the study's method."""
    for message in answer.get("warnings", ()):
        warnings.warn(message, OutlierWarning, stacklevel=3)


def _mask(rows: Sequence[int], n: int) -> Mask:
    """Return a mask over n points that is True at some rows."""
    mask = np.zeros(n, bool)
    mask[list(rows)] = True
    return mask


def _place(what: Any) -> dict[str, Any]:
    """Return a place, as `Study.exclude` takes it, as the body of a request."""
    if isinstance(what, (Suggestion, int, np.integer)) and not isinstance(what, bool):
        return {"id": what.id if isinstance(what, Suggestion) else int(what)}
    if isinstance(what, Mapping):
        if all(np.ndim(value) == 0 for value in what.values()):
            return {"point": {str(name): _plain(value) for name, value in what.items()}}
        region = {str(name): np.ravel(np.asarray(value, dtype=object)).tolist() for name, value in what.items()}
        return {"region": {name: [_plain(each) for each in values] for name, values in region.items()}}
    if isinstance(what, str):
        return {"condition": what}
    if is_geometry(what) or isinstance(what, PolygonConstraint):
        polygon = what if isinstance(what, PolygonConstraint) else polygon_of(what)
        columns = None if polygon.columns is None else list(polygon.columns)
        return {"polygon": {"rings": [[list(vertex) for vertex in ring] for ring in polygon.rings], "columns": columns}}
    mask = np.asarray(what)
    if mask.dtype != bool or mask.ndim != 1:
        raise InvalidArgumentError(
            f"a place must be a suggestion or its id, a point, a region, a condition, a polygon or a mask, got {what!r}"
        )
    return {"rows": np.flatnonzero(mask).tolist()}


def _number(value: Any, missing: float) -> float:
    """Return a number from JSON, where null stands for `missing`."""
    return missing if value is None else float(value)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python number, which JSON needs."""
    return value.item() if isinstance(value, np.generic) else value


def _id(what: Suggestion | int) -> int:
    return what.id if isinstance(what, Suggestion) else int(what)


def _csv_text(table: str | Path | pd.DataFrame) -> str:
    if isinstance(table, pd.DataFrame):
        return str(table.to_csv(index=False))
    return Path(table).read_text(encoding="utf-8") if isinstance(table, Path) else table


def _tables_of_problem_file(path: Path) -> dict[str, str]:
    """Return the tables that a problem file names, as CSV text."""
    from truvar.problem.build import read_toml
    from truvar.problem.schema import ProblemSpec, parse_spec

    spec = parse_spec(ProblemSpec, read_toml(path))
    travel = [part.table for part in (spec.cost.network, spec.cost.matrix) if part is not None]
    named = [spec.domain.table, spec.model.training, *travel]
    return {name: (path.parent / name).read_text(encoding="utf-8") for name in named if name is not None}
