"""Both user studies with the audit's answer (`tab:userstudies`), and what the paper's users were shown.

Black Box 1 has rules (`fig:userstudies` and the chart in the appendix), Black Box 2 profiles, minimum costs and mean
translations by group (`fig:globeceheloc`). The snapshots of the questionnaire (`fig:us2_exp`) show these two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.cells import Cell, Data, Part, Run, Shown
from experiments.figures.common import as_array, as_list
from experiments.figures.drawing import in_shares, legend_below, new_figure
from experiments.figures.drawing import name as write
from experiments.markdown import missing_rows, percent, table

KEY = "user-studies"
# Users, of 8, that saw a bias and that described it correctly, with AReS and with GLOBE-CE: the paper's table.
PAPER = {"1": ("7/8", "0/8", "7/8", "7/8"), "2": ("1/8", "0/8", "5/8", "4/8")}
# By group and cost of the rule: the share of inputs that it serves, in the paper's chart of Black Box 1.
PAPER_RULES = {"Male": {2: 0.9, 1: 0.1}, "Female": {3: 0.1, 1: 0.9}}
NO_BIAS = "none"


def first(run: Run) -> Data:
    """Audit Black Box 1, and list the rules that each group takes."""
    from globece.datasets.user_studies import black_box_1

    study = black_box_1(400 if run.quick else 4000)
    au = _audited(run, study)
    return {**_answer(study, au), "rules": _rules(au)}


def second(run: Run) -> Data:
    """Audit Black Box 2, and take from the audit what the figure shows."""
    from globece.datasets.user_studies import black_box_2, least_costs

    study = black_box_2(400 if run.quick else 4000)
    au = _audited(run, study)
    best = least_costs(study)[au.explanation.rows]
    return {
        **_answer(study, au),
        "over_optimum": float(au.cost.sum() / best.sum() - 1.0) if np.isfinite(au.cost).all() else None,
        "group_optimum": {name: float(best[au.labels() == au.groups.index(name)].mean()) for name in au.by_group},
        "mean_costs": {name: _mean_cost(au.explanation_of(name)) for name in au.by_group},
        **_figures(au),
    }


def _mean_cost(ex: Any) -> float:
    """The l2 norm of the mean translation, each feature in units of cost; all features here are continuous."""
    rates = np.array([ex.cost.rates[f.start] for f in ex.space.features])
    return float(np.linalg.norm(ex.mean_translation().change * rates))


def without(run: Run) -> Data:
    """Black Box 2 with a group that is at random: there is nothing to find."""
    from globece.datasets.user_studies import black_box_2

    study = black_box_2(400 if run.quick else 4000, gap=0.0)
    return _answer(study, _audited(run, study))


def _audited(run: Run, study: Any) -> Any:
    from globece import AuditSettings, Climb, audit

    few: dict[str, Any] = (
        {"search": Climb(rays=300), "audit_settings": AuditSettings(permutations=99, resamples=50)} if run.quick else {}
    )
    return audit(study.model, study.X, by=study.by, space=study.space, cost=study.cost, favourable=1, rng=0, **few)


def _answer(study: Any, au: Any) -> Data:
    v = au.verdict
    return {
        "study": study.name,
        "truth": [study.recourse_bias_against, study.model_bias_against],
        "found": [v.against, v.model_bias_against],
        "conclusion": v.conclusion,
        "p": float(v.p),
        "text": v.text,
        "groups": {
            name: {
                "affected": int(m.affected),
                "rejected": float(m.rejection_rate),
                "score": float(m.score),
                "interval": [float(x) for x in m.score_interval],
            }
            for name, m in au.by_group.items()
        },
    }


def _rules(au: Any) -> Data:
    """For each group what its inputs change along their cheapest direction: how many, at which cost."""
    found = {}
    for name in au.by_group:
        ex = au.explanation_of(name)
        made = ex.counterfactuals()
        before, after = ex.space.encode(made.before), ex.space.encode(made.after)
        texts = [_change(ex.space, x, y) for x, y in zip(before, after, strict=True)]
        found[name] = [
            {"rule": text, "cost": float(made.cost[texts.index(text)]), "share": texts.count(text) / ex.n_affected}
            for text in sorted(set(texts), key=lambda t: -texts.count(t))
        ]
    return found


def _change(space: Any, x: Any, y: Any) -> str:
    moved = [f for f in space.features if not np.array_equal(x[f.columns], y[f.columns])]

    def said(z: Any) -> str:
        return " and ".join(f"{f.name} = {f.label(f.categories[int(z[f.columns].argmax())])}" for f in moved)

    return f"If {said(x)}, Then {said(y)}"


def _figures(au: Any) -> Data:
    """What the library's displays of an audit draw."""
    from globece.plots import GroupCostsDisplay, GroupProfilesDisplay, GroupTranslationsDisplay

    profiles, costs = GroupProfilesDisplay.from_audit(au), GroupCostsDisplay.from_audit(au)
    moves = GroupTranslationsDisplay.from_audit(au)
    return {
        "budget": float(au.explanation.budget),
        "level": float(profiles.level),
        "bands": {
            name: {**{k: as_list(getattr(b, k)) for k in ("limit", "coverage", "low", "high")}, "n": int(b.n)}
            for name, b in profiles.bands.items()
        },
        "costs": {name: as_list(np.sort(c)) for name, c in costs.costs.items()},
        "scores": {name: [float(x) for x in s] for name, s in costs.scores.items()},
        "features": list(moves.features),
        "moves": {name: as_list(c) for name, c in moves.costs.items()},
    }


