"""The comparison on problems of psychophysics: its formulas, and a run of a few trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.outcomes import __main__ as outcomes
from benchmarks.outcomes.problems import PROBLEMS


def test_the_problems_are_those_that_were_published() -> None:
    x = np.array([[0.0, -0.9], [1.0, 0.5], [-1.0, 1.0]])
    context = 0.1 + 0.8 * (0.2 * x[:, 0] - 1) ** 2 * x[:, 0] ** 2
    detection = PROBLEMS["detection"].latent(x)
    np.testing.assert_allclose(detection, 4 * (x[:, 1] + 1) / context - 4)
    np.testing.assert_allclose(PROBLEMS["discrimination"].latent(x), (detection + 4) / 2)
    assert PROBLEMS["discrimination"].probability(x).min() >= 0.5
    for problem in PROBLEMS.values():
        truth = problem.probability(problem.points)
        assert 0.05 < (truth >= problem.threshold).mean() < 0.95


def test_a_run_is_counted_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outcomes, "REPRESENTERS", 64)
    kept = tmp_path / "runs.jsonl"
    words = ["--problems", "detection", "--starts", "1", "--trials", "10", "--json", str(kept)]
    assert outcomes.main(words) == 0
    assert "| detection | truvar | 1" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(outcomes, "own_trace", None)
    assert outcomes.main(words) == 0
