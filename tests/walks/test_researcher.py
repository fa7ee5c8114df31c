"""A researcher: a backtest, the theory's bounds, a policy of one's own, a figure of the paper.

Every number that is printed must be the same when the command is given again with its seed.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import Matern
from tests.helpers.terminal import in_terminal

import truvar as tv
from truvar._typing import Array
from truvar.acquisition import BasePolicy, PolicyContext
from truvar.acquisition.base import LEVEL_SET
from truvar.acquisition.utils import moments, threshold
from truvar.domain.candidates import Candidates
from truvar.exceptions import UnsupportedGoalError
from truvar.testing import check_policy

EXAMPLES = Path(__file__).parents[2] / "examples"
LAKE = str(EXAMPLES / "lake.toml")
BACKTEST = ("backtest", LAKE, "--truth", "chlorophyll", "--replicates", "1")
BUDGET = 400


def command(*words: str, piped: bool = False, expected: int = 0) -> str:
    """Run a command in a terminal and return its stdout (piped) or all that the terminal shows."""
    line = [sys.executable, "-m", "truvar", *words]
    code, printed, sent = in_terminal(line, columns=100, piped=piped, NO_COLOR="1")
    assert code == expected, sent
    assert "Traceback" not in sent
    return printed if piped else sent


def as_json(*words: str) -> Any:
    return json.loads(command(*words, "--json", "--quiet", piped=True))


def without_times(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary of a backtest without its folder and its durations."""
    results = [
        {name: value for name, value in each.items() if name != "seconds_per_suggestion"}
        for each in summary["policies"]
    ]
    return {**summary, "policies": results, "folder": None}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRUVAR_STORE", raising=False)
    return tmp_path


# -- the command line
# --------------------------------------------------------------------------------------------------


def test_a_backtest_has_the_same_numbers_with_the_same_seed(folder: Path) -> None:
    compared = ("--policies", "auto,truvar", "--budget", str(BUDGET))
    first = as_json(*BACKTEST, *compared, "--out", "first")
    second = as_json(*BACKTEST, *compared, "--out", "second", "--jobs", "2")
    assert [each["policy"] for each in first["policies"]] == ["auto", "truvar"]
    assert without_times(first) == without_times(second)
    other = as_json(*BACKTEST, *compared, "--out", "other", "--seed", "1")
    assert without_times(first) != without_times({**other, "seed": first["seed"]})
    for each in first["policies"]:
        assert [score["spent"] for score in each["scores"]] == [100, 200, 300, 400]
        assert all(0 <= score["mean"] <= 1 for score in each["scores"])
    files = {path.name for path in Path("first").iterdir()}
    assert {"curves.png", "curves.csv", "summary.csv", "summary.json"} <= files
    curves = pd.read_csv("first/curves.csv")
    assert set(curves["policy"]) == {"auto", "truvar"}
    assert curves["spent"].max() <= BUDGET


def test_a_policy_that_does_not_exist_is_named_in_one_line(folder: Path) -> None:
    said = command(*BACKTEST, "--policies", "auto,truvr", "--budget", "400", expected=1)
    line = " ".join(said.split())
    assert "unknown policy 'truvr'; did you mean 'truvar'?" in line
    assert not Path("lake-backtest").exists()


