"""Whether a study is finished: nothing is left to find out, and that can be supported.

A study is finished if one of these holds:

- the paper's sets leave nothing undecided, and its confidence bounds hold with a stated probability
  (regimes "theorem" and "outside" of the certificate);
- given the model, everything is decided jointly with probability 0.997, the
  measurements do not contradict the model, and the study was not set up for bounds with a stated
  probability, which have the last word then.

Neither is said before the first value, since a model that nothing was compared with supports no
statement (the only point of a domain is its optimum anyway), and with a learned model not before
`Learned.min_observations` values. That a *policy* sees nothing more to gain, because its own bounds are a rule
of thumb, does not make a study finished.
"""

from __future__ import annotations

from collections.abc import Callable

import scipy  # scipy.special is imported on first use, as it imports slowly

from truvar.algorithm.learner import ActiveLearner
from truvar.inference._goals import inference_of
from truvar.inference.certificate import certify
from truvar.inference.inputs import CertificateInputs
from truvar.inference.joint import StatementSource
from truvar.models.diagnostics import ModelCheck

_MIN_MISFIT_CHANCE = (
    1e-9  # chance of the misfit below which even few measurements contradict the model
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
    # A study is not finished while the model that its choices are made with leaves something
    # undecided, whatever the average over other models says.
    goal_inference = inference_of(learner.goal)
    if goal_inference.is_clearly_open(learner):
        return None
    inputs = statement_inputs()
    if not inputs.fitted or not goal_inference.may_be_decided(inputs):
        return None
    of_certificate = certificate_inputs()
    if _is_contradicted(of_certificate.model_check):
        return None
    if complete is None and certify(of_certificate).delta is not None:
        # the study was set up for bounds with a stated probability, and these leave something
        # undecided
        return None
    if not goal_inference.passes_screening(inputs):
        return None
    return goal_inference.decided(inputs.joint)


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
