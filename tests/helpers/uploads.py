"""Exported studies of every kind, mutations of them, and what a server does with an upload."""

from __future__ import annotations

import copy
import json
import random
import warnings
from typing import Any

from tests.helpers.problems import KINDS, truth

from truvar.exceptions import TruvarError

HALF = "\ud800"  # half of a surrogate pair
STRANGE = (
    None,
    -1,
    0,
    2,
    1e-300,
    -1e308,
    1e308,
    10**30,
    "x",
    "",
    [],
    {},
    True,
    HALF,
    "a\0b",
    "2026-13-01",
    [[]],
    [None],
    {"kind": "Domain"},
    {"kind": "dict", "items": [[1, 2]]},
    {"kind": "float", "value": "nan"},
    {"kind": "float", "value": "inf"},
)
READS = (
    *("status", "view", "posterior", "history", "measurements", "events", "export", "certificate"),
    *("domain", "export.csv", "result", "failures"),
)


def exported_studies(seed: int = 0) -> list[dict[str, Any]]:
    """Return an export of a study of every kind that can be exported, with values and
    suggestions."""
    rng = random.Random(seed)
    exports = []
    for kind in KINDS.values():
        try:
            study = kind.study()
            vehicle = next(iter(study.vehicles), None)
            first = study.domain.point(0)
            context = {name: first[name] for name in study.domain.context} or None
            for _ in range(3):
                suggestion = study.ask(vehicle=vehicle, context=context)
                study.tell(suggestion, float(truth(suggestion.point)))
            study.correct(1, rng.random())
            study.note("rain")
            study.withdraw(study.ask(vehicle=vehicle, context=context).id)
            study.ask(vehicle=vehicle, lease=3600, context=context)
            exports.append(json.loads(study.to_json()))
        except TruvarError:  # its functions cannot be written as JSON
            continue
    return exports


def mutate(value: Any, rng: random.Random) -> Any:
    """Return a JSON value in which one part is replaced, removed, doubled, moved or wrapped."""
    changed = copy.deepcopy(value)
    part = changed
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return changed
        key = rng.choice(keys)
        inner = part[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.8:
            part = inner
            continue
        action = rng.randrange(6)
        if action == 0:
            part[key] = copy.deepcopy(rng.choice(STRANGE))
        elif action == 1:
            del part[key]
        elif action == 2 and isinstance(part, list):
            part.insert(rng.randrange(len(part) + 1), copy.deepcopy(rng.choice(part)))
        elif action == 3 and len(keys) > 1:
            other = rng.choice(keys)
            part[key] = copy.deepcopy(part[other])
            part[other] = inner
        elif action == 4 and isinstance(inner, (int, float)) and not isinstance(inner, bool):
            part[key] = rng.choice(
                [-inner, inner + 1, inner * 1e150, inner * 1e-150, str(inner), [inner] * 3]
            )
        else:
            part[key] = rng.choice(
                [inner, [inner], {"kind": "tuple", "values": [inner]}, {"kind": inner}]
            )
        return changed


def mutated(exports: list[dict[str, Any]], rng: random.Random) -> Any:
    """Return an export with one to three mutations."""
    found: Any = rng.choice(exports)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = mutate(found, rng)
    return found


def use_upload(client: Any, name: str, study: Any) -> bool:
    """Upload a study, and do with it whatever a server can do; fail at any server error.

    Returns:
        Whether it was accepted.
    """
    content = json.dumps({"name": name, "study": study})
    posted = {"content-type": "application/json"}
    answer = client.post("/api/studies", content=content, headers=posted)
    assert answer.status_code in (201, 409, 422), f"{answer.status_code} {answer.text[:500]}"
    assert len(answer.text) < 1_000_000
    if answer.status_code != 201:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of outliers
        for what in READS:
            found = client.get(f"/api/studies/{name}/{what}")
            assert found.status_code == 200, f"{what}: {found.status_code} {found.text[:500]}"
        for what, body in (
            ("ask", {}),
            ("tell", {"id": 1, "y": 0.3}),
            ("correct", {"id": 1, "y": 0.4}),
            ("withdraw", {"id": 2}),
            ("note", {"text": "sun"}),
            ("ask", {"n": 2}),
        ):
            found = client.post(f"/api/studies/{name}/{what}", json=body)
            assert found.status_code in (200, 409, 422), (
                f"{what}: {found.status_code} {found.text[:500]}"
            )
        assert client.get(f"/api/studies/{name}/status").status_code == 200
    return True
