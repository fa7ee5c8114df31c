"""Look for numbers of one result that contradict each other, wherever they are stated."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

import truvar as tv
from truvar.domain.goals import Bands
from truvar.inference.statements import Classification, Estimate
from truvar.report.status import status_data, status_text
from truvar.report.terminal import TerminalStyle
from truvar.service import serializers

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
SMALL = 1e-9
MONTE_CARLO = 0.05  # error of a share that is an average over the joint draws, at most


def contradictions(study: tv.Study, is_exact: bool, result: tv.Result | None = None) -> list[str]:
    """Return what contradicts something else in the present result of a study, in words.

    Args:
        study: The study.
        is_exact: Whether its values have no noise.
        result: Its result, if that is another one.
    """
    result = result or study.result()
    found = [
        *_of_bounds(result),
        *_of_classes(result),
        *_of_outputs(study, result),
    ]
    if is_exact:
        found += _of_measured(study, result)
    if result.goal.has_thresholds:
        found += [*_of_level_set(result), *_of_sentences(result)]
    elif result.goal.seeks_optimum:
        found += _of_optimum(study, result)
    else:
        found += _of_map(result)
    return found


def _of_estimate(name: str, estimate: Estimate, least: float, most: float) -> Iterator[str]:
    if not least - SMALL <= estimate.low <= estimate.mean <= estimate.high <= most + SMALL:
        yield f"{name} is {estimate!r}, between {least:g} and {most:g}"


def _of_bounds(result: tv.Result) -> Iterator[str]:
    """The interval of a point contains its mean, agrees with its sd and with its class."""
    frame = result.to_frame()
    if not result.statements.is_known:
        return
    slack = SMALL * (1.0 + np.abs(result.mean))
    if (frame["lower"] > frame["mean"] + slack).any() or (
        frame["mean"] > frame["upper"] + slack
    ).any():
        yield "a mean lies outside of its interval"
    reach = np.maximum(frame["upper"] - frame["mean"], frame["mean"] - frame["lower"])
    if (reach > 5.0 * frame["sd"] + slack).any():
        worst = float(np.nanmax(reach / np.maximum(frame["sd"], 1e-300)))
        yield f"a bound is {worst:.3g} sd from the mean"
    if (frame["sd"] < 0).any() or not np.isfinite(frame[["mean", "sd"]].to_numpy()).all():
        yield "a moment is not finite"
    if result.best.index is not None and result.best.mean != result.mean[result.best.index]:
        yield "the recommended point has another mean than its row"


def _of_classes(result: tv.Result) -> Iterator[str]:
    """Classes at a higher confidence are a part of those at a lower one, and so on."""
    n = len(result.mean)
    families: dict[str, list[Classification]] = {
        "confidence": [result.classify(q) for q in CONFIDENCES]
    }
    if result.goal.has_thresholds:
        unit = 0.1 * float(np.ptp(result.mean)) + 0.01
        families["pointwise"] = [result.classify(pointwise=q) for q in CONFIDENCES]
        families["tolerance 0.02"] = [result.classify(q, tolerance=0.02) for q in CONFIDENCES]
        families["margin"] = [result.classify(q, margin=unit) for q in CONFIDENCES]
        for q in (0.5, 0.95):
            families[f"tolerance at {q}"] = [
                result.classify(q, tolerance=t) for t in (0.05, 0.02, 0.01, 0.0)
            ]
            # With another margin points have another order, but all contain the strict ones.
            for m in (4.0, 1.0):
                families[f"margin {m} at {q}"] = [
                    result.classify(q, margin=m * unit),
                    result.classify(q),
                ]
            families[f"joint and single at {q}"] = [
                result.classify(pointwise=q),
                result.classify(q),
            ]
    for name, members in families.items():
        for wide, narrow in pairwise(members):
            if (~narrow.undecided & wide.undecided).any():
                n_lost = int((~narrow.undecided & wide.undecided).sum())
                yield f"{name}: {narrow!r} has {n_lost} points that {wide!r} has not"
            both = ~narrow.undecided & ~wide.undecided
            if (narrow.labels[both] != wide.labels[both]).any():
                yield f"{name}: a point has two classes"
        for each in members:
            counts = each.above.astype(int) + each.below + each.undecided
            if each.band is None and (counts != 1).any():
                yield f"{name}: a point has no class or two"
            if each.band is not None and ((each.band < 0) != each.undecided).any():
                yield f"{name}: a point has a band and is undecided, or neither"
            if each.wrong is not None:
                yield from _of_estimate(f"{name}: wrong", each.wrong, 0.0, each.n_shown)
                if each.max_wrong > each.n_shown:
                    yield f"{name}: more are wrong than shown"
    if len(result.classes.labels) != n:
        yield "classes and points differ in number"


def _of_level_set(result: tv.Result) -> Iterator[str]:
    """Shares, scores and classes agree."""
    if not result.statements.is_known:
        return
    n = len(result.mean)
    probability = result.probability
    if probability.min() < 0 or probability.max() > 1:
        yield "a probability is none"
    yield from _of_estimate("share_above", result.share_above, 0.0, 1.0)
    yield from _of_estimate("expected_f1", result.expected_f1, 0.0, 1.0)
    if abs(result.share_above.mean - probability.mean()) > MONTE_CARLO:
        yield f"share_above {result.share_above} but the probabilities have {probability.mean():.3g}"
    most = n / 2 if result.goal.known_thresholds else n
    if not -SMALL <= result.expected_misclassified <= most + n * MONTE_CARLO:
        yield f"{result.expected_misclassified} of {n} are expected on the wrong side"
    classes = result.classes
    wrong = classes.wrong
    if wrong is None:
        yield "the number wrong is missing"
        return
    if wrong.mean > result.expected_misclassified + n * MONTE_CARLO:
        yield f"{wrong.mean} of those shown but {result.expected_misclassified} of all are wrong"
    if isinstance(result.goal, Bands):
        return
    if n * result.share_above.high < classes.above.sum() - wrong.high - n * MONTE_CARLO:
        yield f"{classes.above.sum()} are above but the share is {result.share_above}"
    if n * result.share_above.low > n - classes.below.sum() + wrong.high + n * MONTE_CARLO:
        yield f"{classes.below.sum()} are below but the share is {result.share_above}"
    reported = result.classification
    asked, other = result.goal.sides
    if reported is None or (getattr(classes, asked) & ~reported).any():
        yield "a point that is shown on the side asked for is not reported there"
    elif (getattr(classes, other) & reported).any():
        yield "a point that is shown on the other side is reported on the side asked for"
    threshold = result.goal.threshold
    if threshold is None:
        return
    slack = SMALL * (1.0 + abs(threshold))
    frame = result.to_frame()
    if (frame["lower"][classes.above] < threshold - slack).any():
        yield "a point is above but its lower bound is not"
    if (frame["upper"][classes.below] > threshold + slack).any():
        yield "a point is below but its upper bound is not"
    if (frame["lower"][classes.undecided] > threshold + slack).any():
        yield "a point is undecided but its lower bound is above"
    if (frame["upper"][classes.undecided] < threshold - slack).any():
        yield "a point is undecided but its upper bound is below"


def _of_sentences(result: tv.Result) -> Iterator[str]:
    """The counts in the certificate are those of the classes."""
    if not result.statements.is_known:
        return
    text = str(result.certificate)
    classes = result.classes
    n = len(result.mean)
    shown = re.search(r"(\d+) of (\d+) (?:representer )?points? (?:is|are) shown", text)
    if shown is not None and [int(part) for part in shown.groups()] != [classes.n_shown, n]:
        yield f"{classes.n_shown} are shown but the certificate says: {text}"
    n_undecided = n - classes.n_shown
    undecided = re.search(r"; (\d+) (?:is|are) undecided", text)
    if undecided is not None and int(undecided.group(1)) != n_undecided:
        yield f"{n_undecided} are undecided but the certificate says: {text}"
    if not isinstance(result.goal, Bands):
        for side in ("above", "below"):
            counts = re.findall(rf"\b(\d+) {side}\b", text)
            if counts and int(counts[0]) != int(getattr(classes, side).sum()):
                yield f"{getattr(classes, side).sum()} are {side} but the certificate says: {text}"
    at_most = re.search(r"at most (\d+) of them", text)
    if (0 if at_most is None else int(at_most.group(1))) != classes.max_wrong:
        yield f"at most {classes.max_wrong} are wrong but the certificate says: {text}"
    for sentence in (text, *result.certificate.further):
        for parts in re.findall(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)", sentence):
            mean, low, high = (float(part) for part in parts)
            if not low <= mean <= high:
                yield f"an interval does not contain its mean: {sentence}"
        for parts in re.findall(r"between ([\d.e-]+) and ([\d.e-]+) %", sentence):
            if float(parts[0]) > float(parts[1]):
                yield f"an interval is empty: {sentence}"


def _of_optimum(study: tv.Study, result: tv.Result) -> Iterator[str]:
    """Recommended point, regret and the set that holds the optimum agree."""
    if not result.statements.is_known:
        return
    statements = result.statements
    classes = result.classes
    yield from _of_estimate("expected_regret", result.expected_regret, 0.0, np.inf)
    probability = result.probability
    if abs(probability.sum() - 1.0) > SMALL:
        yield f"the probabilities of being the optimum add up to {probability.sum()}"
    held = float(probability[classes.undecided].sum())
    if held < classes.confidence - MONTE_CARLO:
        yield f"the points that hold the optimum have probability {held:.3g}"
    bound = statements.regret_bound
    if bound is None or bound < result.expected_regret.mean or bound < 0:
        yield f"the regret is at most {bound} and expected to be {result.expected_regret}"
    elif bound > result.expected_regret.high + SMALL:
        yield f"the regret is at most {bound} and at 97.5 % {result.expected_regret.high}"
    if result.best.index is not None:
        if not classes.undecided[result.best.index]:
            yield "the recommended point is ruled out"
        optimal = statements.optimal_probability or 0.0
        if probability[result.best.index] > optimal + MONTE_CARLO:
            yield f"best with {probability[result.best.index]}, optimal with {optimal}"
    value = statements.recommended_value
    if value is not None:
        slack = SMALL * (1.0 + abs(value.mean))
        if not value.low - slack <= result.best.mean <= value.high + slack:
            yield f"the recommended value is {value!r} but {result.best.mean} is estimated"
    text = str(result.certificate)
    count = re.search(r"one of (\d+) (?:representer )?points", text)
    if count is not None and int(count.group(1)) != int(classes.undecided.sum()):
        yield f"{classes.undecided.sum()} can be the optimum but the certificate says: {text}"
    rows = [i for i in result.measured if result.excluded is None or not result.excluded[i]]
    if rows and result.sd[rows].max() == 0:
        signed = result.goal.sign * result.mean
        ruled_out = [i for i in rows if signed[i] < signed[rows].max()]
        if classes.undecided[ruled_out].any():
            yield "a value that is worse than another one, both exact, can be the optimum"


def _of_map(result: tv.Result) -> Iterator[str]:
    if not result.statements.is_known:
        return
    statements: Any = result.statements
    asked = result.goal.accuracy
    yield from _of_estimate("expected_rmse", statements.expected_rmse, 0.0, np.inf)
    if not statements.accuracy <= statements.accuracy_everywhere + SMALL:
        yield "the map is more accurate everywhere than nearly everywhere"
    if statements.accuracy <= asked and statements.share_within < 0.99 - SMALL:
        yield f"±{statements.accuracy:.3g} at 99 % but ±{asked} at {statements.share_within}"
    if statements.accuracy_everywhere <= asked and statements.share_within < 1 - SMALL:
        yield "the accuracy is reached everywhere and not everywhere"
    if statements.accuracy_everywhere > asked and statements.share_within >= 1:
        yield f"±{statements.accuracy_everywhere:.3g} at all but ±{asked} at all, too"
    n_shown = result.classes.n_shown
    wrong = result.classes.wrong
    high = len(result.mean) if wrong is None else wrong.high
    if n_shown - high > len(result.mean) * (statements.share_within + MONTE_CARLO):
        yield f"{n_shown} are within ±{asked}, but at least {statements.share_within} of all"


def _of_measured(study: tv.Study, result: tv.Result) -> Iterator[str]:
    """A point that was measured exactly is never undecided against its own value."""
    if not result.goal.has_thresholds or not result.statements.is_known:
        return
    threshold = getattr(result.goal, "threshold", None)
    if threshold is None:
        return
    records = study.measurements
    for row, value in zip(result.measured, records["value"], strict=True):
        own = "above" if result.goal.exceeds(np.array([value]), threshold)[0] else "below"
        if abs(value - threshold) > 1e-6 and result.classes.labels[row] != own:
            yield f"{value} was measured exactly, but is {result.classes.labels[row]}"


def _of_outputs(study: tv.Study, result: tv.Result) -> Iterator[str]:
    """Every output has the same classes and counts."""
    labels = result.classes.labels
    name = "class_" if "class" in result.domain.columns else "class"
    if (result.to_frame()[name].to_numpy() != labels).any():
        yield "to_frame has other classes"
    copy = pickle.loads(pickle.dumps(result))
    if (copy.classes.labels != labels).any() or str(copy.certificate) != str(result.certificate):
        yield "a pickled result says something else"
    counts = {str(label): int((labels == label).sum()) for label in np.unique(labels)}
    data = result.to_dict()
    if data["classified"]["undecided"] != counts.get("undecided", 0):
        yield "to_dict counts other points"
    json.dumps(status_data(study, result)["result"]["classified"], allow_nan=False)
    page = serializers.view(study)
    letters = np.array(list(page["classes"]))
    if result.classes.band is None:
        of_letters = np.select([letters == "H", letters == "L"], ["above", "below"], "undecided")
        if (of_letters != labels).any():
            yield "the page has other classes"
    if page["result"]["classified"] != data["classified"]:
        yield "the page counts other points"
    text = status_text(study, TerminalStyle(width=1000))
    if " ".join(str(result.certificate).split()) not in " ".join(text.split()):
        yield "the status has another certificate"
    points = next(line for line in text.splitlines() if line.strip().startswith("points  "))
    for label, count in counts.items():
        if label == "undecided" and result.goal.seeks_optimum:
            label = f"possible {'maximum' if result.goal.sign > 0 else 'minimum'}"
        elif result.goal.seeks_optimum:
            label = "ruled out"
        found = re.findall(rf"{re.escape(label)}[^;:()]*: (\d+)", points)
        if not found or int(found[0]) != count:
            yield f"the status says {found} points {label}, but there are {count}"
