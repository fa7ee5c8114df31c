"""Statements that follow from joint draws of f, compared with the truth.

This is a transcription of its own, so that every model is judged by the same rules: points are
ordered by the probability of their class, and as many of them are shown as the draws allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
TOLERANCES = (0.0, 0.01, 0.02)
POINTWISE = 0.95
MAP_SHARE = 0.99  # of the points, at which a map has the distance that is stated
MISS = 2 / 0.05  # interval score (Gneiting and Raftery 2007): penalty per unit of missing by


@dataclass(frozen=True)
class Drawn:
    """A posterior as a sample.

    Attributes:
        values: Joint draws of f in the user's units. (n, S)
        weights: Their probabilities. (S,)
        mean: Posterior mean of f. (n,)
        probability: Of lying above the threshold; None: the share of the draws that do. (n,)
    """

    values: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    probability: np.ndarray | None = None


def level_set_check(drawn: Drawn, truth: np.ndarray, threshold: float) -> dict[str, Any]:
    """Return what is stated about a level set, and whether it is true."""
    is_above = drawn.values >= threshold
    probability = is_above @ drawn.weights if drawn.probability is None else drawn.probability
    class_above = probability >= 0.5
    certainty = np.maximum(probability, 1 - probability)
    order = np.argsort(-certainty, kind="stable")
    wrong = (is_above != class_above[:, None])[order]
    truly_wrong = ((truth >= threshold) != class_above)[order]
    found: dict[str, Any] = {"brier": float(np.mean((probability - (truth >= threshold)) ** 2))}
    ranks = np.arange(1, len(truth) + 1)
    n_wrong = np.cumsum(wrong, axis=0, dtype=np.int32)
    n_truly_wrong = np.cumsum(truly_wrong)
    for tolerance in TOLERANCES:
        allowed = np.floor(tolerance * ranks + 1e-9)
        failure = (n_wrong > allowed[:, None]) @ drawn.weights
        if tolerance == 0:
            failure = np.maximum.accumulate(failure)
        for level in LEVELS:
            fits = np.flatnonzero(failure <= 1 - level + 1e-9)
            shown = int(fits[-1]) + 1 if len(fits) else 0
            true = shown == 0 or bool(n_truly_wrong[shown - 1] <= allowed[shown - 1])
            found[f"{tolerance:g} {level:g}"] = (true, 1 - shown / len(truth))
    shown_rows = certainty[order] >= POINTWISE
    most = _quantile(wrong[shown_rows].sum(axis=0), drawn.weights, POINTWISE)
    found["pointwise"] = (
        bool(truly_wrong[shown_rows].sum() <= most),
        float(1 - shown_rows.mean()),
    )
    hits = (class_above[:, None] & is_above).sum(axis=0)
    both = is_above.sum(axis=0) + class_above.sum()
    f1 = np.divide(2.0 * hits, both, out=np.ones(len(hits)), where=both > 0)
    true_above = truth >= threshold
    true_f1 = 2 * (class_above & true_above).sum() / max(class_above.sum() + true_above.sum(), 1)
    found["interval"] = _interval(f1, drawn.weights, float(true_f1))
    found["answer"] = float(true_f1)
    return found


def within_check(drawn: Drawn, truth: np.ndarray, margin: float) -> dict[str, Any]:
    """Return what is stated about the points within a margin of the maximum, and whether it is true.

    Every draw has its own maximum. They are those of a level set of the distance from it.
    """
    gaps = Drawn(drawn.values - drawn.values.max(axis=0), drawn.weights, drawn.mean)
    return level_set_check(gaps, truth - truth.max(), -margin)


def optimum_check(
    drawn: Drawn, truth: np.ndarray, sign: int, rows: list[int], values: list[float]
) -> dict[str, Any]:
    """Return what is stated about an optimum, and whether it is true; regrets in ranges."""
    signed = sign * drawn.values
    winner = signed.argmax(axis=0)
    n = len(truth)
    even = np.arange(signed.shape[1]) % 2 == 0
    first = np.bincount(winner[even], drawn.weights[even], n)
    second = np.bincount(winner[~even], drawn.weights[~even], n) / drawn.weights[~even].sum()
    promise = (signed @ drawn.weights) / np.sqrt(((signed**2) @ drawn.weights) + 1e-300)
    order = np.lexsort((promise, first))
    failure = np.cumsum(second[order])
    best = sign * truth >= (sign * truth).max()
    found: dict[str, Any] = {}
    for level in LEVELS:
        ruled_out = order[: int(np.searchsorted(failure, 1 - level + 1e-9, side="right"))]
        held = np.ones(n, bool)
        held[ruled_out] = False
        found[f"0 {level:g}"] = (bool((held & best).any()), float(held.mean()))
    span = float(np.ptp(truth))
    recommended = int(np.argmax(sign * drawn.mean))
    regret = np.maximum(signed.max(axis=0) - signed[recommended], 0) / span
    true_regret = float((sign * truth).max() - sign * truth[recommended]) / span
    found["interval"] = _interval(regret, drawn.weights, true_regret)
    found["answer"] = true_regret
    measured = rows[int(np.argmax(sign * np.array(values)))]
    found["measured"] = float((sign * truth).max() - sign * truth[measured]) / span
    return found


def map_check(drawn: Drawn, truth: np.ndarray) -> dict[str, Any]:
    """Return what is stated about a map, and whether it is true; distances relative to the truth's.

    A statement has the distance that the map exceeds at 1 % of the points at most. Its width is
    that distance as a ratio to the one that holds; so is that of the distance at all points.
    """
    errors = np.sort(np.abs(drawn.values - drawn.mean[:, None]), axis=0)
    actual = np.sort(np.abs(truth - drawn.mean))
    nearly_all = int(np.ceil(MAP_SHARE * len(truth) - 1e-9)) - 1
    found: dict[str, Any] = {}
    for name, row in (("0", nearly_all), ("all", len(truth) - 1)):
        smallest = 1e-9 * float(np.ptp(truth))
        for level in LEVELS:
            stated = _quantile(errors[row], drawn.weights, level)
            ratio = (stated + smallest) / (actual[row] + smallest)
            found[f"{name} {level:g}"] = (bool(actual[row] <= stated + smallest), float(ratio))
    rmse = np.sqrt((errors**2).mean(axis=0))
    unit = float(truth.std())
    true_rmse = float(np.sqrt((actual**2).mean())) / unit
    found["interval"] = _interval(rmse / unit, drawn.weights, true_rmse)
    found["answer"] = true_rmse
    return found


def _interval(draws: np.ndarray, weights: np.ndarray, actual: float) -> tuple[bool, float, float]:
    """Return whether a 95 % interval covers a number, its width, and its interval score."""
    low = _quantile(draws, weights, 0.025)
    high = _quantile(draws, weights, 0.975)
    miss = max(low - actual, actual - high, 0.0)
    return miss <= 1e-9, high - low, high - low + MISS * miss


def _quantile(draws: np.ndarray, weights: np.ndarray, level: float) -> float:
    order = np.argsort(draws, kind="stable")
    position = np.searchsorted(np.cumsum(weights[order]), level - 1e-9)
    return float(draws[order[min(int(position), len(order) - 1)]])
