"""Routes of the API, one module per resource."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes import (
    analysis,
    commands,
    events,
    exports,
    problems,
    results,
    server,
    studies,
)

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body is not valid JSON."},
    401: {"description": "The token is missing or unknown."},
    403: {"description": "The token is for reading only, or the request comes from another site."},
    404: {"description": "There is no such study."},
    409: {"description": "The study is finished or damaged, or its name is taken."},
    413: {"description": "The body is too large."},
    415: {"description": "The body is not declared as JSON."},
    422: {"description": "A value cannot be used; the message says why and how to correct it."},
    429: {"description": "Too many suggestions are pending, or too many streams are open."},
    503: {"description": "The store is not available; nothing was changed."},
}


def api_router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return all routes below /api.

    Args:
        sessions: The studies of the server.
        limits: Limits of the server.
    """
    api = APIRouter(responses=ERRORS)
    resources = (
        server,
        problems,
        studies,
        commands,
        events,
        results,
        analysis,
        exports,
    )
    for resource in resources:
        api.include_router(resource.router(sessions, limits), prefix="/api")
    return api
