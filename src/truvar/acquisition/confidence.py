"""Confidence bounds (eq. 4), schedules of beta, and epochs.

| paper | here |
|---|---|
| u_t, l_t | `bounds` (the one place where the square root of beta is taken) |
| beta_(i) | a `Schedule`, called when an epoch starts |
| i, eta_(i), beta_(i), t_(i) | `Epoch` |
| r, delta-bar | `Confidence.r`, `Confidence.slack` |

eta is in units of the prior standard deviation, as the paper's k(x, x) = 1 makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Protocol, TypeVar

import numpy as np

from truvar._typing import Array
from truvar.domain.goals import Goal
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface
from truvar.validation import check_finite, check_fraction, check_integer, check_positive

GoalT = TypeVar("GoalT", bound=Goal)

# share of the prior variance: smaller variances count as zero, and epochs stop there
MIN_VARIANCE_SHARE = 1e-12


def bounds(mean: Array, variance: Array, beta: float) -> tuple[Array, Array]:
    """Return l_t and u_t, eq. (4).

    Args:
        mean: mu_t.
        variance: sigma_t^2, of the same shape.
        beta: The paper's beta, whose square root is taken here.
    """
    width = sqrt(beta) * np.sqrt(variance)
    return mean - width, mean + width


def intersection(before: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the intersections of two sets of intervals.

    Args:
        before: Lower and upper ends of earlier intervals.
        now: Lower and upper ends of the present intervals, which are kept where the two do not
            overlap.
    """
    lower = np.maximum(before[0], now[0])
    upper = np.minimum(before[1], now[1])
    overlap = lower <= upper
    return np.where(overlap, lower, now[0]), np.where(overlap, upper, now[1])


def lemma_beta(points: int, t: float, delta: float) -> float:
    """Return 2 log(|D| t^2 pi^2 / (6 delta)), Lemma 5.1 of Srinivas et al. (2012).

    With at least this beta for every number t of measurements, the bounds on all |D| points hold at
    all times with probability 1 - delta.

    Args:
        points: |D|.
        t: Number of measurements; at least 1 is used.
        delta: Probability that some bound fails.
    """
    return 2 * log(points * max(t, 1) ** 2 * pi**2 / (6 * delta))


def rkhs_beta(norm: float, information: float, t: float, delta: float) -> float:
    """Return 2 norm^2 + 300 gamma_t log^3(t / delta), Theorem 3 of Srinivas et al. (2012).

    Args:
        norm: Upper bound on the RKHS norm of f.
        information: gamma_t.
        t: Index of the measurement before which the bounds hold, under noise bounded by its
            standard deviation.
        delta: Probability that some bound fails.
    """
    return 2 * norm**2 + 300 * information * log(t / delta) ** 3


@dataclass(frozen=True)
class EpochStart:
    """State at the start of an epoch, from which a schedule computes its beta.

    Attributes:
        t: t_(i), the index of the first choice made in the epoch.
        eta: eta_(i), in prior standard deviations.
        slack: delta-bar.
        n_points: |D|, the number of points (D0 with noise levels).
        n_actions: |D| of the theorem, points times noise levels.
        n_targets: |M_{t-1}|, with the other points that the goal must know.
        log_beta_factor: Factor of `LogBeta` that the paper uses for the kind of goal.
        spent: Cost of all observations so far.
        min_cost: c_min, without travel.
        max_cost: c_max, without travel.
        cover_cost: Upper bound on the cost of bringing sigma to xi on the targets, as a function of
            xi.
        information_bound: Upper bound on gamma_T, as a function of T.
    """

    t: int
    eta: float
    slack: float
    n_points: int
    n_actions: int
    n_targets: int
    log_beta_factor: float
    spent: float
    min_cost: float
    max_cost: float
    cover_cost: Callable[[float], float]
    information_bound: Callable[[int], float]


