"""First flips of a network on a GPU: the same steps as in ``network.py``, with rows and scalars that stay there.

The rays are searched as in ``on_device.py``. Then each answer is tried at the exact inputs of the network, together
with the rounding error there, and moved on until it is clear; see :mod:`globece.models.networks.clearance`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from globece.bundle import Bundle, bundle
from globece.kept import Kept
from globece.models.networks.clearance import ASKED, NEEDED, SAFE, Clearance
from globece.models.networks.device_moves import Tensor
from globece.models.networks.on_device import FEW, Device, Rows, Wanted, Weights
from globece.space import FeatureSpace, FloatArray

if TYPE_CHECKING:
    from globece.models.networks.network import ReLUNetwork

WORTHWHILE = 10_000  # rays: from there on about twice as fast as two cores, see BENCHMARKS.md
SHARE = 0.5  # of the free memory of the device
MOST_RAYS = 1 << 22  # at a time
ON_CPU = 65_536
PART = 1 << 18  # rays whose rounding errors are computed together


@dataclass(frozen=True)
class Errors:
    """A network's outputs and their rounding errors on a device; see :class:`Clearance`."""

    weights: Weights
    squares: Weights
    share: float
    head: float

    @classmethod
    def of(cls, clearance: Clearance, device: Any) -> Errors:
        """Copy both to a device."""
        squares = Weights.of(clearance.powers, device)
        return cls(Weights.of(clearance.net, device), squares, SAFE * clearance.unit, clearance.head)

    def __call__(self, torch: Any, V: Tensor) -> tuple[Tensor, Tensor]:
        """For each row, by how much its outputs exceed their rounding errors at least; and the largest error."""
        weights, squares = self.weights, self.squares
        values, spreads, slopes = [], [], []
        h = V
        maps = (weights.entry, *weights.between, weights.exit)
        powers = (squares.entry, *squares.between, squares.exit)
        for layer, (matrix, power) in enumerate(zip(maps, powers, strict=True)):
            values.append(h @ matrix + weights.biases[layer])
            spreads.append(h.square() @ power + squares.biases[layer])
            if layer + 1 < len(maps):
                h = weights.bent(layer, values[-1])
                leak = weights.leaks[layer]
                below = torch.zeros_like(h) if leak is None else leak.expand_as(h)
                slopes.append(torch.where(values[-1] > 0.0, 1.0, below))
        lead = torch.full_like(V[:, 0], torch.inf)
        error = torch.zeros_like(lead)
        for m in range(weights.exit.shape[1]):
            square, back = spreads[-1][:, m], slopes[-1] * weights.exit[:, m]
            for layer in range(len(slopes) - 1, -1, -1):
                square = square + (back.square() * spreads[layer]).sum(dim=1)
                if layer:
                    back = slopes[layer - 1] * (back @ weights.between[layer - 1].T)
            off = self.share * square.sqrt() + self.head
            lead, error = torch.minimum(lead, values[-1][:, m] - off), torch.maximum(error, off)
        return lead, error


@dataclass(frozen=True)
class OnDevice:
    """A network on a device.

    Attributes
    ----------
    device, errors
        The parts of it that lie there.
    columns
        The encoded columns that the network takes as they are; ``None`` if it takes anything else.
    """

    device: Device
    errors: Errors
    columns: tuple[int, ...] | None

    @classmethod
    def of(cls, network: ReLUNetwork, device: Any, few: int = FEW) -> OnDevice:
        """Copy a network to a device."""
        on = Device.of(network.net, network._centred, device, few)
        columns = network.copied_columns
        return cls(on, Errors.of(network.clearance, on.device), columns)

    @property
    def at_once(self) -> int:
        """Rays that fit into the memory of the device."""
        if self.device.device.type != "cuda":
            return ON_CPU
        units = sum(b.numel() for b in self.device.weights.biases)
        free, _ = self.device.torch.cuda.mem_get_info(self.device.device)
        return max(ON_CPU, min(MOST_RAYS, int(SHARE * free / (64 * units + 4096))))

    def first_flip(
        self, network: ReLUNetwork, Z: FloatArray, directions: FloatArray, limit: FloatArray, start: FloatArray | None
    ) -> FloatArray:
        """The same as :meth:`ReLUNetwork.first_flip`, to the clearance."""
        out, most = np.empty(limit.shape), self.at_once
        for first in range(0, len(Z), most):
            rows = slice(first, first + most)
            part = _Batch.of(self, network, Z[rows], directions)
            for d in range(len(directions)):
                out[d, rows] = part.flips(d, limit[d, rows], None if start is None else start[d, rows])
        return out


