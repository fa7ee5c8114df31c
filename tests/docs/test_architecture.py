"""The functions that `docs/architecture.md` names for a told value are the ones that it passes."""

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.trace import MAX_CALLS, calls_of_tell
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.storage.memory import InMemoryEventLog

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
ROW = re.compile(r"^\| `([\w.]+)` \| `([\w.]+)` \|", re.M)
MOST_MODULES = 10


def listed() -> list[str]:
    """Functions of the page with their modules, in order."""
    section = (
        PAGE.read_text(encoding="utf-8")
        .split("## A value, function by function", 1)[1]
        .split("\n## ", 1)[0]
    )
    return [f"truvar.{module}.{function}" for module, function in ROW.findall(section)]


def called(work: Any) -> list[str]:
    """Functions of truvar that are called, in the order of their first calls."""
    names: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("truvar."):
            names.setdefault(f"{module}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(names)


def test_a_told_value_passes_the_functions_of_the_page_in_this_order() -> None:
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.LevelSet(0.5), kernel=RBF(0.3), mean=0.0, noise=0.01
    )
    names = called(lambda: study.tell({"x": 0.5}, 0.7))
    expected = listed()
    modules = {name.rpartition(".")[0] for name in expected}
    assert f"{InMemoryEventLog.__module__}.InMemoryEventLog.transaction" in expected
    assert len(expected) == len(modules) == MOST_MODULES
    assert [name for name in names if name in expected] == expected


def test_a_told_value_passes_few_functions_besides_the_mathematics() -> None:
    calls = calls_of_tell()
    own = [f"{call.module} {call.function}" for call in calls if not call.is_mathematics]
    assert len(own) <= MAX_CALLS, own
