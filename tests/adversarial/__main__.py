"""``python -m tests.adversarial``: attack for a while, or show the problem of one seed in full."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
import warnings
from pathlib import Path

from tests.adversarial import pipelines
from tests.adversarial.problem import Report, draw, solve
from tests.adversarial.run import attack
from tests.adversarial.tally import Tally


def show(seed: int) -> bool:
    """Print the problem of a seed and what comes of it; whether nothing failed."""
    warnings.simplefilter("ignore")
    try:
        case = draw(seed)
    except pipelines.Untrainable as why:
        print(f"seed {seed}: untrainable: {why}")
        return True
    print(f"seed {seed}: {case.table.described()}")
    print(f"model: {case.subject.kind}: {pipelines.described(case.subject.model)}")
    print(f"asked: {case.subject.asked} {case.ask}")
    report = solve(seed)
    print(f"outcome: {report.outcome} in {report.seconds:.2f} s; {report.message}")
    print(f"checks: {', '.join(report.checks)}")
    for failure in report.failures:
        print(f"FAILED {failure.cause}: {failure.detail}")
    return not report.failures


def main() -> int:
    """Read the arguments and do it."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, help="problems to show in full")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--start", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--json", type=Path, help="where to write the counts")
    asked = parser.parse_args()
    if asked.seeds:
        return 0 if all([show(seed) for seed in asked.seeds]) else 1
    tally, began = Tally(), time.monotonic()

    def told(report: Report) -> None:
        tally.add(report)
        if report.failures or len(tally.reports) % 100 == 0:
            causes = "; ".join(f.cause for f in report.failures)
            passed = f"{len(tally.reports):6} problems, {time.monotonic() - began:5.0f} s"
            print(f"{passed}{f': seed {report.seed} ({report.kind}): {causes}' if causes else ''}", flush=True)

    try:
        attack(itertools.count(asked.start), asked.processes, 60.0 * asked.minutes, told)
    except KeyboardInterrupt:
        print("stopped")
    print(f"\nseeds from {asked.start}, {asked.minutes:g} minutes, {asked.processes} processes\n{tally.text()}")
    if asked.json:
        asked.json.write_text(json.dumps(tally.counted(), indent=1))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
