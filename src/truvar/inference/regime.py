"""The regime of a certificate: whether a probability can be given for the bounds, and whether the cost is bounded.

The bounds hold with probability 1 - delta if the model is known and beta
was, after *every* measurement so far, at least what the lemma requires. This is checked for each
measurement. It does not matter by which policy, in which order or at what cost the measurements
were chosen, and the submodularity assumption of the paper is not needed. These matter for the bound
on the cost, which is a second statement. So there are four regimes:

| regime | meaning |
|---|---|
| theorem | both statements hold |
| outside | the bounds hold with probability 1 - delta, but Theorem 3.1 does not bound the cost |
| heuristic | beta is smaller than the lemma requires, or the data contradict the model: no probability is given |
| learned | kernel, mean or noise were fitted to the measurements that they are used to interpret |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, pi, sqrt
from typing import Literal, NamedTuple

import numpy as np

from truvar.acquisition import TruVaR
from truvar.acquisition.confidence import RKHSBeta, TheoremBeta, lemma_beta, rkhs_beta
from truvar.domain.candidates import ActionSpace
from truvar.inference.inputs import CertificateInputs

Regime = Literal["theorem", "outside", "heuristic", "learned"]
REGIME_SUMMARIES: dict[Regime, str] = {
    "theorem": "the bounds hold with a stated probability, and the cost is bounded",
    "outside": "the bounds hold with a stated probability; the cost is not bounded",
    "heuristic": "the bounds are a rule of thumb: no probability can be given for them",
    "learned": "the model was learned from these measurements: no probability can be given for the bounds",
}
_MAX_BETA_RATIO = (
    1 + 1e-9
)  # largest ratio of the required beta to the one in use that counts as enough


class BetaComparison(NamedTuple):
    """beta against what the lemma requires.

    Attributes:
        beta: beta of the present bounds.
        needed: beta that is required now.
        shortfall: Largest ratio of the required beta to the one in use, after any measurement so
            far.
    """

    beta: float
    needed: float
    shortfall: float

    @property
    def is_enough(self) -> bool:
        """Whether beta never fell short."""
        return self.shortfall <= _MAX_BETA_RATIO

    @property
    def was_worse(self) -> bool:
        """Whether beta fell short by more at an earlier time."""
        return self.shortfall > self.needed / self.beta * _MAX_BETA_RATIO


def find_regime(
    inputs: CertificateInputs, betas: BetaComparison, cost_void: Sequence[str]
) -> tuple[Regime, list[str]]:
    """Return the regime, and the reasons why Theorem 3.1 does not bound the cost in it."""
    reasons = list(cost_void)
    if inputs.learned:
        return "learned", reasons
    if not betas.is_enough or inputs.is_contradicted:
        return "heuristic", reasons
    if not isinstance(inputs.policy.confidence.beta, TheoremBeta | RKHSBeta):
        reasons.append("beta was not solved for together with the cost of the epochs")
    return ("outside" if reasons else "theorem"), reasons


def compare_betas(inputs: CertificateInputs, delta: float) -> BetaComparison:
    """Compare beta with what is required for the bounds, now and after each measurement.

    Where M may grow again only the present bounds count. The required beta grows with t, so that of
    a run of equal betas only the last one is compared.
    """
    betas = np.asarray(inputs.betas, dtype=float)
    if len(betas) == 0:
        beta = inputs.state.epoch.beta
        needed = _needed(inputs, 0, delta)
        return BetaComparison(beta, needed, needed / beta)
    last_of_run = np.flatnonzero(np.append(betas[1:] != betas[:-1], True)) + 1  # t
    if not inputs.goal.monotone:
        last_of_run = last_of_run[-1:]
    ratios = [_needed(inputs, int(t), delta) / betas[t - 1] for t in last_of_run]
    return BetaComparison(float(betas[-1]), ratios[-1] * float(betas[-1]), max(ratios))


def _needed(inputs: CertificateInputs, t: int, delta: float) -> float:
    """Return the beta that is required for the bounds after t measurements."""
    schedule = inputs.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        return rkhs_beta(schedule.norm, inputs.information(t + 1), t + 1, delta)
    return lemma_beta(len(inputs.domain), t, delta)


def cost_covered(beta: float, actions: ActionSpace, delta: float) -> float:
    """Return the cumulative cost for which beta is the theorem's: eq. (14) solved for the sum of the C_(i)."""
    count = len(actions.candidates(None))
    return actions.cost_range[0] * sqrt(6 * delta * exp(beta / 2) / (count * pi**2))


def find_cost_void(inputs: CertificateInputs) -> list[str]:
    """Return the reasons why Theorem 3.1 does not bound the cost, whatever beta is."""
    policy = inputs.policy
    goal = inputs.goal
    reasons = []
    if inputs.actions.travels:
        reasons.append("the cost depends on the last position")
    if inputs.actions.learns_cost:
        reasons.append("the costs are learned")
    if not goal.monotone:
        reasons.append("the set of undecided points M may grow again (non-monotone)")
    reasons += goal.cost_caveats
    if not isinstance(policy, TruVaR):
        reasons.append("the choices are not made by eq. (3)")
    elif policy != replace(
        TruVaR(), beta=policy.beta, eta=policy.eta, r=policy.r, slack=policy.slack
    ):
        reasons.append("the choices are made by a variation of eq. (3)")
    if inputs.domain.continuous:
        reasons.append("the domain is continuous")
    if inputs.tolerance > 0:
        reasons.append(
            f"a choice may gain up to {inputs.tolerance:.2g} less than the best, relatively"
        )
    return reasons
