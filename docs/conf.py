"""The documentation as a site: ``make docs``. The pages themselves read as they are on GitHub, too."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from globece.version import __version__  # noqa: E402

project = "globece"
author = "globece developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery_of", "paper.html", "Thumbs.db", ".DS_Store"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
# The gallery's settings hold objects; results in docstrings have names that several classes have as attributes.
suppress_warnings = ["config.cache", "ref.python"]
myst_heading_anchors = 4

html_theme = "pydata_sphinx_theme"
html_title = "globece"
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
}
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says what is taken, the signature its types
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes of dataclasses are described once

# In the order of reading; a gallery that is not complete is an error.
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "gallery_of",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "min_reported_time": 1e9,
}

# -- links ------------------------------------------------------------------------------------------------------------

# Pages that are files of the repository, shown here as well.
SHOWN = {
    "benchmarks": "BENCHMARKS.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "recipes": "examples/README.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def for_site(text: str, file: Path) -> str:
    """The text of a page with links that lead somewhere on the site; those to other files become plain text."""
    pages = {ROOT / shown: HERE / f"{name}.md" for name, shown in SHOWN.items()} | {
        ROOT / "README.md": HERE / "start.md"
    }
    here = next((page for source, page in pages.items() if source == file), file).parent

    def rewritten(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        path, _, heading = target.partition("#")
        if "://" in target or not path:
            return found[0]
        goal = (file.parent / path).resolve()
        if goal == ROOT / "README.md":
            heading = ""
        goal = pages.get(goal, goal)
        if HERE not in goal.parents or goal.suffix == ".html":
            return words
        return f"{image}[{words}]({os.path.relpath(goal, here)}{'#' + heading if heading else ''})"

    return LINK.sub(rewritten, text)


def setup(app: Any) -> None:
    """Read shown files in place of their pages, and rewrite links."""

    def read(app: Any, name: str, source: list[str]) -> None:
        file = ROOT / SHOWN[name] if name in SHOWN else HERE / f"{name}.md"
        if file.exists() and file.suffix == ".md":
            source[0] = for_site(file.read_text(encoding="utf-8"), file)

    app.connect("source-read", read)
