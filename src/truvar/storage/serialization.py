"""Conversion of the parts of a study to JSON values and back, without loss.

Floats keep every bit. An object is a JSON object with the name of its class and its fields, such as
`{"kind": "LevelSet", "threshold": 7.0, ...}`; a scikit-learn kernel likewise, with its parameters.
Functions and classes of the user's own cannot be serialized.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._names import RENAMED, STORED_MODULES
from truvar._typing import Array
from truvar.domain.domain import Domain
from truvar.domain.geo import ORIGINS
from truvar.domain.grid import mesh
from truvar.domain.table import check_rows, row_fields
from truvar.exceptions import DamagedStudyError, SerializationError
from truvar.messages import for_interface
from truvar.models.kernels import SMOOTHNESS, NamedKernel
from truvar.storage.base import MAX_AUTHOR_LENGTH, Event
from truvar.tabular.labels import RowLabels

if TYPE_CHECKING:
    import pandas as pd

_STUDY_FORMAT = "truvar study 1"  # value of "format" in a study as JSON
_KERNEL_MODULE = "sklearn.gaussian_process.kernels"
# Bounds of a kernel's parameters by default, as stored.
_DEFAULT_BOUNDS = {"kind": "tuple", "values": [1e-05, 100000.0]}
# Column types that are stored as text.
_RESTORED_TIMES = ("datetime64[ns]", "datetime64[us]", "datetime64[s]")
# Types of columns that `_serialize_column` writes. Others, such as text of a fixed width, may take
# memory at will.
_COLUMN_TYPES = frozenset(
    {"object", "bool", *_RESTORED_TIMES}
    | {str(np.dtype(f"{order}{kind}")) for order in "<>" for kind in ("f2", "f4", "f8")}
    | {
        str(np.dtype(f"{order}{kind}{size}"))
        for order in "<>"
        for kind in "iu"
        for size in (1, 2, 4, 8)
    }
)
_MAX_KIND_LENGTH = 20  # characters of the kind of an event
_SHORT_TEXT = 60  # characters of an invalid text that a message repeats

# Values of fields that classes got later, where what was stored before must not mean their
# defaults.
_ADDED_FIELDS: dict[str, dict[str, Any]] = {
    "Learned": {"marginalise": False},
    "Plus": {"refine": False},
    "TruVaR": {"nodes": 8, "refine": False},
}
# Fields that were renamed: class -> old name -> present name. Stored studies may have the old one.
_RENAMED_FIELDS = {
    "Cost": {"returns": "must_return"},
    "Learned": {"every": "refit_every", "least": "min_observations", "initial": "n_initial"},
}
# Values of fields that are left out where they have them, so that releases which do not know the
# field read what is stored.
_OMITTED_FIELDS: dict[str, dict[str, Any]] = {
    "Bands": {"of": None},
    "Cost": {"sampling": "stops"},
    "LevelSet": {"side": "above", "within": None, "within_of_min": None, "of": None},
    "Maximize": {"of": None},
    "Minimize": {"of": None},
}


# -- values
# --------------------------------------------------------------------------------------------------


def serialize(value: Any, what: str = "this value") -> Any:
    """Return a value as JSON values.

    Args:
        value: Numbers, text, containers, arrays, domains, and objects of the classes in
            `STORED_MODULES` or of scikit-learn's kernel classes.
        what: Name of the value in the message of the exception.

    Raises:
        SerializationError: If the value, or a part of it, is of another type.
    """
    for types, convert in _CONVERSIONS:
        if isinstance(value, types):
            return convert(value, what)
    pandas = sys.modules.get("pandas")  # without it, no value is a Series
    if pandas is not None and isinstance(value, (pandas.Series, pandas.Index)):
        return serialize(value.to_numpy(), what)
    name = type(value).__name__
    if type(value).__module__ == _KERNEL_MODULE and _kernel_class(name) is type(value):
        return _serialize_object(name, value.get_params(deep=False), what)
    if is_dataclass(value) and _stored_class(name) is type(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        for key, default in _OMITTED_FIELDS.get(name, {}).items():
            if parts[key] == default:
                del parts[key]
        return _serialize_object(name, parts, what)
    raise SerializationError(
        f"{what} cannot be stored, got {value!r}; give numbers, a column of the table, or an "
        "object of a class of "
        "truvar or scikit-learn, or leave out store=..."
    )


def _serialize_text(value: str, what: str) -> str:
    check_storable(value)
    return value


def _serialize_float(value: Any, what: str) -> Any:
    return float(value) if np.isfinite(value) else {"kind": "float", "value": str(float(value))}


def _serialize_mapping(value: Mapping[Any, Any], what: str) -> dict[str, Any]:
    if "kind" in value or not all(isinstance(key, str) for key in value):
        items = [[serialize(key, what), serialize(item, what)] for key, item in value.items()]
        return {"kind": "dict", "items": items}
    for key in value:
        check_storable(key)
    return {key: serialize(item, f"{what} ({key})") for key, item in value.items()}


# Functions that serialize values of these types; the first type that fits counts.
_CONVERSIONS: tuple[tuple[tuple[type, ...], Callable[[Any, str], Any]], ...] = (
    ((str,), _serialize_text),
    ((type(None), bool, int), lambda value, what: value),
    ((np.bool_, np.integer), lambda value, what: value.item()),
    ((float, np.floating), _serialize_float),
    ((np.ndarray,), lambda value, what: {"kind": "array", "values": _serialize_array(value, what)}),
    ((list,), lambda value, what: [serialize(item, what) for item in value]),
    (
        (tuple,),
        lambda value, what: {"kind": "tuple", "values": [serialize(item, what) for item in value]},
    ),
    ((Mapping,), _serialize_mapping),
    ((Domain,), lambda value, what: {"kind": "Domain", **_serialize_domain(value)}),
    ((NamedKernel,), lambda value, what: serialize(value.sklearn, what)),
)


def check_storable(text: str) -> None:
    """Check that every database can hold a text.

    Raises:
        SerializationError: If it contains a NUL character or half of a surrogate pair.
    """
    if "\0" in text or not (
        text.isascii() or text.encode("utf-8", "ignore").decode("utf-8") == text
    ):
        raise SerializationError(
            "a text must have no NUL characters and no halves of surrogate pairs, got "
            f"{_shorten(text)}; leave them out"
        )


def deserialize(serialized: Any, *, deferred: bool = False) -> Any:
    """Return the value that `serialize` converted.

    Args:
        serialized: JSON values.
        deferred: Return a kernel of the kinds that can be named in a problem file as a
            `NamedKernel`, which imports scikit-learn only when it is needed.

    Raises:
        SerializationError: If it contains an object of an unknown class.
    """

    def convert(item: Any) -> Any:
        return deserialize(item, deferred=deferred)

    if isinstance(serialized, list):
        return [convert(item) for item in serialized]
    if not isinstance(serialized, Mapping):
        return serialized
    if "kind" not in serialized:
        return {key: convert(item) for key, item in serialized.items()}
    kind: str = serialized["kind"]
    parts = {key: item for key, item in serialized.items() if key != "kind"}
    if kind == "float":
        return float(parts["value"])
    if kind == "array":
        return np.array(convert(parts["values"]))
    if kind == "tuple":
        return tuple(convert(parts["values"]))
    if kind == "dict":
        return {convert(key): convert(item) for key, item in parts["items"]}
    if kind == "Domain":
        return _deserialize_domain(parts)
    if deferred:
        kernel = _deserialize_named_kernel(serialized)
        if kernel is not None:
            return kernel
    # The form that is to be learned is an object of scikit-learn.
    deferred &= kind != "Learned"
    stored = _stored_class(RENAMED.get(kind, kind))
    if stored is not None:
        names = _RENAMED_FIELDS.get(kind, {})
        parts = {names.get(key, key): item for key, item in parts.items()}
        parts = _ADDED_FIELDS.get(kind, {}) | parts
        return stored(**{key: convert(item) for key, item in parts.items()})
    kernel_class = _kernel_class(kind)
    if kernel_class is None:
        raise SerializationError(
            f"unknown class {kind!r}, stored by another version of truvar; update truvar"
        )
    return kernel_class(**{key: deserialize(item) for key, item in parts.items()})


def dump_json(value: Any) -> str:
    """Return JSON values as compact text.

    A float is written in its shortest form that reads back exactly.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def _serialize_object(name: str, parts: Mapping[str, Any], what: str) -> dict[str, Any]:
    return {
        "kind": name,
        **{key: serialize(item, f"{key} of {what}") for key, item in parts.items()},
    }


