"""Problems that are not stored: read a table, and check a problem before a study is created."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from truvar.service._limits import ServiceLimits
from truvar.service._schemas import ProblemCheck, TableText
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import json_problem, upload_response

_UNNAMED = "study"  # name of a problem that is checked before it has one


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of problems that are not stored."""
    routes = APIRouter()

    @routes.post(
        "/problems/check",
        summary="Validate a problem: what it means, what is likely wrong, and its points",
    )
    async def check(body: ProblemCheck, request: Request) -> Response:
        problem = json_problem(body.problem)
        return await upload_response(
            sessions, request, "check", problem, _UNNAMED, tables=body.tables
        )

    @routes.post("/problems/columns", summary="The columns of a table, for a form to choose from")
    async def columns(body: TableText, request: Request) -> Response:
        return await upload_response(sessions, request, "columns", body.text, _UNNAMED)

    return routes
