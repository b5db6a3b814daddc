"""The decision table: what follows from the gap of each comparison and a relevance margin.

=========================== ==================================================================================
conclusion                  the interval of the gap
=========================== ==================================================================================
relevant bias               lies wholly beyond the relevance margin
gap, relevance open         excludes 0 and reaches across the margin
detectable but negligible   excludes 0 and lies within the margin
equivalent                  holds 0, and two one-sided tests find the gap to lie within the margin
not enough evidence         holds 0, and reaches across the margin; or cannot be computed
=========================== ==================================================================================

The intervals of all comparisons hold at once. The verdict on the whole is the worst of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from globece.auditing import statistics as st
from globece.auditing.settings import AuditSettings

RELEVANT, OPEN = "relevant bias", "gap, relevance open"
NEGLIGIBLE, EQUIVALENT = "detectable but negligible", "equivalent"
UNKNOWN = "not enough evidence"
# The worst first: what is not known may be as bad as what is open.
CONCLUSIONS = (RELEVANT, OPEN, UNKNOWN, NEGLIGIBLE, EQUIVALENT)


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from one comparison.

    Attributes
    ----------
    conclusion
        One of the five.
    margin
        The relevance margin, in units of cost.
    within
        Interval of the two one-sided tests: inside the margin, if the groups are equivalent.
    p_within
        p-value of these tests, corrected for the number of comparisons.
    power
        Power of the test for a gap as large as the margin.
    """

    conclusion: str
    margin: float
    within: tuple[float, float]
    p_within: float
    power: float


def decided(gap: st.Contrast, settings: AuditSettings, n_tests: int, margin: float) -> Decision:
    """Draw the conclusion from one of several comparisons of scores."""
    alpha = st.each_level(settings.level, n_tests)
    low, high = gap.interval(alpha)
    inner = gap.interval(min(2 * alpha, 1.0))
    p_within = st.corrected(gap.p_inside(margin), n_tests)
    power = gap.power(margin, alpha)
    return Decision(_conclusion((low, high), inner, margin), margin, inner, p_within, power)


def _conclusion(outer: tuple[float, float], inner: tuple[float, float], margin: float) -> str:
    low, high = outer
    if not np.isfinite([low, high, margin]).all() or margin <= 0:
        return UNKNOWN
    if low > 0 or high < 0:
        if low > margin or high < -margin:
            return RELEVANT
        return NEGLIGIBLE if -margin < low and high < margin else OPEN
    return EQUIVALENT if -margin < inner[0] and inner[1] < margin else UNKNOWN


def worst(conclusions: Sequence[str]) -> str:
    """The worst of several conclusions; not enough evidence, if there are none.

    >>> worst([EQUIVALENT, OPEN, UNKNOWN]), worst([])
    ('gap, relevance open', 'not enough evidence')
    """
    return min(conclusions, key=CONCLUSIONS.index, default=UNKNOWN)
