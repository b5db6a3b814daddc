"""The reference lists the public names, and every page is on the site."""

from __future__ import annotations

import importlib
import re

import globece
from tests.documents.blocks import ROOT

DOCS = ROOT / "docs"
REFERENCE = (DOCS / "api.rst").read_text(encoding="utf-8")


def test_the_reference_lists_the_public_names_and_no_others() -> None:
    sections = re.split(r"^\.\. currentmodule:: (\S+)$", REFERENCE, flags=re.MULTILINE)[1:]
    listed = {
        module: set(re.findall(r"^   (\w+)$", text, re.MULTILINE))
        for module, text in zip(sections[::2], sections[1::2], strict=True)
    }
    assert {"globece", "globece.directions", "globece.plots", "globece.testing", "globece.distributed"} <= set(listed)
    for module, names in listed.items():
        room = importlib.import_module(module)
        public = set(room.__all__) - {"__version__"}
        if room is not globece:  # what the front door has as well is listed there
            public -= {name for name in public if getattr(globece, name, None) is getattr(room, name)}
        assert names == public, module


def test_each_page_is_in_the_table_of_contents() -> None:
    tables = [file for file in DOCS.glob("*.rst") if file.stem not in ("api", "sg_execution_times")]
    listed = {
        page for table in tables for page in re.findall(r"^   ([a-z_/]+)$", table.read_text(encoding="utf-8"), re.M)
    }
    written = {str(file.relative_to(DOCS).with_suffix("")) for file in DOCS.rglob("*.md")}
    assert listed == written | {table.stem for table in tables} - {"index"} | {"api", "gallery/index"}


def test_public_names_have_a_docstring_with_an_example_or_a_link() -> None:
    bare = []
    module = importlib.import_module("globece")
    for name in set(module.__all__) - {"__version__"}:
        if not (getattr(module, name).__doc__ or "").strip():
            bare.append(name)
    assert bare == []
