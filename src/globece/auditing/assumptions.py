"""What would otherwise be assumed in silence: which outcome is favourable, and that sensitive features may move."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from globece.auditing.groups import MISSING, Groups
from globece.compact import Rows
from globece.errors import InvalidParameterError
from globece.models.decision import SIDES, Decision
from globece.space import FeatureSpace

# Parts of names, in lower case.
ADVERSE = frozenset(
    [
        "default",
        "defaulted",
        "defaults",
        "denied",
        "deny",
        "denial",
        "rejected",
        "reject",
        "rejection",
        "declined",
        "decline",
        "refused",
        "refusal",
        "bad",
        "recid",
        "recidivist",
        "recidivism",
        "reoffend",
        "reoffended",
        "arrested",
        "fraud",
        "chargeoff",
        "delinquent",
        "delinquency",
        "bankrupt",
        "bankruptcy",
        "fail",
        "failed",
        "failure",
        "dropout",
        "unfavourable",
        "unfavorable",
        "adverse",
        "charged",
        "dlqin2yrs",
        "overdue",
        "arrears",
        "unpaid",
        "foreclosed",
        "foreclosure",
        "evicted",
        "eviction",
        "convicted",
        "guilty",
        "ineligible",
        "disapproved",
    ]
)
SENSITIVE = frozenset(
    [
        "sex",
        "gender",
        "race",
        "racial",
        "ethnicity",
        "ethnic",
        "religion",
        "religious",
        "nationality",
        "citizenship",
        "foreign",
        "foreigner",
        "immigrant",
        "immigration",
        "marital",
        "married",
        "marriage",
        "relationship",
        "pregnant",
        "pregnancy",
        "disability",
        "disabled",
        "orientation",
        "caste",
        "skin",
        "origin",
        "tribe",
        "veteran",
        "female",
        "male",
        "transgender",
        "native",
        "hispanic",
        "latino",
        "indigenous",
        "birth",
        "birthday",
        "birthdate",
        "birthplace",
        "dob",
    ]
)
AGE = frozenset({"age", "ages"})
# The same where all of these are parts of a name.
ADVERSE_TOGETHER = (frozenset({"high", "risk"}), frozenset({"write", "off"}), frozenset({"past", "due"}))
SENSITIVE_TOGETHER = (frozenset({"family", "status"}), frozenset({"civil", "status"}))
FEW_VALUES = 10  # different values up to which a column of numbers may stand for groups
BY_CHANCE = 1e-4  # probability below which a category in one group alone is no chance


def words(name: str) -> list[str]:
    """The parts of a name, in lower case.

    >>> words("maritalStatus_2"), words("two_year_recid"), words("AGE")
    (['marital', 'status', '2'], ['two', 'year', 'recid'], ['age'])
    """
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return [part for part in re.split(r"[^a-z0-9]+", apart.lower()) if part]


def is_adverse(name: Any) -> bool:
    """Whether a name is one of an outcome that nobody wants.

    >>> [is_adverse(name) for name in ("default", "two_year_recid", "Charged Off", "high_risk", "low risk", "approved")]
    [True, True, True, True, False, False]
    """
    return isinstance(name, str) and _has(words(name), ADVERSE, ADVERSE_TOGETHER)


def _has(parts: Sequence[str], single: frozenset[str], together: Sequence[frozenset[str]]) -> bool:
    return any(part in single for part in parts) or any(all_ <= set(parts) for all_ in together)


def check_not_adverse(name: Any, what: str, argument: str) -> None:
    """Raise if the outcome that would be taken as favourable has such a name."""
    if is_adverse(name):
        raise InvalidParameterError(
            f"{what} {name!r}, which sounds like what nobody wants, and it would be taken as the favourable "
            f"outcome; say which outcome is favourable with {argument}"
        )


def guessed_outcome(decide: Decision, given: Any) -> str | None:
    """A warning if the favourable outcome was guessed; an error if the guess is the name of an unfavourable one."""
    if given is not None or decide.favourable in SIDES:
        return None
    check_not_adverse(decide.favourable, f"{decide.name} predicts", "favourable=")
    among = f" (its classes are {', '.join(map(repr, decide.classes))})" if decide.classes else ""
    return (
        f"the favourable outcome was guessed to be {decide.favourable!r}{among}; if people want another one, "
        "the result is the other way round: say it with favourable="
    )


def unconstrained(space: FeatureSpace) -> list[str]:
    """Features that may move though nobody should be told to change them; age, where it may fall."""
    found = []
    for f in space.movable:
        parts = words(f.name)
        falls = f.kind == "categorical" or f.sense <= 0
        if _has(parts, SENSITIVE, SENSITIVE_TOGETHER) or (falls and any(part in AGE for part in parts)):
            found.append(f.name)
    return found


def unconstrained_warning(names: Sequence[str], space: FeatureSpace) -> str:
    """One warning about them, with the argument that settles it."""
    listed = ", ".join(repr(name) for name in names)
    ages = [n for n in names if space[n].kind != "categorical" and not _has(words(n), SENSITIVE, SENSITIVE_TOGETHER)]
    fixed = [n for n in names if n not in ages]
    settle = [f"immutable={fixed!r}"] if fixed else []
    settle += [f"increasing={ages!r}"] if ages else []
    return (
        f"recourse may change {listed}, which nobody should be told to change; hold them with a space that has "
        f"{' and '.join(settle)} (on the command line: {_options(fixed, ages)})"
    )


def _options(fixed: Sequence[str], ages: Sequence[str]) -> str:
    found = [f"--immutable {','.join(fixed)}"] if fixed else []
    found += [f"--increasing {','.join(ages)}"] if ages else []
    return " ".join(found)


@dataclass(frozen=True, slots=True)
class Proxies:
    """Features that stand for the groups.

    Attributes
    ----------
    features
        Each of whose values occurs in one group only: these are held.
    categories
        By feature the categories that occur in one group only: nobody is moved to these.
    """

    features: tuple[str, ...]
    categories: dict[str, tuple[Any, ...]]

    def hold(self, space: FeatureSpace) -> FeatureSpace:
        """The space in which they are held."""
        permitted = {}
        for name, barred in self.categories.items():
            f = space[name]
            permitted[name] = [c for c, ok in zip(f.categories, f.permitted, strict=True) if ok and c not in barred]
        held = [*self.features, *(name for name, left in permitted.items() if not left)]
        return space.constrain(immutable=held, permitted={n: left for n, left in permitted.items() if left})

    def notes(self, space: FeatureSpace) -> list[str]:
        """What is held, in words."""
        found = []
        if self.features:
            found.append(f"held as a proxy for the groups: {', '.join(self.features)}")
        for name, barred in self.categories.items():
            labels = ", ".join(space[name].label(c) for c in barred)
            found.append(f"nobody is moved to {name} = {labels}, which occurs in one group only")
        return found


def proxies(rows: Rows, parts: Sequence[Groups]) -> Proxies:
    """Find the features that may move and stand for the groups; groups of several columns are tried one by one."""
    features: list[str] = []
    categories: dict[str, tuple[Any, ...]] = {}
    for f in rows.space.movable:
        values = rows.feature(f)
        known = ~np.isnan(values)
        present, codes = np.unique(values[known], return_inverse=True)
        if f.kind == "continuous" and len(present) > FEW_VALUES:
            continue
        bound = np.zeros(len(present), dtype=bool)
        for groups in parts:
            labels = np.where(groups.labels == _missing(groups), -1, groups.labels)
            bound |= _bound(codes, len(present), labels[known], len(groups))
        if len(present) > 1 and bound.all():
            features.append(f.name)
        elif f.is_block and bound.any():
            categories[f.name] = tuple(f.categories[int(v)] for v in present[bound])
    return Proxies(tuple(features), categories)


def _missing(groups: Groups) -> int:
    """Position of those whose group is not known, who say nothing about what stands for a group."""
    return groups.names.index(MISSING) if MISSING in groups.names else len(groups)


def _bound(codes: Any, n_codes: int, labels: Any, n_groups: int) -> Any:
    """Which values occur in one group only, and not by chance."""
    inside = labels >= 0
    counts = np.zeros((n_codes, n_groups))
    np.add.at(counts, (codes[inside], labels[inside]), 1.0)
    total, share = counts.sum(axis=1), counts.sum(axis=0) / max(counts.sum(), 1.0)
    alone = (counts > 0).sum(axis=1) == 1
    with np.errstate(divide="ignore"):
        chance = total * np.log(share[counts.argmax(axis=1)])
    return alone & (chance < np.log(BY_CHANCE))
