"""Algorithm 1 on a surrogate model: choosing the next measurement, updating the regions, and knowing when to stop.

`ActiveLearner` takes actions with their observed values and keeps the state of Algorithm 1. The model itself is its
`Surrogate`. It knows nothing of users, events or corrections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Mask
from truvar.acquisition import Policy, PolicyContext, ProposalPolicy
from truvar.acquisition.confidence import RESOLUTION, EpochStart
from truvar.acquisition.optimizer import best_in_box, polish
from truvar.algorithm import loop
from truvar.algorithm.covering import cover_cost, information_bound
from truvar.domain.action import Action
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.costs import CostLike, NoiseLike
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.engines import Engine, EngineLike
from truvar.models.fit import Model
from truvar.models.posterior import Posterior
from truvar.models.surrogate import Prior, Surrogate


class ActiveLearner:
    """The state of Algorithm 1, given the observations and the pending measurements.

    Args:
        domain: The points to learn about.
        goal: What is to be found out.
        policy: How the next measurement is chosen.
        prior: The model, known or to be learned.
        cost: Cost of a measurement; None: 1 everywhere, or the noise level's own cost.
        seed: Seed of everything that is drawn.
        engine: Name or factory of the engine; None: chosen by the size of the domain.

    Attributes:
        surrogate: The model.
        state: Regions, bounds and epoch after the last observation.
    """

    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        policy: Policy,
        prior: Prior,
        cost: CostLike | None = None,
        seed: int = 0,
        engine: EngineLike = None,
    ) -> None:
        self.domain = domain
        self.goal = goal
        self.policy = policy
        self.seed = seed
        self._cost = cost
        self._tasks = prior.tasks
        self._actions_noise: NoiseLike = 0.0 if prior.noise is None else prior.noise
        self._actions = ActionSpace(domain, self._actions_noise, cost, prior.tasks)
        policy.check_supported(goal, self._actions.n_levels)
        self.surrogate = Surrogate(domain, prior, seed, engine)
        self.state = self._first_state()

    # -- updates -----------------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: float, pending: Sequence[Action]) -> None:
        """Algorithm 1, lines 4-6: take a measured value and update regions, bounds and epoch.

        Args:
            action: The measurement.
            y: Its value.
            pending: The actions pending before, with or without `action`, in the order they were suggested.

        Raises:
            TruvarError: If the value contradicts a noise-free observation. Nothing has changed then.
        """
        before = self.surrogate.snapshot()
        self.surrogate.observe(action, y, pending)
        try:
            self._update_state()
        except BaseException:
            self.surrogate.rollback(before, pending)
            raise

    def set_pending(self, actions: Iterable[Action]) -> None:
        """Replace the pending actions."""
        self.surrogate.set_pending(actions)

    def add_pending(self, action: Action) -> None:
        """Append one pending action."""
        self.surrogate.add_pending(action)

    def adopt(self, model: Model) -> None:
        """Take a fitted model as known from now on. Only before the first observation."""
        self.surrogate.adopt(model)
        self.state = self._first_state()

    # -- choosing ----------------------------------------------------------------------------------------------------

    def choose(
        self, last: Array | None, pending: Sequence[Action], n_asked: int
    ) -> tuple[Candidates, loop.Choice | None]:
        """Algorithm 1, line 3: choose the next measurement.

        Args:
            last: The last position (d,), from which travel is paid; None before the first measurement.
            pending: The pending actions.
            n_asked: Number of suggestions made before, which seeds what the policy draws.

        Returns:
            The candidate table and the choice from it; None if no candidate gains anything.
        """
        table = self.actions.candidates(last)
        context = self.context(n_asked)
        if self.domain.continuous and isinstance(self.policy, ProposalPolicy):
            table = self.actions.candidates_at(self.policy.propose(context), last)
        choice = loop.choose(context, self.policy, table)
        if choice is None and pending:
            context, choice = loop.choose_ahead(context, self.policy, table)
        if choice is None or not self.domain.continuous or table.sites is None:
            return table, choice
        if self.policy.candidate_rows(context, table) is not None:
            return table, choice
        return self._refine_in_box(context, table, choice, last)

    def _refine_in_box(
        self, context: PolicyContext, table: Candidates, choice: loop.Choice, last: Array | None
    ) -> tuple[Candidates, loop.Choice | None]:
        """Search the box around a chosen representer for the point with the highest score."""

        def score(points: Array) -> Array:
            candidates = self.actions.candidates_at(points, last)
            gains = self.policy.score(context, candidates)
            scores = gains / candidates.cost if self.policy.per_cost else gains
            return np.asarray(scores.reshape(-1, len(points), candidates.n_levels).max(axis=(0, 2)))

        start = table.points[choice.row, : len(self.domain.columns)]
        with blas_in_one_thread():  # many small solves one after the other: more threads would wait for each other
            point = best_in_box(score, self.domain.bounds, start)
        refined = self.actions.candidates_at(point[None, :], last)
        return refined, loop.choose(context, self.policy, refined)

    def context(self, n_asked: int) -> PolicyContext:
        """Return what a policy sees; `n_asked` seeds what it draws."""
        state = self.state
        surrogate = self.surrogate
        values = [y for action, y in surrogate.observations if action.task == 0]
        best_y = None
        if values:
            best_y = max(values) if self.goal.sign > 0 else min(values)
        return PolicyContext(
            engine=surrogate.engine,
            goal=self.goal,
            regions=state.regions,
            targets=state.targets,
            lower=state.lower,
            upper=state.upper,
            epoch=state.epoch,
            best_y=best_y,
            seed=(self.seed, n_asked),
            domain=self.domain,
            queried_points=surrogate.posterior.points,
            actions=self.actions,
            has_bounds=surrogate.fitted and (surrogate.mean is not None or len(surrogate.observations) > 0),
        )

    # -- queries -----------------------------------------------------------------------------------------------------

    @property
    def posterior(self) -> Posterior:
        """The surrogate's posterior."""
        return self.surrogate.posterior

    @property
    def engine(self) -> Engine:
        """The surrogate's engine."""
        return self.surrogate.engine

    @property
    def observations(self) -> list[tuple[Action, float]]:
        """Actions with their observed values, in order."""
        return self.surrogate.observations

    @property
    def actions(self) -> ActionSpace:
        """Everything that can be measured, with the noise variance in use."""
        if self._actions_noise is not self.surrogate.noise:  # it was fitted again
            self._actions_noise = self.surrogate.noise
            self._actions = ActionSpace(self.domain, self._actions_noise, self._cost, self._tasks)
        return self._actions

    @property
    def finished(self) -> str | None:
        """Why nothing is left to find out, or None."""
        potential = self.state.regions.potential
        if not potential.any():
            return "every point is classified"
        if potential.sum() == 1 and not self.goal.level_set and not self.domain.continuous:
            optimum = "maximiser" if self.goal.sign > 0 else "minimiser"
            return f"one point is left: the {optimum} is identified"
        variance = self.posterior.variance[: len(self.domain)][self.state.targets]
        if variance.max() <= RESOLUTION * self.posterior.scale**2:
            return "every undecided point is known exactly"
        return None

    def best_point(self) -> tuple[int | None, Array, float, float]:
        """Return the point of best posterior mean: row (None in a box), coordinates (d,), mean, standard deviation."""
        sign = self.goal.sign
        posterior = self.posterior
        mean = posterior.mean[: len(self.domain)]
        index = int(np.argmax(sign * mean))
        if not self.domain.continuous:
            return index, self.domain.points[index], float(mean[index]), float(np.sqrt(posterior.variance[index]))
        d = len(self.domain.columns)
        starts = [posterior.sites[index]]
        starts += [action.point for action, _ in self.observations if action.task == 0]

        def signed_mean(points: Array) -> Array:
            return sign * self.surrogate.predict(points)[0]

        with blas_in_one_thread():
            points = np.stack(starts)[:, :d]
            start = points[int(np.argmax(signed_mean(points)))]
            point = polish(signed_mean, self.domain.bounds, start)
        means, variances = self.surrogate.predict(point[None, :])
        return None, point, float(means[0]), float(np.sqrt(variances[0]))

    @property
    def epsilon(self) -> float:
        """Largest error of the answer if the bounds hold; infinite before there is a model."""
        if not self.surrogate.fitted:
            return float("inf")
        return self.goal.epsilon(self.state.regions, self.state.lower, self.state.upper)

    @property
    def spent(self) -> float:
        """Total cost of the observations."""
        return sum(action.cost for action, _ in self.observations)

    @property
    def nested(self) -> bool:
        """Whether the bounds never widen."""
        return self.policy.confidence.intersect and self.goal.monotone and not self.surrogate.is_learned

    # -- private -----------------------------------------------------------------------------------------------------

    def _first_state(self) -> loop.State:
        return loop.begin(self.posterior, self.policy, len(self.domain), self._epoch_start)

    def _update_state(self) -> None:
        """Algorithm 2 after an observation, and the epochs.

        With a learned kernel, points may come back into M (a refit changes the bounds everywhere), and a study is not
        finished before `Learned.least` observations, however certain a fit to fewer may be.
        """
        surrogate = self.surrogate
        family = surrogate.family
        goal = self.goal
        if family is not None:
            goal = replace(goal, monotone=False)  # type: ignore[type-var]  # goals are dataclasses
        if surrogate.fitted:
            self.state = loop.update(self.posterior, goal, self.policy, self.state, self._epoch_start, self.nested)
        if family is not None and len(self.observations) < family.least and self.finished is not None:
            self.state = self._first_state()
        if not surrogate.fitted:
            self.state = self._first_state()

    def _epoch_start(self, eta: float, targets: Mask) -> EpochStart:
        cheapest, most_expensive = self.actions.cost_range
        candidates = self.actions.candidates(None)
        posterior = self.posterior
        return EpochStart(
            t=len(self.observations) + 1,
            eta=eta,
            slack=self.policy.confidence.slack,
            n_points=len(self.domain),
            n_actions=len(candidates),
            n_targets=int(targets.sum()),
            level_set=self.goal.level_set,
            spent=self.spent,
            min_cost=cheapest,
            max_cost=most_expensive,
            cover_cost=lambda xi: cover_cost(posterior, targets, xi * posterior.scale, candidates),
            information_bound=lambda steps: information_bound(posterior, steps, candidates),
        )
