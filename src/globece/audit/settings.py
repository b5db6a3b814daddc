"""How an audit is judged: levels, sizes, how often to resample, what gap matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from globece.errors import InvalidParameterError, check_choice, check_count, check_number


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How an audit is judged.

    Parameters
    ----------
    level
        Chance of finding a gap where there is none, over all groups together; intervals have ``1 - level``.
    smallest
        Fewest affected inputs that a group must have to be judged; a smaller one is flagged.
    relevant
        Smallest gap in score that matters, in units of cost: what "not enough evidence" is measured against.
    permutations, resamples
        Random relabellings for the tests, and random samples for the intervals.
    missing
        ``"group"``: missing values of a group column are a group of their own. ``"error"``: they are refused.
    checks
        Whether to look into search artefacts: more candidates, other cost models, lower bounds.

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
        if not 0.0 < check_number("level", self.level, open_low=True) < 1.0:
            raise InvalidParameterError(f"level must be a number > 0 and < 1; got {self.level!r}")
        check_count("smallest", self.smallest, low=2)
        check_number("relevant", self.relevant, open_low=True)
        check_count("permutations", self.permutations, low=19)
        check_count("resamples", self.resamples, low=20)
        check_choice("missing", self.missing, ("group", "error"))
        if not isinstance(self.checks, bool):
            raise InvalidParameterError(f"checks must be True or False; got {self.checks!r}")
