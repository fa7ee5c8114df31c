"""The event log: past events and live changes."""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response, StreamingResponse

from truvar.exceptions import TruvarError
from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import StudyName, json_response

_POLL_SECONDS = 2.0  # between two looks at the event log for a stream of changes
_KEEP_ALIVE_SECONDS = (
    14.0  # of silence after which a stream sends a comment, so that proxies keep it open
)


class _EventStream(StreamingResponse):
    """Type of a stream of changes, for OpenAPI."""

    media_type = "text/event-stream"


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes of the event log of a study."""
    routes = APIRouter()
    streams = asyncio.Semaphore(limits.streams)

    @routes.get("/studies/{name:path}/events", summary="The events, newest first")
    async def events(
        name: StudyName, newest: Annotated[int, Query(ge=1, le=100_000)] = 1000
    ) -> Response:
        return json_response(
            await sessions.read(name, lambda study: {"events": serializers.events(study, newest)})
        )

    @routes.get(
        "/studies/{name:path}/live",
        summary="Server-sent events: the version, whenever it changes",
        response_class=_EventStream,
    )
    async def live(name: StudyName) -> Response:
        version = await sessions.read(name, lambda study: study.version)
        if streams.locked():
            raise HTTPException(
                429,
                f"this server has at most {limits.streams} streams, all in use; poll the status "
                "instead",
            )
        await streams.acquire()  # does not wait
        response = StreamingResponse(
            _changes(sessions, name, version), media_type="text/event-stream"
        )
        weakref.finalize(
            response, streams.release
        )  # also when the client leaves before the stream begins
        return response

    return routes


async def _changes(sessions: StudySessions, name: str, version: int) -> AsyncIterator[str]:
    """Yield the version of a study now and after each change, until the study is gone."""
    while True:
        yield f"data: {json.dumps({'version': version})}\n\n"
        sent = version
        silence = 0.0
        while version == sent:
            try:
                version = await sessions.wait_for_change(name, sent, _POLL_SECONDS)
            except TruvarError:
                return
            silence += _POLL_SECONDS
            if version == sent and silence >= _KEEP_ALIVE_SECONDS:
                silence = 0.0
                yield ": keep-alive\n\n"
