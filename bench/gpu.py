"""Rays on a GPU beside two cores: HELOC's affected inputs resampled with noise, one direction.

Without a GPU only the cores are measured, on fewer rows. Where the libraries of the models are not installed beside the
GPU, the problems are compiled elsewhere and carried there: `python -m bench.gpu save FILE`, then GLOBECE_COMPILED=FILE.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from globece import CostModel, UniformSampling, rays
from globece.case.affected import Affected
from globece.case.scaling import limits
from globece.models import devices
from globece.models.base import Model
from globece.models.cuda.machine import Gpu
from globece.models.trees.ensemble import TreeEnsemble, _routes
from globece.models.trees.on_cuda import Follower
from paper.markdown import table

FloatArray = NDArray[np.float64]

KINDS = ("xgb", "dnn", "lr")
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
WITHOUT_GPU = 3  # of these sizes
TIMED = {"xgb": 10_000_000, "dnn": 1_000_000, "lr": 10_000_000}  # most rows that are timed on the cores
CORES = 2
SAMPLE = 200_000  # rows whose scalars are compared
NOISE = 0.05  # standard deviations
CHUNK = 500_000
PROPOSED, TRIED = 200, 500  # directions of which the best is followed, and the inputs by which it is chosen
VARIABLE = "GLOBECE_COMPILED"


@dataclass(frozen=True)
class Problem:
    """A compiled model with some affected inputs and the cost of changing them."""

    model: Model
    inputs: FloatArray
    cost: CostModel

    def resampled(self, n: int) -> FloatArray:
        """So many inputs, drawn with noise; one that becomes favourable keeps its numbers."""
        rng, out = np.random.default_rng(0), np.empty((n, self.inputs.shape[1]))
        scale = NOISE * self.inputs.std(axis=0)
        for first in range(0, n, CHUNK):
            part = self.inputs[rng.integers(0, len(self.inputs), min(CHUNK, n - first))]
            moved = part + scale * rng.normal(size=part.shape)
            stays = self.model.margin(moved) >= 0.0
            moved[stays] = part[stays]
            out[first : first + len(part)] = moved
        return out

    def direction(self) -> FloatArray:
        """The one that reaches most inputs, of some random ones."""
        some = Affected(self.model, self.inputs[:TRIED], self.cost, 10.0)
        proposed = UniformSampling().propose(some, PROPOSED, np.random.default_rng(1))
        reached = np.isfinite(self.model.first_flip(some.inputs, proposed, limits(some, proposed))).sum(axis=1)
        return np.asarray(proposed[reached.argmax()][None])

    def limits(self, Z: FloatArray, directions: FloatArray) -> FloatArray:
        """Where each ray ends, within a budget of 10."""
        parts = [Affected(self.model, Z[i : i + CHUNK], self.cost, 10.0) for i in range(0, len(Z), CHUNK)]
        return np.asarray(np.hstack([limits(part, directions) for part in parts]))


def problems() -> dict[str, Problem]:
    """HELOC's three models, compiled here or elsewhere."""
    file = os.environ.get(VARIABLE)
    if file:
        with Path(file).open("rb") as opened:
            found = pickle.load(opened)
        return {kind: Problem(*found[kind]) for kind in KINDS}
    return {kind: compiled(kind) for kind in KINDS}


def compiled(kind: str) -> Problem:
    """One of HELOC's models over its affected inputs."""
    from globece import as_model
    from paper.cases import case

    one = case("heloc", kind)
    Z = one.space.encode(one.rows)
    return Problem(as_model(one.own, one.space, rows=Z).followed, Z[one.affected], one.cost)


@contextmanager
def on(device: str) -> Iterator[None]:
    """Follow rays on this device, on two threads if it is the processor."""
    before, threads = os.environ.get(devices.VARIABLE), numba.get_num_threads()
    os.environ[devices.VARIABLE] = device
    numba.set_num_threads(min(CORES, threads))
    try:
        yield
    finally:
        numba.set_num_threads(threads)
        os.environ.pop(devices.VARIABLE)
        if before is not None:
            os.environ[devices.VARIABLE] = before


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """Best of a few wall times."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


@dataclass(frozen=True)
class Timed(Gpu):
    """A GPU that is waited for, so that each stage's time is known."""

    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("to", "kernel", "back"), 0.0))

    def _timed(self, stage: str, work: Callable[[], Any]) -> Any:
        device = self.cupy.cuda.Device()
        device.synchronize()
        start = time.perf_counter()
        found = work()
        device.synchronize()
        self.spent[stage] += time.perf_counter() - start
        return found

    def put(self, array: Any) -> Any:
        return self._timed("to", lambda: Gpu.put(self, array))

    def get(self, array: Any) -> Any:
        return self._timed("back", lambda: Gpu.get(self, array))

    def call(self, file: Path, name: str, threads: int, *arguments: Any) -> None:
        self._timed("kernel", lambda: Gpu.call(self, file, name, threads, *arguments))


def stages(problem: Problem, Z: FloatArray, D: FloatArray, limit: FloatArray) -> dict[str, float]:
    """Seconds for the rows to the GPU, the kernel, and the scalars back."""
    model = problem.model
    if isinstance(model, TreeEnsemble):
        import cupy

        machine = Timed(cupy)
        Follower.of(machine, *model._arrays).follow(_routes(model.space, D), Z, limit, np.zeros((1, 1)))
        return machine.spent
    import torch

    there: list[Any] = []

    def to() -> None:
        there.append((torch.from_numpy(Z).to("cuda"), torch.from_numpy(limit).to("cuda")))
        torch.cuda.synchronize()

    return {"to": seconds(to), "back": seconds(lambda: there[0][1].cpu())}


