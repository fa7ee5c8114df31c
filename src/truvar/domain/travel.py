"""Travel costs: distances by column, straight lines, great circles, networks and matrices.

| symbol | here | shape |
|---|---|---|
| a origins, b destinations | `Stops` | coordinates (a, d), rows of the domain (a,) |
| cost from each origin to each destination | `legs` | arrays (a, b), to be added up in order |

The caller's `Travel` is bound to a domain once (`bind_travel`), which looks up columns and
finds the shortest paths; the bound travel then returns the costs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import scipy  # scipy.sparse is imported on first use, as it imports slowly

from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.domain.grid import SAME_POINT
from truvar.domain.table import number_column
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.tabular.tables import as_table
from truvar.validation import check_boolean, check_nonnegative

if TYPE_CHECKING:
    import pandas as pd

_EARTH_RADIUS_KM = 6371.0088  # mean radius
_DIRECTIONS = ("increasing", "decreasing")  # keys of a rate that depends on the direction
_EDGE_COLUMNS = ("from", "to", "cost")  # of a network given as a table

_Rate: TypeAlias = "float | Mapping[str, float]"
Rates: TypeAlias = "Mapping[str, _Rate]"
_TravelPart: TypeAlias = "Rates | Euclidean | GreatCircle | Network | TravelMatrix"
Travel: TypeAlias = "_TravelPart | Sequence[_TravelPart]"
Location: TypeAlias = "Mapping[str, Any] | str"


# -- what callers give
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Euclidean:
    """Cost of a straight line: the root of the sum of (rate x difference)^2 over the columns.

    Attributes:
        rates: Rate per unit of distance along each column: a number, or one for each direction,
            `{"increasing": 2, "decreasing": 1}`. Columns in the same unit get the same rate.

    Raises:
        InvalidArgumentError: If a rate is negative or not a number, or there is none.

    Example:
        A boat that needs a quarter of a minute per metre in any direction:

        >>> Cost(base=10, travel=Euclidean({"east_m": 0.25, "north_m": 0.25}))
    """

    rates: Rates

    def __post_init__(self) -> None:
        _check_rates(self.rates, "Euclidean")
        if not self.rates:
            raise InvalidArgumentError(
                "Euclidean needs a rate for at least one column, got none; give one such as {'x': "
                "0.25, 'y': 0.25}"
            )


@dataclass(frozen=True)
class GreatCircle:
    """Cost of a great circle on the Earth, taken as a sphere: rate x kilometres.

    Attributes:
        longitude: Column of the longitudes, in degrees.
        latitude: Column of the latitudes, in degrees.
        rate: Cost of a kilometre.

    Raises:
        InvalidArgumentError: If the rate is negative or not a number.

    Example:
        A ship that makes 20 km in an hour:

        >>> Cost(base=0.5, travel=GreatCircle("lon", "lat", rate=1 / 20))
    """

    longitude: str
    latitude: str
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in (self.longitude, self.latitude):
            if not isinstance(name, str):
                raise InvalidArgumentError(
                    "GreatCircle needs the names of the columns of longitude and latitude, got "
                    f"{name!r}; give two"
                )
        check_nonnegative(self.rate, "the rate of GreatCircle")


@dataclass(frozen=True)
class Network:
    """Cost of the shortest path in a network of roads, tracks or channels.

    Attributes:
        edges: (from, to, cost) of each connection; or a table, or the path of a CSV file, with
            these three columns.
        places: Column of the domain's table with the name of the place where each point lies;
            default: the place of a point is its row number.
        rate: Factor of the costs of the edges.
        directed: Whether an edge leads in one direction only.

    Raises:
        InvalidArgumentError: If an edge is not two names and a cost >= 0.
        InvalidDomainError: If a table of edges cannot be read.

    Example:
        >>> Cost(base=1, travel=Network([("a", "b", 3.0), ("b", "c", 4.0)], places="village"))
    """

    edges: Any
    places: str | None = None
    rate: float = 1.0
    directed: bool = False

    def __post_init__(self) -> None:
        check_nonnegative(self.rate, "the rate of Network")
        check_boolean(self.directed, "directed")
        edges = tuple(_edge(edge) for edge in _edge_rows(self.edges))
        if not edges:
            raise InvalidArgumentError(
                "Network needs at least one edge, got none; give some such as ('a', 'b', 3.0)"
            )
        object.__setattr__(self, "edges", edges)


@dataclass(frozen=True)
class TravelMatrix:
    """Cost of every leg, given as a matrix, which is used unchanged and may be asymmetric.

    Attributes:
        costs: Cost of the leg from the place of a row to that of a column: a square array; or a
            table, or the path of a CSV file, whose first column has the names of the rows, in the
            order of the other columns.
        places: Column of the domain's table with the name of the place where each point lies;
            default: the place of a point is its row number.
        names: Names of the places, in the order of the rows; default: those of the table, or 0, 1,
            ...
        rate: Factor of the costs.

    Raises:
        InvalidArgumentError: If the matrix is not square, or a cost is negative or missing.
        InvalidDomainError: If a table cannot be read.

    Example:
        >>> matrix = TravelMatrix([[0, 5], [8, 0]], names=["valley", "hill"], places="station")
        >>> Cost(base=1, travel=matrix)
    """

    costs: Any
    places: str | None = None
    names: Sequence[str] | None = None
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_nonnegative(self.rate, "the rate of TravelMatrix")
        names = self.names
        costs = self.costs
        if isinstance(costs, str) or hasattr(costs, "columns"):
            names, costs = _labelled_matrix(as_table(costs), is_file=isinstance(costs, str))
        try:
            matrix = np.asarray(costs, dtype=float)
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
            raise InvalidArgumentError(
                f"TravelMatrix needs a square matrix of numbers, got shape {np.shape(costs)}; give "
                "a row and a column "
                "per place"
            )
        wrong = ~(np.isfinite(matrix) & (matrix >= 0))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InvalidArgumentError(
                f"the costs of TravelMatrix must be finite and >= 0, got {matrix[row, column]} in "
                f"row {row}, column "
                f"{column}; give a cost there, or use Network if not all places are connected "
                "directly"
            )
        names = tuple(
            _place_name(name) for name in (range(len(matrix)) if names is None else names)
        )
        if len(names) != len(matrix) or len(set(names)) != len(names):
            raise InvalidArgumentError(
                f"TravelMatrix needs {len(matrix)} different names of places, got {list(names)!r}; "
                "give one per row"
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "costs", tuple(tuple(row) for row in matrix.tolist()))


def _check_rates(rates: Any, what: str) -> None:
    """Check rates by column, each a number or one for each direction.

    Raises:
        InvalidArgumentError: If they are not.
    """
    if not isinstance(rates, Mapping):
        raise InvalidArgumentError(
            f"{what} must be a dict of rates by column, got {rates!r}; give one such as {{'x': "
            f"0.25}}"
        )
    for name, rate in rates.items():
        if not isinstance(rate, Mapping):
            check_nonnegative(rate, f"the {what} rate of {name!r}")
            continue
        if set(rate) != set(_DIRECTIONS):
            raise InvalidArgumentError(
                f"the {what} rate of {name!r} must be a number or have the keys increasing and "
                "decreasing, got "
                f"{dict(rate)!r}; give both"
            )
        for direction in _DIRECTIONS:
            check_nonnegative(rate[direction], f"the {what} rate of {direction} {name!r}")


def check_travel(travel: Any) -> None:
    """Check what a caller gives as travel.

    Raises:
        InvalidArgumentError: If it is neither rates, nor one of the classes of this module, nor a
            list of these.
    """
    for part in travel_parts(travel):
        if isinstance(part, (Euclidean, GreatCircle, Network, TravelMatrix)):
            continue
        if not isinstance(part, Mapping):
            raise InvalidArgumentError(
                "travel must be a dict of rates by column, Euclidean, GreatCircle, Network, "
                "TravelMatrix, or a list "
                f"of them, got {part!r}; give one such as {{'x': 0.25}}"
            )
        _check_rates(part, "travel")


def travel_parts(travel: Any) -> list[Any]:
    """Return the parts of a travel, whose costs are added."""
    return list(travel) if isinstance(travel, (list, tuple)) else [travel]


# -- bound to a domain
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stops:
    """Positions that legs lead from or to.

    Attributes:
        points: Coordinates, shape (a, d); None for a place that is known by its name only.
        rows: Rows of the domain; None: the nearest ones, where a row is needed.
        name: Name of the place, of a single position.
    """

    points: Array | None
    rows: Index | None = None
    name: str | None = None

    @staticmethod
    def at(place: Array | str) -> Stops:
        """Return a single position, given by its coordinates (d,) or the name of its place."""
        return Stops(None, name=place) if isinstance(place, str) else Stops(place[None, :])


class BoundTravel(Protocol):
    """A part of the travel on a domain."""

    @property
    def columns(self) -> Collection[int] | None:
        """Positions of the columns that legs depend on; None: all."""
        ...

    def legs(self, origins: Stops, destinations: Stops) -> Iterator[Array]:
        """Yield costs of shape (a, b), which add up to that of the leg."""
        ...

    def knows(self, name: str) -> bool:
        """Return whether there is a place of that name."""
        ...


def bind_travel(travel: Any, domain: Domain) -> list[BoundTravel]:
    """Return the parts of a travel, bound to a domain.

    Raises:
        InvalidArgumentError: If the domain lacks a column or place, or a place cannot be reached.
    """
    bound: list[BoundTravel] = []
    for part in travel_parts(travel):
        if isinstance(part, Mapping):
            bound.append(_ByColumn(domain, part))
        elif isinstance(part, Euclidean):
            bound.append(_StraightLine(domain, part.rates))
        elif isinstance(part, GreatCircle):
            bound.append(_Circle(domain, part))
        elif isinstance(part, (Network, TravelMatrix)):
            bound.append(_BetweenPlaces(domain, part))
    return bound


def column_index(domain: Domain, name: str) -> int:
    """Return the position of a coordinate that a cost refers to.

    Raises:
        InvalidArgumentError: If there is none of that name.
    """
    if name not in domain.columns:
        raise InvalidArgumentError(
            f"cost has a rate for an {unknown_name('column', name, domain.columns)}"
        )
    k = domain.columns.index(name)
    if k in domain.categorical:
        raise InvalidArgumentError(
            f"cost has a rate for the column {name!r}, which has no numbers; name another column, "
            "use it in setup, or "
            "give the cost as a function"
        )
    return k


def changing_column(domain: Domain, name: str) -> int:
    """Return the position of a coordinate, with numbers or not, whose changes cost something.

    Raises:
        InvalidArgumentError: If there is none of that name.
    """
    if name not in domain.columns:
        raise InvalidArgumentError(f"setup has an {unknown_name('column', name, domain.columns)}")
    return domain.columns.index(name)


def changes(domain: Domain, name: str, origins: Stops, destinations: Stops) -> Array:
    """Return whether a column changes on the leg, shape (a, b)."""
    k = changing_column(domain, name)
    difference = (
        _model_coordinates(destinations)[None, :, k] - _model_coordinates(origins)[:, None, k]
    )
    return np.asarray(np.abs(difference) > SAME_POINT * domain.extent[k])


class _WithCoordinates:
    """Base of travel that depends on coordinates alone."""

    def knows(self, name: str) -> bool:
        """Return False: there are no named places."""
        return False


class _ByColumn(_WithCoordinates):
    """Rate x distance along each column, added up (L1)."""

    def __init__(self, domain: Domain, rates: Rates) -> None:
        self._domain = domain
        self._rates = [(column_index(domain, name), rate) for name, rate in rates.items()]
        self.columns = [k for k, _ in self._rates]

    def legs(self, origins: Stops, destinations: Stops) -> Iterator[Array]:
        """Yield a leg per column."""
        for k, rate in self._rates:
            yield _leg(rate, _differences(self._domain, origins, destinations, k))


class _StraightLine(_WithCoordinates):
    """Root of the sum of the squared legs."""

    def __init__(self, domain: Domain, rates: Rates) -> None:
        self._by_column = _ByColumn(domain, rates)
        self.columns = self._by_column.columns

    def legs(self, origins: Stops, destinations: Stops) -> Iterator[Array]:
        """Yield the one leg."""
        yield np.sqrt(sum(leg**2 for leg in self._by_column.legs(origins, destinations)))


class _Circle(_WithCoordinates):
    """Great circle by the haversine formula, which is exact for short legs too."""

    def __init__(self, domain: Domain, circle: GreatCircle) -> None:
        self._domain = domain
        self._longitude = column_index(domain, circle.longitude)
        self._latitude = column_index(domain, circle.latitude)
        self._rate = circle.rate
        self.columns = (self._longitude, self._latitude)
        latitudes = domain.numbers(domain.points)[:, self._latitude]
        low = latitudes.min()
        high = latitudes.max()
        if low < -90 or high > 90:
            raise InvalidArgumentError(
                f"latitudes must lie between -90 and 90 degrees, got {low:g} to {high:g} in column "
                f"{circle.latitude!r}; name longitude and latitude in that order"
            )

    def legs(self, origins: Stops, destinations: Stops) -> Iterator[Array]:
        """Yield the one leg."""
        before = np.radians(_coordinates(self._domain, origins, self._latitude))[:, None]
        after = np.radians(_coordinates(self._domain, destinations, self._latitude))[None, :]
        turn = np.radians(_differences(self._domain, origins, destinations, self._longitude))
        haversine = (
            np.sin((after - before) / 2) ** 2
            + np.cos(before) * np.cos(after) * np.sin(turn / 2) ** 2
        )
        angle = 2 * np.arcsin(np.sqrt(np.minimum(haversine, 1.0)))
        yield self._rate * _EARTH_RADIUS_KM * angle


class _BetweenPlaces:
    """Costs between named places, by matrix or shortest paths; each point lies at a place."""

    columns = None

    def __init__(self, domain: Domain, travel: Network | TravelMatrix) -> None:
        if domain.continuous:
            raise InvalidArgumentError(
                f"{type(travel).__name__} needs a domain with finitely many points, got a box; "
                "give a table or grid"
            )
        self._domain = domain
        self._names = (
            _network_names(travel) if isinstance(travel, Network) else list(travel.names or ())
        )
        self._index = {name: k for k, name in enumerate(self._names)}
        places = _places(domain, travel.places)
        for row, place in enumerate(places):
            if place not in self._index:
                raise InvalidArgumentError(
                    f"{type(travel).__name__} has no place {place!r}, where row {row} of the "
                    "domain lies; "
                    f"{unknown_name('place', place, self._names)}"
                )
        self._of_row = np.array([self._index[place] for place in places])
        self._travel = travel

    @cached_property
    def _costs(self) -> Array:
        """Cost from each place to each, shape (p, p); infinite where there is no route."""
        travel = self._travel
        if isinstance(travel, TravelMatrix):
            return travel.rate * np.array(travel.costs)
        return travel.rate * _shortest_paths(travel, self._index)

    def knows(self, name: str) -> bool:
        """Return whether there is a place of that name."""
        return name in self._index

    def legs(self, origins: Stops, destinations: Stops) -> Iterator[Array]:
        """Yield the one leg.

        Raises:
            InvalidArgumentError: If there is no route.
        """
        before = self._nodes(origins)
        after = self._nodes(destinations)
        costs = self._costs[np.ix_(before, after)]
        if np.isinf(costs).any():
            a, b = np.argwhere(np.isinf(costs))[0]
            raise InvalidArgumentError(
                f"there is no route from {self._names[before[a]]!r} to {self._names[after[b]]!r} in "
                "the network; add an "
                "edge, or leave out the points there"
            )
        yield costs

    def _nodes(self, stops: Stops) -> Index:
        if stops.name is not None:
            return np.array([self._index[stops.name]])
        if stops.rows is not None:
            return np.asarray(self._of_row[stops.rows])
        points = np.empty((0, 0)) if stops.points is None else stops.points
        return np.asarray(self._of_row[[self._domain.nearest(x) for x in points]])


def _model_coordinates(stops: Stops) -> Array:
    """Return the coordinates of positions, shape (a, d)."""
    if stops.points is None:
        raise InvalidArgumentError(
            f"the place {stops.name!r} has no coordinates, which this cost depends on; give them, "
            f"such as {{'x': 0}}"
        )
    return stops.points


def _coordinates(domain: Domain, stops: Stops, k: int) -> Array:
    """Return a column of positions in the user's numbers, shape (a,)."""
    return domain.numbers(_model_coordinates(stops))[:, k]


