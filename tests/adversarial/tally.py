"""What came of many problems: counts by kind of model, and failures by cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.adversarial.problem import Report

OUTCOMES = ("exact", "searched", "refused")


@dataclass
class Tally:
    """Reports, counted."""

    reports: list[Report] = field(default_factory=list)

    def add(self, report: Report) -> None:
        self.reports.append(report)

    @property
    def posed(self) -> list[Report]:
        """Problems that were posed: a model could be trained."""
        return [r for r in self.reports if r.outcome != "untrainable"]

    @property
    def failures(self) -> dict[str, list[tuple[int, str, str]]]:
        """Seed, kind and detail of each failure, by cause."""
        found: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        for r in self.reports:
            for f in r.failures:
                found[f.cause].append((r.seed, r.kind, f.detail))
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def counted(self) -> dict[str, Any]:
        """Everything as plain data."""
        by_kind: dict[str, Counter[str]] = defaultdict(Counter)
        refusals: dict[str, list[int]] = defaultdict(list)
        checks: Counter[str] = Counter()
        for r in self.posed:
            by_kind[r.kind][r.outcome] += 1
            checks.update(r.checks)
            if r.outcome == "refused" and not r.failures:
                refusals[r.message[:70]].append(r.seed)
        totals = Counter(r.outcome for r in self.reports)
        failures = self.failures
        hangs = len(failures.get("hang", ())) + len(failures.get("the process died", ()))
        obscure = sum(len(v) for c, v in failures.items() if c.startswith("obscure"))
        return {
            "problems": len(self.posed),
            "outcomes": dict(totals),
            "wrong": sum(map(len, failures.values())) - hangs - obscure,
            "hangs": hangs,
            "obscure": obscure,
            "checks": dict(checks.most_common()),
            "by_kind": {k: dict(v) for k, v in sorted(by_kind.items())},
            "refusals": dict(sorted(refusals.items(), key=lambda item: -len(item[1]))),
            "failures": {cause: found[:20] for cause, found in failures.items()},
            "seconds": sum(r.seconds for r in self.reports),
        }

    def text(self) -> str:
        """Everything to read."""
        found = self.counted()
        lines = [f"{found['problems']:,} problems in {found['seconds']:,.0f} s of one core: {found['outcomes']}", ""]
        lines += [f"{'kind of model':40}" + "".join(f"{o:>10}" for o in OUTCOMES)]
        for kind, counts in found["by_kind"].items():
            lines.append(f"{kind:40}" + "".join(f"{counts.get(o, 0):10}" for o in OUTCOMES))
        lines += ["", "checks: " + ", ".join(f"{name} {n:,}" for name, n in found["checks"].items())]
        lines += ["", "refused:", *(f"  {len(n):5} {why} ({n[0]})" for why, n in list(found["refusals"].items())[:60])]
        for cause, cases in self.failures.items():
            lines += ["", f"FAILED {len(cases)} times: {cause}"]
            lines += [f"  {seed} ({kind}): {detail.strip()[-300:]}" for seed, kind, detail in cases[:6]]
        lines += ["", f"{found['wrong']} wrong, {found['hangs']} hangs, {found['obscure']} obscure errors"]
        return "\n".join(lines)
