"""Explanations and audits in MLflow: metrics, the conclusion as tags, the result and its page as artefacts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from re import sub
from typing import Any

from globece.auditing import Audit
from globece.errors import check_instance, require
from globece.explanation import Explanation
from globece.page.about import About


def log_explanation(
    explanation: Explanation, *, name: str = "recourse", about: About | None = None
) -> dict[str, float]:
    """Log an explanation to the active MLflow run; the metrics logged come back.

    Parameters
    ----------
    explanation
        What to log.
    name
        What the names of its metrics, tags and artefacts begin with.
    about
        Words for the page; see :class:`globece.About`.
    """
    check_instance("explanation", explanation, Explanation)
    metrics = {
        "coverage": explanation.coverage,
        "average_cost": explanation.average_cost,
        "score": explanation.score,
        "affected": float(explanation.n_affected),
        "without_recourse": float(explanation.n_without_recourse),
    }
    provenance = explanation.provenance
    tags = {
        "favourable": provenance.favourable, "method": provenance.method, "seed": provenance.seed,
        "data": provenance.data, "complete": provenance.complete,
    }  # fmt: skip
    return _log(explanation, metrics, tags, name, about)


def log_audit(audit: Audit, *, name: str = "audit", about: About | None = None) -> dict[str, float]:
    """Log an audit to the active MLflow run; the metrics logged come back.

    People's rows and costs are left out. A number that cannot be computed is not logged, as MLflow has no place for it:
    the tag ``NAME.conclusion`` says what could be told.

    Parameters
    ----------
    audit
        What to log.
    name, about
        As for :func:`log_explanation`.
    """
    check_instance("audit", audit, Audit)
    metrics = {"score": audit.overall.score, "coverage": audit.overall.coverage, "gap": audit.verdict.size,
               "p": audit.verdict.p, "margin": audit.verdict.margin}  # fmt: skip
    for group, measures in audit.by_group.items():
        for metric in ("score", "coverage", "rejection_rate"):
            metrics[f"{metric}.{group}"] = getattr(measures, metric)
    tags = {"conclusion": audit.verdict.conclusion, "against": audit.verdict.against or "nobody",
            "favourable": audit.verdict.favourable, "seed": audit.seed}  # fmt: skip
    return _log(audit, metrics, tags, name, about)


def _log(
    result: Explanation | Audit, metrics: Mapping[str, float], tags: Mapping[str, Any], name: str, about: About | None
) -> dict[str, float]:
    mlflow: Any = require("mlflow", extra="mlflow", caller="logging to MLflow")
    known = {_allowed(f"{name}.{key}"): float(value) for key, value in metrics.items() if isfinite(value)}
    mlflow.log_metrics(known)
    mlflow.set_tags({_allowed(f"{name}.{key}"): str(value) for key, value in tags.items()})
    with tempfile.TemporaryDirectory() as folder:
        result.to_json(str(Path(folder) / f"{name}.json"))
        result.save_html(str(Path(folder) / f"{name}.html"), about=about)
        mlflow.log_artifacts(folder, artifact_path="globece")
    return known


def _allowed(key: str) -> str:
    """A name that MLflow takes: letters, digits and a few signs."""
    return sub(r"[^\w\-. /:]", "_", key)
