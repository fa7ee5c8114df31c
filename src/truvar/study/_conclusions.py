"""Conclusions from the state of a study: finished or not, certificate, and result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truvar.algorithm.covering import information_bound
from truvar.algorithm.recommendation import best_observed, best_point
from truvar.algorithm.repeats import closed_reason
from truvar.algorithm.selection import in_model_units, stops_at_sets
from truvar.domain.action import Action
from truvar.domain.vehicles import Origin
from truvar.inference._several import statement_source
from truvar.inference.certificate import certify
from truvar.inference.inputs import CertificateInputs, reports_average
from truvar.inference.joint import StatementSource
from truvar.inference.limits import StatementLimits, StopCheck, check_stop
from truvar.inference.stopping import finished
from truvar.models.diagnostics import ModelCheck
from truvar.study._plausibility import indistinct, without_leading_outlier
from truvar.study._several_properties import quantity_estimates
from truvar.study.outliers import outlier_ids
from truvar.study.result import Best, BestObserved, Result
from truvar.study.suggestion import suggestion_of

if TYPE_CHECKING:
    from truvar.study._state import StudyState


class Conclusions:
    """Statements that follow from the state of a study, computed once after each update.

    Args:
        state: The state, which changes.
    """

    def __init__(self, state: StudyState) -> None:
        self._state = state
        self._finished: tuple[int, str | None] = (
            -1,
            None,
        )  # update for which it is known whether it is finished
        self._inputs: tuple[int, StatementSource | None] = (
            -1,
            None,
        )  # update that the inputs belong to

    @property
    def finished(self) -> str | None:
        """Why nothing is left to find out; None as long as something is."""
        state = self._state
        update, reason = self._finished
        if update != state.n_updates:
            reason = finished(
                state.learner, self.statement_inputs, lambda: certificate_inputs(state)
            )
            self._finished = (state.n_updates, reason)
        return reason

    @property
    def exhausted(self) -> str | None:
        """Why the policy suggests nothing more in an unfinished study; None as long as it does."""
        if self.finished is not None:
            return None
        learner = self._state.learner
        if stops_at_sets(learner):
            return (
                "the policy's own bounds, a rule of thumb, leave nothing undecided, which is not "
                "enough to call the "
                'study finished; policy "auto" continues'
            )
        closed = None if self._state.pending else closed_reason(learner)
        if closed is not None:
            return closed
        if not self._state.exhausted:
            return None
        if learner.excluded is not None and learner.excluded.all():
            return "every place is excluded or failed; allow some of them to continue"
        return "the policy sees nothing more to gain"

    def statement_inputs(self) -> StatementSource:
        """Return what joint statements depend on; they are computed once for all who ask."""
        update, inputs = self._inputs
        if inputs is None or update != self._state.n_updates:
            inputs = statement_inputs(self._state)
            self._inputs = (self._state.n_updates, inputs)
        return inputs

    def check_stop(self, limits: StatementLimits, last: Origin) -> StopCheck:
        """Return whether a statement has reached its limit.

        Args:
            limits: The limits.
            last: The position that travel starts from; None before the first.
        """
        state = self._state
        return check_stop(
            state.learner,
            limits,
            self.statement_inputs,
            lambda: certificate_inputs(state).model_check,
            last,
        )

    def result(self, stop_reason: str | None) -> Result:
        """Return the result of the study.

        Args:
            stop_reason: Why its last run stopped, if it did.
        """
        state = self._state
        config = state.config
        learner = state.learner
        domain = config.domain
        state_in_units = learner.reported_state
        regions = state_in_units.regions
        source = self.statement_inputs()
        is_averaged = reports_average(learner.surrogate)
        moments = source.user_moments() if is_averaged else learner.moments
        index, point, mean, sd = best_point(learner)
        if index is not None:
            mean, sd = (float(moment[index]) for moment in moments)
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
            reason=self.finished or self.exhausted or stop_reason,
            measured=tuple(site for site in measured if site is not None),
            source=source,
            outliers=outlier_ids(state),
            excluded=learner.excluded,
            feasibility=None if learner.availability is None else learner.availability.feasibility,
            n_failed=len(learner.failures),
            quantities=quantity_estimates(learner, source),
        )


def certificate_inputs(state: StudyState) -> CertificateInputs:
    """Return what the certificate of a study depends on."""
    config = state.config
    learner = state.learner
    posterior = learner.posterior
    model_check = _model_check(state)
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
        fitted=learner.is_fitted,
        epsilon=learner.epsilon,
        model_check=model_check,
    )


def _model_check(state: StudyState) -> ModelCheck:
    """Return the check of the model; of several quantities, that of the first that fails."""
    checks = []
    for name, learner in state.learner.learners.items():
        check: ModelCheck = learner.surrogate.check()
        too_small = indistinct(learner.surrogate)
        if too_small is not None:
            check = check.fail_as_indistinct(*too_small)
        if name is not None and len(state.learner.learners) > 1 and not check.ok:
            check = replace(check, finding=f"{name}: {check.finding}")
        checks.append(check)
    return next((check for check in checks if not check.ok), checks[0])


def statement_inputs(state: StudyState) -> StatementSource:
    """Return what the joint statements of a study depend on."""
    return statement_source(state.learner, best_point(state.learner)[1])


def _best_observed(state: StudyState) -> BestObserved | None:
    found = best_observed(state.learner)
    if found is None:
        return None
    best = _as_best_observed(state, *found)
    plausible = without_leading_outlier(state.learner, *found)
    if plausible is None:
        return best
    return replace(best, plausible=_as_best_observed(state, *plausible))


def _as_best_observed(state: StudyState, action: Action, value: float) -> BestObserved:
    own = suggestion_of(state, action)
    return BestObserved(action.id, own.index, own.point, value, own.label)
