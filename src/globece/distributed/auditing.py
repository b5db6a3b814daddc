"""Audit a table that is larger than memory: groups compared on a sample, then measured on all rows.

The sample is audited as :func:`globece.audit` does it: candidates, folds, tests and a verdict. The directions that it
chose for each group are then scaled on every row. So the groups' measures are of all their members, under directions
that were chosen without nearly all of these, and what is left of chance is told by the intervals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from globece import api
from globece.auditing import Audit, AuditSettings
from globece.case.posing import Seed, check_budget, check_space
from globece.case.recourse import Numbers
from globece.costs import CostModel
from globece.distributed.applying import opened, scaled
from globece.distributed.drawing import Z95, Plan, draw
from globece.distributed.engines import engine_of
from globece.distributed.explaining import WITHIN, seed_of
from globece.distributed.manifest import replace_with
from globece.distributed.result import SUMMARY, Portfolio
from globece.distributed.sampling import FRAMES
from globece.distributed.summary import Costs, Group
from globece.distributed.task import EVERYBODY, Task
from globece.errors import InvalidParameterError, check_choice, check_mapping, check_number, describe
from globece.progress import Progress, monitoring
from globece.search import Effort
from globece.settings import Settings
from globece.space import FeatureSpace

Interval = tuple[float, float]
NOT_KNOWN = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class GroupNumbers:
    """Measures of a group over all its rows, each with a 95 % interval.

    Attributes
    ----------
    rows, affected
        Number of its rows, and of those that are affected.
    rejection_rate, coverage, average_cost, score
        As for :class:`globece.auditing.measures.Measures`, under the directions chosen for the group.
    rejection_rate_interval, coverage_interval, score_interval
        For the population that the rows are a sample of: Wilson's for shares, normal for the score.
    """

    rows: int
    affected: int
    rejection_rate: float
    coverage: float
    average_cost: float
    score: float
    rejection_rate_interval: Interval
    coverage_interval: Interval
    score_interval: Interval

    @classmethod
    def of(cls, rows: int, costs: Costs) -> GroupNumbers:
        """From the costs of its affected inputs."""
        n = costs.numbers
        half = Z95 * float(np.sqrt(costs.variance / n.n_affected)) if n.n_affected > 1 else float("nan")
        return cls(
            rows=rows,
            affected=n.n_affected,
            rejection_rate=n.n_affected / rows if rows else float("nan"),
            coverage=n.coverage,
            average_cost=n.average_cost,
            score=n.score,
            rejection_rate_interval=wilson(n.n_affected, rows),
            coverage_interval=wilson(n.n_covered, n.n_affected),
            score_interval=(n.score - half, n.score + half),
        )


@dataclass(frozen=True, slots=True)
class GroupGap:
    """The difference of two groups in a measure, over all rows, with a 95 % interval."""

    group: str
    other: str
    measure: str
    value: float
    interval: Interval


@dataclass(frozen=True, eq=False)
class PortfolioAudit:
    """Whether one group's recourse costs more, or covers fewer, than another's, on a large table.

    Attributes
    ----------
    sample
        The audit of the sample, with its verdict.
    portfolio
        All directions that a group, or everybody, chose, on all rows.
    by_group, overall
        Measures over all rows.
    exchange
        By group and by whose directions it is offered, the numbers of its recourse over all rows.
    """

    sample: Audit
    portfolio: Portfolio
    by_group: Mapping[str, GroupNumbers]
    overall: GroupNumbers
    exchange: Mapping[str, Mapping[str, Numbers]]

    def gap(self, group: str, other: str, measure: str = "score") -> GroupGap:
        """The difference of two groups in a measure: ``"score"``, ``"coverage"`` or ``"rejection_rate"``."""
        check_choice("measure", measure, ("score", "coverage", "rejection_rate"))
        for name in (group, other):
            check_choice("group", name, tuple(self.by_group))
        a, b = self.by_group[group], self.by_group[other]
        value = getattr(a, measure) - getattr(b, measure)
        low, high = (getattr(side, f"{measure}_interval") for side in (a, b))
        # each side's own distance to the end of its interval (Newcombe 1998, method 10)
        down = float(np.hypot(getattr(a, measure) - low[0], high[1] - getattr(b, measure)))
        up = float(np.hypot(low[1] - getattr(a, measure), getattr(b, measure) - high[0]))
        return GroupGap(group, other, measure, value, (value - down, value + up))

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "conclusion": self.sample.verdict.conclusion,
            "groups": {name: {f: getattr(g, f) for f in g.__slots__} for name, g in self.by_group.items()},
            "exchange": {
                name: {s: {"coverage": n.coverage, "score": n.score} for s, n in row.items()}
                for name, row in self.exchange.items()
            },
            "portfolio": self.portfolio.to_dict(),
        }

    def __str__(self) -> str:
        """The audit in a few lines."""
        lines = [f"On a sample: {self.sample.verdict}", "", f"On all {self.portfolio.n_rows:,} rows:"]
        for name, g in {**self.by_group, EVERYBODY: self.overall}.items():
            low, high = g.score_interval
            lines.append(
                f"{name}: {g.affected:,} of {g.rows:,} affected ({g.rejection_rate:.1%}); coverage {g.coverage:.1%}, "
                f"score {g.score:.3f} ({low:.3f} to {high:.3f})"
            )
        return "\n".join(lines)


def audit(
    model: Any,
    source: Any,
    *,
    by: Any,
    out: Any = None,
    row_id: str | None = None,
    client: Any = None,
    jobs: int | None = None,
    favourable: Any = None,
    threshold: float | None = None,
    space: FeatureSpace | None = None,
    cost: CostModel | None = None,
    n_directions: int = 3,
    budget: float = 10.0,
    effort: Effort = "default",
    rng: Seed = 0,
    within: float = WITHIN,
    constraints: Mapping[str, Any] | None = None,
    frame: str = "pandas",
    progress: bool | Callable[[Progress], None] = False,
    time_limit: float | None = None,
    settings: Settings | None = None,
    audit_settings: AuditSettings | None = None,
) -> PortfolioAudit:
    """Compare the recourse of groups on a table that may be larger than memory.

    Parameters
    ----------
    by
        A column, a list of columns, or a mapping of columns to the edges of bins: each row's group must follow from the
        row alone.
    audit_settings
        How the sample is audited; see :class:`globece.AuditSettings`.
    model, source, out, row_id, client, jobs, favourable, threshold, space, cost, n_directions, budget, effort, rng, \