def _differences(domain: Domain, origins: Stops, destinations: Stops, k: int) -> Array:
    """Return how much a column changes on each leg, in the user's numbers, shape (a, b)."""
    return (
        _coordinates(domain, destinations, k)[None, :] - _coordinates(domain, origins, k)[:, None]
    )


def _leg(rate: _Rate, difference: Array) -> Array:
    if isinstance(rate, Mapping):
        return np.where(difference > 0, rate["increasing"], rate["decreasing"]) * np.abs(difference)
    return np.asarray(rate * np.abs(difference))


def _shortest_paths(network: Network, index: Mapping[str, int]) -> Array:
    """Return the cost of the shortest path between every two places, shape (p, p)."""
    direct = np.full((len(index), len(index)), np.inf)
    for start, end, cost in network.edges:
        pairs = [(start, end)] if network.directed else [(start, end), (end, start)]
        for pair in pairs:
            a = index[pair[0]]
            b = index[pair[1]]
            direct[a, b] = min(direct[a, b], cost)  # the cheapest of several edges
    graph = scipy.sparse.csgraph.csgraph_from_dense(
        direct, null_value=np.inf
    )  # an edge may cost nothing
    return np.asarray(scipy.sparse.csgraph.dijkstra(graph, directed=True))


# -- tables
# --------------------------------------------------------------------------------------------------


