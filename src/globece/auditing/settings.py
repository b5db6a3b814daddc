"""Settings of an audit: levels, sizes, number of random draws, relevance margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from globece.errors import check_choice, check_count, check_flag, check_number, keep_checked, wrong

MOST_DRAWS = 1_000_000
SMALLEST_LEVEL = 1e-9
# Of "auto": at least so many affected inputs, and at most so many for so many expected without recourse.
SMALLEST, MOST_NEEDED, EXPECTED = 30, 100, 3.0
RARE = (0.01, 0.03)  # shares without recourse from which that begins to matter, and matters fully


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How groups are compared.

    Parameters
    ----------
    level
        Significance level: the probability of finding a gap where there is none, over all groups together. Confidence
        intervals have level ``1 - level``.
    smallest
        Fewest affected inputs of a group that is compared; smaller groups are flagged. ``"auto"``: 30, or as many more,
        up to 100, as it takes to expect three people without recourse among them, where some people have none: fewer
        would often show nobody without recourse, whatever the group's true share.
    relevant
        The relevance margin: the smallest gap in score that matters, in units of cost; ``None`` for a share of the
        overall score.
    relevant_share
        That share.
    permutations, resamples
        Number of random permutations for the tests of subgroups, and of bootstrap samples for intervals that have no
        formula (the distance between cost curves, the choice of recourse); at most 1,000,000.
    missing
        ``"group"``: missing values of a group column are a separate group. ``"error"``: they raise.
    checks
        Whether to check for search artefacts: more candidates, other cost models, lower bounds.

    Examples
    --------
    >>> AuditSettings().margin(4.5), AuditSettings(relevant=0.5).margin(4.5)
    (0.9, 0.5)
    >>> (
    ...     [AuditSettings().least(share) for share in (0.0, 0.005, 0.03, 0.05, 0.33)],
    ...     AuditSettings(smallest=20).least(0.05),
    ... )
    ([30, 30, 100, 60, 30], 20)
    """

    level: float = 0.05
    smallest: int | Literal["auto"] = "auto"
    relevant: float | None = None
    relevant_share: float = 0.2
    permutations: int = 1999
    resamples: int = 1000
    missing: Literal["group", "error"] = "group"
    checks: bool = True

    def __post_init__(self) -> None:
        level = check_number("level", self.level, open_low=True, high=1.0)
        if not SMALLEST_LEVEL <= level < 1.0:
            raise wrong("level", f"a number > 0 and < 1, at least {SMALLEST_LEVEL:g}", self.level)
        keep_checked(
            self,
            level=level,
            smallest=_smallest(self.smallest),
            relevant=None if self.relevant is None else check_number("relevant", self.relevant, open_low=True),
            relevant_share=check_number("relevant_share", self.relevant_share, open_low=True),
            permutations=check_count("permutations", self.permutations, low=19, high=MOST_DRAWS),
            resamples=check_count("resamples", self.resamples, low=20, high=MOST_DRAWS),
            missing=check_choice("missing", self.missing, ("group", "error")),
            checks=check_flag("checks", self.checks),
        )

    def least(self, without: float = 0.0) -> int:
        """Fewest affected inputs of a group that is compared, where a share of all people is without recourse."""
        if isinstance(self.smallest, int):
            return self.smallest
        rare = min(without, 1.0 - without)
        if rare <= RARE[0]:
            return SMALLEST
        # where it is rarer than that, it weighs little in the score
        ramp = SMALLEST + (MOST_NEEDED - SMALLEST) * (rare - RARE[0]) / (RARE[1] - RARE[0])
        return int(max(min(np.ceil(EXPECTED / rare - 1e-9), np.ceil(ramp - 1e-9), MOST_NEEDED), SMALLEST))

    def margin(self, score: float) -> float:
        """The relevance margin, given the overall score."""
        return self.relevant_share * score if self.relevant is None else self.relevant


def _smallest(given: object) -> int | Literal["auto"]:
    if isinstance(given, str):
        if given != "auto":
            raise wrong("smallest", "a whole number >= 2, or 'auto'", given)
        return "auto"
    return check_count("smallest", given, low=2)
