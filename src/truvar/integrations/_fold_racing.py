"""Racing over folds: quick choices for fits that take milliseconds.

A configuration is evaluated on one fold first, or on a tenth of many, and on more only while it can
still be expected to improve on the best.

| symbol | here | shape |
|---|---|---|
| f = g + h | mean score over all k folds: a smooth part g and a part h of each configuration's own | (n,) |
| g | Gaussian process with a Matern-5/2 kernel, MAP hyperparameters and a constant mean | |
| v | `ScoreModel.nugget`, variance of h: the scores of discrete metrics jump between neighbours | scalar |
| y | mean over the m evaluated folds, without the effects of the folds | (q,) |
| s² (1/m - 1/k) | variance of y given f: 0 once all folds were evaluated | (q,) |
| A | covariance of y: k(X, X) + diag(v + s² (1/m - 1/k)) | (q, q) |

The next folds are those of the configuration with the highest expected improvement on the best
complete configuration, divided by the cost of the folds that it lacks. Within a batch, the variance
is updated as if the chosen ones had been evaluated as expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from truvar._typing import Array, Index, Mask
from truvar.acquisition.utils import expected_improvement
from truvar.models.hyperposterior import HyperPrior, MarginalLikelihood, find_mode
from truvar.models.kernels import Stationary

MATERN52 = 5  # twice the smoothness
CONSTANT_VARIANCE = 1.0  # prior variance of the constant mean, in units of the signal variance
# Mean and standard deviation of the log nugget, in variances of the values.
NUGGET_PRIOR = (np.log(1e-2), 1.5)
NUGGET_BOUNDS = (np.log(1e-5), 0.0)
# Configurations that the model is conditioned on; half of them are the best ones.
MAX_MODELLED = 400
FOLDS_PER_FIRST = 10  # a new configuration is evaluated on one fold for every so many
# Further folds of a configuration that was evaluated on one or two; otherwise as many again.
FURTHER_FOLDS = 2
# of the variance of the values, so that the covariance of equal configurations can be factorised
JITTER = 1e-9


@dataclass(frozen=True)
class ScoreModel:
    """Hyperparameters of the model of the scores.

    Attributes:
        theta: Their logarithms, as `MarginalLikelihood` has them; the next fit starts there.
        lengthscales: Length-scales of the coordinates, (d,).
        variance: Variance of g.
        nugget: Variance of h.
        centre: Prior mean of g. Its constant mean has the variance `CONSTANT_VARIANCE` times
            `variance` around it.
        n_fitted: Number of configurations that it was fitted to.
    """

    theta: Array
    lengthscales: Array
    variance: float
    nugget: float
    centre: float
    n_fitted: int

    def covariance(self, points: Array, others: Array, categorical: Sequence[int]) -> Array:
        """Return the prior covariance of g, that of its constant mean included: (p, q)."""
        kernel = Stationary(MATERN52, self.variance, self.lengthscales, tuple(categorical))
        return np.asarray(kernel(points, others) + CONSTANT_VARIANCE * self.variance)


def fit_score_model(
    points: Array,
    values: Array,
    noise: Array,
    categorical: Sequence[int],
    previous: ScoreModel | None,
) -> ScoreModel:
    """Return the hyperparameters of highest posterior density.

    Args:
        points: Coordinates of the configurations, (q, d).
        values: y, (q,).
        noise: Variances of y given f, (q,).
        categorical: Positions of the columns of categories.
        previous: An earlier fit to start from; None: the mean of the prior.
    """
    centre = float(values.mean())
    spread = float(values.std())
    spread = spread if spread > 0 else 1.0
    dimension = points.shape[1]
    smooth = HyperPrior.default(
        dimension, learn_noise=False, learn_power=False, categorical=categorical
    )
    prior = HyperPrior(
        np.append(smooth.mean, NUGGET_PRIOR[0]),
        np.append(smooth.sd, NUGGET_PRIOR[1]),
        np.append(smooth.low, NUGGET_BOUNDS[0]),
        np.append(smooth.high, NUGGET_BOUNDS[1]),
    )
    likelihood = MarginalLikelihood(
        points,
        (values - centre) / spread,
        MATERN52,
        extra=noise / spread**2,
        constant=CONSTANT_VARIANCE,
        categorical=tuple(categorical),
    )
    start = prior.mean if previous is None else previous.theta
    theta = find_mode(likelihood, prior, [start])
    return ScoreModel(
        theta,
        likelihood.lengthscales(theta),
        likelihood.signal_variance(theta) * spread**2,
        float(np.exp(theta[-1])) * spread**2,
        centre,
        len(values),
    )


@dataclass(frozen=True)
class ScorePosterior:
    """Posterior of f for all configurations of a pool, given the scores of some.

    Attributes:
        mean: Posterior means, (n,).
        variance: Posterior variances, (n,).
        covariance_of: Returns the posterior covariances of g of one configuration with all, (n,).
    """

    mean: Array
    variance: Array
    covariance_of: Callable[[int], Array]


def score_posterior(
    model: ScoreModel,
    points: Array,
    rows: Index,
    values: Array,
    noise: Array,
    categorical: Sequence[int],
) -> ScorePosterior:
    """Return the posterior of f.

    Args:
        model: The hyperparameters.
        points: Coordinates of all configurations, (n, d).
        rows: Configurations with scores, (q,).
        values: y, (q,).
        noise: Variances of y given f, (q,).
        categorical: Positions of the columns of categories.
    """
    cross = model.covariance(points[rows], points, categorical)  # (q, n)
    error = noise + JITTER * (model.variance + model.nugget)
    total = cross[:, rows] + np.diag(model.nugget + error)
    factor = np.linalg.cholesky(total)
    inverse = solve_triangular(factor, np.eye(len(rows)), lower=True)  # of the factor
    white = inverse @ cross
    residual = values - model.centre
    weights = inverse.T @ (inverse @ residual)
    mean = model.centre + weights @ cross
    prior_variance = (1.0 + CONSTANT_VARIANCE) * model.variance
    variance = prior_variance - np.einsum("qn,qn->n", white, white) + model.nugget
    # f = g + h of a configuration with scores: cov(f, y) = A - diag(error), hence E f = y - error
    # A^-1 (y - centre).
    mean[rows] = values - error * weights
    variance[rows] = error - error**2 * np.einsum("ij,ij->j", inverse, inverse)

    def covariance_of(row: int) -> Array:
        prior = model.covariance(points[row : row + 1], points, categorical)[0]
        return np.asarray(prior - white[:, row] @ white)

    return ScorePosterior(mean, np.maximum(variance, 0.0), covariance_of)


def modelled_rows(rows: Index, values: Array) -> Index:
    """Return positions of values to condition on: all, or the best and evenly spaced ranks."""
    if len(rows) <= MAX_MODELLED:
        return np.arange(len(rows))
    order = np.argsort(-values, kind="stable")
    half = MAX_MODELLED // 2
    others = np.linspace(half, len(rows) - 1, MAX_MODELLED - half).round().astype(int)
    return np.sort(order[np.append(np.arange(half), others)])


def n_first_folds(n_folds: int) -> int:
    """Return the number of folds that a new configuration is evaluated on."""
    return -(-n_folds // FOLDS_PER_FIRST)


def choose_folds(
    posterior: ScorePosterior,
    best: float,
    n_tried: Index,
    excluded: Mask,
    *,
    n_folds: int,
    costs: Array,
    error_variance: float,
    nugget: float,
    batch: int,
    left: int,
) -> list[tuple[int, int]]:
    """Return configurations to evaluate and numbers of further folds.

    Args:
        posterior: The posterior of f.
        best: Highest score of a complete configuration.
        n_tried: Number of evaluated folds of each configuration, (n,).
        excluded: Configurations that must not be chosen, (n,).
        n_folds: k.
        costs: Cost of a fit of each configuration, (n,).
        error_variance: s².
        nugget: Variance of h.
        batch: Number of fits after which no configuration is added.
        left: Number of fits that the budget allows. A configuration is only chosen if it can be
            completed.

    Returns:
        Pairs of a row and a number of folds, at most one for each row.
    """
    variance = posterior.variance.copy()
    lacking = n_folds - n_tried
    is_new = n_tried == 0
    free = ~excluded & (lacking > 0)
    chosen: list[tuple[int, int]] = []
    spent = 0
    while spent < batch:
        possible = free & (lacking <= left - spent)
        if not possible.any():
            break
        gain = expected_improvement(posterior.mean, np.sqrt(variance), best) / (
            costs * np.maximum(lacking, 1)
        )
        row = int(np.argmax(np.where(possible, gain, -1.0)))
        if gain[row] <= 0:  # too small for a number
            row = int(np.argmax(np.where(possible, posterior.mean, -np.inf)))
        n_more = n_first_folds(n_folds) if is_new[row] else max(FURTHER_FOLDS, int(n_tried[row]))
        if left - spent <= n_folds:  # the last configuration that can be completed
            n_more = n_folds
        n_more = min(n_more, int(lacking[row]))
        chosen.append((row, n_more))
        free[row] = False
        spent += n_more
        if is_new[row]:
            covariance = posterior.covariance_of(row)
            observed = covariance[row] + nugget + error_variance * (1 / n_more - 1 / n_folds)
            if observed > 0:
                reduced = np.maximum(variance - covariance**2 / observed, 0.0)
                variance = np.where(is_new, reduced, variance)
    return chosen
