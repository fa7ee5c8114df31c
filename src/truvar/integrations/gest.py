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

Xopt, libEnsemble and Optimas call more than the standard has, or call it in their own way:

| library | here |
|---|---|
| `Xopt(generator=...)` copies the generator | the copy of a stored study writes to the same store |
| `Xopt(data=frame)` calls `add_data` | the rows are ingested; those that the study has are passed over |
| `Xopt.remove_data`, `reset_data` assign `data` | the evaluations that are left out are withdrawn |
| `AsynchronousXopt` calls `generate` | another name of `suggest` |
| a failed trial of Optimas has no objective | failed |
| libEnsemble's `H0` has the ids of an earlier run | points, until this generator has suggested one |
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from math import isclose, isfinite, nan
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from truvar.domain.box import box_fields
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, Maximize, Minimize
from truvar.domain.parameters import Boolean, Categorical, Integer, Ordinal
from truvar.exceptions import (
    Finished,
    InvalidArgumentError,
    PointNotInDomainError,
    import_optional,
)
from truvar.integrations._continued import create_or_continue
from truvar.study.commands import Tell
from truvar.validation import check_integer

if TYPE_CHECKING:
    from gest_api.generator import Generator
    from gest_api.vocs import VOCS
else:
    Generator = import_optional("gest_api.generator", "TruVaRGenerator", "gest").Generator

_ID = "_id"  # key of the id of a suggestion, by the standard
_XOPT_ERROR = "xopt_error"  # key under which Xopt says that an evaluation raised an exception
_OPTIMAS_STATUS = "_status"  # key of the status of a trial of Optimas
# Two points are equal if no coordinate differs by more than this fraction of its extent.
_SAME_POINT = 1e-9
# Two numbers that differ by less are one evaluation: dumps of Xopt keep ten decimals.
_ROUNDING = 6e-11


