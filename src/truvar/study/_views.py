"""Views of a study's state: suggestions, the table of measurements, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from truvar.algorithm.covering import information_bound
from truvar.algorithm.recommendation import best_observed, best_point
from truvar.algorithm.selection import in_model_units
from truvar.domain.action import Action
from truvar.domain.domain import Domain
from truvar.domain.vehicles import Origin
from truvar.inference.certificate import certify
from truvar.inference.inputs import CertificateInputs
from truvar.inference.joint import StatementSource
from truvar.inference.limits import StatementLimits, StopCheck, check_stop
from truvar.inference.stopping import finished
from truvar.models.diagnostics import check_model
from truvar.study._state import StudyState
from truvar.study.outliers import outlier_ids
from truvar.study.plausibility import indistinct
from truvar.study.records import MeasurementRecord, measurement_records
from truvar.study.result import Best, BestObserved, Result
from truvar.study.suggestion import Suggestion

if TYPE_CHECKING:
    import pandas as pd

MEASUREMENT_COLUMNS = ("id", "index", "level", "task", "noise", "cost", "spent", "value")


def suggestion(state: StudyState, action: Action) -> Suggestion:
    """Return an action as callers see it."""
    domain = state.config.domain
    tasks = state.config.prior.tasks
    index = None
    if action.site is not None:
        index = action.site % len(domain)  # every task has the sites of the domain
    return Suggestion(
        id=action.id,
        index=index,
        point=domain.named(action.point[: len(domain.columns)]),
        level=action.level,
        task=None if tasks is None else tasks.names[action.task],
        noise=action.noise,
        cost=action.cost,
        gain=action.gain,
        who=action.who,
        label=domain.label(index),
    )


def measurements(state: StudyState) -> pd.DataFrame:
    """Return one row per measurement, in order (see `Study.measurements`)."""
    return measurement_frame(measurement_records(state), state.config.domain)


def measurement_frame(records: Sequence[MeasurementRecord], domain: Domain) -> pd.DataFrame:
    """Return a table of measurements.

    Args:
        records: The measurements.
        domain: The domain. Where one of its columns is also a name of the table, the latter gets an underscore. If its
            rows are named, the names are a column `label`.
    """
    import pandas as pd

    columns = domain.columns

    rows = []
    for record in records:
        rest = (record.level, record.task, record.noise, record.cost, record.spent, record.value)
        rows.append((record.id, record.index, *record.point.values(), *rest))
    names = [f"{name}_" if name in columns else name for name in MEASUREMENT_COLUMNS]
    frame = pd.DataFrame(rows, columns=[*names[:2], *columns, *names[2:]])
    frame = frame.astype({names[1]: "Int64", names[2]: "Int64"})  # the integers that may be missing
    if domain.has_row_names:
        frame.insert(2, "label_" if "label" in columns else "label", [record.label for record in records])
    for name in ("who", "repeats"):
        own = [getattr(record, name) for record in records]
        if any(value is not None for value in own):  # only where there are vehicles or repeats
            heading = f"{name}_" if name in columns else name
            frame[heading] = pd.Series(own, dtype="Int64" if name == "repeats" else object)
    return frame


def certificate_inputs(state: StudyState) -> CertificateInputs:
    """Return what the certificate of a study depends on."""
    config = state.config
    learner = state.learner
    posterior = learner.posterior
    model_check = check_model(
        posterior,
        [action.id for action, _ in learner.observations],
        learned=learner.surrogate.family is not None,
        fitted=learner.surrogate.fitted,
    )
    too_small = indistinct(state)
    if too_small is not None:
        model_check = model_check.fail_as_indistinct(*too_small)
    return CertificateInputs(
        domain=config.domain,
        goal=config.goal,
        state=learner.reported_state,
        policy=config.policy,
        actions=learner.actions,
        scale=posterior.scale,
        learned=learner.surrogate.is_learned,
        betas=state.beta_history,
        information=lambda steps: information_bound(
            posterior, steps, in_model_units(learner.surrogate, learner.actions.candidates(None))
        ),
        tolerance=float(getattr(learner.engine, "tolerance", 0.0)),
        epsilon=learner.epsilon,
        model_check=model_check,
    )


def statement_inputs(state: StudyState) -> StatementSource:
    """Return what the joint statements of a study depend on."""
    return StatementSource.of(state.learner, best_point(state.learner)[1])


def why_finished(state: StudyState, inputs: Callable[[], StatementSource]) -> str | None:
    """Return why nothing is left to find out, or None; `inputs` returns what joint statements depend on."""
    return finished(state.learner, inputs, lambda: certificate_inputs(state))


def stop_check(
    state: StudyState, limits: StatementLimits, inputs: Callable[[], StatementSource], last: Origin
) -> StopCheck:
    """Return whether a statement has reached its limit.

    Args:
        state: The state of the study.
        limits: The limits.
        inputs: Returns what joint statements depend on.
        last: The position that travel starts from; None before the first.
    """
    return check_stop(state.learner, limits, inputs, lambda: certificate_inputs(state).model_check, last)


def result(state: StudyState, reason: str | None, source: StatementSource) -> Result:
    """Return the result of a study.

    Args:
        state: The state of the study.
        reason: Why it stopped, if it did.
        source: What its joint statements depend on.
    """
    config = state.config
    learner = state.learner
    domain = config.domain
    state_in_units = learner.reported_state
    regions = state_in_units.regions
    moments = learner.moments
    index, point, mean, sd = best_point(learner)
    inputs = certificate_inputs(state)
    bounds_certificate = certify(inputs)
    measured = [action.site for action, _ in learner.observations if action.task == 0]
    return Result(
        domain=domain,
        goal=config.goal,
        potential=regions.potential,
        above=regions.above,
        below=regions.below,
        mean=moments[0],
        sd=moments[1],
        lower=state_in_units.lower,
        upper=state_in_units.upper,
        best=Best(index, domain.named(point), mean, sd, domain.label(index)),
        best_observed=_best_observed(state),
        epsilon=bounds_certificate.epsilon,
        bounds_certificate=bounds_certificate,
        model_check=inputs.model_check,
        spent=learner.spent,
        steps=len(learner.observations),
        reason=reason,
        measured=tuple(site for site in measured if site is not None),
        source=source,
        outliers=outlier_ids(state),
        excluded=learner.excluded,
        feasibility=None if learner.availability is None else learner.availability.feasibility,
        n_failed=len(learner.failures),
    )


def _best_observed(state: StudyState) -> BestObserved | None:
    found = best_observed(state.learner)
    if found is None:
        return None
    action, value = found
    own = suggestion(state, action)
    return BestObserved(action.id, own.index, own.point, value, own.label)
