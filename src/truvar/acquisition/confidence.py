"""Confidence: the bounds (eq. 4), the schedules of beta, and the epochs.

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
from typing import Protocol

import numpy as np

from truvar._typing import Array
from truvar.exceptions import TruvarError
from truvar.messages import for_interface
from truvar.validation import check_finite, check_integer

RESOLUTION = 1e-12  # variances below this share of the prior's are zero to the arithmetic; eta stops there


def bounds(mean: Array, variance: Array, beta: float) -> tuple[Array, Array]:
    """l_t and u_t, eq. (4)."""
    width = sqrt(beta) * np.sqrt(variance)
    return mean - width, mean + width


def intersection(before: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Array, Array]:
    """The intervals within both; where two do not meet, one of them must be wrong, and the present one is taken."""
    lower, upper = np.maximum(before[0], now[0]), np.minimum(before[1], now[1])
    meet = lower <= upper
    return np.where(meet, lower, now[0]), np.where(meet, upper, now[1])


def lemma_beta(points: int, t: float, delta: float) -> float:
    """2 log(|D| t^2 pi^2 / (6 delta)), Lemma 5.1 of Srinivas et al. (2012): with at least this beta after every number
    t of measurements, all bounds on |D| points hold at all times with probability 1 - delta."""
    return 2 * log(points * max(t, 1) ** 2 * pi**2 / (6 * delta))


def rkhs_beta(norm: float, information: float, t: float, delta: float) -> float:
    """2 norm^2 + 300 gamma_t log^3(t / delta), Theorem 3 of Srinivas et al. (2012): the bounds before measurement t of
    an f whose RKHS norm is at most `norm`, under noise that stays within its standard deviation."""
    return 2 * norm**2 + 300 * information * log(t / delta) ** 3


@dataclass(frozen=True)
class EpochStart:
    """What is known when an epoch starts, for a schedule to choose its beta from."""

    t: int  # t_(i): the index of the first choice made in the epoch
    eta: float
    slack: float
    points: int  # |D| = number of points (D0 with noise levels)
    actions: int  # |D| of the theorem: points x noise levels
    open: int  # |M_{t-1}|
    level_set: bool
    spent: float
    min_cost: float  # c_min
    max_cost: float  # c_max
    cover: Callable[[float], float]  # xi -> an upper bound on the cost of bringing sigma to xi on M
    information: Callable[[int], float]  # T -> an upper bound on gamma_T


class Schedule(Protocol):
    """beta_(i) as a function of what is known when epoch i starts."""

    def __call__(self, start: EpochStart) -> float: ...


@dataclass(frozen=True)
class LogBeta:
    """a log(|D| t_(i)^2), as in the paper's experiments. a is 0.5 for optima and 1 for level sets unless given."""

    a: float | None = None

    def __post_init__(self) -> None:
        if self.a is not None:
            _check_positive(self.a, "a of LogBeta")

    def __call__(self, start: EpochStart) -> float:
        a = (1.0 if start.level_set else 0.5) if self.a is None else self.a
        return a * log(max(start.points, 2) * start.t**2)


@dataclass(frozen=True)
class ConstantBeta:
    """The same beta in every epoch."""

    b: float

    def __post_init__(self) -> None:
        _check_positive(self.b, "b of ConstantBeta")

    def __call__(self, start: EpochStart) -> float:
        return self.b


@dataclass(frozen=True)
class TheoremBeta:
    """Theorem 3.1: valid bounds with probability 1 - delta, whatever the epochs cost.

    beta_(i) = 2 log(|D| C^2 pi^2 / (6 delta c_min^2)), C = what was spent + C_(i), where C_(i) bounds the cost of the
    epoch by C* log(|M| beta / (slack^2 eta^2)) + c_max. The two are solved jointly; C* is bounded by greedy covering
    from the present posterior and M, which is at most the theorem's own from scratch.
    """

    delta: float

    def __post_init__(self) -> None:
        _check_probability(self.delta, "delta of TheoremBeta")

    def __call__(self, start: EpochStart) -> float:
        if start.slack <= 0 or start.eta <= 0:
            raise TruvarError(
                f"the theorem needs slack > 0 and eta > 0, but slack was {start.slack:g} and eta {start.eta:g}; give "
                + for_interface("TruVaR(beta=TheoremBeta(0.1), slack=0.1)", problem="[policy] slack = 0.1")
            )
        cost = start.spent + start.max_cost
        while True:  # increasing in cost and growing by its logarithm, so this ends
            beta = self.at_cost(cost, start)
            cover = start.cover(start.eta / sqrt(beta))
            epoch = cover * max(0.0, log(start.open * beta / (start.slack * start.eta) ** 2)) + start.max_cost
            if start.spent + epoch <= cost:
                return beta
            cost = 1.1 * (start.spent + epoch)

    def at_cost(self, cost: float, start: EpochStart) -> float:
        """Eq. (14) for a cumulative cost at the end of the epoch: the lemma's at the last t that it can pay for."""
        return lemma_beta(start.actions, cost / start.min_cost, self.delta)


