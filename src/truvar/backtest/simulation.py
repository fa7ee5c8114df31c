"""One run: known values in the place of the instrument, and the curve of a study that they answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.exceptions import Finished, TruvarError
from truvar.problem import Problem
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion
from truvar.validation import check_truth

CURVES = ("policy", "replicate", "step", "spent", "score", "seconds")

Judged = Literal["reported", "measured"]  # which point regret is about: of the best mean, or the best one measured


@dataclass(frozen=True)
class Function:
    """A known function: `f` maps points (q, d) to values (q,), and `optimum` is its best value."""

    f: Callable[[Array], Array]
    optimum: float


Truth = Array | Function


@dataclass(frozen=True)
class Simulator:
    """Known values in the place of the instrument: the true one, with noise of the suggestion's variance if `noisy`."""

    truth: Truth  # on the domain (n,), or a function
    noisy: bool
    seed: tuple[int, ...]
    judged: Judged = "reported"

    def measure(self, suggestion: Suggestion, step: int) -> float:
        """The value that the `step`-th measurement gives."""
        if suggestion.task is not None:
            raise TruvarError("known values of one quantity cannot answer for tasks; leave them out")
        sd = float(np.sqrt(suggestion.noise)) if self.noisy else 0.0
        return self._value(suggestion) + sd * float(np.random.default_rng([*self.seed, step]).standard_normal())

    def _value(self, suggestion: Suggestion) -> float:
        if isinstance(self.truth, Function):
            return float(self.truth.f(np.array([list(suggestion.point.values())]))[0])
        if suggestion.index is None:
            raise TruvarError("a table can only answer at its own points; replay a grid or a table, not a box")
        return float(self.truth[suggestion.index])

    def score(self, study: Study) -> float:
        """F1 of the classification, or the regret of the point reported, or of the best one measured."""
        result, truth = study.result(), self.truth
        if study.goal.level_set:
            return result.f1(truth.f(study.domain.points) if isinstance(truth, Function) else truth)
        if not isinstance(truth, Function):
            return result.regret(truth) if self.judged == "reported" else result.simple_regret(truth)
        places = np.array([list(result.best.point.values())])
        if self.judged == "measured":
            places = study.measurements[list(study.domain.columns)].to_numpy(dtype=float)
        return float(truth.optimum * study.goal.sign - (study.goal.sign * truth.f(places)).max())


def simulate_run(
    study: Study, table: Simulator, budget: float, name: str, replicate: int, until: float | None = None
) -> pd.DataFrame:
    """The curve of one study that known values answer, to the budget or until the score is good enough."""
    rows: list[tuple[Any, ...]] = []
    levels: list[int] = []
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
        place = suggestion.point.values()
        score = table.score(study)
        rows.append((name, replicate, study.steps, study.spent, score, seconds, *place))
        if suggestion.level is not None:
            levels.append(suggestion.level)
        if until is not None and (score >= until if study.goal.level_set else score <= until):
            break
    names = [f"{column}_" if column in (*CURVES, "level") else column for column in study.domain.columns]
    frame = pd.DataFrame(rows, columns=[*CURVES, *names])
    return frame.assign(level=levels) if levels else frame


def true_values(domain: Domain, truth: str | Array) -> Array:
    """Return the true values on the domain, given as an array or as the name of a column of its table."""
    return truth_column(domain, truth) if isinstance(truth, str) else check_truth(truth, len(domain))


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
