"""Settings of an audit: levels, sizes, number of random draws, relevance margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from globece.errors import check_choice, check_count, check_flag, check_number, keep_checked, wrong

MOST_DRAWS = 1_000_000
SMALLEST_LEVEL = 1e-9


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How groups are compared.

    Parameters
    ----------
    level
        Significance level: the probability of finding a gap where there is none, over all groups together. Confidence
        intervals have level ``1 - level``.
    smallest
        Fewest affected inputs of a group that is compared; smaller groups are flagged.
    relevant
        The relevance margin: the smallest gap in score that matters, in units of cost.
    permutations, resamples
        Number of random permutations for the tests, and of bootstrap samples for the intervals; at most 1,000,000.
    missing
        ``"group"``: missing values of a group column are a separate group. ``"error"``: they raise.
    checks
        Whether to check for search artefacts: more candidates, other cost models, lower bounds.

    Examples
    --------
    >>> AuditSettings(relevant=1.0).smallest
    30
    """

    level: float = 0.05
    smallest: int = 30
    relevant: float = 0.5
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
            smallest=check_count("smallest", self.smallest, low=2),
            relevant=check_number("relevant", self.relevant, open_low=True),
            permutations=check_count("permutations", self.permutations, low=19, high=MOST_DRAWS),
            resamples=check_count("resamples", self.resamples, low=20, high=MOST_DRAWS),
            missing=check_choice("missing", self.missing, ("group", "error")),
            checks=check_flag("checks", self.checks),
        )
