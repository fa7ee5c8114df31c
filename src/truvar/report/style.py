"""Colours and axis scales of all figures, and the import of matplotlib."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from truvar._typing import Array
from truvar.domain.scales import is_geometric
from truvar.exceptions import InvalidArgumentError, import_optional
from truvar.messages import unknown_name

_MIN_LOG_RATIO = (
    50.0  # quotient of largest and smallest value from which an axis may be logarithmic
)

VALUES = "viridis"  # colour map of the posterior mean; perceptually uniform
ORDER = "Greys"  # colour map of the measurements; the first is light, the last dark
INK = "#222222"  # lines and outlines
LINE = "#1F4E79"  # lines of a mean
THRESHOLD = "#B2182B"  # lines at a threshold
SOFT = "#777777"  # marks and texts of minor importance
THEMES = ("light", "dark")
DARK_GROUND = "#1E2428"  # background of a dark figure
_DARK_PANEL = "#14181B"  # background of its axes
_DARK_INK = "#E6EBEE"  # its texts and lines
_DARK_SOFT = "#8A979F"  # its axes
# Colours of lines and marks that are too dark for a dark background, and what replaces them there.
_DARK_COLOURS = {
    LINE: "#7DB8E8",
    THRESHOLD: "#FF8A7A",
    SOFT: "#A7B2B9",
    "#888888": "#A7B2B9",
    "#44779A": "#6FA3C8",
}
_DARKEST = 0.2  # largest share of red, green or blue of a colour that counts as black
_LETTER_WIDTH = 0.075  # inches, of one letter of a title
_SMALL_LETTER_WIDTH = 0.062  # inches, of one letter of a legend
_LEGEND_MARK_WIDTH = 0.6  # inches, of the mark and the space beside it
_MIN_LETTERS = 30  # of a line of a title
PENDING = "#CC79A7"  # suggestions that wait for a value
# Orange and blue differ under every common colour blindness; undecided points are pale grey.
LEVEL_SET = {"above": "#E66100", "undecided": "#DEDEDE", "below": "#5D9BC9"}
# If an optimum is sought, the points that can still be it have a colour and the others are grey.
OPTIMUM = {"above": "#D9D9D9", "undecided": "#E69F00", "below": "#D9D9D9"}
PROBABILITY = (
    "#FBE6B8",
    "#E69F00",
    "#8A3B00",
)  # colours of the probability of being the optimum, from low to high


def band_colours(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each band, from blue for the lowest over pale yellow to orange, and of undecided points."""
    ends = [(93, 155, 201), (255, 240, 190), (230, 97, 0)]  # red, green and blue
    colours = {"undecided": LEVEL_SET["undecided"]}
    for k, name in enumerate(names):
        position = 2.0 * k / max(len(names) - 1, 1)
        first = min(int(position), 1)
        share = position - first
        mixed = [
            round((1 - share) * a + share * b)
            for a, b in zip(ends[first], ends[first + 1], strict=True)
        ]
        colours[name] = "#" + "".join(f"{part:02X}" for part in mixed)
    return colours


def use_log_axis(values: Array) -> bool:
    """Return whether values spread over decades, so that a logarithmic axis shows them better."""
    return is_geometric(values, min_ratio=_MIN_LOG_RATIO)


@contextmanager
def literal_text() -> Iterator[None]:
    """Draw text literally, dollar signs included, and make equal figures give equal SVG files, inside the context."""
    settings = {"text.parse_math": False, "svg.hashsalt": "truvar"}
    with import_optional("matplotlib", "drawing", "plot").rc_context(settings):
        yield


def import_matplotlib(module: str) -> Any:
    """Import a module of matplotlib.

    Args:
        module: Its name below `matplotlib`, such as "figure".

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    return import_optional(f"matplotlib.{module}", "drawing", "plot")


def new_figure(width: float, height: float, dpi: float | None = None) -> Any:
    """Return an empty Figure of so many inches that is independent of pyplot: no display, no global state."""
    figure = import_matplotlib("figure").Figure(
        figsize=(width, height), dpi=dpi, layout="constrained"
    )
    import_matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    figure._repr_png_ = partial(
        _figure_png, figure
    )  # IPython shows it, with or without %matplotlib
    return figure


def _figure_png(figure: Any) -> bytes:
    """Return a figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=figure.get_dpi())
    return file.getvalue()