within, constraints, frame, progress, time_limit, settings
        As for :func:`globece.distributed.explain`.
    """
    plan = Plan(
        model=model,
        space=check_space(space),
        frame=check_choice("frame", frame, FRAMES),
        row_id=row_id,
        within=check_number("within", within, open_low=True, high=1.0),
        seed=seed_of(rng),
        constraints=check_mapping("constraints", constraints, "parameter of FeatureSpace.from_frame to its value"),
        wishes={
            "favourable": favourable,
            "threshold": threshold,
            "cost": cost,
            "budget": check_budget(budget),
            "settings": settings,
        },
        by=check_by(by),
    )
    table = opened(source, client, row_id)
    engine = engine_of(jobs, table)
    with monitoring(progress, None) as monitor:
        drawn = draw(plan, table, engine, monitor)
        monitor("auditing the sample", 0, 1)
        found = api.audit(
            model, drawn.X, by=by, space=drawn.space, n_directions=n_directions, effort=effort, rng=plan.seed,
            time_limit=time_limit, audit_settings=audit_settings, **plan.wishes,
        )  # fmt: skip
        monitor("auditing the sample", 1, 1)
        ex = found.explanation
        task = Task.of(ex, row_id=row_id, by=by, sets={name: tuple(own) for name, own in found.own.items()})
        summary, task = scaled(task, table, engine, ex.encoded, out, monitor)
    portfolio = Portfolio.of(ex, task, summary, table, out)
    return _result(found, portfolio)


def check_by(by: Any) -> Any:
    """Validate what groups are formed from."""
    allowed = "a column, a list of columns, or a mapping of columns to the edges of bins"
    parts = [by] if isinstance(by, (str, Mapping)) else by if isinstance(by, list) and by else []
    for part in parts:
        if isinstance(part, Mapping) and not all(isinstance(v, (list, tuple)) for v in part.values()):
            raise InvalidParameterError(f"by must be {allowed}: a row's group must follow from the row; got {by!r}")
        if not isinstance(part, (str, Mapping)):
            parts = []
            break
    if not parts:
        raise InvalidParameterError(f"by must be {allowed}; got {describe(by)}")
    return by


def wilson(hits: int, n: int) -> Interval:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if not n:
        return NOT_KNOWN
    share, z = hits / n, Z95 * Z95 / n
    middle, half = share + z / 2, Z95 * float(np.sqrt(share * (1 - share) / n + z / (4 * n)))
    low, high = (middle - half) / (1 + z), (middle + half) / (1 + z)
    return (low if hits else 0.0), (high if hits < n else 1.0)


def _result(found: Audit, portfolio: Portfolio) -> PortfolioAudit:
    summary = portfolio.summary
    sets = {name for group in summary.groups.values() for name in group.costs}

    def own(name: str, group: Group) -> Costs:
        return group.costs[name if name in sets else EVERYBODY]

    result = PortfolioAudit(
        sample=found,
        portfolio=portfolio,
        by_group={name: GroupNumbers.of(g.rows, own(name, g)) for name, g in summary.groups.items()},
        overall=GroupNumbers.of(summary.rows, summary.everybody),
        exchange={name: {s: c.numbers for s, c in g.costs.items()} for name, g in summary.groups.items()},
    )
    if portfolio.path is not None:
        replace_with(Path(portfolio.path) / SUMMARY, json.dumps(result.to_dict()).encode())
    return result
