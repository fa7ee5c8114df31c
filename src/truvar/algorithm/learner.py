"""What follows from what was told: the posterior, the state of Algorithm 1 and, where asked, the hyperparameters.

`ActiveLearner` takes actions with their observed values and keeps everything that can be derived from them. It knows
nothing of suggestion ids, users or corrections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Mask
from truvar.acquisition import Policy, PolicyContext, ProposalPolicy
from truvar.acquisition.confidence import RESOLUTION, EpochStart
from truvar.acquisition.optimizer import best_in_box, polish
from truvar.algorithm import loop
from truvar.algorithm.covering import cover_cost, information_bound
from truvar.domain.candidates import ActionSpace, Candidates
from truvar.domain.costs import CostLike, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.engines import EngineLike, check_engine, engine_for
from truvar.exceptions import TruvarError
from truvar.models.cholesky import local_factor
from truvar.models.fit import JITTER, Learned, Model, fit, fit_kernel, training_data, unfitted
from truvar.models.kernels import Coregionalized, check_kernel
from truvar.models.posterior import Posterior
from truvar.validation import check_finite


@dataclass(frozen=True)
class Action:
    """A measurement, asked for or told of: where, how, at what price."""

    id: int
    point: Array  # (d',), the task as last coordinate if there are tasks
    site: int | None
    level: int | None
    task: int
    noise: float
    cost: float
    gain: float = float("nan")
    noise_told: bool = False  # the noise came with the value: learning leaves it alone


@dataclass(frozen=True)
class Prior:
    """What the user says of the model: kernel (or the family to learn), mean (None: learned), noise, cost, tasks."""

    kernel: Kernel | str | Learned | None
    mean: float | None
    noise: NoiseLike | None
    cost: CostLike | None
    tasks: Tasks | None


class ActiveLearner:
    """The posterior and the state of Algorithm 1, given what was told and what is pending."""

    def __init__(
        self, domain: Domain, goal: Goal, policy: Policy, prior: Prior, seed: int, engine: EngineLike = None
    ) -> None:
        self.domain, self.goal, self.policy, self.seed = domain, goal, policy, seed
        self._engine = engine if engine is None else check_engine(engine)
        self.tasks, self._cost = prior.tasks, prior.cost
        self.learned = _learned(prior)
        self.mean = None if prior.mean is None else check_finite(prior.mean, "mean")
        self.noise: NoiseLike = 0.0 if prior.noise is None else prior.noise
        self.actions = ActionSpace(domain, self.noise, prior.cost, prior.tasks)
        if self.learned is None:
            self.kernel: Kernel = check_kernel(prior.kernel, domain.points, domain.columns)
        self.observations: list[tuple[Action, float]] = []
        self.models: dict[int, Model] = {}  # what was learned, by the number of values told: no fit is made twice
        self._rebuild(())
        self.state = loop.begin(self.posterior, policy, len(domain), self._epoch_start)

    # -- what changes it ---------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: float, pending: Sequence[Action]) -> None:
        """Algorithm 1, line 4: y was measured. `pending` is what was pending before, with or without the action, in the
        order it was asked for. If y is refused, nothing changes."""
        others = [other for other in pending if other.id != action.id]
        next_in_turn = bool(pending) and pending[0] is action
        try:
            if not next_in_turn:
                self.pend([action])
            self.posterior.observe(y, action.task)
        except TruvarError:
            self.pend(pending)
            raise
        before = self.observations, self.kernel, self.noise, self.actions
        models = dict(self.models)
        try:
            self.observations = [*self.observations, (action, y)]
            if not next_in_turn:
                self.pend(others)
            self._learn(others)
        except BaseException:
            self.observations, self.kernel, self.noise, self.actions = before
            self.models = models
            self._fold(pending)
            raise

    def pend(self, actions: Iterable[Action]) -> None:
        """What is pending is exactly this: it narrows the variance that choices are made with."""
        self.posterior.drop_pending()
        for action in actions:
            self.add(action)

    def add(self, action: Action) -> None:
        """One more is pending."""
        self.posterior.add(action.point, max(action.noise, self.least_noise), action.site)

    def fit(self, frame: pd.DataFrame, value: str | None) -> Model:
        """Kernel and mean (and noise, if it is to be learned) as another data set has them."""
        points, values = training_data(frame, self.domain.columns, value)
        given: Any = self.noise
        noise = float(given) if isinstance(given, Real) else None  # a column or function says nothing of other data
        if self.learned is None:
            return fit_kernel(self.kernel, points, values, noise, self.mean, self.seed)
        family = replace(self.learned, noise=self.learned.noise or noise is None)
        return fit(family, points, values, noise or 0.0, self.domain.extent, self.mean, self.seed)

    def adopt(self, model: Model) -> None:
        """Takes a model that was fitted as known from now on, before the first measurement."""
        if self.learned is not None and self.learned.noise:
            self._set_noise(model)
        self.kernel, self.mean, self.learned = model.kernel, model.mean, None
        self._rebuild(())
        self.state = loop.begin(self.posterior, self.policy, len(self.domain), self._epoch_start)

    # -- what follows from it ----------------------------------------------------------------------------------------

    def choose(self, last: Array | None, pending: Sequence[Action], asks: int) -> tuple[Candidates, loop.Choice | None]:
        """Algorithm 1, line 3: the table of candidates, and the choice from it."""
        table, context = self.actions.candidates(last), self.context(asks)
        if self.domain.continuous and isinstance(self.policy, ProposalPolicy):
            table = self.actions.at(self.policy.propose(context), last)
        choice = loop.choose(context, self.policy, table)
        if choice is None and pending:
            context, choice = loop.choose_ahead(context, self.policy, table)
        if choice is None or not self.domain.continuous or table.sites is None:
            return table, choice
        if self.policy.places(context, table) is not None:
            return table, choice

        def score(points: Array) -> Array:
            there = self.actions.at(points, last)
            gains = self.policy.score(context, there)
            worth = gains / there.cost if self.policy.per_cost else gains
            return np.asarray(worth.reshape(-1, len(points), there.n_levels).max(axis=(0, 2)))

        start = table.points[choice.row, : len(self.domain.columns)]
        with blas_in_one_thread():  # one small solution after another: threads would only wait for each other
            point = best_in_box(score, self.domain.bounds, start)
        there = self.actions.at(point[None, :], last)
        return there, loop.choose(context, self.policy, there)

    def context(self, asks: int) -> PolicyContext:
        """What a policy sees."""
        state = self.state
        values = [y for action, y in self.observations if action.task == 0]
        best = None if not values else max(values) if self.goal.sign > 0 else min(values)
        return PolicyContext(
            engine=self.engine,
            goal=self.goal,
            regions=state.regions,
            targets=state.targets,
            lower=state.lower,
            upper=state.upper,
            epoch=state.epoch,
            best_y=best,
            seed=(self.seed, asks),
            domain=self.domain,
            queried_points=self.posterior.points,
            actions=self.actions,
            has_bounds=self.fitted and (self.mean is not None or len(self.observations) > 0),
        )

    @property
    def end(self) -> str | None:
        """Why there is nothing left to find out, or None."""
        potential = self.state.regions.potential
        if not potential.any():
            return "every point is classified"
        if potential.sum() == 1 and not self.goal.level_set and not self.domain.continuous:
            return f"one point is left: the {'maximiser' if self.goal.sign > 0 else 'minimiser'} is identified"
        variance = self.posterior.variance[: len(self.domain)][self.state.targets]
        if variance.max() <= RESOLUTION * self.posterior.scale**2:
            return "every undecided point is known exactly"
        return None

    def best(self) -> tuple[int | None, Array, float, float]:
        """The point of best posterior mean: its index (None in a box), coordinates, mean and standard deviation."""
        d, sign = len(self.domain.columns), self.goal.sign
        mean = self.posterior.mean[: len(self.domain)]
        index = int(np.argmax(sign * mean))
        if not self.domain.continuous:
            return index, self.domain.points[index], float(mean[index]), float(np.sqrt(self.posterior.variance[index]))
        places = np.stack(
            [self.posterior.sites[index], *[action.point for action, _ in self.observations if action.task == 0]]
        )
        target = places[:1, d:]  # the target task's coordinate, if there are tasks

        def there(points: Array) -> Array:
            return np.hstack([points, np.repeat(target, len(points), axis=0)])

        def believed(points: Array) -> Array:
            return sign * self.posterior.predict(there(points))[0]

        with blas_in_one_thread():
            leader = places[int(np.argmax(believed(places[:, :d]))), :d]
            point = polish(believed, self.domain.bounds, leader)
        means, variances = self.posterior.predict(there(point[None, :]))
        return None, point, float(means[0]), float(np.sqrt(variances[0]))

    @property
    def epsilon(self) -> float:
        """How far from exact the answer can be if the bounds hold; infinite before there is a model."""
        if not self.fitted:
            return float("inf")
        return self.goal.epsilon(self.state.regions, self.state.lower, self.state.upper)

    @property
    def is_learned(self) -> bool:
        """Whether any part of the model comes from the very measurements it judges."""
        return self.learned is not None or self.mean is None

    @property
    def spent(self) -> float:
        """The cost of what was told."""
        return sum(action.cost for action, _ in self.observations)

    @property
    def fitted(self) -> bool:
        """Whether there is a model to make claims with: for a learned kernel, only after its first fit."""
        return self.learned is None or len(self.observations) >= max(self.learned.every, 2)

    @property
    def nested(self) -> bool:
        """Whether the bounds never widen."""
        return self.policy.confidence.intersect and self.goal.monotone and not self.is_learned

    @property
    def least_noise(self) -> float:
        """A kernel that was learned was fitted with a little noise, and is used with it."""
        return 0.0 if self.learned is None else JITTER * self.posterior.scale**2

    # -- inside ------------------------------------------------------------------------------------------------------

    def _learn(self, pending: Sequence[Action]) -> None:
        """After a value was told: the hyperparameters, if it is their turn, then Algorithm 2."""
        goal = self.goal
        if self.learned is not None:
            goal = replace(goal, monotone=False)  # type: ignore[type-var]  # goals are dataclasses
            if not self.fitted or len(self.observations) % self.learned.every == 0:
                self._rebuild(pending)
        if self.fitted:
            self.state = loop.update(self.posterior, goal, self.policy, self.state, self._epoch_start, self.nested)
        if self.learned is not None and len(self.observations) < self.learned.least and self.end is not None:
            self.state = loop.begin(self.posterior, self.policy, len(self.domain), self._epoch_start)
        if not self.fitted:
            self.state = loop.begin(self.posterior, self.policy, len(self.domain), self._epoch_start)

    def _rebuild(self, pending: Sequence[Action]) -> None:
        """The hyperparameters are learned, if they are to be, and what was told is folded in again."""
        if self.learned is not None:
            model = self._model(self.learned)
            self.kernel = model.kernel
            if self.learned.noise:
                self._set_noise(model)
                noise = float(model.noise or 0.0)
                self.observations = [(a if a.noise_told else replace(a, noise=noise), y) for a, y in self.observations]
        self._fold(pending)

    def _fold(self, pending: Sequence[Action]) -> None:
        """A new posterior, with what was told and what is pending folded in again."""
        kernel, means = self.kernel, None
        if self.tasks is not None:
            kernel = Coregionalized(self.kernel, self.tasks.covariance)
            if self.tasks.mean is not None:
                means = np.asarray(self.tasks.mean, dtype=float) - (self.mean or 0.0)
        place = getattr(self._engine, "factor", local_factor)  # where the engine wants the factor to be
        self.posterior = Posterior(kernel, self.actions.sites, self.mean, means, len(self.domain), place)
        self.engine = engine_for(self.posterior, self.domain, self._engine)
        for action, y in self.observations:
            self.add(action)
            self.posterior.observe(y, action.task)
        self.pend(pending)

    def _model(self, family: Learned) -> Model:
        values = np.array([y for _, y in self.observations])
        if not self.fitted:
            return unfitted(family, self.domain.extent, values)
        count = len(self.observations)
        if count not in self.models:
            points = np.stack([action.point for action, _ in self.observations])
            noise = np.array([action.noise for action, _ in self.observations])
            extent = self.domain.extent
            self.models[count] = fit(family, points, values, noise, extent, self.mean, self.seed + count)
        return self.models[count]

    def _set_noise(self, model: Model) -> None:
        self.noise = float(model.noise or 0.0)
        self.actions = ActionSpace(self.domain, self.noise, self._cost, self.tasks)

    def _epoch_start(self, eta: float, targets: Mask) -> EpochStart:
        least, most = self.actions.cost_range
        unmoved = self.actions.candidates(None)
        return EpochStart(
            t=len(self.observations) + 1,
            eta=eta,
            slack=self.policy.confidence.slack,
            points=len(self.domain),
            actions=len(unmoved),
            open=int(targets.sum()),
            level_set=self.goal.level_set,
            spent=self.spent,
            cheapest=least,
            dearest=most,
            cover=lambda xi: cover_cost(self.posterior, targets, xi * self.posterior.scale, unmoved),
            information=lambda steps: information_bound(self.posterior, steps, unmoved),
        )


def _learned(prior: Prior) -> Learned | None:
    """The family to learn, or None for a known kernel."""
    kernel, noise = prior.kernel, prior.noise
    if kernel is None or isinstance(kernel, str):
        kernel = Learned(kernel or "matern52")
    if not isinstance(kernel, Learned):
        if noise is None:
            raise TruvarError(
                "a known kernel needs a known noise variance, but none was given; give noise=... (0 if there is none)"
            )
        return None
    if prior.tasks is not None:
        raise TruvarError(f"tasks need a known kernel, got {prior.kernel!r}; give one such as RBF(0.3)")
    if kernel.noise and noise is not None:
        raise TruvarError(f"noise is to be learned, got given too ({noise!r}); leave out one of the two")
    return replace(kernel, noise=noise is None)
