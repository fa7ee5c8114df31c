"""Results do not depend on the state of the process: seeds of hashes, numbers of threads."""

from __future__ import annotations

import os
import subprocess
import sys

STUDIES = """
import numpy as np
import truvar as tv
from sklearn.gaussian_process.kernels import Matern

axis = np.linspace(0, 1, 25)
known = tv.Study(tv.Domain.grid(x=axis, y=axis), tv.LevelSet(0.5), kernel=Matern(0.3, nu=2.5), mean=0.0, noise=1e-4)
known.run(lambda at: float(np.sin(5 * at["x"]) * np.cos(3 * at["y"])), steps=6)
metals = ["steel", "tin", "lead", "zinc"]
table = {"metal": [metal for metal in metals for _ in range(12)], "heat": list(np.linspace(0, 1, 12)) * 4}
learned = tv.Study(tv.Domain.table(table, columns=["metal", "heat"]), tv.Maximize())
learned.run(lambda at: len(at["metal"]) + float(np.sin(5 * at["heat"])), steps=10)
for study in (known, learned):
    result = study.result()
    for array in (result.mean, result.sd, result.probability, result.statements.decided_confidence):
        print(array.tobytes().hex())
"""


def test_hash_seeds_and_numbers_of_threads_change_no_bit() -> None:
    printed = set()
    for number in ("1", "2"):
        names = ("PYTHONHASHSEED", "OPENBLAS_NUM_THREADS", "TRUVAR_THREADS")
        variables = os.environ | dict.fromkeys(names, number)
        done = subprocess.run(
            [sys.executable, "-c", STUDIES],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        printed.add(done.stdout)
    assert len(printed) == 1
