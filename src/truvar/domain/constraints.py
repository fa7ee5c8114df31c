"""Constraints on the points of a domain: which of them are possible at all.

| given as | becomes |
|---|---|
| text such as `"x + y <= 1"` or `"x >= 2 and solver != 'saga'"` | `LinearConstraint`, parsed but never evaluated |
| a polygon of shapely or GeoPandas, or `PolygonConstraint(...)` | `PolygonConstraint` |
| a function of points (q, d) that returns (q,) Booleans | `_FunctionConstraint`, which cannot be stored |
| the name of a column, or a Boolean mask | a choice of rows, on finite domains only |

A constraint belongs to the domain, since it says what D is: no statement is made about a point that
cannot exist, it is no candidate, and it is never recommended. A point that turns out to be impossible later
is for `Study.exclude`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from truvar._typing import Array, Mask
from truvar.exceptions import InvalidDomainError
from truvar.messages import unknown_name
from truvar.validation import check_finite

# Share of the terms of an inequality by which a point may miss it: grids are rounded.
TOLERANCE = 1e-9
# the same, by which a point chosen in a box must satisfy it, so that rounding cannot break it
MARGIN = 1e-12
_QUOTED = re.compile(r"`([^`]+)`")
_PLACEHOLDER = "quoted_column_{}_"
_MAX_NESTING = 100  # signs and brackets within each other in a condition
# Terms of a condition; Python's parser reads a sum with this many however deep its caller is.
_MAX_TERMS = 1000
_MAX_VERTICES = 20_000  # of a polygon


class Constraint(Protocol):
    """A condition on points."""

    def satisfied(
        self, points: Array, columns: Sequence[str], tolerance: float = TOLERANCE
    ) -> Mask:
        """Return which points satisfy the condition.

        Args:
            points: Coordinates. (q, d)
            columns: Names of the coordinates.
            tolerance: Share of the terms of an inequality by which it may be missed; negative: a
                margin.
        """
        ...


_ConstraintLike: TypeAlias = "str | Constraint | Callable[[Array], Any] | Any"


# -- inequalities
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A linear expression compared with 0.

    Attributes:
        coefficients: Coefficient of each column.
        constant: The constant term.
        operator: "<=", "<" or "==".
    """

    coefficients: dict[str, float]
    constant: float
    operator: str


