"""What would this person pay as a member of another group? Each person is compared with themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from globece.auditing.criteria import AsOther, mean_gap
from globece.auditing.question import Question
from globece.auditing.settings import AuditSettings
from globece.case.affected import Affected
from globece.case.ordering import content_order
from globece.case.scaling import scale
from globece.explanation import Explanation
from globece.features import Feature
from globece.progress import TimeUp
from globece.space import FloatArray, IntArray

MOST = 3000  # people of each group


def as_others(
    q: Question, names: Sequence[str], explanation: Explanation, settings: AuditSettings
) -> tuple[AsOther, ...]:
    """For each group what its members would pay as members of another: the reference, or the largest other group.

    Nothing, where the groups are not the values of one feature that the model takes.
    """
    values = _values(q, names)
    if values is None or len(names) < 2 or not explanation.n_directions:
        return ()
    feature, encoded = values
    sizes = dict(zip(q.groups.names, q.groups.sizes.tolist(), strict=True))
    found = []
    for name, members in zip(names, q.members(names), strict=True):
        rest = [other for other in names if other != name]
        other = q.reference if q.reference in rest else max(rest, key=lambda n: sizes[n])
        try:
            one = _flipped(q, explanation, members, feature, encoded[str(other)])
        except TimeUp:
            return ()
        own, then, accepted, at = one
        cluster = None if q.cluster is None else q.cluster[q.rows[at]]
        order = np.lexsort((then, own))
        gap = mean_gap((own - then)[order], None if cluster is None else cluster[order], settings, len(names))
        mean_own, mean_then = float(np.sort(own).mean()), float(np.sort(then).mean())
        found.append(AsOther(name, str(other), len(at), mean_own, mean_then, float(accepted.mean()), gap))
    return tuple(found)


def _values(q: Question, names: Sequence[str]) -> tuple[Feature, dict[str, FloatArray]] | None:
    """The feature that makes up the groups, and its encoded value for each; ``None`` if there is no such feature."""
    if len(q.groups.features) != 1 or q.groups.by != q.groups.features[0]:
        return None
    feature = q.case.space[q.groups.features[0]]
    column = q.case.rows.feature(feature)
    encoded = {}
    for name in names:
        own = np.unique(column[q.groups.labels == q.groups.index(name)])
        if len(own) != 1 or np.isnan(own[0]):
            return None
        if feature.is_block:
            encoded[name] = np.eye(feature.width)[int(own[0])]
        else:
            encoded[name] = own
    return feature, encoded


def _flipped(
    q: Question, explanation: Explanation, members: IntArray, feature: Feature, value: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """What members pay, what they would pay, whether they would be accepted at once, and who they are."""
    case = q.case
    order = content_order(case.inputs.values[members], 2)[:MOST]
    at = members[np.sort(order)]
    Z = case.inputs[at].dense().copy()
    Z[:, feature.columns] = value
    accepted = np.concatenate([case.model.favourable(Z[i : i + 4096]) for i in range(0, len(Z), 4096)])
    paid = np.zeros(len(at))
    left = np.flatnonzero(~accepted)
    if len(left):
        turned = Affected(case.model, Z[left], case.cost, case.budget, case.max_scalar)
        paid[left] = np.minimum(scale(turned, explanation.directions).cost.min(axis=0), case.budget)
    own = np.minimum(explanation.costs[:, at].min(axis=0), case.budget)
    return own, paid, accepted, at
