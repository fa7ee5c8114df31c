"""Conversion from and to the tables of GeoPandas and the grids of xarray.

The libraries are imported only to create their objects, not to read them. The source of a domain
is kept as JSON values in the `attrs` of its table (`ORIGINS`), so that a stored study has it too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.exceptions import InvalidDomainError, import_optional

if TYPE_CHECKING:
    import pandas as pd

# key in `attrs` of a table that was a GeoDataFrame: its coordinate reference system, as WKT
_CRS = "truvar_crs"
# Key in `attrs` of such a table: name of the geometry and its columns.
_GEOMETRY = "truvar_geometry"
# key in `attrs` of a table that was an xarray grid: its axes, coordinates and attributes
_GRID = "truvar_grid"
ORIGINS = (_CRS, _GEOMETRY, _GRID)
_DEGREES = ("lon", "lat")  # columns of points that are in degrees
CLASSES = ("below", "undecided", "above")


# -- GeoPandas
# --------------------------------------------------------------------------------------------------


def is_from_xarray(table: pd.DataFrame | None) -> bool:
    """Return whether the table of a domain was an xarray grid."""
    return table is not None and _GRID in table.attrs


def is_geographic_table(frame: Any) -> bool:
    """Return whether this is a GeoDataFrame."""
    if not _is_from(frame, "geopandas"):
        return False
    import pandas as pd

    return isinstance(frame, pd.DataFrame)


def from_geopandas(frame: Any) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Convert a GeoDataFrame of points to a plain table, with the geometry as columns.

    Returns:
        The table, and the names of the columns of the geometry: x and y, or lon and lat if they are
        in degrees, and z if every point has one.

    Raises:
        InvalidDomainError: If a geometry is not a point, or the table already has a column of that
            name.
    """
    import pandas as pd

    geometry = frame.geometry
    wrong = ~(geometry.geom_type == "Point") | geometry.is_empty
    if wrong.any():
        row = int(np.argmax(wrong.to_numpy()))
        found = geometry.iloc[row]
        remedy = "use frame.centroid or sample points from it"
        if found is None or found.is_empty:
            remedy = "leave such rows out: frame[frame.geometry.notna() & ~frame.geometry.is_empty]"
        raise InvalidDomainError(
            f"every geometry must be a point, got {_describe(found)} in row {row}; {remedy}"
        )
    names = ("x", "y")
    if geometry.crs is not None and geometry.crs.is_geographic:
        names = _DEGREES
        warnings.warn(
            f"the points are in degrees ({geometry.crs.name}), where a step east is shorter than a "
            "step north; with "
            "length-scales or travel costs in metres use frame.to_crs(frame.estimate_utm_crs())",
            stacklevel=4,
        )
    columns = {names[0]: geometry.x.to_numpy(), names[1]: geometry.y.to_numpy()}
    if len(geometry) and geometry.has_z.all():
        columns["z"] = geometry.z.to_numpy()
    plain = pd.DataFrame(frame.drop(columns=geometry.name))
    for name, values in columns.items():
        if name in plain.columns:
            raise InvalidDomainError(
                f"the geometry becomes the columns {', '.join(columns)}, but the table already has "
                f"a column {name!r}; "
                "rename or drop it"
            )
        plain[name] = values
    plain.attrs[_CRS] = None if geometry.crs is None else geometry.crs.to_wkt()
    plain.attrs[_GEOMETRY] = {"name": str(geometry.name), "columns": list(columns)}
    return plain, tuple(columns)


def to_geopandas(frame: pd.DataFrame, source: pd.DataFrame | None) -> Any:
    """Return a table as a GeoDataFrame.

    Args:
        frame: The table, with a row per point of the domain.
        source: The table of the domain, which `from_geopandas` made; it has the points and the
            coordinate system.

    Raises:
        InvalidDomainError: If the domain was not made from a GeoDataFrame.
        MissingDependencyError: If GeoPandas is not installed.
    """
    geopandas = import_optional("geopandas", "a GeoDataFrame", "geo")
    if source is None or _CRS not in source.attrs:
        raise InvalidDomainError(
            "to_geopandas needs a domain made from a GeoDataFrame, Domain.table(geodataframe), got "
            "another; use "
            "to_frame() and geopandas.points_from_xy"
        )
    geometry = source.attrs[_GEOMETRY]
    coordinates = [source[name] for name in geometry["columns"]]
    points = geopandas.points_from_xy(*coordinates, crs=source.attrs[_CRS])
    return geopandas.GeoDataFrame(
        {**frame, geometry["name"]: points}, geometry=geometry["name"], index=frame.index
    )


