"""Requests, command line and Python have the arguments and limits of the commands, which are declared once."""

from dataclasses import fields
from typing import Any

import pytest

import truvar as tv
from truvar.cli import COMMANDS
from truvar.cli._parser import command_help
from truvar.exceptions import InvalidArgumentError
from truvar.remote._encoding import encode_command
from truvar.study import commands
from truvar.study._handlers import HANDLERS
from truvar.study.commands import ARGUMENTS, INTERFACES, MAX_LEASE, Ask, Receipt
from truvar.study.limits import DEFAULT_RETRIES

OWN = {"what", "typed", "frame", "value"}  # fields that requests name otherwise, or do not have
# these are not sent to a server, and the command line tells tables with `truvar tell --csv`
LOCAL = (commands.Fit, commands.TellAll)
ALL = [each for each in HANDLERS if each not in LOCAL]
TARGETS: dict[str, Any] = {
    "measurement": 1,
    "value": 1,
    "point": {"x": 0.5},
    "place": "x > 0.5",
    "domain": {"x": [1.5]},
}
VALUES: dict[type, Any] = {bool: True, float: 0.5, int: 1, object: 0.5, str: "text"}


def arguments_of(command: type[commands.Command]) -> set[str]:
    return {field.name for field in fields(command)} - OWN


def sample(field: Any, target: str) -> Any:
    """Return a value of a field; one that must match a pattern is the default."""
    if field.name == "what":
        return TARGETS[target]
    argument = ARGUMENTS[field.name]
    return field.default if "pattern" in argument.limits else VALUES[argument.kind]


@pytest.mark.parametrize("command", ALL)
def test_every_argument_of_a_command_is_described(command):
    assert arguments_of(command) <= ARGUMENTS.keys()


@pytest.mark.parametrize("command", ALL)
def test_the_body_of_a_request_has_the_arguments_of_its_command(command):
    schemas = pytest.importorskip("truvar.service._schemas", reason="needs pydantic")
    body = schemas.body_of(command)
    assert set(body.model_fields) == arguments_of(command)
    assert all(field.description for field in body.model_fields.values())


@pytest.mark.parametrize("command", INTERFACES)
def test_a_command_arrives_at_a_server_as_it_was_sent(command):
    routes = pytest.importorskip("truvar.service.routes.commands", reason="needs truvar[service]")
    schemas = pytest.importorskip("truvar.service._schemas", reason="needs pydantic")
    study = tv.Study(tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.LevelSet(0.5))
    target = INTERFACES[command].target
    sent = command(**{field.name: sample(field, target) for field in fields(command)})
    body = schemas.body_of(command, routes._FORMS[target][0])
    assert body(**encode_command(sent, study.domain)).command(study) == sent


@pytest.mark.parametrize("command", ALL)
def test_the_command_line_has_the_options_of_its_command(command):
    shown = {each.name: each for each in COMMANDS}.get(command.name)
    if shown is None:
        assert command is commands.TellRepeats  # `truvar tell --repeats`
        return
    text = command_help(shown)
    for name in arguments_of(command):
        assert not ARGUMENTS[name].is_option or f"--{name.replace('_', '-')}" in text


def test_the_limit_of_a_lease_is_the_same_in_python_and_over_http():
    schemas = pytest.importorskip("truvar.service._schemas", reason="needs pydantic")
    body = schemas.body_of(Ask)
    assert Ask(lease=MAX_LEASE).check() == Ask(**body(lease=MAX_LEASE).arguments)
    with pytest.raises(InvalidArgumentError, match="lease"):
        Ask(lease=MAX_LEASE + 1).check()
    with pytest.raises(ValueError, match="lease"):
        body(lease=MAX_LEASE + 1)


def test_the_default_of_retries_is_the_one_of_the_help():
    (run,) = [each for each in COMMANDS if each.name == "run"]
    assert f"or {DEFAULT_RETRIES})" in " ".join(command_help(run).split())


def test_receipts_are_merged_in_order_and_the_last_warning_about_a_measurement_counts():
    merged = Receipt.merged([Receipt((1,), 4, {1: "old"}), Receipt((2, 3), 6, {1: "new", 3: "x"})])
    assert merged == Receipt((1, 2, 3), 6, {1: "new", 3: "x"})
    assert Receipt.merged([]) == Receipt()
