"""The application: the API, the page, and what goes wrong as JSON."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

import truvar
from truvar.exceptions import Finished, StorageError, TruvarError
from truvar.service import serializers
from truvar.service.auth import Tokens
from truvar.service.limits import ServiceLimits
from truvar.service.middleware import SecurityMiddleware
from truvar.service.routes import api
from truvar.service.sessions import Broken, StudySessions, Taken, Unknown

PAGE = Path(__file__).parent / "static"
LOG = logging.getLogger("truvar.service")


def create_app(store: str, tokens: Tokens | None = None, limits: ServiceLimits | None = None) -> FastAPI:
    """The service of a store. Without tokens it answers to this machine alone."""
    limits = limits or ServiceLimits()
    sessions = StudySessions(store, limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        sessions.close()

    app = FastAPI(
        title="truvar",
        version=truvar.__version__,
        summary="Where to measure next: studies over HTTP.",
        description="With tokens, every request needs the header `Authorization: Bearer TOKEN`.",
        docs_url=None,  # they would load from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.include_router(api(sessions, limits))

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE))
    app.add_middleware(GZipMiddleware, minimum_size=20_000, compresslevel=4)
    app.add_middleware(SecurityMiddleware, tokens=tokens or Tokens(), largest=limits.body)
    for kind, status in (
        (Unknown, 404),
        (Taken, 409),
        (Broken, 409),
        (Finished, 409),
        (StorageError, 503),
        (TruvarError, 422),
    ):
        app.add_exception_handler(kind, _refusal(status))
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(StarletteHTTPException, _http)
    app.add_exception_handler(Exception, _failed)
    return app


def _error(status: int, message: str, **more: Any) -> Response:
    return Response(serializers.encode({"error": message, **more}), status, media_type="application/json")


def _refusal(status: int) -> Any:
    async def handler(_: Request, error: Exception) -> Response:
        return _error(status, str(error), **({"finished": error.reason} if isinstance(error, Finished) else {}))

    return handler


async def _misunderstood(_: Request, error: Any) -> Response:
    problems: Sequence[Any] = error.errors()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return _error(400, "the body is not valid JSON; check its quotes, commas and braces")
    said = [f"{'.'.join(map(str, problem['loc'][1:])) or 'the body'}: {problem['msg']}" for problem in problems[:5]]
    return _error(422, "; ".join(said))


async def _http(_: Request, error: Any) -> Response:
    return _error(error.status_code, str(error.detail))


async def _failed(request: Request, error: Exception) -> Response:
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error(500, "the server made a mistake; its log says more")
