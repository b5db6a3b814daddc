"""The configuration file: what it may say, and reading one strictly.

A configuration is TOML. It says what the options say, by section, and about each feature more than they can.
:data:`KEYS` and :data:`FEATURE` are the whole of it; ``globece init`` writes one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from globece.auditing.basis import TRAINING
from globece.auditing.gates import WORDS
from globece.cli.suggestions import did_you_mean
from globece.cli.training import KINDS as MODELS
from globece.errors import InvalidParameterError, clipped, describe
from globece.io.files import check_file, check_path
from globece.search.climb import EFFORTS

LARGEST = 2**21  # bytes of a file: ten thousand columns fit
LONGEST_LINE = 2**15  # letters
DEEPEST = 16  # parts of a dotted key: reading one takes time with the square of them
FEATURE_KINDS = ("continuous", "categorical", "ordinal")
MAY = ("free", "rise", "fall", "fixed")
SCALES, NORMS = ("bins", "deciles"), ("l1", "l2")
REFUSED = {
    "allow_pickle": "a pickle is only loaded if the command line says so: --allow-pickle",
    "trusted": "what a .skops file may build is only taken from the command line: --trusted TYPE",
}


# -- what a value may be ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may hold.

    Attributes
    ----------
    allowed
        What it may hold, in words.
    fits
        Whether a value is allowed.
    option
        The parameter of the commands that it stands for.
    as_text
        Whether the option takes it as text: a class may be a number or a truth value.
    choices
        The words that it may be, if only these.
    """

    allowed: str
    fits: Callable[[Any], bool]
    option: str = ""
    as_text: bool = False
    choices: tuple[str, ...] = ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_class(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _is_number(value)


def _is_list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of, value))


def _is_range(value: Any) -> bool:
    if value == "unbounded":
        return True
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def _text(option: str = "") -> Key:
    return Key("text", _is_text, option)


def _names(option: str = "") -> Key:
    return Key("a list of texts", _is_list(_is_text), option)


def _number(option: str = "") -> Key:
    return Key("a number", _is_number, option)


def _flag(option: str = "") -> Key:
    return Key("true or false", _is_flag, option)


def _choice(allowed: tuple[str, ...], option: str = "") -> Key:
    return Key(
        f"one of {', '.join(map(repr, allowed))}", lambda v: _is_text(v) and v in allowed, option, False, allowed
    )


def _or_word(word: str, option: str) -> Key:
    return Key(f"a whole number or '{word}'", lambda v: v == word or _is_whole(v), option, as_text=True)


KEYS: Mapping[str, Mapping[str, Key]] = {
    "data": {"file": _text("data"), "encoding": _text("encoding")},
    "model": {"file": _text("model"), "kind": _choice(MODELS, "model")},
    "outcome": {
        "column": _text("outcome"),
        "favourable": Key("text, a number, true or false", _is_class, "favourable", as_text=True),
        "threshold": _number("threshold"),
    },
    "cost": {"budget": _number("budget"), "scale": _choice(SCALES), "norm": _choice(NORMS)},
    "search": {
        "directions": _or_word("auto", "directions"),
        "effort": _choice(tuple(EFFORTS), "effort"),
        "seed": Key("a whole number >= 0", lambda v: _is_whole(v) and v >= 0, "seed"),
        "time_limit": _number("time_limit"),
    },
    "audit": {
        "by": _names("by"),
        "control": _names("control"),
        "reference": _text("reference"),
        "cluster": _text("cluster"),
        "training": _choice(TRAINING, "training"),
        "level": _number("level"),
        "relevant": _number("relevant"),
        "relevant_share": _number("relevant_share"),
        "smallest": _or_word("auto", "smallest"),
        "missing": _choice(("group", "error"), "missing"),
    },
    "gates": {
        "fail_on": Key(
            f"a list of some of {', '.join(map(repr, WORDS))}",
            _is_list(lambda v: _is_text(v) and v in WORDS),
            "fail_on",
        ),
        "fail_above": _number("fail_above"),
        "fail_coverage_above": _number("fail_coverage_above"),
        "fail_rejection_above": _number("fail_rejection_above"),
        "allow_small": _flag("allow_small"),
        "worse_above": _number("worse_above"),
    },
    "page": {
        "title": _text("title"),
        "question": _text("question"),
        "people": _text(),
        "favourable": _text(),
        "values": Key("a table of texts", lambda v: isinstance(v, dict) and all(map(_is_text, v.values()))),
    },
}