def _stored_class(name: str) -> Any:
    """Return the class of that name from `STORED_MODULES`, or None."""
    module = STORED_MODULES.get(name)
    return None if module is None else getattr(import_module(module), name)


def _kernel_class(name: str) -> Any:
    """Return the kernel class of that name from scikit-learn, or None."""
    kernels = import_module(_KERNEL_MODULE)
    found = getattr(kernels, name, None)
    return found if isinstance(found, type) and issubclass(found, kernels.Kernel) else None


def _deserialize_named_kernel(serialized: Mapping[str, Any]) -> NamedKernel | None:
    """Return a stored kernel as a `NamedKernel` if it is one with default bounds."""
    variance = None
    shape = serialized
    if serialized["kind"] == "Product":
        constant = serialized["k1"]
        shape = serialized["k2"]
        if (
            constant["kind"] != "ConstantKernel"
            or constant["constant_value_bounds"] != _DEFAULT_BOUNDS
        ):
            return None
        variance = constant["constant_value"]
    if shape["kind"] not in ("RBF", "Matern") or shape["length_scale_bounds"] != _DEFAULT_BOUNDS:
        return None
    if shape["kind"] == "RBF":
        return NamedKernel("rbf", deserialize(shape["length_scale"]), variance)
    names = [name for name, nu in SMOOTHNESS.items() if nu == shape["nu"]]
    return NamedKernel(names[0], deserialize(shape["length_scale"]), variance) if names else None


