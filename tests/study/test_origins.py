"""A study keeps what its domain was made of: index and other columns, geometry, coordinates; and
it can be copied."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import SerializationError


def study_on(
    domain: tv.Domain, goal: tv.Goal | None = None, steps: int = 4, **how: object
) -> tv.Study:
    goal = tv.LevelSet(0.5) if goal is None else goal
    study = tv.Study(domain, goal, kernel=RBF(1.0), mean=0.0, **{"noise": 0.01, **how})  # type: ignore[arg-type]
    study.run(lambda point: float(np.sin(sum(point.values()))), steps=steps)
    return study


def stations() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [0.0, 1.0, 2.5, 4.0],
            "name": ["a", "b", "c", None],
            "visited": pd.date_range("2024-03-12", periods=4),
            "mean": [1, 2, 3, 4],
            "count": pd.array([1, None, 3, 4], dtype="Int64"),
        },
        index=pd.Index(["N", "E", "S", "W"], name="station"),
    )


# -- tables
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True])
def test_the_table_of_a_result_has_the_users_index_and_other_columns(stored: bool) -> None:
    study = study_on(tv.Domain.table(stations(), columns=["x"]))
    if stored:
        study = tv.Study.from_json(study.to_json())
    result = study.result()
    frame = result.to_frame()
    assert frame.index.equals(stations().index)
    assert frame.index.name == "station"
    np.testing.assert_array_equal(frame["mean"], result.mean)
    assert list(frame.columns[-4:]) == ["name", "visited", "mean_", "count"]
    assert frame["name"].isna().tolist() == [False, False, False, True]
    assert frame["name"].tolist()[:3] == ["a", "b", "c"]
    assert frame["visited"].tolist() == stations()["visited"].tolist()
    assert frame["mean_"].tolist() == [1, 2, 3, 4]
    assert frame["count"].isna().tolist() == [False, True, False, False]


def test_the_column_that_names_the_rows_is_the_index_of_the_table() -> None:
    domain = tv.Domain.table(stations().reset_index(), columns=["x"], label="station")
    frame = study_on(domain).result().to_frame()
    assert list(frame.index) == ["N", "E", "S", "W"]
    assert "station" not in frame.columns
    assert frame.reset_index()["station"].tolist() == ["N", "E", "S", "W"]


# -- GeoPandas
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crs", ["EPSG:32631", "EPSG:4326", None])
@pytest.mark.filterwarnings("ignore:the points are in degrees")
def test_a_stored_study_keeps_points_and_coordinate_system(crs: str | None) -> None:
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy([0.0, 1.0, 2.0], [5.0, 6.0, 8.0], [1.0, 2.0, 4.0], crs=crs)
    table = geopandas.GeoDataFrame(
        {"name": ["a", "b", "c"]}, geometry=points, index=[3, 5, 7]
    ).rename_geometry("at")
    study = study_on(tv.Domain.table(table, constraints=np.array([True, True, False])))
    found = tv.Study.from_json(study.to_json()).result().to_geopandas()
    assert found.crs == table.crs
    assert found.geometry.name == "at"
    assert found.geometry.geom_equals(table.geometry.iloc[:2]).all()
    assert list(found.index) == [3, 5]
    assert found["name"].tolist() == ["a", "b"]
    assert found.geometry.has_z.all()


# -- xarray
# --------------------------------------------------------------------------------------------------


def sea(missing: bool = False) -> object:
    xarray = pytest.importorskip("xarray")
    depth = np.arange(12.0).reshape(4, 3)
    if missing:
        depth[1, :] = np.nan  # a whole row of land
    return xarray.DataArray(
        depth,
        dims=("north", "east"),
        coords={
            "north": ("north", [30, 20, 10, 0], {"units": "km"}),
            "east": [0.0, 5.0, 10.0],
            "zone": ("north", ["a", "b", "c", "d"]),
            "surveyed": np.datetime64("2024-03-12", "ns"),
            "lat": (("north", "east"), np.ones((4, 3)), {"units": "degrees_north"}),
        },
        attrs={"title": "the bay", "range": np.array([0, 11]), "fill": np.nan},
        name="depth",
    )


@pytest.mark.parametrize("missing", [False, True])
def test_a_stored_study_keeps_dimensions_coordinates_and_attributes(missing: bool) -> None:
    data = sea(missing)
    study = study_on(tv.Domain.from_xarray(data))
    resumed = tv.Study.from_json(study.to_json())
    dataset = resumed.result().to_xarray()
    assert dict(dataset.sizes) == {"north": 4, "east": 3}
    assert dataset["mean"].dims == ("north", "east")
    for name in ("north", "east", "zone", "surveyed", "lat"):
        assert dataset.coords[name].identical(data.coords[name]) or dataset.coords[name].equals(
            data.coords[name]
        )
        assert dataset.coords[name].attrs == data.coords[name].attrs
    np.testing.assert_array_equal(dataset["depth"], data)
    np.testing.assert_array_equal(np.isnan(dataset["mean"]), np.isnan(data))
    assert dataset.attrs["title"] == "the bay"
    assert dataset.attrs["range"] == [0, 11]
    assert dataset.attrs["steps"] == 4
    assert study.result().to_xarray().identical(dataset)


def test_a_grid_with_values_is_a_grid_in_a_stored_study() -> None:
    domain = tv.Domain.from_xarray(sea())
    copied = tv.Study.from_json(study_on(domain, steps=1).to_json()).domain
    assert copied.shape == domain.shape == (4, 3)
    np.testing.assert_array_equal(copied.points, domain.points)
    np.testing.assert_array_equal(copied.column("depth"), domain.column("depth"))
    index, _ = copied.locate({"north": 15, "east": 2.0})  # between the points of the grid
    assert index is None


# -- copies
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make_copy", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
@pytest.mark.parametrize("goal", [tv.LevelSet(0.5), tv.Maximize()])
def test_copies_say_the_same_and_go_on_by_themselves(make_copy, goal: tv.Goal) -> None:  # type: ignore[no-untyped-def]
    study = study_on(tv.Domain.table(stations(), columns=["x"]), goal)
    domain = make_copy(study.domain)
    np.testing.assert_array_equal(domain.points, study.domain.points)
    assert domain.label(2) == "S"
    result = make_copy(study.result())
    pd.testing.assert_frame_equal(result.to_frame(), study.result().to_frame())
    np.testing.assert_array_equal(result.probability, study.result().probability)
    assert str(result.certificate) == str(study.result().certificate)
    assert result.to_dict() == study.result().to_dict()
    copied = make_copy(study)
    steps = study.steps
    suggestion = copied.ask()
    copied.tell(suggestion, 0.1)
    assert (copied.steps, study.steps) == (steps + 1, steps)
    assert study.ask().point == suggestion.point
    assert make_copy(suggestion) == suggestion


@pytest.mark.parametrize("make_copy", [copy.deepcopy, pickle.dumps])
def test_a_stored_study_says_how_to_open_or_copy_it(make_copy, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    study = tv.Study(
        tv.Domain.grid(x=[0, 1]), tv.Maximize(), store=f"sqlite:///{tmp_path}/a.db", name="lake"
    )
    with pytest.raises(
        SerializationError, match=r"truvar.load\(store, 'lake'\), or copy it to memory"
    ):
        make_copy(study)
    assert tv.Study.from_json(study.to_json()).domain.shape == (2,)
    assert pickle.loads(pickle.dumps(study.result())).steps == 0
