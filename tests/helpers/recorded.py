"""Scripted runs of every kind of problem, whose events and results are recorded.

    python -m tests.helpers.recorded      record them again, into tests/data/recorded-runs.json

A change that is not meant to change any number must leave them as they are:
`tests/study/test_recorded_runs.py`. Record them again only together with a change that is meant to
change numbers, and say in the commit which ones.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from tests.helpers.problems import GRID, KINDS, KNOWN, Kind, answer

import truvar as tv

FILE = Path(__file__).parents[1] / "data" / "recorded-runs.json"
SEEDS = 20
LEARNED_SEEDS = 5  # of kinds whose model is learned, which takes longer
SAMPLE = 5  # points of the domain at which the posterior is recorded

MIXED = tv.Domain.grid(
    rate=tv.Log(1e-4, 1e-1, count=5),
    depth=tv.Integer(1, 4),
    solver=tv.Categorical(["lbfgs", "saga"]),
)
CONSTRAINED = tv.Domain.grid(
    x=np.linspace(0, 1, 9), y=np.linspace(0, 2, 7), constraints=["x + y <= 2.25"]
)
WITH_CONTEXT = GRID.with_context(["y"])

MORE_KINDS: dict[str, Kind] = {
    "bands": Kind(GRID, tv.LevelSet([0.3, 0.8, 1.2]), KNOWN),
    "default level set": Kind(GRID, tv.LevelSet(0.6)),
    "default optimum": Kind(GRID, tv.Minimize()),
    "default box": Kind(tv.Domain.box(x=(0, 1), y=(0, 2), representers=64), tv.Maximize()),
    "share of the maximum": Kind(GRID, tv.LevelSet(fraction_of_max=0.7)),
    "logarithm": Kind(GRID, tv.LevelSet(1.5), {"transform": "log"}),
    "point estimate": Kind(
        GRID, tv.LevelSet(0.6), {"kernel": tv.Learned("matern32", marginalise=False)}
    ),
    "constrained grid": Kind(CONSTRAINED, tv.Maximize(), KNOWN),
    "given context": Kind(WITH_CONTEXT, tv.Maximize(), KNOWN),
    "mixed parameters": Kind(MIXED, tv.Maximize()),
}
ALL_KINDS = {**KINDS, **MORE_KINDS}


def is_learned(study: tv.Study) -> bool:
    """Return whether part of the model is learned."""
    try:
        study.theory_setting()
    except tv.TruvarError:
        return True
    return False


def measured(kind: str, suggestion: tv.Suggestion) -> float:
    """Return the value that is told for a suggestion."""
    if kind == "mixed parameters":
        point = suggestion.point
        return float(
            np.log10(point["rate"]) * 0.3 + point["depth"] * 0.2 + (point["solver"] == "saga")
        )
    value = answer(suggestion)
    return float(np.exp(value)) if kind == "logarithm" else value


def play(kind: str, seed: int) -> dict[str, Any]:
    """Return what a scripted run of a kind of problem does and states."""
    study = ALL_KINDS[kind].study(seed=seed)
    context = {"y": 1.0} if kind == "given context" else None
    few = ALL_KINDS[kind].domain.continuous  # where a choice takes its time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _script(study, kind, context, few)
        return _state(study)


def _script(study: tv.Study, kind: str, context: dict[str, float] | None, few: bool) -> None:
    def ask(n: int) -> list[tv.Suggestion]:
        try:
            return study.ask(n, context=context)
        except tv.Finished:
            return []

    def measure(n: int) -> None:
        for _ in range(n):
            for suggestion in ask(1):
                study.tell(suggestion, measured(kind, suggestion))

    measure(3 if few else 8)
    batch = ask(2 if few else 4)
    for suggestion in batch[-2::-2]:
        study.tell(suggestion, measured(kind, suggestion) + 0.1)
        study.correct(suggestion, measured(kind, suggestion))
    for suggestion in batch[-1:]:
        study.withdraw(suggestion, reason="bad weather")
    for suggestion in ask(1):
        study.fail(suggestion, reason="probe lost")
    study.exclude(study.domain.point(3), reason="rocks")
    measure(1 if few else 4)
    study.allow()
    for suggestion in batch[:1]:
        study.withdraw(suggestion.id)
    measure(1 if few else 2)
    ask(1)


def _events(study: tv.Study) -> list[dict[str, Any]]:
    """Return the events after the first, without their times, authors and fitted models."""
    events: list[dict[str, Any]] = json.loads(study.to_json())["events"][1:]
    for event in events:
        del event["time"]
        event.pop("who", None)
        event["details"].pop("models", None)
    return events


def _choice(details: dict[str, Any]) -> list[Any]:
    """Return what was chosen: the site of a finite domain or the point of a box, the level and
    the task."""
    where = (
        details["site"]
        if details["site"] is not None
        else [round(x, 9) for x in details["point"].values()]
    )
    return [where, details["level"], details["task"]]


def _state(study: tv.Study) -> dict[str, Any]:
    events = _events(study)
    result = study.result()
    classes = result.classify()
    score = result.expected_f1 if result.goal.has_thresholds else result.expected_regret
    rows = np.linspace(0, len(study.domain) - 1, SAMPLE).astype(int)
    numbers = {
        "mean": result.mean[rows].tolist(),
        "sd": result.sd[rows].tolist(),
        "lower": result.lower[rows].tolist(),
        "score": [score.mean, score.low, score.high],
        "epsilon": result.epsilon,
        "spent": result.spent,
    }
    exact = json.dumps([events, numbers, result.best.point], default=str)
    return {
        "kinds": "".join(event["kind"][0] for event in events),
        "choices": [_choice(event["details"]) for event in events if event["kind"] == "asked"],
        "sets": [int(mask.sum()) for mask in (result.potential, result.above, result.below)],
        "classes": [int(mask.sum()) for mask in (classes.above, classes.below, classes.undecided)],
        "finished": study.finished,
        **{name: _rounded(value) for name, value in numbers.items()},
        "sha256": hashlib.sha256(exact.encode()).hexdigest(),
    }


def _rounded(value: Any) -> Any:
    """Return numbers with twelve significant digits; those that are not finite as text."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.12g}") if np.isfinite(value) else str(value)


def record() -> None:
    """Write all runs to `FILE`."""
    runs: dict[str, list[Any]] = {}
    for kind, problem in ALL_KINDS.items():
        seeds = LEARNED_SEEDS if is_learned(problem.study()) or problem.domain.continuous else SEEDS
        runs[kind] = [play(kind, seed) for seed in range(seeds)]
        print(kind, seeds, flush=True)
    parts = []
    for kind, played in runs.items():
        lines = ",\n".join(
            json.dumps(run) for run in played
        )  # a line per run, so that a difference shows which
        parts.append(f"{json.dumps(kind)}: [\n{lines}\n]")
    text = ",\n".join(parts)
    FILE.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    record()
