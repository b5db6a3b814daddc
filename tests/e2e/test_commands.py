"""The command as a process: Ctrl-C, a full disk, a reader that goes away, and the exit codes that tell of them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import globece as gce
from globece.cli.config import read_config

PROGRAM = str(Path(sys.executable).with_name("globece"))
MODEL = ("--model", "boosting", "--outcome", "approved", "--favourable", "yes")
LONG = ("--effort", "thorough", "--directions", "4")
NO_SPACE = "No space left on device"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and devices of POSIX")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with which a thorough search takes long."""
    path = tmp_path_factory.mktemp("long") / "loans.csv"
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 12)).round(3), columns=[f"x{i}" for i in range(12)])
    X["sex"] = rng.choice(["f", "m"], len(X))
    X["approved"] = np.where(X["x0"] * X["x1"] + X["x2"] + rng.normal(size=len(X)) > 0.5, "yes", "no")
    X.to_csv(path, index=False)
    return path


def command(*arguments: Any, **how: Any) -> subprocess.CompletedProcess[str]:
    wishes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "check": False, "timeout": 200}
    return subprocess.run([PROGRAM, *map(str, arguments)], **(wishes | how))


def interrupted(*arguments: Any) -> tuple[int, str, str]:
    """Run a command, and press Ctrl-C a little after its model was trained."""
    with subprocess.Popen(
        [PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "trained" in process.stderr.readline()
        time.sleep(4.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
        return process.returncode, out, err


def test_ctrl_c_writes_the_best_so_far(table: Path, tmp_path: Path) -> None:
    result, page = tmp_path / "r.json", tmp_path / "p.html"
    code, out, err = interrupted("explain", table, *MODEL, *LONG, "--json", result, "--html", page)
    assert code == 130, err
    assert "Traceback" not in err
    if not result.exists():  # a slow machine had found nothing by then
        assert "there is nothing to return yet" in err
        return
    ex = gce.Explanation.from_json(result)
    assert not ex.provenance.complete
    assert f"{ex.coverage:.1%}" in out
    assert "stopped early" in page.read_text(encoding="utf-8")
    assert "Interrupted: this is the best that was found so far." in err


def test_ctrl_c_in_an_audit_passes_no_gate(table: Path, tmp_path: Path) -> None:
    gate = ("--fail-above", "100", "--json", tmp_path / "a.json")
    code, _, err = interrupted("audit", table, *MODEL, *LONG, "--by", "sex", *gate)
    assert code == 130, err
    assert "Traceback" not in err
    assert "Passed" not in err


def test_a_reader_that_goes_away_is_no_error(table: Path, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    with subprocess.Popen(
        [PROGRAM, "explain", str(table), *MODEL, "--time-limit", "2", "--json", str(result), "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (141, "")
    assert gce.Explanation.from_json(result).n_affected > 0  # what is written first is whole


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_full_disk_keeps_the_other_results(option: str, table: Path) -> None:
    done = command("explain", table, *MODEL, "--time-limit", "2", option, "/dev/full", "-q")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{NO_SPACE}: /dev/full; free some space, or name a place on another disk" in done.stderr
    assert "rows are affected" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("more", [(), ("--json", "-")])
def test_a_full_standard_output(more: tuple[str, ...], table: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = command("explain", table, *MODEL, "--time-limit", "2", "-q", *more, stdout=full)
    assert done.returncode == 1
    assert (
        done.stderr.strip() == f"Error: {NO_SPACE} (standard output); free some space, or name a place on another disk"
    )


def _small_files(size: int) -> Callable[[], None]:
    resource = pytest.importorskip("resource")
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_disk_that_fills_up_leaves_the_old_file(table: Path, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    result.write_text("before", encoding="utf-8")
    arguments = ("explain", table, *MODEL, "--time-limit", "2", "--json", result, "-q")
    done = command(*arguments, preexec_fn=_small_files(1000), env={**os.environ, "NUMBA_CACHE_DIR": ""})
    assert done.returncode == 1, done.stderr
    assert "File too large" in done.stderr
    assert result.read_text(encoding="utf-8") == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_locked_folder_is_named_before_the_work(table: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = command("explain", table, *MODEL, "--json", locked / "r.json")
    assert done.returncode == 2
    assert "may not be written; name another place" in done.stderr


INTERRUPT = b"\x03"  # what Ctrl-C types


def _typed(folder: Path, arguments: list[str], answers: list[bytes]) -> tuple[int, str]:
    """Run a command on a terminal, and answer each question that it asks."""
    pty = pytest.importorskip("pty")
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it,
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # and whoever runs the tests may hold it back
        os.chdir(folder)
        os.execv(PROGRAM, [PROGRAM, *arguments])
    said, answered, end, typed = b"", 0, time.monotonic() + 100, b""
    while True:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"{arguments} still waits after {said.decode()!r}")
        if not select.select([terminal], [], [], 1.0)[0]:
            if typed == INTERRUPT:  # Python's own input() misses one that comes just before it waits: press again
                os.write(terminal, INTERRUPT)
            continue
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
        if not more:
            break
        said += more
        new = said[answered:]  # one answer for each question, however many pieces it comes in
        if answers and b"?" in new and new.rstrip().endswith(b":"):
            answered = len(said)
            typed = answers.pop(0)
            os.write(terminal, typed)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def test_init_asks_on_a_terminal(table: Path, tmp_path: Path) -> None:
    code, said = _typed(tmp_path, ["init", str(table)], [b"aproved\n", b"approved\n", b"yes\n"])
    assert code == 0, said
    assert "'aproved' is not one of" in said
    assert "Which outcome do people want? (no, yes)" in said
    config = read_config(tmp_path / "globece.toml")
    assert config.options()["outcome"] == "approved"
    assert config.options()["favourable"] == "yes"
    code, said = _typed(tmp_path, ["init", str(table), "--force"], [INTERRUPT])
    assert code == 130, said


def test_init_and_audit_as_two_commands(table: Path, tmp_path: Path) -> None:
    done = command("init", table, "--outcome", "approved", "--favourable", "yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command("audit", "--config", "globece.toml", "--effort", "quick", "--json", "a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["format"] == "globece.audit"
