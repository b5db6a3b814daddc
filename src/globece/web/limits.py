"""What one request may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from globece.errors import check_count, check_number, keep_checked


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the server.

    Attributes
    ----------
    body
        Bytes of a request's body; a larger one gets 413.
    features
        Features that one request may name.
    directions
        Directions that one recomputation may ask for.
    job_s
        Seconds that a recomputation may take; then the best so far is kept.
    grace_s
        Seconds after that until it is given up, if the model does not return.
    requests
        Requests that are answered at the same time; more get 503.
    kept
        Finished recomputations that are kept.
    """

    body: int = 256 * 1024
    features: int = 2000
    directions: int = 20
    job_s: float = 600.0
    grace_s: float = 30.0
    requests: int = 64
    kept: int = 4

    def __post_init__(self) -> None:
        names = ("body", "features", "directions", "requests", "kept")
        counts = {n: check_count(n, getattr(self, n)) for n in names}
        times = {n: check_number(n, getattr(self, n), open_low=True) for n in ("job_s", "grace_s")}
        keep_checked(self, **counts, **times)
