"""Which columns of a domain say where on the Earth a point lies.

Columns are recognised by their names, such as `lon` and `latitude_deg`, or by the coordinate system
of the GeoDataFrame that a domain was made of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from truvar._typing import Array
from truvar.domain.geo import point_coordinates
from truvar.exceptions import InvalidDomainError, import_optional

if TYPE_CHECKING:
    import pandas as pd

    from truvar.domain.domain import Domain

_LONGITUDE = frozenset({"lon", "long", "lng", "longitude"})
_LATITUDE = frozenset({"lat", "latitude"})
_DEPTH = frozenset({"depth"})
_WORDS = re.compile(r"[A-Za-z]+")
_DEGREES = "EPSG:4326"  # longitude and latitude as GPS has them


@dataclass(frozen=True)
class GeographicColumns:
    """Columns with which points are found on a map.

    Attributes:
        longitude: Column of the longitudes, or of the eastings of a projection.
        latitude: Column of the latitudes, or of the northings.
        depth: Column of the depths below the surface; None if there is none.
        crs: Coordinate system of a projection, as WKT; None: degrees.
    """

    longitude: str
    latitude: str
    depth: str | None = None
    crs: str | None = None

    def degrees(self, frame: pd.DataFrame) -> Array:
        """Return longitude, from -180 to 180, and latitude of every row of a table: (q, 2).

        Raises:
            MissingDependencyError: If the columns are of a projection and GeoPandas is missing.
        """
        east = frame[self.longitude].to_numpy(float)
        north = frame[self.latitude].to_numpy(float)
        if self.crs is not None:
            geopandas = import_optional("geopandas", "a projection", "geo")
            points = geopandas.GeoSeries(geopandas.points_from_xy(east, north), crs=self.crs)
            points = points.to_crs(_DEGREES)
            east = points.x.to_numpy()
            north = points.y.to_numpy()
        wrapped = np.where(east > 180.0, east - 360.0, east)
        return np.column_stack([wrapped, north])


def geographic_columns(domain: Domain) -> GeographicColumns | None:
    """Return the columns with which the points of a domain are found on a map, or None."""
    depth = _the_one(domain.columns, _DEPTH)
    known = point_coordinates(domain.frame)
    if known is not None and set(known.columns) <= set(domain.columns):
        return GeographicColumns(*known.columns, depth, None if known.is_degrees else known.crs)
    found = recognise_degrees(domain.columns)
    if found is None or not _are_degrees(domain, *found):
        return None
    return GeographicColumns(*found, depth)


def require_geographic_columns(domain: Domain, purpose: str) -> GeographicColumns:
    """Return the columns with which points are found on a map.

    Args:
        domain: The domain.
        purpose: What they are needed for; opens the message.

    Raises:
        InvalidDomainError: If there are none.
    """
    found = geographic_columns(domain)
    if found is None:
        raise InvalidDomainError(
            f"{purpose} needs columns of longitude and latitude in degrees, got "
            f"{', '.join(domain.columns)}; name them lon and lat, or make the domain from a "
            "GeoDataFrame, which knows its coordinate system"
        )
    return found


def recognise_degrees(columns: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns whose names say that they are longitude and latitude, or None."""
    longitude = _the_one(columns, _LONGITUDE)
    latitude = _the_one(columns, _LATITUDE)
    return None if longitude is None or latitude is None else (longitude, latitude)


def _the_one(columns: Sequence[str], words: Set[str]) -> str | None:
    """Return the column whose name has one of the words, if there is exactly one."""
    found = [name for name in columns if words & {word.lower() for word in _WORDS.findall(name)}]
    return found[0] if len(found) == 1 else None


def _are_degrees(domain: Domain, longitude: str, latitude: str) -> bool:
    """Return whether two columns are numbers in the range of longitudes and latitudes."""
    positions = [domain.columns.index(name) for name in (longitude, latitude)]
    if set(positions) & set(domain.categorical):
        return False
    east, north = domain.numbers(domain.points)[:, positions].T
    return bool(np.all((east >= -180) & (east <= 360)) and np.all(np.abs(north) <= 90))
