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


def at_most(value: float, digits: int = 4) -> str:
    """A number >= 0 with a few significant digits, never rounded down: "at most" stays true.

    >>> at_most(21.0), at_most(14.2181), at_most(0.04761), at_most(123456.0), at_most(0.0), at_most(0.1 + 0.2)
    ('21', '14.22', '0.04761', '123,456', '0', '0.3')
    """
    if not math.isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else UNKNOWN
    if value == round(value):
        return f"{value:,.0f}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    unit = 10.0 ** -max(places, 0)
    rounded = math.ceil(value / unit * (1.0 - 1e-12)) * unit
    text = f"{rounded:,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed_at_most(value: float) -> str:
    """The same with a sign: the size is never rounded down.

    >>> signed_at_most(-20.9996), signed_at_most(3.0)
    ('-21', '+3')
    """
    return ("-" if value < 0 else "+") + at_most(abs(value))


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for notebooks; everything in it is escaped."""
    body = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def plain_number(value: float) -> str:
    """A number as a person writes it: whole ones in full, others with five significant digits.

    >>> plain_number(1234567.0), plain_number(0.123456), plain_number(-2.5)
    ('1,234,567', '0.12346', '-2.5')
    """
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.5g}"
