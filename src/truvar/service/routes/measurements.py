"""Measurements: tell, correct and list them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import (
    CommandBody,
    MeasurementBody,
    PointBody,
    TellBody,
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
    json_response,
)
from truvar.study import commands
from truvar.study.study import Study


def _answer(study: Study, receipt: commands.Receipt) -> dict[str, Any]:
    """Return the answer to a command, with its warnings and the ids that they are about."""
    return {
        **change_summary(study, receipt),
        "warnings": list(receipt.warnings.values()),
        "warning_ids": list(receipt.warnings),
    }


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of the measurements of a study."""
    routes = APIRouter()
    tell_body = body_of(commands.Tell, TellBody)

    @routes.post(
        "/studies/{name:path}/tell", summary="Tell a measured value; sent again, it counts once"
    )
    @body_class(tell_body)
    async def tell(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        return await execute(sessions, name, author, body, _answer)

    @routes.post(
        "/studies/{name:path}/tell-repeats",
        summary="Tell several values of a place; sent again with a key, once",
    )
    @body_class(body_of(commands.TellRepeats, PointBody))
    async def tell_repeats(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        def answer(study: Study, receipt: commands.Receipt) -> Any:
            return {**_answer(study, receipt), "ids": list(receipt.ids)}

        return await execute(sessions, name, author, body, answer)

    @routes.post(
        "/studies/{name:path}/check",
        summary="Say whether a value may be a typing mistake; nothing is told",
    )
    @body_class(tell_body)
    async def check(name: StudyName, body: CommandBody) -> Response:
        def work(study: Study) -> Any:
            command: Any = body.command(study)
            finding = study.check_value(
                command.what, command.y, level=command.level, task=command.task
            )
            return {"warnings": [] if finding is None else [finding]}

        return json_response(await sessions.read(name, work))

    @routes.post("/studies/{name:path}/correct", summary="Correct the value of a measurement")
    @body_class(body_of(commands.Correct, MeasurementBody))
    async def correct(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        return await execute(sessions, name, author, body, _answer)

    @routes.get("/studies/{name:path}/measurements", summary="The measurements, in order")
    async def measurements(name: StudyName) -> Response:
        def work(study: Study) -> Any:
            return {"measurements": serializers.measurements(study)}

        return await cached_response(sessions, name, "measurements", work)

    return routes
