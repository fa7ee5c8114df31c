"""Analysis of a study: how its answer converges, and what its model says."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import Response

from truvar.service import _page_data as page_data
from truvar.service._convergence import Convergence, ConvergenceSource
from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import StudyName, cached_response, json_response
from truvar.study.study import Study

NUMBER = r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?"
NUMBERS = f"^({NUMBER}(,{NUMBER})*)?$"


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes that analyse a study."""
    routes = APIRouter()
    convergence = Convergence(limits.studies)

    @routes.get(
        "/studies/{name:path}/convergence",
        summary="Best value so far, and expected F1 or regret after some of the measurements; "
        "repeat it until complete",
    )
    async def converging(name: StudyName) -> Response:
        def work(source: ConvergenceSource) -> dict[str, Any]:
            return convergence.to_dict(name, source)

        return json_response(await sessions.read_apart(name, convergence.read, work))

    @routes.get(
        "/studies/{name:path}/model",
        summary="Model check, importance of the columns, and curves along each column through a "
        "point",
    )
    async def model(
        name: StudyName,
        at: Annotated[
            str,
            Query(
                description="A point that the curves go through, one number per column, such as "
                "0.5,-3; default: the "
                "recommended one.",
                pattern=NUMBERS,
            ),
        ] = "",
    ) -> Response:
        if not at:
            return await cached_response(sessions, name, "model", page_data.model)
        point = np.array([float(number) for number in at.split(",")])

        def work(study: Study) -> Any:
            return page_data.model(study, point)

        return json_response(await sessions.read(name, work))

    return routes
