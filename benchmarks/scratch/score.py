"""Tables of the runs, and the area of one method over that of the best other method of each
problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from benchmarks.scratch.runs import Run

FLOOR = 1e-3  # added to both areas of a ratio, so that ratios near zero are meaningful
REGRET_AT = (10, 20, 40, 60)
F1_AT = (20, 40, 60)
DISASTER = 0.5  # F1 at the end
FINISHED_F1 = 0.9  # a study that calls itself finished has at least this F1 ...
FINISHED_REGRET = 0.01  # ... or at most this normalised regret


@dataclass(frozen=True)
class Comparison:
    """A method against the best other method of a problem, over the starts that both have.

    Attributes:
        problem: Name of the problem.
        kind: Kind of the problem.
        starts: Number of starts.
        area: Mean area of the method.
        best: Name of the best other method.
        best_area: Its mean area.
    """

    problem: str
    kind: str
    starts: int
    area: float
    best: str
    best_area: float

    @property
    def ratio(self) -> float:
        return (self.area + FLOOR) / (self.best_area + FLOOR)


def compared(runs: Sequence[Run], method: str) -> list[Comparison]:
    """Compare a method with the others on every problem; problems where it or all others are
    missing are left out."""
    found = []
    for problem, of_problem in grouped(runs, "problem").items():
        by_method = {
            name: {run.start: run for run in some}
            for name, some in grouped(of_problem, "method").items()
        }
        own = by_method.pop(method, None)
        if own is None or not by_method:
            continue
        starts = set(own).intersection(*by_method.values())
        if not starts:
            continue
        areas = {
            name: float(np.mean([some[s].area for s in starts])) for name, some in by_method.items()
        }
        best = min(areas, key=lambda name: areas[name])
        area = float(np.mean([own[s].area for s in starts]))
        found.append(Comparison(problem, of_problem[0].kind, len(starts), area, best, areas[best]))
    return found


def grouped(runs: Iterable[Run], attribute: str) -> dict[str, list[Run]]:
    """Return the runs by an attribute, in the order of its first occurrence."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(getattr(run, attribute), []).append(run)
    return found


def is_disaster(run: Run) -> bool:
    """Return whether a run on a level set ends with a low F1."""
    return run.kind == "level set" and run.scores[-1] < DISASTER


def finished_wrongly(run: Run) -> bool:
    """Return whether a run called itself finished with an answer that is not good enough."""
    if run.finished is None:
        return False
    return run.final < FINISHED_F1 if run.kind == "level set" else run.final > FINISHED_REGRET


# -- Markdown
# --------------------------------------------------------------------------------------------------


def optima_table(runs: Sequence[Run]) -> str:
    """Return the mean regrets of the recommended and of the best measured row, by problem and
    method."""
    recommended = [f"recommended, {n}" for n in REGRET_AT]
    measured = [f"measured, {n}" for n in REGRET_AT]
    head = (
        "problem",
        "method",
        "runs",
        *recommended,
        *measured,
        "area",
        "finished early",
        "s per run",
    )
    rows = []
    for problem, of_problem in grouped(runs, "problem").items():
        for method, some in grouped(of_problem, "method").items():
            scores = [_mean(run.at(n) for run in some) for n in REGRET_AT]
            best = [_mean(run.measured_at(n) for run in some) for n in REGRET_AT]
            rows.append((problem, method, str(len(some)), *scores, *best, *_common_cells(some)))
    return markdown(head, rows)


def level_set_table(runs: Sequence[Run]) -> str:
    """Return the mean F1 scores and the share of disasters, by problem and method."""
    head = (*("problem", "method", "runs"), *(f"F1, {n}" for n in F1_AT), "disasters", "area")
    rows = []
    for problem, of_problem in grouped(runs, "problem").items():
        for method, some in grouped(of_problem, "method").items():
            scores = [_mean(run.at(n) for run in some) for n in F1_AT]
            disasters = f"{np.mean([is_disaster(run) for run in some]):.0%}"
            rows.append((problem, method, str(len(some)), *scores, disasters, *_common_cells(some)))
    return markdown((*head, "finished early", "s per run"), rows)


def comparison_table(comparisons: Sequence[Comparison], method: str) -> str:
    """Return the areas of a method and of the best other method."""
    head = ("problem", "kind", "starts", f"area of {method}", "best other", "its area", "ratio")
    rows = [
        (
            c.problem,
            c.kind,
            str(c.starts),
            f"{c.area:.4f}",
            c.best,
            f"{c.best_area:.4f}",
            f"{c.ratio:.2f}",
        )
        for c in comparisons
    ]
    return markdown(head, rows)


def summary_table(runs: Sequence[Run], methods: Iterable[str]) -> str:
    """Return one line per method: its areas against the best other method of each problem."""
    head = (
        "method",
        "problems",
        "at or ahead",
        "geometric mean",
        "worst",
        "disasters",
        "finished wrongly",
    )
    rows = []
    for method in methods:
        comparisons = compared(runs, method)
        if not comparisons:
            continue
        ratios = [c.ratio for c in comparisons]
        ahead = sum(ratio <= 1.0 for ratio in ratios)
        worst = max(comparisons, key=lambda c: c.ratio)
        own = [run for run in runs if run.method == method]
        rows.append(
            (
                method,
                str(len(ratios)),
                f"{ahead} ({ahead / len(ratios):.0%})",
                f"{exp(float(np.mean([log(ratio) for ratio in ratios]))):.3f}",
                f"{worst.ratio:.2f} ({worst.problem})",
                f"{sum(map(is_disaster, own))} of {sum(run.kind == 'level set' for run in own)}",
                f"{sum(map(finished_wrongly, own))} of {len(own)}",
            )
        )
    return markdown(head, rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns are aligned for a terminal."""
    widths = [max(len(line[k]) for line in [head, *rows]) for k in range(len(head))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in [head, *rows]
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.4f}" if known else "-"


def _common_cells(runs: Sequence[Run]) -> tuple[str, str, str]:
    """Return the cells of area, runs that finished early with their worst answer, and processor
    time."""
    early = [run for run in runs if run.finished is not None]
    note = "-"
    if early:
        worst = (min if early[0].kind == "level set" else max)(run.final for run in early)
        note = f"{len(early)}, after {min(run.finished or 0 for run in early)} or more, worst {worst:.3f}"
    area = f"{np.mean([run.area for run in runs]):.4f}"
    return area, note, f"{np.mean([run.seconds for run in runs]):.1f}"
