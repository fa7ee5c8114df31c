"""Truncated variance reduction, eq. (3), as an acquisition function of BoTorch.

It takes any model with a posterior covariance.

| paper | here | shape |
|---|---|---|
| D | `points` | (n, d) |
| M_{t-1} | `targets`: the points that are undecided | (m, d) |
| beta_(i), eta_(i) | `beta`, `eta`; None: those of a study that made the observations in their order | |
| g_t(S) for S of q points | `forward` | b x q x d -> b |

A BoTorch model has no history, so M is computed from the present bounds on all points, as with
`monotone=False`.
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from truvar.acquisition.confidence import MIN_VARIANCE_SHARE, bounds
from truvar.domain.goals import Bands, Goal, LevelSet, Maximize, Minimize, Regions
from truvar.exceptions import InvalidArgumentError, InvalidModelError, import_optional
from truvar.validation import check_fraction, check_nonnegative, check_positive

botorch = import_optional("botorch", "TruncatedVarianceReduction", "botorch")
torch = import_optional("torch", "TruncatedVarianceReduction", "botorch")
acquisition = import_optional("botorch.acquisition", "TruncatedVarianceReduction", "botorch")
transforms = import_optional("botorch.utils.transforms", "TruncatedVarianceReduction", "botorch")


class TruncatedVarianceReduction(acquisition.AcquisitionFunction):  # type: ignore[misc, name-defined]
    """Truncated variance that measuring X removes from the undecided points (eq. 3, numerator).

    Only variance above eta²/beta counts, on the scale k(x, x) = 1. If measurements have a cost,
    divide by it. Points that are pending count as measured: the value is what X removes in
    addition. If everything is decided the value is 0.

    Args:
        model: A model with one output. Of a batched model, such as a fully Bayesian one, the value
            is the mean over its members, each with undecided points of its own.
        points: The domain, or representers of it, shape (n, d).
        goal: `Maximize()`, `Minimize()` or `LevelSet(h)`. Default: `Maximize()`.
        beta: Confidence parameter. Default: that of a study with the policy "truvar" and the same
            observations, which computes it when an epoch starts. An epoch of a batched model ends
            when it does for all members.
        eta: Target confidence, in prior standard deviations. Default: that of such a study. It is
            smaller where pending points leave nothing to gain otherwise, so that a batch has
            different points.
        r: Factor between the targets of two epochs.
        noise: Noise variance of a measurement at X. Default: that of the model's likelihood, or its
            mean over the observations.
        scale: Prior standard deviation. Default: the largest of the model's kernel, or 1 if it has
            none.
        X_pending: Points that are being measured, shape (m, d).

    Attributes:
        potential: Whether each point is undecided, shape (n,); of a batched model (batch x n).
        targets: Points whose variance counts, shape (m, d): those that count for a member at least.

    Raises:
        InvalidModelError: If the model has several outputs or a posterior that is not Gaussian, or
            no noise variance and none is given.
        InvalidArgumentError: If another argument has the wrong shape or is out of range.

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
        members = getattr(model, "models", [])
        if len(members) == 1:  # a list of one model has no kernel of its own
            model = members[0]
        super().__init__(model)
        if getattr(model, "num_outputs", 1) != 1:
            raise InvalidModelError(
                f"the model must have one output, got {model.num_outputs}; select one of them"
            )
        if goal is not None and not isinstance(goal, Maximize | Minimize | LevelSet | Bands):
            raise InvalidArgumentError(
                f"goal must be Maximize(), Minimize() or LevelSet(h), got {goal!r}"
            )
        points = _as_points(points, "points", None)
        if len(points) == 0:
            raise InvalidArgumentError(
                "points must be at least one, got none; give the domain or representers of it"
            )
        with torch.no_grad():
            posterior = model.posterior(points)
            if not hasattr(posterior, "distribution"):
                raise InvalidModelError(
                    f"the model must have a Gaussian posterior, got {type(posterior).__name__}; "
                    "leave out the outcome "
                    "transform, or transform the values beforehand and give the goal in their units"
                )
            mean = posterior.mean.squeeze(-1)
            variance = posterior.variance.squeeze(-1).clamp_min(0)
        self._batch_shape = tuple(mean.shape[:-1])
        self._r = check_fraction(r, "r")
        self.goal: Goal = Maximize() if goal is None else goal
        self.scale = _prior_sd(model, points) if scale is None else check_positive(scale, "scale")
        noise_variance = (
            _noise_variance(model)
            if noise is None
            else points.new_tensor(check_nonnegative(noise, "noise"))
        )
        self.noise = float(noise_variance.mean())
        self.register_buffer(
            "_noise", noise_variance.to(points).expand(self._batch_shape)[..., None, None]
        )
        n = len(points)
        means = mean.reshape(-1, n).double().cpu().numpy()
        variances = variance.reshape(-1, n).double().cpu().numpy()
        if beta is None:
            self.beta, first_eta = self._epoch_of_study(model, points, means, variances)
        else:
            self.beta = check_positive(beta, "beta")
            first_eta = self._eta_for(means, variances)
        self._eta_is_given = eta is not None
        self._first_eta = first_eta if eta is None else check_nonnegative(eta, "eta")
        potential, is_target = self._regions(means, variances)
        self.potential = potential.reshape(*self._batch_shape, n)
        rows = torch.as_tensor(np.flatnonzero(is_target.any(axis=0)), device=points.device)
        self.register_buffer("targets", points[rows])
        counts = torch.as_tensor(is_target, device=points.device).reshape(variance.shape)
        self.register_buffer(
            "_target_variance", torch.where(counts, variance, torch.zeros_like(variance))[..., rows]
        )
        self.register_buffer("excess", None)
        self.register_buffer("_removed_by_pending", None)
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Any = None) -> None:
        """Set the points that are being measured.

        `optimize_acqf(sequential=True)` calls this after every point.

        Args:
            X_pending: Points of shape (m, d), or None.

        Raises:
            InvalidArgumentError: If the shape is another one.
        """
        if X_pending is not None:
            X_pending = _as_points(X_pending, "X_pending", self.targets.shape[-1]).to(self.targets)
            if len(X_pending) == 0:
                X_pending = None
        super().set_X_pending(X_pending)
        self._removed_by_pending = None
        self._set_eta(self._first_eta)
        if X_pending is None:
            return
        with torch.no_grad():
            reduction = self._reduction(self.X_pending)
        if not self._eta_is_given:
            # A study, too, chooses with the eta of a later epoch where pending points leave nothing
            # to gain.
            while not bool((self.excess > reduction).any()) and self._tau() > MIN_VARIANCE_SHARE:
                self._set_eta(self.eta * self._r)
        self._removed_by_pending = torch.minimum(reduction, self.excess).sum(dim=-1)

    def _tau(self) -> float:
        """Return the truncation of eq. (3), on the scale k(x, x) = 1."""
        return self.eta**2 / self.beta

    def _set_eta(self, eta: float) -> None:
        """Set eta and `excess`, the variance of each target above the truncation: batch x m."""
        self.eta = eta
        self.excess = (self._target_variance - self._tau() * self.scale**2).clamp_min(0)

    def _regions(self, means: Any, variances: Any) -> tuple[Any, Any]:
        """Return which points are undecided and which are targets, by member: (b, n) each."""
        potential = np.zeros(means.shape, bool)
        is_target = np.zeros(means.shape, bool)
        for member, (mean, variance) in enumerate(zip(means, variances, strict=True)):
            lower, upper = bounds(mean, variance, self.beta)
            regions = self.goal.update(Regions.unknown(len(mean)), lower, upper)
            potential[member] = regions.potential
            is_target[member] = self.goal.targets(regions, lower, upper)
        return potential, is_target

    def _eta_for(self, means: Any, variances: Any) -> float:
        """Return eta by Algorithm 1, lines 5-6: it shrinks until a target's variance exceeds it."""
        is_target = self._regions(means, variances)[1]
        if not is_target.any():
            is_target[:] = True
        largest = float(variances[is_target].max()) / self.scale**2
        eta = 1.0
        while self.beta * largest <= eta**2 and eta**2 / self.beta > MIN_VARIANCE_SHARE:
            eta *= self._r
        return eta

    def _epoch_of_study(
        self, model: Any, points: Any, means: Any, variances: Any
    ) -> tuple[float, float]:
        """Return beta and eta of a study that made the observations in this order.

        Beta is computed when an epoch starts (Algorithm 1, line 6), so that it depends on when that
        was. A model that does not have its observations gets the beta of an epoch that starts now.
        """
        a = self.goal.log_beta_factor
        n = max(len(points), 2)
        history = _history(model, points, self._batch_shape)
        if history is None:
            self.beta = a * log(n * (_n_observed(model) + 1) ** 2)
            return self.beta, self._eta_for(means, variances)
        eta = 1.0
        self.beta = a * log(n)
        mean = history.prior_mean
        variance = history.prior_variance
        is_target = np.ones(mean.shape, bool)
        for t in range(history.solved.shape[1] + 1):
            if t > 0:
                row = history.solved[:, t - 1]
                mean = mean + history.whitened[:, t - 1, None] * row
                variance = np.maximum(variance - row**2, 0.0)
                is_target = self._regions(mean, variance)[1]
            widest = float(variance[is_target].max(initial=0.0)) / self.scale**2
            while (
                MIN_VARIANCE_SHARE < widest <= eta**2 / self.beta
                and eta**2 / self.beta > MIN_VARIANCE_SHARE
            ):
                eta *= self._r
                self.beta = a * log(n * (t + 1) ** 2)
        return self.beta, eta

    @transforms.t_batch_mode_transform()  # type: ignore[untyped-decorator]
    def forward(self, X: Any) -> Any:
        """Return g_t of q points per batch beyond what pending points remove: b x q x d -> b."""
        pending = self.X_pending
        if len(self.targets) == 0:
            return 0.0 * X.sum(dim=(-1, -2))
        if pending is None:
            removed = torch.minimum(self._reduction(X), self.excess).sum(dim=-1)
        else:
            both = torch.cat([X, pending.to(X).expand(*X.shape[:-2], *pending.shape[-2:])], dim=-2)
            removed = (
                torch.minimum(self._reduction(both), self.excess).sum(dim=-1)
                - self._removed_by_pending
            )
        gain = self.beta / self.scale**2 * removed
        if self._batch_shape:  # the members of a batched model are the last dimensions
            gain = gain.mean(dim=tuple(range(-len(self._batch_shape), 0)))
        return gain

    def _reduction(self, X: Any) -> Any:
        """Return each target's variance reduction by X: b x q x d -> b x m, or b x batch x m."""
        q = X.shape[-2]
        joined = torch.cat([X, self.targets.expand(*X.shape[:-2], *self.targets.shape)], dim=-2)
        for _ in self._batch_shape:  # the same points for every member
            joined = joined.unsqueeze(-3)
        covariance = self.model.posterior(joined).distribution.lazy_covariance_matrix
        own = covariance[..., :q, :q].to_dense()  # b x q x q
        own = own + self._noise * torch.eye(q, dtype=X.dtype, device=X.device)
        across = covariance[..., :q, q:].to_dense()  # b x q x m
        factor = torch.linalg.cholesky(own)
        solved = torch.linalg.solve_triangular(factor, across, upper=False)
        return (solved**2).sum(dim=-2)


