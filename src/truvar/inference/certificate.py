"""The certificate of a result: what can be stated about f at present, with which probability, and why.

It leads with what is stated given the model (`inference.statements`): how many points have a class,
how many of them are wrong at most, and how good the answer is expected to be. The assumptions and
the model check follow. Then comes what the paper's confidence bounds say, for those who want its
theorem:

| paper | here |
|---|---|
| epsilon-accuracy, Definition 3.1, from the bounds | `Certificate.accurate_to` |
| 4 (1 + delta-bar) eta_(i) after epoch i | `Certificate.epoch_epsilon` |
| beta_t of Lemma C.1 (Lemma 5.1 of Srinivas et al., 2012) | `Certificate.beta_needed` |
| M, H, L | the points that are undecided, above and below |

`regime` says when the bounds hold with a stated probability.

The model itself is judged by `models.diagnostics.check_model`. If its check fails because the
model is too sure of itself, the statement opens with that. A model that is too cautious makes the
bounds wider than necessary and is mentioned among the caveats. With `RKHSBeta` f is no draw from
the Gaussian process; the data contradict a function of norm B, with noise that never exceeds its
standard deviation, if r^T (K_t + Sigma_t)^-1 r > B^2 + t.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

from truvar._representation import html_card
from truvar.acquisition.confidence import TheoremBeta
from truvar.domain.domain import Domain
from truvar.inference._goals import inference_of
from truvar.inference.certificate_text import (
    CHECK_CAVEAT,
    COST_CAVEAT,
    RKHS_CAVEAT,
    assumptions_of,
    caveats_of,
    condition,
    explanation,
    lowered,
)
from truvar.inference.inputs import CertificateInputs
from truvar.inference.regime import Regime, compare_betas, cost_covered, find_cost_void, find_regime
from truvar.inference.statements import JointStatements

_DEFAULT_DELTA = 0.1  # delta with which a beta is compared whose schedule has none
_NO_CLAIM = "Nothing is claimed yet: too few measurements to learn the model from."


@dataclass(frozen=True)
class Certificate:
    """Statements about f that hold at present, their accuracy, and the reasons for them.

    All but `statement`, `further`, `assumes` and `caveats` is about the confidence bounds and the paper's sets
    M, H and L.

    Attributes:
        statement: Level set: the points that have a class with a probability of 95 % each, given
            the model, and how many of them are wrong. Optimum: the points that hold it with a
            probability of 95 %. Both: how good the answer is expected to be.
        bounds_statement: What follows from the confidence bounds, in the `regime`.
        epsilon: Optimum: how far the value at the point with the best bound can be from the
            optimum. Level set: twice the largest |f - h| at undecided points.
        accurate_to: Definition 3.1: every undecided point is this close to the optimum. Level set:
            equal to `epsilon`.
        epoch_epsilon: 4 (1 + slack) eta of the last epoch that was completed, in the user's units.
        regime: "theorem", "outside", "heuristic" or "learned".
        because: What the regime means here.
        delta: Probability that the statement fails, where one can be given.
        beta: beta of the present bounds.
        beta_needed: beta that the lemma requires at this t and |D|, for `delta`, or for 0.1 where
            there is none.
        shortfall: Largest ratio of beta_needed to beta after any measurement so far; enough if at
            most 1.
        epoch_ends_by: Theorem 3.1: the cumulative cost by which the present epoch has ended.
        cost_void: Reasons why Theorem 3.1 does not bound the cost, whatever beta is.
        assumes: What must be true of f and the noise.
        caveats: What is not claimed.
        further: Level set: the share of the points above, and what holds for all points shown
            jointly.
    """

    statement: str
    bounds_statement: str
    epsilon: float
    accurate_to: float
    epoch_epsilon: float
    regime: Regime
    because: str
    delta: float | None
    beta: float
    beta_needed: float
    shortfall: float
    epoch_ends_by: float | None
    cost_void: tuple[str, ...]
    assumes: tuple[str, ...]
    caveats: tuple[str, ...]
    further: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.statement

    def __repr__(self) -> str:
        return f"Certificate({self.regime!r}, {self.statement!r})"

    def _repr_html_(self) -> str:
        rows = [("statement", self.statement), *(("further", text) for text in self.further)]
        rows += [("assumes", text) for text in self.assumes]
        rows += [("caveat", text) for text in self.statement_caveats]
        return html_card("Certificate", "", rows)

    @property
    def statement_caveats(self) -> tuple[str, ...]:
        """The caveats without those about the paper's bound on the cost and a failed model check."""
        others = (
            text for text in self.caveats if text != RKHS_CAVEAT and not text.endswith(COST_CAVEAT)
        )
        return tuple(text for text in others if not text.startswith(CHECK_CAVEAT))

    @property
    def bounds_caveats(self) -> tuple[str, ...]:
        """The caveats about the cost, with the reasons in one sentence."""
        caveats = [text for text in self.caveats if text == RKHS_CAVEAT]
        if self.cost_void:
            caveats.append(
                "Theorem 3.1 does not bound the cost, whatever beta is: "
                f"{', '.join(self.cost_void)}"
            )
        return tuple(caveats)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with null for numbers that are not finite."""
        return {name: _json_value(value) for name, value in vars(self).items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value


def certify(inputs: CertificateInputs) -> Certificate:
    """Return what follows from the confidence bounds; `with_joint_statements` adds the joint statements.

    Returns:
        A certificate whose `statement` says only that the measurements contradict the model, if
        they do.
    """
    schedule = inputs.policy.confidence.beta
    schedule_delta: float | None = getattr(schedule, "delta", None)
    delta = _DEFAULT_DELTA if schedule_delta is None else schedule_delta
    betas = compare_betas(inputs, delta)
    cost_void = find_cost_void(inputs)
    regime, reasons = find_regime(inputs, betas, cost_void)
    epoch_ends_by = None
    if regime == "theorem" and isinstance(schedule, TheoremBeta):
        epoch_ends_by = cost_covered(inputs.state.epoch.beta, inputs.actions, delta)
    contradiction = ""
    bounds_statement = _NO_CLAIM
    accurate_to = inf
    if inputs.fitted:
        if isfinite(inputs.epsilon):
            accurate_to = inputs.goal.accuracy_of_undecided(
                inputs.state.regions, inputs.state.lower, inputs.state.upper
            )
        claim = inference_of(inputs.goal).claim(inputs, accurate_to)
        bounds_statement = f"{condition(regime, delta)}, {claim}"
        if inputs.is_contradicted:
            contradiction = (
                f"The measurements contradict the model: {lowered(inputs.model_check.finding)}."
            )
    return Certificate(
        statement=contradiction,
        bounds_statement=bounds_statement,
        epsilon=inputs.epsilon,
        accurate_to=accurate_to,
        epoch_epsilon=_epoch_epsilon(inputs),
        regime=regime,
        because=explanation(inputs, regime, reasons, delta, betas),
        delta=delta if regime in ("theorem", "outside") else None,
        beta=betas.beta,
        beta_needed=betas.needed,
        shortfall=betas.shortfall,
        epoch_ends_by=epoch_ends_by,
        cost_void=tuple(cost_void),
        assumes=assumptions_of(inputs, regime),
        caveats=caveats_of(inputs, regime, reasons),
    )


def _epoch_epsilon(inputs: CertificateInputs) -> float:
    """Return `Certificate.epoch_epsilon`: infinite before the first epoch has ended."""
    epoch = inputs.state.epoch
    confidence = inputs.policy.confidence
    eta_completed = inf
    if isfinite(inputs.epsilon) and epoch.index > 1 and epoch.eta > 0:
        eta_completed = epoch.eta / confidence.r
    implicit = inputs.goal.threshold_share
    return 4 * (1 + confidence.slack) * (1 + implicit) * eta_completed * inputs.scale


def with_joint_statements(
    certificate: Certificate,
    statements: JointStatements,
    domain: Domain,
    best: Mapping[str, float],
    cause: str | None = None,
) -> Certificate:
    """Return a certificate that leads with the joint statements.

    Args:
        certificate: What follows from the confidence bounds.
        statements: The joint statements.
        domain: Domain of the study.
        best: The recommended point, by column.
        cause: What keeps the most points undecided, a sentence; None: nothing in particular.
    """
    if certificate.bounds_statement == _NO_CLAIM:
        return replace(certificate, statement=_NO_CLAIM)
    if not statements.is_known:
        return replace(certificate, statement="Nothing is claimed yet: there is no measurement.")
    parts = [certificate.statement] if certificate.statement else []
    goal_inference = inference_of(statements.goal)
    parts.append(goal_inference.sentence(statements, domain, best))
    further = goal_inference.further(statements, domain)
    # A model that is learned counts its causes also where a value contradicts the others.
    is_trusted = not certificate.statement or certificate.regime == "learned"
    if cause is not None and is_trusted:
        parts.append(cause)
    caveats = certificate.caveats
    if statements.n_drawn < statements.n_relevant:
        caveats += (
            f"the joint probability for all points is estimated at {statements.n_drawn} of the "
            f"{statements.n_relevant} points that are not certain marginally",
        )
    return replace(certificate, statement=" ".join(parts), caveats=caveats, further=further)
