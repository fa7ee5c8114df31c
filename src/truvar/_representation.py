"""Texts of users as they are shown, and small cards that a notebook shows for an object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as escape_markup
from math import floor, isfinite, log10

# Control characters, separators of lines and paragraphs, changes of the direction of text, halves
# of surrogate pairs: a terminal obeys them, and a reader sees something else than there is.
CONTROL_CHARACTERS = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
LINE_BREAKS_AND_TABS = "\n\r\t"
# No fixed colours, so that a card suits light and dark notebooks.
CARD = "display:inline-block;max-width:46em;padding:.5em;border:1px solid #8884;border-radius:.5em;line-height:1.45"
NAME = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;opacity:.7;font-weight:normal;white-space:nowrap"
CELL = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;font-weight:normal"
TEXT = "text-align:left;padding:.1em 0"


def has_control_characters(text: str) -> bool:
    """Return whether a text holds characters that must not be in a name."""
    return CONTROL_CHARACTERS.search(text) is not None


def visible(text: str) -> str:
    r"""Return a text with its control characters written out, such as "\u202e".

    Line breaks and tabs stay.
    """

    def written_out(match: re.Match[str]) -> str:
        found = match.group()
        return (
            found
            if found in LINE_BREAKS_AND_TABS
            else found.encode("unicode_escape").decode("ascii")
        )

    return CONTROL_CHARACTERS.sub(written_out, text)


def escape(text: str) -> str:
    """Return a text for HTML, with its control characters written out."""
    return escape_markup(visible(text))


def format_uncertain(value: float, sd: float) -> str:
    """Return a value with its standard deviation, to the digits that the latter leaves: "71.2 ± 5.5".

    Args:
        value: The value.
        sd: Its standard deviation.
    """
    if not isfinite(sd) or sd <= 0 or not isfinite(value):
        return f"{value:.6g}"
    decimals = 1 - floor(log10(sd))  # two digits of the standard deviation
    if not -4 < decimals < 7:
        digits = max(2, 2 + floor(log10(max(abs(value), sd))) - floor(log10(sd)))
        return f"{value:.{min(digits, 12)}g} ± {sd:.2g}"
    rounded = round(value, decimals) + 0.0  # no negative zero
    return f"{rounded:.{max(decimals, 0)}f} ± {round(sd, decimals):.{max(decimals, 0)}f}"


def html_card(title: str, subtitle: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a card as HTML; all text is escaped.

    Args:
        title: The object.
        subtitle: What it is about; may be empty.
        rows: Names and texts.
    """
    heading = f"<b>{escape(title)}</b>"
    if subtitle:
        heading += f" <span style='opacity:.8'>{escape(subtitle)}</span>"
    lines = [
        f"<tr style='background:none'><th style='{NAME}'>{escape(name)}</th><td "
        f"style='{TEXT}'>{escape(text)}</td></tr>"
        for name, text in rows
    ]
    table = (
        f"<table style='border-collapse:collapse;margin:.3em 0 0'>{''.join(lines)}</table>"
        if rows
        else ""
    )
    return f"<div class='truvar-card' style='{CARD}'>{heading}{table}</div>"


def text_card(title: str, subtitle: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a card as lines of text.

    Args:
        title: The object.
        subtitle: What it is about; may be empty.
        rows: Names and texts.
    """
    width = max((len(name) for name, _ in rows), default=0)
    heading = f"{title}: {subtitle}" if subtitle else title
    return "\n".join([heading, *(f"  {name:<{width}}  {text}" for name, text in rows)])


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as a card in HTML; all text is escaped.

    Args:
        title: The object.
        columns: Names of the columns.
        rows: A list of texts per row.
    """
    head = "".join(f"<th style='{CELL}'>{escape(name)}</th>" for name in columns)
    lines = [
        "<tr style='background:none'>"
        + "".join(f"<td style='{CELL}'>{escape(text)}</td>" for text in row)
        + "</tr>"
        for row in rows
    ]
    table = (
        "<table style='border-collapse:collapse;margin:.3em 0 0'>"
        f"<tr style='background:none;opacity:.7'>{head}</tr>{''.join(lines)}</table>"
    )
    card = f"{CARD};max-width:100%;overflow-x:auto"
    return f"<div class='truvar-card' style='{card}'><b>{escape(title)}</b>{table}</div>"


def text_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as lines of text.

    Args:
        title: The object.
        columns: Names of the columns.
        rows: A list of texts per row.
    """
    table = [list(columns), *([visible(text) for text in row] for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(columns))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return "\n".join([title, *(f"  {line}" for line in lines)])
