"""Files to download: the whole study, its measurements, and a report."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from truvar.service import serializers
from truvar.service._limits import ServiceLimits
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import JSON, StudyName, file_response
from truvar.study.study import Study
from truvar.tabular.csv_cells import measurements_csv

_REPORT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)


class _CSVResponse(Response):
    """Type of the answer with the measurements, for OpenAPI."""

    media_type = "text/csv"


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
