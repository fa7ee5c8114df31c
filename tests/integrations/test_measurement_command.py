"""`MeasurementCommand` fills in the arguments, reads the number and ends the program; it also
works without POSIX."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truvar._numba.threads import available_processors
from truvar.cli import run_command
from truvar.exceptions import InvalidArgumentError
from truvar.integrations.measurement_command import CommandFailedError, MeasurementCommand

HANG = "import time; time.sleep(60)"  # without quotes, so that it can be quoted in a command


def test_arguments_are_passed_unchanged_and_without_a_shell(tmp_path: Path) -> None:
    script = tmp_path / "print args"
    log = tmp_path / "log"
    script.write_text(
        f'#!/bin/sh\necho $# >> {log}; for one; do echo "[$one]"; done >> {log}\necho 1.5\n'
    )
    script.chmod(0o755)
    measure = MeasurementCommand(
        f"'{script}' {{x:.2f}} '{{task}};$HOME' {{{{}}}}", ["x"], choice="task"
    )
    assert measure({"x": 1 / 3}, "a b; rm -rf /") == 1.5
    assert log.read_text().splitlines() == ["3", "[0.33]", "[a b; rm -rf /;$HOME]", "[{}]"]


def test_level_and_task_are_passed_in_this_order() -> None:
    measure = MeasurementCommand("echo {task}{level}", ["x"], choice=["level", "task"])
    assert measure({"x": 0.0}, 2, "1") == 12.0


def test_values_are_quoted_for_a_shell() -> None:
    measure = MeasurementCommand("echo {task} | wc -c", ["x"], choice="task", shell=True)
    assert measure({"x": 0.0}, "a; echo b") == len("a; echo b\n")


@pytest.mark.parametrize(
    ("printed", "measured"),
    [
        ("1.5", 1.5),
        ("1.5 20", (1.5, 20.0)),
        ("Yes", "Yes"),
        ("no 20", ("no", 20.0)),
        ("yield=82.1 impurity=-4e-1", {"yield": 82.1, "impurity": -0.4}),
        ("impurity=0.4 20", ({"impurity": 0.4}, 20.0)),
    ],
)
def test_values_answers_and_quantities_are_read_with_their_cost(
    printed: str, measured: Any
) -> None:
    names = ["yield", "impurity"] if "=" in printed else []
    assert MeasurementCommand(f"echo {printed}", ["x"], quantities=names)({"x": 0.0}) == measured


@pytest.mark.parametrize(
    "printed", ["82.1", "yield=82.1 3 4", "yield=1 yield=2", "3 yield=1", "yield="]
)
def test_the_quantities_that_a_program_must_print_are_named(printed: str) -> None:
    measure = MeasurementCommand(f"echo {printed}", ["x"], quantities=["yield", "impurity"])
    with pytest.raises(CommandFailedError, match="must print yield=VALUE impurity=VALUE, got"):
        measure({"x": 0.0})


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("false", "false ended with exit code 1"),
        ("no-such-program {x}", "no-such-program cannot be started (No such file or directory)"),
        ("echo warm", "echo must print one number, got 'warm'"),
        ("echo 1 2 3", "echo must print one number, got '1 2 3'"),
        ("echo yield=1", "echo must print one number, got 'yield=1'"),
        ("echo nan", "must print a finite number, got nan"),
        ("true", "true must print one number, got nothing"),
        ("sh -c 'kill -9 $$'", "sh ended with signal 9"),
        ("sleep 20", "sleep did not answer within 0.2 s and was ended"),
    ],
)
def test_the_message_says_what_the_program_did(command: str, message: str) -> None:
    with pytest.raises(CommandFailedError, match=re.escape(message)):
        MeasurementCommand(command, ["x"], timeout=0.2 if "sleep" in command else None)({"x": 1.0})


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("./measure '{x}", "cannot split the command"),
        ("  ", "the command is empty"),
        ("./measure {y}", "unknown name {y} in the command; expected one of {x}, {level}"),
        ("./measure {x", "cannot read the braces of the command"),
        ("./measure {x:.2q}", "invalid format '.2q' of {x:.2q} in the command"),
    ],
)
def test_an_invalid_command_is_reported_before_it_is_run(command: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        MeasurementCommand(command, ["x"], choice="level")


# -- systems without POSIX
# ---------------------------------------------------------------------------------------------


def test_a_program_is_ended_on_systems_without_process_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "killpg")
    started = time.monotonic()
    with pytest.raises(CommandFailedError, match=r"did not answer within 0\.2 s and was ended"):
        MeasurementCommand(f"{sys.executable} -c '{HANG}'", ["x"], timeout=0.2)({"x": 1.0})
    assert time.monotonic() - started < 30


def test_processors_are_counted_on_systems_without_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert available_processors() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_processors() == 1


def test_no_process_is_signalled_on_systems_where_that_would_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kill(process: int, number: int) -> None:
        raise AssertionError("os.kill must not be called on Windows")

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(run_command.os, "name", "nt")
    assert run_command._alive(os.getpid())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = tmp_path / "measure"
    pids = tmp_path / "pids"
    script.write_text(
        f"#!/bin/sh\nsleep 61 & echo $! >> {pids}\nsetsid sleep 62 & echo $! >> {pids}\nsleep 63\n"
    )
    script.chmod(0o755)
    with pytest.raises(CommandFailedError, match="did not answer"):
        MeasurementCommand(str(script), ["x"], timeout=0.5)({"x": 1.0})
    time.sleep(0.2)
    for pid in pids.read_text().split():
        status = Path(f"/proc/{pid}/status")
        assert not status.exists() or "zombie" in status.read_text()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_what_a_program_left_in_the_background_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "measure"
    pids = tmp_path / "pids"
    script.write_text(f"#!/bin/sh\nsleep 64 >/dev/null 2>&1 & echo $! > {pids}\necho 1.5\n")
    script.chmod(0o755)
    assert MeasurementCommand(str(script), ["x"], timeout=20)({"x": 1.0}) == 1.5
    time.sleep(0.2)
    status = Path(f"/proc/{pids.read_text().strip()}/status")
    assert not status.exists() or "zombie" in status.read_text()


@pytest.mark.parametrize(
    "command", ["echo '{task}'", 'echo "a {task}"', "echo `echo {task}`", "echo \\{task}"]
)
def test_a_placeholder_within_quotes_of_a_shell_command_is_refused(command: str) -> None:
    with pytest.raises(InvalidArgumentError, match="without quotes"):
        MeasurementCommand(command, ["x"], choice="task", shell=True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cat <<EOF\n{task}\nEOF", "here-document"),
        ("cat <<-'EOF' | wc -c\n\t{task}\nEOF", "here-document"),
        ("echo 1 # {task}", "in a comment"),
        ("# it's {task}\necho 1", "in a comment"),
        ("echo 1;# {task}", "in a comment"),
        ("echo $(( {task} + 1 ))", "arithmetic"),
        ("v=$((1 + (2 * {task})))", "arithmetic"),
        ('echo "$(echo "{task}")"', "within quotes"),
        ("echo \"${{v:-'{task}'}}\"", "within quotes"),
    ],
)
def test_a_placeholder_that_would_not_be_a_word_of_the_shell_is_refused(
    command: str, words: str
) -> None:
    with pytest.raises(
        InvalidArgumentError, match=rf"\{{task\}} must be a word of a shell command.*{words}"
    ):
        MeasurementCommand(command, ["x"], choice="task", shell=True)


NASTY = ["a b", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "a\ntouch pwned\n", "*", ""]
SHELL_COMMANDS = [
    "printf %s {task} > told; echo 1",
    "cat > told <<EOF; printf %s {task} >> told; echo 1\nEOF\n",
    'v={task}; printf %s "$v" > told; echo 1  # it\'s a comment',
    "f() {{ printf %s {task} > told; }}; f other; echo 1",
    "echo $(printf %s {task} > told) $((1 << 0))",
    'for v in {task}; do printf %s "$v" > told; done; echo 1',
    "case {task} in *) printf %s {task} > told;; esac; echo ${{#HOME}}",
]


@pytest.mark.skipif(os.name != "posix", reason="needs sh")
@pytest.mark.parametrize("command", SHELL_COMMANDS)
def test_a_shell_gets_every_value_as_it_is(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    measure = MeasurementCommand(command, ["x"], choice="task", shell=True)
    for value in NASTY:
        measure({"x": 0.0}, value)
        assert Path("told").read_text() == value
    assert not Path("pwned").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs sh")
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=20)
)
def test_any_text_reaches_the_program_through_the_shell(tmp_path: Path, value: str) -> None:
    told = tmp_path / "told"
    MeasurementCommand(f"printf %s {{task}} > {told}; echo 1", ["x"], choice="task", shell=True)(
        {"x": 0.0}, value
    )
    assert told.read_bytes().decode() == value
