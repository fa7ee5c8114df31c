"""Renew the versions that people develop with: `make lock`.

The lock file has one version of every package that the tests, linters and releases need, for all
supported versions of Python and all systems. It names no index: pip takes the one it is set to.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("test", "lint", "release", "audit")
OLDEST = "3.11"
HEADER = (
    "# Versions to develop with: make check LOCKED=1. Made by: make lock\n"
    "# Users are free: pyproject.toml has the versions that truvar works with.\n"
)


def main(path: Path) -> int:
    """Write the lock file."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    command += ["--python-version", OLDEST, "--no-annotate", "--no-header"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--upgrade"]
    for extra in EXTRAS:
        command += ["--extra", extra]
    done = subprocess.run(
        [*command, str(ROOT / "pyproject.toml")], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    path.write_text(HEADER + done.stdout, encoding="utf-8")
    print(f"{path.name}: {len(done.stdout.splitlines())} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
