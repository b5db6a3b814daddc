"""Figures with axes: the profile, the minimum costs, the mean translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from globece import rays
from globece.errors import check_choice, check_count, check_instance, check_number, wrong
from globece.explanation import Explanation, MinimumCosts, Profile
from globece.plots.axes import Display, cost_axis, cost_bins, coverage_axis, legend_below, no_recourse_label, subject
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
    set_label,
    share_text,
    signed_text,
    steps_text,
    wrap,
    write,
)
from globece.space import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_BARS = 10_000


@dataclass(eq=False)
class ProfileDisplay(Display):
    """The coverage-cost profile: coverage against a limit on cost.

    Attributes
    ----------
    profile
        The profile of all directions together.
    alone
        The profile of each direction by itself.
    coverage, average_cost, budget
        Where the profile ends, and the most that recourse may cost.
    note
        What to write if there is nothing to draw.
    ax_, figure_
        What was drawn on, once ``plot`` was called.

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

    @classmethod
    def from_explanation(cls, ex: Explanation) -> Self:
        """Take the profiles out of an explanation."""
        check_instance("ex", ex, Explanation)
        alone = tuple(ex.profile(i) for i in range(ex.n_directions))
        note = nobody_affected(ex) or nobody_covered(ex)
        return cls(ex.profile(), alone, ex.coverage, ex.average_cost, ex.budget, note, **subject(ex))

    def plot(self, ax: Axes | None = None, *, x: Literal["limit", "average cost"] = "limit") -> Self:
        """Draw coverage against cost.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        x
            ``"limit"``: the most that anybody pays, so one reads off how many are reached. ``"average cost"``: the
            average over those reached, as in the paper.
        """
        check_choice("x", x, ("limit", "average cost"))
        ax = self._begin(ax, (6.4, 4.0), self.note)
        if self.note:
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
        self._costs(ax, "limit on cost: the most that anybody pays" if limit else "average cost of the covered inputs")
        self._title(ax, f"{self.coverage:.1%} covered at an average cost of {self.average_cost:.2f}")
        if many:
            handles, labels = ax.get_legend_handles_labels()
            legend_below(ax, handles[-1:] + handles[:-1], labels[-1:] + labels[:-1])
        return self


