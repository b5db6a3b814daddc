"""Cost against k (`fig:costvsk`): it never falls along a direction, but a smaller k may cost another input more.

Directions and inputs are not chosen by hand: of many sampled directions over German Credit's categorical features the
one is taken in which the two statements about pairs of inputs are seen best.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.common import as_array, as_list, case_on
from experiments.figures.drawing import lines_across, name, new_figure
from experiments.markdown import missing_rows
from paper.protocol import sampling

NAME = "cost-vs-k"
POINTS, ROUGH = 400, 40  # along the direction that is drawn, and along all others
TITLES = ("a) Cost never falls with k", "b) A smaller k may cost more", "c) One k costs inputs differently")
MOST = 4  # curves in one panel


def compute(run: Run) -> Data:
    """Sample directions, scale them, and find the inputs that show what the paper says."""
    from globece import as_model
    from globece.case.affected import Affected
    from globece.case.scaling import scale

    on = case_on(run, "german_credit", "xgb", categorical=True)
    Z = on.space.encode(on.rows)[on.affected]
    problem = Affected(as_model(on.own, on.space, favourable=1, rows=on.rows), Z, on.cost, 10.0, 5.0)
    D = sampling("german_credit", 0).propose(problem, 20 if run.quick else 300, np.random.default_rng(0))
    scaled = scale(problem, D)
    pairs = [_reversed_pair(k, c) for k, c in zip(scaled.scalar, scaled.cost, strict=True)]
    best = int(np.argmax([0.0 if pair is None else pair[2] for pair in pairs]))
    reach = scaled.scalar[best][np.isfinite(scaled.scalar[best])]
    k = np.linspace(0, 1.15 * reach.max(initial=1.0), POINTS)
    curves = _curves(on.cost, Z, D[best], k)
    rough = np.linspace(0, 5.0, ROUGH)
    falls = sum(int((np.diff(_curves(on.cost, Z, delta, rough), axis=1) < -1e-9).any(axis=1).sum()) for delta in D)
    spread = np.ptp(curves, axis=0)
    at = int(np.median(np.flatnonzero(spread == spread.max())))  # in the middle of where they differ most
    low, high = int(curves[:, at].argmin()), int(curves[:, at].argmax())
    data: Data = {
        "directions": len(D),
        "inputs": len(Z),
        "falls": falls,
        "reversed": sum(p is not None for p in pairs),
        "k": as_list(k),
        "monotone": as_list(_different(curves)),
        "fixed": {"k": float(k[at]), "curves": as_list(curves[[low, high]]), "all": as_list(np.sort(curves[:, at]))},
    }
    if (pair := pairs[best]) is not None:
        pick = list(pair[:2])
        data["pair"] = {
            "curves": as_list(curves[pick]),
            "k": as_list(scaled.scalar[best][pick]),
            "cost": as_list(scaled.cost[best][pick]),
        }
    return data


def _curves(cost: Any, Z: Any, delta: Any, k: Any) -> Any:
    """Cost of each input at each k: ``(inputs, k)``."""
    from globece import rays

    return np.column_stack([rays.cost_at(cost, Z, delta, np.full(len(Z), value)) for value in k])


def _different(curves: Any) -> Any:
    """A few curves that differ, from the cheapest to the dearest."""
    kinds = np.unique(curves, axis=0)
    kinds = kinds[np.argsort(kinds.sum(axis=1), kind="stable")]
    return kinds[np.unique(np.linspace(0, len(kinds) - 1, MOST).round().astype(int))]


def _reversed_pair(k: Any, cost: Any) -> tuple[int, int, float] | None:
    """Two inputs of which the first flips at a smaller k and pays more; the clearest such pair, and how clear it is."""
    if not np.isfinite(k).any():
        return None
    k, cost = np.where(np.isfinite(k), k, np.nan), np.where(np.isfinite(cost), cost, np.nan)
    later, dearer = k[None, :] - k[:, None], cost[:, None] - cost[None, :]
    clear = np.nan_to_num(np.where((later > 1e-9) & (dearer > 1e-9), later * dearer, 0.0))
    first, second = np.unravel_index(int(clear.argmax()), clear.shape)
    return (int(first), int(second), float(clear[first, second])) if clear[first, second] > 0 else None


def show(found: Mapping[str, Data]) -> Shown:
    """Three panels, for the three statements of the caption."""
    if NAME not in found:
        return Shown(missing_rows(PART, found))
    data = found[NAME]
    fixed = as_array(data["fixed"]["all"])
    pairs = data["directions"] * data["inputs"]
    text = f"""The paper states three things of the cost of a scaled direction: it never falls with k, a smaller k may
cost one input more than a larger k costs another, and one k costs different inputs differently. Here, on
{data["directions"]} sampled directions over German Credit's categorical features and {data["inputs"]} affected inputs,
the cost falls somewhere for {data["falls"]} of {pairs:,} pairs of input and direction; on {data["reversed"]} directions
some input pays more at a smaller minimum scalar than another at a larger one; """
    if "pair" in data:
        (a, b), (c, d) = data["pair"]["k"], data["pair"]["cost"]
        text += f"of the pair drawn one pays {c:.2f} at k = {a:.2f} and the other {d:.2f} at k = {b:.2f}; "
    text += f"at k = {data['fixed']['k']:.2f} the costs go from {fixed.min():.2f} to {fixed.max():.2f}.\n"
    return Shown(text, {NAME: _figure(data)})


def _figure(data: Data) -> Any:
    from globece.plots.style import MUTED, PALETTE

    figure, axes = new_figure(3, 12.6, 3.6)
    k = np.array(data["k"])
    for ax in axes:
        ax.set_xlim(0, k[-1])
    for i, curve in enumerate(data["monotone"]):
        axes[0].plot(k, curve, color=PALETTE[i], linewidth=2, drawstyle="steps-post")
    if "pair" in data:
        for i, curve in enumerate(data["pair"]["curves"]):
            axes[1].plot(k, curve, color=PALETTE[i], linewidth=2, drawstyle="steps-post")
            _mark(axes[1], data["pair"]["k"][i], data["pair"]["cost"][i], PALETTE[i])
    for i, curve in enumerate(data["fixed"]["curves"]):
        axes[2].plot(k, curve, color=PALETTE[i], linewidth=2, drawstyle="steps-post")
    axes[2].axvline(data["fixed"]["k"], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set_ylim(-0.1, max(map(max, [*data["monotone"], *data["fixed"]["curves"]])) + 0.6)
        lines_across(ax)
        name(ax, title, x="scalar k", y="cost")
    return figure


def _mark(ax: Any, k: float, cost: float, colour: str) -> None:
    """A dot where an input flips, with the words where there is room for them."""
    late = k > 0.5 * ax.get_xlim()[1]
    ax.plot([k], [cost], "o", color=colour, markersize=8, zorder=5)
    words = f"flips at k = {k:.2f}, pays {cost:.2f}"
    place = {"ha": "right" if late else "left", "textcoords": "offset points", "fontsize": 8.5}
    ax.annotate(words, (k, cost), (-8 if late else 8, 7), **place)


PART = Part(NAME, "Cost against k", "fig:costvsk", (Cell(NAME, compute, needs=("german_credit",)),), show)