def test_bounds_name_the_theorem_and_its_conditions(folder: Path) -> None:
    simulated = ("bounds", LAKE, "--epsilon", "4", "--runs", "1", "--steps", "8")
    printed = command(*simulated, "--quiet")
    assert printed == command(*simulated, "--quiet")
    said = " ".join(printed.split())
    assert "required: epsilon 4 with probability 0.9" in said
    assert "Theorem 3.1" in said
    assert "the bound does not apply to this problem" in said
    assert "simulation: 0 of 1 functions" in said
    # Without travel the cost does not depend on the last position, and the bound applies.
    text = Path(LAKE).read_text().replace("travel =", "# travel =")
    Path("fixed.toml").write_text(text.replace('"lake.csv"', f'"{EXAMPLES / "lake.csv"}"'))
    # The first epoch reaches 4 (1 + slack) eta prior standard deviations, which is 9.3.
    theory = ("bounds", "fixed.toml", "--runs", "0")
    strict = as_json(*theory, "--epsilon", "4")
    loose = as_json(*theory, "--epsilon", "10")
    assert (strict["outside"], loose["outside"]) == ([], [])
    assert (len(strict["theorem"]["epochs"]), len(loose["theorem"]["epochs"])) == (2, 1)
    assert 0 < loose["theorem"]["cost"] < strict["theorem"]["cost"]


def test_a_figure_of_the_paper_is_made_and_is_the_same_again(folder: Path) -> None:
    listed = command("reproduce", "--help")
    assert re.search(r"fig1, fig2a, fig2b, fig2c,\s+fig3a", listed)
    first = as_json("reproduce", "fig1", "--out", "first")
    second = as_json("reproduce", "fig1", "--out", "second")
    for name in ("fig1.json", "fig1.csv", "fig1.png"):
        assert (Path("first") / name).stat().st_size > 100
    assert Path("first/fig1.csv").read_bytes() == Path("second/fig1.csv").read_bytes()
    assert {**first, "files": None} == {**second, "files": None}
    unknown = command("reproduce", "fig9", expected=2)
    assert "fig2b" in unknown


# -- in Python
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NearThreshold(BasePolicy):
    """Standard deviation, weighted by the closeness of the mean to the threshold."""

    level: int | None = None
    per_cost: bool = False
    supported_goals = LEVEL_SET

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        mean, sd = moments(context, candidates)
        closeness = sd / (np.abs(mean - threshold(context)) + sd + 1e-12)
        return self.score_table(context, candidates, closeness * sd)


class Upside(NearThreshold):
    """A mistake: the mean may be negative, so that scores are."""

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        mean, sd = moments(context, candidates)
        return self.score_table(context, candidates, mean - 3 * sd)


AXIS = np.linspace(0, 1, 15)


def truth(point: dict[str, float]) -> float:
    return float(np.sin(6 * point["x"]) * np.cos(5 * point["y"]))


def study(policy: Any, seed: int = 0) -> tv.Study:
    return tv.Study(
        tv.Domain.grid(x=AXIS, y=AXIS),
        tv.LevelSet(0.3),
        kernel=Matern(0.3, nu=2.5),
        mean=0.0,
        noise=1e-4,
        policy=policy,
        seed=seed,
    )


def f1(policy: Any, steps: int = 25) -> float:
    run = study(policy)
    result = run.run(truth, steps=steps)
    values = np.array([truth(dict(zip("xy", row, strict=True))) for row in run.domain.points])
    return float(result.f1(values))


def test_truvar_beats_a_baseline_that_is_given_by_name() -> None:
    ours = f1(tv.TruVaR())
    assert ours > f1("random") + 0.02
    assert ours > 0.9
    assert ours == f1("truvar")


def test_a_policy_of_one_s_own_satisfies_the_contract_and_runs() -> None:
    check_policy(NearThreshold())
    assert f1(NearThreshold()) > f1("random")
    with pytest.raises(AssertionError, match="is not negative"):
        check_policy(Upside())
    with pytest.raises(UnsupportedGoalError, match="NearThreshold is for"):
        tv.Study(tv.Domain.grid(x=AXIS), tv.Maximize(), policy=NearThreshold())


def test_a_study_is_replicated_by_its_seed() -> None:
    first, second, other = (study("random", seed=seed) for seed in (3, 3, 4))
    for each in (first, second, other):
        each.run(truth, steps=12)
    pd.testing.assert_frame_equal(first.measurements, second.measurements)
    np.testing.assert_array_equal(first.result().mean, second.result().mean)
    assert not first.measurements["x"].equals(other.measurements["x"])
