"""`LearnedCost`: costs that are only known after a measurement, and what is expected of one.

| symbol | here |
|---|---|
| pointwise cost of a measurement at x | the cost that is told, less the known parts (travel, set-up) |
| log c(x) ~ N(m, s^2) | the model of that cost, `truvar.models.cost_model` |
| E c(x) = exp(m + s^2 / 2) | `ExpectedCost.pointwise`, which choices and budgets count with |
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.validation import check_positive

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

LEARNED = "learned"  # the short form of `LearnedCost()`
_MIN_SHARE = 1e-3  # of a cost: a smaller pointwise part says more about the known part


@dataclass(frozen=True)
class LearnedCost:
    """A cost that is only known after a measurement, and learned from those that were told.

    The logarithm of the cost is modelled by a Gaussian process over the domain. Before any cost is
    told, a measurement is expected to cost `prior`. A measurement that is told without its cost
    counts with the expected one, and nothing is learned from it.

    Attributes:
        prior: Cost that is expected of a measurement: a number, or the name of a column of the
            domain with planned costs; None: nothing is known, and costs count as 1 until one is
            told.
        factor: How far costs may lie from `prior`: with 95 % probability within this factor.

    Raises:
        InvalidArgumentError: If the prior is not positive, or the factor not above 1.

    Example:
        Runs that take about 20 minutes, or perhaps 5 or 80; travel costs are known:

        >>> LearnedCost(prior=20, factor=4)
        >>> Cost(base=LearnedCost(prior=20), travel={"x": 0.25})
    """

    prior: float | str | None = None
    factor: float = 5.0

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, str):
            check_positive(self.prior, "the prior of a learned cost", example="20")
        check_positive(self.factor, "the factor of a learned cost", example="5")
        if self.factor <= 1:
            raise InvalidArgumentError(
                f"the factor of a learned cost must be above 1, got {self.factor!r}; give one such "
                "as 5"
            )


@dataclass(frozen=True)
class ExpectedCost:
    """The expected cost of a measurement, where part of the cost is learned.

    Attributes:
        known: The part that is known: travel, set-up, noise level.
        pointwise: Expectation of the part that is learned.
        low: Lower end of the 95 % interval of that part; None before anything is known of it.
        high: Its upper end.
    """

    known: float
    pointwise: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval that has the cost with 95 % probability; None before anything is known."""
        if self.low is None or self.high is None:
            return None
        return self.known + self.low, self.known + self.high

    def learned_part(self, cost: float) -> float | None:
        """Return the pointwise part of a cost that was told; None if nothing is left for it."""
        part = cost - self.known
        return part if part > _MIN_SHARE * cost else None


def as_cost(cost: Any, domain: Domain) -> Any:
    """Return the cost of a study with its two short forms written out.

    Args:
        cost: A cost as `Study` takes it.
        domain: The domain. If its table has a column "learned", `cost="learned"` is that column.

    Raises:
        InvalidArgumentError: If it is a class, or a misspelt "learned".
    """
    if isinstance(cost, type):
        raise InvalidArgumentError(
            f"cost must be an object, got the class {cost.__name__}; give {cost.__name__}(...)"
        )
    if isinstance(cost, str):
        columns = [*domain.columns, *(() if domain.frame is None else domain.frame.columns)]
        if cost in columns:
            return cost
        if cost == LEARNED:
            return LearnedCost()
        if get_close_matches(cost, [*map(str, columns), LEARNED], n=1) == [LEARNED]:
            raise InvalidArgumentError(unknown_name("cost", cost, [LEARNED]))
    return cost
