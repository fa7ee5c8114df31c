"""The surrogate model of a study: a Gaussian process with its hyperparameters, observations and pending measurements.

A `Surrogate` takes actions and observed values and answers with a posterior over the domain. It knows nothing of
goals, policies, epochs or costs. Callers change it through five methods (`observe`, `set_pending`, `add_pending`,
`adopt`, `rollback`) and read it through `posterior`, `engine`, `predict` and `predict_measurement`.

| quantity | here |
|---|---|
| kernel, constant mean, noise variance in use | `kernel`, `mean`, `noise` |
| hyperparameters fitted after q observations | `fitted_models[q]` |
| mu_t, sigma_t^2 | `posterior` |
| sums over the targets for every candidate | `engine` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truvar._typing import Array
from truvar.domain.action import Action
from truvar.domain.candidates import model_sites
from truvar.domain.costs import NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.engines import Engine, EngineLike, check_engine, engine_for
from truvar.exceptions import InvalidModelError, TruvarError
from truvar.models.cholesky import local_factor
from truvar.models.fit import JITTER, Learned, Model, fit, fit_kernel, training_data, unfitted
from truvar.models.kernels import Coregionalized, check_kernel
from truvar.models.posterior import Posterior
from truvar.validation import check_finite

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.gaussian_process.kernels import Kernel


@dataclass(frozen=True)
class Prior:
    """The model as the caller describes it.

    Attributes:
        kernel: A scikit-learn kernel; or the family to learn: `Learned`, its name, or None for the default family.
        mean: Constant prior mean; None: estimated from the observations.
        noise: Noise variance of a measurement; None: learned, with a kernel that is learned.
        tasks: Correlated quantities that may be measured instead of the target.
    """

    kernel: Kernel | str | Learned | None
    mean: float | None
    noise: NoiseLike | None
    tasks: Tasks | None = None


class SurrogateSnapshot(NamedTuple):
    """The part of a surrogate's state that `Surrogate.rollback` restores."""

    observations: list[tuple[Action, float]]
    kernel: Kernel
    noise: NoiseLike
    fitted_models: dict[int, Model]


