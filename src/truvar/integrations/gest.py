"""`TruVaRGenerator`: a study as a generator for Xopt, libEnsemble and Optimas (gest-api).

| gest-api | here |
|---|---|
| continuous variable | interval of a box; whole numbers if its `dtype` is an integer type |
| discrete variable | `Ordinal` if its values are numbers, `Boolean`, otherwise `Categorical` |
| objective MINIMIZE, MAXIMIZE | `Minimize()`, `Maximize()` |
| objective EXPLORE | the level set that `goal` names |
| constraint on an output | a point that violates it counts as failed: the study learns where that happens |
| constant | part of every suggestion |
| observable | passed over |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.domain.box import box_fields
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, Maximize, Minimize
from truvar.domain.parameters import Boolean, Categorical, Integer, Ordinal
from truvar.exceptions import (
    Finished,
    InvalidArgumentError,
    PointNotInDomainError,
    StudyExistsError,
    import_optional,
)
from truvar.storage.serialization import serialize
from truvar.study.stored import load
from truvar.study.study import Study
from truvar.validation import check_integer

if TYPE_CHECKING:
    from gest_api.generator import Generator
    from gest_api.vocs import VOCS
else:
    Generator = import_optional("gest_api.generator", "TruVaRGenerator", "gest").Generator

_ID = "_id"  # key of the id of a suggestion, by the standard
# Two points are equal if no coordinate differs by more than this fraction of its extent.
_SAME_POINT = 1e-9


class TruVaRGenerator(Generator):  # type: ignore[misc]  # gest-api has no types
    """Generator of points to evaluate for one objective.

    Args:
        vocs: Variables, objective, constraints, constants and observables.
        goal: The goal; default: that of the objective. An objective to explore needs a level set
            here.
        n_points: Number of points that `suggest()` returns if it is not told how many.
        representers: Number of points that the model is evaluated at; see `Domain.box`.
        seed: Seed of the random numbers.
        **options: Further arguments of `Study`, such as `noise`, `cost`, `policy`, `store` and
            `name`. If the store has a study of that name with the same variables and goal, it is
            continued with the settings that it has.

    Attributes:
        vocs: The problem.
        study: The study, with `result()` and `plot()`.
        data: The evaluations that satisfied all constraints. Those of a continued study are without
            their constraints and observables, which are not stored.

    Raises:
        ValueError: If the problem has other than one objective, or a variable that cannot be
            searched; or if the stored study of that name has other variables or another goal.
        MissingDependencyError: If gest-api is not installed.

    Example:
        ```python
        from gest_api.vocs import VOCS

        vocs = VOCS(variables={"x": [0, 1], "y": [0, 5]}, objectives={"f": "MINIMIZE"})
        generator = TruVaRGenerator(vocs)
        for point in generator.suggest(4):
            generator.ingest([{**point, "f": simulate(point)}])
        ```
    """

    returns_id = True

    def __init__(
        self,
        vocs: VOCS,
        *,
        goal: Goal | None = None,
        n_points: int = 1,
        representers: int = 2500,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(vocs)  # calls `_validate_vocs`
        self.vocs = vocs
        self.data: list[dict[str, Any]] = []
        self._n_points = check_integer(n_points, "n_points", minimum=1)
        self._objective = next(iter(vocs.objectives))
        sides = {name: _side(name, variable) for name, variable in vocs.variables.items()}
        domain = Domain(**box_fields(sides, representers, seed))
        goal = self._goal(goal)
        try:
            self.study = Study(domain, goal, seed=seed, **options)
        except StudyExistsError:
            self.study = load(
                options["store"], options["name"], options.get("author", options.get("who"))
            )
            _check_continues(self.study, domain, goal)
            self.data += self._stored_data()

    def _validate_vocs(self, vocs: VOCS) -> None:
        """Check that a problem can be searched.

        Raises:
            ValueError: If it has no variables, other than one objective, or a variable of another
                kind.
        """
        if not vocs.variables:
            raise InvalidArgumentError(
                "VOCS must define at least one variable, got none; give variables={...}"
            )
        if not vocs.objectives:
            raise InvalidArgumentError(
                "VOCS must define at least one objective, got none; give objectives={...}"
            )
        if len(vocs.objectives) > 1:
            raise InvalidArgumentError(
                f"TruVaRGenerator needs one objective, got {', '.join(vocs.objectives)}; combine "
                "them into one, or "
                "give the others as observables"
            )
        for name, variable in vocs.variables.items():
            _side(name, variable)

    def _goal(self, goal: Goal | None) -> Goal:
        kind = type(self.vocs.objectives[self._objective]).__name__
        if goal is not None:
            return goal
        if kind == "ExploreObjective":
            raise InvalidArgumentError(
                f"an objective to explore needs a level set, got none for {self._objective!r}; "
                "give "
                "goal=truvar.LevelSet(7.0)"
            )
        return Minimize() if kind == "MinimizeObjective" else Maximize()

    def _stored_data(self) -> list[dict[str, Any]]:
        """Return the evaluations that the study holds.

        It does not keep constraints and observables.
        """
        constants = self._constants()
        return [
            {**record.point, **constants, self._objective: record.value, _ID: record.id}
            for record in self.study.measurement_records()
        ]

    def _constants(self) -> dict[str, Any]:
        return {name: constant.value for name, constant in self.vocs.constants.items()}

    # -- suggestions
    # ----------------------------------------------------------------------------------------------

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Return the points to evaluate next, chosen as a batch.

        Args:
            num_points: Their number; default: `n_points`.

        Returns:
            Variables and constants of each point, and its id under "_id".

        Raises:
            ValueError: If there is nothing left to evaluate, or the number is not positive.
        """
        count = (
            self._n_points
            if num_points is None
            else check_integer(num_points, "num_points", minimum=1)
        )
        try:
            suggestions = self.study.ask(count)
        except Finished as finished:
            raise InvalidArgumentError(
                f"no {count} points can be suggested: {finished}; stop here"
            ) from finished
        constants = self._constants()
        return [{**suggestion.point, **constants, _ID: suggestion.id} for suggestion in suggestions]

    # -- evaluations
    # ----------------------------------------------------------------------------------------------

    def ingest(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Record evaluations, all of them or none.

        One that violates a constraint, or has no finite objective, is recorded as failed.

        Args:
            results: Variables, objective and constraints of each evaluation, with the id of its
                suggestion under "_id" if it has one.

        Raises:
            ValueError: If an id is not known, a key is missing, or a point lies outside the
                variables' domains.
        """
        satisfied = []
        with self.study.transaction():
            for row, each in enumerate(results):
                for name in (self._objective, *self.vocs.constraints):
                    if name not in each:
                        raise InvalidArgumentError(
                            f"evaluation {row} needs the key {name!r}, got {sorted(each)}; add it"
                        )
                if self._ingest_one(each):
                    satisfied.append(dict(each))
        self.data += satisfied

    def _ingest_one(self, result: Mapping[str, Any]) -> bool:
        """Record an evaluation; return whether it satisfied the constraints."""
        what = self._resolve(result)
        reason = self._why_failed(result)
        if reason is None:
            self.study.tell(what, float(result[self._objective]))
        else:
            self.study.fail(what, reason)
        return reason is None

    def _resolve(self, result: Mapping[str, Any]) -> int | dict[str, Any]:
        """Return the id of the suggestion that was evaluated, or the point if it is another one."""
        point = {name: result[name] for name in self.study.domain.columns if name in result}
        id_ = result.get(_ID)
        if id_ is None or id_ != id_:  # drivers that keep tables have NaN where there is no id
            same = [each.id for each in self.study.pending if self._is_same(point, each.point)]
            return same[0] if same else self._inside(point)
        suggested = {each.id: each.point for each in self.study.pending}.get(int(id_))
        if suggested is not None and point and not self._is_same(point, suggested):
            self.study.withdraw(int(id_), again=True)  # something else was evaluated instead
            return self._inside(point)
        return int(id_)

    def _inside(self, point: dict[str, Any]) -> dict[str, Any]:
        """Return a point that nobody suggested, or raise with the names of the standard."""
        try:
            self.study.domain.locate(point)
        except PointNotInDomainError as error:
            raise InvalidArgumentError(
                f"an evaluation must lie within the variables' domains: {error}"
            ) from None
        return point

    def _is_same(self, point: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        domain = self.study.domain
        difference = np.abs(domain.array(point) - domain.array(other))
        return bool((difference <= _SAME_POINT * domain.extent).all())

    def _why_failed(self, result: Mapping[str, Any]) -> str | None:
        for name, constraint in self.vocs.constraints.items():
            value = result[name]
            if value is None or not constraint.check(value):
                return f"constraint {name}: got {value}"
        value = result[self._objective]
        if value is None or not isfinite(float(value)):
            return f"objective {self._objective}: got {value}"
        return None

    @property
    def best_point(self) -> dict[str, Any] | None:
        """The best evaluation that satisfied all constraints; None before the first.

        `study.result()` says more.
        """
        if not self.data:
            return None
        sign = self.study.goal.sign
        return max(self.data, key=lambda each: sign * float(each[self._objective]))

    def finalize(self) -> None:
        """Withdraw the suggestions that were not evaluated."""
        with self.study.transaction():
            for suggestion in self.study.pending:
                self.study.withdraw(suggestion.id, again=True)


def _check_continues(study: Study, domain: Domain, goal: Goal) -> None:
    """Check that a stored study has these variables and this goal."""
    remedy = "give another name, or the VOCS and goal that it was created with"
    if _variables(study.domain) != _variables(domain):
        raise InvalidArgumentError(
            f"the stored study {study.name!r} must have the variables of VOCS, {domain!r}, got "
            f"{study.domain!r}; "
            f"{remedy}"
        )
    expected = study.policy.confidence.resolve_goal(goal)
    if serialize(study.goal) != serialize(expected):
        raise InvalidArgumentError(
            f"the stored study {study.name!r} must have the goal {expected!r}, got {study.goal!r}; "
            f"{remedy}"
        )


def _variables(domain: Domain) -> dict[str, Any]:
    """Return what a domain consists of, whichever representer points stand for it."""
    return {key: part for key, part in serialize(domain).items() if key not in ("axes", "points")}


def _side(name: str, variable: Any) -> Any:
    """Return a variable as an argument of `Domain.box`."""
    if isinstance(variable.dtype, tuple):
        raise InvalidArgumentError(
            f"variable {name!r} must be a scalar, got the type {variable.dtype}; split it"
        )
    if hasattr(variable, "values"):
        values = list(variable.values)
        if all(isinstance(value, (bool, np.bool_)) for value in values):
            return Boolean()
        if all(isinstance(value, Real) for value in values):
            return Ordinal(sorted(values))
        return Categorical(sorted(values, key=str))
    domain = getattr(variable, "domain", None)
    if domain is None or not all(isfinite(end) for end in domain):
        raise InvalidArgumentError(
            f"variable {name!r} must have a finite domain or values, got {type(variable).__name__} "
            f"with {domain}; give "
            "bounds, or fix a contextual variable as a constant"
        )
    low, high = domain
    if variable.dtype is not None and np.issubdtype(np.dtype(variable.dtype), np.integer):
        return Integer(int(np.ceil(low)), int(np.floor(high)))
    return low, high
