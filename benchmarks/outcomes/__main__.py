"""Which method needs the fewest answers to find where a yes is probable enough, and how long it thinks?

    python -m benchmarks.outcomes --starts 3 --trials 50
    python -m benchmarks.outcomes --peer /tmp/aepsych/bin/python --json build/outcomes.jsonl

Every method asks for one answer at a time; all get the same random number in the same trial. After
every fifth trial the share of points on the wrong side of the threshold is counted, on a grid or
cloud that no method knows. The area of error is its mean over these trials. AEPsych runs in a
Python of its own, with its default model and optimiser: ten Sobol points, then EAVC or GlobalMI
(Letham et al. 2022). Times are those of a suggestion and the update after the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.outcomes.problems import PROBLEMS
from benchmarks.scratch.score import markdown

OWN = "truvar"
PEERS = ("EAVC", "GlobalMI")
EVERY = 5  # trials between two counts
FIRST = 10  # trials before the first count
REPRESENTERS = 512  # points of the box that truvar classifies

Trace = list[dict[str, float]]
"""For each count: number of trials, share that is wrong, mean error of the probability, seconds."""


def own_trace(name: str, start: int, trials: int) -> Trace:
    """Return the counts of a study in the box."""
    problem = PROBLEMS[name]
    sides = {f"x{k}": side for k, side in enumerate(zip(problem.low, problem.high, strict=True))}
    domain = tv.Domain.box(**sides, representers=REPRESENTERS)
    study = tv.Study(domain, tv.LevelSet(problem.threshold), outcome="binary", seed=start)
    truth = problem.probability(problem.points)
    found: Trace = []
    for trial in range(trials):
        begin = time.perf_counter()
        suggestion = study.ask()
        seconds = time.perf_counter() - begin
        x = np.array(list(suggestion.point.values()), dtype=float)
        answer = problem.answer(x, start, trial)
        begin = time.perf_counter()
        study.tell(suggestion, answer)
        seconds += time.perf_counter() - begin
        if trial + 1 >= FIRST:
            found.append(_count(study, problem.points, truth, trial + 1, seconds))
    return found


def _count(
    study: tv.Study, points: Any, truth: Any, trial: int, seconds: float
) -> dict[str, float]:
    """Return the errors of a study at points that it does not know."""
    count = {"trial": trial, "seconds": seconds}
    if trial % EVERY:
        return count
    threshold = study.goal.threshold
    surrogate = study._state.learner.surrogate
    posterior = surrogate.freeze_average()  # which claims are made with
    means, variances = posterior.predict(surrogate.target_points(points))
    level = float(study.transform.forward(threshold))
    from scipy.special import ndtr

    above = posterior.shares @ ndtr((means - level) / np.sqrt(variances)) >= 0.5
    probability = posterior.shares @ study.transform.inverse_each(means, variances)[0]
    count["wrong"] = float((above != (truth >= threshold)).mean())
    count["error"] = float(np.abs(probability - truth).mean())
    return count


def peer_trace(python: str, method: str, name: str, start: int, trials: int) -> Trace:
    """Return the counts of a method of AEPsych."""
    script = Path(__file__).resolve().parent / "peer.py"
    with TemporaryDirectory() as folder:  # AEPsych writes a log where it runs
        answer = subprocess.run(
            [python, str(script), method, name, str(start), str(trials)],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    return [json.loads(line) for line in answer.stdout.splitlines()]


def table(traces: dict[str, Trace], trials: int) -> str:
    """Return a row for each problem and method, in Markdown."""
    shown = [t for t in (10, 20, 30, 40, 50, 75, 100) if t <= trials]
    rows = []
    keys = {tuple(key.split("/")[:2]) for key in traces}
    for name, method in sorted(keys):
        own = [trace for key, trace in traces.items() if key.startswith(f"{name}/{method}/")]
        counted = [[each for each in trace if each["trial"] % EVERY == 0] for trace in own]
        area = np.mean([np.mean([each["wrong"] for each in trace]) for trace in counted])
        at = {
            t: np.mean([each["wrong"] for trace in counted for each in trace if each["trial"] == t])
            for t in shown
        }
        error = np.mean([trace[-1]["error"] for trace in counted])
        seconds = np.mean([each["seconds"] for trace in own for each in trace])
        wrong = " / ".join(f"{share:.3f}" for share in at.values())
        rows.append(
            (name, method, str(len(own)), f"{area:.4f}", wrong, f"{error:.3f}", f"{seconds:.2f}")
        )
    trials_shown = ", ".join(map(str, shown))
    heads = ("problem", "method", "starts", "area of error", f"wrong after {trials_shown}")
    return markdown((*heads, "error of the probability", "seconds per trial"), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.outcomes",
        description="Which method needs the fewest answers to find where a yes is probable?",
    )
    parser.add_argument("--problems", default="detection,discrimination", help="with commas")
    parser.add_argument("--starts", type=int, default=3, help="runs of every problem; default 3")
    parser.add_argument("--trials", type=int, default=50, help="answers of a run; default 50")
    parser.add_argument("--peer", help="a Python that has AEPsych; left out: truvar alone")
    parser.add_argument("--json", type=Path, help="finished runs are kept there, not made again")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    traces: dict[str, Trace] = {}
    if given.json is not None and given.json.exists():
        for line in given.json.read_text().splitlines():
            traces |= json.loads(line)
    for start in range(given.starts):
        for name in given.problems.split(","):
            for method in (OWN, *(PEERS if given.peer else ())):
                key = f"{name}/{method}/{start}"
                if key in traces:
                    continue
                if method == OWN:
                    traces[key] = own_trace(name, start, given.trials)
                else:
                    traces[key] = peer_trace(given.peer, method, name, start, given.trials)
                if given.json is not None:
                    with given.json.open("a") as file:
                        file.write(json.dumps({key: traces[key]}) + "\n")
                print(".", end="", file=sys.stderr, flush=True)
    print(table(traces, given.trials))
    return 0


if __name__ == "__main__":
    sys.exit(main())
