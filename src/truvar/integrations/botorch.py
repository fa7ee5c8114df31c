"""Truncated variance reduction, eq. (3), as a BoTorch acquisition function, for any model with a posterior covariance.

| paper | here | shape |
|---|---|---|
| D | `points` | (n, d) |
| M_{t-1} | `targets`: the points that are undecided | (m, d) |
| beta_(i), eta_(i) | `beta`, `eta`; eta None: that of the epoch of the posterior | |
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

    Only variance above eta²/beta counts, on the scale k(x, x) = 1. If measurements have a cost, divide by it.

    Args:
        model: A model with one output.
        points: The domain, or representers of it, shape (n, d).
        goal: `Maximize()`, `Minimize()` or `LevelSet(h)`. Default: `Maximize()`.
        beta: Confidence parameter. Default: that of the paper, a log(n t²).
        eta: Target confidence, in prior standard deviations. Default: the largest of 1, r, r², ... that is not reached.
        r: Factor between the targets of two epochs.
        noise: Noise variance of a measurement at X. Default: that of the model's likelihood.
        scale: Prior standard deviation. Default: that of the model's kernel, or 1 if it has none.

    Attributes:
        potential: Whether each point is undecided, shape (n,).
        targets: Points whose variance counts, shape (m, d).

    Raises:
        InvalidModelError: If the model has several outputs, or no noise variance and none is given.
        InvalidArgumentError: If another argument has the wrong shape or is not a finite number.

    Example:
        ```python
        gain = TruncatedVarianceReduction(model, points, LevelSet(0.5))
        x, value = optimize_acqf(gain, bounds, q=1, num_restarts=2, raw_samples=16)
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
    ) -> None:
        super().__init__(model)
        if getattr(model, "num_outputs", 1) != 1:
            raise InvalidModelError(f"the model must have one output, got {model.num_outputs}; select one of them")
        if points.ndim != 2 or len(points) == 0:
            raise InvalidArgumentError(f"points must be of shape (n, d), got {tuple(points.shape)}")
        self.goal: Goal = Maximize() if goal is None else goal
        self.beta = self._default_beta(model, len(points)) if beta is None else check_finite(beta, "beta")
        self.scale = _prior_sd(model, points) if scale is None else check_finite(scale, "scale")
        with torch.no_grad():
            posterior = model.posterior(points)
            mean = posterior.mean.squeeze(-1).double().cpu().numpy()
            variance = posterior.variance.squeeze(-1).clamp_min(0)
        lower, upper = bounds(mean, variance.double().cpu().numpy(), self.beta)
        regions = self.goal.update(Regions.unknown(len(points)), lower, upper)
        self.potential = regions.potential
        is_target = self.goal.targets(regions, lower, upper)
        rows = torch.as_tensor(np.flatnonzero(is_target), device=points.device)
        largest = variance[rows].max() if is_target.any() else variance.max()
        self.eta = _eta(self.beta, float(largest) / self.scale**2, r) if eta is None else check_finite(eta, "eta")
        self.noise = _noise_variance(model) if noise is None else check_finite(noise, "noise")
        self.register_buffer("targets", points[rows])
        tau = self.eta**2 / self.beta * self.scale**2  # the truncation of eq. (3)
        self.register_buffer("excess", (variance[rows] - tau).clamp_min(0))

    def _default_beta(self, model: Any, n_points: int) -> float:
        """Return the beta of the paper, a log(n t²), with t one more than the number of observations of the model."""
        a = 1.0 if self.goal.level_set else 0.5
        t = _n_observed(model) + 1
        return a * log(max(n_points, 2) * t**2)

    @transforms.t_batch_mode_transform()  # type: ignore[untyped-decorator]
    def forward(self, X: Any) -> Any:
        """Return g_t of the q points of every batch, b x q x d -> b."""
        q = X.shape[-2]
        targets = self.targets.expand(*X.shape[:-2], *self.targets.shape)
        joint = self.model.posterior(torch.cat([X, targets], dim=-2)).distribution
        covariance = joint.lazy_covariance_matrix
        own = covariance[..., :q, :q].to_dense()  # b x q x q
        own = own + self.noise * torch.eye(q, dtype=X.dtype, device=X.device)
        across = covariance[..., :q, q:].to_dense()  # b x q x m
        factor = torch.linalg.cholesky(own)
        solved = torch.linalg.solve_triangular(factor, across, upper=False)
        removed = torch.minimum((solved**2).sum(dim=-2), self.excess)  # eq. (3), per target
        return self.beta / self.scale**2 * removed.sum(dim=-1)


def _eta(beta: float, largest: float, r: float) -> float:
    """Return eta by Algorithm 1, lines 5-6: it shrinks as long as no variance of a target is above it."""
    eta = 1.0
    while beta * largest <= eta**2 and eta**2 / beta > RESOLUTION:
        eta *= r
    return eta


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
