"""A study on a server, with the methods of a `Study`: a program goes from one to the other by one line.

study = tv.load("sqlite:///lake.db", "lake")
study = tv.connect("http://127.0.0.1:8765/#/study/lake", token)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from math import inf
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pandas as pd

from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.exceptions import Finished, TruvarError, import_optional
from truvar.inference.certificate import Certificate
from truvar.storage.base import whoami
from truvar.storage.serialization import deserialize
from truvar.study._views import MEASUREMENT
from truvar.study.result import Best, Result
from truvar.study.runner import RunLimits, run
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion
from truvar.validation import check_integer

if TYPE_CHECKING:
    import httpx

OF_A_COPY = frozenset(
    {"candidates", "engine", "epoch", "gains", "kernel", "limits", "lookahead", "policy_context", "predict"}
    | {"predict_measurement", "sample_measurement", "theory_setting"}
    | {"expects", "imagine", "outlook", "scene", "setting"}  # deprecated names of some of these
)
TRIES = 4  # of what may be sent again
PAUSE = 0.5  # seconds before the second try, then twice as long each time


def connect(url: str, token: str | None = None, name: str | None = None, *, who: str | None = None) -> RemoteStudy:
    """A study on a server. `url` is the server's address or, as the browser shows it, the study's own; with the
    server's address alone, `name` says which study, or there is just one."""
    server = Server(url, token, who=who)
    name = name or server.named
    if name is None:
        names = list(server.studies()["name"])
        if len(names) != 1:
            raise TruvarError(
                f"the server has {len(names)} studies ({', '.join(map(repr, names[:10])) or 'none'}), so it must be "
                "said which; give name=... or the study's own address"
            )
        (name,) = names
    return server.study(name)


class Server:
    """A server: its studies, and new ones."""

    def __init__(self, url: str, token: str | None = None, *, who: str | None = None, timeout: float = 60.0) -> None:
        library = import_optional("httpx", "a connection to a server", "service")
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise TruvarError(f"a server's address is like http://127.0.0.1:8765, got {url!r}; give one")
        self.url = f"{address.scheme}://{address.netloc}"
        place = address.fragment.partition("/study/")[2]
        self.named = unquote(place) or None
        self.who = (who or whoami()).encode("ascii", "replace").decode()
        headers = {"User-Agent": "truvar/python", "X-Truvar-Who": self.who}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http: httpx.Client = library.Client(base_url=f"{self.url}/api", headers=headers, timeout=timeout)
        self._failures = library.TransportError

    def studies(self) -> pd.DataFrame:
        """The studies of the server, as `tv.studies` has them."""
        frame = pd.DataFrame(self.get("/studies")["studies"])
        if frame.empty:
            return pd.DataFrame(columns=["name", "goal", "steps", "spent", "pending", "created", "changed"])
        return frame.assign(
            **{name: pd.to_datetime(frame[name], utc=True, format="ISO8601") for name in ("created", "changed")}
        )

    def study(self, name: str) -> RemoteStudy:
        """The study of that name."""
        return RemoteStudy(self, name)

    def create(
        self,
        problem: str | Path | Mapping[str, Any] | Study,
        name: str | None = None,
        tables: Mapping[str, str | Path | pd.DataFrame] | None = None,
    ) -> RemoteStudy:
        """A new study: of a problem in TOML text, a TOML file (a Path, its tables beside it), a dict, or a `Study` made
        here."""
        body: dict[str, Any]
        if isinstance(problem, Study):
            body = {"study": _parsed(problem.to_json())}
            name = name or problem.name
        elif isinstance(problem, Path):
            body = {"problem": problem.read_text(encoding="utf-8")}
            tables = {**_tables_beside(problem), **(tables or {})}
            name = name or problem.stem
        else:
            body = {"problem": problem if isinstance(problem, str) else dict(problem)}
        if name is None:
            raise TruvarError("a study on a server needs a name; give name=...")
        given = {key: _csv(table) for key, table in (tables or {}).items()}
        made = self.post("/studies", {**body, "name": name, "tables": given})
        return self.study(made["name"])

    def get(self, path: str) -> Any:
        """The answer to a question."""
        return self._answer("GET", path, None, again=True)

    def text(self, path: str) -> str:
        """The same where it is no JSON."""
        return str(self._request("GET", path, None, again=True).text)

    def post(self, path: str, body: Mapping[str, Any], again: bool = False) -> Any:
        """What a change answers; `again`: it may be sent twice."""
        return self._answer("POST", path, body, again)

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None, again: bool) -> Any:
        return self._request(method, path, body, again).json()

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None, again: bool) -> httpx.Response:
        for attempt in range(1, TRIES + 1):
            try:
                answer = self._http.request(method, path, json=body)
            except self._failures as error:
                if again and attempt < TRIES:
                    time.sleep(PAUSE * 2 ** (attempt - 1))
                    continue
                raise TruvarError(f"the server {self.url} cannot be reached ({error}); see that it runs") from None
            if answer.is_success:
                return answer
            said = _said(answer)
            if "finished" in said:
                raise Finished(said["finished"])
            raise TruvarError(f"{said['error']} (the server answered {answer.status_code})")
        raise AssertionError("the last try returns or raises")


