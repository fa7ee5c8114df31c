"""Resolve a suggestion, point, region, condition, polygon or mask to a `Place`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truvar.domain.constraints import as_constraint, is_geometry, is_truth, region_text
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Place
from truvar.domain.parameters import Parameter, plain_value
from truvar.domain.satisfiability import holds_somewhere
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, UnknownSuggestionError
from truvar.messages import format_point, unknown_name
from truvar.study._state import StudyState
from truvar.study.suggestion import Suggestion
from truvar.validation import check_finite


def resolve_place(state: StudyState, what: Any) -> tuple[Place, int | None]:
    """Return a place, and the id of the suggestion or measurement that it was given by.

    Args:
        state: The state of the study.
        what: A suggestion or measurement or its id; a point by column; a region, as an interval
            (low, high) for some columns; a condition such as "x + y > 3"; a polygon; a Boolean mask
            over a finite domain; a function of its points.

    Raises:
        InvalidArgumentError: If it is nothing of that kind, or holds no point of the domain.
        UnknownSuggestionError: If there is no such suggestion.
        InvalidDomainError: If a point or condition cannot be used.
    """
    domain = state.config.domain
    if isinstance(what, (Suggestion, int, np.integer)) and not isinstance(what, bool):
        id_ = what.id if isinstance(what, Suggestion) else int(what)
        action = state.attempt(id_)
        if action is None:
            raise UnknownSuggestionError(
                f"there is no suggestion or measurement {id_}; give the id of one, or a point"
            )
        return Place(point=domain.named(action.point[: len(domain.columns)])), id_
    place = _resolve(domain, what)
    if not _holds_a_point(domain, place):
        raise InvalidArgumentError(
            f"{place.describe()} holds no point of the domain, got {what!r}; check it"
        )
    return place, None


def _holds_a_point(domain: Domain, place: Place) -> bool:
    """Return whether a place holds a point of the domain, as far as one can tell of a box."""
    if not domain.continuous:
        return bool(place.on_domain(domain).any())
    return place.region is None or holds_somewhere(domain, place.region)


def is_recorded_exclusion(state: StudyState, place: Place, reason: str | None) -> bool:
    """Return whether a place was excluded for that reason, and nothing was allowed again since."""
    for exclusion in reversed(state.learner.exclusions):
        if exclusion.allowed:
            return False
        if (exclusion.place, exclusion.reason) == (place, reason):
            return True
    return False


def _resolve(domain: Domain, what: Any) -> Place:
    if isinstance(what, Mapping):
        return _point_or_region(domain, what)
    if isinstance(what, str) or is_geometry(what) or hasattr(what, "satisfied"):
        region = as_constraint(what)
        domain.satisfies([region], domain.points[:1])  # raises if a column is unknown
        return Place(region=region)
    if callable(what):
        what = what(domain.points)
    try:
        mask = np.asarray(what)
    except ValueError:
        mask = np.empty(0)
    if domain.continuous or mask.shape != (len(domain),) or not is_truth(mask):
        expected = (
            "a condition such as 'x > 3'"
            if domain.continuous
            else f"a Boolean mask of shape ({len(domain)},)"
        )
        raise InvalidArgumentError(
            f"a place must be a suggestion or its id, a point, a region such as {{'x': (0, 1)}}, a "
            "polygon, a "
            f"condition such as 'x > 3', or on a finite domain a mask; expected {expected}, got "
            f"{what!r}"
        )
    return Place(rows=tuple(int(row) for row in np.flatnonzero(mask)))


def _point_or_region(domain: Domain, what: Mapping[str, Any]) -> Place:
    is_point = all(np.ndim(value) == 0 for value in what.values())
    if is_point and set(what) == set(domain.columns):
        index, x = domain.locate(what)
        if index is None and not domain.continuous:
            nearest = format_point(domain.point(domain.nearest(x)))
            raise InvalidDomainError(
                f"only points of the domain are suggested, and {format_point(what)} is none of "
                "them; the nearest is "
                f"{nearest}: give that, or a region"
            )
        return Place(point=domain.named(x))
    intervals: dict[str, tuple[Any, Any]] = {}
    values: dict[str, list[Any]] = {}
    for name, value in what.items():
        if name not in domain.columns:
            raise InvalidArgumentError(
                f"the place has an {unknown_name('column', name, domain.columns)}"
            )
        given = [plain_value(each) for each in np.ravel(np.asarray(value, dtype=object)).tolist()]
        parameter = domain.parameters[domain.columns.index(name)]
        if parameter.categorical:
            values[name] = given
        else:
            intervals[name] = _interval(name, given, parameter)
            _check_overlap(domain, name, intervals[name])
    if not intervals and not any(values.values()):
        raise InvalidArgumentError(
            "a region needs at least one column, got none; give one such as {'x': (0, 1)}"
        )
    region = as_constraint(region_text(intervals, values))
    domain.satisfies([region], domain.points[:1])  # raises if a value is unknown
    return Place(region=region)


def _check_overlap(domain: Domain, name: str, interval: tuple[Any, Any]) -> None:
    """Refuse an interval outside a box, which would exclude nothing."""
    k = domain.columns.index(name)
    parameter = domain.parameters[k]
    if not domain.continuous or not parameter.numeric:
        return
    low, high = (parameter.decode(float(end)) for end in domain.bounds[k])
    if interval[1] < low or interval[0] > high:
        raise InvalidArgumentError(
            f"the region holds no point of the domain, got {interval[0]:g} to {interval[1]:g} for "
            f"{name!r}, whose "
            f"values are from {low:g} to {high:g}; check it"
        )


def _interval(name: str, given: list[Any], parameter: Parameter) -> tuple[Any, Any]:
    """Return the ends of an interval of an ordered column, as a condition has them."""
    if len(given) not in (1, 2):
        raise InvalidArgumentError(
            f"column {name!r} of a region must have one value or an interval (low, high), got "
            f"{given!r}; give that"
        )
    if parameter.numeric:
        low = check_finite(given[0], f"column {name!r} of the place")
        high = check_finite(given[-1], f"column {name!r} of the place")
        coordinates = (low, high)
    else:
        coordinates = (parameter.encode(given[0], name), parameter.encode(given[-1], name))
        low, high = (parameter.decode(x) for x in coordinates)
    if coordinates[0] > coordinates[1]:
        raise InvalidArgumentError(
            f"an interval must have low <= high, got {low} and {high}; swap them"
        )
    return low, high
