"""Diagnostics of Assumption 3.1: is the variance reduction psi of a problem submodular?

Submodular means that a measurement helps less, never more, once others were made. Two diagnostics,
on random draws:

- triples: for a target x and measurements a, b, given a few others A, by how much psi_x(a | A + b)
  exceeds psi_x(a | A);
- sets: the proof of Theorem 3.1 needs only g(S) <= sum of g({s}) over s in S, with g summed over
  all targets (eq. (25) follows). The least ratio sum / g(S) that was found is at least 1 where that
  holds.

Neither proves the assumption; a failure refutes it. The confidence statement of a certificate does
not need it, only the bounds on cost do.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from truvar._typing import Array
from truvar.acquisition.truncation import excess
from truvar.theory._setting import Conditioned, TheorySetting

_MIN_EXCESS = 1e-10  # of the prior variance: an excess below this is none


@dataclass(frozen=True)
class Submodularity:
    """Violations of submodularity found by sampling, with variances as shares of the prior's.

    Attributes:
        triples: Number of random triples.
        violations: Number of triples that violate submodularity.
        worst: Largest excess found.
        mean: Mean excess of the violations.
        sets: Number of random sets.
        ratio: Smallest ratio of the sum over s of g({s}) to g(S).
        excess: g_{1,max}, eq. (24): excess variance over all targets at the start, with the given
            truncation.
    """

    triples: int
    violations: int
    worst: float
    mean: float
    sets: int
    ratio: float
    excess: float

    @property
    def share(self) -> float:
        """Share of the triples that violate submodularity."""
        return self.violations / self.triples

    def __str__(self) -> str:
        return (
            f"the variance reduction is not submodular in {self.share:.1%} of {self.triples} "
            "random triples, by "
            f"{self.worst:.2g} of the prior variance at most; summed over all points, single gains "
            "add up to at least "
            f"{self.ratio:.3g} times the joint gain in {self.sets} random sets (the bound on the "
            "cost needs 1)"
        )


def submodularity(
    setting: TheorySetting,
    *,
    tau: float = 0.0,
    triples: int = 2000,
    sets: int = 200,
    given: int = 8,
    seed: int = 0,
) -> Submodularity:
    """Sample random triples, and sets of 2 to `given` measurements, after up to `given` others.

    Args:
        setting: Prior, noise and cost.
        tau: Truncation eta^2 / beta of g, eq. (22).
        triples: Number of triples to sample.
        sets: Number of sets to sample.
        given: Largest size of a set, and largest number of measurements made before.
        seed: Seed of the sampling.
    """
    rng = np.random.default_rng(seed)
    excesses: list[float] = []
    while len(excesses) < triples:
        history = _history(setting, rng, given)
        for _ in range(min(20, triples - len(excesses))):
            excesses.append(_triple(setting, history, rng))
    ratio = min((_ratio(setting, tau, given, rng) for _ in range(sets)), default=inf)
    over = np.array(excesses)
    violated = over[over > _MIN_EXCESS]
    return Submodularity(
        triples=triples,
        violations=len(violated),
        worst=float(violated.max(initial=0.0)),
        mean=float(violated.mean()) if len(violated) else 0.0,
        sets=sets,
        ratio=ratio,
        excess=float(excess(setting.prior[: setting.points], tau).sum()),
    )


def _history(setting: TheorySetting, rng: np.random.Generator, most: int) -> Conditioned:
    given = Conditioned(setting)
    for _ in range(int(rng.integers(most + 1))):
        given.measure(*_action(setting, rng))
    return given


def _action(setting: TheorySetting, rng: np.random.Generator) -> tuple[int, float]:
    x = int(rng.integers(len(setting.prior)))
    level = int(rng.integers(setting.noise.shape[1]))
    return x, float(setting.noise[x, level])


def _triple(setting: TheorySetting, given: Conditioned, rng: np.random.Generator) -> float:
    """Return psi_x(a | A + b) - psi_x(a | A) for random x, a, b."""
    x = int(rng.integers(setting.points))
    (a, noise_a) = _action(setting, rng)
    (b, noise_b) = _action(setting, rng)
    to_a = given.covariance(a)
    to_b = given.covariance(b)
    d_a = given.variance[a] + noise_a
    d_b = given.variance[b] + noise_b
    if d_a <= 0 or d_b <= 0:
        return 0.0
    before = to_a[x] ** 2 / d_a
    left = d_a - to_b[a] ** 2 / d_b
    after = (to_a[x] - to_b[x] * to_b[a] / d_b) ** 2 / left if left > 0 else 0.0
    return float(after - before)


def _ratio(setting: TheorySetting, tau: float, most: int, rng: np.random.Generator) -> float:
    """Return the sum of g({s}) over s in S, divided by g(S), for a random S and history."""
    given = _history(setting, rng, most)
    before = given.variance[: setting.points]
    left = excess(before, tau)

    def gain(reduction: Array) -> float:
        return float(np.minimum(reduction, left).sum())

    single = 0.0
    chosen = [_action(setting, rng) for _ in range(int(rng.integers(2, max(most, 2) + 1)))]
    for x, noise in chosen:
        d = given.variance[x] + noise
        if d > 0:
            single += gain(given.covariance(x)[: setting.points] ** 2 / d)
    for x, noise in chosen:
        given.measure(x, noise)
    joint = gain(before - given.variance[: setting.points])
    return single / joint if joint > 0 else inf