class RemoteStudy:
    """A study on a server. It is asked and told there; what is known is as of each call."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name, self.who = server, name, server.who
        self._path = f"/studies/{quote(name, safe='')}"
        self._stopped: str | None = None
        self._copy: Study | None = None
        problem = self._get("domain")
        self.domain: Domain = deserialize(problem["domain"])
        self.goal: Goal = deserialize(problem["goal"])
        self.policy = deserialize(problem["policy"])
        self.tasks = deserialize(problem["tasks"])
        self.levels = deserialize(problem["levels"])
        self.travels: bool = problem["travels"]
        self.seed: int = problem["seed"]

    # -- asking and telling --------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, *, lease: float | None = None) -> Suggestion: ...
    @overload
    def ask(self, n: int, *, lease: float | None = None) -> list[Suggestion]: ...
    def ask(self, n: int | None = None, *, lease: float | None = None) -> Suggestion | list[Suggestion]:
        """Where to measure next, as `Study.ask`. Should the answer be lost on its way, the suggestion stays pending:
        a `lease` in seconds ends that."""
        count = 1 if n is None else check_integer(n, "the number of suggestions", minimum=1)
        made = self._post("ask", {"n": count, "lease": lease})["suggestions"]
        batch = [_suggestion(form) for form in made]
        return batch[0] if n is None else batch

    def tell(
        self,
        what: Suggestion | int | Mapping[str, float],
        y: float,
        *,
        noise: float | None = None,
        level: int | None = None,
        task: str | None = None,
        cost: float | None = None,
        key: str | None = None,
    ) -> int:
        """A measured value, as `Study.tell`. It is sent until the server has answered, and counts once."""
        body: dict[str, Any] = {"y": _plain(y), "noise": noise, "level": level, "task": task, "cost": cost}
        if isinstance(what, Mapping):
            point = {str(column): _plain(value) for column, value in what.items()}
            body |= {"point": point, "key": key or token_urlsafe(16)}
        else:
            body["id"] = _id(what)
        return int(self._post("tell", body, again=True)["id"])

    def correct(
        self, what: Suggestion | int, y: float, *, noise: float | None = None, cost: float | None = None
    ) -> None:
        """Another value for a measurement."""
        self._post("correct", {"id": _id(what), "y": _plain(y), "noise": noise, "cost": cost}, again=True)

    def withdraw(self, what: Suggestion | int) -> None:
        """Takes back a suggestion or a measurement."""
        self._post("withdraw", {"id": _id(what)})

    def note(self, text: str) -> None:
        """A remark for the journal."""
        self._post("note", {"text": str(text)})

    def refresh(self) -> None:
        """Nothing to do: every call asks the server."""

    def run(
        self,
        f: Callable[..., float],
        *,
        budget: float | None = None,
        steps: int | None = None,
        epsilon: float | None = None,
        executor: Any = None,
        workers: int | None = None,
        retries: int | None = None,
        resume: bool | Sequence[Suggestion] = False,
        lease: float | None = None,
        progress: bool | Callable[[Any], object] = False,
    ) -> Result:
        """Asks, measures here and tells until the first limit is reached, as `Study.run`."""
        from truvar.report import Progress

        here: Any = self  # as far as a run needs it, a Study
        limits, how = RunLimits(budget, steps, epsilon), (workers, retries, resume, lease)
        display = Progress(here, budget=budget, steps=steps) if progress is True else nullcontext(progress)
        with display as show:
            self._stopped = run(here, f, limits, executor, show or (lambda _: None), *how)
        return self.result()

    def fit(self, *_: Any, **__: Any) -> None:
        """Not on a server: the model is learned before the study is sent there."""
        raise TruvarError("a model is learned before the study is on a server; do it here, then server.create(study)")

    def together(self) -> None:
        """Not on a server: every change is kept by itself."""
        raise TruvarError("changes on a server are kept one by one; make them so, or open the store itself: tv.load")

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        """Where it stands, as data."""
        found: dict[str, Any] = self._get("status")
        return found

    @property
    def version(self) -> int:
        """The number of the last event."""
        return int(self.status["version"])

    @property
    def steps(self) -> int:
        """The number of values told."""
        return int(self.status["result"]["steps"])

    @property
    def spent(self) -> float:
        """The cost of what was told."""
        return float(self.status["result"]["spent"])

    @property
    def epsilon(self) -> float:
        """How far from exact the answer can be if the bounds hold."""
        return _or(self.status["result"]["epsilon"], inf)

    @property
    def finished(self) -> str | None:
        """Why there is nothing left to measure, or None."""
        reason: str | None = self.status["finished"]
        return reason

    @property
    def pending(self) -> list[Suggestion]:
        """Suggestions that are neither told nor withdrawn."""
        return [_suggestion(form) for form in self.status["pending"]]

    @property
    def certificate(self) -> Certificate:
        """What is proven."""
        return _certificate(self._get("certificate"))

    def result(self) -> Result:
        """Where the study stands now: the same as the study's own result."""
        found = self._get("posterior")
        said, letters = found["result"], np.array(list(found["classes"]))
        mean, sd = (np.array(found[name], dtype=float) for name in ("mean", "sd"))
        lower, upper = (
            np.array([_or(value, end) for value in found[name]]) for name, end in (("lower", -inf), ("upper", inf))
        )
        return Result(
            domain=self.domain,
            goal=self.goal,
            **{name: letters == letter for name, letter in (("potential", "M"), ("above", "H"), ("below", "L"))},
            mean=mean,
            sd=sd,
            lower=lower,
            upper=upper,
            best=Best(**said["best"]),
            epsilon=_or(said["epsilon"], inf),
            certificate=_certificate(said["certificate"]),
            spent=said["spent"],
            steps=said["steps"],
            reason=said["reason"] or self._stopped,
            measured=tuple(found["measured"]),
        )

    @property
    def measurements(self) -> pd.DataFrame:
        """The values told, as `Study.measurements`."""
        names = [f"{name}_" if name in self.domain.columns else name for name in MEASUREMENT]
        rows = [
            (row["id"], row["index"], *row["point"].values(), *(row[name] for name in MEASUREMENT[2:]))
            for row in self._get("measurements")["measurements"]
        ]
        frame = pd.DataFrame(rows, columns=[*names[:2], *self.domain.columns, *names[2:]])
        return frame.astype({names[1]: "Int64", names[2]: "Int64"})

    @property
    def history(self) -> pd.DataFrame:
        """How it went, as `Study.history`."""
        frame = pd.DataFrame(self._get("history"))
        return frame.assign(epsilon=frame["epsilon"].astype(float).fillna(inf))

    @property
    def events(self) -> pd.DataFrame:
        """What happened, in order: number, time, who, kind, details."""
        rows = self._get("events?newest=100000")["events"]
        frame = pd.DataFrame(rows[::-1], columns=["number", "time", "who", "kind", "details"])
        return frame.assign(time=pd.to_datetime(frame["time"], utc=True, format="ISO8601"))

    def copy(self) -> Study:
        """The study as it stands there, in memory here."""
        version = self.version
        if self._copy is None or self._copy.version != version:
            self._copy = Study.from_json(self.to_json())
        return self._copy

    def __getattr__(self, name: str) -> Any:
        """What else a `Study` can be asked, such as `predict`, `lookahead` or `kernel`, is asked of a copy."""
        if name not in OF_A_COPY:
            raise AttributeError(f"a study on a server has no {name!r}")
        return getattr(self.copy(), name)

    def plot(self, truth: Any = None) -> Any:
        """A picture of where the study stands: a matplotlib Figure."""
        from truvar.report import plot_study

        return plot_study(self, truth=truth)  # type: ignore[arg-type]

    def to_json(self) -> str:
        """The whole study as text; `Study.from_json` reads it."""
        return self.server.text(f"{self._path}/export")

    def _get(self, what: str) -> Any:
        return self.server.get(f"{self._path}/{what}")

    def _post(self, what: str, body: Mapping[str, Any], again: bool = False) -> Any:
        return self.server.post(f"{self._path}/{what}", body, again)