class Surrogate:
    """A Gaussian process over a domain, conditioned on observations and on pending measurements.

    Pending measurements reduce `posterior.pending_variance`, which choices are made with, but neither
    `posterior.mean` nor `posterior.variance`, which claims are made with.

    Args:
        domain: The points that the model predicts.
        prior: Kernel, mean, noise and tasks, known or to be learned.
        seed: Seed of the hyperparameter search.
        engine: Name or factory of the engine; None: chosen by the size of the domain.

    Attributes:
        kernel: The kernel in use, as given or as last fitted.
        mean: The constant prior mean; None: estimated by generalised least squares.
        noise: The noise variance in use, as given or as last fitted.
        family: The kernel family whose hyperparameters are learned; None if the kernel is known.
        posterior: The posterior at the sites of the domain.
        engine: Computes the sums that scores are made of.
        observations: Actions with their observed values, in order.
        fitted_models: Fitted hyperparameters by number of observations, so that no fit is repeated.

    Raises:
        InvalidModelError: If kernel, mean, noise and tasks do not make a model.
    """

    posterior: Posterior
    engine: Engine
    kernel: Kernel

    def __init__(self, domain: Domain, prior: Prior, seed: int = 0, engine: EngineLike = None) -> None:
        self.domain = domain
        self.tasks = prior.tasks
        self.seed = seed
        self.family = _family_to_learn(prior)
        self.mean = None if prior.mean is None else check_finite(prior.mean, "mean")
        self.noise: NoiseLike = 0.0 if prior.noise is None else prior.noise
        self.observations: list[tuple[Action, float]] = []
        self.fitted_models: dict[int, Model] = {}
        self._engine = None if engine is None else check_engine(engine)
        self._sites = model_sites(domain.points, prior.tasks)
        if self.family is None:
            self.kernel = check_kernel(prior.kernel, domain.points, domain.columns)
        self._refit(())

    # -- updates -----------------------------------------------------------------------------------------------------

    def observe(self, action: Action, y: float, pending: Sequence[Action]) -> None:
        """Condition the model on a measured value, and refit the hyperparameters if they are due.

        Args:
            action: The measurement.
            y: Its value.
            pending: The actions pending before, with or without `action`, in the order they were suggested.

        Raises:
            TruvarError: If the value contradicts a noise-free observation. Nothing has changed then.
        """
        others = [other for other in pending if other.id != action.id]
        is_next = bool(pending) and pending[0] is action  # its row is the first pending one already
        before = self.snapshot()
        try:
            if not is_next:
                self.set_pending([action])
            self.posterior.observe(y, action.task)
        except TruvarError:
            self.set_pending(pending)
            raise
        try:
            self.observations = [*self.observations, (action, y)]
            if not is_next:
                self.set_pending(others)
            if self._is_refit_due:
                self._refit(others)
        except BaseException:
            self.rollback(before, pending)
            raise

    def set_pending(self, actions: Iterable[Action]) -> None:
        """Replace the pending actions. They reduce `pending_variance`, not `variance`."""
        self.posterior.drop_pending()
        for action in actions:
            self.add_pending(action)

    def add_pending(self, action: Action) -> None:
        """Append one pending action."""
        self.posterior.add(action.point, max(action.noise, self.minimum_noise), action.site)

    def adopt(self, model: Model) -> None:
        """Take a fitted model as known from now on. Only before the first observation."""
        if self.family is not None and self.family.noise:
            self.noise = float(model.noise or 0.0)
        self.kernel = model.kernel
        self.mean = model.mean
        self.family = None
        self._refit(())

    def snapshot(self) -> SurrogateSnapshot:
        """Return a snapshot for `rollback`."""
        return SurrogateSnapshot(self.observations, self.kernel, self.noise, dict(self.fitted_models))

    def rollback(self, snapshot: SurrogateSnapshot, pending: Iterable[Action]) -> None:
        """Restore a snapshot and condition on its observations and the given pending actions again."""
        self.observations = snapshot.observations
        self.kernel = snapshot.kernel
        self.noise = snapshot.noise
        self.fitted_models = snapshot.fitted_models
        self._condition(pending)

    # -- queries -----------------------------------------------------------------------------------------------------

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return the posterior mean (q,) and variance (q,) of the target at points (q, d), from observations alone."""
        points = np.array(points, dtype=float)  # a copy, as the posterior remembers its last answer by the array
        if self.tasks is not None:
            points = np.column_stack([points, np.zeros(len(points))])  # task 0 is the target
        return self.posterior.predict(points)

    def predict_measurement(self, action: Action) -> tuple[float, float]:
        """Return mean and variance of the value that a measurement would give, its noise included."""
        mean, variance = self.posterior.predict(action.point[None, :])
        return float(mean[0]), float(variance[0] + action.noise)

    def fit_table(self, frame: pd.DataFrame, value: str | None) -> Model:
        """Fit kernel and mean (and noise, if it is learned) to another data set. The surrogate does not change.

        Args:
            frame: A table with the domain's columns and the column of values.
            value: Name of the column of values; None: the only other column.

        Returns:
            The fitted model, for `adopt`.
        """
        points, values = training_data(frame, self.domain.columns, value)
        noise: float | None = None  # a column or function of noise says nothing about other data
        given: Any = self.noise
        if isinstance(given, Real):
            noise = float(given)
        if self.family is None:
            return fit_kernel(self.kernel, points, values, noise, self.mean, self.seed)
        family = replace(self.family, noise=self.family.noise or noise is None)
        return fit(family, points, values, noise or 0.0, self.domain.extent, self.mean, self.seed)

    @property
    def fitted(self) -> bool:
        """Whether there is a model to make claims with: a learned kernel has one only after its first fit."""
        return self.family is None or len(self.observations) >= max(self.family.every, 2)

    @property
    def is_learned(self) -> bool:
        """Whether any part of the model is estimated from the observations that it judges."""
        return self.family is not None or self.mean is None

    @property
    def minimum_noise(self) -> float:
        """Smallest noise variance in use. A learned kernel was fitted with a little noise and is used with it."""
        return 0.0 if self.family is None else JITTER * self.posterior.scale**2

    # -- private -----------------------------------------------------------------------------------------------------

    @property
    def _is_refit_due(self) -> bool:
        if self.family is None:
            return False
        return not self.fitted or len(self.observations) % self.family.every == 0

    def _refit(self, pending: Iterable[Action]) -> None:
        """Fit the hyperparameters, if they are learned, and condition on everything again."""
        if self.family is not None:
            model = self._fit_family(self.family)
            self.kernel = model.kernel
            if self.family.noise:
                noise = float(model.noise or 0.0)
                self.noise = noise
                self.observations = [
                    (action if action.noise_given else replace(action, noise=noise), y)
                    for action, y in self.observations
                ]
        self._condition(pending)

    def _fit_family(self, family: Learned) -> Model:
        values = np.array([y for _, y in self.observations])
        if not self.fitted:
            return unfitted(family, self.domain.extent, values)
        count = len(self.observations)
        if count not in self.fitted_models:
            points = np.stack([action.point for action, _ in self.observations])
            noise = np.array([action.noise for action, _ in self.observations])
            extent = self.domain.extent
            self.fitted_models[count] = fit(family, points, values, noise, extent, self.mean, self.seed + count)
        return self.fitted_models[count]

    def _condition(self, pending: Iterable[Action]) -> None:
        """Make a new posterior and engine from the present hyperparameters, observations and pending actions."""
        kernel = self.kernel
        task_means = None
        if self.tasks is not None:
            kernel = Coregionalized(self.kernel, self.tasks.covariance)
            if self.tasks.mean is not None:
                task_means = np.asarray(self.tasks.mean, dtype=float) - (self.mean or 0.0)
        factor = getattr(self._engine, "factor", local_factor)  # an engine may keep the factor in other processes
        self.posterior = Posterior(kernel, self._sites, self.mean, task_means, len(self.domain), factor)
        self.engine = engine_for(self.posterior, self.domain, self._engine)
        for action, y in self.observations:
            self.add_pending(action)
            self.posterior.observe(y, action.task)
        self.set_pending(pending)


def _family_to_learn(prior: Prior) -> Learned | None:
    """Return the kernel family whose hyperparameters are to be learned, or None for a known kernel.

    Raises:
        InvalidModelError: If kernel, noise and tasks do not go together.
    """
    kernel = prior.kernel
    if kernel is None or isinstance(kernel, str):
        kernel = Learned(kernel or "matern52")
    if not isinstance(kernel, Learned):
        if prior.noise is None:
            raise InvalidModelError(
                "a known kernel needs a known noise variance, got none; give noise=... (0 if measurements are exact)"
            )
        return None
    if prior.tasks is not None:
        raise InvalidModelError(f"tasks need a known kernel, got {prior.kernel!r}; give one such as RBF(0.3)")
    if kernel.noise and prior.noise is not None:
        raise InvalidModelError(
            f"noise is to be learned, but it is also given ({prior.noise!r}); leave out one of them"
        )
    return replace(kernel, noise=prior.noise is None)
