"""A survey crew: from a CSV file to files for the plotter, in a terminal and in a browser.

`TRUVAR_PICTURES=folder python -m pytest tests/walks/test_survey.py` keeps pictures of the page at both
widths and in both themes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from tests.helpers.page import DESKTOP, PHONE, TIMEOUT, wait_until
from tests.helpers.server import browser, store_url
from tests.helpers.terminal import in_terminal

import truvar as tv

GPX = "{http://www.topografix.com/GPX/1/1}"
DEPTHS = (5.0, 20.0, 40.0, 60.0, 80.0)
ANSWERS = (
    "",  # the coordinates that are offered
    "",  # the names that are offered
    "oxygen (mg/l)",
    "below",
    "4",
    "0.2",
    "0.5",
    "8 kn",
    "18.6 54.5",
    "yes",
    "60",
)


def oxygen(longitude: np.ndarray, latitude: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """The truth: little oxygen in deep water, less of it in the west."""
    falling = 0.09 * depth * (1 + 0.5 * np.sin(3 * (longitude - 17.5)))
    return np.asarray(8.5 - falling + 0.8 * np.sin(4 * (latitude - 54.4)))


def stations() -> pd.DataFrame:
    """300 casts at 60 stations, with a column that is mostly empty."""
    rng = np.random.default_rng(1)
    rows = []
    for k in range(60):
        longitude = round(17.5 + 2.5 * rng.random(), 4)
        latitude = round(54.4 + 1.2 * rng.random(), 4)
        station = f"KB{k:04d}"
        rows += [(f"{station}/{d:g}", station, longitude, latitude, d) for d in DEPTHS]
    frame = pd.DataFrame(rows, columns=["cast", "station", "longitude", "latitude", "depth_m"])
    frame["remark"] = ""
    frame.loc[3, "remark"] = "wreck nearby"
    return frame


def tow(first: pd.Series, last: pd.Series) -> pd.DataFrame:
    """Return 2,000 values of an undulating tow from one place to another."""
    share = np.linspace(0, 1, 2000)
    longitude = first["longitude"] + share * (last["longitude"] - first["longitude"])
    latitude = first["latitude"] + share * (last["latitude"] - first["latitude"])
    depth = 42.5 - 37.5 * np.cos(20 * np.pi * share)
    noise = 0.2 * np.random.default_rng(3).standard_normal(len(share))
    values = oxygen(longitude, latitude, depth) + noise
    table = {"longitude": longitude, "latitude": latitude, "depth_m": depth, "oxygen": values}
    return pd.DataFrame(table)


def terminal(*words: str, answers: tuple[str, ...] = ()) -> str:
    """Run a command in a terminal of 80 columns; it must succeed."""
    command = [sys.executable, "-m", "truvar", *words]
    code, _, sent = in_terminal(command, columns=80, answers=answers, NO_COLOR="1")
    assert code == 0, sent
    return " ".join(sent.split())


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a crew that went from the table to its first measurements."""
    folder = tmp_path_factory.mktemp("crew")
    before = Path.cwd()
    os.chdir(folder)
    try:
        stations().to_csv("stations.csv", index=False)
        asked = terminal("init", "stations.csv", answers=ANSWERS)
        assert "[longitude, latitude, depth_m]" in asked
        assert "names of the places, or none [cast]" in asked
        assert "where is the oxygen below ... (mg/l)" in asked
        assert "Cost of a kilometre" in asked
        assert "Harbour" in asked
        made = terminal("new", "stations.toml")
        assert "where is oxygen below 4 mg/l?" in made
        assert "the first measurement" in made
    finally:
        os.chdir(before)
    return folder


