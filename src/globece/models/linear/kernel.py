"""The kernel of linear models: along each ray, the first k at which every margin is positive."""

from __future__ import annotations

import numba
import numpy as np

from globece.models.passing import LARGEST, above, after_steps, below, pass_edge

FEW_STEPS = 16  # whole steps that are followed one by one
CLOSE = 1e-6  # a flip this soon after a doubtful one is taken for the same
MOST_LOOKS = 10_000  # stretches of whole steps to examine along one ray before the answer is NaN

# Numba counts references to every array that one function passes to another, which would cost more than the work on a
# row. So the walk is one long function, and most of what it calls takes numbers only.

_END, _EDGE, _SWITCH = 0, 1, 2  # kinds of breakpoint


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sum_up(  # type: ignore[no-untyped-def]
    first, last, Z, fill, centre, weights, sizes, offsets, summed, stored, replaced, margins, rounding
):
    """Margins of rows first to last, and their largest rounding errors: of the sum, and of the stored values."""
    m, width = weights.shape
    for i in range(first, last):
        for h in range(m):
            total, size, kept = offsets[h], abs(offsets[h]), 0.0
            for j in range(width):
                z = Z[i, j]
                if z != 0.0:
                    if z != z:
                        z = fill[j]
                        kept += replaced[h, j]
                    else:
                        kept += abs(weights[h, j] * z) * stored[j]
                    part = weights[h, j] * (z - centre[j])
                    total += part
                    size += sizes[h, j] * abs(z - centre[j])
                elif centre[j] != 0.0:
                    part = weights[h, j] * centre[j]
                    total -= part
                    size += sizes[h, j] * abs(centre[j])
            margins[i, h], rounding[i, h] = total, summed * size + kept


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _narrow(low: float, high: float, a: float, s: float, closed: bool) -> tuple[float, float]:
    """Narrow the stretch (low, high] to where a + s k is positive."""
    if s > 0.0:
        low = max(low, -a / s * (1.0 + 1e-15))
    elif s < 0.0:
        high = min(high, -a / s)
    elif not (a > 0.0 or (closed and a == 0.0)):
        low = np.inf
    return low, high


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _one_by_one(  # type: ignore[no-untyped-def]
    k, upto, most, c0, c1, moves, whole, step, weight, A, s, closed, B, t
):
    """First favourable k in (k, upto], going from one whole step to the next, and how far it went.

    Between two whole steps margins are straight lines. The first is ``inf`` if there is none, and NaN if ``most``
    steps do not reach ``upto``.
    """
    for _ in range(most):
        after = upto
        for j in range(len(A)):
            B[j], t[j] = A[j], s[j]
        for c in range(c0, c1):
            if moves[c] and whole[c]:
                pace = abs(step[c])
                taken = np.ceil(above(k) * pace - 0.5)  # as `rays.travel` counts them
                after = min(after, after_steps(pace, taken + 1.0))
                for j in range(len(A)):
                    B[j] += weight[c, j] * (taken if step[c] > 0 else -taken)
                    t[j] -= weight[c, j] * step[c]
        from_, to = k, after
        for j in range(len(A)):
            from_, to = _narrow(from_, to, B[j], t[j], closed[j])
        if above(from_) < above(to):
            return above(from_), k
        if not after < upto:
            return np.inf, k
        k = after if after > k else above(k)
    return np.nan, k


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _over_steps(  # type: ignore[no-untyped-def]
    low, high, c0, c1, moves, whole, step, weight, A, s, closed, B, t, slack, later
):
    """First favourable k in (low, high] with whole steps in between; ``inf`` if there is none, NaN if undecided.

    Steps are replaced by the straight line through them, from which they differ by half a step at most. Where these
    lines allow a flip, the stretch is narrowed or halved until it has few steps.
    """
    n, m = 0, len(A)
    for _ in range(MOST_LOOKS):
        steps, until = 0.0, min(high, LARGEST)
        for j in range(m):
            B[j], t[j], slack[j] = A[j], s[j], 0.0
        for c in range(c0, c1):
            if moves[c] and whole[c]:
                pace = abs(step[c])
                before, after = np.ceil(above(low) * pace - 0.5), np.ceil(until * pace - 0.5)
                steps += max(after - before, 0.0)
                for j in range(m):
                    if after > before:  # includes the rounding of k * pace
                        slack[j] += abs(weight[c, j]) * (0.5 + 4e-16 * after)
                    else:
                        B[j] += weight[c, j] * (before if step[c] > 0 else -before)
                        t[j] -= weight[c, j] * step[c]
        from_, to = low, high
        for j in range(m):
            from_, to = _narrow(from_, to, B[j] + slack[j], t[j], closed[j])
        if above(from_) < above(to):
            if steps <= FEW_STEPS:
                found, _ = _one_by_one(low, high, 4 * FEW_STEPS, c0, c1, moves, whole, step, weight, A, s, closed, B, t)
                if found != np.inf:
                    return found
            else:
                length = high - low
                low, high = max(low, from_ * (1.0 - 1e-12)), min(high, to * (1.0 + 1e-12))
                if not high - low < 0.5 * length:
                    middle = 0.5 * (low + min(high, LARGEST))
                    if not low < middle < high or n == later.shape[1]:
                        return np.nan
                    later[0, n], later[1, n] = middle, high
                    n += 1
                    high = middle
                continue
        if n == 0:
            return np.inf
        n -= 1
        low, high = later[0, n], later[1, n]
    return np.nan


