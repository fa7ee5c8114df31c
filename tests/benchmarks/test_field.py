"""The comparison at equal cost: its problems and costs, its runs, its scores, and that it resumes."""

import numpy as np
import pytest
from benchmarks.field import score
from benchmarks.field.__main__ import main
from benchmarks.field.peers import ENTRIES, OURS, is_installed, make, suits
from benchmarks.field.problems import Price, Priced, cases
from benchmarks.field.runs import FIRST, N_CHECKPOINTS, Key, Run, read, run, start_of

import truvar as tv


@pytest.fixture(autouse=True)
def without_data(monkeypatch):
    monkeypatch.delenv("TRUVAR_DATA", raising=False)
    cases.cache_clear()
    start_of.cache_clear()
    yield
    cases.cache_clear()


def made_up(problem, peer, start, errors, kind="optimum", finished=None):
    errors = list(errors)
    return Run(Key(problem, peer, start), "", kind, 12.0, [0], errors, finished, errors[-1], 0.1)


def test_both_halves_have_both_goals_with_equal_and_with_unequal_costs():
    for half in ("tuning", "reported"):
        found = [
            (isinstance(case.start(0).instance.goal, tv.LevelSet), case.price.varies)
            for case in cases().values()
            if case.half == half
        ]
        assert all(
            found.count((is_level_set, varies)) >= 1
            for is_level_set in (True, False)
            for varies in (True, False)
        )


@pytest.mark.parametrize("name", ["zurich-set-survey", "terrain-walk", "svm-seconds", "bowl8"])
def test_a_study_is_charged_what_the_benchmark_charges(name):
    priced = start_of(name, 0)
    study = make(OURS, priced).study
    spent = 0.0
    last = None
    for number, row in enumerate(priced.instance.first(4), start=1):
        spent += float(priced.costs(last)[row])
        study.tell(priced.instance.domain.point(row), priced.instance.measure(row, number))
        last = row
    assert study.spent == pytest.approx(spent, rel=1e-9)


def test_travel_is_paid_from_the_last_measurement_and_magnitudes_everywhere():
    domain = tv.Domain.grid(x=[0.0, 1.0, 3.0], depth=[-2.0, 0.0])
    instance = start_of("bowl8", 0).instance
    instance = type(instance)(domain, np.arange(6.0), tv.Maximize(), instance.noise, (1, 0))
    priced = Priced(instance, Price(5.0, {"x": 10.0}, {"depth": 2.0}), 100.0)
    assert priced.costs(None).tolist() == [9.0, 5.0, 9.0, 5.0, 9.0, 5.0]
    assert priced.costs(0).tolist() == [9.0, 5.0, 19.0, 15.0, 39.0, 35.0]


def test_a_run_keeps_to_its_budget_and_scores_what_was_known_at_each_part_of_it():
    key = Key("wave-set", "random", 1)
    found = run(key)
    priced = start_of("wave-set", 1)
    assert found.rows[:FIRST] == priced.instance.first(FIRST)
    assert len(found.rows) == 60
    assert len(found.errors) == N_CHECKPOINTS
    again = make("random", priced)
    for number, row in enumerate(found.rows, start=1):
        again.tell(row, priced.instance.measure(row, number))
        if number == 25:  # five twelfths of the budget of 60
            assert found.errors[4] == pytest.approx(
                1 - priced.instance.f1(again.report()), abs=1e-6
            )
    assert found.final == found.errors[-1]


def test_runs_that_stop_early_keep_their_last_answer():
    class Stops:
        def tell(self, row, value):
            pass

        def ask(self, costs):
            raise tv.Finished("enough")

        def report(self):
            return 7

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.field.runs.make", lambda name, priced: Stops())
        found = run(Key("bowl8", "random", 0))
    assert found.finished == FIRST
    assert set(found.errors) == {found.final}


def test_ratios_are_taken_to_the_best_peer_over_common_starts():
    runs = [
        made_up("a", OURS, 0, [0.2, 0.0]),
        made_up("a", OURS, 1, [0.2, 0.0]),
        made_up("a", OURS, 2, [9.0, 9.0]),  # no peer has this start
        made_up("a", "random", 0, [0.4, 0.0]),
        made_up("a", "random", 1, [0.4, 0.0]),
        made_up("a", "sklearn", 0, [0.3, 0.5]),
        made_up("a", "sklearn", 1, [0.3, 0.5]),
    ]
    (found,) = score.compared(runs, OURS)
    assert (found.best, found.starts) == ("random", 2)
    assert found.ratio == pytest.approx((0.1 + score.FLOOR) / (0.2 + score.FLOOR))
    assert found.low == pytest.approx(found.high)  # both starts are alike
    assert "0.50" in score.comparison_table([found], OURS)
    assert "random" in score.summary_table(runs)


def test_costs_to_an_error_and_right_stops_are_reported():
    runs = [made_up("a", OURS, 0, [0.5, 0.05, 0.005], finished=3.0)]
    assert runs[0].cost_to(0.1) == 8.0
    assert runs[0].cost_to(0.001) == float("inf")
    assert "1 of 1" in score.detail_table(runs, "optimum")


def test_the_command_makes_resumes_and_names_what_is_missing(tmp_path, capsys):
    path = tmp_path / "field.jsonl"
    arguments = ["--problems", "wave-set", "--starts", "1", "--json", str(path)]
    assert main([*arguments, "--peers", "random"]) == 0
    first = path.read_text()
    assert main([*arguments, "--peers", "random,sklearn"]) == 0
    assert path.read_text().startswith(first)
    assert sorted(key.peer for key in read(path)) == ["random", "sklearn"]
    absent = next((name for name in ENTRIES if not is_installed(name)), None)
    if absent is not None:
        capsys.readouterr()
        assert main([*arguments, "--peers", f"random,{absent}"]) == 0
        assert f"{absent} is left out" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != OURS])
def test_every_peer_chooses_a_candidate_and_answers(name):
    if not is_installed(name):
        pytest.skip(f"{ENTRIES[name].package} is not installed")
    problem = "svm-seconds" if "optimum" in ENTRIES[name].goals else "wave-set"
    priced = start_of(problem, 0)
    assert suits(name, priced)
    peer = make(name, priced)
    for number, row in enumerate(priced.instance.first(6), start=1):
        peer.tell(row, priced.instance.measure(row, number))
    row = peer.ask(priced.costs(priced.instance.first(6)[-1]))
    assert 0 <= row < len(priced.instance.domain)
    answer = peer.report()
    if problem == "wave-set":
        assert answer.shape == (len(priced.instance.domain),)
    else:
        assert 0 <= int(answer) < len(priced.instance.domain)
