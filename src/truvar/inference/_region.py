"""Statements, certificate and end of a study of the region where several requirements hold.

The probability of lying inside is the product over the quantities. Joint statements count, in draws
of all quantities, the points at which all requirements hold; the rest is as for a level set.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truvar._typing import Array
from truvar.algorithm._several import SeveralLearner
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.domain import Domain
from truvar.inference._goals import GIVEN, MIN_PROBABILITY, GoalInference, inference_of
from truvar.inference._level_set import from_draws, rows_to_draw, uncertain_rows
from truvar.inference._optimum import N_DRAWS
from truvar.inference._several import SeveralSource
from truvar.inference.certificate_text import further_sentences, level_set_sentence
from truvar.inference.inputs import CertificateInputs, StatementInputs, unknown_statements
from truvar.inference.statements import UNKNOWN_SHARE, JointStatements


def several(inputs: StatementInputs) -> SeveralSource:
    """Return the inputs, which are those of several quantities."""
    if not isinstance(inputs, SeveralSource):
        raise AssertionError("statements about several quantities need the inputs of each")
    return inputs


def lacks_values(learner: ActiveLearner) -> bool:
    """Return whether a quantity has too few values for its model to be relied on."""
    return any(
        not part.surrogate.fitted or len(part.observations) < part.surrogate.min_observations
        for part in learner.learners.values()
    )


class _RegionInference(GoalInference):
    def statements(self, inputs: StatementInputs) -> JointStatements:
        source = several(inputs)
        probability = source.together()
        if not source.fitted:
            return unknown_statements(source, probability, UNKNOWN_SHARE, None)
        error = np.minimum(probability, 1.0 - probability)
        relevant = uncertain_rows(error)
        rows = rows_to_draw(relevant, source.seed)
        is_inside = source.held(source.sites[rows], N_DRAWS)
        return from_draws(source, probability, error, relevant, rows, is_inside)

    def sentence(
        self, statements: JointStatements, domain: Domain, best: Mapping[str, float]
    ) -> str:
        return level_set_sentence(statements, statements.goal, domain)

    def further(self, statements: JointStatements, domain: Domain) -> tuple[str, ...]:
        return further_sentences(statements, statements.goal, domain)

    def claim(self, inputs: CertificateInputs, accurate_to: float) -> str:
        regions = inputs.state.regions
        return (
            f"{inputs.goal.summary} at the {int(regions.above.sum())} points classified as inside "
            f"(H), not so at the {int(regions.below.sum())} classified as outside (L), and "
            f"{int(regions.potential.sum())} points are undecided (M)."
        )

    def certainty(
        self, inputs: StatementInputs, means: Array, variances: Array, weights: Array
    ) -> Array:
        """Return the certainty of the only requirement; with several, 1: causes are of one model."""
        source = several(inputs)
        if len(source.parts) > 1:
            return np.ones(means.shape[1])
        single = source.as_single()
        return inference_of(single.goal).certainty(single, means, variances, weights)

    def is_clearly_open(self, learner: ActiveLearner) -> bool:
        if lacks_values(learner) or not isinstance(learner, SeveralLearner):
            return True
        if len(learner.parts) > 1:
            return False
        part = next(iter(learner.parts.values()))
        return inference_of(part.goal).is_clearly_open(part)

    def may_be_decided(self, inputs: StatementInputs) -> bool:
        probability = several(inputs).together()
        return bool(np.maximum(probability, 1.0 - probability).min() >= MIN_PROBABILITY)

    def decided(self, statements: JointStatements) -> str | None:
        if not (statements.decided_confidence >= MIN_PROBABILITY).all():
            return None
        return f"every point is classified {GIVEN}"


INFERENCE = _RegionInference()
