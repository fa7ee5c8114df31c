"""Cost of an epsilon by Theorem 3.1 and its corollaries.

| paper | here |
|---|---|
| C_(i), beta_(i), eqs. (13)-(14), solved jointly | `EpochBound`, one per epoch |
| C_epsilon, eq. (15) | `CostBound.cost` |
| Mbar_(i), eqs. (9)-(10) | `within_gap`, or all of D where f is not known |
| the corollary of supp. D, eq. (37) | `simplified` |
| Corollary 3.1, eq. (17) | `improved` |
| Corollary 3.2 | `choose_noise` |

The corollaries come with two sets of constants: `PAPER` as printed, `DERIVED` as their proofs give
them once four slips are corrected (docs/theory.md has the derivation, tests/theory/test_theory.py
the counterexamples):

- the sum of log(1 + sigma_t^2 / sigma^2) over the greedy points is *twice* the information, so C_1
  = 2 / log(1 + sigma^-2);
- for the same reason 2 sigma^2 becomes 2 sigma^2 / log 2, with alpha <= log(1 + alpha) / log 2 on
  [0, 1];
- the last epoch's eta can be r epsilon / (4 (1 + slack)), so the logarithm has 16 / r^2 = 64 where
  16 is printed;
- an epoch can exceed its cost by the least of c_max and C*, not by the cost of the level that the
  bound is taken for (Corollary 3.2).

epsilon is in the user's units throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log, log2, sqrt

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Mask
from truvar.acquisition.confidence import lemma_beta
from truvar.domain.goals import Goal
from truvar.exceptions import InvalidArgumentError
from truvar.theory._covering import Covering
from truvar.theory._information import InformationGain
from truvar.theory._setting import TheorySetting
from truvar.validation import check_fraction, check_positive

_MAX_STEPS = 1e15  # a number of measurements beyond this counts as infinite


# -- Theorem 3.1
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpochBound:
    """Epoch i of Theorem 3.1.

    Attributes:
        index: i.
        eta: eta_(i), in prior standard deviations.
        undecided: Size of Mbar_(i-1).
        beta: beta_(i).
        cover: Upper bound on C*(eta_(i) / beta_(i)^1/2, Mbar_(i-1)).
        cost: C_(i).
        total: Sum of C_(1) to C_(i).
    """

    index: int
    eta: float
    undecided: int
    beta: float
    cover: float
    cost: float
    total: float


@dataclass(frozen=True)
class CostBound:
    """Theorem 3.1: epsilon-accuracy with probability 1 - delta once `cost` is spent."""

    epsilon: float
    delta: float
    epochs: tuple[EpochBound, ...]

    @property
    def cost(self) -> float:
        """C_epsilon."""
        return self.epochs[-1].total if self.epochs else 0.0


@blas_in_one_thread()
def theorem(
    setting: TheorySetting,
    epsilon: float,
    delta: float,
    undecided: Callable[[float], Mask] | None = None,
) -> CostBound:
    """Solve for the C_(i) and beta_(i) of Theorem 3.1 jointly, and for C_epsilon.

    Args:
        setting: Prior, noise, cost and epochs.
        epsilon: The accuracy asked for, in the user's units.
        delta: Probability that the bound may fail.
        undecided: Function from 4 (1 + slack) eta_(i-1), in the user's units, to Mbar_(i-1); for a
            known f, `lambda gap: within_gap(goal, f, gap)`. None: all of D.

    Raises:
        InvalidArgumentError: If slack, eta, epsilon or delta are outside their ranges.
    """
    if setting.slack <= 0 or setting.eta <= 0:
        raise InvalidArgumentError(
            f"the theorem needs slack > 0 and eta > 0, got slack {setting.slack:g} and eta "
            f"{setting.eta:g}; "
            "give slack = 0.1"
        )
    check_positive(epsilon, "epsilon", example="0.1")
    check_fraction(delta, "delta")
    everywhere = Covering(setting)
    epochs: list[EpochBound] = []
    eta = setting.eta
    spent = 0.0
    while 4 * (1 + setting.slack) * eta / setting.r * setting.scale > epsilon and spent < inf:
        mask = np.ones(setting.points, bool)
        covering = everywhere
        if epochs and undecided is not None:
            mask = undecided(4 * (1 + setting.slack) * eta / setting.r * setting.scale)
            covering = Covering(setting, mask)
        cost, beta, cover = _joint(setting, covering, int(mask.sum()), eta, spent, delta)
        spent += cost
        epochs.append(EpochBound(len(epochs) + 1, eta, int(mask.sum()), beta, cover, cost, spent))
        eta *= setting.r
    return CostBound(epsilon, delta, tuple(epochs))


def _joint(
    setting: TheorySetting, covering: Covering, points: int, eta: float, spent: float, delta: float
) -> tuple[float, float, float]:
    """Return the least C_(i) with its beta_(i) and C*.

    C -> C* log(...) + c_max grows more slowly than C, so it is iterated from below until it stops
    growing.
    """
    cost = setting.max_cost
    while True:
        beta = lemma_beta(setting.actions, (spent + cost) / setting.min_cost, delta)  # eq. (14)
        cover = covering.cost(eta / sqrt(beta))
        needed = epoch_cost(cover, points, beta, eta, setting.slack, setting.max_cost)
        if needed <= cost:
            return cost, beta, cover
        cost = needed * (1 + 1e-9)
        if cost > _MAX_STEPS * setting.max_cost:
            return inf, beta, cover


def epoch_cost(
    cover: float, points: int, beta: float, eta: float, slack: float, max_cost: float
) -> float:
    """Return C* log(|Mbar| beta / (slack^2 eta^2)) + c_max, the right-hand side of eq. (13)."""
    if points == 0:
        return 0.0
    return cover * max(0.0, log(points * beta / (slack * eta) ** 2)) + max_cost


def within_gap(goal: Goal, f: Array, gap: float) -> Mask:
    """Return Mbar_(i) of a known f on D, eqs. (9)-(10), for gap = 4 (1 + slack) eta_(i)."""
    return goal.within_gap(f, gap)


# -- corollaries
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    """The constants of the corollaries.

    Attributes:
        name: "derived" or "as printed".
        sums: Ratio of the sum of log(1 + sigma_t^2 / sigma^2) to the information.
        late: Smallest constant with alpha <= late log(1 + alpha) on [0, 1].
        inside: Factor in the logarithm of (1 + slack)^2 |D| beta / (slack^2 epsilon^2).
        overshoot: Whether each epoch may exceed its cost by the least of c_max and C*.
    """

    name: str
    sums: float
    late: float
    inside: float
    overshoot: bool

    def first(self, noise: float) -> float:
        """Return C_1: k max sigma^2 <= C_1 gamma_k after k greedy points."""
        return self.sums / log(1 + 1 / noise)


DERIVED = Constants("derived", sums=2.0, late=1 / log(2), inside=64.0, overshoot=True)
PAPER = Constants("as printed", sums=1.0, late=2.0, inside=16.0, overshoot=False)


@dataclass(frozen=True)
class Horizon:
    """Measurements and cost after which a corollary promises epsilon-accuracy.

    Attributes:
        steps: Number of measurements.
        cost: Their cost.
        gamma: Upper bound on gamma_T that the promise uses.
        beta: beta_T.
        level: Noise level, where there is a choice.
    """

    steps: float
    cost: float
    gamma: float
    beta: float
    level: int = 0


def simplified(
    setting: TheorySetting,
    epsilon: float,
    delta: float,
    constants: Constants = DERIVED,
    gain: InformationGain | None = None,
) -> Horizon:
    """Evaluate the corollary of supp. D, eq. (37): one noise variance and cost, r = 1/2.

    Args:
        setting: Prior, noise and cost.
        epsilon: The accuracy asked for, in the user's units.
        delta: Probability that the bound may fail.
        constants: `DERIVED`, or `PAPER` as printed.
        gain: gamma_T of the setting, to be shared between calls.
    """
    noise, cost = _one_level(setting)

    def needed(gamma: float, beta: float, accuracy: float) -> float:
        return constants.first(noise) * gamma * beta * 96 / accuracy**2

    return _least(
        setting, epsilon, delta, constants, cost, gain or InformationGain(setting), needed, 0
    )


def improved(
    setting: TheorySetting,
    epsilon: float,
    delta: float,
    constants: Constants = DERIVED,
    gain: InformationGain | None = None,
) -> Horizon:
    """Evaluate Corollary 3.1, eq. (17), which depends less on the noise than `simplified`."""
    noise, cost = _one_level(setting)
    return _improved(
        setting, epsilon, delta, constants, noise, cost, gain or InformationGain(setting), 0
    )


def level_gains(setting: TheorySetting) -> list[InformationGain]:
    """Return gamma_T with each noise level alone."""
    return [
        InformationGain(
            replace(setting, noise=setting.noise[:, k : k + 1], cost=setting.cost[:, k : k + 1])
        )
        for k in range(setting.noise.shape[1])
    ]


def choose_noise(
    setting: TheorySetting,
    epsilon: float,
    delta: float,
    constants: Constants = DERIVED,
    gains: Sequence[InformationGain] | None = None,
) -> list[Horizon]:
    """Evaluate Corollary 3.2: c(k) T*(k) of every noise level, the best level first."""
    levels = setting.levels
    if not levels:
        raise InvalidArgumentError(
            "Corollary 3.2 is about noise levels that are the same everywhere, but noise or cost "
            "differ between points"
        )
    found = [
        _improved(setting, epsilon, delta, constants, noise, cost, gain, k)
        for k, ((noise, cost), gain) in enumerate(
            zip(levels, gains or level_gains(setting), strict=True)
        )
    ]
    return sorted(found, key=lambda horizon: horizon.cost)


def _improved(
    setting: TheorySetting, epsilon: float, delta: float, constants: Constants, noise: float, cost: float,
    gain: InformationGain, level: int,
) -> Horizon:  # fmt: skip
    # Epochs that begin with variances above it.
    early = constants.first(noise) * 6 * (1 + setting.slack) ** 2 / noise
    late = constants.sums * constants.late * noise

    def needed(gamma: float, beta: float, accuracy: float) -> float:
        return gamma * beta * (late * 96 / accuracy**2 + early)

    epochs = max(0, ceil(log2(2 * (1 + setting.slack) / sqrt(noise))))
    return _least(setting, epsilon, delta, constants, cost, gain, needed, epochs, level)


def _least(
    setting: TheorySetting, epsilon: float, delta: float, constants: Constants, cost: float, gain: InformationGain,
    needed: Callable[[float, float, float], float], more_epochs: int, level: int = 0,
) -> Horizon:  # fmt: skip
    """Return the least T with c T >= c (needed + epochs) log(...) + overshoot, iterated from below.

    T counts measurements of one level at cost c. The overshoot is what epochs may exceed their cost
    by. The accuracy is epsilon / (1 + slack), in prior standard deviations.
    """
    check_positive(epsilon, "epsilon", example="0.1")
    check_fraction(delta, "delta")
    if setting.slack <= 0:
        raise InvalidArgumentError(
            f"the corollaries need slack > 0, got {setting.slack:g}; give slack = 0.1"
        )
    accuracy = epsilon / setting.scale / (1 + setting.slack)
    epochs = ceil(log2(8 / accuracy))
    if epochs <= 0:  # the prior is epsilon-accurate
        return Horizon(0.0, 0.0, 0.0, 0.0, level)
    epochs += more_epochs
    steps = 1.0
    while True:
        # The paper bounds the cost of T measurements by c_max T.
        most = cost if constants.overshoot else setting.max_cost
        beta = lemma_beta(setting.actions, steps * most / setting.min_cost, delta)
        gamma = gain.upper(steps)
        points = setting.points if constants.overshoot else setting.actions  # M lives on the points
        factor = max(1.0, log(constants.inside * points * beta / (setting.slack * accuracy) ** 2))
        base = needed(gamma, beta, accuracy)
        if constants.overshoot:
            least = (base + epochs) * factor + min(epochs * setting.max_cost / cost, base + epochs)
        else:
            least = (base + 2 * epochs) * factor
        if least <= steps:
            return Horizon(float(ceil(steps)), cost * ceil(steps), gamma, beta, level)
        steps = least * (1 + 1e-9)
        if steps > _MAX_STEPS:
            return Horizon(inf, inf, gamma, beta, level)


def _one_level(setting: TheorySetting) -> tuple[float, float]:
    levels = setting.levels
    if len(levels) != 1:
        raise InvalidArgumentError(
            "this corollary is about one noise variance and one cost, the same everywhere; use "
            "theorem(), or "
            "choose_noise() for noise levels"
        )
    return levels[0]
