"""Print the oldest versions that pyproject.toml allows, for pip: `make test-minimum`.

The arguments are extras whose requirements are printed too.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)(?P<extras>\[[^\]]*\])?>=(?P<floor>[0-9.]+)(?:,.*)?"
)


def main(extras: list[str]) -> int:
    """Print a pinned requirement per line."""
    for line in minimum_versions(PYPROJECT.read_text(encoding="utf-8"), extras):
        print(line)
    return 0


def minimum_versions(pyproject: str, extras: list[str]) -> list[str]:
    """Return the requirements of the core and of some extras, each at its floor.

    Raises:
        SystemExit: If a requirement has no floor.
    """
    project = tomllib.loads(pyproject)["project"]
    requirements = list(project["dependencies"])
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    pinned = []
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise SystemExit(
                f"a requirement must have a floor, such as numpy>=1.26, got {requirement!r}; add "
                "one"
            )
        pinned.append(f"{match['name']}{match['extras'] or ''}=={match['floor']}")
    return pinned


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
