"""Statements, certificate and end of a study whose goal is a maximum or minimum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.recommendation import best_point
from truvar.domain.domain import Domain
from truvar.inference._goals import GIVEN, MIN_PROBABILITY, SCREENING_REACH, GoalInference
from truvar.inference._mixtures import probability_above
from truvar.inference._optimum import (
    optimum_statements,
    potential_optima,
    potential_rows,
    screening_optimality,
)
from truvar.inference.certificate_text import optimum_claim, optimum_sentence
from truvar.inference.inputs import (
    CertificateInputs,
    StatementInputs,
    excluded_rows,
    member_moments,
)
from truvar.inference.statements import JointStatements

_TWO_SIDED_99 = 2.576  # half width of a 99 % interval, in standard deviations
_MAX_CANDIDATES = 64  # points that may be the optimum: with more the study is not examined further
# The most promising points, which are examined first: if they leave the optimum open, the average
# over other models need not predict all the others.
_N_EXAMINED_FIRST = 2500
# Share of the screening draws below which all draws would not reach `MIN_PROBABILITY`.
_MIN_SCREENED = 0.98


class _OptimumInference(GoalInference):
    def statements(self, inputs: StatementInputs) -> JointStatements:
        return optimum_statements(inputs)

    def sentence(
        self, statements: JointStatements, domain: Domain, best: Mapping[str, float]
    ) -> str:
        return optimum_sentence(statements, domain, best)

    def claim(self, inputs: CertificateInputs, accurate_to: float) -> str:
        return optimum_claim(inputs, accurate_to)

    def certainty(
        self, inputs: StatementInputs, means: Array, variances: Array, weights: Array
    ) -> Array:
        """Return the probability that each row is not better than the best estimate."""
        sign = inputs.goal.sign
        highest = (sign * inputs.means).max(axis=1, keepdims=True)
        signed = sign * means
        best = np.maximum(highest, signed.max(axis=1, keepdims=True))
        return 1.0 - probability_above(signed, variances, best, weights)

    def is_clearly_open(self, learner: ActiveLearner) -> bool:
        means, variances = member_moments(learner.surrogate)
        signed = learner.goal.sign * means
        sd = np.sqrt(variances)
        excluded = excluded_rows(learner)
        if len(potential_rows(signed, sd, SCREENING_REACH, excluded)) > _MAX_CANDIDATES:
            return True
        if signed.shape[1] <= _N_EXAMINED_FIRST:
            return False
        rows = _most_promising((signed + SCREENING_REACH * sd).max(axis=0), excluded)
        inputs = StatementInputs.of(learner, best_point(learner)[1], rows)
        return not (self.may_be_decided(inputs) and self.passes_screening(inputs))

    def may_be_decided(self, inputs: StatementInputs) -> bool:
        return len(potential_optima(inputs, reach=_TWO_SIDED_99)) <= _MAX_CANDIDATES

    def passes_screening(self, inputs: StatementInputs) -> bool:
        return screening_optimality(inputs) >= _MIN_SCREENED

    def decided(self, statements: JointStatements) -> str | None:
        if (statements.optimal_probability or 0.0) < MIN_PROBABILITY:
            return None
        return f"no point is better than the recommended one {GIVEN}"


def _most_promising(highest: Array, excluded: Mask | None) -> Index:
    """Return `_N_EXAMINED_FIRST` rows, given the upper bound of every point, high is good: (n,)."""
    if excluded is not None:
        highest = np.where(excluded, -np.inf, highest)
    return np.sort(np.argpartition(-highest, _N_EXAMINED_FIRST)[:_N_EXAMINED_FIRST])


INFERENCE = _OptimumInference()