@dataclass(frozen=True)
class _PointCoordinates:
    """Columns of the points of a GeoDataFrame, with their coordinate system.

    Attributes:
        columns: The first two: x and y, or longitude and latitude.
        crs: The coordinate system, as WKT.
        is_degrees: Whether they are longitude and latitude.
    """

    columns: tuple[str, str]
    crs: str
    is_degrees: bool


def point_coordinates(frame: pd.DataFrame | None) -> _PointCoordinates | None:
    """Return the columns of the points in the table of a domain that was made of a GeoDataFrame.

    Returns:
        None if it was not, or if its coordinate system is not known.
    """
    if frame is None or frame.attrs.get(_CRS) is None:
        return None
    east, north, *_ = frame.attrs[_GEOMETRY]["columns"]
    return _PointCoordinates((east, north), frame.attrs[_CRS], (east, north) == _DEGREES)


def _describe(geometry: Any) -> str:
    """Return a geometry that is not a point in words."""
    if geometry is None:
        return "nothing"
    return "an empty point" if geometry.geom_type == "Point" else f"a {geometry.geom_type}"


# -- xarray
# --------------------------------------------------------------------------------------------------


def _open_netcdf(path: str | Path) -> Any:
    """Return the Dataset of a NetCDF file, read into memory.

    Raises:
        InvalidDomainError: If there is no such file, or xarray cannot read it.
        MissingDependencyError: If xarray is not installed.
    """
    xarray = import_optional("xarray", "a NetCDF file", "xarray")
    if not Path(path).is_file():
        raise InvalidDomainError(f"there is no file {path}; check the path")
    try:
        with xarray.open_dataset(path) as dataset:
            return dataset.load()
    except (OSError, ValueError, TypeError):
        raise InvalidDomainError(
            f"xarray cannot read {path} as NetCDF; check the file, and for NetCDF-4 pip install "
            "h5netcdf h5py"
        ) from None


def from_xarray(data: Any) -> tuple[dict[str, Array], pd.DataFrame]:
    """Convert an xarray DataArray or Dataset, or a NetCDF file, to the axes of a grid and a table.

    Returns:
        The values of each axis, and a table of the values with a row per point, the first axis
        slowest.

    Raises:
        InvalidDomainError: If it is neither, or a coordinate is missing or not numeric.
    """
    if isinstance(data, (str, Path)):
        data = _open_netcdf(data)
    if not _is_from(data, "xarray") or not hasattr(data, "dims"):
        raise InvalidDomainError(
            f"from_xarray needs an xarray DataArray or Dataset, got {type(data).__name__}; give "
            "one of them, or the path of a NetCDF file"
        )
    if hasattr(data, "data_vars"):
        dataset = data
        dims = list(
            max((v.dims for v in data.data_vars.values()), key=len, default=tuple(data.dims))
        )
        dims += [name for name in data.dims if name not in dims]
    else:
        dims = list(data.dims)
        dataset = data.to_dataset(name="value" if data.name is None else str(data.name))
    axes = {str(name): _axis(data, name) for name in dims}
    origin = _grid_origin(dataset, dims, getattr(data, "attrs", {}))
    dataset = dataset.drop_vars([name for name in dataset.coords if name not in dims])
    frame = (
        dataset.to_dataframe(dim_order=dims).reset_index()
        if len(dataset.data_vars)
        else _axes_frame(axes)
    )
    frame.attrs = {_GRID: origin}
    return axes, frame


def to_xarray(
    frame: pd.DataFrame,
    columns: Sequence[str],
    axes: Sequence[Array] | None,
    attrs: Mapping[str, Any],
) -> Any:
    """Return a table over a domain as an xarray Dataset.

    Args:
        frame: The table, with a row per point of the domain.
        columns: Names of the coordinates.
        axes: Axes of a grid; None: the Dataset has the dimension "point", or the axes that
            `from_xarray` recorded.
        attrs: Attributes of the Dataset.

    Raises:
        MissingDependencyError: If xarray is not installed.
    """
    xarray = import_optional("xarray", "a Dataset", "xarray")
    names = [name for name in frame.columns if name not in columns]
    origin = frame.attrs.get(_GRID)
    if isinstance(origin, Mapping) and list(columns) == list(origin["axes"]):
        return _dataset_on_grid(xarray, frame, origin, attrs)
    if axes is None:
        coords: dict[str, Any] = {name: ("point", frame[name].to_numpy()) for name in columns}
        variables: dict[str, Any] = {name: ("point", frame[name].to_numpy()) for name in names}
    else:
        coords = dict(zip(columns, axes, strict=True))
        shape = tuple(len(axis) for axis in axes)
        variables = {
            name: (tuple(columns), frame[name].to_numpy().reshape(shape)) for name in names
        }
    return xarray.Dataset(variables, coords=coords, attrs=dict(attrs))


