"""`LocalViews`: what only a study in this process can say, about its model and its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from truvar._deprecation import deprecated_alias, deprecated_argument
from truvar._typing import Array
from truvar.acquisition import PolicyContext
from truvar.acquisition.confidence import Epoch
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.selection import in_model_units, policy_context
from truvar.domain.candidates import Candidates
from truvar.domain.exclusions import Exclusion
from truvar.exceptions import InvalidModelError
from truvar.messages import for_interface
from truvar.models.kernels import to_sklearn
from truvar.models.likelihoods import Outcome
from truvar.models.transforms import OutputTransform
from truvar.study._resolve import resolve_action
from truvar.study._session import StudySession, synchronized
from truvar.study._state import StudyState
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import departure, resolve_vehicle

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

    from truvar.theory import TheorySetting


@synchronized
class LocalViews:
    """Members about model and policy; a study on a server computes them on a copy."""

    author: str
    _session: StudySession
    _state: StudyState

    @deprecated_argument("who", "vehicle", removed_in="0.5.0")
    def candidates(self, vehicle: str | None = None) -> Candidates:
        """Return the table of everything that can be measured next, with its noise and cost.

        Args:
            vehicle: The vehicle; if none of several is meant, no travel is paid.
        """
        name = resolve_vehicle(self._state.config, vehicle, self.author, required=False)
        return self._learner.actions.candidates(departure(self._state, name))

    def policy_context(self) -> PolicyContext:
        """Return what the policy sees at the next choice."""
        return policy_context(self._learner, self._state.next_id)

    def gains(self) -> Array:
        """Return the policy's score of every candidate before division by the cost.

        The order is that of the table's flat rows: the noise levels of the first row, then those of
        the second, ...
        """
        table = in_model_units(self._learner.surrogate, self.candidates())
        policy = self._learner.scoring(self._learner.policy)
        return policy.score(self.policy_context(), table).ravel()

    @property
    def epoch(self) -> Epoch:
        """The present epoch i, with eta_(i), beta_(i) and t_(i)."""
        return self._learner.state.epoch

    @property
    def exclusions(self) -> list[Exclusion]:
        """The exclusions and permissions in order; a later one overrides earlier ones."""
        return list(self._learner.exclusions)

    @property
    def engine(self) -> str:
        """Name of the engine that computes the scores."""
        return self._learner.engine.name

    @property
    def kernel(self) -> Kernel:
        """The kernel in use, as given or as last fitted."""
        return to_sklearn(self._learner.surrogate.kernel)

    @property
    def fixed_kernel(self) -> Kernel | None:
        """The kernel that was given, whose hyperparameters stay as they are; None if learned."""
        surrogate = self._learner.surrogate
        return None if surrogate.family is not None or surrogate.learns_tasks else self.kernel

    @property
    def transform(self) -> OutputTransform:
        """The transform of the modelled values, as given or last fitted; default: identity."""
        return self._learner.surrogate.transform

    @property
    def outcome(self) -> Outcome | None:
        """The kind of value that a measurement gives; None: a number with normal noise."""
        return self._state.config.prior.outcome

    @property
    def learns_noise(self) -> bool:
        """Whether the noise is learned from the measurements, as none is given."""
        return self._state.config.prior.noise is None

    def sample_measurement(self, what: Suggestion | int, rng: np.random.Generator) -> float:
        """Draw a value that a pending suggestion could give.

        A study that is told such values runs on a function drawn from its own prior.

        Args:
            what: A pending suggestion or its id.
            rng: Source of randomness.
        """
        action = resolve_action(self._state, what)
        return self._learner.surrogate.sample_measurement(action, rng)

    def theory_setting(self) -> TheorySetting:
        """Return the argument of `truvar.theory`: prior, noise, cost of measurements, epochs.

        Raises:
            InvalidModelError: If part of the model is learned, as the theory is about a known
                model.
        """
        from truvar.theory import TheorySetting

        if self._learner.surrogate.is_learned:
            remedy = for_interface(
                "kernel, mean and noise", problem="[model] lengthscales and mean, and [noise]"
            )
            raise InvalidModelError(
                f"bounds need a known model, but part of this one is learned; give {remedy}"
            )
        return TheorySetting.of(
            self._learner.posterior,
            self._learner.actions.candidates(None),
            self._state.config.policy.confidence,
        )

    scene = deprecated_alias("policy_context", removed_in="0.4.0")
    setting = deprecated_alias("theory_setting", removed_in="0.4.0")
    imagine = deprecated_alias("sample_measurement", removed_in="0.4.0")

    @property
    def _learner(self) -> ActiveLearner:
        return self._state.learner
