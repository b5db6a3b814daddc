"""The page as a notebook widget: the same bundle, in a shadow tree that the notebook's styles do not reach."""

from __future__ import annotations

from typing import Any

from globece.errors import require
from globece.page.arrays import Page
from globece.page.html import bundled


def widget(page: Page) -> Any:
    """A widget that shows a page; its arrays travel as binary."""
    anywidget = require("anywidget", extra="notebook", caller="a widget")
    traitlets = require("traitlets", extra="notebook", caller="a widget")
    kind = type(
        "PageWidget",
        (anywidget.AnyWidget,),
        {
            "_esm": bundled("page.js"),
            "css_text": traitlets.Unicode("").tag(sync=True),
            "page": traitlets.Bytes(b"").tag(sync=True),
        },
    )
    return kind(page=page.binary(), css_text=bundled("page.css"))