# -- the page ----------------------------------------------------------------------------------------------------------


def show(found: Mapping[str, Data]) -> Shown:
    """The answers beside the truth and the paper's users; then what each study shows."""
    have = {name: found[f"{KEY}/{name}"] for name in ("1", "2", "2-at-random") if f"{KEY}/{name}" in found}
    if not have:
        return Shown(missing_rows(PART, found))
    text, figures = _answers(have), {}
    if "1" in have:
        text += _first_text(have["1"]["rules"])
        figures["user-study-1"] = _first_figure(have["1"])
    if "2" in have:
        text += _second_text(have["2"])
        figures["user-study-2"] = _second_figure(have["2"])
    return Shown(text + missing_rows(PART, found), figures)


def _answers(have: Mapping[str, Data]) -> str:
    head = ["study", "truth: recourse bias against", "audit", "truth: model bias against", "audit", "p"]
    head += ["AReS users: bias", "described", "GLOBE-CE users: bias", "described"]
    body = []
    for name, data in have.items():
        (recourse, model), (found, rejects) = data["truth"], data["found"]
        body.append(
            [
                data["study"] + (", group at random" if name == "2-at-random" else ""),
                recourse or NO_BIAS,
                (found or NO_BIAS) + ("" if found == recourse else " (**wrong**)"),
                model or NO_BIAS,
                (rejects or NO_BIAS) + ("" if rejects == model else " (**wrong**)"),
                f"{data['p']:.4f}",
                *PAPER.get(name, ("",) * 4),
            ]
        )
    right = sum(data["found"] == data["truth"] for data in have.values())
    return f"""The paper shows two made-up models to users of AReS and of GLOBE-CE, and counts who sees that one group's
recourse is dearer, and who says why. The study itself cannot be run again here; its question can be put to the audit.
It gives the right answer, about recourse and about rejections, to {right} of {len(have)} models; the one with a group
at random has no bias to find. (The models are made here from the paper's description, as it gives no data.)

{table(head, body)}
"""


def _first_text(rules: Data) -> str:
    body = []
    for name, mine in rules.items():
        for r in mine:
            said = PAPER_RULES.get(name, {}).get(round(r["cost"]))
            body.append([name, r["rule"], f"{r['cost']:g}", percent(r["share"]), "" if said is None else percent(said)])
    head = ["group", "what its inputs change", "cost", "share of its inputs", "paper"]
    return f"""**Black Box 1: the rules by group.** In the paper more females are rejected, but most of them lack
healthcare alone; most rejected males lack job and property. AReS shows the rules without the shares, which is what
misled the paper's users.

{table(head, body)}
"""


