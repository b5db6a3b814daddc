"""Figures of an audit: profiles with bands, minimum costs and mean translations by group, the exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from globece import formatting
from globece.auditing import Audit
from globece.auditing.curves import Curve
from globece.auditing.exchange import EVERYBODY, Exchange
from globece.errors import check_choice, check_count, check_instance, require
from globece.plots.axes import Display, cost_axis, cost_bins, coverage_axis, legend_below, no_recourse_label, subject
from globece.plots.style import (
    FAINT,
    INK,
    MUTED,
    colour,
    inches,
    plain,
    set_label,
    wrap,
    write,
)
from globece.space import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTHING = "No group is large enough to be drawn."
LONG = 40  # letters of a group's name, in a legend


@dataclass(frozen=True, slots=True)
class Band:
    """A group's coverage-cost profile, with the interval at each limit as a band.

    Attributes
    ----------
    limit
        Limits on cost, the same for all groups.
    coverage, low, high
        Coverage at each, and the ends of the band.
    n
        Affected inputs.
    """

    limit: FloatArray
    coverage: FloatArray
    low: FloatArray
    high: FloatArray
    n: int


@dataclass(eq=False)
class GroupProfilesDisplay(Display):
    """Coverage-cost profiles of all groups.

    Attributes
    ----------
    bands
        A profile for each group that was judged.
    budget, level
        The most that recourse may cost; the bands hold 1 - level.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    bands: Mapping[str, Band]
    budget: float
    level: float

    @classmethod
    def from_audit(cls, au: Audit) -> Self:
        """Take the profiles out of an audit."""
        check_instance("au", au, Audit)
        bands = {n: Band(c.limit, c.share, c.low, c.high, c.n) for n, c in au.curves.items() if n != EVERYBODY}
        return cls(bands, au.explained.budget, au.settings.level, **subject(au.explained))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the profiles.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        """
        ax = self._begin(ax, (6.4, 4.0), None if self.bands else NOTHING)
        if not self.bands:
            return self
        last = float(next(iter(self.bands.values())).limit[-1])
        end = cost_axis(ax, last, self.budget)
        for i, (name, band) in enumerate(self.bands.items()):
            across, up = np.append(band.limit, end), np.append(band.coverage, band.coverage[-1])
            low, high = np.append(band.low, band.low[-1]), np.append(band.high, band.high[-1])
            ax.fill_between(across, low, high, color=colour(i), alpha=0.18, linewidth=0, step="post")
            label = f"{plain(_short(name, LONG))} ({band.n:,})"
            ax.plot(across, up, color=colour(i), linewidth=2.0, label=label, drawstyle="steps-post")
        coverage_axis(ax)
        self._costs(ax, "limit on cost: the most that anybody pays")
        self._title(ax, f"Coverage by group under shared directions, with {1 - self.level:.0%} bands")
        legend_below(ax, *ax.get_legend_handles_labels(), "group (affected)")
        return self


@dataclass(eq=False)
class GroupCostsDisplay(Display):
    """A histogram of minimum costs for each group, and how many have no recourse.

    Attributes
    ----------
    costs
        Minimum costs of each group's affected inputs.
    scores
        Score of each, with its interval.
    budget
        The most that recourse may cost.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    costs: Mapping[str, FloatArray]
    scores: Mapping[str, tuple[float, float, float]]
    budget: float

    @classmethod
    def from_audit(cls, au: Audit) -> Self:
        """Take the minimum costs out of an audit."""
        check_instance("au", au, Audit)
        names = _judged(au)
        scores = {name: (au.by_group[name].score, *au.by_group[name].score_interval) for name in names}
        costs = {name: au.costs_of(name) if au.members else _from_curve(au.curves[name]) for name in names}
        return cls(costs, scores, au.explained.budget, **subject(au.explained))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw one histogram above the other, as shares of each group, on one axis of costs.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        """
        rows = max(len(self.costs), 1)
        ax = self._begin(ax, (6.4, 1.2 + 1.15 * rows), None if self.costs else NOTHING)
        if not self.costs:
            return self
        paid = np.concatenate([c[np.isfinite(c)] for c in self.costs.values()])
        edges, last = cost_bins(paid, self.budget)
        width = edges[1] - edges[0]
        end = cost_axis(ax, max(last, float(edges[-1])), self.budget)
        shares = {name: np.histogram(c[np.isfinite(c)], edges)[0] / len(c) for name, c in self.costs.items()}
        none = {name: float(np.isinf(c).mean()) for name, c in self.costs.items()}
        tallest = max(max(float(s.max()) for s in shares.values()), *none.values(), 1e-9)
        place, room = end * 1.1, end * 0.08
        ax.set_xlim(0, end * 1.2)
        for i, (name, share) in enumerate(shares.items()):
            base = float(rows - 1 - i)
            ax.bar(edges[:-1] + width / 2, 0.72 * share / tallest, width * 0.9, base, color=colour(i), linewidth=0)
            hatch: dict[str, Any] = {"facecolor": "white", "edgecolor": colour(i), "hatch": "/////", "linewidth": 1.2}
            ax.bar([place], [0.72 * none[name] / tallest], room, base, **hatch)
            write(ax, place, base + 0.72 * none[name] / tallest + 0.02, f"{none[name]:.1%}", size=8.5, ha="center")
            score, low, high = self.scores[name]
            ax.plot([low, high], [base - 0.06] * 2, color=INK, linewidth=1.2)
            ax.plot([score], [base - 0.06], "o", color=INK, markersize=4)
            words = f"{_short(name, LONG)}: score {score:.2f} ({low:.2f} to {high:.2f})"
            write(ax, end * 0.99, base + 0.78, words, size=8.5, ha="right", va="center")
            ax.axhline(base, color=FAINT, linewidth=0.8, zorder=0)
        ax.set_ylim(-0.14, rows - 0.02)
        ax.set_yticks([])
        no_recourse_label(ax, place)
        self._costs(ax, "minimum cost of recourse")
        self._title(ax, "Minimum costs by group (bars: shares of its affected inputs; dot: its score)")
        return self


@dataclass(eq=False)
class GroupTranslationsDisplay(Display):
    """Mean change of each feature over the covered inputs of each group, along the group's directions.

    Attributes
    ----------
    features
        Features that some group moves, dearest first.
    costs
        Mean cost of the changes in each, by group.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    features: tuple[str, ...]
    costs: Mapping[str, FloatArray]

    @classmethod
    def from_audit(cls, au: Audit) -> Self:
        """Take the mean translations out of an audit."""
        check_instance("au", au, Audit)
        found = {name: dict(zip(t.features, t.cost.tolist(), strict=True)) for name, t in au.translations.items()}
        found = {name: found[name] for name in _judged(au)}
        total = {f: sum(cost.get(f, 0.0) for cost in found.values()) for f in dict.fromkeys(chain(*found.values()))}
        order = sorted((f for f in total if total[f] > 0), key=lambda f: -total[f])
        costs = {name: np.array([cost.get(f, 0.0) for f in order]) for name, cost in found.items()}
        return cls(tuple(order), costs, **subject(au.explained))

    def plot(self, ax: Axes | None = None, *, top: int = 10) -> Self:
        """Draw a bar for each feature and group.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        top
            Most features to draw; the others are counted.
        """
        shown = min(check_count("top", top), len(self.features))
        groups = len(self.costs)
        size = (6.4, 1.5 + (0.2 + 0.16 * groups) * max(shown, 2))
        ax = self._begin(ax, size, None if shown else "No feature moves." if self.costs else NOTHING)
        if not shown:
            return self
        width = inches(ax)[0]
        names = ["\n".join(wrap(name, min(0.3 * width, 2.0), 9)) for name in self.features[:shown]]
        y, height = np.arange(shown), 0.78 / groups
        for i, (name, cost) in enumerate(self.costs.items()):
            at = y + (i - (groups - 1) / 2) * height
            ax.barh(at, cost[:shown], height * 0.92, color=colour(i), label=plain(_short(name, LONG)), linewidth=0)
        ax.set_yticks(y, [plain(name) for name in names], fontsize=9)
        ax.set_ylim(shown - 0.45, -0.55)
        ax.grid(axis="x", color=FAINT, linewidth=0.8)
        ax.tick_params(axis="y", length=0)
        more = len(self.features) - shown
        self._costs(ax, "average cost over the covered inputs" + (f" ({more} more features move)" if more else ""))
        self._title(ax, "What each group changes along its own directions")
        legend_below(ax, *ax.get_legend_handles_labels())
        return self


