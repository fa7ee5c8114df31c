"""A server of the Model Context Protocol: the studies of a store as tools for assistants.

A server that is not started for writing has only the tools that change nothing. Problems name no
files of this machine: tables are sent as CSV text with the problem.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from truvar import __version__
from truvar._deprecation import deprecated_argument
from truvar.exceptions import (
    InvalidArgumentError,
    LimitExceededError,
    StudyNotFoundError,
    TruvarError,
    import_optional,
)
from truvar.problem import problem_from_dict
from truvar.problem.parameters import grid_size
from truvar.problem.schema import ProblemSpec, parse_spec
from truvar.report.status import status_data
from truvar.report.tables import to_json
from truvar.storage import open_storage
from truvar.study.commands import MAX_BATCH, Ask, Command, Fail, Tell, Withdraw
from truvar.study.stored import load, studies
from truvar.study.study import Study
from truvar.tabular.tables import parse_table

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

_MAX_POINTS = 10_000  # points of a domain that an assistant may create
_MAX_ROWS = 1_000  # measurements in one answer
_INSTRUCTIONS = (
    "Studies choose what to measure next to find a maximum, a minimum or a level set of an unknown "
    "quantity. Ask for a "
    "suggestion, have it measured, tell the value; `result` says what is known and how sure it is. "
    "Never invent a "
    "measured value."
)


class _StudyTools:
    """The tools, as methods. Their docstrings are what an assistant reads.

    Args:
        store: URL of the store.
        author: Author of the events.
    """

    def __init__(self, store: str, author: str | None = None) -> None:
        self._store = store
        self._author = author
        self._open: dict[str, Study] = {}
        self._lock = Lock()

    def _study(self, name: str | None) -> Study:
        if (
            name is None
        ):  # looked up in every call: another study may have been created since the last one
            name = self._only_name()
        with self._lock:
            study = self._open.get(name)
            if study is None:
                study = load(self._store, name, self._author)
                self._open[name] = study
        study.refresh()
        return study

    def _only_name(self) -> str:
        names = open_storage(self._store).study_names()
        if not names:
            raise StudyNotFoundError("the store has no study yet; create one first")
        if len(names) > 1:
            found = ", ".join(map(repr, names))
            raise StudyNotFoundError(
                f"without a name the store must have exactly one study, got {found}; give "
                f"study={names[0]!r}"
            )
        return names[0]

    # -- tools that change nothing
    # -------------------------------------------------------------------------------------

    def list_studies(self) -> list[dict[str, Any]]:
        """List the studies of the store: name, measurements, cost, time of the last change."""
        listed: list[dict[str, Any]] = json.loads(
            studies(self._store).to_json(orient="records", date_format="iso")
        )
        return listed

    def status(self, study: str | None = None) -> dict[str, Any]:
        """Return the status of a study: counters, goal, best point, certificate, warnings, pending.

        Args:
            study: Name of the study; leave it out if the store has only one.
        """
        return _plain(status_data(self._study(study)))

    def result(self, study: str | None = None) -> dict[str, Any]:
        """Return the result: best point, numbers above, below and undecided, expected F1 or regret.

        Args:
            study: Name of the study; leave it out if the store has only one.
        """
        return _plain(self._study(study).result().to_dict())

    def predict(
        self, points: list[dict[str, Any]], study: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the posterior mean and standard deviation at points, given as values by column.

        Args:
            points: The points, such as [{"x": 0.5, "y": 2.0}].
            study: Name of the study; leave it out if the store has only one.
        """
        if len(points) > _MAX_ROWS:
            raise LimitExceededError(
                f"one call predicts at most {_MAX_ROWS} points, got {len(points)}; give fewer"
            )
        mean, sd = self._study(study).predict(points)  # type: ignore[arg-type]  # points by column are accepted
        return [
            {"point": point, "mean": float(m), "sd": float(s)}
            for point, m, s in zip(points, mean, sd, strict=True)
        ]

    def measurements(self, study: str | None = None, last: int = 50) -> list[dict[str, Any]]:
        """Return the last measurements, oldest first: id, point, value, noise and cost.

        Args:
            study: Name of the study; leave it out if the store has only one.
            last: How many, at most 1000.
        """
        records = self._study(study).measurement_records()[-max(1, min(last, _MAX_ROWS)) :]
        return _plain([record.to_dict() for record in records])

    def plot(self, study: str | None = None) -> Any:
        """Draw where a study stands, as a PNG picture.

        Args:
            study: Name of the study; leave it out if the store has only one.
        """
        content = BytesIO()
        self._study(study).plot().savefig(content, format="png")
        return import_optional("mcp.server.mcpserver", "an MCP server", "mcp").Image(
            data=content.getvalue(), format="png"
        )

    # -- tools that write
    # ----------------------------------------------------------------------------------------------

    def create(
        self, problem: dict[str, Any], tables: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Create a study from a problem with the keys of a problem file, and return its status.

        Args:
            problem: Such as {"name": "lake", "domain": {"grid": {"x": [0, 1, 50]}}, "goal":
                {"level_set": 7.0}}. A domain is a grid (start, end and number of values of each
                axis), a box, or a table with its columns; a goal is level_set, level_set_below,
                maximize or minimize; model, noise, cost and policy are optional.
            tables: CSV text of each table that the problem names.
        """
        spec = parse_spec(ProblemSpec, problem).domain
        _check_size(
            grid_size(spec.grid or {})
        )  # before the domain is built, which takes memory and time
        _check_size(spec.representers or 0)
        frames = {name: _read_table(name, text) for name, text in (tables or {}).items()}
        built = problem_from_dict(problem, tables=frames)
        _check_size(len(built.domain))
        study = built.study(store=self._store, author=self._author)
        return _plain(status_data(study))

    def ask(self, count: int = 1, study: str | None = None) -> dict[str, Any]:
        """Suggest what to measure next; suggestions stay pending until told, failed or withdrawn.

        Args:
            count: Number of suggestions, chosen as a batch.
            study: Name of the study; leave it out if the store has only one.
        """
        if not 1 <= count <= MAX_BATCH:
            raise InvalidArgumentError(
                f"count must be from 1 to {MAX_BATCH}, got {count}; give another"
            )
        receipt = self._study(study).execute(Ask(count))
        if receipt.end is not None and not receipt.suggestions:
            return {"suggestions": [], "finished": str(receipt.end)}
        return _plain({"suggestions": [each.to_dict() for each in receipt.suggestions]})

    def tell(
        self,
        value: float,
        id: int | None = None,
        point: dict[str, Any] | None = None,
        noise: float | None = None,
        cost: float | None = None,
        study: str | None = None,
    ) -> dict[str, Any]:
        """Record a measured value of a suggestion, by its id, or of a point; return the status.

        Args:
            value: The measured value.
            id: Id of the suggestion.
            point: Coordinates by column, if it was not suggested.
            noise: Noise variance that the measurement had, if it differs from the expected one.
            cost: Cost that the measurement had, if it differs from the expected one.
            study: Name of the study; leave it out if the store has only one.
        """
        command = Tell(_id_or_point(id, point), value, noise=noise, cost=cost)
        return self._execute(study, command)

    def fail(
        self,
        reason: str,
        id: int | None = None,
        point: dict[str, Any] | None = None,
        study: str | None = None,
    ) -> dict[str, Any]:
        """Record that a measurement failed, so that there is no value. Returns the new status.

        Args:
            reason: Why it failed.
            id: Id of the suggestion.
            point: Coordinates by column, if it was not suggested.
            study: Name of the study; leave it out if the store has only one.
        """
        return self._execute(study, Fail(_id_or_point(id, point), reason))

    def withdraw(self, id: int, reason: str, study: str | None = None) -> dict[str, Any]:
        """Withdraw a suggestion that will not be measured. Returns the new status.

        Args:
            id: Id of the suggestion.
            reason: Why, for the event log.
            study: Name of the study; leave it out if the store has only one.
        """
        opened = self._study(study)
        if id not in {suggestion.id for suggestion in opened.pending}:
            raise InvalidArgumentError(
                f"id must be that of a pending suggestion, got {id}; see status"
            )
        return self._execute(study, Withdraw(id, reason, again=True))

    def _execute(self, name: str | None, command: Command) -> dict[str, Any]:
        """Execute a command and return the new status, the warnings about its values first."""
        study = self._study(name)
        receipt = study.execute(command)
        status = status_data(study)
        return _plain({**status, "warnings": [*receipt.warnings.values(), *status["warnings"]]})


READING = ("list_studies", "status", "result", "predict", "measurements", "plot")
WRITING = ("create", "ask", "tell", "fail", "withdraw")


@deprecated_argument("who", "author", removed_in="0.5.0")
def make_server(store: str, *, write: bool = False, author: str | None = None) -> Any:
    """Return an MCP server with the studies of a store as tools.

    Args:
        store: URL of the store, such as "sqlite:///lake.db".
        write: Whether the server also has the tools that create studies and change them.
        author: Author of the events; default: the user and the machine.

    Returns:
        A `mcp.server.mcpserver.MCPServer`; its `run()` serves standard input and output.

    Raises:
        MissingDependencyError: If the package mcp is not installed.

    Example:
        >>> make_server("sqlite:///lake.db", write=True).run()
    """
    library = import_optional("mcp.server.mcpserver", "an MCP server", "mcp")
    types = import_optional("mcp.types", "an MCP server", "mcp")
    tools = _StudyTools(store, author)
    server = library.MCPServer("truvar", instructions=_INSTRUCTIONS, version=__version__)
    for name in (*READING, *WRITING) if write else READING:
        reads = name in READING
        hints = types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=False,
            idempotent_hint=reads,
            open_world_hint=False,
        )
        structured = (
            False if name == "plot" else None
        )  # None: the values are sent as JSON objects too
        server.tool(name=name, annotations=hints, structured_output=structured)(
            _reported(getattr(tools, name))
        )
    return server


def _reported(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool whose mistakes reach the assistant as messages; it sees no other exceptions."""
    failure = import_optional("mcp.server.mcpserver.exceptions", "an MCP server", "mcp").ToolError

    @wraps(tool)
    def reported(*arguments: Any, **options: Any) -> Any:
        try:
            return tool(*arguments, **options)
        except TruvarError as error:
            raise failure(" ".join(str(error).split())) from error

    return reported


def _check_size(count: int) -> None:
    if count > _MAX_POINTS:
        raise LimitExceededError(
            f"a domain must have at most {_MAX_POINTS} points, got {count}; give fewer"
        )


def _read_table(name: str, text: str) -> pd.DataFrame:
    try:
        return parse_table(text)
    except (
        ValueError,
        InvalidArgumentError,
    ) as error:  # the errors of pandas derive from ValueError
        raise InvalidArgumentError(
            f"table {name!r} must be CSV text with a header and rows, got text that is not "
            f"({error}); correct it"
        ) from None


def _id_or_point(id: int | None, point: dict[str, Any] | None) -> int | dict[str, Any]:
    if (id is None) == (point is None):
        raise InvalidArgumentError(
            "give either the id of a suggestion or a point, got both or neither"
        )
    return id if id is not None else point  # type: ignore[return-value]  # one of them is given


def _plain(value: T) -> T:
    """Return a dictionary or list as JSON values."""
    plain: T = json.loads(to_json(value))
    return plain
