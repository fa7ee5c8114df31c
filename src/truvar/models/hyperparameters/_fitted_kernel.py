"""`FittedKernel`: a kernel that the user composed, with hyperparameters of maximum likelihood.

The best hyperparameters count as known where choices are made. Claims do not trust them as far:
they average over the composed kernel and the default learned ones, by evidence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.exceptions import InvalidModelError
from truvar.models._kernel_sample import FittedHyperparameters, sample_members
from truvar.models.fit import (
    JITTER_SHARE,
    Model,
    fit_kernel,
    noise_prior,
    unfitted,
    with_variances_in_units,
)
from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters.averaged import conditions_of
from truvar.models.hyperparameters.base import AnyModel, Fit, Setting, fit_once
from truvar.models.hyperparameters.known import MIN_TO_COMPARE
from truvar.models.hyperparameters.point_estimate import LearnedFamily
from truvar.models.kernels import check_kernel, to_sklearn
from truvar.models.model_average import with_uncertain_scale
from truvar.models.observations import Observations
from truvar.models.priors import Learned

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

_BEFORE_FIT = "matern52"  # the family that the initial design is chosen with
_DEFAULT_BOUNDS = (1e-5, 1e5)  # of scikit-learn, which belong to no unit
# of hyperparameters in the units of the coordinates, in extents of the domain
_DISTANCE_BOUNDS = {"length_scale": (0.01, 10.0), "periodicity": (0.1, 2.0)}
_SINE_BOUNDS = (0.1, 10.0)  # of the length-scale of ExpSineSquared
_TYPICAL_DISTANCE = 0.3  # where the search for them begins, in extents of the domain


class FittedKernel(LearnedFamily):
    """The hyperparameters of a given kernel that maximise the marginal likelihood within bounds.

    Args:
        setting: The part of the model that observations do not change.
        family: The kernel with its bounds, which is also that of the setting.

    Raises:
        InvalidModelError: If the kernel does not go with the domain.
    """

    def __init__(self, setting: Setting, family: Learned) -> None:
        super().__init__(setting, family)
        domain = setting.domain
        if domain.categorical:
            raise InvalidModelError(
                f"a composed kernel is fitted to numbers only, got {family.kernel} and a domain "
                "with categories; give Learned() with the name of a family"
            )
        given = to_sklearn(check_kernel(family.kernel, domain.points, domain.columns))
        self._start = with_distances_in_extents(given, domain.extent)

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the most likely kernel and, if it is learned, noise variance."""
        setting = self.setting
        model = self._model(observations, models)
        return Fit(
            kernel=model.kernel,
            site_kernel=model.kernel,
            mean=setting.mean,
            offset=setting.mean_function,
            noise=setting.given_noise,
            likelihood=replace(setting.observation_model, jitter=JITTER_SHARE),
        ).with_noise(model.noise if self.hides_noise else None)

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over the fitted kernel and the default learned ones."""
        setting = self.setting
        if len(observations) < max(MIN_TO_COMPARE, setting.n_initial):
            return with_uncertain_scale(posterior)
        posterior = self._sample(observations, current)
        if not setting.is_compared:
            return posterior
        from truvar.models.given_model import average_with_learned

        # The most likely hyperparameters explain their own values too well: Schwarz (1978).
        count = len(self._start.theta) + int(self.hides_noise)
        penalty = 0.5 * count * float(np.log(len(observations)))
        return average_with_learned(setting, observations, current, posterior, n, penalty)

    def _sample(self, observations: Observations, current: Fit) -> FrozenPosterior:
        """Return the posterior averaged over the plausible hyperparameters."""
        kernel = to_sklearn(current.kernel)
        start = with_variances_in_units(self._start, float(kernel.diag(observations.points).max()))
        noise = None
        if self.hides_noise:
            variance: Any = current.noise  # a number, as it was fitted
            noise = float(current.likelihood.variance(float(variance)))
        prior = noise_prior(self.setting.residuals(observations), self.setting.mean)
        fitted = FittedHyperparameters(kernel, np.asarray(start.bounds), noise, prior)
        conditions = conditions_of(observations, current, self.setting)
        return sample_members(fitted, conditions, self.setting.seed + len(observations))

    def _model(self, observations: Observations, models: dict[int, AnyModel]) -> Model:
        setting = self.setting
        values = setting.residuals(observations)
        if not self.is_fitted(observations):
            plain = replace(self.family, kernel=_BEFORE_FIT)
            return unfitted(plain, setting.domain.extent, values)
        count = len(observations)
        points = observations.points
        noise = None
        if not self.hides_noise:
            noise = setting.variances(observations.actions)
        seed = setting.seed + count
        restarts = self.family.restarts - 1

        def fit_from(_: Model | None) -> Model:
            return fit_kernel(
                self._start,
                points,
                values,
                noise,
                setting.mean,
                seed,
                restarts,
                penalises_noise=True,
            )

        return fit_once(models, count, Model, fit_from)


def with_distances_in_extents(kernel: Kernel, extent: Array) -> Kernel:
    """Return a kernel whose default bounds of distances suit the extent of a domain.

    A length-scale or period with scikit-learn's default bounds, and outside of the new ones, starts
    at a typical value.

    Args:
        kernel: The kernel.
        extent: Extent of the domain. (d,)
    """
    from sklearn.gaussian_process.kernels import ExpSineSquared

    parameters = kernel.get_params(deep=True)
    changed: dict[str, Any] = {}
    for name, bounds in parameters.items():
        hyperparameter = name.removesuffix("_bounds")
        path, _, own = hyperparameter.rpartition("__")
        part = parameters[path] if path else kernel
        if own not in _DISTANCE_BOUNDS or name == hyperparameter or not _is_default(bounds):
            continue
        value = np.asarray(parameters[hyperparameter], dtype=float)
        if own == "length_scale" and isinstance(part, ExpSineSquared):  # in units of the sine
            changed[name] = _SINE_BOUNDS
            changed[hyperparameter] = float(np.clip(value, *_SINE_BOUNDS))
            continue
        if value.ndim == 0:  # one for all columns
            found = _distance(float(value), own, float(extent.min()), float(extent.max()))
            changed[hyperparameter], changed[name] = found
            continue
        each = [
            _distance(float(one), own, float(side), float(side))
            for one, side in zip(value, extent, strict=True)
        ]
        changed[hyperparameter] = np.array([start for start, _ in each])
        changed[name] = np.array([ends for _, ends in each])
    return kernel.clone_with_theta(kernel.theta).set_params(**changed)


def _is_default(bounds: Any) -> bool:
    return isinstance(bounds, tuple) and bounds == _DEFAULT_BOUNDS


def _distance(
    value: float, name: str, shortest: float, longest: float
) -> tuple[float, tuple[float, float]]:
    """Return start and bounds of a distance along sides of a domain of these lengths."""
    low, high = _DISTANCE_BOUNDS[name]
    ends = (low * shortest, high * longest)
    typical = _TYPICAL_DISTANCE * float(np.sqrt(shortest * longest))
    return value if ends[0] <= value <= ends[1] else typical, ends
