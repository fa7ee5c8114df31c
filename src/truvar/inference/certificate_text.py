"""The sentences of a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import floor, inf, isfinite

import numpy as np

from truvar._typing import Mask
from truvar.acquisition.confidence import RKHSBeta, TheoremBeta
from truvar.algorithm.loop import State
from truvar.domain.domain import Domain
from truvar.domain.goals import Bands, Goal, LevelSet
from truvar.domain.labels import place_in_words
from truvar.inference.inputs import CertificateInputs
from truvar.inference.regime import BetaComparison, Regime
from truvar.inference.statements import (
    CONFIDENCE,
    TOLERANCE,
    UNKNOWN_SHARE,
    Classification,
    Estimate,
    JointStatements,
)
from truvar.messages import format_coordinate

CHECK_CAVEAT = "the check of the model failed"
RKHS_CAVEAT = "Theorem 3.1 bounds the cost for draws from the Gaussian process; it does not cover the RKHS setting"
COST_CAVEAT = "the paper's bound on the cost would not apply with a larger beta either"


def level_set_sentence(statements: JointStatements, goal: Goal, domain: Domain) -> str:
    """Return the classes that every output shows, how many of them are wrong, and the expected F1 score."""
    over = " (mean over the thresholds)" if isinstance(goal, Bands) and not goal.inside else ""
    score = f"Expected F1{over} {_estimate(statements.expected_f1, format_share)}."
    return f"{_shown_sentence(statements.classes, goal, domain)} {score}"


def _shown_sentence(classes: Classification, goal: Goal, domain: Domain) -> str:
    """Return how many points are shown by their own probabilities, and how many of them are wrong."""
    kind = _kind(domain)
    n = len(classes.undecided)
    n_undecided = n - classes.n_shown
    probability = f"a probability of at least {100 * (classes.pointwise or 0.0):g} %"
    if classes.n_shown == 0:
        return f"No class has {probability}, given the model: all {_count(n, kind)} are undecided."
    shown = f"{classes.n_shown} of {_count(n, kind)} {_are(classes.n_shown)} shown"
    if n_undecided == 0:
        shown = f"{_all(n, kind).capitalize()} {_are(n)} shown"
    undecided = (
        f"{n_undecided} {_are(n_undecided)} undecided" if n_undecided else "none is undecided"
    )
    return (
        f"{shown}, each with {probability}, given the model: {_sides(classes, goal)}. With "
        f"{100 * classes.confidence:g} % probability {_wrong_text(classes)}; {undecided}."
    )


def _wrong_text(classes: Classification) -> str:
    """Return the bound on the number of points shown that are wrong: "at most 9 of them are wrong"."""
    n_wrong = classes.max_wrong
    if n_wrong == 0:
        return "none of them is wrong"
    return f"at most {n_wrong} of them {_are(n_wrong)} wrong"


def _sides(classes: Classification, goal: Goal) -> str:
    """Return the number of points on each side, or in each band: "246 above 4 and 1207 below"."""
    if classes.band is not None:
        counts = []
        for k, name in enumerate(classes.band_names):
            low, between, high = name.partition(" to ")
            where = f"between {low} and {high}" if between else name
            counts.append((int((classes.band == k).sum()), where))
        return ", ".join(f"{count} {where}" for count, where in counts if count)
    asked, other = goal.sides
    if isinstance(goal, LevelSet) and goal.margin is not None:
        counts = [
            (int(getattr(classes, asked).sum()), goal.summary),
            (int(getattr(classes, other).sum()), "not"),
        ]
        return " and ".join(f"{count} {where}" for count, where in counts if count)
    threshold = _threshold_text(goal)
    n_asked = int(getattr(classes, asked).sum())
    n_other = int(getattr(classes, other).sum())
    if n_asked and n_other:
        return f"{n_asked} {asked} {threshold} and {n_other} {other}"
    return f"{n_asked} {asked} {threshold}" if n_asked else f"{n_other} {other} {threshold}"


def _threshold_text(goal: Goal) -> str:
    """Return the threshold that points are shown above or below: "7", "80 % of the maximum"."""
    if not isinstance(goal, LevelSet):
        return format_coordinate(goal.known_thresholds[0])
    if goal.threshold is not None:
        return format_coordinate(goal.threshold)
    return f"{100 * goal.threshold_share:g} % of the {goal.optimum_name}"


def further_sentences(statements: JointStatements, goal: Goal, domain: Domain) -> tuple[str, ...]:
    """Return what else can be stated about a level set: the share above, and the joint statements."""
    tolerated = statements.classify(tolerance=TOLERANCE)
    return (
        _share_sentence(statements.share_above or UNKNOWN_SHARE, goal, domain),
        _joint_sentence(tolerated, goal, domain),
        _joint_sentence(statements.classify(), goal, domain),
    )


def _share_sentence(share: Estimate, goal: Goal, domain: Domain) -> str:
    """Return the interval of the share of the points on the side asked for, or between the two.

    Args:
        share: Share of the points above the threshold, or between the two.
        goal: The goal.
        domain: The domain.
    """
    where = "inside" if goal.class_names else f"{goal.sides[0]} {_threshold_text(goal)}"
    if isinstance(goal, LevelSet) and goal.margin is not None:
        where = goal.summary
    if goal.sign < 0:
        share = Estimate(1.0 - share.mean, 1.0 - share.high, 1.0 - share.low)
    if isinstance(goal, Bands) and goal.inside:
        low, high = map(format_coordinate, goal.thresholds[:2])
        where = f"between {low} and {high}"
    low = f"{100 * share.low:.3g}"
    high = f"{100 * share.high:.3g}"
    amount = f"{low} %" if low == high else f"between {low} and {high} %"
    return (
        f"With {100 * CONFIDENCE:g} % probability {amount} of all {_count(len(domain), _kind(domain))} "
        f"lie {where}."
    )


def _joint_sentence(classes: Classification, goal: Goal, domain: Domain) -> str:
    """Return what holds jointly: at most a share of the most probable points is wrong, or none of them."""
    opening = f"With {100 * classes.confidence:g} % probability"
    kind = _kind(domain)
    share = f"at most {100 * classes.tolerance:g} %" if classes.tolerance > 0 else "none"
    if classes.n_shown == 0:
        return f"There are no {kind}s of which {share} are wrong {lowered(opening)}."
    points = f"the {_count(classes.n_shown, f'most probable {kind}')} ({_sides(classes, goal)})"
    are = "are" if classes.tolerance > 0 else "is"
    return f"{opening} {share} of {points} {are} wrong."


def optimum_sentence(
    statements: JointStatements,
    domain: Domain,
    best: Mapping[str, float],
    given: str = "given the model",
) -> str:
    """Return where the optimum can be, and how far from it the recommended point is.

    Args:
        statements: What is stated.
        domain: The domain.
        best: The recommended point.
        given: What the statement rests on.
    """
    classes = statements.classes
    kind = _kind(domain)
    optimum = "maximum" if statements.goal.sign > 0 else "minimum"
    candidates = np.flatnonzero(classes.undecided)
    opening = f"With {100 * classes.confidence:g} % probability, {given},"
    where = f"at one of {_count(len(candidates), kind)}"
    if len(candidates) == 1:
        where = f"at {place_in_words(domain, domain.point(int(candidates[0])))}"
    if domain.continuous:
        where = f"nearest to {'one of ' * (len(candidates) > 1)}{_count(len(candidates), kind)}"
    recommended = place_in_words(domain, best)
    return (
        f"{opening} the {optimum} is {where}. The value at the recommended point {recommended} is "
        f"{_regret_text(statements)}."
    )


def _regret_text(statements: JointStatements) -> str:
    """Return how far the recommended point is from the optimum, as a bound and as an expectation."""
    estimate = statements.expected_regret
    regret = _estimate(estimate, lambda value: f"{value:.3g}")
    if estimate is not None and isfinite(estimate.mean) and not isfinite(estimate.high):
        regret = f"{estimate.mean:.3g}"
    expected = f"expected to be {regret} from it"
    if statements.regret_bound is None or not isfinite(statements.regret_bound):
        return expected
    bound = f"within {statements.regret_bound:.3g} of it with {100 * CONFIDENCE:g} % probability"
    return f"{bound}, and {expected}"


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


def condition(regime: Regime, delta: float) -> str:
    """Return the opening of the statement: under which condition, or with which probability, it holds."""
    if regime == "learned":
        return "If the model as learned is right and its confidence bounds hold"
    if regime == "heuristic":
        return "If the confidence bounds hold"
    return f"With probability at least {1 - delta:g}"


def bands_claim(inputs: CertificateInputs) -> str:
    """Return what the confidence bounds say about the bands between several thresholds."""
    kind = _kind(inputs.domain)
    n_undecided = int(inputs.state.regions.potential.sum())
    n_decided = len(inputs.domain) - n_undecided
    return (
        f"f lies in one band at each of {_count(n_decided, f'decided {kind}')} (H, L), and "
        "within "
        f"{inputs.epsilon / 2:.4g} of a threshold at the "
        f"{_count(n_undecided, f'undecided {kind}')} (M)."
    )


def level_set_claim(inputs: CertificateInputs, goal: LevelSet) -> str:
    """Return what the confidence bounds say about the points above and below a threshold."""
    kind = _kind(inputs.domain)
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
        parts.append(
            f"below {'it' if parts else threshold} at {_all(n_below, kind)} classified as below (L)"
        )
    if n_undecided:
        name = "it" if parts else threshold
        count = _count(n_undecided, f"undecided {kind}")
        parts.append(f"within {inputs.epsilon / 2:.4g} of {name} at the {count} (M)")
    if len(parts) == 1:
        return f"f is {parts[0]}."
    return f"f is {', '.join(parts[:-1])}, and {parts[-1]}."


def optimum_claim(inputs: CertificateInputs, accurate_to: float) -> str:
    """Return what the confidence bounds say about the points that can be the optimum."""
    kind = _kind(inputs.domain)
    state = inputs.state
    n_undecided = int(state.regions.potential.sum())
    optimum, optimisers = (
        ("maximum", "maximisers") if inputs.goal.sign > 0 else ("minimum", "minimisers")
    )
    if n_undecided == 1:
        only = _point(inputs, state.regions.potential)
        return f"f has its {optimum} at the only undecided {kind} (M), {only}."
    return (
        f"all {optimisers} are among the {_count(n_undecided, f'undecided {kind}')} (M), every one "
        "of which is within "
        f"{accurate_to:.4g} of the {optimum}, and "
        f"{_point(inputs, _best_bounded(inputs.goal, state))} within "
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
    return place_in_words(inputs.domain, point)


def lowered(sentence: str) -> str:
    """Return a sentence that begins with a small letter."""
    return sentence[:1].lower() + sentence[1:]


def _all(count: int, kind: str) -> str:
    return f"{'all' if count > 1 else 'the'} {_count(count, kind)}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _count(count: int, kind: str) -> str:
    return f"{count} {kind}{'s' * (count != 1)}"


def explanation(
    inputs: CertificateInputs,
    regime: Regime,
    reasons: list[str],
    delta: float,
    betas: BetaComparison,
) -> str:
    """Return what the regime means here.

    Args:
        inputs: Inputs of the certificate.
        regime: The regime.
        reasons: Why Theorem 3.1 does not bound the cost.
        delta: Probability with which the required beta is computed.
        betas: beta against what is required.
    """
    beta, needed, shortfall = betas
    t = len(inputs.betas)
    required = (
        f"{needed:.4g} that {_source(inputs)} requires at t = {t}, "
        f"|D| = {len(inputs.domain)} and delta = {delta:g}"
    )
    if regime == "learned":
        return (
            "kernel, mean or noise were learned from the same measurements, which the theory does "
            "not cover; "
            f"beta = {beta:.4g}, against the {required} with a known model"
        )
    since = (
        f"after each of the {_count(t, 'measurement')} so far"
        if t
        else "before the first measurement"
    )
    enough = f"beta was at least what {_source(inputs)} requires {since} (now {beta:.4g} against {needed:.4g})"
    if regime == "heuristic" and betas.is_enough:
        return f"the measurements contradict the model, so that no probability can be given for its bounds; {enough}"
    if regime == "heuristic":
        earlier = ""
        if betas.was_worse:
            earlier = f" (at an earlier t, as little as {1 / shortfall:.2g} of it)"
        return (
            f"beta = {beta:.4g} is {beta / needed:.2g} of the {required}{earlier}: the bounds are "
            "a rule of thumb, and "
            "no probability can be given for them"
        )
    if regime == "outside":
        return (
            f"{'; '.join(reasons)}: the bounds of Theorem 3.1 on the cost of an epoch and on "
            "C_epsilon do not apply. "
            f"The statement itself does not depend on the cost: {enough}"
        )
    return enough


def _source(inputs: CertificateInputs) -> str:
    rkhs = isinstance(inputs.policy.confidence.beta, RKHSBeta)
    return f"{'Theorem 3' if rkhs else 'Lemma 5.1'} of Srinivas et al. (2012)"


def assumptions_of(inputs: CertificateInputs, regime: Regime) -> tuple[str, ...]:
    """Return what must be true of f and the noise."""
    schedule = inputs.policy.confidence.beta
    if isinstance(schedule, RKHSBeta):
        assumptions = [
            f"f has an RKHS norm of at most {schedule.norm:g} prior standard deviations under this "
            "kernel",
            "the noise has mean zero and never exceeds its standard deviation",
        ]
    else:
        assumptions = [
            "f is a draw from the Gaussian process with this kernel and mean",
            "the noise is Gaussian with these variances, independent from one measurement to the "
            "next",
        ]
    if regime == "theorem" and isinstance(schedule, TheoremBeta):
        assumptions.append(
            "for the cost alone: the variance reduction is submodular (Assumption 3.1), and "
            "measurements are made one "
            "at a time, as suggested"
        )
    return tuple(assumptions)


def caveats_of(inputs: CertificateInputs, regime: Regime, reasons: list[str]) -> tuple[str, ...]:
    """Return what is not claimed."""
    caveats = []
    if not inputs.model_check.ok and not inputs.is_contradicted:
        caveats.append(f"{CHECK_CAVEAT}: {lowered(inputs.model_check.finding)}")
    if inputs.domain.continuous:
        caveats.append(
            f"the statement is about the {len(inputs.domain)} representer points; nothing is "
            "claimed about f between "
            "them"
        )
    if isinstance(inputs.policy.confidence.beta, RKHSBeta):
        caveats.append(RKHS_CAVEAT)
    if regime in ("heuristic", "learned"):
        caveats += [f"{reason}: {COST_CAVEAT}" for reason in reasons]
    return tuple(caveats)