FEATURE: Mapping[str, Key] = {
    "kind": _choice(FEATURE_KINDS),
    "may": _choice(MAY),
    "order": Key("a list of values from lowest to highest", _is_list(_is_class)),
    "range": Key("[lowest, highest] or 'unbounded'", _is_range),
    "permitted": Key("a list of values", _is_list(_is_class)),
    "whole": _flag(),
    "weight": Key("a number > 0", lambda v: _is_number(v) and v > 0),
    "width": Key("a number > 0", lambda v: _is_number(v) and v > 0),
    "columns": _names(),
    "used": _flag(),
    "label": _text(),
    "unit": _text(),
}


@dataclass(frozen=True, slots=True)
class FeatureWish:
    """What a configuration says about one feature; ``None`` where it says nothing."""

    kind: str | None = None
    may: str | None = None
    order: tuple[Any, ...] | None = None
    range: tuple[float, float] | Literal["unbounded"] | None = None
    permitted: tuple[Any, ...] | None = None
    whole: bool | None = None
    weight: float | None = None
    width: float | None = None
    columns: tuple[str, ...] | None = None
    used: bool | None = None
    label: str | None = None
    unit: str | None = None

    def said(self) -> dict[str, Any]:
        """What it does say, as plain data."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration that was read.

    Attributes
    ----------
    name
        What to call it in messages: the file's name.
    values
        By section what each key says.
    features
        What is said about each feature.
    text
        The file, to find lines in for messages.
    """

    name: str = ""
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    features: Mapping[str, FeatureWish] = field(default_factory=dict)
    text: str = field(default="", repr=False)

    def get(self, section: str, key: str) -> Any:
        """What a key says, or ``None``."""
        return self.values.get(section, {}).get(key)

    def options(self) -> dict[str, Any]:
        """Values by the option that they stand for, as the command line would give them."""
        found: dict[str, Any] = {}
        for section, values in self.values.items():
            for key, value in values.items():
                known = KEYS[section][key]
                if known.option:
                    found[known.option] = str(value) if known.as_text else value
        return found

    def where(self, *path: str) -> str:
        """The file and, if it can be found, the line of a key, for messages."""
        line = line_of(self.text, path)
        return f"{self.name}, line {line}" if line else self.name


# What stands between quotes, and parts that are joined by dots.
_STRING = re.compile(r"""\"(?:[^"\\]|\\.)*+\"|'[^']*+'""")
_CHAIN = re.compile(rf"(?<![\w-])(?:[\w-]++\s*+\.\s*+){{{DEEPEST}}}")


# -- reading ----------------------------------------------------------------------------------------------------------


def read_config(source: str | os.PathLike[str] | bytes) -> Config:
    r"""Read a configuration, and check all of it.

    Parameters
    ----------
    source
        A path, or the bytes of a file. No other file is read, whatever is named in it.

    Raises
    ------
    InvalidParameterError
        If it is not TOML, or has a key that is not known or a value that is not allowed; with the line, if it can be
        told, and the nearest known key.

    Examples
    --------
    >>> config = read_config(b'[outcome]\nfavourable = 1\n[features]\nsex = { may = "fixed" }\n')
    >>> config.options(), config.features["sex"].may
    ({'favourable': '1'}, 'fixed')
    >>> read_config(b"[gates]\nfail_an = []\n")
    Traceback (most recent call last):
    ...
    globece.errors.InvalidParameterError: the configuration, line 2: unknown key 'fail_an' in [gates]. Did you mean
    'fail_on'? Allowed: fail_on, ...
    """
    if isinstance(source, bytes):
        name, content = "the configuration", source
    else:
        name = check_path("path", source)
        check_file("cannot read the configuration", Path(name))
        if os.path.getsize(name) > LARGEST:
            raise InvalidParameterError(f"{name} is too large: a configuration has at most {LARGEST:,} bytes")
        with open(name, "rb") as file:
            content = file.read(LARGEST + 1)
    text = _decoded(content, name)
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidParameterError(f"{name} is not TOML: {clipped(said)}") from error
    config = Config(name, text=text)
    sections = [*KEYS, "features"]
    values: dict[str, dict[str, Any]] = {}
    for section, given in found.items():
        if section not in sections:
            raise _unknown(config, (section,), "section", sections, "")
        if not isinstance(given, dict):
            raise InvalidParameterError(
                f"{config.where(section)}: {section!r} must be a section, [{section}]; got {describe(given)}"
            )
        if section != "features":
            values[section] = _checked(config, (section,), given, KEYS[section])
    if "file" in values.get("model", {}) and "kind" in values["model"]:
        raise InvalidParameterError(
            f"{config.where('model', 'kind')}: [model] has both file and kind; keep one: a model file, or what to train"
        )
    features = {feature: _wish(config, feature, given) for feature, given in found.get("features", {}).items()}
    return Config(name, values, features, text)


