"""Statements, certificate and end of a study whose goal is a level set, with one or several thresholds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truvar._typing import Array
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.domain import Domain
from truvar.domain.goals import Bands, Goal, LevelSet
from truvar.inference._goals import (
    GIVEN,
    MIN_PROBABILITY,
    SCREENING_MARGIN,
    SCREENING_REACH,
    GoalInference,
)
from truvar.inference._level_set import level_set_statements, screening_certainty
from truvar.inference._mixtures import certainty_of, probability_above
from truvar.inference.bands import band_statements
from truvar.inference.certificate_text import (
    bands_claim,
    further_sentences,
    level_set_claim,
    level_set_sentence,
)
from truvar.inference.inputs import (
    CertificateInputs,
    StatementInputs,
    member_moments,
    model_thresholds,
)
from truvar.inference.statements import JointStatements

_MIN_SCREENED_CERTAINTY = (
    0.9  # of every class in few draws; where one has less, all draws do not decide it
)


def _with_thresholds(goal: Goal) -> LevelSet | Bands:
    if not isinstance(goal, LevelSet | Bands):
        raise AssertionError("a level set has thresholds")
    return goal


class _LevelSetInference(GoalInference):
    def statements(self, inputs: StatementInputs) -> JointStatements:
        goal = _with_thresholds(inputs.goal)
        if isinstance(goal, Bands):
            return band_statements(inputs, goal)
        return level_set_statements(inputs, goal)

    def sentence(
        self, statements: JointStatements, domain: Domain, best: Mapping[str, float]
    ) -> str:
        return level_set_sentence(statements, _with_thresholds(statements.goal), domain)

    def further(self, statements: JointStatements, domain: Domain) -> tuple[str, ...]:
        return further_sentences(statements, _with_thresholds(statements.goal), domain)

    def claim(self, inputs: CertificateInputs, accurate_to: float) -> str:
        goal = _with_thresholds(inputs.goal)
        return bands_claim(inputs) if isinstance(goal, Bands) else level_set_claim(inputs, goal)

    def certainty(
        self, inputs: StatementInputs, means: Array, variances: Array, weights: Array
    ) -> Array:
        goal = _with_thresholds(inputs.goal)
        if isinstance(goal, Bands):
            exceeds = [probability_above(means, variances, h, weights) for h in inputs.thresholds]
            return certainty_of(np.stack(exceeds))
        threshold: Array | float
        if inputs.threshold is not None:
            threshold = inputs.threshold
        else:
            extreme = np.min if goal.is_from_minimum else np.max
            threshold = goal.implicit_threshold(extreme(inputs.means, axis=1, keepdims=True))
        above = probability_above(means, variances, threshold, weights)
        return np.asarray(np.maximum(above, 1.0 - above))

    def is_clearly_open(self, learner: ActiveLearner) -> bool:
        """Return whether a point that is hard to classify is undecided in the learner's model."""
        means, variances = member_moments(learner.surrogate)
        mean, variance = learner.surrogate.moments
        sd = np.sqrt(variance)
        for threshold in model_thresholds(learner):
            row = int(np.argmax(SCREENING_REACH * sd - np.abs(mean - threshold)))
            above = probability_above(means[:, row], variances[:, row], threshold)
            certainty = max(float(above), 1.0 - float(above))
            if certainty < MIN_PROBABILITY - SCREENING_MARGIN:
                return True
        return False

    def may_be_decided(self, inputs: StatementInputs) -> bool:
        if isinstance(inputs.goal, Bands):
            return bool(certainty_of(inputs.exceedance()).min() >= MIN_PROBABILITY)
        probability = inputs.marginal_probability()
        return probability is None or bool(
            np.maximum(probability, 1.0 - probability).min() >= MIN_PROBABILITY
        )

    def passes_screening(self, inputs: StatementInputs) -> bool:
        """Return whether a threshold that is a share of the optimum passes; others need no draws."""
        if not isinstance(inputs.goal, LevelSet) or inputs.threshold is not None:
            return True
        return screening_certainty(inputs, inputs.goal) >= _MIN_SCREENED_CERTAINTY

    def decided(self, statements: JointStatements) -> str | None:
        if not (statements.decided_confidence >= MIN_PROBABILITY).all():
            return None
        return f"every point is classified {GIVEN}"


INFERENCE = _LevelSetInference()
