"""`truvar plot`: figures of a study as PNG, SVG or PDF."""

from __future__ import annotations

import argparse
from pathlib import Path

from truvar.cli._common import Command, add_path
from truvar.cli._store import open_study, study_arguments
from truvar.exceptions import InvalidArgumentError, OutputError

# Written out, since `truvar.plot` is imported when something is drawn.
_KINDS = (
    "overview",
    "map",
    "slices",
    "contours",
    "convergence",
    "importance",
    "model_check",
    "route",
)
_THEMES = ("light", "dark")
_FORMATS = (".png", ".svg", ".pdf")


def _plot_arguments(sub: argparse.ArgumentParser) -> None:
    study_arguments(sub)
    sub.add_argument("--kind", choices=_KINDS, default="map", help="which figure (default: map)")
    sub.add_argument(
        "--columns",
        metavar="A,B",
        help="columns to draw over, with commas between; of a map two (default: longitude and "
        "latitude)",
    )
    add_path(
        sub,
        "--coastlines",
        metavar="FILE",
        help="GeoJSON with lines or polygons, drawn on a map over longitude and latitude",
    )
    sub.add_argument("--theme", choices=_THEMES, default="light", help="default: light")
    add_path(
        sub,
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help=f"the file: {', '.join(_FORMATS)} (default: KIND.png)",
    )


def _plot(arguments: argparse.Namespace) -> int:
    """Draw a figure into a file."""
    path = arguments.out or Path(f"{arguments.kind}.png")
    if path.suffix.lower() not in _FORMATS:
        raise OutputError(
            f"figures are written to files that end in {', '.join(_FORMATS)}, got {str(path)!r}; "
            "give one of them"
        )
    columns = None if arguments.columns is None else arguments.columns.split(",")
    options = {"columns": columns, "theme": arguments.theme}
    if arguments.coastlines is not None:
        if arguments.kind != "map":
            raise InvalidArgumentError(
                f"--coastlines is for maps, got --kind {arguments.kind}; leave out one of them"
            )
        options["coastlines"] = arguments.coastlines
    figure = open_study(arguments).plot(kind=arguments.kind, **options)
    try:
        figure.savefig(path)
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror}); give another path"
        ) from None
    print(f"{arguments.kind}: {path}")
    return 0


PLOT = Command(
    "plot",
    "draw a map, slices, the convergence or another figure as PNG, SVG or PDF",
    "truvar plot lake.db -o map.pdf\ntruvar plot lake.db --kind convergence",
    _plot_arguments,
    _plot,
)