class Schedule(Protocol):
    """beta_(i) as a function of the state at the start of epoch i."""

    def __call__(self, start: EpochStart) -> float:
        """Return beta_(i)."""
        ...


@dataclass(frozen=True)
class LogBeta:
    """beta_(i) = a log(|D| t_(i)^2), as in the paper's experiments.

    Attributes:
        a: Factor; None for 0.5 with an optimum and 1 with a level set.
    """

    a: float | None = None

    def __post_init__(self) -> None:
        if self.a is not None:
            check_positive(self.a, "a of LogBeta")

    def __call__(self, start: EpochStart) -> float:
        """Return beta_(i)."""
        a = start.log_beta_factor if self.a is None else self.a
        return a * log(max(start.n_points, 2) * start.t**2)


@dataclass(frozen=True)
class ConstantBeta:
    """Constant beta.

    Attributes:
        b: beta in every epoch.
    """

    b: float

    def __post_init__(self) -> None:
        check_positive(self.b, "b of ConstantBeta")

    def __call__(self, start: EpochStart) -> float:
        """Return b."""
        return self.b


@dataclass(frozen=True)
class TheoremBeta:
    """Theorem 3.1: valid bounds with probability 1 - delta, whatever the epochs cost.

    beta_(i) = 2 log(|D| C^2 pi^2 / (6 delta c_min^2)), C = spent + C_(i), where C_(i) bounds the
    cost of the epoch by C* log(|M| beta / (slack^2 eta^2)) + c_max. The two equations are solved
    jointly. C* is bounded by greedy covering from the present posterior and M, which is at most the
    theorem's own from the prior.

    Attributes:
        delta: Probability that some bound fails.
    """

    delta: float

    def __post_init__(self) -> None:
        check_fraction(self.delta, "delta of TheoremBeta")

    def __call__(self, start: EpochStart) -> float:
        """Return the smallest beta that covers the cost of the epoch.

        Raises:
            InvalidArgumentError: If slack or eta is 0.
        """
        if start.slack <= 0 or start.eta <= 0:
            raise InvalidArgumentError(
                f"TheoremBeta needs slack > 0 and eta > 0, got slack = {start.slack:g} and eta = "
                f"{start.eta:g}; give "
                + for_interface(
                    "TruVaR(beta=TheoremBeta(0.1), slack=0.1)",
                    problem='[policy] name = "truvar" and slack = 0.1',
                )
            )
        cost = start.spent + start.max_cost
        while True:  # beta grows with the logarithm of the cost only, so this ends
            beta = self.at_cost(cost, start)
            cover_cost = start.cover_cost(start.eta / sqrt(beta))
            factor = max(0.0, log(start.n_targets * beta / (start.slack * start.eta) ** 2))
            epoch_cost = cover_cost * factor + start.max_cost  # eq. (13)
            if start.spent + epoch_cost <= cost:
                return beta
            cost = 1.1 * (start.spent + epoch_cost)

    def at_cost(self, cost: float, start: EpochStart) -> float:
        """Return eq. (14) for a total cost at the end of the epoch.

        This is the lemma's beta at the last t that the cost pays for.
        """
        return lemma_beta(start.n_actions, cost / start.min_cost, self.delta)


@dataclass(frozen=True)
class RKHSBeta:
    """The non-Bayesian setting of Srinivas et al. (2012), Theorem 3: f has a bounded RKHS norm.

    beta is the theorem's at t = `horizon`, and so covers every measurement up to it; an epoch that
    starts later uses twice the horizon, or four times, and so on.

    Attributes:
        norm: Upper bound on the RKHS norm of f, in prior standard deviations.
        delta: Probability that some bound fails.
        horizon: Number of measurements that the first beta covers.
    """

    norm: float
    delta: float
    horizon: int = 1000

    def __post_init__(self) -> None:
        check_fraction(self.delta, "delta of RKHSBeta")
        check_positive(self.norm, "norm of RKHSBeta")
        check_integer(self.horizon, "horizon of RKHSBeta", minimum=1)

    def __call__(self, start: EpochStart) -> float:
        """Return the theorem's beta at the horizon."""
        t = self.horizon
        while t < start.t:
            t *= 2
        return rkhs_beta(self.norm, start.information_bound(t), t, self.delta)