class _History(NamedTuple):
    """The posterior at n points, taken apart by observations, in the units of the outcomes.

    The first dimension of all is the b members of a batched model.
    """

    prior_mean: Any  # (b, n)
    prior_variance: Any  # (b, n)
    solved: Any  # (b, t, n): V = L⁻¹ k(observed, points)
    whitened: Any  # (b, t): L⁻¹ (y - m)


def _history(model: Any, points: Any, batch_shape: tuple[int, ...]) -> _History | None:
    """Return the history of a Gaussian process; None for models without observations."""
    needed = ("train_inputs", "train_targets", "covar_module", "mean_module", "likelihood")
    if any(getattr(model, name, None) is None for name in needed) or hasattr(model, "num_tasks"):
        return None
    noise = getattr(model.likelihood, "noise", None)
    if noise is None or tuple(model.train_targets.shape[:-1]) not in ((), batch_shape):
        return None
    shift, unit = _outcome_units(model)
    with torch.no_grad():
        model.eval()  # the training inputs are transformed then
        observed = model.train_inputs[0]
        inputs = model.transform_inputs(points)
        t = observed.shape[-2]
        covariance = model.covar_module(observed).to_dense().double()
        factor = torch.linalg.cholesky(
            covariance + torch.diag_embed(noise.double().expand(*noise.shape[:-1], t))
        )
        across = model.covar_module(observed, inputs).to_dense().double()
        residual = (model.train_targets - model.mean_module(observed)).double()[..., None]
        arrays = (
            shift[..., None] + unit[..., None] * model.mean_module(inputs).double(),
            unit[..., None] ** 2 * model.covar_module(inputs).diagonal(dim1=-1, dim2=-2).double(),
            unit[..., None, None] * torch.linalg.solve_triangular(factor, across, upper=False),
            torch.linalg.solve_triangular(factor, residual, upper=False)[..., 0],
        )
    core_dimensions = (1, 1, 2, 1)
    found = []
    for array, core in zip(arrays, core_dimensions, strict=True):
        own = array.shape[array.ndim - core :]
        found.append(array.expand(*batch_shape, *own).reshape(-1, *own).cpu().numpy())
    return _History(*found)


