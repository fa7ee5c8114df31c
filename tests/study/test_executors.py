"""Runs on executors: threads, processes, loky, and a real Dask cluster of worker processes; some
of them are killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import ExecutorError, MeasurementFailedError
from truvar.integrations import dask

AXIS = np.linspace(0, 1, 12)


def a_study(**options: Any) -> tv.Study:
    domain = options.pop("domain", tv.Domain.grid(x=AXIS, y=AXIS))
    return tv.Study(
        domain, tv.Maximize(), **{"kernel": RBF(0.3), "mean": 0.0, "noise": 0.01, **options}
    )


def measuring(seconds: float = 0.0) -> Callable[[dict[str, float]], float]:
    """A function that takes its time. It is made here so that workers are sent it whole and need
    not import this."""

    def measure(point: dict[str, float]) -> float:
        import math
        import time

        time.sleep(seconds)
        return math.sin(5 * point["x"]) + math.cos(3 * point["y"])

    return measure


hill = measuring()


# -- pools
# --------------------------------------------------------------------------------------------------


def dies_at(point: dict[str, float]) -> float:
    """Takes its worker with it at one corner, which the study starts from."""
    if point["x"] == point["y"] == 0.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return point["x"] - point["y"]


def dies_once(point: dict[str, float]) -> float:
    return dying_once(os.environ["TRUVAR_TEST_FLAG"])(point)


def dying_once(flag: str) -> Callable[[dict[str, float]], float]:
    """Return `dies_once` as a closure, which loky is sent whole."""

    def measure(point: dict[str, float]) -> float:
        import os
        import signal

        if not os.path.exists(flag):
            with open(flag, "w", encoding="utf-8"):
                os.kill(os.getpid(), signal.SIGKILL)
        return point["x"] - point["y"]

    return measure


def process_pool() -> Executor:
    return ProcessPoolExecutor(2)


def loky_pool() -> Executor:
    from joblib.externals.loky import get_reusable_executor

    pool: Executor = get_reusable_executor(max_workers=2)
    return pool


@pytest.mark.parametrize("pool", [process_pool, loky_pool])
def test_a_pool_whose_process_died_is_replaced_and_no_measurement_is_lost(
    pool: Callable[[], Executor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUVAR_TEST_FLAG", str(tmp_path / "died"))
    study = a_study()
    with pool() as workers:
        f = dies_once if pool is process_pool else dying_once(os.environ["TRUVAR_TEST_FLAG"])
        result = study.run(f, steps=8, executor=workers)
    if pool is loky_pool:
        # the one in its place is shared: joblib would find it, and it is not of joblib's kind
        loky_pool().shutdown()
    assert result.steps == 8
    assert sorted(study.measurements["id"]) == list(range(1, 9))
    assert study.pending == []


def test_a_measurement_that_kills_its_process_is_found_out_and_set_aside() -> None:
    study = a_study(start={"x": 0.0, "y": 0.0})
    with (
        process_pool() as pool,
        pytest.warns(RuntimeWarning, match=r"'x': 0.0, 'y': 0.0.* failed 3 times"),
    ):
        result = study.run(dies_at, steps=6, executor=pool)
    assert result.reason == "step limit (6) reached (1 measurement failed)"
    assert sorted(study.measurements["id"]) == [
        2,
        3,
        4,
        5,
        6,
        7,
    ]  # its neighbour in the pool was not given up
    assert study.pending == []


def test_a_broken_executor_of_another_kind_ends_the_run_with_a_message() -> None:
    from concurrent.futures import BrokenExecutor

    class Broken(ThreadPoolExecutor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            raise BrokenExecutor("out of order")

    study = a_study()
    with (
        Broken(2) as pool,
        pytest.raises(ExecutorError, match=r"broke \(out of order\).*run again with a new one"),
    ):
        study.run(hill, steps=2, executor=pool)
    assert study.pending == []


def test_an_executor_that_is_shut_down_is_refused() -> None:
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    study = a_study()
    with pytest.raises(ExecutorError, match="takes no more work"):
        study.run(hill, steps=2, executor=pool)
    assert study.pending == []


class Bare:
    """An executor that says nothing of itself, and whose futures are not those of the standard
    library."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(8)
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def submit(self, f: Callable[..., Any], *arguments: Any) -> Any:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        future = self._pool.submit(f, *arguments)

        class Promise:
            result = future.result
            done = future.done
            cancel = future.cancel

            def add_done_callback(promise, call: Callable[[Any], None]) -> None:
                future.add_done_callback(lambda _: (self._leave(), call(promise)))

        return Promise()

    def _leave(self) -> None:
        with self._lock:
            self._now -= 1


