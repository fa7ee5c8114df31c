"""Text in CSV files and workbooks: a spreadsheet must not take it for a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_QUOTE = "'"  # in front of a text that begins like a formula; spreadsheets do not show it


def measurements_csv(frame: pd.DataFrame) -> str:
    """Return a table as CSV text without names or texts that look like formulas.

    Numbers are unchanged.
    """
    return str(quoted_frame(frame).to_csv(index=False))


def quoted_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no name and no text can be taken for a formula."""
    safe = frame.rename(columns=_quote_cell)
    for position, column in enumerate(safe.columns):
        if safe.dtypes.iloc[position].kind == "O":
            safe = safe.assign(
                **{str(column): [_quote_cell(cell) for cell in safe.iloc[:, position]]}
            )
    return safe


def _quote_cell(cell: Any) -> Any:
    """Return a cell that a spreadsheet shows and does not compute."""
    return f"{_QUOTE}{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell


def unquote_cell(cell: str) -> str:
    """Return the text that `_quote_cell` was given."""
    return (
        cell[1:]
        if cell.startswith(tuple(f"{_QUOTE}{start}" for start in _FORMULA_STARTS))
        else cell
    )
