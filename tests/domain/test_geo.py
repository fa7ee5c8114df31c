"""Tables of GeoPandas and grids of xarray become domains, and results become tables and grids
again."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.exceptions import InvalidDomainError, MissingDependencyError

geopandas = pytest.importorskip("geopandas")
xarray = pytest.importorskip("xarray")

RNG = np.random.default_rng(0)
METRES = "EPSG:32631"


def stations(crs: str | None = METRES, z: bool = False, **columns) -> "geopandas.GeoDataFrame":
    coordinates = RNG.random((3, 12)) * 1000
    points = geopandas.points_from_xy(*coordinates[: 3 if z else 2], crs=crs)
    return geopandas.GeoDataFrame({"variance": np.full(12, 0.01), **columns}, geometry=points)


def grid(name: str | None = "depth") -> "xarray.DataArray":
    coords = {"x": [0.0, 1, 2, 3], "y": [0, 5, 10]}
    return xarray.DataArray(
        np.arange(12.0).reshape(4, 3), coords=coords, dims=("x", "y"), name=name
    )


def result_on(domain: tv.Domain, steps: int = 6, **how) -> tv.Result:
    study = tv.Study(domain, tv.LevelSet(0.0), kernel=RBF(2.0), mean=0.0, **{"noise": 0.01, **how})
    return study.run(lambda point: float(np.sin(sum(point.values()))), steps=steps)


# -- tables of results
# -------------------------------------------------------------------------------------------------


def test_the_table_of_a_result_has_coordinates_mean_sd_bounds_and_class():
    result = result_on(tv.Domain.grid(x=[0, 1, 2], y=[0, 1]))
    frame = result.to_frame()
    assert list(frame.columns) == ["x", "y", "mean", "sd", "lower", "upper", "probability", "class"]
    np.testing.assert_array_equal(frame["mean"], result.mean)
    assert set(frame["class"]) <= {"above", "below", "undecided"}
    np.testing.assert_array_equal(frame["class"] == "above", result.classes.above)


# -- GeoPandas
# --------------------------------------------------------------------------------------------------


def test_a_geodataframe_of_points_becomes_a_domain_with_its_other_columns():
    frame = stations(z=False, variance=np.linspace(0.01, 0.02, 12))
    domain = tv.Domain.table(frame)
    assert domain.columns == ("x", "y")
    np.testing.assert_array_equal(
        domain.points, np.column_stack([frame.geometry.x, frame.geometry.y])
    )
    suggestion = tv.Study(domain, tv.Maximize(), noise="variance", kernel=RBF(2.0)).ask()
    assert suggestion.noise == pytest.approx(frame["variance"].iloc[suggestion.index])


def test_z_is_a_coordinate_and_other_columns_can_be_chosen_instead():
    frame = stations(z=True, age=np.arange(12.0))
    assert tv.Domain.table(frame).columns == ("x", "y", "z")
    assert tv.Domain.table(frame, columns=["x", "age"]).columns == ("x", "age")


def test_degrees_are_called_lon_and_lat_with_a_warning():
    frame = stations().to_crs("EPSG:4326")
    with pytest.warns(
        UserWarning, match=r"in degrees \(WGS 84\).*to_crs\(frame.estimate_utm_crs\(\)\)"
    ) as caught:
        domain = tv.Domain.table(frame)
    assert domain.columns == ("lon", "lat")
    assert caught[0].filename == __file__


def test_metres_and_unknown_units_give_no_warning():
    with no_warnings():
        assert (
            tv.Domain.table(stations()).columns
            == tv.Domain.table(stations(crs=None)).columns
            == ("x", "y")
        )


@pytest.mark.parametrize("crs", [METRES, None])
def test_a_result_becomes_a_geodataframe_with_the_original_points_and_crs(crs):
    frame = stations(crs)
    found = result_on(tv.Domain.table(frame), noise="variance").to_geopandas()
    assert isinstance(found, geopandas.GeoDataFrame)
    assert found.crs == frame.crs
    assert found.geometry.geom_equals(frame.geometry, align=False).all()
    assert {"mean", "lower", "class"} <= set(found.columns)


def test_a_geometry_that_is_not_a_point_is_refused_with_its_row():
    frame = stations()
    frame.loc[3, "geometry"] = frame.geometry.iloc[3].buffer(1.0)
    with pytest.raises(InvalidDomainError, match=r"got a Polygon in row 3; use frame.centroid"):
        tv.Domain.table(frame)
    frame.loc[3, "geometry"] = None
    with pytest.raises(
        InvalidDomainError, match=r"got nothing in row 3; leave such rows out: frame\[frame.geom"
    ):
        tv.Domain.table(frame)


def test_a_column_with_the_name_of_a_coordinate_is_refused():
    with pytest.raises(InvalidDomainError, match="already has a column 'x'; rename or drop it"):
        tv.Domain.table(stations(x=1.0))


def test_a_result_on_another_domain_cannot_become_a_geodataframe():
    with pytest.raises(InvalidDomainError, match="needs a domain made from a GeoDataFrame"):
        result_on(tv.Domain.grid(x=[0, 1])).to_geopandas()


# -- xarray
# --------------------------------------------------------------------------------------------------


def test_a_data_array_becomes_a_grid_with_its_values_as_a_column():
    domain = tv.Domain.from_xarray(grid())
    assert domain.columns == ("x", "y")
    assert domain.shape == (4, 3)
    np.testing.assert_array_equal(domain.column("depth"), grid().to_numpy().ravel())
    np.testing.assert_array_equal(
        tv.Domain.from_xarray(grid(None)).column("value"), domain.column("depth")
    )


def test_the_variables_of_a_dataset_are_broadcast_to_its_grid():
    dataset = xarray.Dataset({"cost": grid(), "variance": grid().isel(x=0, drop=True)})
    domain = tv.Domain.from_xarray(dataset.assign_coords(extra=("x", list("abcd"))))
    assert domain.shape == (4, 3)
    np.testing.assert_array_equal(domain.column("variance"), np.tile([0, 1, 2], 4))
    assert tv.Domain.from_xarray(xarray.Dataset(coords=grid().coords)).shape == (4, 3)


def test_a_result_on_a_grid_becomes_a_dataset_over_its_axes():
    result = result_on(tv.Domain.from_xarray(grid()))
    dataset = result.to_xarray()
    assert dict(dataset.sizes) == {"x": 4, "y": 3}
    np.testing.assert_array_equal(dataset["mean"].to_numpy().ravel(), result.mean)
    classes = result.classes
    np.testing.assert_array_equal(
        dataset["class"].to_numpy().ravel(), classes.above * 1 - classes.below * 1
    )
    assert dataset["class"].attrs["flag_meanings"] == "below undecided above"
    assert dataset["class"].dtype == np.int8
    assert dataset.attrs["certificate"] == str(result.certificate)
    assert dataset.sel(x=2, y=10)["upper"] == result.statements.upper[8]


def test_points_without_a_value_are_left_out_and_are_missing_in_the_dataset():
    sea = grid()
    sea[0, 0] = sea[2, 1] = np.nan
    domain = tv.Domain.from_xarray(sea)
    assert len(domain) == 10
    dataset = result_on(domain).to_xarray()
    assert dict(dataset.sizes) == {"x": 4, "y": 3}
    np.testing.assert_array_equal(np.isnan(dataset["mean"]), np.isnan(sea))


def test_a_result_on_a_table_becomes_a_dataset_over_its_points():
    result = result_on(tv.Domain.table(pd.DataFrame({"x": [0.0, 1, 3], "mean": [1.0, 0, 1]})))
    dataset = result.to_xarray()
    assert dict(dataset.sizes) == {"point": 3}
    np.testing.assert_array_equal(dataset["mean"], [1, 0, 1])
    np.testing.assert_array_equal(dataset["mean_"], result.mean)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (grid().drop_vars("y"), "'y' has none; add them with data.assign_coords"),
        (
            grid().assign_coords(x=pd.date_range("2024", periods=4)),
            "must be numbers, got datetime64",
        ),
        (grid().assign_coords(x=list("abcd")), "must be numbers, got"),
        (np.zeros((2, 2)), "needs an xarray DataArray or Dataset, got ndarray"),
    ],
)
def test_data_without_numeric_coordinates_is_refused(data, message):
    with pytest.raises(InvalidDomainError, match=message):
        tv.Domain.from_xarray(data)


def test_a_netcdf_file_becomes_a_domain_and_has_its_cf_names_again(tmp_path):
    sea = grid()
    sea[0, 0] = np.nan
    sea.attrs = {"standard_name": "sea_floor_depth_below_sea_surface", "units": "m"}
    sea["x"].attrs = {"standard_name": "longitude", "units": "degrees_east", "axis": "X"}
    sea.to_dataset().assign_attrs(Conventions="CF-1.11").to_netcdf(tmp_path / "sea.nc")
    domain = tv.Domain.from_xarray(tmp_path / "sea.nc")
    assert domain.columns == ("x", "y")
    assert len(domain) == 11
    tv.save_points(result_on(domain), tmp_path / "answer.nc")
    with xarray.open_dataset(tmp_path / "answer.nc") as answer:
        assert answer.attrs["Conventions"] == "CF-1.11"
        assert answer["x"].attrs == sea["x"].attrs
        assert answer["depth"].attrs == sea.attrs
        np.testing.assert_array_equal(np.isnan(answer["class"]), np.isnan(sea))
    with xarray.open_dataset(tmp_path / "answer.nc", mask_and_scale=False) as stored:
        assert stored["class"].dtype == stored["class"].attrs["flag_values"].dtype == np.int8
        assert stored["class"].attrs["_FillValue"] == stored["class"][0, 0] == -128


@pytest.mark.parametrize("with_land", [False, True])
def test_the_points_of_a_grid_can_be_constrained(with_land):
    sea = grid()
    if with_land:
        sea[3, 0] = np.nan
    domain = tv.Domain.from_xarray(sea, constraints="x >= 2")
    whole = tv.Domain.from_xarray(sea)
    inside = whole.points[:, 0] >= 2
    np.testing.assert_array_equal(domain.points, whole.points[inside])
    np.testing.assert_array_equal(domain.column("depth"), whole.column("depth")[inside])
    dataset = result_on(domain).to_xarray()
    assert dict(dataset.sizes) == {"x": 4, "y": 3}
    assert int(dataset["mean"].notnull().sum()) == len(domain) == inside.sum()


def test_a_file_that_is_no_netcdf_is_refused_in_one_line(tmp_path):
    hdf5 = tmp_path / "four.nc"
    hdf5.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    text = tmp_path / "text.nc"
    text.write_text("lon,lat\n1,2\n")
    for path in (hdf5, text):
        with pytest.raises(InvalidDomainError, match=r"xarray cannot read .*h5netcdf") as refused:
            tv.Domain.from_xarray(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(InvalidDomainError, match=r"there is no file .*none\.nc"):
        tv.Domain.from_xarray(tmp_path / "none.nc")
    with pytest.raises(InvalidDomainError, match=r"is a NetCDF file.*Domain\.from_xarray"):
        tv.Domain.table(text)


# -- missing libraries
# -------------------------------------------------------------------------------------------------


def test_the_message_for_a_missing_library_has_the_command_to_install_it(monkeypatch):
    on_grid = result_on(tv.Domain.from_xarray(grid()))
    on_points = result_on(tv.Domain.table(stations()))
    for library in ("xarray", "geopandas"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        MissingDependencyError, match=r'a Dataset needs xarray.*pip install "truvar\[xarray\]"'
    ):
        on_grid.to_xarray()
    with pytest.raises(
        MissingDependencyError, match=r'a GeoDataFrame needs geopandas.*pip install "truvar\[geo\]"'
    ):
        on_points.to_geopandas()