def test_the_number_of_workers_is_asked_for_where_the_executor_does_not_say() -> None:
    executor = Bare()
    with pytest.raises(tv.TruvarError, match="workers=8"):
        a_study().run(hill, steps=3, executor=executor)
    study = a_study()
    assert study.run(measuring(0.05), steps=9, executor=executor, workers=3).steps == 9
    assert executor.most == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2}, "needs an executor"),
        ({"retries": -1}, "retries"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], said: str) -> None:
    executor = ThreadPoolExecutor(1) if "needs" not in said else None
    with pytest.raises(tv.TruvarError, match=said):
        a_study().run(hill, steps=3, executor=executor, **options)


# -- failures
# --------------------------------------------------------------------------------------------------


class Flaky:
    """Fails at every call whose number is among some, or at some points."""

    def __init__(self, calls: tuple[int, ...] = (), x: float | None = None) -> None:
        self.calls = calls
        self.x = x
        self.made = 0
        self._lock = threading.Lock()

    def __call__(self, point: dict[str, float]) -> float:
        with self._lock:
            self.made += 1
            number = self.made
        if number in self.calls or point["x"] == self.x:
            raise RuntimeError("the probe broke")
        return hill(point)


def test_a_measurement_that_fails_is_made_again() -> None:
    study = a_study()
    flaky = Flaky(calls=(2, 5))
    with ThreadPoolExecutor(1) as pool:
        study.run(flaky, steps=6, executor=pool)
    alone = a_study()
    alone.run(hill, steps=6)
    assert flaky.made == 8
    assert study.measurements["index"].tolist() == alone.measurements["index"].tolist()


@pytest.mark.parametrize("workers", [None, 2])
def test_what_fails_for_good_is_not_asked_for_again_and_leaves_nothing_pending(
    workers: int | None,
) -> None:
    study = a_study(start={"x": 0.0, "y": 0.0})
    flaky = Flaky(x=0.0)
    pool = None if workers is None else ThreadPoolExecutor(workers)
    with pytest.warns(RuntimeWarning, match="the probe broke"):
        result = study.run(flaky, steps=8, executor=pool, retries=0)
    failed = flaky.made - 8
    assert result.steps == 8
    assert failed >= 1
    assert f"({failed} measurement{'s' * (failed != 1)} failed)" in str(result.reason)
    assert len(study.failures) == failed
    assert study.pending == []


def test_a_value_that_is_no_number_counts_as_a_failure() -> None:
    study = a_study()
    values = iter([float("nan"), 1.0, 2.0])
    with ThreadPoolExecutor(1) as pool:
        assert study.run(lambda point: next(values), steps=2, executor=pool).steps == 2


def test_a_run_in_which_everything_fails_gives_up() -> None:
    study = a_study()
    flaky = Flaky(calls=tuple(range(5, 100)))
    with ThreadPoolExecutor(2) as pool, pytest.warns(RuntimeWarning, match="continues elsewhere"):  # noqa: SIM117
        with pytest.raises(
            MeasurementFailedError,
            match=r"10 measurements in a row failed.*the probe broke.*run again",
        ):
            study.run(flaky, steps=50, executor=pool)
    assert study.steps == 4
    assert study.pending == []


def test_what_is_measured_when_a_run_is_interrupted_is_told() -> None:
    both = threading.Barrier(2, timeout=20)

    def measure(point: dict[str, float]) -> float:
        both.wait()
        if threading.current_thread().name.endswith("_1"):
            time.sleep(0.2)
            raise KeyboardInterrupt
        return hill(point)

    study = a_study()
    with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
        study.run(measure, steps=2, executor=pool)
    assert study.steps == 1
    assert study.pending == []


def test_an_address_where_no_scheduler_is_gives_a_message() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(tv.TruvarError, match="`dask scheduler`"):
        dask.connect("tcp://127.0.0.1:9", timeout=0.5)


def test_without_dask_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(tv.TruvarError, match=r'pip install "truvar\[dask\]"'):
        dask.connect("tcp://127.0.0.1:9")
