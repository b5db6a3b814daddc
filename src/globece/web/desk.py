"""What the server works on: one model and one table, both named by the operator, and the page that is shown."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw

from globece.api import audit as audit_model
from globece.api import explain as explain_model
from globece.auditing import Audit, beneficiaries, find_groups
from globece.auditing.exchange import EVERYBODY
from globece.case.posing import Given, cost_on, pose
from globece.case.verification import trusting
from globece.costs import CostModel
from globece.errors import InvalidParameterError, check_choice, check_count, check_number, describe, wrong
from globece.explanation import Explanation, Provenance
from globece.features import Feature
from globece.models.base import Model
from globece.page.about import About
from globece.page.explained import number
from globece.page.pages import features, page_of
from globece.settings import Settings
from globece.space import FeatureSpace
from globece.version import __version__
from globece.web.jobs import Job
from globece.web.limits import Limits

Result = Explanation | Audit
MOST_GROUPS = 12
MAY = ("free", "fixed", "rise", "fall")
MODES = ("fixed", "scaled")
STAGES = ("quick", "default")


@dataclass
class Desk:
    """The model, the rows and what is shown.

    Attributes
    ----------
    model, X, frame
        The model, the columns that it takes, and all columns.
    wishes
        What every computation takes by name: space, favourable outcome, budget, seed.
    about
        Words for the page.
    limits
        Limits of a request.
    n_directions, by
        What the page began with.
    """

    model: Any
    X: Any
    frame: Any
    wishes: dict[str, Any]
    about: About
    limits: Limits
    n_directions: int = 3
    by: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _case: Any = None
    _asked: dict[str, Any] | None = None

    @property
    def space(self) -> FeatureSpace:
        """The operator's own space."""
        space: FeatureSpace = self.wishes["space"]
        return space

    def groups(self) -> list[str]:
        """Columns that make up a few groups."""
        frame = nw.from_native(self.frame, eager_only=True)
        return [c for c in frame.columns if 2 <= frame[c].n_unique() <= MOST_GROUPS]

    # -- recompute ---------------------------------------------------------------------------------------------------

    def checked(self, asked: Any) -> dict[str, Any]:
        """A recomputation that may be asked for; everything else is an error that says what is allowed."""
        keys = ("n_directions", "budget", "by", "features")
        if not isinstance(asked, Mapping) or not set(asked) <= set(keys):
            allowed = f"an object with some of the keys {list(keys)}"
            raise InvalidParameterError(f"a request must be {allowed}; got {describe(asked)}")
        by = asked.get("by")
        if by is not None and (not isinstance(by, str) or by not in self.groups()):
            raise InvalidParameterError(f"by must be null or one of {self.groups()}; got {describe(by)}")
        given = asked.get("features", {})
        if not isinstance(given, Mapping) or len(given) > self.limits.features:
            raise wrong("features", f"an object of at most {self.limits.features:,} features", given)
        for name, wish in given.items():
            if name not in self.space.names or not isinstance(wish, Mapping) or not set(wish) <= {"may", "weight"}:
                raise wrong("features", "an object that gives may and weight for features that there are", name)
            check_choice(f"{name}: may", wish.get("may", "free"), MAY)
            check_number(f"{name}: weight", wish.get("weight", 1.0), open_low=True, high=1e9)
        return {
            "n_directions": check_count(
                "n_directions", asked.get("n_directions", self.n_directions), high=self.limits.directions
            ),
            "budget": check_number("budget", asked.get("budget", self.wishes["budget"]), low=1e-6, high=1e6),
            "by": by,
            "features": {name: dict(wish) for name, wish in given.items()},
        }

    def posed(self, asked: Mapping[str, Any]) -> tuple[FeatureSpace, CostModel]:
        """The space and the cost that a request asks for."""
        may = {name: wish.get("may", "free") for name, wish in asked["features"].items()}
        changed = []
        for f in self.space.features:
            wish = may.get(f.name)
            if wish is not None:
                sense = {"rise": 1, "fall": -1}.get(wish, 0)
                f = replace(f, immutable=wish == "fixed", sense=0 if f.is_block else sense)
            changed.append(f)
        space = replace(self.space, features=tuple(changed))
        weights = {name: float(wish.get("weight", 1.0)) for name, wish in asked["features"].items()}
        return space, CostModel.bins(space, weights=weights)

    def compute(self, asked: dict[str, Any], job: Job) -> None:
        """Compute a quick result, then a better one; each is kept as it comes, and the better one stays."""
        space, cost = self.posed(asked)
        wishes = {**self.wishes, "space": space, "cost": cost, "budget": asked["budget"], "progress": job.report}
        best: Result | None = None
        for effort in STAGES:
            left = self.limits.job_s - (time.monotonic() - job.started)
            if job.cancelled.is_set() or (best is not None and left <= 1.0):
                break
            now = {**wishes, "effort": effort, "time_limit": max(left, 1.0), "n_directions": asked["n_directions"]}
            try:
                found = self._answer(asked, now)
            except KeyboardInterrupt:
                if best is None:
                    raise
                break
            if best is None or _explanation(found).score <= _explanation(best).score:
                best = found
                job.found(self.binary(found, asked, job), _numbers(_explanation(found)))
        if best is not None:
            with self._lock:
                self._asked, self._case = asked, None
                self._posed_once()  # so that the first change that is tried is answered at once too

    def _answer(self, asked: Mapping[str, Any], wishes: dict[str, Any]) -> Result:
        if asked["by"] is None:
            return explain_model(self.model, self.X, **wishes)
        return audit_model(self.model, self.frame, by=asked["by"], **wishes)

    def binary(self, result: Result, asked: Mapping[str, Any], job: Job) -> bytes:
        """The page of a job's next result, for the wire; it says which result of which job it is."""
        page = page_of(result, self.about)
        page.data["features"] = features(_explanation(result), self.about, live=True)
        page.data["live"] = {
            "groups": self.groups(),
            "n_directions": asked["n_directions"],
            "limit_s": self.limits.job_s,
            "recompute": True,
            "job": job.id,
            "version": job.version + 1,
        }
        return page.binary()

    def first(self) -> dict[str, Any]:
        """What the page shows first: the operator's own constraints and weights."""
        cost: CostModel | None = self.wishes.get("cost")
        features: dict[str, Any] = {}
        if cost is not None:
            weighed = (f for f in self.space.features if cost.weight(f) != 1.0)
            features = {f.name: {"may": _may(f), "weight": cost.weight(f)} for f in weighed}
        return {"n_directions": self.n_directions, "budget": self.wishes["budget"], "by": self.by, "features": features}

    # -- try ---------------------------------------------------------------------------------------------------------

    def tried(self, asked: Any) -> dict[str, Any]:
        """Whom an action helps, by group: the model is asked about every row, and nothing is searched."""
        start = time.perf_counter()
        if not isinstance(asked, Mapping) or not set(asked) <= {"action", "mode"}:
            raise InvalidParameterError(f"a request must be an object with action and mode; got {describe(asked)}")
        action, mode = self._action(asked.get("action")), check_choice("mode", asked.get("mode", "fixed"), MODES)
        with self._lock:
            case, groups = self._posed_once()
            provenance = _provenance(case.model)
            kind: Any = mode
            found = trusting(case, lambda c: beneficiaries(c, action, kind, groups, provenance))
        rows = [{"name": name, **_benefit(b)} for name, b in {**found.by_group, EVERYBODY: found.overall}.items()]
        return {"groups": rows, "ms": 1000.0 * (time.perf_counter() - start)}

    def _action(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping) or not 0 < len(given) <= self.limits.features:
            raise InvalidParameterError(f"action must map features to a number or a category; got {describe(given)}")
        found: dict[str, Any] = {}
        for name, wish in given.items():
            if name not in self.space.names:
                raise InvalidParameterError(f"action names an unknown feature, {describe(name)}")
            f = self.space[name]
            if f.is_block:
                labels = [f.label(c) for c in f.categories]
                if not isinstance(wish, str) or wish not in labels:
                    raise InvalidParameterError(f"action[{name!r}] must be one of {labels[:50]}; got {describe(wish)}")
                found[name] = f.categories[labels.index(wish)]
            else:
                found[name] = check_number(f"action[{name!r}]", wish, low=-1e300, high=1e300)
        return found

    def _posed_once(self) -> tuple[Any, Any]:
        """The case of what is shown, made once: an answer then only takes the model's own time."""
        if self._case is None:
            asked = self._asked or self.first()
            space, cost = self.posed(asked)
            given = Given.of(self.model, self.X, space)
            groups = None
            if asked["by"] is not None:
                table = Given.of(self.model, self.frame, space).table
                groups = find_groups(asked["by"], table, given.rows, parameter="by", missing="group")
                given = given.hold(groups.features)
            wishes = {name: self.wishes.get(name) for name in ("favourable", "threshold")}
            price = cost_on(cost, given.space)
            case = pose(self.model, given, cost=price, budget=asked["budget"], settings=Settings(), **wishes)
            self._case = case, groups
        found: tuple[Any, Any] = self._case
        return found


def _explanation(result: Result) -> Explanation:
    return result.explanation if isinstance(result, Audit) else result


def _may(feature: Feature) -> str:
    if feature.immutable:
        return "fixed"
    return {0: "free", 1: "rise", -1: "fall"}[feature.sense]


def _numbers(ex: Explanation) -> dict[str, float | None]:
    return {"coverage": ex.coverage, "average_cost": number(ex.average_cost), "score": number(ex.score)}


def _benefit(b: Any) -> dict[str, Any]:
    cost = number(b.average_cost)
    return {"n": b.n, "affected": b.affected, "flipped": b.flipped, "average_cost": cost, "harmed": b.harmed}


def _provenance(model: Model) -> Provenance:
    method = "exact" if model.exact else "searched"
    return Provenance(__version__, model.name, method, model.decide.described, "the action given", 1, 0, 0)
