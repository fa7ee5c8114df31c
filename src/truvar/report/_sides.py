"""The classes of a level set in the order and the look of reports: the side asked for comes first.

Palettes and letters have an entry for "above", "undecided" and "below"; that of "above" stands out.
The side that is asked for gets it, also where that is "below".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from truvar.domain.goals import LevelSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truvar.domain.goals import Goal

T = TypeVar("T")


def palette_keys(goal: Goal) -> dict[str, str]:
    """Return the entry of a palette that each class has, the side asked for first and the other one last."""
    asked, other = goal.sides if isinstance(goal, LevelSet) else ("above", "below")
    return {asked: "above", "undecided": "undecided", other: "below"}


def by_class(goal: Goal, palette: Mapping[str, T]) -> dict[str, T]:
    """Return the entries of a palette by class, in the order of `palette_keys`."""
    return {name: palette[key] for name, key in palette_keys(goal).items()}
