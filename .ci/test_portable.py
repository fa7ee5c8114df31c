"""Run pytest as on other processors.

    python .ci/test_portable.py [--cores A,B] [ARGUMENTS OF PYTEST]

Before the tests of a core type, a process checks that OpenBLAS uses its kernels: where it does not,
such as with another BLAS library, the run fails instead of passing with nothing tested.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.portability import check_cores, environment  # noqa: E402

CORES = "Prescott,Sandybridge,Haswell"
REPORT = (
    "import json; from benchmarks.portability import blas_cores; print(json.dumps(blas_cores()))"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--cores", default=CORES, help="core types, separated by commas (default: %(default)s)"
    )
    given, arguments = parser.parse_known_args()
    failed = []
    for core in given.cores.split(","):
        variables = environment(core)
        command = [sys.executable, "-c", REPORT]
        done = subprocess.run(
            command, env=variables, cwd=ROOT, capture_output=True, text=True, check=True
        )
        check_cores(core, json.loads(done.stdout))
        print(f"== {core}", flush=True)
        if (
            subprocess.run(
                [sys.executable, "-m", "pytest", *arguments], env=variables, cwd=ROOT
            ).returncode
            != 0
        ):
            failed.append(core)
    if failed:
        print(f"failed as on {', '.join(failed)}; repeat with --cores {failed[0]}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
