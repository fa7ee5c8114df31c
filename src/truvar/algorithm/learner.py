"""Algorithm 1 on a surrogate model: choosing the next measurement, updating the regions, and knowing when to stop.

`ActiveLearner` takes actions with their observed values and keeps the state of Algorithm 1. The model itself is its
`Surrogate`. It knows nothing of users, events or corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition import Policy, PolicyContext, ProposalPolicy, StartingPolicy
from truvar.acquisition.confidence import RESOLUTION, EpochStart
from truvar.acquisition.mixed_search import best_in_domain, climb
from truvar.acquisition.truvar import TruVaR
from truvar.algorithm import loop
from truvar.algorithm.availability import AmongAllowed, Availability, FailedAttempt, failures_left, place_of
from truvar.algorithm.contextual import climb_in_slice, search_slice, within_context
from truvar.algorithm.covering import cover_cost, information_bound
from truvar.domain.action import Action
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.costs import CostLike, NoiseLike
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Exclusion, Place
from truvar.domain.given_context import ContextSlice
from truvar.domain.goals import Bands, Goal, LevelSet, Regions
from truvar.domain.vehicles import Origin, as_departure
from truvar.engines import Engine, EngineLike
from truvar.exceptions import InvalidModelError
from truvar.messages import for_interface
from truvar.models.fit import Learned, Model
from truvar.models.frozen import spread_points
from truvar.models.kernels import covariance_function
from truvar.models.posterior import Posterior
from truvar.models.surrogate import Prior, Surrogate

THREE_TO_ONE = 0.6745  # the standard normal quantile of 3/4
UNAFFORDABLE = -1e100  # score of a point of a box that the budget does not allow; the search needs finite scores
DESIGN_POINTS = 400  # points of the domain that an initial design is chosen among, at most
LIKELY = 0.5  # probability of a success that a recommended point must have
CAUTION = 6.0  # increase of the least relative P(success) with the share of attempts that failed
MAX_CAUTION = 0.75  # the largest relative P(success) that is asked for; the border of a region stays in reach
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
        exclusions: Exclusions of places and permissions, in order; those of failed measurements are among them.
        failures: The failed measurements, in order.
        least_success: Places where a success is less probable than this are not chosen, as long as there are others.
    """

    least_success = 0.0

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
        self.goal = policy.confidence.resolve_goal(goal)
        self.policy = policy
        self.seed = seed
        self._cost = cost
        self._tasks = prior.tasks
        self._actions_noise: NoiseLike = 0.0 if prior.noise is None else prior.noise
        self._actions = ActionSpace(domain, self._actions_noise, cost, prior.tasks)
        policy.check_supported(goal, self._actions.n_levels)
        references: tuple[float, ...] = ()
        if isinstance(goal, LevelSet) and goal.threshold is not None:
            references = (goal.threshold,)
        if isinstance(goal, Bands):
            references = goal.thresholds
        implicit = isinstance(goal, LevelSet) and goal.threshold is None
        if isinstance(prior.kernel, Learned) and prior.kernel.transform == "log":
            _check_logarithm(goal)
        direction = 0 if goal.level_set and not implicit else goal.sign
        if isinstance(goal, LevelSet) and goal.fraction_of_min is not None:
            direction = -1
        self.surrogate = Surrogate(
            domain, prior, seed, engine, references, learn_power=not implicit, direction=direction
        )
        self.exclusions: list[Exclusion] = []
        self.failures: list[FailedAttempt] = []
        self._failure_positions: list[int] = []  # of their exclusions among all
        self._availability: tuple[tuple[int, int], Availability | None] = ((0, 0), None)
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

    def observe_all(self, observations: Sequence[tuple[Action, float]], pending: Sequence[Action] = ()) -> None:
        """Take many measured values at once; hyperparameters are fitted and regions updated only after the last.

        Args:
            observations: The measurements with their values.
            pending: The pending actions.

        Raises:
            TruvarError: If a value contradicts a noise-free observation. Nothing has changed then.
        """
        before = self.surrogate.snapshot()
        try:
            self.surrogate.observe_all(observations, pending)
            self._update_state()
        except BaseException:
            self.surrogate.rollback(before, pending)
            raise

    def use_cost(self, cost: CostLike | None) -> None:
        """Use another cost of a measurement from now on."""
        self._cost = cost
        self._actions = ActionSpace(self.domain, self._actions_noise, cost, self._tasks)

    def exclude(self, place: Place, reason: str | None = None) -> None:
        """Take a place out of those that can be measured."""
        self.exclusions.append(Exclusion(place, reason=reason))
        self._restart_regions()

    def allow(self, place: Place) -> None:
        """Undo exclusions and failures at a place."""
        self.exclusions.append(Exclusion(place, allowed=True))
        self._restart_regions()

    def fail(self, action: Action, reason: str | None = None) -> None:
        """Take a failed measurement: its place is excluded, and the region around it is less likely to be measurable.

        Its cost was spent.
        """
        self._failure_positions.append(len(self.exclusions))
        self.failures.append(FailedAttempt(action, reason, len(self.observations)))
        self.exclude(place_of(action, self.domain), reason)

    def _restart_regions(self) -> None:
        """Compute M again for an optimum: an excluded point cannot be it, nor rule out others any more."""
        if self.goal.level_set or not self.surrogate.fitted or not self.observations:
            return
        goal = self._goal_among_allowed(self.model_goal)
        state = self.state
        regions = goal.update(Regions.unknown(len(self.domain)), state.lower, state.upper)
        self.state = replace(state, regions=regions, targets=goal.targets(regions, state.lower, state.upper))

    def _goal_among_allowed(self, goal: Goal) -> Goal:
        """Return the goal, for an optimum among the points that are not excluded."""
        excluded = self.excluded
        if self.goal.level_set or excluded is None or excluded.all():
            return goal
        return AmongAllowed(goal, excluded)

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

    def choose(self, last: Origin, pending: Sequence[Action], n_asked: int) -> tuple[Candidates, loop.Choice | None]:
        """Algorithm 1, line 3: choose the next measurement.

        Args:
            last: The last position (d,), from which travel is paid; None before the first measurement. Or the departure
                of a vehicle.
            pending: The pending actions.
            n_asked: Number of suggestions made before, which seeds what the policy draws.

        Returns:
            The candidate table and the choice from it; None if the policy sees nothing more to gain.
        """
        table = self.actions.candidates(last)
        if not table.affordable.any():
            return table, None
        context = self.context(n_asked, as_departure(last).speed)
        everywhere = np.ones(len(self.domain), bool)
        if table.feasibility is not None and not (table.feasibility > 0).any():
            return table, None
        context = replace(context, min_feasibility=self._min_feasibility(table))
        design = self._design_rows(table, pending)
        if design is not None:
            return self._explore(context, everywhere, last, design)
        if not self.surrogate.fitted and self.surrogate.model is not None:
            return self._explore(context, everywhere, last, self._space_filling_rows(context, pending))
        if self._follows_complete_sets:
            # The sets are the policy's own, and a rule of thumb unless the study is finished.
            return (table, None) if self.stops_at_sets else self._explore(context, everywhere, last)
        if self.domain.continuous and isinstance(self.policy, ProposalPolicy):
            points = self.policy.propose(context)
            points = points[self.actions.allows(points)]
            if len(points):
                proposed = self.actions.candidates_at(points, last)
                table = proposed if proposed.max_feasibility > context.min_feasibility else table
        modelled = self.modelled(table)
        choice = loop.choose(context, self.policy, modelled)
        if choice is None and pending:
            context, choice = loop.choose_ahead(context, self.policy, modelled)
        if choice is None and self.surrogate.model is not None:
            return self._explore(context, everywhere, last)
        if choice is None and getattr(self.policy, "explores", False):
            return self._explore(context, self.state.targets, last)
        if choice is None and modelled.feasibility is not None:
            unlimited = replace(modelled, feasibility=None)
            if loop.choose(context, self.policy, unlimited) is not None:  # all that it gains by cannot be measured
                return self._explore(context, self.state.targets, last)
        if choice is None or not self.domain.continuous or table.sites is None:
            return table, choice
        if self.policy.candidate_rows(context, table) is not None:
            return table, choice
        return self._refine_in_box(context, table, choice, last)

    def choose_in_context(
        self, given: ContextSlice, last: Origin, pending: Sequence[Action], n_asked: int
    ) -> tuple[Candidates, loop.Choice | None]:
        """Choose the next measurement in a given context; other arguments and result as of `choose`.

        Args:
            given: The part of the domain that belongs to the context.
            last: The last position (d,), None, or the departure of a vehicle.
            pending: The pending actions.
            n_asked: Number of suggestions made before.
        """
        table = self.actions.candidates(last)
        n = len(self.domain)
        if given.fixed is None:
            among = np.isin(np.arange(len(table.points)) % n, given.rows)  # of all tasks
        else:
            table = self.actions.candidates_at(given.place(self.domain.points), last)
            among = np.ones(len(table.points), bool)
        in_reach = np.flatnonzero(among & table.affordable)
        rows = in_reach
        if table.feasibility is not None:
            rows = in_reach[table.feasibility[in_reach] > 0]
        if len(rows) == 0:
            return table, None
        context = self.context(n_asked, as_departure(last).speed)
        context = replace(context, min_feasibility=self._min_feasibility(table.take(rows)))
        everywhere = np.ones(n, bool)
        design = self._design_rows(self.actions.candidates(last), pending)
        if design is not None or (not self.surrogate.fitted and self.surrogate.model is not None):
            possible = rows
            if design is not None and given.fixed is None and len(np.intersect1d(design, rows)):
                possible = np.intersect1d(design, rows)
            return self._explore_among(context, everywhere, table, possible)
        if self._follows_complete_sets:
            return (table, None) if self.stops_at_sets else self._explore_among(context, everywhere, table, rows)
        if self.surrogate.fitted:
            context = within_context(context, given, self._values_in_model())
        modelled = self.modelled(table).take(rows)
        choice = loop.choose(context, self.policy, modelled)
        if choice is None and (pending or self.looks_in_contexts):  # the epoch is that of all contexts
            context, choice = loop.choose_ahead(context, self.policy, modelled)
        if choice is not None:
            choice = replace(choice, row=int(rows[choice.row]))
            if given.fixed is None:
                return table, choice
            return self._refine_in_slice(context, table, choice, last, given)
        if self.surrogate.model is not None:
            return self._explore_among(context, everywhere, table, rows)
        if getattr(self.policy, "explores", False):
            return self._explore_among(context, self.state.targets, table, rows)
        if table.feasibility is not None:
            unlimited = replace(self.modelled(table).take(in_reach), feasibility=None)
            if loop.choose(context, self.policy, unlimited) is not None:  # all that it gains by cannot be measured
                return self._explore_among(context, self.state.targets, table, rows)
        return table, None

    def _values_in_model(self) -> list[tuple[Action, float]]:
        """Return `eligible_observations` with their values in the units of the model."""
        forward = self.surrogate.transform.forward
        return [(action, float(forward(y))) for action, y in self.eligible_observations()]

    def _explore_among(
        self, context: PolicyContext, targets: Mask, table: Candidates, rows: Index
    ) -> tuple[Candidates, loop.Choice | None]:
        """Choose the row of a table, among some, that removes most variance from the targets per unit cost."""
        choice = self._remove_variance(context, targets, self.modelled(table).take(rows))
        return table, None if choice is None else replace(choice, row=int(rows[choice.row]))

    def _remove_variance(self, context: PolicyContext, targets: Mask, table: Candidates) -> loop.Choice | None:
        """Choose the row that removes most variance, per unit cost, from the targets that are likely to be measurable.

        Rows and targets that are likely to fail count only if nothing else is left to gain.
        """
        counted = targets
        if self.availability is not None:
            counted = targets & (self.availability.feasibility >= context.min_feasibility)
        if not counted.any():
            counted = targets
        variance = replace(context, targets=counted, epoch=replace(context.epoch, eta=0.0), cache={})
        choice = loop.choose(variance, TruVaR(eta=0.0, refine=False), table)
        if choice is None and context.min_feasibility > 0:
            return self._remove_variance(replace(context, min_feasibility=0.0), targets, table)
        return choice

    def _min_feasibility(self, table: Candidates) -> float:
        """Return the probability of a success below which no row of a table is chosen.

        The gain of what is unknown is so much larger than that of what is known that the expected gain alone leads to
        places that failed again and again. Therefore the risk is limited, relative to the likeliest row: the more of
        the attempts failed, beyond the share that would have failed even there, the smaller it may be, and the more
        so the more certain it is that failures depend on the place. Only attempts since the first failure count.
        """
        if self.availability is None or len(self.availability.failed) == 0:
            return 0.0
        n_failed = len(self.availability.failed)
        n_succeeded = max(len(self.observations) - self.failures[0].n_before, 0)
        avoidable = (n_failed - 1) / max(n_failed - 1 + n_succeeded, 1) - (1.0 - table.max_feasibility)
        caution = min(max(avoidable, 0.0) * CAUTION, MAX_CAUTION)
        return caution * self.availability.regional * table.max_feasibility

    def best_in_context(self, given: ContextSlice) -> Array:
        """Return the point of a box with the best posterior mean in a context, (d,); excluded ones left out."""
        points = given.place(self.domain.points)

        def mean(q: Array) -> Array:
            values = self.goal.sign * self.surrogate.predict(q)[0]
            return np.where(self.actions.allows(q), values, -np.inf)

        return climb_in_slice(mean, given, points[int(np.argmax(mean(points)))])

    def modelled(self, table: Candidates) -> Candidates:
        """Return a table with the noise in the units of the model, which differ from the user's for learned tasks."""
        units = self.surrogate.task_units
        if units is None:
            return table
        return replace(table, noise=table.noise / units[table.points[:, -1].astype(int), None] ** 2)

    def _design_rows(self, table: Candidates, pending: Sequence[Action]) -> Index | None:
        """Return the rows among which the initial design of learned tasks goes on; None if it is complete.

        The target is measured first. If the covariance is learned, each cheaper task that the policy may choose is then
        measured at points where the target was, which shows how they are related however rough the functions are.
        """
        surrogate = self.surrogate
        if self._tasks is None or not surrogate.learns_tasks:
            return None
        actions = [*(action for action, _ in self.observations), *pending]
        n = len(self.domain)
        if sum(action.task == 0 for action in actions) < surrogate.n_initial:
            return np.arange(n)
        if not self._tasks.learned or not getattr(self.policy, "chooses_noise_level", True):
            return None
        costs = table.cost.min(axis=1).reshape(-1, n).mean(axis=1)
        anchors = {action.site for action in actions if action.task == 0 and action.site is not None}
        for task in range(1, len(costs)):
            own = [action.site for action in actions if action.task == task]
            if len(own) >= surrogate.n_initial or costs[task] >= costs[0]:
                continue
            rows = sorted({site + task * n for site in anchors} - set(own))
            return np.array(rows) if rows else np.arange(task * n, (task + 1) * n)
        return None

    def _space_filling_rows(self, context: PolicyContext, pending: Sequence[Action]) -> Index | None:
        """Return the rows that complete the initial design; None where every measurement costs the same.

        They are chosen one after the other so that the total variance left on the domain is least, whatever they cost.
        Travel is saved by their order: which of them is measured next depends on its cost. A design that went where it
        is cheap would not see most of the domain.
        """
        surrogate = self.surrogate
        done = [action.point for action, _ in self.observations] + [action.point for action in pending]
        n_left = surrogate.n_initial - len(done)
        if self._tasks is not None or not self.actions.travels or n_left < 1:
            return None
        points = self.domain.points
        rows = np.arange(len(points))
        if len(points) > DESIGN_POINTS:
            rows = spread_points(points / self.domain.extent, DESIGN_POINTS)
        if self.availability is not None:
            feasibility = self.availability.feasibility[rows]
            rows = rows[(feasibility > 0) & (feasibility >= context.min_feasibility)]
            if len(rows) == 0:
                return None
        everything = np.vstack([points[rows], *(point[None, :] for point in done)])
        covariance = covariance_function(surrogate.kernel)(everything, everything)
        noise = surrogate.minimum_noise + RESOLUTION * float(covariance[0, 0])
        chosen: list[int] = []
        for step in range(len(done) + min(n_left, len(rows))):
            variance = np.maximum(covariance.diagonal(), 0.0) + noise
            best = len(rows) + step
            if step >= len(done):
                removed = (covariance[: len(rows), : len(rows)] ** 2).sum(axis=0) / variance[: len(rows)]
                best = int(np.argmax(removed))
                chosen.append(int(rows[best]))
            column = covariance[best].copy()
            covariance -= np.outer(column, column) / variance[best]
        return np.array(sorted(set(chosen)))

    def _explore(
        self, context: PolicyContext, targets: Mask, last: Origin, rows: Index | None = None
    ) -> tuple[Candidates, loop.Choice | None]:
        """Choose the point that removes most variance from the targets per unit cost, whatever the goal.

        With all points as targets this is the initial design of a learned model, and what to do when a fit to flat data
        sees nothing to gain.

        Args:
            context: What a policy sees.
            targets: Points whose variance counts. (n,)
            last: The last position.
            rows: Rows of the candidate table to choose among; None: all. If none of them can be measured, all.
        """
        table = self.actions.candidates(last)
        if rows is None:
            return table, self._remove_variance(context, targets, self.modelled(table))
        _, choice = self._explore_among(context, targets, table, rows)
        if choice is None and (table.feasibility is not None or not table.affordable[rows].any()):
            return self._explore(context, targets, last)
        return table, choice

    def _refine_in_box(
        self, context: PolicyContext, table: Candidates, choice: loop.Choice, last: Origin
    ) -> tuple[Candidates, loop.Choice | None]:
        """Search the box around a chosen representer for the point with the highest score."""
        score = self._score_in_box(context, last)
        start = table.points[choice.row, : len(self.domain.columns)]
        if isinstance(self.policy, StartingPolicy):
            further = self.policy.starts(context)
            start = start if further is None else np.vstack([start, further])
        with blas_in_one_thread():  # many small solves one after the other: more threads would wait for each other
            point = best_in_domain(score, self.domain, start)
        refined = self.actions.candidates_at(point[None, :], last)
        if not refined.affordable.any():
            return table, choice
        return refined, loop.choose(context, self.policy, self.modelled(refined))

    def _refine_in_slice(
        self, context: PolicyContext, table: Candidates, choice: loop.Choice, last: Origin, given: ContextSlice
    ) -> tuple[Candidates, loop.Choice | None]:
        """Search a box with its context kept fixed for the point with the highest score."""
        start = table.points[choice.row, : len(self.domain.columns)][None, :]
        if self.policy.candidate_rows(context, table) is not None:
            return table, choice
        point = search_slice(self._score_in_box(context, last), given, start)
        refined = self.actions.candidates_at(point[None, :], last)
        if not refined.affordable.any():
            return table, choice
        return refined, loop.choose(context, self.policy, self.modelled(refined))

    def _score_in_box(self, context: PolicyContext, last: Origin) -> Callable[[Array], Array]:
        """Return the score of points (q, d) of a box: (q,)."""

        def score(points: Array) -> Array:
            candidates = self.modelled(self.actions.candidates_at(points, last)).likely(context.min_feasibility)
            gains = self.policy.score(context, candidates)
            scores = loop.comparable_scores(context, self.policy, candidates, gains)
            scores = np.where(np.isfinite(candidates.cost), scores, UNAFFORDABLE if self.policy.signed else 0.0)
            return np.asarray(scores.reshape(-1, len(points), candidates.n_levels).max(axis=(0, 2)))

        return score

    def context(self, n_asked: int, speed: float = 1.0) -> PolicyContext:
        """Return what a policy sees; `n_asked` seeds what it draws, `speed` is that of the vehicle."""
        state = self.state
        surrogate = self.surrogate
        excluded = self.excluded
        best = self.best_observed()
        best_y = None if best is None else float(surrogate.transform.forward(best[1]))
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
            speed=speed,
            has_bounds=surrogate.fitted and (surrogate.mean is not None or len(surrogate.observations) > 0),
            ensemble=surrogate.ensemble,
            excluded=excluded if excluded is None or excluded.any() else None,
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
        if isinstance(self.goal, Bands) and not self.surrogate.transform.is_identity:
            transformed = self.surrogate.transform.forward(np.array(self.goal.thresholds))
            return replace(self.goal, thresholds=tuple(transformed.tolist()))
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
        return self.surrogate.user_moments

    @property
    def observations(self) -> list[tuple[Action, float]]:
        """Actions with their observed values, in order."""
        return self.surrogate.observations

    @property
    def actions(self) -> ActionSpace:
        """Everything that can be measured, with the noise variance in use."""
        tasks = self.surrogate.action_tasks
        if self._actions_noise is not self.surrogate.noise or self._tasks is not tasks:  # they were fitted again
            self._actions_noise = self.surrogate.noise
            self._tasks = tasks
            self._actions = ActionSpace(self.domain, self._actions_noise, self._cost, tasks)
        if self._actions.availability is not self.availability:
            self._actions = self._actions.limited_to(self.availability)
        return self._actions

    @property
    def availability(self) -> Availability | None:
        """The possible measurements by place; None: all of them."""
        if not self.exclusions:
            return None
        key = (len(self.exclusions), len(self.observations) if self.failures else 0)
        if self._availability[0] != key:
            d = len(self.domain.columns)
            failed = failures_left(self.failures, self.exclusions, self._failure_positions, self.domain)
            succeeded = np.array([action.point[:d] for action, _ in self.observations]).reshape(-1, d)
            self._availability = (
                key,
                Availability(self.domain, tuple(self.exclusions), succeeded, failed, self.least_success),
            )
        return self._availability[1]

    @property
    def excluded(self) -> Mask | None:
        """Points of the domain that are excluded, or where a measurement failed; None: there never were any."""
        return None if self.availability is None else self.availability.excluded

    @property
    def sets_complete(self) -> str | None:
        """Why the paper's sets leave nothing to find out, if the confidence bounds hold; None if they do."""
        potential = self.state.regions.potential
        if self.excluded is not None and self.excluded.all():
            return None
        if self.looks_in_contexts:
            return None
        if not potential.any():
            return "every point is classified"
        if potential.sum() == 1 and not self.goal.level_set and not self.domain.continuous:
            optimum = "maximiser" if self.goal.sign > 0 else "minimiser"
            return f"one point is left: the {optimum} is identified"
        if self.domain.continuous and not self.goal.level_set and not self.policy.signed:
            return None  # the optimum may lie between the representers: a choice that gains nothing ends the study
        variance = self.posterior.variance[: len(self.domain)][self.state.targets]
        if variance.max() <= RESOLUTION * self.posterior.scale**2:
            return "every undecided point is known exactly"
        return None

    @property
    def looks_in_contexts(self) -> bool:
        """Whether an optimum is looked for in every context; the sets are about the best of all contexts."""
        return bool(self.domain.context) and not self.goal.level_set

    @property
    def stops_at_sets(self) -> bool:
        """Whether the policy has nothing to choose because its sets leave nothing to find out.

        A learned model explores instead, as the next fit may undo the sets.
        """
        return self._follows_complete_sets and self.surrogate.model is None

    @property
    def _follows_complete_sets(self) -> bool:
        return bool(getattr(self.policy, "follows_sets", False)) and self.sets_complete is not None

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
        measured = [action.point[:d] for action, _ in self.eligible_observations()]
        recommendable = self._measurable()
        on_domain = np.where(recommendable, sign * self.surrogate.moments[0], -np.inf)
        starts = np.stack([self.domain.points[int(np.argmax(on_domain))], *measured])
        limited = bool(self.domain.constraints) or self.availability is not None

        def signed_mean(points: Array) -> Array:
            signed = sign * self.surrogate.predict_modelled(points)[0]
            return np.where(self.actions.allows(points), signed, -np.inf) if limited else signed

        with blas_in_one_thread():
            start = starts[int(np.argmax(signed_mean(starts)))]
            point: Array = climb(signed_mean, self.domain, start)
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
        measurable = self._measurable()
        rows = [action.site for action, _ in self.eligible_observations() if action.site is not None]
        rows = [row for row in rows if measurable[row]]
        if self.surrogate.ensemble is None or not rows:
            return measurable
        signed = self.goal.sign * mean
        allowed = self._is_supported(signed - signed[rows].max(), variance)
        allowed[rows] = True
        return allowed & measurable

    def _measurable(self) -> Mask:
        """Return which points of the domain can be recommended: neither excluded nor likely to fail.

        If there are none, all of them are.
        """
        if self.availability is None:
            return np.ones(len(self.domain), bool)
        feasibility = self.availability.feasibility
        # A place that is too risky to be tried must not be recommended.
        highest_limit = MAX_CAUTION * self.availability.regional * feasibility.max()
        measurable = feasibility >= max(LIKELY, highest_limit)
        rows = [action.site for action, _ in self.observations if action.task == 0 and action.site is not None]
        measurable[rows] = True  # it was possible there
        measurable &= ~self.availability.excluded
        if not measurable.any():
            measurable = ~self.availability.excluded
        return measurable if measurable.any() else np.ones(len(self.domain), bool)

    def _is_supported(self, lead: Array, variance: Array) -> Mask:
        """Return where a lead over the best measured point, in posterior means, is more than an extrapolation."""
        known_well = (lead > 0) & (variance <= (KNOWN_WELL * self.posterior.scale) ** 2)
        return np.asarray(known_well | (lead >= THREE_TO_ONE * np.sqrt(variance)))

    def eligible_observations(self) -> list[tuple[Action, float]]:
        """Return the measurements of the target that can be the answer, in order.

        Outliers that the model leaves out cannot be it, nor can an optimum lie at an excluded place.
        """
        left_out = () if self.surrogate.model is None else self.surrogate.model.outliers
        kept = [each for position, each in enumerate(self.observations) if position not in left_out]
        kept = [(action, y) for action, y in kept if action.task == 0]
        if not kept or self.goal.level_set or self.availability is None:
            return kept
        points = np.stack([action.point[: len(self.domain.columns)] for action, _ in kept])
        # Whether the constraints are satisfied was checked, with their tolerance, when the value was told.
        allowed = self.availability.allows(points)
        return [each for each, is_allowed in zip(kept, allowed, strict=True) if is_allowed]

    def best_observed(self) -> tuple[Action, float] | None:
        """Return the measurement with the best value among `eligible_observations`; None without any."""
        return max(self.eligible_observations(), key=lambda each: self.goal.sign * each[1], default=None)

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
        return self.policy.confidence.intersect and bool(self.goal.monotone) and not self.surrogate.is_learned

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
        goal = self.model_goal
        if surrogate.is_refitted:
            goal = replace(goal, monotone=False)  # type: ignore[type-var]  # goals are dataclasses
        goal = self._goal_among_allowed(goal)
        if surrogate.fitted:
            moments = surrogate.moments
            self.state = loop.update(
                self.posterior, moments, goal, self.policy, self.state, self._epoch_start, self.nested
            )
        if len(self.observations) < surrogate.least and self.sets_complete is not None:
            self.state = self._first_state()
        if not surrogate.fitted:
            self.state = self._first_state()

    def _epoch_start(self, eta: float, targets: Mask) -> EpochStart:
        cheapest, most_expensive = self.actions.cost_range
        candidates = self.modelled(self.actions.candidates(None))
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


def _check_logarithm(goal: Goal) -> None:
    """Check that the threshold of a level set, if there is one, has a logarithm.

    Raises:
        InvalidModelError: If it has none.
    """
    if isinstance(goal, Bands):
        goal = LevelSet(goal.thresholds[0])  # if the lowest has a logarithm, all have
    if not isinstance(goal, LevelSet):
        return
    log = for_interface('transform="log"', problem='[model] transform = "log"')
    if goal.threshold is None:
        raise InvalidModelError(
            f"logarithms have no share of their maximum, got {goal} with {log}; give "
            "the threshold itself, or leave out the transform"
        )
    if goal.threshold <= 0:
        raise InvalidModelError(
            f"the threshold must be > 0 to have a logarithm, got {goal.threshold:g} with {log}; leave out the transform"
        )
