"""Observation models: how a measured value comes from the function that is modelled.

Another one is a module here with a subclass of `Gaussian`, and a line of `LIKELIHOODS`. It is chosen
by `Prior.likelihood`.
"""

from __future__ import annotations

from truvar.models.likelihoods.gaussian import Gaussian

__all__ = ["LIKELIHOODS", "Gaussian"]

LIKELIHOODS: dict[str, type[Gaussian]] = {"gaussian": Gaussian}
"""Observation models by name."""