def _second_text(data: Data) -> str:
    groups = "; ".join(
        f"{name} {g['score']:.2f} ({g['interval'][0]:.2f} to {g['interval'][1]:.2f}), at best "
        f"{data['group_optimum'][name]:.2f}"
        for name, g in data["groups"].items()
    )
    norms = "; ".join(f"{name} {norm:.2f}" for name, norm in data["mean_costs"].items())
    near = data["over_optimum"]
    excess = "not everybody is covered" if near is None else f"{near:.2%} above the least that is possible, in total"
    return f"""**Black Box 2: HELOC with a made-up ForeignWorker.** The paper says that GLOBE-CE comes close to the
least costs, which are known for a linear model and l2 costs. Here the costs are {excess}. Scores by group, with
intervals: {groups}. The l2 norm of the mean translation in units of cost, as the paper's third panel has it: {norms}.
The figure is the audit's own; its third panel has the average cost of each feature's change.
"""


def _first_figure(data: Data) -> Any:
    """Who pays what: for each group the share of its inputs that each rule serves, and who is rejected."""
    from globece.plots.style import PALETTE

    figure, (left, right) = new_figure(2, 10.4, 3.6)
    groups = list(data["groups"])
    highest = max([round(r["cost"]) for rules in data["rules"].values() for r in rules], default=1)
    across = np.arange(1, highest + 1)
    for i, name in enumerate(groups):
        shares = [sum(r["share"] for r in data["rules"][name] if round(r["cost"]) == c) for c in across]
        at = across + (i - (len(groups) - 1) / 2) * 0.36
        left.bar(at, shares, 0.33, color=PALETTE[i], linewidth=0, label=name)
        paper = [PAPER_RULES.get(name, {}).get(int(c)) for c in across]
        known = [(x, p) for x, p in zip(at, paper, strict=True) if p is not None]
        left.plot(*zip(*known, strict=True), "_", color="#222222", markersize=26, markeredgewidth=1.6, linestyle="none")
    left.plot([], [], "_", color="#222222", markersize=12, label="the paper's share")
    left.set_xticks(across)
    in_shares(left, "share of the group's affected inputs")
    write(left, "What recourse costs", x="cost of recourse")
    for i, name in enumerate(groups):
        right.bar([i], [data["groups"][name]["rejected"]], 0.5, color=PALETTE[i], linewidth=0)
    right.set_xticks(range(len(groups)), groups)
    right.set_xlim(-0.8, len(groups) - 0.2)
    in_shares(right, "share rejected")
    write(right, "Who is rejected")
    legend_below(figure, left)
    return figure


def _second_figure(data: Data) -> Any:
    from globece.plots import GroupCostsDisplay, GroupProfilesDisplay, GroupTranslationsDisplay
    from globece.plots.groups import Band

    figure, axes = new_figure(3, 15.6, 4.4)
    bands = {
        name: Band(n=b["n"], **{k: as_array(b[k]) for k in ("limit", "coverage", "low", "high")})
        for name, b in data["bands"].items()
    }
    costs = {name: as_array(c) for name, c in data["costs"].items()}
    scores = {name: (s[0], s[1], s[2]) for name, s in data["scores"].items()}
    moves = {name: as_array(c) for name, c in data["moves"].items()}
    GroupProfilesDisplay(bands, data["budget"], data["level"]).plot(axes[0])
    GroupCostsDisplay(costs, scores, data["budget"]).plot(axes[1])
    GroupTranslationsDisplay(tuple(data["features"]), moves).plot(axes[2], top=8)
    return figure


PART = Part(
    KEY,
    "The user studies",
    "tab:userstudies, fig:userstudies, fig:globeceheloc, fig:us2_exp",
    (
        Cell(f"{KEY}/1", first),
        Cell(f"{KEY}/2", second, needs=("heloc",)),
        Cell(f"{KEY}/2-at-random", without, needs=("heloc",)),
    ),
    show,
)