@dataclass(frozen=True)
class _Batch:
    """Some rows on the device."""

    on: OnDevice
    network: ReLUNetwork
    rows: Rows
    exact: Tensor  # the rows as they are, not centred
    routes: Bundle  # of the space that is not centred
    lost: Tensor  # rows with missing values without a replacement

    @classmethod
    def of(cls, on: OnDevice, network: ReLUNetwork, Z: FloatArray, directions: FloatArray) -> _Batch:
        torch, device = on.device.torch, on.device
        exact = device.there(Z)
        rows = device.rows(Z, exact, network.centre, network.fill - network.centre, directions)
        lost = torch.isnan(torch.where(torch.isnan(exact), device.there(network.fill), 0.0)).any(dim=1)
        return cls(on, network, rows, exact, bundle(network.space, directions), lost)

    def flips(self, d: int, limit: FloatArray, start: FloatArray | None) -> FloatArray:
        """First favourable scalars along one direction."""
        torch, device = self.on.device.torch, self.on.device
        end = device.there(limit)
        begin = torch.zeros_like(end) if start is None else device.there(start)
        noise = torch.full_like(end, self.network._noise)
        wanted = Wanted(end, torch.where(self.lost, end, begin), torch.zeros_like(end), noise)
        k = self._clear(d, self._ask(self.rows, d, wanted), end)
        if start is not None:  # the search looks past the start, but the start itself counts
            which = torch.nonzero((begin > 0.0) & (begin <= end) & ~self.lost)[:, 0]
            lead, _ = self._leads(d, which, begin[which])
            stays = which[lead > 0.0]
            k[stays] = begin[stays]
        return np.asarray(k.cpu().numpy())

    def _ask(self, rows: Rows, d: int, wanted: Wanted) -> Tensor:
        """Answers of the search, rounded up where they follow no jump."""
        torch = self.on.device.torch
        k, jumped = self.on.device.search(rows, d, wanted)
        glided = torch.isfinite(k) & ~jumped
        return torch.where(glided, torch.minimum(_rounded_up(torch, k, self.network._bits), wanted.limit), k)

    def _clear(self, d: int, k: Tensor, limit: Tensor) -> Tensor:
        """Answers increased until rounding cannot undo them; NaN where that is not possible nearby."""
        torch = self.on.device.torch
        which = torch.nonzero(torch.isfinite(k))[:, 0]
        for needed in NEEDED:
            if not len(which):
                return k
            lead, error = self._leads(d, which, k[which])
            unclear = ~(lead > 0.0)
            which, lead, error = which[unclear], lead[unclear], error[unclear]
            missing = (-lead).clamp(min=0.0) if needed else torch.zeros_like(lead)
            need = max(needed, ASKED) * error + needed * missing
            wanted = Wanted(limit[which], k[which], need, torch.zeros_like(need))
            moved = self._ask(self.rows.only(which), d, wanted)
            left = torch.isfinite(moved)
            # a ray that flips, but nowhere clearly, is not "no recourse"
            k[which] = torch.where(left, moved, torch.nan)
            which = which[left]
        k[which] = torch.nan
        return k

    def _leads(self, d: int, which: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """By how much these rays exceed the rounding error at the exact inputs of the network; and that error."""
        torch, on = self.on.device.torch, self.on
        found = []
        for part in range(0, len(which), PART):
            some = which[part : part + PART]
            Z, codes, at = self.exact[some], self.rows.codes[some], k[part : part + PART]
            P = positions(torch, self.network.space, self.routes, d, Z, codes, at)
            seen = self.network._seen(P.cpu().numpy()) if on.columns is None else None
            V = P[:, list(on.columns or ())] if seen is None else on.device.there(seen)
            found.append(on.errors(torch, V))
        return (torch.cat([f[0] for f in found]), torch.cat([f[1] for f in found])) if found else (k, k)


def positions(torch: Any, space: FeatureSpace, routes: Bundle, d: int, Z: Tensor, codes: Tensor, k: Tensor) -> Tensor:
    """Where rows are at k, operation for operation as in :func:`globece.rays.positions`."""
    out = Z.clone()
    for q in range(int(routes.first_mover[d]), int(routes.first_mover[d + 1])):
        column, step = int(routes.column[q]), float(routes.step[q])
        low, high, x, moved = float(routes.low[q]), float(routes.high[q]), Z[:, column], k * step
        if routes.whole[q]:
            moved = np.sign(step) * (moved.abs() - 0.5).ceil()
        away = x > high if step > 0.0 else x < low
        origin = x.clamp(min=low) if step > 0.0 else x.clamp(max=high)
        out[:, column] = torch.where((k > 0.0) & ~away, (origin + moved).clamp(min=low).clamp(max=high), x)
    for q in range(int(routes.first_switch[d]), int(routes.first_switch[d + 1])):
        block = space.blocks[int(routes.switch[q])]
        bound = torch.as_tensor(routes.bound[q], device=k.device)[codes[:, int(routes.switch[q])]]
        after = torch.zeros(block.width, dtype=Z.dtype, device=Z.device)
        after[int(routes.target[q])] = 1.0
        out[:, block.columns] = torch.where((k > bound)[:, None], after, Z[:, block.columns])
    return out


def _rounded_up(torch: Any, k: Tensor, bits: int) -> Tensor:
    """Positive numbers rounded up to so many significant bits."""
    rest = (1 << (53 - bits)) - 1
    rounded = ((k.view(torch.int64) + rest) & ~rest).view(torch.float64)
    return torch.where(k >= np.finfo(np.float64).tiny, rounded, k)


_DEVICES: Kept[Any, dict[str, OnDevice]] = Kept()


def on(network: ReLUNetwork, device: Any) -> OnDevice:
    """The network on a device, copied there once."""
    known = _DEVICES.get(network, dict)
    if str(device) not in known:
        known[str(device)] = OnDevice.of(network, device)
    return known[str(device)]
