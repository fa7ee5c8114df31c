"""The model as users describe it: kernel, mean, noise and tasks, each known or to be learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from truvar._deprecation import deprecated_fields
from truvar.domain.costs import NoiseLevels, NoiseLike, Tasks
from truvar.exceptions import InvalidArgumentError, InvalidModelError
from truvar.messages import unknown_name
from truvar.models.kernels import check_kernel_name, is_kernel
from truvar.models.likelihoods.outcome import Outcome
from truvar.models.mean import MeanLike, is_mean_function
from truvar.validation import check_finite, check_integer, check_nonnegative

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

TRANSFORMS = ("auto", "log", "none")
# new values between two fits of the single best hyperparameters
PLUG_IN_REFIT_EVERY = 3


@deprecated_fields(
    removed_in="0.5.0", every="refit_every", least="min_observations", initial="n_initial"
)
@dataclass(frozen=True)
class Learned:
    """A kernel family whose hyperparameters are learned from the measurements.

    Attributes:
        kernel: "rbf", "matern12", "matern32" or "matern52"; or a scikit-learn kernel, such as a sum
            or product, whose hyperparameters are fitted within their bounds by maximum likelihood.
            The fit is not averaged, so that `marginalise` is False then.
        refit_every: Number of new values after which the hyperparameters are fitted again; None:
            about a tenth of the values so far, or 3 without `marginalise`.
        min_observations: Number of values before which a study is not called finished, however
            certain a fit to fewer may seem.
        noise: Whether to learn the noise variance too. It is always learned where none is given.
        restarts: Number of starting points of the search for the best hyperparameters, without
            `marginalise`.
        marginalise: Whether predictions are averaged over the plausible hyperparameters. Otherwise
            they use the most probable ones as if these were known, as release 0.1.0 and the paper's
            experiments do; such a study has no initial design and no transform of the values.
        transform: How values are transformed before they are modelled: "auto" for a power if the
            values call for one, "log" for their logarithms, "none".
        n_initial: Number of measurements spread over the domain before the model is used; None:
            4 + d / 2, at most 10 and a fifth of the points. Measurements that were told before
            count.
    """

    kernel: str | Kernel = "matern52"
    refit_every: int | None = None
    min_observations: int = 10
    noise: bool = False
    restarts: int = 4
    marginalise: bool = True
    transform: str = "auto"
    n_initial: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str) or not is_kernel(self.kernel):
            check_kernel_name(self.kernel)
        else:
            object.__setattr__(self, "marginalise", False)
        if self.refit_every is not None:
            check_integer(self.refit_every, "refit_every", minimum=1)
        check_integer(self.min_observations, "min_observations", minimum=0)
        check_integer(self.restarts, "restarts", minimum=1)
        if self.n_initial is not None:
            check_integer(self.n_initial, "n_initial", minimum=2)
        if self.transform not in TRANSFORMS:
            raise InvalidModelError(unknown_name("transform", self.transform, TRANSFORMS))
        if not self.marginalise and self.transform == "log":
            raise InvalidModelError(
                'transform="log" needs a model that is averaged over its hyperparameters, got '
                "marginalise=False; leave out one of them"
            )
        if not self.marginalise and self.n_initial is not None and not self.is_composed:
            raise InvalidModelError(
                f"without marginalise there is no initial design, got n_initial={self.n_initial}; "
                "leave out one of them"
            )

    @property
    def is_composed(self) -> bool:
        """Whether the user composed the kernel, so that it is no family by name."""
        return not isinstance(self.kernel, str)

    def initial_size(self, d: int, n: int) -> int:
        """Return the number of measurements before the model is used, for n points in R^d."""
        if not self.marginalise and not self.is_composed:
            return max(self.refit_every or PLUG_IN_REFIT_EVERY, 2)
        if self.n_initial is not None:
            return self.n_initial
        return max(3, min(4 + d // 2, 10, n // 5))

    def is_refit_due(self, t: int) -> bool:
        """Return whether the hyperparameters are fitted again after t measurements."""
        if self.refit_every is not None:
            return t % self.refit_every == 0
        if not self.marginalise:
            return t % PLUG_IN_REFIT_EVERY == 0
        return is_refit_step(t)


def is_refit_step(t: int) -> bool:
    """Return whether t is in 2, 3, ..., 20, 22, 24, ..., whose steps are about a tenth of t."""
    step = 2
    while step < t:
        step += max(1, step // 10)
    return step == t


@dataclass(frozen=True)
class Prior:
    """The model as the caller describes it.

    Attributes:
        kernel: A scikit-learn kernel; or the family to learn: `Learned`, its name, or None for the
            default family.
        mean: Prior mean. A number is a constant; None: a constant that is estimated from the
            observations. The name of a column, an array over the domain or a function of the points
            is a mean function; a constant is learned on top of it if the kernel is learned.
        noise: Noise variance of a measurement; None: learned from the observations.
        tasks: Correlated quantities that may be measured instead of the target.
        exact_model: Whether claims take a given kernel as the truth. Otherwise it shares them with
            a learned one by evidence.
        likelihood: Name of the observation model, or the kind of values that are not normal.
    """

    kernel: Kernel | str | Learned | None
    mean: MeanLike | None
    noise: NoiseLike | None
    tasks: Tasks | None = None
    exact_model: bool = False
    likelihood: str | Outcome = "gaussian"

    @property
    def outcome(self) -> Outcome | None:
        """The kind of values that measurements give; None: numbers with normal noise."""
        return None if isinstance(self.likelihood, str) else self.likelihood


@dataclass(frozen=True)
class Quantity:
    """The model and the cost of one quantity, in a study of several.

    Attributes:
        kernel: As the argument of `Study`; None: that of the study.
        mean: As the argument of `Study`; None: that of the study.
        noise: Noise variance of its measurements; None: that of the study.
        transform: As the argument of `Study`; None: that of the study.
        cost: Cost of measuring it, in addition to that of the place. If one quantity has a cost,
            each may be measured alone, and `ask` says which. None: 0.

    Raises:
        InvalidArgumentError: If the cost is negative.

    Example:
        >>> Quantity(noise=0.04, cost=2.5)
    """

    kernel: Kernel | str | Learned | None = None
    mean: MeanLike | None = None
    noise: NoiseLike | None = None
    transform: str | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        if self.cost is not None:
            check_nonnegative(self.cost, "the cost of a quantity")
        if isinstance(self.noise, NoiseLevels):
            raise InvalidArgumentError(
                "noise levels are for studies of one quantity, got them for one of several; give "
                "the noise variance as a number"
            )


def constant_mean(prior: Prior, family: Learned | None) -> float | None:
    """Return the constant part of the prior mean; None if it is estimated."""
    if prior.mean is None:
        return None
    if is_mean_function(prior.mean):
        return 0.0 if family is None else None
    return check_finite(prior.mean, "mean")


def family_to_learn(prior: Prior) -> Learned | None:
    """Return the kernel family whose hyperparameters are to be learned, or None for a known kernel.

    Raises:
        InvalidModelError: If kernel, noise and tasks do not go together.
    """
    kernel = prior.kernel
    if kernel is None or isinstance(kernel, str):  # as release 0.1.0 stored it
        kernel = Learned(kernel or "matern52", marginalise=False)
    if not isinstance(kernel, Learned):
        return None
    refused = {"tasks": prior.tasks is not None, "an outcome": prior.outcome is not None}
    given_too = [what for what, is_given in refused.items() if is_given and kernel.is_composed]
    if given_too:
        raise InvalidModelError(
            f"a composed kernel is learned from numbers of one task, got {kernel.kernel} with "
            f"{' and '.join(given_too)}; give Learned() with the name of a family"
        )
    tasks = prior.tasks
    covariance = None if tasks is None else tasks.covariance
    if covariance is not None and not covariance[0][0] > 0:
        raise InvalidModelError(
            "the target needs a variance > 0 in the covariance between the tasks, got "
            f"{covariance[0][0]!r}; give a positive one, such as 1"
        )
    given = prior.noise
    if given is None and tasks is not None:
        given = tasks.noise
    if kernel.noise and given is not None:
        raise InvalidModelError(
            f"noise is to be learned, but it is also given ({given!r}); leave out one of them"
        )
    return replace(kernel, noise=given is None)
