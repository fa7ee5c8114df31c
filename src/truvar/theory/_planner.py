"""Budget that an epsilon needs, by simulation on functions drawn from the prior.

f need not be drawn on the whole domain. If each value is drawn from the posterior predictive
distribution of the measurement that was asked for, N(mu_{t-1}(x_t), sigma_{t-1}^2(x_t) + noise),
the values have exactly the joint distribution that a draw of f from the prior, measured with noise,
would give them.
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
from truvar.exceptions import Finished, InvalidArgumentError

_GRID = 200  # number of costs at which the runs are compared


class Simulated(Protocol):
    """The part of a study that a simulation needs."""

    @property
    def spent(self) -> float:
        """Cost of the measurements so far."""
        ...

    @property
    def steps(self) -> int:
        """Number of measurements so far."""
        ...

    @property
    def history(self) -> pd.DataFrame:
        """A row per measurement with its `spent` and `epsilon`."""
        ...

    def ask(self) -> Any:
        """Return the next suggestion."""
        ...

    def sample_measurement(self, what: Any, rng: np.random.Generator) -> float:
        """Return a value drawn from the posterior predictive distribution."""
        ...

    def tell(self, what: Any, y: float) -> object:
        """Report the value of a suggestion."""
        ...

    def result(self) -> Any:
        """Return the result so far, with its certificate."""
        ...


@dataclass(frozen=True)
class Plan:
    """Epsilon against cost over runs on functions drawn from the prior.

    A run ends where it reaches epsilon, or its limit.

    Attributes:
        epsilon: The accuracy asked for.
        cost: Costs at which the runs are compared, shape (g,).
        paths: Epsilon of every run when that cost was spent, shape (runs, g); after its end a run
            keeps its last.
        reached: Cost at which every run reached epsilon, shape (runs,); infinite where the limit
            came first.
    """

    epsilon: float
    cost: Array
    paths: Array
    reached: Array

    @property
    def mean(self) -> Array:
        """Expected epsilon at each cost, shape (g,)."""
        return np.asarray(self.paths.mean(axis=0))

    def quantile(self, q: float) -> Array:
        """Return a quantile of epsilon over the runs at each cost, shape (g,)."""
        return np.asarray(np.quantile(self.paths, q, axis=0))

    def budget(self, share: float = 0.5) -> float | None:
        """Return the cost by which this share of the runs reached epsilon; None if too few did."""
        if not 0 < share <= 1:
            raise InvalidArgumentError(
                f"share must be > 0 and <= 1, got {share}; give a number such as 0.9"
            )
        value = float(np.sort(self.reached)[int(np.ceil(share * len(self.reached))) - 1])
        return value if value < inf else None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
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
    """Run `new_study(0)`, `new_study(1)`, ... on functions drawn from the prior.

    Args:
        new_study: Function from the number of a run to a new study.
        epsilon: Accuracy at which a run ends.
        runs: Number of runs.
        budget: Cost at which a run ends.
        steps: Number of measurements at which a run ends.
        seed: Seed of the drawn values.
        progress: Called with the number of runs done and the number of all runs.

    Raises:
        InvalidArgumentError: If a limit is not positive, or the budget does not pay for one
            measurement.
    """
    if runs < 1 or steps < 1 or not budget > 0 or not epsilon > 0:
        raise InvalidArgumentError(
            "a simulation needs at least one run and one step, and a positive budget and epsilon, "
            "got "
            f"runs={runs}, steps={steps}, budget={budget}, epsilon={epsilon}; raise those that are "
            "not"
        )
    ended = []
    for k in range(runs):
        if progress is not None:
            progress(k, runs)
        ended.append(_run(new_study(k), epsilon, budget, steps, np.random.default_rng([seed, k])))
    if progress is not None:
        progress(runs, runs)
    cost = np.linspace(0, max(float(spent[-1]) for spent, _, _ in ended), _GRID + 1)[1:]
    paths = np.empty((runs, _GRID))
    for path, (spent, widths, _) in zip(paths, ended, strict=True):
        last = np.searchsorted(spent, cost * (1 + 1e-12), side="right") - 1
        path[:] = np.where(last >= 0, widths[np.maximum(last, 0)], np.nan)
    begun = ~np.isnan(paths).any(axis=0)  # costs at which every run has measured something
    reached = np.array([float(spent[-1]) if there else inf for spent, _, there in ended])
    return Plan(epsilon, cost[begun], paths[:, begun], reached)


def _run(
    study: Simulated, epsilon: float, budget: float, steps: int, rng: np.random.Generator
) -> tuple[Array, Array, bool]:
    """Return cost and epsilon after each measurement, and whether epsilon was reached."""
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
        raise InvalidArgumentError("the budget does not pay for one measurement; give a larger one")
    history = study.history
    return history["spent"].to_numpy(float), history["epsilon"].to_numpy(float), there
