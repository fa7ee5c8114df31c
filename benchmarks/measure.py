"""Clocks and rows: interleaved medians, one thread, and the table they end up in."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Target:
    """Value that a row should reach."""

    kind: Literal["at most", "at least"]
    value: float

    def met(self, measured: float) -> bool:
        return measured <= self.value if self.kind == "at most" else measured >= self.value

    def __str__(self) -> str:
        return f"{'<=' if self.kind == 'at most' else '>='} {self.value:g}"


@dataclass(frozen=True)
class Row:
    """One line of the table. `measured` None: it could not be measured here, and the note says
    why."""

    name: str
    what: str
    measured: float | None
    unit: str = ""
    target: Target | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.measured is None or self.target is None:
            return None
        return self.target.met(self.measured)

    def as_json(self) -> dict[str, Any]:
        target = None if self.target is None else str(self.target)
        return {**asdict(self), "target": target, "met": self.met}


def at_most(value: float) -> Target:
    return Target("at most", value)


def at_least(value: float) -> Target:
    return Target("at least", value)


# Processor time, so that what else the machine is doing counts less; on an idle machine it is the
# wall clock's, as all that is timed so runs in one thread. Where its steps are coarse (Windows) the
# wall clock is taken.
clock = (
    time.process_time
    if time.get_clock_info("process_time").resolution < 1e-5
    else time.perf_counter
)


class Stopwatch:
    """`with Stopwatch() as watch: ...`; then `watch.seconds`."""

    seconds = 0.0

    def __enter__(self) -> Stopwatch:
        self._start = clock()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = clock() - self._start


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection while the clock runs."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, for truvar, for the linear algebra of NumPy and SciPy, and for PyTorch where
    it is loaded."""
    from threadpoolctl import threadpool_limits

    before = os.environ.get("TRUVAR_THREADS")
    os.environ["TRUVAR_THREADS"] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        if before is None:
            del os.environ["TRUVAR_THREADS"]
        else:
            os.environ["TRUVAR_THREADS"] = before


def machine() -> dict[str, Any]:
    """Return a description of the machine and the library versions."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "torch", "gpytorch", "botorch"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        **versions,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, OSError, ValueError):
        return None
