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

from globece import CostModel, UniformSampling, as_model, rays
from globece.case.affected import Affected
from globece.case.scaling import limits
from globece.models import devices
from globece.models.base import Model
from globece.models.cuda.machine import Gpu
from globece.models.linear import on_cuda
from globece.models.linear.half_spaces import LinearModel
from globece.models.trees.ensemble import TreeEnsemble, _routes
from globece.models.trees.on_cuda import Follower
from paper.markdown import table

FloatArray = NDArray[np.float64]

KINDS = ("xgb", "dnn", "lr")
CASES = (("xgb", 1), ("xgb", 10), ("dnn", 1), ("lr", 1), ("lr", 10))  # models, and directions
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
MANY, WITHOUT_GPU = 100_000_000, 100_000  # most rays on a GPU, and most rows without one
TIMED = {"xgb": 10_000_000, "dnn": 1_000_000, "lr": 10_000_000}  # most rows that are timed on the cores
CORES = 2
SAMPLE = 200_000  # rows whose scalars are compared
NOISE = 0.05  # standard deviations
CHUNK = 500_000
SEARCHED, BATCHES = 20_000, (65_536, 1_048_576)  # rays of a black box, and most rows that it gets at once
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

    def directions(self, n: int) -> FloatArray:
        """Those that reach most inputs, of some random ones."""
        some = Affected(self.model, self.inputs[:TRIED], self.cost, 10.0)
        proposed = UniformSampling().propose(some, PROPOSED, np.random.default_rng(1))
        with on("cpu"):
            reached = np.isfinite(self.model.first_flip(some.inputs, proposed, limits(some, proposed))).sum(axis=1)
        return np.asarray(proposed[np.argsort(-reached, kind="stable")[:n]])

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
    if isinstance(model, TreeEnsemble | LinearModel):
        import cupy

        machine, before = Timed(cupy), LinearModel._machine
        if isinstance(model, TreeEnsemble):
            Follower.of(machine, *model._arrays).follow(_routes(model.space, D), Z, limit, np.zeros((1, 1)))
            return machine.spent
        LinearModel._machine = lambda *_: machine  # type: ignore[method-assign]
        try:
            model.first_flip(Z, D, limit)
        finally:
            LinearModel._machine = before  # type: ignore[method-assign]
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


