"""Run the server: on this machine's own address, and nowhere else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from globece.errors import InvalidParameterError
from globece.web.app import Rooms, application
from globece.web.guard import answer_headers, new_token

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")


def bound(port: int) -> socket.socket:
    """A socket that listens on this machine alone; ``0`` takes any free port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named: asyncio sets no delay by it
    try:
        found.bind((LOOPBACK, port))
        found.listen(128)
    except (OSError, OverflowError) as error:
        found.close()
        raise InvalidParameterError(
            f"--port {port} cannot be used ({getattr(error, 'strerror', None) or error}); is another server running? "
            "Take another one, or 0 for any that is free"
        ) from error
    return found


class Protocol(H11Protocol):
    """HTTP/1.1 whose answer to what is no request has the headers of every other answer."""

    def send_400_response(self, msg: str) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *answer_headers()]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=b"That is not a request."),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def server(rooms: Rooms, listening: socket.socket, ready: Callable[[str], None], token: str = "") -> Server:
    """A server on a socket; ``ready`` is told the address to open, with the token."""
    secret = token or new_token()
    port = listening.getsockname()[1]
    hosts = tuple(f"{name}:{port}" for name in NAMES)
    config = uvicorn.Config(
        application(rooms, secret, hosts),
        http=Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=32 * 1024,
    )
    return Server(config, lambda: ready(f"http://{LOOPBACK}:{port}/#token={secret}"))


def run(rooms: Rooms, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; the page is there at once, while the model and the rows are read."""

    def prepare() -> None:
        rooms.begin()
        if rooms.error is not None:
            found.should_exit = True

    def begin(address: str) -> None:
        ready(address)
        threading.Thread(target=prepare, daemon=True).start()

    found = server(rooms, listening, begin)
    found.run(sockets=[listening])
    if rooms.error is not None:
        raise rooms.error


__all__ = ["Protocol", "Rooms", "bound", "run", "server"]
