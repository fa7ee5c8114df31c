"""Suggestions: where to measure next."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from truvar.messages import current_interface
from truvar.service._choices import ChoiceRequest
from truvar.service._disconnection import while_connected
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import CommandBody, MeasurementBody, body_of
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import (
    Author,
    StudyName,
    author_name,
    body_class,
    change_summary,
    execute,
    json_response,
)
from truvar.study.commands import Ask, Withdraw


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes that make and withdraw suggestions."""
    routes = APIRouter()

    @routes.post("/studies/{name:path}/ask", summary="Ask where to measure next")
    @body_class(body_of(Ask, n={"le": limits.batch}))
    async def ask(
        name: StudyName, body: CommandBody, request: Request, author: Author = None
    ) -> Response:
        choice = ChoiceRequest(
            author=author_name(author),
            interface=current_interface(),
            command=Ask(**body.arguments),
            max_pending=limits.waiting,
        )
        return json_response(await while_connected(request, sessions.choose(name, choice)))

    @routes.post(
        "/studies/{name:path}/withdraw", summary="Withdraw a suggestion, or remove a measurement"
    )
    @body_class(body_of(Withdraw, MeasurementBody))
    async def withdraw(name: StudyName, body: CommandBody, author: Author = None) -> Response:
        return await execute(sessions, name, author, body, change_summary)

    return routes
