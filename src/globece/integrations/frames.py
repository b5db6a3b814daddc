"""An audit's numbers as fairlearn's ``MetricFrame`` has them, and results as plain flat tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from globece.auditing import Audit
from globece.errors import check_instance, require, wrong
from globece.explanation import Explanation

METRICS = ("rejection_rate", "coverage", "average_cost", "score")
COUNTS = {"count": "n", "affected": "affected"}


@dataclass(frozen=True, eq=False)
class MetricFrames:
    """The part of fairlearn's ``MetricFrame`` that reports, for an audit: same names, same shapes.

    Attributes
    ----------
    overall
        A pandas Series with a value for each metric, over all rows.
    by_group
        A pandas DataFrame with a row for each group, indexed by what defines the groups.
    audit
        Where the numbers come from. It has what a MetricFrame lacks: intervals, tests and a verdict.
    """

    overall: Any
    by_group: Any
    audit: Audit

    def difference(self, method: Literal["between_groups", "to_overall"] = "between_groups") -> Any:
        """Largest difference in each metric, among the groups that are large enough to be compared."""
        return self._each(lambda metric: self.audit.difference(metric, method=method))

    def ratio(self, method: Literal["between_groups", "to_overall"] = "between_groups") -> Any:
        """Smallest ratio of each metric, among the groups that are large enough to be compared."""
        return self._each(lambda metric: self.audit.ratio(metric, method=method))

    def group_min(self) -> Any:
        """Smallest value of each metric."""
        return self.by_group.min()

    def group_max(self) -> Any:
        """Largest value of each metric."""
        return self.by_group.max()

    def _each(self, of: Any) -> Any:
        pandas: Any = require("pandas", extra="frames", caller="MetricFrames")
        return pandas.Series({metric: of(metric) for metric in METRICS})


def metric_frames(audit: Audit) -> MetricFrames:
    """An audit's measures as fairlearn's ``MetricFrame`` reports them, in pandas.

    Examples
    --------
    >>> import numpy as np, globece as gce
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(400, 2))
    >>> au = gce.audit((np.array([1.0, 1.0]), -1.2), X, by=X[:, 0] > 0.5, favourable=1, effort="quick", rng=0)
    >>> frames = metric_frames(au)
    >>> frames.by_group.shape, list(frames.overall.index[:3])
    ((2, 6), ['count', 'affected', 'rejection_rate'])
    """
    check_instance("audit", audit, Audit)
    pandas: Any = require("pandas", extra="frames", caller="metric_frames")
    sources = {**COUNTS, **{metric: metric for metric in METRICS}}
    rows = {name: {k: getattr(m, s) for k, s in sources.items()} for name, m in audit.by_group.items()}
    table = pandas.DataFrame.from_dict(rows, orient="index")
    table.index.name = audit.groups.by
    whole = pandas.Series({k: getattr(audit.overall, s) for k, s in sources.items()})
    return MetricFrames(whole, table, audit)


def flat_table(result: Explanation | Audit) -> Any:
    """One row per affected input, in columns that monitoring tools read (Evidently, for one): pandas, no infinity.

    ``recourse`` says whether there is any, ``cost`` is missing where there is none, ``capped_cost`` counts the budget
    there, and ``direction`` is a category. An audit has the group as well, and needs its members.

    Examples
    --------
    >>> import numpy as np, globece as gce
    >>> ex = gce.explain((np.array([1.0]), -5.0), np.array([[1.0], [2.0], [9.0]]), favourable=1, rng=0)
    >>> list(flat_table(ex).columns)
    ['row', 'recourse', 'cost', 'capped_cost', 'direction']
    """
    pandas: Any = require("pandas", extra="frames", caller="flat_table")
    if isinstance(result, Audit):
        ex, cost = result.explanation, result.cost
    elif isinstance(result, Explanation):
        ex, cost = result, result.minimum_costs().cost
    else:
        raise wrong("result", "an Explanation or an Audit", result)
    covered = np.isfinite(cost)
    columns = {
        "row": np.array(ex.rows),
        "recourse": covered,
        "cost": np.where(covered, cost, np.nan),
        "capped_cost": np.minimum(cost, ex.budget),
    }
    if isinstance(result, Audit):
        names = np.array([*result.groups.names, "none"], dtype=object)
        columns["group"] = pandas.Categorical(names[result.groups.labels[ex.rows]])
    else:
        taken = result.minimum_costs().direction
        columns["direction"] = pandas.Categorical(np.where(taken < 0, "none", (taken + 1).astype(str)))
    return pandas.DataFrame(columns)
