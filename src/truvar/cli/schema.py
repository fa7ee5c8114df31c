"""`truvar schema`: the JSON Schema of problem files, for editors."""

from __future__ import annotations

import argparse

from truvar.cli._common import Command


def _schema_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def _schema(_: argparse.Namespace) -> int:
    """Print the schema."""
    import json

    from truvar.problem.schema import problem_json_schema

    print(json.dumps(problem_json_schema(), indent=2))
    return 0


SCHEMA = Command(
    "schema",
    "print the JSON Schema of problem files, with which editors complete and check them",
    "truvar schema > problem.schema.json",
    _schema_arguments,
    _schema,
)
