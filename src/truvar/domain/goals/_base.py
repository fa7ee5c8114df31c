"""The base class of goals, the score of their answers, and the sets M, H and L."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from truvar._typing import Array, Mask
from truvar.exceptions import InvalidArgumentError, InvalidModelError

if TYPE_CHECKING:
    from truvar.domain.domain import Domain

Side = Literal["above", "below"]  # of a threshold


@dataclass(frozen=True)
class Regions:
    """Boolean masks over the domain that partition it.

    Attributes:
        potential: M, the undecided points.
        above: H, the points above the threshold.
        below: L, the points below the threshold.
    """

    potential: Mask
    above: Mask
    below: Mask

    def __post_init__(self) -> None:
        for mask in (self.potential, self.above, self.below):
            mask.setflags(write=False)  # results share the masks

    @staticmethod
    def unknown(n: int) -> Regions:
        """Return the regions of n points before anything is known: M = D."""
        return Regions(np.ones(n, bool), np.zeros(n, bool), np.zeros(n, bool))


@dataclass(frozen=True)
class Score:
    """The score that answers to a kind of goal are judged by.

    Attributes:
        key: Name in JSON, and of the method of `Result` that computes it from true values; the
            statements have an estimate of it as `expected_KEY`.
        name: Name in sentences: "F1".
        is_share: Whether it lies between 0 and 1, and 1 is best; otherwise it is an error, in the
            units of the values, and 0 is best.
    """

    key: str
    name: str
    is_share: bool

    def reaches(self, value: float, limit: float) -> bool:
        """Return whether a score is at least as good as a limit."""
        return value >= limit if self.is_share else value <= limit


class Goal(ABC):
    """The goal of a study. A new one is a class with these members, and lines of registration.

    Attributes:
        monotone: Whether a point that was classified or ruled out stays so; None: as the policy has
            it.
        kind: Kind of the goal: policies say which kinds they are made for, and the tables of
            `inference` and `report` are keyed by it.
        one: A goal of this kind in messages: "an optimum".
        many: Several of them: "optima".
        score: The score of an answer.
        seeks_optimum: Whether the answer is a single point, the best one.
        has_thresholds: Whether the answer is on which side of thresholds each point lies.
        limits: Names of the limits of a run that are statements about an answer to it.
        class_names: Names of the points below and above in place of these words, if it has any.
        truncates: Whether variance below that of the epoch stops counting (eq. 3).
        log_beta_factor: Factor a of `LogBeta` that the paper uses for this kind of goal.
    """

    monotone: bool | None
    kind: ClassVar[str]
    one: ClassVar[str]
    many: ClassVar[str]
    score: ClassVar[Score]
    seeks_optimum: ClassVar[bool] = False
    has_thresholds: ClassVar[bool] = False
    limits: ClassVar[tuple[str, ...]]
    class_names: ClassVar[tuple[str, str] | None] = None
    truncates: ClassVar[bool] = True
    log_beta_factor: ClassVar[float] = 1.0

    @property
    @abstractmethod
    def sign(self) -> int:
        """Direction of good values: 1, or -1 when small values are good."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """The class of points that is asked for, and the other one."""
        return ("above", "below")

    @property
    @abstractmethod
    def question(self) -> str:
        """The goal as a question: "where is the value above 7?"."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The goal in a few words, for lists of studies: "above 7"."""

    @property
    @abstractmethod
    def default_limit(self) -> dict[str, float]:
        """The limit of a run that is given none, by name."""

    @abstractmethod
    def update(self, regions: Regions, lower: Array, upper: Array) -> Regions:
        """Return M_t, H_t and L_t.

        Args:
            regions: M_{t-1}, H_{t-1} and L_{t-1}.
            lower: Lower confidence bounds l_t, shape (n,).
            upper: Upper confidence bounds u_t, shape (n,).
        """

    @abstractmethod
    def epsilon(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the accuracy of the answer if the bounds hold (Definition 3.1, a posteriori)."""

    @abstractmethod
    def within_gap(self, f: Array, gap: float) -> Mask:
        """Return Mbar_(i) of a known f on D, eqs. (9)-(10), for gap = 4 (1 + slack) eta_(i)."""

    def targets(self, regions: Regions, lower: Array, upper: Array) -> Mask:
        """Return the points whose variance is to be reduced: M_t, and others that must be known for it."""
        return regions.potential

    def accuracy_of_undecided(self, regions: Regions, lower: Array, upper: Array) -> float:
        """Return the epsilon of Definition 3.1 if the bounds hold, for every undecided point."""
        return self.epsilon(regions, lower, upper)

    def with_weights(self, weights: Array) -> Self:
        """Return the goal with a weight for every point, where points can matter differently."""
        return self

    def weights_on(self, domain: Domain) -> Array:
        """Return how much each point of a domain matters, 1 on average. (n,)."""
        return np.ones(len(domain))

    @property
    def known_thresholds(self) -> tuple[float, ...]:
        """The thresholds whose values are given."""
        return ()

    @property
    def parts(self) -> Mapping[str, Goal]:
        """The goal of each quantity by its name, the leading one first; empty for one without name."""
        return {}

    @property
    def threshold_share(self) -> float:
        """Share of the unknown optimum that a threshold is; 0 without such a threshold."""
        return 0.0

    @property
    def direction(self) -> int:
        """Direction in which the model must be right beyond all values so far; 0: in none."""
        return 0

    @property
    def learns_power(self) -> bool:
        """Whether values may be modelled as a learned power of them."""
        return True

    @property
    def cost_caveats(self) -> tuple[str, ...]:
        """Reasons why Theorem 3.1 does not bound the cost of reaching this goal."""
        return ()

    def with_monotone(self, monotone: bool) -> Self:
        """Return the goal with `monotone` decided."""
        resolved: Self = replace(self, monotone=monotone)  # type: ignore[type-var]  # a dataclass
        return resolved

    def in_model_units(self, forward: Callable[[Array], Array]) -> Self:
        """Return the goal in the units of the model, given the transform of values to them."""
        return self

    def check_logarithm(self, option: str) -> None:
        """Check that the goal makes sense for logarithms of the values.

        Args:
            option: The option that asks for logarithms, for messages.

        Raises:
            InvalidModelError: If it does not.
        """
        if any(threshold <= 0 for threshold in self.known_thresholds):
            raise InvalidModelError(
                f"the threshold must be > 0 to have a logarithm, got {self.known_thresholds[0]:g} "
                f"with {option}; leave out the transform"
            )


def check_quantity(name: Any) -> None:
    """Check the name of a quantity; None: it has none.

    Raises:
        InvalidArgumentError: If it is not text, or empty.
    """
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InvalidArgumentError(
            f'of must be the name of a quantity, got {name!r}; give one such as of="yield"'
        )
