"""A real terminal, for what is shown only there."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios

HIDDEN = (
    "NO_COLOR",
    "COLUMNS",
    "TRUVAR_STORE",
)  # of the environment: what would change what is shown


def in_terminal(
    words: list[str],
    columns: int,
    piped: bool = False,
    answers: tuple[str, ...] = (),
    **environment: str,
) -> tuple[int, str, str]:
    """Exit code, stdout and what the terminal was sent; `piped`: stdout is a pipe, and only
    stderr the terminal; `answers` are typed, one line each."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    env = {**kept, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment}
    out = subprocess.PIPE if piped else theirs
    with subprocess.Popen(
        words, stdin=theirs, stdout=out, stderr=theirs, env=env, text=True
    ) as process:
        os.close(theirs)
        for line in answers:
            os.write(ours, f"{line}\n".encode())
        sent = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # Linux says EIO when the other end is closed
                break
            if not chunk:
                break
            sent += chunk
        printed = process.stdout.read() if process.stdout is not None else ""
    os.close(ours)
    return process.returncode, printed, sent.decode()
