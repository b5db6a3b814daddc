"""Where rays are followed: on the processor, or on a GPU where there is one and it pays.

``GLOBECE_DEVICE`` chooses: ``auto`` (the default), ``cpu``, or ``cuda``, which insists. Nothing of this is imported,
installed or asked of a driver before a call has enough rays to pay for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from globece.errors import InvalidParameterError, ModelError, require

VARIABLE = "GLOBECE_DEVICE"
DEVICES = ("auto", "cpu", "cuda")
EXTRA = "gpu-cuda13"  # or gpu-cuda12: the one that the driver supports


@dataclass
class Followed:
    """How many rays were followed on a GPU."""

    rays: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """That, for a reader; nothing if there are none."""
        return (f"{self.rays:,} rays were followed on a CUDA device",) if self.rays else ()


_counted: ContextVar[Followed | None] = ContextVar("followed", default=None)


@contextmanager
def counting() -> Iterator[Followed]:
    """Count the rays that are followed on a GPU meanwhile."""
    found = Followed()
    token = _counted.set(found)
    try:
        yield found
    finally:
        _counted.reset(token)


def count(rays: int) -> None:
    """Say that so many rays were followed on a GPU."""
    found = _counted.get()
    if found is not None:
        found.rays += rays


def wanted() -> str:
    """The device that the user asks for: one of :data:`DEVICES`."""
    asked = os.environ.get(VARIABLE, "").strip().lower() or "auto"
    if asked not in DEVICES:
        raise InvalidParameterError(f"{VARIABLE} must be one of {', '.join(DEVICES)}; got {asked!r}")
    return asked


def cupy_for(work: float, least: float) -> Any:
    """CuPy, if this much work is to be done on a GPU; otherwise ``None``.

    Parameters
    ----------
    work, least
        How much there is to do, and from how much on the GPU pays.
    """
    asked = wanted()
    if asked == "cpu" or (asked == "auto" and work < least):
        return None
    if asked == "cuda":
        cupy = require("cupy", extra=EXTRA, caller=f"{VARIABLE}=cuda")
        if not _has_device(cupy):
            raise ModelError(f"{VARIABLE} is cuda, and CuPy finds no device here; use auto or cpu")
        return cupy
    return _usable_cupy()


@cache
def _usable_cupy() -> Any:
    """CuPy, if it is installed and finds a device."""
    if importlib.util.find_spec("cupy") is None:
        return None
    try:
        cupy = importlib.import_module("cupy")
    except Exception:  # built for a driver that is not here
        return None
    return cupy if _has_device(cupy) else None


def _has_device(cupy: Any) -> bool:
    try:
        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no driver
        return False


def torch_device_for(work: float, least: float, module: Any) -> Any:
    """The CUDA device on which torch is to do this much work; otherwise ``None``.

    That is the one on which the module lies, or with ``cuda`` torch's current one.

    Parameters
    ----------
    work, least
        How much there is to do, and from how much on a GPU pays.
    module
        The torch module that is followed; ``None`` for a network of another library.
    """
    asked = wanted()
    if asked == "cpu" or (asked == "auto" and (module is None or work < least)):
        return None
    lies_on = next((p.device for p in module.parameters() if p.device.type == "cuda"), None) if module else None
    if asked == "auto" or lies_on is not None:
        return lies_on
    torch = require("torch", extra="torch", caller=f"{VARIABLE}=cuda")
    if not torch.cuda.is_available():
        raise ModelError(f"{VARIABLE} is cuda, and torch finds no device here; use auto or cpu")
    return torch.device("cuda", torch.cuda.current_device())
