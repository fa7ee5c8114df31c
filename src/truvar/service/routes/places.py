"""Places that cannot be measured: exclude and allow them, and record measurements that failed."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from truvar.domain.constraints import PolygonConstraint
from truvar.exceptions import InvalidArgumentError
from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import AllowedPlace, ExcludedPlace, Fail
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import (
    Author,
    StudyName,
    cached_response,
    change_study,
    change_summary,
)
from truvar.study import commands
from truvar.study.study import Study


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of places that cannot be measured."""
    routes = APIRouter()

    @routes.post("/studies/{name:path}/exclude", summary="Exclude a place that cannot be measured")
    async def exclude(name: StudyName, body: ExcludedPlace, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            study.execute(commands.Exclude(_place(study, body), body.reason))
            return _summary(study, body)

        return await change_study(sessions, name, who, work)

    @routes.post(
        "/studies/{name:path}/allow", summary="Allow a place again; without one, everywhere"
    )
    async def allow(name: StudyName, body: AllowedPlace, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            study.execute(commands.Allow(_place(study, body)))
            return _summary(study, body)

        return await change_study(sessions, name, who, work)

    @routes.post("/studies/{name:path}/fail", summary="Record that a measurement failed")
    async def fail(name: StudyName, body: Fail, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            command = commands.Fail(body.id or body.point or {}, body.reason, body.cost, body.who)
            return change_summary(study, study.execute(command).ids[0])

        return await change_study(sessions, name, who, work)

    @routes.get("/studies/{name:path}/failures", summary="The measurements that failed, in order")
    async def failures(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"failures": serializers.failures(study)}

        return await cached_response(sessions, name, "failures", work)

    return routes


def _place(study: Study, body: AllowedPlace) -> Any:
    """Return the place of a request as `Study.exclude` takes it; None if there is none."""
    if body.polygon is not None:
        return PolygonConstraint(body.polygon.rings, body.polygon.columns)
    if body.rows is not None:
        n = len(study.domain)
        if study.domain.continuous or max(body.rows, default=0) >= n:
            raise InvalidArgumentError(
                f"rows must be those of a finite domain of {n} points; correct them"
            )
        mask = np.zeros(n, bool)
        mask[body.rows] = True
        return mask
    return next(iter(body.places.values()), None)


def _summary(study: Study, body: AllowedPlace) -> dict[str, Any]:
    """Return the short answer to a change, with the number of points that are excluded now."""
    result = study.result()
    summary = change_summary(study, body.id or 0)
    return {**summary, "excluded": result.n_excluded, "infeasible_share": result.infeasible_share}
