"""Middleware before the application: access, size of bodies, and security headers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from truvar.exceptions import AccessDeniedError, LimitExceededError, ServiceError
from truvar.messages import interface
from truvar.service._auth import LOCAL_NAMES, Grant, Tokens, TokenStore, host_name, is_loopback
from truvar.service.serializers import encode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-cache",
}
PYTHON_CLIENT = "truvar/"  # beginning of the User-Agent of the client in Python
MAX_GIVEN_AUTHOR = (
    40  # characters of the author that a client gives, beside the holder of its token
)
BODY_SECONDS = 60.0  # that a body may take
# oversized bodies are drained up to this multiple of the limit, so that the client can read the 413
DRAIN_FACTOR = 4


@dataclass(frozen=True)
class Refusal:
    """A request that the application does not see.

    Attributes:
        status: HTTP status code.
        message: Text for the client.
        exception: Exception that the client in Python raises.
    """

    status: int
    message: str
    exception: type[ServiceError] = ServiceError


class SecurityMiddleware:
    """ASGI middleware that checks access and body size before the application sees a request.

    Args:
        app: The application.
        tokens: Tokens to accept; without any, only requests of this machine are accepted.
        max_body: Largest body, in bytes.
        stored: Tokens of the store, which may change while the server runs.
    """

    def __init__(self, app: App, tokens: Tokens, max_body: int, stored: TokenStore) -> None:
        self._app = app
        self._tokens = tokens
        self._stored = stored
        self._max_body = max_body

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                extra = [(name, value) for name, value in HEADERS.items() if name not in given]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        if _path(scope).startswith("/api"):
            await self._stored.update()
        refusal = self._check_access(scope, headers)
        body = b""
        if refusal is None and scope["method"] == "POST":
            refusal, body = await self._read_body(headers, receive)
        if refusal is not None:
            await _send_refusal(send_with_headers, refusal)
            return
        unread: list[Message] = []
        if scope["method"] == "POST":
            unread.append({"type": "http.request", "body": body, "more_body": False})

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        from_python = headers.get("user-agent", "").startswith(PYTHON_CLIENT)
        with interface("python" if from_python else "http"):
            await self._app(scope, receive_again, send_with_headers)

    def _check_access(self, scope: Message, headers: dict[str, str]) -> Refusal | None:
        """Return why a request is refused; otherwise set its rights, `scope["access"]`."""
        grant: Grant | None = Grant("write")
        name = host_name(headers.get("host", ""))
        if self._tokens or self._stored:
            if _path(scope).startswith("/api"):
                scheme, _, token = headers.get("authorization", "").partition(" ")
                grant = self._grant(token.strip()) if scheme.lower() == "bearer" else None
        elif name not in LOCAL_NAMES or not is_loopback((scope.get("client") or ("",))[0]):
            message = (
                "without tokens this server answers requests to localhost only, got one to "
                f"{name!r}"
            )
            return Refusal(403, message, AccessDeniedError)
        if grant is None:
            wrong = "unknown token" if "authorization" in headers else "the token is missing"
            return Refusal(
                401, f"{wrong}; send the header Authorization: Bearer TOKEN", AccessDeniedError
            )
        scope["access"] = grant.access
        scope["studies"] = grant.studies
        scope["holder"] = grant.name
        if not grant.covers(_path(scope)):
            return Refusal(
                403,
                "this token is for other studies; ask for one for this study",
                AccessDeniedError,
            )
        if grant.name is not None:
            _sign(scope, headers.get("x-truvar-who"), grant.name)
        if scope["method"] in ("GET", "HEAD"):
            return None
        if grant.studies is not None and _path(scope) == "/api/studies":
            return Refusal(
                403, "this token is for certain studies and cannot create others", AccessDeniedError
            )
        if grant.access != "write":
            return Refusal(
                403, "this token is for reading only; changes need a write token", AccessDeniedError
            )
        origin = headers.get("origin")
        if (
            origin is not None
            and origin.rpartition("//")[2].lower() != headers.get("host", "").lower()
        ):
            return Refusal(
                403, f"pages of {origin} may not change studies of this server", AccessDeniedError
            )
        return None

    def _grant(self, token: str) -> Grant | None:
        """Return what a token allows: one that the server was started with, or one of the store."""
        access = self._tokens.access(token)
        return self._stored.grant(token) if access is None else Grant(access)

    async def _read_body(
        self, headers: dict[str, str], receive: Receive
    ) -> tuple[Refusal | None, bytes]:
        """Read the body of a request, and return why it is refused, if it is."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return Refusal(
                415, "the body must be JSON, with the header Content-Type: application/json"
            ), b""
        message = f"the body must have at most {self._max_body:,} bytes; send less"
        too_large = Refusal(413, message, LimitExceededError)
        declared = headers.get("content-length", "0")
        max_drained = DRAIN_FACTOR * self._max_body
        if declared.isdigit() and int(declared) > max_drained:
            return too_large, b""
        body = bytearray()
        size = 0
        deadline = time.monotonic() + BODY_SECONDS
        while True:
            try:
                part = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                return Refusal(
                    408, f"the body did not arrive within {BODY_SECONDS:g} s; send it faster"
                ), b""
            if part["type"] == "http.disconnect":
                return Refusal(400, "the connection was closed before the body was complete"), b""
            content = part.get("body", b"")
            is_last = not part.get("more_body", False)
            size += len(content)
            if size <= self._max_body:
                body += content
            if size > max_drained or (size > self._max_body and is_last):
                return too_large, b""
            if is_last:
                return None, bytes(body)


def _path(scope: Message) -> str:
    """Return the path of a request below the root path, which Uvicorn puts in front of it."""
    path = str(scope["path"])
    root = str(scope.get("root_path", ""))
    return path.removeprefix(root) if root and path.startswith(f"{root}/") else path


def _sign(scope: Message, given: str | None, holder: str) -> None:
    """Put the holder of the token into the header that names the author of a change."""
    author = holder if not given else f"{given[:MAX_GIVEN_AUTHOR]} (token {holder})"
    others = [(name, value) for name, value in scope["headers"] if name != b"x-truvar-who"]
    scope["headers"] = [*others, (b"x-truvar-who", author.encode("latin-1", "replace"))]


async def _send_refusal(send: Send, refusal: Refusal) -> None:
    body = encode({"error": refusal.message, "exception": refusal.exception.__name__})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
