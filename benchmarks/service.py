"""The service under load: clients that ask, tell and look, all at once, on loopback; nothing may be
lost or doubled.

Every client works in a loop on one of a few studies: it asks, tells the value (a value that nobody
else tells, and now and then twice, as after an answer that was lost), and looks where the study
stands. Afterwards the store is read: each value that was acknowledged must stand there once, and no
other.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from benchmarks.measure import Row, Target, at_least, at_most

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
    processor_seconds: float = 0.0  # of clients and server

    @property
    def requests(self) -> int:
        return sum(map(len, self.latencies.values()))

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    @property
    def spread(self) -> float:
        """The 99th percentile of the times in units of the median."""
        return self.p99() / self.percentile(50)

    @property
    def processor_time(self) -> float:
        """Of clients and server for each request, in milliseconds."""
        return 1000 * self.processor_seconds / self.requests

    def p99(self, *kinds: str) -> float:
        """In milliseconds, of these kinds or all."""
        return self.percentile(99, *kinds)

    def percentile(self, percent: float, *kinds: str) -> float:
        """In milliseconds, of these kinds or all."""
        chosen = [
            t for kind, times in self.latencies.items() if not kinds or kind in kinds for t in times
        ]
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
    note = (
        f"{len(load.failures)} failures"
        if load.failures
        else f"{load.requests} requests, {count} values told"
    )
    found = [
        Row("service-lost", f"{what}: observations lost", lost, "", at_most(0), note),
        Row("service-doubled", f"{what}: observations doubled", doubled, "", at_most(0)),
        Row("service-rate", f"{what}: requests per second", load.rate, "/s"),
        Row("service-p99", f"{what}: 99th percentile of all requests", load.p99(), "ms"),
        Row("service-p99-tell", f"{what}: of telling", load.p99("tell"), "ms"),
        Row("service-p99-look", f"{what}: of looking", load.p99("status"), "ms"),
    ]
    for database in ("sqlite", "postgresql"):
        with empty_database(database) as empty:
            found += compared_rows(database, empty, clients, seconds)
    return found


def compared_rows(database: str, store: str | None, clients: int, seconds: float) -> list[Row]:
    """Ask and tell, over HTTP and with Optuna through its gRPC proxy, both on an empty store of
    the same kind."""
    what = f"{clients} clients ask and tell for {seconds:g} s, {database}"
    ours: Load | None = None
    theirs: Load | None = None
    if store is not None:
        with server_process(store) as (url, process):
            ours = run_load(url, clients, seconds, looks=False, server_id=process.pid)
        with empty_database(database) as peer_store:
            theirs = run_optuna_proxy(str(peer_store), clients, seconds)
    missing = (
        "set TRUVAR_POSTGRES to the URL of a server" if ours is None else "needs Optuna and grpcio"
    )
    ratio = None if ours is None or theirs is None else ours.rate / theirs.rate
    key = f"service-{database}"
    return [
        _load_row(f"{key}-rate", f"{what}: requests per second", ours, "rate", missing),
        _load_row(
            f"{key}-spread",
            f"{what}: 99th percentile / median",
            ours,
            "spread",
            missing,
            at_most(5),
        ),
        _load_row(
            f"{key}-processor",
            f"{what}: processor time per request",
            ours,
            "processor_time",
            missing,
        ),
        _load_row(
            f"{key}-optuna",
            f"{what}: Optuna with gRPC, requests per second",
            theirs,
            "rate",
            missing,
        ),
        _load_row(
            f"{key}-optuna-spread",
            f"{what}: Optuna, 99th percentile / median",
            theirs,
            "spread",
            missing,
        ),
        _load_row(
            f"{key}-optuna-processor",
            f"{what}: Optuna, processor time",
            theirs,
            "processor_time",
            missing,
        ),
        Row(
            f"{key}-ratio",
            f"{what}: truvar / Optuna with gRPC",
            ratio,
            "",
            at_least(1),
            missing * (ratio is None),
        ),
    ]


UNITS = {"rate": "/s", "spread": "", "processor_time": "ms"}


def _load_row(
    name: str, what: str, load: Load | None, figure: str, missing: str, target: Target | None = None
) -> Row:
    """Return the row of one figure of a load test, which may not have been made."""
    if load is None:
        return Row(name, what, None, UNITS[figure], target, missing)
    note = f"{len(load.failures)} failures, median {load.percentile(50):.0f} ms, p99 {load.p99():.0f} ms"
    return Row(name, what, getattr(load, figure), UNITS[figure], target, note)


@contextmanager
def empty_database(kind: str) -> Iterator[str | None]:
    """Yield the URL of an empty store; None if there is no PostgreSQL server."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/empty.db"
        return
    address = os.environ.get("TRUVAR_POSTGRES")
    if not address:
        yield None
        return
    import psycopg

    name = f"truvar_bench_{uuid.uuid4().hex}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{address}/{name}"
    finally:
        with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


