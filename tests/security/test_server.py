"""The server: loopback, token, Host and Origin, headers, limits; promises 20 to 22."""

from __future__ import annotations

import http.client
import json
import random
import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from globece.errors import InvalidParameterError
from globece.page.arrays import Page
from globece.web import serving
from globece.web.guard import TOKEN_BYTES, new_token
from globece.web.limits import Limits
from tests.fuzzing import fuzz
from tests.live import Live, prepared, running

CARRIED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with running(prepared(Limits(job_s=60.0, body=4096))) as found:
        yield found


def test_it_listens_on_this_machine_alone(live: Live) -> None:
    listening = serving.bound(0)
    assert listening.getsockname()[0] == "127.0.0.1"
    listening.close()
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for other in others:
        with pytest.raises((ConnectionError, TimeoutError)):
            socket.create_connection((str(other), live.port), timeout=2)


def test_a_token_has_256_bits_and_is_another_each_time() -> None:
    assert TOKEN_BYTES * 8 >= 192
    assert len({new_token() for _ in range(1000)}) == 1000
    assert min(len(new_token()) for _ in range(100)) >= 43


@pytest.mark.parametrize("path", ["/api/page", "/api/jobs", "/api/jobs/x", "/api/jobs/x/page", "/api/try", "/nowhere"])
@pytest.mark.parametrize("token", ["", "wrong", "\xff\xfe", "x" * 5000])
def test_everything_but_the_empty_page_asks_for_the_token(live: Live, path: str, token: str) -> None:
    status, headers, body = live.ask("GET", path, token=token)
    assert status == 401
    assert live.token.encode() not in body
    assert {name: headers[name] for name in CARRIED} == CARRIED


def test_the_token_is_compared_in_constant_time(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def compare(a: bytes, b: bytes) -> bool:
        seen.append((a, b))
        return False

    monkeypatch.setattr("globece.web.guard.hmac.compare_digest", compare)
    assert live.ask("GET", "/api/page")[0] == 401
    assert seen == [(live.token.encode(), live.token.encode())]


def test_the_page_without_a_token_holds_no_data(live: Live) -> None:
    status, headers, body = live.ask("GET", "/", token="")
    assert status == 200
    assert b"income" not in body
    assert live.token.encode() not in body
    assert b'id="globece-data">null<' in body
    assert "text/html" in headers["content-type"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost:1"},
        {"Host": ""},
    ],
)
def test_another_host_is_refused(live: Live, headers: dict[str, str]) -> None:
    """DNS rebinding: a page of another name that points here."""
    assert live.ask("GET", "/api/page", headers=headers)[0] in (400, 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", ""])
def test_another_origin_is_refused(live: Live, origin: str) -> None:
    status, headers, _ = live.ask("POST", "/api/try", {"action": {"income": 1}}, headers={"Origin": origin})
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]


def test_its_own_origin_is_let_through_and_no_header_allows_others(live: Live) -> None:
    for name in ("127.0.0.1", "localhost"):
        own = {"Origin": f"http://{name}:{live.port}", "Host": f"{name}:{live.port}"}
        status, headers, _ = live.ask("GET", "/api/page", headers=own)
        assert status == 200
        assert not [name for name in headers if name.startswith("access-control")]
    assert live.ask("OPTIONS", "/api/try")[0] == 405
    assert live.ask("GET", "/api/page", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_every_answer_carries_the_policy(live: Live) -> None:
    asked = [
        live.ask("GET", "/"),
        live.ask("GET", "/api/page"),
        live.ask("GET", "/nowhere"),
        live.ask("PUT", "/"),
        live.ask("POST", "/"),
        live.ask("POST", "/api/try", b"{", headers={"Content-Type": "application/json"}),
        live.ask("GET", "/api/page", token="no"),
        live.ask("GET", "/favicon.ico"),
    ]
    assert {status for status, _, _ in asked} >= {200, 400, 401, 404, 405}
    for _, headers, _ in asked:
        assert {name: headers[name] for name in CARRIED} == CARRIED
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_what_is_no_request_gets_the_same_headers(live: Live) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as raw:
        raw.sendall(b"\x00\x01 nonsense\r\n\r\n")
        answer = raw.recv(65536).lower()
    assert answer.startswith(b"http/1.1 400")
    assert b"nosniff" in answer
    assert b"content-security-policy" in answer


def test_an_oversized_body_gets_413_and_the_server_lives(live: Live) -> None:
    assert live.ask("POST", "/api/try", b"x" * 5000, headers={"Content-Type": "application/json"})[0] == 413
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as raw:  # announced, and never sent
        head = f"POST /api/try HTTP/1.1\r\nHost: {live.host}\r\nAuthorization: Bearer {live.token}\r\n"
        raw.sendall(f"{head}Content-Length: 99999999999999\r\n\r\n".encode())
        assert b" 413 " in raw.recv(4096)
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as raw:  # in parts, of unknown length
        raw.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(8):
            raw.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
            if select.select([raw], [], [], 0.2)[0]:  # after its answer the server may close the connection
                break
        assert b" 413 " in raw.recv(4096)
    assert live.ask("GET", "/api/page")[0] == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/try", {"action": {}}),
        ("/api/try", {"action": {"nobody": 1}}),
        ("/api/try", {"action": {"income": "much"}}),
        ("/api/try", {"action": {"income": 1e999}}),
        ("/api/try", {"action": {"housing": "castle"}}),
        ("/api/try", {"action": {"income": 1}, "mode": "x"}),
        ("/api/try", {"action": {"income": 1}, "model": "/etc/passwd"}),
        ("/api/try", [1]),
        ("/api/try", "text"),
        ("/api/jobs", {"n_directions": 0}),
        ("/api/jobs", {"n_directions": 10**9}),
        ("/api/jobs", {"budget": -1}),
        ("/api/jobs", {"by": "/etc/passwd"}),
        ("/api/jobs", {"by": ["sex"]}),
        ("/api/jobs", {"features": {"income": {"may": "fly"}}}),
        ("/api/jobs", {"features": {"income": {"weight": 0}}}),
        ("/api/jobs", {"features": {"../x": {}}}),
        ("/api/jobs", {"data": "other.csv"}),
        ("/api/jobs", {"model": "model.pkl"}),
    ],
)
def test_bad_requests_say_what_is_allowed_and_name_no_path(live: Live, path: str, body: Any) -> None:
    """Promise 20: no request names a model or a path; there is no key for either."""
    status, _, text = live.ask("POST", path, body)
    assert status == 400, text
    assert json.loads(text)["error"]


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 4000, b"NaN", b'{"action": {"income": NaN}}', b"\xff\xfe{}"])
def test_what_is_not_json_is_refused(live: Live, text: bytes) -> None:
    assert live.ask("POST", "/api/try", text, headers={"Content-Type": "application/json"})[0] == 400
    assert live.ask("POST", "/api/try", b'{"action": {"income": 1}}', headers={"Content-Type": "text/plain"})[0] == 400


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "/page.js", "//etc/passwd", "/api/jobs/..%2f.."],
)
def test_no_file_is_read(live: Live, path: str) -> None:
    status, _, body = live.ask("GET", path)
    assert status == 404
    assert b"root:" not in body


