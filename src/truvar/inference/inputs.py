"""The inputs of statements about a result: what joint statements and the certificate depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.acquisition import Policy
from truvar.acquisition.confidence import RKHSBeta, TheoremBeta
from truvar.algorithm.learner import ActiveLearner
from truvar.algorithm.loop import State
from truvar.domain.action import Action
from truvar.domain.candidates import ActionSpace
from truvar.domain.domain import Domain
from truvar.domain.goals import Bands, Goal, LevelSet
from truvar.inference._mixtures import (
    band_probabilities,
    bounded_moments,
    mixture_quantile,
    probability_above,
    reported_bands,
)
from truvar.inference.statements import CONFIDENCE, Estimate, JointStatements
from truvar.models.diagnostics import ModelCheck
from truvar.models.frozen import FrozenPosterior
from truvar.models.surrogate import Surrogate
from truvar.models.transforms import OutputTransform


@dataclass(frozen=True, eq=False)
class StatementInputs:
    """Everything that joint statements depend on, as it was at one moment.

    Attributes:
        goal: The goal.
        threshold: Threshold of a level set in the units of the model; None for an optimum or a
            share of the maximum.
        posterior: The posterior.
        sites: The points of the domain, as the posterior takes them. (n, d')
        means: Posterior means at the sites by member. (members, n)
        variances: Posterior variances at the sites by member. (members, n)
        transform: From the user's values to those of the model.
        best: The recommended point, as the posterior takes it. (d',)
        bounds: Bounds of a box, (d, 2); None for a finite domain.
        snap: Returns the nearest points of a box with finitely many values in some columns; None
            for others.
        seed: Seeds of the draws.
        fitted: Whether there is a model to state anything with.
        thresholds: Several thresholds in the units of the model; empty without them.
        excluded: Points that cannot be the optimum, as they are not to be measured; None: there are
            none. (n,)
        allows: Returns which points of a box can be the optimum; None: all.
        outliers: Positions of the observations that the model leaves out.
        weights: How much each point matters for the goal. (n,)
        own_mean: Mean that is reported at each point, in the user's units, if that is not the mean
            of the posterior. (n,)
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
    outliers: tuple[int, ...] = ()
    weights: Array = field(default_factory=lambda: np.ones(1))
    own_mean: Array | None = None

    @cached_property
    def reported_mean(self) -> Array:
        """Mean that is reported at each point, in the user's units. (n,)."""
        return self.user_moments()[0] if self.own_mean is None else self.own_mean

    @property
    def n(self) -> int:
        """Number of points of the domain."""
        return len(self.sites)

    @property
    def scale(self) -> float:
        """Prior standard deviation at the recommended point, in the units of the model."""
        return float(np.sqrt(self.posterior.members[0].prior_variance(self.best[None, :])[0]))

    def exceedance(self) -> Array:
        """Return P_k, the probability of lying above each of several thresholds: (m, n)."""
        weights = self.posterior.shares
        return np.stack(
            [probability_above(self.means, self.variances, h, weights) for h in self.thresholds]
        )

    def marginal_probability(self) -> Array | None:
        """Return `JointStatements.probability` where it does not take joint draws: a level set of known threshold."""
        if isinstance(self.goal, Bands):
            exceeds = self.exceedance()
            return np.asarray(band_probabilities(exceeds)[1] if self.goal.inside else exceeds[0])
        if self.threshold is None:
            return None
        return probability_above(self.means, self.variances, self.threshold, self.posterior.shares)

    def reported(self) -> Mask | None:
        """Return the points to report as being on the side asked for: p >= 1/2; None for an optimum.

        For a share of the maximum they are the points whose mean is at least that share of the
        largest mean, as the paper reports them: no single point may have p >= 1/2 though some are
        above in every draw.
        """
        if isinstance(self.goal, Bands):
            return self.goal.is_above(reported_bands(self.exceedance()))
        if not isinstance(self.goal, LevelSet):
            return None
        probability = self.marginal_probability()
        if probability is not None:
            return self.asked(self.goal.exceeds(probability, 0.5))
        mean = self.posterior.shares @ self.means
        return self.asked(self.goal.exceeds(mean, self.goal.thresholds(mean, mean)[0]))

    def asked(self, above: Mask) -> Mask:
        """Return which points are on the side asked for, given those above; and the other way round."""
        return self.goal.asked(above) if isinstance(self.goal, LevelSet) else above

    def error(self, reported: Mask, probability: Array) -> Array:
        """Return the probability that the reported side of each point is wrong, (n,).

        Args:
            reported: `reported()`. (n,)
            probability: Probability of lying above the threshold. (n,)
        """
        return np.where(self.asked(reported), 1.0 - probability, probability)

    def user_moments(self) -> tuple[Array, Array]:
        """Return mean and standard deviation at the sites, in the user's units: (n,) each."""
        bounds = None if self.transform.is_identity else self._bounds
        return _mixture_moments(self.transform, self.posterior, self.means, self.variances, bounds)

    def interval(self) -> tuple[Array, Array]:
        """Return `JointStatements.lower` and `upper`, in the user's units."""
        low, high = self._bounds
        return self.transform.inverse(low), self.transform.inverse(high)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """Bounds of `interval` in the units of the model: (n,) each."""
        return _bounds(self.posterior, self.means, self.variances)

    @classmethod
    def of(cls, learner: ActiveLearner, best: Array, rows: Index | None = None) -> Self:
        """Return the inputs of a learner's present state.

        Args:
            learner: The learner.
            best: The recommended point. (d,)
            rows: The points of the domain to take; None: all.
        """
        surrogate = learner.surrogate
        chosen = slice(None) if rows is None else rows
        sites = surrogate.target_sites[chosen]
        posterior = _claim_posterior(learner)
        if len(posterior.members) == 1 and surrogate.mean is not None:
            means, variances = (moment[None, chosen].copy() for moment in surrogate.moments)
        else:  # the uncertainty of an estimated constant counts
            means, variances = posterior.predict(sites)
        n_zeros = sites.shape[1] - len(best)  # the index of the target task
        snap = learner.domain.snap if learner.domain.discrete else None
        outliers = () if surrogate.model is None else surrogate.model.outliers
        allows = (
            learner.actions.allows
            if learner.excluded is not None or learner.domain.constraints
            else None
        )
        own_mean = None if reports_average(surrogate) else learner.moments[0][chosen]
        excluded = excluded_rows(learner)
        if excluded is not None:
            excluded = excluded[chosen]
        return cls(
            goal=learner.goal,
            threshold=_threshold(learner),
            thresholds=getattr(learner.model_goal, "band_thresholds", ()),
            posterior=replace(posterior, mirrored=_asks_below(learner.goal)),
            sites=sites,
            means=means,
            variances=variances,
            transform=surrogate.transform,
            best=np.append(best, np.zeros(n_zeros)),
            bounds=learner.domain.bounds if learner.domain.continuous else None,
            snap=snap,
            seed=(learner.seed, len(learner.observations)),
            fitted=surrogate.fitted
            and (len(learner.observations) > 0 or surrogate.mean is not None),
            excluded=excluded,
            allows=allows,
            outliers=outliers,
            weights=learner.weights[chosen],
            own_mean=own_mean,
        )


def reports_average(surrogate: Surrogate) -> bool:
    """Return whether mean and standard deviation are reported of the model that claims are made of.

    They are for a learned model, so that moments and claims agree.
    """
    return surrogate.ensemble is not None


def predict(learner: ActiveLearner, points: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation at points (q, d), in the user's units: (q,) each.

    At the points of the domain they are those of the result.
    """
    surrogate = learner.surrogate
    if not reports_average(surrogate):
        mean, variance = surrogate.predict(points)
        return mean, np.sqrt(variance)
    posterior = _claim_posterior(learner)
    moments = posterior.predict(surrogate.target_points(points))
    return _mixture_moments(surrogate.transform, posterior, *moments)


def predict_measurement(learner: ActiveLearner, action: Action) -> tuple[float, float]:
    """Return mean and sd of the value that a measurement would give, in the user's units."""
    surrogate = learner.surrogate
    if action.task != 0 or not reports_average(surrogate):
        mean, variance = surrogate.predict_measurement(action)
        return mean, float(np.sqrt(variance))
    posterior = _claim_posterior(learner)
    if surrogate.outcome is not None:
        mean, variance = surrogate.predict_measurement(action, posterior)
        return mean, float(np.sqrt(variance))
    means, variances = posterior.predict(action.point[None, :])
    noise = surrogate.likelihood.variance(action.noise)
    found = _mixture_moments(surrogate.transform, posterior, means, variances + noise)
    return float(found[0][0]), float(found[1][0])


def member_moments(surrogate: Surrogate) -> tuple[Array, Array]:
    """Return means and variances on the domain that a surrogate keeps, by member: (members, n).

    The uncertainty of an estimated constant is left out.
    """
    ensemble = surrogate.ensemble
    if ensemble is None:
        mean, variance = surrogate.moments
        return mean[None, :], variance[None, :]
    n = len(surrogate.domain)
    return ensemble.means[:, :n], ensemble.variances[:, :n]


def _asks_below(goal: Goal) -> bool:
    return isinstance(goal, LevelSet) and goal.side == "below"


def _threshold(learner: ActiveLearner) -> float | None:
    """Return the threshold of a level set in the units of the model, if there is one.

    For the points below it is the next larger number: a value on the threshold is one of them, and
    statements take what is not less than it for above.
    """
    threshold: float | None = getattr(learner.model_goal, "threshold", None)
    if threshold is not None and _asks_below(learner.goal):
        return float(np.nextafter(threshold, np.inf))
    return threshold


def model_thresholds(learner: ActiveLearner) -> tuple[float, ...]:
    """Return the thresholds of a level set in the units of the model; none where they are a share of the optimum."""
    several: tuple[float, ...] = getattr(learner.model_goal, "band_thresholds", ())
    single: float | None = getattr(learner.model_goal, "threshold", None)
    return several if several or single is None else (single,)


def excluded_rows(learner: ActiveLearner) -> Mask | None:
    """Return the points that cannot be the optimum, as they are not to be measured; None: there are none. (n,)."""
    excluded = learner.excluded
    if excluded is None or excluded.all() or not excluded.any():
        return None
    return excluded


def unknown_statements(
    inputs: StatementInputs, probability: Array, f1: Estimate | None, regret: Estimate | None
) -> JointStatements:
    """Return statements that decide nothing, before there is a model."""
    infinite = np.full(inputs.n, np.inf)
    reported = inputs.reported()
    misclassified = None
    if reported is not None:
        misclassified = float(inputs.error(reported, probability).sum())
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
        share_above=f1,
    )


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
        learned: Whether part of the model was fitted to the measurements that it is used to
            interpret.
        betas: beta of the bounds after each measurement.
        information: Function T -> upper bound on gamma_T, for the RKHS setting.
        tolerance: By how much a choice may be worse than the best, as a share.
        fitted: Whether there is a model to state anything with.
        epsilon: Accuracy from the bounds; infinite without a model, and as long as no point is
            certain to satisfy the constraints of an optimum.
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
    fitted: bool
    epsilon: float
    model_check: ModelCheck

    @property
    def is_contradicted(self) -> bool:
        """Whether the measurements are further from the model than what the certificate assumes allows."""
        check = self.model_check
        if not check.is_contradiction:
            return False
        schedule = self.policy.confidence.beta
        if isinstance(schedule, RKHSBeta):
            return check.misfit > schedule.norm**2 + len(check.ids)
        return True


def _claim_posterior(learner: ActiveLearner) -> FrozenPosterior:
    """Return the posterior that claims are made with."""
    is_exact = isinstance(learner.policy.confidence.beta, TheoremBeta | RKHSBeta)
    surrogate = learner.surrogate
    return surrogate.freeze() if is_exact else surrogate.freeze_average()


def _mixture_moments(
    transform: OutputTransform,
    posterior: FrozenPosterior,
    means: Array,
    variances: Array,
    bounds: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """Return mean and standard deviation of a mixture in the user's units: (q,) each.

    Transformed values have heavy tails that would move the mean far from all that was measured:
    values beyond the bounds that are stated count as those bounds.

    Args:
        transform: From the user's values to those of the model.
        posterior: The posterior, whose members have shares.
        means: Means of the members. (members, q)
        variances: Variances of the members. (members, q)
        bounds: What `_bounds` returns for them; None: it is computed if it is needed.
    """
    weights = posterior.shares
    if not transform.is_identity:
        bounds = bounds or _bounds(posterior, means, variances)
        return bounded_moments(means, variances, weights, bounds, transform.inverse)
    mean = weights @ means
    sds = np.sqrt(variances)
    return mean, np.sqrt(weights @ (sds**2 + (means - mean) ** 2))


def _bounds(posterior: FrozenPosterior, means: Array, variances: Array) -> tuple[Array, Array]:
    """Return the bounds that f stays above, and below, with probability `CONFIDENCE` each: (q,)."""
    weights = posterior.shares
    low = mixture_quantile(means, variances, 1.0 - CONFIDENCE, weights)
    return low, mixture_quantile(means, variances, CONFIDENCE, weights)
