"""Random requests to a live server: what is well formed, half formed and not formed at all.

``python -m tests.fuzzing 100000`` sends so many and prints what came back. A server process that it starts is watched:
it may open no file and start no program while it answers.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import time
from collections import Counter
from typing import Any

from globece.web.limits import Limits
from tests.live import Live, prepared, running

PATHS = (
    "/", "/api/page", "/api/jobs", "/api/try", "/api/jobs/x", "/api/jobs/x/page", "/../../etc/passwd", "/%00",
    "/api/../", "//", "/api/jobs/%2e%2e/page", "/favicon.ico", "/?" + "a" * 3000, "/\u00e9", "*", "http://evil.example/",
    "/api/try/",
)  # fmt: skip
METHODS = ("GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "\x00", "PROPFIND")
VALUES: tuple[Any, ...] = (
    0, 1, -1, 1e308, -1e308, 5e-324, 10**400, True, None, "", "income", "__proto__", "own", "../../etc/passwd", "\x00",
    "a" * 2000, [], {}, [[]], {"a": {}}, "</script>", "=cmd()", "file:///etc/passwd", "os.system('true')",
)  # fmt: skip
KEYS = (
    "action",
    "mode",
    "features",
    "by",
    "n_directions",
    "budget",
    "income",
    "debt",
    "housing",
    "sex",
    "may",
    "weight",
    "x",
)
WORK = ("fixed", "scaled", "free", "rise", "fall")


def fuzz(live: Live, rng: random.Random, n: int) -> Counter[int]:
    """Send n random requests and count the answers by status; 0 for a connection that was closed."""
    tally: Counter[int] = Counter()
    raw: socket.socket | None = None
    for _ in range(n):
        text = request(live, rng)
        for attempt in (0, 1):
            fresh = raw is None
            try:
                if raw is None:
                    raw = socket.create_connection(("127.0.0.1", live.port), timeout=30)
                raw.sendall(text)
                status, closes = _answer(raw, text.startswith(b"HEAD "))
            except (ConnectionError, BrokenPipeError):
                status, closes = 0, True
            if closes and raw is not None:
                raw.close()
                raw = None
            if status or fresh or attempt:
                tally[status] += 1
                break
    if raw is not None:
        raw.close()
    return tally


def request(live: Live, rng: random.Random) -> bytes:
    """One request."""
    kind = rng.random()
    if kind < 0.08:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))) + b"\r\n\r\n"
    method = rng.choice(METHODS[:3]) if kind < 0.7 else rng.choice(METHODS)
    path = rng.choice(PATHS[:6]) if kind < 0.7 else rng.choice(PATHS)
    headers = [f"Host: {live.host if rng.random() < 0.9 else rng.choice(['evil', '', '127.0.0.1'])}"]
    if rng.random() < 0.85:
        headers.append(f"Authorization: Bearer {live.token if rng.random() < 0.9 else 'x' * rng.randrange(80)}")
    if rng.random() < 0.1:
        headers.append(rng.choice(["Origin: null", "Origin: http://evil", "Sec-Fetch-Site: cross-site", "Cookie: a=b"]))
    if rng.random() < 0.05:
        headers.append("X-Long: " + "y" * rng.randrange(1, 9000))
    body = b""
    if method in ("POST", "PUT", "PATCH", "DELETE"):
        body = _body(rng)
        headers.append(f"Content-Length: {len(body)}")
        if rng.random() < 0.9:
            headers.append("Content-Type: application/json")
    head = f"{method} {path} HTTP/1.1\r\n" + "\r\n".join(headers) + "\r\n\r\n"
    return head.encode("utf-8", "surrogateescape") + body


def _body(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(300)))
    if kind < 0.15:
        return b"[" * rng.randrange(3000)
    if kind < 0.4:
        action = {
            rng.choice(["income", "debt"]): rng.choice([1, -3.5, 1e9]),
            "housing": rng.choice(["own", "rent", "x"]),
        }
        return json.dumps({"action": action, "mode": rng.choice(WORK)}).encode()
    text = json.dumps(_value(rng, 3))
    if kind < 0.5:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + chr(rng.randrange(1, 300)) + text[at:]
    return text.encode("utf-8", "surrogatepass")


def _value(rng: random.Random, depth: int) -> Any:
    if depth and rng.random() < 0.7:
        return {rng.choice(KEYS): _value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return rng.choice(VALUES)


def _answer(raw: socket.socket, headless: bool) -> tuple[int, bool]:
    """Status of one answer, and whether the connection ends with it."""
    text = b""
    while b"\r\n\r\n" not in text:
        part = raw.recv(65536)
        if not part:
            raise ConnectionError
        text += part
    head, _, body = text.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    status = int(lines[0].split()[1])
    length = next((int(x.split(b":")[1]) for x in lines if x.startswith(b"content-length:")), None)
    closes = any(x.startswith(b"connection:") and b"close" in x for x in lines)
    if length is None and status not in (204, 304):
        closes = True
    while length is not None and not headless and len(body) < length:
        part = raw.recv(65536)
        if not part:
            raise ConnectionError
        body += part
    return status, closes


OPENED: list[str] = []
WATCHED = (
    "open",
    "os.system",
    "subprocess.Popen",
    "exec",
    "compile",
    "pickle.find_class",
    "ctypes.dlopen",
    "os.listdir",
)
ALLOWED = ("/dev/null",)


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: note what is opened, compiled or started while requests are answered."""
    if event in WATCHED and _watching:
        OPENED.append(f"{event} {str(arguments[0])[:100]}")


_watching = False


def main() -> None:
    """Send the requests, and say what came back."""
    global _watching
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    with running(prepared(Limits(job_s=0.3))) as live:
        fuzz(live, random.Random(1), 2000)  # what is imported late is imported now
        live.rooms.jobs.wait()
        sys.addaudithook(watch)
        _watching = True
        start = time.process_time()
        tally = fuzz(live, random.Random(seed), n)
        live.rooms.jobs.wait()
        _watching = False
        status = live.ask("GET", "/api/page")[0]
    print(f"seed {seed}: {sum(tally.values()):,} requests in {time.process_time() - start:.0f} s of CPU time")
    print("answers by status (0: the connection was closed):", dict(sorted(tally.items())))
    print(f"opened, compiled or started meanwhile: {len(OPENED)}", *sorted(set(OPENED))[:20], sep="\n  ")
    print(f"afterwards the page answers {status}")
    if status != 200 or 500 in tally or [what for what in OPENED if not what.endswith(ALLOWED)]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
