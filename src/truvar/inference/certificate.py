"""The certificate of a result: what can be stated about f at present, with which probability, and why.

It leads with the joint statements given the model (`inference.statements`): how many points are decided at once with a
probability of 95 %, and how good the answer is expected to be. The assumptions and the model check follow. Then comes
what the paper's confidence bounds say, for those who want its theorem:

| paper | here |
|---|---|
| epsilon-accuracy, Definition 3.1, from the bounds | `Certificate.accurate_to` |
| 4 (1 + delta-bar) eta_(i) after epoch i | `Certificate.epoch_epsilon` |
| beta_t of Lemma C.1 (Lemma 5.1 of Srinivas et al., 2012) | `Certificate.beta_needed` |
| M, H, L | the points that are undecided, above and below |

The bounds hold with probability 1 - delta if the model is known and beta
was, after *every* measurement so far, at least what the lemma requires. This is checked for each measurement. It does
not matter by which policy, in which order or at what cost the measurements were chosen, and the submodularity
assumption of the paper is not needed. These matter for the bound on the cost, which is a second statement. So there are
four regimes:

| regime | meaning |
|---|---|
| theorem | both statements hold |
| outside | the bounds hold with probability 1 - delta, but Theorem 3.1 does not bound the cost |
| heuristic | beta is smaller than the lemma requires, or the data contradict the model: no probability is given |
| learned | kernel, mean or noise were fitted to the measurements that they are used to interpret |

The model itself is judged by `models.diagnostics.check_model`. Where its check fails because the model is too sure of
itself, the statement opens with that. A model that is too cautious makes the bounds wider than necessary and is
mentioned among the caveats. With `RKHSBeta` f is no draw from the Gaussian process; the data contradict a function of
norm B, with noise that never exceeds its standard deviation, if r^T (K_t + Sigma_t)^-1 r > B^2 + t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, floor, inf, isfinite, pi, sqrt
from typing import Any, Literal

import numpy as np

from truvar._representation import html_card
from truvar._typing import Mask
from truvar.acquisition import Policy, TruVaR
from truvar.acquisition.confidence import RKHSBeta, TheoremBeta, lemma_beta, rkhs_beta
from truvar.algorithm.loop import State
from truvar.domain.candidates import ActionSpace
from truvar.domain.domain import Domain
from truvar.domain.goals import Bands, Goal, LevelSet
from truvar.inference.bands import band_sentence
from truvar.inference.statements import Estimate, JointStatements
from truvar.messages import format_coordinates
from truvar.models.diagnostics import ModelCheck

Regime = Literal["theorem", "outside", "heuristic", "learned"]
REGIME_SUMMARIES: dict[Regime, str] = {
    "theorem": "the bounds hold with a stated probability, and the cost is bounded",
    "outside": "the bounds hold with a stated probability; the cost is not bounded",
    "heuristic": "the bounds are a rule of thumb: no probability can be given for them",
    "learned": "the model was learned from these measurements: no probability can be given for the bounds",
}

DEFAULT_DELTA = 0.1  # delta with which a beta is compared whose schedule has none
NO_CLAIM = "Nothing is claimed yet: too few measurements to learn the model from."
CHECK_CAVEAT = "the check of the model failed"
RKHS_CAVEAT = "Theorem 3.1 bounds the cost for draws from the Gaussian process; it does not cover the RKHS setting"
COST_CAVEAT = "the paper's bound on the cost would not apply with a larger beta either"
ROUNDING = 1 + 1e-9  # largest ratio of the required beta to the one in use that counts as enough


@dataclass(frozen=True)
class Certificate:
    """Statements about f that hold at present, their accuracy, and the reasons for them.

    All but `statement`, `assumes` and `caveats` is about the confidence bounds and the paper's sets M, H and L.

    Attributes:
        statement: What is decided with 95 % probability, given the model, and how good the answer is expected to be.
        bounds_statement: What follows from the confidence bounds, in the `regime`.
        epsilon: Optimum: how far the value at the point with the best bound can be from the optimum. Level set: twice
            the largest |f - h| at undecided points.
        accurate_to: Definition 3.1: every undecided point is this close to the optimum. Level set: equal to `epsilon`.
        epoch_epsilon: 4 (1 + slack) eta of the last epoch that was completed, in the user's units.
        regime: "theorem", "outside", "heuristic" or "learned".
        because: What the regime means here.
        delta: Probability that the statement fails, where one can be given.
        beta: beta of the present bounds.
        beta_needed: beta that the lemma requires at this t and |D|, for `delta`, or for 0.1 where there is none.
        shortfall: Largest ratio of beta_needed to beta after any measurement so far; enough if at most 1.
        epoch_ends_by: Theorem 3.1: the cumulative cost by which the present epoch has ended.
        cost_void: Reasons why Theorem 3.1 does not bound the cost, whatever beta is.
        assumes: What must be true of f and the noise.
        caveats: What is not claimed.
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

    def __str__(self) -> str:
        return self.statement

    def __repr__(self) -> str:
        return f"Certificate({self.regime!r}, {self.statement!r})"

    def _repr_html_(self) -> str:
        rows = [("statement", self.statement), *(("assumes", text) for text in self.assumes)]
        rows += [("caveat", text) for text in self.statement_caveats]
        return html_card("Certificate", "", rows)

    @property
    def statement_caveats(self) -> tuple[str, ...]:
        """The caveats without those about the paper's bound on the cost and a failed model check."""
        others = (text for text in self.caveats if text != RKHS_CAVEAT and not text.endswith(COST_CAVEAT))
        return tuple(text for text in others if not text.startswith(CHECK_CAVEAT))

    @property
    def bounds_caveats(self) -> tuple[str, ...]:
        """The caveats about the cost, with the reasons in one sentence."""
        caveats = [text for text in self.caveats if text == RKHS_CAVEAT]
        if self.cost_void:
            caveats.append(f"Theorem 3.1 does not bound the cost, whatever beta is: {', '.join(self.cost_void)}")
        return tuple(caveats)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with null for numbers that are not finite."""
        return {name: _json_value(value) for name, value in vars(self).items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class CertificateInputs:
    """Everything that a certificate depends on.

    Attributes:
        domain: Domain of the study.
        goal: Goal of the study.
        state: Bounds, regions and epoch at present.
        policy: Policy that chooses the measurements.
        actions: What can be measured, at which noise and cost.
        scale: Prior standard deviation.
        learned: Whether part of the model was fitted to the measurements that it is used to interpret.
        betas: beta of the bounds after each measurement.
        information: Function T -> upper bound on gamma_T, for the RKHS setting.
        tolerance: By how much a choice may be worse than the best, as a share.
        epsilon: Accuracy from the bounds; infinite while there are too few measurements to learn the model from.
        model_check: Whether the measurements agree with the model.
    """

    domain: Domain
    goal: Goal
    state: State
    policy: Policy
    actions: ActionSpace
    scale: float
    learned: bool
    betas: Sequence[float]
    information: Callable[[int], float]
    tolerance: float
    epsilon: float
    model_check: ModelCheck


def certify(inputs: CertificateInputs) -> Certificate:
    """Return what follows from the confidence bounds; `lead_with` adds the joint statements.

    Returns:
        A certificate whose `statement` says only that the measurements contradict the model, if they do.
    """
    goal = inputs.goal
    state = inputs.state
    confidence = inputs.policy.confidence
    schedule = confidence.beta
    schedule_delta: float | None = getattr(schedule, "delta", None)
    delta = DEFAULT_DELTA if schedule_delta is None else schedule_delta
    beta, needed, shortfall = _shortfall(inputs, delta)
    cost_void = _cost_void(inputs)
    reasons = list(cost_void)
    regime: Regime = "theorem"
    solved_with_cost = isinstance(schedule, TheoremBeta | RKHSBeta)
    if inputs.learned:
        regime = "learned"
    elif shortfall > ROUNDING or _is_contradicted(inputs):
        regime = "heuristic"
    elif reasons or not solved_with_cost:
        regime = "outside"
        if not solved_with_cost:
            reasons.append("beta was not solved for together with the cost of the epochs")
    has_claim = isfinite(inputs.epsilon)
    accurate_to = accuracy(goal, state) if has_claim else inf
    eta_completed = inf
    if has_claim and state.epoch.index > 1 and state.epoch.eta > 0:
        eta_completed = state.epoch.eta / confidence.r
    implicit = 0.0
    if isinstance(goal, LevelSet):
        implicit = goal.fraction_of_max or goal.fraction_of_min or 0.0
    epoch_ends_by = None
    if regime == "theorem" and isinstance(schedule, TheoremBeta):
        epoch_ends_by = _cost_covered(state.epoch.beta, inputs.actions, delta)
    statement = NO_CLAIM
    if has_claim:
        statement = f"{_condition(regime, delta)}, {_claim(inputs, accurate_to)}"
    contradiction = ""
    if has_claim and _is_contradicted(inputs):
        contradiction = f"The measurements contradict the model: {_lowered(inputs.model_check.finding)}."
    return Certificate(
        statement=contradiction,
        bounds_statement=statement,
        epsilon=inputs.epsilon,
        accurate_to=accurate_to,
        epoch_epsilon=4 * (1 + confidence.slack) * (1 + implicit) * eta_completed * inputs.scale,
        regime=regime,
        because=_because(inputs, regime, reasons, delta, (beta, needed, shortfall)),
        delta=delta if regime in ("theorem", "outside") else None,
        beta=beta,
        beta_needed=needed,
        shortfall=shortfall,
        epoch_ends_by=epoch_ends_by,
        cost_void=tuple(cost_void),
        assumes=_assumptions(inputs, regime),
        caveats=_caveats(inputs, regime, reasons),
    )


def lead_with(
    certificate: Certificate, statements: JointStatements, domain: Domain, best: Mapping[str, float]
) -> Certificate:
    """Return a certificate that leads with the joint statements.

    Args:
        certificate: What follows from the confidence bounds.
        statements: The joint statements.
        domain: Domain of the study.
        best: The recommended point, by column.
    """
    if certificate.bounds_statement == NO_CLAIM:
        return replace(certificate, statement=NO_CLAIM)
    if not statements.is_known:
        return replace(certificate, statement="Nothing is claimed yet: there is no measurement.")
    parts = [certificate.statement] if certificate.statement else []
    if isinstance(statements.goal, Bands):
        score = _estimate(statements.expected_f1, format_share)
        parts.append(band_sentence(statements, statements.goal, _kind(domain), score))
    elif isinstance(statements.goal, LevelSet):
        parts.append(_level_set_sentence(statements, statements.goal, domain))
    else:
        parts.append(_optimum_sentence(statements, domain, best))
    caveats = certificate.caveats
    if statements.n_drawn < statements.n_relevant:
        caveats += (
            f"the probability for all points at once is estimated at {statements.n_drawn} of the "
            f"{statements.n_relevant} points that are not certain by themselves",
        )
    return replace(certificate, statement=" ".join(parts), caveats=caveats)


def accuracy(goal: Goal, state: State) -> float:
    """Return the epsilon of Definition 3.1 if the bounds hold: no undecided point can be further from the optimum.

    An undecided point x can be as low as l(x) while another is as high as its u; where x is the only one left, it is
    the optimum.
    """
    if goal.level_set:
        return goal.epsilon(state.regions, state.lower, state.upper)
    m = state.regions.potential
    low, high = (state.lower[m], state.upper[m]) if goal.sign > 0 else (-state.upper[m], -state.lower[m])
    if len(high) < 2:
        return 0.0
    first = np.argmax(high)
    best_of_others = np.full(len(high), high[first])
    best_of_others[first] = np.partition(high, -2)[-2]
    return max(0.0, float((best_of_others - low).max()))


# -- regime ------------------------------------------------------------------------------------------------------------


def _shortfall(inputs: CertificateInputs, delta: float) -> tuple[float, float, float]:
    """Return beta of the present bounds, the one required now, and the worst ratio of the two so far.

    Where M may grow again only the present bounds count. The required beta grows with t, so that of a run of equal
    betas only the last one is compared.
    """
    betas = np.asarray(inputs.betas, dtype=float)
    if len(betas) == 0:
        beta = inputs.state.epoch.beta
        needed = _needed(inputs, 0, delta)
        return beta, needed, needed / beta
    last_of_run = np.flatnonzero(np.append(betas[1:] != betas[:-1], True)) + 1  # t
    if not inputs.goal.monotone:
        last_of_run = last_of_run[-1:]
    ratios = [_needed(inputs, int(t), delta) / betas[t - 1] for t in last_of_run]
    return float(betas[-1]), ratios[-1] * float(betas[-1]), max(ratios)


def _needed(inputs: CertificateInputs, t: int, delta: float) -> float:
    """Return the beta that is required for the bounds after t measurements."""
    schedule = inputs.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        return rkhs_beta(schedule.norm, inputs.information(t + 1), t + 1, delta)
    return lemma_beta(len(inputs.domain), t, delta)


def _is_contradicted(inputs: CertificateInputs) -> bool:
    """Return whether the measurements are further from the model than what the certificate assumes allows."""
    check = inputs.model_check
    if not check.is_contradiction:
        return False
    schedule = inputs.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        return check.misfit > schedule.norm**2 + len(check.ids)
    return True


def _cost_covered(beta: float, actions: ActionSpace, delta: float) -> float:
    """Return the cumulative cost for which beta is the theorem's: eq. (14) solved for the sum of the C_(i)."""
    count = len(actions.candidates(None))
    return actions.cost_range[0] * sqrt(6 * delta * exp(beta / 2) / (count * pi**2))