def device_name() -> str | None:
    """The GPU, if there is one."""
    try:
        import torch
    except ImportError:
        return None
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def measure(kind: str, problem: Problem, gpu: bool) -> dict[str, Any]:
    """Seconds by number of rows on two cores and on the GPU, and whether both find the same."""
    sizes = SIZES if gpu else SIZES[:WITHOUT_GPU]
    Z = problem.resampled(max(sizes))
    D = problem.direction()
    limit = problem.limits(Z, D)
    model, found = problem.model, []
    out: dict[str, Any] = {"kind": kind, "width": Z.shape[1]}
    if isinstance(model, TreeEnsemble):
        out["trees"] = len(model.trees.roots)
    on_gpu = gpu and kind != "lr"
    with on("cpu"):
        model.first_flip(Z[:2000], D, limit[:, :2000])  # compiles, or reads from the disk
    if on_gpu:
        with on("cuda"):
            out["first_call"] = seconds(lambda: model.first_flip(Z[:20_000], D, limit[:, :20_000]))

    def follow(n: int) -> FloatArray:
        return model.first_flip(Z[:n], D, limit[:, :n])

    for n in sizes:
        few, repeats = min(n, TIMED[kind]), 3 if n < 10**6 else 1

        one: dict[str, Any] = {"rows": n, "cpu_rows": few}
        with on("cpu"):
            one["cpu"] = seconds(partial(follow, few), repeats) * n / few
        if on_gpu:
            with on("cuda"):
                one["gpu"] = seconds(partial(follow, n), max(2, repeats))
        if gpu:
            one["stages"] = stages(problem, Z[:n], D, limit[:, :n])
        print(kind, one, flush=True)
        found.append(one)
    out["sizes"] = found
    if on_gpu:
        out["compared"] = compare(model, Z[:SAMPLE], D, limit[:, :SAMPLE])
        print(kind, out["compared"], flush=True)
    return out


def compare(model: Model, Z: FloatArray, D: FloatArray, limit: FloatArray) -> dict[str, Any]:
    """The GPU's scalars beside the processor's, and whether they flip."""
    with on("cpu"):
        cpu = model.first_flip(Z, D, limit)[0]
    with on("cuda"):
        gpu = model.first_flip(Z, D, limit)[0]
    both, reached = np.isfinite(cpu) & np.isfinite(gpu), np.flatnonzero(np.isfinite(gpu))
    there = rays.positions(model.space, Z[reached], D[0], gpu[reached])
    return {
        "rays": len(cpu),
        "identical": int(((cpu == gpu) | (np.isnan(cpu) & np.isnan(gpu))).sum()),
        "reached": int(both.sum()),
        "reached_by_one": int((np.isfinite(cpu) != np.isfinite(gpu)).sum()),
        "largest_difference": float((np.abs(cpu[both] - gpu[both]) / cpu[both]).max(initial=0.0)),
        "favourable": float(model.favourable(there).mean()),
    }


def run() -> dict[str, Any]:
    gpu, found = device_name(), problems()
    if gpu:
        network: Any = found["dnn"].model
        network.reading.ask.module.to("cuda")
    return {"gpu": gpu, "models": [measure(kind, found[kind], gpu is not None) for kind in KINDS]}


NAMES = {"xgb": "XGBoost", "dnn": "DNN", "lr": "logistic regression"}


def render(result: dict[str, Any]) -> str:
    rows = []
    for one in result["models"]:
        for size in one["sizes"]:
            parts = size.get("stages", {})
            gpu = size.get("gpu")
            rows.append(
                [
                    NAMES[one["kind"]],
                    f"{size['rows']:,}",
                    f"{size['cpu']:.3g} s"
                    + ("" if size["cpu_rows"] == size["rows"] else f" (from {size['cpu_rows']:,})"),
                    f"{gpu:.3g} s" if gpu else "",
                    f"**{size['cpu'] / gpu:.1f}x**" if gpu else "",
                    f"{size['rows'] / gpu / 1e6:.2f}" if gpu else "",
                    *(f"{parts[p]:.3g} s" if p in parts else "" for p in ("to", "kernel", "back")),
                ]
            )
    head = [
        "model",
        "rows",
        "two cores",
        "GPU",
        "ratio",
        "million rays a second",
        "rows there",
        "kernel",
        "scalars back",
    ]
    text = f"""## GPU

HELOC's affected inputs resampled with noise, one direction (the one of {PROPOSED} random ones
that reaches most), within a budget of 10: `first_flip` on {CORES} cores, and
on {result["gpu"] or "a GPU (none was at hand)"}. Seconds on the GPU include the transfers from and to ordinary memory;
those of single stages are from another run, which waits for each. Linear models stay on the processor: what is measured
for them is the transfer of their rows alone.

"""
    text += table(head, rows)
    compared = [one for one in result["models"] if "compared" in one]
    if compared:
        lines = [
            [
                NAMES[one["kind"]],
                f"{c['rays']:,}",
                f"{c['identical']:,}",
                f"{c['reached_by_one']:,}",
                f"{c['largest_difference']:.1e}",
                f"{c['favourable']:.2%}",
                f"{one['first_call']:.1f} s",
            ]
            for one in compared
            for c in [one["compared"]]
        ]
        head = [
            "model",
            "rays",
            "identical",
            "reached by one only",
            "largest relative difference",
            "flip",
            "first call",
        ]
        text += "\nThe GPU's scalars beside the processor's:\n\n" + table(head, lines)
    return text


if __name__ == "__main__":
    if sys.argv[1:2] == ["save"] and len(sys.argv) == 3:
        kept = {kind: (p.model, p.inputs, p.cost) for kind, p in ((kind, compiled(kind)) for kind in KINDS)}
        Path(sys.argv[2]).write_bytes(pickle.dumps(kept))
    else:
        sys.exit("python -m bench.gpu save FILE")
