"""Configurations of any parameters as a table for `Domain.table`: numbers on a linear or log scale, others as text.

Numbers go from 0 to 1, so that the learned length-scale says how much the parameter matters. Columns of text are
categories to the domain.
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

NUMBER = "(number)"  # category of all numbers of a parameter that has other values too
ABSENT = "(absent)"  # value of a parameter that a configuration does not have, as in a list of grids


def encode(configurations: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Encode configurations as points.

    Args:
        configurations: Parameters by name; not all configurations need the same names.

    Returns:
        A row per configuration. A parameter has a column of numbers, a column of texts or, if it mixes numbers with
        other values, both. Columns that never change, or that repeat or mirror another one, are left out.
        Configurations with equal parameters have equal rows.
    """
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    columns: dict[str, Any] = {}
    for name in names:
        columns |= _coordinates(name, [configuration.get(name, ABSENT) for configuration in configurations])
    distinct: dict[bytes, tuple[str, Any]] = {}
    for name, values in columns.items():
        codes = values if values.dtype.kind == "f" else pd.factorize(values)[0].astype(float)
        if np.ptp(codes) > 0 and (1 - codes).tobytes() not in distinct:
            distinct.setdefault(codes.tobytes(), (name, values))
    return pd.DataFrame(dict(distinct.values()), index=range(len(configurations)))


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number. Booleans are not."""
    return not isinstance(value, (bool, np.bool_)) and isinstance(value, Real) and math.isfinite(value)


def scale_to_unit(values: Array) -> Array:
    """Scale numbers to [0, 1], by their logarithms if they are spaced geometrically.

    A zero before a geometric sequence (0, 0.1, 1, 10) is placed one step below its smallest number.
    """
    positive = np.unique(values[values > 0])
    if is_geometric(positive) and values.min() >= 0:
        step = float(np.diff(np.log(positive)).mean())
        values = np.log(np.where(values > 0, values, positive[0] * np.exp(-step)))
    low = values.min()
    high = values.max()
    return np.asarray((values - low) / (high - low)) if high > low else np.zeros(len(values))


def value_hash(value: Any) -> str:
    """Return a text that is equal for equal parameters of any type, including estimators and arrays."""
    import joblib

    try:
        return str(joblib.hash(value))
    except Exception:  # an object that cannot be pickled is only equal to itself
        return f"object {id(value)}"


def _coordinates(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of one parameter: one for its numbers, and one that tells its other values apart."""
    numeric = np.array([is_number(value) for value in values])
    if _mixes_equal_types([value for value, is_one in zip(values, numeric, strict=True) if is_one]):
        numeric[:] = False  # 1 and 1.0 mean different things to some estimators, so they become categories
    columns: dict[str, Any] = {}
    if numeric.any():
        numbers = np.array([float(value) for value, is_one in zip(values, numeric, strict=True) if is_one])
        coordinate = np.full(len(values), 0.5)
        coordinate[numeric] = scale_to_unit(numbers)
        columns[name] = coordinate
    if not numeric.all():
        hashes = [NUMBER if is_one else value_hash(value) for value, is_one in zip(values, numeric, strict=True)]
        positions = {category: position for position, category in enumerate(dict.fromkeys(hashes))}
        texts = [f"value {positions[category]}" for category in hashes]
        columns[f"{name}=" if numeric.any() else name] = np.array(texts, dtype=object)
    return columns


def _mixes_equal_types(numbers: Sequence[Any]) -> bool:
    """Return whether some number occurs both as an integer and as a float."""
    typed = {(isinstance(value, Integral), float(value)) for value in numbers}
    return len(typed) > len({value for _, value in typed})
