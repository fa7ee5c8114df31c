"""The exact Gaussian-process posterior, conditioned on one action at a time.

| paper | here | shape |
|---|---|---|
| x_1..x_t, Sigma_t | `points`, `_noise` | (t, d'), (t,) |
| L with L L^T = K_t + Sigma_t | `_cholesky` | (t, t) |
| V = L^-1 K(X_t, sites) | `factor` | (t, m) |
| mu_t(x), sigma_t^2(x) | `mean`, `variance` | (m,) |
| Cov_t(x', x) | `covariance` | |
| y_1..y_t | `values` | (t,) |
| L^-1, Q = (K_t + Sigma_t)^-1 = L^-T L^-1 | `_inverse` | (t, t) |

The first `n_observed` rows have an observed value; the rows behind them are *pending*. Pending rows
reduce `pending_variance` and `covariance`, on which choices are based, but neither `mean` nor
`variance`, on which statements about f are based.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtrs

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index
from truvar.domain.candidates import Candidates
from truvar.exceptions import InvalidMeasurementError
from truvar.messages import for_interface
from truvar.models._inverse_factor import InverseFactor
from truvar.models._tiles import FEW_SITES
from truvar.models.factor import Factor, LocalFactor, Row
from truvar.models.frozen import FrozenMember, FrozenPosterior
from truvar.models.kernels import Coregionalized, covariance_function, prior_scale, stationary_form

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

# share of the prior variance: a measurement with a smaller predictive variance gives no information
EXACT_VARIANCE_SHARE = 1e-14
# the same below which measurements are added one by one, as some may be exact
_SAFE_VARIANCE_SHARE = 1e-11
_ROUNDING_SHARE = 1e-12  # share of a precision below which the rest of a subtraction is rounding
# prior standard deviations: largest difference between a value and one that is known exactly
_MAX_CONTRADICTION_SDS = 1e-4


class Posterior:
    """The distribution of f given the observations, at a fixed set of sites.

    It owns its arrays: only `add`, `observe` and `drop_pending` change it.

    Args:
        kernel: Kernel of the prior.
        sites: Coordinates at which the posterior is kept up to date. (m, d')
        mean: Constant prior mean; None: estimated by generalised least squares after every
            observation.
        offset: The part of the prior mean that depends on the point, added to the constant: a
            function of points (q, d') that returns (q,); None: there is none.
        n_targets: How many of the first sites are targets, the points that M, H and L are about;
            None: all.
        factor: Function of kernel and sites that creates the factor.

    Attributes:
        scale: Largest prior standard deviation over the targets.
        n_observed: Number of rows with an observed value.
        n_rows: Number of rows, pending ones included.
        row_ids: One number per row that is never used again, so that others can tell whether a row
            is still the same.
        variance: sigma_t^2 at every site, given the observations. (m,)
        pending_variance: The variance given the observations and the pending actions. (m,)
    """

    def __init__(
        self,
        kernel: Kernel,
        sites: Array,
        mean: float | None = 0.0,
        offset: Callable[[Array], Array] | None = None,
        n_targets: int | None = None,
        factor: Callable[[Kernel, Array], Factor] = LocalFactor,
    ) -> None:
        self.kernel = kernel
        self.k = covariance_function(kernel)
        self.sites = sites
        self.n_targets = len(sites) if n_targets is None else n_targets
        self.scale = prior_scale(kernel, sites[:n_targets])
        self._prior_mean = mean
        self._point_offset = offset
        self._site_offset = self._offset_at(sites)
        m = len(sites)
        self.n_observed = 0
        self.n_rows = 0
        self.row_ids: list[int] = []
        self._last_id = 0
        self._solved: tuple[Array, tuple[int, int], Array] | None = None
        self.variance: Array = np.asarray(kernel.diag(sites), dtype=float).copy()
        self.pending_variance: Array = self.variance.copy()
        self._points = np.empty((16, sites.shape[1]))
        self._noise = np.empty(16)
        self._cholesky = np.zeros((16, 16))
        self.factor = factor(kernel, sites)
        # L^-1 (y - offset) and L^-1 1, and their products with V: they give the mean for any
        # constant prior mean.
        self._offset = 0.0 if mean is None else mean
        self._whitened = np.zeros(16)
        self._ones = np.zeros(16)
        self._values = np.zeros(16)
        # Computed when it is first needed; observed rows of L never change.
        self._inverse = InverseFactor(2)
        self._mean_update = np.zeros(m)
        self._ones_update = np.zeros(m)
        self._mean: Array | None = None  # cached until the next observation

    # -- moments
    # ----------------------------------------------------------------------------------------------

    @property
    def prior_mean(self) -> float:
        """The constant prior mean, as given or as estimated from the observations."""
        return self._offset + self._shift

    @property
    def prior_means(self) -> Array:
        """The prior mean at every site, (m,): the constant and what depends on the point."""
        return self.prior_mean + self._site_offset

    @property
    def mean(self) -> Array:
        """mu_t at every site, eq. (1). Read-only."""
        if self._mean is None:
            constant = self._shift * (1 - self._ones_update)
            mean = self._offset + self._mean_update + constant + self._site_offset
            mean.setflags(write=False)
            self._mean = mean
        return self._mean

    def covariance(self, rows: Index, candidates: Candidates) -> Array:
        """Return Cov(rows, candidates) given observations and pending actions: (rows, c)."""
        if candidates.sites is None:
            across = self.k(self.sites[rows], candidates.points)
            solved = self._solve(candidates.points, self.n_rows)
            if 4 * len(rows) < len(self.sites):  # it is quicker to pick these few columns first
                return np.asarray(across - self.factor.at(rows).T @ solved)
            return np.asarray(across - self.factor.combine(solved.T)[:, rows].T)
        across = self.k(self.sites[rows], self.sites[candidates.sites])
        return np.asarray(across - self.factor.at(rows).T @ self.factor.at(candidates.sites))

    def whitened(self, points: Array) -> Array:
        """Return L^-1 k_t(points) for points (q, d'), pending actions included: (n_rows, q)."""
        cached = self._solved
        solved = self._solve(points, self.n_rows)
        self._solved = cached
        return solved

    def covariance_between(self, points: Array, whitened: Array, candidates: Candidates) -> Array:
        """Return Cov(points, candidates) given observations and pending actions: (q, c).

        Args:
            points: Points that need not be sites. (q, d')
            whitened: `whitened(points)`, which is the same for all tables of candidates.
            candidates: Table of candidates.
        """
        across = self.k(points, candidates.points)
        if candidates.sites is None:
            return np.asarray(across - whitened.T @ self._solve(candidates.points, self.n_rows))
        if 4 * len(candidates.sites) < len(self.sites):
            return np.asarray(across - whitened.T @ self.factor.at(candidates.sites))
        return np.asarray(across - self.factor.combine(whitened.T)[:, candidates.sites])

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mu_t and sigma_t^2 at any points (q, d'), eqs. (1)-(2): (q,) each."""
        v = self._solve(points, self.n_observed)
        weights = self._whitened[: self.n_observed] - self._shift * self._ones[: self.n_observed]
        mean = self._offset + self._shift + v.T @ weights + self._offset_at(points)
        return mean, np.maximum(self.kernel.diag(points) - (v * v).sum(axis=0), 0.0)

    def candidate_variance(self, candidates: Candidates) -> Array:
        """Return the variance at the candidates given observations and pending actions: (c,)."""
        if candidates.sites is not None:
            return self.pending_variance[candidates.sites]
        v = self._solve(candidates.points, self.n_rows)
        return np.asarray(
            np.maximum(self.kernel.diag(candidates.points) - (v * v).sum(axis=0), 0.0)
        )

    def observed_covariance(self, point: Array) -> tuple[Array, float]:
        """Return Cov(x, point) at every site x (m,), and the variance at the point (d',)."""
        x = point[None, :]
        v = self._solve(x, self.n_observed)[:, 0]
        across = self.k(self.sites, x)[:, 0] - self.factor.combine(v)
        return across, max(float(self.kernel.diag(x)[0]) - float(v @ v), 0.0)

    def prior_covariance(self, site: int) -> Array:
        """Return k(x, site) at every site x: (m,)."""
        return self.k(self.sites, self.sites[site][None, :])[:, 0]

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return mean and variance of every value as the other observations predict it: (t,) each.

        The variances include the noise of the value. A constant mean that is estimated is estimated
        again without the value, and its uncertainty is included (universal kriging). Under
        the model, the leave-one-out residual of a value is therefore normal with exactly this
        variance; it is independent of the other values.

        With r = y - mean, Q = (K_t + Sigma_t)^-1 and, for an estimated constant,
        P = Q - Q 1 1^T Q / (1^T Q 1) (otherwise P = Q), the residual is (P r)_i / P_ii and its
        variance 1 / P_ii (Dubrule, 1983). The rows of L^-1 are kept, so that the cost after one
        more observation is O(t^2).

        A row that the rows before it determine counts as measured with the smallest variance that
        is informative, `EXACT_VARIANCE_SHARE` of the prior's, and as equal to the prediction from
        them, which `observe` has checked. If nothing is left to estimate the constant from, the
        mean is NaN and the variance infinite.
        """
        t = self.n_observed
        with_constant, (of_values, of_ones) = self._invert()  # Q_ii, Q y, Q 1
        weights = of_values - self._shift * of_ones  # P r
        precision = with_constant
        if self._prior_mean is None and t > 0:
            ones = self._ones[:t]
            precision = with_constant - of_ones**2 / float(ones @ ones)  # P_ii
        known = precision > _ROUNDING_SHARE * with_constant
        means = np.full(t, np.nan)
        variances = np.full(t, np.inf)
        means[known] = self.values[known] - weights[known] / precision[known]
        variances[known] = 1.0 / precision[known]
        return means, variances

    def misfit(self) -> tuple[float, int]:
        """Return r^T (K_t + Sigma_t)^-1 r and its degrees of freedom.

        If the model is right, it is chi-squared distributed with so many degrees of freedom, also
        where the points were chosen by the values before them. Rows that others determine do not
        count; an estimated constant takes one off.
        """
        t = self.n_observed
        residuals = self._whitened[:t] - self._shift * self._ones[:t]
        informative = int(np.isfinite(self._cholesky.diagonal()[:t]).sum())
        return float(residuals @ residuals), max(informative - (self._prior_mean is None), 0)

    def freeze(self) -> FrozenPosterior:
        """Return the present posterior, the uncertainty of an estimated mean included."""
        t = self.n_observed
        informative = np.flatnonzero(np.isfinite(self._cholesky.diagonal()[:t]))
        lower = self._cholesky[:t, :t]  # no copy: observed rows never change
        if len(informative) < t:
            lower = self._cholesky[np.ix_(informative, informative)]
        prior_mean = self.prior_mean
        whitened = self._whitened[:t] - self._shift * self._ones[:t]
        member = FrozenMember(
            covariance=self.k,
            prior_variance=lambda points: np.asarray(self.kernel.diag(points), dtype=float),
            prior_mean=lambda points: prior_mean + self._offset_at(points),
            points=self._points[informative],
            lower=lower,
            whitened=whitened[informative],
            whitened_ones=self._ones[informative] if self._prior_mean is None else None,
            scales=self._scales(),
        )
        return FrozenPosterior((member,))

    def _scales(self) -> Array:
        """Return the length-scales of the kernel, or the spread of the sites without any: (d',)."""
        kernel = self.kernel
        spread = np.where(np.ptp(self.sites, axis=0) > 0, self.sites.std(axis=0), 1.0)
        inner = kernel.kernel if isinstance(kernel, Coregionalized) else kernel
        form = stationary_form(inner)
        if form is None:
            return spread
        d = self.sites.shape[1] - isinstance(kernel, Coregionalized)
        spread[:d] = form.lengthscales
        return spread

    @property
    def values(self) -> Array:
        """The observed values, in order: (t,)."""
        return self._values[: self.n_observed]

    @property
    def points(self) -> Array:
        """Points of the observations, then of the pending actions: (n_rows, d')."""
        return self._points[: self.n_rows]

    def rows_from(self, start: int) -> Iterator[Row]:
        """Yield the rows from `start` on, as `Factor.append` takes them."""
        for i in range(start, self.n_rows):
            yield self._points[i], self._cholesky[i, :i], float(self._cholesky[i, i])

    # -- changes
    # ----------------------------------------------------------------------------------------------

    def add(self, point: Array, noise: float, site: int | None = None) -> None:
        """Append a pending action: a measurement whose value is not yet known.

        Args:
            point: Coordinates of the measurement. (d',)
            noise: Its noise variance.
            site: Site at the point, if there is one.
        """
        if self.n_rows == len(self._noise):
            self._grow()
        t = self.n_rows
        x = point[None, :]
        v = self._solve(x, t)[:, 0] if site is None else self.factor.at(np.array([site]))[:, 0]
        own = float(self.kernel.diag(x)[0]) - float(v @ v)
        d = own + noise
        # A point that is already known exactly gets a row of zeros.
        root = np.inf if d <= EXACT_VARIANCE_SHARE * self.scale**2 else float(np.sqrt(d))
        row = self.factor.append(point, v, root)
        self._points[t] = point
        self._noise[t] = noise
        self._cholesky[t, :t] = v
        self._cholesky[t, t] = root
        self.pending_variance = np.maximum(self.pending_variance - row**2, 0.0)
        self.n_rows += 1
        self._last_id += 1
        self.row_ids.append(self._last_id)

    def observe(self, y: float) -> None:
        """Set the value of the first pending action.

        Args:
            y: The observed value.

        Raises:
            InvalidMeasurementError: If the value contradicts one that is known exactly.
        """
        t = self.n_observed
        point_offset = float(self._offset_at(self._points[t : t + 1])[0])
        self._mean = None
        row = self._cholesky[t, :t]
        root = self._cholesky[t, t]
        u = self.factor.row(t)
        if self._prior_mean is None and t == 0:
            self._offset = y - point_offset
        innovation = y - (self._offset + point_offset) - float(row @ self._whitened[:t])
        ones_innovation = 1.0 - float(row @ self._ones[:t])
        if not np.isfinite(root):
            self._check_consistent(t, y, innovation - self._shift * ones_innovation)
        self._whitened[t] = innovation / root
        self._ones[t] = ones_innovation / root
        self._values[t] = y
        self._mean_update += self._whitened[t] * u
        self._ones_update += self._ones[t] * u
        self.variance = np.maximum(self.variance - u**2, 0.0)
        self.n_observed += 1
        if self.n_observed == self.n_rows:
            self.pending_variance = self.variance.copy()

    @blas_in_one_thread()
    def condition(self, points: Array, noise: Array, values: Array) -> bool:
        """Condition on all observations jointly, before any other: faster with many sites.

        Args:
            points: Where they were made. (t, d')
            noise: Their noise variances. (t,)
            values: Their values. (t,)

        Returns:
            Whether that was done; not with few sites, a factor in other processes, or where a
            measurement may add nothing to those before it. Nothing has changed then.
        """
        t = len(points)
        if t == 0 or len(self.sites) <= FEW_SITES or not isinstance(self.factor, LocalFactor):
            return False
        covariance = np.array(self.k(points, points))
        covariance[np.diag_indices(t)] = np.asarray(self.kernel.diag(points)) + noise
        try:
            lower: Array = np.linalg.cholesky(covariance).astype(float, copy=False)
        except np.linalg.LinAlgError:
            return False
        if (lower.diagonal() ** 2).min() <= _SAFE_VARIANCE_SHARE * self.scale**2:
            return False
        while t > len(self._noise):
            self._grow()
        self._points[:t] = points
        self._noise[:t] = noise
        self._cholesky[:t, :t] = lower
        self._values[:t] = values
        residuals = values - self._offset_at(points)
        if self._prior_mean is None:
            self._offset = float(residuals[0])
        sides = np.stack([residuals - self._offset, np.ones(t)], axis=1)
        whitened, ones = solve_triangular(lower, sides, lower=True, check_finite=False).T
        self._whitened[:t] = whitened
        self._ones[:t] = ones
        for tile, solved in self.factor.fill(points, lower):
            self._mean_update[tile] = whitened @ solved
            self._ones_update[tile] = ones @ solved
            explained = np.einsum("tq,tq->q", solved, solved)
            self.variance[tile] = np.maximum(self.variance[tile] - explained, 0.0)
        self.pending_variance = self.variance.copy()
        self.n_observed = self.n_rows = self._last_id = t
        self.row_ids = list(range(1, t + 1))
        self._mean = None
        return True

    def drop_pending(self) -> None:
        """Remove every pending action."""
        self.n_rows = self.n_observed
        self.factor.truncate(self.n_observed)
        del self.row_ids[self.n_observed :]
        self.pending_variance = self.variance.copy()

    # -- internals
    # ----------------------------------------------------------------------------------------------

    @property
    def _shift(self) -> float:
        """The estimated constant mean minus `_offset`: (1^T K^-1 y) / (1^T K^-1 1)."""
        if self._prior_mean is not None or self.n_observed == 0:
            return 0.0
        ones = self._ones[: self.n_observed]
        return float(ones @ self._whitened[: self.n_observed]) / float(ones @ ones)

    def _offset_at(self, points: Array) -> Array:
        """Return the part of the prior mean that depends on the point, at points (q, d')."""
        return np.zeros(len(points)) if self._point_offset is None else self._point_offset(points)

    def _solve(self, points: Array, rows: int) -> Array:
        """Return L^-1 k_t(points) over the first rows: (rows, q). The last result is cached."""
        if rows == 0:
            return np.zeros((0, len(points)))
        key = (self._last_id, rows)
        if self._solved is not None and self._solved[0] is points and self._solved[1] == key:
            return self._solved[2]
        across = self.k(self._points[:rows], points)
        informative = np.isfinite(self._cholesky.diagonal()[:rows])
        if informative.all():
            # Transposed, as LAPACK stores by columns.
            solved: Array = dtrtrs(self._cholesky[:rows, :rows].T, across, trans=1)[0]
        else:
            solved = np.zeros_like(across)
            lower = self._cholesky[np.ix_(informative, informative)]
            solved[informative] = solve_triangular(
                lower, across[informative], lower=True, check_finite=False
            )
        self._solved = points, key, solved
        return solved

    def _invert(self) -> tuple[Array, Array]:
        """Return diag Q (t,), and Q y and Q 1 without the offset (2, t), over the observed rows."""
        done = self._inverse.n_rows
        t = self.n_observed
        rows = self._cholesky[done:t, :t].copy()
        here = np.arange(t - done)
        diagonal = rows[here, here + done]
        # Rows without information get the smallest informative variance, instead of an
        # infinite one.
        rows[here, here + done] = np.where(
            np.isinf(diagonal), np.sqrt(EXACT_VARIANCE_SHARE) * self.scale, diagonal
        )
        return self._inverse.update(rows, np.stack([self._whitened[done:t], self._ones[done:t]]))

    def _check_consistent(self, row: int, y: float, innovation: float) -> None:
        """Check a value against one that is known exactly, from data or from the kernel.

        Raises:
            InvalidMeasurementError: If the two differ.
        """
        if abs(innovation) <= _MAX_CONTRADICTION_SDS * self.scale:
            return
        known = f"{y - innovation:.10g}"
        noise = for_interface("noise=...", cli="--noise VARIANCE", http="noise")
        if (self._points[:row] == self._points[row]).all(axis=1).any():
            raise InvalidMeasurementError(
                f"with noise 0 the value here is already known to be {known}, got {y:.10g}; if "
                f"measurements of one point can differ, give the noise variance ({noise})"
            )
        rougher = for_interface("Matern with nu=2.5", problem='[model] kernel = "matern52"')
        raise InvalidMeasurementError(
            f"with noise 0 and so smooth a kernel the value here must be {known}, got {y:.10g}; "
            f"give the noise variance ({noise}) or a rougher kernel, such as {rougher}"
        )

    def _grow(self) -> None:
        size = 2 * len(self._noise)

        def grown(old: Array, shape: tuple[int, ...]) -> Array:
            new = np.zeros(shape)
            new[tuple(slice(n) for n in old.shape)] = old
            return new

        self._points = grown(self._points, (size, self._points.shape[1]))
        self._noise = grown(self._noise, (size,))
        self._cholesky = grown(self._cholesky, (size, size))
        self._whitened = grown(self._whitened, (size,))
        self._ones = grown(self._ones, (size,))
        self._values = grown(self._values, (size,))