@dataclass(eq=False)
class MinimumCostsDisplay(Display):
    """The minimum cost of each affected input, and how many have no recourse.

    Attributes
    ----------
    costs
        The cheapest direction of each affected input, and its cost.
    n_directions, average_cost, budget
        How many directions there are, the mean cost of the covered inputs, and the most that recourse may cost.
    note
        What to write if there is nothing to draw.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    costs: MinimumCosts
    n_directions: int
    average_cost: float
    budget: float
    note: str | None = None

    @classmethod
    def from_explanation(cls, ex: Explanation) -> Self:
        """Take the minimum costs out of an explanation."""
        check_instance("ex", ex, Explanation)
        return cls(ex.minimum_costs(), ex.n_directions, ex.average_cost, ex.budget, nobody_affected(ex), **subject(ex))

    @property
    def n_without_recourse(self) -> int:
        """Number of affected inputs without recourse within the budget."""
        return int((self.costs.direction < 0).sum())

    def plot(self, ax: Axes | None = None, *, bin_width: float | None = None) -> Self:
        """Draw a histogram, stacked by direction, with a bar of its own for those without recourse.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        bin_width
            Width of a bar in units of cost; a round number by default. Bars are centred on its multiples, so that
            those who change one category stand at 1.
        """
        if bin_width is not None:
            bin_width = check_number("bin_width", bin_width, open_low=True)
            if self.budget / bin_width > MOST_BARS:
                raise wrong("bin_width", f"at least {self.budget / MOST_BARS:g}, for {MOST_BARS:,} bars", bin_width)
        ax = self._begin(ax, (6.4, 4.0), self.note)
        if self.note:
            return self
        covered = self.costs.direction >= 0
        paid, taken = self.costs.cost[covered], self.costs.direction[covered]
        n, none = len(covered), self.n_without_recourse
        edges, last = cost_bins(paid, self.budget, bin_width)
        width = edges[1] - edges[0]
        end = cost_axis(ax, max(last, edges[-1]), self.budget)
        under = np.zeros(len(edges) - 1)
        for i in range(self.n_directions):
            mine, _ = np.histogram(paid[taken == i], edges)
            label = f"direction {i + 1}: {mine.sum():,}"
            ax.bar(edges[:-1] + width / 2, mine, width * 0.9, under, color=colour(i), label=label, linewidth=0)
            under += mine
        height = max(under.max(initial=0), none, 1)
        ax.set_ylim(0, height * 1.16)
        self._draw_nobody(ax, end, none, n)
        late = paid.size > 0 and self.average_cost > 0.5 * end  # the room for words is then at the left
        if paid.size:
            ax.plot([self.average_cost] * 2, [0, height * 1.04], color=INK, linewidth=1.2)
            words = f" average {self.average_cost:.2f} "
            write(ax, self.average_cost, height * 1.06, words, ha="right" if late else "left")
        ax.locator_params(axis="y", integer=True)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.grid(axis="y", color=FAINT, linewidth=0.8)
        set_label(ax, "affected inputs", axis="y")
        self._costs(ax, "minimum cost of recourse")
        self._title(ax, f"{n - none:,} of {n:,} have recourse within the budget, {none:,} have none")
        if self.n_directions > 1:
            legend_below(ax, *ax.get_legend_handles_labels(), "cheapest for")
        return self

    def _draw_nobody(self, ax: Axes, end: float, none: int, n: int) -> None:
        room = end * 0.16
        place = end + room * 0.62
        ax.set_xlim(0, end + room * 1.2)
        ax.bar([place], [none], room * 0.5, facecolor="white", edgecolor=NOBODY, hatch="/////", linewidth=1.2)
        write(ax, place, none, f"{none:,}\n({none / n:.1%})", size=9, ha="center", va="bottom", linespacing=1.05)
        no_recourse_label(ax, place)


@dataclass(eq=False)
class MeanTranslationDisplay(Display):
    """Mean change of each feature that moves, over the covered inputs.

    Attributes
    ----------
    features, costs
        The features that move, dearest first, and the mean cost of the changes in each.
    remarks
        For each feature in words how it changes, and for how many.
    direction
        The direction taken; ``None`` if each input takes its cheapest.
    note
        What to write if there is nothing to draw.
    ax_, figure_
        What was drawn on, once ``plot`` was called.
    """

    features: tuple[str, ...]
    costs: FloatArray
    remarks: tuple[str, ...]
    direction: int | None = None
    note: str | None = None

    @classmethod
    def from_explanation(cls, ex: Explanation, *, direction: int | None = None) -> Self:
        """Take the mean translation out of an explanation.

        Parameters
        ----------
        ex
            The explanation.
        direction
            Take this direction for everybody; by default each input takes its cheapest.
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
        names = tuple(moved.features[i] for i in order)
        return cls(names, moved.cost[order], tuple(remarks), direction, note, **subject(ex))

    def plot(self, ax: Axes | None = None, *, top: int = 12) -> Self:
        """Draw a bar for each feature that moves, as long as its mean cost.

        Parameters
        ----------
        ax
            Axes to draw on; a new figure by default.
        top
            Most features to draw, if there is room for as many; the others are counted.
        """
        shown = min(check_count("top", top), len(self.features))
        ax = self._begin(ax, (6.4, 1.35 + 0.5 * max(shown, 2)), self.note)
        if self.note:
            return self
        width, height = inches(ax)
        names = [wrap(name, min(0.3 * width, 2.0), 9) for name in self.features[:shown]]
        lines = max(map(len, names), default=1)
        shown = max(min(shown, int(height / (0.16 * max(lines, 2)))), 1)
        y, costs = np.arange(shown), self.costs[:shown]
        ax.barh(y, costs, 0.62, color=colour(self.direction or 0), linewidth=0)
        ax.set_yticks(y, [plain("\n".join(name)) for name in names[:shown]], fontsize=9)
        ax.set_ylim(shown - 0.4, -0.6)
        # Remarks stand behind the bars, so the dearest leaves room for its own.
        room, longest = inches(ax)[0], max(float(costs.max()), 1e-9)
        behind = min(max(0.35 * room, min(2.2, 0.5 * room)), room)
        end = longest * room / (room - behind)
        ax.set_xlim(0, end)
        remarks = [wrap(r, room * (1 - c / end) - 0.12, 8.5) for c, r in zip(costs, self.remarks, strict=False)]
        for place, cost, remark in zip(y, costs, remarks, strict=True):
            ax.annotate(
                "\n".join(remark),
                (cost, place),
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
        self._costs(ax, "average cost over the covered inputs" + (f" ({more} more features move)" if more else ""))
        along = "" if self.direction is None else f" along direction {self.direction + 1}"
        self._title(ax, f"What the covered inputs change{along}")
        return self


def _targets(ex: Explanation, directions: FloatArray) -> dict[str, str]:
    """For each categorical feature the category, or categories, that these directions move it to."""
    found: dict[str, list[str]] = {}
    for delta in directions:
        for switch in rays.switches(ex.space, delta):
            label = switch.feature.label(switch.feature.categories[switch.target])
            if label not in found.setdefault(switch.feature.name, []):
                found[switch.feature.name].append(label)
    return {name: " or ".join(labels) for name, labels in found.items()}