def _cost_void(inputs: CertificateInputs) -> list[str]:
    """Return the reasons why Theorem 3.1 does not bound the cost, whatever beta is."""
    policy = inputs.policy
    goal = inputs.goal
    reasons = []
    if inputs.actions.travels:
        reasons.append("the cost depends on the last position")
    if not goal.monotone:
        reasons.append("the set of undecided points M may grow again (non-monotone)")
    if isinstance(goal, LevelSet) and goal.threshold is None:
        reasons.append("the threshold is implicit")
    if isinstance(goal, Bands):
        reasons.append("there are several thresholds")
    if not isinstance(policy, TruVaR):
        reasons.append("the choices are not made by eq. (3)")
    elif policy != replace(TruVaR(), beta=policy.beta, eta=policy.eta, r=policy.r, slack=policy.slack):
        reasons.append("the choices are made by a variation of eq. (3)")
    if inputs.domain.continuous:
        reasons.append("the domain is continuous")
    if inputs.tolerance > 0:
        reasons.append(f"a choice may gain up to {inputs.tolerance:.2g} less than the best, relatively")
    return reasons


# -- sentences ---------------------------------------------------------------------------------------------------------


def _level_set_sentence(statements: JointStatements, goal: LevelSet, domain: Domain) -> str:
    """Return what is decided about a level set, and the expected F1 score."""
    classes = statements.classify()
    n_above = int(classes.above.sum())
    n_below = int(classes.below.sum())
    n_undecided = int(classes.undecided.sum())
    kind = _kind(domain)
    threshold = f"{100 * (goal.fraction_of_max or goal.fraction_of_min or 0.0):g} % of the {goal.optimum_name}"
    if goal.threshold is not None:
        threshold = f"{goal.threshold:g}"
    parts = []
    if n_above:
        exceed = "exceed" if n_above > 1 else "exceeds"
        parts.append(f"{_all(n_above, kind)} shown as above {exceed} {threshold}")
    if n_below:
        do = "do" if n_below > 1 else "does"
        what = "not" if n_above else f"not exceed {threshold}"
        parts.append(f"{_all(n_below, kind)} shown as below {do} {what}")
    opening = f"With {100 * classes.confidence:g} % probability, given the model"
    sentence = f"{opening}, nothing is decided: all {_count(n_undecided, kind)} are undecided."
    if parts and n_undecided:
        sentence = f"{opening}: {' and '.join(parts)}; {n_undecided} {'is' if n_undecided == 1 else 'are'} undecided."
    elif parts:
        sentence = f"{opening}: {' and '.join(parts)}; none is undecided."
    return f"{sentence} Expected F1 {_estimate(statements.expected_f1, format_share)}."


