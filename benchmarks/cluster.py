"""A Dask cluster on this machine: how busy its workers are kept, and a large domain sharded over
them against one
process that has it all.

Every run of the large domain has a process of its own, so that its peak of memory is its own; the
workers say theirs:

    python -m benchmarks.cluster 4000000 4 30          # 30 measurements on 4 workers
    python -m benchmarks.cluster 4000000 0 30          # ... in one process
    python -m benchmarks.cluster 2000000 4 4 200       # 4 measurements after 200 told unasked
    python -m benchmarks.cluster 2000000 4 4 200 3.0   # ... with at most 3 GB of data per process

A process that needs more than its limit ends with a MemoryError.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import truvar as tv
from benchmarks.measure import Row, at_most, median
from benchmarks.scaling import NOISE, _peak_gb, _study
from truvar.integrations.dask import connect
from truvar.integrations.sharded import Sharded
from truvar.models.kernels import named_kernel

POINTS = 4_000_000
WORKERS = 4
STEPS = 30


@dataclass(frozen=True)
class Run:
    """Seconds of a run per suggestion, `tell` included: by the wall clock, and processor time
    after the first one."""

    points: int
    workers: int  # 0: one process has it all
    steps: int
    first: float
    median: float
    slowest: float
    here_gb: float  # the peak of the study's own process
    worker_gb: float  # the peak of the worker that took most; 0 without
    here_cpu: float  # processor time of the study's own process, mean
    worker_cpu: float  # processor time of the worker that took most, mean; 0 without
    choices: list[int]


def rows(quick: bool) -> list[Row]:
    points, workers, steps = (400, 2, 4) if quick else (POINTS, WORKERS, STEPS)
    return [busy(quick), *sharded(points, workers, steps, quick)]


def busy(quick: bool) -> Row:
    """64 measurements that sleep, on 8 workers."""
    count, seconds = (8, 0.05) if quick else (64, 1.0)

    def sleep(point: dict[str, float]) -> float:
        import time

        time.sleep(seconds)
        return point["x"]

    domain = tv.Domain.grid(x=np.linspace(0, 1, 12), y=np.linspace(0, 1, 12))
    model: dict[str, Any] = {"kernel": named_kernel("rbf", 0.3), "mean": 0.0, "noise": 0.01}
    tv.Study(domain, tv.Maximize(), **model).run(
        lambda point: point["x"], steps=10
    )  # whatever is compiled is compiled
    workers = 2 if quick else 4
    with a_cluster(workers=workers, threads=workers // 2) as client:
        threads = sum(client.nthreads().values())
        start = time.perf_counter()
        tv.Study(domain, tv.Maximize(), **model).run(sleep, steps=count, executor=client)
        taken = time.perf_counter() - start
    ideal = count / threads * seconds
    what = f"{count} measurements of {seconds:g} s on {threads} Dask workers / ideal"
    return Row(
        "cluster-busy", what, taken / ideal, "x", at_most(1.3), f"{taken:.2f} s against {ideal:g} s"
    )


def sharded(points: int, workers: int, steps: int, here: bool) -> list[Row]:
    """A large domain on one process and on the workers."""
    one = measured(points, 0, steps, here)
    many = measured(points, workers, steps, here)
    same = sum(a == b for a, b in zip(one.choices, many.choices, strict=False))
    size = f"N={one.points}, t = {many.steps}"
    found = []
    for run, name, how in (
        (one, "one", "in one process"),
        (many, "sharded", f"on {workers} workers"),
    ):
        note = f"first {run.first:.2g} s, slowest {run.slowest:.2g} s"
        if run is many:
            note += f"; the same choice in {same} of {run.steps} steps"
        found.append(
            Row(f"cluster-step-{name}", f"suggestion, {size}, {how}", run.median, "s", None, note)
        )
        what = f"processor time of a suggestion, {size}, {how}"
        note = (
            f"of the study's process; of the busiest worker {run.worker_cpu:.2g} s"
            if run is many
            else ""
        )
        found.append(Row(f"cluster-cpu-{name}", what, run.here_cpu, "s", None, note))
    whole = 8e-9 * one.points * many.steps
    share = f"the factor is {whole:.2g} GB, {whole / max(workers, 1):.2g} GB a worker"
    peak = "peak of the process"
    found += [
        Row("cluster-memory-one", f"memory, {size}, in one process", one.here_gb, "GB", None, peak),
        Row(
            "cluster-memory-client",
            f"memory, {size}, of the study, sharded",
            many.here_gb,
            "GB",
            None,
            peak,
        ),
        Row(
            "cluster-memory-worker",
            f"memory, {size}, of a worker",
            many.worker_gb,
            "GB",
            None,
            share,
        ),
    ]
    return found


def measured(points: int, workers: int, steps: int, here: bool) -> Run:
    """A run in a process of its own, or `here`."""
    if here:
        return run(points, workers, steps)
    command = [sys.executable, "-m", "benchmarks.cluster", str(points), str(workers), str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    return Run(**json.loads(done.stdout))


def run(points: int, workers: int, steps: int, told: int = 0, limit_gb: float | None = None) -> Run:
    """The level set of the paper's synthetic function on a grid, after `told` measurements that
    were not asked for; no process may have more than `limit_gb` of data."""
    if limit_gb is not None:
        _limit_memory(limit_gb)  # processes that are started from here inherit it
    with ExitStack() as stack:
        client = stack.enter_context(a_cluster(workers)) if workers else None
        study, truth = _study(
            points, "grid", "level-set", "lazy" if client is None else Sharded(client)
        )
        rng = np.random.default_rng(0)
        taken = []
        choices = []
        before = (0.0, {})
        for index in rng.choice(len(study.domain), told, replace=False).tolist():
            study.tell(study.domain.point(index), float(truth[index]))
        while study.steps < told + steps:
            if len(taken) == 1:  # whatever is compiled is compiled
                before = (time.process_time(), _processor_times(client))
            start = time.perf_counter()
            try:
                suggestion = study.ask()
            except tv.Finished:
                break
            index = suggestion.index or 0
            study.tell(suggestion, float(truth[index] + np.sqrt(NOISE) * rng.standard_normal()))
            taken.append(time.perf_counter() - start)
            choices.append(index)
        here_cpu = (time.process_time() - before[0]) / (len(taken) - 1)
        after = _processor_times(client)
        worker_cpu = max((after[name] - before[1][name] for name in after), default=0.0) / (
            len(taken) - 1
        )
        worker_gb = 0.0 if client is None else max(client.run(_peak_gb).values())
        numbers = (
            taken[0],
            median(taken),
            max(taken[1:]),
            _peak_gb(),
            worker_gb,
            here_cpu,
            worker_cpu,
        )
        return Run(len(study.domain), workers, study.steps, *numbers, choices)


def _limit_memory(limit_gb: float) -> None:
    """Limit the data of this process and of those that it starts, each by itself."""
    size = int(limit_gb * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _processor_times(client: Any) -> dict[str, float]:
    """Return the processor time that every worker has used, by its address."""
    return {} if client is None else dict(client.run(time.process_time))


@contextmanager
def a_cluster(workers: int, threads: int = 1, direct: bool = True) -> Iterator[Any]:
    """A client of a scheduler and worker processes on loopback, as `dask worker` starts them."""
    import distributed

    with ExitStack() as stack:
        options = {
            "n_workers": 0,
            "dashboard_address": None,
            "host": "127.0.0.1",
            "silence_logs": 50,
        }
        local = stack.enter_context(distributed.LocalCluster(**options))
        command = [sys.executable, "-m", "distributed.cli.dask_worker", local.scheduler_address]
        command += [
            "--no-nanny",
            "--nthreads",
            str(threads),
            "--no-dashboard",
            "--memory-limit",
            "0",
        ]
        for _ in range(workers):
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        client = stack.enter_context(connect(local.scheduler_address, direct=direct))
        client.wait_for_workers(workers, timeout=120)
        yield client


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:5]]
    limits = [float(each) for each in sys.argv[5:6]]
    print(json.dumps(asdict(run(*numbers, *limits))))
