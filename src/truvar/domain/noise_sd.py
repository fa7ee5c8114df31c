"""Noise given as a standard deviation, the ± of an instrument, instead of its variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.costs import NoiseLevels
from truvar.exceptions import InvalidArgumentError
from truvar.messages import for_interface
from truvar.validation import check_nonnegative, check_nonnegative_array

if TYPE_CHECKING:
    from truvar.domain.domain import Domain


def given_variance(noise: Any, noise_sd: Any, domain: Domain | None = None) -> Any:
    """Return the noise variance, given it or the standard deviation.

    Args:
        noise: The variance, in any form that `Study` takes; None: not given.
        noise_sd: The standard deviation: a number, and with a domain also the name of a column, an
            array with a value per point, or a function of the points; None: not given.
        domain: The domain of the column or array.

    Raises:
        InvalidArgumentError: If both are given, or a standard deviation is not a number >= 0.
    """
    if noise_sd is None:
        return noise
    if noise is not None:
        names = for_interface("noise_sd and noise", problem="sd and another key of [noise]")
        raise InvalidArgumentError(
            f"noise is a standard deviation or a variance, got both ({names}); leave out one of "
            "them"
        )
    if isinstance(noise_sd, NoiseLevels):
        raise InvalidArgumentError(
            "noise_sd is the standard deviation of a measurement, got noise levels; give "
            "noise=NoiseLevels(...) with their variances"
        )
    if domain is None or (np.ndim(noise_sd) == 0 and not isinstance(noise_sd, str)):
        if callable(noise_sd) and domain is not None:
            return _Squared(noise_sd)
        return check_nonnegative(noise_sd, "noise_sd") ** 2
    values = domain.column(noise_sd) if isinstance(noise_sd, str) else noise_sd
    return check_nonnegative_array(values, "noise_sd", count=len(domain)) ** 2


class _Squared:
    """The square of a function of the points."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, points: Array) -> Array:
        """Return the variances at points (q, d): (q,)."""
        count = len(points)
        return check_nonnegative_array(self._function(points), "noise_sd", count=count) ** 2
