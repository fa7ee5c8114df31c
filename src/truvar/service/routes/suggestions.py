"""Suggestions: where to measure next."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from truvar.messages import current_interface
from truvar.service._choices import ChoiceRequest
from truvar.service._disconnection import while_connected
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import Ask, Withdraw, ask_body
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import (
    Author,
    StudyName,
    author_name,
    body_class,
    change_study,
    change_summary,
    json_response,
)
from truvar.study import commands
from truvar.study.study import Study


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes that make and withdraw suggestions."""
    routes = APIRouter()

    @routes.post("/studies/{name:path}/ask", summary="Ask where to measure next")
    @body_class(ask_body(limits))
    async def ask(name: StudyName, body: Ask, request: Request, who: Author = None) -> Response:
        choice = ChoiceRequest(
            author=author_name(who),
            interface=current_interface(),
            n=body.n,
            lease=body.lease,
            who=body.who,
            budget=body.budget,
            context=body.context,
            max_pending=limits.waiting,
        )
        return json_response(await while_connected(request, sessions.choose(name, choice)))

    @routes.post(
        "/studies/{name:path}/withdraw", summary="Withdraw a suggestion, or remove a measurement"
    )
    async def withdraw(name: StudyName, body: Withdraw, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            study.execute(commands.Withdraw(body.id, body.reason, body.again))
            return change_summary(study, body.id)

        return await change_study(sessions, name, who, work)

    return routes
