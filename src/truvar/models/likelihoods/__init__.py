"""Observation models: how a measured value comes from the function that is modelled.

One with normal noise is a module here with a subclass of `Gaussian`, and a line of `LIKELIHOODS`.
It is chosen by the name `Prior.likelihood`. Values that are not numbers with normal noise are an
`Outcome`: a module here, a line of `OUTCOMES`, and the object is `Prior.likelihood`.
"""

from __future__ import annotations

from typing import Any

from truvar.exceptions import InvalidModelError
from truvar.messages import unknown_name
from truvar.models.likelihoods.binary import Binary
from truvar.models.likelihoods.count import Count
from truvar.models.likelihoods.gaussian import Gaussian
from truvar.models.likelihoods.latent import Latent
from truvar.models.likelihoods.outcome import Outcome

__all__ = [
    "LIKELIHOODS",
    "OUTCOMES",
    "Binary",
    "Count",
    "Gaussian",
    "Latent",
    "Outcome",
    "outcome_named",
]

LIKELIHOODS: dict[str, type[Gaussian]] = {"gaussian": Gaussian}
"""Observation models with normal noise by name."""

OUTCOMES: dict[str, type[Outcome]] = {"binary": Binary, "count": Count}
"""Other kinds of values by name."""


def outcome_named(outcome: Any) -> str | Outcome:
    """Return the observation model that a user asks for by an outcome or its name.

    Raises:
        InvalidModelError: If there is no such outcome.
    """
    if outcome is None:
        return "gaussian"
    if isinstance(outcome, Outcome):
        return outcome
    if isinstance(outcome, str) and outcome in OUTCOMES:
        return OUTCOMES[outcome]()
    if isinstance(outcome, str):
        raise InvalidModelError(unknown_name("outcome", outcome, OUTCOMES))
    raise InvalidModelError(
        f'outcome must be "binary", "count", Binary(...) or Count(...), got {outcome!r}; give one '
        "of them, or leave it out"
    )
