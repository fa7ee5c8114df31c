"""Statements of a study on other processors, where the last bits of sums and products differ.

    python -m benchmarks.portability
    python -m benchmarks.portability --only lake --cores Prescott,Haswell

The variable `OPENBLAS_CORETYPE` selects the kernels that OpenBLAS would pick on another processor,
and NumPy is told not to use instructions that the processor lacks, so that one machine can be
compared with others. Every example runs in a fresh process for each of them.

| example | domain | model |
|---|---|---|
| lake | the first example of the README: a level set on a grid of 50 x 50 | learned |
| transect | a level set on 200 points of a line, noisy values | learned |
| valley | the minimum of a function on a box of two columns | learned |
| table | the maximum among 400 rows of three columns | learned |
| known | a level set on a grid of 30 x 30 | given |
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import truvar as tv

CORES = ("default", "Prescott", "Sandybridge", "Haswell", "Zen")
REPORTED = {
    "Prescott": "Katmai",
    "Zen": "Haswell",
}  # the names that builds give to core types with the same kernels
WITHOUT_AVX2 = ("Prescott", "Sandybridge")
SEED = 7  # of the noise and of the table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.portability", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", help="examples, separated by commas (default: all)")
    parser.add_argument(
        "--cores", help=f"core types, separated by commas (default: {','.join(CORES)})"
    )
    parser.add_argument(
        "--state", choices=EXAMPLES, help="print what one example states in this process, as JSON"
    )
    given = parser.parse_args(arguments)
    if given.state:
        print(json.dumps({"cores": blas_cores(), **EXAMPLES[given.state]()}))
        return 0
    names = given.only.split(",") if given.only else list(EXAMPLES)
    cores = given.cores.split(",") if given.cores else list(CORES)
    for name in names:
        print(table(name, {core: statements(name, core) for core in cores}), end="\n\n", flush=True)
    return 0


def environment(core: str) -> dict[str, str]:
    """Return the environment variables of a process that computes as on a processor of that core
    type."""
    variables = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"):
        variables.pop(name, None)
    if core != "default":
        found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])  # type: ignore[call-overload]
        lacking = [
            name for name in found if core in WITHOUT_AVX2 or "AVX512" in name or "V4" in name
        ]
        variables |= {"OPENBLAS_CORETYPE": core, "NPY_DISABLE_CPU_FEATURES": " ".join(lacking)}
    return variables


def check_cores(core: str, used: Sequence[str]) -> None:
    """Raise unless OpenBLAS used the kernels of that core type: a comparison would mean nothing.

    Args:
        core: The core type.
        used: The result of `blas_cores` in a process with `environment(core)`.
    """
    if core != "default" and (not used or set(used) - {core, REPORTED.get(core)}):
        raise RuntimeError(
            f"OPENBLAS_CORETYPE={core} should select its kernels, but OpenBLAS reports {list(used)}"
        )


def statements(name: str, core: str) -> dict[str, Any]:
    """Return what an example states in a fresh process, as on a processor of that core type."""
    command = [sys.executable, "-m", "benchmarks.portability", "--state", name]
    done = subprocess.run(
        command, env=environment(core), capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    check_cores(core, found.pop("cores"))
    return found


def blas_cores() -> list[str]:
    """Return the core types whose kernels the loaded copies of OpenBLAS use; empty where there
    is none."""
    import scipy.linalg  # noqa: F401  (loads SciPy's own copy)
    from threadpoolctl import threadpool_info

    return [
        info["architecture"] for info in threadpool_info() if info["internal_api"] == "openblas"
    ]


def table(name: str, by_core: Mapping[str, Mapping[str, float]]) -> str:
    """Return the statements of one example by core type, and how far they differ, as a Markdown
    table."""
    columns = list(next(iter(by_core.values())))
    lines = ["| " + " | ".join([name, *columns]) + " |", "|---" * (len(columns) + 1) + "|"]
    for core, found in by_core.items():
        lines.append(
            "| " + " | ".join([core, *(f"{found[column]:.6g}" for column in columns)]) + " |"
        )
    spread = [np.ptp([found[column] for found in by_core.values()]) for column in columns]
    lines.append("| " + " | ".join(["spread", *(f"{width:.2g}" for width in spread)]) + " |")
    return "\n".join(lines)


def _level_set(study: tv.Study) -> dict[str, float]:
    result = study.result()
    classes = result.classify()
    return {
        "steps": study.steps,
        "cost": study.spent,
        "above": int(classes.above.sum()),
        "below": int(classes.below.sum()),
        "undecided": int(classes.undecided.sum()),
        "F1": result.expected_f1.mean,
        "F1 from": result.expected_f1.low,
        "F1 to": result.expected_f1.high,
    }


def _optimum(study: tv.Study) -> dict[str, float]:
    result = study.result()
    return {
        "steps": study.steps,
        "value": result.best.mean,
        "undecided": int(result.classify().undecided.sum()),
        "regret": result.expected_regret.mean,
        "regret to": result.expected_regret.high,
    }


def _lake() -> dict[str, float]:
    from truvar.paper.lake import concentration

    lake = tv.Domain.grid(distance_m=np.linspace(0, 1478, 50), depth_m=np.linspace(-18, 0, 50))
    cost = tv.Cost(base=4, travel={"distance_m": 0.25}, magnitude={"depth_m": 4})
    study = tv.Study(lake, tv.LevelSet(7.0), cost=cost)
    study.run(lambda at: concentration(at["distance_m"], at["depth_m"]).item(), budget=4000)
    return _level_set(study)


def _transect() -> dict[str, float]:
    rng = np.random.default_rng(SEED)
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 10, 200)), tv.LevelSet(0.4))
    study.run(
        lambda at: np.sin(1.3 * at["x"]) + 0.3 * np.cos(4 * at["x"]) + 0.05 * rng.standard_normal(),
        steps=40,
    )
    return _level_set(study)


def _valley() -> dict[str, float]:
    def branin(at: Mapping[str, Any]) -> float:
        x = at["x"]
        arch = at["y"] - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
        return float(arch**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)

    study = tv.Study(tv.Domain.box(x=(-5, 10), y=(0, 15)), tv.Minimize())
    study.run(branin, steps=30)
    return _optimum(study)


def _table() -> dict[str, float]:
    import pandas as pd

    rng = np.random.default_rng(SEED)
    rows = pd.DataFrame(rng.uniform(size=(400, 3)), columns=["a", "b", "c"])
    strength = np.sin(5 * rows["a"]) + rows["b"] * rows["c"] - (rows["b"] - 0.6) ** 2
    study = tv.Study(tv.Domain.table(rows, columns=["a", "b", "c"]), tv.Maximize())
    for _ in range(30):
        suggestion = study.ask()
        study.tell(suggestion, float(strength[suggestion.index]))
    return _optimum(study)


def _known() -> dict[str, float]:
    from sklearn.gaussian_process.kernels import Matern

    axis = np.linspace(0, 1, 30)
    kernel = Matern(0.3, nu=2.5)
    study = tv.Study(
        tv.Domain.grid(x=axis, y=axis), tv.LevelSet(0.5), kernel=kernel, mean=0.0, noise=1e-4
    )
    study.run(lambda at: np.sin(5 * at["x"]) * np.cos(3 * at["y"]), steps=30)
    return _level_set(study)


EXAMPLES: dict[str, Callable[[], dict[str, float]]] = {
    "lake": _lake,
    "transect": _transect,
    "valley": _valley,
    "table": _table,
    "known": _known,
}


if __name__ == "__main__":
    sys.exit(main())
