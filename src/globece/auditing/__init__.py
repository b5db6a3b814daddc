"""Compare the recourse of groups: gaps, intervals, tests, exchanged directions, and a verdict."""

from globece.auditing.assumptions import guessed_outcome, proxies, unconstrained, unconstrained_warning
from globece.auditing.basis import check_training
from globece.auditing.benefits import Beneficiaries, beneficiaries
from globece.auditing.groups import Groups, find_clusters, find_groups
from globece.auditing.pool import CandidateSearch
from globece.auditing.question import Question
from globece.auditing.result import Audit
from globece.auditing.run import run_audit
from globece.auditing.settings import AuditSettings

__all__ = [
    "Audit",
    "AuditSettings",
    "Beneficiaries",
    "CandidateSearch",
    "Groups",
    "Question",
    "beneficiaries",
    "check_training",
    "find_clusters",
    "find_groups",
    "guessed_outcome",
    "proxies",
    "run_audit",
    "unconstrained",
    "unconstrained_warning",
]
