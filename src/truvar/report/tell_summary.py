"""Output of the command line after values were told, corrected or withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truvar.report.formatting import format_number
from truvar.report.goal_views import view_of

if TYPE_CHECKING:
    from truvar._typing import Mask
    from truvar.study.result import Result

_MAX_LISTED = 10  # ids that are listed one by one


def tell_summary(ids: Sequence[Any], before: Result, now: Result, verb: str = "told") -> str:
    """Return one line that says what was done and how `Result.classes` changed.

    Args:
        ids: Ids of the measurements concerned.
        before: Result before the change.
        now: Result after it.
        verb: What was done: "told", "corrected" or "withdrawn".
    """
    listed = (
        ", ".join(map(str, ids)) or "nothing" if len(ids) <= _MAX_LISTED else f"{len(ids)} values"
    )
    classes_before = before.classes
    classes = now.classes
    view = view_of(now.goal)
    changes = [
        _change(view.word(name), getattr(classes_before, name), getattr(classes, name))
        for name in view.counted
    ]
    text = f"{verb} {listed}: {', '.join(changes)}; cost {format_number(now.spent)} so far"
    return f"{text}; {now.reason}" if now.reason else text


def _change(name: str, before: Mask, now: Mask) -> str:
    difference = int(now.sum()) - int(before.sum())
    return f"{name} {now.sum()} ({difference:+d})" if difference else f"{name} {now.sum()}"
