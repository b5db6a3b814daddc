"""Rays through a ReLU network on a GPU: the search of ``rays.py``, for all rays at once.

Each ray has its own stretch, and a stack of later ones. In every round the stretches of all rays that are left are
evaluated and bounded by products of large matrices; then each ray is finished, narrowed, cut or goes on to its next
stretch. A few stubborn rays are left to the kernel of ``rays.py`` in the end. Everything is in double precision, so
that a setting for faster and coarser products does not matter.

Stretches are not cut at the same places as in ``rays.py``, and sums are in another order. As there, what is reported is
rounded up and moved on until the network's own arithmetic is clear of the boundary, so scalars agree to that clearance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from globece.bundle import Bundle, bundle
from globece.errors import require
from globece.models.networks.device_moves import WIDER, Moves, Tensor, lay_out
from globece.models.networks.layers import NEGLIGIBLE, SUBNORMAL, Net
from globece.models.networks.rays import FAR_ENOUGH, HOPEFUL, NOTHING, SHORTEST, Search, first_flips
from globece.models.networks.scratch import AT, BEGIN
from globece.models.networks.units import ROUNDING
from globece.progress import check_time
from globece.space import FeatureSpace, FloatArray

STACK = 40  # stretches that wait along one ray; a ray with more is left to the other kernel
ROUNDS = 300
FEW = 1024  # rays that are left to the other kernel
CROWDED = 0.7  # share of rays still followed, below which the others are removed from memory


@dataclass(frozen=True)
class Weights:
    """A network's matrices on a device."""

    entry: Tensor  # (width, units)
    between: tuple[Tensor, ...]  # (units, units) of the next layer
    exit: Tensor  # (units, outputs)
    biases: tuple[Tensor, ...]  # of each layer, and of the outputs
    leaks: tuple[Tensor | None, ...]  # slope below 0 of each layer; `None` where it is 0
    closed: Tensor

    @classmethod
    def of(cls, net: Net, device: Any) -> Weights:
        """Copy a network to a device."""
        torch = require("torch", extra="torch", caller="following a network on a GPU")

        def there(array: Any) -> Tensor:
            return torch.as_tensor(np.where(np.abs(array) < SUBNORMAL, 0.0, array), dtype=torch.float64, device=device)

        at, begin = net.layout[AT], net.layout[BEGIN]
        between = [
            net.weights[begin[i] :][: (at[i] - at[i - 1]) * (at[i + 1] - at[i])].reshape(at[i] - at[i - 1], -1)
            for i in range(1, len(at) - 1)
        ]
        leaks = [net.leak[i:j] for i, j in pairwise(at)]
        biases = [net.bias[i:j] for i, j in zip(at, [*at[1:], None], strict=True)]
        return cls(
            there(net.entry),
            tuple(there(w) for w in between),
            there(net.exit.T),
            tuple(there(b) for b in biases),
            tuple(there(leak) if leak.any() else None for leak in leaks),
            torch.as_tensor(net.closed, device=device),
        )

    def bent(self, layer: int, values: Tensor) -> Tensor:
        """A layer's values after its units have bent them."""
        leak = self.leaks[layer]
        return values.clamp(min=0.0) if leak is None else values.where(values > 0.0, leak * values)

    def forward(self, first: Tensor, need: Tensor) -> list[Tensor]:
        """The values of each layer before it bends, and the outputs less what they must exceed."""
        found = [first]
        for layer, matrix in enumerate((*self.between, self.exit)):
            found.append((self.bent(layer, found[-1]) @ matrix).add_(self.biases[layer + 1]))
        out = found[-1].sub_(need[:, None])
        if self.closed.any():
            out[(out == 0.0) & self.closed] = 1e-300  # a tie that is favourable
        return found


@dataclass
class Stretches:
    """The rays that are still followed: each with its stretch (a, b], its units at both ends, and a stack."""

    ray: Tensor  # which one of all rays
    moves: Moves
    rest: Tensor  # first layer before anything moves
    need: Tensor
    noise: Tensor
    limit: Tensor
    a: Tensor
    b: Tensor
    near: list[Tensor]
    far: list[Tensor]
    hope: Tensor
    pending: Tensor
    later: Tensor  # (rays, STACK, 2)
    alive: Tensor  # whether it has no answer yet

    def only(self, which: Tensor) -> None:
        """Keep some of them."""
        self.moves = self.moves.of(which)
        self.near, self.far = [n[which] for n in self.near], [f[which] for f in self.far]
        for name in ("ray", "rest", "need", "noise", "limit", "a", "b", "hope", "pending", "later", "alive"):
            setattr(self, name, getattr(self, name)[which])


