"""The suite of decision quality: its split, its scores, and that it runs."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.decision.__main__ import main
from benchmarks.decision.policies import baselines
from benchmarks.decision.problems import cases
from benchmarks.decision.runs import Outcome, run
from benchmarks.decision.score import bootstrapped, ratio

import truvar as tv


def test_every_problem_is_in_one_half_and_both_halves_have_every_kind(monkeypatch):
    monkeypatch.delenv("TRUVAR_DATA", raising=False)
    halves = {
        half: [case for case in cases() if case.half == half] for half in ("tuning", "held-out")
    }
    names = [case.name for half in halves.values() for case in half]
    assert len(set(names)) == len(names)
    for half in halves.values():
        assert {(case.level_set, case.levels, case.costly) for case in half} >= {
            (True, False, False),
            (True, False, True),
            (True, True, True),
            (False, False, False),
        }
        assert sum(case.name.startswith("lake") for case in half) == 8


def test_problems_are_the_same_whenever_they_are_made(monkeypatch):
    monkeypatch.delenv("TRUVAR_DATA", raising=False)
    pytest.importorskip("matplotlib")  # the terrain comes with it
    for case in cases():
        first = case.make(8)
        again = case.make(8)
        for one, other in zip(first, again, strict=True):
            assert one.domain.frame.equals(other.domain.frame), case.name


def test_every_baseline_supports_the_goal_of_its_problem(monkeypatch):
    monkeypatch.delenv("TRUVAR_DATA", raising=False)
    pytest.importorskip("matplotlib")
    for case in cases():
        problem = case.make(8)[0]
        for name, policy in baselines(case).items():
            study = problem.study(policy=policy)
            assert (
                policy.candidate_rows(study.policy_context(), study.candidates()) is None
                or name == "random"
            )


def outcome(costs, budget=100.0):
    table = pd.DataFrame(costs)
    return Outcome("made up", budget, {0.9: table}, pd.Series(0.001, index=table.columns))


def test_a_rule_is_compared_with_the_best_other_and_a_miss_counts_as_the_budget():
    found = outcome({"a": [10.0, 30.0], "b": [20.0, 60.0], "c": [10.0, np.inf]})
    assert ratio(found, 0.9, "a", ["a", "b", "c"]) == pytest.approx(20 / 40)
    assert ratio(found, 0.9, "b", ["a", "c"]) == pytest.approx(40 / 20)
    assert ratio(found, 0.9, "c", ["b"]) == pytest.approx(55 / 40)
    assert found.missed(0.9).to_dict() == {"a": 0.0, "b": 0.0, "c": 0.5}


def test_the_mean_over_problems_is_geometric_and_its_interval_surrounds_it():
    rng = np.random.default_rng(0)
    made = [
        outcome({"a": f * rng.uniform(8, 12, 20), "b": rng.uniform(8, 12, 20)}) for f in (0.5, 2.0)
    ]
    found = bootstrapped(made, "a", [["b"], ["b"]])
    singles = [ratio(one, 0.9, "a", ["b"]) for one in made]
    assert found.value == pytest.approx(np.sqrt(singles[0] * singles[1]))
    assert found.low < found.value < found.high
    assert found.high - found.low < 0.3


def test_all_rules_share_the_starts_and_runs_end_at_the_last_target():
    case = next(case for case in cases() if case.name == "lake-long")
    found = run(case, {"one": tv.SUR(), "two": tv.SUR()}, starts=3, side=8)
    for target, table in found.costs.items():
        assert table["one"].equals(table["two"]), target
    assert (found.costs[0.9] <= found.costs[0.95]).all().all()


def test_the_command_runs(tmp_path, capsys):
    target = tmp_path / "decision.json"
    assert (
        main(
            [
                "--quick",
                "--only",
                "lake-long",
                "--policies",
                "gchk,straddle,ei,plus",
                "--json",
                str(target),
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "gchk" in printed
    assert "plus over the best baseline: 0.9: " in printed
    assert "ei " not in printed  # it is not for level sets
    assert json.loads(target.read_text())["problems"]["lake-long"]["budget"] == 150
