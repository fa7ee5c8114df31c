"""The service under load: clients that ask, tell and look, all at once, on loopback; nothing may be lost or doubled.

Every client works in a loop on one of a few studies: it asks, tells the value (a value that nobody else tells, and now
and then twice, as after an answer that was lost), and looks where the study stands. Afterwards the store is read: each
value that was acknowledged must stand there once, and no other.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.measure import Row, at_least, at_most

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
        return self.percentile(99, *kinds)

    def percentile(self, percent: float, *kinds: str) -> float:
        """In milliseconds, of these kinds or all."""
        chosen = [t for kind, times in self.latencies.items() if not kinds or kind in kinds for t in times]
        return 1000 * float(np.percentile(chosen, percent))


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
    median = load.percentile(50)
    return [
        Row("service-lost", f"{what}: observations lost", lost, "", at_most(0), note),
        Row("service-doubled", f"{what}: observations doubled", doubled, "", at_most(0)),
        Row("service-rate", f"{what}: requests per second", load.requests / load.seconds, "/s"),
        Row("service-p99", f"{what}: 99th percentile of all requests", load.p99(), "ms"),
        Row("service-p99-tell", f"{what}: of telling", load.p99("tell"), "ms"),
        Row("service-p99-look", f"{what}: of looking", load.p99("status"), "ms"),
        Row("service-spread", f"{what}: 99th percentile / median", load.p99() / median, "", at_most(5)),
        *peer_rows(clients, seconds, load.requests / load.seconds),
    ]


def peer_rows(clients: int, seconds: float, rate: float) -> list[Row]:
    """Optuna's relational storage under the same load, in one process and without HTTP, which truvar's clients use."""
    what = f"Optuna's RDBStorage (SQLite), {clients} threads for {seconds:g} s without HTTP"
    if importlib.util.find_spec("optuna") is None:
        rows = [Row("service-optuna", f"{what}: requests per second", None, "/s", None, "Optuna is not installed")]
        return [*rows, Row("service-optuna-ratio", "truvar over HTTP / Optuna", None, "", at_least(1), "not measured")]
    with tempfile.TemporaryDirectory() as folder:
        load = run_optuna(f"sqlite:///{folder}/optuna.db", clients, seconds)
    theirs = load.requests / load.seconds
    note = f"{load.requests} requests, {len(load.failures)} threads failed, p99 {load.p99():.0f} ms"
    return [
        Row("service-optuna", f"{what}: requests per second", theirs, "/s", None, note),
        Row("service-optuna-ratio", "truvar over HTTP / Optuna", rate / theirs, "", at_least(1)),
    ]


def run_optuna(store: str, clients: int, seconds: float, studies: int = 5) -> Load:
    """Ask, tell and look with Optuna: its default sampler on a grid of 20 by 20, as many studies and clients."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    load = Load(latencies={"ask": [], "tell": [], "status": []})
    values = [k / 19 for k in range(20)]
    space = {name: optuna.distributions.CategoricalDistribution(values) for name in ("x", "y")}
    storage = optuna.storages.RDBStorage(store, engine_kwargs={"connect_args": {"timeout": 60}})
    opened = [optuna.create_study(storage=storage, study_name=f"load {k}") for k in range(studies)]
    start = time.perf_counter()

    def work(client: int) -> None:
        study = opened[client % studies]
        turn = 0
        try:
            while turn == 0 or time.perf_counter() < start + seconds:
                turn += 1
                began = time.perf_counter()
                trial = study.ask(space)
                asked = time.perf_counter()
                study.tell(trial, 1e-9 * (client + turn / 1e6))
                told = time.perf_counter()
                assert study.best_trial is not None
                load.latencies["ask"].append(asked - began)
                load.latencies["tell"].append(told - asked)
                load.latencies["status"].append(time.perf_counter() - told)
        except Exception as error:  # the database may be locked by others for too long
            load.failures.append(repr(error))

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    load.seconds = time.perf_counter() - start
    return load


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
