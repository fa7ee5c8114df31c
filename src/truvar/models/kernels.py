"""Kernels by name, checks of scikit-learn's kernels, compiled forms, kernels of several tasks.

| paper | here |
|---|---|
| k(x, x') | any scikit-learn kernel, in the user's units |
| categories c, c' of a column with length-scale l | [c != c'] / l^2 is added to the squared distance (Hamming) |
| k(x, x) = 1 | `prior_scale`: the standard deviation that the algorithm divides by |
| multi-task k((x, i), (x', j)) | `Coregionalized`: covariance[i, j] k(x, x'), the task in the last column |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from truvar._numba import kernels
from truvar._typing import Array, Index, Mask
from truvar.exceptions import InvalidModelError
from truvar.messages import unknown_name

# scikit-learn takes longer to import than anything else, and a stored named kernel does without it
if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

Covariance = Callable[[Array, Array], Array]
# nu of each named kernel
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5, "rbf": np.inf}
_SMALLEST_VARIANCE = 1e-200  # of a prior: products of smaller ones with noise vanish
_LARGEST_VARIANCE = 1e300  # of a prior: larger ones overflow
_SAFE_DISTANCE = 1e100  # length-scales: the square of such a coordinate is still a finite number


@dataclass(frozen=True, eq=False, repr=False)
class NamedKernel:
    """`ConstantKernel(variance) * RBF(length_scale)`, or Matern, without importing scikit-learn.

    A kernel that a problem file names, or that was stored, is of this class until somebody asks for
    the scikit-learn object: that import takes longer than a whole `truvar ask` otherwise does.

    Attributes:
        name: "rbf", "matern12", "matern32" or "matern52".
        length_scale: One length-scale, or one per column.
        variance: Prior variance; None: 1, without a `ConstantKernel`.
        categorical: Positions of the columns of categories; scikit-learn has no such kernel.
    """

    name: str
    length_scale: float | Array
    variance: float | None = None
    categorical: tuple[int, ...] = ()

    @cached_property
    def sklearn(self) -> Kernel:
        """The scikit-learn kernel."""
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

        nu = SMOOTHNESS[self.name]
        shape = RBF(self.length_scale) if self.name == "rbf" else Matern(self.length_scale, nu=nu)
        return shape if self.variance is None else ConstantKernel(self.variance) * shape

    @cached_property
    def form(self) -> Stationary:
        """The compiled form."""
        scales = np.atleast_1d(np.asarray(self.length_scale, dtype=float))
        variance = 1.0 if self.variance is None else float(self.variance)
        return Stationary(twice_nu(SMOOTHNESS[self.name]), variance, scales, self.categorical)

    def __call__(self, points: Array, others: Array | None = None) -> Array:
        """Return k(points, others)."""
        if self.categorical:
            return self.form(points, points if others is None else others)
        return np.asarray(self.sklearn(points, others))

    def diag(self, points: Array) -> Array:
        """Return the prior variance of every point."""
        return np.full(len(points), self.form.variance)

    def __repr__(self) -> str:
        if self.categorical:
            return f"{self.sklearn!r} with the Hamming distance in columns {list(self.categorical)}"
        return repr(self.sklearn)


def to_sklearn(kernel: Kernel | NamedKernel) -> Kernel | NamedKernel:
    """Return a kernel as a scikit-learn object; kernels of categories unchanged."""
    return kernel.sklearn if isinstance(kernel, NamedKernel) and not kernel.categorical else kernel


def check_kernel_name(name: Any) -> None:
    """Check that there is a kernel of this name.

    Raises:
        InvalidModelError: If there is none.
    """
    if name not in SMOOTHNESS:
        raise InvalidModelError(unknown_name("kernel", name, SMOOTHNESS))


def is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel object, without importing scikit-learn."""
    return not isinstance(value, type) and hasattr(value, "clone_with_theta")


def check_named_kernel(
    name: str, lengthscales: ArrayLike, variance: float = 1.0, categorical: tuple[int, ...] = ()
) -> NamedKernel:
    """Return the kernel of that name, without importing scikit-learn.

    Args:
        name: "rbf", "matern12", "matern32" or "matern52".
        lengthscales: One length-scale, or one per column (ARD).
        variance: Prior variance.
        categorical: Positions of the columns of categories.

    Raises:
        InvalidModelError: If there is no such kernel, or a number is not positive.
    """
    scales = np.atleast_1d(np.asarray(lengthscales, dtype=float))
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise InvalidModelError(
            f"length-scales must be positive numbers, got {scales.tolist()}; give numbers > 0"
        )
    if not (np.isfinite(variance) and variance > 0):
        raise InvalidModelError(
            f"the kernel must have a positive variance, got {variance}; give a number > 0"
        )
    check_kernel_name(name)
    return NamedKernel(name, scales, variance, categorical)