def _serialize_array(array: np.ndarray[Any, Any], what: str) -> Any:
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and np.isfinite(array).all()):
        return array.tolist()  # needs no marks for infinite values: much faster for a large table
    return serialize(array.tolist(), what)


# -- domains
# --------------------------------------------------------------------------------------------------


def _serialize_domain(domain: Domain) -> dict[str, Any]:
    parts: dict[str, Any] = {"columns": list(domain.columns)}
    if domain.labels is not None:
        parts["labels"] = serialize(domain.labels.to_dict(), "the labels of the rows")
    if domain.context:
        parts["context"] = list(domain.context)
    if not domain.is_plain:
        parts["parameters"] = [
            serialize(parameter, "a parameter") for parameter in domain.parameters
        ]
    if domain.frame is not None:
        origin = {key: domain.frame.attrs[key] for key in ORIGINS if key in domain.frame.attrs}
        if origin:
            parts["origin"] = serialize(origin, "what the table was made of")
        if domain.axes is not None:
            parts["axes"] = [axis.tolist() for axis in domain.axes]
        return {
            **parts,
            "table": [_serialize_column(domain.frame, k) for k in range(domain.frame.shape[1])],
        }
    parts |= {"bounds": domain.bounds.tolist(), "continuous": domain.continuous}
    for constraint in domain.constraints:
        function = getattr(constraint, "function", None)
        if function is not None:
            raise SerializationError(
                f"a constraint of the domain cannot be stored, got the function {function!r}; write "
                'it as text such as "x + y <= 1" or as a PolygonConstraint(...), or leave out '
                "store=..."
            )
    if domain.constraints:
        parts["constraints"] = serialize(list(domain.constraints), "a constraint of the domain")
    if domain.axes is not None:
        return {**parts, "axes": [axis.tolist() for axis in domain.axes]}
    return {**parts, "points": domain.points.tolist()}


