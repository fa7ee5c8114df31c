"""The API: what a study can do, one address each. Numbers of domains come and go as plain JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Header, HTTPException, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

import truvar
from truvar.exceptions import TruvarError
from truvar.service import serializers
from truvar.service.limits import ServiceLimits, check_name, is_text
from truvar.service.schemas import Ask, Correct, Create, Note, Tell, Withdraw
from truvar.service.sessions import Broken, StudySessions
from truvar.service.uploads import posted_problem, posted_study
from truvar.study.study import Study

Name = Annotated[str, Path(description="the study's name", max_length=100)]
Who = Annotated[str | None, Header(alias="X-Truvar-Who", max_length=100, description="who says so, for the journal")]

BEAT = 2.0  # seconds between looks at the journal for a live stream
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "the body is no JSON"},
    401: {"description": "the token is missing or wrong"},
    403: {"description": "the token is for reading only, or the request came from elsewhere"},
    404: {"description": "there is no such study"},
    409: {"description": "the study is finished, cannot be opened, or its name is taken"},
    413: {"description": "the body is too large"},
    415: {"description": "the body is not declared as JSON"},
    422: {"description": "what came cannot be used; the message says why and what to do"},
    429: {"description": "too much is waiting or open already"},
    503: {"description": "the store cannot be used now; nothing was changed"},
}


def api(sessions: StudySessions, limits: ServiceLimits) -> APIRouter:
    """All routes under /api."""
    router = APIRouter(prefix="/api", responses=ERRORS)
    streams = asyncio.Semaphore(limits.streams)

    async def act(name: str, who: str | None, work: Callable[[Study], Any]) -> Response:
        """Changes a study in somebody's name."""

        def signed(study: Study) -> Any:
            study.who = who if who and is_text(who) else "service"
            return work(study)

        return _json(await sessions.change(name, signed))

    async def answer(name: str, what: str, make: Callable[[Study], Any]) -> Response:
        return Response(
            await sessions.answer(name, what, lambda study: serializers.encode(make(study))), media_type=JSON
        )

    # -- the server and its studies ------------------------------------------------------------------------------------

    @router.get("", summary="The server: its version, what the token allows, and its limits")
    async def server(request: Request) -> Response:
        return _json({"version": truvar.__version__, "access": request.scope["access"], "limits": vars(limits)})

    @router.get("/studies", summary="All studies, the last changed first")
    async def listing() -> Response:
        return _json({"studies": await sessions.overview()})

    @router.post("/studies", status_code=201, summary="A new study")
    async def create(body: Create, who: Who = None) -> Response:
        name = check_name(body.name)
        if (body.problem is None) == (body.study is None):
            raise TruvarError("a new study needs either a problem or an exported study; give one of them")

        def make(url: str) -> Study:
            if body.study is not None:
                return posted_study(body.study, url, name, limits)
            problem = posted_problem(name, body.problem or {}, body.tables, limits)
            return problem.study(store=url, name=name, who=who if who and is_text(who) else "service")

        await sessions.create(make, name)
        return _json(await sessions.use(name, serializers.status), 201)

    # -- one study: changes --------------------------------------------------------------------------------------------

    @router.post("/studies/{name:path}/ask", summary="Where to measure next")
    async def ask(name: Name, body: Ask, who: Who = None) -> Response:
        def work(study: Study) -> Any:
            if len(study.pending) + body.n > limits.waiting:
                raise HTTPException(429, f"{len(study.pending)} suggestions are waiting; tell or withdraw some first")
            return {"suggestions": [s.to_dict() for s in study.ask(body.n, lease=body.lease)]}

        return await act(name, who, work)

    @router.post("/studies/{name:path}/tell", summary="A measured value; told again, it counts once")
    async def tell(name: Name, body: Tell, who: Who = None) -> Response:
        if (body.id is None) == (body.point is None):
            raise TruvarError("a value is told of either an id or a point; give one of them")
        if body.key is not None and body.point is None:
            raise TruvarError("a key goes with a point; a suggestion has its id: leave out the key")
        what = body.id or body.point or {}
        options = body.model_dump(include={"noise", "cost", "level", "task", "key"})
        return await act(name, who, lambda study: _standing(study, study.tell(what, body.y, **options)))

    @router.post("/studies/{name:path}/correct", summary="Another value for a measurement")
    async def correct(name: Name, body: Correct, who: Who = None) -> Response:
        def work(study: Study) -> Any:
            study.correct(body.id, body.y, noise=body.noise, cost=body.cost)
            return _standing(study, body.id)

        return await act(name, who, work)

    @router.post("/studies/{name:path}/withdraw", summary="Takes back a suggestion or a measurement")
    async def withdraw(name: Name, body: Withdraw, who: Who = None) -> Response:
        def work(study: Study) -> Any:
            study.withdraw(body.id)
            return _standing(study, body.id)

        return await act(name, who, work)

    @router.post("/studies/{name:path}/note", summary="A remark for the journal")
    async def note(name: Name, body: Note, who: Who = None) -> Response:
        if not is_text(body.text):
            raise TruvarError("a note is plain text, but there was a control character in it; leave it out")

        def work(study: Study) -> Any:
            study.note(body.text)
            return {"version": study.version}

        return await act(name, who, work)

    # -- one study: what is known --------------------------------------------------------------------------------------

    @router.get("/studies/{name:path}/status", summary="Where it stands: counts, best point, certificate, pending")
    async def status(name: Name) -> Response:
        return await answer(name, "status", lambda s: {**serializers.status(s), "version": s.version})

    @router.get("/studies/{name:path}/result", summary="The result, without the arrays")
    async def result(name: Name) -> Response:
        return await answer(name, "result", lambda study: study.result().to_dict())

    @router.get("/studies/{name:path}/certificate", summary="What is proven, and in which regime")
    async def certificate(name: Name) -> Response:
        return await answer(name, "certificate", lambda study: study.result().certificate.to_dict())

    @router.get("/studies/{name:path}/domain", summary="The domain and the goal, exactly")
    async def domain(name: Name) -> Response:
        return await answer(name, "domain", serializers.problem)

    @router.get("/studies/{name:path}/posterior", summary="Mean, sd, bounds and class of every point, and the result")
    async def posterior(name: Name) -> Response:
        return await answer(name, "posterior", serializers.posterior)

    @router.get("/studies/{name:path}/measurements", summary="The values told, in order")
    async def measurements(name: Name) -> Response:
        return await answer(name, "measurements", lambda study: {"measurements": serializers.measured(study)})

    @router.get("/studies/{name:path}/history", summary="How epsilon and the classes went, as columns")
    async def history(name: Name) -> Response:
        return await answer(name, "history", serializers.history)

    @router.get("/studies/{name:path}/events", summary="The journal, newest first")
    async def events(name: Name, newest: Annotated[int, Query(ge=1, le=100_000)] = 1000) -> Response:
        return _json(await sessions.use(name, lambda study: {"events": serializers.events(study, newest)}))

    @router.get("/studies/{name:path}/slice", summary="The posterior on a plane through a point")
    async def plane(
        name: Name, x: str, y: str, at: Annotated[list[float], Query(description="one number per column, in order")]
    ) -> Response:
        def work(study: Study) -> Any:
            columns = list(study.domain.columns)
            if x == y or x not in columns or y not in columns:
                raise TruvarError(f"x and y must be two of the columns {', '.join(columns)}, got {x!r}, {y!r}")
            if len(at) != len(columns) or not np.isfinite(at).all():
                raise TruvarError(f"at must be {len(columns)} finite numbers, one per column, got {at}")
            return serializers.slice_of(study, (columns.index(x), columns.index(y)), np.array(at))

        return _json(await sessions.use(name, work))

    @router.get("/studies/{name:path}/view", summary="All that the page shows")
    async def view(name: Name) -> Response:
        try:
            return await answer(name, "view", lambda study: {**serializers.view(study), "version": study.version})
        except Broken as error:
            return _json({"name": name, "state": "broken", "problem": str(error), "version": 0})

    @router.get("/studies/{name:path}/live", summary="Server-sent events: the version, whenever it changes")
    async def live(name: Name) -> Response:
        if streams.locked():
            raise HTTPException(429, f"{limits.streams} streams are open already; ask for the version now and then")
        version = await sessions.use(name, lambda study: study.version)
        return StreamingResponse(_changes(sessions, name, version, streams), media_type="text/event-stream")

    # -- one study: to take away ---------------------------------------------------------------------------------------

    @router.get("/studies/{name:path}/export", summary="The whole study; POST it to /api/studies to have it again")
    async def export(name: Name) -> Response:
        text = await sessions.use(name, lambda study: study.to_json())
        return _file(text.encode(), JSON, f"{name}.json")

    @router.get("/studies/{name:path}/export.csv", summary="The measurements as a table")
    async def export_table(name: Name) -> Response:
        text = await sessions.use(name, lambda study: study.measurements.to_csv(index=False))
        return _file(text.encode(), "text/csv; charset=utf-8", f"{name}.csv")

    @router.get("/studies/{name:path}/report", summary="A report in one HTML file")
    async def report(name: Name) -> Response:
        page = await sessions.use(name, serializers.report)
        answer = _file(page.encode(), "text/html; charset=utf-8", f"{name}.html")
        answer.headers["content-security-policy"] = REPORT_POLICY
        return answer

    return router


JSON = "application/json"
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"


def _json(data: Any, status: int = 200) -> Response:
    return Response(serializers.encode(data), status, media_type=JSON)


def _file(content: bytes, kind: str, name: str) -> Response:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{plain}"'})


def _standing(study: Study, id_: int) -> dict[str, Any]:
    """What a change answers: short, as it is sent to boats."""
    return {"id": id_, "version": study.version, "steps": study.steps, "spent": study.spent, "epsilon": study.epsilon}


async def _changes(sessions: StudySessions, name: str, version: int, streams: asyncio.Semaphore) -> AsyncIterator[str]:
    async with streams:
        while True:
            yield f"data: {json.dumps({'version': version})}\n\n"
            silent, before = 0.0, version
            while version == before:
                try:
                    version = await sessions.news(name, before, BEAT)
                except TruvarError:
                    return
                silent += BEAT
                if version == before and silent >= 14:
                    silent = 0.0
                    yield ": still here\n\n"
