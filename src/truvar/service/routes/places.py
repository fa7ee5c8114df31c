"""Places that cannot be measured: exclude and allow them, and record measurements that failed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import (
    CommandBody,
    PlaceBody,
    PointBody,
    RequiredPlaceBody,
    body_of,
)
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import (
    Author,
    StudyName,
    body_class,
    cached_response,
    change_summary,
    execute,
)
from truvar.study.commands import Allow, Exclude, Fail, Receipt
from truvar.study.study import Study


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of places that cannot be measured."""
    routes = APIRouter()

    @routes.post("/studies/{name:path}/exclude", summary="Exclude a place that cannot be measured")
    @body_class(body_of(Exclude, RequiredPlaceBody))
    async def exclude(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        return await execute(sessions, name, author, body, _summary)

    @routes.post(
        "/studies/{name:path}/allow", summary="Allow a place again; without one, everywhere"
    )
    @body_class(body_of(Allow, PlaceBody))
    async def allow(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        return await execute(sessions, name, author, body, _summary)

    @routes.post("/studies/{name:path}/fail", summary="Record that a measurement failed")
    @body_class(body_of(Fail, PointBody))
    async def fail(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        return await execute(sessions, name, author, body, change_summary)

    @routes.get("/studies/{name:path}/failures", summary="The measurements that failed, in order")
    async def failures(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"failures": serializers.failures(study)}

        return await cached_response(sessions, name, "failures", work)

    return routes


def _summary(study: Study, receipt: Receipt) -> dict[str, Any]:
    """Return the short answer to a change, with the number of points that are excluded now."""
    result = study.result()
    summary = change_summary(study, receipt)
    return {**summary, "excluded": result.n_excluded, "infeasible_share": result.infeasible_share}
