"""Values that look like typing errors: far from the expected ones.

Such a value is accepted, and named with a way to correct it. The same rule serves Python, the
command line, the page and the API. Values that a program measured for `run` are not typed and not
looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.algorithm.recommendation import eligible_observations
from truvar.domain.action import Action
from truvar.domain.goals import LevelSet
from truvar.messages import for_interface
from truvar.models.likelihoods import Binary
from truvar.models.observations import Observation
from truvar.models.transforms import SMALLEST_UNIT

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner
    from truvar.domain.goals import Goal
    from truvar.models.surrogate import Surrogate
    from truvar.study._state import StudyState

# standard deviations; if the model is right, one value in 16,000 lies further from its mean
MAX_Z_SCORE = 4.0
MAX_Z_SCORE_LEARNED = (
    6.0  # the same for a learned model, whose standard deviations are uncertain themselves
)
_MAX_WRITTEN_OUT = 1e6  # standard deviations that are written with all their digits
MAX_DECADES = 2.0  # decades beyond all other values, before there is a model
MIN_DISTANCE_RANGES = 2.0  # ranges of the other values that a value must lie outside of them
MAX_LEAD_RANGES = 5.0  # ranges of the other values that the best one may lie beyond them
MAX_LEAD_SIZES = 2.0  # sizes of the largest of them; a peak on a high plateau has less
MIN_OTHERS = 4  # values that the best one is compared with
REMINDER_INTERVAL = 10  # values after which it is said again that they are too small
MIN_VALUES_FOR_MEAN = 3  # values from which a mean that is learned is trusted
MIN_VALUES_FOR_MAGNITUDE = 2  # values other than 0 from which their magnitude is known


def implausible(state: StudyState, action: Action, value: Any) -> str | None:
    """Return why a value may be a typing error; None if it is plausible.

    Args:
        state: The state of the study before the value is told.
        action: The measurement.
        value: The value; by quantity, if there are several.
    """
    if state.config.goal.parts:
        return _implausible_of_several(state, action, value)
    return _implausible_of(state, state.learner, state.config.goal, action, value)


def _implausible_of_several(
    state: StudyState, action: Action, values: Mapping[str, float]
) -> str | None:
    """Return why one of the values of several quantities may be a typing error."""
    for name, learner in state.learner.learners.items():
        if name in values:
            goal = state.config.goal.parts[str(name)]
            found = _implausible_of(state, learner, goal, action, values[str(name)], name)
            if found is not None:
                return f"{name}: {found}"
    return None


def _implausible_of(
    state: StudyState,
    learner: ActiveLearner,
    goal: Goal,
    action: Action,
    value: float,
    quantity: str | None = None,
) -> str | None:
    surrogate = learner.surrogate
    if surrogate.outcome is not None and isinstance(surrogate.outcome, Binary):
        return None  # an unexpected answer is no mistake
    told = list(learner.observations)
    for each, y in state.deferred.observations if state.deferred else ():
        if quantity is None or quantity in y:
            told.append(Observation(each, y if quantity is None else y[quantity]))
    values = [y for each, y in told if each.task == action.task]
    tasks = surrogate.tasks
    # If the covariance is learned, the mean that the user gave is that of the target alone.
    is_mean_given = surrogate.mean is not None and (
        action.task == 0 or tasks is None or not tasks.learned
    )
    if surrogate.fitted and (is_mean_given or len(values) >= MIN_VALUES_FOR_MEAN):
        return _far_from_prediction(surrogate, action, value, values)
    threshold = None
    if isinstance(goal, LevelSet) and action.task == 0:
        threshold = goal.threshold
    if values and min(values) < value < max(values):
        return None  # values of both signs say nothing about how small another one may be
    return _other_magnitude(value, np.abs([other for other in values if other != 0]), threshold)


def without_leading_outlier(
    learner: ActiveLearner, best: Action, value: float
) -> tuple[Action, float] | None:
    """Return the second best measurement, if the best value is far beyond all others; else None.

    A single value that leads by `MAX_LEAD_RANGES` ranges of the others, and by `MAX_LEAD_SIZES` of
    their largest size, may be a peak or a mistake. Logarithms are compared where the user asks for
    them; a learned power is not used, as it follows the very value that is in question.

    Args:
        learner: The learner.
        best: The best measurement among those that can be the answer.
        value: Its value.
    """
    if learner.surrogate.outcome is not None:
        return None
    others = [each for each in eligible_observations(learner) if each[0].id != best.id]
    if len(others) < MIN_OTHERS:
        return None
    values = np.array([value, *(y for _, y in others)])
    if learner.surrogate.transform.log:
        values = np.log(values)
    signed = learner.goal.sign * values[1:]
    lead = learner.goal.sign * float(values[0]) - float(signed.max())
    size = float(np.abs(signed).max())
    if lead <= max(MAX_LEAD_RANGES * float(np.ptp(signed)), MAX_LEAD_SIZES * size):
        return None
    return others[int(np.argmax(signed))]


def indistinct(surrogate: Surrogate) -> tuple[str, str] | None:
    """Return finding and remedy if all values are too small for a learned model; else None.

    Such values are not refused: they may be the tails of a peak that is still to be found.

    Args:
        surrogate: The model.
    """
    values = [y for _, y in surrogate.observations]
    if surrogate.family is None or surrogate.transform.log:
        return None
    if len(set(values)) < 2 or max(map(abs, values)) > SMALLEST_UNIT:
        return None
    logarithm = for_interface('transform="log"', problem='transform = "log"')
    return (
        f"All {len(values)} values are below {SMALLEST_UNIT:g} in size, which a learned model "
        "takes for equal, so that "
        "what it says means nothing",
        f"give the values in other units, or use {logarithm} if no value is 0",
    )


def too_small(state: StudyState, n_new: int = 1) -> str | None:
    """Return a warning, now and then, if all values are too small for a learned model.

    Args:
        state: The state of the study.
        n_new: Number of values that were told since the last time.
    """
    count = len(state.learner.observations)
    before = count - n_new
    if not before < 2 <= count and before // REMINDER_INTERVAL == count // REMINDER_INTERVAL:
        return None
    found = indistinct(state.learner.surrogate)
    if found is None:
        return None
    finding, advice = found
    return f"{finding[0].lower()}{finding[1:]}; {advice}"


def _far_from_prediction(
    surrogate: Surrogate, action: Action, value: float, values: list[float]
) -> str | None:
    mean, variance = surrogate.predict_measurement(action)
    sd = float(np.sqrt(variance))
    distance = abs(value - mean) / sd if sd > 0 else 0.0
    reach = MAX_Z_SCORE if surrogate.family is None else MAX_Z_SCORE_LEARNED
    if not distance > reach:
        return None
    if len(values) >= MIN_VALUES_FOR_MEAN or (values and surrogate.family is not None):
        # A value not far outside the range of the others says more about the model than about the
        # value.
        spread = MIN_DISTANCE_RANGES * (max(values) - min(values))
        if min(values) - spread <= value <= max(values) + spread:
            return None
    times = f"{distance:.1f}" if distance < _MAX_WRITTEN_OUT else f"{distance:.1e}"
    return f"{value:.6g} is {times} standard deviations from the expected {mean:.4g} ± {sd:.2g}"


def _other_magnitude(value: float, others: Array, threshold: float | None) -> str | None:
    """Return why a value is of another order of magnitude than what else is known.

    A single value may be the tail of a peak, so that it does not tell the magnitude of the others.
    A threshold tells how large values are, but not how small.

    Args:
        value: The value.
        others: Absolute values of the others, without zeros. (q,)
        threshold: Threshold that the values are compared with; None: there is none.
    """
    if value == 0:
        return None
    own = float(np.log10(abs(value)))
    small = others if len(others) >= MIN_VALUES_FOR_MAGNITUDE else np.empty(0)
    large = np.append(others, abs(threshold)) if threshold else small
    known = np.log10(np.concatenate([large, small]))
    if len(known) == 0:
        return None
    reach = max(MAX_DECADES, float(np.ptp(known)))
    if own > float(known.max()) + reach:
        word = "larger"
        nearest = large.max()
    elif len(small) and own < float(known.min()) - reach:
        word = "smaller"
        nearest = min(large.min(), small.min())
    else:
        return None
    return f"{value:.6g} is orders of magnitude {word} than what else is known here (about {nearest:.3g})"


def correction(id_: int) -> str:
    """Return how to correct a measurement, in the language of the caller's interface."""
    remedy = for_interface(
        f"correct it: correct({id_}, VALUE)",
        cli=f"correct it: truvar correct {id_} VALUE",
        http=f"correct or withdraw measurement {id_}",
    )
    return f"if it is a typing mistake, {remedy}"
