"""What is known of an answer, in words and as data: the certificate that goes with a result.

| paper | here |
|---|---|
| epsilon-accuracy, Definition 3.1, from the bounds | `Certificate.accurate_to` |
| 4 (1 + delta-bar) eta_(i) after epoch i | `Certificate.epoch_epsilon` |
| beta_t of Lemma C.1 (Lemma 5.1 of Srinivas et al., 2012) | `Certificate.beta_needed` |

All that a certificate says follows from the bounds, and they hold with probability 1 - delta if the model is known and
beta was, after *every* measurement so far, at least what the lemma asks for. That is checked, measurement by
measurement: it does not matter by which rule, in which order or at what cost the measurements were chosen, and the
paper's submodularity assumption is not needed. Those matter for the bound on the cost, which is a second statement. So
there are four regimes:

theorem     both hold
outside     the bounds hold with probability 1 - delta, but something puts the cost outside of Theorem 3.1
heuristic   beta is smaller than the lemma asks for: the bounds may well hold, but no probability can be given
learned     kernel, mean or noise were fitted to the very measurements that they judge
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, pi, sqrt
from typing import Any, Literal

import numpy as np

from truvar._typing import Mask
from truvar.acquisition import Policy, TruVaR
from truvar.acquisition.confidence import RKHSBeta, TheoremBeta, lemma_beta, rkhs_beta
from truvar.algorithm.loop import State
from truvar.domain.candidates import ActionSpace
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, LevelSet

Regime = Literal["theorem", "outside", "heuristic", "learned"]

REFERENCE = 0.1  # delta against which a beta is measured that comes without one
ENOUGH = 1 + 1e-9  # rounding


@dataclass(frozen=True)
class Certificate:
    """The statement that holds now, how far it can be from exact, and on what it rests."""

    statement: str
    epsilon: float  # optimum: how far the point with the best bound can be from it; level set: twice |f - h| on M
    accurate_to: float  # Definition 3.1: every point of M is this close to the optimum; level set: the same as epsilon
    epoch_epsilon: float  # 4 (1 + slack) eta of the last epoch that was completed, in the user's units
    regime: Regime
    because: str  # what the regime means here
    delta: float | None  # the probability that the statement fails, where one can be given
    beta: float  # with which the bounds were drawn
    beta_needed: float  # by the lemma at this t and |D|; with `delta`, or 0.1 where there is none
    shortfall: float  # the largest beta_needed / beta after any measurement so far; at most 1: enough
    epoch_ends_by: float | None  # Theorem 3.1: the cumulative cost by which the present epoch is over
    cost_void: tuple[str, ...]  # what puts the cost outside of Theorem 3.1, whatever beta is
    assumes: tuple[str, ...]
    caveats: tuple[str, ...]

    def __str__(self) -> str:
        return self.statement

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what is not finite is null."""
        said = {
            key: value if not isinstance(value, float) or isfinite(value) else None for key, value in vars(self).items()
        }
        return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}


@dataclass(frozen=True)
class CertificateInputs:
    """What a certificate rests on."""

    domain: Domain
    goal: Goal
    state: State
    policy: Policy
    actions: ActionSpace
    scale: float  # the prior standard deviation
    learned: bool  # part of the model was fitted to the very measurements it judges
    betas: Sequence[float]  # with which the bounds after each measurement were drawn
    information: Callable[[int], float]  # T -> an upper bound on gamma_T, for the RKHS setting
    tolerance: float  # by how much a choice may be worse than the best, as a share
    epsilon: float  # from the bounds; infinite as long as there were too few measurements to learn the model from


def certify(grounds: CertificateInputs) -> Certificate:
    """The certificate of a state."""
    goal, state, confidence = grounds.goal, grounds.state, grounds.policy.confidence
    schedule = confidence.beta
    promised: float | None = getattr(schedule, "delta", None)
    delta = REFERENCE if promised is None else promised
    beta, needed, shortfall = _shortfall(grounds, delta)
    void = _outside(grounds)
    unsolved = not isinstance(schedule, TheoremBeta | RKHSBeta)
    regime: Regime = "theorem"
    if grounds.learned:
        regime = "learned"
    elif shortfall > ENOUGH:
        regime = "heuristic"
    elif void or unsolved:
        regime = "outside"
        void = [*void, *["beta was not solved for together with the cost of the epochs"] * unsolved]
    holds = regime in ("theorem", "outside")
    epsilon, claims = grounds.epsilon, isfinite(grounds.epsilon)
    accurate_to = accuracy(goal, state) if claims else inf
    completed = state.epoch.eta / confidence.r if claims and state.epoch.index > 1 and state.epoch.eta > 0 else inf
    implicit = (goal.fraction_of_max or 0.0) if isinstance(goal, LevelSet) else 0.0
    budget = None
    if regime == "theorem" and isinstance(schedule, TheoremBeta):
        budget = _cost_covered(state.epoch.beta, grounds.actions, delta)
    opening = {
        "learned": "If the model as learned is right and its confidence bounds hold",
        "heuristic": "If the confidence bounds hold",
    }.get(regime, f"With probability at least {1 - delta:g}")
    statement = f"{opening}, {_claim(grounds, epsilon, accurate_to)}"
    return Certificate(
        statement=statement if claims else "Nothing is claimed yet: too few measurements to learn the model from.",
        epsilon=epsilon,
        accurate_to=accurate_to,
        epoch_epsilon=4 * (1 + confidence.slack) * (1 + implicit) * completed * grounds.scale,
        regime=regime,
        because=_because(grounds, regime, void, delta, (beta, needed, shortfall)),
        delta=delta if holds else None,
        beta=beta,
        beta_needed=needed,
        shortfall=shortfall,
        epoch_ends_by=budget,
        cost_void=tuple(_outside(grounds)),
        assumes=_assumptions(grounds, regime),
        caveats=_caveats(grounds, regime, void),
    )


