"""Tables of the runs: area over cost against the best peer of each problem, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.field.peers import ENTRIES, OURS
from benchmarks.field.runs import Run
from benchmarks.scratch.score import FLOOR, markdown

LEVEL = 1.03  # ratio up to which two methods are level
TARGETS = {"level set": (0.1, 0.05), "optimum": (0.1, 0.01)}  # errors whose cost is reported
RIGHT = {"level set": 0.1, "optimum": 0.01}  # error up to which a stop was right
N_RESAMPLES = 1000  # of the starts, for intervals
RACE = (
    2.0,
    1.5,
    1.33,
    1.25,
)  # ratio to the best peer above which a peer is out after 1, 2, ... starts


@dataclass(frozen=True)
class Comparison:
    """A method over the best other one of a problem, over the starts that both have.

    Attributes:
        problem: Name of the problem.
        kind: "level set" or "optimum".
        ours: Area of the method, or its cost to a target, of each start.
        best: Name of the best other method.
        theirs: Those of the best other method.
        floor: Number added to both in a ratio.
    """

    problem: str
    kind: str
    ours: tuple[float, ...]
    best: str
    theirs: tuple[float, ...]
    floor: float = FLOOR

    @property
    def starts(self) -> int:
        """Number of starts."""
        return len(self.ours)

    @property
    def area(self) -> float:
        """Mean of the method."""
        return float(np.mean(self.ours))

    @property
    def best_area(self) -> float:
        """Mean of the best other method."""
        return float(np.mean(self.theirs))

    @property
    def ratio(self) -> float:
        """Mean over that of the best other method."""
        return (self.area + self.floor) / (self.best_area + self.floor)

    @property
    def is_level(self) -> bool:
        """Whether the method is ahead or level, by the ratio that the table shows."""
        return round(self.ratio, 2) <= LEVEL

    @cached_property
    def resampled(self) -> np.ndarray:
        """Ratios of resampled starts, (N_RESAMPLES,)."""
        rng = np.random.default_rng(0)
        chosen = rng.integers(0, self.starts, (N_RESAMPLES, self.starts))
        ours = np.array(self.ours)[chosen].mean(axis=1)
        theirs = np.array(self.theirs)[chosen].mean(axis=1)
        return np.asarray((ours + self.floor) / (theirs + self.floor))

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval of the ratio over starts."""
        return float(np.quantile(self.resampled, 0.025))

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval of the ratio over starts."""
        return float(np.quantile(self.resampled, 0.975))


@dataclass(frozen=True)
class Overall:
    """The comparisons of several problems in one line.

    Attributes:
        problems: Number of problems.
        level: Number of those where the method is ahead or level.
        mean: Geometric mean of the ratios.
        low: Lower end of its 95 % interval over problems and starts.
        high: Upper end.
        worst: Comparison with the largest ratio.
    """

    problems: int
    level: int
    mean: float
    low: float
    high: float
    worst: Comparison

    def __str__(self) -> str:
        level = f"ahead or level on {self.level} of {self.problems}"
        worst = f"worst {self.worst.ratio:.2f} ({self.worst.problem}, {self.worst.best})"
        return (
            f"geometric mean {self.mean:.2f} ({self.low:.2f} to {self.high:.2f}), {level}, {worst}"
        )


def overall(comparisons: Sequence[Comparison]) -> Overall:
    """Return the geometric mean of the ratios, with an interval over problems and their starts."""
    ratios = np.array([each.ratio for each in comparisons])
    rng = np.random.default_rng(1)
    logs = np.log([each.resampled for each in comparisons])  # (problems, N_RESAMPLES)
    chosen = rng.integers(0, len(logs), (N_RESAMPLES, len(logs)))
    means = np.exp([logs[rows, k].mean() for k, rows in enumerate(chosen)])
    low, high = np.quantile(means, [0.025, 0.975])
    level = sum(each.is_level for each in comparisons)
    worst = comparisons[int(np.argmax(ratios))]
    mean = float(np.exp(np.log(ratios).mean()))
    return Overall(len(ratios), level, mean, float(low), float(high), worst)


def eliminated(runs: Sequence[Run], problem: str) -> set[str]:
    """Return the peers that are out of the race on a problem.

    After one start these are the peers whose area is more than twice that of the best peer; the
    ratio falls with every start, see `RACE`. The study of truvar is never out, and does not count
    as the best.
    """
    areas = _values(runs, problem, lambda run: run.area)
    areas.pop(OURS, None)
    out: set[str] = set()
    n_starts = max((len(of) for of in areas.values()), default=0)
    for k in range(1, n_starts + 1):
        means = {
            name: float(np.mean([of[s] for s in range(k)]))
            for name, of in areas.items()
            if name not in out and all(s in of for s in range(k))
        }
        if not means:
            break
        limit = RACE[min(k, len(RACE)) - 1] * (min(means.values()) + FLOOR)
        out |= {name for name, mean in means.items() if mean + FLOOR > limit}
    return out


def compared(runs: Sequence[Run], method: str) -> list[Comparison]:
    """Compare the areas of a method with the others on every problem that both have starts of.

    Peers with fewer starts than the others because they are out of the race do not count.
    """
    return _compared(runs, method, lambda run: run.area, FLOOR)


def spending(runs: Sequence[Run], method: str, target: int) -> list[Comparison]:
    """Compare the costs to the first (0) or second (1) target error of each kind of problem.

    A run that never gets there counts as its budget. Problems that no method solves are left out.
    """
    found = _compared(runs, method, lambda run: _cost(run, target), 0.0)
    budgets = {run.key.problem: run.budget for run in runs}
    return [each for each in found if min(each.area, each.best_area) < budgets[each.problem]]


def _cost(run: Run, target: int) -> float:
    return min(run.cost_to(TARGETS[run.kind][target]), run.budget)


def _compared(
    runs: Sequence[Run], method: str, measure: Callable[[Run], float], floor: float
) -> list[Comparison]:
    found = []
    for problem in dict.fromkeys(run.key.problem for run in runs):
        values = _values(runs, problem, measure)
        own = values.pop(method, None)
        most = max((len(of) for of in values.values()), default=0)
        out = {name for name in eliminated(runs, problem) if len(values.get(name, ())) < most}
        values = {name: of for name, of in values.items() if name not in out}
        if own is None or not values:
            continue
        starts = sorted(set(own).intersection(*values.values()))
        if not starts:
            continue
        best = min(values, key=lambda name: np.mean([values[name][s] for s in starts]))
        kind = next(run.kind for run in runs if run.key.problem == problem)
        ours = tuple(own[s] for s in starts)
        theirs = tuple(values[best][s] for s in starts)
        found.append(Comparison(problem, kind, ours, best, theirs, floor))
    return found


def _values(
    runs: Sequence[Run], problem: str, measure: Callable[[Run], float]
) -> dict[str, dict[int, float]]:
    """Return a number of each run on a problem, by method and start."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        if run.key.problem == problem:
            found.setdefault(run.key.peer, {})[run.key.start] = measure(run)
    return found