def _edge_rows(edges: Any) -> list[Any]:
    if not isinstance(edges, str) and not hasattr(edges, "columns"):
        try:
            return list(edges)
        except TypeError:
            raise InvalidArgumentError(
                "the edges of Network must be a list of (from, to, cost), a table or the path of "
                "a CSV file, got "
                f"{edges!r}; give one of them"
            ) from None
    table = as_table(edges)
    for name in _EDGE_COLUMNS:
        if name not in table.columns:
            raise InvalidArgumentError(
                f"a table of edges needs the columns {', '.join(_EDGE_COLUMNS)}, got "
                f"{', '.join(map(str, table.columns))}; add or rename {name!r}"
            )
    costs = number_column(table, "cost")
    return list(zip(table["from"], table["to"], costs.tolist(), strict=True))


def _edge(edge: Any) -> tuple[str, str, float]:
    try:
        start, end, cost = edge
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"an edge of Network must be (from, to, cost), got {edge!r}; give one such as ('a', "
            "'b', 3.0)"
        ) from None
    cost = check_nonnegative(cost, f"the cost of the edge from {start!r} to {end!r}")
    return _place_name(start), _place_name(end), cost


def _labelled_matrix(table: pd.DataFrame, is_file: bool) -> tuple[list[Any], Array]:
    """Return the names of a table's rows, which must equal those of its columns, and the matrix."""
    if is_file:
        table = table.set_index(table.columns[0])
    rows = [_place_name(name) for name in table.index]
    columns = [_place_name(name) for name in table.columns]
    if rows != columns:
        raise InvalidArgumentError(
            "rows and columns of a travel matrix must have the same names in the same order, got "
            f"{rows[:5]} and "
            f"{columns[:5]}; sort them"
        )
    return rows, np.column_stack([number_column(table, name) for name in table.columns])


def _network_names(network: Network) -> list[str]:
    names = {name: None for edge in network.edges for name in edge[:2]}  # in the order of the edges
    return list(names)


def _places(domain: Domain, column: str | None) -> list[str]:
    """Return the name of the place of each point of the domain."""
    if column is None:
        return [str(row) for row in range(len(domain))]
    if column in domain.columns:
        return [_place_name(domain.point(row)[column]) for row in range(len(domain))]
    if domain.frame is None or column not in domain.frame.columns:
        known = domain.columns if domain.frame is None else domain.frame.columns
        raise InvalidArgumentError(f"places: {unknown_name('column', column, known)}")
    return [_place_name(value) for value in domain.frame[column]]


def _place_name(value: Any) -> str:
    """Return the name of a place as text; whole numbers without a decimal point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value)
