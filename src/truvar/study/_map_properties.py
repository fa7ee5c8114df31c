"""The properties of a result that are about a map: accuracies and RMSE."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truvar.exceptions import UnsupportedGoalError
from truvar.inference.statements import Estimate
from truvar.validation import check_truth


class MapProperties:
    """Properties of `Result` for the goal `Map`."""

    @property
    def expected_rmse(self) -> Estimate:
        """Root of the mean squared distance of `mean` from f: mean and 95 % interval, given the model.

        Raises:
            UnsupportedGoalError: If the goal is not a map.
        """
        estimate: Estimate = self._of_map("expected_rmse")
        return estimate

    @property
    def accuracy(self) -> float:
        """Distance of `mean` from f that is exceeded at 1 % of the points at most, with probability 95 %.

        Raises:
            UnsupportedGoalError: If the goal is not a map.
        """
        accuracy: float = self._of_map("accuracy")
        return accuracy

    @property
    def accuracy_everywhere(self) -> float:
        """Distance of `mean` from f that is exceeded at no point, with probability 95 %.

        Raises:
            UnsupportedGoalError: If the goal is not a map.
        """
        accuracy: float = self._of_map("accuracy_everywhere")
        return accuracy

    def _of_map(self, name: str) -> Any:
        """Return a statement that only maps have."""
        result: Any = self
        if not hasattr(result.statements, name):
            raise UnsupportedGoalError(
                f"{name} needs a map, got the goal {result.goal}; for {result.goal.one} use "
                f"expected_{result.goal.score.key}"
            )
        return getattr(result.statements, name)

    def rmse(self, truth: ArrayLike) -> float:
        """Return the root of the mean squared distance of the posterior mean from the true values.

        Points count with the weights of a map, and equally for other goals.

        Args:
            truth: True values on the domain.

        Raises:
            InvalidArgumentError: If there is not one finite value per point.
        """
        result: Any = self
        error = result.mean - check_truth(truth, len(result.mean))
        return float(np.sqrt((result.goal.weights_on(result.domain) * error**2).mean()))
