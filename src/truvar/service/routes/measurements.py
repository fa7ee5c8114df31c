"""Measurements: tell, correct and list them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import Correct, Tell, TellRepeats
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import (
    Author,
    StudyName,
    cached_response,
    change_study,
    change_summary,
    json_response,
)
from truvar.study import commands
from truvar.study.study import Study


def warnings_of(receipt: commands.Receipt) -> dict[str, Any]:
    """Return the warnings of a receipt for JSON, with the ids of the measurements that they are about."""
    return {"warnings": list(receipt.warnings.values()), "warning_ids": list(receipt.warnings)}


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of the measurements of a study."""
    routes = APIRouter()

    @routes.post(
        "/studies/{name:path}/tell", summary="Tell a measured value; sent again, it counts once"
    )
    async def tell(name: StudyName, body: Tell, who: Author = None) -> Response:
        target = body.id or body.point or {}
        options = body.model_dump(include={"noise", "cost", "level", "task", "key", "who"})

        def work(study: Study) -> Any:
            receipt = study.execute(commands.Tell(target, body.y, **options))
            return {**change_summary(study, receipt.ids[0]), **warnings_of(receipt)}

        return await change_study(sessions, name, who, work)

    @routes.post(
        "/studies/{name:path}/tell-repeats",
        summary="Tell several values of a place; sent again with a key, once",
    )
    async def tell_repeats(name: StudyName, body: TellRepeats, who: Author = None) -> Response:
        target = body.id or body.point or {}
        options = body.model_dump(include={"level", "task", "key", "who"})

        def work(study: Study) -> Any:
            receipt = study.execute(commands.TellRepeats(target, body.values, **options))
            ids = list(receipt.ids)
            return {**change_summary(study, ids[0]), "ids": ids, **warnings_of(receipt)}

        return await change_study(sessions, name, who, work)

    @routes.post(
        "/studies/{name:path}/check",
        summary="Say whether a value may be a typing mistake; nothing is told",
    )
    async def check(name: StudyName, body: Tell) -> Response:
        def work(study: Study) -> Any:
            finding = study.check_value(
                body.id or body.point or {}, body.y, level=body.level, task=body.task
            )
            return {"warnings": [] if finding is None else [finding]}

        return json_response(await sessions.read(name, work))

    @routes.post("/studies/{name:path}/correct", summary="Correct the value of a measurement")
    async def correct(name: StudyName, body: Correct, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            receipt = study.execute(
                commands.Correct(body.id, body.y, body.noise, body.cost, body.was)
            )
            return {**change_summary(study, body.id), **warnings_of(receipt)}

        return await change_study(sessions, name, who, work)

    @routes.get("/studies/{name:path}/measurements", summary="The measurements, in order")
    async def measurements(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"measurements": serializers.measurements(study)}

        return await cached_response(sessions, name, "measurements", work)

    return routes
