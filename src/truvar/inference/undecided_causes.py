"""The cause that keeps the most points undecided, in one sentence.

Points stay undecided for want of measurements near them, or because of what is unknown of the model.
The cost of each cause is found with the members of the posterior as they are:

| cause | what is compared with the present |
|---|---|
| noise or fine structure | two measurements are repeated |
| smoothness | the most probable kernel family is certain |
| a value that contradicts the others, or is left out | its measurement is repeated |
| an unvisited part | one measurement is made in it |

A point counts as undecided here if its class, considered alone, is less probable than
`CONFIDENCE`; for an optimum, if it may be better than the best estimate. Values of measurements that
were not made are drawn from every member in turn, and change means, variances and weights of all:

| symbol | here | shape |
|---|---|---|
| y', hypothetical values at k points | `values` | (k,) |
| C_j, posterior covariance of k points and q sites in member j | `across` | (k, q) |
| S_j, covariance of the values, noise included | `inner` | (k, k) |
| mu_j + C_j^T S_j^-1 (y' - mu_j(k points)), sigma_j^2 - diag(C_j^T S_j^-1 C_j) | member j given y' | (q,) |
| w_j N(y'; mu_j(k points), S_j), normalised | its weight | |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.domain.domain import Domain
from truvar.domain.labels import place_in_words
from truvar.inference._goals import inference_of
from truvar.inference.inputs import StatementInputs
from truvar.inference.statements import CONFIDENCE
from truvar.models.frozen import FrozenMember

_MAX_ROWS = 500  # points that are counted; of more, a share of them
_RELEVANT_CERTAINTY = 0.999  # points with more are not counted
_MIN_UNDECIDED = 5  # points below which no cause is looked for
_MIN_SETTLED_SHARE = 0.1  # of the undecided points, below which a cause is not worth a sentence
_MIN_LEFT_OUT_NOISE = 100.0  # prior variances: a value with more noise says nothing
_N_REPEATS = 2  # repeats that are considered
_MAX_REACH = 1.0  # length-scales from the nearest measurement beyond which a part is unvisited
_MIN_UNVISITED_SHARE = 0.5  # of the undecided points
JITTER_SHARE = 1e-9  # of the variances of values, so that rounding leaves them positive
TINY = float(np.finfo(float).tiny)  # variance, at least
_FAMILY_NAMES = {
    "matern12": "Matern 1/2",
    "matern32": "Matern 3/2",
    "matern52": "Matern 5/2",
    "rbf": "RBF",
}


class Cause(NamedTuple):
    """A cause that keeps points undecided.

    Attributes:
        n_settled: Number of points that it keeps undecided, about.
        sentence: The sentence that says so.
        points: Where measurements would remove it. (k, d')
    """

    n_settled: float
    sentence: str
    points: Array


@dataclass(frozen=True, eq=False)
class _Members:
    """The members of a posterior at the rows that are counted.

    Attributes:
        inputs: The inputs that they come from.
        rows: The rows. (q,)
        each: Number of points that each row stands for.
        means: (members, q)
        variances: (members, q)
        weights: (members,)
    """

    inputs: StatementInputs
    rows: Index
    each: float
    means: Array
    variances: Array
    weights: Array

    def undecided(self, means: Array, variances: Array, weights: Array) -> Mask:
        """Return which rows are undecided, given the moments and weights of some members: (q,)."""
        return (
            inference_of(self.inputs.goal).certainty(self.inputs, means, variances, weights)
            < CONFIDENCE
        )

    def count(self, means: Array, variances: Array, weights: Array) -> float:
        """Return how many points of the domain are undecided, about."""
        return self.each * float(self.undecided(means, variances, weights).sum())

    @property
    def n_undecided(self) -> float:
        """Number of points that are undecided at present, about."""
        return self.count(self.means, self.variances, self.weights)

    def count_after(self, points: Array, noise: Array) -> float:
        """Return how many points are expected to be undecided after measurements.

        Args:
            points: Where they are made. (k, d')
            noise: Their noise variances by member. (members, k)
        """
        inputs = self.inputs
        sites = inputs.sites[self.rows]
        at_points, _ = inputs.posterior.predict(points)
        roots: list[Array] = []  # S_j^-1/2 C_j
        lowers: list[Array] = []
        for member, own_noise in zip(inputs.posterior.members, noise, strict=True):
            inner = member.posterior_covariance(points, points) + np.diag(own_noise)
            jitter = JITTER_SHARE * np.trace(inner) + TINY
            lower = np.linalg.cholesky(inner + jitter * np.eye(len(points)))
            across = member.posterior_covariance(points, sites)
            roots.append(solve_triangular(lower, across, lower=True, check_finite=False))
            lowers.append(np.asarray(lower))
        root = np.stack(roots)
        variances = np.maximum(self.variances - (root**2).sum(axis=1), 0.0)
        standard = np.random.default_rng(inputs.seed).standard_normal((len(lowers), len(points)))
        total = 0.0
        for truth, sign in product(range(len(lowers)), (1.0, -1.0)):  # antithetic draws
            values = at_points[truth] + sign * lowers[truth] @ standard[truth]
            whitened = np.stack(
                [
                    solve_triangular(lower, values - mean, lower=True, check_finite=False)
                    for lower, mean in zip(lowers, at_points, strict=True)
                ]
            )
            means = self.means + np.einsum("jk,jkq->jq", whitened, root)
            log_density = -0.5 * (whitened**2).sum(axis=1)
            log_density -= np.array([np.log(np.diag(lower)).sum() for lower in lowers])
            posterior = self.weights * np.exp(log_density - log_density.max())
            total += (
                self.weights[truth] / 2 * self.count(means, variances, posterior / posterior.sum())
            )
        return float(total)


@blas_in_one_thread()
def find_cause(inputs: StatementInputs, domain: Domain) -> Cause | None:
    """Return what keeps the most points undecided; None: nothing in particular does.

    Args:
        inputs: The inputs of the statements.
        domain: Domain of the study.
    """
    if not inputs.fitted or len(inputs.posterior.members[0].points) == 0:
        return None
    members = _members(inputs)
    if len(members.rows) == 0 or members.n_undecided < _MIN_UNDECIDED:
        return None
    finders = (_repeats, _smoothness, _suspect, _unexplained, _unvisited)
    causes = (find(members, domain) for find in finders)
    found = [cause for cause in causes if cause is not None]
    least = max(_MIN_SETTLED_SHARE * members.n_undecided, 1.0)
    relevant = [cause for cause in found if cause.n_settled >= least]
    # A cause that a measurement removes comes before one that none is known for.
    return max(relevant, key=lambda cause: (len(cause.points) > 0, cause.n_settled), default=None)


def main_cause(inputs: StatementInputs, domain: Domain) -> str | None:
    """Return the sentence about what keeps the most points undecided; None: there is none.

    Args:
        inputs: The inputs of the statements.
        domain: Domain of the study.
    """
    cause = find_cause(inputs, domain)
    return None if cause is None else cause.sentence


def _members(inputs: StatementInputs) -> _Members:
    """Return the members at the rows whose class is not certain, or at evenly chosen ones of them."""
    weights = inputs.posterior.shares
    certainty = inference_of(inputs.goal).certainty(inputs, inputs.means, inputs.variances, weights)
    if inputs.goal.seeks_optimum and inputs.excluded is not None:
        certainty[inputs.excluded] = 1.0  # the optimum is not there
    order = np.argsort(certainty, kind="stable")
    relevant = order[certainty[order] < _RELEVANT_CERTAINTY]
    step = max(ceil(len(relevant) / _MAX_ROWS), 1)
    rows = relevant[::step]
    each = len(relevant) / max(len(rows), 1)
    return _Members(inputs, rows, each, inputs.means[:, rows], inputs.variances[:, rows], weights)


def _noise_at_observations(member: FrozenMember) -> Array:
    """Return the noise variances of the observations, (t,)."""
    total = (member.lower**2).sum(axis=1)  # the diagonal of L L^T
    return np.asarray(np.maximum(total - member.prior_variance(member.points), 0.0))


def _repeats(members: _Members, domain: Domain) -> Cause | None:
    """Return what learned noise costs that may be fine structure, if no place was measured twice."""
    posterior = members.inputs.posterior
    points = posterior.members[0].points
    if len(np.unique(points, axis=0)) < len(points) or len(points) < _N_REPEATS:
        return None
    noise = np.stack([_noise_at_observations(member) for member in posterior.members])
    if np.allclose(noise, noise[0]):  # it is given
        return None
    _, variances = posterior.predict(points)
    # Repeats tell members apart whose predictions of them differ the most.
    disagreement = np.log(variances + noise + TINY).std(axis=0)
    disagreement[list(members.inputs.outliers)] = 0.0
    chosen = np.argsort(-disagreement, kind="stable")[:_N_REPEATS]
    n_settled = members.n_undecided - members.count_after(points[chosen], noise[:, chosen])
    where = " and ".join(_place(domain, point) for point in points[chosen])
    return Cause(
        n_settled,
        f"No place was measured twice; two repeats, at {where}, would settle about "
        f"{_about(n_settled)} more.",
        points[chosen],
    )


def _smoothness(members: _Members, domain: Domain) -> Cause | None:
    """Return what the unknown smoothness of f costs."""
    families = np.array([member.family for member in members.inputs.posterior.members])
    names = [name for name in _FAMILY_NAMES if (families == name).any()]
    if len(names) < 2 or not np.isin(families, names).all():  # a given kernel is none of them
        return None
    shares = [float(members.weights[families == name].sum()) for name in names]
    heaviest = names[int(np.argmax(shares))]
    weights = np.where(families == heaviest, members.weights, 0.0)
    alone = members.count(members.means, members.variances, weights / weights.sum())
    n_settled = members.n_undecided - alone
    return Cause(
        n_settled,
        f"The values do not tell how smooth f is; if {_FAMILY_NAMES[heaviest]} (probability "
        f"{100 * max(shares):.0f} %) were right, about {_about(n_settled)} more would be settled.",
        np.zeros((0, members.inputs.sites.shape[1])),
    )


def _suspect(members: _Members, domain: Domain) -> Cause | None:
    """Return what a value costs that some members leave out, as the others contradict it."""
    posterior = members.inputs.posterior
    points = posterior.members[0].points
    noise = np.stack([_noise_at_observations(member) for member in posterior.members])
    prior = np.stack([member.prior_variance(points) for member in posterior.members])
    is_left_out = noise > _MIN_LEFT_OUT_NOISE * prior
    probability = members.weights @ is_left_out
    position = int(np.argmax(np.minimum(probability, 1.0 - probability)))
    if not 0.0 < probability[position] < 1.0:
        return None
    typical = np.median(noise, axis=1)
    point = points[position : position + 1]
    n_settled = members.n_undecided - members.count_after(point, typical[:, None])
    return Cause(
        n_settled,
        f"The value at {_place(domain, point[0])} contradicts the others; a repeat would settle about "
        f"{_about(n_settled)} more.",
        point,
    )


def _unexplained(members: _Members, domain: Domain) -> Cause | None:
    """Return what a value that the model leaves out costs."""
    inputs = members.inputs
    if not inputs.outliers:
        return None
    position = inputs.outliers[0]
    points = inputs.posterior.members[0].points
    noise = np.array([np.median(_noise_at_observations(each)) for each in inputs.posterior.members])
    point = points[position : position + 1]
    n_settled = members.n_undecided - members.count_after(point, noise[:, None])
    return Cause(
        n_settled,
        f"The value at {_place(domain, point[0])} is unexplained and left out; a repeat would settle about "
        f"{_about(n_settled)} more.",
        point,
    )


def _unvisited(members: _Members, domain: Domain) -> Cause | None:
    """Return what a part far from all measurements costs, if most undecided points are in it."""
    inputs = members.inputs
    posterior = inputs.posterior
    is_undecided = members.undecided(members.means, members.variances, members.weights)
    shape = inputs.sites.shape[1:]
    log_scales = np.stack(
        [np.broadcast_to(np.log(each.scales), shape) for each in posterior.members]
    )
    scales = np.exp(members.weights @ log_scales)
    sites = inputs.sites[members.rows[is_undecided]] / scales
    observed = posterior.members[0].points / scales
    is_far = _distances(sites, observed).min(axis=1) > _MAX_REACH
    if is_far.mean() < _MIN_UNVISITED_SHARE:
        return None
    far = sites[is_far]
    central = int(np.argmax((_distances(far, far) <= _MAX_REACH).sum(axis=1)))
    row = int(members.rows[is_undecided][is_far][central])
    noise = np.array([np.median(_noise_at_observations(each)) for each in posterior.members])
    point = inputs.sites[row : row + 1]
    n_settled = members.n_undecided - members.count_after(point, noise[:, None])
    return Cause(
        n_settled,
        f"{100 * is_far.mean():.0f} % of the undecided points are more than a length-scale from "
        f"every measurement; one at {_place(domain, point[0])} would settle about {_about(n_settled)} more.",
        point,
    )


def _distances(points: Array, others: Array) -> Array:
    """Return the distances of points (q, d) and others (k, d): (q, k)."""
    squares = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares - 2.0 * points @ others.T, 0.0)))


def _place(domain: Domain, point: Array) -> str:
    """Return a point of the model in words: "(x 3, y 4)"."""
    named = domain.named(point[: len(domain.columns)])
    return place_in_words(domain, named)


def _about(count: float) -> str:
    """Return a number of points with two digits."""
    rounded = float(f"{max(count, 0.0):.2g}")
    return f"{rounded:,.0f}"
