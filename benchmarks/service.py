"""The service under load: clients that ask, tell and look, all at once, on loopback; nothing may be lost or doubled.

Every client works in a loop on one of a few studies: it asks, tells the value (a value that nobody else tells, and now
and then twice, as after an answer that was lost), and looks where the study stands. Afterwards the store is read: each
value that was acknowledged must stand there once, and no other.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.measure import Row, at_most

# All values are next to the threshold, so that nothing is ever settled and the study does not end.
PROBLEM = """
[domain]
grid = {x = [0, 1, 20], y = [0, 1, 20]}
[goal]
level_set = 0.0
[model]
kernel = "matern52"
lengthscales = [0.2, 0.2]
variance = 1.0
mean = 0.0
[noise]
variance = 0.1
[policy]
name = "straddle"
"""


@dataclass
class Load:
    """Results of a load test."""

    seconds: float = 0.0
    latencies: dict[str, list[float]] = field(default_factory=dict)  # by kind of request
    acknowledged: dict[str, list[float]] = field(default_factory=dict)  # values by study
    failures: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return sum(map(len, self.latencies.values()))

    def p99(self, *kinds: str) -> float:
        """In milliseconds, of these kinds or all."""
        chosen = [t for kind, times in self.latencies.items() if not kinds or kind in kinds for t in times]
        return 1000 * float(np.percentile(chosen, 99))


def rows(quick: bool) -> list[Row]:
    clients, seconds = (10, 2.0) if quick else (50, 30.0)
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/load.db"
        with server(store) as url:
            load = run_load(url, clients, seconds)
        lost, doubled = lost_and_doubled(store, load)
    what = f"{clients} clients for {seconds:g} s on loopback"
    count = sum(map(len, load.acknowledged.values()))
    note = f"{len(load.failures)} failures" if load.failures else f"{load.requests} requests, {count} values told"
    return [
        Row("service-lost", f"{what}: observations lost", lost, "", at_most(0), note),
        Row("service-doubled", f"{what}: observations doubled", doubled, "", at_most(0)),
        Row("service-rate", f"{what}: requests per second", load.requests / load.seconds, "/s"),
        Row("service-p99", f"{what}: 99th percentile of all requests", load.p99(), "ms"),
        Row("service-p99-tell", f"{what}: of telling", load.p99("tell"), "ms"),
        Row("service-p99-look", f"{what}: of looking", load.p99("status"), "ms"),
    ]


@contextmanager
def server(store: str, *options: str, environment: dict[str, str] | None = None) -> Iterator[str]:
    """A server process; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "truvar", "serve", "--store", store, "--port", str(port), *options]
    process = subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {process.stderr.read() if process.stderr else ''}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the server did not start within two minutes")


def run_load(url: str, clients: int, seconds: float, studies: int = 5) -> Load:
    """Clients in one process, each on a connection of its own."""
    return asyncio.run(_run_load(url, clients, seconds, studies))


async def _run_load(url: str, clients: int, seconds: float, studies: int) -> Load:
    import httpx

    load = Load()
    names = [f"load {k}" for k in range(studies)]
    connections = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=f"{url}/api", timeout=120, limits=connections) as http:
        for name in names:
            (await http.post("/studies", json={"name": name, "problem": PROBLEM})).raise_for_status()
            first = (await http.post(f"/studies/{name}/ask", json={})).raise_for_status().json()["suggestions"][0]
            (await http.post(f"/studies/{name}/tell", json={"id": first["id"], "y": -1e-9})).raise_for_status()
            load.acknowledged[name] = [-1e-9]  # compiled and opened before the clock runs
        start = time.perf_counter()
        end = start + seconds
        await asyncio.gather(*(_work(http, names[k % studies], k, end, load) for k in range(clients)))
        load.seconds = time.perf_counter() - start
    return load


async def _work(http: Any, name: str, client: int, end: float, load: Load) -> None:
    """One client, until the end; at least one value is told."""

    async def timed(kind: str, method: str, body: Any = None) -> Any:
        began = time.perf_counter()
        answer = await http.request(method, f"/studies/{name}/{kind}", json=body)
        load.latencies.setdefault(kind, []).append(time.perf_counter() - began)
        if answer.is_error:
            load.failures.append(f"{kind}: {answer.status_code} {answer.text}")
            return None
        return answer.json()

    turn = 0
    while turn == 0 or time.perf_counter() < end:
        turn += 1
        asked = await timed("ask", "POST", {"n": 1})
        if asked is None:
            return
        value = 1e-9 * (client + turn / 1e6)  # nobody else's
        body = {"id": asked["suggestions"][0]["id"], "y": value}
        if await timed("tell", "POST", body) is None:
            return
        load.acknowledged[name].append(value)
        if turn % 5 == 0:
            await timed("tell", "POST", body)  # as if the answer had been lost
        await timed("status", "GET")


def lost_and_doubled(store: str, load: Load) -> tuple[int, int]:
    """Return how many acknowledged values the store lacks, and how many it has twice."""
    import truvar as tv

    lost = doubled = 0
    for name, values in load.acknowledged.items():
        kept = Counter(tv.load(store, name).measurements["value"])
        wanted = Counter(values)
        lost += (wanted - kept).total()
        doubled += (kept - wanted).total()
    return lost, doubled


if __name__ == "__main__":
    for row in rows("--quick" in sys.argv):
        print(f"{row.what}: {row.measured} {row.unit} {row.note}")
