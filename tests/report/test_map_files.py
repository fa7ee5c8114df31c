"""Waypoints, points and areas as files: other programs read what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.cli import main
from truvar.domain.geographic import geographic_columns
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, OutputError

geopandas = pytest.importorskip("geopandas", reason="needs truvar[geo]")

SQUARE = [[18.0, 54.0], [18.5, 54.0], [18.5, 55.0], [18.0, 55.0], [18.0, 54.0]]


def stations() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "station": [f"KB{number:03d}" for number in range(40)],
            "longitude": 18.0 + rng.random(40),
            "latitude": 54.0 + rng.random(40),
            "depth_m": rng.integers(1, 90, 40).astype(float),
        }
    )


def survey(**options: Any) -> tv.Study:
    domain = tv.Domain.table(
        stations(), columns=["longitude", "latitude", "depth_m"], label="station"
    )
    travel = tv.GreatCircle("longitude", "latitude", 0.1)
    cost = tv.Cost(1.0, travel=travel, start={"longitude": 18.0, "latitude": 54.0})
    return tv.Study(domain, tv.LevelSet(below=4), cost=cost, **options)


@pytest.mark.parametrize(
    ("name", "layer"), [("gpx", "waypoints"), ("geojson", None), ("kml", None)]
)
def test_gdal_reads_the_waypoints(tmp_path: Path, name: str, layer: str | None) -> None:
    study = survey()
    batch = study.ask(4)
    path = tv.save_waypoints(study, tmp_path / f"next.{name}", batch)
    read = geopandas.read_file(path, **({} if layer is None else {"layer": layer}))
    points = read[read.geometry.geom_type == "Point"]
    column = "Name" if "Name" in points else "name"
    assert points[column].tolist() == [suggestion.label for suggestion in batch]
    expected = [(each.point["longitude"], each.point["latitude"]) for each in batch]
    np.testing.assert_allclose([(p.x, p.y) for p in points.geometry], expected, atol=1e-7)


def test_a_gpx_file_has_a_route_in_the_order_of_the_batch(tmp_path: Path) -> None:
    study = survey()
    batch = study.ask(4)
    path = tv.save_waypoints(study, tmp_path / "next.gpx", batch[::-1])
    route = geopandas.read_file(path, layer="route_points")
    assert route["name"].tolist() == [suggestion.label for suggestion in batch[::-1]]


def test_a_plan_has_a_waypoint_per_suggestion(tmp_path: Path) -> None:
    study = survey()
    batch = study.ask(3)
    plan = json.loads(tv.save_waypoints(study, tmp_path / "next.plan").read_text())
    assert plan["fileType"] == "Plan"
    assert [item["params"][4:6] for item in plan["mission"]["items"]] == [
        [round(each.point["latitude"], 7), round(each.point["longitude"], 7)] for each in batch
    ]


def test_every_vehicle_has_a_route_of_its_own(tmp_path: Path) -> None:
    study = survey(vehicles=["north", "south"])
    for vehicle in ("north", "south", "north"):
        study.ask(vehicle=vehicle)
    path = tv.save_waypoints(study, tmp_path / "next.gpx")
    routes = geopandas.read_file(path, layer="route_points")
    assert routes.groupby("route_fid").size().tolist() == [2, 1]
    with pytest.raises(InvalidArgumentError, match="one vehicle, got those of north, south"):
        tv.save_waypoints(study, tmp_path / "next.plan")


def test_labels_cannot_break_the_files(tmp_path: Path) -> None:
    frame = stations().iloc[:6].assign(station=["<b>", "&amp;", 'a"b', "=1+1", "ü\x07", "x"])
    domain = tv.Domain.table(frame, columns=["longitude", "latitude"], label="station")
    study = tv.Study(domain, tv.Maximize())
    batch = study.ask(6)
    read = geopandas.read_file(
        tv.save_waypoints(study, tmp_path / "next.gpx", batch), layer="waypoints"
    )
    assert set(read["name"]) == {"<b>", "&amp;", 'a"b', "=1+1", "ü?", "x"}
    table = pd.read_csv(tv.save_waypoints(study, tmp_path / "next.csv", batch))
    assert "'=1+1" in table["label"].tolist()


def test_a_projection_is_turned_into_degrees(tmp_path: Path) -> None:
    frame = stations()
    points = geopandas.points_from_xy(frame["longitude"], frame["latitude"], crs="EPSG:4326")
    metres = geopandas.GeoDataFrame(frame[["station"]], geometry=points).to_crs("EPSG:32634")
    study = tv.Study(tv.Domain.table(metres, label="station"), tv.Maximize())
    batch = study.ask(3)
    read = geopandas.read_file(
        tv.save_waypoints(study, tmp_path / "next.gpx", batch), layer="waypoints"
    )
    rows = frame.set_index("station").loc[[each.label for each in batch]]
    expected = rows[["longitude", "latitude"]].to_numpy()
    np.testing.assert_allclose([(p.x, p.y) for p in read.geometry], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (("lon", "lat"), ("lon", "lat")),
        (("Longitude_deg", "Latitude_deg", "depth"), ("Longitude_deg", "Latitude_deg")),
        (("x", "y"), None),
        (("lon", "lon_end", "lat"), None),
        (("platform", "lat"), None),
    ],
)
def test_columns_are_recognised_by_their_names(
    columns: tuple[str, ...], found: tuple[str, str] | None
) -> None:
    frame = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in columns})
    frame[columns[0]] += [0.0, 0.5, 0.7]
    geographic = geographic_columns(tv.Domain.table(frame))
    assert (geographic and (geographic.longitude, geographic.latitude)) == found


def test_numbers_that_are_no_degrees_are_no_longitudes() -> None:
    frame = pd.DataFrame({"lon": [500.0, 600.0], "lat": [1.0, 2.0]})
    assert geographic_columns(tv.Domain.table(frame)) is None


def test_longitudes_beyond_180_are_turned(tmp_path: Path) -> None:
    frame = pd.DataFrame({"lon": [190.0, 200.0], "lat": [1.0, 2.0]})
    study = tv.Study(tv.Domain.table(frame), tv.Maximize())
    study.ask(2)
    read = geopandas.read_file(tv.save_waypoints(study, tmp_path / "a.geojson"))
    assert sorted(p.x for p in read.geometry if p.geom_type == "Point") == [-170.0, -160.0]


def test_without_longitude_and_latitude_nothing_is_asked_for(tmp_path: Path) -> None:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 5))
    with pytest.raises(InvalidDomainError, match="needs columns of longitude and latitude"):
        tv.save_waypoints(tv.Study(domain, tv.Maximize()), tmp_path / "next.gpx")
    study = tv.Study(domain, tv.Maximize())
    with pytest.raises(InvalidArgumentError, match=r"end in \.gpx, \.geojson"):
        tv.save_waypoints(study, tmp_path / "next.doc")
    study.ask()
    with pytest.raises(OutputError, match="give another path"):
        tv.save_waypoints(study, tmp_path / "none" / "next.csv")


# -- points
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> tv.Study:
    study = survey()
    for _ in range(12):
        suggestion = study.ask()
        study.tell(suggestion, 4 + np.sin(7 * suggestion.point["longitude"]))
    return study


@pytest.mark.parametrize("name", ["csv", "geojson", "gpkg"])
def test_points_have_the_numbers_of_the_result(
    tmp_path: Path, measured: tv.Study, name: str
) -> None:
    result = measured.result()
    path = tv.save_points(result, tmp_path / f"points.{name}")
    read = pd.read_csv(path) if name == "csv" else geopandas.read_file(path)
    expected = result.to_frame()
    assert read["station"].tolist() == expected.index.tolist()
    assert read["class"].tolist() == expected["class"].tolist()
    np.testing.assert_allclose(read["probability"], expected["probability"])
    if name != "csv":
        np.testing.assert_allclose(read.geometry.x, expected["longitude"], atol=1e-6)


def test_netcdf_of_a_table_has_names_and_degrees(tmp_path: Path, measured: tv.Study) -> None:
    xarray = pytest.importorskip("xarray", reason="needs truvar[xarray]")
    result = measured.result()
    with xarray.open_dataset(tv.save_points(result, tmp_path / "points.nc")) as read:
        assert read["station"].to_numpy().tolist() == result.to_frame().index.tolist()
        assert read["station"].dims == read["mean"].dims
        assert read["longitude"].attrs["units"] == "degrees_east"
        assert read["latitude"].attrs["standard_name"] == "latitude"


def test_a_grid_becomes_netcdf(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="needs truvar[xarray]")
    axes = {"lon": np.linspace(18, 19, 6), "lat": np.linspace(54, 55, 5)}
    depth = xarray.DataArray(np.ones((6, 5)), coords=axes, dims=["lon", "lat"], name="depth")
    depth["lon"].attrs = {"standard_name": "longitude", "units": "degrees_east"}
    study = tv.Study(tv.Domain.from_xarray(depth), tv.LevelSet(0.5))
    for _ in range(10):
        suggestion = study.ask()
        study.tell(suggestion, suggestion.point["lon"] - 18)
    path = tv.save_points(study.result(), tmp_path / "map.nc")
    with xarray.open_dataset(path) as read:
        assert read["lon"].attrs["standard_name"] == "longitude"
        np.testing.assert_allclose(read["mean"].to_numpy().ravel(), study.result().mean)


def test_points_of_another_suffix_are_refused(tmp_path: Path, measured: tv.Study) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\.csv, \.geojson, \.gpkg, \.nc"):
        tv.save_points(measured.result(), tmp_path / "points.shp")
    with pytest.raises(OutputError, match="there is no folder"):
        tv.save_points(measured.result(), tmp_path / "none" / "points.csv")


# -- areas
# --------------------------------------------------------------------------------------------------


def geojson_area(*, home: bool = True) -> dict[str, Any]:
    features: list[dict[str, Any]] = [
        {
            "type": "Feature",
            "properties": {},
            "geometry": {"type": "Polygon", "coordinates": [SQUARE]},
        }
    ]
    if home:
        point = {"type": "Point", "coordinates": [18.1, 54.1]}
        features.append({"type": "Feature", "properties": {}, "geometry": point})
    return {"type": "FeatureCollection", "features": features}


def plan_area() -> dict[str, Any]:
    fence = {"inclusion": True, "polygon": [[y, x] for x, y in SQUARE[:-1]], "version": 1}
    return {
        "fileType": "Plan",
        "geoFence": {"polygons": [fence], "circles": [], "version": 2},
        "mission": {"plannedHomePosition": [54.1, 18.1, 0], "items": []},
    }


@pytest.mark.parametrize(
    ("name", "data"), [("area.geojson", geojson_area()), ("area.plan", plan_area())]
)
def test_an_area_is_a_constraint_and_a_start(
    tmp_path: Path, name: str, data: dict[str, Any]
) -> None:
    (tmp_path / name).write_text(json.dumps(data))
    area = tv.read_area(tmp_path / name, columns=("longitude", "latitude"))
    frame = stations()
    domain = tv.Domain.table(
        frame, columns=["longitude", "latitude"], label="station", constraints=area.polygon
    )
    assert len(domain) == int((frame["longitude"] < 18.5).sum())
    assert area.home == {"longitude": 18.1, "latitude": 54.1}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.geojson", "{", "save it again"),
        ("a.geojson", "[1]", "save it again"),
        ("a.geojson", '{"type": "FeatureCollection", "features": []}', "no polygon and no home"),
        ("a.plan", "{}", "save it again"),
        ("a.shp", "", r"\.geojson, \.json, \.plan"),
    ],
)
def test_a_file_that_is_no_area_is_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidDomainError, match=message):
        tv.read_area(tmp_path / name)


def test_a_missing_area_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDomainError, match="correct the path"):
        tv.read_area(tmp_path / "none.geojson")


# -- the start
# --------------------------------------------------------------------------------------------------


def test_a_start_needs_only_the_columns_that_travel_uses() -> None:
    study = survey()
    assert study.vehicle_statuses[0].position == {"longitude": 18.0, "latitude": 54.0}
    suggestion = study.ask()
    whole = tv.Cost(
        1.0,
        travel=tv.GreatCircle("longitude", "latitude", 0.1),
        start={"longitude": 18.0, "latitude": 54.0, "depth_m": 3.0},
    )
    other = tv.Study(study.domain, tv.LevelSet(below=4), cost=whole)
    assert other.ask().cost == suggestion.cost
    measurement = study.tell(suggestion, 4.0)
    assert measurement is None or study.measurements["cost"].tolist() == [suggestion.cost]


def test_a_start_without_a_column_that_travel_uses_is_refused() -> None:
    domain = tv.Domain.table(stations(), columns=["longitude", "latitude", "depth_m"])
    cost = tv.Cost(1.0, travel=tv.GreatCircle("longitude", "latitude"), start={"longitude": 18.0})
    with pytest.raises(InvalidArgumentError, match="'latitude' is missing"):
        tv.Study(domain, tv.Maximize(), cost=cost)


# -- command line
# --------------------------------------------------------------------------------------------------

PROBLEM = """
name = "bay"
[domain]
table = "stations.csv"
columns = ["longitude", "latitude", "depth_m"]
label = "station"
constraints = [{area = "area.geojson"}]
[goal]
level_set_below = 4
[cost]
base = 1
great_circle = {longitude = "longitude", latitude = "latitude", rate = 0.1}
start = "area.geojson"
"""


def test_from_a_problem_file_to_a_plotter_and_a_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    stations().to_csv("stations.csv", index=False)
    Path("area.geojson").write_text(json.dumps(geojson_area()))
    Path("bay.toml").write_text(PROBLEM)
    assert main(["new", "bay.toml"]) == 0
    study = tv.load("sqlite:///bay.db")
    assert study.vehicle_statuses[0].position == {"longitude": 18.1, "latitude": 54.1}
    assert study.result().domain.points[:, 0].max() < 18.5
    capsys.readouterr()
    assert main(["ask", "bay.db", "-n", "2", "--gpx", "next.gpx", "--csv", "next.csv"]) == 0
    assert capsys.readouterr().out.endswith("\n\nwritten: next.gpx, next.csv\n")
    study.refresh()
    home = json.loads(tv.save_waypoints(study, "next.plan").read_text())["mission"]
    assert home["plannedHomePosition"] == [54.1, 18.1, 0]  # the start, not the first waypoint
    names = geopandas.read_file("next.gpx", layer="waypoints")["name"].tolist()
    assert names == pd.read_csv("next.csv")["label"].tolist()
    assert main(["export", "bay.db", "--waypoints", "-o", "again.kml"]) == 0
    assert capsys.readouterr().out == "2 pending suggestions: again.kml\n"
    assert main(["export", "bay.db", "--points", "-o", "points.geojson"]) == 0
    assert len(geopandas.read_file("points.geojson")) == len(study.domain)
    assert main(["export", "bay.db", "--points"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("station,")
    # a file that cannot be written: the suggestion is kept, and the message says how to write it
    assert main(["ask", "bay.db", "--gpx", "none/next.gpx"]) != 0
    assert "truvar export --waypoints" in capsys.readouterr().err
    assert len(tv.load("sqlite:///bay.db").pending) == 3


def test_a_grid_without_degrees_is_asked_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("line.toml").write_text("[domain]\ngrid = {x = [0, 1, 5]}\n[goal]\nmaximize = true\n")
    main(["new", "line.toml"])
    assert main(["ask", "line.db", "--gpx", "next.gpx"]) != 0
    assert "needs columns of longitude and latitude" in capsys.readouterr().err
    assert tv.load("sqlite:///line.db").pending == []
