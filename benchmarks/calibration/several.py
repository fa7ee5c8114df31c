"""Are joint statements about two quantities true as often as they say?

    python -m benchmarks.calibration.several --starts 4 --json build/several.jsonl
    python -m benchmarks.calibration.several --half tuning --goals region

Two problems of the suite on the same candidates are the quantities. The region is where the first
is above its threshold and the second below; the optimum is that of the first where the second is
below. The default policy measures both at every place it chooses; statements of the result are
compared with the truth after 15, 30 and 45 measurements.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.calibration.problems import HALVES, PAIRS, Pair
from benchmarks.scratch.score import markdown

CHECKPOINTS = (15, 30, 45)
GOALS = ("region", "optimum")
Check = dict[str, Any]


def run(pair: Pair, goal: str, start: int) -> list[Check]:
    """Return the checks of one run."""
    instances = pair.instances(start)
    limits = {name: each.goal.threshold for name, each in instances.items()}
    wanted: Any = tv.AllOf(
        tv.LevelSet(limits["first"], of="first"), tv.LevelSet(below=limits["second"], of="second")
    )
    if goal == "optimum":
        wanted = tv.Maximize("first", subject_to=tv.LevelSet(below=limits["second"], of="second"))
    domain = instances["first"].domain
    study = tv.Study(domain, wanted, seed=start)
    checks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(1, CHECKPOINTS[-1] + 1):
            try:
                suggestion = study.ask()
            except tv.Finished:
                break
            values = {
                name: each.measure(suggestion.index, number) for name, each in instances.items()
            }
            study.tell(suggestion, values)
            if number in CHECKPOINTS:
                truth = {name: each.truth for name, each in instances.items()}
                found = _region(study, truth) if goal == "region" else _optimum(study, truth)
                about = {"pair": f"{pair.first} + {pair.second}", "goal": goal, "start": start}
                checks.append({**about, "t": number, **found})
    return checks


def _region(study: tv.Study, truth: dict[str, np.ndarray]) -> Check:
    result = study.result()
    inside = study.goal.is_inside(truth)

    def n_wrong(classes: Any) -> int:
        return int((classes.above & ~inside).sum() + (classes.below & inside).sum())

    strict = result.classify()
    tolerated = result.classify(tolerance=0.01)
    pointwise = result.classes
    f1 = result.f1(truth)
    estimate = result.expected_f1
    share = result.share_above
    return {
        "strict": n_wrong(strict) == 0,
        "undecided": float(strict.undecided.mean()),
        "tolerance": n_wrong(tolerated) <= np.floor(0.01 * tolerated.n_shown + 1e-9),
        "number wrong": n_wrong(pointwise) <= pointwise.max_wrong,
        "open": float(pointwise.undecided.mean()),
        "interval": estimate.low - 1e-9 <= f1 <= estimate.high + 1e-9,
        "share": share.low - 1e-9 <= inside.mean() <= share.high + 1e-9,
        "answer": f1,
    }


def _optimum(study: tv.Study, truth: dict[str, np.ndarray]) -> Check:
    result = study.result()
    inside = study.goal.is_inside(truth)
    best = int(np.argmax(np.where(inside, truth["first"], -np.inf)))
    regret = result.regret(truth)
    span = float(np.ptp(truth["first"]))
    estimate = result.expected_regret
    return {
        "strict": bool(result.classify().undecided[best]),
        "undecided": float(result.classify().undecided.mean()),
        "interval": estimate.low - 1e-9 <= regret <= estimate.high + 1e-9,
        "feasible": bool(inside[result.best.index]),
        "stated feasible": result.statements.feasible_probability,
        "answer": min(regret / span, 1.0),
    }


def table(checks: Sequence[Check], goal: str) -> str:
    """Return a row for each pair and one for all, in Markdown."""
    own = [check for check in checks if check["goal"] == goal]
    shares = [name for name in own[0] if name not in ("pair", "goal", "start", "t")]
    rows = []
    pairs = list(dict.fromkeys(check["pair"] for check in own))
    for name, members in [*((pair, [pair]) for pair in pairs), ("... all", pairs)]:
        found = [check for check in own if check["pair"] in members]
        means = [f"{np.mean([check[key] for check in found]):.3f}" for key in shares]
        rows.append((name, str(len(found)), *means))
    return markdown(("pair", "checks", *shares), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration.several")
    parser.add_argument("--half", default="reported", choices=HALVES, help="default: reported")
    parser.add_argument("--goals", default=",".join(GOALS), help="goals, with commas between")
    parser.add_argument("--starts", type=int, default=2, help="runs of every pair; default 2")
    parser.add_argument("--json", type=Path, help="finished runs are kept there")
    given = parser.parse_args(arguments)
    made: list[Check] = []
    if given.json is not None and given.json.exists():
        made = [json.loads(line) for line in given.json.read_text().splitlines()]
    done = {(check["pair"], check["goal"], check["start"]) for check in made}
    for start in range(given.starts):
        for goal in given.goals.split(","):
            for pair in PAIRS[given.half]:
                if (f"{pair.first} + {pair.second}", goal, start) in done:
                    continue
                for check in run(pair, goal, start):
                    plain = {k: v.item() if hasattr(v, "item") else v for k, v in check.items()}
                    made.append(plain)
                    if given.json is not None:
                        with given.json.open("a") as file:
                            file.write(json.dumps(plain) + "\n")
                print(".", end="", file=sys.stderr, flush=True)
    for goal in dict.fromkeys(check["goal"] for check in made):
        print(f"{goal}; checks after {', '.join(map(str, CHECKPOINTS))} measurements\n")
        print(table(made, goal), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
