"""Decode the answers of a server to the objects that a local study returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import inf, nan
from typing import Any

import numpy as np

from truvar._typing import Mask
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.inference._goals import inference_of
from truvar.inference.certificate import Certificate
from truvar.inference.errors import ClassErrors
from truvar.inference.statements import BandStatements, Estimate, JointStatements
from truvar.models.diagnostics import ModelCheck
from truvar.study._several_properties import QuantityEstimate
from truvar.study.result import Best, BestObserved, Result
from truvar.study.suggestion import Suggestion


def decode_suggestion(form: Mapping[str, Any], domain: Domain) -> Suggestion:
    """Return a suggestion."""
    fields = with_label(form, domain)
    if fields.get("cost_interval") is not None:
        fields["cost_interval"] = tuple(fields["cost_interval"])
    return Suggestion(**{**fields, "gain": decode_number(form["gain"], float("nan"))})


def with_label(form: Mapping[str, Any], domain: Domain) -> dict[str, Any]:
    """Return the fields of an object with the label of its row, in the type of the table."""
    return {**with_vehicle(form), "label": domain.label(form["index"])}


def with_vehicle(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object, whose vehicle requests call `who`."""
    vehicle = {"vehicle": form["who"]} if "who" in form else {}
    return {**{name: value for name, value in form.items() if name != "who"}, **vehicle}


def decode_certificate(form: Mapping[str, Any]) -> Certificate:
    """Return a certificate."""
    parts: dict[str, Any] = {}
    for name in (field.name for field in fields(Certificate)):
        value = form[name]
        if name in ("epsilon", "accurate_to", "epoch_epsilon"):
            value = decode_number(value, inf)
        parts[name] = tuple(value) if isinstance(value, list) else value
    return Certificate(**parts)


def _statements(goal: Goal, form: Mapping[str, Any]) -> JointStatements:
    probability = np.array(form["probability"], dtype=float)
    bands = _bands(form["bands"])
    certainty = np.maximum(probability, 1.0 - probability)
    if bands is not None:
        certainty = np.take_along_axis(bands.probability, bands.reported[None, :], axis=0)[0]
    errors = None
    if form.get("errors") is not None:
        errors = ClassErrors.from_dict(form["errors"], certainty)
    statements = JointStatements(
        goal=goal,
        probability=probability,
        decided_confidence=np.array(form["decided_confidence"], dtype=float),
        reported=None if form["reported"] is None else np.array(form["reported"], dtype=bool),
        lower=np.array([decode_number(value, -inf) for value in form["lower"]]),
        upper=np.array([decode_number(value, inf) for value in form["upper"]]),
        expected_f1=_estimate(form["expected_f1"]),
        expected_regret=_estimate(form["expected_regret"]),
        optimal_probability=form["optimal_probability"],
        expected_misclassified=form["expected_misclassified"],
        n_drawn=form["n_drawn"],
        n_relevant=form["n_relevant"],
        recommended_value=_estimate(form["recommended_value"], -inf),
        bands=bands,
        share_above=_estimate(form.get("share_above")),
        regret_bound=form.get("regret_bound"),
        errors=errors,
    )
    return inference_of(goal).decode(statements, form)


def _bands(form: Mapping[str, Any] | None) -> BandStatements | None:
    if form is None:
        return None
    scores = [
        Estimate(decode_number(f1["mean"], nan), f1["low"], f1["high"])
        for f1 in form["expected_f1"]
    ]
    return BandStatements(
        np.array(form["probability"], dtype=float), np.array(form["reported"], int), tuple(scores)
    )


def _estimate(form: Mapping[str, Any] | None, lowest: float = 0.0) -> Estimate | None:
    if form is None:
        return None
    return Estimate(
        decode_number(form["mean"], nan),
        decode_number(form["low"], lowest),
        decode_number(form["high"], inf),
    )


def _model_check(form: Mapping[str, Any]) -> ModelCheck:
    return ModelCheck(
        ok=form["ok"],
        finding=form["finding"],
        advice=form["advice"],
        coverage=decode_number(form["coverage"], nan),
        failure=form["failure"],
        misfit=form["misfit"],
        degrees=form["degrees"],
        limit=decode_number(form["limit"], inf),
        ids=tuple(form["ids"]),
        values=np.array(form["values"], dtype=float),
        means=np.array([decode_number(value, nan) for value in form["means"]]),
        sds=np.array([decode_number(value, inf) for value in form["sds"]]),
    )


def _mask(rows: Sequence[int], n: int) -> Mask:
    """Return a mask over n points that is True at some rows."""
    mask = np.zeros(n, bool)
    mask[list(rows)] = True
    return mask


def decode_number(value: Any, missing: float) -> float:
    """Return a number from JSON, where null stands for `missing`."""
    return missing if value is None else float(value)


def _decode_best_observed(form: Mapping[str, Any], domain: Domain) -> BestObserved:
    """Return the best measurement from JSON."""
    fields = with_label(form, domain)
    if fields.get("plausible") is not None:
        fields["plausible"] = _decode_best_observed(fields["plausible"], domain)
    return BestObserved(**fields)


def decode_result(
    domain: Domain, goal: Goal, posterior: Mapping[str, Any], stop_reason: str | None
) -> Result:
    """Return the result of a study, equal to that of the study itself.

    Args:
        domain: The domain of the study.
        goal: Its goal.
        posterior: The answer of the server.
        stop_reason: Why the last run stopped, if it did.
    """
    result = posterior["result"]
    sets = np.array(list(posterior["sets"]))
    best_observed = None
    if result["best_observed"] is not None:
        best_observed = _decode_best_observed(result["best_observed"], domain)
    return Result(
        domain=domain,
        goal=goal,
        potential=sets == "M",
        above=sets == "H",
        below=sets == "L",
        mean=np.array(posterior["mean"], dtype=float),
        sd=np.array(posterior["sd"], dtype=float),
        lower=np.array([decode_number(value, -inf) for value in posterior["lower"]]),
        upper=np.array([decode_number(value, inf) for value in posterior["upper"]]),
        best=Best(**with_label(result["best"], domain)),
        best_observed=best_observed,
        epsilon=decode_number(result["epsilon"], inf),
        bounds_certificate=decode_certificate(posterior["bounds_certificate"]),
        model_check=_model_check(posterior["model_check"]),
        spent=result["spent"],
        steps=result["steps"],
        reason=result["reason"] or stop_reason,
        measured=tuple(posterior["measured"]),
        source=_statements(goal, posterior["statements"]),
        outliers=tuple(result["outliers"]),
        excluded=_mask(posterior["excluded"], len(sets)),
        feasibility=None
        if posterior["feasibility"] is None
        else np.array(posterior["feasibility"], dtype=float),
        n_failed=result["failed"],
        quantities={
            name: QuantityEstimate.from_dict(form)
            for name, form in posterior.get("quantities", {}).items()
        },
    )
