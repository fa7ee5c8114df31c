"""Joint statements about f: what holds at many points at once, with which probability, given the model.

| symbol | here | shape |
|---|---|---|
| p(x) = P(f(x) > h) | `JointStatements.probability`, level set | (n,) |
| P(x is the optimum) | `JointStatements.probability`, optimum | (n,) |
| c(x) = max(p(x), 1 - p(x)), how certain the class of one point is | `certainty` | (n,) |
| F(x), the highest confidence at which x is decided | `JointStatements.decided_confidence` | (n,) |
| F1 of the points reported as above, max f - f(recommended point) | `expected_f1`, `expected_regret` | |
| quantiles of f(x) by themselves | `JointStatements.lower`, `JointStatements.upper` | (n,) |

Level set: the points are ordered by certainty. A point is decided with confidence q if all points up to it in that
order lie on their more probable side of h *at once* with probability >= q (the excursion function for contour avoiding
sets of Bolin and Lindgren, 2015). The probability is estimated from joint draws of f, over the hyperparameters too if
they are learned. Points so certain that all of them together are wrong with probability <= `NEGLIGIBLE` are not drawn;
that probability is subtracted instead, which is a union bound.

Optimum: points are ruled out in ascending order of how often they are the optimum in one half of the draws, as long as
the optimum is among them in at most a share 1 - q of the other half. What remains holds it with probability >= q.

Share of the optimum: h is unknown too. It is drawn first, among the points that can be the optimum, which gives p(x)
in closed form: given a draw at the points that are the optimum most often, f(x) is normal. Other draws, with their own
thresholds, then count the errors, as draws that decided the order of the points would count too few.

A learned model is fitted to measurements that cluster where its policy looks, and says little about how f behaves
elsewhere. So cautious members are added to the mixture, which a fifth of the draws are of. They leave out
measurements that the others contradict, and are less sure of the rest: for a level set their standard deviations are
`WIDER` times as large, for an optimum their length-scales are `SHORTER` times shorter. Nor can single measurements tell
noise from a fine structure of f: where the noise is learned, f may deviate by it from point to point in these members,
unless repeated measurements of a point say otherwise.

Where more than `MAX_ROWS` points would have to be drawn, that many of them, chosen at random, stand for the others:
`JointStatements.n_drawn` and `n_relevant` say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import ndtr

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.goals import Bands, Goal, LevelSet, Maximize, Minimize
from truvar.inference.bands import BandStatements, band_probabilities, band_statements, exceedance, reported_bands
from truvar.models.ensemble import EnsembleModel
from truvar.models.frozen import Caution, FrozenPosterior
from truvar.models.transforms import OutputTransform
from truvar.validation import check_fraction

DRAWS = 2048  # joint draws of f
CONFIDENCE = 0.95  # of the statements that are made unless another one is asked for
NEGLIGIBLE = 0.002  # total probability of an error at the points that are not drawn
PREDICTED_ROWS = 4096  # points for which p is computed at once, which bounds the memory
MAX_ROWS = 4000  # points that are drawn, at most
CAUTIOUS = 0.2  # share of the draws of a learned model that are cautious
MAX_OPTIMA = 1000  # points among which the optimum that a threshold is a share of is drawn, at most
MAX_WINNERS = 32  # points that are the optimum most often, given which f is normal elsewhere, at most
WIDER = 3.0  # level sets: factor by which their standard deviations are larger
SHORTER = 2.0  # optima: factor by which their length-scales are shorter
FAR = 4.5  # standard deviations: a point further below the best one's lower bound is not a potential optimum
SAME_VALUE = 1e-6  # prior standard deviations: values that differ less are equal
SCREENING_DRAWS = 128  # joint draws of a rough estimate
SCREENING_ROWS = 300  # points that they are made at
BISECTIONS = 45  # halvings of an interval that contains a quantile
REFINED = 200  # additional points of a box, around the recommended one, among which the optimum may be
RADII = (0.1, 0.01, 0.001)  # distances of those points from it, in extents of the box


@dataclass(frozen=True)
class Estimate:
    """The distribution of an unknown score, given the model.

    Attributes:
        mean: Its mean.
        low: Lower end of its central 95 % interval.
        high: Upper end of that interval.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"

    def to_dict(self) -> dict[str, float | None]:
        """Return the numbers for JSON, with null for those that are not finite."""
        return {name: value if isfinite(value) else None for name, value in vars(self).items()}

    @staticmethod
    def of(draws: Array) -> Estimate:
        """Return mean and interval of draws."""
        low, high = np.quantile(draws, [0.025, 0.975])
        return Estimate(float(draws.mean()), float(low), float(high))


