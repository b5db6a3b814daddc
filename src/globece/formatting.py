"""Shares, costs and tables as text, the same in every view."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

NO_RECOURSE, UNKNOWN = "none", "unknown"


def share(value: float) -> str:
    """A share in percent, or that it is unknown.

    >>> share(0.5), share(math.nan)
    ('50.0%', 'unknown')
    """
    return UNKNOWN if math.isnan(value) else f"{value:.1%}"


def cost(value: float, digits: int = 3) -> str:
    """A cost, or that there is no recourse, or that it is unknown.

    >>> cost(2.0), cost(2.0, 2), cost(math.inf), cost(math.nan)
    ('2.000', '2.00', 'none', 'unknown')
    """
    if math.isnan(value):
        return UNKNOWN
    return NO_RECOURSE if math.isinf(value) else f"{value:.{digits}f}"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for notebooks; the cells are escaped."""
    body = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    heads = "".join(f"<th>{name}</th>" for name in head)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
