"""Truncated variance reduction, eq. (3), as a BoTorch acquisition function, for any model with a posterior covariance.

| paper | here | shape |
|---|---|---|
| D | `points` | (n, d) |
| M_{t-1} | `targets`: the points that the goal still asks about | (m, d) |
| beta_(i), eta_(i) | `beta`, `eta`; eta None: the epoch that the posterior is in | |
| g_t(S) for S of q points | `forward` | b x q x d -> b |

A model has no history here, so M is computed from its bounds of now on all points, as with `monotone=False`.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from truvar.acquisition.confidence import RESOLUTION, bounds
from truvar.domain.goals import Goal, Maximize, Regions
from truvar.exceptions import TruvarError, import_optional
from truvar.validation import check_finite

botorch = import_optional("botorch", "TruncatedVarianceReduction", "botorch")
torch = import_optional("torch", "TruncatedVarianceReduction", "botorch")
acquisition = import_optional("botorch.acquisition", "TruncatedVarianceReduction", "botorch")
transforms = import_optional("botorch.utils.transforms", "TruncatedVarianceReduction", "botorch")


class TruncatedVarianceReduction(acquisition.AcquisitionFunction):  # type: ignore[misc, name-defined]
    """How much variance above eta²/beta on the points still in question measuring X would remove, on the scale
    k(x, x) = 1: the numerator of eq. (3). Divide by a cost if there is one.

    model   a model of one output
    points  (n, d): the domain, or representers of it
    goal    `Maximize()`, `Minimize()` or `LevelSet(h)`
    beta    the confidence parameter; default: the paper's a log(n t²)
    eta     the target confidence, in prior standard deviations; default: the largest of 1, r, r², ... not reached yet
    noise   variance of a measurement at X; default: the model's likelihood's
    scale   the prior standard deviation; default: the model's covariance before data where it has one, else 1
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
            raise TruvarError(f"the model must have one output, but it has {model.num_outputs}; select one of them")
        if points.ndim != 2 or len(points) == 0:
            raise TruvarError(f"points must be of shape (n, d), got {tuple(points.shape)}; give the domain so")
        self.goal: Goal = Maximize() if goal is None else goal
        told = _told(model)
        a = 1.0 if self.goal.level_set else 0.5
        self.beta = a * log(max(len(points), 2) * (told + 1) ** 2) if beta is None else check_finite(beta, "beta")
        self.scale = _scale(model, points) if scale is None else check_finite(scale, "scale")
        with torch.no_grad():
            posterior = model.posterior(points)
            mean = posterior.mean.squeeze(-1).double().cpu().numpy()
            variance = posterior.variance.squeeze(-1).clamp_min(0)
        lower, upper = bounds(mean, variance.double().cpu().numpy(), self.beta)
        regions = self.goal.update(Regions.unknown(len(points)), lower, upper)
        self.potential = regions.potential
        wanted = self.goal.targets(regions, lower, upper)
        widest = float(variance.max()) if not wanted.any() else float(variance[torch.as_tensor(wanted)].max())
        self.eta = _eta(self.beta, widest / self.scale**2, r) if eta is None else check_finite(eta, "eta")
        self.noise = _noise(model) if noise is None else check_finite(noise, "noise")
        chosen = torch.as_tensor(np.flatnonzero(wanted), device=points.device)
        self.register_buffer("targets", points[chosen])
        tau = self.eta**2 / self.beta * self.scale**2
        self.register_buffer("excess", (variance[chosen] - tau).clamp_min(0))

    @transforms.t_batch_mode_transform()  # type: ignore[untyped-decorator]
    def forward(self, X: Any) -> Any:
        """g_t of the q points of every batch: b x q x d -> b."""
        q = X.shape[-2]
        targets = self.targets.expand(*X.shape[:-2], *self.targets.shape)
        joint = self.model.posterior(torch.cat([X, targets], dim=-2)).distribution
        covariance = joint.lazy_covariance_matrix
        own = covariance[..., :q, :q].to_dense()
        own = own + self.noise * torch.eye(q, dtype=X.dtype, device=X.device)
        across = covariance[..., :q, q:].to_dense()  # b x q x m
        factor = torch.linalg.cholesky(own)
        solved = torch.linalg.solve_triangular(factor, across, upper=False)
        removed = torch.minimum((solved**2).sum(dim=-2), self.excess)
        return self.beta / self.scale**2 * removed.sum(dim=-1)


def _eta(beta: float, widest: float, r: float) -> float:
    """Algorithm 1, lines 5-6: eta shrinks while every target is within it."""
    eta = 1.0
    while beta * widest <= eta**2 and eta**2 / beta > RESOLUTION:
        eta *= r
    return eta


def _told(model: Any) -> int:
    inputs = getattr(model, "train_inputs", None)
    return 0 if not inputs else int(inputs[0].shape[-2])


def _scale(model: Any, points: Any) -> float:
    """The prior standard deviation: of the model's kernel, in the units of its outcomes."""
    module = getattr(model, "covar_module", None)
    if module is None:
        return 1.0
    with torch.no_grad():
        inputs = model.transform_inputs(points) if hasattr(model, "transform_inputs") else points
        variance = float(module(inputs).diagonal(dim1=-1, dim2=-2).max())
        outcome = getattr(model, "outcome_transform", None)
        spread = float(getattr(outcome, "stdvs", torch.ones(1)).reshape(-1)[0]) if outcome is not None else 1.0
    return float(variance**0.5 * spread)


def _noise(model: Any) -> float:
    """The noise variance of the model's likelihood, in the units of its outcomes."""
    noise = getattr(getattr(model, "likelihood", None), "noise", None)
    if noise is None:
        raise TruvarError("the model's likelihood has no noise variance to take; give noise=...")
    outcome = getattr(model, "outcome_transform", None)
    spread = float(getattr(outcome, "stdvs", torch.ones(1)).reshape(-1)[0]) if outcome is not None else 1.0
    return float(noise.detach().double().mean()) * spread**2
