"""The web application: the API, the page, and errors as JSON."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

import truvar
from truvar.exceptions import (
    DamagedStudyError,
    Finished,
    InvalidArgumentError,
    InvalidMeasurementError,
    LimitExceededError,
    ServiceError,
    StorageError,
    StudyExistsError,
    StudyNotFoundError,
    TruvarError,
    UncertainChangeError,
)
from truvar.problem.messages import request_message
from truvar.problem.schema import SECTIONS
from truvar.service._auth import Tokens
from truvar.service._choices import PendingLimitError
from truvar.service._limits import ServiceLimits
from truvar.service._log_limits import limit_logs
from truvar.service._middleware import SecurityMiddleware
from truvar.service._page_files import STATIC, worker_script
from truvar.service._sessions import StudySessions
from truvar.service.routes import api_router
from truvar.service.routes._common import json_response
from truvar.study.commands import ARGUMENTS

MAX_MESSAGE = 2_000  # characters of an error, which may repeat what a client sent
GZIP_MIN_SIZE = 20_000  # bytes of an answer that is compressed
GZIP_LEVEL = 4  # of 9: most of the gain for little time
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
LOG = logging.getLogger("truvar.service")

STATUS_CODES: dict[type[Exception], int] = {
    StudyNotFoundError: 404,
    StudyExistsError: 409,
    DamagedStudyError: 409,
    Finished: 409,
    PendingLimitError: 429,
    ServiceError: 503,
    LimitExceededError: 422,
    StorageError: 503,
    TruvarError: 422,
}
"""HTTP status of exceptions; a class that is not listed has that of its base class."""

Handler = Callable[[Request, Any], Awaitable[Response]]


def create_app(
    store: str, tokens: Tokens | None = None, limits: ServiceLimits | None = None
) -> FastAPI:
    """Create the application for the studies of a store.

    Args:
        store: URL of the store; it is created if it does not exist.
        tokens: Tokens to accept; None: requests of this machine alone.
        limits: Largest requests to accept; None: the defaults.

    Raises:
        TruvarError: If the store cannot be opened.
    """
    limits = limits or ServiceLimits()
    sessions = StudySessions(store, limits)
    limit_logs()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await sessions.end_processes()
        sessions.close()

    app = FastAPI(
        title="truvar",
        version=truvar.__version__,
        summary="Where to measure next: studies over HTTP.",
        description="With tokens, every request needs the header `Authorization: Bearer TOKEN`.",
        docs_url=None,  # these pages would load scripts from other sites
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.state.sessions = sessions
    app.include_router(api_router(sessions, limits))

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html")

    script = worker_script(STATIC)

    @app.get("/worker.js", include_in_schema=False)
    async def worker() -> Response:
        # A service worker sees the requests below its own address only, so that it does not lie
        # under /page.
        return Response(script, media_type="text/javascript")

    app.mount("/page", StaticFiles(directory=STATIC))
    app.add_middleware(GZipMiddleware, minimum_size=GZIP_MIN_SIZE, compresslevel=GZIP_LEVEL)
    app.add_middleware(
        SecurityMiddleware, tokens=tokens or Tokens(), max_body=limits.body, stored=sessions.tokens
    )
    for exception, status in STATUS_CODES.items():
        app.add_exception_handler(exception, _exception_handler(status))
    app.add_exception_handler(StorageError, _handle_storage_error)
    app.add_exception_handler(RequestValidationError, _handle_invalid_request)
    app.add_exception_handler(StarletteHTTPException, _handle_http_error)
    app.add_exception_handler(Exception, _handle_server_error)
    return app


def _error_response(
    status: int, message: str, exception: type[Exception] | None = None, **more: Any
) -> Response:
    """Return an error in JSON; `exception` is the class that the client in Python raises."""
    if len(message) > MAX_MESSAGE:
        message = f"{message[:MAX_MESSAGE]}..."
    content: dict[str, Any] = {"error": message, **more}
    if exception is not None:
        content["exception"] = exception.__name__
    return json_response(content, status)


def _exception_handler(status: int) -> Handler:
    async def handle(_: Request, error: Exception) -> Response:
        more = {"finished": error.reason} if isinstance(error, Finished) else {}
        public = next(
            each for each in type(error).__mro__ if each.__module__ == TruvarError.__module__
        )
        return _error_response(status, str(error), public, **more)

    return handle


async def _handle_invalid_request(_: Request, error: Any) -> Response:
    errors = error.errors()
    if any(found["type"] == "json_invalid" for found in errors):
        return _error_response(
            400, "the body is not valid JSON; check its quotes, commas and braces"
        )
    first = _without_type(errors)
    arguments = [ARGUMENTS[name] for name in first["loc"][1:2] if name in ARGUMENTS]
    is_measured = any(argument.is_measured for argument in arguments)
    exception = InvalidMeasurementError if is_measured else InvalidArgumentError
    return _error_response(422, request_message(first, SECTIONS), exception)


def _without_type(errors: Any) -> dict[str, Any]:
    """Return the first error; of an argument of several types, that of the type that was sent.

    Its location then has the name of the type behind that of the argument.
    """
    place = errors[0]["loc"]
    if len(place) < 3 or place[1] not in ARGUMENTS or ARGUMENTS[place[1]].kind is not object:
        return dict(errors[0])
    of_values = [each for each in errors if len(each["loc"]) > 3 and each["loc"][1] == place[1]]
    error = (of_values or errors)[0]
    return {**error, "loc": (*error["loc"][:2], *error["loc"][3:])}


async def _handle_http_error(request: Request, error: Any) -> Response:
    exception = LimitExceededError if error.status_code == 429 else None
    response = _error_response(error.status_code, str(error.detail), exception)
    response.headers.update(error.headers or {})
    if error.status_code == 405:
        response.headers["allow"] = ", ".join(_allowed_methods(request))
    return response


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods that the path of a request has."""
    scope = dict(request.scope)
    routes = request.app.router.routes
    return [
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] == Match.FULL for route in routes)
    ]


async def _handle_storage_error(request: Request, error: Exception) -> Response:
    """Log what is wrong, and tell the client no path, host or user."""
    LOG.error("%s %s: %s", request.method, request.url.path, error)
    if isinstance(error, UncertainChangeError):
        message = (
            "the connection to the store was lost while the change was stored; it may have been "
            "stored: send the same "
            "request again, which counts once for the same id or key"
        )
        return _error_response(503, message, UncertainChangeError)
    message = "the store of this server is not available; nothing was changed: try again later"
    return _error_response(503, message, StorageError)


async def _handle_server_error(request: Request, error: Exception) -> Response:
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error_response(500, "the server failed; its log has the details")
