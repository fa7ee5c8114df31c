"""One run of one method from one start, and the file that keeps finished runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import truvar as tv
from benchmarks.measure import clock, one_thread
from benchmarks.scratch.methods import make
from benchmarks.scratch.problems import Case, Instance, Kind, cases

FIRST = 3  # random candidates that every method is told before it chooses
EVERY = 5  # measurements between checkpoints

Key = tuple[str, str, int]
"""Problem, method and start."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        problem: Name of the problem.
        method: Name of the method.
        start: Number of the start.
        steps: Number of measurements it was meant to have.
        fingerprint: Checksum of the instance.
        kind: Kind of the problem.
        rows: Rows measured, in order.
        checkpoints: Numbers of measurements at which the answer was scored.
        scores: Normalised regret of the recommended row, or F1, at the checkpoints.
        measured: Normalised regret of the best measured row at the checkpoints; empty for a level
            set.
        finished: Number of measurements after which the method called the problem solved; None if
            it did not.
        final: Score at that moment, or at the end.
        seconds: Processor time.
    """

    problem: str
    method: str
    start: int
    steps: int
    fingerprint: str
    kind: Kind
    rows: list[int]
    checkpoints: list[int]
    scores: list[float]
    measured: list[float]
    finished: int | None
    final: float
    seconds: float

    @property
    def key(self) -> Key:
        return self.problem, self.method, self.start

    @property
    def area(self) -> float:
        """Mean over the checkpoints of the regret of the recommended row, or of 1 - F1."""
        mean = sum(self.scores) / len(self.scores)
        return mean if self.kind == "optimum" else 1.0 - mean

    def at(self, checkpoint: int) -> float | None:
        """Return the score at a checkpoint; None if the run has none there."""
        return dict(zip(self.checkpoints, self.scores, strict=True)).get(checkpoint)

    def measured_at(self, checkpoint: int) -> float | None:
        """Return the regret of the best measured row at a checkpoint."""
        return dict(zip(self.checkpoints, self.measured, strict=False)).get(checkpoint)


def checkpoints(steps: int) -> list[int]:
    """Return the numbers of measurements at which answers are scored: every fifth, and the last."""
    return [n for n in range(FIRST, steps + 1) if n % EVERY == 0 or n == steps]


@lru_cache(maxsize=1)
def _cases() -> dict[str, Case]:
    return {case.name: case for case in cases()}


@lru_cache(maxsize=1024)
def instance_of(problem: str, start: int) -> Instance:
    """Return a start of a problem."""
    return _cases()[problem].instance(start)


def run(problem: str, method: str, start: int, steps: int) -> Run:
    """Run a method from a start, on one thread."""
    with one_thread():
        return _run(problem, method, start, steps)


def _run(problem: str, method: str, start: int, steps: int) -> Run:
    instance = instance_of(problem, start)
    kind = _cases()[problem].kind
    begun = clock()
    method_run = make(method, instance)
    rows: list[int] = []
    scores: list[float] = []
    measured: list[float] = []
    scored = checkpoints(steps)
    finished: int | None = None
    final = float("nan")
    first = instance.first(FIRST)
    while len(rows) < steps:
        try:
            row = first[len(rows)] if len(rows) < FIRST else method_run.ask()
        except tv.Finished:
            finished = len(rows)
            break
        rows.append(row)
        method_run.tell(row, instance.measure(row, len(rows)))
        if len(rows) in scored:
            scores.append(_score(instance, method_run.report()))
            measured.append(min(instance.regret(row) for row in rows))
    if finished is None:
        final = scores[-1]
    else:
        final = _score(instance, method_run.report())
        missing = len(scored) - len(scores)
        scores += [final] * missing
        measured += [min(instance.regret(row) for row in rows)] * missing
    if kind == "level set":
        measured = []
    return Run(
        problem=problem,
        method=method,
        start=start,
        steps=steps,
        fingerprint=instance.fingerprint,
        kind=kind,
        rows=rows,
        checkpoints=scored,
        scores=[round(score, 6) for score in scores],
        measured=[round(regret, 6) for regret in measured],
        finished=finished,
        final=round(final, 6),
        seconds=round(clock() - begun, 3),
    )


def _score(instance: Instance, answer: Any) -> float:
    return (
        instance.f1(answer)
        if isinstance(instance.goal, tv.LevelSet)
        else instance.regret(int(answer))
    )


class RunFile:
    """Finished runs in a file of one JSON object per line. Of two runs with the same key the later
    one counts.

    Args:
        path: The file; None keeps the runs in memory only.
        steps: Number of measurements; runs with another number are ignored.
        again: Methods whose kept runs are ignored.
    """

    def __init__(self, path: Path | None, steps: int, again: Iterable[str] = ()) -> None:
        self.path = path
        self.runs: dict[Key, Run] = {}
        ignored = set(again)
        if path is None or not path.exists():
            return
        text = path.read_text(encoding="utf-8")
        if text and not text.endswith("\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")  # ends the line that an interrupted command left
        for line in text.splitlines():
            try:
                found = Run(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                continue  # a line that an interrupted command left
            if found.steps == steps and found.method not in ignored:
                self.runs[found.key] = found

    def has(self, key: Key) -> bool:
        """Return whether a run is kept and was made on the present version of its problem."""
        kept = self.runs.get(key)
        return kept is not None and kept.fingerprint == instance_of(key[0], key[2]).fingerprint

    def add(self, run: Run) -> None:
        """Keep a run."""
        self.runs[run.key] = run
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(run)) + "\n")
