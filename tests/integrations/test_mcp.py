"""The MCP server, through the in-memory client of the official package."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import truvar as tv

pytest.importorskip("mcp.server.mcpserver", reason="needs truvar[mcp]")
pytest.importorskip("sqlalchemy", reason="needs truvar[store]")

from mcp import StdioServerParameters
from mcp.client import Client

from truvar.integrations.mcp import READING, WRITING, make_server

PROBLEM = {
    "name": "line",
    "domain": {"grid": {"x": [0, 1, 11]}},
    "goal": {"level_set": 0.5},
    "model": {"kernel": "rbf", "lengthscales": [0.3], "variance": 1.0, "mean": 0.0},
    "noise": {"variance": 0.01},
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'line.db'}"


def converse(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers to calls of tools: JSON values, or the message of a mistake as an
    exception."""

    async def talk() -> list[Any]:
        answers: list[Any] = []
        async with Client(server) as client:
            for name, arguments in calls:
                answer = await client.call_tool(name, arguments)
                if answer.is_error:
                    answers.append(RuntimeError(answer.content[0].text))
                elif answer.structured_content is not None:
                    content = answer.structured_content
                    answers.append(
                        content.get("result", content) if set(content) == {"result"} else content
                    )
                else:
                    answers.append(answer.content)
        return answers

    return asyncio.run(talk())


def tools_of(server: Any) -> dict[str, Any]:
    async def talk() -> dict[str, Any]:
        async with Client(server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return asyncio.run(talk())


def a_study(store: str) -> tv.Study:
    return tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.Maximize(), noise=0.01, store=store, name="small"
    )


def test_by_default_there_are_only_tools_that_read(store: str) -> None:
    a_study(store)
    tools = tools_of(make_server(store))
    assert set(tools) == set(READING)
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    (answer,) = converse(make_server(store), ("ask", {}))
    assert "Unknown tool" in str(answer)
    assert not tv.load(store).pending


def test_tools_that_write_are_there_when_asked_for_and_say_so(store: str) -> None:
    tools = tools_of(make_server(store, write=True))
    assert set(tools) == {*READING, *WRITING}
    assert not any(tools[name].annotations.read_only_hint for name in WRITING)
    assert "Coordinates by column" in tools["tell"].description
    assert set(tools["tell"].input_schema["required"]) == {"value"}


def test_a_study_is_created_asked_told_and_read(store: str) -> None:
    server = make_server(store, write=True, author="assistant")
    created, asked = converse(server, ("create", {"problem": PROBLEM}), ("ask", {"count": 2}))
    assert created["name"] == "line"
    first, second = asked["suggestions"]
    told, failed, result, listed, rows = converse(
        server,
        ("tell", {"id": first["id"], "value": 0.9}),
        ("fail", {"id": second["id"], "reason": "probe stuck"}),
        ("result", {}),
        ("list_studies", {}),
        ("measurements", {}),
    )
    study = tv.load(store, "line")
    assert told["result"]["steps"] == failed["result"]["steps"] == study.steps == 1
    assert [failure.reason for failure in study.failures] == ["probe stuck"]
    assert result["best"]["point"] == study.result().best.point
    assert [each["name"] for each in listed] == ["line"]
    assert [(row["id"], row["value"]) for row in rows] == [(first["id"], 0.9)]
    assert set(study.events["who"]) == {"assistant"}


def test_points_that_nobody_suggested_and_withdrawn_suggestions(store: str) -> None:
    a_study(store)
    server = make_server(store, write=True)
    told, asked, predicted = converse(
        server,
        ("tell", {"point": {"x": 0.5}, "value": 1.0, "noise": 0.1}),
        ("ask", {}),
        ("predict", {"points": [{"x": 0.5}, {"x": 0.0}]}),
    )
    assert told["result"]["steps"] == 1
    assert [each["point"] for each in predicted] == [{"x": 0.5}, {"x": 0.0}]
    assert predicted[0]["sd"] < predicted[1]["sd"]
    id_ = asked["suggestions"][0]["id"]
    _, again = converse(
        server,
        ("withdraw", {"id": id_, "reason": "rain"}),
        ("withdraw", {"id": id_, "reason": "rain"}),
    )
    assert "must be that of a pending suggestion" in str(again)
    assert not tv.load(store).pending


