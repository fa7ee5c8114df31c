"""Contract suite for policies, ours and other people's.

`check_policy(MyPolicy())` runs a policy through finite domains, boxes, batches, pending
measurements, noise levels, travel costs, seeds and finished studies, with every goal that it
supports. A policy does not support a goal if making the study raises `UnsupportedGoalError`, and
noise levels if it raises `UnsupportedNoiseLevelsError`; any other exception means that the policy
is broken. A violation raises `AssertionError`, whose message names the requirement. Each check can
also be run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.acquisition.confidence import Confidence
from truvar.acquisition.registry import POLICY_METHODS
from truvar.domain.costs import Cost, NoiseLevels
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, LevelSet, Maximize, Minimize
from truvar.exceptions import Finished, UnsupportedGoalError, UnsupportedNoiseLevelsError
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion

GOALS: tuple[Goal, ...] = (Maximize(), Minimize(), LevelSet(0.2), LevelSet(fraction_of_max=0.6))
LEVELS = NoiseLevels(variance=[1e-4, 1e-2, 0.1], cost=[9.0, 4.0, 1.0])

BATCH = 4  # suggestions in a batch
FINE_POINTS = 101  # points of the domain on which repeated suggestions are counted
# Noise variance (prior variance 1) with which measuring a point twice is of no use.
NEGLIGIBLE_NOISE = 1e-6


def check_policy(policy: Policy) -> None:
    """Run all checks.

    Raises:
        AssertionError: If the policy violates a requirement.
    """
    for check in CHECKS:
        check(policy)


# -- checks
# --------------------------------------------------------------------------------------------------


def check_interface(policy: Policy) -> None:
    """Check attributes and methods, and that at least one goal is supported."""
    for name in ("per_cost", "signed"):
        _require(isinstance(getattr(policy, name, None), bool), policy, f"{name} is True or False")
    _require(
        isinstance(getattr(policy, "confidence", None), Confidence),
        policy,
        "confidence is a Confidence",
    )
    for name in POLICY_METHODS:
        _require(callable(getattr(policy, name, None)), policy, f"{name} is a method")
    _require(len(supported_goals(policy)) > 0, policy, "it supports at least one goal")


def check_finite_domain(policy: Policy) -> None:
    """Check that scores are valid and that the suggestion is the row with the highest score."""
    table = pd.DataFrame(
        {"x": [0.0, 0.1, 0.3, 0.35, 0.7, 0.9, 1.0], "y": [0.5, 0.0, 1.0, 0.4, 0.2, 0.9, 0.6]}
    )
    for goal in supported_goals(policy):
        for domain in (_line(), Domain.table(table)):
            study = _study(policy, goal, domain)
            for _ in range(4):
                gains = _gains(study)
                candidates = study.candidates()
                scores = gains / candidates.cost.ravel() if policy.per_cost else gains
                rows = policy.candidate_rows(study.policy_context(), candidates)
                best = scores.max() if rows is None else scores[rows].max()
                suggestion = _ask(study)
                if suggestion is None:
                    break
                _require(
                    suggestion.index in range(len(domain)),
                    policy,
                    "it chooses points of a finite domain",
                )
                is_best = scores[suggestion.index] >= best - 1e-6 * max(1.0, abs(best))
                _require(
                    bool(is_best),
                    policy,
                    "it chooses the highest score among the rows that it allows",
                )
                study.tell(suggestion, f(suggestion.point))


def check_box(policy: Policy) -> None:
    """Check that suggestions lie in the box, and points between representers are scored."""
    for goal in supported_goals(policy):
        study = _study(policy, goal, Domain.box(x=(0.0, 1.0), representers=20))
        for _ in range(2):
            suggestion = _ask(study)
            if suggestion is None:
                break
            _require(0.0 <= suggestion.point["x"] <= 1.0, policy, "it chooses inside the box")
            study.tell(suggestion, f(suggestion.point))
        between = study._learner.actions.candidates_at(np.array([[0.123], [0.456]]), None)
        score = policy.score(study.policy_context(), between)
        _require(score.shape == (2, 1), policy, "it scores points between the representers")
        _require(not np.isnan(score).any(), policy, "no score is NaN")


def check_batch(policy: Policy) -> None:
    """Check that several suggestions can be asked for together, and told in any order."""
    for goal in supported_goals(policy):
        study = _study(policy, goal)
        batch = _ask_batch(study)
        _require(0 < len(batch) <= BATCH, policy, "a new study has something to measure")
        _require(
            len({suggestion.id for suggestion in batch}) == len(batch),
            policy,
            "every suggestion has its own id",
        )
        for suggestion in reversed(batch):
            study.tell(suggestion, f(suggestion.point))
        _gains(study)


def check_pending(policy: Policy) -> None:
    """Check that pending measurements are taken into account, and can be withdrawn.

    Two observations equal to the prior mean leave the mean flat, so that only the variance tells
    points apart. With negligible noise it is of no use then to measure a pending point again,
    whatever the goal: a batch must not contain a point twice. A policy whose scores depend on the
    seed may repeat one of four points, since one that chooses at random repeats points by chance;
    if it chooses uniformly, it repeats two of four with a probability below 0.1 % per goal. There
    is no other exception: a policy that cannot see pending points wastes parallel measurements.
    """
    for goal in supported_goals(policy):
        study = _flat_study(policy, goal, seed=0)
        depends_on_seed = not np.array_equal(
            _gains(study), _gains(_flat_study(policy, goal, seed=1))
        )
        rows = [suggestion.index for suggestion in _ask_batch(study)]
        repeats = len(rows) - len(set(rows))
        _require(
            repeats <= int(depends_on_seed),
            policy,
            "it takes pending points into account and does not suggest them again (suggested rows "
            f"{rows})",
        )
        study = _study(policy, goal)
        _tell_some(study)
        suggestion = _ask(study)
        if suggestion is None:
            continue
        _gains(study)
        study.withdraw(suggestion)
        _require(
            _ask(study) is not None,
            policy,
            "there is something to measure after a suggestion is withdrawn",
        )


def check_levels(policy: Policy) -> None:
    """Check that the policy chooses among noise levels, keeps to its own, or refuses them.

    It refuses them by `UnsupportedNoiseLevelsError`.
    """
    for goal in supported_goals(policy):
        allowed = range(len(LEVELS.variance))
        try:
            study = _study(policy, goal, noise=LEVELS)
        except UnsupportedNoiseLevelsError:
            if "level" not in getattr(policy, "__dataclass_fields__", {}):
                continue
            allowed = range(1, 2)
            study = _study(_with_options(policy, level=1), goal, noise=LEVELS)
        for _ in range(3):
            suggestion = _ask(study)
            if suggestion is None:
                break
            _require(
                suggestion.level in allowed,
                policy,
                f"it measures with a noise level of {list(allowed)}",
            )
            is_own = suggestion.noise == LEVELS.variance[int(suggestion.level or 0)]
            _require(is_own, policy, "the noise of a suggestion is that of its level")
            study.tell(suggestion, f(suggestion.point))


def check_travel_cost(policy: Policy) -> None:
    """Check that travel is paid for and that choices do not depend on the unit of the cost."""
    for goal in supported_goals(policy):
        chosen = []
        for unit in (1.0, 100.0):
            study = _study(policy, goal, cost=Cost(base=unit, travel={"x": 3 * unit}))
            _run(study, 4)
            chosen.append(study.measurements["index"].tolist())
            paid = unit * (study.steps + 3 * np.abs(np.diff(study.measurements["x"])).sum())
            _require(bool(np.isclose(study.spent, paid)), policy, "travel is paid for")
        _require(chosen[0] == chosen[1], policy, "choices do not depend on the unit of the cost")


def check_seeds(policy: Policy) -> None:
    """Check that one seed gives one sequence of suggestions, whatever was done in between."""
    for goal in supported_goals(policy):
        first = _study(policy, goal)
        other = _study(policy, goal, seed=1)
        second = _study(policy, goal)
        for _ in range(4):
            suggestions = [_ask(study) for study in (first, other, second)]
            points = [
                None if suggestion is None else suggestion.point for suggestion in suggestions
            ]
            _require(
                points[0] == points[2], policy, "the same seed and values give the same suggestions"
            )
            for study, suggestion in zip((first, other, second), suggestions, strict=True):
                if suggestion is not None:
                    study.tell(suggestion, f(suggestion.point))
        again = _study(policy, goal)
        for row in first.measurements.to_dict("records"):
            suggestion = _ask(again)
            is_same = suggestion is not None and suggestion.point["x"] == row["x"]
            _require(is_same, policy, "a study can be repeated with the same seed")
            again.tell(suggestion or {"x": row["x"]}, f(row))


def check_finished(policy: Policy) -> None:
    """Check that scores are valid and nothing is suggested where every value is known exactly."""
    for goal in supported_goals(policy):
        study = _study(policy, goal, noise=0.0)
        for index in range(len(study.domain)):
            study.tell(study.domain.point(index), f(study.domain.point(index)))
        _gains(study)
        _require(_ask(study) is None, policy, "a study in which everything is known is finished")


CHECKS: tuple[Callable[[Policy], None], ...] = (
    check_interface,
    check_finite_domain,
    check_box,
    check_batch,
    check_pending,
    check_levels,
    check_travel_cost,
    check_seeds,
    check_finished,
)


# -- studies to check with
# ---------------------------------------------------------------------------------------------


def f(point: Mapping[Any, float]) -> float:
    """Return the value of a test function with two hills."""
    x = point["x"]
    return float(np.sin(9 * x) + 0.5 * x + 0.2 * point.get("y", 0.0))


def supported_goals(policy: Policy) -> list[Goal]:
    """Return the goals of `GOALS` that the policy supports.

    Raises:
        AssertionError: If making a study raises anything but `UnsupportedGoalError`.
    """
    goals = []
    for goal in GOALS:
        try:
            _study(policy, goal)
        except UnsupportedGoalError:
            continue
        except Exception as error:
            raise AssertionError(
                f"{policy!r} violates the policy contract: a study with the goal {goal} can be "
                "made, or raises "
                f"UnsupportedGoalError, got {error!r}"
            ) from error
        goals.append(goal)
    return goals


def _line() -> Domain:
    return Domain.grid(x=np.linspace(0.0, 1.0, 15))


def _study(policy: Policy, goal: Goal, domain: Domain | None = None, **options: Any) -> Study:
    settings: dict[str, Any] = {
        "kernel": ConstantKernel(1.0) * Matern(0.2, nu=2.5),
        "mean": 0.0,
        "noise": 1e-3,
    }
    return Study(domain or _line(), goal, policy=policy, **{**settings, **options})


def _flat_study(policy: Policy, goal: Goal, seed: int) -> Study:
    """Return a study with two nearly exact observations that equal the prior mean."""
    fine = Domain.grid(x=np.linspace(0.0, 1.0, FINE_POINTS))
    study = _study(policy, goal, fine, noise=NEGLIGIBLE_NOISE, seed=seed)
    for index in (20, 70):
        study.tell(study.domain.point(index), 0.0)
    return study


def _ask(study: Study) -> Suggestion | None:
    """Return a suggestion, or None if nothing is left to measure."""
    try:
        return study.ask()
    except Finished:
        return None


def _ask_batch(study: Study) -> list[Suggestion]:
    """Return a batch of suggestions, which is empty if nothing is left to measure."""
    try:
        return study.ask(BATCH)
    except Finished:
        return []


def _run(study: Study, steps: int) -> None:
    for _ in range(steps):
        suggestion = _ask(study)
        if suggestion is None:
            break
        study.tell(suggestion, f(suggestion.point))


def _tell_some(study: Study) -> None:
    for index in (1, 8):
        study.tell(study.domain.point(index), f(study.domain.point(index)))


def _gains(study: Study) -> Array:
    """Return the score of every candidate after checking its shape and range."""
    policy = study.policy
    candidates = study.candidates()
    gains = policy.score(study.policy_context(), candidates)
    is_shape = gains.shape == candidates.noise.shape
    _require(
        is_shape, policy, "the score has one number per candidate row and noise level, shape (c, K)"
    )
    _require(not np.isnan(gains).any(), policy, "no score is NaN")
    least = gains[np.isfinite(gains)].min(initial=0.0)
    _require(policy.signed or least >= 0, policy, "a score that is not signed is not negative")
    return gains.ravel()


def _with_options(policy: Policy, **options: Any) -> Policy:
    changed: Policy = replace(policy, **options)  # type: ignore[type-var]  # only called for dataclasses
    return changed


def _require(satisfied: bool, policy: Policy, requirement: str) -> None:
    if not satisfied:
        raise AssertionError(f"{policy!r} violates the policy contract: {requirement}")
