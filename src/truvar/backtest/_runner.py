"""Run all parts of a backtest in processes or on a cluster, and keep finished runs on disk.

Every replicate starts at its own random point, the same for all policies, and has its own
noise. A run depends only on the problem, the truth, the policy, the seed and the replicate, so the
results are the same however the work is spread.
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
from truvar.backtest._result import Backtest
from truvar.backtest.simulation import Judged, Simulator, Truth, is_noisy, simulate_run, true_values
from truvar.exceptions import ExecutorError, InvalidArgumentError
from truvar.messages import for_interface
from truvar.problem import Problem, load_problem
from truvar.study.executors import WorkerPool
from truvar.validation import check_integer

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
    """Compare policies on known values, at equal cost.

    Args:
        problem: A problem, or the path of a problem file.
        truth: Name of the column of the problem's table with the true values, their array, or a
            function of the number of the replicate that returns an array or a `Function`.
        policies: Policies or names of policies, or a dict of either by the names to report them
            under. A name followed by "/cost" divides the score by the cost.
        replicates: Number of runs per policy.
        budget: Cost that each run may spend. Default: the budget of the problem.
        seed: Seed of the starting points, the noise and the policies.
        noisy: Whether noise is added to the true values. Default: if the problem states its
            variance.
        judged: Point whose regret is the score of an optimum: "reported" is the point of best
            posterior mean, "measured" the best point measured so far.
        until: Score at which a run ends before the budget is spent.
        jobs: Number of processes.
        executor: Executor to use in place of processes, such as a Dask client.
        folder: Folder in which finished runs are kept. With a folder, an interrupted backtest
            continues where it stopped.
        progress: Called with the number of finished runs and the number of all runs.

    Returns:
        The curves of all runs, with a summary.

    Raises:
        InvalidArgumentError: If an argument cannot be used.
        UnknownPolicyError: If there is no policy of a given name.
        UnsupportedGoalError: If a policy does not serve the problem's goal; no run is started then.
        ExecutorError: If a worker process died.

    Example:
        ```python
        policies = ["truvar", "gchk"]
        result = tv.backtest("lake.toml", "chlorophyll", policies, replicates=5, budget=2000)
        print(result.summary)
        ```
    """
    problem = problem if isinstance(problem, Problem) else load_problem(problem)
    policies_by_name = _policies_by_name(policies)
    spend = _check_budget(problem.run.get("budget") if budget is None else budget)
    check_integer(replicates, "replicates", minimum=1)
    check_integer(jobs, "jobs", minimum=1)
    if judged not in ("reported", "measured"):
        raise InvalidArgumentError(f"judged must be 'reported' or 'measured', got {judged!r}")
    values = truth if callable(truth) else true_values(problem.domain, truth)
    for policy in policies_by_name.values():
        study = problem.study(
            policy=policy
        )  # raises now if the policy does not support the problem
        if not callable(values):
            Simulator(values, noisy=False, seed=(seed,)).check(study)
    add_noise = is_noisy(problem) if noisy is None else noisy
    runs = [
        _Run(problem, name, policy, values, spend, (seed, replicate), add_noise, judged, until)
        for replicate in range(replicates)
        for name, policy in policies_by_name.items()
    ]
    cache = _RunCache(None if folder is None else Path(folder))
    tables = {run: table for run in runs if (table := cache.read(run)) is not None}
    unfinished = [run for run in runs if run not in tables]
    if progress is not None:
        progress(len(tables), len(runs))
    for run, table in _execute(unfinished, jobs, executor):
        tables[run] = table
        cache.write(run, table)
        if progress is not None:
            progress(len(tables), len(runs))
    measure = problem.study().goal.score.name
    return Backtest(pd.concat([tables[run] for run in runs], ignore_index=True), measure, spend)


@dataclass(frozen=True, eq=False)
class _Run:
    """One policy, one replicate."""

    problem: Problem
    name: str
    policy: Policy
    truth: Array | Callable[[int], Truth]
    budget: float
    seed: tuple[int, int]  # of the backtest, and the number of the replicate
    noisy: bool
    judged: Judged
    until: float | None

    def __call__(self) -> pd.DataFrame:
        start = int(np.random.default_rng(self.seed).integers(len(self.problem.domain)))
        seed = int(np.random.SeedSequence(self.seed).generate_state(1)[0])
        study = self.problem.study(policy=self.policy, start=start, seed=seed)
        truth = self.truth(self.seed[1]) if callable(self.truth) else self.truth
        # The processes share the processors among themselves, and a single thread always sums in
        # the same order.
        with blas_in_one_thread():
            simulator = Simulator(truth, self.noisy, self.seed, self.judged)
            return simulate_run(study, simulator, self.budget, self.name, self.seed[1], self.until)

    @property
    def key(self) -> str:
        """Hash of everything the result depends on."""
        from importlib.metadata import version

        facts = [
            self.problem.to_dict(),
            self.name,
            repr(self.policy),
            self.budget,
            self.seed,
            self.noisy,
            self.judged,
        ]
        if self.until is not None:
            facts.append(self.until)
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
        study = self.problem.study()
        table = study.candidates()
        truth = (
            np.frombuffer(repr(self.truth).encode(), np.uint8)
            if callable(self.truth)
            else self.truth
        )
        for array in (table.points, table.noise, table.cost, truth):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(
            f"{study.kernel!r} {version('truvar')}".encode()
        )  # the kernel may come from its own file
        return digest.hexdigest()[:24]


def _check_budget(budget: float | None) -> float:
    if budget is None or not budget > 0:
        given = "none" if budget is None else budget
        raise InvalidArgumentError(
            f"a backtest needs a budget > 0, got {given}; give "
            f"{for_interface('budget=...', cli='--budget COST')}"
        )
    return float(budget)


def _policies_by_name(policies: Policies) -> dict[str, Policy]:
    """Return the policies by the names they are reported under."""
    if isinstance(policies, Mapping):
        found = {name: policy_named(policy) for name, policy in policies.items()}
    else:
        found = {}
        for policy in policies:
            name = policy if isinstance(policy, str) else type(policy).__name__
            if name in found:
                remedy = for_interface(
                    "give them as a dict, {name: policy}", cli="leave out one of them"
                )
                raise InvalidArgumentError(
                    f"the policies need different names, got two policies {name!r}; {remedy}"
                )
            found[name] = policy_named(policy)
    if not found:
        raise InvalidArgumentError(
            "a backtest needs at least one policy, got none; name some, such as truvar,gchk"
        )
    return found


def _execute(runs: Sequence[_Run], jobs: int, executor: Any) -> Iterator[tuple[_Run, pd.DataFrame]]:
    """Yield every run with its table, in the order in which they finish.

    Raises:
        ExecutorError: If a worker process died.
    """
    if executor is None and jobs == 1:
        for run in runs:
            yield run, run()
        return
    # An executor of the caller is not closed in the end, one made here is.
    context: Any = (
        ProcessPoolExecutor(min(jobs, len(runs) or 1))
        if executor is None
        else nullcontext(executor)
    )
    with context as open_executor:
        pool = WorkerPool(
            open_executor, workers=1
        )  # the number of workers is not used: all runs are submitted immediately
        futures = {pool.submit(run): run for run in runs}
        try:
            while futures:
                for future in pool.wait():
                    yield futures.pop(future), future.result()
        except BrokenExecutor as error:
            raise ExecutorError(
                f"a worker process died ({error}); run the backtest again: with a folder, it "
                "continues with the runs "
                "that are not finished"
            ) from error
        finally:
            for future in futures:
                future.cancel()


class _RunCache:
    """Finished runs on disk, each in its own file that is written completely or not at all.

    Args:
        folder: Folder of the backtest. None: nothing is kept.
    """

    def __init__(self, folder: Path | None) -> None:
        from truvar.report.tables import make_folder

        self._folder = None if folder is None else folder / "runs"
        if self._folder is not None:
            make_folder(self._folder)

    def read(self, run: _Run) -> pd.DataFrame | None:
        path = self._path(run)
        if path is None or not path.exists():
            return None
        return pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))

    def write(self, run: _Run, table: pd.DataFrame) -> None:
        path = self._path(run)
        if path is not None:
            draft = path.with_suffix(f".{os.getpid()}.draft")
            draft.write_text(
                json.dumps(table.to_dict("list")), encoding="utf-8"
            )  # JSON keeps every bit of a float
            os.replace(draft, path)

    def _path(self, run: _Run) -> Path | None:
        return None if self._folder is None else self._folder / f"{run.key}.json"