@dataclass(frozen=True)
class Rows:
    """Rows on a device, and what moves them."""

    given: FloatArray  # as they were given
    centre: FloatArray  # what is subtracted from them
    fill: FloatArray
    directions: FloatArray
    routes: Bundle
    index: Tensor  # the rows that are meant
    X: Tensor
    codes: Tensor  # (rows, blocks)
    rest: Tensor  # first layer before anything moves

    def only(self, which: Tensor) -> Rows:
        """Some of them."""
        if len(which) == len(self.index):
            return self
        return replace(self, index=self.index[which], X=self.X[which], codes=self.codes[which], rest=self.rest[which])


@dataclass(frozen=True)
class Wanted:
    """Where to look along each ray, as in :class:`globece.models.networks.rays.Search`."""

    limit: Tensor
    start: Tensor
    need: Tensor
    noise: Tensor

    def only(self, which: Tensor) -> Wanted:
        """That of some rays."""
        return Wanted(self.limit[which], self.start[which], self.need[which], self.noise[which])


@dataclass(frozen=True)
class Device:
    """A network on a device, which follows rays there.

    Attributes
    ----------
    net, weights
        From the centred encoded matrix to the conditions.
    space
        The space of the centred encoded matrix.
    torch, device
        Torch, and where it computes.
    few
        So many rays are left to the kernel of ``rays.py``.
    """

    net: Net
    weights: Weights
    space: FeatureSpace
    torch: Any
    device: Any
    few: int = FEW

    @classmethod
    def of(cls, net: Net, space: FeatureSpace, device: Any, few: int = FEW) -> Device:
        """Copy a network to a device."""
        torch = require("torch", extra="torch", caller="following a network on a GPU")
        return cls(net, Weights.of(net, device), space, torch, torch.device(device), few)

    def rows(self, Z: FloatArray, exact: Tensor, centre: FloatArray, fill: FloatArray, directions: FloatArray) -> Rows:
        """Centre rows that lie on the device (``exact``) and here."""
        torch = self.torch
        X, index = exact - self.there(centre), torch.arange(len(exact), device=self.device)
        codes = [exact[:, f.columns].argmax(dim=1) for f in self.space.blocks]
        empty = torch.zeros((len(exact), 0), dtype=torch.int64, device=self.device)
        rest = torch.where(torch.isnan(X), self.there(fill), X) @ self.weights.entry + self.weights.biases[0]
        routes = bundle(self.space, directions)
        return Rows(Z, centre, fill, directions, routes, index, X, torch.stack(codes, 1) if codes else empty, rest)

    def there(self, array: Any) -> Tensor:
        """Copy an array to the device."""
        return self.torch.from_numpy(np.array(array, dtype=np.float64, order="C")).to(self.device)

    def search(self, rows: Rows, d: int, wanted: Wanted) -> tuple[Tensor, Tensor]:
        """First scalar at which all outputs exceed the need along direction d, and whether it follows a jump.

        The scalar is ``inf`` where there is none, and NaN where the ray cannot be decided.
        """
        torch = self.torch
        k, jumped = torch.full_like(wanted.limit, torch.inf), torch.zeros_like(wanted.limit, dtype=torch.bool)
        which = torch.nonzero(wanted.start < wanted.limit)[:, 0]
        if len(which) > self.few:
            which = self._follow(rows.only(which), d, wanted.only(which), which, k, jumped)
        if len(which):
            some, here = wanted.only(which), rows.index[which].cpu().numpy()
            limit, start, need = (w.cpu().numpy()[None] for w in (some.limit, some.start, some.need))
            found, follows = first_flips(
                self.net, self.space, rows.given[here] - rows.centre, rows.fill, rows.directions[d : d + 1],
                Search(limit, start, need, some.noise.cpu().numpy()),
            )  # fmt: skip
            k[which] = torch.as_tensor(found[0], device=self.device)
            jumped[which] = torch.as_tensor(follows[0], device=self.device)
        return k, jumped

    def _follow(
        self, rows: Rows, d: int, wanted: Wanted, ids: Tensor, k_of_all: Tensor, jumped_of_all: Tensor
    ) -> Tensor:
        """Follow rays, write what is found, and return the rays that are left to the other kernel."""
        torch, weights = self.torch, self.weights
        moves, shift, undecided = lay_out(torch, rows.routes, d, weights.entry, rows.X, rows.codes, wanted.limit)
        rest = rows.rest + shift
        a, past = wanted.start, torch.ones_like(wanted.start, dtype=torch.bool)
        near = weights.forward(moves.first(rest, a, past), wanted.need)
        left = [ids[undecided]]
        at_once = (near[-1].amin(dim=1) > 0.0) & ~undecided
        k_of_all[ids[at_once]] = moves.of(at_once).just_past(a[at_once])
        far = weights.forward(moves.first(rest, wanted.limit, ~past), wanted.need)
        s = Stretches(
            ids, moves, rest, wanted.need, wanted.noise, wanted.limit, a, wanted.limit, near, far,
            2.0 * HOPEFUL / (wanted.limit - a), torch.zeros_like(ids), torch.zeros((len(ids), STACK, 2), dtype=a.dtype,
            device=a.device), ~at_once & ~undecided,
        )  # fmt: skip
        for _ in range(ROUNDS):
            check_time()
            n = int(s.alive.sum())
            if n <= self.few:
                break
            if n < CROWDED * len(s.ray):
                s.only(torch.nonzero(s.alive)[:, 0])
            k, jumped, stuck = self._round(s)
            found = s.alive & ~torch.isnan(k)
            k_of_all[s.ray[found]], jumped_of_all[s.ray[found]] = k[found], jumped[found]
            left.append(s.ray[stuck])
            s.alive = s.alive & ~found & ~stuck
        return torch.cat([*left, s.ray[s.alive]])

    def _round(self, s: Stretches) -> tuple[Tensor, Tensor, Tensor]:
        """Examine each ray's stretch: the answers, NaN where there is none yet; what they follow; and what is stuck."""
        torch = self.torch
        k, jumped = torch.full_like(s.a, torch.nan), torch.zeros_like(s.alive)
        length, smallest = s.b - s.a, s.far[-1].amin(dim=1)
        done = s.alive & ~s.moves.moves_within(s.a, s.b)
        short = s.alive & ~done & (length <= torch.maximum(SHORTEST * s.b, (NOTHING * s.limit).clamp(min=1e-300)))
        k = torch.where(short & (smallest > 0.0), s.b, k)
        done = done | (short & ~(smallest > 0.0))
        open_ = s.alive & ~done & ~short
        hopeless = open_ & (smallest > 0.0) & (s.hope * length > HOPEFUL)
        s.pending = torch.where(hopeless, 0, s.pending)
        s.hope = torch.where(hopeless, torch.minimum(s.hope, 64.0 / length), s.hope)
        new_a, new_b, cut = s.a.clone(), s.b.clone(), hopeless

        look = torch.nonzero(open_ & ~hopeless)[:, 0]
        if len(look):
            here = self._look(s, look, smallest[look])
            done[look], k[look], s.pending[look], s.hope[look] = here.done, here.k, here.pending, here.hope
            new_a[look], new_b[look] = here.new_a, here.new_b
            cut[look] = new_b[look] - new_a[look] > 0.5 * length[look]
        goes_on = open_ & ~done & torch.isnan(k)

        # Cut: the second part waits
        cut = cut & goes_on
        stuck = cut & (s.pending == STACK)
        where = torch.nonzero(cut & ~stuck)[:, 0]
        if len(where):
            middle = s.moves.of(where).cut(new_a[where], new_b[where])
            s.later[where, s.pending[where]] = torch.stack([middle, new_b[where]], dim=1)
            s.pending[where] += 1
            new_b[where] = middle

        # On to the next stretch
        next_ = torch.nonzero(done & (s.pending > 0))[:, 0]
        k = torch.where(done & (s.pending == 0), torch.inf, k)
        fresh_a, fresh_b = goes_on & (new_a != s.a), goes_on & (new_b != s.b)
        if len(next_):
            s.pending[next_] -= 1
            stretch = s.later[next_, s.pending[next_]]
            new_a[next_], new_b[next_] = stretch[:, 0], stretch[:, 1]
            fresh_a[next_] = fresh_b[next_] = True
        s.a, s.b = new_a, new_b
        at_a, at_b = torch.nonzero(fresh_a)[:, 0], torch.nonzero(fresh_b)[:, 0]
        which = torch.cat([at_a, at_b])
        if len(which):
            past = torch.arange(len(which), device=which.device) < len(at_a)
            first = s.moves.of(which).first(s.rest[which], torch.cat([s.a[at_a], s.b[at_b]]), past)
            for layer, values in enumerate(self.weights.forward(first, s.need[which])):
                s.near[layer].index_copy_(0, at_a, values[: len(at_a)])
                s.far[layer].index_copy_(0, at_b, values[len(at_a) :])
            flips = at_a[s.near[-1][at_a].amin(dim=1) > 0.0]
            if len(flips):
                jumped[flips] = done[flips]
                k[flips] = torch.where(done[flips], s.moves.of(flips).just_past(s.a[flips]), s.a[flips])
                stuck[flips] |= torch.isnan(k[flips])
        return k, jumped, stuck

    def _look(self, s: Stretches, which: Tensor, smallest: Tensor) -> Looked:
        """Bound these stretches, and narrow them to where a flip is possible."""
        torch = self.torch
        a, b, limit = s.a[which], s.b[which], s.limit[which]
        length = b - a
        all_ = len(which) == len(s.a)
        near, far = ([v if all_ else v[which] for v in side] for side in (s.near, s.far))
        above, below, straight = self._gaps(s.moves.of(which), a, b, near, far)
        start, end = near[-1], far[-1]
        opens, closes = room_left(torch, start + above, end + above)
        done = opens >= closes
        k = torch.where(
            straight & ~done,
            torch.minimum(clear(torch, start, end, a, length, opens, s.noise[which]), limit),
            torch.nan,
        )
        certain, until = room_left(torch, start - below, end - below)
        new_a = a + opens * length
        new_b = torch.where(closes < 1.0, a + closes * length, b)
        sooner = torch.minimum(new_b, a + certain * length * (1.0 + 1e-12))
        new_b = torch.where(certain < until.clamp(max=1.0), sooner, new_b)
        new_b = torch.maximum(new_b, new_a + 1e-12 * length)
        sure = ~done & ((certain < until) | (smallest > 0.0))
        pending = torch.where(sure, 0, s.pending[which])
        size = torch.maximum(start[:, 0].abs(), end[:, 0].abs()).clamp(min=1e-300)
        hope = torch.where(done, s.hope[which], above[:, 0] / size / length)
        return Looked(done, k, pending, hope, torch.where(done, a, new_a), torch.where(done, b, new_b))

    def _gaps(
        self, moves: Moves, a: Tensor, b: Tensor, near: list[Tensor], far: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """How far the outputs lie above and below their chords at most, and which are straight.

        With the chord of a unit running from one end to the other, its ReLU lies on or below the chord of its ends,
        and lowest where the unit crosses 0; see :func:`globece.models.networks.units.bound_spread`.
        """
        torch, weights = self.torch, self.weights
        up, down = moves.deviation(a, b)
        bent = torch.zeros_like(a, dtype=torch.bool)
        for layer, matrix in enumerate((*weights.between, weights.exit)):
            high, low = torch.maximum(near[layer], far[layer]), torch.minimum(near[layer], far[layer])
            over = (up + high.clamp(max=0.0)).clamp_(min=0.0)
            share = ((down - low) / (high - low).clamp_(min=1e-300)).clamp_(max=1.0)
            under = torch.where(low >= 0.0, torch.minimum(down, high), share.mul_(high.clamp(min=0.0)))
            leak = weights.leaks[layer]
            if leak is not None:
                over, under = leak * up + (1.0 - leak) * over, leak * down + (1.0 - leak) * under
            both, more = over + under, over.sub_(under)
            bent |= (both > float(NEGLIGIBLE)).any(dim=1)
            both, more = both @ matrix.abs(), more @ matrix
            up, down = (both * WIDER + more).mul_(0.5).clamp_(min=0.0), (both * WIDER - more).mul_(0.5).clamp_(min=0.0)
        last = torch.maximum(*(weights.bent(-1, side[-2]).abs() for side in (near, far)))
        slack = ROUNDING * (last @ weights.exit.abs() + weights.biases[-1].abs())
        return up + slack, down + slack, ~bent


@dataclass(frozen=True)
class Looked:
    """What bounds say about stretches: nothing can be there, the answer is there, or where to look next."""

    done: Tensor
    k: Tensor
    pending: Tensor
    hope: Tensor
    new_a: Tensor
    new_b: Tensor


def room_left(torch: Any, near: Tensor, far: Tensor) -> tuple[Tensor, Tensor]:
    """The part of a stretch, from 0 to 1, over which all chords are positive; none if it ends before it begins."""
    rises, falls = (near <= 0.0) & (far > 0.0), (near > 0.0) & (far <= 0.0)
    first = torch.where(rises, -near / (far - near), 0.0).amax(dim=1)
    last = torch.where(falls, near / (near - far), 1.0).amin(dim=1)
    never = ((near <= 0.0) & (far <= 0.0)).any(dim=1)
    return torch.where(never, 1.0, first), torch.where(never, 0.0, last)


def clear(torch: Any, near: Tensor, far: Tensor, a: Tensor, length: Tensor, first: Tensor, noise: Tensor) -> Tensor:
    """Where every output exceeds the noise on a straight stretch that turns favourable, if that is near."""
    at, rise = a + first * length, far - near
    short = noise[:, None] - (near + first[:, None] * rise)
    move = torch.where(rise > 0.0, short / rise * length[:, None], torch.inf)
    move = torch.where(short > 0.0, move, 0.0).amax(dim=1)
    return at + torch.minimum(move, FAR_ENOUGH * at)
