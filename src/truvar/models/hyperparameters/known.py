"""`Known`: kernel, noise and tasks are given, and nothing is fitted.

A given kernel is a prior, not a truth: somebody learned it on another day. Claims average over it
and a learned one, unless the user says that it is exact.
"""

from __future__ import annotations

from truvar.models.frozen import FrozenPosterior
from truvar.models.hyperparameters.base import (
    AnyModel,
    Fit,
    Hyperparameters,
    Setting,
    known_offset,
    known_site_kernel,
)
from truvar.models.observations import Observations

MIN_TO_COMPARE = 5  # observations below which a given kernel is not compared with a learned one


class Known(Hyperparameters):
    """All hyperparameters as the user gave them."""

    is_refitted = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._given = Fit(
            kernel=setting.kernel,
            site_kernel=known_site_kernel(setting.kernel, setting.tasks),
            mean=setting.mean,
            offset=known_offset(setting),
            noise=setting.given_noise,
            likelihood=setting.observation_model,
            tasks=setting.tasks,
        )

    def average(
        self, observations: Observations, current: Fit, posterior: FrozenPosterior, n: int
    ) -> FrozenPosterior:
        """Return the posterior averaged over the given model and a learned one."""
        setting = self.setting
        if not setting.is_compared or len(observations) < MIN_TO_COMPARE:
            return posterior
        from truvar.models.given_model import average_with_learned

        return average_with_learned(setting, observations, current, posterior, n)

    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        return False

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the hyperparameters as given."""
        return self._given
