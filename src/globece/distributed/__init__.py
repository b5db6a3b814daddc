"""Explanations and audits of tables larger than memory, on one machine or on a cluster.

Directions are searched on a sample; then one pass scales them on every row. :mod:`globece.distributed.task` is the
function of one batch of rows that every engine calls. It needs the extra ``distributed``.
"""

from globece.errors import require

require("pyarrow", extra="distributed", caller="globece.distributed")

from globece.distributed.applying import apply  # noqa: E402
from globece.distributed.auditing import PortfolioAudit, audit  # noqa: E402
from globece.distributed.explaining import explain  # noqa: E402
from globece.distributed.result import Portfolio  # noqa: E402
from globece.distributed.task import Task  # noqa: E402

__all__ = ["Portfolio", "PortfolioAudit", "Task", "apply", "audit", "explain"]