def _grid_origin(dataset: Any, dims: Sequence[Any], attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the axes, further coordinates and attributes of a grid as JSON values."""
    coords = {}
    for name, coordinate in dataset.coords.items():
        values = coordinate.to_numpy()
        stored = values.astype("datetime64[ns]").astype(str) if values.dtype.kind == "M" else values
        coords[str(name)] = {
            "dims": [str(dim) for dim in coordinate.dims],
            "type": str(values.dtype),
            "values": _json_value(stored.tolist()),
            "attrs": _json_value(dict(coordinate.attrs)),
        }
    variables = {
        str(name): _json_value(dict(variable.attrs)) for name, variable in dataset.data_vars.items()
    }
    axes = {str(name): coords[str(name)]["values"] for name in dims}
    return {
        "axes": axes,
        "coords": coords,
        "attrs": _json_value(dict(attrs)),
        "variables": variables,
    }


def _axes_frame(axes: Mapping[str, Array]) -> pd.DataFrame:
    """Return the points of a grid without variables, the first axis slowest."""
    import pandas as pd

    return pd.MultiIndex.from_product(list(axes.values()), names=list(axes)).to_frame(index=False)


def _dataset_on_grid(
    xarray: Any, frame: pd.DataFrame, origin: Mapping[str, Any], attrs: Mapping[str, Any]
) -> Any:
    """Return a table as a Dataset on its original grid; points it lacks are missing values."""
    columns = list(origin["axes"])
    index = {name: np.asarray(values, dtype=float) for name, values in origin["axes"].items()}
    shape = tuple(len(axis) for axis in index.values())
    # The position of a row in the grid, by the position of its coordinate on each axis.
    positions = []
    for name, axis in index.items():
        order = np.argsort(axis)
        positions.append(order[np.searchsorted(axis[order], frame[name].to_numpy(dtype=float))])
    rows = np.ravel_multi_index(positions, shape)
    is_complete = len(frame) == int(np.prod(shape))
    variables = {}
    for name in frame.columns:
        if name in columns:
            continue
        values = frame[name].to_numpy()
        if is_complete:
            full = np.empty(shape, dtype=values.dtype).ravel()
        elif values.dtype.kind in "biuf":
            full = np.full(int(np.prod(shape)), np.nan)
        else:
            full = np.full(int(np.prod(shape)), None, dtype=object)
        full[rows] = values
        variables[str(name)] = (
            columns,
            full.reshape(shape),
            origin["variables"].get(str(name), {}),
        )
    coords = {}
    for name, each in origin["coords"].items():
        coords[name] = (each["dims"], np.asarray(each["values"], dtype=each["type"]), each["attrs"])
    return xarray.Dataset(variables, coords=coords, attrs={**origin["attrs"], **attrs})


def _json_value(value: Any) -> Any:
    """Return an attribute as JSON values: arrays as lists, types unknown to JSON as text."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _json_value(value.tolist())
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def _axis(data: Any, name: Any) -> Array:
    """Return the coordinate of a dimension as floats."""
    if name not in data.coords:
        raise InvalidDomainError(
            f"every dimension needs coordinates, but {name!r} has none; add them with "
            f"data.assign_coords({name}=np.arange({data.sizes[name]}))"
        )
    values = data.coords[name].to_numpy()
    if values.dtype.kind not in "iuf":
        is_time = values.dtype.kind == "M"
        numbers = (
            f"(data.{name} - data.{name}[0]) / np.timedelta64(1, 'D')" if is_time else "numbers"
        )
        raise InvalidDomainError(
            f"the coordinates of {name!r} must be numbers, got {values.dtype}; assign them as "
            f"{numbers}"
        )
    return np.asarray(values, dtype=float)


def _is_from(value: Any, library: str) -> bool:
    """Return whether the class of a value, or a base class of it, comes from a library."""
    return any(cls.__module__.partition(".")[0] == library for cls in type(value).__mro__)