class Hangs:
    """A model that answers once for all rows and then, when told to, no more."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.asleep = inner, threading.Event()

    def __call__(self, X: Any) -> Any:
        while self.asleep.is_set():
            time.sleep(0.05)
        return self.inner(X)


def test_a_job_that_does_not_end_is_given_up_and_the_server_lives() -> None:
    from tests.live import credit

    model = Hangs(credit()[0])
    with running(prepared(Limits(job_s=1.0, grace_s=0.5), model=model)) as live:
        model.asleep.set()
        name = json.loads(live.ask("POST", "/api/jobs", {"n_directions": 1})[2])["id"]
        assert live.ended(name, 20)["state"] == "timed out"
        assert live.ask("POST", "/api/jobs", {"n_directions": 1})[0] == 409, "its thread is still there"
        assert live.ask("GET", "/api/page")[0] == 200
        model.asleep.clear()
        live.rooms.jobs.wait()
        assert live.job({"n_directions": 1})["state"] in ("done", "timed out")


def test_a_job_can_be_cancelled_and_keeps_its_best() -> None:
    from tests.live import credit

    inner = credit()[0]
    slow, asked = threading.Event(), threading.Event()

    def model(X: Any) -> Any:
        if slow.is_set():
            asked.set()
            time.sleep(0.02)
        return inner(X)

    with running(prepared(model=model)) as live:
        slow.set()
        name = json.loads(live.ask("POST", "/api/jobs", {"n_directions": 3})[2])["id"]
        assert asked.wait(30)
        assert live.ask("DELETE", f"/api/jobs/{name}")[0] == 200
        slow.clear()
        told = live.ended(name)
        assert told["state"] == "cancelled"
        if told["version"]:
            page = Page.read_binary(live.ask("GET", f"/api/jobs/{name}/page")[2])
            assert page.data["explanations"]


def test_two_windows_see_one_computation_at_a_time(live: Live) -> None:
    first = json.loads(live.ask("POST", "/api/jobs", {"n_directions": 2})[2])["id"]
    second = live.ask("POST", "/api/jobs", {"n_directions": 2})
    assert live.ended(first)["state"] == "done"
    assert second[0] in (202, 409)
    if second[0] == 409:
        assert "another window" in json.loads(second[2])["error"]
    live.rooms.jobs.wait()


def test_a_port_in_use_is_named() -> None:
    taken = serving.bound(0)
    port = taken.getsockname()[1]
    with pytest.raises(InvalidParameterError, match=rf"--port {port} cannot be used"):
        serving.bound(port)
    taken.close()


def test_more_requests_than_allowed_get_503(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(prepared(Limits(requests=1, job_s=60))) as live:
        desk = live.rooms.desk
        assert desk is not None
        go = threading.Event()
        monkeypatch.setattr(desk, "tried", lambda asked: go.wait(10) and {"groups": [], "ms": 0.0})
        waiting = threading.Thread(target=live.ask, args=("POST", "/api/try", {"action": {"income": 1}}))
        waiting.start()
        time.sleep(0.3)
        assert live.ask("GET", "/api/page")[0] == 503
        go.set()
        waiting.join()
        assert live.ask("GET", "/api/page")[0] == 200


def test_random_requests_do_no_harm() -> None:
    """A short part of `make fuzz`."""
    with running(prepared(Limits(job_s=0.3))) as live:
        tally = fuzz(live, random.Random(0), 1000)
        assert sum(tally.values()) == 1000
        assert 500 not in tally
        assert live.ask("GET", "/api/page")[0] == 200
        live.rooms.jobs.wait()


def test_a_slow_client_does_not_block_others(live: Live) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=5)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()


def test_the_page_is_there_before_the_result_is(live: Live) -> None:
    data = Page({"format": "globece.page", "version": 1}).binary()
    rooms = serving.Rooms(Limits(), load=lambda: data)
    with running(rooms) as early:
        assert early.ask("GET", "/")[0] == 200
        status, _, text = early.ask("GET", "/api/page")
        assert (status, json.loads(text)["stage"]) == (202, "reading the result file")
        rooms.begin()
        assert early.ask("GET", "/api/page")[::2] == (200, data)
