"""How to ask the model where a ray first flips."""

from __future__ import annotations

from dataclasses import dataclass

from globece.errors import check_count, check_flag, check_limit, keep_checked
from globece.models.blackbox import check_grid, check_scalars


@dataclass(frozen=True, slots=True)
class Settings:
    """How to ask the model. How to search is the subject of :class:`globece.Climb` and :class:`globece.Race`.

    Parameters
    ----------
    max_scalar
        Largest scalar, in addition to the budget; the paper's is 5.
    scalars
        Exact scalars to try on a black box, ascending from 0 on, in place of grid and bisection; the paper's are 1,000
        from 0 to 5.
    grid
        Points that the search on a black box tries along each ray, at most 50,000.
    batch_rows
        Most rows that a black box gets at once.
    timeout
        Seconds that one call of a black box may take.
    exact
        Whether to follow the model exactly where it can be compiled; ``False`` treats every model as a black box.
    """

    max_scalar: float | None = None
    scalars: tuple[float, ...] | None = None
    grid: int = 256
    batch_rows: int = 65_536
    timeout: float | None = None
    exact: bool = True

    def __post_init__(self) -> None:
        keep_checked(
            self,
            max_scalar=check_limit("max_scalar", self.max_scalar),
            scalars=None if self.scalars is None else tuple(check_scalars(self.scalars).tolist()),
            grid=check_grid(self.grid),
            batch_rows=check_count("batch_rows", self.batch_rows),
            timeout=check_limit("timeout", self.timeout),
            exact=check_flag("exact", self.exact),
        )