class TruVaRGenerator(Generator):  # type: ignore[misc]  # gest-api has no types
    """Generator of points to evaluate for one objective.

    Args:
        vocs: Variables, objective, constraints, constants and observables.
        goal: The goal, of one quantity; default: that of the objective. An objective to explore
            needs a level set here.
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
            their constraints and observables, which are not stored. Assigning some of them, as a
            list or a table, withdraws the others; failures stay recorded. If none of the rows is
            from an earlier run, whoever assigns them does not know of that run: its evaluations
            stay.

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
        self._data: list[dict[str, Any]] = []
        self._ids: list[int] = []  # of the measurements, in the order of the data
        self._has_suggested = False
        self._continued: list[dict[str, Any]] = []  # stored evaluations that may come once more
        self._n_points = check_integer(n_points, "n_points", minimum=1)
        self._objective = next(iter(vocs.objectives))
        sides = {name: _side(name, variable) for name, variable in vocs.variables.items()}
        domain = Domain(**box_fields(sides, representers, seed))
        goal = self._goal(goal)
        self._is_stored = options.get("store") is not None
        self.study, is_continued = create_or_continue(domain, goal, "VOCS", seed=seed, **options)
        if is_continued:
            self._data += self._stored_data()
            self._ids += [each[_ID] for each in self._data]
            self._continued = self._evaluations()

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
        if goal is not None and goal.parts:
            raise InvalidArgumentError(
                f"the goal must be about the one objective {self._objective!r}, got {goal!r}; give "
                "the limits of other outcomes as constraints"
            )
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

    @property
    def data(self) -> list[dict[str, Any]]:
        """The evaluations that satisfied all constraints."""
        return self._data

    @data.setter
    def data(self, rows: pd.DataFrame | Sequence[Mapping[str, Any]] | None) -> None:
        kept = _records(rows)
        is_cleared = not kept and (not isinstance(rows, pd.DataFrame) or rows.columns.empty)
        earlier = {each[_ID] for each in self._continued}
        own = [each for each in self._stored_data() if each[_ID] in self._ids]
        own.sort(key=lambda each: each[_ID] in earlier)  # equal rows are those of this run
        left_out = {each[_ID] for each in own if not self._take_equal(each, kept)}
        if not is_cleared and earlier.intersection(self._ids) <= left_out:
            left_out -= earlier
        with self.study.transaction():
            for id_ in left_out:
                self.study.withdraw(id_, "removed from the data of the generator")
        self._data = [
            each for each, id_ in zip(self._data, self._ids, strict=True) if id_ not in left_out
        ]
        self._ids = [id_ for id_ in self._ids if id_ not in left_out]
        self._continued = [each for each in self._continued if each[_ID] not in left_out]

    def _evaluations(self) -> list[dict[str, Any]]:
        """Return all evaluations of the study, those that failed without an objective."""
        failed = [{**each.point, _ID: each.id} for each in self.study.failures]
        return [*self._stored_data(), *failed]

    def _take_equal(self, evaluation: Mapping[str, Any], rows: list[dict[str, Any]]) -> bool:
        """Remove the first row with the point and objective of an evaluation, if there is one."""
        for position, row in enumerate(rows):
            if self._is_recorded(row, evaluation):
                del rows[position]
                return True
        return False

    def _comes_once_more(
        self,
        result: Mapping[str, Any],
        recorded: Mapping[int, Mapping[str, Any]],
        continued: list[dict[str, Any]],
    ) -> bool:
        """Return whether a result is recorded already.

        Args:
            result: The result.
            recorded: The evaluations of the study by id.
            continued: Stored evaluations that may come once more without an id; the one that did
                is removed.
        """
        id_ = _id_of(result)
        if id_ is not None and not (id_ in recorded and self._is_recorded(result, recorded[id_])):
            return False
        for position, evaluation in enumerate(continued):
            if id_ in (None, evaluation[_ID]) and self._is_recorded(result, evaluation):
                del continued[position]
                return True
        return id_ is not None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the generator; the copy of a stored one has the same study.

        Xopt runs a copy, which would otherwise have to open the store again.
        """
        copied = copy.copy(self)
        memo[id(self)] = copied
        is_stored = self._is_stored
        for name, part in vars(self).items():
            if name != "study" or not is_stored:
                setattr(copied, name, copy.deepcopy(part, memo))
        return copied

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
        self._has_suggested = True
        constants = self._constants()
        return [{**suggestion.point, **constants, _ID: suggestion.id} for suggestion in suggestions]

    def generate(self, n_candidates: int) -> list[dict[str, Any]]:
        """Return the points to evaluate next: the name that `AsynchronousXopt` calls `suggest` by.

        Args:
            n_candidates: Their number.
        """
        return self.suggest(n_candidates)

    # -- evaluations
    # ----------------------------------------------------------------------------------------------

    def ingest(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Record evaluations, all of them or none.

        One that violates a constraint, has no finite objective, or failed in Xopt or Optimas is
        recorded as failed. One that is recorded already, with the same id, point and objective, is
        passed over, and so is one without an id that the study had when it was continued. Until
        this generator has suggested a point, other ids are those of an earlier run, and the
        evaluations are recorded by their points.

        Args:
            results: Variables, objective and constraints of each evaluation, with the id of its
                suggestion under "_id" if it has one.

        Raises:
            ValueError: If an id is not known, a key is missing, or a point lies outside the
                variables' domains.
        """
        satisfied: list[dict[str, Any]] = []
        ids: list[int] = []
        recorded = {each[_ID]: each for each in self._evaluations()}
        continued = list(self._continued)
        with self.study.transaction():
            for row, each in enumerate(results):
                self._check_keys(each, row)
                if self._comes_once_more(each, recorded, continued):
                    continue
                told = self._ingest_one(each, _id_of(each))
                if told is not None:
                    satisfied.append(dict(each))
                    ids.append(told)
        self._data += satisfied
        self._ids += ids
        self._continued = continued

    def add_data(self, new_data: pd.DataFrame) -> None:
        """Record the evaluations of a table, as `ingest` does: `Xopt(data=...)` calls it.

        Args:
            new_data: A row per evaluation.

        Raises:
            ValueError: As `ingest`.
        """
        self.ingest(_records(new_data))

    def _check_keys(self, result: Mapping[str, Any], row: int) -> None:
        if _raised(result):
            return
        for name in (self._objective, *self.vocs.constraints):
            if name not in result:
                raise InvalidArgumentError(
                    f"evaluation {row} needs the key {name!r}, got {sorted(result)}; add it"
                )

    def _ingest_one(self, result: Mapping[str, Any], id_: int | None) -> int | None:
        """Record an evaluation; return the id of the measurement, None if it failed."""
        what = self._resolve(result, id_)
        reason = self._why_failed(result)
        if reason is None:
            value = _number(self._objective, result[self._objective])
            tell = Tell(what, value, typed=False)
            return self.study.execute(tell).ids[0]
        self.study.fail(what, reason)
        return None

    def _resolve(self, result: Mapping[str, Any], id_: int | None) -> int | dict[str, Any]:
        """Return the id of the suggestion that was evaluated, or the point if it is another one."""
        point = self._point(result)
        pending = {each.id: each.point for each in self.study.pending}
        if id_ is None:
            same = [each for each, at in pending.items() if self._is_same(point, at)]
            return same[0] if same else self._inside(point)
        if id_ in pending:
            if point and not self._is_same(point, pending[id_]):
                self.study.withdraw(id_, again=True)  # something else was evaluated instead
                return self._inside(point)
            return id_
        is_of_earlier_run = not self._has_suggested and len(point) == len(self.vocs.variables)
        return self._inside(point) if is_of_earlier_run else id_

    def _point(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {name: result[name] for name in self.study.domain.columns if name in result}

    def _is_recorded(self, result: Mapping[str, Any], evaluation: Mapping[str, Any]) -> bool:
        """Return whether a result has the point and the objective of a recorded evaluation."""
        point = self._point(result)
        if point and not self._is_same(point, self._point(evaluation), _ROUNDING):
            return False
        has_failed = self._why_failed(result) is not None
        if has_failed or self._objective not in evaluation:
            return has_failed and self._objective not in evaluation
        value = _number(self._objective, result[self._objective])
        recorded = float(evaluation[self._objective])
        return isclose(value, recorded, rel_tol=_SAME_POINT, abs_tol=_ROUNDING)

    def _inside(self, point: dict[str, Any]) -> dict[str, Any]:
        """Return a point that nobody suggested, or raise with the names of the standard."""
        try:
            self.study.domain.locate(point)
        except PointNotInDomainError as error:
            raise InvalidArgumentError(
                f"an evaluation must lie within the variables' domains: {error}"
            ) from None
        return point

    def _is_same(
        self, point: Mapping[str, Any], other: Mapping[str, Any], rounding: float = 0.0
    ) -> bool:
        domain = self.study.domain
        difference = np.abs(domain.array(point) - domain.array(other))
        return bool((difference <= _SAME_POINT * domain.extent + rounding).all())

    def _why_failed(self, result: Mapping[str, Any]) -> str | None:
        if _raised(result):
            lines = str(result.get("xopt_error_str", "")).strip().splitlines()
            return lines[-1] if lines else "the evaluation failed"
        for name, constraint in self.vocs.constraints.items():
            if not constraint.check(_number(name, result[name])):
                return f"constraint {name}: got {result[name]}"
        if not isfinite(_number(self._objective, result[self._objective])):
            return f"objective {self._objective}: got {result[self._objective]}"
        return None

    @property
    def best_point(self) -> dict[str, Any] | None:
        """The best evaluation that satisfied all constraints; None before the first.

        `study.result()` says more.
        """
        if not self._data:
            return None
        sign = self.study.goal.sign
        name = self._objective
        return max(self._data, key=lambda each: sign * _number(name, each[name]))

    def finalize(self) -> None:
        """Withdraw the suggestions that were not evaluated."""
        with self.study.transaction():
            for suggestion in self.study.pending:
                self.study.withdraw(suggestion.id, again=True)


def _records(rows: pd.DataFrame | Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the rows of a table, or of a list, as dictionaries."""
    if rows is None:
        return []
    if isinstance(rows, pd.DataFrame):
        return [
            {str(name): value for name, value in row.items()}
            for row in rows.to_dict(orient="records")
        ]
    return [dict(row) for row in rows]


def _id_of(result: Mapping[str, Any]) -> int | None:
    """Return the id of the suggestion that a result is of, None without one."""
    id_ = result.get(_ID)
    if id_ is None or id_ != id_:  # drivers that keep tables have NaN where there is no id
        return None
    return int(id_)


def _number(name: str, value: Any) -> float:
    """Return an objective or a constraint as a number, NaN if it is missing."""
    if value is None or value is pd.NA:
        return nan
    try:
        return float(np.asarray(value, dtype=float).item())
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"{name!r} must be a number, got {value!r}; return one from the evaluation"
        ) from None


def _raised(result: Mapping[str, Any]) -> bool:
    """Return whether Xopt or Optimas says that the evaluation failed."""
    raised = result.get(_XOPT_ERROR)
    if raised == raised and bool(raised):  # NaN in tables where only others have the column
        return True
    return getattr(result.get(_OPTIMAS_STATUS), "name", None) == "FAILED"


def _side(name: str, variable: Any) -> Any:
    """Return a variable as an argument of `Domain.box`."""
    if isinstance(variable.dtype, tuple):
        raise InvalidArgumentError(
            f"variable {name!r} must be a scalar, got the type {variable.dtype}; split it"
        )
    if hasattr(variable, "values"):
        values = list(variable.values)
        if any(value != value for value in values):
            raise InvalidArgumentError(
                f"the values of variable {name!r} must differ from NaN, got {values}; leave it out"
            )
        if len(values) == 2 and all(isinstance(value, (bool, np.bool_)) for value in values):
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