def measure(kind: str, problem: Problem, n_directions: int, gpu: bool) -> dict[str, Any]:
    """Seconds by number of rows on two cores and on the GPU, and whether both find the same."""
    most = MANY // n_directions if gpu else WITHOUT_GPU
    sizes = [n for n in SIZES if n <= most]
    Z, D = problem.resampled(max(sizes)), problem.directions(n_directions)
    limit, model = problem.limits(Z, D), problem.model
    out: dict[str, Any] = {"kind": kind, "directions": n_directions, "width": Z.shape[1], "sizes": []}

    def follow(n: int) -> FloatArray:
        return model.first_flip(Z[:n], D, limit[:, :n])

    with on("cpu"):
        follow(2000)  # compiles, or reads from the disk
    if gpu:
        with on("cuda"):
            out["first_call"] = seconds(partial(follow, 1000))
    for n in sizes:
        few, repeats = min(n, TIMED[kind] // n_directions), 3 if n < 10**6 else 1
        one: dict[str, Any] = {"rows": n, "cpu_rows": few}
        with on("cpu"):
            one["cpu"] = seconds(partial(follow, few), repeats) * n / few
        if gpu:
            with on("cuda"):
                one["gpu"] = seconds(partial(follow, n), max(2, repeats))
            one["stages"] = stages(problem, Z[:n], D, limit[:, :n])
        print(kind, n_directions, one, flush=True)
        out["sizes"].append(one)
    if gpu:
        out["compared"] = compare(model, Z[:SAMPLE], D, limit[:, :SAMPLE])
        print(kind, out["compared"], flush=True)
    return out


def compare(model: Model, Z: FloatArray, D: FloatArray, limit: FloatArray) -> dict[str, Any]:
    """The GPU's scalars beside the processor's, and whether they flip."""
    with on("cpu"):
        cpu = model.first_flip(Z, D, limit)
    with on("cuda"):
        gpu = model.first_flip(Z, D, limit)
    both, favourable = np.isfinite(cpu) & np.isfinite(gpu), []
    for delta, k in zip(D, gpu, strict=True):
        reached = np.flatnonzero(np.isfinite(k))
        favourable.append(model.favourable(rays.positions(model.space, Z[reached], delta, k[reached])))
    return {
        "rays": cpu.size,
        "identical": int(((cpu == gpu) | (np.isnan(cpu) & np.isnan(gpu))).sum()),
        "reached": int(both.sum()),
        "reached_by_one": int((np.isfinite(cpu) != np.isfinite(gpu)).sum()),
        "largest_difference": float((np.abs(cpu[both] - gpu[both]) / cpu[both]).max(initial=0.0)),
        "favourable": float(np.concatenate(favourable).mean()),
    }


def searched(problem: Problem, gpu: bool) -> list[dict[str, Any]]:
    """Seconds for the DNN as a black box, by device and by the most rows that it gets at once."""
    network: Any = problem.model
    module, Z, D, found = network.reading.ask.module, problem.resampled(SEARCHED), problem.directions(1), []
    limit = problem.limits(Z, D)
    for device in ("cpu", "cuda") if gpu else ("cpu",):
        module.to(device)
        for batch_rows in BATCHES if device == "cuda" else BATCHES[:1]:
            box = as_model(module, network.space, compile=False, batch_rows=batch_rows)
            box.first_flip(Z[:200], D, limit[:, :200])
            took = seconds(lambda box=box: box.first_flip(Z, D, limit))  # type: ignore[misc]
            found.append({"device": device, "batch_rows": batch_rows, "rays": len(Z), "seconds": took})
            print(found[-1], flush=True)
    return found


def run() -> dict[str, Any]:
    gpu, found = device_name(), problems()
    box = searched(found["dnn"], gpu is not None)  # leaves the module on the GPU
    patient, on_cuda.DIRECTIONS = on_cuda.DIRECTIONS, 1  # linear models along one direction, too
    try:
        models = [measure(kind, found[kind], n, gpu is not None) for kind, n in CASES]
    finally:
        on_cuda.DIRECTIONS = patient
    return {"gpu": gpu, "models": models, "searched": box}


NAMES = {"xgb": "XGBoost", "dnn": "DNN", "lr": "logistic regression"}


def render(result: dict[str, Any]) -> str:
    rows = []
    for one in result["models"]:
        for size in one["sizes"]:
            parts, gpu, n_rays = size.get("stages", {}), size.get("gpu"), size["rows"] * one["directions"]
            part = "" if size["cpu_rows"] == size["rows"] else f" (from {size['cpu_rows']:,} rows)"
            rows.append(
                [
                    NAMES[one["kind"]],
                    f"{size['rows']:,}",
                    one["directions"],
                    f"{size['cpu']:.3g} s{part}",
                    f"{gpu:.3g} s" if gpu else "",
                    f"**{size['cpu'] / gpu:.1f}x**" if gpu else "",
                    f"{n_rays / gpu / 1e6:.2f}" if gpu else "",
                    *(f"{parts[p]:.3g} s" if p in parts else "" for p in ("to", "kernel", "back")),
                ]
            )
    head = ["model", "rows", "directions", "two cores", "GPU", "ratio", "million rays a second"]
    head += ["rows there", "kernel", "scalars back"]
    text = f"""## GPU

HELOC's affected inputs resampled with noise, along those of {PROPOSED} random directions that reach most, within a
budget of 10: `first_flip` on {CORES} cores, and on {result["gpu"] or "a GPU (none was at hand)"}. Seconds on the GPU
include the transfers from and to ordinary memory; those of single stages are from another run, which waits for each. By
itself a linear model is followed there along {on_cuda.DIRECTIONS} directions or more.

"""
    text += table(head, rows)
    compared = [one for one in result["models"] if "compared" in one]
    if compared:
        lines = [
            [
                NAMES[one["kind"]],
                f"{c['rays']:,}",
                f"{c['reached']:,}",
                f"{c['identical']:,}",
                f"{c['reached_by_one']:,}",
                f"{c['largest_difference']:.1e}",
                f"{c['favourable']:.2%}",
                f"{one['first_call']:.1f} s",
            ]
            for one in compared
            for c in [one["compared"]]
        ]
        head = ["model", "rays", "reached", "identical", "reached by one only", "largest relative difference", "flip"]
        text += "\nThe GPU's scalars beside the processor's; the first call compiles the kernel:\n\n"
        text += table([*head, "first call"], lines)
    lines = [
        [r["device"], f"{r['batch_rows']:,}", f"{r['rays']:,}", f"{r['seconds']:.3g} s"] for r in result["searched"]
    ]
    text += "\nThe DNN as a black box, whose rays are searched in batches:\n\n"
    return text + table(["device", "most rows at once", "rays", "seconds"], lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["save"] and len(sys.argv) == 3:
        kept = {kind: (p.model, p.inputs, p.cost) for kind, p in ((kind, compiled(kind)) for kind in KINDS)}
        Path(sys.argv[2]).write_bytes(pickle.dumps(kept))
    else:
        sys.exit("python -m bench.gpu save FILE")
