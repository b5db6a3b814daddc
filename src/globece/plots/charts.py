"""Figures with axes: the profile, the minimum costs, the mean translation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from globece import rays
from globece.errors import check_choice, check_count, check_instance, check_number, wrong
from globece.explanation import Explanation, MinimumCosts, Profile
from globece.plots.style import (
    FAINT,
    INK,
    MUTED,
    NOBODY,
    colour,
    inches,
    nobody_affected,
    nobody_covered,
    plain,
    prepare,
    set_label,
    set_title,
    share_text,
    signed_text,
    steps_text,
    wrap,
    write,
    write_note,
)
from globece.space import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_BARS = 10_000
LIMIT = "limit on cost: the most that anybody pays"
LEGEND: dict[str, Any] = {"edgecolor": "none", "fontsize": 8.5, "handlelength": 1.2, "title_fontsize": 8.5}


@dataclass(eq=False)
class ProfileDisplay:
    """The coverage-cost profile: coverage against a limit on cost.

    Attributes
    ----------
    profile
        The profile of all directions together.
    alone
        The profile of each direction alone.
    coverage, average_cost, budget
        Where the profile ends, and the most that recourse may cost.
    note
        Text to show if there is nothing to draw.
    ax_, figure_
        The axes and the figure, after ``plot``.

    Examples
    --------
    >>> import numpy as np, globece as gce
    >>> X = np.array([[1.0], [2.0], [4.0], [9.0]])
    >>> ex = gce.explain(lambda X: X[:, 0] > 5, X, favourable=True, rng=0)
    >>> display = ProfileDisplay.from_explanation(ex)
    >>> display.profile.coverage
    array([0.        , 0.33333333, 0.66666667, 1.        ])
    """

    profile: Profile
    alone: tuple[Profile, ...]
    coverage: float
    average_cost: float
    budget: float
    note: str | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_explanation(cls, ex: Explanation) -> Self:
        """Create the display from an explanation."""
        check_instance("ex", ex, Explanation)
        alone = tuple(ex.profile(i) for i in range(ex.n_directions))
        note = nobody_affected(ex) or nobody_covered(ex)
        return cls(ex.profile(), alone, ex.coverage, ex.average_cost, ex.budget, note)

    def plot(self, ax: Axes | None = None, *, x: Literal["limit", "average cost"] = "limit") -> Self:
        """Draw coverage against cost.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        x
            ``"limit"``: a limit on the cost of each input. ``"average cost"``: the average over the covered inputs, as
            in the paper.
        """
        check_choice("x", x, ("limit", "average cost"))
        self.ax_, self.figure_ = ax, _ = prepare(ax, (6.4, 4.0), "ProfileDisplay.plot")
        if self.note:
            write_note(ax, self.note)
            return self
        limit = x == "limit"
        profiles = (self.profile, *self.alone)
        last = float(self.profile.limit[-1] if limit else max(p.average_cost.max() for p in profiles))
        end = cost_axis(ax, last, self.budget if limit else None)
        many = len(self.alone) > 1

        def draw(profile: Profile, **style: Any) -> None:
            across = np.append(profile.limit, end) if limit else profile.average_cost
            up = np.append(profile.coverage, profile.coverage[-1]) if limit else profile.coverage
            ax.plot(across, up, drawstyle="steps-post" if limit else "default", solid_joinstyle="miter", **style)

        for i, profile in enumerate(self.alone if many else ()):
            draw(profile, color=colour(i), linewidth=1.4, label=f"direction {i + 1} alone", zorder=2)
        together = f"all {len(self.alone)} directions" if many else "direction 1"
        draw(self.profile, color=INK if many else colour(0), linewidth=2.6, label=together, zorder=3 - 2 * many)
        at = last if limit else float(self.profile.average_cost[-1])
        ax.plot([at], [self.coverage], "o", color=INK if many else colour(0), markersize=6, zorder=4, clip_on=False)
        coverage_axis(ax)
        set_label(ax, LIMIT if limit else "average cost of the covered inputs")
        set_title(ax, f"{self.coverage:.1%} covered at an average cost of {self.average_cost:.2f}")
        if many:
            handles, labels = ax.get_legend_handles_labels()
            ax.legend(handles[-1:] + handles[:-1], labels[-1:] + labels[:-1], loc="lower right", **LEGEND)
        return self


@dataclass(eq=False)
class MinimumCostsDisplay:
    """The minimum cost of each affected input, and how many have no recourse.

    Attributes
    ----------
    costs
        The cheapest direction of each affected input, and its cost.
    n_directions, average_cost, budget
        The number of directions, the mean cost of the covered inputs, and the most that recourse may cost.
    note
        Text to show if there is nothing to draw.
    ax_, figure_
        The axes and the figure, after ``plot``.
    """

    costs: MinimumCosts
    n_directions: int
    average_cost: float
    budget: float
    note: str | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_explanation(cls, ex: Explanation) -> Self:
        """Create the display from an explanation."""
        check_instance("ex", ex, Explanation)
        return cls(ex.minimum_costs(), ex.n_directions, ex.average_cost, ex.budget, nobody_affected(ex))

    @property
    def n_without_recourse(self) -> int:
        """Number of affected inputs without recourse within the budget."""
        return int((self.costs.direction < 0).sum())

    def plot(self, ax: Axes | None = None, *, bin_width: float | None = None) -> Self:
        """Draw a histogram, stacked by direction, with a separate bar for those without recourse.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        bin_width
            Width of a bar in units of cost; a round number by default. Bars are centred on its multiples, so that a
            change of one category is at 1.
        """
        if bin_width is not None:
            bin_width = check_number("bin_width", bin_width, open_low=True)
            if self.budget / bin_width > MOST_BARS:
                raise wrong("bin_width", f"at least {self.budget / MOST_BARS:g}, for {MOST_BARS:,} bars", bin_width)
        self.ax_, self.figure_ = ax, _ = prepare(ax, (6.4, 4.0), "MinimumCostsDisplay.plot")
        if self.note:
            write_note(ax, self.note)
            return self
        covered = self.costs.direction >= 0
        paid, taken = self.costs.cost[covered], self.costs.direction[covered]
        n, none = len(covered), self.n_without_recourse
        width, edges, end = cost_bins(ax, paid, self.budget, bin_width)
        under = np.zeros(len(edges) - 1)
        for i in range(self.n_directions):
            mine, _ = np.histogram(paid[taken == i], edges)
            label = f"direction {i + 1}: {mine.sum():,}"
            ax.bar(edges[:-1] + width / 2, mine, width * 0.9, under, color=colour(i), label=label, linewidth=0)
            under += mine
        height = max(under.max(initial=0), none, 1)
        ax.set_ylim(0, height * 1.16)
        self._draw_nobody(ax, end, none, n)
        late = paid.size > 0 and self.average_cost > 0.5 * end  # the free space is then at the left
        if paid.size:
            ax.plot([self.average_cost] * 2, [0, height * 1.04], color=INK, linewidth=1.2)
            words = f" average {self.average_cost:.2f} "
            write(ax, self.average_cost, height * 1.06, words, ha="right" if late else "left")
        ax.locator_params(axis="y", integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.grid(axis="y", color=FAINT, linewidth=0.8)
        set_label(ax, "affected inputs", axis="y")
        set_label(ax, "minimum cost of recourse")
        set_title(ax, f"{n - none:,} of {n:,} have recourse within the budget, {none:,} have none")
        if self.n_directions > 1:
            anchor = (0.0 if late else end / ax.get_xlim()[1], 0.92)
            where: Literal["upper left", "upper right"] = "upper left" if late else "upper right"
            ax.legend(title="cheapest for", alignment="left", loc=where, bbox_to_anchor=anchor, **LEGEND)
        return self

    def _draw_nobody(self, ax: Axes, end: float, none: int, n: int) -> None:
        room = end * 0.16
        x = end + room * 0.62
        ax.set_xlim(0, end + room * 1.2)
        ax.bar([x], [none], room * 0.5, facecolor="white", edgecolor=NOBODY, hatch="/////", linewidth=1.2)
        write(ax, x, none, f"{none:,}\n({none / n:.1%})", size=9, ha="center", va="bottom", linespacing=1.05)
        label_no_recourse(ax, x)


@dataclass(eq=False)
class MeanTranslationDisplay:
    """Mean change of each feature that moves, over the covered inputs.

    Attributes
    ----------
    features, costs
        The features that move, most expensive first, and the mean cost of the changes in each.
    remarks
        For each feature a description of how it changes, and for how many.
    direction
        The direction taken; ``None`` if each input takes its cheapest.
    note
        Text to show if there is nothing to draw.
    ax_, figure_
        The axes and the figure, after ``plot``.
    """

    features: tuple[str, ...]
    costs: FloatArray
    remarks: tuple[str, ...]
    direction: int | None = None
    note: str | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_explanation(cls, ex: Explanation, *, direction: int | None = None) -> Self:
        """Create the display from an explanation.

        Parameters
        ----------
        ex
            The explanation.
        direction
            The direction that all inputs take; by default each takes its cheapest.
        """
        check_instance("ex", ex, Explanation)
        if direction is not None:
            direction = check_count("direction", direction, low=0)
        note = nobody_affected(ex) or nobody_covered(ex)
        moved = ex.mean_translation(direction if ex.n_directions else None)
        order = [i for i in np.argsort(-moved.cost, kind="stable") if moved.share[i] > 0]
        used = ex.directions if direction is None else ex.directions[direction : direction + 1]
        targets, remarks = _targets(ex, used), []
        for i in order:
            feature = ex.space.features[i]
            unit = steps_text(moved.change[i]) if feature.kind == "ordinal" else ""
            how = (
                f"to {targets[feature.name]}"
                if feature.is_block
                else f"{signed_text(moved.change[i])}{unit} on average"
            )
            remarks.append(f"{how}; {share_text(moved.share[i])} change it")
        if not order:
            note = note or "No feature moves."
        return cls(tuple(moved.features[i] for i in order), moved.cost[order], tuple(remarks), direction, note)

    def plot(self, ax: Axes | None = None, *, top: int = 12) -> Self:
        """Draw the mean cost of each feature that moves as a bar.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        top
            Most features to draw, if they fit; the others are counted.
        """
        shown = min(check_count("top", top), len(self.features))
        size = (6.4, 1.35 + 0.5 * max(shown, 2))
        self.ax_, self.figure_ = ax, _ = prepare(ax, size, "MeanTranslationDisplay.plot")
        if self.note:
            write_note(ax, self.note)
            return self
        width, height = inches(ax)
        names = [wrap(name, min(0.3 * width, 2.0), 9) for name in self.features[:shown]]
        lines = max(map(len, names), default=1)
        shown = max(min(shown, int(height / (0.16 * max(lines, 2)))), 1)
        y, costs = np.arange(shown), self.costs[:shown]
        ax.barh(y, costs, 0.62, color=colour(self.direction or 0), linewidth=0)
        ax.set_yticks(y, [plain("\n".join(name)) for name in names[:shown]], fontsize=9)
        ax.set_ylim(shown - 0.4, -0.6)
        # Remarks follow the bars, so the longest bar leaves room for one.
        room, longest = inches(ax)[0], max(float(costs.max()), 1e-9)
        behind = min(max(0.35 * room, min(2.2, 0.5 * room)), room)
        end = longest * room / (room - behind)
        ax.set_xlim(0, end)
        remarks = [wrap(r, room * (1 - c / end) - 0.12, 8.5) for c, r in zip(costs, self.remarks, strict=False)]
        for at, cost, remark in zip(y, costs, remarks, strict=True):
            ax.annotate(
                "\n".join(remark),
                (cost, at),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                color=MUTED,
                parse_math=False,
            )
        ax.grid(axis="x", color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines["left"].set_color(INK)
        ax.tick_params(axis="y", length=0)
        more = len(self.features) - shown
        set_label(ax, "average cost over the covered inputs" + (f" ({more} more features move)" if more else ""))
        along = "" if self.direction is None else f" along direction {self.direction + 1}"
        set_title(ax, f"What the covered inputs change{along}")
        return self


def _targets(ex: Explanation, directions: FloatArray) -> dict[str, str]:
    """For each categorical feature the categories that these directions move it to."""
    found: dict[str, list[str]] = {}
    for delta in directions:
        for switch in rays.switches(ex.space, delta):
            label = switch.feature.label(switch.feature.categories[switch.target])
            if label not in found.setdefault(switch.feature.name, []):
                found[switch.feature.name].append(label)
    return {name: " or ".join(labels) for name, labels in found.items()}


def coverage_axis(ax: Axes) -> None:
    """Lay out the axis of coverage."""
    ax.set_ylim(0.0, 1.06)
    ax.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0%", "25%", "50%", "75%", "100%"])
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    set_label(ax, "coverage of the affected inputs", axis="y")


def label_no_recourse(ax: Axes, x: float) -> None:
    """Label the bar for those without recourse below the axis."""
    style: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 9, "color": INK, "linespacing": 1.0}
    ax.text(x, -0.025, "no\nrecourse", transform=ax.get_xaxis_transform(), **style)


def cost_bins(ax: Axes, paid: FloatArray, budget: float, width: float | None = None) -> tuple[float, FloatArray, float]:
    """Width and edges of the bins of a histogram of costs, and where the axis ends."""
    last = float(paid.max()) if paid.size else budget
    width = width or _round_width(last / 24)
    edges = (np.arange(int(last / width + 0.5) + 2, dtype=np.float64) - 0.5) * width
    return width, edges, cost_axis(ax, max(last, float(edges[-1])), budget)


def cost_axis(ax: Axes, last: float, budget: float | None) -> float:
    """Lay out the axis of costs and return where it ends.

    It extends to the budget. If all costs are far below, the axis is broken, with the budget after the break.
    """
    if budget is None:
        end = last * 1.08
        ax.set_xlim(0, end)
        return end
    broken = last < 0.45 * budget
    end = last * 1.3 if broken else budget
    ax.set_xlim(0, end)
    ticks = [t for t in ax.get_xticks() if 0 <= t <= (last * 1.12 if broken else budget * 1.0001)]
    ax.set_xticks(
        [*ticks, *([end] if broken else [])], [*(f"{t:g}" for t in ticks), *([f"{budget:g}"] if broken else [])]
    )
    dashes: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (4, 3)), "clip_on": False}
    ax.plot([end, end], [0, 1], transform=ax.get_xaxis_transform(), color=MUTED, **dashes)
    ax.annotate(
        "budget",
        (end, 1.0),
        (-3, 0),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8.5,
        color=MUTED,
    )
    if broken:
        style: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False, "color": MUTED}
        gap = last * 1.21
        ax.plot([gap], [0], marker=(2, 0, -20), markersize=9, linestyle="none", zorder=6, **style)
        ax.plot([gap + end * 0.012], [0], marker=(2, 0, -20), markersize=9, linestyle="none", zorder=6, **style)
    return end


def _round_width(width: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** np.floor(np.log10(max(width, 1e-9)))
    return float(next(power * m for m in (1, 2, 5, 10) if power * m >= width * (1 - 1e-9)))