def _serialize_column(frame: pd.DataFrame, position: int) -> dict[str, Any]:
    """Return a column of a table, given by position because names may occur twice."""
    column = frame.iloc[:, position]
    name = serialize(frame.columns[position], "the name of a column")
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy()
        if numbers.dtype.kind == "O":  # a nullable type of pandas with missing numbers
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
        return {
            "name": name,
            "type": str(numbers.dtype),
            "values": _serialize_array(numbers, str(name)),
        }
    kind = str(column.dtype) if str(column.dtype) in _RESTORED_TIMES else "object"
    texts: list[str | None] = [
        str(item) for item in column
    ]  # dates and other types are stored as text
    for row in np.flatnonzero(column.isna()):
        texts[row] = None
    return {"name": name, "type": kind, "values": texts}


@dataclass(frozen=True)
class _StoredTable:
    """Table of a stored domain, which becomes a DataFrame when it is called.

    Attributes:
        columns: Name, type and values of every column, as stored.
        attrs: What the table was made of (`truvar.domain.geo.ORIGINS`).

    Raises:
        SerializationError: If the type of a column is none that is stored.
    """

    columns: Sequence[Mapping[str, Any]]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column in self.columns:
            if column["type"] not in _COLUMN_TYPES:
                raise SerializationError(
                    f"the type of the column {column['name']!r} must be one of "
                    f"{', '.join(sorted(_COLUMN_TYPES))}, got "
                    f"{_shorten(str(column['type']))}; export the study again"
                )

    def __call__(self) -> pd.DataFrame:
        """Return the table."""
        import pandas as pd

        columns = [
            pd.Series(deserialize(column["values"]), dtype=column["type"])
            for column in self.columns
        ]
        frame = pd.concat(columns, axis=1, keys=range(len(columns))) if columns else pd.DataFrame()
        frame.columns = pd.Index([column["name"] for column in self.columns])
        frame.attrs = dict(self.attrs)
        return frame

    def read_numbers(self, name: str) -> Array | None:
        """Return a column of numbers without pandas; None if it is not numeric or not unique."""
        found = [column for column in self.columns if column["name"] == name]
        if len(found) != 1 or np.dtype(found[0]["type"]).kind not in "biuf":
            return None
        values = found[0]["values"]
        if any(isinstance(value, Mapping) for value in values):  # marks of infinite numbers
            values = deserialize(values)
        return np.array(values, dtype=found[0]["type"]).astype(float)


def _deserialize_domain(parts: Mapping[str, Any]) -> Domain:
    if "context" in parts:
        domain = _deserialize_domain({key: part for key, part in parts.items() if key != "context"})
        return domain.with_context(parts["context"])
    parameters = tuple(deserialize(parameter) for parameter in parts.get("parameters", ()))
    if "table" in parts:
        labels = None  # as domains stored by release 0.2.0 have it
        if "labels" in parts:
            n_rows = len(parts["table"][0]["values"])
            labels = RowLabels.from_dict(deserialize(parts["labels"]), n_rows)
        table = _StoredTable(parts["table"], deserialize(parts.get("origin", {})))
        if "axes" in parts:
            sides = tuple(np.array(axis, dtype=float) for axis in parts["axes"])
            ends = np.array([(axis.min(), axis.max()) for axis in sides])
            names = tuple(parts["columns"])
            return Domain(
                names, mesh(sides), ends, sides, table, parameters=parameters, labels=labels
            )
        coordinates: list[Array] = []
        if parameters:
            frame = table()
            encoders = zip(parameters, parts["columns"], strict=True)
            coordinates = [
                parameter.encode_column(frame[name], name) for parameter, name in encoders
            ]
        for name in () if parameters else parts["columns"]:
            column = table.read_numbers(name)
            if column is None:  # pandas converts it
                return replace(Domain.table(table(), parts["columns"]), labels=labels)
            coordinates.append(column)
        points = np.column_stack(coordinates)
        return check_rows(Domain(**row_fields(parts["columns"], points, table, parameters, labels)))
    bounds = np.array(parts["bounds"])
    axes = None
    if "axes" in parts:
        axes = tuple(np.array(axis, dtype=float) for axis in parts["axes"])
    points = np.array(parts["points"], dtype=float) if axes is None else mesh(axes)
    constraints = tuple(deserialize(parts.get("constraints", [])))
    return Domain(
        tuple(parts["columns"]),
        points,
        bounds,
        axes=axes,
        continuous=parts["continuous"],
        parameters=parameters,
        constraints=constraints,
    )


