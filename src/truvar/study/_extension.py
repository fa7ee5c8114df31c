"""Settings of a study whose domain was extended.

Names of columns and functions hold for further points too. If a setting has a number for every
point, the rows of the extension have a column of the same name: noise, mean, cost or weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from truvar._typing import Array
from truvar.domain.costs import NoiseLevels
from truvar.domain.extension import Extension, Relocation, extension_of, setting_of_rows
from truvar.exceptions import InvalidDomainError
from truvar.storage.serialization import deserialize, serialize
from truvar.study._events import StudyConfig


def study_extension(config: StudyConfig, given: Any) -> Extension:
    """Return the extension of a study's domain that a caller describes, as a store returns it.

    Args:
        config: The present settings of the study.
        given: As `Study.extend` takes it.

    Raises:
        InvalidDomainError: If the domain cannot be extended by that, or a setting has a number for
            every point that the extension lacks.
    """
    for name in _fixed_settings(config):
        raise InvalidDomainError(
            f"{name} has a value for every point of the domain, which says nothing about further "
            "points; create a new study with the name of a column for it"
        )
    extension = extension_of(config.domain, given, list(_settings_by_point(config)))
    details = {
        name: deserialize(serialize(part, "the extension"))
        for name, part in extension.to_details().items()
    }
    return Extension.from_details(details)


def extended_config(config: StudyConfig, extension: Extension) -> StudyConfig:
    """Return the settings of a study after its domain was extended."""
    domain = extension.apply_to(config.domain)
    changes: dict[str, Any] = {"domain": domain}
    if config.start is not None:
        changes["start"] = Relocation(config.domain, domain).row(config.start)
    prior: dict[str, Any] = {}
    for name, values in _settings_by_point(config).items():
        if extension.rows is None:
            raise AssertionError("only rows have settings of their own")
        joined = np.concatenate([values, setting_of_rows(extension.rows, name)])
        if name == "weight":
            changes["goal"] = config.goal.with_weights(joined)
        elif name == "cost":
            changes["cost"] = joined
        else:
            prior[name] = joined
    return replace(config, **changes, prior=replace(config.prior, **prior))


def _settings_by_point(config: StudyConfig) -> dict[str, Array]:
    """Return the settings that are a number for every point, by the name of their column."""
    settings = {
        "noise": config.prior.noise,
        "mean": config.prior.mean,
        "cost": config.cost,
        "weight": getattr(config.goal, "weight", None),
    }
    return {
        name: np.asarray(value, dtype=float)
        for name, value in settings.items()
        if _is_by_point(value)
    }


def _fixed_settings(config: StudyConfig) -> Iterator[str]:
    """Yield the settings with numbers for every point that no column of the extension gives."""
    noise = config.prior.noise
    if isinstance(noise, NoiseLevels):
        for k, variance in enumerate(noise.variance):
            if _is_by_point(variance):
                yield f"the variance of noise level {k}"
    for name, quantity in config.quantities.items():
        for part in ("noise", "mean"):
            if _is_by_point(getattr(quantity, part)):
                yield f"the {part} of {name!r}"


def _is_by_point(value: Any) -> bool:
    """Return whether a setting is an array over the points."""
    return not isinstance(value, str) and not callable(value) and np.ndim(value) == 1