def _optimum_sentence(statements: JointStatements, domain: Domain, best: Mapping[str, float]) -> str:
    """Return where the optimum can be, and the expected regret of the recommended point."""
    classes = statements.classify()
    kind = _kind(domain)
    optimum = "maximum" if statements.goal.sign > 0 else "minimum"
    candidates = np.flatnonzero(classes.undecided)
    opening = f"With {100 * classes.confidence:g} % probability, given the model,"
    where = f"at one of {_count(len(candidates), kind)}"
    if len(candidates) == 1:
        where = f"at ({format_coordinates(domain.point(int(candidates[0])), digits=4)})"
    if domain.continuous:
        where = f"nearest to {'one of ' * (len(candidates) > 1)}{_count(len(candidates), kind)}"
    regret = _estimate(statements.expected_regret, lambda value: f"{value:.3g}")
    recommended = f"({format_coordinates(best, digits=4)})"
    return (
        f"{opening} the {optimum} is {where}. The value at the recommended point {recommended} is expected to be "
        f"{regret} from it."
    )


def _estimate(estimate: Estimate | None, text_of: Callable[[float], str]) -> str:
    """Return mean and interval: "0.94 (0.90 to 0.97)"."""
    if estimate is None:
        return "unknown"
    return f"{text_of(estimate.mean)} ({text_of(estimate.low)} to {text_of(estimate.high)})"


