"""Suggestions: where to measure next."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from truvar.service.limits import ServiceLimits
from truvar.service.routes._common import Author, StudyName, body_class, change_study, change_summary
from truvar.service.schemas import Ask, Withdraw, ask_body
from truvar.service.sessions import StudySessions
from truvar.study.study import Study


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes that make and withdraw suggestions."""
    routes = APIRouter()

    @routes.post("/studies/{name:path}/ask", summary="Ask where to measure next")
    @body_class(ask_body(limits))
    async def ask(name: StudyName, body: Ask, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            study.refresh()  # other objects tell and withdraw
            pending = len(study.pending)
            if pending + body.n > limits.waiting:
                raise HTTPException(
                    429,
                    f"a study may have at most {limits.waiting} pending suggestions, got {pending} and {body.n} more; "
                    "tell or withdraw some first",
                )
            batch = study.ask(body.n, lease=body.lease, who=body.who, budget=body.budget, context=body.context)
            return {"suggestions": [suggestion.to_dict() for suggestion in batch]}

        return await change_study(sessions, name, who, work, chooses=True)

    @routes.post("/studies/{name:path}/withdraw", summary="Withdraw a suggestion, or remove a measurement")
    async def withdraw(name: StudyName, body: Withdraw, who: Author = None) -> Response:
        def work(study: Study) -> Any:
            study.withdraw(body.id, body.reason, again=body.again)
            return change_summary(study, body.id)

        return await change_study(sessions, name, who, work)

    return routes
