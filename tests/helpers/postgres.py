"""A PostgreSQL server of the tests' own, on loopback, in a temporary folder."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

USER = "truvar"


def _programs() -> Path:
    """The folder of PostgreSQL's programs, or the test is skipped."""
    found = shutil.which("initdb")
    folders = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    )
    for folder in reversed(folders):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip("needs PostgreSQL: its programs initdb and pg_ctl are not here")


def _as_server_user() -> list[str]:
    """Return the prefix of a command that runs as another user, since the server refuses to run
    as root."""
    if os.geteuid() != 0:
        return []
    if (
        shutil.which("runuser") is None
        or subprocess.run(["id", "postgres"], capture_output=True, check=False).returncode
    ):
        pytest.skip(
            "needs PostgreSQL: as root, the programs runuser and a user postgres to run it as"
        )
    return ["runuser", "-u", "postgres", "--"]


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Stop all processes of the server of a URL, and let them go on afterwards."""
    import psycopg

    with psycopg.connect(url) as connection:
        (main,) = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone() or ("",)
    first = int(main.split()[0])
    processes = [first, *_children(first)]
    try:
        _send(processes, signal.SIGSTOP)
        yield
    finally:
        _send(processes, signal.SIGCONT)


def _send(processes: list[int], signal_number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):  # the process of a connection that has just ended
            os.kill(process, signal_number)


def _children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and (folder / "stat").read_text().rpartition(")")[2].split()[
                1
            ] == str(parent):
                found.append(int(folder.name))
    return found


@contextmanager
def server() -> Iterator[str]:
    """A running server: the URL without the name of a database."""
    programs = _programs()
    prefix = _as_server_user()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="truvar-postgres-"))
    if prefix:
        shutil.chown(folder, "postgres")

    def run(*command: str) -> None:
        subprocess.run(
            [*prefix, *command], check=True, capture_output=True, cwd=folder, timeout=120
        )

    data = str(folder / "data")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='{folder}' -c fsync=off"
    try:
        run(
            str(programs / "initdb"),
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            USER,
            "--no-sync",
            "-E",
            "UTF8",
        )
        run(
            str(programs / "pg_ctl"),
            "-D",
            data,
            "-l",
            str(folder / "log"),
            "-o",
            options,
            "-w",
            "start",
        )
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}"
        finally:
            run(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
    except subprocess.CalledProcessError as error:
        pytest.skip(
            "needs PostgreSQL, which does not start here: "
            f"{error.stderr.decode(errors='replace')[-300:]}"
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
