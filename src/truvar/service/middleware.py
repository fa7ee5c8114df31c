"""What stands before the application: who may come in, how large a body may be, and the headers of every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from truvar.messages import interface
from truvar.service.auth import LOCAL_NAMES, Access, Tokens, host_name, is_loopback
from truvar.service.serializers import encode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-cache",
}


PROGRAM = "truvar/"  # how a client in Python calls itself
LISTENED = 4  # so many times the largest body is heard out: one who still speaks might miss the answer


class SecurityMiddleware:
    """ASGI middleware."""

    def __init__(self, app: App, tokens: Tokens, largest: int) -> None:
        self._app, self._tokens, self._largest = app, tokens, largest

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                extra = [(name, value) for name, value in HEADERS.items() if name not in given]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        body = b""
        if refusal is None and scope["method"] == "POST":
            refusal, body = await self._body(headers, receive)
        if refusal is not None:
            await _answer(guarded, *refusal)
            return
        pending = [{"type": "http.request", "body": body, "more_body": False}] if scope["method"] == "POST" else []

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        with interface("python" if headers.get("user-agent", "").startswith(PROGRAM) else "http"):
            await self._app(scope, replay, guarded)

    def _refusal(self, scope: Message, headers: dict[str, str]) -> tuple[int, str] | None:
        """Why the request is not let in: status and message. What it may do is left in the scope."""
        access: Access | None = "write"
        name = host_name(headers.get("host", ""))
        if self._tokens:
            if scope["path"].startswith("/api"):
                kind, _, token = headers.get("authorization", "").partition(" ")
                access = self._tokens.access(token.strip()) if kind.lower() == "bearer" else None
        elif name not in LOCAL_NAMES or not is_loopback((scope.get("client") or ("",))[0]):
            return 403, f"without tokens this server answers to localhost alone, got called {name!r}"
        if access is None:
            said = "that token is not known" if "authorization" in headers else "a token is missing"
            return 401, f"{said}; send the header Authorization: Bearer TOKEN"
        scope["access"] = access
        if scope["method"] in ("GET", "HEAD"):
            return None
        if access == "read":
            return 403, "this token is for reading only; changes need the other one"
        origin = headers.get("origin")
        if origin is not None and origin.rpartition("//")[2].lower() != headers.get("host", "").lower():
            return 403, f"pages of {origin} may not change anything here"
        return None

    async def _body(self, headers: dict[str, str], receive: Receive) -> tuple[tuple[int, str] | None, bytes]:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return (415, "the body must be JSON, with the header Content-Type: application/json"), b""
        too_large = 413, f"the body must have at most {self._largest:,} bytes; send less"
        declared = headers.get("content-length", "0")
        most = LISTENED * self._largest
        if declared.isdigit() and int(declared) > most:
            return too_large, b""
        body, size = bytearray(), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return (400, "the request broke off"), b""
            part = message.get("body", b"")
            size += len(part)
            if size <= self._largest:
                body += part
            if size > most or (size > self._largest and not message.get("more_body", False)):
                return too_large, b""
            if not message.get("more_body", False):
                return None, bytes(body)


async def _answer(send: Send, status: int, message: str) -> None:
    body = encode({"error": message})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
