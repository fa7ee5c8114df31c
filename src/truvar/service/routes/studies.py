"""The list of studies, and new ones."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from truvar.exceptions import InvalidArgumentError
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import Create, Delete, Rename
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import (
    Author,
    StudyName,
    author_name,
    json_problem,
    json_response,
    upload_response,
)
from truvar.storage.base import check_study_name


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of the collection of studies."""
    routes = APIRouter()

    @routes.get("/studies", summary="All studies, the last changed first")
    async def list_studies(request: Request) -> Response:
        allowed = request.scope.get("studies")
        found = await sessions.list_studies()
        return json_response(
            {"studies": [row for row in found if allowed is None or row["name"] in allowed]}
        )

    @routes.post("/studies", status_code=201, summary="Create a study")
    async def create(body: Create, request: Request, author: Author = None) -> Response:
        name = check_study_name(body.name)
        author = author_name(author)
        if body.problem is None:
            return await upload_response(
                sessions, request, "study", body.study or {}, name, author, status=201
            )
        problem = json_problem(body.problem)
        return await upload_response(
            sessions, request, "problem", problem, name, author, body.tables, status=201
        )

    @routes.post(
        "/studies/{name:path}/rename", summary="Give a study another name; its event log notes it"
    )
    async def rename(
        request: Request, name: StudyName, body: Rename, author: Author = None
    ) -> Response:
        _check_administration(request, name, body.confirm)
        await sessions.rename(name, check_study_name(body.name), author_name(author))
        return json_response({"name": body.name})

    @routes.post(
        "/studies/{name:path}/delete", summary="Delete a study permanently; log and store record it"
    )
    async def delete(
        request: Request, name: StudyName, body: Delete, author: Author = None
    ) -> Response:
        _check_administration(request, name, body.confirm)
        return json_response(
            {"name": name, "events": await sessions.delete(name, author_name(author))}
        )

    return routes


def _check_administration(request: Request, name: str, confirmation: str) -> None:
    """Check that a study may be renamed or deleted by this request.

    Raises:
        InvalidArgumentError: If the confirmation is another text than the name.
        HTTPException: If the token is for certain studies only.
    """
    if request.scope.get("studies") is not None:
        raise HTTPException(
            403, "this token is for certain studies and can neither rename nor delete them"
        )
    if confirmation != name:
        raise InvalidArgumentError(
            f"confirm must be the name of the study, {name!r}, got {confirmation!r}; repeat it"
        )