def comparison_table(comparisons: Sequence[Comparison], method: str) -> str:
    """Return a row for each problem, in Markdown."""
    head = ("problem", "goal", "starts", f"area of {method}", "best peer", "its area", "ratio")
    rows = [
        (
            *(c.problem, c.kind, str(c.starts), f"{c.area:.4f}", c.best, f"{c.best_area:.4f}"),
            _with_interval(c),
        )
        for c in comparisons
    ]
    return markdown(head, rows)


def spending_table(runs: Sequence[Run], method: str) -> str:
    """Return a row for each problem: costs to both targets of its kind, in Markdown."""
    head = ("problem", "target", "starts", f"cost of {method}", "best peer", "its cost", "ratio")
    rows = []
    for target in range(2):
        for c in spending(runs, method, target):
            error = TARGETS[c.kind][target]
            name = f"F1 {1 - error:g}" if c.kind == "level set" else f"regret {error:g}"
            costs = (f"{c.area:.3g}", c.best, f"{c.best_area:.3g}")
            rows.append((c.problem, name, str(c.starts), *costs, _with_interval(c)))
    return markdown(head, rows)


def _with_interval(c: Comparison) -> str:
    interval = f" ({c.low:.2f} to {c.high:.2f})" if c.starts > 1 else ""
    return f"{c.ratio:.2f}{interval}"


def summary_table(runs: Sequence[Run]) -> str:
    """Return a row for each method: its areas over the best other one of each problem."""
    head = ("method", "problems", "ahead or level", "geometric mean", "worst", "s per suggestion")
    rows = []
    for method in dict.fromkeys(run.key.peer for run in runs):
        found = compared(runs, method)
        if not found:
            continue
        total = overall(found)
        seconds = np.mean([run.seconds for run in runs if run.key.peer == method])
        rows.append(
            (
                *(method, str(total.problems), f"{total.level} ({total.level / len(found):.0%})"),
                f"{total.mean:.2f} ({total.low:.2f} to {total.high:.2f})",
                f"{total.worst.ratio:.2f} ({total.worst.problem})",
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


def stop_table(runs: Sequence[Run]) -> str:
    """Return a row for each method that stopped by itself, or could have: how often rightly, when.

    A method that states how good its answer is could have stopped at the first checkpoint where
    it stated the error up to which a stop is right.
    """
    rows = []
    for method in dict.fromkeys(run.key.peer for run in runs):
        own = [run for run in runs if run.key.peer == method]
        ends = [(run, run.finished, run.final) for run in own if run.finished is not None]
        claims = [
            (run, run.claimed, run.claimed_error)
            for run in own
            if run.claimed is not None and run.claimed_error is not None
        ]
        for how, stops in (("by itself", ends), ("by its own estimate", claims)):
            if not stops:
                continue
            right = sum(error <= RIGHT[run.kind] for run, _, error in stops)
            share = np.mean([spent / run.budget for run, spent, _ in stops])
            counts = (str(len(own)), str(len(stops)), f"{right} of {len(stops)}")
            rows.append((method, how, *counts, f"{share:.0%}"))
    head = ("method", "stop", "runs", "stopped", "rightly", "share of the budget spent then")
    return markdown(head, rows)


def peer_list(names: Iterable[str]) -> str:
    """Return what each peer is, in Markdown."""
    return markdown(("peer", "what"), [(name, ENTRIES[name].what) for name in names])
