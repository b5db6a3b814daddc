"""A real server in a thread, and requests to it, for tests of the live page."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import globece as gce
from globece.cli.training import pipeline
from globece.web import serving
from globece.web.desk import Desk
from globece.web.limits import Limits


@dataclass(frozen=True)
class Live:
    """A running server."""

    port: int
    token: str
    rooms: serving.Rooms

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}/#token={self.token}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one answer."""
        sent = {"Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=data, headers=sent)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def job(self, body: Any, seconds: float = 60.0) -> dict[str, Any]:
        """Start a recomputation and wait for its end."""
        status, _, text = self.ask("POST", "/api/jobs", body)
        assert status == 202, text
        name = json.loads(text)["id"]
        return self.ended(name, seconds)

    def ended(self, name: str, seconds: float = 60.0) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            told: dict[str, Any] = json.loads(self.ask("GET", f"/api/jobs/{name}")[2])
            if told["state"] != "running":
                return told
            time.sleep(0.05)
        raise AssertionError(f"the job did not end within {seconds} s")


def credit(n: int = 400) -> tuple[Any, pd.DataFrame, gce.FeatureSpace]:
    """A small credit model, its rows and their space."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.normal(40, 12, n).round(1),
            "debt": rng.gamma(2.0, 5.0, n).round(1),
            "housing": rng.choice(["rent", "own", "free"], n, p=[0.5, 0.4, 0.1]),
            "sex": rng.choice(["female", "male"], n),
        }
    )
    y = (X["income"] - X["debt"] + 8 * (X["housing"] == "own") + rng.normal(0, 6, n) > 38).astype(int)
    space = gce.FeatureSpace.from_frame(X, immutable=["sex"])

    class Model:
        def __init__(self) -> None:
            self.inner = LogisticRegression(max_iter=2000).fit(self.columns(X), y)

        def columns(self, X: pd.DataFrame) -> np.ndarray:
            return np.column_stack([X["income"] / 10, X["debt"] / 10, X["housing"] == "own"]).astype(float)

        def __call__(self, X: pd.DataFrame) -> np.ndarray:
            return np.asarray(self.inner.decision_function(self.columns(X)) > 0).astype(int)

    return Model(), X, space


def audited(n: int = 400) -> gce.Audit:
    """A quick audit of a pipeline that is followed exactly, by sex."""
    model, X, space = credit(n)
    fitted = pipeline("logistic", space, 0).fit(X, model(X))
    settings = gce.AuditSettings(checks=False, permutations=99, resamples=50)
    wishes: dict[str, Any] = {"favourable": 1, "space": space, "effort": "quick", "n_directions": 2, "rng": 0}
    return gce.audit(fitted, X, by="sex", audit_settings=settings, **wishes)


def desk(limits: Limits, *, model: Any = None, by: str | None = None, n_directions: int = 2) -> Desk:
    """The credit model on a desk."""
    fitted, X, space = credit()
    wishes = {"space": space, "budget": 10.0, "rng": 0, "favourable": 1, "threshold": None}
    return Desk(model or fitted, X, X, wishes, gce.About(include_rows=True), limits, n_directions, by)


@contextmanager
def running(rooms: serving.Rooms) -> Iterator[Live]:
    """A server for these rooms until the end of the block."""
    listening = serving.bound(0)
    ready = threading.Event()
    found: dict[str, str] = {}

    def said(address: str) -> None:
        found["token"] = address.partition("token=")[2]
        ready.set()

    server = serving.server(rooms, listening, said)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield Live(listening.getsockname()[1], found["token"], rooms)
    finally:
        server.should_exit = True
        thread.join(10)


def prepared(limits: Limits | None = None, **wishes: Any) -> serving.Rooms:
    """Rooms whose first result is computed."""
    limits = limits or Limits(job_s=60.0)
    rooms = serving.Rooms(limits, prepare=lambda: desk(limits, **wishes))
    rooms.begin()
    rooms.jobs.wait()
    assert rooms.error is None
    return rooms
