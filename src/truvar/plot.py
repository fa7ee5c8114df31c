"""Figures of a study: maps, slices, convergence, model check and others, by the names of functions.

Every function returns a matplotlib Figure in a light or a dark theme. `Study.plot(kind)` calls
them by name.

Example:
    >>> tv.plot.slices(study, theme="dark").savefig("slices.png")
    >>> tv.plot.convergence(study, moments=8)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from truvar._deprecation import warn_deprecated
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.report import style

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from truvar.backtest import Backtest
    from truvar.study.base import BaseStudy

__all__ = [
    "comparison",
    "contours",
    "convergence",
    "importance",
    "map",
    "model_check",
    "overview",
    "route",
    "slices",
]

Theme = Literal["light", "dark"]
# Figures of a study.
KINDS = (
    "overview",
    "map",
    "slices",
    "contours",
    "convergence",
    "importance",
    "model_check",
    "route",
)


def overview(
    study: BaseStudy,
    truth: ArrayLike | None = None,
    *,
    theme: Theme = "light",
    backend: str | None = None,
) -> Any:
    """Draw the posterior over the domain, and the measured values against the cost.

    Args:
        study: The study, which is not changed.
        truth: True values on the domain, where they are known.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("overview", theme, backend, study, truth=truth)


def map(  # the conventional name
    study: BaseStudy,
    truth: ArrayLike | None = None,
    columns: Sequence[str] | None = None,
    *,
    coastlines: str | Path | None = None,
    theme: Theme = "light",
    backend: str | None = None,
) -> Any:
    """Draw the posterior and the classes over the whole domain: a curve of one column, maps of two.

    Of three and more columns it is a map of the candidates over longitude and latitude, or over two
    columns that are given, in facets of a third one where candidates share a place; without either
    it is the matrix of contours (see `contours`).

    Args:
        study: The study, which is not changed.
        truth: True values on the domain, where they are known.
        columns: Two columns over which the candidates are drawn.
        coastlines: GeoJSON file with lines or polygons, drawn on a map over longitude and latitude.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("map", theme, backend, study, truth=truth, columns=columns, coastlines=coastlines)


def slices(
    study: BaseStudy,
    columns: Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    *,
    theme: Theme = "light",
    backend: str | None = None,
) -> Any:
    """Draw the posterior along each column through one point, the other columns held constant.

    Args:
        study: The study, which is not changed.
        columns: Columns to show; default: all, or the twelve most important ones.
        at: The point by column; default: the recommended one.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("slices", theme, backend, study, columns=columns, at=at)


def contours(
    study: BaseStudy,
    columns: Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    *,
    theme: Theme = "light",
    backend: str | None = None,
) -> Any:
    """Draw the posterior mean over each pair of columns through one point, as a matrix.

    Args:
        study: The study, which is not changed.
        columns: Columns to show; default: all, or the five most important ones.
        at: The point by column; default: the recommended one.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("contours", theme, backend, study, columns=columns, at=at)


def convergence(
    study: BaseStudy,
    against: Literal["cost", "steps"] | None = None,
    moments: int | None = None,
    *,
    theme: Theme = "light",
    backend: str | None = None,
) -> Any:
    """Draw the best value so far, and expected F1 or regret, against cost and steps.

    The expected score of earlier moments is computed by a replay of the study, which takes a few
    seconds; a value that was corrected since counts as corrected. It is the curve of the page.

    Args:
        study: The study, which is not changed.
        against: "cost" or "steps"; default: both, if the measurements differ in cost.
        moments: Largest number of moments at which the score is computed; default: 16.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("convergence", theme, backend, study, against=against, moments=moments)


def importance(study: BaseStudy, *, theme: Theme = "light", backend: str | None = None) -> Any:
    """Draw each parameter's share of the posterior mean's variance, and its length-scale.

    Args:
        study: The study, which is not changed.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("importance", theme, backend, study)


def model_check(study: BaseStudy, *, theme: Theme = "light", backend: str | None = None) -> Any:
    """Draw each measured value against its leave-one-out prediction, and the calibration.

    Args:
        study: The study, which is not changed.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("model_check", theme, backend, study)


def route(
    study: BaseStudy,
    columns: Sequence[str] | None = None,
    *,
    theme: Theme = "light",
    backend: str | None = None,
) -> Any:
    """Draw where was measured in which order, a route for each vehicle.

    Args:
        study: The study, which is not changed.
        columns: One column, which is drawn against the order, or the two of the map; default: the
            first two.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("route", theme, backend, study, columns=columns)


def comparison(
    backtest: Backtest, title: str = "", *, theme: Theme = "light", backend: str | None = None
) -> Any:
    """Draw each policy's mean score with its 95 % interval against the cost spent.

    Args:
        backtest: The result of `tv.backtest`.
        title: Title of the figure.
        theme: "light" or "dark".
        backend: Deprecated; matplotlib draws.
    """
    return _draw("comparison", theme, backend, backtest, title=title)


def plot_kind(study: BaseStudy, kind: str, **options: Any) -> Any:
    """Draw a study by the name of the figure.

    Args:
        study: The study, which is not changed.
        kind: One of `KINDS`.
        options: Arguments of the function of that name; those that are None are left out.

    Raises:
        InvalidArgumentError: If there is no such figure, or it does not take an argument.
    """
    if kind not in KINDS:
        raise InvalidArgumentError(unknown_name("kind of figure", kind, KINDS))
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return globals()[kind](study, **given)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        name = str(error).rpartition("argument ")[2].strip("'")
        raise InvalidArgumentError(
            f"the figure {kind!r} takes no {name!r}, got one; leave it out"
        ) from None


def _draw(kind: str, theme: str, backend: str | None, subject: Any, **options: Any) -> Any:
    """Check the options that all figures have, and draw."""
    if backend not in (None, "matplotlib"):
        raise InvalidArgumentError(
            f"figures are drawn with matplotlib alone since truvar 0.3, got backend={backend!r}; "
            "leave it out. Maps to zoom and point at: tv.notebook.live_map, or truvar serve"
        )
    if backend is not None:
        warn_deprecated("the argument backend", "no backend", removed_in="0.5.0", stacklevel=3)
    if theme not in style.THEMES:
        raise InvalidArgumentError(unknown_name("theme", theme, style.THEMES))
    from truvar.report.figures import draw

    return draw(kind, subject, theme, options)
