"""What stands in front of every request: Host, Origin, token, size; and what every answer carries."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from globece.page.html import policy
from globece.web.limits import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN_BYTES = 32  # 256 bits
METHODS = ("GET", "HEAD", "POST", "DELETE")
OPEN = ("/", "/favicon.ico")  # the page itself holds no data; all else asks for the token
SAME = ("same-origin", "none")  # what a browser says of a request that no other site made


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def answer_headers() -> list[tuple[bytes, bytes]]:
    """The headers of every answer."""
    return [
        (b"content-security-policy", policy(live=True).encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    ]


class Guard:
    """Lets through what comes from the page of this server; answers everything else itself.

    Parameters
    ----------
    app
        What answers.
    token
        What a request must bring.
    hosts
        What the Host header may say: this machine, by its names, with the port.
    limits
        Limits of a request.
    """

    def __init__(self, app: App, token: str, hosts: tuple[str, ...], limits: Limits) -> None:
        self.app, self.limits, self.hosts = app, limits, hosts
        self.origins = tuple(f"http://{host}" for host in hosts)
        self._token = token.encode("utf-8")
        self._headers = answer_headers()
        self._now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                ours = {name for name, _ in self._headers}
                kept = [(n, v) for n, v in message.get("headers", []) if n.lower() not in ours]
                message = {**message, "headers": [*kept, *self._headers]}
            await send(message)

        self._now += 1
        try:
            refused = self._refused(scope)
            body = b"" if refused else await self._read(receive)
            if body is None:
                refused = 413, f"a request may have at most {self.limits.body:,} bytes"
            if refused:
                await refuse(guarded, *refused)
                return
            assert body is not None
            await self.app(scope, _replayed(body, receive), guarded)
        except Exception:
            # what it was is for the operator's console; a stranger learns nothing from it
            if not started:
                await refuse(guarded, 500, "the server failed; its console says how")
            raise
        finally:
            self._now -= 1

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is not let through."""
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        if self._now > self.limits.requests:
            return 503, "too many requests at the same time"
        host = given.get(b"host", [])
        if len(host) != 1 or _text(host[0]).lower() not in self.hosts:
            return 421, "this server answers at its own address alone"
        if any(_text(origin).lower() not in self.origins for origin in given.get(b"origin", [])):
            return 403, "requests from other sites are refused"
        if any(_text(site) not in SAME for site in given.get(b"sec-fetch-site", [])) and scope["path"] not in OPEN:
            return 403, "requests from other sites are refused"
        if scope["method"] not in METHODS:
            return 405, "that method is not allowed"
        if scope["path"] not in OPEN and not self._brings_token(given.get(b"authorization", [])):
            return 401, "the token is missing or wrong; open the address that globece serve printed"
        lengths = given.get(b"content-length", [])
        if any(not value.isdigit() or int(value) > self.limits.body for value in lengths):
            return 413, f"a request may have at most {self.limits.body:,} bytes"
        return None

    def _brings_token(self, values: list[bytes]) -> bool:
        if len(values) != 1:
            return False
        kind, _, token = values[0].partition(b" ")
        return hmac.compare_digest(token, self._token) and kind.lower() == b"bearer"

    async def _read(self, receive: Receive) -> bytes | None:
        """The whole body, which is small; ``None`` if it is not, however it comes."""
        parts, size = [], 0
        while True:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size > self.limits.body:
                return None
            parts.append(part)
            if message["type"] != "http.request" or not message.get("more_body", False):
                return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What was read, once more; then what comes from the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(send: Send, status: int, why: str) -> None:
    """Answer with an error in words."""
    body = json.dumps({"error": why}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode("ascii"))]
    if status == 413:
        headers.append((b"connection", b"close"))  # what is still being sent is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _text(value: bytes) -> str:
    return value.decode("latin-1")
