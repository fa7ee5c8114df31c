"""The exact Gaussian-process posterior, conditioned one action at a time.

| paper | here | shape |
|---|---|---|
| x_1..x_t, Sigma_t | `_points`, `_noise` | (t, d'), (t,) |
| L with L L^T = K_t + Sigma_t | `_factor` | (t, t) |
| L^-1 k_t(x) for every site x | `factor` | (t, m) |
| mu_t(x), sigma_t^2(x) | `mean`, `variance` | (m,) |
| Cov_t(x', x) | `covariance` | |

Rows 0..told-1 carry an observed value, the rows behind them are *pending*: they shrink `pending_variance` (and
`covariance`), which choices are made with, but neither `mean` nor `variance`, which claims are made with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtrs

from truvar._typing import Array, Index
from truvar.domain.candidates import Candidates
from truvar.exceptions import TruvarError
from truvar.messages import for_interface
from truvar.models.cholesky import Factor, local_factor
from truvar.models.kernels import covariance_function, prior_scale

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

EXACT = 1e-14  # an action whose predictive variance is below this share of the prior's tells nothing new
CONTRADICTION = 1e-4  # ... and a value further than this (in prior standard deviations) from the mean contradicts it


class Posterior:
    """f given what was told. Owns its arrays; `add`, `observe` and `drop_pending` are the only ways to change it.

    `mean` None: the constant prior mean is estimated by generalised least squares after every observation.
    """

    def __init__(
        self,
        kernel: Kernel,
        sites: Array,
        mean: float | None = 0.0,
        task_means: Array | None = None,
        domain: int | None = None,
        factor: Callable[[Kernel, Array, int], Factor] = local_factor,
    ) -> None:
        self.kernel = kernel
        self.k = covariance_function(kernel)
        self.sites = sites
        self.n_targets = len(sites) if domain is None else domain
        self.scale = prior_scale(kernel, sites[:domain])  # of the target: the first `domain` sites
        self._prior_mean = mean
        self._task_means = task_means
        m = len(sites)
        self.n_observed, self.n_rows = 0, 0
        self.row_ids: list[int] = []  # one per row, never used twice: tells whether a row is still the same
        self._last_id = 0
        self._solved: tuple[Array, tuple[int, int], Array] | None = None
        self.variance: Array = np.asarray(kernel.diag(sites), dtype=float).copy()
        self.pending_variance: Array = self.variance.copy()
        self._points = np.empty((16, sites.shape[1]))
        self._noise = np.empty(16)
        self._factor = np.zeros((16, 16))
        self.factor = factor(kernel, sites, self.n_targets)
        # L^-1 (y - offset), L^-1 1, and their products with V: the mean follows for any constant prior mean.
        self._offset = 0.0 if mean is None else mean
        self._whitened = np.zeros(16)
        self._ones = np.zeros(16)
        self._pull = np.zeros(m)
        self._hold = np.zeros(m)
        self._mean: Array | None = None  # as it was last asked for

    # -- what is believed ------------------------------------------------------------------------------------------

    @property
    def prior_mean(self) -> float:
        """The constant prior mean: as given, or estimated from what was told."""
        return self._offset + self._shift

    @property
    def mean(self) -> Array:
        """mu_t at every site, eq. (1). Read-only."""
        if self._mean is None:
            mean = self._offset + self._pull + self._shift * (1 - self._hold) + self._task_offset(self.sites)
            mean.setflags(write=False)
            self._mean = mean
        return self._mean

    def covariance(self, rows: Index, candidates: Candidates) -> Array:
        """Cov(rows, candidates) given all that was told and is pending: (rows, c)."""
        if candidates.sites is None:
            across = self.k(self.sites[rows], candidates.points)
            solved = self._solve(candidates.points, self.n_rows)
            if 4 * len(rows) < len(self.sites):  # few: to pick them first is quicker
                return np.asarray(across - self.factor.at(rows).T @ solved)
            return np.asarray(across - self.factor.combine(solved.T)[:, rows].T)
        across = self.k(self.sites[rows], self.sites[candidates.sites])
        return np.asarray(across - self.factor.at(rows).T @ self.factor.at(candidates.sites))

    def predict(self, points: Array) -> tuple[Array, Array]:
        """mu_t and sigma_t^2 at any points (q, d'), eqs. (1)-(2), from what was told alone."""
        v = self._solve(points, self.n_observed)
        weights = self._whitened[: self.n_observed] - self._shift * self._ones[: self.n_observed]
        mean = self._offset + self._shift + v.T @ weights + self._task_offset(points)
        return mean, np.maximum(self.kernel.diag(points) - (v * v).sum(axis=0), 0.0)

    def candidate_variance(self, candidates: Candidates) -> Array:
        """sigma^2 at the candidates' places (c,), given all that was told and is pending."""
        if candidates.sites is not None:
            return self.pending_variance[candidates.sites]
        v = self._solve(candidates.points, self.n_rows)
        return np.asarray(np.maximum(self.kernel.diag(candidates.points) - (v * v).sum(axis=0), 0.0))

    def observed_covariance(self, point: Array) -> tuple[Array, float]:
        """Cov(x, point) at every site x, and the variance at the point (d',), from what was told alone."""
        x = point[None, :]
        v = self._solve(x, self.n_observed)[:, 0]
        across = self.k(self.sites, x)[:, 0] - self.factor.combine(v)
        return across, max(float(self.kernel.diag(x)[0]) - float(v @ v), 0.0)

    def prior_covariance(self, site: int) -> Array:
        """k(x, site) at every site x."""
        return self.k(self.sites, self.sites[site][None, :])[:, 0]

    @property
    def points(self) -> Array:
        """Where was measured, then where a measurement is pending: (rows, d')."""
        return self._points[: self.n_rows]

    @property
    def v(self) -> Array:
        """L^-1 k_t(x) for every site x: (rows, m). The first `told` rows never change."""
        return self.factor.v

    # -- what changes it -------------------------------------------------------------------------------------------

    def add(self, point: Array, noise: float, site: int | None = None) -> None:
        """Appends a pending action: a measurement at `point` (d',) whose value is not yet known."""
        if self.n_rows == len(self._noise):
            self._grow()
        t = self.n_rows
        x = point[None, :]
        v = self._solve(x, t)[:, 0] if site is None else self.factor.at(np.array([site]))[:, 0]
        own = float(self.kernel.diag(x)[0]) - float(v @ v)
        d = own + noise
        root = np.inf if d <= EXACT * self.scale**2 else float(np.sqrt(d))  # known exactly: the row is kept, and empty
        row = self.factor.append(point, v, root)
        self._points[t], self._noise[t] = point, noise
        self._factor[t, :t], self._factor[t, t] = v, root
        self.pending_variance = np.maximum(self.pending_variance - row**2, 0.0)
        self.n_rows += 1
        self._last_id += 1
        self.row_ids.append(self._last_id)

    def observe(self, y: float, task: int = 0) -> None:
        """The value of the first pending action."""
        t, self._mean = self.n_observed, None
        row, root = self._factor[t, :t], self._factor[t, t]
        u = self.factor.row(t)
        if self._prior_mean is None and t == 0:
            self._offset = y
        offset = self._offset + (0.0 if self._task_means is None else float(self._task_means[task]))
        innovation = y - offset - float(row @ self._whitened[:t])
        hold = 1.0 - float(row @ self._ones[:t])
        if not np.isfinite(root):
            self._check_consistent(t, y, innovation - self._shift * hold)
        self._whitened[t], self._ones[t] = innovation / root, hold / root
        self._pull += self._whitened[t] * u
        self._hold += self._ones[t] * u
        self.variance = np.maximum(self.variance - u**2, 0.0)
        self.n_observed += 1
        if self.n_observed == self.n_rows:
            self.pending_variance = self.variance.copy()

    def drop_pending(self) -> None:
        """Forgets every pending action."""
        self.n_rows = self.n_observed
        self.factor.truncate(self.n_observed)
        del self.row_ids[self.n_observed :]
        self.pending_variance = self.variance.copy()

    # -- inside ----------------------------------------------------------------------------------------------------

    @property
    def _shift(self) -> float:
        """The estimated constant mean above `_offset`: (1^T K^-1 y) / (1^T K^-1 1)."""
        if self._prior_mean is not None or self.n_observed == 0:
            return 0.0
        ones = self._ones[: self.n_observed]
        return float(ones @ self._whitened[: self.n_observed]) / float(ones @ ones)

    def _task_offset(self, points: Array) -> Array | float:
        return 0.0 if self._task_means is None else self._task_means[points[:, -1].astype(int)]

    def _solve(self, points: Array, rows: int) -> Array:
        """L^-1 k_t(points), over the first `rows` rows: (rows, q). The last answer is kept: it is often asked twice."""
        if rows == 0:
            return np.zeros((0, len(points)))
        key = (self._last_id, rows)
        if self._solved is not None and self._solved[0] is points and self._solved[1] == key:
            return self._solved[2]
        across = self.k(self._points[:rows], points)
        informative = np.isfinite(self._factor.diagonal()[:rows])
        if informative.all():
            solved: Array = dtrtrs(self._factor[:rows, :rows].T, across, trans=1)[0]  # transposed: LAPACK's order
        else:
            solved = np.zeros_like(across)
            lower = self._factor[np.ix_(informative, informative)]
            solved[informative] = solve_triangular(lower, across[informative], lower=True, check_finite=False)
        self._solved = points, key, solved
        return solved

    def _check_consistent(self, row: int, y: float, innovation: float) -> None:
        """Refuses a value that contradicts what is known exactly: it was measured, or the kernel leaves no room."""
        if abs(innovation) <= CONTRADICTION * self.scale:
            return
        known, came = f"{y - innovation:.10g}", f"{y:.10g}"
        noise = for_interface("noise=...", cli="--noise VARIANCE", http="noise")
        if (self._points[:row] == self._points[row]).all(axis=1).any():
            raise TruvarError(
                f"with noise 0 the value here is already known to be {known}, but {came} came; if "
                f"measurements of one point can differ, give the noise variance ({noise})"
            )
        rougher = for_interface("Matern with nu=2.5", problem='[model] kernel = "matern52"')
        raise TruvarError(
            f"with noise 0 and so smooth a kernel the value here must be {known}, but {came} came; give the noise "
            f"variance ({noise}) or a rougher kernel, such as {rougher}"
        )

    def _grow(self) -> None:
        size = 2 * len(self._noise)

        def grown(old: Array, shape: tuple[int, ...]) -> Array:
            new = np.zeros(shape)
            new[tuple(slice(n) for n in old.shape)] = old
            return new

        self._points = grown(self._points, (size, self._points.shape[1]))
        self._noise = grown(self._noise, (size,))
        self._factor = grown(self._factor, (size, size))
        self._whitened, self._ones = grown(self._whitened, (size,)), grown(self._ones, (size,))
