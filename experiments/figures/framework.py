"""The framework in two dimensions (`fig:globeces`): sample, cover, choose, scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.common import as_array, as_list
from experiments.figures.drawing import name, new_figure
from experiments.markdown import missing_rows

NAME = "framework"
COST = 3.5  # the fixed cost at which directions are sampled
SHADES = ("#F6D9C6", "#CFE3F1")  # unfavourable, favourable: pale vermilion and pale blue
BEFORE, AFTER, WAY = "#D55E00", "#0072B2", "#8A8A8A"


def compute(run: Run) -> Data:
    """Train a small network on two moons, sample directions at one cost, choose at k = 1, scale exactly."""
    from sklearn.neural_network import MLPClassifier

    from globece import CostModel, FeatureSpace, as_model, rays
    from globece.case.affected import Affected
    from globece.case.scaling import scale

    X, y = _moons(np.random.default_rng(0), 120 if run.quick else 300)
    net = MLPClassifier((16, 16), max_iter=400, alpha=1e-3, solver="lbfgs", random_state=0).fit(X, y)
    space = FeatureSpace.from_matrix(X, columns=["first feature", "second feature"], ranges="unbounded")
    cost = CostModel.bins(space, norm="l2")
    model = as_model(net, space, favourable=1, rows=X)
    affected = X[~model.favourable(X)][: 20 if run.quick else 60]
    angles = np.linspace(0, 2 * np.pi, 9 if run.quick else 25)[:-1]
    D = cost.normalise(np.column_stack([np.cos(angles), np.sin(angles)]) / cost.rates, COST)
    at_one = [float(model.favourable(rays.positions(space, affected, delta, 1.0)).mean()) for delta in D]
    chosen = int(np.argmax(at_one))
    scaled = scale(Affected(model, affected, cost, 20.0), D[chosen : chosen + 1])
    margin = 0.45
    low, high = X.min(axis=0) - margin, X.max(axis=0) + margin
    across, up = (np.linspace(low[i], high[i], 25 if run.quick else 160) for i in (0, 1))
    grid = np.column_stack([g.ravel() for g in np.meshgrid(across, up)])
    yes = model.favourable(grid).reshape(len(up), len(across)).astype(int)
    return {
        "exact": bool(model.exact),
        "across": as_list(across),
        "up": as_list(up),
        "favourable": ["".join(map(str, row)) for row in yes.tolist()],
        "inputs": as_list(affected),
        "directions": as_list(D),
        "coverage": at_one,
        "chosen": chosen,
        "k": as_list(scaled.scalar[0]),
        "cost": as_list(scaled.cost[0]),
    }


def _moons(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Two interleaved half circles with noise; the upper one is unfavourable."""
    angle = rng.random(n) * np.pi
    upper = np.arange(n) % 2 == 0
    x = np.where(upper, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.35 - np.sin(angle))
    return np.column_stack([x, y]) + rng.normal(0, 0.14, (n, 2)), (~upper).astype(int)


def show(found: Mapping[str, Data]) -> Shown:
    """Four panels, as the paper has them."""
    if NAME not in found:
        return Shown(missing_rows(PART, found))
    data = found[NAME]
    costs = as_array(data["cost"])
    best, reached = data["coverage"][data["chosen"]], float(np.isfinite(costs).mean())
    paid = costs[np.isfinite(costs)]
    text = f"""The paper draws its algorithm on a sketch. Here it runs: a small ReLU network on two half circles, costs
in l2, {len(data["directions"])} directions at the cost {COST:g}, and minimum scalars
{"exactly" if data["exact"] else "by search"}. At k = 1 the best direction covers {best:.0%} of the {len(costs)}
affected inputs; when each of them is scaled by its own k, it covers {reached:.0%} at an average cost of
{paid.mean() if paid.size else float("nan"):.2f}, instead of {COST:g} for everybody.\n"""
    return Shown(text, {"framework": _figure(data)})


def _figure(data: Data) -> Any:
    figure, axes = new_figure(4, 13.2, 3.7)
    titles = (
        "Negative predictions",
        "Directions at a fixed cost,\nand the coverage of each",
        "The one that covers most\nat k = 1",
        "Every input scaled by its own k",
    )
    x = np.array(data["inputs"])
    for ax, title in zip(axes, titles, strict=True):
        _background(ax, data)
        name(ax, title)
    axes[0].plot(*x.T, "o", color=BEFORE, markersize=4)
    _sampled(axes[1], data, x)
    _fixed(axes[2], data, x)
    _scaled(axes[3], data, x)
    return figure


def _background(ax: Any, data: Data) -> None:
    from matplotlib.colors import ListedColormap

    across, up = data["across"], data["up"]
    ax.imshow(
        [[int(v) for v in row] for row in data["favourable"]],
        extent=(across[0], across[-1], up[0], up[-1]),
        origin="lower",
        aspect="auto",
        cmap=ListedColormap(SHADES),
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)


def _sampled(ax: Any, data: Data, x: Any) -> None:
    """Arrows from the mean input, labelled with what each would cover."""
    ax.plot(*x.T, "o", color=BEFORE, markersize=3, alpha=0.25)
    D, start, best = np.array(data["directions"]), x.mean(axis=0), max(data["coverage"]) or 1.0
    for i, (delta, share) in enumerate(zip(D, data["coverage"], strict=True)):
        end = start + delta
        dark = 0.25 + 0.75 * share / best
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#222222", "alpha": dark, "linewidth": 1})
        if i % 2 == 0:  # every second one: they would stand on each other
            words = {"fontsize": 7.5, "ha": "center", "va": "center", "color": "#222222"}
            ax.text(*(start + 1.13 * delta), f"{share:.0%}", **words)


def _fixed(ax: Any, data: Data, x: Any) -> None:
    after = x + np.array(data["directions"])[data["chosen"]]
    flips = as_array(data["k"]) <= 1.0
    for a, b in zip(x, after, strict=True):
        ax.plot([a[0], b[0]], [a[1], b[1]], ":", color=WAY, linewidth=0.8)
    ax.plot(*x.T, "o", color=BEFORE, markersize=3, alpha=0.35)
    ax.plot(*after[~flips].T, "X", color=BEFORE, markersize=5)
    ax.plot(*after[flips].T, "o", color=AFTER, markersize=4)


def _scaled(ax: Any, data: Data, x: Any) -> None:
    k = as_array(data["k"])
    covered = np.isfinite(k)
    delta = np.array(data["directions"])[data["chosen"]]
    after = x[covered] + k[covered, None] * delta
    for a, b in zip(x[covered], after, strict=True):
        ax.plot([a[0], b[0]], [a[1], b[1]], ":", color=WAY, linewidth=0.8)
    ax.plot(*x.T, "o", color=BEFORE, markersize=3, alpha=0.35)
    ax.plot(*after.T, "o", color=AFTER, markersize=4)


PART = Part(NAME, "The framework in two dimensions", "fig:globeces", (Cell(NAME, compute),), show)