def accuracy(goal: Goal, state: State) -> float:
    """The epsilon of Definition 3.1 if the bounds hold: for an optimum, no point of M can be further from it.

    A point x of M can be as low as l(x) while another is as high as its u; where x is the only point left, it is the
    optimum.
    """
    if goal.level_set:
        return goal.epsilon(state.regions, state.lower, state.upper)
    m = state.regions.potential
    low, high = (state.lower[m], state.upper[m]) if goal.sign > 0 else (-state.upper[m], -state.lower[m])
    if len(high) < 2:
        return 0.0
    first, second = np.argmax(high), np.partition(high, -2)[-2]
    others = np.full(len(high), high[first])
    others[first] = second
    return max(0.0, float((others - low).max()))


# -- which regime --------------------------------------------------------------------------------------------------


def _shortfall(grounds: CertificateInputs, delta: float) -> tuple[float, float, float]:
    """Beta of the present bounds, what is asked for now, and the worst ratio so far. Where M may grow again only the
    present bounds count; what is asked for grows with t, so of a run of equal betas only the last.
    """
    betas, now = np.asarray(grounds.betas, dtype=float), len(grounds.betas)
    if now == 0:
        beta, needed = grounds.state.epoch.beta, _needed(grounds, 0, delta)
        return beta, needed, needed / beta
    last_of_run = np.flatnonzero(np.append(betas[1:] != betas[:-1], True)) + 1  # t
    if not grounds.goal.monotone:
        last_of_run = last_of_run[-1:]
    ratios = [_needed(grounds, int(t), delta) / betas[t - 1] for t in last_of_run]
    return float(betas[-1]), ratios[-1] * float(betas[-1]), max(ratios)


def _needed(grounds: CertificateInputs, t: int, delta: float) -> float:
    """What beta must be for the bounds after t measurements."""
    schedule = grounds.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        return rkhs_beta(schedule.norm, grounds.information(t + 1), t + 1, delta)
    return lemma_beta(len(grounds.domain), t, delta)


def _cost_covered(beta: float, actions: ActionSpace, delta: float) -> float:
    """The cumulative cost for which beta is the theorem's: eq. (14) solved for the sum of the C_(i)."""
    count = len(actions.candidates(None))
    return actions.cost_range[0] * sqrt(6 * delta * exp(beta / 2) / (count * pi**2))


def _outside(grounds: CertificateInputs) -> list[str]:
    """What puts the cost outside of Theorem 3.1."""
    policy, goal = grounds.policy, grounds.goal
    reasons = []
    if grounds.actions.travels:
        reasons.append("the cost depends on the last position")
    if not goal.monotone:
        reasons.append("M may grow again (non-monotone)")
    if isinstance(goal, LevelSet) and goal.fraction_of_max is not None:
        reasons.append("the threshold is implicit")
    if not isinstance(policy, TruVaR):
        reasons.append("the choices are not made by eq. (3)")
    elif policy != replace(TruVaR(), beta=policy.beta, eta=policy.eta, r=policy.r, slack=policy.slack):
        reasons.append("the choices are made by a variation of eq. (3)")
    if grounds.domain.continuous:
        reasons.append("the box is continuous")
    if grounds.tolerance > 0:
        reasons.append(f"a choice may gain up to {grounds.tolerance:.2g} less than the best, relatively")
    return reasons


# -- in words ----------------------------------------------------------------------------------------------------------


