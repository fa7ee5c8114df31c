"""An engineer who tunes a model: a problem file, a training program, interruptions, Python, Excel.

The program of the terminal fails for some configurations, and stops the run twice: once as Ctrl-C
does, once as a crash of the machine would.
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.helpers.terminal import in_terminal

import truvar as tv
from truvar.study.stored import load

JARGON = r"\bregime\b|\bepsilon\b|ε|\bh = |posterior|\bengine\b|[Ll]emma|[Tt]heorem|Traceback"
INTERRUPTED = 130
STEPS = 16
RANDOM_SEED = 0  # of the random configurations that the study is compared with

PROBLEM = f"""
name = "digits"
quantity = "accuracy"

[domain]
box = {{lr = {{log = [1e-5, 1e-1]}}, depth = {{integer = [1, 10]}}, solver = ["adam", "sgd", "lbfgs"]}}
representers = 400

[goal]
maximize = true

[noise]
sd = 0.005

[cost]
learned = true
prior = 10

[run]
steps = {STEPS}
"""
TRAIN = """
import os, signal, sys
from pathlib import Path
from accuracy import train

started = Path("started")
count = len(started.read_text()) + 1 if started.exists() else 1
started.write_text("x" * count)
if count in (5, 9):
    os.kill(os.getppid(), signal.SIGINT if count == 5 else signal.SIGKILL)
