"""What a page says that no result knows: its title, the words for features and values, and where the data came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from globece.errors import InvalidParameterError, check_flag, check_mapping, check_seed, describe
from globece.features import Feature

LONGEST = 2000  # letters of a text


@dataclass(frozen=True, slots=True)
class About:
    """Words and origin of a report; everything has a default, and what is not given is said to be not recorded.

    Attributes
    ----------
    title, question
        What stands at the top. By default the model's name, and the question that the result answers.
    people
        What the rows are: ``"applicants"``.
    favourable
        What the favourable outcome is: ``"approved"``.
    units
        Unit by feature: ``{"Duration": "months"}``.
    labels
        What to call a feature: ``{"Duration": "loan duration"}``.
    values
        What to call a category: ``{"A14": "no checking account"}``, or ``{"Account = A14": ...}`` for one feature's.
    data, model
        What the data and the model are called: file names, for instance.
    data_sha256, model_sha256
        Their fingerprints.
    seed
        The seed of the search.
    date
        When the result was computed.
    command
        What computes it again.
    include_rows
        Whether the page lists the affected inputs one by one.
    """

    title: str = ""
    question: str = ""
    people: str = "people"
    favourable: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    model: str = ""
    data_sha256: str = ""
    model_sha256: str = ""
    seed: int | None = None
    date: str = ""
    command: str = ""
    include_rows: bool = False

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("units", "labels", "values"):
                mapping = check_mapping(f.name, value, "name to text")
                for name, text in mapping.items():
                    _check_text(f"{f.name}[{name!r}]", text)
                object.__setattr__(self, f.name, mapping)
            elif f.name == "seed":
                object.__setattr__(self, "seed", None if value is None else check_seed("seed", value))
            elif f.name == "include_rows":
                object.__setattr__(self, "include_rows", check_flag("include_rows", value))
            else:
                _check_text(f.name, value)

    def label(self, feature: str) -> str:
        """What a feature is called."""
        return self.labels.get(feature, feature)

    def unit(self, feature: str) -> str:
        """A feature's unit, or nothing."""
        return self.units.get(feature, "")

    def value(self, feature: Feature, category: Any) -> str:
        """What a category is called."""
        text = feature.label(category)
        return self.values.get(f"{feature.name} = {text}", self.values.get(text, text))

    @classmethod
    def from_dict(cls, data: Any) -> About:
        """Words and origin out of plain data; an unknown key is an error."""
        known = [f.name for f in fields(cls)]
        if not isinstance(data, dict) or not set(data) <= set(known):
            raise InvalidParameterError(
                f"a description must be an object with some of the keys {known}; got {describe(data)}"
            )
        return cls(**data)


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise InvalidParameterError(f"{name} must be a text of at most {LONGEST:,} letters; got {describe(value)}")
