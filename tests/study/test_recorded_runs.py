"""Studies of every kind do and state what was recorded: `tests/helpers/recorded.py`.

The check of a change that moves code and is not meant to change numbers. `TRUVAR_EXACT=1` compares
to the last bit, on the machine that recorded. Elsewhere, choices for a level set of a finite domain
with a known model are the same and its numbers agree to a relative 1e-6, its score to the 0.1 % that
`docs/trust.md` promises: claims of a given kernel share an average with learned ones. Searches of boxes, learned
models and draws of the optimum amplify rounding, so that only the kinds of their events are
compared.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from tests.helpers.recorded import ALL_KINDS, FILE, is_learned, play

EXACT = os.environ.get("TRUVAR_EXACT") == "1"
RECORDED: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
QUICK_SEEDS = 1
# Largest relative difference of each number between processors.
NUMBERS = {"mean": 1e-6, "sd": 1e-6, "lower": 1e-6, "score": 1e-3, "epsilon": 1e-6, "spent": 1e-6}


def cases() -> list[Any]:
    found = []
    for kind, runs in RECORDED.items():
        for seed in range(len(runs)):
            marks = [] if seed < QUICK_SEEDS else [pytest.mark.slow]
            found.append(pytest.param(kind, seed, marks=marks, id=f"{kind}-{seed}"))
    return found


def test_every_kind_is_recorded() -> None:
    assert list(RECORDED) == list(ALL_KINDS)


@pytest.mark.parametrize(("kind", "seed"), cases())
def test_a_run_is_as_recorded(kind: str, seed: int) -> None:
    found = play(kind, seed)
    expected = RECORDED[kind][seed]
    if EXACT:
        assert found == expected
        return
    study = ALL_KINDS[kind].study()
    if is_learned(study) or study.domain.continuous or study.goal.seeks_optimum:
        assert found["kinds"][:8] == expected["kinds"][:8]
        assert sum(found["classes"]) == sum(expected["classes"])
        return
    for name in ("kinds", "choices", "sets", "finished"):
        assert found[name] == expected[name], name
    assert np.abs(np.subtract(found["classes"], expected["classes"])).max() <= 1
    for name, tolerance in NUMBERS.items():
        assert np.asarray(found[name], float) == pytest.approx(
            np.asarray(expected[name], float), rel=tolerance
        ), name
