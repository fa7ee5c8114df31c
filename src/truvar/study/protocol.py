"""`StudyLike`: what a program can rely on, whether its study is here or on a server.

`truvar.Study` and `truvar.service.client.RemoteStudy` both have these members with these signatures. mypy checks it
where either of them calls `truvar.study.runner.run`, which takes a `StudyLike`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.domain.costs import NoiseLevels, Tasks
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.domain.vehicles import Vehicle
from truvar.inference.limits import StopCheck
from truvar.study._inputs import PointLike, ValueLike
from truvar.study.lookahead import Lookahead
from truvar.study.records import FailureRecord, MeasurementRecord
from truvar.study.result import Best, Result
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import VehicleStatus

if TYPE_CHECKING:
    import pandas as pd


class StudyLike(Protocol):
    """A study, here or on a server. `truvar.Study` documents the members."""

    # -- the problem -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """Name of the study."""
        ...

    @property
    def who(self) -> str:
        """Author of the events that this object writes."""
        ...

    @property
    def domain(self) -> Domain:
        """The candidate points."""
        ...

    @property
    def goal(self) -> Goal:
        """The optimum or level set to find."""
        ...

    @property
    def policy(self) -> Policy:
        """The policy that chooses the next measurement."""
        ...

    @property
    def seed(self) -> int:
        """Seed of everything that is drawn."""
        ...

    @property
    def limits(self) -> dict[str, float]:
        """Limits that the study is meant to end at, by name."""
        ...

    @property
    def tasks(self) -> Tasks | None:
        """The tasks that may be measured."""
        ...

    @property
    def learned_tasks(self) -> Tasks | None:
        """The tasks with what is learned of them."""
        ...

    @property
    def levels(self) -> NoiseLevels | None:
        """The noise levels to choose from."""
        ...

    @property
    def travels(self) -> bool:
        """Whether the cost depends on the last position."""
        ...

    # -- asking and telling --------------------------------------------------------------------------------------------

    @property
    def vehicles(self) -> dict[str, Vehicle]:
        """Vehicles or crews by name."""
        ...

    @property
    def returns(self) -> bool:
        """Whether the way back to the start is compulsory."""
        ...

    @overload
    def ask(
        self,
        n: None = None,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Suggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Suggestion]: ...
    def ask(
        self,
        n: int | None = None,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Suggestion | list[Suggestion]:
        """Suggest where to measure next."""
        ...

    def tell(
        self,
        what: Suggestion | int | PointLike,
        y: ValueLike,
        *,
        noise: float | None = None,
        level: int | None = None,
        task: str | None = None,
        cost: float | None = None,
        key: str | None = None,
        who: str | None = None,
    ) -> int:
        """Record a measured value."""
        ...

    def tell_repeats(
        self,
        what: Suggestion | int | PointLike,
        values: Sequence[ValueLike],
        *,
        level: int | None = None,
        task: str | None = None,
        key: str | None = None,
        who: str | None = None,
    ) -> list[int]:
        """Record several measurements of the same place."""
        ...

    @property
    def vehicle_statuses(self) -> list[VehicleStatus]:
        """Position, costs and budget of every vehicle."""
        ...

    def check_value(
        self,
        what: Suggestion | int | Mapping[str, Any],
        y: float,
        *,
        level: int | None = None,
        task: str | None = None,
    ) -> str | None:
        """Return why a value may be a typing mistake, before it is told."""
        ...

    def tell_frame(self, frame: Any, value: str | None = None, *, again: bool = False) -> list[int]:
        """Record a table of measurements."""
        ...

    def ask_frame(
        self,
        n: int = 1,
        *,
        lease: float | None = None,
        who: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Suggest where to measure next, as a table."""
        ...

    def correct(
        self,
        what: Suggestion | int,
        y: float,
        *,
        noise: float | None = None,
        cost: float | None = None,
        was: float | None = None,
    ) -> None:
        """Replace the value of a measurement."""
        ...

    def withdraw(self, what: Suggestion | int, reason: str | None = None, *, again: bool = False) -> None:
        """Withdraw a suggestion or remove a measurement."""
        ...

    def exclude(self, what: Any, reason: str | None = None) -> None:
        """Exclude a place that cannot be measured."""
        ...

    def allow(self, what: Any = None) -> None:
        """Allow a place again."""
        ...

    def fail(
        self,
        what: Suggestion | int | Mapping[str, Any],
        reason: str | None = None,
        *,
        cost: float | None = None,
        who: str | None = None,
    ) -> int:
        """Record that a measurement failed."""
        ...

    def note(self, text: str) -> None:
        """Write a remark into the event log."""
        ...

    def refresh(self) -> None:
        """Take over the changes that others made."""
        ...

    def run(
        self,
        f: Callable[..., float],
        *,
        budget: float | None = None,
        steps: int | None = None,
        epsilon: float | None = None,
        f1: float | None = None,
        regret: float | None = None,
        improvement_per_cost: float | None = None,
        executor: Any = None,
        workers: int | None = None,
        retries: int | None = None,
        max_failures: int | None = None,
        resume: bool | Sequence[Suggestion] = False,
        lease: float | None = None,
        context: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        progress: bool | Callable[[Any], object] | None = None,
        callbacks: Sequence[Callable[[Any, Suggestion, float], object]] = (),
    ) -> Result:
        """Ask, measure and tell until the first limit is reached."""
        ...

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of the last event."""
        ...

    @property
    def steps(self) -> int:
        """Number of measurements."""
        ...

    @property
    def spent(self) -> float:
        """Total cost of the measurements."""
        ...

    @property
    def pending(self) -> list[Suggestion]:
        """Suggestions that are neither measured nor withdrawn."""
        ...

    @property
    def epsilon(self) -> float:
        """Largest error of the answer if the bounds hold."""
        ...

    @property
    def finished(self) -> str | None:
        """Why nothing is left to measure."""
        ...

    @property
    def exhausted(self) -> str | None:
        """Why the policy suggests nothing more although the study is not finished."""
        ...

    @property
    def measurements(self) -> pd.DataFrame:
        """One row per measurement, in order."""
        ...

    @property
    def failures(self) -> list[FailureRecord]:
        """The measurements that failed, in order."""
        ...

    def measurement_records(self) -> list[MeasurementRecord]:
        """Return the measurements in order, as records."""
        ...

    @property
    def history(self) -> pd.DataFrame:
        """One row per measurement: epoch, regions and epsilon after it."""
        ...

    @property
    def events(self) -> pd.DataFrame:
        """The event log."""
        ...

    def result(self) -> Result:
        """Return what is known now."""
        ...

    def check_stop(
        self,
        *,
        f1: float | None = None,
        regret: float | None = None,
        relative_regret: float | None = None,
        improvement_per_cost: float | None = None,
    ) -> StopCheck:
        """Return whether what is known now allows to stop."""
        ...

    def improvement_per_cost(self) -> float:
        """Return the largest expected improvement per unit cost."""
        ...

    def best_for(self, context: Mapping[str, Any]) -> Best:
        """Return the point of best posterior mean in a given context."""
        ...

    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        """Predict the target at any points."""
        ...

    def predict_measurement(self, what: Suggestion | int | Mapping[str, Any]) -> tuple[float, float]:
        """Predict the value that a measurement would give."""
        ...

    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        """Return the expected effect of a pending suggestion by itself."""
        ...

    def plot(self, truth: Any = None, kind: str = "overview", **options: Any) -> Any:
        """Draw the study."""
        ...

    def plot_model_check(self) -> Any:
        """Draw every measured value against what the others predict."""
        ...

    def to_json(self) -> str:
        """Return the whole study as text."""
        ...
