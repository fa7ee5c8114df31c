"""Tracks: many values sampled en route, as one measurement for each candidate that was passed.

| symbol | here |
|---|---|
| y_1 ... y_n, the values of a bin in their order | `value` of the table |
| mean of a bin | `Track.table["value"]` |
| s^2, variance of one value about the mean of its bin, of all bins together | `Track.sd` squared |
| r, correlation of one value with the next one of its bin | `Track.correlation` |
| n (1 - r) / (1 + r), number of values that count, at least 1 | `Track.table["independent"]` |
| o_k, distance of the mean position of a bin from its point along column k, in gaps | `offsets` |
| G_k, mean squared change of the means over one gap of column k | `_changes` |
| s^2 / (number that counts) + sum_k G_k o_k^2, noise variance of the mean | `Track.table["noise_sd"]` squared |

s^2 contains how f varies within a bin. A trend there makes neighbours similar, so that r is near 1
and hardly more than one value counts: the mean of a bin does not stand for its point any better.
The last term is the change of f between where a bin was sampled and its point.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Index
from truvar.domain.bins import Bins
from truvar.domain.domain import Domain
from truvar.exceptions import (
    InvalidArgumentError,
    InvalidMeasurementError,
    RepeatedMeasurementWarning,
)
from truvar.messages import for_interface, unknown_name
from truvar.study.measurements_io import MeasurementInput, skip_repeated, without_keys
from truvar.tabular.delimited import find_column
from truvar.tabular.tables import as_table
from truvar.validation import check_nonnegative

if TYPE_CHECKING:
    import pandas as pd

    from truvar.study.base import BaseStudy

_MAX_CORRELATION = 0.99  # of neighbouring values; a hundred of them count as half a value
_MIN_DEGREES = 3  # values beyond one per bin from which their variance can be told


@dataclass(frozen=True)
class Track:
    """Values of a track by candidate.

    Attributes:
        table: A row for every candidate that was passed, in the order in which each was left: `row`
            in the domain, the coordinates, `value` (the mean), `samples`, `independent` and
            `noise_sd`, which is NaN where it cannot be told.
        sd: Standard deviation of one value about the mean of its bin; NaN if it cannot be told.
        correlation: Correlation of one value with the next one of its bin.
        n_values: Number of values in the track.
        n_outside: Number of values too far from every candidate, which are left out.
    """

    table: pd.DataFrame
    sd: float
    correlation: float
    n_values: int
    n_outside: int

    def __str__(self) -> str:
        """Return a sentence that says what becomes of the values."""
        used = self.n_values - self.n_outside
        outside = f", {self.n_outside} are too far from every one" if self.n_outside else ""
        text = f"{used} of {self.n_values} values lie at {len(self.table)} candidates{outside}"
        noise = self.table["noise_sd"].dropna()
        if len(noise) == 0:
            return f"{text}; their noise is that of the study"
        return (
            f"{text}; one value ±{self.sd:.2g}, correlation of neighbours "
            f"{self.correlation:.2f}, means ±{noise.min():.2g} to ±{noise.max():.2g}"
        )


def bin_track(
    domain: Domain,
    frame: Any,
    value: str = "value",
    *,
    within: Mapping[str, float] | None = None,
    noise_sd: float | None = None,
) -> Track:
    """Average the values of a track over the candidates of a domain.

    Args:
        domain: The domain, a grid or a table.
        frame: A table, or the path of a file, with the columns of the domain and one of values, in
            the order of sampling. Rows without a value or a position are left out.
        value: Name of the column of values.
        within: Largest distance of a value from its candidate, by column; default: half the
            distance of neighbouring candidates.
        noise_sd: Standard deviation of one value, if it is known; what the track shows counts where
            it is larger.

    Returns:
        The means with their noise.

    Raises:
        InvalidArgumentError: If the domain is a box, or a column is missing or has no numbers.
        InvalidMeasurementError: If no value lies at a candidate.

    Example:
        >>> track = tv.bin_track(domain, "glider.csv", value="oxygen")
        >>> print(track)
    """
    if noise_sd is not None:
        check_nonnegative(noise_sd, "noise_sd")
    bins = Bins(domain, within)
    positions, values = _numbers(domain, as_table(frame), value)
    rows = bins.assign(positions)
    inside = rows >= 0
    if not inside.any():
        raise InvalidMeasurementError(
            f"none of the {len(values)} values of the track lies at a candidate; check the columns "
            f"{', '.join(domain.columns)}, or give a larger distance with within"
        )
    kept = rows[inside]
    positions = positions[inside] / bins.gaps
    return _averaged(domain, kept, values[inside], positions, bins.gaps, len(values), noise_sd)


def _numbers(domain: Domain, frame: pd.DataFrame, value: str) -> tuple[Array, Array]:
    """Return the positions (q, d), as coordinates of the model, and the values (q,)."""
    import pandas as pd

    header = [str(name) for name in frame.columns]
    columns = []
    for name in (*domain.columns, value):
        found = find_column(header, name)
        if found is None:
            problem = unknown_name("column", name, header)
            if name == value:
                option = for_interface(python="value='COLUMN'", cli="--value COLUMN")
                problem += f"; {option} says where the values are"
            needed = f"{', '.join(domain.columns)} and {value!r}"
            raise InvalidArgumentError(f"the track needs the columns {needed}: {problem}")
        column = pd.to_numeric(frame.iloc[:, header.index(found)], errors="coerce")
        columns.append(column.to_numpy(float))
    table = np.column_stack(columns)
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) == 0:
        raise InvalidMeasurementError(
            "the track has no row with a position and a value; check the file"
        )
    points = table[:, :-1] if domain.is_plain else domain.encode(table[:, :-1])
    return points, table[:, -1]


def _averaged(
    domain: Domain,
    rows: Index,
    values: Array,
    positions: Array,
    gaps: Array,
    n_values: int,
    noise_sd: float | None,
) -> Track:
    """Return the means of values (q,) by row of the domain (q,).

    Args:
        domain: The domain.
        rows: Row of the domain of every value. (q,)
        values: The values. (q,)
        positions: Where they were sampled, in gaps. (q, d)
        gaps: Distance of neighbouring points along each column. (d,)
        n_values: Number of values of the track, also of those that are left out.
        noise_sd: Standard deviation of one value; None: as the values show.
    """
    import pandas as pd

    passed, index = np.unique(rows, return_inverse=True)
    counts = np.bincount(index)
    means = np.bincount(index, weights=values) / counts
    residuals = values - means[index]
    degrees = len(values) - len(passed)
    variance = np.nan
    correlation = 0.0
    if degrees >= _MIN_DEGREES:
        variance = float(np.sum(residuals**2)) / degrees
        correlation = _correlation(rows, counts[index], residuals)
    if noise_sd is not None:
        variance = float(np.nanmax([variance, noise_sd**2]))
    independent = np.maximum(counts * (1 - correlation) / (1 + correlation), 1.0)
    left = np.zeros(len(passed), dtype=np.intp)
    left[index] = np.arange(len(values))  # the last value of each bin stays
    where = np.column_stack([np.bincount(index, weights=column) / counts for column in positions.T])
    order = np.argsort(left)
    offsets = where - domain.points[passed] / gaps
    elsewhere = offsets**2 @ _changes(where[order], means[order])
    table = pd.DataFrame(domain.values(domain.points[passed]), columns=list(domain.columns))
    table = table.assign(
        value=means,
        samples=counts,
        independent=independent,
        noise_sd=np.sqrt(variance / independent + elsewhere),
    )
    table.insert(0, "row", passed)
    table = table.iloc[order].reset_index(drop=True)
    return Track(table, float(np.sqrt(variance)), correlation, n_values, n_values - len(values))


def _changes(positions: Array, means: Array) -> Array:
    """Return the mean squared change of the means over one gap of every column: (d,).

    The squared differences of means that follow each other are the sum of the changes along each
    column, times the squared distance there; least squares with changes >= 0 tell them apart.

    Args:
        positions: Mean positions in the order of sampling, in gaps. (b, d)
        means: Means there. (b,)
    """
    from scipy.optimize import nnls  # imports slowly

    if len(means) < 2:
        return np.zeros(positions.shape[1])
    steps = np.diff(positions, axis=0)
    jumps = np.diff(means)
    # Close neighbours count most, as a change need not go on in the same way.
    weight = 1.0 / np.maximum((steps**2).sum(axis=1), 1e-6)
    changes, _ = nnls(steps**2 * weight[:, None], jumps**2 * weight)
    return np.asarray(changes)


def _correlation(rows: Index, counts: Index, residuals: Array) -> float:
    """Return the correlation of neighbours within a bin, from 0 to `_MAX_CORRELATION`.

    Residuals about the mean of n values have a correlation of -1 / (n - 1) if the values have none,
    which is added.
    """
    together = rows[1:] == rows[:-1]
    if not together.any():
        return 0.0
    products = residuals[1:] * residuals[:-1]
    squares = (residuals[1:] ** 2 + residuals[:-1] ** 2) / 2
    total = float(squares[together].sum())
    if total == 0:
        return 0.0
    bias = float(np.mean(1.0 / (counts[1:][together] - 1)))
    return float(np.clip(products[together].sum() / total + bias, 0.0, _MAX_CORRELATION))


def value_column(study: BaseStudy, frame: Any) -> str:
    """Return the column of values: the quantity of the study if there is one, or "value".

    Raises:
        InvalidArgumentError: If the study has several quantities.
    """
    _check_one_quantity(study)
    name = study.quantity.name
    header = [str(column) for column in as_table(frame).columns]
    return name if name is not None and find_column(header, name) is not None else "value"


def _check_one_quantity(study: BaseStudy) -> None:
    if study.goal.parts:
        raise InvalidArgumentError(
            "a track is of one quantity, and this study has several; tell the values with "
            "tell_frame"
        )


def new_measurements(
    study: BaseStudy, track: Track, cost: float | None, vehicle: str | None, *, again: bool
) -> list[MeasurementInput]:
    """Return the means of a track that were not told before, or all; warn of the others.

    Args:
        study: The study.
        track: The track.
        cost: As for `track_measurements`.
        vehicle: The vehicle that sampled it.
        again: Whether means that were told before count again.
    """
    measurements = track_measurements(study, track, cost, vehicle)
    if again:
        return without_keys(measurements)
    new, repeated = skip_repeated(study, measurements)
    if repeated:
        warnings.warn(
            f"{len(repeated)} of {len(measurements)} means of the track were told before and are "
            "left out; if it was sampled a second time with the same values, give again=True",
            RepeatedMeasurementWarning,
            stacklevel=3,
        )
    return new


def track_measurements(
    study: BaseStudy, track: Track, cost: float | None, vehicle: str | None
) -> list[MeasurementInput]:
    """Return the measurements that a track amounts to.

    A candidate with a pending suggestion answers it, and pays its cost. The others cost an equal
    share of `cost`, and only the last one moves the vehicle.

    Args:
        study: The study.
        track: The track.
        cost: Cost of the whole track, besides that of the suggestions which it answers; None: 0.
        vehicle: The vehicle that sampled it.
    """
    _check_one_quantity(study)
    if cost is not None:
        check_nonnegative(cost, "the cost of the track")
    if study.learns_cost and not cost:
        raise InvalidArgumentError(
            "costs are learned in this study, and a track without one would teach that "
            "measurements are free; give the cost of the track"
        )
    suggested = {suggestion.index: suggestion.id for suggestion in study.pending}
    table = track.table
    count = sum(row not in suggested for row in table["row"])
    share = 0.0 if cost is None or count == 0 else cost / count
    measurements = []
    columns = [table[name].tolist() for name in ("row", "value", "samples", "noise_sd")]
    for position, (row, mean, samples, sd) in enumerate(zip(*columns, strict=True)):
        options: dict[str, Any] = {}
        if np.isfinite(sd):
            options["noise_sd"] = sd
        point = study.domain.point(row)
        what: int | dict[str, Any] = suggested.get(row, point)
        content = repr((sorted(point.items()), mean, samples))
        options["key"] = f"track-{sha256(content.encode()).hexdigest()[:32]}"
        source = f"candidate {study.domain.label(row) or row}"
        if not isinstance(what, int):
            options["cost"] = share
            options["passing"] = position < len(table) - 1
            if vehicle is not None:
                options["vehicle"] = vehicle
        measurements.append(MeasurementInput(what, mean, options, source))
    return measurements
