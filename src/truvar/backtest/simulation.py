"""One run of a backtest: a study whose suggestions are answered from known values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.exceptions import Finished, InvalidArgumentError, InvalidDomainError
from truvar.models.likelihoods import Outcome
from truvar.problem import Problem
from truvar.study.commands import Tell
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import ask_next
from truvar.validation import check_truth

_CURVE_COLUMNS = ("policy", "replicate", "step", "spent", "score", "seconds")

# The point whose regret is the score of an optimum: the one of best posterior mean, or the best one
# measured.
Judged = Literal["reported", "measured"]


@dataclass(frozen=True)
class Function:
    """A known function.

    Attributes:
        f: Maps points of shape (q, d) to values of shape (q,).
        optimum: The best value of `f` on the domain.
    """

    f: Callable[[Array], Array]
    optimum: float


Truth = Array | Function


@dataclass(frozen=True)
class Simulator:
    """Known values in place of an instrument.

    Attributes:
        truth: The true values on the domain, shape (n,), or a function.
        noisy: Whether to add noise with the variance of the suggestion.
        seed: Seed of the noise.
        judged: Which point regret refers to, "reported" or "measured".
    """

    truth: Truth
    noisy: bool
    seed: tuple[int, ...]
    judged: Judged = "reported"

    def check(self, study: Study) -> None:
        """Check that the known values can answer the suggestions of a study.

        Raises:
            InvalidArgumentError: If it has several quantities, or if the values cannot be
                probabilities or rates, and its outcome is drawn from such.
        """
        if study.goal.parts:
            raise InvalidArgumentError(
                f"known values are those of one quantity, got a goal of {', '.join(study.goal.parts)}"
                "; simulate a goal of one quantity"
            )
        if study.outcome is None or isinstance(self.truth, Function):
            return
        low, high = study.outcome.value_range
        is_possible = (self.truth >= low) & (self.truth <= high)
        if not is_possible.all():
            row = int(np.argmin(is_possible))
            limit = f"between {low:g} and {high:g}" if np.isfinite(high) else f"of {low:g} or more"
            raise InvalidArgumentError(
                f"with outcome {study.outcome.name!r} every true value is a {study.outcome.subject} "
                f"{limit}, got {self.truth[row]:g} in row {row}; name a column of such values"
            )

    def measure(self, suggestion: Suggestion, step: int, outcome: Outcome | None = None) -> float:
        """Return the simulated value of a suggestion.

        Args:
            suggestion: The suggestion to answer.
            step: Number of measurements made before; each step has its own noise.
            outcome: What a measurement gives; None: a number. The truth is then a probability or
                rate.

        Raises:
            InvalidArgumentError: If the suggestion is for a task.
            InvalidDomainError: If a table is asked for a point that it does not have.
        """
        if suggestion.task is not None:
            raise InvalidArgumentError(
                "known values of one quantity cannot answer for tasks; leave out the tasks"
            )
        rng = np.random.default_rng([*self.seed, step])
        value = self._true_value(suggestion)
        if outcome is not None:
            return outcome.sample(value, outcome.default_exposure, rng)
        sd = float(np.sqrt(suggestion.noise)) if self.noisy else 0.0
        return value + sd * float(rng.standard_normal())

    def _true_value(self, suggestion: Suggestion) -> float:
        if isinstance(self.truth, Function):
            return float(self.truth.f(_row(suggestion.point))[0])
        if suggestion.index is None:
            raise InvalidDomainError(
                "a table only has values at its own points, got a point inside a box; give a grid "
                "or a table as the "
                "domain, or a function as the truth"
            )
        return float(self.truth[suggestion.index])

    def score(self, study: Study) -> float:
        """Return the score of the answer: F1 of a level set, the regret of an optimum."""
        result = study.result()
        truth = self.truth
        if not study.goal.seeks_optimum:
            return result.score(
                truth.f(study.domain.values(study.domain.points))
                if isinstance(truth, Function)
                else truth
            )
        if not isinstance(truth, Function):
            return (
                result.regret(truth) if self.judged == "reported" else result.simple_regret(truth)
            )
        points = _row(result.best.point)
        if self.judged == "measured":
            points = np.vstack([_row(record.point) for record in study.measurement_records()])
        return float(truth.optimum * study.goal.sign - (study.goal.sign * truth.f(points)).max())


def _row(point: Mapping[str, Any]) -> Any:
    """Return the values of a point, (1, d): floats, or objects if some are text."""
    values = list(point.values())
    return np.array(
        [values], dtype=object if any(isinstance(value, str) for value in values) else float
    )


def simulate_run(
    study: Study,
    simulator: Simulator,
    budget: float,
    name: str,
    replicate: int,
    until: float | None = None,
) -> pd.DataFrame:
    """Run a study on known values.

    Args:
        study: The study, which is changed.
        simulator: Answers the suggestions.
        budget: Cost that the run may spend.
        name: Name of the policy, for the table.
        replicate: Number of the replicate, for the table.
        until: Score at which the run ends early.

    Returns:
        A row per measurement with the columns `_CURVE_COLUMNS`, the coordinates, and `level` if
        there are noise levels. A coordinate whose name is taken gets an underscore appended.
    """
    rows: list[tuple[Any, ...]] = []
    levels: list[int] = []
    while True:
        started = time.perf_counter()
        try:
            suggestion = ask_next(study, budget)
        except Finished:
            break
        seconds = time.perf_counter() - started
        if study.spent + suggestion.cost > budget:
            break
        # A table of known values has no errors to correct: the warnings of the receipt are not
        # issued.
        value = simulator.measure(suggestion, study.steps, study.outcome)
        study.execute(Tell(suggestion, value, typed=False))
        score = simulator.score(study)
        rows.append(
            (name, replicate, study.steps, study.spent, score, seconds, *suggestion.point.values())
        )
        if suggestion.level is not None:
            levels.append(suggestion.level)
        if until is not None and study.goal.score.reaches(score, until):
            break
    names = [
        f"{column}_" if column in (*_CURVE_COLUMNS, "level") else column
        for column in study.domain.columns
    ]
    frame = pd.DataFrame(rows, columns=[*_CURVE_COLUMNS, *names])
    return frame.assign(level=levels) if levels else frame


def true_values(domain: Domain, truth: str | Array) -> Array:
    """Return the true values on the domain, from an array or the name of a column."""
    return (
        truth_column(domain, truth) if isinstance(truth, str) else check_truth(truth, len(domain))
    )


def truth_column(domain: Domain, column: str) -> Array:
    """Return a column of true values.

    Args:
        domain: A domain with a table.
        column: Name of a column of the table that is not a coordinate.

    Raises:
        InvalidArgumentError: If the column is a coordinate, or has a row without a number.
    """
    values = domain.column(column)
    if column in domain.columns:
        raise InvalidArgumentError(
            f"the column of true values must not be a coordinate of the domain, got {column!r}; "
            "name the column of the "
            "measured quantity"
        )
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InvalidArgumentError(
            f"column {column!r} must hold a finite number in every row, got {values[row]} in row "
            f"{row}; fix that row"
        )
    return values


def is_noisy(problem: Problem) -> bool:
    """Return whether a simulation adds noise.

    It does if the problem states the noise and does not learn it from the table.
    """
    spec = problem.to_dict()
    return "noise" in spec and not spec.get("model", {}).get("learn_noise")
