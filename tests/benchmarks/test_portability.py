"""Comparisons with other processors: that they compare something, and what they print."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import pytest
from benchmarks.portability import blas_cores, check_cores, environment, table


def test_the_kernels_of_another_core_type_are_really_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if "x86_64" not in platform.machine() or not blas_cores():
        pytest.skip("needs OpenBLAS for x86-64")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")  # of this process, which is not passed on
    code = "import json; from benchmarks.portability import blas_cores; print(json.dumps(blas_cores()))"
    for core in ("Prescott", "Sandybridge"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(core),
            capture_output=True,
            text=True,
            check=True,
        )
        check_cores(core, json.loads(done.stdout))
    assert "OPENBLAS_CORETYPE" not in environment("default")


@pytest.mark.parametrize("used", [[], ["SkylakeX", "SkylakeX"], ["Haswell", "SkylakeX"]])
def test_a_comparison_with_the_same_kernels_fails(used: list[str]) -> None:
    with pytest.raises(RuntimeError, match="OPENBLAS_CORETYPE=Haswell should select its kernels"):
        check_cores("Haswell", used)


def test_the_table_has_the_spread_of_every_number() -> None:
    text = table(
        "lake", {"default": {"above": 107, "F1": 0.9375}, "Prescott": {"above": 110, "F1": 0.9375}}
    )
    assert text.splitlines()[-1] == "| spread | 3 | 0 |"