def named_kernel(name: str, lengthscales: ArrayLike, variance: float = 1.0) -> Kernel:
    """Return the scikit-learn kernel of that name, see `check_named_kernel`."""
    return check_named_kernel(name, lengthscales, variance).sklearn


def check_kernel(kernel: Any, points: Array, columns: Sequence[str]) -> Kernel | NamedKernel:
    """Return the kernel if it can be evaluated on the points.

    Args:
        kernel: A kernel of scikit-learn, or a named one.
        points: Points of the domain. (n, d)
        columns: Names of their columns.

    Raises:
        InvalidModelError: If it is not a kernel, contains noise, has a length-scale that is not
            positive, or does not fit the columns.
    """
    if isinstance(kernel, NamedKernel):
        if _fits(kernel.form, points):
            return kernel
        kernel = kernel.sklearn  # for the message
    from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

    if not isinstance(kernel, Kernel):
        raise InvalidModelError(
            f"kernel must be a scikit-learn kernel, one of the names {', '.join(SMOOTHNESS)}, or "
            f"None (learned), got {kernel!r}; give one such as RBF(0.3)"
        )
    if any(isinstance(part, WhiteKernel) for part in _parts(kernel)):
        raise InvalidModelError(
            f"the kernel {kernel} contains a WhiteKernel, which is noise; leave it out and give "
            "its level as noise=..."
        )
    for name, scales in kernel.get_params(deep=True).items():
        if name.endswith("length_scale") and not (np.asarray(scales) > 0).all():
            raise InvalidModelError(
                f"length-scales must be positive numbers, got {scales} in {kernel}; give numbers > "
                "0"
            )
    try:
        value = kernel(points[:2], points[:2])
    except ValueError as error:
        raise InvalidModelError(
            f"the kernel {kernel} does not fit points with {len(columns)} columns "
            f"({', '.join(columns)}): {error}; give it one length-scale or {len(columns)}"
        ) from None
    if not np.isfinite(value).all():
        raise InvalidModelError(
            f"the kernel must be finite on the domain, got {value.tolist()} on its first points "
            f"from {kernel}; correct its hyperparameters"
        )
    return kernel


def prior_scale(kernel: Kernel | NamedKernel | Coregionalized, points: Array) -> float:
    """Return the largest prior standard deviation over the points, which is the unit of eta.

    Raises:
        InvalidModelError: If the kernel has no variance there.
    """
    variance = float(np.max(kernel.diag(points)))
    if not variance > 0:
        raise InvalidModelError(
            f"the kernel {kernel} has no variance on the domain; give it a positive variance"
        )
    if not _SMALLEST_VARIANCE <= variance <= _LARGEST_VARIANCE:
        raise InvalidModelError(
            f"the prior variance must be from {_SMALLEST_VARIANCE:g} to {_LARGEST_VARIANCE:g}, got "
            f"{variance:.3g}; use other units"
        )
    return float(np.sqrt(variance))