def test_the_crew_takes_waypoints_to_the_plotter_and_brings_values_back(
    crew: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(crew)
    table = stations().set_index("cast")
    formats = ("gpx", "kml", "geojson", "plan", "csv")
    files = [word for suffix in formats for word in (f"--{suffix}", f"next.{suffix}")]
    first = json.loads(_json("ask", "stations.db", "-n", "3", *files, "--json"))["suggestions"]
    labels = [each["label"] for each in first]
    assert set(labels) <= set(table.index)
    names = [point.find(f"{GPX}name").text for point in _gpx("next.gpx").findall(f"{GPX}wpt")]
    assert names == labels
    plan = json.loads(Path("next.plan").read_text())
    assert len(plan["mission"]["items"]) >= 3
    assert [each["properties"]["name"] for each in _features("next.geojson")] == labels
    assert Path("next.kml").read_text().count("<Placemark") >= 3
    assert pd.read_csv("next.csv")["label"].tolist() == labels
    table["value"] = oxygen(table["longitude"], table["latitude"], table["depth_m"]).round(2)
    by_name = [word for label in labels for word in (label, str(table["value"][label]))]
    terminal("tell", "stations.db", *by_name)
    for _ in range(2):
        asked = json.loads(_json("ask", "stations.db", "-n", "4", "--json"))["suggestions"]
        values = {str(each["id"]): str(table["value"][each["label"]]) for each in asked}
        by_id = [word for pair in values.items() for word in pair]
        terminal("tell", "stations.db", *by_id)
    last = table.loc[asked[-1]["label"]]
    farthest = (table["longitude"] - last["longitude"]).abs().idxmax()
    tow(last, table.loc[farthest]).to_csv("tow.csv", index=False)
    said = terminal("tell", "stations.db", "--track", "tow.csv", "--within", "longitude=0.1")
    assert "of 2000 values lie at" in said
    assert "means ±" in said

    status = terminal("status", "stations.db")
    assert "where is oxygen below 4 mg/l?" in status
    assert "return leg at KB" in status
    for name in ("map.pdf", "map.png"):
        terminal("plot", "stations.db", "-o", name)
        assert Path(name).stat().st_size > 10_000
    terminal("export", "stations.db", "--points", "-o", "answer.geojson")
    answer = _features("answer.geojson")
    assert len(answer) == 300
    assert {"mean", "sd", "probability", "class"} <= set(answer[0]["properties"])
    terminal("report", "stations.db", "--report", "report.html")
    report = Path("report.html").read_text()
    assert "Map of the candidates" in report
    assert "<th>place</th>" in report.replace(' scope="col"', "").replace(' class="text"', "")


def _json(*words: str) -> str:
    command = [sys.executable, "-m", "truvar", *words]
    code, printed, sent = in_terminal(command, columns=80, piped=True)
    assert code == 0, sent
    return printed


def _gpx(path: str) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


def _features(path: str) -> list[dict]:
    features = json.loads(Path(path).read_text())["features"]
    return [each for each in features if each["geometry"]["type"] == "Point"]


def test_the_form_understands_the_table_as_init_does(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    from benchmarks.service import server

    table = stations().assign(date=[f"2024-05-{1 + k % 9:02d}" for k in range(300)])
    with server(store_url(tmp_path / "form.db")) as url, browser() as chromium:
        page = chromium.new_page(**PHONE, service_workers="block")
        page.set_default_timeout(TIMEOUT)
        page.goto(f"{url}/#/new")
        content = table.to_csv(index=False).encode()
        page.locator(".drop input").set_input_files(
            {"name": "crew.csv", "mimeType": "text/csv", "buffer": content}
        )
        page.get_by_text("crew.csv: 300 rows").wait_for()
        roles = page.locator(".columns select").evaluate_all("all => all.map((one) => one.value)")
        coordinates = ["coordinate"] * 3
        assert roles == ["label", "unused", *coordinates, "unused", "unused"]
        page.get_by_label("Quantity").fill("oxygen")
        page.get_by_role("textbox", name="Unit optional").fill("mg/l")
        page.get_by_label("Find").select_option("level_set_below")
        page.get_by_label("Threshold", exact=True).fill("4")
        page.get_by_label("Noise of a measurement").fill("0.2")
        page.get_by_label("Speed or cost").fill("8")
        page.get_by_label("In", exact=True).select_option("kn")
        page.get_by_label("Harbour, longitude").fill("18.6")
        page.get_by_label("Harbour, latitude").fill("54.5")
        page.locator(".preview").get_by_text("Where is oxygen below 4 mg/l?").wait_for()
        page.get_by_role("button", name="Create the study").click()
        page.locator(".answer", has_text="Where is oxygen below 4 mg/l?").wait_for()
        page.get_by_role("button", name="Suggest next").click()
        page.locator(".suggestion", has_text="KB00").wait_for()
    study = tv.load(store_url(tmp_path / "form.db"))
    assert study.vehicle_statuses[0].start == {"longitude": 18.6, "latitude": 54.5}
    assert study.pending[0].noise == pytest.approx(0.04)
    assert study.pending[0].cost > 1  # the base and the leg from the harbour


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_shows_the_candidates_on_a_map(crew: Path, device: dict, theme: str) -> None:
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    from benchmarks.service import server

    width = device["viewport"]["width"]
    with server(store_url(crew / "stations.db")) as url, browser() as chromium:
        context = chromium.new_context(
            **device, color_scheme=theme, service_workers="block", accept_downloads=True
        )
        context.set_default_timeout(TIMEOUT)
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}/#/study/stations")
        figure = page.locator("section.map")
        figure.locator(".scalebar").first.wait_for(state="attached")
        layers = figure.locator("figcaption label").all_inner_texts()
        assert layers == ["Probability", "Classes", "Mean", "Uncertainty"]
        assert figure.get_by_label("Horizontal axis").first.input_value() == "0"
        assert figure.get_by_label("Vertical axis").first.input_value() == "1"
        slider = figure.get_by_label("depth (m)").first
        shown = "document.querySelector('section.map .fields .note span').textContent"
        slider.fill("1")
        wait_until(page, f"{shown} === '5'")
        slider.fill("0")
        wait_until(page, f"{shown} === 'all'")
        slider.fill("4")
        assert figure.locator(".start").count() >= 1
        assert " km" in figure.locator("svg text.kilometres").text_content()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        figure.get_by_label("Vertical axis").first.select_option("2")
        wait_until(page, "document.querySelectorAll('section.map .scalebar').length === 0")
        figure.get_by_label("Vertical axis").first.select_option("1")
        coast = {"type": "LineString", "coordinates": [[17.5, 54.4], [18.5, 54.8], [20, 54.5]]}
        page.locator("summary", has_text="Coastlines").click()
        figure.locator("input[type=file]").set_input_files(
            {"name": "c.geojson", "mimeType": "text/plain", "buffer": json.dumps(coast).encode()}
        )
        figure.locator(".coast").wait_for(state="attached")
        with page.expect_download() as download:
            page.get_by_role("button", name="Map (SVG)").click()
        assert Path(download.value.path()).read_text().startswith("<?xml")
        with page.expect_download() as download:
            page.get_by_role("button", name="Waypoints (GPX)").click()
        assert _gpx(str(download.value.path())).tag == f"{GPX}gpx"
        folder = os.environ.get("TRUVAR_PICTURES")
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=f"{folder}/survey-{width}-{theme}.png", full_page=True)
        assert errors == []
        context.close()