@dataclass(frozen=True)
class RKHSBeta:
    """The non-Bayesian setting of Srinivas et al. (2012), Theorem 3: f has an RKHS norm of at most `norm`, in units of
    the prior standard deviation. beta is what the theorem asks for at t = `horizon`, and so covers every measurement
    up to it; an epoch that starts later takes twice the horizon, or four times, ..."""

    norm: float
    delta: float
    horizon: int = 1000

    def __post_init__(self) -> None:
        _check_probability(self.delta, "delta of RKHSBeta")
        _check_positive(self.norm, "norm of RKHSBeta")
        check_integer(self.horizon, "horizon of RKHSBeta", minimum=1)

    def __call__(self, start: EpochStart) -> float:
        t = self.horizon
        while t < start.t:
            t *= 2
        return rkhs_beta(self.norm, start.information(t), t, self.delta)


@dataclass(frozen=True)
class Epoch:
    """Epoch i: the target eta_(i), beta_(i), and t_(i)."""

    index: int
    eta: float
    beta: float
    start: int

    @property
    def tau(self) -> float:
        """eta^2 / beta: the variance below which a point is known well enough, as a share of the prior's."""
        return self.eta**2 / self.beta


@dataclass(frozen=True)
class Confidence:
    """How beta and eta go: the schedule, eta_(1), r and the slack delta-bar. `intersect`: the bounds are those of all
    steps so far (Gotovos et al. 2013) as long as the model is known and M monotone; otherwise those of the last."""

    beta: Schedule = LogBeta()
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    intersect: bool = False

    def __post_init__(self) -> None:
        if not callable(self.beta):
            raise TruvarError(
                f"beta must be a schedule, got {self.beta!r}; give one such as LogBeta(1.0) or ConstantBeta(9.0)"
            )
        if check_finite(self.eta, "eta") < 0:
            raise TruvarError(f"eta must be at least 0, got {self.eta}; give 1.0, or 0 for pure variance reduction")
        _check_probability(self.r, "r")
        if check_finite(self.slack, "slack") < 0:
            raise TruvarError(f"slack must be at least 0, got {self.slack}; give 0, or 0.1 for the theorem")

    def first(self, start: Callable[[float], EpochStart]) -> Epoch:
        """Epoch 1; `start(eta)` tells what is known now."""
        return self._epoch(1, start(self.eta))

    def advance(self, epoch: Epoch, widest: float, start: Callable[[float], EpochStart]) -> Epoch:
        """Lines 5-6 of Algorithm 1: while the widest sigma^2 of M (share of the prior's) is within the target, the next
        epoch starts. Ends also when there is no width left or eta is below the noise of the arithmetic."""
        while RESOLUTION < widest <= (1 + self.slack) ** 2 * epoch.tau and epoch.tau > RESOLUTION:
            epoch = self._epoch(epoch.index + 1, start(self.r * epoch.eta))
        return epoch

    def _epoch(self, index: int, now: EpochStart) -> Epoch:
        beta = self.beta(now)
        _check_positive(beta, f"what the schedule {self.beta!r} returns at t = {now.t}")
        return Epoch(index, now.eta, float(beta), now.t)


def _check_positive(value: float, what: str) -> None:
    if not check_finite(value, what) > 0:
        raise TruvarError(f"{what} must be greater than 0, got {value}; give a positive number")


def _check_probability(value: float, what: str) -> None:
    if not 0 < check_finite(value, what) < 1:
        raise TruvarError(f"{what} must lie between 0 and 1, got {value}; give a number such as 0.1")
