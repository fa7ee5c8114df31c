"""Backtests: policies against a table of known values. Each policy asks, the table answers, and all are compared at
equal cost.

Every replicate starts from its own random point, the same for every policy, and draws its own noise; a run depends on
nothing but the problem, the policy, the seed and the replicate, so results are the same however the work is spread.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from truvar.domain import Array, Domain
from truvar.errors import Finished, TruvarError
from truvar.policies import Policy, policy_named
from truvar.problem import Problem, load_problem
from truvar.result import Suggestion
from truvar.study import Study

F1_TARGETS = (0.8, 0.9, 0.95)
REGRET_TARGETS = (1e-1, 1e-2, 1e-3)
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the budget


@dataclass(frozen=True)
class Replay:
    """A table in the place of the instrument: the true value, with noise of the suggestion's variance if `noisy`."""

    truth: Array  # (n,)
    noisy: bool
    seed: tuple[int, ...]

    def measure(self, suggestion: Suggestion, step: int) -> float:
        """The value that the `step`-th measurement gives."""
        if suggestion.index is None:
            raise TruvarError("a table can only answer at its own points; replay a grid or a table, not a box")
        if suggestion.task is not None:
            raise TruvarError("a table of one quantity cannot answer for tasks")
        sd = float(np.sqrt(suggestion.noise)) if self.noisy else 0.0
        return float(self.truth[suggestion.index] + sd * np.random.default_rng([*self.seed, step]).standard_normal())


@dataclass(frozen=True)
class Backtest:
    """What came out: `curves`, a row per measurement, and `summary`, a row per policy."""

    curves: pd.DataFrame  # policy, replicate, step, spent, score, seconds
    measure: str  # what the score is: "F1" or "regret"
    budget: float

    def at(self, spent: float) -> pd.DataFrame:
        """The score of every replicate (rows) and policy (columns) once that much is spent; it keeps its last value."""
        within = self.curves[self.curves["spent"] <= spent * (1 + 1e-12)]
        table = within.groupby(["replicate", "policy"], sort=False)["score"].last().unstack("policy")
        return table.reindex(columns=list(dict.fromkeys(self.curves["policy"])))

    def costs_to(self, target: float) -> pd.DataFrame:
        """What every replicate (rows) and policy (columns) had spent when it first reached the target; inf: never."""
        better = self.curves["score"] >= target if self.measure == "F1" else self.curves["score"] <= target
        reached = self.curves[better].groupby(["replicate", "policy"])["spent"].min().unstack("policy")
        replicates, policies = self.curves["replicate"].unique(), list(dict.fromkeys(self.curves["policy"]))
        return reached.reindex(index=replicates, columns=policies).fillna(np.inf)

    @property
    def targets(self) -> tuple[float, ...]:
        """The levels whose cost the summary gives."""
        return F1_TARGETS if self.measure == "F1" else REGRET_TARGETS

    @property
    def summary(self) -> pd.DataFrame:
        """Per policy: mean score and the half-width of its 95 % interval at shares of the budget, median cost to each
        target with its ratio to the first policy's, and seconds per suggestion."""
        policies = list(dict.fromkeys(self.curves["policy"]))
        table = pd.DataFrame(index=pd.Index(policies, name="policy"))
        for share in SHARES:
            scores = self.at(share * self.budget)
            table[f"{self.measure} at {share:.0%}"] = scores.mean()
            table[f"± at {share:.0%}"] = 1.96 * scores.std(ddof=1) / np.sqrt(scores.notna().sum())
        for target in self.targets:
            costs = self.costs_to(target).median()
            table[f"cost to {target:g}"] = costs
            with np.errstate(invalid="ignore"):
                table[f"ratio to {target:g}"] = costs / costs.iloc[0]
        table["seconds"] = self.curves.groupby("policy")["seconds"].median()
        return table


