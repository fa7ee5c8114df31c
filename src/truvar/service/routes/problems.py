"""Problems that are not stored: read a table, and check a problem before a study is created."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from truvar.service import page_data
from truvar.service.limits import ServiceLimits
from truvar.service.routes._common import json_response
from truvar.service.schemas import ProblemCheck, TableText
from truvar.service.sessions import StudySessions
from truvar.service.uploads import uploaded_problem, uploaded_table

UNNAMED = "study"  # name of a problem that is checked before it has one


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes of problems that are not stored."""
    routes = APIRouter()

    @routes.post("/problems/check", summary="Validate a problem: what it means, what is likely wrong, and its points")
    async def check(body: ProblemCheck) -> Response:
        def work() -> Any:
            problem = uploaded_problem(UNNAMED, body.problem, body.tables, limits, check=False)
            return page_data.problem_check(problem, problem.study())

        return json_response(await sessions.run(work))

    @routes.post("/problems/columns", summary="The columns of a table, for a form to choose from")
    async def columns(body: TableText) -> Response:
        def work() -> Any:
            frame = uploaded_table(body.text, limits)
            return {"rows": len(frame), "columns": page_data.table_columns(frame)}

        return json_response(await sessions.run(work))

    return routes