UNKNOWN_SHARE = Estimate(float("nan"), 0.0, 1.0)
UNKNOWN_DISTANCE = Estimate(float("nan"), 0.0, float("inf"))


@dataclass(frozen=True, eq=False)
class Classification:
    """Points by what is decided about them at once, with a given confidence.

    Attributes:
        confidence: Probability, given the model, that everything decided here is right.
        above: Level set: points above the threshold. Minimum: points ruled out.
        below: Level set: points that are not above the threshold. Maximum: points ruled out.
        undecided: All others. Optimum: they hold it.
        band: Several thresholds: index of the band of every point, from the lowest; -1 where it is undecided. (n,)
        band_names: Names of the bands, from the lowest.
    """

    confidence: float
    above: Mask
    below: Mask
    undecided: Mask
    band: Index | None = None
    band_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{int(getattr(self, name).sum())} {name}" for name in ("above", "below", "undecided"))
        return f"Classification({counts}, confidence={self.confidence:g})"

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The class of every point as text: "above", "below", the name of a band, or "undecided", (n,)."""
        if self.band is not None:
            return np.array([*self.band_names, "undecided"])[self.band]
        return np.select([self.above, self.below], ["above", "below"], "undecided")


@dataclass(frozen=True, eq=False)
class JointStatements:
    """Everything that is stated about all points at once, given the model.

    Attributes:
        goal: The goal of the study.
        probability: Level set: probability of lying above the threshold. Optimum: of being the optimum. (n,)
        decided_confidence: Highest confidence at which a point is decided. (n,)
        reported: Level set: points to report as above, if every point must be on one side. None for an optimum. (n,)
        lower: The value that f exceeds with probability `CONFIDENCE`, at each point by itself. (n,)
        upper: The value that f does not exceed with probability `CONFIDENCE`, at each point by itself. (n,)
        expected_f1: F1 score of `reported`; None for an optimum.
        expected_regret: Distance of the recommended point's value from the optimum; None for a level set.
        optimal_probability: Probability that no point is better than the recommended one; None for a level set.
        recommended_value: f at the recommended point; None for a level set or before there is a model.
        expected_misclassified: Expected number of points that `reported` has on the wrong side; None for an optimum.
        n_drawn: Points that were drawn jointly.
        n_relevant: Points that are not certain by themselves; if more than `n_drawn`, those drawn stand for them.
        bands: What is stated about the bands between several thresholds; None without them.
    """

    goal: Goal
    probability: Array
    decided_confidence: Array
    reported: Mask | None
    lower: Array
    upper: Array
    expected_f1: Estimate | None
    expected_regret: Estimate | None
    optimal_probability: float | None
    expected_misclassified: float | None
    n_drawn: int
    n_relevant: int
    recommended_value: Estimate | None = None
    bands: BandStatements | None = None

    def __post_init__(self) -> None:
        for array in (self.probability, self.decided_confidence, self.lower, self.upper):
            array.setflags(write=False)

    @property
    def is_known(self) -> bool:
        """Whether there is a model to state anything with."""
        score = self.expected_f1 if self.expected_regret is None else self.expected_regret
        return score is not None and isfinite(score.mean)

    def classify(self, confidence: float = CONFIDENCE) -> Classification:
        """Return what is decided with that probability, for all points at once.

        Args:
            confidence: The probability, between 0 and 1.

        Raises:
            InvalidArgumentError: If it is not between 0 and 1.
        """
        check_fraction(confidence, "confidence", example="0.95")
        decided = self.decided_confidence >= confidence
        nothing = np.zeros_like(decided)
        if isinstance(self.goal, Bands) and self.bands is not None:
            is_above = self.goal.is_above(self.bands.reported)
            band = np.where(decided, self.bands.reported, -1)
            return Classification(confidence, decided & is_above, decided & ~is_above, ~decided, band, self.goal.names)
        if isinstance(self.goal, LevelSet):
            is_above = self.probability >= 0.5
            return Classification(confidence, decided & is_above, decided & ~is_above, ~decided)
        if self.goal.sign > 0:
            return Classification(confidence, nothing, decided, ~decided)
        return Classification(confidence, decided, nothing, ~decided)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for JSON, without the arrays."""
        estimates: dict[str, Any] = {}
        for name in ("expected_f1", "expected_regret", "recommended_value"):
            estimate = getattr(self, name)
            estimates[name] = None if estimate is None else estimate.to_dict()
        return {
            **estimates,
            "optimal_probability": self.optimal_probability,
            "expected_misclassified": self.expected_misclassified,
            "n_drawn": self.n_drawn,
            "n_relevant": self.n_relevant,
            "bands": None if self.bands is None else self.bands.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class StatementInputs:
    """Everything that joint statements depend on, as it was at one moment.

    Attributes:
        goal: The goal.
        threshold: Threshold of a level set in the units of the model; None for an optimum or a share of the maximum.
        posterior: The posterior.
        sites: The points of the domain, as the posterior takes them. (n, d')
        means: Posterior means at the sites by member. (members, n)
        variances: Posterior variances at the sites by member. (members, n)
        transform: From the user's values to those of the model.
        best: The recommended point, as the posterior takes it. (d',)
        bounds: Bounds of a box, (d, 2); None for a finite domain.
        snap: Returns the nearest points of a box with finitely many values in some columns; None for others.
        seed: Seeds of the draws.
        fitted: Whether there is a model to state anything with.
        thresholds: Several thresholds in the units of the model; empty without them.
        excluded: Points that cannot be the optimum, as they are not to be measured; None: there are none. (n,)
        allows: Returns which points of a box can be the optimum; None: all.
    """

    goal: Goal
    threshold: float | None
    posterior: FrozenPosterior
    sites: Array
    means: Array
    variances: Array
    transform: OutputTransform
    best: Array
    bounds: Array | None
    seed: tuple[int, int]
    fitted: bool
    thresholds: tuple[float, ...] = ()
    snap: Callable[[Array], Array] | None = None
    excluded: Mask | None = None
    allows: Callable[[Array], Mask] | None = None

    @property
    def n(self) -> int:
        """Number of points of the domain."""
        return len(self.sites)

    @property
    def scale(self) -> float:
        """Prior standard deviation at the recommended point, in the units of the model."""
        return float(np.sqrt(self.posterior.members[0].prior_variance(self.best[None, :])[0]))

    def marginal_probability(self) -> Array | None:
        """Return `JointStatements.probability` where it does not take joint draws: a level set of known threshold."""
        if isinstance(self.goal, Bands):
            exceeds = exceedance(self)
            return np.asarray(band_probabilities(exceeds)[1] if self.goal.inside else exceeds[0])
        if self.threshold is None:
            return None
        return probability_above(self.means, self.variances, self.threshold, self.posterior.shares)

    def reported(self) -> Mask | None:
        """Return the points to report as above the threshold: p >= 1/2; None for an optimum.

        For a share of the maximum they are the points whose mean is at least that share of the largest mean, as the
        paper reports them: no single point may have p >= 1/2 though some are above in every draw.
        """
        if isinstance(self.goal, Bands):
            return self.goal.is_above(reported_bands(exceedance(self)))
        if not isinstance(self.goal, LevelSet):
            return None
        probability = self.marginal_probability()
        if probability is not None:
            return probability >= 0.5
        mean = self.posterior.shares @ self.means
        return np.asarray(mean >= self.goal.thresholds(mean, mean)[0])

    @cached_property
    def joint(self) -> JointStatements:
        """The statements about all points at once; computed when it is first asked for."""
        return joint_statements(self)

    def interval(self) -> tuple[Array, Array]:
        """Return `JointStatements.lower` and `upper`, in the user's units."""
        weights = self.posterior.shares
        low = mixture_quantile(self.means, self.variances, 1.0 - CONFIDENCE, weights)
        high = mixture_quantile(self.means, self.variances, CONFIDENCE, weights)
        return self.transform.inverse(low), self.transform.inverse(high)

    @staticmethod
    def of(learner: ActiveLearner, best: Array) -> StatementInputs:
        """Return the inputs of a learner's present state; `best` is the recommended point (d,)."""
        surrogate = learner.surrogate
        posterior = surrogate.freeze()
        sites = surrogate.target_sites
        if surrogate.model is not None and surrogate.observations:
            means, variances, posterior = _with_cautious_members(learner, posterior)
        elif surrogate.mean is None:  # the uncertainty of the estimated constant counts
            means, variances = posterior.predict(sites)
        else:
            means, variances = (moment[None, :].copy() for moment in surrogate.moments)
        n_zeros = sites.shape[1] - len(best)  # the index of the target task
        snap = learner.domain.snap if learner.domain.discrete else None
        excluded = learner.excluded
        allows = learner.actions.allows if excluded is not None or learner.domain.constraints else None
        if excluded is not None and (excluded.all() or not excluded.any()):
            excluded = None
        return StatementInputs(
            goal=learner.goal,
            threshold=getattr(learner.model_goal, "threshold", None),
            thresholds=getattr(learner.model_goal, "band_thresholds", ()),
            posterior=posterior,
            sites=sites,
            means=means,
            variances=variances,
            transform=surrogate.transform,
            best=np.append(best, np.zeros(n_zeros)),
            bounds=learner.domain.bounds if learner.domain.continuous else None,
            snap=snap,
            seed=(learner.seed, len(learner.observations)),
            fitted=surrogate.fitted and (len(learner.observations) > 0 or surrogate.mean is not None),
            excluded=excluded,
            allows=allows,
        )


def _with_cautious_members(learner: ActiveLearner, posterior: FrozenPosterior) -> tuple[Array, Array, FrozenPosterior]:
    """Return the posterior of a learned model with cautious members added, and its means and variances at the sites."""
    surrogate = learner.surrogate
    sites = surrogate.target_sites
    learned_noise = None
    exact = None
    if len(posterior.members[0].points) == len(surrogate.observations):  # exact repeats say nothing and are left out
        exact = surrogate.given_noise([action for action, _ in surrogate.observations]) == 0.0
        if isinstance(surrogate.model, EnsembleModel) and surrogate.model.noise is not None:
            learned_noise = np.array([not action.noise_given for action, _ in surrogate.observations], dtype=bool)
    caution = Caution(wider=WIDER) if learner.goal.level_set else Caution(shorter=SHORTER)
    caution = replace(caution, n_columns=len(learner.domain.columns), learned_noise=learned_noise, exact=exact)
    mixture = posterior.with_cautious(CAUTIOUS, caution)
    if surrogate.ensemble is None:
        return (*mixture.predict(sites), mixture)
    cautious = FrozenPosterior(mixture.members[len(posterior.members) :])
    cautious_means, cautious_variances = cautious.predict(sites)
    means = np.vstack([surrogate.ensemble.means[:, : len(sites)], cautious_means])
    variances = np.vstack([surrogate.ensemble.variances[:, : len(sites)], cautious_variances])
    return means, variances, mixture


def joint_statements(inputs: StatementInputs) -> JointStatements:
    """Return what can be stated about all points at once."""
    if isinstance(inputs.goal, Bands):
        return band_statements(inputs, inputs.goal)
    if isinstance(inputs.goal, LevelSet):
        return _level_set_statements(inputs, inputs.goal)
    return _optimum_statements(inputs)


def _unknown(
    inputs: StatementInputs, probability: Array, f1: Estimate | None, regret: Estimate | None
) -> JointStatements:
    """Return statements that decide nothing, before there is a model."""
    infinite = np.full(inputs.n, np.inf)
    reported = inputs.reported()
    misclassified = None
    if reported is not None:
        misclassified = float(np.where(reported, 1.0 - probability, probability).sum())
    return JointStatements(
        goal=inputs.goal,
        probability=probability,
        decided_confidence=np.zeros(inputs.n),
        reported=reported,
        lower=-infinite,
        upper=infinite,
        expected_f1=f1,
        expected_regret=regret,
        optimal_probability=None if regret is None else 0.0,
        expected_misclassified=misclassified,
        n_drawn=0,
        n_relevant=inputs.n,
    )


def probability_above(means: Array, variances: Array, threshold: Array | float, weights: Array | None = None) -> Array:
    """Return P(f > threshold) of a mixture, (n,), given means and variances of its members, (members, n) each.

    A value that is known exactly counts as above if it is at least the threshold. Weights, (members,), are those of the
    members; None: all count the same.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        u = (means - threshold) / np.sqrt(variances)
    u = np.where(variances > 0, u, np.where(means >= threshold, np.inf, -np.inf))
    return np.asarray(np.average(normal_distribution(u), axis=0, weights=weights))


def normal_distribution(u: Array) -> Array:
    """Return the standard normal distribution function at u."""
    return np.asarray(ndtr(u))


def mixture_quantile(means: Array, variances: Array, level: float, weights: Array | None = None) -> Array:
    """Return the quantile of a mixture of normals, (n,), by bisection.

    Args:
        means: Means of the members. (members, n)
        variances: Variances of the members. (members, n)
        level: Probability below the quantile.
        weights: Weights of the members, (members,); None: all count the same.
    """
    sd = np.sqrt(variances)
    normal_quantile = NormalDist().inv_cdf(level)
    if len(means) == 1:
        return np.asarray(means[0] + normal_quantile * sd[0])
    reach = abs(normal_quantile) + 1e-9
    low = (means - reach * sd).min(axis=0)
    high = (means + reach * sd).max(axis=0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        too_low = 1.0 - probability_above(means, variances, middle, weights) < level
        low = np.where(too_low, middle, low)
        high = np.where(too_low, high, middle)
    return np.asarray((low + high) / 2)


# -- level sets --------------------------------------------------------------------------------------------------------


def _level_set_statements(inputs: StatementInputs, goal: LevelSet) -> JointStatements:
    if inputs.threshold is None:
        return _implicit_level_set(inputs, goal)
    probability = probability_above(inputs.means, inputs.variances, inputs.threshold, inputs.posterior.shares)
    if not inputs.fitted:
        return _unknown(inputs, probability, UNKNOWN_SHARE, None)
    error = np.minimum(probability, 1.0 - probability)
    relevant = _uncertain_rows(error)
    rows = _at_most(relevant, inputs.seed)
    draws = inputs.posterior.draw(inputs.sites[rows], DRAWS, inputs.seed)
    is_above = draws >= inputs.threshold
    return _from_draws(inputs, probability, error, relevant, rows, is_above)


def _implicit_level_set(inputs: StatementInputs, goal: LevelSet) -> JointStatements:
    """Return the statements for a threshold that is a share of the unknown optimum, which every draw has its own of."""
    optima = _optimum_rows(inputs, goal)
    probability, error = _implicit_probability(inputs, goal, optima)
    if not inputs.fitted:
        return _unknown(inputs, probability, UNKNOWN_SHARE, None)
    relevant = _uncertain_rows(error)
    rows = _at_most(relevant, inputs.seed)
    drawn = np.union1d(rows, optima)
    draws = inputs.posterior.draw(inputs.sites[drawn], DRAWS, inputs.seed)
    is_above = draws[np.searchsorted(drawn, rows)] >= _implicit_thresholds(goal, draws)
    return _from_draws(inputs, probability, error, relevant, rows, is_above)


def _optimum_rows(inputs: StatementInputs, goal: LevelSet) -> Index:
    """Return the points among which the optimum that the threshold is a share of is drawn."""
    optimum = Maximize() if goal.fraction_of_min is None else Minimize()
    source = replace(inputs, goal=optimum, excluded=None)  # points that must not be measured are classified, too
    optima = potential_optima(source)
    return optima if len(optima) <= MAX_OPTIMA else _most_promising(source, optima, MAX_OPTIMA)


@blas_in_one_thread()
def _implicit_probability(inputs: StatementInputs, goal: LevelSet, optima: Index) -> tuple[Array, Array]:
    """Return p at every point for a share of the optimum, and the probability that its class is wrong.

    Both are averages over draws at the possible optima, of which each member has its own. In a draw the threshold is
    known, and f is normal given its values at the points that are the optimum most often.

    Args:
        inputs: The inputs.
        goal: The goal.
        optima: Rows that can be the optimum.

    Returns:
        p, (n,), and the error, (n,), at least as large as if f(x) were independent of the threshold: what happens in
        none of the draws is not impossible.
    """
    count = DRAWS if inputs.n <= MAX_ROWS else DRAWS // 4
    draws = inputs.posterior.draw(inputs.sites[optima], count, (*inputs.seed, 1))
    thresholds = _implicit_thresholds(goal, draws)
    winner = draws.argmax(axis=0) if goal.fraction_of_min is None else draws.argmin(axis=0)
    probability = np.zeros(inputs.n)
    independent = np.zeros(inputs.n)
    begin = 0
    counts = inputs.posterior.draw_counts(count)
    for j, (member, share) in enumerate(zip(inputs.posterior.members, inputs.posterior.shares, strict=True)):
        own = slice(begin, begin + counts[j])
        begin += counts[j]
        wins = np.bincount(winner[own], minlength=len(optima))
        winners = np.flatnonzero(wins)
        winners = winners[np.argsort(-wins[winners], kind="stable")[:MAX_WINNERS]]
        deviation = draws[winners, own] - inputs.means[j, optima[winners], None]  # (k, S_j)
        threshold = thresholds[own, None]
        for rows in np.array_split(np.arange(inputs.n), -(-inputs.n // PREDICTED_ROWS)):
            mean = inputs.means[j : j + 1, rows]
            weights, variance = member.regression(inputs.sites[rows], inputs.sites[optima[winners]])
            given_draw = mean + deviation.T @ weights  # (S_j, rows)
            probability[rows] += share * probability_above(given_draw, variance[None, :], threshold)
            alone = probability_above(mean, inputs.variances[j : j + 1, rows], threshold[::4])
            independent[rows] += share * alone
    # As if one draw more were independent of the threshold: certainties that the draws do not tell apart differ.
    probability = (len(winner) * probability + independent) / (len(winner) + 1)
    error = np.minimum(probability, 1.0 - probability)
    return probability, np.maximum(error, np.where(probability >= 0.5, 1.0 - independent, independent))


def _implicit_thresholds(goal: LevelSet, draws: Array) -> Array:
    """Return the threshold in every draw, (S,), as a share of its maximum or minimum."""
    if goal.fraction_of_min is not None:
        return np.asarray(goal.fraction_of_min * draws.min(axis=0))
    return np.asarray(float(goal.fraction_of_max or 0.0) * draws.max(axis=0))


def screening_f1(inputs: StatementInputs) -> float:
    """Return a rough estimate of the expected F1 score, from few draws at few points.

    Args:
        inputs: The inputs of a level set whose threshold is a share of the maximum.
    """
    reported = inputs.reported()
    if reported is None or not isinstance(inputs.goal, LevelSet):
        raise AssertionError("a level set reports points")
    rng = np.random.default_rng(inputs.seed)
    direction = -1 if inputs.goal.fraction_of_min is not None else 1
    top = int(np.argmax(direction * (inputs.posterior.shares @ inputs.means)))
    rows = rng.permutation(inputs.n)[:SCREENING_ROWS]
    draws = inputs.posterior.draw(inputs.sites[np.append(rows, top)], SCREENING_DRAWS, inputs.seed)
    is_above = draws[:-1] >= _implicit_thresholds(inputs.goal, draws)
    n_both = is_above.sum(axis=0) + int(reported[rows].sum())
    hits = (reported[rows, None] & is_above).sum(axis=0)
    return float(np.divide(2.0 * hits, n_both, out=np.ones(len(n_both)), where=n_both > 0).mean())


def _from_draws(
    inputs: StatementInputs, probability: Array, error: Array, relevant: Index, rows: Index, is_above: Mask
) -> JointStatements:
    """Return the statements of a level set.

    Args:
        inputs: The inputs.
        probability: p at every point. (n,)
        error: Probability that the class of a point is wrong, at most. (n,)
        relevant: Rows that are not certain by themselves.
        rows: Those of them that were drawn. (r,)
        is_above: Whether f lies above the threshold there, by draw. (r, S)
    """
    certainty = np.maximum(probability, 1.0 - probability)
    class_above = probability >= 0.5
    is_relevant = np.zeros(len(probability), bool)
    is_relevant[relevant] = True
    neglected = float(error[~is_relevant].sum())
    decided = np.maximum(certainty - neglected, 0.0)
    if len(rows):
        order = np.argsort(-certainty[rows], kind="stable")
        joint = _joint_confidence(is_above[order] != class_above[rows][order, None])
        joint = np.maximum(joint - neglected, 0.0)
        of_row = np.empty(len(rows))
        of_row[order] = joint
        decided[relevant] = np.minimum(_carried_over(certainty, rows[order], joint, relevant), certainty[relevant])
        decided[rows] = np.minimum(of_row, certainty[rows])
    reported = inputs.reported()
    if reported is None:
        raise AssertionError("a level set reports points")
    certain_above = class_above & ~is_relevant
    f1 = _f1_draws(inputs, reported, certain_above, relevant, rows, is_above)
    lower, upper = inputs.interval()
    return JointStatements(
        goal=inputs.goal,
        probability=probability,
        decided_confidence=decided,
        reported=reported,
        lower=lower,
        upper=upper,
        expected_f1=Estimate.of(f1),
        expected_regret=None,
        optimal_probability=None,
        expected_misclassified=float(np.where(reported, 1.0 - probability, probability).sum()),
        n_drawn=len(rows),
        n_relevant=len(relevant),
    )


def _uncertain_rows(error: Array) -> Index:
    """Return the rows that must be drawn: all but the most certain, whose errors add up to `NEGLIGIBLE` at most.

    Args:
        error: Probability that the class of a point is wrong. (n,)
    """
    order = np.argsort(error, kind="stable")
    n_certain = int(np.searchsorted(np.cumsum(error[order]), NEGLIGIBLE, side="right"))
    return np.sort(order[n_certain:])


def _at_most(relevant: Index, seed: tuple[int, int]) -> Index:
    """Return the rows to draw: all, or a random choice of `MAX_ROWS` of them."""
    if len(relevant) <= MAX_ROWS:
        return relevant
    return np.sort(np.random.default_rng(seed).choice(relevant, MAX_ROWS, replace=False))


def _joint_confidence(wrong: Mask) -> Array:
    """Return the share of draws without an error up to each row, (r,), given which rows are wrong in which draw."""
    r, count = wrong.shape
    first = np.where(wrong.any(axis=0), wrong.argmax(axis=0), r)
    failed = np.cumsum(np.bincount(first, minlength=r + 1)[:r])
    return np.asarray(1.0 - (failed + 1) / (count + 1))  # one more error, as draws cannot show certainty


def _carried_over(certainty: Array, ordered: Index, joint: Array, relevant: Index) -> Array:
    """Return the joint confidence of rows that were not drawn: that of the drawn one of the next lower certainty."""
    ascending = certainty[ordered][::-1]
    position = np.searchsorted(ascending, certainty[relevant], side="right") - 1
    lowest = 0.0
    carried = np.where(position >= 0, joint[::-1][np.maximum(position, 0)], lowest)
    return np.asarray(carried)


def _f1_draws(
    inputs: StatementInputs, reported: Mask, certain_above: Mask, relevant: Index, rows: Index, is_above: Mask
) -> Array:
    """Return the F1 score of the reported points in every draw, (S,).

    Args:
        inputs: The inputs.
        reported: Points that are reported as above. (n,)
        certain_above: Points that are not drawn, as they are above in every draw. (n,)
        relevant: Rows that are not certain by themselves.
        rows: Those of them that were drawn. (r,)
        is_above: Whether f lies above the threshold there, by draw. (r, S)
    """
    certain_hits = int((reported & certain_above).sum())
    certain_reported = int(reported.sum()) - int(reported[relevant].sum())
    weight = np.ones(len(rows))
    if len(rows) < len(relevant):
        nearest = _nearest(inputs.sites[rows], inputs.sites[relevant])
        weight = np.bincount(nearest, minlength=len(rows)).astype(float)
    hits = (weight * reported[rows]) @ is_above + certain_hits
    n_true = weight @ is_above + int(certain_above.sum())
    n_both = n_true + float(weight @ reported[rows]) + certain_reported
    return np.divide(2.0 * hits, n_both, out=np.ones_like(n_both), where=n_both > 0)


def _nearest(points: Array, others: Array) -> Index:
    """Return for each of the others the position of the nearest point, distances in units of the spread."""
    from scipy.spatial import cKDTree  # imports slowly, and few domains are that large

    spread = np.where(np.ptp(others, axis=0) > 0, others.std(axis=0), 1.0)
    return np.asarray(cKDTree(points / spread).query(others / spread)[1], dtype=np.intp)


# -- optima ------------------------------------------------------------------------------------------------------------


def _optimum_statements(inputs: StatementInputs) -> JointStatements:
    n = len(inputs.sites)
    if not inputs.fitted:
        uniform = np.full(n, 1.0 / n)
        return _unknown(inputs, uniform, None, UNKNOWN_DISTANCE)
    sign = inputs.goal.sign
    relevant = potential_optima(inputs)
    rows = relevant
    if len(rows) > MAX_ROWS:
        rows = _most_promising(inputs, relevant, MAX_ROWS)
    points = np.vstack([inputs.best[None, :], inputs.sites[rows], _around_best(inputs)])
    draws = sign * inputs.posterior.draw(points, DRAWS, inputs.seed)  # signed: high is good
    winner = rows[np.argmax(draws[1 : len(rows) + 1], axis=0)]
    probability = np.bincount(winner, minlength=n) / draws.shape[1]
    highest = inputs.transform.inverse(sign * draws.max(axis=0))
    recommended = inputs.transform.inverse(sign * draws[0])
    regret = np.maximum(sign * (highest - recommended), 0.0)
    lower, upper = inputs.interval()
    return JointStatements(
        goal=inputs.goal,
        probability=probability,
        decided_confidence=_ruled_out_confidence(winner, _promise(inputs)),
        reported=None,
        lower=lower,
        upper=upper,
        expected_f1=None,
        expected_regret=Estimate.of(regret),
        optimal_probability=float((draws.max(axis=0) - draws[0] <= SAME_VALUE * inputs.scale).mean()),
        expected_misclassified=None,
        n_drawn=len(rows),
        n_relevant=len(relevant),
        recommended_value=Estimate.of(recommended),
    )


def potential_optima(inputs: StatementInputs, reach: float = FAR) -> Index:
    """Return the rows that can be the optimum in some member: others are many standard deviations short of it.

    Args:
        inputs: The inputs.
        reach: Half width of the intervals that are compared, in standard deviations.
    """
    signed = inputs.goal.sign * inputs.means
    sd = np.sqrt(inputs.variances)
    if inputs.excluded is not None:
        signed = np.where(inputs.excluded, -np.inf, signed)
        sd = np.where(inputs.excluded, 0.0, sd)
    lower = (signed - reach * sd).max(axis=1, keepdims=True)
    return np.flatnonzero((signed + reach * sd >= lower).any(axis=0))


def _promise(inputs: StatementInputs) -> Array:
    """Return the largest distance of each point from the best mean in units of its standard deviation, (n,)."""
    signed = inputs.goal.sign * inputs.means
    sd = np.sqrt(inputs.variances) + SAME_VALUE * inputs.scale
    return np.asarray(((signed - signed.max(axis=1, keepdims=True)) / sd).max(axis=0))


def _most_promising(inputs: StatementInputs, relevant: Index, count: int) -> Index:
    """Return so many rows that are the most probable to exceed the best mean."""
    signed = inputs.goal.sign * inputs.means[:, relevant]
    sd = np.sqrt(inputs.variances[:, relevant]) + np.finfo(float).tiny
    exceeds = inputs.posterior.shares @ normal_distribution((signed - signed.max(axis=1, keepdims=True)) / sd)
    return np.sort(relevant[np.argpartition(-exceeds, count)[:count]])


def _around_best(inputs: StatementInputs) -> Array:
    """Return points of a box around the recommended one, as a finite set of representers is too coarse there."""
    if inputs.bounds is None:
        return np.zeros((0, len(inputs.best)))
    low = inputs.bounds[:, 0]
    high = inputs.bounds[:, 1]
    d = len(low)
    rng = np.random.default_rng(inputs.seed)
    radius = np.repeat(RADII, -(-REFINED // len(RADII)))[:REFINED, None]
    offsets = radius * (high - low) * rng.uniform(-1.0, 1.0, (REFINED, d))
    around = np.tile(inputs.best, (REFINED, 1))
    around[:, :d] = np.clip(inputs.best[:d] + offsets, low, high)
    if inputs.snap is not None:
        around[:, :d] = inputs.snap(around[:, :d])
    return around if inputs.allows is None else around[inputs.allows(around[:, :d])]


def _ruled_out_confidence(winner: Index, promise: Array) -> Array:
    """Return the highest confidence at which each point is ruled out, (n,).

    The points are ordered by how often they are the optimum in one half of the draws, those of equal number by their
    promise; the probability of ruling out the optimum is counted in the other half. One set of draws for both would
    count nothing for the many points that are the optimum too seldom to be drawn, though together they often are.

    Args:
        winner: The point that is the optimum in each draw. (S,)
        promise: A number per point that grows with its probability of being the optimum. (n,)
    """
    n = len(promise)
    wins = np.bincount(winner[::2], minlength=n)
    order = np.lexsort((promise, wins))
    counted = winner[1::2]
    probability = np.bincount(counted, minlength=n) / len(counted)
    out = np.empty(n)
    out[order] = np.maximum(1.0 - np.cumsum(probability[order]), 0.0)
    return out
