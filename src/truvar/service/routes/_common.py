"""Parameters and answers that the routes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Header, Path, Request
from fastapi.responses import Response

from truvar.messages import current_interface
from truvar.problem.schema import ProblemSpec
from truvar.service._disconnection import while_connected
from truvar.service._limits import is_plain_text
from truvar.service._sessions import StudySessions
from truvar.service._uploads import Upload, UploadKind
from truvar.service.serializers import encode
from truvar.storage.base import MAX_AUTHOR_LENGTH, MAX_STORED_NAME_LENGTH
from truvar.study.study import Study

F = TypeVar("F", bound=Callable[..., Any])
JSON = "application/json"
DEFAULT_AUTHOR = "service"

StudyName = Annotated[
    str, Path(description="Name of the study.", max_length=MAX_STORED_NAME_LENGTH)
]
Author = Annotated[
    str | None,
    Header(
        alias="X-Truvar-Who",
        max_length=MAX_AUTHOR_LENGTH,
        description="Who makes the change, for the event log.",
    ),
]


def body_class(model: type[Any]) -> Callable[[F], F]:
    """Return a decorator that sets the class of a route's body, which is made at run time.

    Args:
        model: A subclass of the class that the route is annotated with.
    """

    def decorate(route: F) -> F:
        route.__annotations__["body"] = model
        return route

    return decorate


def author_name(author: str | None) -> str:
    """Return the author of a change as the event log has it."""
    return author if author and is_plain_text(author) else DEFAULT_AUTHOR


def json_response(data: Any, status: int = 200) -> Response:
    """Return an answer in JSON."""
    return Response(encode(data), status, media_type=JSON)


def file_response(content: str | bytes, media_type: str, name: str) -> Response:
    """Return an answer that browsers save as a file."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    headers = {"content-disposition": f'attachment; filename="{safe}"'}
    body = content.encode() if isinstance(content, str) else content
    return Response(body, media_type=media_type, headers=headers)


async def upload_response(
    sessions: StudySessions,
    request: Request,
    kind: UploadKind,
    content: Any,
    name: str,
    author: str = DEFAULT_AUTHOR,
    tables: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """Return the answer to an upload, which is given up if the client leaves.

    Args:
        sessions: The studies of the server.
        request: The request.
        kind: What to do with it.
        content: The upload in JSON values.
        name: Name of the study.
        author: Author of its first event.
        tables: CSV text of the tables of a problem.
        status: HTTP status of the answer.
    """
    size = len(await request.body())
    upload = Upload(kind, content, name, author, current_interface(), tables or {}, size)
    return Response(
        await while_connected(request, sessions.upload(upload)), status, media_type=JSON
    )


def json_problem(problem: str | ProblemSpec) -> Any:
    """Return a validated problem in JSON values: its text, or an object."""
    return (
        problem if isinstance(problem, str) else problem.model_dump(mode="json", exclude_unset=True)
    )


async def cached_response(
    sessions: StudySessions, name: str, key: str, work: Callable[[Study], Any]
) -> Response:
    """Return the answer of `work` in JSON, made once for each version of the study."""
    content = await sessions.read_cached(name, key, lambda study: encode(work(study)))
    return Response(content, media_type=JSON)
