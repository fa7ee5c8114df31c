"""`AEPsychServer`: studies for clients of AEPsych, which talk JSON over a socket.

| message | answer |
|---|---|
| `setup` with the settings of an experiment | creates a study; `strat_id` is its number |
| `ask` | the next trial, and whether it is the last one |
| `tell` | records the outcome of trials, asked for or not |
| `query` | maximum, minimum, prediction, or the point with a given value |
| `resume`, `finish_strategy`, `can_model`, `info`, `parameters`, `get_config` | as their names say |
| `exit` | ends the server |

Clients that send a `version` with `setup` and `resume`, such as those in Unity and MATLAB, are of
AEPsych before 0.8: they are answered with the number alone there, and with `y` as a number.

A mistake is answered with `server_error`, and changes nothing. The names of generators, models and
acquisition functions in the settings are not used: a study chooses by its goal, which is the level
set of `target`, or the maximum without one.
"""

from __future__ import annotations

import json
import logging
import re
import socketserver
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isclose
from threading import Lock, Thread
from typing import Any

import numpy as np
import pandas as pd

from truvar._typing import Array
from truvar.domain.parameters import Categorical, Integer, Log, Ordinal, Range
from truvar.exceptions import Finished, InvalidArgumentError, TruvarError
from truvar.integrations._aepsych_config import Experiment, read_experiment
from truvar.integrations._continued import create_or_continue
from truvar.messages import unknown_name
from truvar.study.commands import Tell
from truvar.study.study import Study
from truvar.validation import check_integer

_LOGGER = logging.getLogger(__name__)

DEFAULT_PORT = 5555
MAX_MESSAGE = 1_000_000  # bytes
_CHUNK = 65_536  # bytes that are read at a time
_MAX_POINTS = 100  # trials of one `ask`
# Two numbers are equal if they differ by no more than this fraction: clients keep 32 bits of a
# number, or print 15 digits of it.
_SAME_NUMBER = 2.0**-23
# A text of JSON, one that does not end, or a bracket.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|["{}\[\]]', re.DOTALL)


@dataclass
class _Session:
    """An experiment and its study."""

    experiment: Experiment
    study: Study
    n_asked: int = 0
    n_asked_last: int = 0  # by the last message
    is_ended: bool = False
    is_older: bool = False  # whether the client is of AEPsych before 0.8

    @property
    def is_finished(self) -> bool:
        """Whether the trial that was asked for last is the last one."""
        asks = self.experiment.n_asks
        tells = self.experiment.n_tells
        if self.is_ended or (asks is None and tells is None):
            return self.is_ended
        n_told = self.study.steps + self.n_asked_last
        return self.n_asked >= (asks or 0) and n_told >= (tells or 0)


