"""Where results go next: frames as fairlearn has them, MLflow, and recourse watched while a model is trained.

>>> import globece.integrations as to
>>> sorted(to.__all__)[:3]
['History', 'MetricFrames', 'RecourseWatch']
"""

from globece.integrations.frames import MetricFrames, flat_table, metric_frames
from globece.integrations.monitoring import History
from globece.integrations.tracking import log_audit, log_explanation
from globece.integrations.watching import RecourseWatch, Round

__all__ = [
    "History",
    "MetricFrames",
    "RecourseWatch",
    "Round",
    "flat_table",
    "log_audit",
    "log_explanation",
    "metric_frames",
]
