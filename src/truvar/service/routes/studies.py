"""The list of studies, and new ones."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from truvar.service import serializers
from truvar.service.limits import ServiceLimits
from truvar.service.routes._common import Author, author_name, json_response
from truvar.service.schemas import Create
from truvar.service.sessions import StudySessions
from truvar.service.uploads import uploaded_problem, uploaded_study
from truvar.storage.base import check_study_name
from truvar.study.study import Study


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes of the collection of studies."""
    routes = APIRouter()

    @routes.get("/studies", summary="All studies, the last changed first")
    async def list_studies(request: Request) -> Response:
        allowed = request.scope.get("studies")
        found = await sessions.list_studies()
        return json_response({"studies": [row for row in found if allowed is None or row["name"] in allowed]})

    @routes.post("/studies", status_code=201, summary="Create a study")
    async def create(body: Create, who: Author = None) -> Response:
        name = check_study_name(body.name)

        def make(url: str) -> Study:
            if body.problem is None:
                return uploaded_study(body.study or {}, url, name, limits)
            problem = uploaded_problem(name, body.problem, body.tables, limits, check=False)
            return problem.study(store=url, name=name, who=author_name(who))

        await sessions.create(name, make)
        return json_response(await sessions.read(name, serializers.status), 201)

    return routes