def _claim(grounds: CertificateInputs, epsilon: float, accurate_to: float) -> str:
    goal, state = grounds.goal, grounds.state
    m, above, below = (int(mask.sum()) for mask in vars(state.regions).values())
    kind = "representer point" if grounds.domain.continuous else "point"
    if isinstance(goal, LevelSet):
        least, greatest = goal.thresholds(state.lower, state.upper)
        h = f"{least:.4g}" if least == greatest else f"the threshold (between {least:.4g} and {greatest:.4g})"
        parts = [
            f"{where} h at {'all ' if count > 1 else 'the '}{_count(count, kind)} of {name}"
            for where, count, name in (("above", above, "H"), ("below", below, "L"))
            if count
        ]
        if m:
            parts.append(f"within {epsilon / 2:.4g} of h at the {_count(m, f'undecided {kind}')} (M)")
        parts = [part.replace(" h at", f" {h} at" if part is parts[0] else " it at") for part in parts]
        return f"f is {', and '.join([', '.join(parts[:-1]), parts[-1]] if parts[1:] else parts)}."
    best, seekers = ("maximum", "maximisers") if goal.sign > 0 else ("minimum", "minimisers")
    if m == 1:
        return f"the one {kind} left in M, {_place(grounds, state.regions.potential)}, is where f has its {best}."
    return (
        f"all {seekers} are among the {_count(m, f'undecided {kind}')} (M), every one of which is within "
        f"{accurate_to:.4g} of the {best}, and {_place(grounds, _safest(goal, state))} within {epsilon:.4g}."
    )


def _safest(goal: Goal, state: State) -> Mask:
    """The point of M whose guaranteed value is best."""
    worst = np.where(state.regions.potential, state.lower if goal.sign > 0 else -state.upper, -inf)
    only = np.zeros(len(worst), bool)
    only[np.argmax(worst)] = True
    return only


def _place(grounds: CertificateInputs, mask: Mask) -> str:
    point = grounds.domain.point(int(np.argmax(mask)))
    return "(" + ", ".join(f"{name} {value:.4g}" for name, value in point.items()) + ")"


def _count(count: int, kind: str) -> str:
    return f"{count} {kind}{'s' * (count != 1)}"


def _because(
    grounds: CertificateInputs, regime: Regime, void: list[str], delta: float, betas: tuple[float, float, float]
) -> str:
    beta, needed, shortfall = betas
    t, n = len(grounds.betas), len(grounds.domain)
    asked = f"{needed:.4g} that {_source(grounds)} asks for at t = {t}, |D| = {n} and delta = {delta:g}"
    if regime == "learned":
        return (
            "kernel, mean or noise were learned from these very measurements, which the theory does not cover; "
            f"beta = {beta:.4g}, against the {asked} with a known model"
        )
    if regime == "heuristic":
        earlier = (
            "" if shortfall <= needed / beta * ENOUGH else f" (at an earlier t, as little as {1 / shortfall:.2g} of it)"
        )
        return (
            f"beta = {beta:.4g} is {beta / needed:.2g} of the {asked}{earlier}: the bounds are a rule of thumb, and no "
            "probability can be given for them"
        )
    since = f"after each of the {_count(t, 'measurement')} so far" if t else "before the first measurement"
    enough = f"beta was at least what {_source(grounds)} asks for {since} (now {beta:.4g} against {needed:.4g})"
    if regime == "outside":
        return (
            f"{'; '.join(void)}: the bounds of Theorem 3.1 on the cost of an epoch and on C_epsilon do not apply. What "
            f"remains is the statement itself, which does not depend on the cost: {enough}"
        )
    return enough


def _source(grounds: CertificateInputs) -> str:
    rkhs = isinstance(grounds.policy.confidence.beta, RKHSBeta)
    return f"{'Theorem 3' if rkhs else 'Lemma 5.1'} of Srinivas et al. (2012)"


def _assumptions(grounds: CertificateInputs, regime: Regime) -> tuple[str, ...]:
    schedule = grounds.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        said = [
            f"f has an RKHS norm of at most {schedule.norm:g} prior standard deviations under this kernel",
            "the noise has mean zero and never exceeds its standard deviation",
        ]
    else:
        said = [
            "f is a draw from the Gaussian process with this kernel and mean",
            "the noise is Gaussian with these variances, independent from one measurement to the next",
        ]
    if regime == "theorem" and isinstance(schedule, TheoremBeta):
        said.append(
            "for the cost alone: the variance reduction is submodular (Assumption 3.1), and measurements are made one "
            "at a time, as suggested"
        )
    return tuple(said)


def _caveats(grounds: CertificateInputs, regime: Regime, void: list[str]) -> tuple[str, ...]:
    said = []
    if grounds.domain.continuous:
        said.append(
            f"M, H, L and the optimum are those of the {len(grounds.domain)} representer points; nothing is said about "
            "f between them"
        )
    if isinstance(grounds.policy.confidence.beta, RKHSBeta):
        said.append(
            "Theorem 3.1 bounds the cost for draws from the Gaussian process; in the RKHS setting nothing is said"
        )
    if regime in ("heuristic", "learned"):
        said += [
            f"{reason}: the paper's bound on the cost would not apply with a larger beta either" for reason in void
        ]
    return tuple(said)
