"""The server itself."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

import truvar
from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import json_response


def router(_: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the route that describes the server."""
    routes = APIRouter()

    @routes.get(
        "", summary="Version of the server, what the token allows and whose it is, and the limits"
    )
    async def server(request: Request) -> Response:
        access = request.scope["access"]
        description = {
            "version": truvar.__version__,
            "access": access,
            "holder": request.scope.get("holder"),
            "limits": vars(limits),
        }
        return json_response(description)

    return routes
