"""The model check for outcomes: are labels and counts as far from their predictions as expected?

| quantity | here | shape |
|---|---|---|
| y_i, its mean m_i and variance v_i given the others | `values`, `means`, `sds` squared | (t,) |
| T = sum (y_i - m_i)^2 - v_i, of mean 0 if the model is right | `_excess` | |
| its variance, for independent y_i | `Outcome.squared_error_variance` | |

A single label contradicts no model, so that only T is judged (Spiegelhalter 1986), and only upwards:
a model that is too cautious is not wrong. The prediction of the others follows from the pseudo-values
without that of y_i, which stays as it was (Vehtari et al. 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, sqrt

import numpy as np

from truvar._typing import Array
from truvar.models._labels import Labels
from truvar.models.diagnostics import MIN_MEASUREMENTS, NORMAL_95, Failure, ModelCheck
from truvar.models.posterior import Posterior
from truvar.models.transforms import OutputTransform

_MAX_EXCESS = 3.0  # standard deviations of T; a right model has more in one of 740 checks


def check_outcomes(
    posterior: Posterior,
    noise: Array,
    labels: Labels,
    link: OutputTransform,
    ids: Sequence[int],
    *,
    fitted: bool,
) -> ModelCheck:
    """Compare every outcome with what the others predict.

    Args:
        posterior: The model, given the pseudo-values.
        noise: Noise variances of the pseudo-values. (t,)
        labels: The measurements.
        link: From what statements are about to the latent function.
        ids: Ids of the measurements.
        fitted: Whether there is a model to judge.
    """
    t = len(labels)
    latent_means, latent_variances = posterior.leave_one_out()
    spread = np.maximum(latent_variances - noise, 0.0)
    found, sds = link.inverse_each(latent_means, spread)
    means, variances = labels.outcome.moments(found, sds, labels.exposures)
    errors = (labels.values - means) ** 2
    ratio = float(errors.sum() / variances.sum()) if t else nan
    z = np.abs(labels.values - means) / np.sqrt(np.maximum(variances, 1e-300))
    finding = "The model is not learned yet, so that there is nothing to check"
    advice = ""
    failure: Failure | None = None
    coverage = float((z <= NORMAL_95).mean()) if t else nan
    if fitted and t < MIN_MEASUREMENTS:
        finding = (
            f"Too few measurements to check the model: {t}, of at least {MIN_MEASUREMENTS} that a "
            "check needs"
        )
    elif fitted:
        expected_sd = sqrt(labels.outcome.squared_error_variance(means, variances).sum())
        is_far = float((errors - variances).sum()) > _MAX_EXCESS * max(expected_sd, 1e-12)
        failure = "overconfident" if is_far else None
        times = f"{ratio:.2g} times what the others let expect"
        finding = f"The measurements agree with the model: their squared errors are {times}"
        if is_far:
            finding = f"The squared errors of the predictions are {times}"
            advice = (
                f"the {labels.outcome.subject} probably changes over shorter distances than the "
                "model expects: try a rougher kernel (matern32)"
            )
    return ModelCheck(
        ok=failure is None,
        finding=finding,
        advice=advice,
        coverage=coverage,
        failure=failure,
        misfit=float((z**2).sum()),
        degrees=t,
        limit=inf,
        ids=tuple(ids),
        values=labels.values.copy(),
        means=np.asarray(means),
        sds=np.sqrt(variances),
    )
