"""Learning the hyperparameters of a latent function from outcomes: the mode, a sample, and claims.

| unknown | prior | how the data decide |
|---|---|---|
| length-scales | that of `hyperposterior` | evidence of Laplace's approximation |
| standard deviation of f | log-normal, `Outcome.log_signal` | the same |
| constant mean of f | normal, `Outcome.constant` | integrated out |
| smoothness of f, for claims | Matern 3/2, 5/2 and RBF, equally probable | see `model_average` |

Every member of an average has its own pseudo-values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Mask
from truvar.models._labels import Labels
from truvar.models._laplace import LaplaceEvidence, approximate
from truvar.models._learned import sample_size
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.frozen import FrozenMember, FrozenPosterior, robust_cholesky
from truvar.models.hyperposterior import HyperPrior, HyperSample, find_mode, sample_posterior
from truvar.models.kernels import SMOOTHNESS, Stationary, twice_nu
from truvar.models.model_average import MIN_FAMILY_WEIGHT, tempered

# Labels say little of the smoothness, so that the prior decides: probabilities and rates do not
# jump from point to point, as a Matern 1/2 does.
_FAMILIES = ("matern32", "matern52", "rbf")


@dataclass(frozen=True, eq=False)
class LatentData:
    """Outcomes to learn from.

    Attributes:
        labels: The measurements.
        extent: Extent of the domain. (d,)
        spacing: Smallest distance between coordinates of the domain, in extents. (d,)
        categorical: Positions of the columns of categories.
    """

    labels: Labels
    extent: Array
    spacing: Array
    categorical: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """Mean of f a priori."""
        return self.labels.outcome.prior_mean(self.labels.values, self.labels.exposures)

    @property
    def prior(self) -> HyperPrior:
        """Prior of the hyperparameters, those of f in its own units."""
        d = len(self.extent)
        prior = HyperPrior.default(
            d, False, False, 0.5 * self.spacing, categorical=self.categorical
        )
        centre, width = self.labels.outcome.log_signal
        reach = (prior.high[d] - prior.mean[d]) / prior.sd[d]
        changed = {
            "mean": centre,
            "sd": width,
            "low": centre - reach * width,
            "high": centre + reach * width,
        }
        columns = {name: getattr(prior, name).copy() for name in changed}
        for name, value in changed.items():
            columns[name][d] = value
        return HyperPrior(**columns)

    def evidence(self, family: str) -> LaplaceEvidence:
        """Return the evidence as a function of the hyperparameters of a family."""
        labels = replace(self.labels, points=self.labels.points / self.extent)
        return LaplaceEvidence(labels, self.mean, twice_nu(SMOOTHNESS[family]), self.categorical)

    def model(self, family: str, thetas: Array, log_posterior: float) -> EnsembleModel:
        """Return hyperparameters (m, d + 1) as they are stored."""
        d = len(self.extent)
        return EnsembleModel(
            family=family,
            lengthscales=np.exp(thetas[:, :d]) * self.extent,
            signal=np.exp(2.0 * thetas[:, d]),
            noise=None,
            transform=self.labels.outcome.link(self.mean),
            log_posterior=log_posterior,
            categorical=self.categorical,
        )


def unfitted_latent(family: str, data: LatentData) -> EnsembleModel:
    """Return the prior as a model, without a sample, for too few outcomes to learn from."""
    return data.model(family, data.prior.mean[None, :], float("nan"))


def fit_latent(
    family: str, data: LatentData, previous: EnsembleModel | None, seed: int
) -> EnsembleModel:
    """Return the hyperparameters learned from outcomes.

    Args:
        family: "rbf", "matern12", "matern32" or "matern52".
        data: The outcomes.
        previous: The model of fewer outcomes, which the search starts from.
        seed: Seed of the sample.
    """
    members = sample_size(len(data.labels))[0]
    sample, density = _sample(family, data, previous, members, seed)
    return data.model(family, np.vstack([sample.mode, sample.thetas]), density)


def _sample(
    family: str, data: LatentData, previous: EnsembleModel | None, members: int, seed: int
) -> tuple[HyperSample, float]:
    """Return plausible hyperparameters, and the log posterior density of the most probable ones."""
    evidence = data.evidence(family)
    prior = data.prior
    starts = [prior.mean]
    if previous is not None:
        lengths = np.log(previous.lengthscales[0] / data.extent)
        starts.append(np.append(lengths, 0.5 * np.log(previous.signal[0])))
    mode = find_mode(evidence, prior, starts)
    _, proposals, rounds = sample_size(len(data.labels))
    sample = sample_posterior(evidence, prior, mode, members, proposals, rounds, seed)
    with blas_in_one_thread():
        density = evidence.value(mode) + prior.log_density(mode)
    return sample, density


@blas_in_one_thread()
def latent_average(
    data: LatentData, current: EnsembleModel, n_members: int, seed: int
) -> FrozenPosterior:
    """Return the posterior averaged over smoothness and hyperparameters.

    Args:
        data: The outcomes.
        current: The fit that the searches start from.
        n_members: Number of members, about.
        seed: Seed of the sample.
    """
    found = [_sample(family, data, current, n_members, seed)[0] for family in _FAMILIES]
    weights = tempered(np.array([sample.log_evidence for sample in found]))
    weights[weights < MIN_FAMILY_WEIGHT] = 0.0
    weights /= weights.sum()
    members: list[FrozenMember] = []
    shares: list[float] = []
    for family, sample, weight in zip(_FAMILIES, found, weights.tolist(), strict=True):
        if weight == 0.0:
            continue
        count = max(round(n_members * weight), 1)
        rows = (np.arange(count) * len(sample.thetas)) // count
        model = data.model(family, sample.thetas[rows], float("nan"))
        members += [_frozen_member(model, row, data.labels) for row in range(count)]
        shares += [weight / count] * count
    return FrozenPosterior(tuple(members), tuple(shares))


def _frozen_member(model: EnsembleModel, row: int, labels: Labels) -> FrozenMember:
    """Return the posterior with the hyperparameters of one row of a model."""
    signal = float(model.signal[row])
    lengthscales = model.lengthscales[row]
    kernel = Stationary(twice_nu(SMOOTHNESS[model.family]), signal, lengthscales, model.categorical)
    constant = labels.outcome.constant * signal
    mean = model.transform.shift

    def covariance(points: Array, others: Array) -> Array:
        return np.asarray(kernel(points, others) + constant)

    points = labels.points
    lower, whitened = _condition(labels, covariance(points, points), mean)
    return FrozenMember(
        covariance=covariance,
        prior_variance=lambda points: np.full(len(points), signal + constant),
        prior_mean=lambda points: np.full(len(points), mean),
        points=points,
        lower=lower,
        whitened=whitened,
        whitened_ones=None,
        scales=np.full(points.shape[1], lengthscales),
        family=model.family,
    )


def _condition(labels: Labels, covariance: Array, mean: float) -> tuple[Array, Array]:
    """Return the Cholesky factor of K + 1 / W (t, t), and the whitened pseudo-values (t,)."""
    z, noise = approximate(labels, covariance, mean).pseudo_values
    within = covariance.copy()
    within[np.diag_indices_from(within)] += noise
    lower = robust_cholesky(within)
    return lower, np.asarray(solve_triangular(lower, z - mean, lower=True, check_finite=False))


@blas_in_one_thread()
def modal_values(model: EnsembleModel, labels: Labels) -> tuple[Array, Array, float]:
    """Return pseudo-values with the most probable hyperparameters.

    Returns:
        The pseudo-values and their noise variances, (t,) each, and the constant mean of f that
        belongs to them: with it as the known mean, the posterior has the same mean of f.
    """
    signal = float(model.signal[0])
    constant = labels.outcome.constant * signal
    mean = model.transform.shift
    if len(labels) == 0:
        return np.zeros(0), np.zeros(0), mean
    covariance = np.asarray(model.kernel(labels.points, labels.points)) + constant
    found = approximate(labels, covariance, mean)
    z, noise = found.pseudo_values
    return z, noise, mean + constant * float(found.gradient.sum())


class LatentEnsemble(Ensemble):
    """A mixture of posteriors of which each has its own pseudo-values.

    Args:
        model: The hyperparameters.
        sites: Points to predict. (n, d)
        labels: The outcomes that it will be conditioned on.
    """

    def __init__(self, model: EnsembleModel, sites: Array, labels: Labels) -> None:
        super().__init__(model, sites, None, len(labels))
        self._labels = labels
        self.constant = labels.outcome.constant * self.signal
        self._start(len(self.signal))

    @blas_in_one_thread()
    def condition(self, points: Array, z: Array, noise: Array, learned: Mask) -> None:
        """Condition on the outcomes; the values of the most probable member are of no use here."""
        self._allocate(points)
        t = len(points)
        for j in range(len(self.kernels)):
            lower, whitened = _condition(
                self._labels, self._covariance(j, points, points), self.shift
            )
            self._lower[j, :t, :t] = lower
            self._whitened[j, :t] = whitened
            self._predict_sites(j, lower, whitened)
