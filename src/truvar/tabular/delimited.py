"""Delimited text with semicolons or tabs, decimal commas, thousands separators and units.

| file | delimiter | 1234.5 is |
|---|---|---|
| English | comma | 1234.5 or "1,234.5" |
| German, French, ... | semicolon | 1234,5 or 1.234,5 or 1 234,5 |
| Swiss | semicolon | 1'234.5 |

The delimiter is the character that splits the header into the most names. The decimal sign is found
from all numbers of the file together: a comma is a decimal sign if a number has it where no
thousands separator can be, or if the delimiter is not a comma and no number has a decimal point. A
file in which some numbers have a decimal comma and others a decimal point is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO

from truvar.exceptions import InvalidArgumentError

_DELIMITERS = (",", ";", "\t", "|")
# Recognised, but refused: they also occur within cells.
_OTHER_DELIMITERS = {"spaces": r"\s+", "colons": ":"}
_MIN_LINES = 2  # the header and a row
_CHECKED_LINES = 20  # lines that must split alike
# Characters between thousands that are never a decimal sign.
_GROUPING = " '\u2019\u00a0\u2009\u202f"
_MISSING_TEXTS = frozenset(
    {"", "-", "--", "–", "—", "na", "n/a", "nan", "null", "none", "#n/a"}
)  # in lower case

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_GROUPED = {sign: rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(sign)}\d{{3}})+" for sign in (",", ".")}
_SPACED = rf"[+-]?[1-9]\d{{0,2}}(?:[{_GROUPING}]\d{{3}})+"
_FORMS = {  # of numbers with a comma or a point
    "decimal ,": re.compile(rf"(?:[+-]?\d*|{_SPACED}|{_GROUPED['.']}),\d*{_EXPONENT}"),
    "decimal .": re.compile(rf"(?:[+-]?\d*|{_SPACED}|{_GROUPED[',']})\.\d*{_EXPONENT}"),
    "grouped ,": re.compile(_GROUPED[","]),
    "grouped .": re.compile(_GROUPED["."]),
}
_SUSPICIOUS = re.compile(
    rf'"|\d[{_GROUPING}]\d{{3}}'
)  # what a file has that pandas alone might read wrongly
_UNIT = re.compile(r"(?P<name>.*?)\s*[\(\[](?P<unit>[^\)\]]*)[\)\]]\s*")


@dataclass(frozen=True)
class NumberFormat:
    """Signs in the numbers of a file.

    Attributes:
        decimal: Decimal sign, "." or ",".
        thousands: Whether the other sign separates thousands somewhere in the file.
    """

    decimal: str = "."
    thousands: bool = False

    def parse(self, text: str) -> float:
        """Return a number.

        Raises:
            ValueError: If the text is not a number of this format.
        """
        text = text.strip()
        if self._pattern.fullmatch(text):
            plain = re.sub(rf"[{_GROUPING}]", "", text)
            other = "," if self.decimal == "." else "."
            return float(plain.replace(other, "").replace(self.decimal, "."))
        if (
            self.decimal == "," and "." in text
        ):  # 1.5 in a file with decimal commas is neither 1.5 nor 15
            raise ValueError(text)
        return float(text)

    @property
    def _pattern(self) -> re.Pattern[str]:
        decimal = re.escape(self.decimal)
        whole = rf"[+-]?\d*|{_SPACED}"
        if self.thousands:
            whole += f"|{_GROUPED[',' if self.decimal == '.' else '.']}"
        return re.compile(rf"(?=[^,.]*\d|[+-]?[.,]\d)(?:{whole})(?:{decimal}\d*)?{_EXPONENT}")


@dataclass(frozen=True)
class DelimitedText:
    """The cells of a delimited text.

    Attributes:
        header: Names of the columns, without spaces around them.
        rows: Number of the line and cells of every row that is not empty; empty cells beyond the
            header are left out.
        numbers: Format of its numbers.
        delimiter: Character between the cells.
    """

    header: list[str]
    rows: list[tuple[int, list[str]]]
    numbers: NumberFormat
    delimiter: str = ","


def read_cells(text: str) -> DelimitedText:
    """Split a text into its cells.

    Args:
        text: The text; its first line names the columns.

    Raises:
        InvalidArgumentError: If the text is empty or not delimited text, or decimal signs are
            mixed; the message names the line.
    """
    delimiter = _find_delimiter(text)
    lines = csv.reader(StringIO(text.lstrip("\ufeff")), strict=True, delimiter=delimiter)
    try:
        rows = [
            (lines.line_num, [cell.strip() for cell in row])
            for row in lines
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise InvalidArgumentError(
            f"line {lines.line_num}: not valid CSV ({error}); fix the line"
        ) from None
    if not rows:
        raise InvalidArgumentError(
            "the file is empty; its first line must name the columns, for example id,value"
        )
    return from_rows(rows[0][1], rows[1:], delimiter)


def from_rows(
    header: Sequence[str], rows: Sequence[tuple[int, list[str]]], delimiter: str = ","
) -> DelimitedText:
    """Return rows of cells with their number format, without empty cells beyond the header.

    Raises:
        InvalidArgumentError: If decimal signs are mixed.
    """
    names = [name.strip() for name in header]
    while names and not names[-1]:  # a delimiter at the end of every line
        names.pop()
    checked = []
    for line, row in rows:
        cells = row if any(row[len(names) :]) else row[: len(names)]
        checked.append((line, cells))
    return DelimitedText(names, checked, _find_number_format(checked, delimiter), delimiter)


def _find_delimiter(text: str) -> str:
    """Return the delimiter of a text: the one that splits its first line into most names."""
    first = next((line for line in text.lstrip("\ufeff").splitlines() if line.strip()), "")
    header = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=header.count)


def check_delimiter(text: str) -> None:
    """Check that the cells of a text are separated by one of the delimiters that are recognised.

    Raises:
        InvalidArgumentError: If every line splits at spaces or colons instead, into as many parts
            as the header.
    """
    lines = [line.strip() for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    if len(lines) < _MIN_LINES or any(delimiter in lines[0] for delimiter in _DELIMITERS):
        return
    for name, pattern in _OTHER_DELIMITERS.items():
        split = [re.split(pattern, line) for line in lines[:_CHECKED_LINES]]
        counts = {len(cells) for cells in split}
        has_numbers = all(cell[:1] in "+-.0123456789" for cells in split[1:] for cell in cells)
        if len(counts) == 1 and counts != {1} and has_numbers:
            raise InvalidArgumentError(
                f"cells must be separated by commas, semicolons or tabs, got {name} in the line "
                f"{lines[0]!r}; replace "
                f"them, or read the file with pd.read_csv(path, sep={pattern!r})"
            )


def has_repeated_names(text: str) -> bool:
    """Return whether the first line of a comma-separated text names a column twice."""
    first = next((line for line in text.lstrip("\ufeff").splitlines() if line.strip()), "")
    names = [name.strip() for name in first.split(",") if name.strip()]
    return len(set(names)) < len(names)


def is_plain(text: str) -> bool:
    """Return whether a text is comma-separated, unquoted, with numbers as Python writes them."""
    return _find_delimiter(text) == "," and _SUSPICIOUS.search(text) is None


def _find_number_format(rows: Iterable[tuple[int, list[str]]], delimiter: str) -> NumberFormat:
    """Return the format of all numbers in some rows.

    Args:
        rows: Number of the line and cells of every row.
        delimiter: The delimiter of the file.

    Raises:
        InvalidArgumentError: If some numbers have a decimal comma and others a decimal point.
    """
    seen = _first_of_each_form(rows)
    comma = seen.get("decimal ,") or seen.get("grouped .")
    point = seen.get("decimal .") or seen.get("grouped ,")
    # "1,234" and "1.234" may be either; what they are follows from the other numbers and the
    # delimiter.
    open_comma = seen.get("decimal , or grouped ,")
    open_point = seen.get("decimal . or grouped .")
    if open_comma and open_point and not comma and not point:
        comma = open_comma
        point = open_point
    if comma and point:
        raise InvalidArgumentError(
            f"line {max(comma[0], point[0])}: numbers must have one decimal sign, got {comma[1]!r} "
            f"(line {comma[0]}) "
            f"and {point[1]!r} (line {point[0]}); write all of them alike"
        )
    if comma or (open_comma and not point and delimiter != ","):
        return NumberFormat(
            ",", thousands=bool("thousands" in seen or seen.get("grouped .") or open_point)
        )
    return NumberFormat(
        ".", thousands=bool("thousands" in seen or seen.get("grouped ,") or open_comma)
    )


def _first_of_each_form(rows: Iterable[tuple[int, list[str]]]) -> dict[str, tuple[int, str]]:
    """Return the line and text of the first number of each form.

    A form is a name of `_FORMS`, or two names joined by " or ": "1,234" is "decimal , or grouped
    ,". The form "thousands" is that of numbers with both signs.
    """
    seen: dict[str, tuple[int, str]] = {}
    for line, cells in rows:
        for cell in cells:
            if ("," not in cell and "." not in cell) or not any(
                character.isdigit() for character in cell
            ):
                continue
            forms = [form for form, pattern in _FORMS.items() if pattern.fullmatch(cell)]
            if forms:
                seen.setdefault(" or ".join(forms), (line, cell))
            if forms and "," in cell and "." in cell:
                seen.setdefault("thousands", (line, cell))
    return seen


def is_missing(cell: str) -> bool:
    """Return whether a cell stands for a missing value."""
    return cell.strip().lower() in _MISSING_TEXTS


# -- headers
# --------------------------------------------------------------------------------------------------


def find_column(names: Iterable[str], wanted: str) -> str | None:
    """Find the name of a column in a header, ignoring a unit that follows it.

    "depth (m)" and "Depth [m]" stand for "depth" and for "depth_m".

    Args:
        names: The names in the header.
        wanted: The name of the column.

    Returns:
        The name; None if no name matches, or several do.
    """
    known = [str(name) for name in names]
    if wanted in known:
        return wanted
    found = [name for name in known if str(wanted).casefold() in _alternatives(name)]
    return found[0] if len(found) == 1 else None


def _alternatives(name: str) -> set[str]:
    """Return the names that a header name can stand for, in lower case."""
    match = _UNIT.fullmatch(name.strip())
    if match is None or not match["name"]:
        return set()
    base = match["name"].casefold()
    return {base, f"{base}_{match['unit'].strip().casefold()}"}
