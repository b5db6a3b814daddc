"""``docs/command_line.md`` says what the code does: every key, command and exit code, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from globece.cli import delivery, main
from globece.cli.config import FEATURE, FEATURE_KINDS, KEYS, MAY, read_config

TEXT = (Path(__file__).parents[2] / "docs/command_line.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)


def example() -> str:
    assert EXAMPLE is not None
    return EXAMPLE[1]


def test_the_example_is_valid_and_has_every_key() -> None:
    config = read_config(example().encode())
    optional: dict[str, Any] = tomllib.loads("\n".join(re.findall(r"^# (\w+ = .*)$", example(), re.MULTILINE)))
    assert set(optional) == {"kind"}
    for section, keys in KEYS.items():
        assert set(config.values[section]) | (set(optional) if section == "model" else set()) == set(keys), section
    said = {key for wish in config.features.values() for key in wish.said()}
    assert said == set(FEATURE)
    for word in (*MAY, *FEATURE_KINDS):
        assert f'"{word}"' in example()


def test_every_command_is_listed() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", TEXT, re.MULTILINE)
    assert set(listed) == set(main.commands)


def test_exit_codes_are_those_of_the_code() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    used = {value for name, value in vars(delivery).items() if name.isupper() and isinstance(value, int)}
    assert codes == {0, *used}


def test_options_that_are_named_exist() -> None:
    known = {flag for command in main.commands.values() for parameter in command.params for flag in parameter.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", TEXT)) - {"--help", "--fail"}
    assert named <= known, named - known


def test_every_config_option_is_one_of_a_command() -> None:
    """A key that stands for an option must reach one: a typing error there would be silent."""
    parameters = {parameter.name for command in main.commands.values() for parameter in command.params}
    for section, keys in KEYS.items():
        for key, known in keys.items():
            assert not known.option or known.option in parameters, (section, key)