def backtest(
    problem: Problem | str | Path,
    truth: str,
    policies: Sequence[Policy | str] | Mapping[str, Policy | str],
    *,
    replicates: int = 20,
    budget: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor | None = None,
    folder: str | Path | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Backtest:
    """Replays the column `truth` of the problem's table for every policy and replicate, to the budget.

    `policies` are rules or names (a name with "/cost" behind it divides its score by the cost). `jobs` processes share
    the work, or any `executor` does. With a `folder` every finished run is kept there, and a backtest that was
    interrupted continues where it stopped. `progress` is called with the number of runs done and of all.
    """
    problem = problem if isinstance(problem, Problem) else load_problem(problem)
    rules = _named(policies)
    spend = budget if budget is not None else problem.run.get("budget")
    if spend is None or not spend > 0:
        raise TruvarError(f"a backtest needs a budget > 0 to compare at, but it was {spend!r}; give budget=...")
    if replicates < 1 or jobs < 1:
        raise TruvarError(f"replicates and jobs must be at least 1, but they were {replicates!r} and {jobs!r}")
    values = truth_column(problem.domain, truth)
    for rule in rules.values():
        study = problem.study(policy=rule)
        rule.places(study.scene(), study.candidates())  # a rule that does not suit the problem is refused now
    runs = [
        _Run(problem, name, rule, values, float(spend), (seed, r))
        for r in range(replicates)
        for name, rule in rules.items()
    ]
    kept = _Kept(None if folder is None else Path(folder))
    tables = {run: table for run in runs if (table := kept.read(run)) is not None}
    todo = [run for run in runs if run not in tables]
    if progress is not None:
        progress(len(tables), len(runs))
    pool = (
        nullcontext(executor) if executor is not None or jobs == 1 else ProcessPoolExecutor(min(jobs, len(todo) or 1))
    )
    with pool as workers:
        for run, table in _results(workers, todo):
            tables[run] = table
            kept.write(run, table)
            if progress is not None:
                progress(len(tables), len(runs))
    measure = "F1" if problem.study().goal.level_set else "regret"
    return Backtest(pd.concat([tables[run] for run in runs], ignore_index=True), measure, float(spend))


def truth_column(domain: Domain, column: str) -> Array:
    """The column that answers, checked."""
    values = domain.column(column)
    if column in domain.columns:
        raise TruvarError(f"{column} is a coordinate of the domain; name the column of the measured quantity")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise TruvarError(f"column {column!r} must hold a number in every row, but row {row} has none; fill it in")
    return values


def is_noisy(problem: Problem) -> bool:
    """Whether the answers get noise added: the table's own is all there is where the noise is to be learned."""
    spec = problem.to_dict()
    return "noise" in spec and not spec.get("model", {}).get("learn_noise")


# -- one run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Run:
    """One policy, one replicate."""

    problem: Problem
    name: str
    rule: Policy
    truth: Array
    budget: float
    seed: tuple[int, int]

    def __call__(self) -> pd.DataFrame:
        start = int(np.random.default_rng(self.seed).integers(len(self.truth)))
        study = self.problem.study(
            policy=self.rule, start=start, seed=int(np.random.SeedSequence(self.seed).generate_state(1)[0])
        )
        return replay(
            study, Replay(self.truth, is_noisy(self.problem), self.seed), self.budget, self.name, self.seed[1]
        )

    @property
    def key(self) -> str:
        """What the result depends on, as a name for it."""
        facts = [self.problem.to_dict(), self.name, repr(self.rule), self.budget, self.seed]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
        study = self.problem.study()
        table = study.candidates()
        for array in (table.points, table.noise, table.cost, self.truth):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(f"{study.kernel!r} {version('truvar')}".encode())  # the kernel may come from a file of its own
        return digest.hexdigest()[:24]


def replay(study: Study, table: Replay, budget: float, name: str, replicate: int) -> pd.DataFrame:
    """The curve of one study that a table answers, to the budget."""
    rows = []
    while True:
        began = time.perf_counter()
        try:
            suggestion = study.ask()
        except Finished:
            break
        seconds = time.perf_counter() - began
        if study.spent + suggestion.cost > budget:
            break
        study.tell(suggestion, table.measure(suggestion, study.steps))
        result = study.result()
        score = result.f1(table.truth) if study.goal.level_set else result.regret(table.truth)
        rows.append((name, replicate, study.steps, study.spent, score, seconds))
    return pd.DataFrame(rows, columns=["policy", "replicate", "step", "spent", "score", "seconds"])


def _named(policies: Sequence[Policy | str] | Mapping[str, Policy | str]) -> dict[str, Policy]:
    """The rules by the names they are reported under."""
    if isinstance(policies, Mapping):
        return {name: policy_named(rule) for name, rule in policies.items()}
    rules: dict[str, Policy] = {}
    for policy in policies:
        name = policy if isinstance(policy, str) else type(policy).__name__
        if name in rules:
            raise TruvarError(f"two policies are called {name!r}; give them as a dict, {{name: policy}}")
        rules[name] = policy_named(policy)
    if not rules:
        raise TruvarError("a backtest needs at least one policy")
    return rules


def _results(workers: Executor | None, runs: Sequence[_Run]) -> Iterator[tuple[_Run, pd.DataFrame]]:
    """Every run with its table, as they finish."""
    if workers is None:
        for run in runs:
            yield run, run()
        return
    futures = {workers.submit(run): run for run in runs}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
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
