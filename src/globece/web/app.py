"""The routes: the page, its data, recomputations, trying a change. No request names a path or a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from globece.errors import GlobeCEError
from globece.page.html import document
from globece.web.desk import Desk
from globece.web.guard import App, Guard
from globece.web.jobs import FAILED, RUNNING, Busy, Job, Jobs
from globece.web.limits import Limits

BINARY = "application/octet-stream"


class Rooms:
    """What the routes share.

    Attributes
    ----------
    limits
        Limits of a request.
    desk
        The model and the rows; ``None`` until they are read, and where only a result file is shown.
    shown
        The page that is shown, in binary; ``None`` until the first result is there.
    jobs
        Recomputations.
    first
        The job of the first result.
    error
        What ended the preparation, if it failed.
    """

    def __init__(
        self, limits: Limits, *, load: Callable[[], bytes] | None = None, prepare: Callable[[], Desk] | None = None
    ) -> None:
        self.limits, self._load, self._prepare = limits, load, prepare
        self.shown: bytes | None = None
        self.desk: Desk | None = None
        self.jobs = Jobs(limits)
        self.first: Job | None = None
        self.error: BaseException | None = None

    @property
    def reads(self) -> str:
        """What is read first, in words."""
        return "reading the data and the model" if self._prepare is not None else "reading the result file"

    def begin(self) -> None:
        """Read the result file; or the model and the rows, and compute the first result."""
        try:
            if self._load is not None:
                self.shown = self._load()
            if self._prepare is None:
                return
            self.desk = self._prepare()
            self.first = self.recompute(self.desk.first())
        except BaseException as error:  # whatever it is, the command ends with it
            self.error = error

    def recompute(self, asked: dict[str, Any]) -> Job:
        """Begin a recomputation; its best result becomes the page that is shown."""
        desk = self.desk
        assert desk is not None

        def work(job: Job) -> None:
            try:
                desk.compute(asked, job)
            finally:
                if job.page is not None:
                    self.shown = job.page

        return self.jobs.start(work)


def said(status: int, why: str) -> JSONResponse:
    """An error in words."""
    return JSONResponse({"error": why}, status)


async def given(request: Request) -> Any:
    """The JSON of a request's body."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ValueError("the body must be JSON, and its type application/json")
    body = await request.body()
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError("the body is not JSON") from error


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def routes(rooms: Rooms) -> list[Route]:
    """Every route there is."""
    shell = document(None)

    async def page(request: Request) -> Response:
        return HTMLResponse(shell)

    async def data(request: Request) -> Response:
        if rooms.shown is not None:
            return Response(rooms.shown, media_type=BINARY)
        job = rooms.first
        if job is None and rooms.error is None:
            return JSONResponse({"stage": rooms.reads, "done": 0, "total": 1}, 202)
        if job is not None and job.page is not None:
            return Response(job.page, media_type=BINARY)
        if job is not None and job.state == RUNNING:
            return JSONResponse({"stage": job.stage, "done": job.done, "total": job.total}, 202)
        why = job.message if job is not None and job.state == FAILED else "there is no result"
        return said(500, f"The first result could not be computed: {why}")

    async def start(request: Request) -> Response:
        if rooms.desk is None:
            return said(409, "this server shows a result file, and has no model to compute with")
        try:
            asked = rooms.desk.checked(await given(request))
            job = rooms.recompute(asked)
        except (GlobeCEError, ValueError) as error:
            return said(400, str(error))
        except Busy:
            return said(409, "another window is computing; wait for it, or cancel there")
        return JSONResponse(job.told(), 202)

    async def latest(request: Request) -> Response:
        found = rooms.jobs.latest()
        return JSONResponse({"job": None if found is None else found.told()})

    async def job(request: Request) -> Response:
        found = rooms.jobs.get(request.path_params["name"])
        if found is None:
            return said(404, "there is no such computation")
        if request.method == "DELETE":
            rooms.jobs.cancel(found)
        return JSONResponse(found.told())

    async def result(request: Request) -> Response:
        found = rooms.jobs.get(request.path_params["name"])
        if found is None or found.page is None:
            return said(404, "there is no such result")
        return Response(found.page, media_type=BINARY)

    async def tried(request: Request) -> Response:
        if rooms.desk is None:
            return said(409, "this server shows a result file, and has no model to ask")
        try:
            asked = await given(request)
            found = await asyncio.to_thread(rooms.desk.tried, asked)
        except (GlobeCEError, ValueError) as error:
            return said(400, str(error))
        return JSONResponse(found)

    async def icon(request: Request) -> Response:
        return Response(status_code=204)

    return [
        Route("/", page, methods=["GET"]),
        Route("/favicon.ico", icon, methods=["GET"]),
        Route("/api/page", data, methods=["GET"]),
        Route("/api/jobs", start, methods=["POST"]),
        Route("/api/jobs", latest, methods=["GET"]),
        Route("/api/jobs/{name:str}", job, methods=["GET", "DELETE"]),
        Route("/api/jobs/{name:str}/page", result, methods=["GET"]),
        Route("/api/try", tried, methods=["POST"]),
    ]


async def _not_found(request: Request, error: Exception) -> Response:
    return said(404, "there is nothing here")


async def _not_allowed(request: Request, error: Exception) -> Response:
    return said(405, "that method is not allowed")


def application(rooms: Rooms, token: str, hosts: tuple[str, ...]) -> App:
    """The whole server as an ASGI application."""
    inner = Starlette(routes=routes(rooms), exception_handlers={404: _not_found, 405: _not_allowed})
    inner.router.redirect_slashes = False
    return Guard(inner, token, hosts, rooms.limits)
