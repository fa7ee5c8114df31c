"""`BaseStudy`: the public methods of a study, here (`Study`) or on a server (`RemoteStudy`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from truvar._deprecation import deprecated_attribute
from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.domain.costs import NoiseLevels, Tasks
from truvar.domain.quantity import QuantityName
from truvar.domain.repeats import Repeats
from truvar.domain.vehicles import Vehicle
from truvar.inference.limits import StatementLimits, StopCheck
from truvar.study._command_methods import CommandMethods
from truvar.study._view_methods import ViewMethods
from truvar.study.limits import RunLimits
from truvar.study.lookahead import Lookahead
from truvar.study.records import FailureRecord, MeasurementRecord, measurement_frame
from truvar.study.result import Best
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import VehicleStatus

if TYPE_CHECKING:
    import pandas as pd


class BaseStudy(CommandMethods, ViewMethods):
    """A study, here or on a server.

    Attributes:
        name: Name of the study.
        author: Author of the events that this object writes.
        policy: The policy that chooses the next measurement.
        seed: Seed of everything that is drawn.
        tasks: The tasks that may be measured; None if there is only the target.
        levels: The noise levels to choose from; None if there are none.
        travels: Whether the cost depends on the last position.
        learns_cost: Whether costs are learned from those told with the values.
        quantity: Name and unit of what is measured.
        vehicles: Vehicles or crews that work on the study, by name; none for a single crew.
        repeats: Whether a place may be suggested again, or the number of measurements of a place;
            None: where it pays.
        must_return: Whether the return leg to the start is compulsory.
    """

    name: str | None
    author: str
    who = deprecated_attribute("author", removed_in="0.5.0")
    policy: Policy
    seed: int
    tasks: Tasks | None
    levels: NoiseLevels | None
    travels: bool
    learns_cost: bool
    quantity: QuantityName
    vehicles: dict[str, Vehicle]
    repeats: Repeats
    must_return: bool

    returns = deprecated_attribute("must_return", removed_in="0.5.0")

    @property
    @abstractmethod
    def version(self) -> int:
        """Number of the last event that this object knows."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of measurements."""

    @property
    @abstractmethod
    def spent(self) -> float:
        """Total cost of the measurements, those that failed included."""

    @property
    @abstractmethod
    def pending(self) -> list[Suggestion]:
        """Suggestions that are neither measured nor withdrawn."""

    @property
    @abstractmethod
    def limits(self) -> dict[str, float]:
        """Limits that the study is meant to end at, by name."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Largest error of the answer if the bounds hold; the certificate says of which point."""

    @property
    @abstractmethod
    def learned_tasks(self) -> Tasks | None:
        """The tasks with learned covariance, noise and means, in the user's units.

        The covariance multiplies `kernel`. The most probable values are given; as long as there are
        none, typical ones.
        """

    @property
    @abstractmethod
    def vehicle_statuses(self) -> list[VehicleStatus]:
        """Position, costs, return leg and budget of every vehicle, or of the single crew."""

    @property
    @abstractmethod
    def finished(self) -> str | None:
        """Why nothing is left to find out, with a probability; None as long as something is."""

    @property
    @abstractmethod
    def exhausted(self) -> str | None:
        """Why the policy suggests nothing more in an unfinished study; None as long as it does."""

    @property
    @abstractmethod
    def failures(self) -> list[FailureRecord]:
        """The measurements that failed, in order, with their reasons and costs."""

    @abstractmethod
    def measurement_records(self) -> list[MeasurementRecord]:
        """Return the measurements in the order in which they were told, as records."""

    @property
    def measurements(self) -> pd.DataFrame:
        """The measurements: id, index, coordinates, level, task, noise, cost, spent, value.

        If a coordinate has one of these names, the latter gets an underscore: `value_`.
        """
        return measurement_frame(self.measurement_records(), self.domain)

    @property
    @abstractmethod
    def history(self) -> pd.DataFrame:
        """The state after each measurement: epoch, eta, beta, regions, epsilon, best point."""

    @property
    @abstractmethod
    def events(self) -> pd.DataFrame:
        """The event log: number, time, who, kind, details."""

    def check_stop(
        self,
        *,
        f1: float | None = None,
        regret: float | None = None,
        relative_regret: float | None = None,
        improvement_per_cost: float | None = None,
        accuracy: float | None = None,
    ) -> StopCheck:
        """Return whether the study may stop now, as `run` checks after every measurement.

        Joint statements are computed only where single points do not rule out that the limit is
        reached.

        Args:
            f1: Level set: reached when `result().expected_f1.low` is at least this.
            regret: Optimum: reached when `result().expected_regret.high` is at most this, in the
                user's units.
            relative_regret: Optimum: the same, as a share of the range of the posterior mean over
                the domain.
            improvement_per_cost: Optimum: reached when `improvement_per_cost()` is less than this.
            accuracy: Map: reached when the map is within this distance at 99 % of the points with
                95 % probability, that is when `result().accuracy` is at most this.

        Returns:
            The `reason`, None as long as no limit is reached; and the `obstacle`, if the only one
            is that the measurements contradict the model.

        Raises:
            InvalidArgumentError: If a limit has the wrong type or range.
            UnsupportedGoalError: If a limit does not suit the goal.

        Example:
            >>> while study.check_stop(f1=0.95).reason is None:
            ...     suggestion = study.ask()
            ...     study.tell(suggestion, measure(suggestion.point))
        """
        limits = RunLimits(
            f1=f1,
            regret=regret,
            relative_regret=relative_regret,
            improvement_per_cost=improvement_per_cost,
            accuracy=accuracy,
        )
        limits.check_goal(self.goal)
        return self._check_statements(limits.statements)

    @abstractmethod
    def _check_statements(self, limits: StatementLimits) -> StopCheck:
        """Return whether statements have reached their limits, which suit the goal."""

    @abstractmethod
    def check_value(
        self,
        what: Suggestion | int | Mapping[str, Any],
        y: float,
        *,
        level: int | None = None,
        task: str | None = None,
    ) -> str | None:
        """Return why a value may be a typing mistake, before it is told; None if it is plausible.

        It may be if it is many standard deviations from what the model predicts or, before there is
        a model, orders of magnitude from the other values and the threshold. `tell` accepts such a
        value with an `OutlierWarning`.

        Args:
            what: A suggestion or its id, or a point.
            y: The value.
            level: Noise level, of a point only.
            task: Name of the task, of a point only.

        Example:
            >>> study.check_value(suggestion, 73)
            '73 is 12.4 standard deviations from the expected 6.9 ± 5.3'
        """

    @abstractmethod
    def improvement_per_cost(self) -> float:
        """Return the largest expected improvement per unit cost of a next measurement.

        The improvement is that of the function's value over the best posterior mean at a measured
        point, in the user's units, averaged over the hyperparameters if they are learned. The cost
        is that of the cheapest noise level.

        Returns:
            The rate; infinite as long as there is no model.

        Raises:
            UnsupportedGoalError: If the goal is a level set.

        Example:
            >>> study.improvement_per_cost()
            0.0131
        """

    @abstractmethod
    def best_for(self, context: Mapping[str, Any]) -> Best:
        """Return the point of best posterior mean in a context, without excluded ones if possible.

        Args:
            context: Value of every context column of the domain. On a grid or table the nearest one
                of the domain counts; in a box the point has exactly that context.

        Raises:
            InvalidArgumentError: If the domain has no context, or other columns.

        Example:
            >>> study.best_for({"temperature": 21.5}).point
        """

    @abstractmethod
    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        """Predict the target at any points, which need not be the domain's.

        Args:
            points: Values, shape (q, d); also a list of points by column, or a DataFrame with the
                columns.

        Returns:
            Posterior mean (q,) and standard deviation (q,).

        Raises:
            InvalidArgumentError: If the shape is wrong.
            PointNotInDomainError: If the prior mean is a column or array, which has values at the
                points of the domain only, and a point is another one.
        """

    @abstractmethod
    def predict_measurement(
        self, what: Suggestion | int | Mapping[str, Any], of: str | None = None
    ) -> tuple[float, float]:
        """Predict the value that a measurement would give, its noise included.

        Args:
            what: A pending suggestion, its id, or a point.
            of: The quantity, where the goal has several; default: the first that it names.

        Returns:
            Mean and standard deviation; the latter is infinite as long as the model is not fitted.

        Raises:
            InvalidArgumentError: If the goal has no such quantity.
        """

    @abstractmethod
    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        """Return the expected effect of a pending suggestion alone; None before the first fit.

        Args:
            what: A pending suggestion or its id.
        """

    @abstractmethod
    def to_json(self) -> str:
        """Return the whole study, problem and events, as text for `Study.from_json`.

        Raises:
            SerializationError: If a setting, such as a Python function, cannot be stored.
        """

    def plot(self, truth: Any = None, kind: str = "overview", **options: Any) -> Any:
        """Draw the study.

        Args:
            truth: True values on the domain, where they are known.
            kind: What to draw, by the names of `tv.plot`: "overview", "map", "slices", "contours",
                "convergence", "importance", "model_check" or "route".
            options: Further arguments of that function, such as theme="dark".

        Returns:
            A matplotlib Figure.

        Raises:
            InvalidArgumentError: If there is no such kind, or it does not take an argument.
            MissingDependencyError: If matplotlib is not installed.

        Example:
            >>> study.plot(kind="slices", theme="dark")
        """
        from truvar.plot import plot_kind

        return plot_kind(self, kind, truth=truth, **options)

    def plot_model_check(self) -> Any:
        """Draw every value against its prediction by the others, and the calibration.

        Returns:
            A matplotlib Figure.

        Raises:
            MissingDependencyError: If matplotlib is not installed.
        """
        from truvar.report import plot_model_check

        return plot_model_check(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        from truvar.report import study_text

        return study_text(self)

    def _repr_html_(self) -> str:
        from truvar.report import study_html

        return study_html(self)
