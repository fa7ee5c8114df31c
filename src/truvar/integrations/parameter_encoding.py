"""Settings of any kind as coordinates: numbers on a linear or logarithmic scale, everything else by indicators.

Every coordinate runs from 0 to 1, so that one learned length-scale each says how much the setting matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from truvar._typing import Array
from truvar.domain.scales import is_geometric

ABSENT = "(absent)"  # of a setting that a configuration does not have, as in a list of grids


def encode(configurations: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per configuration, one column per coordinate; a coordinate that never changes, or that repeats or mirrors
    another, is left out. Configurations of which every setting is the same get the same row."""
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    columns: dict[str, Array] = {}
    for name in names:
        columns |= _coordinates(name, [configuration.get(name, ABSENT) for configuration in configurations])
    distinct: dict[bytes, tuple[str, Array]] = {}
    for name, values in columns.items():
        if np.ptp(values) > 0 and (1 - values).tobytes() not in distinct:
            distinct.setdefault(values.tobytes(), (name, values))
    return pd.DataFrame(dict(distinct.values()), index=range(len(configurations)))


def is_number(value: Any) -> bool:
    """A finite number; truth values are none."""
    return not isinstance(value, (bool, np.bool_)) and isinstance(value, Real) and math.isfinite(value)


def scaled(values: Array) -> Array:
    """Numbers on [0, 1]: by their logarithms where they are geometric. A zero before a geometric row (0, 0.1, 1, 10)
    comes one step below its least."""
    positive = np.unique(values[values > 0])
    if is_geometric(positive) and values.min() >= 0:
        step = float(np.diff(np.log(positive)).mean())
        values = np.log(np.where(values > 0, values, positive[0] * np.exp(-step)))
    low, high = values.min(), values.max()
    return np.asarray((values - low) / (high - low)) if high > low else np.zeros(len(values))


def _coordinates(name: str, values: Sequence[Any]) -> dict[str, Array]:
    """The coordinates of one setting: one for its numbers, and an indicator for each value that is none."""
    numeric = np.array([is_number(value) for value in values])
    if numeric.any() and _ambiguous([value for value, is_one in zip(values, numeric, strict=True) if is_one]):
        numeric[:] = False  # 1 and 1.0 mean different things to some estimators
    columns: dict[str, Array] = {}
    if numeric.any():
        numbers = np.full(len(values), 0.5)
        numbers[numeric] = scaled(
            np.array([float(value) for value, is_one in zip(values, numeric, strict=True) if is_one])
        )
        columns[name] = numbers
    kinds = [None if is_one else identity(value) for value, is_one in zip(values, numeric, strict=True)]
    others = list(dict.fromkeys(kind for kind in kinds if kind is not None))
    if len(others) == 2 and not numeric.any():
        others = others[1:]
    for position, other in enumerate(others):
        columns[f"{name}={position}"] = np.array([float(kind == other) for kind in kinds])
    return columns


def _ambiguous(numbers: Sequence[Any]) -> bool:
    return len({(isinstance(value, Integral), float(value)) for value in numbers}) > len({float(v) for v in numbers})


def identity(value: Any) -> str:
    """A text that is the same for equal settings of any kind, estimators and arrays included."""
    import joblib

    try:
        return str(joblib.hash(value))
    except Exception:  # what cannot be pickled is itself alone
        return f"object {id(value)}"
