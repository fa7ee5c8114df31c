"""The model check: do the measurements agree with the model that interprets them?

| quantity | here | shape |
|---|---|---|
| y_i, its mean and standard deviation given the others | `values`, `means`, `sds` | (t,) |
| z_i = (y_i - mean) / sd, N(0, 1) if the model is right | `z_scores` | (t,) |
| r^T (K_t + Sigma_t)^-1 r, chi-squared if the model is right | `misfit` | |

The check fails if one of two tests rejects the model:

- the *misfit*, two-sided: too large where the model is too sure of itself (too smooth a kernel, too
  small a variance or noise), too small where it is too cautious. Its distribution is exact for a
  known model, whatever the order and the choice of the points: it is the sum of the squares of the
  one-step-ahead errors, which are independent.
- the *largest |z|*, with Bonferroni's bound for t values, which needs no independence: it finds
  single values that do not fit.

Each has the level `_TEST_LEVEL`, so at most 2 % of the checks of a right model fail. A model that
was learned from the same measurements fits them better than a right one would, so that the check
then fails less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import erfc, exp, inf, isfinite, lgamma, log, nan, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truvar._typing import Array, Mask

if TYPE_CHECKING:
    from truvar.models.posterior import Posterior

Failure = Literal["overconfident", "outlier", "cautious", "indistinct"]

MIN_MEASUREMENTS = 5  # below this number nothing is judged
_TEST_LEVEL = 0.01  # share of right models that each of the two tests rejects, at most
NORMAL_95 = 1.959963984540054  # half width of a 95 % interval, in standard deviations
_MAX_Z_SCORE_LIMIT = 40.0  # standard deviations; the chance of more is below the smallest number
_MAX_NAMED = 5  # measurements that a message names


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """Leave-one-out diagnostics of a model. t: number of measurements.

    Values, means and standard deviations are in the units of the model: those of the measurements,
    unless the model transforms them.

    Attributes:
        ok: False if the measurements contradict the model; True also where there are too few to
            tell.
        finding: The result of the check as a sentence without its full stop.
        advice: A remedy; empty if the check did not fail.
        coverage: Share of the measurements inside their leave-one-out 95 % interval; NaN without
            measurements.
        failure: "overconfident": values are further from their predictions than the model allows;
            "outlier": they are not, but for one; "cautious": they are closer than it expects;
            "indistinct": they are too small for it to tell them apart. None if the check did not
            fail.
        misfit: r^T (K_t + Sigma_t)^-1 r.
        degrees: Degrees of freedom of the misfit, and its mean if the model is right.
        limit: |z| above which a measurement alone contradicts the model.
        ids: Ids of the measurements. (t,)
        values: Measured values. (t,)
        means: Their means given the other measurements. (t,)
        sds: Their standard deviations given the other measurements, noise included. (t,)
    """

    ok: bool
    finding: str
    advice: str
    coverage: float
    failure: Failure | None
    misfit: float
    degrees: int
    limit: float
    ids: tuple[int, ...] = field(repr=False)
    values: Array = field(repr=False)
    means: Array = field(repr=False)
    sds: Array = field(repr=False)

    @property
    def message(self) -> str:
        """The finding and, if the check failed, what to do about it, as a sentence."""
        return f"{self.finding}; {self.advice}." if self.advice else f"{self.finding}."

    @property
    def is_contradiction(self) -> bool:
        """Whether the model says nothing true of the values; a cautious one is not wrong."""
        return self.failure in ("overconfident", "outlier", "indistinct")

    def fail_as_indistinct(self, finding: str, advice: str) -> ModelCheck:
        """Return the check of a model that cannot tell the measurements apart."""
        return replace(self, ok=False, failure="indistinct", finding=finding, advice=advice)

    @property
    def z_scores(self) -> Array:
        """Leave-one-out errors in standard deviations: (t,); NaN where nothing is predicted."""
        return _z_scores(self.values, self.means, self.sds)

    @property
    def outlying(self) -> Mask:
        """Mask of the measurements that contradict the model individually: (t,)."""
        return np.abs(self.z_scores) > self.limit  # False where z is NaN

    def to_dict(self) -> dict[str, Any]:
        """Return a summary for JSON, without the arrays."""
        return {
            "ok": self.ok,
            "message": self.message,
            "finding": self.finding,
            "advice": self.advice,
            "coverage": _finite(self.coverage),
            "failure": self.failure,
            "misfit": self.misfit,
            "degrees": self.degrees,
            "limit": _finite(self.limit),
            "outlying": [id_ for id_, out in zip(self.ids, self.outlying, strict=True) if out],
        }


def check_model(
    posterior: Posterior, ids: Sequence[int], *, learned: bool = False, fitted: bool = True
) -> ModelCheck:
    """Compare every measurement with what the others predict.

    Args:
        posterior: The model, given the measurements.
        ids: Ids of the measurements, in the order of the posterior.
        learned: Whether the kernel is learned from the measurements, which changes the advice only.
        fitted: Whether there is a model to judge: one that is to be learned may not have been
            fitted yet.
    """
    t = posterior.n_observed
    values = posterior.values.copy()
    means, variances = posterior.leave_one_out()
    sds = np.sqrt(variances)
    z = _z_scores(values, means, sds)
    misfit, degrees = posterior.misfit()
    judged = np.abs(z[np.isfinite(z)])
    limit = _normal_limit(_TEST_LEVEL / len(judged)) if len(judged) else inf
    failure: Failure | None = None
    if fitted and t >= MIN_MEASUREMENTS and degrees > 1:
        failure = _failure(misfit, degrees, float(judged.max()), limit)
    coverage = float((judged <= NORMAL_95).mean()) if len(judged) else nan
    finding = (
        _agreement(t, coverage)
        if fitted
        else "The model is not learned yet, so that there is nothing to check"
    )
    check = ModelCheck(
        ok=failure is None,
        finding=finding,
        advice="",
        coverage=coverage,
        failure=failure,
        misfit=misfit,
        degrees=degrees,
        limit=limit,
        ids=tuple(ids),
        values=values,
        means=means,
        sds=sds,
    )
    if failure is None:
        return check
    return replace(check, finding=_finding(check), advice=_advice(failure, learned))


def _failure(misfit: float, degrees: int, largest: float, limit: float) -> Failure | None:
    """Return which test failed, if one did.

    Args:
        misfit: r^T (K_t + Sigma_t)^-1 r.
        degrees: Its degrees of freedom, at least 2.
        largest: The largest |z|.
        limit: The largest |z| that is accepted.
    """
    upper_tail = _chi2_upper_tail(misfit, degrees)
    if upper_tail < _TEST_LEVEL / 2 or largest > limit:
        # Without a measurement the misfit of the others is smaller by the square of its z.
        of_the_others = _chi2_upper_tail(misfit - largest**2, degrees - 1)
        return "overconfident" if of_the_others < _TEST_LEVEL / 2 or largest <= limit else "outlier"
    return "cautious" if 1 - upper_tail < _TEST_LEVEL / 2 else None


def _chi2_upper_tail(x: float, degrees: int) -> float:
    """Return P(X > x) of a chi-squared variable.

    It is a finite sum, so that scipy.special, which is slow to import, is not needed.

    Args:
        x: The threshold.
        degrees: Degrees of freedom, at least 1.
    """
    half = x / 2
    if half <= 0:
        return 1.0
    odd = degrees % 2
    tail = erfc(sqrt(half)) if odd else 0.0
    for i in range(degrees // 2):
        power = i + odd / 2
        tail += exp(power * log(half) - half - lgamma(power + 1))
    return min(tail, 1.0)


def _normal_limit(level: float) -> float:
    """Return the x that |Z|, Z standard normal, exceeds with probability `level`, by bisection."""
    low = 0.0
    high = _MAX_Z_SCORE_LIMIT
    while high - low > 1e-12:
        middle = (low + high) / 2
        if erfc(middle / sqrt(2)) > level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _z_scores(values: Array, means: Array, sds: Array) -> Array:
    z = np.full(len(values), np.nan)
    known = np.isfinite(sds)
    z[known] = (values[known] - means[known]) / sds[known]
    return z


# -- sentences
# --------------------------------------------------------------------------------------------------


def _agreement(t: int, coverage: float) -> str:
    if t < MIN_MEASUREMENTS:
        return (
            f"Too few measurements to check the model: {t}, of at least {MIN_MEASUREMENTS} that a "
            "check needs"
        )
    return (
        f"The measurements agree with the model: {100 * coverage:.0f} % of the {t} lie inside the "
        "95 % interval that the others predict"
    )


def _finding(check: ModelCheck) -> str:
    """Return the finding, with the ids of the measurements that show it, the worst first."""
    size = np.abs(np.nan_to_num(check.z_scores))
    order = np.argsort(-size, kind="stable")
    far = [check.ids[i] for i in order if check.outlying[i]]
    ratio = check.misfit / check.degrees
    if check.failure == "outlier":
        return (
            f"Measurement {far[0]} lies {size[order[0]]:.2g} predicted standard deviations from "
            "what the others say, which agree with the model without it"
        )
    if check.failure == "cautious":
        return (
            f"The squared errors of the predictions are only {ratio:.2g} of what the model expects"
        )
    if not far:
        return f"The squared errors of the predictions are {ratio:.2g} times what the model expects"
    lie = "lies" if len(far) == 1 else "lie"
    return (
        f"{len(far)} of {len(check.ids)} measurements ({_named(far)}) {lie} more than "
        f"{check.limit:.2g} predicted standard deviations from what the others say"
    )


def _advice(failure: Failure, learned: bool) -> str:
    """Return the advice in words that suit a program as well as a problem file."""
    if failure == "outlier":
        return (
            "correct or withdraw it if it is wrong, or give a larger noise variance if values can "
            "be that far off"
        )
    if failure == "cautious":
        cause = "the length-scale is probably too short, or the variance or the noise too large"
        remedy = (
            "give the kernel, if it is known"
            if learned
            else "learn the model (leave out the kernel)"
        )
        return f"{cause}, and the bounds are wider than they need to be: {remedy}"
    cause = "the kernel is probably too smooth, or its variance or the noise too small"
    remedy = (
        "learn the model (leave out the kernel), or give a shorter length-scale or a larger noise "
        "variance"
    )
    if learned:
        remedy = "try a rougher kernel (matern32), or give a larger noise variance"
    return f"{cause}: {remedy}"


def _named(ids: Sequence[int]) -> str:
    """Return ids for a sentence: "id 3", "ids 3 and 8", "ids 1, 2, 3, 4, 5 and 7 more"."""
    shown = [str(id_) for id_ in ids[:_MAX_NAMED]]
    if len(ids) == 1:
        return f"id {shown[0]}"
    if len(ids) > _MAX_NAMED:
        return f"ids {', '.join(shown)} and {len(ids) - _MAX_NAMED} more"
    return f"ids {', '.join(shown[:-1])} and {shown[-1]}"
