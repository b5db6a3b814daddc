"""A network's first layer along many rays at once: the lines, bends, steps and jumps of ``moves.py``, for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.bundle import Bundle
from globece.models.networks.moves import MOST_COUNTED

WIDER = 1.0 + 1e-9  # more than the rounding error of a bound
NEIGHBOURS = 8  # doubles that are tried around a guess

Tensor = Any


@dataclass
class Moves:
    """How one direction moves some rows: columns that move freely, and others each in their own way.

    The others are given as *shares*: an amount for each ray and part, and what one unit of it adds to the first layer.
    """

    torch: Any
    slope: Tensor  # (units,) of all that moves freely
    glides: bool
    line: Tensor  # (lines, units): entry times step
    bend: Tensor  # (rays, lines) where its range ends; inf if it does not before the limit
    stair: Tensor  # (stairs, units): entry, signed
    size: Tensor  # (stairs,) steps per k
    most: Tensor  # (rays, stairs) steps until the end of the range
    at: Tensor  # (rays, switches)
    old: Tensor  # (rays, switches) the rows of the entry matrix
    new: list[int]  # (switches,)
    entry: Tensor

    def of(self, which: Tensor) -> Moves:
        """Those of some rays."""
        parts = (self.bend[which], self.stair, self.size, self.most[which], self.at[which], self.old[which])
        return Moves(self.torch, self.slope, self.glides, self.line, *parts, self.new, self.entry)

    def _both(self, k: Tensor) -> tuple[Tensor, Tensor]:
        """Past every scalar, and at every scalar."""
        return self.torch.ones_like(k, dtype=self.torch.bool), self.torch.zeros_like(k, dtype=self.torch.bool)

    def taken(self, k: Tensor, past: Tensor) -> Tensor:
        """Whole steps taken at k, or just past it."""
        k, past, size = k[:, None], past[:, None], self.size
        n = (k * size + 0.5).floor()
        for _ in range(2):
            ahead = (n + 0.5) / size
            n = n + ((ahead < k) | (past & (ahead <= k)))
        for _ in range(2):
            last = (n - 0.5) / size
            n = n - ((n > 0.0) & ((last > k) | (~past & (last >= k)))).to(n.dtype)
        return self.torch.minimum(n, self.most)

    def switched(self, k: Tensor, past: Tensor) -> Tensor:
        """Which blocks have switched at k, or just past it."""
        return (k[:, None] > self.at) | (past[:, None] & (k[:, None] >= self.at))

    def first(self, rest: Tensor, k: Tensor, past: Tensor) -> Tensor:
        """The first layer at k, or just past it."""
        out = rest + k[:, None] * self.slope
        if len(self.line):
            out.addmm_(self.torch.minimum(k[:, None], self.bend), self.line)
        if len(self.stair):
            out.addmm_(self.taken(k, past), self.stair)
        if len(self.new):
            done = self.switched(k, past)
            for i in range(len(self.new)):
                out += done[:, i : i + 1] * (self.entry[self.new[i]] - self.entry[self.old[:, i]])
        return out

    def moves_within(self, a: Tensor, b: Tensor) -> Tensor:
        """Whether anything moves within (a, b]."""
        yes, no = self._both(a)
        if self.glides:
            return yes
        found = (self.bend > a[:, None]).any(dim=1)
        if len(self.stair):
            found |= (self.taken(b, no) > self.taken(a, yes)).any(dim=1)
        return found | (self.switched(b, no) & ~self.switched(a, yes)).any(dim=1)

    def deviation(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """How far the first layer lies above and below its chords over (a, b] at most: (rays, units) each."""
        torch, length = self.torch, (b - a)[:, None]
        yes, no = self._both(a)
        start, end, out = (
            a[:, None],
            b[:, None],
            torch.zeros((2, len(a), len(self.slope)), dtype=a.dtype, device=a.device),
        )
        up, down = out
        if len(self.line):  # it rises until the bend, and lies above its chord there
            bends = (self.bend > start) & (self.bend < end)
            over = torch.where(bends, (self.bend - start) * (end - self.bend) / length, 0.0)
            up.addmm_(over, self.line.clamp(min=0.0))
            down.addmm_(over, (-self.line).clamp(min=0.0))
        if len(self.stair):
            before, after, size = self.taken(a, yes), self.taken(b, no), self.size
            n, stop = after - before, self.most / size
            lag = before - torch.minimum(start * size, self.most)
            lead = after - torch.minimum(end * size, self.most)
            ends = (stop > start) & (stop < end)
            gap = torch.where(ends, (stop - start) * (end - stop) / length * size, 0.0)
            share = (((before + 0.5) / size - start) / length).clamp(0.0, 1.0)  # where a single step is taken
            one = n == 1.0
            over = torch.where(one, 1.0 - share, 0.5 - torch.minimum(lag, lead) + gap)
            under = torch.where(one, share, 0.5 + torch.maximum(lag, lead))
            over, under = torch.where(n > 0.0, over, 0.0), torch.where(n > 0.0, under, 0.0)
            rises, falls = self.stair.clamp(min=0.0), (-self.stair).clamp(min=0.0)
            up.addmm_(over, rises).addmm_(under, falls)
            down.addmm_(under, rises).addmm_(over, falls)
        if len(self.new):
            switches = self.switched(b, no) & ~self.switched(a, yes)
            for i in range(len(self.new)):
                happens, share = switches[:, i : i + 1], (self.at[:, i : i + 1] - start) / length
                jump = self.entry[self.new[i]] - self.entry[self.old[:, i]]
                rise, fall = jump.clamp(min=0.0), (-jump).clamp(min=0.0)
                up += torch.where(happens, (1.0 - share) * rise + share * fall, 0.0)
                down += torch.where(happens, share * rise + (1.0 - share) * fall, 0.0)
        return up * WIDER, down * WIDER

    def cut(self, a: Tensor, b: Tensor) -> Tensor:
        """Where to cut (a, b]: at the event nearest to its middle, or else in the middle."""
        torch, middle = self.torch, (0.5 * (a + b))[:, None]
        events = [self.bend, self.at]
        if len(self.stair):
            yes, no = self._both(a)
            before, after = self.taken(a, yes), self.taken(b, no)
            step = torch.minimum(torch.maximum((middle * self.size - 0.5).round(), before), after - 1.0)
            events += [torch.where(after > before, (step + 0.5) / self.size, torch.inf), self.most / self.size]
        at = torch.cat(events, dim=1)
        if not at.shape[1]:
            return middle[:, 0]
        within = (at > a[:, None]) & (at < b[:, None])
        off, nearest = torch.where(within, (at - middle).abs(), torch.inf).min(dim=1)
        return torch.where(off < torch.inf, at.gather(1, nearest[:, None])[:, 0], middle[:, 0])

    def jumps(self, k: Tensor) -> Tensor:
        """Which stairs take a step just past k: (rays, stairs)."""
        yes, no = self._both(k)
        return self.taken(k, yes) > self.taken(k, no)

    def just_past(self, k: Tensor) -> Tensor:
        """The first scalar past a jump at k, as :func:`globece.rays.positions` rounds; NaN if it is not found."""
        torch = self.torch
        up, zero = torch.full((), torch.inf, dtype=k.dtype, device=k.device), torch.zeros_like(k)
        after = torch.nextafter(k, up)
        if not len(self.stair) or not len(k):
            return after
        count = self.taken(k, torch.ones_like(k, dtype=torch.bool))
        at = (count.ceil() - 0.5) / self.size
        settled = torch.zeros_like(at, dtype=torch.bool)
        for _ in range(NEIGHBOURS):
            early = (at * self.size - 0.5).ceil() >= count
            late = (torch.nextafter(at, up) * self.size - 0.5).ceil() < count
            settled = ~early & ~late
            at = torch.where(early, torch.nextafter(at, zero[:, None]), torch.where(late, torch.nextafter(at, up), at))
        at = torch.where(settled, torch.nextafter(at, up), torch.nan)
        return torch.maximum(after, torch.where(self.jumps(k), at, 0.0).max(dim=1).values)


def lay_out(
    torch: Any, routes: Bundle, d: int, entry: Tensor, X: Tensor, codes: Tensor, limit: Tensor
) -> tuple[Moves, Tensor, Tensor]:
    """How direction d moves these rows; the first layer's jump as they enter their ranges; and which are undecided.

    Parameters
    ----------
    torch
        The module.
    routes, d
        What the directions move, and which one is meant.
    entry
        The matrix into the first layer.
    X, codes
        The rows, and the category of each block.
    limit
        Largest scalar, by row.
    """
    like = {"dtype": X.dtype, "device": X.device}
    some = range(int(routes.first_mover[d]), int(routes.first_mover[d + 1]))
    slope, shift = torch.zeros(entry.shape[1], **like), torch.zeros((len(X), entry.shape[1]), **like)
    undecided = torch.zeros(len(X), dtype=torch.bool, device=X.device)
    lines, bends, stairs, sizes, mosts = [], [], [], [], []
    for q in some:
        column, step = int(routes.column[q]), float(routes.step[q])
        low, high, x = float(routes.low[q]), float(routes.high[q]), X[:, column]
        known = ~torch.isnan(x)
        inside, end = (low, high) if step > 0.0 else (high, low)
        outside = x < low if step > 0.0 else x > high
        if np.isfinite(inside) and bool(outside.any()):
            shift += torch.where(outside, inside - x, 0.0)[:, None] * entry[column]
            x = torch.where(outside, inside, x)
        if not routes.whole[q] and not np.isfinite(end) and bool(known.all()):
            slope = slope + step * entry[column]
            continue
        room = torch.where(known, (end - x) * np.sign(step), 0.0).clamp(min=0.0)
        if routes.whole[q]:
            undecided |= torch.minimum(room, abs(step) * limit) > MOST_COUNTED
            stairs.append(np.sign(step) * entry[column])
            sizes.append(abs(step))
            mosts.append(room)
        else:
            lines.append(step * entry[column])
            bends.append(torch.where(room < abs(step) * limit, room / abs(step), torch.inf))
    blocks = range(int(routes.first_switch[d]), int(routes.first_switch[d + 1]))
    at, old, new = [], [], []
    for q in blocks:
        code = codes[:, int(routes.switch[q])]
        bound = torch.as_tensor(routes.bound[q], **like)[code]
        at.append(torch.where(bound < limit, bound, torch.inf))
        old.append(int(routes.start[q]) + code)
        new.append(int(routes.start[q] + routes.target[q]))

    def side_by_side(columns: list[Tensor], kind: Any = X.dtype) -> Tensor:
        return torch.stack(columns, dim=1) if columns else torch.zeros((len(X), 0), dtype=kind, device=X.device)

    def rows(found: list[Tensor]) -> Tensor:
        return torch.stack(found) if found else torch.zeros((0, entry.shape[1]), **like)

    moves = Moves(
        torch,
        slope,
        bool((slope != 0.0).any()),
        rows(lines),
        side_by_side(bends),
        rows(stairs),
        torch.as_tensor(sizes, **like),
        side_by_side(mosts),
        side_by_side(at),
        side_by_side(old, torch.int64),
        new,
        entry,
    )
    return moves, shift, undecided
