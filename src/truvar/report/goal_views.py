"""Views of goals: names, colours and captions that answers to each kind of goal are shown with.

Terminal, report, figures and the page of the server ask a view and have no branches by kind of
goal. A new kind of goal is a subclass of `GoalView` and a line of `_VIEWS`, unless it is shown as
one of the kinds that are there.

Palettes and letters have an entry for "above", "undecided" and "below"; that of "above" stands out.
The side that is asked for gets it, also where that is "below".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from truvar._typing import Mask
from truvar.domain.goals import AllOf, ConstrainedOptimum, Goal, LevelSet, Map, Maximize
from truvar.report import style
from truvar.report.formatting import count_noun, format_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truvar.inference.statements import Classification
    from truvar.study.result import Result

T = TypeVar("T")


class PointClass(NamedTuple):
    """Points of one class.

    Attributes:
        name: "above", "undecided" or "below"; with several thresholds the name of a band.
        mask: Which points of the domain belong to it. (n,)
        label: Name and count for legends, such as "above 7: 12".
    """

    name: str
    mask: Mask
    label: str


class GoalView:
    """The look of answers to a goal that is neither an optimum nor about thresholds.

    Args:
        goal: The goal.

    Attributes:
        region_map: What the second map of two columns shows: "classes" or "sd".
        values_title: Title of the measured values.
    """

    region_map: ClassVar[str] = "classes"
    values_title: ClassVar[str] = "measured values"

    def __init__(self, goal: Goal) -> None:
        self.goal: Any = goal

    @property
    def palette_keys(self) -> dict[str, str]:
        """The entry of a palette that each class has, the side asked for first and the other one last."""
        asked, other = self.goal.sides
        return {asked: "above", "undecided": "undecided", other: "below"}

    def by_class(self, palette: Mapping[str, T]) -> dict[str, T]:
        """Return the entries of a palette by class, in the order of `palette_keys`."""
        return {name: palette[key] for name, key in self.palette_keys.items()}

    @property
    def counted(self) -> tuple[str, ...]:
        """Classes whose points are counted in a line of text, undecided ones last."""
        return ("undecided",)

    def word(self, name: str) -> str:
        """Return the word for a class: "above" unless it has its own name."""
        return name

    @property
    def headings(self) -> dict[str, str]:
        """Classes that strips over many columns show, with their headings."""
        return {name: name for name, key in self.palette_keys.items() if key != "below"}

    def letters(
        self, of_sides: Mapping[str, T], of_optimum: Mapping[str, T]
    ) -> dict[str, tuple[T, str]]:
        """Return the letter of each class and the palette entry of its colour.

        Args:
            of_sides: Letters of classes on two sides, by entry of a palette.
            of_optimum: Letters of points that can be the optimum, and others.
        """
        return {name: (of_sides[key], key) for name, key in self.palette_keys.items()}

    def colours(self, classes: Classification) -> dict[str, str]:
        """Return the colour of each class."""
        if classes.band is not None:
            return style.band_colours(classes.band_names)
        return style.OPTIMUM

    def css_classes(self, classes: Classification) -> dict[str, str]:
        """Return the CSS class of each class in the report; others are ruled out."""
        css_classes = self.palette_keys
        bands = classes.band_names
        css_classes |= dict.fromkeys(bands, "possible")
        if bands:
            css_classes |= {bands[0]: "below", bands[-1]: "above"}
        return css_classes

    def classes(self, result: Result) -> list[PointClass]:
        """Return the classes of the points, with labels for legends."""
        decided = result.classes
        if decided.band is None:
            return self._without_bands(result)
        bands = [
            PointClass(name, decided.band == k, f"{name}: {(decided.band == k).sum()}")
            for k, name in reversed(list(enumerate(decided.band_names)))
        ]
        return [*bands, _undecided(decided)]

    def _without_bands(self, result: Result) -> list[PointClass]:
        """Return the classes of a goal without bands: points that can be it, and those ruled out."""
        decided = result.classes
        possible = f"possible {optimum_name(self.goal)}: {decided.undecided.sum()}"
        if self.goal.sign > 0:
            ruled_out = PointClass("below", decided.below, f"ruled out: {decided.below.sum()}")
        else:
            ruled_out = PointClass("above", decided.above, f"ruled out: {decided.above.sum()}")
        return [PointClass("undecided", decided.undecided, possible), ruled_out]

    def share_name(self, result: Result) -> str:
        """Return where the points of `share_above` lie: "above 7"."""
        return ""

    @property
    def probability_name(self) -> str | None:
        """The name of the probability of a point, where that of its class does not say it."""
        return None

    def class_tiles(self, result: Result) -> list[tuple[str, str]]:
        """Return the number of points in each class, each with its name."""
        return [(str(int(mask.sum())), name) for name, mask, _ in self.classes(result)]

    def regions_caption(self, note: str) -> str:
        """Return the caption of the second map; `note` says with which probability classes hold."""
        return "Standard deviation of the estimate, and the measurements"

    def values_caption(self, result: Result) -> str:
        """Return the caption of the measured values."""
        return "Measured values against the cost spent"

    def truth_note(self) -> str:
        """Return what an expected score is a distance from, with a leading space; else nothing."""
        return ""


class _MapView(GoalView):
    """The look of a map: its standard deviation in place of classes."""

    region_map = "sd"


class _OptimumView(GoalView):
    """The look of an optimum: points that can be it, and those ruled out."""

    values_title = "best measured value"

    @property
    def headings(self) -> dict[str, str]:
        return {"undecided": "possible"}

    def letters(
        self, of_sides: Mapping[str, T], of_optimum: Mapping[str, T]
    ) -> dict[str, tuple[T, str]]:
        return {
            name: (letter, "above" if name == "undecided" else "undecided")
            for name, letter in of_optimum.items()
        }

    def css_classes(self, classes: Classification) -> dict[str, str]:
        return {"undecided": "possible"}

    def class_tiles(self, result: Result) -> list[tuple[str, str]]:
        count = str(int(result.classes.undecided.sum()))
        points = count_noun(len(result.domain), "point")
        return [(count, f"of {points} can be the {optimum_name(self.goal)}")]

    def regions_caption(self, note: str) -> str:
        optimum = optimum_name(self.goal)
        return f"Points that can be the {optimum}, with their probability, and points ruled out"

    def values_caption(self, result: Result) -> str:
        return f"{super().values_caption(result)}; the line is the best so far"

    def truth_note(self) -> str:
        return f" from the {optimum_name(self.goal)}"


class _LevelSetView(GoalView):
    """The look of a level set: both sides of a threshold, or several bands."""

    @property
    def counted(self) -> tuple[str, ...]:
        asked, undecided, other = self.palette_keys
        return (asked, other, undecided)

    def colours(self, classes: Classification) -> dict[str, str]:
        if classes.band is not None:
            return super().colours(classes)
        return self.by_class(style.LEVEL_SET)

    def _without_bands(self, result: Result) -> list[PointClass]:
        decided = result.classes
        threshold = "threshold" if result.threshold is None else format_number(result.threshold)
        if self.goal.threshold is None:
            threshold = f"about {threshold}"
        words = {side: f"{side} {threshold}" for side in ("above", "below")}
        if self.goal.margin is not None:
            words[self.goal.sides[0]] = self.goal.summary
        above = PointClass("above", decided.above, f"{words['above']}: {decided.above.sum()}")
        below = PointClass("below", decided.below, f"{words['below']}: {decided.below.sum()}")
        named = {"above": above, "undecided": _undecided(decided), "below": below}
        return [named[name] for name in self.palette_keys]

    @property
    def _is_margin_above(self) -> bool:
        """Whether the points above the threshold are those within a margin of the maximum."""
        return getattr(self.goal, "margin", None) is not None and self.goal.sides[0] == "above"

    def share_name(self, result: Result) -> str:
        if getattr(self.goal, "inside", False):
            return " to ".join(format_number(threshold) for threshold in result.thresholds)
        if self._is_margin_above:
            return str(self.goal.summary)
        return f"above {format_number(result.thresholds[0])}"

    def regions_caption(self, note: str) -> str:
        asked, _, other = self.palette_keys
        if getattr(self.goal, "margin", None) is not None:
            return f"Points {self.goal.summary}, those that are not, and undecided points ({note})"
        return f"Points {asked} and {other} the threshold, and undecided points ({note})"

    def values_caption(self, result: Result) -> str:
        article = "a" if len(result.thresholds) > 1 else "the"
        return f"{super().values_caption(result)}; the line is {article} threshold"


class _RegionView(_LevelSetView):
    """The look of a region of several quantities: points inside, outside and undecided."""

    def word(self, name: str) -> str:
        below, above = self.goal.class_names
        words: dict[str, str] = {"above": above, "below": below}
        return words.get(name, name)

    def share_name(self, result: Result) -> str:
        return f"with {self.goal.summary}"

    @property
    def probability_name(self) -> str | None:
        return f"probability of {self.goal.summary}"

    def regions_caption(self, note: str) -> str:
        return f"Points inside and outside the region, and undecided points ({note})"

    def values_caption(self, result: Result) -> str:
        lead = next(iter(self.goal.parts))
        return f"Measured values of {lead} against the cost spent"


class _ConstrainedView(_OptimumView):
    """The look of an optimum with constraints."""

    def values_caption(self, result: Result) -> str:
        return f"Measured values of {self.goal.of} against the cost spent"


def _undecided(decided: Classification) -> PointClass:
    return PointClass("undecided", decided.undecided, f"undecided: {decided.undecided.sum()}")


# Kind of goal -> how its answers are shown.
_VIEWS: dict[str, type[GoalView]] = {
    AllOf.kind: _RegionView,
    ConstrainedOptimum.kind: _ConstrainedView,
    LevelSet.kind: _LevelSetView,
    Map.kind: _MapView,
    Maximize.kind: _OptimumView,
}


def view_of(goal: Goal) -> GoalView:
    """Return how answers to a goal are shown."""
    return _VIEWS[goal.kind](goal)


def optimum_name(goal: Goal) -> str:
    """Return "maximum" or "minimum"."""
    return "maximum" if goal.sign > 0 else "minimum"