def format_share(value: float) -> str:
    """Return a number between 0 and 1 with two digits; one just below 1 with three, rounded down."""
    if value < 0.995 or value >= 1.0:
        return f"{value:.2f}"
    return f"{floor(1000 * value) / 1000:.3f}"


def _kind(domain: Domain) -> str:
    return "representer point" if domain.continuous else "point"


def _condition(regime: Regime, delta: float) -> str:
    """Return the opening of the statement: under which condition, or with which probability, it holds."""
    if regime == "learned":
        return "If the model as learned is right and its confidence bounds hold"
    if regime == "heuristic":
        return "If the confidence bounds hold"
    return f"With probability at least {1 - delta:g}"


def _claim(inputs: CertificateInputs, accurate_to: float) -> str:
    kind = _kind(inputs.domain)
    if isinstance(inputs.goal, Bands):
        n_undecided = int(inputs.state.regions.potential.sum())
        n_decided = len(inputs.domain) - n_undecided
        return (
            f"f lies in one band at each of {_count(n_decided, f'decided {kind}')} (H, L), and within "
            f"{inputs.epsilon / 2:.4g} of a threshold at the {_count(n_undecided, f'undecided {kind}')} (M)."
        )
    if isinstance(inputs.goal, LevelSet):
        return _level_set_claim(inputs, inputs.goal, kind)
    return _optimum_claim(inputs, kind, accurate_to)


