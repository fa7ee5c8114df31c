"""Texts of users as they are shown, and small cards that a notebook shows for an object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as escape_markup

# Control characters, separators of lines and paragraphs, changes of the direction of text, halves
# of surrogate pairs: a terminal obeys them, and a reader sees something else than there is.
CONTROL_CHARACTERS = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
LINE_BREAKS_AND_TABS = "\n\r\t"
# No colours of its own, so that a card suits light and dark notebooks.
CARD = "display:inline-block;max-width:46em;padding:.5em;border:1px solid #8884;border-radius:.5em;line-height:1.45"
NAME = "text-align:left;vertical-align:top;padding:.1em 1em .1em 0;opacity:.7;font-weight:normal;white-space:nowrap"
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