@dataclass(frozen=True)
class ValueComparison:
    """A column compared with its own values, such as "saga", True or "2026-05-01".

    Attributes:
        column: Name of the column.
        operator: "in" or "not in"; "<", "<=", ">" or ">=" for a column whose values have an order.
        values: The values; one of them for a column with an order.
    """

    column: str
    operator: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class LinearConstraint:
    """Linear inequalities between columns, such as `x + 2 * y <= 1`, and values of a column.

    A name that is not a word of letters, digits and underscores is put between backticks: `` `depth
    m` < 3 ``.

    Attributes:
        text: The inequalities; several are joined with "and" or as a chain, such as "0.2 <= x + y
            <= 1". A column of text, dates or truth values is compared with its values: "solver !=
            'saga'", "solver in ('lbfgs', 'sag')", "day >= '2026-05-01'".

    Raises:
        InvalidDomainError: If the text is not a linear inequality.

    Example:
        >>> LinearConstraint("x + y <= 1")
    """

    text: str

    def __post_init__(self) -> None:
        _ = self._parts

    @cached_property
    def _parts(self) -> tuple[Comparison | ValueComparison, ...]:
        return _parse(self.text)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The inequalities, one after the other."""
        return tuple(part for part in self._parts if isinstance(part, Comparison))

    @property
    def value_comparisons(self) -> tuple[ValueComparison, ...]:
        """Comparisons of a column with its values, which `Domain.satisfies` evaluates."""
        return tuple(part for part in self._parts if isinstance(part, ValueComparison))

    @property
    def has_equality(self) -> bool:
        """Whether one of them is an equation."""
        return any(comparison.operator == "==" for comparison in self.comparisons)

    def satisfied(
        self, points: Array, columns: Sequence[str], tolerance: float = TOLERANCE
    ) -> Mask:
        """Return which points satisfy all inequalities (see `Constraint.satisfied`)."""
        result = np.ones(len(points), bool)
        for comparison in self.comparisons:
            value = np.full(len(points), comparison.constant)
            size = np.full(len(points), abs(comparison.constant))
            for name, coefficient in comparison.coefficients.items():
                if name not in columns:
                    unknown = unknown_name("column", name, columns)
                    raise InvalidDomainError(f"the constraint {self.text!r} has an {unknown}")
                term = coefficient * points[:, list(columns).index(name)]
                value += term
                size += np.abs(term)
            slack = tolerance * size
            if comparison.operator == "==":
                result &= np.abs(value) <= np.abs(slack)
            elif comparison.operator == "<":
                result &= value < -np.abs(slack)  # equal up to rounding is not less
            else:
                result &= value <= slack
        return result


def _parse(text: Any) -> tuple[Comparison | ValueComparison, ...]:
    tree, names = _syntax_tree(text)
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    comparisons: list[Comparison | ValueComparison] = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            raise InvalidDomainError(
                f"a constraint must compare two sides with <=, <, >=, > or ==, got {text!r}; write "
                "for example "
                "'x + y <= 1', and join several with 'and'"
            )
        sides = [part.left, *part.comparators]
        for operator, left, right in zip(part.ops, sides[:-1], sides[1:], strict=True):
            of_values = _value_comparison(operator, left, right, text, names)
            if of_values is None:
                linear = [_linear(side, text, names) for side in (left, right)]
                comparisons.append(_comparison(operator, linear[0], linear[1], text))
            else:
                comparisons.append(of_values)
    return tuple(comparisons)


def _syntax_tree(text: Any) -> tuple[ast.expr, dict[str, str]]:
    """Return the syntax tree of a condition, and column names by placeholder."""
    if not isinstance(text, str):
        raise InvalidDomainError(
            f"a constraint must be a text such as 'x + y <= 1', got {text!r}; give one"
        )
    names: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        placeholder = _PLACEHOLDER.format(len(names))
        names[placeholder] = match.group(1)
        return placeholder

    try:
        tree = ast.parse(_QUOTED.sub(replace, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidDomainError(
            f"a constraint must be a linear inequality such as 'x + y <= 1', got {text!r}; write "
            "it like that, with "
            "backticks around names that are not plain words"
        ) from None
    return tree, names


def check_size(constraint: Constraint) -> None:
    """Check that a constraint is not too large to be evaluated often.

    Only what users give is checked: a stored constraint was accepted by the release that stored it.

    Raises:
        InvalidDomainError: If a condition is nested too deeply or has too many terms, or a polygon
            too many vertices.
    """
    if isinstance(constraint, PolygonConstraint):
        count = sum(map(len, constraint.rings))
        if count > _MAX_VERTICES:
            raise InvalidDomainError(
                f"a polygon may have at most {_MAX_VERTICES} vertices, got {count}; simplify it, "
                "with shapely for "
                "example by polygon.simplify(tolerance)"
            )
    if isinstance(constraint, LinearConstraint):
        depth, terms = _size(_syntax_tree(constraint.text)[0])
        if depth > _MAX_NESTING or terms > _MAX_TERMS:
            raise InvalidDomainError(
                f"a constraint may have at most {_MAX_TERMS} terms and {_MAX_NESTING} signs and "
                "brackets within each "
                f"other, got {terms} and {depth}; write several shorter ones"
            )


def _size(tree: ast.expr) -> tuple[int, int]:
    """Return the depth of nested operations, and the number of names and constants.

    A sum is one level.
    """
    depth = 0
    terms = 0
    pending: list[tuple[ast.AST, int]] = [(tree, 0)]
    while pending:
        node, level = pending.pop()
        depth = max(depth, level)
        terms += isinstance(node, (ast.Name, ast.Constant))
        is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))
        for child in ast.iter_child_nodes(node):
            same_level = is_sum and isinstance(node, ast.BinOp) and child is node.left
            pending.append((child, level if same_level else level + 1))
    return depth, terms


# -- values of a column
# ------------------------------------------------------------------------------------------------

_VALUE_OPERATORS: dict[
    type[ast.cmpop], tuple[str, str]
] = {  # as written, and with the sides exchanged
    ast.Eq: ("in", "in"),
    ast.NotEq: ("not in", "not in"),
    ast.Lt: ("<", ">"),
    ast.LtE: ("<=", ">="),
    ast.Gt: (">", "<"),
    ast.GtE: (">=", "<="),
}


def _value_comparison(
    operator: ast.cmpop, left: ast.expr, right: ast.expr, text: str, names: dict[str, str]
) -> ValueComparison | None:
    """Return a comparison of a column with its own values; None if it is one of numbers."""
    if isinstance(operator, (ast.In, ast.NotIn)):
        listed = [_value(each) for each in getattr(right, "elts", [])]
        if not isinstance(left, ast.Name) or not listed or None in listed:
            raise InvalidDomainError(
                "'in' takes a column and a list of its values, such as \"solver in ('lbfgs', "
                f"'sag')\", got {text!r}; "
                "write it like that"
            )
        word = "in" if isinstance(operator, ast.In) else "not in"
        return ValueComparison(names.get(left.id, left.id), word, tuple(listed))
    exchanged = isinstance(right, ast.Name)
    column = right if exchanged else left
    value = _value(left if exchanged else right)
    if value is None or type(operator) not in _VALUE_OPERATORS:
        return None
    if isinstance(value, bool) and not isinstance(operator, (ast.Eq, ast.NotEq)):
        return None
    if not isinstance(value, (str, bool)) and not isinstance(operator, ast.NotEq):
        return None
    if not isinstance(column, ast.Name):
        raise InvalidDomainError(
            f"a value such as {value!r} is compared with a column, such as \"solver != 'saga'\", "
            f"got {text!r}; write "
            "it like that"
        )
    return ValueComparison(
        names.get(column.id, column.id), _VALUE_OPERATORS[type(operator)][exchanged], (value,)
    )


def _value(node: ast.expr) -> Any:
    """Return the value of a constant: text, number, True or False; None if it is no constant."""
    sign = 1
    is_signed = False
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign = -sign
        node = node.operand
        is_signed = True
    if not isinstance(node, ast.Constant) or not isinstance(node.value, (str, bool, int, float)):
        return None
    if isinstance(node.value, (str, bool)):
        return None if is_signed else node.value
    return sign * node.value


def values_satisfied(
    comparison: ValueComparison,
    text: str,
    encode: Callable[[Any], float],
    coordinates: Array,
    ordered: bool,
) -> Mask:
    """Return which points satisfy a comparison with values of a column.

    Args:
        comparison: The comparison.
        text: The constraint it belongs to, for the message.
        encode: Returns the coordinate of a value.
        coordinates: Coordinates of the points in that column. (q,)
        ordered: Whether the values of the column have an order.

    Raises:
        InvalidDomainError: If values without an order are compared by size.
    """
    codes = np.array([encode(value) for value in comparison.values])
    slack = TOLERANCE * np.maximum(np.abs(codes), 1.0)
    if comparison.operator in ("in", "not in"):
        equal = (np.abs(coordinates[:, None] - codes) <= slack).any(axis=1)
        return np.asarray(equal if comparison.operator == "in" else ~equal)
    if not ordered:
        raise InvalidDomainError(
            f"the constraint {text!r} compares by size, but the values of {comparison.column!r} "
            "have no order; compare "
            "with ==, != or in"
        )
    difference = coordinates - codes[0]
    if comparison.operator in ("<", "<="):
        difference = -difference
    return np.asarray(
        difference >= -slack[0] if comparison.operator.endswith("=") else difference > slack[0]
    )


_Linear: TypeAlias = tuple[dict[str, float], float]


def _comparison(operator: ast.cmpop, left: _Linear, right: _Linear, text: str) -> Comparison:
    """Return left - right compared with 0, or right - left where the sign is > or >=."""
    symbols = {ast.LtE: "<=", ast.Lt: "<", ast.Eq: "==", ast.GtE: "<=", ast.Gt: "<"}
    if type(operator) not in symbols:
        raise InvalidDomainError(
            f"a constraint must compare with <=, <, >=, > or ==, got {text!r}; use one of them"
        )
    if isinstance(operator, (ast.GtE, ast.Gt)):
        left, right = right, left
    coefficients, constant = _combine(left, right, -1.0)
    coefficients = {name: value for name, value in coefficients.items() if value != 0}
    if not coefficients:
        raise InvalidDomainError(f"a constraint must depend on a column, got {text!r}; name one")
    return Comparison(coefficients, constant, symbols[type(operator)])


def _combine(first: _Linear, second: _Linear, factor: float) -> _Linear:
    """Return first + factor * second."""
    coefficients = dict(first[0])
    for name, value in second[0].items():
        coefficients[name] = coefficients.get(name, 0.0) + factor * value
    return coefficients, first[1] + factor * second[1]


def _linear(node: ast.expr, text: str, names: dict[str, str]) -> _Linear:
    """Return a linear expression as coefficients and constant.

    The tree is not followed by recursion, which would depend on how deep the caller is.
    """
    order: list[
        ast.expr
    ] = []  # every operation before its operands, of which the right one comes first
    pending = [node]
    while pending:
        each = pending.pop()
        order.append(each)
        if isinstance(each, ast.BinOp):
            pending += [each.left, each.right]
        elif isinstance(each, ast.UnaryOp):
            pending.append(each.operand)
    results: list[_Linear] = []
    for each in reversed(order):
        match each:
            case ast.Constant(value=value) if isinstance(value, (int, float)) and not isinstance(
                value, bool
            ):
                results.append(({}, check_finite(value, f"a number of the constraint {text!r}")))
            case ast.Name(id=name):
                results.append(({names.get(name, name): 1.0}, 0.0))
            case ast.UnaryOp(op=ast.USub()):
                results.append(_combine(({}, 0.0), results.pop(), -1.0))
            case ast.UnaryOp(op=ast.UAdd()):
                pass
            case ast.BinOp(op=ast.Add() | ast.Sub() as operator):
                right = results.pop()
                results.append(
                    _combine(results.pop(), right, 1.0 if isinstance(operator, ast.Add) else -1.0)
                )
            case ast.BinOp(op=ast.Mult() | ast.Div() as operator):
                right = results.pop()
                results.append(_scaled(results.pop(), right, operator, text))
            case _:
                raise InvalidDomainError(
                    f"a constraint must be a linear inequality of columns, got {text!r}; for "
                    "another condition give a "
                    "function of the points"
                )
    return results.pop()


def _scaled(left: _Linear, right: _Linear, operator: ast.operator, text: str) -> _Linear:
    """Return the product or quotient of two expressions of which one is a number."""
    if isinstance(operator, ast.Mult) and not left[0]:
        left, right = right, left
    if right[0]:
        raise InvalidDomainError(
            f"a constraint must be linear, but {text!r} multiplies or divides by a column; give a "
            "function of the "
            "points instead"
        )
    if isinstance(operator, ast.Div) and right[1] == 0:
        raise InvalidDomainError(f"a constraint must not divide by 0, got {text!r}; correct it")
    factor = right[1] if isinstance(operator, ast.Mult) else 1.0 / right[1]
    return _combine(({}, 0.0), left, factor)


# -- polygons and functions
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolygonConstraint:
    """Points inside a polygon, with holes, or inside several that do not overlap.

    Attributes:
        rings: Vertices (x, y) of every ring, the last of which is joined to the first.
        columns: Names of the two coordinates; default: the first two of the domain.

    Raises:
        InvalidDomainError: If a ring has fewer than three vertices, or a coordinate is not a finite
            number.

    Example:
        >>> PolygonConstraint([[(0, 0), (4, 0), (4, 3)]], columns=("x", "y"))
    """

    rings: Sequence[Sequence[tuple[float, float]]]
    columns: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        rings = []
        for ring in self.rings:
            try:
                vertices = tuple((float(x), float(y)) for x, y in ring)
            except (TypeError, ValueError):
                raise InvalidDomainError(
                    f"a ring of a polygon must be a list of vertices (x, y), got {ring!r}; give "
                    "one such as "
                    "[(0, 0), (1, 0), (1, 1)]"
                ) from None
            if len(vertices) < 3 or not np.isfinite(vertices).all():
                raise InvalidDomainError(
                    "a ring of a polygon needs at least three vertices of finite numbers, got "
                    f"{ring!r}; give them"
                )
            rings.append(vertices)
        if not rings:
            raise InvalidDomainError(
                "a polygon needs at least one ring of vertices, got none; give one"
            )
        object.__setattr__(self, "rings", tuple(rings))
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    def satisfied(
        self, points: Array, columns: Sequence[str], tolerance: float = TOLERANCE
    ) -> Mask:
        """Return which points lie inside: those with an odd number of edges to their right."""
        own = tuple(columns[:2]) if self.columns is None else self.columns
        for name in own:
            if name not in columns:
                raise InvalidDomainError(
                    f"the polygon has an {unknown_name('column', name, columns)}"
                )
        if len(own) != 2:
            raise InvalidDomainError(
                f"a polygon needs two columns, got {', '.join(own)}; give columns=(x, y)"
            )
        x, y = (points[:, list(columns).index(name)] for name in own)
        order = np.argsort(y, kind="stable")
        x = x[order]
        y = y[order]
        is_inside = np.zeros(len(points), bool)
        for ring in self.rings:
            vertices = np.asarray(ring, dtype=float)
            ends = np.roll(vertices, -1, axis=0)
            # An edge matters to the points whose y lies between its ends: a slice of the points in
            # the order of y.
            first = np.searchsorted(y, np.minimum(vertices[:, 1], ends[:, 1]))
            last = np.searchsorted(y, np.maximum(vertices[:, 1], ends[:, 1]))
            for k in np.flatnonzero(first < last).tolist():
                x0, y0 = ring[k]
                x1, y1 = ring[(k + 1) % len(ring)]
                beside = slice(first[k], last[k])
                is_inside[beside] ^= x[beside] < x0 + (y[beside] - y0) * ((x1 - x0) / (y1 - y0))
        result = np.empty(len(points), bool)
        result[order] = is_inside
        return result


@dataclass(frozen=True)
class _FunctionConstraint:
    """A function of points (q, d) that returns which of them are possible.

    Attributes:
        function: The function.
    """

    function: Callable[[Array], Any] = field(repr=False)

    def satisfied(
        self, points: Array, columns: Sequence[str], tolerance: float = TOLERANCE
    ) -> Mask:
        """Return what the function says (see `Constraint.satisfied`).

        Raises:
            InvalidDomainError: If it does not return one truth value per point.
        """
        answer = np.asarray(self.function(np.array(points)))
        if answer.shape != (len(points),) or not is_truth(answer):
            raise InvalidDomainError(
                f"a constraint must return one True or False per point, shape ({len(points)},), "
                "got shape "
                f"{answer.shape} of {answer.dtype}; give a function of points (q, {len(columns)}), "
                "with operators such "
                "as & instead of 'and'"
            )
        return answer.astype(bool)


def is_truth(values: Array) -> bool:
    """Return whether values are Booleans, or the numbers 0 and 1."""
    if values.dtype == bool:
        return True
    return values.dtype.kind in "iuf" and bool(np.isin(values, (0, 1)).all())


def is_geometry(value: Any) -> bool:
    """Return whether a value is a polygon of shapely, or a GeoSeries or GeoDataFrame."""
    return hasattr(value, "geom_type") or hasattr(value, "total_bounds")


def polygon_of(geometry: Any) -> PolygonConstraint:
    """Return a polygon of shapely, or all polygons of a GeoSeries or GeoDataFrame.

    Raises:
        InvalidDomainError: If it is a line or a point.
    """
    if hasattr(geometry, "total_bounds"):
        union = getattr(geometry, "union_all", None)
        geometry = union() if union is not None else geometry.unary_union
    parts = list(getattr(geometry, "geoms", [geometry]))
    rings: list[Any] = []
    for part in parts:
        if getattr(part, "geom_type", None) != "Polygon":
            raise InvalidDomainError(
                "a constraint must be a polygon, got a "
                f"{getattr(part, 'geom_type', type(part).__name__)}; give the "
                "area that is possible"
            )
        rings += [[(x, y) for x, y, *_ in ring.coords] for ring in (part.exterior, *part.interiors)]
    return PolygonConstraint(rings)


def as_constraint(value: Any) -> Constraint:
    """Return a constraint from what a user gives.

    Raises:
        InvalidDomainError: If it is nothing of that kind.
    """
    constraint: Constraint
    if isinstance(value, str):
        constraint = LinearConstraint(value)
    elif is_geometry(value):
        constraint = polygon_of(value)
    elif hasattr(value, "satisfied"):
        constraint = value
    elif callable(value):
        constraint = _FunctionConstraint(value)
    else:
        raise InvalidDomainError(
            "a constraint must be a text such as 'x + y <= 1', a function of the points, a "
            "polygon, a Boolean column "
            f"or a mask, got {value!r}; give one of them"
        )
    check_size(constraint)
    return constraint


def as_list(constraints: Any) -> list[Any]:
    """Return one or several constraints as a list; a mask is one."""
    if constraints is None:
        return []
    if isinstance(constraints, (list, tuple)):
        items = list(constraints)
        is_mask = bool(items) and all(isinstance(item, (bool, np.bool_)) for item in items)
        return [np.array(items)] if is_mask else items
    return [constraints]


def all_satisfied(
    constraints: Sequence[Constraint],
    points: Array,
    columns: Sequence[str],
    tolerance: float = TOLERANCE,
) -> Mask:
    """Return which points satisfy all constraints."""
    result = np.ones(len(points), bool)
    for constraint in constraints:
        result &= constraint.satisfied(points, columns, tolerance)
    return result


def is_storable(constraint: Constraint) -> bool:
    """Return whether a store can hold a constraint."""
    return isinstance(constraint, (LinearConstraint, PolygonConstraint))


def describe_constraint(constraint: Constraint) -> str:
    """Return a constraint in words."""
    if isinstance(constraint, LinearConstraint):
        return constraint.text
    if isinstance(constraint, PolygonConstraint):
        return f"inside a polygon of {sum(map(len, constraint.rings))} vertices"
    return "as a function says"


def region_text(
    intervals: Mapping[str, tuple[Any, Any]], values: Mapping[str, Sequence[Any]] | None = None
) -> str:
    """Return a region as the text of a constraint.

    Args:
        intervals: Ends of an interval of numbers, or of values with an order, by column.
        values: The values of columns without an order.
    """
    parts = [f"{low!r} <= `{name}` <= {high!r}" for name, (low, high) in intervals.items()]
    for name, allowed in (values or {}).items():
        parts.append(f"`{name}` in ({', '.join(map(repr, allowed))},)")
    return " and ".join(parts)
