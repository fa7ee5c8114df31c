"""`Batch`: several suggestions as a list that consoles and notebooks show as a table."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from truvar._representation import html_table, text_table
from truvar.study.suggestion import Suggestion, describe_cost, repeated_places

if TYPE_CHECKING:
    from truvar.study.base import BaseStudy
    from truvar.study.explanation import Explanation

MAX_EXPLAINED = 20  # suggestions of a batch whose expected effect is computed


class Batch(list[Suggestion]):
    """A list of suggestions, shown as a table with expected values and reasons.

    They are computed when the batch is first shown, and only while the study is as it was when the
    batch was suggested.

    Args:
        suggestions: The suggestions.
        study: The study that suggested them; None: they are shown without expected values.
    """

    def __init__(
        self, suggestions: Iterable[Suggestion] = (), study: BaseStudy | None = None
    ) -> None:
        super().__init__(suggestions)
        self._study = study
        self._asked_at = None if study is None else study.version
        self._explained: dict[int, Explanation] | None = None

    def __reduce__(self) -> Any:
        """Pickle and copy the suggestions without the study."""
        return Batch, (list(self),)

    def __repr__(self) -> str:
        if not self:
            return "[]"
        return text_table(self._title, *self._table())

    def _repr_html_(self) -> str:
        return html_table(self._title, *self._table())

    @property
    def _title(self) -> str:
        title = f"{len(self)} suggestion{'' if len(self) == 1 else 's'}"
        explained = self._explanations().values()
        if explained and all(each.lookahead is None for each in explained):
            title += ", spread out to learn a model from"
        repeated = repeated_places(self)
        return title if repeated is None else f"{title}, {repeated}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return names of the columns, and a list of texts per suggestion.

        If a coordinate has the name of another column, the latter gets an underscore.
        """
        points = [_shown_point(each, self._study) for each in self]
        names = dict.fromkeys(name for point in points for name in point)
        coordinates = {name: [_text(point.get(name)) for point in points] for name in names}
        before = {"id": [str(each.id) for each in self], **_marks(self)}
        after = {"cost": [describe_cost(each) for each in self]}
        explained = self._explanations()
        if any(each.lookahead is not None for each in explained.values()):
            of = [explained.get(each.id) for each in self]
            after["expected value"] = ["" if each is None else each.expected for each in of]
            after["why"] = ["" if each is None else each.why for each in of]
        heads = [*_apart(before, coordinates), *coordinates, *_apart(after, coordinates)]
        texts = [*before.values(), *coordinates.values(), *after.values()]
        return heads, [list(row) for row in zip(*texts, strict=True)]

    def _explanations(self) -> dict[int, Explanation]:
        """Return explanations by id; none if the study went on before they were asked for."""
        study = self._study
        if self._explained is None and study is not None and study.version == self._asked_at:
            self._explained = {each.id: study.explain(each) for each in self[:MAX_EXPLAINED]}
        return self._explained or {}


def _apart(names: Iterable[str], taken: Container[str]) -> list[str]:
    """Return names of columns, with an underscore where a coordinate has the name."""
    return [f"{name}_" if name in taken else name for name in names]


def _marks(batch: Batch) -> dict[str, list[str]]:
    """Return label, vehicle, task, quantities and level of every suggestion, if some have one."""
    marks: dict[str, list[Any]] = {
        "label": [None if each.label == each.index else each.label for each in batch],
        "vehicle": [each.vehicle for each in batch],
        "task": [each.task for each in batch],
        "quantities": [", ".join(each.quantities or ()) or None for each in batch],
        "level": [each.level for each in batch],
    }
    return {
        name: [_text(value) for value in values]
        for name, values in marks.items()
        if any(value is not None for value in values)
    }


def _shown_point(suggestion: Suggestion, study: BaseStudy | None) -> dict[str, Any]:
    """Return the coordinates, with as many digits as tell the points of the domain apart."""
    return suggestion.point if study is None else dict(study.domain.shown(suggestion.point))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
