"""Algorithm 1 on a surrogate model: choosing the next measurement, updating the regions, and knowing when to stop.

`ActiveLearner` takes actions with their observed values and keeps the state of Algorithm 1. The model itself is its
`Surrogate`. It knows nothing of users, events or corrections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import erfc, sqrt

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Mask
from truvar.acquisition import Policy, PolicyContext, ProposalPolicy
from truvar.acquisition.confidence import RESOLUTION, EpochStart
from truvar.acquisition.optimizer import best_in_box, polish
from truvar.acquisition.truvar import TruVaR
from truvar.algorithm import loop
from truvar.algorithm.covering import cover_cost, information_bound
from truvar.domain.action import Action
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.costs import CostLike, NoiseLike
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, LevelSet
from truvar.engines import Engine, EngineLike
from truvar.exceptions import InvalidModelError
from truvar.messages import for_interface
from truvar.models.fit import Learned, Model
from truvar.models.posterior import Posterior
from truvar.models.surrogate import Prior, Surrogate

THREE_TO_ONE = 0.6745  # the standard normal quantile of 3/4
SQRT_2 = sqrt(2.0)
FEW_VALUES = 20_000  # up to which the standard library computes them in less time than scipy.special is imported in
KNOWN_WELL = 0.1  # prior standard deviations: an unmeasured point with less uncertainty is not an extrapolation


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
        state: Regions, bounds and epoch after the last observation; the bounds are in the units of the model's
            transform. `reported_state` has them in the user's.
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
        reference = goal.threshold if isinstance(goal, LevelSet) else None
        implicit = isinstance(goal, LevelSet) and goal.threshold is None
        if isinstance(prior.kernel, Learned) and prior.kernel.transform == "log":
            _check_logarithm(goal)
        self.surrogate = Surrogate(domain, prior, seed, engine, reference, learn_power=not implicit)
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
        if not self.surrogate.fitted and self.surrogate.model is not None:
            return self._explore(context, last)
        if self.domain.continuous and isinstance(self.policy, ProposalPolicy):
            table = self.actions.candidates_at(self.policy.propose(context), last)
        choice = loop.choose(context, self.policy, table)
        if choice is None and pending:
            context, choice = loop.choose_ahead(context, self.policy, table)
        if choice is None and self.surrogate.model is not None:
            return self._explore(context, last)
        if choice is None or not self.domain.continuous or table.sites is None:
            return table, choice
        if self.policy.candidate_rows(context, table) is not None:
            return table, choice
        return self._refine_in_box(context, table, choice, last)

    def _explore(self, context: PolicyContext, last: Array | None) -> tuple[Candidates, loop.Choice | None]:
        """Choose the point that removes most variance from the whole domain per unit cost, whatever the goal.

        This is the initial design of a learned model, and what to do when a fit to flat data sees nothing to gain.
        """
        everywhere = np.ones(len(self.domain), bool)
        everything = replace(context, targets=everywhere, epoch=replace(context.epoch, eta=0.0), cache={})
        table = self.actions.candidates(last)
        return table, loop.choose(everything, TruVaR(eta=0.0), table)

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
            best_y = float(surrogate.transform.forward(max(values) if self.goal.sign > 0 else min(values)))
        return PolicyContext(
            engine=surrogate.engine,
            goal=self.model_goal,
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
            ensemble=surrogate.ensemble,
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
    def model_goal(self) -> Goal:
        """The goal in the units of the model's transform."""
        if self.surrogate.transform.is_identity or not isinstance(self.goal, LevelSet) or self.goal.threshold is None:
            return self.goal
        return replace(self.goal, threshold=float(self.surrogate.transform.forward(self.goal.threshold)))

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
        mean, variance = self.surrogate.moments
        return self.surrogate.transform.inverse_moments(mean, np.sqrt(variance))

    @property
    def probability(self) -> Array | None:
        """Probability of lying above the threshold of a level set on the domain, (n,); None for an optimum.

        It is averaged over the plausible hyperparameters, if these are learned. A value that is known exactly counts as
        above if it is at least the threshold.
        """
        goal = self.model_goal
        if not isinstance(goal, LevelSet):
            return None
        surrogate = self.surrogate
        mean, variance = surrogate.moments
        threshold = goal.thresholds(mean, mean)[0]
        if surrogate.ensemble is not None:
            mean = surrogate.ensemble.means
            variance = surrogate.ensemble.variances
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(
                variance > 0, (mean - threshold) / np.sqrt(variance), np.where(mean >= threshold, np.inf, -np.inf)
            )
        return np.asarray(_normal_distribution(u).reshape(-1, len(self.domain)).mean(axis=0))

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
        """Return the point to recommend: row (None in a box), coordinates (d,), mean, standard deviation.

        It is the point of best posterior mean. With a learned model a point that was not measured must also be known
        well, or be better than the best measured one with odds of three to one: an extrapolation is not evidence.
        """
        mean, sd = self.moments
        if not self.domain.continuous:
            recommendable = self._recommendable(*self.surrogate.moments)
            index = int(np.argmax(np.where(recommendable, self.goal.sign * mean, -np.inf)))
            return index, self.domain.points[index], float(mean[index]), float(sd[index])
        point = self._best_in_box()
        means, variances = self.surrogate.predict(point[None, :])
        return None, point, float(means[0]), float(np.sqrt(variances[0]))

    def _best_in_box(self) -> Array:
        """Return the point of a box to recommend, (d,)."""
        sign = self.goal.sign
        d = len(self.domain.columns)
        measured = [action.point[:d] for action, _ in self.observations if action.task == 0]
        starts = np.stack([self.domain.points[int(np.argmax(sign * self.surrogate.moments[0]))], *measured])

        def signed_mean(points: Array) -> Array:
            return sign * self.surrogate.predict_modelled(points)[0]

        with blas_in_one_thread():
            start = starts[int(np.argmax(signed_mean(starts)))]
            point: Array = polish(signed_mean, self.domain.bounds, start)
            if self.surrogate.ensemble is None or not measured:
                return point
            among = np.stack([point, *measured])
            mean, variance = self.surrogate.predict_modelled(among)
        best_measured = 1 + int(np.argmax(sign * mean[1:]))
        if self._is_supported(sign * (mean[:1] - mean[best_measured]), variance[:1])[0]:
            return point
        return np.asarray(among[best_measured])

    def _recommendable(self, mean: Array, variance: Array) -> Mask:
        """Return which points of the domain may be recommended, given the moments in the units of the model."""
        rows = [action.site for action, _ in self.observations if action.task == 0 and action.site is not None]
        if self.surrogate.ensemble is None or not rows:
            return np.ones(len(mean), bool)
        signed = self.goal.sign * mean
        allowed = self._is_supported(signed - signed[rows].max(), variance)
        allowed[rows] = True
        return allowed

    def _is_supported(self, lead: Array, variance: Array) -> Mask:
        """Return where a lead over the best measured point, in posterior means, is more than an extrapolation."""
        known_well = (lead > 0) & (variance <= (KNOWN_WELL * self.posterior.scale) ** 2)
        return np.asarray(known_well | (lead >= THREE_TO_ONE * np.sqrt(variance)))

    def best_observed(self) -> tuple[Action, float] | None:
        """Return the measurement of the target with the best value, gross errors left out; None before the first."""
        left_out = {action.id for action, _ in self.surrogate.outliers}
        measured = [each for each in self.observations if each[0].task == 0 and each[0].id not in left_out]
        return max(measured, key=lambda each: self.goal.sign * each[1], default=None)

    @property
    def epsilon(self) -> float:
        """Largest error of the answer if the bounds hold; infinite before there is a model."""
        if not self.surrogate.fitted:
            return float("inf")
        state = self.reported_state
        return self.goal.epsilon(state.regions, state.lower, state.upper)

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

        With a learned kernel or noise, points may come back into M (a refit changes the bounds everywhere). With a
        learned kernel, a study is not finished before `Learned.least` observations, however certain a fit to fewer may
        be.
        """
        surrogate = self.surrogate
        family = surrogate.family
        goal = self.model_goal
        if surrogate.is_refitted:
            goal = replace(goal, monotone=False)  # type: ignore[type-var]  # goals are dataclasses
        if surrogate.fitted:
            moments = surrogate.moments
            self.state = loop.update(
                self.posterior, moments, goal, self.policy, self.state, self._epoch_start, self.nested
            )
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


def _normal_distribution(u: Array) -> Array:
    """Return the standard normal distribution function at u."""
    if u.size > FEW_VALUES:
        return np.asarray(scipy.special.ndtr(u))
    values = [0.5 * erfc(-x / SQRT_2) for x in u.ravel().tolist()]
    return np.array(values).reshape(u.shape)


def _check_logarithm(goal: Goal) -> None:
    """Check that the threshold of a level set, if there is one, has a logarithm.

    Raises:
        InvalidModelError: If it has none.
    """
    if not isinstance(goal, LevelSet):
        return
    log = for_interface('transform="log"', problem='[model] transform = "log"')
    if goal.threshold is None:
        raise InvalidModelError(
            f"logarithms have no share of their maximum, got fraction_of_max={goal.fraction_of_max:g} with {log}; give "
            "the threshold itself, or leave out the transform"
        )
    if goal.threshold <= 0:
        raise InvalidModelError(
            f"the threshold must be > 0 to have a logarithm, got {goal.threshold:g} with {log}; leave out the transform"
        )
