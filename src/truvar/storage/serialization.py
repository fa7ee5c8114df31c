"""What a study is made of, written down as JSON values and read back exactly.

Numbers keep every bit. An object is a table with its class: {"kind": "LevelSet", "threshold": 7.0, ...}, a scikit-learn
kernel likewise, with its parameters. A Python function or a class of the user's own cannot be written down.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from truvar.acquisition import TopK, policy_classes
from truvar.acquisition.confidence import ConstantBeta, LogBeta, RKHSBeta, TheoremBeta
from truvar.domain.costs import Cost, NoiseLevels, Tasks
from truvar.domain.domain import Domain, mesh
from truvar.domain.goals import LevelSet, Maximize, Minimize
from truvar.exceptions import TruvarError
from truvar.models.fit import Learned, Model

_CLASSES: tuple[Any, ...] = (
    *(Maximize, Minimize, LevelSet, NoiseLevels, Cost, Tasks, Learned, Model, TopK),
    *(LogBeta, ConstantBeta, TheoremBeta, RKHSBeta),
    *policy_classes().values(),
)
CLASSES = {each.__name__: each for each in _CLASSES}
RENAMED_CLASSES = {"Top": "TopK"}  # stored by release 0.1.0 -> name since


def serialize(value: Any, what: str = "this") -> Any:
    """The value as JSON values; `what` names it in the message if that cannot be done."""
    match value:
        case None | bool() | int() | str():
            return value
        case np.bool_() | np.integer():
            return value.item()
        case float() | np.floating():
            return float(value) if np.isfinite(value) else {"kind": "float", "value": str(float(value))}
        case np.ndarray():
            return {"kind": "array", "values": _numbers(value, what)}
        case list():
            return [serialize(item, what) for item in value]
        case tuple():
            return {"kind": "tuple", "values": [serialize(item, what) for item in value]}
        case Mapping() if "kind" not in value and all(isinstance(key, str) for key in value):
            return {key: serialize(item, f"{what} ({key})") for key, item in value.items()}
        case Mapping():
            return {
                "kind": "dict",
                "items": [[serialize(key, what), serialize(item, what)] for key, item in value.items()],
            }
        case pd.Series() | pd.Index():
            return serialize(value.to_numpy(), what)
        case Domain():
            return {"kind": "Domain", **_domain_parts(value)}
        case Kernel() if getattr(kernels, type(value).__name__, None) is type(value):
            return _object(type(value).__name__, value.get_params(deep=False), what)
    name = type(value).__name__
    if is_dataclass(value) and CLASSES.get(name) is type(value):
        return _object(name, {field.name: getattr(value, field.name) for field in fields(value)}, what)
    remedy = "give numbers, a column of the table, or the classes that truvar and scikit-learn have for it"
    raise TruvarError(f"{what} cannot be written down, as it is {value!r}; {remedy}, or leave out store=...")


def deserialize(serialized: Any) -> Any:
    """The value that was written down."""
    if isinstance(serialized, list):
        return [deserialize(item) for item in serialized]
    if not isinstance(serialized, Mapping):
        return serialized
    if "kind" not in serialized:
        return {key: deserialize(item) for key, item in serialized.items()}
    kind = serialized["kind"]
    parts = {key: item for key, item in serialized.items() if key != "kind"}
    if kind == "float":
        return float(parts["value"])
    if kind == "array":
        return np.array(deserialize(parts["values"]))
    if kind == "tuple":
        return tuple(deserialize(parts["values"]))
    if kind == "dict":
        return {deserialize(key): deserialize(item) for key, item in parts["items"]}
    if kind == "Domain":
        return _domain(parts)
    known = CLASSES.get(RENAMED_CLASSES.get(kind, kind)) or _kernel_class(kind)
    if known is None:
        raise TruvarError(f"this version of truvar does not know {kind!r}, which was written by another; update it")
    return known(**{key: deserialize(item) for key, item in parts.items()})


def to_text(value: Any) -> str:
    """JSON values as text: floats by their shortest form that reads back exactly."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def _object(name: str, parts: Mapping[str, Any], what: str) -> dict[str, Any]:
    return {"kind": name, **{key: serialize(item, f"{key} of {what}") for key, item in parts.items()}}


def _kernel_class(name: str) -> type[Kernel] | None:
    found = getattr(kernels, name, None)
    return found if isinstance(found, type) and issubclass(found, Kernel) else None


# -- domains ---------------------------------------------------------------------------------------------------------


def _domain_parts(domain: Domain) -> dict[str, Any]:
    parts: dict[str, Any] = {"columns": list(domain.columns)}
    if domain.frame is not None:
        return {**parts, "table": [_column(domain.frame, k) for k in range(domain.frame.shape[1])]}
    parts |= {"bounds": domain.bounds.tolist(), "continuous": domain.continuous}
    if domain.axes is not None:
        return {**parts, "axes": [axis.tolist() for axis in domain.axes]}
    return {**parts, "points": domain.points.tolist()}


def _domain(parts: Mapping[str, Any]) -> Domain:
    if "table" in parts:
        columns = [pd.Series(deserialize(column["values"]), dtype=column["type"]) for column in parts["table"]]
        frame = pd.concat(columns, axis=1, keys=range(len(columns))) if columns else pd.DataFrame()
        frame.columns = pd.Index([column["name"] for column in parts["table"]])
        return Domain.table(frame, parts["columns"])
    bounds, axes = np.array(parts["bounds"]), None
    if "axes" in parts:
        axes = tuple(np.array(axis, dtype=float) for axis in parts["axes"])
    points = np.array(parts["points"], dtype=float) if axes is None else mesh(axes)
    return Domain(tuple(parts["columns"]), points, bounds, axes=axes, continuous=parts["continuous"])


def _column(frame: pd.DataFrame, k: int) -> dict[str, Any]:
    column, name = frame.iloc[:, k], frame.columns[k]
    if column.dtype.kind not in "biuf":  # text, dates, ...: as text, which is all that one sees of them
        values = [None if missing else str(item) for item, missing in zip(column, column.isna(), strict=True)]
        return {"name": serialize(name, "a column's name"), "type": "object", "values": values}
    numbers = column.to_numpy()
    return {
        "name": serialize(name, "a column's name"),
        "type": str(numbers.dtype),
        "values": _numbers(numbers, str(name)),
    }


def _numbers(array: np.ndarray[Any, Any], what: str) -> Any:
    """Plainly if all are finite, as they nearly always are."""
    plain = array.dtype.kind in "biu" or (array.dtype.kind == "f" and bool(np.isfinite(array).all()))
    return array.tolist() if plain else serialize(array.tolist(), what)
