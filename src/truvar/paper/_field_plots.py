"""Maps of fields, and of the routes of runs on them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from truvar.paper.fields import Field
from truvar.report import style
from truvar.report.formatting import column_label

_BELOW_COLOUR = "#F4F1EA"  # of the region below the threshold


def draw_field(axes: Any, field: Field, title: str) -> None:
    """Draw the true values with the contour at the threshold.

    Args:
        axes: Axes to draw on.
        field: The field.
        title: Title.
    """
    x, y = _grid_axes(field)
    values = field.truth.reshape(len(x), len(y)).T
    image = axes.pcolormesh(x, y, values, cmap=style.VALUES, shading="nearest", rasterized=True)
    axes.contour(x, y, values, levels=[field.threshold], colors="white", linewidths=1.5)
    axes.figure.colorbar(image, ax=axes, pad=0.02)
    _label_axes(axes, field, title)


def draw_route(axes: Any, field: Field, route: pd.DataFrame, policy: str) -> None:
    """Draw the route of a run over the region above the threshold.

    Args:
        axes: Axes to draw on.
        field: The field.
        route: Measurements of the run, in order, from the curves of a backtest.
        policy: Name of the policy, for the title.
    """
    x, y = _grid_axes(field)
    values = field.truth.reshape(len(x), len(y)).T
    levels = [float(values.min()) - 1, field.threshold, float(values.max()) + 1]
    colours = [_BELOW_COLOUR, style.LEVEL_SET["above"]]
    axes.contourf(x, y, values, levels=levels, colors=colours, alpha=0.5)
    route_x, route_y = (route[name].to_numpy() for name in field.domain.columns)
    axes.plot(route_x, route_y, color=style.INK, lw=0.6, alpha=0.7)
    axes.scatter(route_x, route_y, s=13, color=style.INK, zorder=3, clip_on=False)
    last = route.iloc[-1]
    title = f"{policy}: F1 {last['score']:.2f} after {len(route)} measurements, cost {last['spent']:,.0f}"
    _label_axes(axes, field, title)


def _grid_axes(field: Field) -> tuple[Any, Any]:
    x, y = field.domain.axes or ()  # the domain of a field is a grid
    return x, y


def _label_axes(axes: Any, field: Field, title: str) -> None:
    names = field.domain.columns
    x, y = _grid_axes(field)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(column_label(names[0]))
    axes.set_ylabel(column_label(names[1]))
    axes.set_xlim(x.min(), x.max())
    axes.set_ylim(y.min(), y.max())
    if y.min() >= 0:  # a depth or a distance to the south, which grows downwards on a map
        axes.invert_yaxis()
