"""Maps of fields on a grid, for the figures."""

from __future__ import annotations

from typing import Any

import pandas as pd

from truvar.paper.fields import Field
from truvar.report import style
from truvar.report.formatting import column_label

PALE = "#F4F1EA"


def draw_field(axes: Any, field: Field, title: str, bar: bool = True) -> None:
    """The true values, with the line where they cross the threshold."""
    along, down = _axes(field)
    values = field.truth.reshape(len(along), len(down)).T
    image = axes.pcolormesh(along, down, values, cmap=style.VALUES, shading="nearest", rasterized=True)
    axes.contour(along, down, values, levels=[field.threshold], colors="white", linewidths=1.5)
    if bar:
        axes.figure.colorbar(image, ax=axes, pad=0.02)
    _frame(axes, field, title)


def draw_route(axes: Any, field: Field, route: pd.DataFrame, policy: str) -> None:
    """Where one run measured, in order, over the region above the threshold."""
    along, down = _axes(field)
    values = field.truth.reshape(len(along), len(down)).T
    colours = [PALE, style.LEVEL_SET["above"]]
    low, high = float(values.min()) - 1, float(values.max()) + 1
    axes.contourf(along, down, values, levels=[low, field.threshold, high], colors=colours, alpha=0.5)
    x, y = (route[name].to_numpy() for name in field.domain.columns)
    axes.plot(x, y, color=style.INK, lw=0.6, alpha=0.7)
    axes.scatter(x, y, s=13, color=style.INK, zorder=3, clip_on=False)
    last = route.iloc[-1]
    said = f"{policy}: F1 {last['score']:.2f} after {len(route)} measurements, cost {last['spent']:,.0f}"
    _frame(axes, field, said)


def _axes(field: Field) -> tuple[Any, Any]:
    along, down = field.domain.axes or ()  # a section is a grid
    return along, down


def _frame(axes: Any, field: Field, title: str) -> None:
    names = field.domain.columns
    along, down = _axes(field)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(column_label(names[0]))
    axes.set_ylabel(column_label(names[1]))
    axes.set_xlim(along.min(), along.max())
    axes.set_ylim(down.min(), down.max())
    if down.min() >= 0:  # a depth or a distance southwards: it grows downwards
        axes.invert_yaxis()