@dataclass(frozen=True)
class Epoch:
    """An epoch of Algorithm 1.

    Attributes:
        index: i, from 1.
        eta: eta_(i), in prior standard deviations.
        beta: beta_(i).
        start: t_(i), the index of the first choice made in the epoch.
    """

    index: int
    eta: float
    beta: float
    start: int

    @property
    def tau(self) -> float:
        """eta^2 / beta: the share of the prior variance below which this epoch truncates."""
        return self.eta**2 / self.beta


@dataclass(frozen=True)
class Confidence:
    """Schedules for beta and eta.

    Attributes:
        beta: Schedule of beta.
        eta: eta_(1), in prior standard deviations; 0 for pure variance reduction.
        r: Factor by which eta shrinks from epoch to epoch.
        slack: delta-bar: an epoch ends when every confidence width in M is within (1 + slack) eta.
        intersect: Whether the bounds are the intersection over all steps so far (Gotovos et al.
            2013), as long as the model is known and M is monotone; otherwise they are those of the
            last step.
        monotone: Whether M_t lies inside M_{t-1} (Algorithm 2) for a goal that leaves it open. It
            always does where the bounds are intersected, and with `TheoremBeta` and `RKHSBeta`,
            whose bounds hold at all times together.
    """

    beta: Schedule = LogBeta()
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    intersect: bool = False
    monotone: bool = False

    def __post_init__(self) -> None:
        if not callable(self.beta):
            raise InvalidArgumentError(
                f"beta must be a schedule, got {self.beta!r}; give one such as LogBeta(1.0) or "
                "ConstantBeta(9.0)"
            )
        if check_finite(self.eta, "eta") < 0:
            raise InvalidArgumentError(
                f"eta must be >= 0, got {self.eta}; give 1.0, or 0 for pure variance reduction"
            )
        check_fraction(self.r, "r")
        if check_finite(self.slack, "slack") < 0:
            raise InvalidArgumentError(
                f"slack must be >= 0, got {self.slack}; give 0, or 0.1 for the theorem"
            )

    def resolve_goal(self, goal: GoalT) -> GoalT:
        """Return the goal with `monotone` decided: if it is open, as these bounds require."""
        if goal.monotone is not None:
            return goal
        proven = isinstance(self.beta, TheoremBeta | RKHSBeta)
        return goal.with_monotone(self.monotone or self.intersect or proven)

    def first(self, start: Callable[[float], EpochStart]) -> Epoch:
        """Return epoch 1; `start(eta)` returns the present state."""
        return self._epoch(1, start(self.eta))

    def advance(self, epoch: Epoch, widest: float, start: Callable[[float], EpochStart]) -> Epoch:
        """Lines 5-6 of Algorithm 1: start epochs while the confidence in M is within the target.

        It also ends if no variance is left, or if eta is so small that rounding decides.

        Args:
            epoch: The present epoch.
            widest: Largest sigma^2 in M, as a share of the prior variance.
            start: Returns the present state, given eta.
        """
        while (
            MIN_VARIANCE_SHARE < widest <= (1 + self.slack) ** 2 * epoch.tau
            and epoch.tau > MIN_VARIANCE_SHARE
        ):
            epoch = self._epoch(epoch.index + 1, start(self.r * epoch.eta))
        return epoch

    def _epoch(self, index: int, now: EpochStart) -> Epoch:
        beta = self.beta(now)
        check_positive(beta, f"the value of the schedule {self.beta!r} at t = {now.t}")
        return Epoch(index, now.eta, float(beta), now.t)
