"""The pictures of the page in docs/images: each view at three widths. ``make pictures`` draws them again."""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser

import globece as gce
from globece.cli.demo import HELD
from globece.cli.german_words import UNITS, german_in_words
from globece.cli.training import pipeline
from globece.datasets import load_compas, load_german_credit
from tests.e2e.browser import browsing, opened
from tests.live import prepared, running

FOLDER = Path(__file__).parents[2] / "docs/images"
WIDTHS = {"phone": 390, "tablet": 820, "wide": 1280}
COLOURS = 96  # of a picture: text and bars need no more


def german() -> tuple[gce.Explanation, gce.Explanation, gce.About]:
    """Two models of German Credit, each explained by three directions."""
    data = load_german_credit()
    X, y = german_in_words(data.frame).iloc[: data.n_train], data.outcome[: data.n_train]
    space = gce.FeatureSpace.from_frame(X, immutable=HELD)
    about = gce.About(
        title="German Credit",
        people="applicants",
        favourable="good risk",
        model="logistic regression",
        units=UNITS,
        seed=0,
        include_rows=True,
    )
    found = []
    for kind in ("logistic", "boosting"):
        model = pipeline(kind, space, 0).fit(X, y)
        found.append(gce.explain(model, X, favourable=1, space=space, n_directions=3, rng=0))
    return found[0], found[1], about


def compas() -> tuple[gce.Audit, gce.About]:
    """An audit of a model of COMPAS, by race."""
    data = load_compas()
    space = gce.FeatureSpace.from_frame(data.frame, immutable=("Sex", "Race", "Age_Cat"))
    model = pipeline("logistic", space, 0).fit(data.frame, data.outcome)
    wishes: dict[str, Any] = {"by": "Race", "favourable": 1, "space": space, "training_rows": "all"}
    au = gce.audit(model, data.frame, rng=0, **wishes)
    about = gce.About(
        title="COMPAS",
        people="defendants",
        favourable="not expected to reoffend",
        model="logistic regression",
        units={"Time_Served": "days"},
        labels={"Priors_Count": "number of priors", "Time_Served": "time served", "C_Charge_Degree": "charge degree"},
    )
    return au, about


def drawn(browser: Browser, address: str, name: str, *, whole: bool) -> None:
    """One view at three widths, as small files."""
    for called, width in WIDTHS.items():
        page = opened(browser, address, width=width, height=800 if width > 500 else 780).page
        page.wait_for_timeout(600)
        picture = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
        small = picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        small.save(FOLDER / f"{name}-{called}.png", optimize=True)
        page.context.close()


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    logistic, boosting, about = german()
    au, words = compas()
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        place = Path(folder)
        logistic.save_html(place / "german.html", about=about)
        au.save_html(place / "compas.html", about=words)
        gce.compare(logistic, boosting, names=("logistic", "boosting")).save_html(
            place / "compare.html", about=replace(about, model="")
        )
        for name in ("german", "compas"):
            address = (place / f"{name}.html").as_uri()
            drawn(browser, address, f"{name}-officer", whole=False)
            drawn(browser, address, f"{name}-analyst", whole=True)
        drawn(browser, (place / "compare.html").as_uri(), "compare", whole=False)
        with running(prepared()) as live:
            drawn(browser, live.address, "live", whole=True)


if __name__ == "__main__":
    main()
