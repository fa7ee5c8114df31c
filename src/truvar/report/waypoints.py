"""Suggestions as files that a chart plotter, a map or an autopilot opens.

A format is a function of `WRITERS`, by the suffix of its files. All but CSV need to know where on
the Earth a point lies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from truvar.domain.geographic import GeographicColumns, require_geographic_columns
from truvar.exceptions import InvalidArgumentError, OutputError
from truvar.messages import format_coordinate, format_coordinates
from truvar.tabular.csv_cells import measurements_csv
from truvar.tabular.labels import label_text

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy
    from truvar.study.suggestion import Suggestion

_DIGITS = 7  # of degrees: a centimetre
# What XML 1.0 cannot contain, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GPX = "http://www.topografix.com/GPX/1/1"
_KML = "http://www.opengis.net/kml/2.2"
# Numbers of MAVLink: the command "go to a waypoint", and heights above the home position.
_NAVIGATE = 16
_RELATIVE_HEIGHT = 3
_ARDUPILOT = 3
_SURFACE_BOAT = 11
_CRUISE_SPEED = 2.0  # metres per second, of the plan; the vehicle's own setting comes first


@dataclass(frozen=True)
class _Waypoint:
    """A place to go to, and what to do there.

    Attributes:
        name: Label of the place, or number of the suggestion.
        longitude: Degrees, from -180 to 180.
        latitude: Degrees.
        depth: Depth below the surface; None if the study has no such column.
        note: What to measure, in words.
        vehicle: Vehicle that goes there; None if the study has none.
        id: Number by which the value is told.
    """

    name: str
    longitude: float
    latitude: float
    depth: float | None
    note: str
    vehicle: str | None
    id: int


def save_waypoints(
    study: BaseStudy, path: str | Path, suggestions: Sequence[Suggestion] | None = None
) -> Path:
    """Write suggestions to a file, in the format of its suffix.

    Args:
        study: The study.
        path: A file that ends in .gpx, .geojson, .kml, .plan (QGroundControl) or .csv.
        suggestions: The suggestions in the order of the route; default: all that are pending.

    Returns:
        The path.

    Raises:
        InvalidArgumentError: If the suffix is none of these.
        InvalidDomainError: If the columns do not say where on the Earth a point lies (not for CSV).
        OutputError: If the file cannot be written.

    Example:
        ```python
        batch = study.ask(5)
        tv.save_waypoints(study, "next.gpx", batch)
        ```
    """
    path = Path(path)
    chosen = list(study.pending) if suggestions is None else list(suggestions)
    text = waypoint_text(study, chosen, _waypoint_format(path))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written ({error.strerror}); give another path"
        ) from None
    return path


def _waypoint_format(path: str | Path) -> str:
    """Return the format of a file by its suffix.

    Raises:
        InvalidArgumentError: If there is none of that suffix.
    """
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in WRITERS:
        known = ", ".join(f".{name}" for name in WRITERS)
        raise InvalidArgumentError(
            f"waypoints are written to files that end in {known}, got {str(path)!r}; give one of "
            "them"
        )
    return suffix


def waypoint_text(study: BaseStudy, suggestions: Sequence[Suggestion], file_format: str) -> str:
    """Return suggestions as the text of a file, in a format of `WRITERS`."""
    return WRITERS[file_format](study, suggestions)


def check_waypoints(study: BaseStudy, file_format: str) -> None:
    """Check that waypoints of a study can be written in a format, before any is asked for.

    Raises:
        InvalidDomainError: If its columns do not say where on the Earth a point lies.
    """
    if file_format != "csv":
        _columns(study, file_format)


def _columns(study: BaseStudy, file_format: str) -> GeographicColumns:
    return require_geographic_columns(study.domain, f"a .{file_format} file")


def _waypoints(
    study: BaseStudy, suggestions: Sequence[Suggestion], file_format: str
) -> list[_Waypoint]:
    import pandas as pd

    columns = _columns(study, file_format)
    if not suggestions:
        return []
    frame = pd.DataFrame([suggestion.point for suggestion in suggestions])
    degrees = columns.degrees(frame).round(_DIGITS).tolist()
    return [
        _Waypoint(
            _name(suggestion),
            longitude,
            latitude,
            None if columns.depth is None else float(suggestion.point[columns.depth]),
            _note(suggestion, columns),
            suggestion.vehicle,
            suggestion.id,
        )
        for suggestion, (longitude, latitude) in zip(suggestions, degrees, strict=True)
    ]


def _name(suggestion: Suggestion) -> str:
    return str(suggestion.id) if suggestion.label is None else label_text(suggestion.label)


def _note(suggestion: Suggestion, columns: GeographicColumns) -> str:
    """Return what to measure: task, level, the other coordinates, and the number of the suggestion."""
    on_map = (columns.longitude, columns.latitude)
    others = {name: value for name, value in suggestion.point.items() if name not in on_map}
    level = None if suggestion.level is None else f"level {suggestion.level}"
    parts = (suggestion.task, level, format_coordinates(others), f"suggestion {suggestion.id}")
    return ", ".join(part for part in parts if part)


def _by_vehicle(points: Sequence[_Waypoint]) -> list[tuple[str, list[_Waypoint]]]:
    """Return the route of every vehicle, by its name; one without a name if there are none."""
    names = list(dict.fromkeys(point.vehicle or "" for point in points))
    ordered = sorted(points, key=lambda point: names.index(point.vehicle or ""))
    return [(name, list(own)) for name, own in groupby(ordered, lambda p: p.vehicle or "")]


# -- formats
# --------------------------------------------------------------------------------------------------


def _csv(_: BaseStudy, suggestions: Sequence[Suggestion]) -> str:
    """A row per suggestion: its number, label, coordinates, precision and cost."""
    import pandas as pd

    rows = [
        {
            "id": each.id,
            "label": None if each.label is None else label_text(each.label),
            **each.point,
            "level": each.level,
            "task": each.task,
            "vehicle": each.vehicle,
            "cost": each.cost,
        }
        for each in suggestions
    ]
    frame = pd.DataFrame(rows)
    empty = [name for name in ("label", "level", "task", "vehicle") if name in frame]
    return measurements_csv(
        frame.drop(columns=[name for name in empty if frame[name].isna().all()])
    )


def _gpx(study: BaseStudy, suggestions: Sequence[Suggestion]) -> str:
    """GPX 1.1: a waypoint for each, and a route for each vehicle."""
    points = _waypoints(study, suggestions, "gpx")
    root = ElementTree.Element("gpx", {"version": "1.1", "creator": "truvar", "xmlns": _GPX})
    for point in points:
        _gpx_point(root, "wpt", point)
    for vehicle, own in _by_vehicle(points):
        route = ElementTree.SubElement(root, "rte")
        _child(route, "name", vehicle or study.name or "truvar")
        for point in own:
            _gpx_point(route, "rtept", point)
    return _xml(root)


def _gpx_point(parent: ElementTree.Element, tag: str, point: _Waypoint) -> None:
    position = {"lat": _degrees(point.latitude), "lon": _degrees(point.longitude)}
    element = ElementTree.SubElement(parent, tag, position)
    if point.depth is not None:
        _child(element, "ele", format_coordinate(-point.depth))
    _child(element, "name", point.name)
    _child(element, "desc", point.note)


def _kml(study: BaseStudy, suggestions: Sequence[Suggestion]) -> str:
    """KML 2.2: a placemark for each, and a line for each vehicle."""
    points = _waypoints(study, suggestions, "kml")
    root = ElementTree.Element("kml", {"xmlns": _KML})
    document = ElementTree.SubElement(root, "Document")
    _child(document, "name", study.name or "truvar")
    for point in points:
        mark = ElementTree.SubElement(document, "Placemark")
        _child(mark, "name", point.name)
        _child(mark, "description", point.note)
        place = ElementTree.SubElement(mark, "Point")
        _child(place, "coordinates", _kml_position(point))
    for vehicle, own in _by_vehicle(points):
        if len(own) < 2:
            continue
        mark = ElementTree.SubElement(document, "Placemark")
        _child(mark, "name", f"route {vehicle}".strip())
        line = ElementTree.SubElement(mark, "LineString")
        _child(line, "tessellate", "1")
        _child(line, "coordinates", " ".join(map(_kml_position, own)))
    return _xml(root)


def _kml_position(point: _Waypoint) -> str:
    return f"{_degrees(point.longitude)},{_degrees(point.latitude)}"


def _geojson(study: BaseStudy, suggestions: Sequence[Suggestion]) -> str:
    """GeoJSON (RFC 7946): a point for each, and a line for each vehicle."""
    points = _waypoints(study, suggestions, "geojson")
    features = []
    for point in points:
        properties = {
            "name": point.name,
            "note": point.note,
            "suggestion": point.id,
            "depth": point.depth,
            "vehicle": point.vehicle,
        }
        known = {name: value for name, value in properties.items() if value is not None}
        features.append(_feature("Point", [point.longitude, point.latitude], known))
    for vehicle, own in _by_vehicle(points):
        if len(own) > 1:
            line = [[point.longitude, point.latitude] for point in own]
            features.append(_feature("LineString", line, {"name": f"route {vehicle}".strip()}))
    return _json({"type": "FeatureCollection", "features": features})


def _feature(kind: str, coordinates: Sequence[Any], properties: dict[str, Any]) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def _plan(study: BaseStudy, suggestions: Sequence[Suggestion]) -> str:
    """A mission of QGroundControl, for one vehicle that stays at the surface."""
    points = _waypoints(study, suggestions, "plan")
    routes = _by_vehicle(points)
    if len(routes) != 1:
        what = "none" if not routes else ", ".join(name or "none" for name, _ in routes)
        raise InvalidArgumentError(
            f"a .plan file has the waypoints of one vehicle, got those of {what}; ask for one "
            "vehicle at a time"
        )
    items = [
        {
            "type": "SimpleItem",
            "autoContinue": True,
            "command": _NAVIGATE,
            "doJumpId": number,
            "frame": _RELATIVE_HEIGHT,
            "params": [0, 0, 0, None, point.latitude, point.longitude, 0],
            "AltitudeMode": 1,
            "Altitude": 0,
            "AMSLAltAboveTerrain": None,
        }
        for number, point in enumerate(points, start=1)
    ]
    return _json(
        {
            "fileType": "Plan",
            "groundStation": "truvar",
            "version": 1,
            "mission": {
                "version": 2,
                "firmwareType": _ARDUPILOT,
                "vehicleType": _SURFACE_BOAT,
                "cruiseSpeed": _CRUISE_SPEED,
                "hoverSpeed": _CRUISE_SPEED,
                "globalPlanAltitudeMode": 1,
                "plannedHomePosition": [*_home(study, points[0]), 0],
                "items": items,
            },
            "geoFence": {"version": 2, "circles": [], "polygons": []},
            "rallyPoints": {"version": 2, "points": []},
        }
    )


def _home(study: BaseStudy, first: _Waypoint) -> tuple[float, float]:
    """Return latitude and longitude of the start, of the first waypoint if there is none."""
    import pandas as pd

    columns = _columns(study, "plan")
    starts = {each.name: each.start for each in study.vehicle_statuses}
    start = starts.get(first.vehicle)
    names = (columns.longitude, columns.latitude)
    if not isinstance(start, dict) or not all(name in start for name in names):
        return first.latitude, first.longitude
    longitude, latitude = columns.degrees(pd.DataFrame([start])).round(_DIGITS).tolist()[0]
    return latitude, longitude


WRITERS: dict[str, Callable[[BaseStudy, Sequence[Suggestion]], str]] = {
    "gpx": _gpx,
    "geojson": _geojson,
    "kml": _kml,
    "plan": _plan,
    "csv": _csv,
}
"""Format by suffix: function from the study and its suggestions to the text of a file."""

MEDIA_TYPES = {
    "gpx": "application/gpx+xml",
    "geojson": "application/geo+json",
    "kml": "application/vnd.google-earth.kml+xml",
    "plan": "application/json",
    "csv": "text/csv; charset=utf-8",
}
"""Media type of every format."""


def _child(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = _NOT_XML.sub("?", text)


def _degrees(value: float) -> str:
    return f"{value:.{_DIGITS}f}"


def _xml(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
