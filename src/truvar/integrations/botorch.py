"""Truncated variance reduction, eq. (3), as a BoTorch acquisition function, for any model with a posterior covariance.

| paper | here | shape |
|---|---|---|
| D | `points` | (n, d) |
| M_{t-1} | `targets`: the points that are undecided | (m, d) |
| beta_(i), eta_(i) | `beta`, `eta`; None: those of a study that made the observations in their order | |
| g_t(S) for S of q points | `forward` | b x q x d -> b |

A BoTorch model has no history, so M is computed from the present bounds on all points, as with `monotone=False`.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from truvar.acquisition.confidence import RESOLUTION, bounds
from truvar.domain.goals import Goal, Maximize, Regions
from truvar.exceptions import InvalidArgumentError, InvalidModelError, import_optional
from truvar.validation import check_finite

botorch = import_optional("botorch", "TruncatedVarianceReduction", "botorch")
torch = import_optional("torch", "TruncatedVarianceReduction", "botorch")
acquisition = import_optional("botorch.acquisition", "TruncatedVarianceReduction", "botorch")
transforms = import_optional("botorch.utils.transforms", "TruncatedVarianceReduction", "botorch")


class TruncatedVarianceReduction(acquisition.AcquisitionFunction):  # type: ignore[misc, name-defined]
    """The truncated variance that measuring X would remove from the undecided points, the numerator of eq. (3).

    Only variance above eta²/beta counts, on the scale k(x, x) = 1. If measurements have a cost, divide by it. Points
    that are pending count as measured: the value is what X removes in addition.

    Args:
        model: A model with one output. Of a batched model, such as a fully Bayesian one, the value is the mean over
            its members, each with undecided points of its own.
        points: The domain, or representers of it, shape (n, d).
        goal: `Maximize()`, `Minimize()` or `LevelSet(h)`. Default: `Maximize()`.
        beta: Confidence parameter. Default: that of a study with the policy "truvar" and the same observations, which
            computes it when an epoch starts.
        eta: Target confidence, in prior standard deviations. Default: the largest of 1, r, r², ... that is not reached.
        r: Factor between the targets of two epochs.
        noise: Noise variance of a measurement at X. Default: that of the model's likelihood.
        scale: Prior standard deviation. Default: that of the model's kernel, or 1 if it has none.
        X_pending: Points that are being measured, shape (m, d).

    Attributes:
        potential: Whether each point is undecided, shape (n,); of a batched model (batch x n).
        targets: Points whose variance counts, shape (m, d): those that count for a member at least.

    Raises:
        InvalidModelError: If the model has several outputs, or no noise variance and none is given.
        InvalidArgumentError: If another argument has the wrong shape or is not a finite number.

    Example:
        ```python
        gain = TruncatedVarianceReduction(model, points, LevelSet(0.5))
        x, value = optimize_acqf(gain, bounds, q=3, num_restarts=2, raw_samples=16, sequential=True)
        ```
    """

    def __init__(
        self,
        model: Any,
        points: Any,
        goal: Goal | None = None,
        *,
        beta: float | None = None,
        eta: float | None = None,
        r: float = 0.1,
        noise: float | None = None,
        scale: float | None = None,
        X_pending: Any = None,
    ) -> None:
        super().__init__(model)
        if getattr(model, "num_outputs", 1) != 1:
            raise InvalidModelError(f"the model must have one output, got {model.num_outputs}; select one of them")
        if points.ndim != 2 or len(points) == 0:
            raise InvalidArgumentError(f"points must be of shape (n, d), got {tuple(points.shape)}")
        self.goal: Goal = Maximize() if goal is None else goal
        self.scale = _prior_sd(model, points) if scale is None else check_finite(scale, "scale")
        self.noise = _noise_variance(model) if noise is None else check_finite(noise, "noise")
        with torch.no_grad():
            posterior = model.posterior(points)
            mean = posterior.mean.squeeze(-1)
            variance = posterior.variance.squeeze(-1).clamp_min(0)
        self._batch_shape = tuple(mean.shape[:-1])
        n = len(points)
        means = mean.reshape(-1, n).double().cpu().numpy()
        variances = variance.reshape(-1, n).double().cpu().numpy()
        epoch = None if beta is not None else self._epoch_of_study(model, points, r)
        if epoch is None:
            self.beta = self._present_beta(model, n) if beta is None else check_finite(beta, "beta")
            own = [self._regions(*each)[1] for each in zip(means, variances, strict=True)]
            widest = [var[at].max() if at.any() else var.max() for var, at in zip(variances, own, strict=True)]
            epoch = (self.beta, _eta(self.beta, float(np.max(widest)) / self.scale**2, r))
        self.beta = epoch[0]
        self.eta = epoch[1] if eta is None else check_finite(eta, "eta")
        regions = [self._regions(*each) for each in zip(means, variances, strict=True)]
        potential = np.array([each.potential for each, _ in regions])
        is_target = np.array([each for _, each in regions])
        self.potential = potential.reshape(*self._batch_shape, n)
        rows = torch.as_tensor(np.flatnonzero(is_target.any(axis=0)), device=points.device)
        self.register_buffer("targets", points[rows])
        tau = self.eta**2 / self.beta * self.scale**2  # the truncation of eq. (3)
        counts = torch.as_tensor(is_target, device=points.device).reshape(variance.shape)
        excess = torch.where(counts, (variance - tau).clamp_min(0), torch.zeros_like(variance))
        self.register_buffer("excess", excess[..., rows])
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Any = None) -> None:
        """Set the points that are being measured; `optimize_acqf(sequential=True)` calls this after every point.

        Args:
            X_pending: Points of shape (m, d), or None.
        """
        super().set_X_pending(X_pending)
        self._removed_by_pending = None
        if self.X_pending is not None:
            with torch.no_grad():
                self._removed_by_pending = self._removed(self.X_pending)

    def _regions(self, mean: Any, variance: Any) -> tuple[Regions, Any]:
        """Return the regions of a member, and which points are targets."""
        lower, upper = bounds(mean, variance, self.beta)
        regions = self.goal.update(Regions.unknown(len(mean)), lower, upper)
        return regions, self.goal.targets(regions, lower, upper)

    def _present_beta(self, model: Any, n_points: int) -> float:
        """Return a log(n t²), with t one more than the number of observations of the model."""
        a = 1.0 if self.goal.level_set else 0.5
        t = _n_observed(model) + 1
        return a * log(max(n_points, 2) * t**2)

    def _epoch_of_study(self, model: Any, points: Any, r: float) -> tuple[float, float] | None:
        """Return beta and eta of a study with this model that made the observations one after the other.

        Beta is computed when an epoch starts (Algorithm 1, line 6), so that it depends on when that was. None if the
        model is not a single Gaussian process with its observations.
        """
        found = _prior_and_data(model, points)
        if found is None:
            return None
        mean, variance, solved, whitened = found
        a = 1.0 if self.goal.level_set else 0.5
        n = len(points)
        eta = 1.0
        self.beta = a * log(max(n, 2))
        is_target = np.ones(n, bool)
        for t in range(len(solved) + 1):
            if t > 0:
                mean = mean + whitened[t - 1] * solved[t - 1]
                variance = np.maximum(variance - solved[t - 1] ** 2, 0.0)
                is_target = self._regions(mean, variance)[1]
            widest = float(variance[is_target].max(initial=0.0)) / self.scale**2
            while RESOLUTION < widest <= eta**2 / self.beta and eta**2 / self.beta > RESOLUTION:
                eta *= r
                self.beta = a * log(max(n, 2) * (t + 1) ** 2)
        return self.beta, eta

    @transforms.t_batch_mode_transform()  # type: ignore[untyped-decorator]
    def forward(self, X: Any) -> Any:
        """Return g_t of the q points of every batch, b x q x d -> b, in addition to what the pending points remove."""
        pending = self.X_pending
        if pending is None:
            removed = self._removed(X)
        else:
            both = torch.cat([X, pending.to(X).expand(*X.shape[:-2], *pending.shape[-2:])], dim=-2)
            removed = self._removed(both) - self._removed_by_pending
        gain = self.beta / self.scale**2 * removed
        if self._batch_shape:  # the members of a batched model are the last dimensions
            gain = gain.mean(dim=tuple(range(-len(self._batch_shape), 0)))
        return gain

    def _removed(self, X: Any) -> Any:
        """Return the truncated variance that X removes: b x q x d -> b, or b x batch for a batched model."""
        q = X.shape[-2]
        joined = torch.cat([X, self.targets.expand(*X.shape[:-2], *self.targets.shape)], dim=-2)
        for _ in self._batch_shape:  # the same points for every member
            joined = joined.unsqueeze(-3)
        covariance = self.model.posterior(joined).distribution.lazy_covariance_matrix
        own = covariance[..., :q, :q].to_dense()  # b x q x q
        own = own + self.noise * torch.eye(q, dtype=X.dtype, device=X.device)
        across = covariance[..., :q, q:].to_dense()  # b x q x m
        factor = torch.linalg.cholesky(own)
        solved = torch.linalg.solve_triangular(factor, across, upper=False)
        return torch.minimum((solved**2).sum(dim=-2), self.excess).sum(dim=-1)  # eq. (3), over the targets


def _eta(beta: float, largest: float, r: float) -> float:
    """Return eta by Algorithm 1, lines 5-6: it shrinks as long as no variance of a target is above it."""
    eta = 1.0
    while beta * largest <= eta**2 and eta**2 / beta > RESOLUTION:
        eta *= r
    return eta


def _prior_and_data(model: Any, points: Any) -> tuple[Any, Any, Any, Any] | None:
    """Return what the posterior at points is made of, one observation after the other, in the units of the outcomes.

    Returns:
        Prior mean and variance (n,), V = L⁻¹ k(observed, points) of shape (t, n), and L⁻¹ (y - m) of shape (t,). None
        if the model is not a single Gaussian process with its observations.
    """
    needed = ("train_inputs", "train_targets", "covar_module", "mean_module", "likelihood")
    if any(getattr(model, name, None) is None for name in needed) or model.train_targets.ndim != 1:
        return None
    if getattr(model.likelihood, "noise", None) is None:
        return None
    unit = _outcome_sd(model)
    with torch.no_grad():
        model.eval()  # the training inputs are transformed then
        observed = model.train_inputs[0]
        inputs = model.transform_inputs(points)
        covariance = model.covar_module(observed).to_dense().double()
        noise = model.likelihood.noise.double().reshape(-1).expand(len(observed))
        factor = torch.linalg.cholesky(covariance + torch.diag(noise))
        across = model.covar_module(observed, inputs).to_dense().double()
        solved = torch.linalg.solve_triangular(factor, across, upper=False)
        residual = (model.train_targets - model.mean_module(observed)).double()[:, None]
        whitened = torch.linalg.solve_triangular(factor, residual, upper=False)[:, 0]
        mean = model.mean_module(inputs).double()
        variance = model.covar_module(inputs).diagonal(dim1=-1, dim2=-2).double()
    shift = float(getattr(getattr(model, "outcome_transform", None), "means", torch.zeros(1)).reshape(-1)[0])
    return (
        shift + unit * mean.detach().cpu().numpy(),
        unit**2 * variance.detach().cpu().numpy(),
        unit * solved.detach().cpu().numpy(),
        whitened.detach().cpu().numpy(),
    )


def _n_observed(model: Any) -> int:
    inputs = getattr(model, "train_inputs", None)
    return int(inputs[0].shape[-2]) if inputs else 0


def _outcome_sd(model: Any) -> float:
    """Return the standard deviation by which the model divides its outcomes, 1 if it does not standardize them."""
    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return 1.0
    return float(getattr(transform, "stdvs", torch.ones(1)).reshape(-1)[0])


def _prior_sd(model: Any, points: Any) -> float:
    """Return the prior standard deviation of the model's kernel, in the units of the outcomes."""
    module = getattr(model, "covar_module", None)
    if module is None:
        return 1.0
    with torch.no_grad():
        inputs = model.transform_inputs(points) if hasattr(model, "transform_inputs") else points
        variance = float(module(inputs).diagonal(dim1=-1, dim2=-2).max())
        return float(variance**0.5 * _outcome_sd(model))


def _noise_variance(model: Any) -> float:
    """Return the noise variance of the model's likelihood, in the units of the outcomes."""
    noise = getattr(getattr(model, "likelihood", None), "noise", None)
    if noise is None:
        raise InvalidModelError("the likelihood of the model must have a noise variance, got none; give noise=...")
    return float(noise.detach().double().mean()) * _outcome_sd(model) ** 2
