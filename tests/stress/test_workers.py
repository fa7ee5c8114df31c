"""Many workers on one study, and workers that die: nothing is lost, nothing is counted twice."""

import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.problems import assert_same

import truvar as tv

# Processes that start from one that has the imports behind it; none of them shares a connection
# with the tests.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.stress.test_workers", "truvar.report", "truvar.cli"])

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 8), y=np.linspace(0, 1, 5))
OPTIONS: dict[str, Any] = {
    "kernel": RBF(0.4),
    "mean": 0.0,
    "noise": 4.0,
    "cost": tv.Cost(base=1.0, travel={"x": 0.3}),
}


def truth(point: dict[str, float]) -> float:
    return float(np.sin(6 * point["x"]) * np.cos(3 * point["y"]))


def work(url: str, rounds: int, done: Any) -> None:
    study = tv.load(url, "lake", author=f"worker {os.getpid()}")
    ids = []
    for _ in range(rounds):
        suggestion = study.ask(lease=3600)
        ids.append(suggestion.id)
        study.tell(suggestion, truth(suggestion.point))
    done.put(ids)


def test_eight_processes_of_fifty_rounds_lose_nothing_and_count_nothing_twice(url: str) -> None:
    tv.Study(DOMAIN, tv.LevelSet(0.3, monotone=False), **OPTIONS, store=url, name="lake")
    done = PROCESSES.Queue()
    workers = [PROCESSES.Process(target=work, args=(url, 50, done)) for _ in range(8)]
    for worker in workers:
        worker.start()
    ids = [done.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert [len(each) for each in ids] == [50] * 8
    assert sorted(id_ for each in ids for id_ in each) == list(range(1, 401))
    study = tv.load(url, "lake")
    assert sorted(study.measurements["id"]) == list(range(1, 401))
    assert study.pending == []
    events = study.events
    assert events["number"].tolist() == list(range(1, 802))
    assert events["kind"].value_counts().to_dict() == {"created": 1, "asked": 400, "told": 400}
    assert events["who"].nunique() == 9
    assert tv.studies(url)["steps"].tolist() == [400]
    measurements = study.measurements
    assert measurements["value"].tolist() == [
        truth(DOMAIN.point(index)) for index in measurements["index"]
    ]
    assert_same(study, tv.Study.from_json(study.to_json()))


def run_until_killed(url: str, steps: int, most: int, signs: Any) -> None:
    """A run that measures so many places, and is in the middle of one more until it is killed. It
    gives a sign when it
    begins, and at every measurement."""
    left = most

    def measure(point: dict[str, float]) -> float:
        nonlocal left
        signs.send("measuring")
        if left == 0:
            time.sleep(600)
        left -= 1
        return truth(point)

    signs.send("begun")
    tv.load(url, "lake").run(measure, steps=steps, resume=True)


def kill(worker: Any) -> None:
    """Kills a process that is alive and at work."""
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL  # it had not ended before, well or badly


def test_killed_at_twenty_moments_a_run_loses_no_value_and_ends_as_one_undisturbed(
    url: str,
) -> None:
    steps = 60
    tv.Study(DOMAIN, tv.LevelSet(0.3), **OPTIONS, store=url, name="lake")
    rng = random.Random(11)
    steps_before = 0
    for _ in range(20):
        most = rng.randint(0, 4)
        ours, theirs = PROCESSES.Pipe(duplex=False)
        worker = PROCESSES.Process(target=run_until_killed, args=(url, steps, most, theirs))
        worker.start()
        signs = rng.randint(1, most + 2)
        for _ in range(signs):
            assert ours.poll(60)
            ours.recv()
        time.sleep(rng.uniform(0.0, 0.02))
        kill(worker)
        study = tv.load(url, "lake")
        assert (
            steps_before + max(signs - 2, 0) <= study.steps <= steps_before + most
        )  # nothing is lost
        assert len(study.pending) <= 1
        assert tv.studies(url)["steps"].tolist() == [study.steps]
        steps_before = study.steps
    assert 0 < steps_before < steps
    tv.load(url, "lake").run(truth, steps=steps, resume=True)
    undisturbed = tv.Study(DOMAIN, tv.LevelSet(0.3), **OPTIONS)
    undisturbed.run(truth, steps=steps)
    assert_same(tv.load(url, "lake"), undisturbed)


# Measures as many places as the file $MOST says, and is then in the middle of one more as long as
# that file is there.
PROGRAM = r"""#!/bin/sh
echo "$*" >> "$MOST.calls"
[ ! -e "$MOST" ] || [ $(wc -l < "$MOST.calls") -le $(cat "$MOST") ] || while [ -e "$MOST" ]; do sleep 0.1; done
awk "BEGIN {printf \"%.17g\", sin(6 * $1) * cos(3 * $2)}"
"""


def truvar(arguments: list[str], said: Path, most: Path) -> None:
    """The command line, in a process of its own."""
    from truvar.cli import main

    os.environ["MOST"] = str(most)
    with said.open("a") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        sys.exit(main(arguments))


def test_truvar_run_killed_at_twenty_moments_loses_no_value_and_ends_as_one_undisturbed(
    url: str, tmp_path: Path
) -> None:
    steps = 40
    said = tmp_path / "said"
    program = tmp_path / "measure"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    command = [
        "run",
        url,
        "--name",
        "lake",
        "--command",
        f"{program} {{x}} {{y}}",
        "--steps",
        str(steps),
        "--quiet",
    ]
    tv.Study(DOMAIN, tv.LevelSet(0.3), **OPTIONS, store=url, name="lake")
    rng = random.Random(5)
    steps_before = 0
    for number in range(20):
        most = tmp_path / f"most {number}"
        allowed = rng.randint(0, 2)
        most.write_text(str(allowed))
        worker = PROCESSES.Process(target=truvar, args=(command, said, most))
        worker.start()
        calls = rng.randint(0, allowed + 1)
        wait_for_calls(Path(f"{most}.calls"), calls, worker)
        time.sleep(rng.uniform(0.0, 0.05))
        kill(worker)
        most.unlink()  # the program of the dead run ends, unheard
        study = tv.load(url, "lake")
        assert steps_before + max(calls - 1, 0) <= study.steps <= steps_before + allowed
        assert len(study.pending) <= 1
        steps_before = study.steps
    assert 0 < steps_before < steps
    last = PROCESSES.Process(target=truvar, args=(command, said, tmp_path / "no end"))
    last.start()
    last.join(300)
    assert last.exitcode == 0, said.read_text()
    study = tv.load(url, "lake")
    undisturbed = tv.Study(DOMAIN, tv.LevelSet(0.3), **OPTIONS)
    values = dict(zip(study.measurements["index"], study.measurements["value"], strict=True))
    undisturbed.run(lambda point: values[DOMAIN.locate(point)[0]], steps=steps)
    assert_same(study, undisturbed)


def wait_for_calls(calls: Path, count: int, worker: Any) -> None:
    """Until the program was called so often."""
    while count > 0 and not (calls.exists() and calls.read_text().count("\n") >= count):
        assert worker.is_alive()
        time.sleep(0.01)


def ask_and_die(url: str) -> None:
    tv.load(url, "lake").ask(2, lease=0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_worker_that_died_had_asked_for_is_free_again(url: str) -> None:
    study = tv.Study(DOMAIN, tv.LevelSet(0.3), **OPTIONS, store=url, name="lake")
    worker = PROCESSES.Process(target=ask_and_die, args=(url,))
    worker.start()
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    study.refresh()
    assert [suggestion.id for suggestion in study.pending] == [1, 2]
    first = study.pending[0]
    time.sleep(0.6)
    assert study.ask().point == first.point
    assert [suggestion.id for suggestion in study.pending] == [3]


def create(url: str, name: str, done: Any) -> None:
    try:
        tv.Study(DOMAIN, tv.LevelSet(0.3), **OPTIONS, store=url, name=name)
    except tv.TruvarError as error:
        done.put(str(error))
    else:
        done.put("created")


@pytest.mark.parametrize("names", [["lake"] * 4, ["a", "b", "c", "d"]])
def test_studies_created_at_the_same_time_in_an_empty_store(url: str, names: list[str]) -> None:
    done = PROCESSES.Queue()
    workers = [PROCESSES.Process(target=create, args=(url, name, done)) for name in names]
    for worker in workers:
        worker.start()
    said = sorted(done.get(timeout=120)[:40] for _ in workers)
    for worker in workers:
        worker.join(60)
    assert said.count("created") == len(set(names))
    assert tv.studies(url)["name"].tolist() == sorted(set(names))
