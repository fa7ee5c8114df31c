"""The laws that every decision rule keeps, for rules from here and from elsewhere.

`check_policy(MyRule())` runs a rule through finite domains, boxes, batches, pending measurements, noise levels, travel
costs, seeds and finished studies, with every goal that it serves. A rule serves a goal, or a study with noise levels,
if it does not refuse it with a `TruvarError` when the study is made. A law that is broken raises `AssertionError` and
says which. The single checks can be run by themselves.
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
from truvar.domain.costs import Cost, NoiseLevels
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, LevelSet, Maximize, Minimize
from truvar.exceptions import Finished, TruvarError
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion

GOALS: tuple[Goal, ...] = (Maximize(), Minimize(), LevelSet(0.2), LevelSet(fraction_of_max=0.6))
LEVELS = NoiseLevels(variance=[1e-4, 1e-2, 0.1], cost=[9.0, 4.0, 1.0])


def check_policy(policy: Policy) -> None:
    """All laws, one after the other."""
    for check in CHECKS:
        check(policy)


# -- the laws ----------------------------------------------------------------------------------------------------------


def check_interface(policy: Policy) -> None:
    """The rule has all that the loop asks for, and serves at least one goal."""
    for name in ("per_cost", "signed"):
        _law(isinstance(getattr(policy, name, None), bool), policy, f"{name} is True or False")
    _law(isinstance(policy.confidence, Confidence), policy, "confidence is a Confidence")
    for name in ("check_supported", "candidate_rows", "score"):
        _law(callable(getattr(policy, name, None)), policy, f"{name} is a method")
    _law(len(served(policy)) > 0, policy, "it serves at least one goal")


def check_finite_domain(policy: Policy) -> None:
    """The score is one number per candidate, and the suggestion is the point of the domain where it is highest."""
    table = pd.DataFrame({"x": [0.0, 0.1, 0.3, 0.35, 0.7, 0.9, 1.0], "y": [0.5, 0.0, 1.0, 0.4, 0.2, 0.9, 0.6]})
    for goal in served(policy):
        for domain in (_line(), Domain.table(table)):
            study = _study(policy, goal, domain)
            for _ in range(4):
                gains, rows = _gains(study), study.candidates()
                worth = gains / rows.cost.ravel() if policy.per_cost else gains
                among = policy.candidate_rows(study._learner.context(0), rows)
                best = worth.max() if among is None else worth[among].max()
                suggestion = _ask(study)
                if suggestion is None:
                    break
                _law(suggestion.index in range(len(domain)), policy, "it chooses points of a finite domain")
                close = worth[suggestion.index] >= best - 1e-6 * max(1.0, abs(best))
                _law(bool(close), policy, "it chooses where its score is highest, of the places it allows")
                study.tell(suggestion, f(suggestion.point))


def check_box(policy: Policy) -> None:
    """In a box it chooses inside, representer or not, and scores points that are no representers."""
    for goal in served(policy):
        study = _study(policy, goal, Domain.box(x=(0.0, 1.0), representers=20))
        for _ in range(2):
            suggestion = _ask(study)
            if suggestion is None:
                break
            _law(0.0 <= suggestion.point["x"] <= 1.0, policy, "it chooses inside the box")
            study.tell(suggestion, f(suggestion.point))
        between = study._learner.actions.candidates_at(np.array([[0.123], [0.456]]), None)
        score = policy.score(study._learner.context(1), between)
        _law(score.shape == (2, 1), policy, "it scores points between the representers")
        _law(not np.isnan(score).any(), policy, "no score is NaN")


def check_batch(policy: Policy) -> None:
    """Several suggestions can be asked for at once, and told in any order."""
    for goal in served(policy):
        study = _study(policy, goal)
        batch = study.ask(4)
        _law(0 < len(batch) <= 4, policy, "a batch has as many suggestions as were asked for, or fewer")
        _law(len({suggestion.id for suggestion in batch}) == len(batch), policy, "every suggestion has its own id")
        for suggestion in reversed(batch):
            study.tell(suggestion, f(suggestion.point))
        _gains(study)


def check_pending(policy: Policy) -> None:
    """What is pending is taken into account without being told, and can be withdrawn."""
    for goal in served(policy):
        study = _study(policy, goal)
        _tell_some(study)
        suggestion = _ask(study)
        if suggestion is None:
            continue
        _gains(study)
        study.withdraw(suggestion)
        _law(_ask(study) is not None, policy, "a withdrawn suggestion leaves something to ask for")


def check_levels(policy: Policy) -> None:
    """With noise levels it chooses among them, or keeps to the one it is told to, or refuses them."""
    for goal in served(policy):
        fixed = None
        try:
            study = _study(policy, goal, noise=LEVELS)
        except TruvarError as refusal:
            _law("level" in str(refusal), policy, "a refusal of noise levels says so")
            if "level" not in getattr(policy, "__dataclass_fields__", {}):
                continue
            fixed = 1
            study = _study(_with(policy, level=fixed), goal, noise=LEVELS)
        for _ in range(3):
            suggestion = _ask(study)
            if suggestion is None:
                break
            wanted = range(3) if fixed is None else (fixed,)
            _law(suggestion.level in wanted, policy, f"it measures with a level of {list(wanted)}")
            _law(suggestion.noise == LEVELS.variance[int(suggestion.level or 0)], policy, "the noise is the level's")
            study.tell(suggestion, f(suggestion.point))


def check_travel_cost(policy: Policy) -> None:
    """A cost that depends on the last position is paid; a rule per unit cost does not mind the currency."""
    for goal in served(policy):
        chosen = []
        for currency in (1.0, 100.0):
            study = _study(policy, goal, cost=Cost(base=currency, travel={"x": 3 * currency}))
            _run(study, 4)
            chosen.append(study.measurements["index"].tolist())
            paid = currency * (study.steps + 3 * np.abs(np.diff(study.measurements["x"])).sum())
            _law(bool(np.isclose(study.spent, paid)), policy, "travel is paid for")
        _law(chosen[0] == chosen[1], policy, "choices do not depend on the unit of the cost")


def check_seeds(policy: Policy) -> None:
    """The same seed gives the same suggestions, from one instance of the rule, whatever it was used for in between."""
    for goal in served(policy):
        first, second, other = _study(policy, goal), _study(policy, goal), _study(policy, goal, seed=1)
        for _ in range(4):
            asked = [_ask(study) for study in (first, other, second)]
            points = [None if suggestion is None else suggestion.point for suggestion in asked]
            _law(points[0] == points[2], policy, "the same seed and values give the same suggestions")
            for study, suggestion in zip((first, other, second), asked, strict=True):
                if suggestion is not None:
                    study.tell(suggestion, f(suggestion.point))
        again = _study(policy, goal)
        for row in first.measurements.to_dict("records"):
            suggestion = _ask(again)
            _law(suggestion is not None and suggestion.point["x"] == row["x"], policy, "a study can be replayed")
            again.tell(suggestion or {"x": row["x"]}, f(row))


def check_finished(policy: Policy) -> None:
    """Where everything is known there is nothing to ask for, and no score is NaN."""
    for goal in served(policy):
        study = _study(policy, goal, noise=0.0)
        for index in range(len(study.domain)):
            study.tell(study.domain.point(index), f(study.domain.point(index)))
        _gains(study)
        _law(_ask(study) is None, policy, "a study in which everything is known is finished")


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


# -- what they are tried on --------------------------------------------------------------------------------------------


def f(point: Mapping[Any, float]) -> float:
    """A function with two hills."""
    x = point["x"]
    return float(np.sin(9 * x) + 0.5 * x + 0.2 * point.get("y", 0.0))


def served(policy: Policy) -> list[Goal]:
    """The goals that the rule does not refuse."""
    goals = []
    for goal in GOALS:
        try:
            _study(policy, goal)
        except TruvarError:
            continue
        goals.append(goal)
    return goals


def _line() -> Domain:
    return Domain.grid(x=np.linspace(0.0, 1.0, 15))


def _study(policy: Policy, goal: Goal, domain: Domain | None = None, **options: Any) -> Study:
    settings: dict[str, Any] = {"kernel": ConstantKernel(1.0) * Matern(0.2, nu=2.5), "mean": 0.0, "noise": 1e-3}
    return Study(domain or _line(), goal, policy=policy, **{**settings, **options})


def _ask(study: Study) -> Suggestion | None:
    try:
        return study.ask()
    except Finished:
        return None


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
    """The score of every candidate, of the right shape and without NaN."""
    gains = study.gains()
    _law(gains.shape == (study.candidates().noise.size,), study.policy, "the score has one number per candidate")
    _law(not np.isnan(gains).any(), study.policy, "no score is NaN")
    least = gains[np.isfinite(gains)].min(initial=0.0)
    _law(study.policy.signed or least >= 0, study.policy, "a score that is not signed is not negative")
    return gains


def _with(policy: Policy, **options: Any) -> Policy:
    changed: Policy = replace(policy, **options)  # type: ignore[type-var]  # it has the options of a dataclass
    return changed


def _law(kept: bool, policy: Policy, law: str) -> None:
    if not kept:
        raise AssertionError(f"{policy!r} breaks a law of decision rules: {law}")
