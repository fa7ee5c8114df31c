"""Tables and grids of other libraries: GeoPandas points and xarray grids in, GeoDataFrames and Datasets out.

Neither library is imported to take in what it made; only to make something of its kind.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.exceptions import TruvarError, import_optional

if TYPE_CHECKING:
    import pandas as pd

CRS, GRID = "truvar_crs", "truvar_grid"  # what a table remembers of where it came from, in its `attrs`
CLASSES = ("below", "undecided", "above")


# -- GeoPandas -------------------------------------------------------------------------------------------------------


def is_geographic_table(frame: Any) -> bool:
    """Whether this is a GeoDataFrame."""
    if not _made_by(frame, "geopandas"):
        return False
    import pandas as pd

    return isinstance(frame, pd.DataFrame)


def from_geopandas(frame: Any) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A GeoDataFrame of points as a plain table, its geometry as columns, and the names of these: x and y, or lon and
    lat if they are degrees; and z if every point has one."""
    import pandas as pd

    geometry = frame.geometry
    wrong = ~(geometry.geom_type == "Point") | geometry.is_empty
    if wrong.any():
        row = int(np.argmax(wrong.to_numpy()))
        kind = "nothing" if geometry.iloc[row] is None else f"a {geometry.iloc[row].geom_type}"
        kind = "an empty point" if kind == "a Point" else kind
        raise TruvarError(
            f"every geometry must be a point, but row {row} is {kind}; take frame.centroid or sample points from it"
        )
    names = ("x", "y")
    if geometry.crs is not None and geometry.crs.is_geographic:
        names = ("lon", "lat")
        warnings.warn(
            f"the points are in degrees ({geometry.crs.name}), where a step east is shorter than a step north; with "
            "length-scales or travel costs in metres give frame.to_crs(frame.estimate_utm_crs())",
            stacklevel=3,
        )
    columns = {names[0]: geometry.x.to_numpy(), names[1]: geometry.y.to_numpy()}
    if len(geometry) and geometry.has_z.all():
        columns["z"] = geometry.z.to_numpy()
    plain = pd.DataFrame(frame.drop(columns=geometry.name))
    for name, values in columns.items():
        if name in plain.columns:
            raise TruvarError(
                f"the geometry becomes the columns {', '.join(columns)}, but the table has a column {name!r} already; "
                "rename or drop it"
            )
        plain[name] = values
    plain.attrs[CRS] = None if geometry.crs is None else geometry.crs.to_wkt()
    return plain, tuple(columns)


def to_geopandas(frame: pd.DataFrame, source: pd.DataFrame | None) -> Any:
    """A table with the coordinates of a GeoDataFrame as a GeoDataFrame again, in its coordinate system."""
    geopandas = import_optional("geopandas", "a GeoDataFrame", "geo")
    if source is None or CRS not in source.attrs:
        raise TruvarError(
            "a GeoDataFrame needs a domain that was made of one, Domain.table(geodataframe), but this one was not; "
            "use to_frame() and geopandas.points_from_xy"
        )
    x, y = ("lon", "lat") if "lon" in source.columns else ("x", "y")
    z = source["z"] if "z" in source.columns else None
    points = geopandas.points_from_xy(source[x], source[y], z, crs=source.attrs[CRS])
    return geopandas.GeoDataFrame(frame, geometry=points)


# -- xarray ----------------------------------------------------------------------------------------------------------


def from_xarray(data: Any) -> tuple[dict[str, Array], pd.DataFrame]:
    """The axes of an xarray DataArray or Dataset, and its values as a table, the first axis slowest."""
    import pandas as pd

    if not _made_by(data, "xarray") or not hasattr(data, "dims"):
        raise TruvarError(f"an xarray DataArray or Dataset must come, got {type(data).__name__}; give one")
    if hasattr(data, "data_vars"):
        dataset = data
        dims = list(max((v.dims for v in data.data_vars.values()), key=len, default=tuple(data.dims)))
        dims += [name for name in data.dims if name not in dims]
    else:
        dims = list(data.dims)
        dataset = data.to_dataset(name="value" if data.name is None else str(data.name))
    axes = {str(name): _axis(data, name) for name in dims}
    dataset = dataset.drop_vars([name for name in dataset.coords if name not in dims])
    frame = dataset.to_dataframe(dim_order=dims).reset_index() if len(dataset.data_vars) else pd.DataFrame()
    frame.attrs[GRID] = True
    return axes, frame


def to_xarray(
    frame: pd.DataFrame, columns: Sequence[str], axes: Sequence[Array] | None, attrs: Mapping[str, Any]
) -> Any:
    """A table over a domain as a Dataset: over the axes of a grid, or over the dimension "point"."""
    xarray = import_optional("xarray", "a Dataset", "xarray")
    values = [name for name in frame.columns if name not in columns]
    if axes is not None:
        shape = tuple(len(axis) for axis in axes)
        coords: dict[str, Any] = dict(zip(columns, axes, strict=True))
        dims: tuple[str, ...] = tuple(columns)
        made: dict[str, Any] = {name: (dims, frame[name].to_numpy().reshape(shape)) for name in values}
    elif frame.attrs.get(GRID):
        return xarray.Dataset.from_dataframe(frame.set_index(list(columns))).assign_attrs(attrs)
    else:
        coords = {name: ("point", frame[name].to_numpy()) for name in columns}
        made = {name: ("point", frame[name].to_numpy()) for name in values}
    return xarray.Dataset(made, coords=coords, attrs=dict(attrs))


def _axis(data: Any, name: Any) -> Array:
    if name not in data.coords:
        raise TruvarError(
            f"every dimension needs coordinates, but {name!r} has none; give them with "
            f"data.assign_coords({name}=np.arange({data.sizes[name]}))"
        )
    values = data.coords[name].to_numpy()
    if values.dtype.kind not in "iuf":
        advice = f"(data.{name} - data.{name}[0]) / np.timedelta64(1, 'D')" if values.dtype.kind == "M" else "numbers"
        raise TruvarError(
            f"the coordinates of {name!r} must be numbers, but they are {values.dtype}; assign them as {advice}"
        )
    return np.asarray(values, dtype=float)


def _made_by(value: Any, library: str) -> bool:
    return any(kind.__module__.partition(".")[0] == library for kind in type(value).__mro__)
