"""A backtest whose process is killed continues from the runs that were finished."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd

from truvar.backtest import backtest

PROBLEM = """
[domain]
table = "hill.csv"
columns = ["x", "z"]
[goal]
level_set = 0.5
[model]
kernel = "rbf"
lengthscales = [0.3, 0.3]
variance = 1.0
mean = 0.0
[noise]
variance = 0.01
[cost]
base = 1.0
travel = {x = 2.0}
"""
SCRIPT = textwrap.dedent("""
    import sys, time
    from truvar.backtest import backtest
    pause = lambda done, total: (print(done, flush=True), time.sleep(0.2))
    backtest(sys.argv[1], "height", ["truvar"], replicates=6, budget=20, folder=sys.argv[2], progress=pause)
""")


def test_a_killed_backtest_gives_the_same_result_when_run_again(tmp_path: Path) -> None:
    x, z = (
        axis.ravel()
        for axis in np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9), indexing="ij")
    )
    hill = np.exp(-((x - 0.4) ** 2 + (z - 0.6) ** 2) / 0.1)
    pd.DataFrame({"x": x, "z": z, "height": hill}).to_csv(tmp_path / "hill.csv", index=False)
    problem = tmp_path / "hill.toml"
    problem.write_text(PROBLEM)
    kept = tmp_path / "kept"

    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(problem), str(kept)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while int(process.stdout.readline()) < 2:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 2 <= len(list((kept / "runs").glob("*.json"))) < 6

    again = backtest(problem, "height", ["truvar"], replicates=6, budget=20, folder=kept)
    uninterrupted = backtest(problem, "height", ["truvar"], replicates=6, budget=20)
    pd.testing.assert_frame_equal(
        again.curves.drop(columns="seconds"), uninterrupted.curves.drop(columns="seconds")
    )
