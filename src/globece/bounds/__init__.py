"""Lower bounds on the cost of recourse of each affected input, whatever the directions."""

from globece.bounds.result import LowerBound, lower_bound, quick_mean

__all__ = ["LowerBound", "lower_bound", "quick_mean"]
