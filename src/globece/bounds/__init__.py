"""How low can it go? Bounds that no recourse of an affected input can undercut, whatever the directions."""

from globece.bounds.result import LowerBound, lower_bound

__all__ = ["LowerBound", "lower_bound"]
