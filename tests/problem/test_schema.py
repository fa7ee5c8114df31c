"""The schema of problem files: what it exports to editors, and that one translation makes all
messages."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from truvar.exceptions import InvalidProblemError
from truvar.models.kernels import SMOOTHNESS
from truvar.problem.messages import MAX_VALUE_LENGTH, _format_value, request_message
from truvar.problem.schema import (
    REPRESENTERS,
    SECTIONS,
    ModelSpec,
    ProblemSpec,
    parse_spec,
    problem_json_schema,
)

SMALL: dict[str, Any] = {"domain": {"grid": {"x": [0, 1, 5]}}, "goal": {"maximize": True}}


def sections(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The definitions of the sections, by their key in a problem."""
    found = {}
    for name in SECTIONS:
        described = schema["properties"][name]
        (reference,) = described.get(
            "allOf", [described]
        )  # pydantic before 2.9 has it inside allOf
        found[name] = schema["$defs"][reference["$ref"].rpartition("/")[2]]
    return found


def test_every_key_has_a_description_and_every_section_its_keys() -> None:
    schema = problem_json_schema()
    undescribed = [key for key, value in schema["properties"].items() if "description" not in value]
    for name, section in sections(schema).items():
        assert set(ProblemSpec.model_fields[name].annotation.model_fields) <= set(
            section["properties"]
        )
        undescribed += [
            f"{name}.{key}"
            for key, value in section["properties"].items()
            if "description" not in value
        ]
    assert undescribed == []
    assert schema["required"] == ["goal", "domain"]


def mistakes(model: Any, data: dict[str, Any]) -> list[str]:
    """The kinds of errors of a section; "rule": a key needs others beside it."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        return [found["type"] for found in error.errors()]
    return []


def test_examples_of_the_schema_are_valid() -> None:
    for name, section in sections(problem_json_schema()).items():
        model: Any = ProblemSpec.model_fields[name].annotation
        for key, value in section["properties"].items():
            for example in value.get("examples", []):
                assert mistakes(model, {key: example}) in ([], ["rule"]), f"[{name}] {key}"


def test_the_schema_has_no_null_and_lists_policies_with_their_options() -> None:
    schema = problem_json_schema()
    assert '"null"' not in json.dumps(schema)
    policy = sections(schema)["policy"]["properties"]
    assert {"truvar", "ei", "random"} <= set(policy["name"]["anyOf"][0]["enum"])
    assert policy["slack"]["description"] == "Option of truvar."
    assert policy["per_cost"]["type"] == "boolean"


def test_the_schema_accepts_and_refuses_what_truvar_does() -> None:
    validator = pytest.importorskip("jsonschema_rs").validator_for(problem_json_schema())
    assert validator.is_valid(SMALL)
    assert validator.is_valid({**SMALL, "policy": {"name": "ei/cost", "margin": 0.1}})
    for wrong in (
        {"goal": {"maximize": True}},
        {**SMALL, "polcy": {}},
        {**SMALL, "noise": {"variance": -1}},
        {**SMALL, "goal": {"maximize": False}},
        {**SMALL, "goal": {"maximize": True, "level_set": 1}},
        {**SMALL, "policy": {"name": "truver"}},
        {**SMALL, "domain": {"grid": {"x": [0, 1]}}},
    ):
        assert not validator.is_valid(wrong), wrong
        with pytest.raises(InvalidProblemError):
            parse_spec(ProblemSpec, wrong)


def test_kernels_and_representers_are_those_of_the_model_and_the_domain() -> None:
    import inspect

    from truvar.domain.domain import Domain

    assert set(ModelSpec.model_json_schema()["properties"]["kernel"]["enum"]) == set(SMOOTHNESS)
    assert inspect.signature(Domain.box).parameters["representers"].default == REPRESENTERS


def test_the_schema_is_imported_without_numerical_libraries() -> None:
    code = "import sys, truvar.problem.schema; print([m for m in ('numpy', 'sklearn', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ({"noise": {"variance": -0.1}}, "[noise] variance must be >= 0, got -0.1; give 0 or more"),
        ({"seed": True}, "seed must be a whole number, got true; give one such as 1"),
        (
            {"cost": {"travel": {"x": "far"}}},
            "[cost] travel.x must be a number, got 'far'; give a finite number",
        ),
        ({"polcy": {}}, "unknown key 'polcy'; did you mean 'policy'?"),
    ],
)
def test_files_dicts_and_requests_give_the_same_message(
    problem: dict[str, Any], message: str
) -> None:
    from truvar.service._schemas import Create

    with pytest.raises(InvalidProblemError) as caught:
        parse_spec(ProblemSpec, {**SMALL, **problem})
    assert str(caught.value) == message
    with pytest.raises(ValueError, match="validation error") as invalid:
        Create.model_validate({"name": "lake", "problem": {**SMALL, **problem}})
    error: Any = invalid.value
    first = error.errors()[0]
    assert request_message({**first, "loc": ("body", *first["loc"])}, SECTIONS) == message


def test_long_and_nested_values_are_shortened_in_messages() -> None:
    assert len(_format_value("x" * 10_000)) <= MAX_VALUE_LENGTH + 3
    assert len(_format_value(list(range(10_000)))) <= MAX_VALUE_LENGTH + 3
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    assert _format_value(nested) == "[[[[[...]]]]]"


def test_the_command_line_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    from truvar.cli import main

    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == problem_json_schema()
