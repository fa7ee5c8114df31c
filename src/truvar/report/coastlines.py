"""Coastlines of a map, from a GeoJSON file of the user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError


def read_coastlines(path: str | Path) -> list[Array]:
    """Read lines, and the borders of polygons.

    Args:
        path: A GeoJSON file in degrees.

    Returns:
        Longitudes and latitudes of each line. (q, 2)

    Raises:
        InvalidArgumentError: If the file cannot be read, or has neither lines nor polygons.
    """
    try:
        shape = json.loads(Path(path).read_text(encoding="utf-8"))
        lines = [np.asarray(line, dtype=float)[:, :2] for line in _lines(shape)]
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be read ({error.strerror}); correct the path"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise InvalidArgumentError(
            f"{path} is not GeoJSON ({error!r}); save the coastlines again as GeoJSON"
        ) from None
    if not lines:
        raise InvalidArgumentError(
            f"{path} has neither lines nor polygons; give the coastlines as GeoJSON"
        )
    return lines


def _lines(shape: Any) -> list[Any]:
    """Return the lines of a GeoJSON object, each a list of positions."""
    kind = shape["type"]
    if kind == "FeatureCollection":
        return [line for feature in shape["features"] for line in _lines(feature)]
    if kind == "GeometryCollection":
        return [line for part in shape["geometries"] for line in _lines(part)]
    if kind == "Feature":
        return [] if shape["geometry"] is None else _lines(shape["geometry"])
    if kind == "LineString":
        return [shape["coordinates"]]
    if kind in ("MultiLineString", "Polygon"):
        return list(shape["coordinates"])
    if kind == "MultiPolygon":
        return [ring for polygon in shape["coordinates"] for ring in polygon]
    return []
