"""Boxes and their representer points, and mixtures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.domain._constrained import simplex_lattice
from truvar.domain._recognition import box_parameter
from truvar.domain.grid import mesh
from truvar.domain.parameters import Parameter, complete_parameters
from truvar.exceptions import InvalidDomainError
from truvar.messages import for_interface
from truvar.validation import check_finite, check_integer, check_names

REPRESENTERS = 2500  # representer points of a box, unless the caller says otherwise
_MAX_GRID_DIMENSIONS = 2  # of a box whose representers are a grid


def check_box(intervals: Mapping[str, Any], representers: int) -> int:
    """Check the names of a box's sides, and return its checked number of representers."""
    if not intervals:
        example = for_interface("Domain.box(x=(0, 1))", problem="box = {x = [0, 1]}")
        raise InvalidDomainError(
            f"a box needs at least one interval, got none; give one: {example}"
        )
    check_names(intervals, "column")
    return check_integer(representers, "the number of representers of a box", minimum=2)


def box_fields(
    intervals: Mapping[str, Any], representers: int = REPRESENTERS, seed: int = 0
) -> dict[str, Any]:
    """Return the fields of the `Domain` of a box, whose columns may have any names.

    Args:
        intervals: Ends or parameter of each side, by the name of its column.
        representers: Number of representer points; see `Domain.box`.
        seed: Seed of the Sobol points.

    Raises:
        InvalidDomainError: If an interval is not a pair (low, high) with low < high.
    """
    representers = check_box(intervals, representers)
    given = [box_parameter(name, interval) for name, interval in intervals.items()]
    bounds = np.array(
        [
            _check_interval(name, interval) if parameter is None else parameter.bounds
            for parameter, (name, interval) in zip(given, intervals.items(), strict=True)
        ]
    )
    parameters = complete_parameters(given, bounds)
    fields: dict[str, Any] = {
        "columns": tuple(intervals),
        "bounds": bounds,
        "parameters": parameters,
    }
    if any(parameter.n_levels is not None for parameter in parameters):
        return {**fields, **_mixed_representers(parameters, representers, seed)}
    d = len(bounds)
    if d > _MAX_GRID_DIMENSIONS:
        points = bounds[:, 0] + _sobol(d, representers, seed) * (bounds[:, 1] - bounds[:, 0])
        return {**fields, "points": points, "continuous": True}
    side = max(2, round(representers ** (1 / d)))
    axes = tuple(np.linspace(low, high, side) for low, high in bounds)
    return {**fields, "points": mesh(axes), "axes": axes, "continuous": True}


def _mixed_representers(
    parameters: tuple[Parameter, ...], representers: int, seed: int
) -> dict[str, Any]:
    """Return the representers of a box with sides of finitely many values.

    They are all points if these are few.
    """
    counts = [parameter.n_levels for parameter in parameters]
    if None not in counts and np.prod(np.array(counts, dtype=float)) <= representers:
        axes = tuple(parameter.levels for parameter in parameters)
        return {"points": mesh(axes), "axes": axes}
    unit = _sobol(len(parameters), representers, seed)
    points = np.column_stack(
        [parameter.from_unit(unit[:, k]) for k, parameter in enumerate(parameters)]
    )
    _, first = np.unique(points, axis=0, return_index=True)
    return {"points": points[np.sort(first)], "continuous": True}


def _sobol(d: int, count: int, seed: int) -> Array:
    """Return scrambled Sobol points of the unit cube: (count, d)."""
    from scipy.stats import qmc

    sobol = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed))
    points: Array = sobol.random_base2(int(np.ceil(np.log2(count))))[:count]
    return points


def mixture_fields(
    names: Sequence[str], intervals: Mapping[str, tuple[float, float]], parts: int
) -> dict[str, Any]:
    """Return the fields of the `Domain` of mixtures; see `Domain.mixture`."""
    intervals = {**dict.fromkeys(_check_components(names, intervals), (0.0, 1.0)), **intervals}
    check_names(intervals, "column")
    bounds = np.array(
        [_check_interval(name, interval) for name, interval in intervals.items()]
    ).reshape(-1, 2)
    points, equation = simplex_lattice(
        tuple(intervals), bounds, check_integer(parts, "parts", minimum=2)
    )
    return {
        "columns": tuple(intervals),
        "points": points,
        "bounds": bounds,
        "constraints": (equation,),
    }


def _check_components(names: Sequence[Any], intervals: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the components of a mixture that are given without an interval."""
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidDomainError(
                f"a component of a mixture must be a name, got {name!r}; give Domain.mixture('a', "
                "'b'), or intervals: "
                "Domain.mixture(a=(0, 1), b=(0, 0.5))"
            )
        if name in intervals or name in names[:position]:
            raise InvalidDomainError(
                f"the component {name!r} of the mixture occurs twice; leave out one"
            )
    return names


def _check_interval(name: str, interval: Any) -> tuple[float, float]:
    """Return the ends of an interval of a box as floats, or raise."""
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise InvalidDomainError(
            f"interval {name!r} must be a pair (low, high), got {interval!r}; give one such as (0, "
            "1)"
        ) from None
    low = check_finite(low, f"the low end of {name!r}")
    high = check_finite(high, f"the high end of {name!r}")
    if not low < high:
        raise InvalidDomainError(
            f"interval {name!r} must have low < high, got {low:g} and {high:g}; swap them"
        )
    return low, high
