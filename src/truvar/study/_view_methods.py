"""`ViewMethods`: the methods of a study that explain it or write it to a file."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

from truvar.exceptions import UnknownSuggestionError
from truvar.study.explanation import Explanation, explain
from truvar.study.suggestion import Suggestion


class ViewMethods:
    """Explanations and files of a study, here or on a server."""

    def explain(self, what: Suggestion | int) -> Explanation:
        """Return why a measurement is suggested: expected value, what it settles, gain and cost.

        Args:
            what: A pending suggestion or its id.

        Returns:
            The explanation, which a console or notebook shows as a card.

        Raises:
            UnknownSuggestionError: If no such suggestion is pending.

        Example:
            >>> study.explain(study.ask())
        """
        study: Any = self  # every study is a BaseStudy
        wanted = what.id if isinstance(what, Suggestion) else what
        pending = {each.id: each for each in study.pending}
        is_id = isinstance(wanted, Integral) and not isinstance(wanted, bool)
        if not is_id or wanted not in pending:
            known = ", ".join(map(str, pending)) or "none"
            raise UnknownSuggestionError(
                f"a pending suggestion can be explained, got {wanted!r}; pending are {known}"
            )
        return explain(study, pending[wanted])

    def to_excel(self, path: str | Path) -> Path:
        """Write the study to an Excel workbook.

        Its sheets are the measurements, the pending suggestions with expected values, reasons and
        an empty column for their values, all points with mean, sd, probability and class, and the
        settings with the answer; failures, if there are some. `tell_frame` and `truvar import` read
        the first sheet.

        Args:
            path: A file that ends in .xlsx.

        Returns:
            The path.

        Raises:
            InvalidArgumentError: If the suffix is another one.
            MissingDependencyError: If openpyxl is not installed.
            OutputError: If the file cannot be written.

        Example:
            >>> study.to_excel("yield.xlsx")
        """
        from truvar.report import save_workbook

        study: Any = self  # every study is a BaseStudy
        return save_workbook(study, path)
