"""Encode commands as the bodies of requests to a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from secrets import token_urlsafe
from typing import Any

import numpy as np

from truvar.domain.constraints import PolygonConstraint, is_geometry, polygon_of
from truvar.domain.domain import Domain
from truvar.domain.geo import from_geopandas, is_geographic_table
from truvar.domain.parameters import plain_value
from truvar.exceptions import InvalidArgumentError
from truvar.study._inputs import as_point
from truvar.study.commands import INTERFACES, Command, Tell, TellRepeats
from truvar.study.suggestion import Suggestion
from truvar.tabular.column_types import file_label
from truvar.tabular.labels import RowLabels, label_to_json
from truvar.tabular.tables import as_table, row_names

REQUEST_NAMES = {"vehicle": "who"}  # of arguments, which servers of earlier releases know too
LOCAL_FIELDS = frozenset({"what", "typed"})  # of commands; a target has several names in a request


def encode_command(command: Command, domain: Domain) -> dict[str, Any]:
    """Return the body of the request that executes a command.

    A field that is None is left out. Values that could be sent twice, if a connection fails, get a
    key.

    Args:
        command: A checked command.
        domain: The domain of the study.
    """
    body: dict[str, Any] = {}
    for field in fields(command):
        value = getattr(command, field.name)
        if field.name not in LOCAL_FIELDS and value is not None:
            body[REQUEST_NAMES.get(field.name, field.name)] = plain(value)
    what = getattr(command, "what", None)
    interface = INTERFACES.get(type(command))
    if interface is not None and interface.target == "place":
        return body | _encode_place(what, domain)
    if interface is not None and interface.target == "domain":
        return body | _encode_extension(what)
    if what is not None:
        body |= encode_target(as_point(domain, what))
    needs_key = isinstance(command, TellRepeats) or (isinstance(command, Tell) and "point" in body)
    if needs_key and "key" not in body:
        body["key"] = token_urlsafe(16)
    elif isinstance(command, Tell) and not needs_key:
        body.pop("key", None)  # the id tells a repeated request
    return body


def encode_target(what: Any) -> dict[str, Any]:
    """Return a suggestion, an id or a point by column as fields of a request."""
    if isinstance(what, Mapping):
        return {"point": {str(column): plain(value) for column, value in what.items()}}
    return {"id": what.id if isinstance(what, Suggestion) else int(what)}


def _encode_place(what: Any, domain: Domain) -> dict[str, Any]:
    """Return a place, as `Study.exclude` takes it, as fields of a request; nothing for None."""
    if what is None:
        return {}
    if callable(what) and not hasattr(what, "satisfied"):
        what = what(domain.points)
    if isinstance(what, (Suggestion, int, np.integer)) and not isinstance(what, bool):
        return encode_target(what)
    if isinstance(what, Mapping) and all(np.ndim(value) == 0 for value in what.values()):
        return encode_target(what)
    if isinstance(what, Mapping):
        return {"region": {str(name): _encode_interval(value) for name, value in what.items()}}
    if isinstance(what, str):
        return {"condition": what}
    if is_geometry(what) or isinstance(what, PolygonConstraint):
        polygon = what if isinstance(what, PolygonConstraint) else polygon_of(what)
        columns = None if polygon.columns is None else list(polygon.columns)
        return {
            "polygon": {
                "rings": [[list(vertex) for vertex in ring] for ring in polygon.rings],
                "columns": columns,
            }
        }
    mask = np.asarray(what)
    if mask.dtype != bool or mask.ndim != 1:
        raise InvalidArgumentError(
            "a place must be a suggestion or its id, a point, a region, a condition, a polygon or "
            f"a mask, got {what!r}"
        )
    return {"rows": np.flatnonzero(mask).tolist()}


def _encode_extension(what: Any) -> dict[str, Any]:
    """Return further points, as a checked `Extend` has them, as fields of a request."""
    if isinstance(what, Mapping):
        return {"columns": {name: [_json_value(each) for each in what[name]] for name in what}}
    frame = as_table(from_geopandas(what)[0] if is_geographic_table(what) else what)
    label = file_label(what, frame, None)
    names = row_names(frame, label)
    rows = [
        {str(name): _json_value(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    labels = RowLabels.of(names)
    if labels.are_positions:
        return {"rows": rows}
    return {"rows": rows, "labels": [label_to_json(each) for each in labels.values]}


def _json_value(value: Any) -> Any:
    """Return a cell of a table as a JSON value; None for one that is missing."""
    value = plain_value(value)
    if value is None or value != value:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value


def _encode_interval(value: Any) -> list[Any]:
    return [plain(each) for each in np.ravel(np.asarray(value, dtype=object)).tolist()]


def plain(value: Any) -> Any:
    """Return a value with Python numbers in place of NumPy scalars, as JSON needs them."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
