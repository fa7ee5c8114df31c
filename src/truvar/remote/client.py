"""Client of a server: lists, opens and creates its studies, and sends requests.

A program that works on a stored study works on one on a server after changing one line:

    study = tv.load("sqlite:///lake.db", "lake")
    study = tv.connect("http://127.0.0.1:8765/#/study/lake", token)
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pandas as pd

from truvar import exceptions
from truvar._deprecation import deprecated_argument, deprecated_attribute
from truvar.exceptions import (
    AccessDeniedError,
    Finished,
    InvalidArgumentError,
    LimitExceededError,
    ServiceError,
    StorageError,
    StudyNotFoundError,
    TruvarError,
    import_optional,
)
from truvar.remote.study import RemoteStudy, study_path
from truvar.storage.base import whoami
from truvar.study.study import Study

if TYPE_CHECKING:
    import httpx

MAX_ATTEMPTS = 4  # for a request that may be sent again
RETRY_SECONDS = 0.5  # before the second attempt; doubled before each further one

_EXCEPTIONS_BY_STATUS: dict[int, type[TruvarError]] = {
    401: AccessDeniedError,
    403: AccessDeniedError,
    404: StudyNotFoundError,
    413: LimitExceededError,
    429: LimitExceededError,
    503: StorageError,
}
"""Exceptions for errors that do not name their class; `ServiceError` for any other status."""


@deprecated_argument("who", "author", removed_in="0.5.0")
def connect(
    url: str, token: str | None = None, name: str | None = None, *, author: str | None = None
) -> RemoteStudy:
    """Return a study on a server.

    Args:
        url: Address of the server, or of the study as the browser shows it.
        token: Token of the server, if it needs one.
        name: Name of the study; not needed if the server has only one or `url` is that of the
            study.
        author: Who makes changes, for the event log; default: the user and the machine.

    Raises:
        StudyNotFoundError: If there is no such study, or several and no name.
        AccessDeniedError: If the server does not accept the token.
        ServiceError: If the server cannot be reached.
    """
    server = Server(url, token, author=author)
    name = name or server.study_in_url
    if name is None:
        names = list(server.studies()["name"])
        if len(names) != 1:
            listed = ", ".join(map(repr, names[:10])) or "none"
            raise StudyNotFoundError(
                f"the server has {len(names)} studies ({listed}), expected one where no name is "
                "given; give name=... "
                "or the address of the study"
            )
        (name,) = names
    return server.study(name)


class Server:
    """A server: lists its studies, opens and creates them.

    Args:
        url: Address of the server, such as http://127.0.0.1:8765.
        token: Token of the server, if it needs one.
        author: Who makes changes, for the event log; default: the user and the machine.
        timeout: Seconds to wait for an answer.

    Attributes:
        url: Address of the server.
        author: Who makes changes.
        study_in_url: Name of the study, if the address given was that of a study.
    """

    who = deprecated_attribute("author", removed_in="0.5.0")

    @deprecated_argument("who", "author", removed_in="0.5.0")
    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        author: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        library = import_optional("httpx", "a connection to a server", "service")
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise InvalidArgumentError(
                f"the address of a server must be like http://127.0.0.1:8765, got {url!r}; correct "
                "it"
            )
        self.url = f"{address.scheme}://{address.netloc}"
        self.study_in_url = unquote(address.fragment.partition("/study/")[2]) or None
        self.author = (author or whoami()).encode("ascii", "replace").decode()
        headers = {"User-Agent": "truvar/python", "X-Truvar-Who": self.author}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http: httpx.Client = library.Client(
            base_url=f"{self.url}/api", headers=headers, timeout=timeout
        )
        weakref.finalize(
            self, self._http.close
        )  # a connection that is dropped leaves no open socket
        self._transport_error = library.TransportError

    def studies(self) -> pd.DataFrame:
        """Return a table of the studies of the server, like `truvar.studies`."""
        frame = pd.DataFrame(self.get("/studies")["studies"])
        if frame.empty:
            return pd.DataFrame(
                columns=["name", "goal", "steps", "spent", "pending", "created", "changed"]
            )
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
            problem: Text of a problem file, the `Path` of one (its tables are sent with it), a
                dict, or a local `Study`, which is copied with all its events.
            name: Name of the study; default: that of the file or of the local study.
            tables: Tables that the problem names: CSV text, the `Path` of a CSV file, or a
                DataFrame.

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
        self.post(f"{study_path(name)}/rename", {"name": new_name, "confirm": name})
        return self.study(new_name)

    def delete(self, name: str) -> None:
        """Delete a study with all its events permanently. The server logs it.

        Args:
            name: Its name.

        Raises:
            StudyNotFoundError: If there is no such study.
        """
        self.post(f"{study_path(name)}/delete", {"confirm": name})

    def get(self, path: str) -> Any:
        """Return the answer to a GET request, from JSON.

        Args:
            path: Path below /api.

        Raises:
            TruvarError: If the server refuses the request; the class is that of the server's
                exception.
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

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None, repeatable: bool
    ) -> httpx.Response:
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
        raise ServiceError(
            f"cannot reach the server {self.url} ({failure}); check that it runs"
        ) from None


def _exception(response: httpx.Response) -> Exception:
    """Return the exception for an error of the server: by its class, or by the status code."""
    try:
        content = response.json()
    except ValueError:
        content = None
    if (
        not isinstance(content, dict) or "error" not in content
    ):  # not from truvar: a proxy, or another server
        content = {"error": response.text[:200] or "empty answer"}
    if "finished" in content:
        return Finished(content["finished"])
    named = getattr(exceptions, str(content.get("exception")), None)
    if isinstance(named, type) and issubclass(named, TruvarError):
        return named(content["error"])
    known = _EXCEPTIONS_BY_STATUS.get(response.status_code, ServiceError)
    return known(f"{content['error']} (HTTP status {response.status_code})")


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
    return {
        name: (path.parent / name).read_text(encoding="utf-8") for name in named if name is not None
    }
