"""Interface between Algorithm 1 and a policy: what a policy sees and what it provides.

| name | role |
|---|---|
| `PolicyContext` | everything that a policy may look at for one choice |
| `Policy` | protocol that Algorithm 1 calls; other people's policies only need to satisfy it |
| `BasePolicy` | base class with the parts that our policies share |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition.confidence import Confidence, Epoch, LogBeta, Schedule
from truvar.acquisition.registry import policy_classes
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.domain import Domain
from truvar.domain.goals import (
    AllOf,
    Bands,
    ConstrainedOptimum,
    Goal,
    LevelSet,
    Map,
    Maximize,
    Regions,
)
from truvar.engines import Engine
from truvar.exceptions import (
    InvalidArgumentError,
    UnsupportedGoalError,
    UnsupportedNoiseLevelsError,
)
from truvar.messages import for_interface
from truvar.models.ensemble import Ensemble
from truvar.models.posterior import Posterior

T = TypeVar("T")

# Kinds of goals, see `Goal.kind`.
OPTIMUM: frozenset[str] = frozenset({Maximize.kind})
LEVEL_SET: frozenset[str] = frozenset({LevelSet.kind})
ANY_GOAL: frozenset[str] = OPTIMUM | LEVEL_SET | {Map.kind}
SEVERAL: frozenset[str] = frozenset({AllOf.kind, ConstrainedOptimum.kind})

# A goal of each kind in messages.
_GOAL_WORDS: dict[str, str] = {
    goal.kind: goal.one for goal in (AllOf, ConstrainedOptimum, LevelSet, Map, Maximize)
}


# -- what a policy sees
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyContext:
    """Everything that a policy may look at when it scores the candidates of one choice.

    Attributes:
        engine: Computes truncated sums; holds the posterior.
        goal: The goal of the study.
        regions: M, H, L: points undecided, above and below.
        targets: Rows whose variance is to be reduced: M, and what else the goal must know. Shape
            (n,).
        lower: l_t on the domain. Shape (n,).
        upper: u_t on the domain. Shape (n,).
        epoch: The present epoch: eta_(i), beta_(i).
        best_y: Best observation of the target task so far, in the user's sign; None before the
            first.
        seed: Seed of the random numbers of this choice: the study's seed and the number of
            suggestions before.
        domain: The domain of the study.
        queried_points: Points measured so far, then pending points. Shape (rows, d').
        actions: Noise and cost of every possible measurement, also from other positions.
        speed: Speed of the vehicle that the choice is for.
        limited: Whether the candidates are those of the domain that a budget still pays for.
        has_bounds: Whether `lower` and `upper` mean something: False until there is a mean and a
            fitted kernel.
        only_best: Whether only the best candidate matters; others may then score any upper bound
            below it.
        ensemble: The posterior averaged over plausible hyperparameters, for moments; None if they
            are known. `engine` has the most probable ones.
        learned: Whether the hyperparameters are learned, so that the model itself is uncertain.
        excluded: Points that are not to be measured, and therefore not the optimum that is looked
            for; None: there are none. Shape (n,).
        min_feasibility: Probability of a success below which a candidate is not chosen.
        importance: How much each point matters, where not all matter equally. Shape (n,).
        cache: Values that a policy computed for this choice; use `cached`.
    """

    engine: Engine
    goal: Goal
    regions: Regions
    targets: Mask
    lower: Array
    upper: Array
    epoch: Epoch
    best_y: float | None
    seed: tuple[int, int]
    domain: Domain
    queried_points: Array
    actions: ActionSpace
    speed: float = 1.0
    limited: bool = False
    has_bounds: bool = True
    only_best: bool = False
    ensemble: Ensemble | None = None
    learned: bool = False
    excluded: Mask | None = None
    min_feasibility: float = 0.0
    importance: Array | None = None
    cache: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def posterior(self) -> Posterior:
        """Posterior of f; its `pending_variance` is given the pending points too."""
        return self.engine.posterior

    @property
    def moments(self) -> tuple[Array, Array]:
        """Mean and sd on the domain, given pending points; high means are good: (n,) each."""
        n = len(self.targets)
        posterior = self.posterior
        if self.ensemble is None:
            return self.goal.sign * posterior.mean[:n], np.sqrt(posterior.pending_variance[:n])
        ensemble = self.ensemble
        mean, variance = self.cached("moments", lambda: (ensemble.mean, ensemble.variance))
        return self.goal.sign * mean, np.sqrt(variance * self.pending_share[:n])

    @property
    def signed_bounds(self) -> tuple[Array, Array]:
        """Lower and upper confidence bounds on the domain, (n,) each; high values are good."""
        if self.goal.sign > 0:
            return self.lower, self.upper
        return -self.upper, -self.lower

    @property
    def pending_share(self) -> Array:
        """Share of the variance that pending measurements leave, at every site."""
        posterior = self.posterior
        if posterior.n_rows == posterior.n_observed:
            return np.ones(len(posterior.variance))
        before = posterior.variance
        return np.divide(
            posterior.pending_variance, before, out=np.zeros_like(before), where=before > 0
        )

    @property
    def pending_points(self) -> Array:
        """Points of pending measurements. Shape (p, d')."""
        return self.queried_points[self.posterior.n_observed :]

    @property
    def rng(self) -> np.random.Generator:
        """Random generator of this choice, the same one at every access."""
        return self.cached("rng", lambda: np.random.default_rng(self.seed))

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of `compute`, which is called at most once per key and choice."""
        if key not in self.cache:
            self.cache[key] = compute()
        value: T = self.cache[key]
        return value

    def is_target(self, points: Array) -> Mask:
        """Return which points (q, d') belong to the target task; all in a study without tasks."""
        if len(self.posterior.sites) == len(self.domain):
            return np.ones(len(points), bool)
        return np.asarray(points[:, -1] == 0)


# -- what a policy provides
# --------------------------------------------------------------------------------------------


class Policy(Protocol):
    """Protocol of a policy: it scores all candidates, and the highest score is measured."""

    @property
    def per_cost(self) -> bool:
        """Whether the score is divided by the cost before candidates are compared."""
        ...

    @property
    def signed(self) -> bool:
        """Whether scores can be negative. If not, zero everywhere means: nothing left to gain."""
        ...

    @property
    def confidence(self) -> Confidence:
        """Schedules of beta and eta for the bounds behind M, H and L."""
        ...

    def check_supported(self, goal: Goal, n_levels: int) -> None:
        """Check that the policy can be used in a study; called once, when the study is made.

        Args:
            goal: The goal of the study.
            n_levels: The number of noise levels that a measurement can choose from, at least 1.

        Raises:
            UnsupportedGoalError: If the policy is not made for the goal.
            UnsupportedNoiseLevelsError: If the policy cannot use the noise levels.
        """
        ...

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return the rows of the table to choose among; None: all rows, or all points of a box."""
        ...

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        """Return the score of every candidate row and noise level. Shape (c, K)."""
        ...


@runtime_checkable
class ProposalPolicy(Protocol):
    """Policy that names the points of a box to choose among, so that the box is not searched."""

    def propose(self, context: PolicyContext) -> Array:
        """Return the points to choose among. Shape (q, d)."""
        ...


@runtime_checkable
class StartingPolicy(Protocol):
    """Policy that knows points of a box near which its score may be high, to search from."""

    def starts(self, context: PolicyContext) -> Array | None:
        """Return points (s, d) to start from, beside the best representer; None: there are none."""
        ...


class BasePolicy:
    """Base class of our policies, which are frozen dataclasses; a subclass must define `score`.

    The options below have these defaults in policies without them. A subclass repeats an option as
    a dataclass field to offer it to users; it is not a field here, so that the fields of a policy
    come in the order of their importance.

    Attributes:
        supported_goals: Kinds of goals that the policy is made for.
        signed: Whether scores can be negative.
        chooses_noise_level: Whether the policy scores every noise level; otherwise it measures with
            `level`.
        explores: Whether a study measures undecided points on where no score is above 0, and is not
            finished there.
        follows_sets: Whether nothing is left to choose once M, H and L leave nothing undecided.
        supports_bands: Whether the policy is made for several thresholds, too.
        level: Noise level to measure with; needed if the study has several.
        per_cost: Whether the score is divided by the cost.
        beta: Schedule of beta for the bounds behind M, H and L; None for the default of the policy.
    """

    supported_goals: ClassVar[frozenset[str]] = ANY_GOAL
    signed: ClassVar[bool] = False
    chooses_noise_level: ClassVar[bool] = False
    explores: ClassVar[bool] = False
    follows_sets: ClassVar[bool] = False
    supports_bands: ClassVar[bool] = False

    level: int | None = None
    per_cost: bool = False
    beta: Schedule | None = None

    def __post_init__(self) -> None:
        if self.signed and self.per_cost:
            raise InvalidArgumentError(
                f"the score of {type(self).__name__} can be negative, so that dividing it by the "
                "cost would prefer expensive measurements; leave out per_cost, or use a policy "
                "with scores >= 0: "
                + _policies_with(self.supported_goals, lambda policy: not policy.signed)
            )

    @property
    def confidence(self) -> Confidence:
        """Schedules for M, H and L, which most policies keep for the report only.

        The default is the constant of the theory, a = 2: an aggressive beta could declare a study
        finished too early.
        """
        return Confidence(LogBeta(2.0) if self.beta is None else self.beta)

    @property
    def _label(self) -> str:
        """The policy in messages: its class in Python, its name elsewhere."""
        name = type(self).__name__
        return for_interface(name, problem=f"the policy {name.lower()!r}")

    def check_supported(self, goal: Goal, n_levels: int) -> None:
        """Check goal and noise levels against `supported_goals` and `level`.

        Raises:
            UnsupportedGoalError: If the policy is not made for the goal.
            UnsupportedNoiseLevelsError: If `level` is missing, or not a level of the study.
        """
        if goal.kind not in self.supported_goals:
            own = " or ".join(_GOAL_WORDS[each] for each in sorted(self.supported_goals))
            raise UnsupportedGoalError(
                f"{self._label} is for {own}, but the goal is "
                f"{for_interface(str(goal), problem=goal.one)}; use another goal or a policy for "
                f"{goal.many}: " + _policies_with({goal.kind})
            )
        if isinstance(goal, Bands) and not self.supports_bands:
            raise UnsupportedGoalError(
                f"{self._label} is for one threshold, but the goal is {goal}; give one, or another "
                "policy: "
                + _policies_with(
                    {goal.kind}, lambda policy: getattr(policy, "supports_bands", False)
                )
            )
        if not self.chooses_noise_level:
            self._check_level(n_levels)

    def candidate_rows(self, context: PolicyContext, candidates: Candidates) -> Index | None:
        """Return None: the policy chooses among all rows, and in a box among all points."""
        return None

    def score_table(self, context: PolicyContext, candidates: Candidates, scores: Array) -> Array:
        """Spread scores of candidate rows over the table of noise levels.

        Args:
            context: The context of the choice.
            candidates: The table of candidates.
            scores: The score of measuring each row with `level`. Shape (c,).

        Returns:
            Scores of shape (c, K): minus infinity for other noise levels and other tasks, which are
            never measured.
        """
        table = np.full(candidates.noise.shape, -np.inf)
        target = context.is_target(candidates.points)
        table[target, self.level or 0] = scores[target]
        return table

    def _check_level(self, n_levels: int) -> None:
        """Raise unless `level` names one of the levels, or there is but one."""
        last = n_levels - 1
        if self.level is None and n_levels > 1:
            raise UnsupportedNoiseLevelsError(
                f"{type(self).__name__} cannot choose among the {n_levels} noise levels of this "
                f"study; give one, from {self._with_level(0)} to {self._with_level(last)}"
            )
        if self.level not in (None, *range(n_levels)):
            raise UnsupportedNoiseLevelsError(
                f"{self._with_level(self.level)} is not one of the study's {n_levels} noise "
                f"levels; give a level from 0 to {last}"
            )

    def _with_level(self, level: object) -> str:
        return for_interface(
            f"{type(self).__name__}(level={level!r})", problem=f"[policy] level = {level}"
        )


def _policies_with(
    kinds: frozenset[str] | set[str], condition: Callable[[Any], bool] | None = None
) -> str:
    """Return the names of the registered policies for all these kinds of goals, for messages."""
    found = []
    for name, policy in policy_classes().items():
        supported: Any = getattr(policy, "supported_goals", frozenset())
        if supported >= kinds and (condition is None or condition(policy)):
            found.append(name)
    return ", ".join(found)