class AEPsychServer:
    """Answer the messages of clients of AEPsych.

    Args:
        store: URL of the store of the studies; default: they are kept in memory.
        representers: Number of points that the model is evaluated at; see `Domain.box`.
        seed: Seed of the random numbers.
        **options: Further arguments of `Study`, such as `outcome=tv.Binary(guess=0.5)` for two
            alternatives, or `policy`.

    Attributes:
        studies: The studies, by the `strat_id` of their setup.

    Example:
        >>> server = AEPsychServer(store="sqlite:///hearing.db")
        >>> server.serve("127.0.0.1", 5555)  # until a client sends exit
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        representers: int = 2500,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self._store = store
        self._representers = check_integer(representers, "representers", minimum=2)
        self._seed = seed
        self._options = options
        self._sessions: list[_Session] = []
        self._current = -1
        self._lock = Lock()
        self.is_ended = False
        self._handlers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "setup": self._setup,
            "ask": self._ask,
            "tell": self._tell,
            "query": self._query,
            "resume": self._resume,
            "finish_strategy": self._finish_strategy,
            "can_model": self._can_model,
            "info": self._info,
            "parameters": self._parameters,
            "params": self._parameters,
            "get_config": self._get_config,
            "exit": self._exit,
        }

    @property
    def studies(self) -> list[Study]:
        """The studies, in the order of their setups."""
        return [session.study for session in self._sessions]

    # -- sockets
    # ----------------------------------------------------------------------------------------------

    def serve(
        self,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        ready: Callable[[int], object] = lambda port: None,
    ) -> None:
        """Serve clients until one of them sends `exit`.

        There are no passwords: whoever reaches the port can tell and ask.

        Args:
            host: Address to serve at.
            port: Port to serve at; 0: any free one.
            ready: Called with the port when clients can connect.
        """
        with _Server((host, port), _Connection) as server:
            server.answers = self
            ready(server.server_address[1])
            server.serve_forever(poll_interval=0.05)

    def handle(self, request: Any) -> dict[str, Any] | int:
        """Return the answer to a message; mistakes are answered with `server_error`.

        Args:
            request: The message: `type`, and `message` with its arguments.
        """
        try:
            if not isinstance(request, Mapping) or not isinstance(request.get("type"), str):
                raise InvalidArgumentError(
                    'a request must be an object with a "type", got another; send '
                    '{"type": "ask", "message": {}}'
                )
            kind = request["type"]
            if kind not in self._handlers:
                raise InvalidArgumentError(unknown_name("message type", kind, self._handlers))
            message = request.get("message")
            arguments = dict(message) if isinstance(message, Mapping) else {}
            if request.get("extra_info"):  # where clients before 0.8 have further fields of `tell`
                arguments["extra_info"] = request["extra_info"]
            with self._lock:
                answer = self._handlers[kind](arguments)
                if kind not in ("setup", "resume"):
                    return answer
                self._session.is_older = "version" in request
                return self._current if self._session.is_older else answer
        except TruvarError as error:
            return {"server_error": str(error)}
        except Exception as error:
            # A client waits for an answer; without one it would hang in the middle of a session.
            _LOGGER.exception("a message could not be answered")
            return {"server_error": f"the message cannot be used ({error!r}); correct it"}

    # -- experiments
    # ----------------------------------------------------------------------------------------------

    def _setup(self, message: Mapping[str, Any]) -> dict[str, Any]:
        settings = message.get("config_str", message.get("config_dict"))
        if not isinstance(settings, str | Mapping):
            raise InvalidArgumentError(
                f"setup needs config_str, the settings as text, got {settings!r}; give it"
            )
        experiment = read_experiment(settings, representers=self._representers, seed=self._seed)
        options: dict[str, Any] = {"seed": self._seed, **self._options}
        if experiment.outcome is not None:
            options.setdefault("outcome", experiment.outcome)
        if self._store is not None:
            started = f"aepsych-{datetime.now():%Y%m%d-%H%M%S-%f}"
            options |= {"store": self._store, "name": experiment.name or started}
        study, _ = create_or_continue(experiment.domain, experiment.goal, "setup", **options)
        n_asked = study.steps + len(study.pending)
        self._sessions.append(_Session(experiment, study, n_asked))
        self._current = len(self._sessions) - 1
        return {"strat_id": self._current}

    @property
    def _session(self) -> _Session:
        if not self._sessions:
            raise InvalidArgumentError("no experiment is set up, got none; send setup first")
        return self._sessions[self._current]

    def _resume(self, message: Mapping[str, Any]) -> dict[str, Any]:
        number = message.get("strat_id")
        known = list(range(len(self._sessions)))
        if str(number) not in map(str, known):  # the client in MATLAB sends a text
            raise InvalidArgumentError(f"strat_id must be one of {known}, got {number!r}; give one")
        self._current = int(str(number))
        return {"strat_id": self._current}

    def _finish_strategy(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self._session.is_ended = True
        return {"finished_strategy": self._strategy, "finished_strat_idx": self._current}

    def _exit(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self.is_ended = True
        return {"config": "Terminate", "is_finished": True}

    # -- trials
    # ----------------------------------------------------------------------------------------------

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        session = self._session
        count = check_integer(message.get("num_points", 1), "num_points", minimum=1)
        if count > _MAX_POINTS:
            raise InvalidArgumentError(
                f"num_points must be at most {_MAX_POINTS}, got {count}; ask again for more"
            )
        try:
            suggestions = session.study.ask(count)
        except Finished:
            session.is_ended = True
            return {"config": None, "is_finished": True, "num_points": 0}
        session.n_asked += len(suggestions)
        session.n_asked_last = len(suggestions)
        points = [{**each.point, **session.experiment.fixed} for each in suggestions]
        config = {name: [point[name] for point in points] for name in points[0]}
        return {
            "config": config,
            "is_finished": session.is_finished,
            "num_points": len(suggestions),
        }

    def _tell(self, message: Mapping[str, Any]) -> dict[str, Any]:
        study = self._session.study
        points = self._points(message.get("config"))
        outcomes = _outcomes(message.get("outcome"), len(points))
        further = {
            name: part
            for name, part in message.items()
            if name not in ("config", "outcome", "model_data")
        }
        is_modelled = bool(message.get("model_data", True))
        with study.transaction():
            if further or not is_modelled:
                study.note(f"tell {json.dumps(dict(message), default=str)}")
            if is_modelled:
                pending = {each.id: each.point for each in study.pending}
                for point, outcome in zip(points, outcomes, strict=True):
                    same = (id_ for id_, at in pending.items() if _is_same(at, point))
                    what: Any = next(same, point)
                    pending.pop(what if isinstance(what, int) else -1, None)
                    study.execute(Tell(what, outcome, typed=False))
        return {
            "trials_recorded": len(points),
            "model_data_added": len(points) if is_modelled else 0,
        }

    def _points(self, config: Any) -> list[dict[str, Any]]:
        """Return the trials of `config`, whose values are numbers, texts, or lists of them."""
        columns = self._session.study.domain.columns
        if not isinstance(config, Mapping):
            raise InvalidArgumentError(
                f"config must have a value of every parameter, got {config!r}; give it"
            )
        missing = [name for name in columns if name not in config]
        if missing:
            raise InvalidArgumentError(
                f"config must have a value of every parameter, got none of {missing[0]!r}; add it"
            )
        lists = {
            name: config[name] if isinstance(config[name], list) else [config[name]]
            for name in columns
        }
        lengths = {len(values) for values in lists.values()}
        if len(lengths) > 1:
            raise InvalidArgumentError(
                f"the lists of config must have the same length, got {sorted(lengths)}; correct it"
            )
        return [
            {name: self._inside(name, values[i]) for name, values in lists.items()}
            for i in range(*lengths)
        ]

    def _inside(self, name: str, value: Any) -> Any:
        """Return the end of a parameter that a value equals but for its last digits, or the value."""
        domain = self._session.study.domain
        parameter = domain.parameters[domain.columns.index(name)]
        if isinstance(parameter, Range | Log):
            for end in (parameter.low, parameter.high):
                if _is_same_value(value, end):
                    return end
        return value

    # -- answers
    # ----------------------------------------------------------------------------------------------

    def _query(self, message: Mapping[str, Any]) -> dict[str, Any]:
        study = self._session.study
        kind = message.get("query_type", "max")
        constraints = message.get("constraints") or {}
        if kind == "prediction":
            points = self._points(message.get("x"))
            mean = _predict(study, points)
            position = 0
        else:
            points = self._candidates(constraints)
            mean = _predict(study, points)
            position = _position(kind, mean, message.get("y"))
        y = float(mean[position])
        best = {**points[position], **self._session.experiment.fixed}
        return {
            "query_type": kind,
            # Answers to a yes or no are probabilities, whatever the client asks for.
            "probability_space": bool(message.get("probability_space"))
            or study.outcome is not None,
            "constraints": constraints,
            "x": {name: [value] for name, value in best.items()},
            "y": y if self._session.is_older else [y],
        }

    def _candidates(self, constraints: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the points of the domain that satisfy the constraints.

        Args:
            constraints: By name of the parameter or its position in `parnames`, a value that it is
                set to, or a list of the value, or of the least and the largest one.
        """
        domain = self._session.study.domain
        names = self._session.experiment.names
        points = [domain.point(row) for row in range(len(domain))]
        for key, values in constraints.items():
            is_position = str(key).isdigit() and int(key) < len(names)
            name = names[int(key)] if is_position else key
            if name not in names:
                raise InvalidArgumentError(unknown_name("parameter", name, names))
            given = values if isinstance(values, list) else [values]
            if name in self._session.experiment.fixed:
                continue
            if len(given) == 2:
                low, high = given
                points = [each for each in points if low <= each[name] <= high]
            else:
                (value,) = given
                points = [{**each, name: self._inside(name, value)} for each in points]
        if not points:
            raise InvalidArgumentError(
                f"no point of the domain satisfies the constraints, got {dict(constraints)}; "
                "widen them"
            )
        domain.locate(points[0])  # a prescribed value must be possible
        return points

    def _can_model(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {"can_model": self._session.study.steps > 0}

    def _info(self, message: Mapping[str, Any]) -> dict[str, Any]:
        session = self._session
        return {
            "db_name": self._store or "memory",
            "exp_id": self._current,
            "strat_count": len(self._sessions),
            "all_strat_names": list(session.experiment.strategies),
            "current_strat_index": self._current,
            "current_strat_name": self._strategy,
            "current_strat_data_pts": session.study.steps,
            "current_strat_model": "truvar",
            "current_strat_acqf": type(session.study.policy).__name__,
            "current_strat_finished": session.is_finished,
            "current_strat_can_fit": session.study.steps > 0,
        }

    @property
    def _strategy(self) -> str:
        names = self._session.experiment.strategies
        return names[-1] if names else "truvar"

    def _parameters(self, message: Mapping[str, Any]) -> dict[str, Any]:
        bounds: dict[str, Any] = {}
        domain = self._session.study.domain
        for name, parameter in zip(domain.columns, domain.parameters, strict=True):
            if isinstance(parameter, Range | Log | Integer):
                bounds[name] = [parameter.low, parameter.high]
            elif isinstance(parameter, Categorical | Ordinal):
                bounds[name] = [parameter.choices[0], parameter.choices[-1]]
        return bounds

    def _get_config(self, message: Mapping[str, Any]) -> dict[str, Any]:
        sections = {name: dict(part) for name, part in self._session.experiment.sections.items()}
        section = message.get("section")
        name = message.get("property")
        if section is None and name is None:
            return sections
        if section not in sections or name not in sections[section]:
            raise InvalidArgumentError(
                f"the settings have no {name!r} in the section {section!r}; see get_config"
            )
        return {section: {str(name): sections[section][name]}}


def _is_same(point: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two points are equal but for the last digits of their numbers."""
    return all(_is_same_value(value, other[name]) for name, value in point.items())


def _is_same_value(value: Any, other: Any) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float):
        return isclose(value, other, rel_tol=_SAME_NUMBER)
    return bool(value == other)


def _outcomes(outcome: Any, count: int) -> list[float]:
    """Return the outcomes of trials, one each."""
    if isinstance(outcome, Mapping):
        if len(outcome) != 1:
            raise InvalidArgumentError(f"one outcome is modelled, got {sorted(outcome)}; give one")
        outcome = next(iter(outcome.values()))
    outcomes = outcome if isinstance(outcome, list) else [outcome]
    if len(outcomes) != count:
        raise InvalidArgumentError(
            f"each trial has one outcome, got {len(outcomes)} of {count} trials; correct it"
        )
    return outcomes


def _predict(study: Study, points: list[dict[str, Any]]) -> Array:
    if study.steps == 0:
        raise InvalidArgumentError("a query needs a trial that was told, got none; tell one first")
    return study.predict(pd.DataFrame(points))[0]


def _position(kind: str, mean: Array, target: Any) -> int:
    """Return the position of the point that a query asks for."""
    if kind == "max":
        return int(np.argmax(mean))
    if kind == "min":
        return int(np.argmin(mean))
    if kind == "inverse":
        if not isinstance(target, int | float):
            raise InvalidArgumentError(
                f"an inverse query needs y, a number, got {target!r}; add it"
            )
        return int(np.argmin(np.abs(mean - target)))
    raise InvalidArgumentError(
        unknown_name("query_type", kind, ("max", "min", "prediction", "inverse"))
    )


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    answers: AEPsychServer


class _Connection(socketserver.BaseRequestHandler):
    """One client. A message ends where its JSON does: clients send no other sign."""

    server: _Server

    def handle(self) -> None:
        received = b""
        while chunk := self.request.recv(_CHUNK):
            received += chunk
            while (end := _end_of_message(received)) is not None:
                try:
                    request = json.loads(received[:end])
                except (ValueError, RecursionError) as error:
                    self._send({"server_error": f"a message must be JSON, got {error}; correct it"})
                    received = b""
                    break
                received = received[end:]
                self._send(self.server.answers.handle(request))
                if self.server.answers.is_ended:
                    Thread(target=self.server.shutdown, daemon=True).start()
                    return
            if len(received) > MAX_MESSAGE:
                self._send({"server_error": f"a message has at most {MAX_MESSAGE} bytes"})
                return

    def _send(self, answer: Mapping[str, Any] | int) -> None:
        self.request.sendall(json.dumps(answer).encode())


def _end_of_message(received: bytes) -> int | None:
    """Return where the first message ends; None if the rest of it is under way.

    An object ends where its brackets are closed, also if it is no valid JSON: its sender waits for
    an answer. What does not begin with a bracket is taken as a whole.
    """
    if not received.strip():
        return None
    if received.lstrip()[:1] not in b"{[":
        return len(received)
    depth = 0
    for token in _TOKEN.finditer(received):
        mark = token[0]
        if mark == b'"':  # of a text whose end is under way
            return None
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return token.end()
    return None
