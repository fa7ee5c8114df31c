"""Bounds on gamma_T, eq. (16): the largest information that T measurements can give about f.

| paper | here |
|---|---|
| 1/2 log det(I + sigma^-2 K_T) | `information` of a list of measurements |
| gamma_T | `InformationGain.at(T)`: greedy <= gamma_T <= upper; `exact_gain` on a few points |

Greedy choice loses at most a factor 1 - 1/e (Nemhauser et al., 1978). Two further upper bounds hold
at any T, and the least of the three is given. With F the information and D_x its growth by one more
measurement of x:

- F is submodular, so gamma_T <= F(S) + T max_x D_x(S) for every S, here each beginning of the
  greedy sequence;
- F(N) = 1/2 log det(I + N^1/2 K N^1/2 / sigma^2) is concave in real counts N, so gamma_T <= F(N) +
  sum_x (N'_x - N_x) g_x <= F(N) + T max g - sum_x N_x g_x for every N with sum T, with the gradient
  g_x = sigma_N^2(x) / (2 sigma^2).

If measurements have noise levels, the most precise one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, exp, inf

import numpy as np
from scipy.linalg import solve_triangular

from truvar._typing import Array
from truvar.exceptions import InvalidArgumentError
from truvar.theory._setting import Conditioned, TheorySetting

_GREEDY_SHARE = 1 - exp(-1)  # share of gamma_T that greedy choice attains at least
_MAX_GREEDY_STEPS = 1000  # steps of the greedy sequence
# Sites up to which the relaxation is solved although greedy choice gives a bound too.
_MAX_SITES_BESIDE_GREEDY = 1000
# Sites up to which the relaxation is solved where greedy choice gives none.
_MAX_RELAXATION_SITES = 3000
_MAX_RELAXATION_WORK = 1e10  # m^3 x iterations spent on one relaxation, but at least two iterations
_RELAXATION_GAP = 1e-2  # relative gap at which a relaxation counts as solved
_MAX_MULTISETS = 200_000  # multisets tried for an exact value


@dataclass(frozen=True)
class Gain:
    """Bounds on gamma_T.

    Attributes:
        steps: T.
        greedy: Information of greedy choice, or of its first `_MAX_GREEDY_STEPS` steps: a lower
            bound.
        upper: An upper bound.
    """

    steps: int
    greedy: float
    upper: float


class InformationGain:
    """Bounds on gamma_T of a setting for any T; caches the greedy sequence."""

    def __init__(self, setting: TheorySetting) -> None:
        self._noise = setting.noise.min(axis=1)
        if (self._noise <= 0).any():
            raise InvalidArgumentError(
                "gamma_T is infinite without noise; give every measurement a noise variance > 0"
            )
        self._setting = setting
        self._greedy = Conditioned(setting)
        self._information = [0.0]  # F of the first k greedy measurements
        self._largest_ratio = [
            float((setting.prior / self._noise).max())
        ]  # the largest sigma^2 / noise after them
        self._solved: dict[int, float] = {}
        self._covariance: Array | None = None
        self._shares = np.full(len(self._noise), 1 / len(self._noise))  # of T, as last solved

    def at(self, steps: int) -> Gain:
        """Return the bounds on gamma_T for T = steps."""
        self._extend(min(steps, _MAX_GREEDY_STEPS))
        taken = min(steps, len(self._information) - 1)
        ahead = 0.5 * np.log1p(
            self._largest_ratio[: taken + 1]
        )  # the growth of F by the best next measurement
        upper = float((np.array(self._information[: taken + 1]) + steps * ahead).min())
        if taken == steps:
            upper = min(upper, self._information[steps] / _GREEDY_SHARE)
        if len(self._noise) <= (
            _MAX_SITES_BESIDE_GREEDY if taken == steps else _MAX_RELAXATION_SITES
        ):
            upper = min(upper, self._relaxed(steps))
        return Gain(steps, self._information[taken], max(upper, self._information[taken]))

    def upper(self, steps: float) -> float:
        """Return an upper bound on gamma_T, for T rounded up to a quarter of a power of two."""
        if steps <= 64:
            return self.at(int(np.ceil(steps))).upper
        return self.at(int(np.ceil(2 ** (np.ceil(4 * np.log2(steps)) / 4)))).upper

    def _extend(self, steps: int) -> None:
        given = self._greedy
        while len(self._information) <= steps:
            x = int(np.argmax(given.variance / self._noise))
            self._information.append(
                self._information[-1] + 0.5 * float(np.log1p(given.variance[x] / self._noise[x]))
            )
            given.measure(x, float(self._noise[x]))
            self._largest_ratio.append(float((given.variance / self._noise).max()))

    def _relaxed(self, steps: int) -> float:
        """Return the bound from concavity, at counts that multiplicative steps improve."""
        if steps in self._solved:
            return self._solved[steps]
        if self._covariance is None:
            self._covariance = self._setting.matrix()
        best = inf
        for _ in range(int(np.clip(_MAX_RELAXATION_WORK / len(self._noise) ** 3, 2, 15))):
            try:
                value, variance = _relaxation(self._covariance, steps * self._shares / self._noise)
            except (
                np.linalg.LinAlgError
            ):  # the precision is too large for the arithmetic: the other bounds remain
                break
            gradient = steps * variance / (2 * self._noise)  # by the shares
            mean = float(self._shares @ gradient)
            gap = float(gradient.max()) - mean
            best = min(best, value + gap)
            if gap <= _RELAXATION_GAP * value:
                break
            self._shares = self._shares * gradient / mean
        self._solved[steps] = best
        return best


def _relaxation(covariance: Array, precision: Array) -> tuple[float, Array]:
    """Return 1/2 log det(I + W^1/2 K W^1/2) and the posterior variances, for precisions W."""
    root = np.sqrt(precision)
    factor = np.linalg.cholesky(np.eye(len(root)) + root[:, None] * covariance * root)
    half = solve_triangular(factor, root[:, None] * covariance, lower=True, check_finite=False)
    variance = np.maximum(covariance.diagonal() - (half * half).sum(axis=0), 0.0)
    return float(np.log(factor.diagonal()).sum()), variance


def information(setting: TheorySetting, sites: Sequence[int]) -> float:
    """Return 1/2 log det(I + sigma^-2 K) of measurements at these sites, repeats included."""
    noise = setting.noise.min(axis=1)
    given = Conditioned(setting)
    total = 0.0
    for x in sites:
        total += 0.5 * float(np.log1p(given.variance[x] / noise[x]))
        given.measure(x, float(noise[x]))
    return total


def exact_gain(setting: TheorySetting, steps: int) -> float:
    """Return gamma_T by trying every multiset of T sites."""
    count = comb(len(setting.prior) + steps - 1, steps)
    if count > _MAX_MULTISETS:
        raise InvalidArgumentError(
            f"the exact gamma_T would need {count} sets of measurements, more than "
            f"{_MAX_MULTISETS}; use InformationGain"
        )
    multisets = combinations_with_replacement(range(len(setting.prior)), steps)
    return max(information(setting, sites) for sites in multisets)
