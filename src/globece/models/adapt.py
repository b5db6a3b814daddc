"""From anything the user calls a model to a :class:`globece.models.base.Model` over the encoded matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from globece.models.blackbox import BlackBox
from globece.models.decision import decision
from globece.space import FeatureSpace


def as_model(
    model: Any,
    space: FeatureSpace,
    *,
    favourable: Any = None,
    threshold: float | None = None,
    grid: int = 256,
    scalars: tuple[float, ...] | None = None,
    batch_rows: int = 65_536,
    timeout: float | None = None,
) -> BlackBox:
    """Wrap the user's model so that it answers at which k a row first flips.

    Parameters
    ----------
    model
        An estimator or a function; see :func:`globece.models.decision.decision`.
    space
        The space whose decoded rows the model takes.
    favourable, threshold, timeout
        As for :func:`globece.models.decision.decision`.
    grid, scalars, batch_rows
        As for :class:`globece.models.blackbox.BlackBox`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [9.0]])
    >>> space = FeatureSpace.from_matrix(X, columns=["income"])
    >>> model = as_model(lambda X: X[:, 0] > 5, space, favourable=True)
    >>> model.favourable(space.encode(X))
    array([False, False,  True])
    """
    decide = decision(model, favourable=favourable, threshold=threshold, timeout=timeout)
    tried = None if scalars is None else np.asarray(scalars, dtype=np.float64)
    return BlackBox(decide, space, grid, batch_rows, tried)