# -- events and whole studies
# ------------------------------------------------------------------------------------------


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as JSON values.

    Raises:
        SerializationError: If its details cannot be serialized.
    """
    return {
        "number": event.number,
        "time": event.time.isoformat(),
        "who": event.who,
        "kind": event.kind,
        "details": serialize(event.details, f"event {event.number} ({event.kind})"),
    }


def event_from_dict(serialized: Mapping[str, Any]) -> Event:
    """Return the event that `event_to_dict` converted.

    Raises:
        ValueError: If a part has another type or length than events have.
    """
    who = serialized["who"]
    kind = serialized["kind"]
    if not (
        isinstance(who, str)
        and len(who) <= MAX_AUTHOR_LENGTH
        and isinstance(kind, str)
        and len(kind) <= _MAX_KIND_LENGTH
    ):
        raise ValueError(
            "expected the author and the kind of an event as text, got "
            f"{_shorten(repr((who, kind)))}"
        )
    check_storable(who)
    return Event(
        int(serialized["number"]),
        datetime.fromisoformat(serialized["time"]),
        who,
        kind,
        deserialize(serialized["details"], deferred=True),
    )


def study_to_json(name: str | None, events: Sequence[Event]) -> str:
    """Return a study, given by its name and events, as JSON text."""
    return dump_json(
        {
            "format": _STUDY_FORMAT,
            "name": name,
            "events": [event_to_dict(event) for event in events],
        }
    )


def study_from_json(text: str) -> tuple[str | None, list[Event]]:
    """Return the name and the events of a study from JSON text.

    Raises:
        SerializationError: If the text is not a study, or was written by another version of truvar.
        DamagedStudyError: If events are missing or damaged.
    """
    try:
        study = json.loads(text)
        study_format = study["format"]
        name = study["name"]
        serialized = study["events"]
    except (ValueError, KeyError, TypeError):
        writer = for_interface("Study.to_json", cli="truvar export --json", http="the export")
        raise SerializationError(
            f"a study as text must be what {writer} wrote, got {_shorten(text)}; check the file or "
            "text"
        ) from None
    if study_format != _STUDY_FORMAT:
        raise SerializationError(
            f"the study format must be {_STUDY_FORMAT!r}, got {study_format!r}; update truvar"
        )
    try:
        events = [event_from_dict(event) for event in serialized]
        _check_numbers(events)
    except SerializationError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedStudyError(
            f"an event of the study {name!r} is damaged: {error!r}; use another copy of the study"
        ) from None
    return name, events


def _check_numbers(events: Sequence[Event]) -> None:
    """Check that the first event is "created" and that no number is missing."""
    numbers = [event.number for event in events]
    if not events or events[0].kind != "created" or numbers != list(range(1, len(events) + 1)):
        raise ValueError(
            f"expected events 1, 2, ..., the first 'created', got {_shorten(str(numbers))}"
        )


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _SHORT_TEXT else f"{text[:_SHORT_TEXT]}...")
