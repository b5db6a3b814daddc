"""``globece serve`` as a process: it says where the page is, shows a result file or a model, and ends as it is told."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

import globece as gce
from globece.page.arrays import Page

COMMAND = (sys.executable, "-c", "from globece.cli import main; main()", "serve")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X = np.linspace(0, 10, 80).reshape(40, 2)
    path = tmp_path_factory.mktemp("result") / "result.json"
    gce.explain(lambda X: X[:, 0] > 5, X, favourable=True, effort="quick", rng=0).to_json(path)
    return path


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A server process, its port and its token."""
    command = [*COMMAND, *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", line):
                yield process, int(found[1]), found[2]
                return
        raise AssertionError("it ended without an address")
    finally:
        process.kill()
        process.communicate()


def ask(port: int, token: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/api/page", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_a_result_file_is_shown_and_an_interrupt_ends_it(result: Path) -> None:
    with serving(result) as (process, port, token):
        end = time.monotonic() + 60
        while (found := ask(port, token))[0] == 202 and time.monotonic() < end:
            assert json.loads(found[1])["stage"] == "reading the result file"
            time.sleep(0.05)
        assert found[0] == 200
        assert Page.read_binary(found[1]).data["title"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)


def test_a_port_in_use_is_said_at_once(result: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, result, "--port", str(port)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert f"--port {port} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_result_of_a_newer_version_is_said(result: Path, tmp_path: Path) -> None:
    newer = json.loads(result.read_text())
    newer["version"] = 99
    (tmp_path / "newer.json").write_text(json.dumps(newer))
    done = subprocess.run(
        [*COMMAND, tmp_path / "newer.json", "--port", "0"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "99" in done.stderr
    assert "Traceback" not in done.stderr