@numba.njit(cache=True, nogil=True, error_model="numpy")
def walk(  # type: ignore[no-untyped-def]
    a, b, Z, base, unsure, closed, limit, begin, first_mover, mover, column, step, low, high, whole, first_switch,
    switch, block, size, target, bound, weight, first_edge, edge, jump, gain, out,
):  # fmt: skip
    """First favourable scalar of rows a to b along every direction.

    It is NaN where a margin may be positive by ``unsure`` on a whole stretch, or up to the end of one, and not more.
    """
    m, most = base.shape[1], 1
    for d in range(len(out)):
        edges = first_edge[first_mover[d + 1]] - first_edge[first_mover[d]]
        most = max(most, first_mover[d + 1] - first_mover[d] + edges + first_switch[d + 1] - first_switch[d])
    # scratch space for all rows: allocating it per row would cost more than the row
    at, kind, which, owner = (
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    moves, code = np.zeros(len(column), np.bool_), np.zeros(len(block), np.int64)
    A, s, slack, B, t, part = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    U = np.empty(m)
    later = np.empty((2, 128))
    for d in range(len(out)):
        c0, c1, s0, s1 = first_mover[d], first_mover[d + 1], first_switch[d], first_switch[d + 1]
        any_whole = False
        for c in range(c0, c1):
            any_whole |= whole[c]
        for i in range(a, b):
            out[d, i], doubt = np.inf, -1.0
            last = limit[d, i]
            k0 = begin[d, i] if begin.shape[1] > 1 or begin.shape[0] > 1 else begin[0, 0]
            if k0 > 0.0:  # the first k that counts lies just beyond k0
                k0 = np.int64(np.float64(k0).view(np.int64) - 1).view(np.float64)
            for j in range(m):
                A[j], s[j], slack[j] = base[i, j], 0.0, 0.0

            # Events along the ray
            n_events, n_moving = 0, 0
            for c in range(c0, c1):
                x = Z[i, column[c]]
                end, rising = high[c] if step[c] > 0 else low[c], step[c] > 0
                if x < low[c] if rising else x > high[c]:  # it enters its range as soon as it moves
                    inside = low[c] if rising else high[c]
                    for j in range(m):
                        A[j] += weight[c, j] * (inside - x)
                    for e in range(first_edge[c], first_edge[c + 1]):
                        if (x <= edge[e] < inside) if rising else (inside <= edge[e] < x):
                            for j in range(m):
                                A[j] += jump[e, j] if rising else -jump[e, j]
                    x = inside
                moves[c] = x < end if rising else x > end
                if not moves[c]:
                    continue
                n_moving += 1
                for j in range(m):
                    s[j] += weight[c, j] * step[c]
                    if whole[c]:
                        slack[j] += 0.5 * abs(weight[c, j])
                room = abs(end - x)
                if room < np.inf:
                    at[n_events] = after_steps(abs(step[c]), room) if whole[c] else room / abs(step[c])
                    kind[n_events], which[n_events], owner[n_events] = _END, c, c
                    n_events += 1
                for e in range(first_edge[c], first_edge[c + 1]):
                    if (x <= edge[e] < end) if step[c] > 0 else (end <= edge[e] < x):
                        at[n_events] = pass_edge(x, step[c], whole[c], edge[e])
                        kind[n_events], which[n_events], owner[n_events] = _EDGE, e, c
                        n_events += 1
            for q in range(s0, s1):
                code[q] = 0
                for category in range(size[q]):
                    if Z[i, block[q] + category] > 0.5:
                        code[q] = category
                        break
                if bound[q, code[q]] < np.inf:
                    at[n_events] = bound[q, code[q]]
                    kind[n_events], which[n_events], owner[n_events] = _SWITCH, q, q
                    n_events += 1
            for e in range(1, n_events):  # they are few
                k, kind_, which_, owner_, index = at[e], kind[e], which[e], owner[e], e
                while index > 0 and at[index - 1] > k:
                    at[index], kind[index] = at[index - 1], kind[index - 1]
                    which[index], owner[index] = which[index - 1], owner[index - 1]
                    index -= 1
                at[index], kind[index], which[index], owner[index] = k, kind_, which_, owner_

            for event in range(n_events + 1):
                k1 = min(at[event], last) if event < n_events else last
                if k1 > k0:
                    # One stretch (k0, k1] without breakpoints: straight lines, or steps close to them
                    from_, to = k0, k1
                    for j in range(m):
                        U[j] = A[j] + unsure[i, j]
                        from_, to = _narrow(from_, to, U[j] + slack[j], s[j], closed[j])
                    found, upto = above(from_), above(to)
                    stepping = False
                    if found < upto and any_whole:
                        for c in range(c0, c1):
                            stepping |= moves[c] and whole[c]
                    if stepping:
                        nearly = found * (1.0 - 1e-12)
                        near, far = nearly if k0 < nearly < found else k0, min(k1, to * (1.0 + 1e-12))
                        # most flip within a few steps of the first possible k
                        found, near = _one_by_one(
                            near, far, FEW_STEPS // 2, c0, c1, moves, whole, step, weight, U, s, closed, B, t
                        )
                        if found != found:
                            found = _over_steps(
                                near, far, c0, c1, moves, whole, step, weight, U, s, closed, B, t, part, later
                            )
                        upto = np.inf
                        if found < np.inf:  # it must be clear there, or at least before the next step
                            clear = True
                            for j in range(m):
                                clear &= unsure[i, j] == 0.0 or B[j] + t[j] * found > unsure[i, j]
                            if not clear:
                                fine = True  # steps finer than rounding are as good as a slope
                                for j in range(m):
                                    fine &= 2.0 * slack[j] <= unsure[i, j]
                                found, near = _one_by_one(
                                    below(found), far, FEW_STEPS if fine else 1, c0, c1, moves, whole, step, weight,
                                    A, s, closed, B, t,
                                )  # fmt: skip
                                if fine and found != found:
                                    found = _over_steps(
                                        near, far, c0, c1, moves, whole, step, weight, A, s, closed, B, t, part, later
                                    )
                                found = np.nan if found == np.inf else found
                        if found != found:
                            out[d, i] = np.nan
                            break
                    elif found < upto:
                        since, from_ = from_, k0
                        for j in range(m):
                            from_, to = _narrow(from_, to, A[j], s[j], closed[j])
                        found, upto = above(from_), above(to)
                        if not found < upto and doubt < 0.0:
                            doubt = since
                    if found < upto:
                        if found <= last:
                            out[d, i] = found
                        break
                    k0 = k1
                if event == n_events or k0 >= last:
                    break
                c = owner[event]
                if kind[event] == _END:
                    moves[c] = False
                    n_moving -= 1
                    x = max(Z[i, column[c]], low[c]) if step[c] > 0 else min(Z[i, column[c]], high[c])
                    end = high[c] if step[c] > 0 else low[c]
                    for j in range(m):
                        # adding and subtracting a slope leaves rounding errors: reset it to 0
                        s[j] = s[j] - weight[c, j] * step[c] if n_moving else 0.0
                        A[j] += weight[c, j] * (end - x)
                        if whole[c]:
                            slack[j] = slack[j] - 0.5 * abs(weight[c, j]) if n_moving else 0.0
                elif kind[event] == _EDGE:
                    for j in range(m):
                        A[j] += jump[which[event], j] if step[c] > 0 else -jump[which[event], j]
                else:
                    for j in range(m):
                        A[j] += gain[c, code[c], j]
            if doubt >= 0.0 and out[d, i] > doubt + CLOSE * max(1.0, doubt):
                out[d, i] = np.nan
