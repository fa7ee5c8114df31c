"""A server excludes its modules from garbage collection before it takes requests: a collection
stops all threads."""

import socket
import subprocess
import sys

import pytest

pytest.importorskip("uvicorn", reason="needs truvar[service]")

# In the place of the loop that answers requests, look at what the garbage collector would look at.
SCRIPT = """
import gc
import sys

import uvicorn

from truvar.service.server import serve


def count_objects(self, sockets):
    from truvar.study.study import Study

    excluded = gc.get_freeze_count()
    watched = len(gc.get_objects())
    gc.unfreeze()
    studies = sum(isinstance(each, Study) for each in gc.get_objects())
    print(excluded, watched, studies)


uvicorn.Server.run = count_objects
serve(sys.argv[1], port=int(sys.argv[2]))
"""


def test_modules_are_excluded_from_garbage_collection_and_no_study_is(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SCRIPT, f"sqlite:///{tmp_path}/s.db", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    excluded, watched, studies = map(int, done.stdout.split())
    assert excluded > 100_000
    assert watched < 0.1 * excluded
    assert studies == 0
