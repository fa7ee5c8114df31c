"""Statements, certificate and end of a study by kind of goal: one object per kind.

A new kind of goal is a module with a subclass of `GoalInference`, and a line of `_MODULES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from truvar._typing import Array
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.inference.inputs import CertificateInputs, StatementInputs
from truvar.inference.statements import JointStatements

MIN_PROBABILITY = 0.997  # of a statement that decides everything: as if no draw contradicted it
SCREENING_REACH = 2.55  # half width of the intervals of a first look, in standard deviations
# Probability by which a certainty of the first look must fall short of `MIN_PROBABILITY`.
SCREENING_MARGIN = 1e-4
GIVEN = f"with {100 * MIN_PROBABILITY:g} % probability, given the model"

# Kind of goal -> module whose `INFERENCE` is about it.
_MODULES = {
    "constrained optimum": "truvar.inference._constrained",
    "level set": "truvar.inference._level_set_goals",
    "map": "truvar.inference._map",
    "optimum": "truvar.inference._optimum_goals",
    "region": "truvar.inference._region",
}


class GoalInference(ABC):
    """Everything that is inferred in another way for each kind of goal."""

    @abstractmethod
    def statements(self, inputs: StatementInputs) -> JointStatements:
        """Return what can be stated about all points jointly."""

    @abstractmethod
    def sentence(
        self, statements: JointStatements, domain: Domain, best: Mapping[str, float]
    ) -> str:
        """Return the statement that a certificate leads with.

        Args:
            statements: The joint statements.
            domain: Domain of the study.
            best: The recommended point, by column.
        """

    def further(self, statements: JointStatements, domain: Domain) -> tuple[str, ...]:
        """Return what else can be stated."""
        return ()

    @abstractmethod
    def claim(self, inputs: CertificateInputs, accurate_to: float) -> str:
        """Return what the confidence bounds say about the sets M, H and L.

        Args:
            inputs: Inputs of the certificate.
            accurate_to: `Certificate.accurate_to`.
        """

    @abstractmethod
    def certainty(
        self, inputs: StatementInputs, means: Array, variances: Array, weights: Array
    ) -> Array:
        """Return the probability of the more probable answer at each of some rows, (q,).

        Args:
            inputs: Inputs of the statements.
            means: Means of the rows by member, in the units of the model. (members, q)
            variances: Their variances. (members, q)
            weights: Weights of the members.
        """

    def decode(self, statements: JointStatements, form: Mapping[str, Any]) -> JointStatements:
        """Return statements from JSON with what this kind of goal adds to them.

        Args:
            statements: The fields that all kinds of goals have.
            form: `JointStatements.to_dict`, decoded.
        """
        return statements

    # -- whether everything is decided, the cheapest test first
    # ----------------------------------------------------------------------------------------------

    @abstractmethod
    def is_clearly_open(self, learner: ActiveLearner) -> bool:
        """Return whether the moments that the learner keeps show already that something is undecided."""

    @abstractmethod
    def may_be_decided(self, inputs: StatementInputs) -> bool:
        """Return whether single points do not rule out that everything is decided."""

    def passes_screening(self, inputs: StatementInputs) -> bool:
        """Return whether few draws do not rule out that everything is decided, where single points say little."""
        return True

    @abstractmethod
    def decided(self, statements: JointStatements) -> str | None:
        """Return what is decided with probability `MIN_PROBABILITY`, if everything is."""


@cache
def _of_kind(kind: str) -> GoalInference:
    found: Any = import_module(_MODULES[kind]).INFERENCE
    return found  # type: ignore[no-any-return]


def inference_of(goal: Goal) -> GoalInference:
    """Return what statements and certificate need of a goal."""
    return _of_kind(goal.kind)
