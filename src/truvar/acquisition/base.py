"""The interface between Algorithm 1 and a policy: what a policy sees (`PolicyContext`) and provides (`Policy`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from scipy.special import ndtr

from truvar._typing import Array, Index, Mask
from truvar.acquisition.confidence import Confidence, Epoch
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, Regions
from truvar.engines import Engine
from truvar.exceptions import TruvarError
from truvar.messages import for_interface
from truvar.models.posterior import Posterior

T = TypeVar("T")


@dataclass(frozen=True)
class PolicyContext:
    """All that a rule may look at when it scores the candidates."""

    engine: Engine
    goal: Goal
    regions: Regions  # M, H, L
    targets: Mask  # the rows to learn about: M, and what else the goal must know
    lower: Array  # l_t on the domain
    upper: Array  # u_t
    epoch: Epoch
    best_y: float | None  # the best value told of the target so far, in the goal's sense
    seed: tuple[int, int]  # of what is drawn for this choice: the study's, and how many were asked for before
    domain: Domain
    queried_points: Array  # (rows, d'): where was measured, then where a measurement is pending
    actions: ActionSpace  # what can be done, and at what price from elsewhere
    has_bounds: bool = True  # whether `lower` and `upper` mean something yet: not before there is a mean and a kernel
    only_best: bool = False  # just the best candidate is wanted: hopeless ones may keep an upper bound as their score
    cache: dict[Hashable, Any] = field(default_factory=dict)  # what a rule computed once for this choice

    @property
    def posterior(self) -> Posterior:
        """f given what was told and is pending."""
        return self.engine.posterior

    @property
    def moments(self) -> tuple[Array, Array]:
        """Mean (n,), in the goal's sense (high is good), and standard deviation (n,), given what is pending too."""
        n = len(self.targets)
        return self.goal.sign * self.posterior.mean[:n], np.sqrt(self.posterior.pending_variance[:n])

    @property
    def rng(self) -> np.random.Generator:
        """What a rule draws from."""
        return self.cached("rng", lambda: np.random.default_rng(self.seed))

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of `compute`, computed at most once for this choice, however many tables are scored."""
        if key not in self.cache:
            self.cache[key] = compute()
        value: T = self.cache[key]
        return value


class Policy(Protocol):
    """A decision rule: a score per candidate (c, K); the highest is chosen.

    per_cost    the score is divided by the cost first
    signed      the score can be negative; otherwise a score of zero everywhere means that nothing is left to gain
    confidence  how the bounds behind M, H and L go
    """

    @property
    def per_cost(self) -> bool: ...

    @property
    def signed(self) -> bool: ...

    @property
    def confidence(self) -> Confidence: ...

    def score(self, context: PolicyContext, candidates: Candidates) -> Array: ...

    def places(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """The places of the table to choose among; None: all. A goal or table that the rule cannot serve is refused."""
        ...


@runtime_checkable
class ProposalPolicy(Protocol):
    """A rule that knows by itself which points of a box come into question, so that its score need not be searched."""

    def propose(self, context: PolicyContext) -> Array:
        """The points (q, d) to choose among."""
        ...


@dataclass(frozen=True)
class TopK:
    """Choose only among the k points with the highest upper confidence bound ("ucb") or expected improvement ("ei")."""

    k: int
    by: Literal["ucb", "ei"] = "ucb"

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1 or self.by not in ("ucb", "ei"):
            raise TruvarError(
                "the places are the k >= 1 best by 'ucb' or 'ei', got "
                + for_interface(
                    f"TopK(k={self.k!r}, by={self.by!r})", problem=f"among = {{top = {self.k}, by = '{self.by}'}}"
                )
                + "; correct it"
            )

    def points(self, context: PolicyContext) -> Mask:
        """The k best points of the domain, as a mask; ties go to the lower index."""
        mean, sd = context.moments
        if self.by == "ucb":
            merit = mean + np.sqrt(context.epoch.beta) * sd
        else:
            merit = expected_improvement(mean, sd, incumbent(context))
        chosen = np.zeros(len(merit), bool)
        chosen[np.argsort(-merit, kind="stable")[: self.k]] = True
        return chosen


Top = TopK  # its name in release 0.1.0


def incumbent(context: PolicyContext) -> float:
    """The value to improve on: the best told so far, the prior mean before that."""
    if context.best_y is None:
        return context.goal.sign * context.posterior.prior_mean
    return context.goal.sign * context.best_y


def expected_improvement(mean: Array, sd: Array, best: float) -> Array:
    """E max(f - best, 0) for f ~ N(mean, sd^2)."""
    gap = mean - best
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(sd > 0, gap / sd, np.where(gap > 0, np.inf, -np.inf))
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.where(sd > 0, gap * ndtr(z) + sd * density, np.maximum(gap, 0.0))
