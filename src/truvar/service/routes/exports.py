"""Files to download: the study, its measurements, points, waypoints and map, and a report."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from truvar.report.pictures import map_picture
from truvar.report.point_files import points_csv, points_geojson
from truvar.report.waypoints import MEDIA_TYPES, waypoint_text
from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import JSON, StudyName, file_response
from truvar.study.study import Study
from truvar.tabular.csv_cells import measurements_csv

_PICTURE_TYPES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
_REPORT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)


class _CSVResponse(Response):
    """Type of the answer with the measurements, for OpenAPI."""

    media_type = "text/csv"


class _PictureResponse(Response):
    """Type of the answer with a picture, for OpenAPI."""

    media_type = "image/png"


def router(sessions: StudySessions, _: ServiceLimits) -> APIRouter:
    """Return the routes of files to download."""
    routes = APIRouter()

    @routes.get(
        "/studies/{name:path}/export", summary="The whole study; POST it to /api/studies to copy it"
    )
    async def export(name: StudyName) -> Response:
        text = await sessions.read(name, Study.to_json)
        return file_response(text, JSON, f"{name}.json")

    @routes.get(
        "/studies/{name:path}/export.csv",
        summary="The measurements as a table",
        response_class=_CSVResponse,
    )
    async def export_measurements(name: StudyName) -> Response:
        text = await sessions.read(name, lambda study: measurements_csv(study.measurements))
        return file_response(text, "text/csv; charset=utf-8", f"{name}.csv")

    @routes.get(
        "/studies/{name:path}/points.{file_format}",
        summary="Every point with its mean, sd, probability and class",
        response_class=_CSVResponse,
    )
    async def points(name: StudyName, file_format: Literal["csv", "geojson"]) -> Response:
        write = points_csv if file_format == "csv" else points_geojson
        text = await sessions.read(name, lambda study: write(study.result()))
        return file_response(text, MEDIA_TYPES[file_format], f"{name}-points.{file_format}")

    @routes.get(
        "/studies/{name:path}/waypoints.{file_format}",
        summary="The pending suggestions for a chart plotter, a map or an autopilot",
        response_class=_CSVResponse,
    )
    async def waypoints(
        name: StudyName, file_format: Literal["gpx", "geojson", "kml", "plan", "csv"]
    ) -> Response:
        text = await sessions.read(
            name, lambda study: waypoint_text(study, study.pending, file_format)
        )
        return file_response(text, MEDIA_TYPES[file_format], f"{name}-waypoints.{file_format}")

    @routes.get(
        "/studies/{name:path}/map.{file_format}",
        summary="The map of the study as a picture",
        response_class=_PictureResponse,
        responses={200: {"content": {each: {} for each in _PICTURE_TYPES.values()}}},
    )
    async def study_map(name: StudyName, file_format: Literal["png", "svg", "pdf"]) -> Response:
        picture = await sessions.read(name, lambda study: map_picture(study, file_format))
        return file_response(picture, _PICTURE_TYPES[file_format], f"{name}-map.{file_format}")

    @routes.get(
        "/studies/{name:path}/report",
        summary="A report in one HTML file",
        response_class=HTMLResponse,
    )
    async def report(name: StudyName) -> Response:
        page = await sessions.read(name, serializers.report)
        response = file_response(page, "text/html; charset=utf-8", f"{name}.html")
        response.headers["content-security-policy"] = _REPORT_SECURITY_POLICY
        return response

    return routes
