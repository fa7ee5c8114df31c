"""The posterior along one or two columns through a point, and the importance of the columns.

Data of figures with three and more dimensions, which the page can send to a browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Index
from truvar.domain.grid import mesh
from truvar.exceptions import InvalidArgumentError, PointNotInDomainError
from truvar.inference.sensitivity import SobolIndices, sobol_indices
from truvar.messages import unknown_name
from truvar.models.kernels import stationary_form
from truvar.report import style

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy

LINE_POINTS = 61  # along a slice
PLANE_POINTS = 33  # along each side of a plane
NEAR = 0.3  # distance from a slice at which a measurement is drawn pale, as a share of the extents
PALEST = 0.15  # opacity of a measurement far from a slice


@dataclass(frozen=True, eq=False)
class LineSlice:
    """The posterior along one column, the others held constant.

    Attributes:
        column: Position of the column.
        x: Coordinates along it. (m,)
        mean: Posterior mean. (m,)
        sd: Posterior standard deviation. (m,)
    """

    column: int
    x: Array
    mean: Array
    sd: Array


@dataclass(frozen=True, eq=False)
class PlaneSlice:
    """The posterior over two columns, the others held constant.

    Attributes:
        columns: Positions of the two columns.
        x: Coordinates along the first. (m,)
        y: Coordinates along the second. (l,)
        mean: Posterior mean. (l, m)
        sd: Posterior standard deviation. (l, m)
    """

    columns: tuple[int, int]
    x: Array
    y: Array
    mean: Array
    sd: Array

    @property
    def transposed(self) -> PlaneSlice:
        """The plane with its two columns exchanged."""
        return PlaneSlice(self.columns[::-1], self.y, self.x, self.mean.T, self.sd.T)


@dataclass(frozen=True, eq=False)
class PosteriorSlices:
    """Slices of the posterior of a study through one point.

    Attributes:
        study: The study.
        at: Coordinates of the point. (d,)
    """

    study: BaseStudy
    at: Array

    @staticmethod
    def through(study: BaseStudy, at: Mapping[str, Any] | None = None) -> PosteriorSlices:
        """Return the slices through a point.

        Args:
            study: The study.
            at: The point by column; default: the recommended one.

        Raises:
            InvalidArgumentError: If a column is unknown or missing.
        """
        point = study.result().best.point if at is None else at
        return PosteriorSlices(study, study.domain.array(point))

    @property
    def point(self) -> dict[str, Any]:
        """The point by column."""
        return self.study.domain.named(self.at)

    def line(self, column: int) -> LineSlice:
        """Return the posterior along one column."""
        x = axis_values(self.study, column, LINE_POINTS)
        points = np.repeat(self.at[None, :], len(x), axis=0)
        points[:, column] = x
        mean, sd = predict(self.study, points)
        return LineSlice(column, x, mean, sd)

    def plane(self, across: int, up: int) -> PlaneSlice:
        """Return the posterior over two columns."""
        x = axis_values(self.study, across, PLANE_POINTS)
        y = axis_values(self.study, up, PLANE_POINTS)
        pairs = mesh([y, x])
        points = np.repeat(self.at[None, :], len(pairs), axis=0)
        points[:, up] = pairs[:, 0]
        points[:, across] = pairs[:, 1]
        mean, sd = predict(self.study, points)
        shape = (len(y), len(x))
        return PlaneSlice((across, up), x, y, mean.reshape(shape), sd.reshape(shape))

    def opacity(self, points: Array, free: Sequence[int]) -> Array:
        """Return how strongly points (q, d) are drawn: less the further they are from the slice in other columns.

        Args:
            points: The points.
            free: Positions of the columns along which the slice runs.
        """
        domain = self.study.domain
        difference = (points - self.at) / domain.extent
        for k in domain.categorical:
            difference[:, k] = difference[:, k] != 0
        difference[:, list(free)] = 0.0
        distance = np.sqrt((difference**2).mean(axis=1))
        return np.asarray(PALEST + (1 - PALEST) * np.exp(-((distance / NEAR) ** 2)))


def axis_values(study: BaseStudy, column: int, count: int) -> Array:
    """Return the coordinates (m,) along a column: all of those it has, if they are few, or `count` of them."""
    domain = study.domain
    low, high = (float(end) for end in domain.bounds[column])
    parameter = domain.parameters[column]
    if parameter.n_levels is not None:
        if parameter.categorical:
            return np.asarray(parameter.levels, dtype=float)
        return np.asarray(np.unique(parameter.snap(np.linspace(low, high, count))))
    own = np.unique(domain.points[:, column])
    if not domain.continuous and len(own) <= count and domain.axes is not None:
        return own
    if low > 0 and style.use_log_axis(own):
        return np.geomspace(low, high, count)
    return np.linspace(low, high, count) if high > low else np.array([low])


def predict(study: BaseStudy, points: Array) -> tuple[Array, Array]:
    """Return posterior mean and sd at coordinates (q, d); where the prior mean is a table, at the nearest rows."""
    domain = study.domain
    try:
        return study.predict(domain.values(points))
    except PointNotInDomainError:
        rows = np.array([domain.nearest(x) for x in points])
        return study.predict(domain.values(domain.points[rows]))


# -- importance
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Importance:
    """Importance of the columns of a study.

    Attributes:
        columns: Names of the columns.
        indices: Sobol indices of the posterior mean.
        lengthscales: Length-scale of each column as a share of its extent; None if the kernel has
            none. (d,)
    """

    columns: tuple[str, ...]
    indices: SobolIndices
    lengthscales: Array | None

    @cached_property
    def order(self) -> Index:
        """Positions of the columns, the most important first."""
        return np.argsort(-self.indices.total, kind="stable")

    def explain(self) -> str:
        """Return the meaning of the numbers as sentences, and why they do not add up to 100 %."""
        alone = 100 * min(float(np.clip(self.indices.first, 0.0, None).sum()), 1.0)
        total = 100 * float(self.indices.total.sum())
        text = (
            "Share of the variation of the estimate over the domain that a parameter explains: "
            "alone (dark), and together with others (pale). "
        )
        if len(self.columns) > 1:
            text += (
                f"Alone the parameters explain {alone:.0f} % in all; the other {100 - alone:.0f} % "
                "they explain only together, which counts for each of those involved, so that the "
                f"numbers add up to {total:.0f} %. "
            )
        return (
            f"{text}Along a parameter of a short length-scale the value changes quickly. "
            "All of it is about the model so far, not about the true function."
        )


def column_importance(study: BaseStudy) -> Importance:
    """Return which columns matter most, by the posterior mean of a study.

    Args:
        study: The study, which is not changed.
    """
    domain = study.domain
    indices = sobol_indices(lambda points: predict(study, points)[0], domain.points)
    return Importance(domain.columns, indices, _lengthscales(study))


def _lengthscales(study: BaseStudy) -> Array | None:
    kernel = getattr(study, "kernel", None)  # a study on a server does not send its kernel
    form = None if kernel is None else stationary_form(kernel)
    if form is None:
        return None
    return np.asarray(
        np.broadcast_to(form.lengthscales, len(study.domain.columns)) / study.domain.extent
    )


def chosen_columns(
    study: BaseStudy, names: Sequence[str] | None, limit: int
) -> tuple[list[int], str]:
    """Return positions of the columns to show, in the order of the domain, and a note on those left out.

    Args:
        study: The study.
        names: Names of the columns; None: all, or if there are more than the limit the most
            important ones.
        limit: Largest number of columns.

    Raises:
        InvalidArgumentError: If a column is unknown, or there are none.
    """
    columns = study.domain.columns
    if names is not None:
        for name in names:
            if name not in columns:
                raise InvalidArgumentError(unknown_name("column", name, columns))
        if not names:
            raise InvalidArgumentError(
                f"columns must name at least one of {', '.join(columns)}, got none; name some"
            )
        return [columns.index(name) for name in dict.fromkeys(names)], ""
    if len(columns) <= limit:
        return list(range(len(columns))), ""
    chosen = sorted(int(k) for k in column_importance(study).order[:limit])
    return chosen, f"the {limit} most important of {len(columns)} parameters"
