"""Areas that were drawn elsewhere: polygons and a home position, from GeoJSON or QGroundControl."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truvar.domain.constraints import PolygonConstraint
from truvar.exceptions import InvalidDomainError

_Ring = list[tuple[float, float]]
_Found = tuple[list[_Ring], tuple[float, float] | None]


@dataclass(frozen=True)
class Area:
    """Polygons and home position of a file of a map.

    Attributes:
        polygon: The area inside its polygons, as a constraint of a domain; None if it has none.
        home: Coordinates of its home position, by column, as a start of a cost; None if it has
            none.
    """

    polygon: PolygonConstraint | None
    home: dict[str, float] | None


def read_area(path: str | Path, columns: Sequence[str] = ("lon", "lat")) -> Area:
    """Read an area of a map.

    Of a GeoJSON file all polygons count, and its one point, if it has one, is the home position. Of
    a plan of QGroundControl the polygons of the fence that must not be left count, and the planned
    home position.

    Args:
        path: A file that ends in .geojson, .json or .plan, in degrees.
        columns: Columns of longitude and latitude of the domain that it is for.

    Raises:
        InvalidDomainError: If the file cannot be read, or has neither a polygon nor a home.

    Example:
        ```python
        area = tv.read_area("lake.geojson")
        domain = tv.Domain.table("stations.csv", constraints=area.polygon)
        cost = tv.Cost(10, travel=tv.GreatCircle("lon", "lat", 2.0), start=area.home)
        ```
    """
    path = Path(path)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InvalidDomainError(
            f"an area is read from a file that ends in {', '.join(_READERS)}, got {str(path)!r}; "
            "give one of them"
        )
    if len(columns) != 2:
        raise InvalidDomainError(
            "an area needs two columns, of longitude and latitude, got "
            f"{', '.join(columns) or 'none'}; give columns=('lon', 'lat')"
        )
    try:
        rings, home = read(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidDomainError(
            f"{path} cannot be read ({error.strerror}); correct the path"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise InvalidDomainError(
            f"{path} is not a {path.suffix.lower()} file of this kind ({error!r}); save it again "
            "from the program that made it"
        ) from None
    if not rings and home is None:
        raise InvalidDomainError(
            f"{path} has no polygon and no home position; draw one of them and save it again"
        )
    polygon = PolygonConstraint(rings, (columns[0], columns[1])) if rings else None
    return Area(polygon, None if home is None else dict(zip(columns, home, strict=True)))


def is_area_file(text: str) -> bool:
    """Return whether a text is the path of a file that `read_area` reads."""
    return Path(text).suffix.lower() in _READERS


def _read_geojson(data: Any) -> _Found:
    rings: list[_Ring] = []
    points: list[tuple[float, float]] = []
    for geometry in _geometries(data):
        kind = geometry["type"]
        if kind == "Polygon":
            rings += [_ring(ring) for ring in geometry["coordinates"]]
        elif kind == "MultiPolygon":
            rings += [_ring(ring) for polygon in geometry["coordinates"] for ring in polygon]
        elif kind == "Point":
            points.append(_position(geometry["coordinates"]))
    return rings, points[0] if len(points) == 1 else None


def _geometries(data: Any) -> Iterator[Any]:
    """Yield the geometries of a GeoJSON object, however deep they lie."""
    if data is None:
        return
    kind = data["type"]
    if kind == "FeatureCollection":
        for feature in data["features"]:
            yield from _geometries(feature["geometry"])
    elif kind == "Feature":
        yield from _geometries(data["geometry"])
    elif kind == "GeometryCollection":
        for geometry in data["geometries"]:
            yield from _geometries(geometry)
    else:
        yield data


def _read_plan(data: Any) -> _Found:
    fence = data.get("geoFence", {}).get("polygons", [])
    rings = [
        [(float(longitude), float(latitude)) for latitude, longitude in each["polygon"]]
        for each in fence
        if each.get("inclusion", True)
    ]
    home = data["mission"].get("plannedHomePosition")
    return rings, None if home is None else (float(home[1]), float(home[0]))


def _ring(positions: Any) -> _Ring:
    return [_position(position) for position in positions]


def _position(position: Any) -> tuple[float, float]:
    return float(position[0]), float(position[1])


_READERS: dict[str, Callable[[Any], _Found]] = {
    ".geojson": _read_geojson,
    ".json": _read_geojson,
    ".plan": _read_plan,
}
