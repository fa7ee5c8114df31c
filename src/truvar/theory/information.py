"""gamma_T, eq. (16): the most that T measurements can tell about f, between bounds.

| paper | here |
|---|---|
| 1/2 log det(I + sigma^-2 K_T) | `information` of a list of measurements |
| gamma_T | `InformationGain.at(T)`: greedy <= gamma_T <= upper; `exact_gain` on a few points |

Greedy choice loses at most a factor 1 - 1/e (Nemhauser et al., 1978). Two further upper bounds hold at any T, and the
least of the three is given. With F the information and D_x its growth by one more measurement of x:

- F is submodular, so gamma_T <= F(S) + T max_x D_x(S) for every S, here each beginning of the greedy sequence;
- F(N) = 1/2 log det(I + N^1/2 K N^1/2 / sigma^2) is concave in real counts N, so gamma_T <= F(N) + sum_x (N'_x - N_x)
  g_x <= F(N) + T max g - sum_x N_x g_x for every N with sum T, with the gradient g_x = sigma_N^2(x) / (2 sigma^2).

Where measurements have noise levels, the most precise one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, exp, inf

import numpy as np
from scipy.linalg import solve_triangular

from truvar._typing import Array
from truvar.exceptions import TruvarError
from truvar.theory.setting import Conditioned, TheorySetting

GREEDY = 1 - exp(-1)
LONGEST = 1000  # steps of the greedy sequence
SMALL, LARGEST = 1000, 3000  # sites up to which the relaxation is solved where greedy has a bound too, and elsewhere
WORK = 1e10  # m^3 x iterations spent on one relaxation, but never less than two
CLOSE = 1e-2  # of the value: a relaxation is solved when its bound is this near
MULTISETS = 200_000  # looked at, at most, for an exact value


@dataclass(frozen=True)
class Gain:
    """gamma_T between bounds."""

    steps: int
    greedy: float  # what greedy choice tells, or its first LONGEST steps: gamma_T is at least this
    upper: float  # and at most this


class InformationGain:
    """gamma_T of a setting for any T; keeps the greedy sequence it has computed."""

    def __init__(self, setting: TheorySetting) -> None:
        self._noise = setting.noise.min(axis=1)
        if (self._noise <= 0).any():
            raise TruvarError("gamma_T is infinite without noise; give every measurement a noise variance > 0")
        self._setting = setting
        self._greedy = Conditioned(setting)
        self._told = [0.0]  # F of the first k greedy measurements
        self._next = [float((setting.prior / self._noise).max())]  # the largest sigma^2 / noise after them
        self._solved: dict[int, float] = {}
        self._covariance: Array | None = None
        self._shares = np.full(len(self._noise), 1 / len(self._noise))  # of T, as last solved

    def at(self, steps: int) -> Gain:
        """The bounds on gamma_T for T = steps."""
        self._extend(min(steps, LONGEST))
        taken = min(steps, len(self._told) - 1)
        ahead = 0.5 * np.log1p(self._next[: taken + 1])  # the growth of F by the best next measurement
        upper = float((np.array(self._told[: taken + 1]) + steps * ahead).min())
        if taken == steps:
            upper = min(upper, self._told[steps] / GREEDY)
        if len(self._noise) <= (SMALL if taken == steps else LARGEST):
            upper = min(upper, self._relaxed(steps))
        return Gain(steps, self._told[taken], max(upper, self._told[taken]))

    def upper(self, steps: float) -> float:
        """An upper bound on gamma_T, for T rounded up to a quarter of a power of two: cheap to ask for often."""
        if steps <= 64:
            return self.at(int(np.ceil(steps))).upper
        return self.at(int(np.ceil(2 ** (np.ceil(4 * np.log2(steps)) / 4)))).upper

    def _extend(self, steps: int) -> None:
        given = self._greedy
        while len(self._told) <= steps:
            x = int(np.argmax(given.variance / self._noise))
            self._told.append(self._told[-1] + 0.5 * float(np.log1p(given.variance[x] / self._noise[x])))
            given.measure(x, float(self._noise[x]))
            self._next.append(float((given.variance / self._noise).max()))

    def _relaxed(self, steps: int) -> float:
        """The bound from concavity, at counts that multiplicative steps bring near the best."""
        if steps in self._solved:
            return self._solved[steps]
        if self._covariance is None:
            self._covariance = self._setting.matrix()
        best = inf
        for _ in range(int(np.clip(WORK / len(self._noise) ** 3, 2, 15))):
            value, variance = _relaxation(self._covariance, steps * self._shares / self._noise)
            gradient = steps * variance / (2 * self._noise)  # by the shares
            mean = float(self._shares @ gradient)
            gap = float(gradient.max()) - mean
            best = min(best, value + gap)
            if gap <= CLOSE * value:
                break
            self._shares = self._shares * gradient / mean
        self._solved[steps] = best
        return best


def _relaxation(covariance: Array, precision: Array) -> tuple[float, Array]:
    """1/2 log det(I + W^1/2 K W^1/2) and the posterior variances, for measurements of total precision W."""
    root = np.sqrt(precision)
    factor = np.linalg.cholesky(np.eye(len(root)) + root[:, None] * covariance * root)
    half = solve_triangular(factor, root[:, None] * covariance, lower=True, check_finite=False)
    variance = np.maximum(covariance.diagonal() - (half * half).sum(axis=0), 0.0)
    return float(np.log(factor.diagonal()).sum()), variance


def information(setting: TheorySetting, where: Sequence[int]) -> float:
    """1/2 log det(I + sigma^-2 K) of measurements at these sites, repeats included."""
    noise, given, total = setting.noise.min(axis=1), Conditioned(setting), 0.0
    for x in where:
        total += 0.5 * float(np.log1p(given.variance[x] / noise[x]))
        given.measure(x, float(noise[x]))
    return total


def exact_gain(setting: TheorySetting, steps: int) -> float:
    """gamma_T by trying every multiset of T sites."""
    count = comb(len(setting.prior) + steps - 1, steps)
    if count > MULTISETS:
        raise TruvarError(
            f"the exact gamma_T would need {count} sets of measurements, more than {MULTISETS}; use InformationGain"
        )
    return max(information(setting, where) for where in combinations_with_replacement(range(len(setting.prior)), steps))
