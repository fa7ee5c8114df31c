"""The Python functions that one `tell` calls, with a known kernel and in memory.

    python -m benchmarks.trace         print them, indented by depth, and their number
    python -m benchmarks --only overhead

Calls of the mathematics are those of `MATHEMATICS` and of NumPy and SciPy, which say what is
computed. All others, those of the standard library included, are what a study adds.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import truvar as tv
from benchmarks.cases import level_set
from benchmarks.measure import Row, at_most

PACKAGE = Path(tv.__file__).parent
MATHEMATICS = ("models/", "engines/", "acquisition/", "algorithm/", "_numba/", "domain/goals/")
LIBRARIES = ("numpy", "scipy", "numba", "sklearn")
MAX_CALLS = 90


@dataclass(frozen=True)
class Call:
    """A call of a Python function.

    Attributes:
        depth: Number of calls that it is inside of.
        module: File, relative to the package or to where libraries are installed.
        function: Qualified name.
        is_mathematics: Whether it belongs to the mathematics.
    """

    depth: int
    module: str
    function: str
    is_mathematics: bool


def calls_of_tell(side: int = 12, steps: int = 8) -> list[Call]:
    """Return the calls of a `tell` after some steps of TruVaR."""
    case = level_set(side, steps + 1)
    study = case.study()
    measure = case.measurer()
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, measure(suggestion))
    suggestion = study.ask()
    value = measure(suggestion)
    calls: list[Call] = []
    depth = 0

    def record(frame: FrameType, event: str, argument: object) -> None:
        nonlocal depth
        if event == "call":
            calls.append(_call(depth, frame.f_code.co_filename, frame.f_code.co_qualname))
            depth += 1
        elif event == "return":
            depth -= 1

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        study.tell(suggestion, value)
    finally:
        sys.setprofile(before)
    return calls


def _call(depth: int, path: str, function: str) -> Call:
    if path.startswith(str(PACKAGE)):
        module = Path(path).relative_to(PACKAGE).as_posix()
        return Call(depth, module, function, module.startswith(MATHEMATICS))
    _, is_installed, module = path.rpartition("site-packages/")
    if not is_installed:
        module = path.rpartition("/lib/")[2]
    return Call(depth, module, function, module.startswith(LIBRARIES))


def rows() -> list[Row]:
    """Return the number of calls besides the mathematics."""
    calls = calls_of_tell()
    own = [call for call in calls if not call.is_mathematics]
    n_modules = len({call.module for call in calls if (PACKAGE / call.module).exists()})
    note = f"{len(calls)} with it; {n_modules} modules of truvar are passed"
    what = "Python calls of one tell besides the mathematics"
    return [Row("tell-calls", what, len(own), "calls", at_most(MAX_CALLS), note)]


def main() -> None:
    """Print the calls, mathematics in brackets, and their number by package."""
    calls = calls_of_tell()
    for call in calls:
        text = f"{call.module} {call.function}"
        print(f"{'  ' * call.depth}{f'({text})' if call.is_mathematics else text}")
    n_own = sum(not call.is_mathematics for call in calls)
    print(f"\n{n_own} calls besides the mathematics, {len(calls)} with it")
    for package, count in Counter(call.module.split("/")[0] for call in calls).most_common():
        print(f"{count:5d}  {package}")


if __name__ == "__main__":
    main()
