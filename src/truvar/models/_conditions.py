"""Observations as the members of an average are conditioned on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from truvar._typing import Array, Mask


@dataclass(frozen=True, eq=False)
class Conditions:
    """Observations as a posterior takes them, in the units of the transform.

    Attributes:
        points: Where they were made. (t, d)
        z: Their values. (t,)
        noise: Their noise variances, where these are not learned. (t,)
        learned: Where they are. (t,)
        mean: Known constant mean; None: unknown, with a wide prior around the transform's shift.
        offset: The part of the prior mean that depends on the point; None: there is none.
    """

    points: Array
    z: Array
    noise: Array
    learned: Mask
    mean: float | None
    offset: Callable[[Array], Array] | None
