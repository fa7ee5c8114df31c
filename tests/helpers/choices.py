"""A slow choice, and what tests of it need."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Entropy search with so many draws takes seconds for each suggestion, so that a batch of 100 takes
# minutes.
SLOW = """
[domain]
grid = {x = [0, 1, 100], y = [0, 1, 100]}
[goal]
maximize = true
[model]
kernel = "matern52"
lengthscales = [0.05, 0.05]
variance = 1.0
mean = 0.0
[noise]
variance = 0.01
[policy]
name = "es"
draws = 8192
representers = 200
"""
BATCH = 100
CORNER = {"x": 0.0, "y": 0.0}


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Return whether a condition holds within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@contextmanager
def running_server(store: str, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start a server, and yield the address of its studies and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "truvar",
        "serve",
        "--store",
        store,
        "--port",
        str(port),
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "http" in process.stdout.readline()
        yield f"http://127.0.0.1:{port}/api/studies", process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