print(*train(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
"""
ACCURACY = '''
import math

def train(lr, depth, solver):
    """Return the accuracy and the minutes that the training took."""
    if lr > 1e-2 and solver != "adam":
        raise SystemExit("the loss is not a number")
    bonus = {"adam": 0.0, "sgd": -0.05, "lbfgs": -0.1}[solver]
    value = 0.9 + bonus - 0.02 * (math.log10(lr) + 3) ** 2 - 0.004 * (depth - 6) ** 2
    return round(value, 4), 5 + 2 * depth
'''


def train(point: dict) -> tuple[float, float]:
    """Return the accuracy and the minutes of a configuration; some fail."""
    namespace: dict = {}
    exec(ACCURACY, namespace)
    try:
        return namespace["train"](point["lr"], point["depth"], point["solver"])
    except SystemExit as end:
        raise FloatingPointError(str(end)) from None


def best_random_accuracy(count: int) -> float:
    """Return the best accuracy of random configurations, the failing ones left out."""
    rng = np.random.default_rng(RANDOM_SEED)
    best = -math.inf
    for _ in range(count):
        lr = 10 ** rng.uniform(-5, -1)
        point = {"lr": lr, "depth": int(rng.integers(1, 11))}
        point["solver"] = str(rng.choice(["adam", "sgd", "lbfgs"]))
        try:
            best = max(best, train(point)[0])
        except FloatingPointError:
            continue
    return best


def terminal(*words: str, expected: int = 0) -> str:
    """Run a command in a terminal of 90 columns and check its exit code and its words."""
    command = [sys.executable, "-m", "truvar", *words]
    code, _, sent = in_terminal(command, columns=90, NO_COLOR="1")
    assert code == expected, sent
    assert not re.search(JARGON, sent), sent
    return " ".join(sent.split())


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Tune in a terminal, with two interruptions; return the folder and the text of each run."""
    folder = tmp_path_factory.mktemp("tuning")
    (folder / "digits.toml").write_text(PROBLEM)
    (folder / "train.py").write_text(TRAIN)
    (folder / "accuracy.py").write_text(ACCURACY)
    run = ("run", "digits.toml", "--command", f"{sys.executable} train.py {{lr}} {{depth}} {{solver}}",
           "--retries", "0")  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("TRUVAR_STORE", raising=False)
        said = [terminal("new", "digits.toml")]
        said.append(terminal(*run, expected=INTERRUPTED))
        said.append(terminal(*run, expected=-9))
        said.append(terminal(*run))
    return folder, said


def test_the_problem_is_understood_as_it_was_meant(tuned: tuple[Path, list[str]]) -> None:
    understood = tuned[1][0]
    assert "where is accuracy highest?" in understood
    assert "lr: 1e-05 to 0.1 on a log scale, depth: whole numbers 1 to 10" in understood
    assert "solver: adam, sgd, lbfgs" in understood
    assert "learned from the costs that are told, 10 expected before" in understood


def test_an_interrupted_run_goes_on_where_it_stopped(tuned: tuple[Path, list[str]]) -> None:
    folder, said = tuned
    assert "stopping after the next measurement" in said[1]
    assert f"of {STEPS} times" in said[1]
    study = load(f"sqlite:///{folder / 'digits.db'}", "digits")
    assert study.pending == []
    assert study.steps == STEPS
    attempts = len((folder / "started").read_text())
    # The training that was killed with its run is the only one that was started again.
    assert study.steps + len(study.failures) == attempts - 1
    ids = study.measurements["id"].tolist() + [each.id for each in study.failures]
    assert sorted(ids) == list(range(1, attempts))


def test_failures_are_shown_with_their_reason(
    tuned: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, said = tuned
    monkeypatch.chdir(folder)
    study = load("sqlite:///digits.db", "digits")
    assert study.failures
    assert all("the loss is not a number" in each.reason for each in study.failures)
    assert all(each.point["lr"] > 1e-2 for each in study.failures)
    status = terminal("status", "digits.db")
    assert "the loss is not a number" in status
    assert "expected regret" in status
    assert f"step limit ({STEPS}) reached" in said[-1]


def test_the_best_configuration_beats_random_search(tuned: tuple[Path, list[str]]) -> None:
    study = load(f"sqlite:///{tuned[0] / 'digits.db'}", "digits")
    random = best_random_accuracy(STEPS + len(study.failures))
    assert study.measurements["value"].max() > random
    assert train(study.result().best.point)[0] > random
    spent = sum(5 + 2 * depth for depth in study.measurements["depth"])
    told = study.measurements["cost"].sum()
    assert told == pytest.approx(spent)


def test_all_of_the_study_is_exported_to_excel(
    tuned: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    monkeypatch.chdir(tuned[0])
    assert f"{STEPS} measurements: out.xlsx" in terminal("export", "out.xlsx")
    sheets = pd.read_excel("out.xlsx", sheet_name=None)
    assert {"measurements", "points", "settings", "failures"} <= set(sheets)
    measured = sheets["measurements"]
    assert len(measured) == STEPS
    assert set(measured["solver"]) <= {"adam", "sgd", "lbfgs"}
    for row in measured.to_dict("records"):
        assert row["cost"] == 5 + 2 * row["depth"]


def test_a_function_returns_value_and_cost_and_the_study_is_resumed(tmp_path: Path) -> None:
    domain = tv.Domain.box(
        lr=tv.Log(1e-5, 1e-1),
        depth=tv.Integer(1, 10),
        solver=["adam", "sgd", "lbfgs"],
        representers=400,
    )
    calls: list[dict] = []

    def measure(point: dict) -> tuple[float, float]:
        calls.append(point)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return train(point)

    def study() -> tv.Study:
        return tv.Study(
            domain,
            tv.Maximize(),
            noise_sd=0.005,
            cost="learned",
            store=f"sqlite:///{tmp_path / 'tuning.db'}",
            name="python",
            if_exists="load",
            seed=0,
        )

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the loss is not a number")
        with pytest.raises(KeyboardInterrupt):
            study().run(measure, steps=STEPS)
        again = study()
        assert again.steps + len(again.failures) == 7
        result = again.run(measure, steps=STEPS)
    assert result.steps == STEPS
    assert f"step limit ({STEPS}) reached" in str(result.reason)
    told = again.measurements
    assert told["cost"].tolist() == [5 + 2 * depth for depth in told["depth"]]
    regret = result.expected_regret
    assert 0 <= regret.low <= regret.mean <= regret.high
    assert train(result.best.point)[0] > best_random_accuracy(len(calls))
    suggestion = again.ask()
    low, high = suggestion.cost_interval
    assert low < suggestion.cost < high
    # The costs of 7 to 25 minutes are learned well enough that the interval has the right one.
    assert low <= 5 + 2 * suggestion.point["depth"] <= high
    assert not re.search(JARGON, str(result))
    json.dumps(result.to_dict())
