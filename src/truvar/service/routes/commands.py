"""Commands: ask, tell, and those whose routes `commands.INTERFACES` describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from truvar.messages import current_interface
from truvar.service._choices import ChoiceRequest
from truvar.service._disconnection import while_connected
from truvar.service._limits import ServiceLimits
from truvar.service._schemas import (
    CommandBody,
    DomainBody,
    MeasurementBody,
    PlaceBody,
    PointBody,
    TellBody,
    TextBody,
    body_of,
)
from truvar.service._sessions import StudySessions
from truvar.service.routes._common import Author, StudyName, author_name, body_class, json_response
from truvar.study.commands import INTERFACES, Ask, Receipt, Target, Tell, TellRepeats
from truvar.study.study import Study

_Answer = Callable[[Study, Receipt], dict[str, Any]]


def _version(_: Study, receipt: Receipt) -> dict[str, Any]:
    return {"version": receipt.version}


def _summary(study: Study, receipt: Receipt) -> dict[str, Any]:
    """Return a short answer, as it is sent over slow connections."""
    return {
        "id": receipt.ids[0] if receipt.ids else 0,
        "version": study.version,
        "steps": study.steps,
        "spent": study.spent,
        "epsilon": study.epsilon,
    }


def _with_exclusions(study: Study, receipt: Receipt) -> dict[str, Any]:
    """Return the short answer with the number of points that are excluded now."""
    result = study.result()
    summary = _summary(study, receipt)
    return {**summary, "excluded": result.n_excluded, "infeasible_share": result.infeasible_share}


def _with_points(study: Study, receipt: Receipt) -> dict[str, Any]:
    """Return the short answer with the number of points of the domain."""
    return {**_summary(study, receipt), "points": len(study.domain)}


def _with_warnings(study: Study, receipt: Receipt) -> dict[str, Any]:
    """Return the short answer with the warnings and the ids that they are about."""
    return {
        **_summary(study, receipt),
        "warnings": list(receipt.warnings.values()),
        "warning_ids": list(receipt.warnings),
    }


def _with_ids(study: Study, receipt: Receipt) -> dict[str, Any]:
    return {**_with_warnings(study, receipt), "ids": list(receipt.ids)}


# the class of the body, and the answer
_FORMS: dict[Target, tuple[type[CommandBody], _Answer]] = {
    "measurement": (MeasurementBody, _summary),
    "value": (MeasurementBody, _with_warnings),
    "point": (PointBody, _summary),
    "place": (PlaceBody, _with_exclusions),
    "domain": (DomainBody, _with_points),
    "text": (TextBody, _version),
}


def router(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """Return the routes of the commands."""
    routes = APIRouter()
    tell_body = body_of(Tell, TellBody)

    @routes.post("/studies/{name:path}/ask", summary="Ask where to measure next")
    @body_class(body_of(Ask, n={"le": limits.batch}))
    async def ask(
        name: StudyName, body: CommandBody, request: Request, author: Author = None
    ) -> Response:
        choice = ChoiceRequest(
            author=author_name(author),
            interface=current_interface(),
            command=Ask(**body.arguments),
            max_pending=limits.waiting,
        )
        return json_response(await while_connected(request, sessions.choose(name, choice)))

    @routes.post(
        "/studies/{name:path}/check",
        summary="Say whether a value may be a typing mistake; nothing is told",
    )
    @body_class(tell_body)
    async def check(name: StudyName, body: CommandBody) -> Response:
        def work(study: Study) -> Any:
            command: Any = body.command(study)
            finding = study.check_value(
                command.what, command.y, level=command.level, task=command.task
            )
            return {"warnings": [] if finding is None else [finding]}

        return json_response(await sessions.read(name, work))

    def add(model: type[CommandBody], summary: str, answer: _Answer) -> None:
        """Add the route that executes the command of a body."""
        command = model.command_class.name

        @routes.post(f"/studies/{{name:path}}/{command}", name=command, summary=summary)
        @body_class(model)
        async def execute(name: StudyName, body: CommandBody, author: Author = None) -> Response:
            def work(study: Study) -> Any:
                study.author = author_name(author)
                return answer(study, study.execute(body.command(study)))

            return json_response(await sessions.write(name, work))

    add(tell_body, "Tell a measured value; sent again, it counts once", _with_warnings)
    add(
        body_of(TellRepeats, PointBody),
        "Tell several values of a place; sent again with a key, once",
        _with_ids,
    )
    for command, interface in INTERFACES.items():
        base, answer = _FORMS[interface.target]
        body = body_of(command, base, text={"max_length": limits.text})
        body.max_points = limits.points
        add(body, interface.summary, answer)
    return routes
