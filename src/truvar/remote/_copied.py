"""`CopiedViews`: members of a study on a server that are computed here, on a copy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from truvar._typing import Array
from truvar.domain.costs import Tasks
from truvar.study.base import BaseStudy
from truvar.study.lookahead import Lookahead
from truvar.study.result import Best
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion
from truvar.study.vehicles import VehicleStatus

# Attributes of `Study` that are computed here, on a copy of the study.
COPY_ATTRIBUTES = frozenset(
    {
        "candidates",
        "engine",
        "epoch",
        "exclusions",
        "fixed_kernel",
        "gains",
        "kernel",
        "policy_context",
        "sample_measurement",
        "theory_setting",
    }
    | {"learns_noise", "outcome", "transform"}
    | {"expects", "imagine", "outlook", "scene", "setting"}  # deprecated names of some of these
)


class CopiedViews(BaseStudy):
    """Answers of a copy of the study."""

    @abstractmethod
    def copy(self) -> Study:
        """Return a copy of the present study in memory."""

    @property
    def vehicle_statuses(self) -> list[VehicleStatus]:
        return self.copy().vehicle_statuses

    @property
    def learned_tasks(self) -> Tasks | None:
        return self.copy().learned_tasks

    def best_for(self, context: Mapping[str, Any]) -> Best:
        return self.copy().best_for(context)

    def predict(self, points: ArrayLike) -> tuple[Array, Array]:
        return self.copy().predict(points)

    def predict_measurement(
        self, what: Suggestion | int | Mapping[str, Any], of: str | None = None
    ) -> tuple[float, float]:
        return self.copy().predict_measurement(what, of)

    def lookahead(self, what: Suggestion | int) -> Lookahead | None:
        return self.copy().lookahead(what)

    def __getattr__(self, name: str) -> Any:
        """Take what else a `Study` has, such as `kernel` or `gains`, from a copy."""
        if name not in COPY_ATTRIBUTES:
            raise AttributeError(f"a study on a server has no {name!r}")
        return getattr(self.copy(), name)
