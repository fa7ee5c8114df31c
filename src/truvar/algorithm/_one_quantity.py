"""Answers of a learner of one quantity to what is asked of those of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truvar._typing import Array, Mask
from truvar.acquisition import Policy
from truvar.acquisition.base import PolicyContext
from truvar.models.hyperparameters import AnyModel
from truvar.models.surrogate import Surrogate


class OneQuantity:
    """The members of a learner that differ where a study has several quantities.

    Attributes:
        surrogate: The model.
    """

    surrogate: Surrogate

    def check_value(self, y: Any) -> None:
        """Check that a value, or one of each quantity, can be modelled.

        Raises:
            InvalidMeasurementError: If it cannot.
        """
        self.surrogate.check_value(y)

    def scoring(self, policy: Policy, *, exploring: bool = False) -> Policy:
        """Return the policy that scores the candidates; of several quantities, their sum.

        Args:
            policy: A policy.
            exploring: Whether it counts given targets in place of what is undecided.
        """
        return policy

    def whole_context(self, context: PolicyContext, n_asked: int, speed: float) -> PolicyContext:
        """Return the view of a policy; with several quantities, that of all of them."""
        return context

    @property
    def learners(self) -> Mapping[str | None, Any]:
        """The learner of each quantity; None is the name of the only one."""
        return {None: self}

    @property
    def is_fitted(self) -> bool:
        """Whether there is a model to make claims with, of every quantity."""
        return self.surrogate.fitted

    @property
    def fitted_models(self) -> dict[Any, AnyModel]:
        """Fitted hyperparameters by number of observations, so that no fit is repeated."""
        return self.surrogate.fitted_models

    @fitted_models.setter
    def fitted_models(self, models: dict[Any, AnyModel]) -> None:
        self.surrogate.fitted_models = models

    @property
    def recommendable(self) -> Mask | None:
        """Points that may be recommended as far as other quantities are concerned; None: all."""
        return None

    def recommendable_at(self, points: Array) -> Mask:
        """Return which points (q, d) may be recommended as far as other quantities are concerned."""
        return np.ones(len(points), bool)

    def can_be_answer(self, position: int) -> bool:
        """Return whether a measurement is neither left out as an outlier nor ruled out by others."""
        model = self.surrogate.model
        return model is None or position not in model.outliers
