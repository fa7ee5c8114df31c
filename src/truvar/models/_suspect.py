"""A value that the others contradict: it is an outlier, or f is unlike what they say.

| symbol | here |
|---|---|
| u_i | the value, standardised |
| p(u_i given the others) | leave-one-out density, with the most probable hyperparameters |
| q(u_i) | density of an outlier: Cauchy, `_OUTLIER_SCALE` |
| epsilon | prior probability that a value is an outlier: `_OUTLIER_PROBABILITY` |

A value is suspect if epsilon q(u_i) > p(u_i given the others). No single value can tell which of
the two it is: the bump of a flat field is as improbable as a mistake. So claims are averaged over
fits with and without it, the latter with a probability of `MAX_PROBABILITY` at most: what only a
suspect value says is not decided, on either side.

A value whose noise was given is not suspected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri

from truvar._typing import Array
from truvar.models._conditions import Conditions
from truvar.models.frozen import FrozenMember
from truvar.models.transforms import OutputTransform, log_derivative

_OUTLIER_PROBABILITY = 0.01
_OUTLIER_SCALE = 10.0  # units of the standardised values
_OUTLIER_NOISE = 1e6  # variance that leaves a value without influence, in squares of its deviation
MAX_PROBABILITY = 0.5


class Suspect(NamedTuple):
    """A suspect value.

    Attributes:
        position: Its position among the observations.
        log_density: Logarithm of epsilon q(u_i), in units of the standardised values.
    """

    position: int
    log_density: float


def find_suspect(
    member: FrozenMember, conditions: Conditions, transform: OutputTransform
) -> Suspect | None:
    """Return the value that the others contradict the most; None if it is no suspect.

    Args:
        member: The posterior with the most probable hyperparameters.
        conditions: The observations that it is conditioned on.
        transform: The transform of their values.
    """
    if not conditions.learned.any():
        return None
    residuals = member.lower @ member.whitened
    upper, _ = dpotri(member.lower.T)
    precision = np.diag(upper)  # of each value given the others
    symmetric = upper + upper.T - np.diag(precision)
    errors = symmetric @ residuals / np.sqrt(precision)
    shift = transform.shift if conditions.mean is None else conditions.mean
    u = _standardised(residuals + shift, transform)
    log_density = 0.5 * np.log(precision / (2.0 * np.pi)) - 0.5 * errors**2
    log_density += np.log(transform.scale) + log_derivative(u, transform.power)
    log_outlier = np.log(_OUTLIER_PROBABILITY / (np.pi * _OUTLIER_SCALE))
    log_outlier = log_outlier - np.log1p((u / _OUTLIER_SCALE) ** 2)
    lead = np.where(conditions.learned, log_outlier - log_density, -np.inf)
    worst = int(np.argmax(lead))
    return Suspect(worst, float(log_outlier[worst])) if lead[worst] > 0 else None


def leave_out(conditions: Conditions, position: int, shift: float) -> Conditions:
    """Return the conditions with so much noise for a value that it says nothing.

    Args:
        conditions: The observations.
        position: The position of the value.
        shift: The typical value.
    """
    noise = conditions.noise.copy()
    noise[position] += _OUTLIER_NOISE * (conditions.z[position] - shift) ** 2
    learned = conditions.learned.copy()
    learned[position] = False
    return replace(conditions, noise=noise, learned=learned)


def _standardised(z: Array, transform: OutputTransform) -> Array:
    """Return the values before the power of the transform, in its units: (t,)."""
    plain = replace(transform, log=False)
    return (plain.inverse(z) - transform.shift) / transform.scale