def _decoded(content: bytes, name: str) -> str:
    if len(content) > LARGEST:
        raise InvalidParameterError(f"{name} is too large: a configuration has at most {LARGEST:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidParameterError(
            f"{name}, line {line}: not UTF-8 ({error.reason} at byte {error.start:,}); save the file as UTF-8"
        ) from error
    for i, line_ in enumerate(text.splitlines()):
        if len(line_) > LONGEST_LINE:
            raise InvalidParameterError(
                f"{name}, line {i + 1}: longer than {LONGEST_LINE:,} letters; break the list into lines"
            )
        if line_.count(".") >= DEEPEST and _CHAIN.search(_STRING.sub("s", line_)):
            raise InvalidParameterError(f"{name}, line {i + 1}: a key of more than {DEEPEST} parts")
    return text


def _checked(
    config: Config, path: tuple[str, ...], given: Mapping[str, Any], known: Mapping[str, Key]
) -> dict[str, Any]:
    for key, value in given.items():
        where = (*path, key)
        if key not in known:
            raise _unknown(config, where, "key", known, f" in [{clipped('.'.join(path))}]")
        if not known[key].fits(value):
            raise InvalidParameterError(
                f"{config.where(*where)}: {key} must be {known[key].allowed}; got {describe(value)}"
                + (did_you_mean(value, known[key].choices).replace(" Did", ". Did") if _is_text(value) else "")
            )
    return dict(given)


def _wish(config: Config, name: str, given: Any) -> FeatureWish:
    if not isinstance(given, dict):
        raise InvalidParameterError(
            f"{config.where('features', name)}: a feature's line must be a table, as in "
            f'{{ may = "fixed" }}; got {describe(given)}'
        )
    said = _checked(config, ("features", name), given, FEATURE)
    if said.get("kind") == "ordinal" and "order" not in said:
        raise InvalidParameterError(
            f"{config.where('features', name)}: {clipped(name)!r} is ordinal and needs order = [...], its values from "
            "lowest to highest"
        )
    if "order" in said and said.get("kind", "ordinal") != "ordinal":
        raise InvalidParameterError(
            f"{config.where('features', name)}: {clipped(name)!r} has an order and is {said['kind']}; only an ordinal "
            "feature has one"
        )
    wish: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in said.items()}
    return FeatureWish(**wish)


def wishes_of(given: Any, name: str) -> dict[str, FeatureWish]:
    """What plain data, such as a recorded question, say about features, checked as a configuration is."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidParameterError(f"{name}: features must be a table of features; got {describe(given)}")
    return {key: _wish(Config(name), key, wish) for key, wish in given.items()}


def _unknown(config: Config, path: tuple[str, ...], what: str, known: Any, where: str) -> InvalidParameterError:
    word = path[-1]
    if word in REFUSED:
        return InvalidParameterError(f"{config.where(*path)}: {word} cannot stand in a configuration: {REFUSED[word]}")
    hint = did_you_mean(word, known)
    homes = [section for section, keys in KEYS.items() if word in keys]
    if not hint and homes:
        hint = f" It belongs in [{homes[0]}]."
    elif not hint and what == "section" and word in FEATURE:
        hint = " It belongs in a feature's line in [features]."
    return InvalidParameterError(
        f"{config.where(*path)}: unknown {what} {clipped(word)!r}{where}.{hint} Allowed: {', '.join(known)}"
    )


# -- lines ------------------------------------------------------------------------------------------------------------

_KEY = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_SECTION = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_ENTRY = re.compile(rf"\s*({_DOTTED})\s*=")


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    r"""The line on which a key, or the nearest table around it, is written; it only reads lines, for messages.

    Examples
    --------
    >>> line_of("[outcome]\nfavourable = 1\n", ("outcome", "favourable"))
    2
    """
    best: tuple[int, int] | None = None  # how much of the path, and where
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if opened := _SECTION.match(line):
            section = found = _parts(opened[1])
        elif entry := _ENTRY.match(line):
            found = (*section, *_parts(entry[1]))
        else:
            continue
        n = len(found)
        if found == path[:n] and (best is None or n > best[0]):
            best = (n, number)
    return best[1] if best else None


def _parts(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key, without quotes."""
    return tuple(map(_unquoted, re.findall(_KEY, dotted)))


def _unquoted(part: str) -> str:
    if part[:1] == "'":
        return part[1:-1]
    if part[:1] == '"':
        try:
            return str(tomllib.loads(f"k = {part}")["k"])
        except ValueError:
            return part
    return part