def test_changes_of_others_are_seen(store: str) -> None:
    study = a_study(store)
    server = make_server(store)
    assert converse(server, ("status", {}))[0]["result"]["steps"] == 0
    study.tell({"x": 0.5}, 1.0)
    assert converse(server, ("status", {}))[0]["result"]["steps"] == 1


def test_a_call_without_a_name_is_refused_once_there_is_a_second_study(store: str) -> None:
    server = make_server(store, write=True)
    _, first, _, refused, named = converse(
        server,
        ("create", {"problem": PROBLEM}),
        ("tell", {"value": 1.0, "point": {"x": 0.5}}),
        ("create", {"problem": {**PROBLEM, "name": "second"}}),
        ("tell", {"value": 2.0, "point": {"x": 0.5}}),
        ("tell", {"value": 3.0, "point": {"x": 0.5}, "study": "second"}),
    )
    assert first["result"]["steps"] == named["result"]["steps"] == 1
    assert "must have exactly one study, got 'line', 'second'" in str(refused)
    assert tv.load(store, "line").steps == 1


def test_a_plot_is_a_png_picture(store: str) -> None:
    pytest.importorskip("matplotlib", reason="needs truvar[plot]")
    a_study(store)
    ((image,),) = converse(make_server(store), ("plot", {}))
    assert image.mime_type == "image/png"
    assert image.data.startswith("iVBORw0KGgo")  # the signature of a PNG file, in base64


def test_tables_are_sent_with_the_problem_and_no_file_is_read(store: str, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("x\n1\n2\n")
    problem = {**PROBLEM, "domain": {"table": str(tmp_path / "secret.csv"), "columns": ["x"]}}
    server = make_server(store, write=True)
    refused, created = converse(
        server,
        ("create", {"problem": problem}),
        (
            "create",
            {
                "problem": {**problem, "domain": {"table": "t", "columns": ["x"]}},
                "tables": {"t": "x\n1\n2\n"},
            },
        ),
    )
    assert "was not sent with it" in str(refused)
    assert created["result"]["steps"] == 0
    assert len(tv.load(store).domain) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("tell", {"value": 1.0}), "either the id of a suggestion or a point"),
        (("tell", {"value": 1.0, "id": 99}), "99"),
        (("tell", {"value": 1.0, "point": {"y": 1.0}}), "unknown column 'y'"),
        (("ask", {"count": 1000}), "count must be from 1 to 100, got 1000"),
        (("status", {"study": "other"}), "other"),
        (
            ("create", {"problem": {**PROBLEM, "domain": {"grid": {"x": [0, 1, 20_000]}}}}),
            "at most 10000 points",
        ),
        (
            ("create", {"problem": {**PROBLEM, "domain": {"grid": {"x": [0, 1, 10**9]}}}}),
            "got 1000000000; give fewer",
        ),
        (
            (
                "create",
                {"problem": {**PROBLEM, "domain": {"box": {"x": [0, 1]}, "representers": 10**9}}},
            ),
            "got 10000000",
        ),
        (
            ("create", {"problem": PROBLEM, "tables": {"t.csv": ""}}),
            "table 't.csv' must be CSV text with a header",
        ),
        (("create", {"problem": {**PROBLEM, "goal": {}}}), "goal"),
    ],
)
def test_mistakes_reach_the_assistant_as_one_message(
    call: tuple[str, dict[str, Any]], message: str, store: str
) -> None:
    a_study(store)
    (answer,) = converse(make_server(store, write=True), call)
    assert isinstance(answer, RuntimeError)
    assert message in str(answer)
    assert "Traceback" not in str(answer)


def test_the_command_serves_standard_input_and_output(store: str) -> None:
    a_study(store)
    words = ["-m", "truvar", "mcp", "--store", store]
    server = StdioServerParameters(
        command=sys.executable, args=words, env={"PYTHONPATH": ":".join(sys.path)}
    )

    async def talk() -> dict[str, Any]:
        async with Client(server) as client:
            answer = await client.call_tool("status", {})
            return json.loads(answer.content[0].text)

    assert asyncio.run(talk())["name"] == "small"
