"""Algorithm 1 on a surrogate model: choosing, updating the regions, and knowing when to stop.

`ActiveLearner` takes actions with their observed values and keeps the state of Algorithm 1. The
model itself is its `Surrogate`. It knows nothing of users, events or corrections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from truvar._typing import Array, Mask
from truvar.acquisition import Policy
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE, EpochStart
from truvar.algorithm import loop
from truvar.algorithm._one_quantity import OneQuantity
from truvar.algorithm.availability import (
    AmongAllowed,
    Availability,
    FailedAttempt,
    failures_left,
    place_of,
)
from truvar.algorithm.cost_learner import CostLearner
from truvar.algorithm.covering import cover_cost, information_bound
from truvar.algorithm.repeats import closed_places
from truvar.algorithm.selection import Selection, choose, in_model_units
from truvar.domain.action import Action
from truvar.domain.candidates import ActionSpace
from truvar.domain.costs import CostLike, NoiseLike
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Exclusion, Place
from truvar.domain.given_context import ContextSlice
from truvar.domain.goals import Goal, Regions
from truvar.domain.repeats import Repeats
from truvar.domain.vehicles import Origin
from truvar.engines import Engine, EngineLike
from truvar.messages import for_interface
from truvar.models.fit import Model
from truvar.models.observations import Observations
from truvar.models.posterior import Posterior
from truvar.models.priors import Learned, Prior
from truvar.models.surrogate import Surrogate


class ActiveLearner(OneQuantity):
    """The state of Algorithm 1, given the observations and the pending measurements.

    Args:
        domain: The points to learn about.
        goal: The question that the measurements answer.
        policy: How the next measurement is chosen.
        prior: The model, known or to be learned.
        cost: Cost of a measurement; None: 1 everywhere, or the noise level's own cost.
        seed: Seed of everything that is drawn.
        engine: Name or factory of the engine; None: chosen by the size of the domain.
        repeats: Whether places may be measured again, or how often; see `domain.repeats`.

    Attributes:
        pending: The pending actions, in the order they were suggested.
        surrogate: The model.
        costs: What measurements cost, as far as it is known.
        weights: How much each point of the domain matters for the goal. (n,)
        state: Regions, bounds and epoch after the last observation; the bounds are in the units of
            the model's transform. `reported_state` has them in the user's.
        exclusions: Exclusions of places and permissions, in order; those of failed measurements are
            among them.
        failures: The failed measurements, in order.
        min_success: Places where a success is less probable than this are not chosen, as long as
            there are others.
    """

    min_success = 0.0

    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        policy: Policy,
        prior: Prior,
        cost: CostLike | None = None,
        seed: int = 0,
        engine: EngineLike = None,
        repeats: Repeats = None,
    ) -> None:
        self.domain = domain
        self.repeats = repeats
        self.pending: list[Action] = []
        self.goal = policy.confidence.resolve_goal(goal)
        self.policy = policy
        self.seed = seed
        self.weights = goal.weights_on(domain)
        self.costs = CostLearner(domain, cost, prior.tasks, seed)
        self._actions_noise: NoiseLike = 0.0 if prior.noise is None else prior.noise
        self._actions = ActionSpace(domain, self._actions_noise, self.costs.cost, prior.tasks)
        policy.check_supported(goal, self._actions.n_levels)
        if isinstance(prior.kernel, Learned) and prior.kernel.transform == "log":
            goal.check_logarithm(
                for_interface('transform="log"', problem='[model] transform = "log"')
            )
        if prior.outcome is not None:
            prior.outcome.check_goal(goal)
        self.surrogate = Surrogate(
            domain,
            prior,
            seed,
            engine,
            goal.known_thresholds,
            learn_power=goal.learns_power,
            direction=goal.direction,
        )
        self.exclusions: list[Exclusion] = []
        self.failures: list[FailedAttempt] = []
        self.failure_positions: list[int] = []  # of their exclusions among all
        self._availability: tuple[tuple[int, int], Availability | None] = ((0, 0), None)
        self.state = self._first_state()

    # -- updates
    # ----------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: float, pending: Sequence[Action]) -> None:
        """Algorithm 1, lines 4-6: take a measured value and update regions, bounds and epoch.

        Args:
            action: The measurement.
            y: Its value.
            pending: The actions pending before, with or without `action`, in the order they were
                suggested.

        Raises:
            TruvarError: If the value contradicts a noise-free observation. Nothing has changed
                then.
        """
        before = self.surrogate.snapshot()
        self.surrogate.observe(action, y, pending)
        try:
            self._update_state()
        except BaseException:
            self.surrogate.rollback(before, pending)
            raise
        self.pending = [other for other in pending if other.id != action.id]

    def observe_all(
        self, observations: Sequence[tuple[Action, float]], pending: Sequence[Action] = ()
    ) -> None:
        """Take many measured values; fit hyperparameters and update regions after the last only.

        Args:
            observations: The measurements with their values.
            pending: The actions pending before, with or without these, in the order they were
                suggested.

        Raises:
            TruvarError: If a value contradicts a noise-free observation. Nothing has changed then.
        """
        if len(observations) == 1:
            self.observe(*observations[0], pending)
            return
        before = self.surrogate.snapshot()
        try:
            self.surrogate.observe_all(observations, pending)
            self._update_state()
        except BaseException:
            self.surrogate.rollback(before, pending)
            raise
        told = {action.id for action, _ in observations}
        self.pending = [other for other in pending if other.id not in told]

    def use_cost(self, cost: CostLike | None) -> None:
        """Use another cost of a measurement from now on."""
        self.costs = CostLearner(self.domain, cost, self._actions.tasks, self.seed)
        self._actions = ActionSpace(self.domain, self._actions_noise, cost, self._actions.tasks)

    def exclude(self, place: Place, reason: str | None = None) -> None:
        """Take a place out of those that can be measured."""
        self.exclusions.append(Exclusion(place, reason=reason))
        self._restart_regions()

    def allow(self, place: Place) -> None:
        """Undo exclusions and failures at a place."""
        self.exclusions.append(Exclusion(place, allowed=True))
        self._restart_regions()

    def fail(self, action: Action, reason: str | None = None) -> None:
        """Take a failed measurement: exclude its point and lower the chance of success around it.

        Its cost was spent.
        """
        self.failure_positions.append(len(self.exclusions))
        self.failures.append(FailedAttempt(action, reason, len(self.observations)))
        self.exclude(place_of(action, self.domain), reason)

    def _restart_regions(self) -> None:
        """Compute M again for an optimum, which an excluded point can neither be nor rule out."""
        if not (self.goal.seeks_optimum and self.surrogate.fitted and self.observations):
            return
        goal = self._goal_among_allowed(self.model_goal)
        state = self.state
        regions = goal.update(Regions.unknown(len(self.domain)), state.lower, state.upper)
        self.state = replace(
            state, regions=regions, targets=goal.targets(regions, state.lower, state.upper)
        )

    def _goal_among_allowed(self, goal: Goal) -> Goal:
        """Return the goal, for an optimum among the points that are not excluded."""
        excluded = self.excluded
        if not self.goal.seeks_optimum or excluded is None or excluded.all():
            return goal
        return AmongAllowed(goal, excluded)

    def set_pending(self, actions: Iterable[Action]) -> None:
        """Replace the pending actions."""
        self.pending = list(actions)
        self.surrogate.set_pending(self.pending)

    def add_pending(self, action: Action) -> None:
        """Append one pending action."""
        self.surrogate.add_pending(action)
        self.pending.append(action)

    def adopt(self, model: Model) -> None:
        """Take a fitted model as known from now on. Only before the first observation."""
        self.surrogate.adopt(model)
        self.state = self._first_state()

    # -- choosing
    # ----------------------------------------------------------------------------------------------

    def choose(
        self,
        last: Origin,
        pending: Sequence[Action],
        n_asked: int,
        given: ContextSlice | None = None,
    ) -> Selection:
        """Algorithm 1, line 3: choose the next measurement, see `selection.choose`."""
        return choose(self, last, pending, n_asked, given)

    # -- queries
    # ----------------------------------------------------------------------------------------------

    @property
    def posterior(self) -> Posterior:
        """The surrogate's posterior."""
        return self.surrogate.posterior

    @property
    def engine(self) -> Engine:
        """The surrogate's engine."""
        return self.surrogate.engine

    @property
    def model_goal(self) -> Goal:
        """The goal in the units of the model's transform."""
        transform = self.surrogate.transform
        return self.goal if transform.is_identity else self.goal.in_model_units(transform.forward)

    @property
    def reported_state(self) -> loop.State:
        """`state` with the bounds in the user's units."""
        transform = self.surrogate.transform
        if transform.is_identity:
            return self.state
        lower = transform.inverse(self.state.lower)
        return replace(self.state, lower=lower, upper=transform.inverse(self.state.upper))

    @property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and standard deviation on the domain, in the user's units: (n,) each."""
        return self.surrogate.user_moments

    @property
    def observations(self) -> Observations:
        """Actions with their observed values, in order."""
        return self.surrogate.observations

    @property
    def actions(self) -> ActionSpace:
        """Everything that can be measured, with the noise variance in use."""
        tasks = self.surrogate.action_tasks
        noise = self.surrogate.noise
        is_fitted_again = self._actions_noise is not noise or self._actions.tasks is not tasks
        if self.costs.update(self.observations) or is_fitted_again:
            self._actions_noise = noise
            self._actions = ActionSpace(self.domain, noise, self.costs.cost, tasks)
        availability = self.availability
        closed = closed_places(self, self._actions.closed)
        if self._actions.availability is not availability or self._actions.closed is not closed:
            self._actions = self._actions.limited_to(availability, closed)
        return self._actions

    @property
    def availability(self) -> Availability | None:
        """The possible measurements by place; None: all of them."""
        if not self.exclusions:
            return None
        key = (len(self.exclusions), len(self.observations) if self.failures else 0)
        if self._availability[0] != key:
            d = len(self.domain.columns)
            failed = failures_left(
                self.failures, self.exclusions, self.failure_positions, self.domain
            )
            succeeded = np.array([action.point[:d] for action, _ in self.observations]).reshape(
                -1, d
            )
            self._availability = (
                key,
                Availability(
                    self.domain, tuple(self.exclusions), succeeded, failed, self.min_success
                ),
            )
        return self._availability[1]

    @property
    def excluded(self) -> Mask | None:
        """Points that are excluded, or where a measurement failed; None: there never were any."""
        return None if self.availability is None else self.availability.excluded

    @property
    def sets_complete(self) -> str | None:
        """Why the paper's sets leave nothing to find out; None if they do leave something."""
        potential = self.state.regions.potential
        if self.excluded is not None and self.excluded.all():
            return None
        if self.looks_in_contexts:
            return None
        if not potential.any():
            return "every point is classified"
        if potential.sum() == 1 and self.goal.seeks_optimum and not self.domain.continuous:
            optimum = "maximiser" if self.goal.sign > 0 else "minimiser"
            return f"one point is left: the {optimum} is identified"
        if self.domain.continuous and self.goal.seeks_optimum and not self.policy.signed:
            # the optimum may lie between the representers: a choice that gains nothing ends the
            # study
            return None
        variance = self.posterior.variance[: len(self.domain)][self.state.targets]
        if variance.max() <= MIN_VARIANCE_SHARE * self.posterior.scale**2:
            return "every undecided point is known exactly"
        return None

    @property
    def looks_in_contexts(self) -> bool:
        """Whether an optimum is sought in every context; the sets are about the best of all."""
        return bool(self.domain.context) and self.goal.seeks_optimum

    @property
    def epsilon(self) -> float:
        """Largest error of the answer if the bounds hold; infinite before there is a model."""
        if not self.surrogate.fitted:
            return float("inf")
        state = self.reported_state
        return self.goal.epsilon(state.regions, state.lower, state.upper)

    @property
    def spent(self) -> float:
        """Total cost of the observations and of the failed measurements."""
        failed = sum(failure.action.cost for failure in self.failures)
        return failed + sum(action.cost for action, _ in self.observations)

    @property
    def nested(self) -> bool:
        """Whether the bounds never widen."""
        return (
            self.policy.confidence.intersect
            and bool(self.goal.monotone)
            and not self.surrogate.is_learned
        )

    # -- private
    # ----------------------------------------------------------------------------------------------

    def _first_state(self) -> loop.State:
        return loop.begin(self.posterior, self.policy, len(self.domain), self._epoch_start)

    def _update_state(self) -> None:
        """Algorithm 2 after an observation, and the epochs.

        With a learned kernel or noise, points may come back into M (a refit changes the bounds
        everywhere). With a learned kernel, a study is not finished before
        `Learned.min_observations` observations, however certain a fit to fewer may be.
        """
        surrogate = self.surrogate
        goal = self.model_goal
        if surrogate.is_refitted:
            goal = goal.with_monotone(False)
        goal = self._goal_among_allowed(goal)
        if surrogate.fitted:
            moments = surrogate.moments
            self.state = loop.update(
                self.posterior,
                moments,
                goal,
                self.policy,
                self.state,
                self._epoch_start,
                self.nested,
            )
        if len(self.observations) < surrogate.min_observations and self.sets_complete is not None:
            self.state = self._first_state()
        if not surrogate.fitted:
            self.state = self._first_state()

    def _epoch_start(self, eta: float, targets: Mask) -> EpochStart:
        cheapest, most_expensive = self.actions.cost_range
        candidates = in_model_units(self.surrogate, self.actions.candidates(None))
        posterior = self.posterior
        return EpochStart(
            t=len(self.observations) + 1,
            eta=eta if self.goal.truncates else 0.0,
            slack=self.policy.confidence.slack,
            n_points=len(self.domain),
            n_actions=len(candidates),
            n_targets=int(targets.sum()),
            log_beta_factor=self.goal.log_beta_factor,
            spent=self.spent,
            min_cost=cheapest,
            max_cost=most_expensive,
            cover_cost=lambda xi: cover_cost(posterior, targets, xi * posterior.scale, candidates),
            information_bound=lambda steps: information_bound(posterior, steps, candidates),
        )
