"""Whether a study is finished: nothing is left to find out, and that can be supported.

A study is finished if one of these holds:

- the paper's sets leave nothing undecided, and its confidence bounds hold with a stated probability
  (regimes "theorem" and "outside" of the certificate);
- given the model, everything is decided jointly with probability `_MIN_PROBABILITY`, the
  measurements do not contradict the model, and the study was not set up for bounds with a stated
  probability, which have the last word then.

Neither is said before the first value, since a model that nothing was compared with supports no
statement (the only point of a domain is its optimum anyway), and with a learned model not before
`Learned.min_observations` values. That a *policy* sees nothing more to gain, because its own bounds are a rule
of thumb, does not make a study finished.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar.algorithm.learner import ActiveLearner
from truvar.domain.goals import Bands, LevelSet
from truvar.inference._level_set import screening_certainty
from truvar.inference._mixtures import certainty_of, probability_above
from truvar.inference._optimum import potential_optima, potential_rows, screening_optimality
from truvar.inference.certificate import certify
from truvar.inference.inputs import (
    CertificateInputs,
    StatementInputs,
    excluded_rows,
    member_moments,
    model_thresholds,
)
from truvar.inference.joint import StatementSource
from truvar.inference.statements import JointStatements
from truvar.models.diagnostics import ModelCheck

_MIN_PROBABILITY = 0.997  # of a statement that decides everything: as if no draw contradicted it
_TWO_SIDED_99 = 2.576  # half width of a 99 % interval, in standard deviations
_MIN_MISFIT_CHANCE = (
    1e-9  # chance of the misfit below which even few measurements contradict the model
)
_MAX_CANDIDATES = 64  # points that may be the optimum: with more the study is not examined further
_SCREENING_REACH = (
    2.55  # half width of the intervals of a first look, a little less than `_TWO_SIDED_99`
)
_SCREENING_MARGIN = (
    1e-4  # probability by which a certainty of the first look must fall short of `_MIN_PROBABILITY`
)
_MIN_SCREENED_CERTAINTY = (
    0.9  # of every class in few draws; where one has less, all draws do not decide it
)
_MIN_SCREENED = (
    0.98  # share of the screening draws below which all draws would not reach `_MIN_PROBABILITY`
)


def finished(
    learner: ActiveLearner,
    statement_inputs: Callable[[], StatementSource],
    certificate_inputs: Callable[[], CertificateInputs],
) -> str | None:
    """Return why nothing is left to find out, or None.

    Args:
        learner: The state of the study.
        statement_inputs: Returns what joint statements depend on; called only if there is a model.
        certificate_inputs: Returns what the certificate depends on; called only if a condition that
            is quick to check holds.
    """
    surrogate = learner.surrogate
    is_only_point = len(learner.domain) == 1 and learner.goal.seeks_optimum
    if not surrogate.fitted or not (learner.observations or is_only_point):
        return None
    if (
        learner.looks_in_contexts
    ):  # that the best of all contexts is known says nothing of the others
        return None
    if len(learner.observations) < surrogate.min_observations:
        return None
    complete = learner.sets_complete
    if complete is not None:
        certificate = certify(certificate_inputs())
        if certificate.delta is not None:
            return f"{complete}, with probability at least {1 - certificate.delta:g}"
    if learner.domain.continuous and learner.goal.seeks_optimum:
        return None
    if _is_clearly_open(learner):
        return None
    inputs = statement_inputs()
    if not inputs.fitted or not _may_be_decided(inputs):
        return None
    of_certificate = certificate_inputs()
    if _is_contradicted(of_certificate.model_check):
        return None
    if complete is None and certify(of_certificate).delta is not None:
        # the study was set up for bounds with a stated probability, and these leave something
        # undecided
        return None
    return _decided(inputs.joint) if _passes_screening(inputs) else None


def _is_contradicted(check: ModelCheck) -> bool:
    """Return whether the measurements contradict the model.

    The check itself waits for enough measurements to tell. One value a hundred standard deviations
    from the prior mean is enough: given that model everything would be decided, and the model is
    wrong.
    """
    if check.is_contradiction or check.degrees < 1:
        return check.is_contradiction
    chance = float(
        scipy.special.gammaincc(check.degrees / 2, check.misfit / 2)
    )  # that chi-squared exceeds the misfit
    return chance < _MIN_MISFIT_CHANCE


def _is_clearly_open(learner: ActiveLearner) -> bool:
    """Return whether the moments that the learner keeps show already that something is undecided.

    A study is not finished while the model that its choices are made with leaves something
    undecided, whatever the average over other models says. The margins are much wider than
    rounding.
    """
    surrogate = learner.surrogate
    means, variances = member_moments(surrogate)
    if learner.goal.seeks_optimum:
        sds = np.sqrt(variances)
        candidates = potential_rows(
            learner.goal.sign * means, sds, _SCREENING_REACH, excluded_rows(learner)
        )
        return len(candidates) > _MAX_CANDIDATES
    mean, variance = surrogate.moments
    sd = np.sqrt(variance)
    for threshold in model_thresholds(learner):
        row = int(
            np.argmax(_SCREENING_REACH * sd - np.abs(mean - threshold))
        )  # a point that is hard to classify
        above = probability_above(means[:, row], variances[:, row], threshold)
        certainty = max(float(above), 1.0 - float(above))
        if certainty < _MIN_PROBABILITY - _SCREENING_MARGIN:
            return True
    return False


def _may_be_decided(inputs: StatementInputs) -> bool:
    """Return whether single points do not rule out that everything is decided. No joint draws are needed for this."""
    if isinstance(inputs.goal, Bands):
        return bool(certainty_of(inputs.exceedance()).min() >= _MIN_PROBABILITY)
    if inputs.goal.has_thresholds:
        probability = inputs.marginal_probability()
        return probability is None or bool(
            np.maximum(probability, 1.0 - probability).min() >= _MIN_PROBABILITY
        )
    return len(potential_optima(inputs, reach=_TWO_SIDED_99)) <= _MAX_CANDIDATES


def _passes_screening(inputs: StatementInputs) -> bool:
    """Return whether few draws do not rule out that everything is decided, where single points say little."""
    if not isinstance(inputs.goal, LevelSet):
        return inputs.goal.has_thresholds or screening_optimality(inputs) >= _MIN_SCREENED
    return (
        inputs.threshold is not None
        or screening_certainty(inputs, inputs.goal) >= _MIN_SCREENED_CERTAINTY
    )


def _decided(statements: JointStatements) -> str | None:
    """Return what is decided, if everything is."""
    given = f"with {100 * _MIN_PROBABILITY:g} % probability, given the model"
    if statements.goal.has_thresholds:
        everything = bool((statements.decided_confidence >= _MIN_PROBABILITY).all())
        return f"every point is classified {given}" if everything else None
    optimal = statements.optimal_probability or 0.0
    return (
        f"no point is better than the recommended one {given}"
        if optimal >= _MIN_PROBABILITY
        else None
    )
