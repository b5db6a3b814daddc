"""AReS and Fast AReS, the paper's baselines, with the same model, costs and score as an explanation."""

from globece.baselines.objectives import AccuracyCost, FourTerms
from globece.baselines.recourse_set import RecourseSet, TwoLevelRule
from globece.baselines.rule_sets import AresSettings, ares, fast_ares, several

__all__ = ["AccuracyCost", "AresSettings", "FourTerms", "RecourseSet", "TwoLevelRule", "ares", "fast_ares", "several"]