@dataclass(eq=False)
class ExchangeDisplay(Display):
    """The exchange: each group's directions, and everybody's, applied to each group.

    Attributes
    ----------
    exchange
        The matrices.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    exchange: Exchange

    @classmethod
    def from_audit(cls, au: Audit) -> Self:
        """Take the exchange out of an audit."""
        check_instance("au", au, Audit)
        return cls(au.exchange, **subject(au.explained))

    def plot(self, ax: Axes | None = None, *, measure: Literal["score", "coverage", "average_cost"] = "score") -> Self:
        """Draw a matrix with a number in each cell, and a key of its colours; darker is worse.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        measure
            Which of its matrices.
        """
        check_choice("measure", measure, ("score", "coverage", "average_cost"))
        of, to = self.exchange.directions_of, self.exchange.applied_to
        size = (2.4 + 0.95 * max(len(to), 2), 1.6 + 0.5 * len(of))
        ax = self._begin(ax, size, None if to else NOTHING)
        if not to:
            return self
        values = getattr(self.exchange, measure)
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        spread = high - low if high > low else 1.0
        worse = (high - values) / spread if measure == "coverage" else (values - low) / spread
        shade = np.where(np.isinf(values), 1.0, worse)  # no recourse is as bad as it gets
        colours = require("matplotlib.colors", extra="plot", caller="ExchangeDisplay.plot")
        cmap = colours.LinearSegmentedColormap.from_list("worse", ["#eef4fb", "#08306b"])
        image = ax.imshow(shade, cmap=cmap, vmin=0.0, vmax=1.0, aspect="auto")
        self._key(ax, image, measure, low, high)
        for i in range(len(of)):
            for j in range(len(to)):
                value = float(values[i, j])
                text = formatting.share(value) if measure == "coverage" else formatting.cost(value, 2)
                ink, weight = "white" if shade[i, j] > 0.45 else INK, "bold" if of[i] == to[j] else None
                write(ax, j, i, text, color=ink, ha="center", va="center", weight=weight)
        wide = 0.9 * inches(ax)[0] / len(to)
        across = ["\n".join(wrap(_short(name, LONG), max(wide, 0.6), 9)) for name in to]
        ax.set_xticks(range(len(to)), [plain(name) for name in across], fontsize=9)
        down = ["\n".join(wrap(_short(name, LONG), 1.4, 9)) for name in of]
        ax.set_yticks(range(len(of)), [plain(name) for name in down], fontsize=9)
        ax.tick_params(length=0)
        ax.spines["bottom"].set_visible(False)
        if of[-1] == EVERYBODY:
            ax.axhline(len(of) - 1.5, color=MUTED, linewidth=1)
        set_label(ax, "applied to")
        set_label(ax, "directions of", axis="y")
        unit = "" if measure == "coverage" or not self.unit else f" (cost {self.unit})"
        self._title(ax, f"Exchanged directions: {measure.replace('_', ' ')}{unit} of those who did not choose")
        return self

    def _key(self, ax: Axes, image: Any, measure: str, low: float, high: float) -> None:
        """What the colours stand for: the best and the worst value, and the unit."""
        figure: Any = ax.figure
        key = figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
        share = measure == "coverage"
        text = formatting.share if share else formatting.cost
        best, worst = (high, low) if share else (low, high)
        key.set_ticks([0.0, 1.0], labels=[f"{text(best)}\nbest", f"{text(worst)}\nworst"])
        key.ax.tick_params(labelsize=8.5, labelcolor=INK, length=0)
        key.outline.set_visible(False)


def _from_curve(curve: Curve) -> FloatArray:
    """Costs, as exactly as a curve has them."""
    counts = np.rint(np.diff(curve.share, prepend=0.0) * curve.n).astype(np.int64)
    covered = np.repeat(curve.limit, counts)
    return np.concatenate([covered, np.full(max(curve.n - len(covered), 0), np.inf)])


def _judged(au: Audit) -> list[str]:
    return [name for name, m in au.by_group.items() if m.judged]


def _short(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
