"""Several generators at once, each with a share of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from globece.case.affected import Affected
from globece.directions.protocol import DirectionGenerator, check_asked, proposed
from globece.errors import InvalidParameterError, check_numbers, describe, keep_checked, wrong
from globece.space import FloatArray

LARGEST_SHARE = 1e300


@dataclass(frozen=True, slots=True)
class Mixed:
    """Ask several generators, each for a share of the candidates.

    What one of them leaves of its share goes to those after it, so put one that never runs out last. Each draws from a
    random stream of its own: what the others do does not change what it proposes.

    Parameters
    ----------
    generators
        Who proposes.
    shares
        How the candidates are shared out, in any unit; equally by default.

    Examples
    --------
    >>> import numpy as np
    >>> from globece import explain
    >>> from globece.directions import FixedDirections, UniformSampling
    >>> X = np.array([[1.0, 3.0], [2.0, 9.0], [3.0, 5.0], [8.0, 2.0], [9.0, 7.0]])
    >>> both = Mixed([FixedDirections([[1.0, 0.0]]), UniformSampling()])
    >>> explain(lambda X: (X[:, 0] >= 7).astype(int), X, generator=both, rng=0).provenance.candidates
    1000
    """

    generators: Sequence[DirectionGenerator]
    shares: Sequence[float] | None = None

    def __post_init__(self) -> None:
        members = tuple(self.generators) if isinstance(self.generators, (list, tuple)) else ()
        if not members or not all(isinstance(g, DirectionGenerator) and not isinstance(g, type) for g in members):
            raise InvalidParameterError(
                f"generators must list objects with a propose method; got {describe(self.generators)}"
            )
        shares = (1.0,) * len(members)
        if self.shares is not None:
            allowed = f"one per generator ({len(members)}), each a number >= 0"
            given = check_numbers("shares", self.shares, allowed, low=0.0)
            if len(given) != len(members) or given.max() > LARGEST_SHARE:
                raise wrong("shares", allowed, self.shares)
            if not given.any():
                raise InvalidParameterError(f"shares must not all be 0; got {describe(self.shares)}")
            shares = tuple(given.tolist())
        keep_checked(self, generators=members, shares=shares)

    def propose(self, problem: Affected, n: int, rng: np.random.Generator) -> FloatArray:
        """Propose at most ``n`` directions, in the order of the generators."""
        n = check_asked(problem, n, rng)
        seeds = rng.integers(2**63, size=len(self.generators))
        parts, left = [np.empty((0, problem.space.width))], 0
        for generator, seed, count in zip(self.generators, seeds, self._counts(n), strict=True):
            wanted = count + left
            if wanted:
                parts.append(proposed(generator, problem, wanted, np.random.default_rng(seed), or_none=True))
                left = wanted - len(parts[-1])
        return np.vstack(parts)

    def _counts(self, n: int) -> list[int]:
        """Shares of n in whole numbers that add up to n."""
        shares = np.asarray(self.shares, dtype=np.float64)
        ends = np.rint(np.cumsum(shares) / shares.sum() * n).astype(int)
        return [int(count) for count in np.diff(ends, prepend=0)]
