"""A Dask cluster on loopback: a scheduler, and worker processes as `dask worker` starts them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from truvar.integrations.executors import connect


@contextmanager
def cluster_of(workers: int, threads: int = 1) -> Iterator[Any]:
    """A client of the cluster. A task that kills its worker is not given to another."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with ExitStack() as stack:
        settings = {"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": "20s"}
        stack.enter_context(dask.config.set(settings))
        options = {"n_workers": 0, "dashboard_address": None, "host": "127.0.0.1", "silence_logs": 50}
        local = stack.enter_context(distributed.LocalCluster(**options))
        command = [sys.executable, "-m", "distributed.cli.dask_worker", local.scheduler_address]
        command += ["--no-nanny", "--nthreads", str(threads), "--no-dashboard", "--memory-limit", "0"]
        for _ in range(workers):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
        client = stack.enter_context(connect(local.scheduler_address))
        client.wait_for_workers(workers, timeout=120)
        yield client
