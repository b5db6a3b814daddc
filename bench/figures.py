"""Draw the paper's Fast AReS figures from the stored series: ``python -m bench.figures``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
OUT = HERE.parent / "docs" / "figures"


def main() -> None:
    """Write one PNG for fig:fastares and one for fig:effectofq."""
    result = json.loads((HERE / "results" / "ares.json").read_text())["result"]
    OUT.mkdir(parents=True, exist_ok=True)
    ground_set(result["series"], OUT / "fast-ares.png")
    effect_of_q(result["effect_of_q"], OUT / "effect-of-q.png")


def ground_set(series: list[dict[str, Any]], path: Path) -> None:
    """Size of the ground set and accuracy against the time that it takes to make it, by method."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for method in dict.fromkeys(s["method"] for s in series):
        mine = sorted((s for s in series if s["method"] == method), key=lambda s: s["triples"])
        time = [s["generate_s"] for s in mine]
        (line,) = axes[0].plot(time, [s["triples"] for s in mine], "o-", label=method)
        accuracy(axes[1], time, mine, method, line.get_color())
    axes[0].set(xscale="log", yscale="log", xlabel="seconds to generate", ylabel="triples in the ground set")
    axes[1].set(xscale="log", xlabel="seconds to generate", ylabel="accuracy (%)")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, fontsize=7)
    figure.suptitle("Generating the ground set, as the support falls", fontsize=10)
    figure.savefig(path, dpi=130)


def accuracy(ax: Any, x: list[float], mine: list[dict[str, Any]], method: str, colour: str) -> None:
    """Accuracy of the ground set, and of the rules chosen from it."""
    ax.plot(x, [100 * s["accuracy_V"] for s in mine], "o-", color=colour, label=f"{method}: ground set V")
    ax.plot(x, [100 * s["accuracy_R"] for s in mine], "s--", color=colour, mfc="none", label=f"{method}: rules R")


def effect_of_q(series: list[dict[str, Any]], path: Path) -> None:
    """Accuracy against the size of the ground set: q, the support of the Then's itemsets, varied, or p."""
    figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for i, method in enumerate(dict.fromkeys(s["method"] for s in series)):
        mine = sorted((s for s in series if s["method"] == method), key=lambda s: s["triples"])
        accuracy(ax, [s["triples"] for s in mine], mine, method, f"C{i}")
    ax.set(xscale="log", xlabel="triples in the ground set", ylabel="accuracy (%)")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize=7)
    ax.set_title("The effect of q", fontsize=10)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
