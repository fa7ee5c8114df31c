"""Points and waypoints over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

TABLE = "station,lon,lat\na,18.1,54.2\nb,18.3,54.4\nc,18.5,54.1\nd,18.7,54.9\n"
PROBLEM = {
    "domain": {"table": "t.csv", "columns": ["lon", "lat"], "label": "station"},
    "goal": {"level_set": 1},
}


def test_points_and_waypoints_are_downloaded(
    application: Callable[..., Any], tmp_path: Path
) -> None:
    client = application(f"sqlite:///{tmp_path}/studies.db")
    made = client.post(
        "/api/studies", json={"name": "bay", "problem": PROBLEM, "tables": {"t.csv": TABLE}}
    )
    assert made.status_code < 300, made.text
    client.post("/api/studies/bay/ask", json={"n": 2})
    gpx = client.get("/api/studies/bay/waypoints.gpx")
    assert gpx.headers["content-type"].startswith("application/gpx+xml")
    assert 'filename="bay-waypoints.gpx"' in gpx.headers["content-disposition"]
    space = "{http://www.topografix.com/GPX/1/1}"
    assert len(ElementTree.fromstring(gpx.text).findall(f"{space}wpt")) == 2
    points = json.loads(client.get("/api/studies/bay/points.geojson").text)
    assert [each["properties"]["station"] for each in points["features"]] == list("abcd")
    assert client.get("/api/studies/bay/points.csv").text.startswith("station,lon,lat,mean")
    assert client.get("/api/studies/bay/view").json()["is_geographic"] is True
    assert client.get("/api/studies/bay/waypoints.doc").status_code == 422


def test_a_study_without_degrees_has_no_map_layer(
    application: Callable[..., Any], tmp_path: Path
) -> None:
    client = application(f"sqlite:///{tmp_path}/studies.db")
    problem = {"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"maximize": True}}
    client.post("/api/studies", json={"name": "line", "problem": problem})
    refused = client.get("/api/studies/line/points.geojson")
    assert refused.status_code in {400, 422}
    assert "longitude and latitude" in refused.text
    assert client.get("/api/studies/line/view").json()["is_geographic"] is False


def test_a_server_reads_no_map_of_its_own(application: Callable[..., Any], tmp_path: Path) -> None:
    client = application(f"sqlite:///{tmp_path}/studies.db")
    domain = {**PROBLEM["domain"], "constraints": [{"area": "/etc/area.geojson"}]}
    body = {"name": "bay", "problem": {**PROBLEM, "domain": domain}, "tables": {"t.csv": TABLE}}
    refused = client.post("/api/studies", json=body)
    assert refused.status_code in {400, 422}
    assert "reads no maps" in refused.text


def test_the_view_has_names_starts_and_columns_of_a_map(
    application: Callable[..., Any], tmp_path: Path
) -> None:
    client = application(f"sqlite:///{tmp_path}/studies.db")
    cost = {
        "base": 1,
        "great_circle": {"longitude": "lon", "latitude": "lat", "rate": 0.1},
        "start": {"lon": 18.0, "lat": 54.0},
        "must_return": True,
    }
    body = {"name": "bay", "problem": {**PROBLEM, "cost": cost}, "tables": {"t.csv": TABLE}}
    assert client.post("/api/studies", json=body).status_code < 300
    view = client.get("/api/studies/bay/view").json()
    assert view["geographic"] == {"x": "lon", "y": "lat", "degrees": True}
    assert view["labels"] == list("abcd")
    assert view["starts"] == [{"who": None, "point": {"lon": 18.0, "lat": 54.0}}]
    assert view["known"] is False
    told = {"point": {"lon": 18.3, "lat": 54.4}, "y": 2.0}
    assert client.post("/api/studies/bay/tell", json=told).status_code < 300
    newest = client.get("/api/studies/bay/events").json()["events"][0]
    assert (newest["kind"], newest["label"]) == ("told", "b")
    view = client.get("/api/studies/bay/view").json()
    assert view["vehicle_texts"][0].startswith("at b (lon 18.3, lat 54.4)")


def test_the_map_is_downloaded_as_a_picture(
    application: Callable[..., Any], tmp_path: Path
) -> None:
    client = application(f"sqlite:///{tmp_path}/studies.db")
    body = {"name": "bay", "problem": PROBLEM, "tables": {"t.csv": TABLE}}
    client.post("/api/studies", json=body)
    picture = client.get("/api/studies/bay/map.png")
    assert picture.content.startswith(b"\x89PNG")
    assert 'filename="bay-map.png"' in picture.headers["content-disposition"]
    assert client.get("/api/studies/bay/map.pdf").content.startswith(b"%PDF")
    assert client.get("/api/studies/bay/map.bmp").status_code == 422
