"""`Known`: kernel, noise and tasks are given, and nothing is fitted."""

from __future__ import annotations

from truvar.models.hyperparameters.base import (
    AnyModel,
    Fit,
    Hyperparameters,
    Setting,
    known_offset,
    known_site_kernel,
)
from truvar.models.observations import Observations


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
            tasks=setting.tasks,
        )

    def _is_scheduled(self, observations: Observations, current: Fit) -> bool:
        return False

    def fit(self, observations: Observations, models: dict[int, AnyModel]) -> Fit:
        """Return the hyperparameters as given."""
        return self._given
