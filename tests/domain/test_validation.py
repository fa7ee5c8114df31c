"""Checks of numbers and arrays return the value in its type, or raise a message with name, value
and remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from truvar.exceptions import InvalidArgumentError
from truvar.validation import (
    check_array,
    check_at_least,
    check_callable,
    check_finite,
    check_fraction,
    check_integer,
    check_nonnegative,
    check_nonnegative_array,
    check_positive,
    check_truth,
)


def test_valid_values_are_returned_in_their_type() -> None:
    assert check_finite(np.float32(0.5), "y") == 0.5
    assert check_nonnegative(0, "noise") == 0.0
    assert check_positive(2, "epsilon") == 2.0
    assert check_fraction(0.5, "delta") == 0.5
    assert type(check_integer(np.int64(3), "steps", 1)) is int
    check_at_least(1.0, 1.0, "k")
    assert check_array([1, 2], "cost").tolist() == [1.0, 2.0]
    assert check_nonnegative_array(2, "cost", 3).tolist() == [2.0, 2.0, 2.0]
    assert check_truth([1, 2], 2).tolist() == [1.0, 2.0]
    check_callable(lambda points: points, "noise", "points")
    check_callable(7, "noise", "points")  # not a function


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_finite("1.5", "y"), "y must be a number, got '1.5'; give a finite number"),
        (lambda: check_finite(True, "y"), "y must be a number, got True; give a finite number"),
        (
            lambda: check_finite(float("nan"), "y"),
            "y must be a finite number, got nan; give a finite number",
        ),
        (
            lambda: check_nonnegative(-0.1, "noise variance"),
            "noise variance must be >= 0, got -0.1; give 0 or more",
        ),
        (
            lambda: check_positive(0, "epsilon"),
            "epsilon must be > 0, got 0; give a positive number",
        ),
        (
            lambda: check_positive(-1.0, "divisor", "5.0"),
            "got -1.0; give a positive number such as 5.0",
        ),
        (
            lambda: check_positive(float("inf"), "epsilon"),
            "epsilon must be a finite number, got inf",
        ),
        (
            lambda: check_fraction(0.0, "delta"),
            "delta must lie between 0 and 1, got 0.0; give a number such as 0.1",
        ),
        (
            lambda: check_fraction(1, "eta", "0.05"),
            "eta must lie between 0 and 1, got 1; give a number such as 0.05",
        ),
        (
            lambda: check_integer(2.5, "n", 1),
            "n must be a whole number >= 1, got 2.5; give one such as 1",
        ),
        (
            lambda: check_integer(0, "n", 1),
            "n must be a whole number >= 1, got 0; give one such as 1",
        ),
        (lambda: check_at_least(0, 1, "k"), "k must be >= 1, got 0; give 1 or more"),
        (lambda: check_at_least(float("nan"), 1, "k"), "k must be >= 1, got nan; give 1 or more"),
        (lambda: check_at_least("many", 1, "k"), "k must be >= 1, got 'many'; give 1 or more"),
        (
            lambda: check_nonnegative_array([1, -3], "cost", 2),
            "cost must be finite and >= 0, got -3.0 (row 1); give",
        ),
        (lambda: check_nonnegative_array([1], "cost", 2), "shape (2,), got shape (1,)"),
        (lambda: check_truth([1, np.inf], 2), "got inf at index 1"),
        (
            lambda: check_callable(lambda: 1, "noise", "points"),
            "noise as a function is called as noise(points)",
        ),
    ],
)
def test_invalid_values_are_named_with_a_remedy(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert message in str(caught.value)
