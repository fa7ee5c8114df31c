"""All points of a result as a file: a table, a layer of a map, or a grid.

A format is a function of `_WRITERS`, by the suffix of its files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.domain.geo import point_coordinates
from truvar.domain.geographic import geographic_columns, require_geographic_columns
from truvar.exceptions import InvalidArgumentError, OutputError, import_optional
from truvar.tabular.csv_cells import quoted_frame

if TYPE_CHECKING:
    import pandas as pd

    from truvar.study.result import Result

_DIGITS = 7  # of degrees: a centimetre
# Attributes of longitude and latitude by the CF conventions.
_DEGREES = (
    {"standard_name": "longitude", "units": "degrees_east"},
    {"standard_name": "latitude", "units": "degrees_north"},
)


def save_points(result: Result, path: str | Path) -> Path:
    """Write every point with its mean, sd, probability and class to a file.

    Args:
        result: The result of a study.
        path: A file that ends in .csv, .geojson, .gpkg (GeoPackage; needs GeoPandas) or .nc
            (NetCDF; needs xarray).

    Returns:
        The path.

    Raises:
        InvalidArgumentError: If the suffix is none of these.
        InvalidDomainError: If the columns do not say where on the Earth a point lies (.geojson,
            .gpkg).
        MissingDependencyError: If a library is missing.
        OutputError: If the file cannot be written.

    Example:
        ```python
        tv.save_points(study.result(), "oxygen.geojson")
        ```
    """
    path = Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InvalidArgumentError(
            f"points are written to files that end in {', '.join(_WRITERS)}, got {str(path)!r}; "
            "give one of them"
        )
    if not path.parent.is_dir():
        raise OutputError(
            f"{path} cannot be written (there is no folder {path.parent}); give another path"
        )
    try:
        writer(result, path)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path} cannot be written ({reason}); give another path") from None
    return path


def points_csv(result: Result) -> str:
    """Return every point as a row of CSV text, with the label first if there is one."""
    return str(quoted_frame(labelled_points(result)).to_csv(index=False))


def points_geojson(result: Result) -> str:
    """Return every point as GeoJSON (RFC 7946), with longitude and latitude in degrees."""
    columns = require_geographic_columns(result.domain, "a .geojson file")
    frame = labelled_points(result)
    positions = columns.degrees(result.domain.to_frame()).round(_DIGITS).tolist()
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": position},
            "properties": {name: _json_value(value) for name, value in row.items()},
        }
        for position, row in zip(positions, frame.to_dict("records"), strict=True)
    ]
    collection = {"type": "FeatureCollection", "features": features}
    return json.dumps(collection, ensure_ascii=False) + "\n"


def labelled_points(result: Result) -> pd.DataFrame:
    """Return the table of a result; the labels of the user's rows are a column of it."""
    frame = result.to_frame()
    name = "label" if frame.index.name is None else str(frame.index.name)
    if result.domain.label(0) is None or name in frame.columns:
        return frame.reset_index(drop=True)
    return frame.rename_axis(index=name).reset_index()


def _json_value(value: Any) -> Any:
    """Return a cell as JSON has it: numbers, texts and truth values, None for what is missing."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def _write_geopackage(result: Result, path: Path) -> None:
    geopandas = import_optional("geopandas", "a .gpkg file", "geo")
    frame = labelled_points(result)
    known = point_coordinates(result.domain.frame)
    if known is not None:  # in the coordinate system of the user's own
        coordinates = [result.domain.to_frame()[name] for name in known.columns]
        points = geopandas.points_from_xy(*coordinates, crs=known.crs)
    else:
        columns = require_geographic_columns(result.domain, "a .gpkg file")
        points = geopandas.points_from_xy(
            *columns.degrees(result.domain.to_frame()).T, crs="EPSG:4326"
        )
    geopandas.GeoDataFrame(frame, geometry=points).to_file(path, driver="GPKG", layer="points")


def _write_netcdf(result: Result, path: Path) -> None:
    """Write the points with the labels of their rows, and what CF says of longitude and latitude."""
    dataset = result.to_xarray()
    frame = labelled_points(result)
    name = str(frame.columns[0])
    if "point" in dataset.dims and name not in dataset.variables:
        dataset = dataset.assign_coords({name: ("point", [str(text) for text in frame[name]])})
    columns = geographic_columns(result.domain)
    if columns is not None and columns.crs is None:
        for column, attributes in zip((columns.longitude, columns.latitude), _DEGREES, strict=True):
            known = dataset[column].attrs
            dataset[column].attrs = {**attributes, **known}
    dataset.to_netcdf(path)


_WRITERS: dict[str, Callable[[Result, Path], object]] = {
    ".csv": lambda result, path: path.write_text(points_csv(result), encoding="utf-8"),
    ".geojson": lambda result, path: path.write_text(points_geojson(result), encoding="utf-8"),
    ".gpkg": _write_geopackage,
    ".nc": _write_netcdf,
}
POINT_SUFFIXES = tuple(_WRITERS)
