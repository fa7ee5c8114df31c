"""A NetCDF file, an area of it and a harbour become a study, and its answer a file again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from truvar.cli import main

xarray = pytest.importorskip("xarray", reason="needs truvar[xarray]")

PROBLEM = """
name = "bay"
repeats = false
[domain]
table = "bay.nc"
constraints = [{{area = "{area}"}}]
[goal]
level_set_below = 6
[cost]
base = 10
great_circle = {{longitude = "lon", latitude = "lat", rate = 2}}
start = "{area}"
"""
CORNERS = [[17.9, 53.9], [18.5, 53.9], [18.5, 55.1], [17.9, 55.1]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bathymetry of 8 x 6 points, three of them land, and two files of an area."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    depth = np.arange(48.0).reshape(6, 8)
    depth[0, :3] = np.nan
    grid = xarray.Dataset(
        {"depth": (("lat", "lon"), depth, {"standard_name": "sea_floor_depth", "units": "m"})},
        coords={"lon": np.linspace(18, 19, 8), "lat": np.linspace(54, 55, 6)},
        attrs={"Conventions": "CF-1.11"},
    )
    grid["lon"].attrs = {"standard_name": "longitude", "units": "degrees_east"}
    grid["lat"].attrs = {"standard_name": "latitude", "units": "degrees_north"}
    grid.to_netcdf("bay.nc")
    polygon = {"type": "Polygon", "coordinates": [[*CORNERS, CORNERS[0]]]}
    home = {"type": "Point", "coordinates": [18.1, 54.1]}
    shapes = {"type": "GeometryCollection", "geometries": [polygon, home]}
    Path("area.geojson").write_text(json.dumps(shapes))
    fence = {"inclusion": True, "polygon": [[y, x] for x, y in CORNERS], "version": 1}
    plan = {
        "fileType": "Plan",
        "geoFence": {"polygons": [fence], "circles": [], "version": 2},
        "mission": {"plannedHomePosition": [54.1, 18.1, 0], "items": []},
    }
    Path("area.plan").write_text(json.dumps(plan))
    return tmp_path


@pytest.mark.parametrize("area", ["area.geojson", "area.plan"])
def test_a_problem_file_names_a_grid_an_area_and_a_harbour(folder: Path, area: str, capsys) -> None:
    pytest.importorskip("geopandas", reason="needs truvar[geo]")
    import geopandas

    Path("bay.toml").write_text(PROBLEM.format(area=area))
    assert main(["new", "bay.toml"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "21 points of a table: lat from 54 to 55, lon from 18 to 18.4286; inside a polygon" in said
    )
    assert f"from {area}" in said
    assert main(["ask", "bay.db", "-n", "4", "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)["suggestions"]
    points = [(each["point"]["lon"], each["point"]["lat"]) for each in asked]
    assert len(set(points)) == 4
    assert all(lon < 18.5 for lon, _ in points)
    told = [word for each in asked for word in (str(each["id"]), str(each["point"]["lat"] - 48))]
    assert main(["tell", "bay.db", *told]) == 0
    for name in ("answer.nc", "answer.gpkg"):
        assert main(["export", "--points", name]) == 0
    assert capsys.readouterr().out.endswith("21 points: answer.gpkg\n")
    with xarray.open_dataset("answer.nc") as answer:
        assert dict(answer.sizes) == {"lat": 6, "lon": 8}
        assert int(answer["mean"].notnull().sum()) == 21
        assert answer["lon"].attrs["standard_name"] == "longitude"
        assert answer["depth"].attrs == {"standard_name": "sea_floor_depth", "units": "m"}
        assert answer.attrs["Conventions"] == "CF-1.11"
    layer = geopandas.read_file("answer.gpkg")
    assert len(layer) == 21
    assert layer.crs == "EPSG:4326"
    np.testing.assert_allclose(layer.geometry.y, layer["lat"])
    assert {"mean", "sd", "probability", "class"} <= set(layer.columns)


def test_init_takes_the_dimensions_of_a_file_as_coordinates(folder: Path, capsys) -> None:
    assert main(["init", "bay.nc", "--goal", "below", "--threshold", "6", "--defaults"]) == 0
    assert 'columns = ["lat", "lon"]' in Path("bay.toml").read_text()
    assert main(["new", "bay.toml"]) == 0
    assert "45 points of a table" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('columns = ["depth"]', "are its dimensions lat, lon, got depth; leave out columns"),
        ('label = "depth"', "bay.nc is a NetCDF file; leave them out"),
        ('log = ["depth"]', "bay.nc is a NetCDF file; leave them out"),
    ],
)
def test_keys_of_tables_are_refused(folder: Path, line: str, message: str, capsys) -> None:
    problem = PROBLEM.format(area="area.plan").replace("[goal]", f"{line}\n[goal]")
    Path("bay.toml").write_text(problem)
    assert main(["new", "bay.toml"]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_waypoints_are_written_to_the_file_after_the_option(folder: Path, capsys) -> None:
    Path("bay.toml").write_text(PROBLEM.format(area="area.plan"))
    assert main(["new", "bay.toml"]) == 0
    assert main(["ask", "-n", "2"]) == 0
    assert main(["export", "--waypoints", "next.gpx"]) == 0
    assert capsys.readouterr().out.endswith("2 pending suggestions: next.gpx\n")
    assert Path("next.gpx").read_text().count("<wpt ") == 2
    # A suffix of neither a store nor a format is an error of one line, and nothing is written.
    assert main(["export", "--points", "next.shp"]) == 1
    assert not Path("next.shp").exists()
