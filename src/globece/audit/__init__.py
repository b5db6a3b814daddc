"""Does one group have to travel further? Groups, gaps, intervals, exchanged directions, and a verdict."""

from globece.audit.benefits import Beneficiaries, benefits
from globece.audit.groups import Groups, find_groups
from globece.audit.pool import Search
from globece.audit.result import Audit
from globece.audit.run import Question, run
from globece.audit.settings import AuditSettings

__all__ = [
    "Audit",
    "AuditSettings",
    "Beneficiaries",
    "Groups",
    "Question",
    "Search",
    "benefits",
    "find_groups",
    "run",
]
