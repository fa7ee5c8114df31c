"""Bounds on C*(xi, M), eq. (11): the least cost that brings sigma to xi on all of M.

Any measurements that do it bound C* from above. `Covering` tries, for each noise level and m = 1,
2, 4, ..., to measure the best site for the widest point of M m times over (m repeats are one
measurement with an m-th of the noise), again and again; and to measure every point of M separately.
`exact_cover` searches all multisets in the order of their cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf

import numpy as np

from truvar._typing import Index, Mask
from truvar.exceptions import InvalidArgumentError
from truvar.models.posterior import EXACT_VARIANCE_SHARE
from truvar.theory._setting import Conditioned, TheorySetting

_MAX_ATTEMPT_SITES = 512  # sites that one attempt measures
_MAX_MULTISETS = 200_000  # multisets tried for an exact value


class Covering:
    """Upper bounds on C*(xi, M) for one M and any xi.

    Attempts are cached, and a smaller xi continues them.

    Args:
        setting: Prior, noise and cost.
        among: M as a mask over the points; None: all of D.
    """

    def __init__(self, setting: TheorySetting, among: Mask | None = None) -> None:
        self._setting = setting
        self._sites = np.flatnonzero(np.ones(setting.points, bool) if among is None else among)
        self._attempts: dict[tuple[int, int], _Attempt] = {}

    def cost(self, xi: float) -> float:
        """Return an upper bound on C*(xi, M)."""
        if len(self._sites) == 0:
            return 0.0
        return min(self._by_level(level, xi * xi) for level in range(self._setting.noise.shape[1]))

    def _by_level(self, level: int, width: float) -> float:
        noise = self._setting.noise[:, level]
        cost = self._setting.cost[:, level]
        wide = self._sites[self._setting.prior[self._sites] > width]
        best = float((cost[wide] * np.maximum(1.0, np.ceil(noise[wide] / width))).sum())
        repeats = 1
        while cost.min() * repeats < best:
            attempt = self._attempts.setdefault(
                (level, repeats), _Attempt(self._setting, self._sites, level, repeats)
            )
            best = min(best, attempt.cost(width, best))
            if noise.max() / repeats <= width / 16:
                break
            repeats *= 2
        return best


@dataclass
class _Attempt:
    """An attempt that repeatedly measures the best site for the widest point.

    Attributes:
        widest: Largest variance left after each step.
        spent: Cost after each step.
    """

    setting: TheorySetting
    sites: Index
    level: int
    repeats: int
    widest: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._given = Conditioned(self.setting)
        self._noise = self.setting.noise[:, self.level] / self.repeats
        self._cost = self.setting.cost[:, self.level] * self.repeats
        self.widest.append(float(self._given.variance[self.sites].max()))
        self.spent.append(0.0)

    def cost(self, width: float, limit: float) -> float:
        """Return the cost of bringing every variance to `width`; infinite above the limit."""
        while (
            self.widest[-1] > width
            and self.spent[-1] < limit
            and len(self.spent) <= _MAX_ATTEMPT_SITES
        ):
            self._step()
        enough = next((k for k, left in enumerate(self.widest) if left <= width), None)
        return inf if enough is None else self.spent[enough]

    def _step(self) -> None:
        variance = self._given.variance
        widest = self.sites[np.argmax(variance[self.sites])]
        d = variance + self._noise
        pays = np.divide(
            self._given.covariance(widest) ** 2,
            d,
            out=np.zeros_like(d),
            where=d > EXACT_VARIANCE_SHARE,
        )
        x = int(np.argmax(np.minimum(pays, variance[widest]) / self._cost))
        self._given.measure(x, float(self._noise[x]))
        self.widest.append(float(self._given.variance[self.sites].max()))
        self.spent.append(self.spent[-1] + float(self._cost[x]))


def exact_cover(setting: TheorySetting, xi: float, among: Mask | None = None) -> float:
    """Return C*(xi, M) by trying multisets of measurements in order of cost, for few points.

    Raises:
        InvalidArgumentError: If more than `_MAX_MULTISETS` multisets would have to be tried.
    """
    sites = np.flatnonzero(np.ones(setting.points, bool) if among is None else among)
    noise = setting.noise.ravel()
    cost = setting.cost.ravel()
    levels = setting.noise.shape[1]
    number = count()  # breaks ties between equal costs
    waiting = [(0.0, next(number), 0, setting.matrix())]
    for _ in range(_MAX_MULTISETS):
        spent, _, first, covariance = heappop(waiting)
        variance = covariance.diagonal()
        if len(sites) == 0 or variance[sites].max() <= xi * xi * (1 + 1e-12):
            return spent
        for action in range(
            first, len(noise)
        ):  # the order of measurements does not matter: never an earlier one
            x = action // levels
            d = variance[x] + noise[action]
            if variance[x] > EXACT_VARIANCE_SHARE and d > EXACT_VARIANCE_SHARE:
                after = covariance - np.outer(covariance[:, x], covariance[x]) / d
                heappush(waiting, (spent + float(cost[action]), next(number), action, after))
        if not waiting:
            break
    raise InvalidArgumentError(
        f"the exact C* at xi = {xi:g} needs more than {_MAX_MULTISETS} sets of measurements; use "
        "Covering, an "
        "upper bound"
    )
