"""Results of a study: status, result, certificate, posterior, measurements and history."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import Response

from truvar.exceptions import DamagedStudyError, InvalidArgumentError
from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import StudyName, cached_response, json_response
from truvar.study.study import Study

_STOP_F1 = "Level set: F1 score that must be reached with 97.5 % probability."
_STOP_REGRET = "Optimum: regret that must not be exceeded with 97.5 % probability."
_STOP_RELATIVE_REGRET = "Optimum: the same, as a share of the range of the posterior mean."
_STOP_ACCURACY = "Map: accuracy that it must have at 99 % of the points with 95 % probability."
_STOP_IMPROVEMENT = "Optimum: expected improvement per unit cost that a measurement must promise."


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes that read what is known about a study."""
    routes = APIRouter()

    @routes.get(
        "/studies/{name:path}/status",
        summary="Counts, best point, certificate and pending suggestions",
    )
    async def status(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {**serializers.status(study), "version": study.version}

        return await cached_response(sessions, name, "status", work)

    @routes.get("/studies/{name:path}/result", summary="The result, without arrays")
    async def result(name: StudyName) -> Response:
        return await cached_response(
            sessions, name, "result", lambda study: study.result().to_dict()
        )

    @routes.get(
        "/studies/{name:path}/certificate",
        summary="What can be stated, and under which assumptions",
    )
    async def certificate(name: StudyName) -> Response:
        return await cached_response(
            sessions, name, "certificate", lambda study: study.result().certificate.to_dict()
        )

    @routes.get("/studies/{name:path}/domain", summary="The domain, goal and policy, exactly")
    async def domain(name: StudyName) -> Response:
        return await cached_response(sessions, name, "domain", serializers.definition)

    @routes.get(
        "/studies/{name:path}/posterior",
        summary="Mean, sd, bounds and class of every point, and the result",
    )
    async def posterior(name: StudyName) -> Response:
        return await cached_response(sessions, name, "posterior", serializers.posterior)

    @routes.get("/studies/{name:path}/measurements", summary="The measurements, in order")
    async def measurements(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"measurements": serializers.measurements(study)}

        return await cached_response(sessions, name, "measurements", work)

    @routes.get("/studies/{name:path}/failures", summary="The measurements that failed, in order")
    async def failures(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"failures": serializers.failures(study)}

        return await cached_response(sessions, name, "failures", work)

    @routes.get(
        "/studies/{name:path}/history", summary="Progress after each measurement, as columns"
    )
    async def history(name: StudyName) -> Response:
        return await cached_response(sessions, name, "history", serializers.history)

    @routes.get(
        "/studies/{name:path}/stop",
        summary="Whether what is known allows to stop, at the given limits",
    )
    async def stop(
        name: StudyName,
        f1: Annotated[float | None, Query(gt=0, le=1, description=_STOP_F1)] = None,
        regret: Annotated[float | None, Query(ge=0, description=_STOP_REGRET)] = None,
        relative_regret: Annotated[
            float | None, Query(ge=0, description=_STOP_RELATIVE_REGRET)
        ] = None,
        improvement_per_cost: Annotated[
            float | None, Query(ge=0, description=_STOP_IMPROVEMENT)
        ] = None,
        accuracy: Annotated[float | None, Query(ge=0, description=_STOP_ACCURACY)] = None,
    ) -> Response:
        def work(study: Study) -> Any:
            check = study.check_stop(
                f1=f1,
                regret=regret,
                relative_regret=relative_regret,
                improvement_per_cost=improvement_per_cost,
                accuracy=accuracy,
            )
            return check.to_dict()

        return json_response(await sessions.read(name, work))

    @routes.get(
        "/studies/{name:path}/improvement",
        summary="Largest expected improvement per unit cost, of an optimum",
    )
    async def improvement(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"improvement_per_cost": study.improvement_per_cost()}

        return await cached_response(sessions, name, "improvement", work)

    @routes.get("/studies/{name:path}/slice", summary="The posterior on a plane through a point")
    async def plane(
        name: StudyName,
        x: str,
        y: str,
        at: Annotated[
            list[float], Query(description="A point of the plane: one number per column, in order.")
        ],
    ) -> Response:
        def work(study: Study) -> Any:
            columns = list(study.domain.columns)
            if x == y or x not in columns or y not in columns:
                raise InvalidArgumentError(
                    f"x and y must be two of the columns {', '.join(columns)}, got {x!r} and "
                    f"{y!r}; give two of them"
                )
            if len(at) != len(columns) or not np.isfinite(at).all():
                raise InvalidArgumentError(
                    f"at must be {len(columns)} finite numbers, got {at}; give one number per "
                    "column"
                )
            return serializers.posterior_slice(
                study, (columns.index(x), columns.index(y)), np.array(at)
            )

        return json_response(await sessions.read(name, work))

    @routes.get("/studies/{name:path}/view", summary="Everything that the page shows")
    async def view(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {**serializers.view(study), "version": study.version}

        try:
            return await cached_response(sessions, name, "view", work)
        except DamagedStudyError as error:
            return json_response(
                {"name": name, "state": "broken", "problem": str(error), "version": 0}
            )

    return routes
