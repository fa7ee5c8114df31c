"""Maps of candidates: tables with longitude, latitude and more, drawn row by row."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.cli import main
from truvar.cli.plot import _KINDS, _THEMES
from truvar.exceptions import InvalidArgumentError
from truvar.plot import KINDS
from truvar.report import render_html_report
from truvar.report._plot_candidates import map_columns, map_size
from truvar.report._plot_data import PlotData
from truvar.report.html_report import _CANDIDATES_WIDTH, _MAP_ROWS
from truvar.report.style import THEMES

pytest.importorskip("matplotlib", reason="needs truvar[plot]")


def stations(depths: tuple[float, ...] = (5.0, 20.0, 60.0)) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    places = zip((18 + rng.random(25)).tolist(), (54 + rng.random(25)).tolist(), strict=True)
    rows = [(f"S{k}-{d:g}", x, y, d) for k, (x, y) in enumerate(places) for d in depths]
    return pd.DataFrame(rows, columns=["station", "lon", "lat", "depth_m"])


def survey(frame: pd.DataFrame, steps: int = 12, **options: Any) -> tv.Study:
    domain = tv.Domain.table(frame, label="station")
    cost = tv.Cost(1, travel=tv.GreatCircle("lon", "lat", 0.1), start={"lon": 18.5, "lat": 53.9})
    study = tv.Study(domain, tv.LevelSet(below=4), cost=cost, **options)
    for _ in range(steps):
        suggestion = study.ask(**({"vehicle": "north"} if "vehicles" in options else {}))
        study.tell(suggestion, 7 - suggestion.point["depth_m"] / 15 + suggestion.point["lon"] - 18)
    return study


def offsets(ax: Any) -> np.ndarray:
    """Positions of the first marks that were drawn: the candidates."""
    return np.asarray(ax.collections[0].get_offsets())


def test_depths_of_a_station_are_facets() -> None:
    frame = stations()
    figure = survey(frame).plot(kind="map")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    layers = ("probability: below 4", "class", "mean", "standard deviation")
    assert titles == [
        f"{layer}\ndepth (m) {depth}" if depth == 5 else f"depth (m) {depth}"
        for layer in layers
        for depth in (5, 20, 60)
    ]
    for ax, depth in zip(figure.axes, (5.0, 20.0, 60.0), strict=False):
        shown = frame[frame["depth_m"] == depth][["lon", "lat"]].to_numpy()
        assert sorted(map(tuple, offsets(ax))) == sorted(map(tuple, shown))


def test_no_depth_is_in_two_facets() -> None:
    study = survey(stations((1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0)), steps=0)
    axes = study.plot(kind="map").axes
    titles = [ax.get_title(loc="left").splitlines()[-1] for ax in axes]
    assert titles == ["depth (m) 1 to 10", "depth (m) 20 to 30", "depth (m) 45 to 60"]
    assert sum(len(offsets(ax)) for ax in axes) == len(study.domain)


@pytest.mark.parametrize("kind", ["map", "route", None])
def test_titles_marks_and_the_scale_bar_leave_each_other_free(kind: str | None) -> None:
    study = survey(stations((5.0, 20.0, 60.0, 80.0)), quantity="oxygen", unit="mg/l")
    figure = study.plot() if kind is None else study.plot(kind=kind)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    titles = [ax._left_title for ax in figure.axes if "\n" not in ax.get_title(loc="left")]
    boxes = [title.get_window_extent(renderer) for title in titles if title.get_text()]
    boxes += [ax.get_tightbbox(renderer) for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert not any(box.overlaps(other) for k, box in enumerate(boxes) for other in boxes[:k])
    ax = figure.axes[0]
    assert ax.get_aspect() == pytest.approx(1 / math.cos(math.radians(54.5)), rel=0.01)
    (bar,) = [each for each in ax.get_children() if type(each).__name__ == "AnchoredOffsetbox"]
    box = bar.get_window_extent(renderer)
    marks = [line.get_xydata() for line in ax.lines if line.get_marker() == "s"]
    assert len(marks) == 1  # the start
    drawn = ax.transData.transform(np.vstack([*marks, *(c.get_offsets() for c in ax.collections)]))
    assert not any(box.contains(*at) for at in drawn)


def test_the_map_is_as_tall_as_its_panels() -> None:
    wide = survey(stations(), steps=0).plot(kind="map")
    wide.canvas.draw()
    ends = [ax.get_window_extent() for ax in wide.axes]
    drawn = max(end.y1 for end in ends) - min(end.y0 for end in ends)
    assert drawn > 0.6 * wide.bbox.height


def test_depth_increases_downwards_and_legends_name_only_marks_that_are_drawn() -> None:
    figure = survey(stations(), quantity="oxygen", unit="mg/l").plot(
        kind="map", columns=["lon", "depth_m"]
    )
    low, high = figure.axes[0].get_ylim()
    assert low > high
    assert "start" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_figures_name_the_unit_of_the_threshold_and_the_place() -> None:
    study = survey(stations((5.0,)), quantity="oxygen", unit="mg/l")
    texts = [text.get_text() for text in study.plot(kind="slices").legends[0].get_texts()]
    assert "threshold 4 mg/l" in texts
    assert "measured values: oxygen (mg/l)" in [
        ax.get_title(loc="left") for ax in study.plot(kind="convergence").axes
    ]
    assert re.search(r"point S\d+-5 \(lon", study.plot(kind="slices")._suptitle.get_text())


def test_a_degree_of_longitude_is_shorter_than_one_of_latitude() -> None:
    ax = survey(stations((5.0,))).plot(kind="map").axes[0]
    assert ax.get_aspect() == pytest.approx(1 / math.cos(math.radians(54.5)), rel=0.01)


def test_one_depth_is_drawn_by_probability_class_mean_and_sd() -> None:
    study = survey(stations((5.0,)))
    figure = study.plot(kind="map")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["probability: below 4", "class", "mean", "standard deviation"]
    marks = figure.axes[0].collections[0]
    drawn = dict(zip(map(tuple, offsets(figure.axes[0])), marks.get_array(), strict=True))
    expected = dict(
        zip(map(tuple, study.domain.points[:, :2]), 1 - study.result().probability, strict=True)
    )
    assert drawn == pytest.approx(expected)


def test_an_empty_study_shows_no_field() -> None:
    figure = survey(stations(), steps=0).plot(kind="map")
    title = figure.axes[0].get_title(loc="left")
    assert title.splitlines()[0] == "candidates: there is no model yet"
    assert all(ax.collections[0].get_array() is None for ax in figure.axes)


def test_the_start_and_every_route_are_drawn() -> None:
    study = survey(stations((5.0,)), vehicles=["north", "south"])
    study.tell(study.ask(vehicle="south"), 5.0)
    figure = study.plot(kind="map")
    squares = [line for line in figure.axes[0].lines if line.get_marker() == "s"]
    assert [tuple(np.ravel(line.get_xydata())) for line in squares] == [(18.5, 53.9)] * 2
    routes = [line for line in figure.axes[0].lines if len(line.get_xydata()) > 1]
    assert sorted(len(line.get_xydata()) for line in routes) == [2, 13]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"measured by north", "measured by south", "start"} <= set(texts)


def test_other_columns_can_be_chosen() -> None:
    study = survey(stations())
    ax = study.plot(kind="map", columns=["lon", "depth_m"]).axes[0]
    assert (ax.get_aspect(), ax.get_ylabel()) == ("auto", "depth (m)")
    for columns in (["lon"], ["lon", "lon"], ["lon", "heigth"]):
        with pytest.raises(InvalidArgumentError):
            study.plot(kind="map", columns=columns)


def test_the_overview_is_a_map_too() -> None:
    titles = [ax.get_title(loc="left") for ax in survey(stations()).plot().axes]
    assert titles[:4] == ["probability: below 4\ndepth (m) 5", *titles[1:3], "class\ndepth (m) 5"]
    assert titles[-2:] == ["measured values", "share of the points"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_command_writes_figures(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    suffix: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    stations().to_csv("stations.csv", index=False)
    Path("bay.toml").write_text(
        '[domain]\ntable = "stations.csv"\nlabel = "station"\n[goal]\nlevel_set_below = 4\n'
    )
    main(["new", "bay.toml"])
    capsys.readouterr()
    assert main(["plot", "bay.db", "-o", f"map.{suffix}", "--theme", "dark"]) == 0
    assert capsys.readouterr().out == f"map: map.{suffix}\n"
    start = Path(f"map.{suffix}").read_bytes()[:200]
    assert {"png": b"PNG", "svg": b"<svg", "pdf": b"%PDF"}[suffix] in start + Path(
        f"map.{suffix}"
    ).read_bytes()[:2000]


@pytest.mark.parametrize("arguments", [["-o", "map.doc"], ["-o", "none/map.png"]])
def test_a_figure_that_cannot_be_written_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("line.toml").write_text("[domain]\ngrid = {x = [0, 1, 5]}\n[goal]\nmaximize = true\n")
    main(["new", "line.toml"])
    assert main(["plot", "line.db", *arguments]) == 1
    assert "give" in capsys.readouterr().err


def test_the_command_knows_all_figures_and_themes() -> None:
    assert _KINDS == KINDS
    assert _THEMES == THEMES


def test_coastlines_are_drawn_behind_the_candidates(tmp_path: Path) -> None:
    study = survey(stations((5.0,)))
    path = tmp_path / "coast.geojson"
    ring = [[17.0, 53.0], [20.0, 53.0], [20.0, 56.0], [17.0, 53.0]]
    shapes = [
        {
            "type": "Feature",
            "properties": {},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        },
        {"type": "Feature", "properties": {}, "geometry": None},
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
    plain = study.plot(kind="map").axes[0]
    ax = study.plot(kind="map", coastlines=path).axes[0]
    assert any(line.get_xydata().tolist() == ring for line in ax.lines)
    assert (ax.get_xlim(), ax.get_ylim()) == (plain.get_xlim(), plain.get_ylim())
    with pytest.raises(InvalidArgumentError, match="over longitude and latitude"):
        study.plot(kind="map", columns=["lon", "depth_m"], coastlines=path)
    path.write_text('{"type": "Point", "coordinates": [18, 54]}')
    with pytest.raises(InvalidArgumentError, match="neither lines nor polygons"):
        study.plot(kind="map", coastlines=path)
    path.write_text("no JSON")
    with pytest.raises(InvalidArgumentError, match="is not GeoJSON"):
        study.plot(kind="map", coastlines=path)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        study.plot(kind="map", coastlines=tmp_path / "none.geojson")


def test_names_lead_where_a_place_is_named() -> None:
    study = survey(stations((5.0,)))
    best = tv.Study(study.domain, tv.Maximize(), cost=1.0)
    best.run(lambda point: point["lon"], steps=14)
    name = re.escape(str(best.result().best.label))
    assert re.search(rf"recommended point {name} \(lon", best.result().certificate.statement)
    assert re.search(r"at S\d+-5 \(", best.result()._repr_html_())
    assert re.search(r"S\d+-5 \(lon", study.ask()._repr_html_())


def test_the_map_of_the_report_has_no_empty_edge_and_scrolls_on_a_phone() -> None:
    frame = stations()
    study = survey(frame.assign(lat=54 + 0.1 * (frame["lat"] - 54)))
    page = render_html_report(study)
    lead = page[page.index('<figure class="lead">') : page.index('<div class="tiles">')]
    assert '<div class="scroll wide">' in lead
    source = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', lead)[0]
    svg = base64.b64decode(source).decode()
    (height,) = re.findall(r'<svg[^>]* height="([\d.]+)pt"', svg)
    drawn = PlotData.from_study(study)
    whole = map_size(drawn, map_columns(study.domain), _CANDIDATES_WIDTH, _MAP_ROWS)[1]
    assert float(height) < 72 * whole - 20  # points, of the figure before its edge is cut off


def test_titles_of_the_overview_do_not_overlap() -> None:
    frame = stations()
    frame["lat"] = 54 + 0.56 * (frame["lat"] - 54)  # maps that just fit into their part
    domain = tv.Domain.table(frame, label="station")
    study = tv.Study(domain, tv.LevelSet(below=4), kernel=RBF([1, 1, 30]), mean=4.0, noise=0.1)
    for row in range(0, len(domain), 6):
        study.tell(domain.point(row), 7 - domain.point(row)["depth_m"] / 15)
    figure = study.plot()
    figure.canvas.draw()
    texts = [figure._suptitle, *(ax._left_title for ax in figure.axes)]
    texts += [ax.xaxis.label for ax in figure.axes if ax.get_xlabel() == "longitude"]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    pairs = [(first, second) for k, first in enumerate(boxes) for second in boxes[:k]]
    assert not [pair for pair in pairs if pair[0].overlaps(pair[1])]


def test_no_gap_is_left_below_maps_of_one_facet() -> None:
    frame = stations((5.0,)).drop(columns="depth_m")
    frame["lon"] = 15 + 5 * (frame["lon"] - 18)
    frame["lat"] = 54.6 + 2.4 * (frame["lat"] - 54)
    domain = tv.Domain.table(frame, label="station")
    study = tv.Study(domain, tv.Maximize(), kernel=RBF([1, 1]), mean=55.0, noise=0.1)
    for row in range(0, len(domain), 4):
        study.tell(domain.point(row), domain.point(row)["lat"])
    figure = study.plot(kind="map")
    figure.canvas.draw()
    lowest = min(ax.get_tightbbox().y0 for ax in figure.axes)
    legend = max(legend.get_window_extent().y1 for legend in figure.legends)
    assert 0 <= lowest - legend < 50  # pixels


def test_the_report_of_a_new_study_draws_no_model() -> None:
    study = survey(stations(), steps=0)
    html = render_html_report(study)
    assert "Map of the candidates: where can be measured<" in html
    assert "Slices through" not in html
    assert "Matern" not in html
    measured = render_html_report(survey(stations()))
    assert "by probability and by class, and the route<" in measured
    assert "Slices through the point S" in measured
    assert "Matern" in measured
