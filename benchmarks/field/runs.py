"""One run of a peer from one start until the budget is spent, and the file of finished runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import truvar as tv
from benchmarks.field.cases import Priced
from benchmarks.field.peers import Peer, make
from benchmarks.field.problems import cases
from benchmarks.measure import clock, one_thread

FIRST = 3  # random candidates that every peer is told before it chooses
N_CHECKPOINTS = 12  # answers that are scored, at equal distances of cost


class Key(NamedTuple):
    """A run: problem, peer and number of the start."""

    problem: str
    peer: str
    start: int


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        key: Problem, peer and start.
        fingerprint: Checksum of the instance.
        kind: "level set" or "optimum".
        budget: What could be spent.
        rows: Rows measured, in order.
        errors: 1 - F1, or regret of the recommended row as a share of the range of the truth, of
            what was known after each twelfth of the budget.
        finished: What was spent when the peer stopped by itself; None if it did not.
        final: Error at the end.
        seconds: Processor time per suggestion.
        claimed: What was spent at the checkpoint at which the peer first stated that its answer is
            right; None if it never did, or states nothing.
        claimed_error: Error at that checkpoint.
    """

    key: Key
    fingerprint: str
    kind: str
    budget: float
    rows: list[int]
    errors: list[float]
    finished: float | None
    final: float
    seconds: float
    claimed: float | None = None
    claimed_error: float | None = None

    @property
    def area(self) -> float:
        """Mean error over the cost."""
        return float(np.mean(self.errors))

    def cost_to(self, error: float) -> float:
        """Return the cost at which the error was first that small; infinite if it never was."""
        reached = np.flatnonzero(np.array(self.errors) <= error)
        return float("inf") if not len(reached) else self._at(int(reached[0]))

    def _at(self, checkpoint: int) -> float:
        return self.budget * (checkpoint + 1) / len(self.errors)


@lru_cache(maxsize=64)
def start_of(problem: str, number: int) -> Priced:
    """Return a start of a problem."""
    return cases()[problem].start(number)


def run(key: Key) -> Run:
    """Make a run, on one thread."""
    with one_thread():
        return _run(key)


def _run(key: Key) -> Run:
    priced = start_of(key.problem, key.start)
    instance = priced.instance
    is_level_set = isinstance(instance.goal, tv.LevelSet)
    peer = make(key.peer, priced)
    ahead = instance.first(FIRST)
    checkpoints = [priced.budget * (k + 1) / N_CHECKPOINTS for k in range(N_CHECKPOINTS)]
    rows: list[int] = []
    errors: list[float] = []
    spent = seconds = 0.0
    finished: float | None = None
    n_asked = 0
    claimed: float | None = None
    claimed_error: float | None = None
    while True:
        costs = priced.costs(rows[-1] if rows else None)
        if ahead:
            row = ahead.pop(0)
        else:
            begun = clock()
            try:
                row = peer.ask(costs)
            except tv.Finished:
                finished = spent
                break
            finally:
                seconds += clock() - begun
                n_asked += 1
        spent += float(costs[row])
        while len(errors) < N_CHECKPOINTS and checkpoints[len(errors)] < spent:
            errors.append(_error(priced, peer, rows, is_level_set))
            if claimed is None and rows and peer.is_sure():
                claimed = checkpoints[len(errors) - 1]
                claimed_error = round(errors[-1], 6)
        if spent > priced.budget:
            break
        rows.append(row)
        begun = clock()
        peer.tell(row, priced.measure(row, len(rows)))
        seconds += clock() - begun
    final = _error(priced, peer, rows, is_level_set)
    errors += [final] * (N_CHECKPOINTS - len(errors))
    return Run(
        key=key,
        fingerprint=instance.fingerprint,
        kind="level set" if is_level_set else "optimum",
        budget=priced.budget,
        rows=rows,
        errors=[round(error, 6) for error in errors],
        finished=finished,
        final=round(final, 6),
        seconds=round(seconds / max(n_asked, 1), 4),
        claimed=claimed,
        claimed_error=claimed_error,
    )


def _error(priced: Priced, peer: Peer, rows: list[int], is_level_set: bool) -> float:
    """Return the error of the present answer; 1 before there is one."""
    if not rows:
        return 1.0
    answer = peer.report()
    instance = priced.instance
    if is_level_set:
        assert isinstance(answer, np.ndarray)
        return 1.0 - instance.f1(answer)
    return instance.regret(int(answer))


def read(path: Path | None) -> dict[Key, Run]:
    """Return the runs that a file keeps, one per line; of two with one key the later counts."""
    if path is None or not path.exists():
        return {}
    found: dict[Key, Run] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line that an interrupted command left
        key = Key(*fields["key"])
        found[key] = Run(**fields | {"key": key})
    return found


def write(path: Path, made: Run) -> None:
    """Append a run to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(made) | {"key": list(made.key)}) + "\n")