@dataclass(frozen=True, eq=False)
class Coregionalized:
    """Kernel of several tasks: k((x, i), (x', j)) = covariance[i, j] k(x, x').

    The index of the task is the last column of the points.

    Attributes:
        kernel: The kernel of the target task.
        covariance: The covariance of the tasks. (n_tasks, n_tasks)
    """

    kernel: Kernel | NamedKernel
    covariance: ArrayLike

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return k(X, Y)."""
        Y = X if Y is None else Y
        tasks = X[:, -1].astype(int)
        other_tasks = Y[:, -1].astype(int)
        between = np.asarray(self.covariance, dtype=float)[np.ix_(tasks, other_tasks)]
        return np.asarray(between * self.kernel(X[:, :-1], Y[:, :-1]))

    def diag(self, X: Array) -> Array:
        """Return the prior variance of every point."""
        tasks = X[:, -1].astype(int)
        within = np.diag(np.asarray(self.covariance, dtype=float))[tasks]
        return np.asarray(within * self.kernel.diag(X[:, :-1]))


@dataclass(frozen=True)
class Stationary:
    """A kernel with a compiled form: RBF or Matern with nu 1/2, 3/2 or 5/2, times a constant.

    Attributes:
        smoothness: Twice nu; 0 for RBF.
        variance: k(x, x).
        lengthscales: One for all columns, or one per column.
        categorical: Positions of the columns of categories, whose distance is 1 if they differ.
    """

    smoothness: int
    variance: float
    lengthscales: Array
    categorical: tuple[int, ...] = ()

    def __call__(self, points: Array, others: Array) -> Array:
        """Return k(points, others): (p, q)."""
        # The kernel is symmetric, and the compiled loop is fastest along the longer side.
        if len(others) < len(points):
            return self(others, points).T
        out = np.empty((len(points), len(others)))
        points = np.ascontiguousarray(points, dtype=float)
        others = np.ascontiguousarray(others, dtype=float)
        scales = np.full(others.shape[1], self.lengthscales)
        categorical = column_mask(self.categorical, others.shape[1])
        kernels.stationary(points, others, scales, categorical, self.smoothness, self.variance, out)
        return out


@cache
def column_mask(columns: tuple[int, ...], d: int) -> Mask:
    """Return which of d columns are among those given: (d,)."""
    return np.isin(np.arange(d), columns)


def indicator_columns(points: Array, categorical: Sequence[int]) -> tuple[Array, Index]:
    """Return points with indicators in place of categories, at a squared distance of 1.

    Args:
        points: Points with the positions of their categories. (q, d)
        categorical: Positions of the columns of categories.

    Returns:
        The points (q, d'), and the original column that each column belongs to (d',).
    """
    parts: list[Array] = []
    columns: list[int] = []
    for k in range(points.shape[1]):
        column = points[:, k : k + 1]
        if k in categorical:
            values = np.unique(column)
            column = np.sqrt(0.5) * (column == values)
            if len(values) == 2:
                column = np.sqrt(2.0) * column[:, 1:]
        parts.append(column)
        columns += [k] * column.shape[1]
    return np.ascontiguousarray(np.hstack(parts)), np.array(columns)


def with_categories(
    kernel: Kernel | NamedKernel, categorical: tuple[int, ...]
) -> Kernel | NamedKernel:
    """Return a kernel with the Hamming distance in some columns.

    Args:
        kernel: The kernel that the user gave.
        categorical: Positions of the columns of categories.

    Raises:
        InvalidModelError: If the kernel is not one in which distances can be replaced.
    """
    if not categorical:
        return kernel
    form = stationary_form(kernel)
    if form is None:
        raise InvalidModelError(
            "a kernel of categories must be a constant times RBF or Matern with nu 1/2, 3/2 or "
            f"5/2, got {kernel}; give such a kernel, or leave it out to learn one"
        )
    name = next(name for name, nu in SMOOTHNESS.items() if twice_nu(nu) == form.smoothness)
    return NamedKernel(name, form.lengthscales, form.variance, categorical)


def stationary_form(kernel: Kernel | NamedKernel) -> Stationary | None:
    """Return the kernel in its compiled form, or None if it has none."""
    if isinstance(kernel, NamedKernel):
        return kernel.form
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

    factors = _factors(kernel)
    shapes = [factor for factor in factors if not isinstance(factor, ConstantKernel)]
    if len(shapes) != 1 or type(shapes[0]) not in (RBF, Matern):
        return None
    nu = getattr(shapes[0], "nu", np.inf)
    if nu not in SMOOTHNESS.values():
        return None
    variance = float(np.prod([f.constant_value for f in factors if isinstance(f, ConstantKernel)]))
    scales = np.atleast_1d(np.asarray(shapes[0].length_scale, dtype=float))
    return Stationary(twice_nu(nu), variance, scales)


def covariance_function(kernel: Kernel | NamedKernel | Coregionalized) -> Covariance:
    """Return k(X, Y) as a function, compiled where possible and scikit-learn's otherwise."""
    if isinstance(kernel, Coregionalized):
        inner = covariance_function(kernel.kernel)
        between = np.asarray(kernel.covariance, dtype=float)

        def coregionalized(points: Array, others: Array) -> Array:
            tasks = np.ix_(points[:, -1].astype(int), others[:, -1].astype(int))
            return np.asarray(between[tasks] * inner(points[:, :-1], others[:, :-1]))

        return coregionalized
    form = stationary_form(kernel)
    return form if form is not None else lambda points, others: np.asarray(kernel(points, others))


def _fits(form: Stationary, points: Array) -> bool:
    """Return whether a stationary kernel is certainly finite on points of this width."""
    scales = form.lengthscales
    if not (
        np.isfinite(form.variance) and (scales > 0).all() and len(scales) in (1, points.shape[1])
    ):
        return False
    with np.errstate(over="ignore"):
        return bool((np.abs(points[:2] / scales) < _SAFE_DISTANCE).all())


def _parts(kernel: Kernel) -> list[Kernel]:
    """Return the kernel and every kernel that it is composed of."""
    from sklearn.gaussian_process.kernels import Kernel

    inner = [value for value in kernel.get_params(deep=True).values() if isinstance(value, Kernel)]
    return [kernel, *inner]


def _factors(kernel: Kernel) -> list[Kernel]:
    """Return the factors of a product of kernels, in order."""
    from sklearn.gaussian_process.kernels import Product

    if isinstance(kernel, Product):
        return [*_factors(kernel.k1), *_factors(kernel.k2)]
    return [kernel]


def twice_nu(nu: float) -> int:
    """Return the smoothness of the compiled kernels: twice nu, or 0 for RBF."""
    return 0 if np.isinf(nu) else int(2 * nu)
