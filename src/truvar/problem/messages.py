"""Messages for values that do not match a schema, for TOML files, dicts and HTTP requests.

pydantic reports errors as records. `problem_message` and `request_message` turn one into a line
such as `[noise] variance must be >= 0, got -0.1; give 0 or more`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from truvar.messages import unknown_name

MAX_VALUE_LENGTH = 200  # characters of a value that a message repeats
_MAX_VALUE_DEPTH = 4  # levels of nested lists and tables that it shows
TEXT = "<text>"  # tag of a union that pydantic adds to the location: the value is text
TABLE = "<table>"  # and this one: the value is a table of keys
NUMBERS = "<numbers>"  # and this one: the value is a list of numbers
VALUES = "<values>"  # and this one: the value is a list of texts

# Requirements on values, and how to meet them, by pydantic's type of error; {...} is filled in from
# the error's context.
_EXPECTED: dict[str, tuple[str, str]] = {
    "bool_type": ("true or false", "write true or false"),
    "dict_type": ("a table of keys", "give one such as {{x = 1.0}}"),
    "expected": ("{expected}", "{remedy}"),
    "finite_number": ("a finite number", "give a finite number"),
    "float_type": ("a number", "give a finite number"),
    "greater_than": ("> {gt}", "give more than {gt}"),
    "greater_than_equal": (">= {ge}", "give {ge} or more"),
    "int_from_float": ("a whole number", "give one such as 1"),
    "int_type": ("a whole number", "give one such as 1"),
    "less_than": ("< {lt}", "give less than {lt}"),
    "less_than_equal": ("<= {le}", "give {le} or less"),
    "list_type": ("a list", "give one such as [1.0, 2.0]"),
    "literal_error": ("one of {expected}", "use one of them"),
    "model_attributes_type": ("a table of keys", "give every value by its key"),
    "model_type": ("a table of keys", "give every value by its key"),
    "string_pattern_mismatch": ("text that matches {pattern}", "correct it"),
    "string_too_long": ("text of at most {max_length} characters", "shorten it"),
    "string_too_short": ("text of at least {min_length} characters", "write more"),
    "string_type": ("text", "write it in quotation marks"),
}

Error = Mapping[str, Any]
"""One record of `ValidationError.errors()`."""


def expects(expected: str, remedy: str = "correct it", *, parts: bool = False) -> WrapValidator:
    """Return a validator that reports one error for a whole value, whatever part of it is wrong.

    Args:
        expected: What the value must be, as in "must be ...".
        remedy: How to correct it.
        parts: Report an error inside the value at its own place.
    """

    def validate(value: Any, handler: Any) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            if parts and error.errors(include_url=False)[0]["loc"]:
                raise
            context = {"expected": expected, "remedy": remedy}
            raise PydanticCustomError("expected", "expected {expected}", context) from None

    return WrapValidator(validate)


def rule_error(message: str) -> PydanticCustomError:
    """Return the error for a rule between keys; the message follows their section's name."""
    return PydanticCustomError("rule", "{message}", {"message": message})


def unknown_name_error(kind: str, name: str, known: Collection[str]) -> PydanticCustomError:
    """Return the error for a name that does not exist.

    Args:
        kind: What it is a name of, such as "key".
        name: The name that was given.
        known: The names that exist.
    """
    return PydanticCustomError(
        "unknown_name", "{message}", {"message": unknown_name(kind, name, known)}
    )


def problem_message(error: Error, sections: Collection[str]) -> str:
    """Describe an error of a problem file or dict.

    Args:
        error: The record of the error; the location is that in the problem.
        sections: Keys of the problem that are tables, written in brackets.
    """
    return _message(error, _toml_location(error["loc"], sections), "the problem")


def request_message(error: Error, sections: Collection[str]) -> str:
    """Describe an error of an HTTP request.

    Args:
        error: The record of the error; the location begins with "body", "query", "path" or
            "header".
        sections: Keys of a problem in the body that are tables, written in brackets.
    """
    parts = list(error["loc"][1:])
    if len(parts) > 1 and parts[0] == "problem" and parts[1] == TABLE:
        return _message(error, _toml_location(parts[2:], sections), "the problem")
    return _message(error, _dotted(parts), "the body")


def _format_value(value: Any) -> str:
    """Return a value in the notation of TOML, shortened if it is long."""
    text = _format(value)
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    return f"{text[:MAX_VALUE_LENGTH]}..."


def _message(error: Error, location: str, whole: str) -> str:
    kind = error["type"]
    context = error.get("ctx", {})
    where = location or whole
    if kind == "unknown_name":
        return f"{location}: {context['message']}" if location else str(context["message"])
    if kind == "rule":
        return f"{location} {context['message']}".strip()
    if kind == "missing":
        return f"{where} is missing; give it"
    value = _format_value(error["input"])
    if kind not in _EXPECTED:
        return f"{where}: {error['msg']}, got {value}; correct it"
    expected, remedy = (text.format_map(_plain_numbers(context)) for text in _EXPECTED[kind])
    return f"{where} must be {expected}, got {value}; {remedy}"


def _plain_numbers(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context with 0 instead of 0.0."""
    plain = {}
    for name, value in context.items():
        plain[name] = f"{value:g}" if isinstance(value, float) else value
    return plain


def _toml_location(parts: Sequence[str | int], sections: Collection[str]) -> str:
    """Return the place in a problem file, such as "seed", "[noise]" or "[domain] grid.x"."""
    if parts and parts[0] in sections:
        return f"[{parts[0]}] {_dotted(parts[1:])}".strip()
    return _dotted(parts)


def _dotted(parts: Sequence[str | int]) -> str:
    """Return "levels[1].variance" for ("levels", 1, "variance")."""
    text = ""
    for part in parts:
        if part in (TEXT, TABLE, NUMBERS, VALUES):
            continue
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _format(value: Any, depth: int = 0) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value[: MAX_VALUE_LENGTH + 1]}'"
    if isinstance(value, (list, tuple)):
        if depth == _MAX_VALUE_DEPTH:
            return "[...]"
        return f"[{', '.join(_format(part, depth + 1) for part in value[:MAX_VALUE_LENGTH])}]"
    if isinstance(value, Mapping):
        if depth == _MAX_VALUE_DEPTH:
            return "{...}"
        pairs = list(value.items())[:MAX_VALUE_LENGTH]
        return f"{{{', '.join(f'{key} = {_format(part, depth + 1)}' for key, part in pairs)}}}"
    return str(value)