def _as_points(points: Any, name: str, n_columns: int | None) -> Any:
    """Return points as a tensor of shape (m, d), detached.

    Raises:
        InvalidArgumentError: If they have another shape.
    """
    tensor = torch.as_tensor(points).detach()
    columns = "d" if n_columns is None else str(n_columns)
    if tensor.ndim != 2 or (n_columns is not None and tensor.shape[-1] != n_columns):
        raise InvalidArgumentError(
            f"{name} must be of shape (n, {columns}), got {tuple(tensor.shape)}"
        )
    return tensor


def _n_observed(model: Any) -> int:
    inputs = getattr(model, "train_inputs", None)
    return int(inputs[0].shape[-2]) if inputs else 0


def _outcome_units(model: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation of the model's outcomes, by member: (batch)."""
    transform = getattr(model, "outcome_transform", None)
    zero = torch.zeros(1, 1, dtype=torch.double)
    if transform is None:
        return zero[0, 0], zero[0, 0] + 1
    with torch.no_grad():
        transform.eval()
        shift = transform.untransform(zero.to(model.train_targets))[0].double()
        unit = transform.untransform(zero.to(model.train_targets) + 1)[0].double() - shift
    return shift[..., 0, 0], unit[..., 0, 0]


def _prior_sd(model: Any, points: Any) -> float:
    """Return the kernel's largest prior standard deviation, in units of the outcomes."""
    module = getattr(model, "covar_module", None)
    if module is None:
        return 1.0
    with torch.no_grad():
        inputs = model.transform_inputs(points) if hasattr(model, "transform_inputs") else points
        variance = module(inputs).diagonal(dim1=-1, dim2=-2).max(dim=-1).values.double()
    return float((variance.sqrt() * _outcome_units(model)[1]).max())


def _noise_variance(model: Any) -> Any:
    """Return the likelihood's noise variance by member, in units of the outcomes: (batch)."""
    noise = getattr(getattr(model, "likelihood", None), "noise", None)
    if noise is None:
        raise InvalidModelError(
            "the likelihood of the model must have a noise variance, got none; give noise=..."
        )
    return noise.detach().double().mean(dim=-1) * _outcome_units(model)[1] ** 2
