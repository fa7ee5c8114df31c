"""python -m benchmarks.decision [--half tuning] [--only NAME] [--policies A,B] [--starts 20]
[--side 50] [--jobs 2]"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from benchmarks.decision.policies import baselines
from benchmarks.decision.problems import Case, cases
from benchmarks.decision.runs import Outcome, run
from benchmarks.decision.score import Ratio, bootstrapped, by_target, costs
from benchmarks.measure import one_thread
from truvar.acquisition import Policy, policy_named
from truvar.exceptions import TruvarError

SIDE = 50
QUICK_SIDE = 12
OURS = "plus"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decision", description="What policies spend to reach a goal."
    )
    parser.add_argument(
        "--half",
        choices=["tuning", "held-out", "apart", "both"],
        default="tuning",
        help="which problems",
    )
    parser.add_argument("--only", action="append", help="run this problem only; may be repeated")
    parser.add_argument(
        "--policies",
        help="policies by name, with commas between; default: ours and the baselines of each "
        "problem",
    )
    parser.add_argument(
        "--starts",
        type=int,
        default=20,
        help="runs of every policy on every problem, one on each function at least",
    )
    parser.add_argument("--side", type=int, help=f"points along an axis of a grid; default {SIDE}")
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes that share the runs of a problem"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny: does it run? The numbers mean nothing"
    )
    parser.add_argument(
        "--folder", type=Path, help="finished runs are kept there, and not made again"
    )
    parser.add_argument("--json", type=Path, help="where the numbers go")
    given = parser.parse_args(arguments)
    starts, side = (2, QUICK_SIDE) if given.quick else (given.starts, given.side or SIDE)
    halves = ("tuning", "held-out") if given.half == "both" else (given.half,)
    chosen = [case for case in cases() if case.half in halves]
    if given.only:
        known = {case.name: case for case in cases()}
        unknown = [name for name in given.only if name not in known]
        if unknown:
            parser.error(f"there is no problem {unknown[0]!r}; there are {', '.join(known)}")
        chosen = [known[name] for name in given.only]
    outcomes: list[Outcome] = []
    with one_thread():
        for case in chosen:
            few = (
                replace(case, make=lambda side, make=case.make: make(side)[:starts])
                if given.quick
                else case
            )
            outcome = run(
                few, policies(case, given.policies), starts, side, given.folder, given.jobs
            )
            outcomes.append(outcome)
            made = len(next(iter(outcome.costs.values())))
            print(
                f"\n{case.name} ({case.half}, {made} starts)\n{costs(outcome).to_string()}",
                flush=True,
            )
            if OURS in outcome.seconds.index and len(outcome.seconds) > 1:
                print(f"{OURS} over the best baseline: {by_target(outcome, OURS)}", flush=True)
    overall = compared(chosen, outcomes)
    print(
        "\nGeometric mean over problems and targets of the cost over that of the best other "
        "policy, 95 % interval:"
    )
    for name, value in overall.items():
        print(f"  {name:20} {value}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(
            json.dumps(record(outcomes, overall), indent=1) + "\n", encoding="utf-8"
        )
    return 0


def policies(case: Case, names: str | None) -> dict[str, Policy]:
    """The policies to run on a problem: ours and its baselines, or those of the given names that
    suit it."""
    known = {OURS: policy_named(OURS), **baselines(case)}
    if names is None:
        return known
    found: dict[str, Policy] = {}
    for name in names.split(","):
        if name in known:
            found[name] = known[name]
            continue
        policy = policy_named(name)
        try:
            case.make(QUICK_SIDE)[0].study(
                policy=policy
            )  # raises if it is not for this kind of problem
        except TruvarError:
            continue
        found[name] = policy
    return found


def compared(chosen: Sequence[Case], outcomes: Sequence[Outcome]) -> dict[str, Ratio]:
    """Every policy that ran on all of the problems of its kind, against the best other policy of
    each of them."""
    found: dict[str, Ratio] = {}
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.seconds.index)
    for name in names:
        ran = [
            outcome
            for outcome in outcomes
            if name in outcome.seconds.index and len(outcome.seconds) > 1
        ]
        if ran:
            others = [
                [baseline for baseline in outcome.seconds.index if baseline != name]
                for outcome in ran
            ]
            found[f"{name} on {len(ran)}"] = bootstrapped(ran, name, others)
    return found


def record(outcomes: Sequence[Outcome], overall: dict[str, Ratio]) -> dict[str, object]:
    """Return the results for JSON: null where a run never reached the target."""
    tables = {
        outcome.name: {
            "budget": outcome.budget,
            "costs": {
                f"{target:g}": {
                    name: [None if cost == inf else cost for cost in table[name]] for name in table
                }
                for target, table in outcome.costs.items()
            },
        }
        for outcome in outcomes
    }
    return {
        "problems": tables,
        "overall": {name: [r.value, r.low, r.high] for name, r in overall.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