def wrapped(text: str, figure: Any, share: float = 0.98) -> str:
    """Return a title of ten points with line breaks such that it fits into a share of the width of a figure."""
    letters = max(int(share * figure.get_figwidth() / _LETTER_WIDTH), _MIN_LETTERS)
    return "\n".join(
        line for part in text.splitlines() for line in textwrap.wrap(part, letters) or [""]
    )


def apply_theme(figure: Any, theme: str) -> Any:
    """Recolour a figure for a light or a dark background and return it.

    Args:
        figure: The figure, drawn for a light background.
        theme: "light" or "dark".

    Raises:
        InvalidArgumentError: If there is no such theme.
    """
    if theme not in THEMES:
        raise InvalidArgumentError(unknown_name("theme", theme, THEMES))
    if theme == "light":
        return figure
    figure.set_facecolor(DARK_GROUND)
    for text in figure.findobj(import_matplotlib("text").Text):
        colour = _lighter(text.get_color())
        if (
            colour is not None and not text.get_path_effects()
        ):  # text with an outline is readable anywhere
            text.set_color(colour)
    for ax in figure.axes:
        ax.set_facecolor(_DARK_PANEL)
        ax.tick_params(which="both", color=_DARK_SOFT, labelcolor=_DARK_INK)
        for spine in ax.spines.values():
            spine.set_edgecolor(_DARK_SOFT)
        if not _is_field(ax):
            _recolour(ax)
    for legend in figure.findobj(import_matplotlib("legend").Legend):
        _recolour(legend)
    return figure


def _is_field(ax: Any) -> bool:
    """Return whether axes are filled with colours, on which dark marks are readable in both themes."""
    contour_set = import_matplotlib("contour").ContourSet
    mesh = import_matplotlib("collections").QuadMesh
    return (
        any(isinstance(each, (contour_set, mesh)) for each in ax.collections)
        or ax.get_label() == "<colorbar>"
    )


def _recolour(parent: Any) -> None:
    """Give a lighter colour to the dark lines and marks below an artist."""
    for each in parent.findobj(import_matplotlib("lines").Line2D):
        for part in ("color", "markerfacecolor", "markeredgecolor"):
            colour = _lighter(getattr(each, f"get_{part}")())
            if colour is not None:
                getattr(each, f"set_{part}")(colour)
    for each in parent.findobj(import_matplotlib("collections").Collection):
        own = ("facecolor", "edgecolor") if each.get_array() is None else ("edgecolor",)
        for part in own:
            colours = getattr(each, f"get_{part}")()
            changed = {_lighter(colour) for colour in colours}
            if len(changed) == 1 and None not in changed:
                alpha = colours[:, 3].copy()
                getattr(each, f"set_{part}")(changed.pop())
                if part == "facecolor":
                    each.set_alpha(alpha if len(alpha) > 1 else float(alpha[0]))


def _lighter(colour: Any) -> str | None:
    """Return the colour that replaces a dark one on a dark background; None if it stays."""
    rgb = _rgb(colour)
    if rgb is None:
        return None
    if max(rgb) < _DARKEST:
        return _DARK_INK
    return _DARK_COLOURS.get(str(import_matplotlib("colors").to_hex(rgb)).upper())


def _rgb(colour: Any) -> tuple[float, ...] | None:
    """Return red, green and blue of a colour; None if it is no colour."""
    if isinstance(colour, str) and colour in ("none", "auto", "None"):
        return None
    return tuple(import_matplotlib("colors").to_rgb(colour))


def legend_below(figure: Any, handles: Sequence[Any]) -> None:
    """Place a legend below all axes of a figure, in as many columns as fit."""
    width = figure.bbox.width / figure.dpi  # inches; a part of a figure has no other measure
    columns = len(handles)
    while columns > 1 and sum(_entry_widths(handles, columns)) > width:
        columns -= 1
    figure.legend(
        handles=handles, loc="outside lower left", frameon=False, fontsize=8, ncols=columns
    )


def _entry_widths(handles: Sequence[Any], columns: int) -> list[float]:
    """Return the width of each column of a legend in inches; matplotlib fills one column after another."""
    widths = [
        _SMALL_LETTER_WIDTH * len(handle.get_label()) + _LEGEND_MARK_WIDTH for handle in handles
    ]
    rows = -(-len(widths) // columns)
    return [max(widths[k : k + rows]) for k in range(0, len(widths), rows)]
