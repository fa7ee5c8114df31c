"""Algorithm 1 for several quantities: a learner for each, and the sets that they make together.

`SeveralLearner` has the interface of `ActiveLearner`. Its surrogate, bounds and epoch are those of
the leading quantity, the first of the goal; its regions are those of all of them. A measurement may
lack the values of some quantities: only those that it has are told to their learners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtr

from truvar._typing import Array, Mask
from truvar.acquisition import Policy
from truvar.acquisition._several import QuantityContext, SeveralContext, SumPolicy
from truvar.acquisition.base import PolicyContext
from truvar.acquisition.confidence import MIN_VARIANCE_SHARE
from truvar.algorithm.availability import Availability, place_of
from truvar.algorithm.cost_learner import CostLearner
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.loop import State
from truvar.algorithm.repeats import closed_places
from truvar.algorithm.selection import in_model_units, policy_context
from truvar.domain.action import Action
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.costs import Cost, CostLike, NoiseLevels
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Exclusion
from truvar.domain.goals import AllOf, ConstrainedOptimum, Goal, Regions, probability_of
from truvar.domain.repeats import Repeats
from truvar.engines import EngineLike
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name
from truvar.models.observations import Observations
from truvar.models.priors import Prior
from truvar.models.surrogate import Surrogate

MAX_PRICED_QUANTITIES = 4  # with their own costs: every set of them is a column of the table
MIN_FEASIBILITY = 0.9  # probability that a recommended point satisfies all requirements

Values = Mapping[str, float]


class SeveralLearner(ActiveLearner):
    """The state of Algorithm 1 for several quantities.

    Args:
        domain: The points to learn about.
        goal: The goal, with a part for each quantity.
        policy: How the next measurement is chosen.
        priors: The model of each quantity.
        cost: Cost of a measurement at a place, whatever is measured there.
        prices: Cost of measuring each quantity; empty: all of them are always measured.
        seed: Seed of everything that is drawn.
        engine: Name or factory of the engine; None: chosen by the size of the domain.
        repeats: Whether places may be measured again, or how often.

    Attributes:
        parts: The learner of each quantity.
        values: The values of each measurement by quantity, in order.
        measures: Quantities that each column of the candidate table measures.
    """

    goal: AllOf | ConstrainedOptimum

    def __init__(
        self,
        domain: Domain,
        goal: Goal,
        policy: Policy,
        priors: Mapping[str, Prior],
        cost: CostLike | None = None,
        prices: Mapping[str, float] | None = None,
        seed: int = 0,
        engine: EngineLike = None,
        repeats: Repeats = None,
    ) -> None:
        policy.check_supported(goal, 1)
        resolved = policy.confidence.resolve_goal(goal)
        if not isinstance(resolved, AllOf | ConstrainedOptimum):
            raise AssertionError("a goal of several quantities has parts")
        if domain.context and resolved.seeks_optimum:
            raise InvalidArgumentError(
                "an optimum with constraints in every context is not supported, got a domain with "
                f"the context {', '.join(domain.context)}; leave out context"
            )
        if isinstance(cost, Cost) and cost.sampling == "along":
            raise InvalidArgumentError(
                'sampling="along" is for studies of one quantity, as a track is, got '
                f"{', '.join(resolved.parts)}; leave sampling out"
            )
        self.domain = domain
        self.repeats = repeats
        self.pending = []
        self.goal = resolved
        self.policy = policy
        self.seed = seed
        self.weights = np.ones(len(domain))
        self.parts = {
            name: ActiveLearner(domain, part, policy, priors[name], cost, seed, engine)
            for name, part in resolved.parts.items()
        }
        self.measures = _measured_sets(list(self.parts), prices)
        self._prices = dict(prices or {})
        self.values: list[dict[str, float]] = []
        self.exclusions = []
        self.failures = []
        self.failure_positions = []
        self._availability = ((0, 0), None)
        self._cost = cost
        self.costs = CostLearner(domain, cost, None, seed)
        self._observations = Observations(len(domain.columns))
        self._own_actions: dict[tuple[int, str], tuple[Action, Action]] = {}
        self._successes: dict[str, tuple[tuple[int, int], Availability | None]] = {}
        self._actions_noise = self.surrogate.noise
        self._actions = self._action_space()
        self.state = self._combined_state()

    # -- updates
    # ----------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: Any, pending: Sequence[Action]) -> None:
        """Take the measured values of some quantities; see `ActiveLearner.observe`."""
        self.observe_all([(action, y)], pending)

    def observe_all(
        self, observations: Sequence[tuple[Action, Any]], pending: Sequence[Action] = ()
    ) -> None:
        """Take many measurements; see `ActiveLearner.observe_all`."""
        told = {action.id for action, _ in observations}
        with self._undone_on_error(pending):
            for name, part in self.parts.items():
                own_pending = self._own_pending(name, pending)
                own = [
                    (self.own_action(action, name), y[name])
                    for action, y in observations
                    if name in y
                ]
                if own:
                    part.observe_all(own, own_pending)
                if len(own) < len(observations):
                    part.set_pending([other for other in own_pending if other.id not in told])
        lead = self.lead
        self._observations = self._observations.extend(
            [(action, y.get(lead, np.nan)) for action, y in observations]
        )
        self.values += [dict(y) for _, y in observations]
        for action, _ in observations:
            for name in self.parts:
                self._own_actions.pop((action.id, name), None)
        self.pending = [other for other in pending if other.id not in told]
        self.state = self._combined_state()

    def check_value(self, y: Values) -> None:
        """Check that the values can be modelled."""
        for name, value in y.items():
            self.parts[name].surrogate.check_value(value)

    def set_pending(self, actions: Iterable[Action]) -> None:
        """Replace the pending actions."""
        self.pending = list(actions)
        for name, part in self.parts.items():
            part.set_pending(self._own_pending(name, self.pending))

    def add_pending(self, action: Action) -> None:
        """Append one pending action."""
        for name in self.measured(action):
            self.parts[name].add_pending(self.own_action(action, name))
        self.pending.append(action)

    def use_cost(self, cost: CostLike | None) -> None:
        """Use another cost of a measurement from now on."""
        self._cost = cost
        self.costs = CostLearner(self.domain, cost, None, self.seed)
        for part in self.parts.values():
            part.use_cost(cost)
        self._actions = self._action_space()

    @contextmanager
    def _undone_on_error(self, pending: Sequence[Action]) -> Iterator[None]:
        """Return all parts to their state before if one of them refuses a value."""
        before = {
            name: (part.surrogate.snapshot(), part.state) for name, part in self.parts.items()
        }
        try:
            yield
        except BaseException:
            for name, (snapshot, state) in before.items():
                self.parts[name].surrogate.rollback(snapshot, self._own_pending(name, pending))
                self.parts[name].state = state
            raise

    def _restart_regions(self) -> None:
        self.state = self._combined_state()

    # -- choosing
    # ----------------------------------------------------------------------------------------------

    def scoring(self, policy: Policy, *, exploring: bool = False) -> Policy:
        """Return the policy that adds up the scores of all quantities."""
        return SumPolicy(policy, exploring)

    def whole_context(self, context: PolicyContext, n_asked: int, speed: float) -> PolicyContext:
        """Return the view of a policy with that of every quantity."""
        parts = {
            name: QuantityContext(
                context=policy_context(part, n_asked, speed),
                goal=self.goal.parts[name],
                fitted=part.surrogate.fitted,
                table=partial(_own_table, part),
                success=partial(_success, self, name),
            )
            for name, part in self.parts.items()
        }
        own = {name: getattr(context, name) for name in context.__dataclass_fields__}
        return SeveralContext(**own, parts=parts, measures=self.measures)

    def measured(self, action: Action) -> tuple[str, ...]:
        """Return the quantities that a measurement is to have values of."""
        return self.measures[action.level or 0]

    def successes(self, name: str) -> Availability | None:
        """Return where a value of a quantity can be expected; None: wherever it is measured.

        A suggestion that was told without the value counts as a failed measurement of the quantity:
        its place is not measured for this quantity again unless it is allowed, and its surroundings
        less readily.
        """
        key = (len(self.values), len(self.exclusions))
        if self._successes.get(name, (None, None))[0] != key:
            d = len(self.domain.columns)
            actions = self._observations.actions
            has = np.array([name in values for values in self.values], dtype=bool)
            asked = np.array([not np.isnan(action.gain) for action in actions], dtype=bool)
            meant = np.array([name in self.measured(action) for action in actions], dtype=bool)
            points = np.array([action.point[:d] for action in actions]).reshape(-1, d)
            lacking = [
                k
                for k in np.flatnonzero(asked & meant & ~has)
                if not (points[has] == points[k]).all(axis=1).any()  # a value came later
            ]
            found = None
            if lacking:
                places = [Exclusion(place_of(actions[k], self.domain)) for k in lacking]
                places += [each for each in self.exclusions if each.allowed]
                found = Availability(self.domain, tuple(places), points[has], points[lacking])
            self._successes[name] = (key, found)
        return self._successes[name][1]

    def level_of(self, values: Values) -> int | None:
        """Return the column of the candidate table for what was measured; None if there is but one."""
        if len(self.measures) == 1:
            return None
        return next(k for k, names in enumerate(self.measures) if set(names) == set(values))

    # -- queries
    # ----------------------------------------------------------------------------------------------

    @property
    def learners(self) -> Mapping[str | None, ActiveLearner]:
        """The learner of each quantity."""
        learners: dict[str | None, ActiveLearner] = {}
        learners.update(self.parts)
        return learners

    @property
    def lead(self) -> str:
        """The leading quantity, which outputs for a single one show."""
        return next(iter(self.parts))

    @property
    def surrogate(self) -> Surrogate:  # type: ignore[override]  # an attribute there
        """The model of the leading quantity."""
        return self.parts[self.lead].surrogate

    @property
    def observations(self) -> Observations:
        """Actions with the values of the leading quantity, NaN where it was not measured."""
        return self._observations

    @property
    def fitted_models(self) -> dict[Any, Any]:
        """Fitted hyperparameters by quantity and number of its values."""
        return {
            (name, count): model
            for name, part in self.parts.items()
            for count, model in part.surrogate.fitted_models.items()
        }

    @fitted_models.setter
    def fitted_models(self, models: Mapping[Any, Any]) -> None:
        for name, part in self.parts.items():
            own = {count: model for (of, count), model in models.items() if of == name}
            part.surrogate.fitted_models = own

    @property
    def actions(self) -> ActionSpace:
        """Everything that can be measured, with the noise of the leading quantity."""
        is_fitted_again = self._actions_noise is not self.surrogate.noise
        if self.costs.update(self.observations) or is_fitted_again:
            self._actions_noise = self.surrogate.noise
            self._actions = self._action_space()
        availability = self.availability
        closed = closed_places(self, self._actions.closed)
        if self._actions.availability is not availability or self._actions.closed is not closed:
            self._actions = self._actions.limited_to(availability, closed)
        return self._actions

    @property
    def is_fitted(self) -> bool:
        """Whether there is a model of every quantity to make claims with."""
        return all(part.surrogate.fitted for part in self.parts.values())

    @property
    def sets_complete(self) -> str | None:
        """Why the sets leave nothing to find out; None if they do leave something."""
        potential = self.state.regions.potential
        if not self.is_fitted or (self.excluded is not None and self.excluded.all()):
            return None
        if self.goal.seeks_optimum:
            return None  # a single point may remain without being certain to satisfy everything
        if not potential.any():
            return "every point is classified"
        known = True
        for part in self.parts.values():
            variance = part.posterior.variance[: len(self.domain)][potential]
            known &= bool(variance.max() <= MIN_VARIANCE_SHARE * part.posterior.scale**2)
        return "every undecided point is known exactly" if known else None

    @property
    def epsilon(self) -> float:
        """Largest error of the leading quantity if the bounds hold; infinite without a model."""
        if not self.is_fitted:
            return float("inf")
        if not self.goal.seeks_optimum:
            return self.parts[self.lead].epsilon
        inside, _ = _certain(self)
        if not inside.any():
            return float("inf")
        lower, upper = _signed_bounds(self.goal, self.reported_state)
        potential = self.state.regions.potential
        return max(0.0, float(upper[potential].max(initial=-np.inf) - lower[inside].max()))

    @property
    def recommendable(self) -> Mask | None:
        """Points that are feasible with `MIN_FEASIBILITY`, or else the most probable one."""
        if not self.goal.seeks_optimum:
            return None
        probability = np.ones(len(self.domain))
        for part in self.parts.values():
            if part.goal.has_thresholds:
                probability *= _averaged_probability(part, part.surrogate.target_sites)
        if self.excluded is not None and not self.excluded.all():
            probability = np.where(self.excluded, -1.0, probability)
        return np.asarray(probability >= min(MIN_FEASIBILITY, float(probability.max())))

    def recommendable_at(self, points: Array) -> Mask:
        """Return which points (q, d) of a box may be recommended."""
        if not self.goal.seeks_optimum:
            return np.ones(len(points), bool)
        on_domain = float(_feasibility(self, self.domain.points).max())
        return np.asarray(_feasibility(self, points) >= min(MIN_FEASIBILITY, on_domain))

    def can_be_answer(self, position: int) -> bool:
        """Return whether the leading quantity was measured, and the others satisfy requirements."""
        values = self.values[position]
        left_out = {action.id for action, _ in self.surrogate.outliers}
        if self.lead not in values or self._observations[position].action.id in left_out:
            return False
        if not isinstance(self.goal, ConstrainedOptimum):
            return True
        names = [str(requirement.of) for requirement in self.goal.subject_to]
        if any(name not in values for name in names):
            return False
        return bool(self.goal.is_inside({name: np.array(values[name]) for name in names}))

    # -- private
    # ----------------------------------------------------------------------------------------------

    def _action_space(self) -> ActionSpace:
        noise: Any = self.surrogate.noise
        cost = self.costs.cost
        if len(self.measures) > 1:
            cost = 1.0 if cost is None else cost  # of the place
            costs = [sum(self._prices.get(name, 0.0) for name in names) for names in self.measures]
            noise = NoiseLevels([noise] * len(costs), costs)
        return ActionSpace(self.domain, noise, cost, None)

    def own_action(self, action: Action, name: str) -> Action:
        """Return the measurement as the learner of a quantity sees it, one object per action."""
        known = self._own_actions.get((action.id, name))
        if known is not None and known[0] is action:
            return known[1]
        actions = self.parts[name].actions
        if action.site is None:
            noise = actions.candidates_at(action.point[None, :], None).noise[0, 0]
        else:
            noise = actions.candidates(None).noise[action.site, 0]
        own = replace(action, noise=float(noise), level=None)
        self._own_actions[action.id, name] = (action, own)
        return own

    def _own_pending(self, name: str, pending: Iterable[Action]) -> list[Action]:
        return [self.own_action(other, name) for other in pending if name in self.measured(other)]

    def _combined_state(self) -> State:
        """Return the bounds and the epoch of the leading quantity with the regions of all."""
        lead = self.parts[self.lead].state
        if not self.is_fitted:
            regions = Regions.unknown(len(self.domain))
        elif isinstance(self.goal, AllOf):
            own = {name: part.state.regions for name, part in self.parts.items()}
            regions = self.goal.combined(own)
        else:
            regions = _constrained_regions(self, lead)
        return replace(lead, regions=regions, targets=regions.potential)


def learner_of(
    learner: ActiveLearner, action: Action, quantity: str | None
) -> tuple[ActiveLearner, Action]:
    """Return the learner of a quantity, and a measurement as it sees it; None: the learner itself.

    Raises:
        InvalidArgumentError: If the goal has no such quantity.
    """
    if quantity is None:
        return learner, action
    if not isinstance(learner, SeveralLearner):
        raise InvalidArgumentError(
            f"this study has one quantity, got of={quantity!r}; leave it out"
        )
    if quantity not in learner.parts:
        raise InvalidArgumentError(unknown_name("quantity", quantity, list(learner.parts)))
    return learner.parts[quantity], learner.own_action(action, quantity)


def _own_table(part: ActiveLearner, table: Candidates) -> Candidates:
    """Return candidates with the noise of one quantity, in the units of its model."""
    if table.sites is None:
        noise = part.actions.candidates_at(table.points, None).noise
    else:
        noise = part.actions.candidates(None).noise[table.sites]
    own = replace(table, noise=noise, cost=table.cost[:, :1])
    return in_model_units(part.surrogate, own)


def _success(learner: SeveralLearner, name: str, table: Candidates) -> Array | None:
    """Return the probability that candidates have a value of a quantity: (c,); None: they all do.

    Where no point of the domain can have one any more, none is preferred.
    """
    successes = learner.successes(name)
    if successes is None or not successes.feasibility.any():
        return None
    if table.sites is None:
        return successes.feasibility_at(table.points)
    return np.asarray(successes.feasibility[table.sites])


def _feasibility(learner: SeveralLearner, points: Array) -> Array:
    """Return the probability that all requirements on others than the optimum hold: (q,)."""
    probability = np.ones(len(points))
    for part in learner.parts.values():
        if part.goal.has_thresholds:
            probability *= _averaged_probability(part, part.surrogate.target_points(points))
    return probability


def _averaged_probability(part: ActiveLearner, sites: Array) -> Array:
    """Return the probability that a requirement holds, of the model that claims are made of: (q,)."""
    posterior = part.surrogate.freeze_average()
    means, variances = posterior.predict(sites)
    held = probability_of(part.model_goal, means, np.sqrt(variances), ndtr)
    return np.asarray(posterior.shares @ held)


def _certain(learner: SeveralLearner) -> tuple[Mask, Mask]:
    """Return where all constraints hold, and where one fails or nothing may be measured."""
    if not isinstance(learner.goal, ConstrainedOptimum):
        raise AssertionError("only an optimum has constraints")
    regions = {name: part.state.regions for name, part in learner.parts.items()}
    inside, outside = learner.goal.certain(regions)
    excluded = learner.excluded
    if excluded is not None and not excluded.all():
        inside = inside & ~excluded
        outside = outside | excluded
    return inside, outside


def _signed_bounds(goal: Goal, state: State) -> tuple[Array, Array]:
    """Return the bounds of the quantity to optimise; high values are good."""
    if goal.sign > 0:
        return state.lower, state.upper
    return -state.upper, -state.lower


def _constrained_regions(learner: SeveralLearner, lead: State) -> Regions:
    """Return the points that can be the best one of those that satisfy the requirements."""
    inside, outside = _certain(learner)
    lower, upper = _signed_bounds(learner.goal, lead)
    potential = ~outside
    if inside.any():
        potential = potential & (upper >= lower[inside].max())
    nothing = np.zeros_like(potential)
    if learner.goal.sign > 0:
        return Regions(potential, nothing, ~potential)
    return Regions(potential, ~potential, nothing)


def _measured_sets(
    names: Sequence[str], prices: Mapping[str, float] | None
) -> tuple[tuple[str, ...], ...]:
    """Return the sets of quantities that can be measured together, that of all first.

    Raises:
        InvalidArgumentError: If there are too many quantities with their own costs.
    """
    if not prices or len(names) == 1:
        return (tuple(names),)
    if len(names) > MAX_PRICED_QUANTITIES:
        raise InvalidArgumentError(
            f"at most {MAX_PRICED_QUANTITIES} quantities can have their own costs, got "
            f"{len(names)}; leave out the costs of quantities, so that all are always measured"
        )
    sizes = range(len(names), 0, -1)
    return tuple(chosen for size in sizes for chosen in combinations(names, size))
