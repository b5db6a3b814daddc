"""Names of the rows of the kernel's scratch arrays.

Numba passes plain arrays at almost no cost, but tuples of arrays slowly. So scratch space is kept in a few arrays whose
rows have names, and functions take many arguments.
"""

from __future__ import annotations

import numpy as np

FAST = {"contract", "nsz", "reassoc", "nnan"}  # sums may be reordered: the same way on every run
# `layout`
AT, BEGIN = 0, 1
# `first`, one entry per unit of the first layer: at rest, slope of what moves freely, and work space of `bound_first`
REST, SLOPE, DRIFT, OFF, MOST, LEAST = 0, 1, 2, 3, 4, 5
# `moves` and `ids`: the moves along a ray, and the events within one stretch of it
BEND_STEP, BEND_AT, STAIR_STEP, STAIR_MOST, SWITCH_AT, EVENT_AT, TAKEN = 0, 1, 2, 3, 4, 5, 6
BEND_COLUMN, STAIR_COLUMN, SWITCH_FROM, SWITCH_TO, EVENT_KIND, EVENT_OF, COUNT = 0, 1, 2, 3, 4, 5, 6
BENDS, STAIRS, SWITCHES = 0, 1, 2  # columns of ids[COUNT]
BEND, SWITCH, STAIR, STAIR_END = 0, 1, 2, 3  # kinds of event
# `bounds`, one entry per unit of a layer: how far it may lie above and below its chord; their sum and difference; and
# these for the units that deviate from their chords
UP, DOWN, SUM, DIFFERENCE, SOME_SUMS, SOME_DIFFERENCES = 0, 1, 2, 3, 4, 5
# `gaps`, one entry per output
ABOVE, BELOW = 0, 1
# Bounds are computed in single precision and widened by more than its rounding error.
WIDER, LARGEST = np.float32(1.0001), np.float32(1e30)
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