def _level_set_claim(inputs: CertificateInputs, goal: LevelSet, kind: str) -> str:
    state = inputs.state
    n_above = int(state.regions.above.sum())
    n_below = int(state.regions.below.sum())
    n_undecided = int(state.regions.potential.sum())
    least, greatest = goal.thresholds(state.lower, state.upper)
    threshold = f"{least:.4g}"
    if least != greatest:
        threshold = f"the threshold (between {least:.4g} and {greatest:.4g})"
    parts: list[str] = []
    if n_above:
        parts.append(f"above {threshold} at {_all(n_above, kind)} classified as above (H)")
    if n_below:
        parts.append(f"below {'it' if parts else threshold} at {_all(n_below, kind)} classified as below (L)")
    if n_undecided:
        name = "it" if parts else threshold
        count = _count(n_undecided, f"undecided {kind}")
        parts.append(f"within {inputs.epsilon / 2:.4g} of {name} at the {count} (M)")
    if len(parts) == 1:
        return f"f is {parts[0]}."
    return f"f is {', '.join(parts[:-1])}, and {parts[-1]}."


def _optimum_claim(inputs: CertificateInputs, kind: str, accurate_to: float) -> str:
    state = inputs.state
    n_undecided = int(state.regions.potential.sum())
    optimum, optimisers = ("maximum", "maximisers") if inputs.goal.sign > 0 else ("minimum", "minimisers")
    if n_undecided == 1:
        only = _point(inputs, state.regions.potential)
        return f"f has its {optimum} at the only undecided {kind} (M), {only}."
    return (
        f"all {optimisers} are among the {_count(n_undecided, f'undecided {kind}')} (M), every one of which is within "
        f"{accurate_to:.4g} of the {optimum}, and {_point(inputs, _best_bounded(inputs.goal, state))} within "
        f"{inputs.epsilon:.4g}."
    )


