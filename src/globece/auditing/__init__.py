"""Compare the recourse of groups: gaps, intervals, tests, exchanged directions, and a verdict."""

from globece.auditing.benefits import Beneficiaries, beneficiaries
from globece.auditing.groups import Groups, find_groups
from globece.auditing.pool import CandidateSearch
from globece.auditing.result import Audit
from globece.auditing.run import Question, run_audit
from globece.auditing.settings import AuditSettings

__all__ = [
    "Audit",
    "AuditSettings",
    "Beneficiaries",
    "CandidateSearch",
    "Groups",
    "Question",
    "beneficiaries",
    "find_groups",
    "run_audit",
]
