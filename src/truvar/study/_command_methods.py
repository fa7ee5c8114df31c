"""`CommandMethods`: the methods of a study that change it, each of which executes a command."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from truvar._deprecation import deprecated_argument
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidArgumentError
from truvar.study._batch import Batch
from truvar.study._inputs import PointLike, ValueLike
from truvar.study.commands import (
    Allow,
    Ask,
    Command,
    Correct,
    Exclude,
    Extend,
    Fail,
    Fit,
    Note,
    Receipt,
    Tell,
    TellRepeats,
    Withdraw,
)
from truvar.study.limits import RunLimits
from truvar.study.result import Result
from truvar.study.suggestion import Suggestion

if TYPE_CHECKING:
    import pandas as pd

    from truvar.domain.goals import Goal
    from truvar.models.fit import Model
    from truvar.study.measurements_io import MeasurementInput


class CommandMethods(ABC):
    """The methods of a study that change it: each builds a command and executes it."""

    _stop_reason: str | None

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The candidate points; only `extend` changes them."""

    @property
    @abstractmethod
    def goal(self) -> Goal:
        """The optimum or level set to find, with `monotone` as it is in use."""

    @abstractmethod
    def execute(self, command: Command) -> Receipt:
        """Execute a command. Its warnings are those of the receipt, and are not issued.

        Args:
            command: The command.

        Raises:
            TruvarError: If a value of it cannot be used, or the study refuses it. Nothing has
                changed then.
        """

    @overload
    def ask(
        self,
        n: None = None,
        *,
        lease: float | None = None,
        vehicle: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
        same: Sequence[str] | None = None,
    ) -> Suggestion: ...
    @overload
    def ask(
        self,
        n: int,
        *,
        lease: float | None = None,
        vehicle: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
        same: Sequence[str] | None = None,
    ) -> list[Suggestion]: ...
    @deprecated_argument("who", "vehicle", removed_in="0.5.0")
    def ask(
        self,
        n: int | None = None,
        *,
        lease: float | None = None,
        vehicle: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
        same: Sequence[str] | None = None,
    ) -> Suggestion | list[Suggestion]:
        """Suggest where to measure next.

        A suggestion stays pending until its value is told or it is withdrawn; later suggestions
        take it into account.

        Args:
            n: Number of suggestions, chosen as a batch; None for a single one.
            lease: Seconds for which the suggestions are reserved. The first `ask` after that
                assumes that they will not be measured. Default: no end.
            vehicle: Vehicle that the suggestions are for; needed if the study has several, unless
                the author of the study object is one of them. Suggestions pending for the others
                are taken into account.
            budget: Total cost that the study must stay within, the return leg included if it is
                compulsory; only what it allows is suggested. Default: the budget among the limits
                of a study whose vehicles must return.
            context: Value of every context column of the domain, which is given, not chosen: the
                suggestions are among the points whose context is nearest to it; in a box they have
                exactly that context.
            same: Columns whose values all suggestions share, such as the temperature of an oven.
                The values are chosen for the batch as a whole, and a batch with travel or set-up
                costs is ordered by a short route.

        Returns:
            One suggestion; with `n` a list of up to n, fewer if nothing more is to be gained, that
            is shown as a table with expected values and reasons.

        Raises:
            Finished: If the study is finished, its policy sees nothing more to gain, or the budget
                allows nothing more.
            InvalidArgumentError: If there is no such vehicle, or it is not clear which one is
                meant.

        Example:
            >>> study.ask()
            >>> batch = study.ask(4, lease=3600)
        """
        receipt = self.execute(Ask(1 if n is None else n, lease, vehicle, budget, context, same))
        if receipt.end is not None and not receipt.suggestions:
            raise receipt.end
        if n is None:
            return receipt.suggestions[0]
        study: Any = self  # every study is a BaseStudy
        return Batch(receipt.suggestions, study)

    @deprecated_argument("who", "vehicle", removed_in="0.5.0")
    def ask_frame(
        self,
        n: int = 1,
        *,
        lease: float | None = None,
        vehicle: str | None = None,
        budget: float | None = None,
        context: Mapping[str, Any] | None = None,
        same: Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Suggest where to measure next, as a table.

        Args:
            n: Number of suggestions, chosen as a batch.
            lease: Seconds for which the suggestions are reserved, as for `ask`.
            vehicle: Vehicle that the suggestions are for, as for `ask`.
            budget: Total cost that the study must stay within, as for `ask`.
            context: Value of every context column, as for `ask`.
            same: Columns whose values all suggestions share, as for `ask`.

        Returns:
            A DataFrame with the columns id, the coordinates, level, task and who (the vehicle) if
            the study has some, and cost. Its index has the labels of the rows of the user's own
            table. With a column `value` it goes to `tell_frame`.

        Raises:
            Finished: If the study is finished, or its policy sees nothing more to gain.
        """
        from truvar.study._frames import suggestion_frame

        batch = self.ask(n, lease=lease, vehicle=vehicle, budget=budget, context=context, same=same)
        return suggestion_frame(batch, self.domain)

    @deprecated_argument("who", "vehicle", removed_in="0.5.0")
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
        vehicle: str | None = None,
        exposure: float | None = None,
        noise_sd: float | None = None,
        reference: str | None = None,
    ) -> int:
        """Record a measured value.

        Telling the same value of a suggestion again changes nothing.

        Args:
            what: The suggestion or its id; or the point that was measured, which need not have been
                suggested: by column, as a Series such as a row of the domain's table, or as an
                array in the order of the columns.
            y: The value: a number, or an array, Series or dictionary of one number. With outcome
                "binary" it is 1 or 0, True or False, "yes" or "no".
            noise: Noise variance that the measurement really had; default: the expected one.
            level: Noise level that was used; only for a point of a study with noise levels.
            task: Name of the task that was measured; only for a point. Default: the target.
            cost: Cost that the measurement really had; default: the expected one.
            key: Any text by which a repeated `tell` of the same measurement is recognised; it then
                changes nothing.
            vehicle: Vehicle that measured; only for a point of a study with vehicles. Default: the
                author of the study object if it is a vehicle, otherwise none of them: then no
                vehicle moves, and no travel is paid.
            exposure: Time, area or volume that was counted; only with outcome "count". Default:
                that of the outcome, 1.
            noise_sd: Standard deviation that the measurement really had, its ±, instead of `noise`.
            reference: Where the raw data are, such as a file or the id of a run; recorded as text.

        Returns:
            The id of the measurement.

        Raises:
            InvalidMeasurementError: If value, noise, cost, level or task cannot be used.
            UnknownSuggestionError: If the suggestion is not one of this study, or was withdrawn.
            ConflictingMeasurementError: If another value was told for the same suggestion.
            InvalidDomainError: If the point is not in the domain.

        Warns:
            OutlierWarning: If the value may be a typing mistake (see `check_value`), and once for
                each measurement that a learned model leaves out as an outlier.

        Example:
            >>> study.tell(suggestion, 7.3)
            >>> study.tell({"distance_m": 300, "depth_m": -8}, 6.9, noise_sd=0.4)
        """
        given = (what, y, noise, level, task, cost, key, vehicle, exposure)
        command = Tell(*given, noise_sd=noise_sd, reference=reference)
        receipt = self.execute(command)
        receipt.warn(stacklevel=3)  # beyond the decorator
        return receipt.ids[0]

    @deprecated_argument("who", "vehicle", removed_in="0.5.0")
    def tell_repeats(
        self,
        what: Suggestion | int | PointLike,
        values: Sequence[ValueLike],
        *,
        level: int | None = None,
        task: str | None = None,
        key: str | None = None,
        vehicle: str | None = None,
    ) -> list[int]:
        """Record several measurements of the same place, made one after the other without moving.

        Each value counts with the noise of one measurement. Travel to the place is paid by the
        first one alone, and the position of the vehicle stays what it was.

        Args:
            what: The suggestion or its id; or the point that was measured. Of a measurement, all
                values are repeats.
            values: The values, at least one.
            level: As for `tell`.
            task: As for `tell`.
            key: Any text by which a repeated `tell_repeats` of the same values is recognised; it
                then changes nothing.
            vehicle: As for `tell`.

        Returns:
            The ids of the measurements; `measurements` has a column `repeats` with the id of the
            first.

        Raises:
            InvalidMeasurementError: If a value, the level or the task cannot be used. Nothing is
                recorded then.
            UnknownSuggestionError: If the suggestion is not one of this study, or was withdrawn.

        Example:
            >>> study.tell_repeats(study.ask(), [0.9, 1.1, 0.7])
        """
        receipt = self.execute(TellRepeats(what, values, level, task, key, vehicle))
        receipt.warn(stacklevel=3)  # beyond the decorator
        return list(receipt.ids)

    def tell_frame(self, frame: Any, value: str | None = None, *, again: bool = False) -> list[int]:
        """Record a table of measurements, all of them or none.

        The columns are those of the domain, or `id`, or labels of rows, as a column `label`, as one
        that is called as they are in the user's own table, or as index; and the column of values,
        and optionally noise, cost, level, task and vehicle (or who). A row with the id of a
        suggestion is its value. Rows without a value are left out and stay pending. Rows that were
        told before, from a table or file, are left out with a warning. A learned model takes all
        rows together: it is fitted at most once, and `history` has the state after the last row.

        Args:
            frame: A table of pandas, polars, pyarrow or another library, or the path of a CSV file
                or Excel workbook.
            value: Name of the column of values; default: "value".
            again: Record rows that were told before as second measurements.

        Returns:
            The ids of the measurements recorded.

        Raises:
            InvalidMeasurementError: If a column is unknown or missing, or a row cannot be used.

        Warns:
            RepeatedMeasurementWarning: If rows were told before.

        Example:
            >>> todo = study.ask_frame(4)
            >>> study.tell_frame(todo.assign(value=[7.3, 6.9, 5.0, 8.1]))
        """
        from truvar.study._frames import new_measurements, read_frame
        from truvar.study.measurements_io import without_keys

        study: Any = self
        measurements = read_frame(frame, study, value)
        new = without_keys(measurements) if again else new_measurements(study, measurements)
        receipt = self._tell_all(new)
        receipt.warn(stacklevel=2)
        return list(receipt.ids)

    def tell_track(
        self,
        frame: Any,
        value: str | None = None,
        *,
        within: Mapping[str, float] | None = None,
        noise_sd: float | None = None,
        cost: float | None = None,
        vehicle: str | None = None,
        again: bool = False,
    ) -> list[int]:
        """Record values sampled en route: one mean for each candidate passed, all or none.

        The mean of the values near a candidate is told with its noise, in which neighbouring values
        count as correlated; `tv.bin_track` shows the means before. A pending suggestion is answered.
        The others cost nothing unless `cost` is given. The vehicle is at the last one afterwards.

        Args:
            frame: A table, or the path of a file, with the columns of the domain and one of values,
                in the order of sampling. Rows without a value or a position are left out.
            value: Name of the column of values; default: the quantity of the study, or "value".
            within: Largest distance of a value from its candidate, by column; default: half the
                distance of neighbouring candidates.
            noise_sd: Standard deviation of one value, if known, unless the track shows a larger one.
            cost: Cost of the whole track, besides that of suggestions which it answers.
            vehicle: Vehicle that sampled it.
            again: Record a track that was told before a second time.

        Returns:
            The ids of the measurements recorded.

        Raises:
            InvalidArgumentError: If the domain is a box, or a column is missing.
            InvalidMeasurementError: If no value lies at a candidate.
        """
        from truvar.study.tracks import bin_track, new_measurements, value_column

        study: Any = self
        column = value or value_column(study, frame)
        track = bin_track(self.domain, frame, column, within=within, noise_sd=noise_sd)
        receipt = self._tell_all(new_measurements(study, track, cost, vehicle, again=again))
        receipt.warn(stacklevel=2)
        return list(receipt.ids)

    def _tell_all(self, measurements: Sequence[MeasurementInput]) -> Receipt:
        """Record measurements in order."""
        return Receipt.merged([self.execute(each.command) for each in measurements])

    def correct(
        self,
        what: Suggestion | int,
        y: float,
        *,
        noise: float | None = None,
        cost: float | None = None,
        was: float | None = None,
        exposure: float | None = None,
        noise_sd: float | None = None,
    ) -> None:
        """Replace the value of a measurement.

        Everything that follows from the value is computed again, as if the right one had been told
        at the time. The suggestions made in between stay as they were.

        Args:
            what: The measurement: its id, or the suggestion it belongs to.
            y: The right value; of several quantities, the values that change or are added. A
                quantity with the value None is left without one, the others keep theirs.
            noise: Noise variance that the measurement really had; default: as before.
            cost: Cost that the measurement really had; default: as before.
            was: The value that is replaced, for a correction that may be made late or twice: if it
                has been made, nothing changes, and if the measurement has a third value by now, it
                is refused.
            exposure: Exposure that the measurement really had; default: as before.
            noise_sd: Standard deviation that the measurement really had, instead of `noise`.

        Raises:
            InvalidMeasurementError: If value, noise, cost or exposure cannot be used.
            ConflictingMeasurementError: If the measurement has neither the value `was` nor the
                right one.
            UnknownSuggestionError: If nothing was measured under that id.

        Warns:
            OutlierWarning: If the model leaves out the corrected value too, or now another one.
        """
        command = Correct(what, y, noise, cost, was, exposure, noise_sd)
        self.execute(command).warn(stacklevel=2)

    def withdraw(
        self, what: Suggestion | int, reason: str | None = None, *, again: bool = False
    ) -> None:
        """Withdraw a suggestion that will not be measured, or remove a mistaken measurement.

        The place of a withdrawn suggestion is excluded: it is not suggested again until `allow`.
        With `again` it may be, and the study is as if the suggestion had never been made; so it is
        after a measurement was removed.

        Args:
            what: The suggestion or measurement, or its id.
            reason: Why, for the event log.
            again: Whether the place may be suggested again.

        Raises:
            UnknownSuggestionError: If there is no such suggestion or measurement.
        """
        self.execute(Withdraw(what, reason, again))

    def exclude(self, what: Any, reason: str | None = None) -> None:
        """Exclude a place that cannot be measured; it is not suggested until `allow`.

        A pending suggestion at the place is withdrawn. Measurements there count as before. A
        level set includes the place, as the function has a value there too; an optimum does not, as
        it could not be used. Excluding it again for the same reason changes nothing.

        Args:
            what: A suggestion or measurement or its id; a point by column; a region, as an interval
                for some columns, such as {"x": (0, 10)}; a condition such as "x + y > 3"; a
                polygon; on a finite domain a Boolean mask or a function of its points (n, d). In a
                box, a point stands for those within 1 % of the box's sides.
            reason: Why, for the event log and the report.

        Raises:
            InvalidArgumentError: If it is nothing of that kind, or holds no point of the domain.
            UnknownSuggestionError: If there is no such suggestion.
            InvalidDomainError: If a point or condition cannot be used.

        Example:
            >>> study.exclude(suggestion, reason="under a jetty")
            >>> study.exclude("distance_m > 1200 and depth_m < -15", reason="rocks")
        """
        self.execute(Exclude(what, reason))

    def allow(self, what: Any = None) -> None:
        """Allow a place again that was excluded or withdrawn, or where a measurement failed.

        Failures there are forgotten: they say nothing any more about what can be measured.

        Args:
            what: The place, as for `exclude`; None: everywhere.

        Example:
            >>> study.allow("distance_m > 1200")
        """
        self.execute(Allow(what))

    def extend(self, frame: Any = None, /, *, reason: str | None = None, **values: Any) -> None:
        """Add further points to the domain, or widen it. Statements are about all points then.

        Everything that was measured counts as before: the model takes the values again, and a
        learned one is fitted again, as that of a new study of the larger domain would be. Pending
        suggestions, exclusions and failures stay; regions are decided again. Rows of a table keep
        their indices and the new ones follow; those of a grid and the representers of a box get
        others.

        Args:
            frame: Further rows of a table, as `Domain.table` takes them: a DataFrame, the path of
                a file or a dictionary of columns, with the columns of the domain's own table.
                Where noise, mean, cost or weight is a number for every row, with a column of that
                name too. For a grid or box a dictionary in place of `values`, as for a column that
                is called "reason".
            reason: Why, for the event log and the report.
            **values: Further values of an axis of a grid by its name, as a list; the ends of a
                wider side of a box, or further categories. Those that are there may be repeated.

        Raises:
            InvalidDomainError: If columns are missing or unknown, a row is in the domain already, a
                side is narrower than before, there is nothing new, or the domain cannot grow.

        Example:
            >>> study.extend(more_rows)
            >>> study.extend(x=(0, 2))
        """
        if frame is not None and values:
            raise InvalidArgumentError(
                "extend takes a table or values by column, got both; give one of them"
            )
        self.execute(Extend(values if frame is None else frame, reason))

    @deprecated_argument("who", "vehicle", removed_in="0.5.0")
    def fail(
        self,
        what: Suggestion | int | Mapping[str, Any],
        reason: str | None = None,
        *,
        cost: float | None = None,
        vehicle: str | None = None,
    ) -> int:
        """Record that a measurement failed. Recording it again changes nothing.

        The place is not suggested again until `allow`, and from all failures and successes the
        study learns where measurements are likely to fail: the gain of a measurement is multiplied
        by the probability that it succeeds.

        Args:
            what: The suggestion or its id; or the point where it was tried.
            reason: Why, for the event log and the report.
            cost: What the attempt cost; default: what the measurement was expected to cost. It
                counts in `spent`, and in the budget of the vehicle that tried.
            vehicle: Vehicle that tried; only for a point of a study with vehicles, as for `tell`.

        Returns:
            The id of the attempt.

        Raises:
            UnknownSuggestionError: If the suggestion is not one of this study, or no longer
                pending.
            InvalidMeasurementError: If the cost is not a number >= 0, or the suggestion is for
                another vehicle.

        Example:
            >>> study.fail(suggestion, reason="probe stuck in weed")
        """
        return self.execute(Fail(what, reason, cost, vehicle)).ids[0]

    def note(self, text: str) -> None:
        """Write a remark into the event log."""
        self.execute(Note(text))

    def fit(self, frame: pd.DataFrame | str | Path, value: str | None = None) -> Model:
        """Fit the model to another data set and take it as known from then on.

        Args:
            frame: A table, or the path of a CSV file or Excel workbook, with the domain's columns
                and a column of values.
            value: Name of the column of values; default: the only other column.

        Returns:
            The fitted model.

        Raises:
            StudyStartedError: If the study has suggestions or measurements already.
        """
        model = self.execute(Fit(frame, value)).model
        if model is None:
            raise AssertionError("a fit has a model")
        return model

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Make several changes in one transaction: all are stored at its end, or none.

        Other threads wait until it ends. Another asyncio task cannot wait without blocking its
        event loop, so it gets a `StudyBusyError`: await nothing within a transaction.

        Example:
            >>> with study.transaction():
            ...     study.tell(1, 7.3)
            ...     study.tell(2, 6.9)
        """

    @abstractmethod
    def refresh(self) -> None:
        """Take over the changes that others made to the stored study."""

    def run(
        self,
        f: Callable[..., Any],
        *,
        budget: float | None = None,
        steps: int | None = None,
        epsilon: float | None = None,
        f1: float | None = None,
        regret: float | None = None,
        improvement_per_cost: float | None = None,
        accuracy: float | None = None,
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
        """Ask, measure and tell until the first limit is reached.

        Without any limit the run ends at those of the study; if it has none, at an expected F1 of
        0.95 for a level set, and for an optimum at an expected regret of 1 % of the range of the
        posterior mean over the domain.

        `f1`, `regret`, `improvement_per_cost` and `accuracy` are statements given the model. They end a run
        neither before there is a model and five measurements (with a learned model ten), nor while
        `result().model_check` fails because the model is overconfident or a value does not fit: a
        statement that the measurements contradict must not end it. A warning says so.

        Args:
            f: Measures a point: `f(point)`; with noise levels `f(point, level)`, with tasks
                `f(point, task)`, with both `f(point, level, task)`. It returns the value, of several
                quantities a dictionary; the value and its cost; or a `Reading`.
            budget: Stop before the total cost exceeds this, counted from the beginning of the
                study.
            steps: Stop after this number of measurements, counted from the beginning of the study.
            epsilon: Stop when the largest possible error is at most this.
            f1: Level set: stop when the F1 score of the classification is at least this with 97.5 %
                probability, that is when `result().expected_f1.low` is.
            regret: Optimum: stop when the regret of the recommended point is at most this with 97.5
                % probability, that is when `result().expected_regret.high` is. In the user's units.
            improvement_per_cost: Optimum: stop when the next measurement is not worth its cost,
                that is when `improvement_per_cost()` is less than this.
            accuracy: Map: stop when the map is within this distance at 99 % of the points with 95 %
                probability, that is when `result().accuracy` is at most this.
            executor: Where to measure: anything with `submit`, such as a pool of threads or
                processes, loky's executor, a `dask.distributed.Client`, a `RayExecutor` or an MPI
                pool; or a `multiprocessing.Pool` or a `joblib.Parallel`. Default: one measurement
                after the other, here.
            workers: Number of simultaneous measurements; default: the workers of the executor.
            retries: How often a measurement is repeated if `f` raises or returns None, NaN or an
                infinite number. Then it is recorded as failed, with the message as its reason (see
                `fail`), and the run continues elsewhere, with a warning. Default: that of the
                study's limits, or else 2 on an executor and 0 without.
            max_failures: Stop when more measurements than this have failed in this run. Default:
                that of the study's limits; without one a run ends, with an exception, only if the
                first 5 of a study fail, or later 10 in a row.
            resume: Measure the pending suggestions (or the given ones) first, as a run that died
                has left them.
            lease: Seconds for which every suggestion is reserved, so that others need not wait for
                a run that died.
            context: The context of all measurements, as for `ask`; or a function that returns it,
                called before each.
            progress: Show the progress, on stderr or in a notebook; or a function that is called
                with the study after each measurement. Default: only in a terminal or notebook, if
                neither the run nor the study has a limit.
            callbacks: Functions that are called with the study, the suggestion and its value after
                each measurement. One that returns True, or a text that says why, ends the run.

        Returns:
            The result; its `reason` says which limit was reached.

        Raises:
            InvalidArgumentError: If an argument has the wrong type or range.
            UnsupportedGoalError: If a limit does not suit the goal.
            MeasurementFailedError: If too many measurements in a row failed and `max_failures` is
                not given.
            ExecutorError: If the executor cannot be used.

        Example:
            >>> result = study.run(measure, f1=0.95, budget=500, progress=True)
            >>> result.reason
            'expected F1 0.967 (0.951 to 0.98) reached 0.95'
        """
        from truvar.study._runner import run

        self._stop_reason = run(
            self,  # type: ignore[arg-type]
            f,
            RunLimits(budget, steps, epsilon, f1, regret, improvement_per_cost, accuracy=accuracy),
            executor=executor,
            workers=workers,
            retries=retries,
            max_failures=max_failures,
            resume=resume,
            lease=lease,
            context=context,
            progress=progress,
            callbacks=callbacks,
        )
        return self.result()

    @abstractmethod
    def result(self) -> Result:
        """Return what is known now: regions, posterior, bounds, best point and certificate."""
