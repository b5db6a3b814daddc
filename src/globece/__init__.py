"""globece: global counterfactual explanations of whole models.

>>> import globece as gce
>>> sorted(set(gce.__all__) & {"explain", "FeatureSpace", "CostModel", "Explanation"})
['CostModel', 'Explanation', 'FeatureSpace', 'explain']
"""

from globece.api import audit, explain, who_benefits
from globece.auditing import Audit, AuditSettings
from globece.auditing.gates import Gate, check_gate
from globece.comparing import Comparison, compare
from globece.costs import CostModel, bradley_terry
from globece.directions.protocol import DirectionGenerator
from globece.directions.sampling import UniformSampling
from globece.errors import GlobeCEError
from globece.explanation import Explanation
from globece.io import audits, recourse_sets, results  # each enters its format
from globece.models.compiling.adapt import as_model
from globece.models.robust import Robust
from globece.page import pages  # results draw themselves by it
from globece.page.about import About
from globece.search import Climb, Race, Search
from globece.settings import Settings
from globece.space import FeatureSpace
from globece.version import __version__

del audits, pages, recourse_sets, results

__all__ = [
    "About",
    "Audit",
    "AuditSettings",
    "Climb",
    "Comparison",
    "CostModel",
    "DirectionGenerator",
    "Explanation",
    "FeatureSpace",
    "Gate",
    "GlobeCEError",
    "Race",
    "Robust",
    "Search",
    "Settings",
    "UniformSampling",
    "__version__",
    "as_model",
    "audit",
    "bradley_terry",
    "check_gate",
    "compare",
    "explain",
    "who_benefits",
]
