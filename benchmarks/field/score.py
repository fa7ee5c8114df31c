"""Tables of the runs: area over cost against the best peer of each problem, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.field.peers import ENTRIES
from benchmarks.field.runs import Run
from benchmarks.scratch.score import FLOOR, markdown

LEVEL = 1.03  # ratio up to which two methods are level
TARGETS = {"level set": (0.1, 0.05), "optimum": (0.1, 0.01)}  # errors whose cost is reported
RIGHT = {"level set": 0.1, "optimum": 0.01}  # error up to which a stop was right
N_RESAMPLES = 1000  # of the starts, for intervals


@dataclass(frozen=True)
class Comparison:
    """A method over the best other one of a problem, over the starts that both have.

    Attributes:
        problem: Name of the problem.
        kind: "level set" or "optimum".
        starts: Number of starts.
        area: Mean area of the method.
        best: Name of the best other method.
        best_area: Its mean area.
        low: Lower end of the 95 % interval of the ratio over starts.
        high: Upper end.
    """

    problem: str
    kind: str
    starts: int
    area: float
    best: str
    best_area: float
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """Area over that of the best other method."""
        return (self.area + FLOOR) / (self.best_area + FLOOR)


def compared(runs: Sequence[Run], method: str) -> list[Comparison]:
    """Compare a method with the others on every problem that both have starts of."""
    found = []
    for problem in dict.fromkeys(run.key.problem for run in runs):
        areas: dict[str, dict[int, float]] = {}
        for run in runs:
            if run.key.problem == problem:
                areas.setdefault(run.key.peer, {})[run.key.start] = run.area
        own = areas.pop(method, None)
        if own is None or not areas:
            continue
        starts = sorted(set(own).intersection(*areas.values()))
        if not starts:
            continue
        means = {name: float(np.mean([of[s] for s in starts])) for name, of in areas.items()}
        best = min(means, key=lambda name: means[name])
        ours = np.array([own[s] for s in starts])
        theirs = np.array([areas[best][s] for s in starts])
        low, high = _interval(ours, theirs)
        kind = next(run.kind for run in runs if run.key.problem == problem)
        found.append(
            Comparison(
                *(problem, kind, len(starts), float(ours.mean()), best, means[best], low, high)
            )
        )
    return found


def _interval(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of means, by resampling the starts."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(ours), (N_RESAMPLES, len(ours)))
    ratios = (ours[chosen].mean(axis=1) + FLOOR) / (theirs[chosen].mean(axis=1) + FLOOR)
    return float(np.quantile(ratios, 0.025)), float(np.quantile(ratios, 0.975))


def comparison_table(comparisons: Sequence[Comparison], method: str) -> str:
    """Return a row for each problem, in Markdown."""
    head = ("problem", "goal", "starts", f"area of {method}", "best peer", "its area", "ratio")
    rows = [
        (
            *(c.problem, c.kind, str(c.starts), f"{c.area:.4f}", c.best, f"{c.best_area:.4f}"),
            f"{c.ratio:.2f} ({c.low:.2f} to {c.high:.2f})",
        )
        for c in comparisons
    ]
    return markdown(head, rows)


def summary_table(runs: Sequence[Run]) -> str:
    """Return a row for each method: its areas over the best other one of each problem."""
    head = ("method", "problems", "ahead or level", "geometric mean", "worst", "s per suggestion")
    rows = []
    for method in dict.fromkeys(run.key.peer for run in runs):
        found = compared(runs, method)
        if not found:
            continue
        ratios = np.array([c.ratio for c in found])
        worst = max(found, key=lambda c: c.ratio)
        seconds = np.mean([run.seconds for run in runs if run.key.peer == method])
        level = int((ratios <= LEVEL).sum())
        rows.append(
            (
                *(method, str(len(found)), f"{level} ({level / len(found):.0%})"),
                f"{np.exp(np.log(ratios).mean()):.3f}",
                f"{worst.ratio:.2f} ({worst.problem})",
                f"{seconds:.3f}",
            )
        )
    return markdown(head, rows)


def detail_table(runs: Sequence[Run], kind: str) -> str:
    """Return a row for each problem and method: area, cost to two errors, stops, time."""
    of_kind = [run for run in runs if run.kind == kind]
    targets = TARGETS[kind]
    word = "F1" if kind == "level set" else "regret"
    names = [f"{word} {1 - e if kind == 'level set' else e:g}" for e in targets]
    head = ("problem", "method", "runs", "area", *(f"cost to {name}" for name in names))
    rows = []
    for problem, method in dict.fromkeys((run.key.problem, run.key.peer) for run in of_kind):
        own = [run for run in of_kind if (run.key.problem, run.key.peer) == (problem, method)]
        costs = [_median_cost(own, target) for target in targets]
        stops = [run for run in own if run.finished is not None]
        right = sum(run.final <= RIGHT[kind] for run in stops)
        rows.append(
            (
                *(problem, method, str(len(own)), f"{np.mean([run.area for run in own]):.4f}"),
                *costs,
                f"{right} of {len(stops)}" if stops else "-",
                f"{np.mean([run.seconds for run in own]):.3f}",
            )
        )
    return markdown((*head, "stops right", "s per suggestion"), rows)


def _median_cost(runs: Sequence[Run], error: float) -> str:
    cost = float(np.median([run.cost_to(error) for run in runs]))
    return f"{cost:.3g}" if np.isfinite(cost) else "-"


def peer_list(names: Iterable[str]) -> str:
    """Return what each peer is, in Markdown."""
    return markdown(("peer", "what"), [(name, ENTRIES[name].what) for name in names])
