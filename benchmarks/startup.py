"""Fresh processes: what the commands of a stored study and the imports cost, and the first
suggestion.

Times are processor times (user and system) of whole processes, medians, all commands taking turns;
a first round, not counted, fills the caches of compiled code. A machine's speed cancels: times are
divided by that of `import sklearn.gaussian_process`, measured in the same rounds, before they are
compared with those of release 0.1.0.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Row, at_most, median

ROUNDS = 5
SIDE = 50  # points along each axis of the stored study's grid
TOLD = 3  # measurements of the stored study; one more suggestion is pending

PROBLEM = """
name = "startup"
[domain]
grid = {{x = [0, 1, {side}], y = [0, 1, {side}]}}
[goal]
level_set = 0.2
[model]
kernel = "rbf"
lengthscales = [0.2, 0.2]
variance = 1.0
mean = 0.0
[noise]
variance = 1e-3
"""

# the installed script `truvar` does this
ENTRY = "import sys; from truvar.__main__ import main; sys.exit(main())"
# and the installed script `optuna` this
OPTUNA = "import sys; from optuna.cli import main; sys.exit(main())"
REFERENCE = "import sklearn.gaussian_process"

CLASSES = (
    "from truvar import Domain, Maximize, Study"  # `import truvar` alone loads no numerical library
)

# Processor time of release 0.1.0 divided by that of REFERENCE: `processor_times(SIDE, ROUNDS,
# entry, environment)` of this module with the entry point that 0.1.0 had, "import sys; from
# truvar.cli import main; sys.exit(main())", and the `src` folder of its commit, 9edca80, as
# PYTHONPATH. `import sklearn.gaussian_process` took 2.93 s there (2026-11-17, Python 3.11.7,
# scikit-learn 1.9.1, 2 busy processors). Optuna's own ratio shows how far two such runs differ.
RELEASE_0_1_0 = {
    "help": 1.64,
    "version": 1.54,
    "import": 1.34,
    "ask": 2.22,
    "tell": 2.06,
    "status": 2.17,
    "optuna": 0.35,
}

NOT_MEASURED = "needs a POSIX system, and Optuna where it is named"
TARGETS = {
    "help": 0.25,
    "version": 0.25,
    "ask": 0.5,
    "tell": 0.5,
    "status": 0.5,
}  # of the times of 0.1.0
LABELS = {
    "help": "truvar --help",
    "version": "truvar --version",
    "import": "import truvar",
    "ask": "truvar ask",
    "tell": "truvar tell",
    "status": "truvar status",
    "optuna": "optuna --help",
}

FIRST = """
import time
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from truvar import Domain, Maximize, Study
loaded = time.process_time()
axis = np.linspace(0, 1, {side})
study = Study(Domain.grid(x=axis, y=axis), Maximize(), kernel=RBF(0.1), mean=0.0, noise=1e-6)
study.ask()
print(time.process_time() - loaded)
"""


def rows(quick: bool) -> list[Row]:
    side = 12 if quick else SIDE
    rounds = 1 if quick else ROUNDS
    taken = processor_times(side, rounds)
    found = [_row_against_release(key, side, taken) for key in LABELS]
    for key in ("help", "version"):
        what = f"{LABELS[key]} / {LABELS['optuna']}"
        found.append(_ratio_row(f"startup-{key}-optuna", what, key, "optuna", taken, 1.0))
    found.append(
        _ratio_row("import", f"{CLASSES} / {REFERENCE}", "classes", "reference", taken, 1.5)
    )
    found.append(_first_suggestion(side, rounds))
    return found


def _row_against_release(key: str, side: int, taken: Mapping[str, float]) -> Row:
    size = f", N={side * side}" if key in ("ask", "tell", "status") else ""
    name = f"startup-{key}"
    what = f"{LABELS[key]}{size}, ratio to 0.1.0"
    target = at_most(TARGETS[key]) if key in TARGETS else None
    if key not in taken:
        return Row(name, what, None, "x", target, NOT_MEASURED)
    then = RELEASE_0_1_0[key]
    now = taken[key] / taken["reference"]
    note = f"{taken[key]:.3f} s; {now:.3f} of {REFERENCE} ({taken['reference']:.3f} s), with 0.1.0 {then:.2f}"
    return Row(name, what, now / then, "x", target, note)


def _ratio_row(
    name: str, what: str, key: str, other: str, taken: Mapping[str, float], limit: float
) -> Row:
    if key not in taken or other not in taken:
        return Row(name, what, None, "x", at_most(limit), NOT_MEASURED)
    note = f"{taken[key]:.3f} against {taken[other]:.3f} s"
    return Row(name, what, taken[key] / taken[other], "x", at_most(limit), note)


def processor_times(
    side: int, rounds: int, entry: str = ENTRY, environment: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Return the median processor time of every command in seconds.

    Args:
        side: Points along each axis of the stored study's grid.
        rounds: Number of times each command runs; if there are several, once more before that, not
            counted.
        entry: Code of the script `truvar`; that of release 0.1.0 differs.
        environment: Environment variables of the processes; None: those of this one.

    Returns:
        Seconds by key of `LABELS`; those of `REFERENCE` and `CLASSES` have the keys `"reference"`
        and `"classes"`. Optuna is left out if it is not installed, and everything where the system
        does not count the processor time of children (Windows).
    """
    if importlib.util.find_spec("resource") is None:
        return {}
    truvar = [sys.executable, "-c", entry]
    commands = {
        "reference": [sys.executable, "-c", REFERENCE],
        "help": [*truvar, "--help"],
        "version": [*truvar, "--version"],
        "import": [sys.executable, "-c", "import truvar"],
        "classes": [sys.executable, "-c", CLASSES],
        "ask": [*truvar, "ask", "study.db"],
        "tell": [*truvar, "tell", "study.db", str(TOLD + 1), "0.5"],
        "status": [*truvar, "status", "study.db"],
    }
    if importlib.util.find_spec("optuna") is not None:
        commands["optuna"] = [sys.executable, "-c", OPTUNA, "--help"]
    taken: dict[str, list[float]] = {key: [] for key in commands}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stored = _stored_study(folder, side, truvar, environment)
        warm_up = 1 if rounds > 1 else 0  # rounds that are not counted
        for round_ in range(warm_up + rounds):
            for key, command in commands.items():
                shutil.copy(stored, folder / "study.db")  # every command finds the same study
                seconds = _processor_time(command, folder, environment)
                if round_ >= warm_up:
                    taken[key].append(seconds)
    return {key: median(values) for key, values in taken.items()}


def _stored_study(
    folder: Path, side: int, truvar: Sequence[str], environment: Mapping[str, str] | None
) -> Path:
    """Create a study with measurements and a pending suggestion, as users do, and return the
    path of its store."""
    (folder / "problem.toml").write_text(PROBLEM.format(side=side), encoding="utf-8")
    _processor_time([*truvar, "new", "problem.toml", "--store", "stored.db"], folder, environment)
    for id_ in range(1, TOLD + 1):
        _processor_time([*truvar, "ask", "stored.db"], folder, environment)
        _processor_time([*truvar, "tell", "stored.db", str(id_), "0.1"], folder, environment)
    _processor_time([*truvar, "ask", "stored.db"], folder, environment)
    return folder / "stored.db"


def _processor_time(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None
) -> float:
    """Run a command in a folder and return the processor time that it took, user and system, in
    seconds."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _first_suggestion(side: int, rounds: int) -> Row:
    code = FIRST.format(side=side)
    taken = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        taken.append(float(done.stdout))
    what = f"first suggestion in a fresh process, N={side * side}, after the imports"
    return Row("first-suggestion", what, median(taken), "s", at_most(1.5))
