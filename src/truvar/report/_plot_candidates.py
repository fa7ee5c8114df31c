"""Map of the candidates themselves over two columns: for tables, which have no value between their rows.

Every candidate is a mark, coloured by its probability, its class, its mean and its standard
deviation. Candidates that share a place, such as the depths of a station, are shown in facets of
the third column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array, Mask
from truvar.domain.geographic import geographic_columns
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.report import style
from truvar.report._plot_data import PlotData, diamond, star
from truvar.report.backtest_plot import COLOURS
from truvar.report.formatting import column_label, column_ticks, format_number
from truvar.report.goal_views import optimum_name

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

_MAX_FACETS = 3  # ranges of a third column that are shown side by side
_SHARED = 1.5  # candidates per place from which on there are facets
_KILOMETRES_PER_DEGREE = 111.2  # of latitude
_BAR_SHARE = 0.25  # largest share of the width that a scale bar takes
_MARKS = (3.0, 60.0)  # smallest and largest area of a mark in square points
_INK_OF_ALL_MARKS = 5000.0  # square points that all marks of a panel take together
_BAR_ROOM = 0.12  # share of the height that is kept free for the scale bar
_MARGIN = 1.1  # inches, of a figure around its maps
_COLOUR_BAR = 0.5  # inches, beside each map where every layer has one map
_TITLE_HEIGHT = 0.45  # inches, above a map
_PANEL_RATIO = 0.67  # of the height to the width of a map that is not over degrees
_HEIGHTS = (4.0, 14.0)  # inches, smallest and largest height of a figure
START_MARK = {"marker": "s", "ms": 6, "mfc": "white", "mec": style.INK, "mew": 1.4}


@dataclass(frozen=True)
class MapColumns:
    """Two columns that a map is drawn over.

    Attributes:
        x: Position of the horizontal column.
        y: Position of the vertical column.
        is_degrees: Whether they are longitude and latitude.
    """

    x: int
    y: int
    is_degrees: bool


def map_columns(domain: Domain, names: Sequence[str] | None = None) -> MapColumns | None:
    """Return the columns of a map of the candidates.

    Args:
        domain: The domain.
        names: Two columns; default: longitude and latitude.

    Returns:
        None if no columns are given, and none are geographic or the points fill a grid in them.

    Raises:
        InvalidArgumentError: If there are not two of them, or one is unknown.
    """
    found = geographic_columns(domain)
    geographic = None if found is None else (found.longitude, found.latitude)
    chosen = geographic if names is None else tuple(names)
    if chosen is None or (names is None and len(domain.columns) == 2 and domain.layout is not None):
        return None
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        raise InvalidArgumentError(
            f"a map has two columns, got {', '.join(chosen) or 'none'}; give two such as "
            f"columns={list(domain.columns[:2])}"
        )
    for name in chosen:
        if name not in domain.columns:
            raise InvalidArgumentError(unknown_name("column", name, domain.columns))
    in_degrees = chosen == geographic and found is not None and found.crs is None
    x, y = (domain.columns.index(name) for name in chosen)
    return MapColumns(x, y, in_degrees)


def map_size(
    data: PlotData, columns: MapColumns, width: float, max_rows: int | None = None
) -> tuple[float, float]:
    """Return the width and height in inches of a figure with the maps of `draw_candidates`."""
    facets = _facets(data.domain, columns)
    layers = _layers(data)
    across, down = _shape(layers[:max_rows] if len(facets) > 1 else layers, facets)
    lows, highs = data.domain.bounds[[columns.x, columns.y]].T
    ratio = _PANEL_RATIO
    if columns.is_degrees and (highs > lows).all():
        ratio = float((highs - lows)[1] / (highs - lows)[0]) * _aspect(data, columns)
    panel = (width - _MARGIN) / across
    if len(facets) == 1 and len(layers) > 1:
        panel -= _COLOUR_BAR
    height = down * (panel * ratio * (1.0 + _BAR_ROOM) + _TITLE_HEIGHT) + _MARGIN
    return width, min(max(height, _HEIGHTS[0]), _HEIGHTS[1])


def _shape(layers: Sequence[Any], facets: Sequence[Any]) -> tuple[int, int]:
    """Return the number of maps across and down."""
    if len(facets) > 1:
        return len(facets), len(layers)
    across = min(len(layers), 2)
    return across, -(-len(layers) // across)


def draw_candidates(
    figure: Any,
    data: PlotData,
    columns: MapColumns,
    coastlines: Sequence[Array] = (),
    max_rows: int | None = None,
) -> list[Any]:
    """Draw maps of the candidates into a figure, by probability, class, mean and sd.

    Args:
        figure: Figure, or part of one.
        data: Data of the study.
        columns: The columns of the maps.
        coastlines: Lines in the same columns, drawn behind the candidates. (q, 2) each
        max_rows: Number of the layers that are drawn if each has several facets; default: all.

    Returns:
        Entries for a legend.
    """
    facets = _facets(data.domain, columns)
    layers = _layers(data)
    if len(facets) > 1:
        layers = layers[:max_rows]
        panels = figure.subplots(len(layers), len(facets), squeeze=False, sharex=True, sharey=True)
    else:
        across, down = _shape(layers, facets)
        panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        panels = panels.reshape(-1, 1)
    for row, draw in zip(panels, layers, strict=True):
        for ax, facet in zip(row, facets, strict=True):
            draw(ax, data, columns, facet.shows(data.domain.points), is_last=ax is row[-1])
            if facet.title:  # the layer is named once, since the next title is close
                layer = f"{ax.get_title(loc='left')}\n" if ax is row[0] else ""
                ax.set_title(f"{layer}{facet.title}", loc="left", fontsize=9)
            _draw_routes(ax, data, columns, facet)
            _draw_coastlines(ax, coastlines)
            _set_axes(ax, data, columns)
    if columns.is_degrees:
        set_map_axes(panels[0][0], data, columns)  # which share their limits
    elif _is_depth(data.domain, columns.y):
        panels[0][0].invert_yaxis()
    return _handles(data, columns)


# -- layers
# --------------------------------------------------------------------------------------------------


def _layers(data: PlotData) -> list[Callable[..., None]]:
    """Return what maps show; without a model, only where can be measured."""
    if not data.has_model:
        return [_draw_places]
    if data.view.region_map == "sd":
        return [_draw_mean, _draw_sd]
    return [_draw_probability, _draw_class, _draw_mean, _draw_sd]


def _draw_places(ax: Any, data: PlotData, columns: MapColumns, shown: Mask, is_last: bool) -> None:
    _scatter(ax, data, columns, shown, np.zeros(len(shown)), color="#BBBBBB")
    ax.set_title("candidates: there is no model yet", loc="left", fontsize=9)


def _draw_probability(
    ax: Any, data: PlotData, columns: MapColumns, shown: Mask, is_last: bool
) -> None:
    colors = style.import_matplotlib("colors")
    probability = data.result.probability
    if data.goal.seeks_optimum:
        palette = colors.LinearSegmentedColormap.from_list("probability", style.PROBABILITY)
        limits = {"vmin": 0.0, "vmax": float(probability.max())}
        title = f"probability: {optimum_name(data.goal)}"
        front = probability
    else:
        ends = style.LEVEL_SET
        sides = [ends["below"], ends["undecided"], ends["above"]]
        palette = colors.LinearSegmentedColormap.from_list("sides", sides)
        asked = data.goal.sides[0]
        if asked == "below":
            probability = 1.0 - probability  # of the side that is asked for
        limits = {"vmin": 0.0, "vmax": 1.0}
        thresholds = ", ".join(map(format_number, data.thresholds))
        unit = data.study.quantity.unit
        title = f"probability: {asked} {thresholds}{f' {unit}' if unit else ''}"
        front = probability
    image = _scatter(ax, data, columns, shown, front, c=probability, cmap=palette, **limits)
    _finish(ax, image, title, is_last)


def _draw_class(ax: Any, data: PlotData, columns: MapColumns, shown: Mask, is_last: bool) -> None:
    classes = data.classes()
    colours = np.empty(len(shown), dtype=object)
    front = np.zeros(len(shown))
    for number, (name, mask, _) in enumerate(classes):
        colours[mask] = data.colours[name]
        front[mask] = -number
    _scatter(ax, data, columns, shown, front, c=colours)
    ax.set_title("class", loc="left", fontsize=9)


def _draw_mean(ax: Any, data: PlotData, columns: MapColumns, shown: Mask, is_last: bool) -> None:
    label = data.study.quantity.label
    name = "mean" if label is None else f"mean {label}"
    _draw_values(ax, data, columns, shown, data.result.mean, name, is_last)


def _draw_sd(ax: Any, data: PlotData, columns: MapColumns, shown: Mask, is_last: bool) -> None:
    unit = data.study.quantity.unit
    name = "standard deviation" if unit is None else f"standard deviation ({unit})"
    _draw_values(ax, data, columns, shown, data.result.sd, name, is_last)


def _draw_values(
    ax: Any, data: PlotData, columns: MapColumns, shown: Mask, values: Array, name: str,
    is_last: bool,
) -> None:  # fmt: skip
    limits = {"vmin": float(values.min()), "vmax": float(values.max())}
    image = _scatter(ax, data, columns, shown, values, c=values, cmap=style.VALUES, **limits)
    _finish(ax, image, name, is_last)


def _scatter(
    ax: Any, data: PlotData, columns: MapColumns, shown: Mask, front: Array, **options: Any
) -> Any:
    """Draw a mark for each candidate that is shown, those with the largest `front` last."""
    order = np.flatnonzero(shown)
    order = order[np.argsort(front[order], kind="stable")]
    if "c" in options:
        options["c"] = options["c"][order]
    points = data.domain.points[order]
    size = float(np.clip(_INK_OF_ALL_MARKS / max(len(order), 1), *_MARKS))
    return ax.scatter(
        points[:, columns.x], points[:, columns.y], s=size, edgecolors="#888888", linewidths=0.3,
        **options,
    )  # fmt: skip


def _finish(ax: Any, image: Any, title: str, is_last: bool) -> None:
    ax.set_title(title, loc="left", fontsize=9)
    if is_last:
        beside = ax.inset_axes((1.03, 0.0, 0.04, 1.0))  # takes nothing from the size of the map
        ax.figure.colorbar(image, cax=beside).ax.tick_params(labelsize=8)


# -- facets
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Facet:
    """Candidates of a range of the third column, which share no place with each other.

    Attributes:
        title: The range in words; empty if there is one facet for all.
        column: Position of the third column.
        low: Lower end.
        high: Upper end.
    """

    title: str = ""
    column: int = 0
    low: float = -math.inf
    high: float = math.inf

    def shows(self, points: Array) -> Mask:
        """Return which points (q, d) belong to it."""
        values = points[:, self.column]
        return np.asarray((values >= self.low) & (values <= self.high))


def _facets(domain: Domain, columns: MapColumns) -> list[_Facet]:
    """Return the facets of the third column; one of all candidates if none share a place."""
    drawn = (columns.x, columns.y, *domain.categorical)
    others = [k for k in range(len(domain.columns)) if k not in drawn]
    places = np.unique(domain.points[:, [columns.x, columns.y]], axis=0)
    if not others or len(domain) < _SHARED * len(places):
        return [_Facet()]
    third = others[0]
    values = domain.points[:, third]
    name = column_label(domain.columns[third])
    shown = domain.numbers(domain.points)[:, third]  # as users see them
    texts = dict(zip(values.tolist(), map(format_number, shown.tolist()), strict=True))
    distinct = np.unique(values)
    if len(distinct) <= _MAX_FACETS:
        return [_Facet(f"{name} {texts[at]}", third, at, at) for at in distinct.tolist()]
    parts = [part.tolist() for part in np.array_split(distinct, _MAX_FACETS)]
    return [
        _Facet(f"{name} {' to '.join(texts[at] for at in ends)}", third, part[0], part[-1])
        for part in parts
        for ends in [part[:1] if len(part) == 1 else (part[0], part[-1])]
    ]


# -- route, axes, legend
# --------------------------------------------------------------------------------------------------


def _draw_routes(ax: Any, data: PlotData, columns: MapColumns, facet: _Facet) -> None:
    """Draw measurements, routes with their starts, suggestions and the recommended point."""
    pick = [columns.x, columns.y]
    halo = [style.import_matplotlib("patheffects").withStroke(linewidth=2.6, foreground="white")]
    routes = {
        vehicle: np.empty((0, len(data.domain.columns))) for vehicle in _starts(data)
    } | data.routes
    for number, (vehicle, route) in enumerate(routes.items()):
        colour = _route_colour(number, vehicle)
        path = route[:, pick]
        start = start_of(data, vehicle, columns)
        if data.travels and not (vehicle is None and len(routes) > 1):
            if start is not None:
                path = np.vstack([start, path])
            ax.plot(*path.T, color=colour, lw=1.1, zorder=3, path_effects=halo)
        if start is not None:
            ax.plot(*start, ls="", marker="s", ms=7, mfc="white", mec=colour, mew=1.6, zorder=5)
        here = route[facet.shows(route)]
        ax.scatter(
            *here[:, pick].T, s=13, color=colour, edgecolors="white", linewidths=0.6, zorder=4
        )
    for point in map(data.coordinates, data.pending):
        if facet.shows(point[None, :])[0]:
            ax.plot(*point[pick], ls="", **diamond())
    if data.shows_best:
        ax.plot(*data.best_point[pick], ls="", **star())


def _route_colour(number: int, vehicle: str | None) -> str:
    return style.INK if vehicle is None else COLOURS[(number + 1) % len(COLOURS)]


def _starts(data: PlotData) -> dict[str | None, Any]:
    """Return the start of every vehicle, and None for measurements of nobody."""
    return {None: None} | {each.name: each.start for each in data.study.vehicle_statuses}


def start_of(data: PlotData, vehicle: str | None, columns: MapColumns) -> Array | None:
    """Return where a vehicle starts, over the columns of the map; None if that is not known."""
    start = _starts(data)[vehicle]
    names = [data.domain.columns[k] for k in (columns.x, columns.y)]
    if start is None or isinstance(start, str) or not all(name in start for name in names):
        return None
    parameters = [data.domain.parameters[k] for k in (columns.x, columns.y)]
    pairs = zip(names, parameters, strict=True)
    return np.array([parameter.encode(start[name], name) for name, parameter in pairs])


def _draw_coastlines(ax: Any, coastlines: Sequence[Array]) -> None:
    """Draw lines behind the candidates, without changing the limits of the map."""
    limits = (ax.get_xlim(), ax.get_ylim())
    for line in coastlines:
        ax.plot(*line.T, color=style.SOFT, lw=0.9, zorder=0.5)
    ax.set(xlim=limits[0], ylim=limits[1])


def _set_axes(ax: Any, data: PlotData, columns: MapColumns) -> None:
    for letter, k in (("x", columns.x), ("y", columns.y)):
        ticks = column_ticks(data.domain, k)
        if ticks is not None:
            getattr(ax, f"set_{letter}ticks")([at for at, _ in ticks], [text for _, text in ticks])
        elif style.use_log_axis(data.domain.points[:, k]):
            ax.set(**{f"{letter}scale": "log"})
        ax.set(**{f"{letter}label": column_label(data.domain.columns[k])})
    ax.label_outer()
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if columns.is_degrees:
        ax.set_aspect(_aspect(data, columns), adjustable="box")


def _aspect(data: PlotData, columns: MapColumns) -> float:
    """Return the length of a degree of latitude in degrees of longitude."""
    middle = math.radians(float(np.mean(data.domain.bounds[columns.y])))
    return 1.0 / max(math.cos(middle), 0.05)


def _is_depth(domain: Domain, k: int) -> bool:
    """Return whether a column has depths, which increase downwards."""
    found = geographic_columns(domain)
    is_named = found is not None and found.depth == domain.columns[k]
    return is_named and bool(domain.bounds[k][0] >= 0)


def set_map_axes(ax: Any, data: PlotData, columns: MapColumns) -> None:
    """Give axes over degrees their aspect, and a scale bar below all that is drawn."""
    ax.set_aspect(_aspect(data, columns), adjustable="box")
    low, high = ax.get_ylim()
    ax.set_ylim(low - _BAR_ROOM * (high - low), high)
    _draw_scale_bar(ax, data, columns)


def _draw_scale_bar(ax: Any, data: PlotData, columns: MapColumns) -> None:
    """Draw a bar of a round number of kilometres in the lower left corner."""
    low, high = data.domain.bounds[columns.x]
    per_degree = _KILOMETRES_PER_DEGREE / _aspect(data, columns)
    longest = _BAR_SHARE * float(high - low) * per_degree
    if longest <= 0:
        return
    size = 10.0 ** math.floor(math.log10(longest))
    length = max(factor * size for factor in (1.0, 2.0, 5.0) if factor * size <= longest)
    text = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    offsets = style.import_matplotlib("offsetbox")
    box = offsets.AuxTransformBox(ax.transData)
    line = style.import_matplotlib("lines").Line2D
    box.add_artist(line([0, length / per_degree], [0, 0], color=style.SOFT, lw=2.4))
    label = offsets.TextArea(text, textprops={"fontsize": 8, "color": style.SOFT})
    packed = offsets.VPacker(children=[box, label], align="center", pad=0, sep=2)
    anchored = offsets.AnchoredOffsetbox
    ax.add_artist(anchored("lower left", pad=0.3, borderpad=0.4, child=packed, frameon=False))


def _handles(data: PlotData, columns: MapColumns) -> list[Any]:
    line = style.import_matplotlib("lines").Line2D
    handles = list(data.legend_handles()) if data.has_model and data.view.region_map != "sd" else []
    routes = dict.fromkeys(_starts(data), ()) | data.routes
    for number, (vehicle, route) in enumerate(routes.items()):
        if len(route) == 0:
            continue
        colour = _route_colour(number, vehicle)
        joined = "-" if data.travels and not (vehicle is None and len(routes) > 1) else ""
        label = "measured" if vehicle is None else f"measured by {vehicle}"
        mark = {"marker": "o", "ms": 4, "color": colour, "mec": "white", "mew": 0.5}
        handles.append(line([], [], ls=joined, lw=1.1, label=label, **mark))
    if any(start_of(data, vehicle, columns) is not None for vehicle in _starts(data)):
        handles.append(line([], [], ls="", label="start", **START_MARK))
    if data.pending:
        handles.append(line([], [], ls="", **{**diamond(), "ms": 6}, label="suggested"))
    if data.shows_best:
        handles.append(line([], [], ls="", **{**star(), "ms": 9}, label="recommended"))
    return handles
