"""A worker that is suspended (SIGSTOP) within a transaction of PostgreSQL holds the others up for a
limited time only.

`TRUVAR_IDLE_SECONDS=40` tests the time-out that is in use; the default here is shorter.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from tests.helpers.problems import KINDS

import truvar as tv
from truvar.storage._postgres import IDLE_TIMEOUT, LOCK_TIMEOUT

IDLE_SECONDS = int(os.environ.get("TRUVAR_IDLE_SECONDS", "2"))
MAX_WAIT = 60.0  # seconds

# The worker is suspended where it holds the lock, and tells its value again after it was told that
# nothing was stored.
WORKER = f"""
import sys
import truvar as tv
from truvar.exceptions import StorageError
from truvar.storage import _postgres
_postgres.IDLE_TIMEOUT = {IDLE_SECONDS}
_postgres.ALIVE_SECONDS = {IDLE_SECONDS} / 4
study = tv.load(sys.argv[1], "lake")
place = study.domain.point(3)
try:
    with study.transaction():
        study.tell(place, 0.25)
        print("locked", flush=True)
        sys.stdin.readline()
except StorageError as error:
    print("refused:", error, flush=True)
    study.tell(place, 0.25)
print("done", study.steps, flush=True)
"""


@pytest.fixture
def database(postgres: str) -> str:
    """An empty database of a real PostgreSQL server."""
    url = f"{postgres}/postgres"
    with psycopg.connect(url, autocommit=True) as connection:
        tables = "truvar_events, truvar_studies, truvar_schema, truvar_tokens, truvar_deletions"
        connection.execute(f"DROP TABLE IF EXISTS {tables}")
    return url


@pytest.mark.alone
def test_a_suspended_worker_does_not_hold_others_for_more_than_a_minute(
    database: str, tmp_path: Path
) -> None:
    study = KINDS["level set with travel"].study(store=database, name="lake")
    assert study.steps == 0
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    command = [sys.executable, str(script), database]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == "locked\n"
        time.sleep(1.5 * IDLE_SECONDS)  # a worker that lives keeps its lock, however long it takes
        worker.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        study.tell(study.domain.point(0), 0.5)
        waited = time.monotonic() - began
        worker.send_signal(signal.SIGCONT)
        worker.stdin.write("\n")
        worker.stdin.flush()
        refused = worker.stdout.readline()
        done = worker.stdout.readline()
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.wait()
        worker.stdin.close()
        worker.stdout.close()
    print(f"others waited for {waited:.1f} s")
    assert waited < min(MAX_WAIT, IDLE_SECONDS + 15)
    assert refused.startswith("refused: ")  # the worker held its lock until it was taken away
    assert done == "done 2\n"
    assert tv.load(database, "lake").measurements["value"].tolist() == [0.5, 0.25]


def test_the_time_outs_in_use_leave_others_less_than_a_minute() -> None:
    assert IDLE_TIMEOUT < LOCK_TIMEOUT <= MAX_WAIT