def _best_bounded(goal: Goal, state: State) -> Mask:
    """Return the undecided point whose worst possible value is best, as a mask."""
    worst = np.where(state.regions.potential, state.lower if goal.sign > 0 else -state.upper, -inf)
    mask = np.zeros(len(worst), bool)
    mask[np.argmax(worst)] = True
    return mask


def _point(inputs: CertificateInputs, mask: Mask) -> str:
    point = inputs.domain.point(int(np.argmax(mask)))
    return f"({format_coordinates(point, digits=4)})"


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _all(count: int, kind: str) -> str:
    return f"{'all' if count > 1 else 'the'} {_count(count, kind)}"


def _count(count: int, kind: str) -> str:
    return f"{count} {kind}{'s' * (count != 1)}"


def _because(
    inputs: CertificateInputs, regime: Regime, reasons: list[str], delta: float, betas: tuple[float, float, float]
) -> str:
    """Return what the regime means here.

    Args:
        inputs: Inputs of the certificate.
        regime: The regime.
        reasons: Why Theorem 3.1 does not bound the cost.
        delta: Probability with which the required beta is computed.
        betas: Result of `_shortfall`.
    """
    beta, needed, shortfall = betas
    t = len(inputs.betas)
    required = (
        f"{needed:.4g} that {_source(inputs)} requires at t = {t}, |D| = {len(inputs.domain)} and delta = {delta:g}"
    )
    if regime == "learned":
        return (
            "kernel, mean or noise were learned from the same measurements, which the theory does not cover; "
            f"beta = {beta:.4g}, against the {required} with a known model"
        )
    since = f"after each of the {_count(t, 'measurement')} so far" if t else "before the first measurement"
    enough = f"beta was at least what {_source(inputs)} requires {since} (now {beta:.4g} against {needed:.4g})"
    if regime == "heuristic" and shortfall <= ROUNDING:
        return f"the measurements contradict the model, so that no probability can be given for its bounds; {enough}"
    if regime == "heuristic":
        earlier = ""
        if shortfall > needed / beta * ROUNDING:
            earlier = f" (at an earlier t, as little as {1 / shortfall:.2g} of it)"
        return (
            f"beta = {beta:.4g} is {beta / needed:.2g} of the {required}{earlier}: the bounds are a rule of thumb, and "
            "no probability can be given for them"
        )
    if regime == "outside":
        return (
            f"{'; '.join(reasons)}: the bounds of Theorem 3.1 on the cost of an epoch and on C_epsilon do not apply. "
            f"The statement itself does not depend on the cost: {enough}"
        )
    return enough


def _source(inputs: CertificateInputs) -> str:
    rkhs = isinstance(inputs.policy.confidence.beta, RKHSBeta)
    return f"{'Theorem 3' if rkhs else 'Lemma 5.1'} of Srinivas et al. (2012)"


def _assumptions(inputs: CertificateInputs, regime: Regime) -> tuple[str, ...]:
    schedule = inputs.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        assumptions = [
            f"f has an RKHS norm of at most {schedule.norm:g} prior standard deviations under this kernel",
            "the noise has mean zero and never exceeds its standard deviation",
        ]
    else:
        assumptions = [
            "f is a draw from the Gaussian process with this kernel and mean",
            "the noise is Gaussian with these variances, independent from one measurement to the next",
        ]
    if regime == "theorem" and isinstance(schedule, TheoremBeta):
        assumptions.append(
            "for the cost alone: the variance reduction is submodular (Assumption 3.1), and measurements are made one "
            "at a time, as suggested"
        )
    return tuple(assumptions)


def _caveats(inputs: CertificateInputs, regime: Regime, reasons: list[str]) -> tuple[str, ...]:
    caveats = []
    if not inputs.model_check.ok and not _is_contradicted(inputs):
        caveats.append(f"{CHECK_CAVEAT}: {_lowered(inputs.model_check.finding)}")
    if inputs.domain.continuous:
        caveats.append(
            f"the statement is about the {len(inputs.domain)} representer points; nothing is claimed about f between "
            "them"
        )
    if isinstance(inputs.policy.confidence.beta, RKHSBeta):
        caveats.append(RKHS_CAVEAT)
    if regime in ("heuristic", "learned"):
        caveats += [f"{reason}: {COST_CAVEAT}" for reason in reasons]
    return tuple(caveats)