def _said(answer: httpx.Response) -> dict[str, Any]:
    try:
        said = answer.json()
    except ValueError:
        said = None
    return said if isinstance(said, dict) and "error" in said else {"error": answer.text[:200] or "nothing was said"}


def _suggestion(form: Mapping[str, Any]) -> Suggestion:
    return Suggestion(**{**form, "gain": _or(form["gain"], float("nan"))})


def _certificate(form: Mapping[str, Any]) -> Certificate:
    open_ended = {"epsilon", "accurate_to", "epoch_epsilon"}  # null there is infinity
    parts: dict[str, Any] = {}
    for name in (field.name for field in fields(Certificate)):
        value = _or(form[name], inf) if name in open_ended else form[name]
        parts[name] = tuple(value) if isinstance(value, list) else value
    return Certificate(**parts)


def _or(value: Any, instead: float) -> float:
    return instead if value is None else float(value)


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _id(what: Suggestion | int) -> int:
    return what.id if isinstance(what, Suggestion) else int(what)


def _csv(table: str | Path | pd.DataFrame) -> str:
    if isinstance(table, pd.DataFrame):
        return str(table.to_csv(index=False))
    return Path(table).read_text(encoding="utf-8") if isinstance(table, Path) else table


def _tables_beside(path: Path) -> dict[str, str]:
    """The tables that a problem file names."""
    from truvar.problem import load_problem

    spec = load_problem(path).spec
    named = [spec.get("domain", {}).get("table"), spec.get("model", {}).get("training")]
    return {name: (path.parent / name).read_text(encoding="utf-8") for name in named if name}


def _parsed(text: str) -> Any:
    import json

    return json.loads(text)
