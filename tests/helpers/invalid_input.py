"""Helpers for tests of invalid input: small studies, and the form of error messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv

GRID = tv.Domain.grid(x=np.linspace(0, 1, 5), y=np.linspace(0, 1, 4))
TABLE = pd.DataFrame(
    {"a": [0.0, 1, 2], "b": [0.0, 0, 1], "price": [1.0, -2, 3], "kind": ["p", "q", "r"]}
)
KERNEL = ConstantKernel(1.0) * RBF(0.3)
NAN = float("nan")
INF = float("inf")
HERE = {"x": 0.0, "y": 0.0}
DATA = pd.DataFrame(
    {"x": [0.1, 0.5, 0.9, 0.3], "y": [0.2, 0.4, 0.6, 0.9], "v": [1.0, 2, 3, 1], "w": [0.0, 1, 0, 1]}
)


def a_study(domain: tv.Domain = GRID, goal: Any = None, **settings: Any) -> tv.Study:
    known = {"kernel": KERNEL, "mean": 0.0, "noise": 0.01, **settings}
    return tv.Study(domain, goal or tv.LevelSet(0.5), **known)


def levels(**settings: Any) -> tv.Study:
    return a_study(noise=tv.NoiseLevels([1e-3, 0.1], [3, 1]), **settings)


def tasks(**options: Any) -> tv.Study:
    return a_study(tasks=tv.Tasks([[1, 0.5], [0.5, 1]], ["f", "proxy"], **options))


def refused(mistake: Callable[[], object], *parts: str) -> None:
    """The mistake raises a TruvarError of one line that holds all the parts and says what to do
    instead."""
    with pytest.raises(tv.TruvarError) as caught:
        mistake()
    message = str(caught.value)
    assert "\n" not in message
    assert isinstance(caught.value, ValueError)
    for part in parts:
        assert part in message
    assert any(mark in message for mark in ("; ", ": ", "for example")), f"no remedy in {message!r}"


def assert_same(one: tv.Study, other: tv.Study, *, rounding: float = 1e-12) -> None:
    """Two studies stand at the same place, and go on alike, with gains that agree up to
    rounding."""
    a = one.result()
    b = other.result()
    for name in ("potential", "above", "below", "mean", "sd", "lower", "upper"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.to_dict() == b.to_dict()
    assert one.pending == other.pending
    assert one.epoch == other.epoch
    assert one.finished == other.finished
    pd.testing.assert_frame_equal(one.measurements, other.measurements)
    pd.testing.assert_frame_equal(one.history, other.history)
    for y in (0.7, -0.4):
        mine = one.ask()
        theirs = other.ask()
        assert mine == replace(theirs, gain=mine.gain)
        assert mine.gain == pytest.approx(theirs.gain, rel=1e-9)
        one.tell(mine, y)
        other.tell(theirs, y)
    np.testing.assert_array_equal(one.result().mean, other.result().mean)
    np.testing.assert_allclose(
        one.gains(), other.gains(), rtol=0, atol=rounding
    )  # an engine may add in another order