OPTUNA_SERVER = """
import sys
import optuna
store = sys.argv[1].replace("postgresql:", "postgresql+psycopg:")
arguments = {"connect_args": {"timeout": 60}} if store.startswith("sqlite") else {}
storage = optuna.storages.RDBStorage(store, engine_kwargs=arguments)
optuna.storages.run_grpc_proxy_server(storage, host="127.0.0.1", port=int(sys.argv[2]))
"""


def run_optuna_proxy(store: str, clients: int, seconds: float, studies: int = 5) -> Load | None:
    """Ask and tell with Optuna, whose relational storage is behind its gRPC proxy; None if it is
    not installed.

    The default sampler works on a grid of 20 by 20, in the process of the clients; as many studies
    and clients.
    """
    if importlib.util.find_spec("optuna") is None or importlib.util.find_spec("grpc") is None:
        return None
    port = _free_port()
    command = [sys.executable, "-c", OPTUNA_SERVER, store, str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _wait_for(port, process)
        return _load_optuna(port, process.pid, clients, seconds, studies)
    finally:
        _end(process)


def _load_optuna(port: int, server_id: int, clients: int, seconds: float, studies: int) -> Load:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    load = Load(latencies={"ask": [], "tell": []})
    values = [k / 19 for k in range(20)]
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.CategoricalDistribution(values) for name in ("x", "y")
    }
    storages = [
        optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port) for _ in range(studies)
    ]
    opened = [
        optuna.create_study(storage=each, study_name=f"load {k}") for k, each in enumerate(storages)
    ]
    before = time.process_time() + processor_time(server_id)
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
                load.latencies["ask"].append(asked - began)
                load.latencies["tell"].append(time.perf_counter() - asked)
        except Exception as error:  # the database may be locked by others for too long
            load.failures.append(repr(error))

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    load.seconds = time.perf_counter() - start
    load.processor_seconds = time.process_time() + processor_time(server_id) - before
    return load


def processor_time(process_id: int) -> float:
    """Return the processor time of another process so far, in seconds."""
    with open(f"/proc/{process_id}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(store: str, *options: str, environment: dict[str, str] | None = None) -> Iterator[str]:
    """A server process; yields its address."""
    with server_process(store, *options, environment=environment) as (url, _):
        yield url


@contextmanager
def server_process(
    store: str, *options: str, environment: dict[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server process; yields its address and the process."""
    port = _free_port()
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
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}", process
    finally:
        _end(process)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _end(process: subprocess.Popen[str]) -> None:
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
            raise RuntimeError(
                f"the server ended: {process.stderr.read() if process.stderr else ''}"
            )
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the server did not start within two minutes")


def run_load(
    url: str,
    clients: int,
    seconds: float,
    studies: int = 5,
    *,
    looks: bool = True,
    server_id: int | None = None,
) -> Load:
    """Clients in one process, each on a connection of its own, which ask, tell and, with
    `looks`, read the status."""
    before = time.process_time() + (processor_time(server_id) if server_id else 0.0)
    load = asyncio.run(_run_load(url, clients, seconds, studies, looks))
    load.processor_seconds = (
        time.process_time() + (processor_time(server_id) if server_id else 0.0) - before
    )
    return load


class Connection:
    """One connection of a client, which is kept. It costs the machine little, so that the server
    can have it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = (
            f"{method} /api{quote(path)} HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        )
        self._writer.write("\r\n".join((*lines, "", "")).encode() + content)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        length = next(
            int(line.partition(":")[2]) for line in head if line.startswith("content-length:")
        )
        return int(head[0].split()[1]), json.loads(await self._reader.readexactly(length))

    async def checked(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer that must not be an error."""
        status, answer = await self.request(method, path, body)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def close(self) -> None:
        self._writer.close()


async def _run_load(url: str, clients: int, seconds: float, studies: int, looks: bool) -> Load:
    load = Load()
    names = [f"load {k}" for k in range(studies)]
    port = int(url.rpartition(":")[2])
    connections = [
        Connection(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))
        for _ in range(clients)
    ]
    http = connections[0]
    for name in names:
        await http.checked("POST", "/studies", {"name": name, "problem": PROBLEM})
        for value in (-1e-9, -2e-9):  # compiled and opened before the clock runs
            first = (await http.checked("POST", f"/studies/{name}/ask", {}))["suggestions"][0]
            await http.checked("POST", f"/studies/{name}/tell", {"id": first["id"], "y": value})
            load.acknowledged.setdefault(name, []).append(value)
    start = time.perf_counter()
    end = start + seconds
    await asyncio.gather(
        *(
            _work(each, names[k % studies], k, end, load, looks)
            for k, each in enumerate(connections)
        )
    )
    load.seconds = time.perf_counter() - start
    for each in connections:
        each.close()
    return load


async def _work(
    http: Connection, name: str, client: int, end: float, load: Load, looks: bool
) -> None:
    """One client, until the end; at least one value is told."""

    async def timed(kind: str, method: str, body: Any = None) -> Any:
        began = time.perf_counter()
        status, answer = await http.request(method, f"/studies/{name}/{kind}", body)
        load.latencies.setdefault(kind, []).append(time.perf_counter() - began)
        if status >= 400:
            load.failures.append(f"{kind}: {status} {answer}")
            return None
        return answer

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
        if looks:
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
