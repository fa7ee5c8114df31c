"""Every policy and replicate: handed out to processes or a cluster, and kept on disk when done.

Every replicate starts from its own random point, the same for every policy, and draws its own noise; a run depends on
nothing but the problem, the truth, the policy, the seed and the replicate, so results are the same however the work is
spread.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.acquisition import Policy, policy_named
from truvar.backtest.result import Backtest
from truvar.backtest.simulation import Judged, Simulator, Truth, is_noisy, simulate_run, true_values
from truvar.exceptions import TruvarError
from truvar.messages import for_interface
from truvar.problem import Problem, load_problem
from truvar.study.executors import WorkerPool

Policies = Sequence[Policy | str] | Mapping[str, Policy | str]


def backtest(
    problem: Problem | str | Path,
    truth: str | Array | Callable[[int], Truth],
    policies: Policies,
    *,
    replicates: int = 20,
    budget: float | None = None,
    seed: int = 0,
    noisy: bool | None = None,
    judged: Judged = "reported",
    until: float | None = None,
    jobs: int = 1,
    executor: Any = None,
    folder: str | Path | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Backtest:
    """Replays known values for every policy and replicate, to the budget.

    truth     the column of the problem's table that answers, its values on the domain, or what gives the values or the
              `Function` of each replicate
    policies  rules or names (a name with "/cost" behind it divides its score by the cost), or both by their own names
    noisy     whether noise is added to the true values; None: where the problem says how much there is
    judged    regret is that of the point "reported" (of the best mean), or of the best one "measured"
    until     a run ends once its score is that good, within the budget
    jobs      processes that share the work; or any `executor` does, a Dask client too
    folder    where every finished run is kept: a backtest that was interrupted continues where it stopped
    progress  is called with the number of runs done and of all
    """
    problem = problem if isinstance(problem, Problem) else load_problem(problem)
    rules = _named(policies)
    spend = budget if budget is not None else problem.run.get("budget")
    if spend is None or not spend > 0:
        raise TruvarError(
            f"a backtest needs a budget > 0 to compare at, got {'missing' if spend is None else spend}; give "
            f"{for_interface('budget=...', cli='--budget COST')}"
        )
    if replicates < 1 or jobs < 1:
        raise TruvarError(f"replicates and jobs must be at least 1, got {replicates!r} and {jobs!r}")
    if judged not in ("reported", "measured"):
        raise TruvarError(f"judged must be 'reported' or 'measured', got {judged!r}; give one of them")
    values = truth if callable(truth) else true_values(problem.domain, truth)
    for rule in rules.values():
        study = problem.study(policy=rule)
        rule.places(study.policy_context(), study.candidates())  # a rule that does not suit the problem is refused now
    noise = is_noisy(problem) if noisy is None else noisy
    runs = [
        _Run(problem, name, rule, values, float(spend), (seed, r), noise, judged, until)
        for r in range(replicates)
        for name, rule in rules.items()
    ]
    kept = _Kept(None if folder is None else Path(folder))
    tables = {run: table for run in runs if (table := kept.read(run)) is not None}
    todo = [run for run in runs if run not in tables]
    if progress is not None:
        progress(len(tables), len(runs))
    for run, table in _results(todo, jobs, executor):
        tables[run] = table
        kept.write(run, table)
        if progress is not None:
            progress(len(tables), len(runs))
    measure = "F1" if problem.study().goal.level_set else "regret"
    return Backtest(pd.concat([tables[run] for run in runs], ignore_index=True), measure, float(spend))


@dataclass(frozen=True, eq=False)
class _Run:
    """One policy, one replicate."""

    problem: Problem
    name: str
    rule: Policy
    truth: Array | Callable[[int], Truth]
    budget: float
    seed: tuple[int, int]
    noisy: bool
    judged: Judged
    until: float | None

    def __call__(self) -> pd.DataFrame:
        start = int(np.random.default_rng(self.seed).integers(len(self.problem.domain)))
        seed = int(np.random.SeedSequence(self.seed).generate_state(1)[0])
        study = self.problem.study(policy=self.rule, start=start, seed=seed)
        truth = self.truth(self.seed[1]) if callable(self.truth) else self.truth
        with blas_in_one_thread():  # the processes share the work; and one thread sums in one order
            answers = Simulator(truth, self.noisy, self.seed, self.judged)
            return simulate_run(study, answers, self.budget, self.name, self.seed[1], self.until)

    @property
    def key(self) -> str:
        """What the result depends on, as a name for it."""
        from importlib.metadata import version

        facts = [self.problem.to_dict(), self.name, repr(self.rule), self.budget, self.seed, self.noisy, self.judged]
        facts += [] if self.until is None else [self.until]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
        study = self.problem.study()
        table = study.candidates()
        truth = np.frombuffer(repr(self.truth).encode(), np.uint8) if callable(self.truth) else self.truth
        for array in (table.points, table.noise, table.cost, truth):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(f"{study.kernel!r} {version('truvar')}".encode())  # the kernel may come from a file of its own
        return digest.hexdigest()[:24]


def _named(policies: Policies) -> dict[str, Policy]:
    """The rules by the names they are reported under."""
    if isinstance(policies, Mapping):
        rules = {name: policy_named(rule) for name, rule in policies.items()}
    else:
        rules = {}
        for policy in policies:
            name = policy if isinstance(policy, str) else type(policy).__name__
            if name in rules:
                raise TruvarError(
                    f"two policies are called {name!r}; "
                    + for_interface("give them as a dict, {name: policy}", cli="leave out one of them")
                )
            rules[name] = policy_named(policy)
    if not rules:
        raise TruvarError("a backtest needs at least one policy, but none was given; name some, such as truvar,gchk")
    return rules


def _results(runs: Sequence[_Run], jobs: int, executor: Any) -> Iterator[tuple[_Run, pd.DataFrame]]:
    """Every run with its table, as they finish."""
    if executor is None and jobs == 1:
        for run in runs:
            yield run, run()
        return
    own: Any = ProcessPoolExecutor(min(jobs, len(runs) or 1)) if executor is None else nullcontext(executor)
    with own as workers:
        pool = WorkerPool(workers, workers=1)  # all runs are handed out at once
        futures = {pool.submit(run): run for run in runs}
        try:
            while futures:
                for future in pool.wait():
                    yield futures.pop(future), future.result()
        except BrokenExecutor as error:
            raise TruvarError(
                f"a worker died ({error}); run again: with a folder, what was finished is kept"
            ) from error
        finally:
            for future in futures:
                future.cancel()


class _Kept:
    """Finished runs on disk, each in a file of its own that is there whole or not at all."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / "runs"
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise TruvarError(f"the folder {folder} cannot be made ({error.strerror}); give another") from None

    def read(self, run: _Run) -> pd.DataFrame | None:
        path = self._path(run)
        if path is None or not path.exists():
            return None
        return pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))

    def write(self, run: _Run, table: pd.DataFrame) -> None:
        path = self._path(run)
        if path is not None:
            draft = path.with_suffix(f".{os.getpid()}.draft")
            draft.write_text(json.dumps(table.to_dict("list")), encoding="utf-8")  # numbers come back to the last bit
            os.replace(draft, path)

    def _path(self, run: _Run) -> Path | None:
        return None if self._folder is None else self._folder / f"{run.key}.json"
