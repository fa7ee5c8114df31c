"""What budget does epsilon need? By simulation: the study is run on functions drawn from its own prior.

f need not be drawn on the whole domain. If each value is drawn from the posterior predictive distribution of the
measurement that was asked for, N(mu_{t-1}(x_t), sigma_{t-1}^2(x_t) + noise), the values have exactly the joint law that
a draw of f from the prior, measured with noise, would give them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
import pandas as pd

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array
from truvar.exceptions import Finished, TruvarError

GRID = 200  # costs at which the runs are compared


class Simulated(Protocol):
    """A study, as far as a simulation needs it."""

    @property
    def spent(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def history(self) -> pd.DataFrame: ...

    def ask(self) -> Any: ...

    def sample_measurement(self, what: Any, rng: np.random.Generator) -> float:
        """Return a value that the measurement could give, drawn from its posterior predictive distribution."""
        ...

    def tell(self, what: Any, y: float) -> object: ...

    def result(self) -> Any: ...


@dataclass(frozen=True)
class Plan:
    """Epsilon against cost over runs on functions drawn from the prior. A run ends where it reaches epsilon, or its
    limit."""

    epsilon: float
    cost: Array  # (g,)
    paths: Array  # (runs, g): epsilon when that cost was spent; after its end, a run keeps its last
    reached: Array  # (runs,): what it cost to reach epsilon; infinite where the limit came first

    @property
    def mean(self) -> Array:
        """Expected epsilon at each cost. (g,)"""
        return np.asarray(self.paths.mean(axis=0))

    def quantile(self, q: float) -> Array:
        """Quantile of epsilon over the runs at each cost. (g,)"""
        return np.asarray(np.quantile(self.paths, q, axis=0))

    def budget(self, share: float = 0.5) -> float | None:
        """The cost by which this share of the runs reached epsilon, or None where too few did."""
        if not 0 < share <= 1:
            raise TruvarError(f"share must lie between 0 and 1, got {share}")
        value = float(np.sort(self.reached)[int(np.ceil(share * len(self.reached))) - 1])
        return value if value < inf else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "epsilon": self.epsilon,
            "runs": len(self.paths),
            "reached": int(np.isfinite(self.reached).sum()),
            "median_cost": self.budget(0.5),
            "cost_of_90_percent": self.budget(0.9),
            "curve": {"cost": self.cost.tolist(), "mean_epsilon": self.mean.tolist()},
        }


@blas_in_one_thread()  # small products, one after another: threads would only wait for each other
def simulate(
    new_study: Callable[[int], Simulated],
    epsilon: float,
    *,
    runs: int = 20,
    budget: float = inf,
    steps: int = 300,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Plan:
    """Runs `new_study(0)`, `new_study(1)`, ... on functions drawn from the prior, each to epsilon, the budget or a
    number of steps. `progress` is called with the number of runs done and of all."""
    if runs < 1 or steps < 1 or not budget > 0 or not epsilon > 0:
        raise TruvarError(
            "a simulation needs at least one run and one step, and a positive budget and epsilon, got "
            f"runs={runs}, steps={steps}, budget={budget}, epsilon={epsilon}"
        )
    ended = []
    for k in range(runs):
        if progress is not None:
            progress(k, runs)
        ended.append(_run(new_study(k), epsilon, budget, steps, np.random.default_rng([seed, k])))
    if progress is not None:
        progress(runs, runs)
    cost = np.linspace(0, max(float(spent[-1]) for spent, _, _ in ended), GRID + 1)[1:]
    paths = np.empty((runs, GRID))
    for path, (spent, widths, _) in zip(paths, ended, strict=True):
        last = np.searchsorted(spent, cost * (1 + 1e-12), side="right") - 1
        path[:] = np.where(last >= 0, widths[np.maximum(last, 0)], np.nan)
    begun = ~np.isnan(paths).any(axis=0)  # costs at which every run has measured something
    reached = np.array([float(spent[-1]) if there else inf for spent, _, there in ended])
    return Plan(epsilon, cost[begun], paths[:, begun], reached)


def _run(
    study: Simulated, epsilon: float, budget: float, steps: int, rng: np.random.Generator
) -> tuple[Array, Array, bool]:
    """What was spent and epsilon after each measurement, and whether the run got there."""
    there = False
    while study.steps < steps and not there:
        try:
            suggestion = study.ask()
        except Finished:
            there = study.result().certificate.accurate_to <= epsilon  # 0 where one point is left
            break
        if study.spent + suggestion.cost > budget:
            break
        study.tell(suggestion, study.sample_measurement(suggestion, rng))
        there = float(study.history["epsilon"].iloc[-1]) <= epsilon
    if study.steps == 0:
        raise TruvarError("the budget does not pay for one measurement; give a larger one")
    history = study.history
    return history["spent"].to_numpy(float), history["epsilon"].to_numpy(float), there
