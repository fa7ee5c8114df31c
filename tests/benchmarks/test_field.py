"""The comparison at equal cost: its problems and costs, its runs, its scores, and that it resumes."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.field import score
from benchmarks.field.__main__ import main
from benchmarks.field.peers import ENTRIES, OURS, is_installed, make, suits
from benchmarks.field.peers.others import Random
from benchmarks.field.problems import Price, Priced, cases
from benchmarks.field.runs import FIRST, N_CHECKPOINTS, Key, Run, read, run, start_of, write

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


@pytest.mark.parametrize(
    "name",
    [
        *("zurich-set-survey", "terrain-walk", "svm-seconds", "bowl8", "mixed-hours"),
        *("levels-set", "known-levels-rare", "known-lake-smooth-survey", "known-bo-other"),
    ],
)
def test_a_study_is_charged_what_the_benchmark_charges(name):
    priced = start_of(name, 0)
    peer = make(OURS, priced)
    n_rows = len(priced.instance.domain)
    spent = 0.0
    last = None
    for number, row in enumerate(priced.instance.first(4), start=1):
        level = 0 if priced.levels is None else number % len(priced.levels.cost)
        action = row + level * n_rows
        spent += float(priced.costs(last)[action])
        peer.tell(action, priced.measure(action, number))
        last = action
    assert peer.study.spent == pytest.approx(spent, rel=1e-9)
    action = peer.ask(priced.costs(last))
    assert peer.suggestion.cost == pytest.approx(float(priced.costs(last)[action]), rel=1e-9)


def test_travel_is_paid_from_the_last_measurement_and_magnitudes_everywhere():
    domain = tv.Domain.grid(x=[0.0, 1.0, 3.0], depth=[-2.0, 0.0])
    instance = start_of("bowl8", 0).instance
    instance = type(instance)(domain, np.arange(6.0), tv.Maximize(), instance.noise, (1, 0))
    priced = Priced(instance, Price(5.0, {"x": 10.0}, {"depth": 2.0}), 100.0)
    assert priced.costs(None).tolist() == [9.0, 5.0, 9.0, 5.0, 9.0, 5.0]
    assert priced.costs(0).tolist() == [9.0, 5.0, 19.0, 15.0, 39.0, 35.0]


def test_rates_that_name_no_column_are_refused():
    priced = start_of("terrain-walk", 0)
    with pytest.raises(ValueError, match="must name columns"):
        replace(priced, price=Price(1.0, {"depth_m": 2.0})).costs(0)


@pytest.mark.parametrize("name", ["terrain-set-walk", "terrain-east-set-walk"])
def test_both_directions_of_a_walk_are_paid(name):
    priced = start_of(name, 0)
    domain = priced.instance.domain
    far = np.abs(domain.points - domain.points[0]).sum(axis=1)
    assert np.allclose(priced.costs(0), 10.0 + 0.5 * far)
    assert make(OURS, priced).study.spent == 0


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

        def is_sure(self):
            return False

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
    runs.append(made_up("b", OURS, 0, [0.5, 0.5, 0.5], finished=9.0))
    runs.append(made_up("b", "random", 0, [0.5, 0.5, 0.5]))
    (stops,) = score.stop_table(runs).splitlines()[2:]
    assert [cell.strip() for cell in stops.strip("|").split("|")] == [
        *(OURS, "by itself", "2", "2", "1 of 2", "50%")
    ]
    runs.append(replace(made_up("c", OURS, 0, [0.5, 0.02, 0.0]), claimed=8.0, claimed_error=0.02))
    _, stops = score.stop_table(runs).splitlines()[2:]
    assert [cell.strip() for cell in stops.strip("|").split("|")] == [
        *(OURS, "by its own estimate", "3", "1", "0 of 1", "67%")
    ]


def test_the_first_statement_that_the_answer_is_right_is_kept_with_its_error():
    class Sure(Random):
        def is_sure(self):
            return len(self.rows) >= 12

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.field.runs.make", lambda name, priced: Sure(priced))
        found = run(Key("wave-set", "random", 0))
    assert found.claimed == 15.0  # the third of twelve checkpoints of a budget of 60
    assert found.claimed_error == found.errors[2]


def test_the_default_study_states_when_it_may_stop():
    peer = make(OURS, start_of("wave-set", 0))
    instance = start_of("wave-set", 0).instance
    for number, row in enumerate(range(0, 300, 60), start=1):
        peer.tell(row, instance.measure(row, number))
    assert not peer.is_sure()
    for number, row in enumerate(range(3, 300, 6), start=6):
        peer.tell(row, instance.measure(row, number))
    assert peer.is_sure()


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


@pytest.mark.parametrize("name", [name for name in ENTRIES if ENTRIES[name].level is None])
def test_every_peer_answers_after_one_measurement(name):
    """The first part of a budget may pay for no more than that."""
    if not is_installed(name):
        pytest.skip(f"{ENTRIES[name].package} is not installed")
    priced = start_of(problem_for(ENTRIES[name]), 0)
    peer = make(name, priced)
    row = priced.instance.first(1)[0]
    peer.tell(row, priced.measure(row, 1))
    answer = peer.report()
    if isinstance(priced.instance.goal, tv.LevelSet):
        assert answer.shape == (len(priced.instance.domain),)
    else:
        assert 0 <= int(answer) < len(priced.instance.domain)


def problem_for(entry):
    if entry.surveys_only:
        return "known-lake-smooth-survey"
    if entry.level is not None:
        return "levels-set"
    return "svm-seconds" if "optimum" in entry.goals else "wave-set"


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != OURS])
def test_every_peer_chooses_a_candidate_and_answers(name):
    if not is_installed(name):
        pytest.skip(f"{ENTRIES[name].package} is not installed")
    problem = problem_for(ENTRIES[name])
    priced = start_of(problem, 0)
    assert suits(name, priced)
    peer = make(name, priced)
    for number, row in enumerate(priced.instance.first(6), start=1):
        peer.tell(row, priced.measure(row, number))
    costs = priced.costs(priced.instance.first(6)[-1])
    assert 0 <= peer.ask(costs) < len(costs)
    answer = peer.report()
    if isinstance(priced.instance.goal, tv.LevelSet):
        assert answer.shape == (len(priced.instance.domain),)
    else:
        assert 0 <= int(answer) < len(priced.instance.domain)


def told(name, problem, count=12):
    priced = start_of(problem, 0)
    peer = make(name, priced)
    for number, row in enumerate(priced.instance.first(count), start=1):
        peer.tell(row, priced.measure(row, number))
    return peer, priced


def test_at_least_six_problems_of_each_half_have_a_known_kernel():
    for half in ("tuning", "reported"):
        found = [case for case in cases().values() if case.known and case.half == half]
        assert len(found) >= 6
        assert any(case.price.travel for case in found)
        assert any(case.levels for case in found)
        assert not all(isinstance(case.start(0).instance.goal, tv.LevelSet) for case in found)


@pytest.mark.parametrize("problem", ["known-lake-smooth-survey", "known-lake-patchy-survey"])
@pytest.mark.parametrize("name", ["botorch", "gpcam", "random", "sklearn"])
def test_a_given_model_is_the_same_for_a_peer_as_for_the_study(problem, name):
    if not is_installed(name):
        pytest.skip(f"{ENTRIES[name].package} is not installed")
    peer, _ = told(name, problem)
    ours, _ = told(OURS, problem)
    mean, sd = peer.posterior
    expected_mean, expected_sd = ours.study.predict(ours.study.domain.points)
    assert np.allclose(mean, expected_mean, atol=1e-4)
    assert np.allclose(sd, expected_sd, atol=1e-3)


@pytest.mark.parametrize("name", ["gpmp", "optuna-gp", "smac", "trieste-efi"])
def test_peers_that_take_no_model_have_no_problems_with_one(name):
    for problem in ("known-lake-smooth-survey", "known-bo-other"):
        assert not suits(name, start_of(problem, 0))


def test_surveys_planned_beforehand_are_compared_with_travel_and_a_given_model_only():
    assert suits("sgptools", start_of("known-lake-smooth-survey", 0))
    assert not suits("sgptools", start_of("known-lake-smooth", 0))
    assert not suits("sgptools", start_of("zurich-set-survey", 0))


def test_noise_levels_have_their_noise_and_cost_and_a_peer_keeps_to_one():
    priced = start_of("levels-set", 0)
    n_rows = len(priced.instance.domain)
    assert len(priced.costs(None)) == 3 * n_rows
    assert set(priced.costs(None)[:n_rows]) == {15.0}
    assert set(priced.costs(None)[2 * n_rows :]) == {2.0}
    for level, sd in ((0, 1e-3), (2, 0.05**0.5)):
        errors = [
            priced.measure(5 + level * n_rows, number) - priced.instance.truth[5]
            for number in range(1, 400)
        ]
        assert np.std(errors) == pytest.approx(sd, rel=0.15)  # 4 standard errors
    assert not suits("sklearn", priced)
    peer, _ = told("sklearn@2", "levels-set", 4)
    assert peer.ask(priced.costs(0)) >= 2 * n_rows
    assert peer.report().shape == (n_rows,)
    assert not suits("sklearn@2", start_of("wave-set", 0))


def test_a_study_chooses_a_noise_level_and_the_run_charges_for_it():
    priced = start_of("known-levels", 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "benchmarks.field.runs.start_of", lambda problem, number: replace(priced, budget=60.0)
        )
        found = run(Key("known-levels", OURS, 0))
    n_rows = len(priced.instance.domain)
    assert {row // n_rows for row in found.rows[FIRST:]} <= {0, 1, 2}
    spent = sum(priced.costs(None)[row] for row in found.rows)
    assert 45.0 < spent <= 60.0


def test_categories_are_columns_of_zeros_and_ones_for_peers():
    peer, priced = told("sklearn", "mixed", 4)
    assert priced.instance.domain.categorical
    assert peer.points.shape == (len(priced.instance.domain), 4 + 3 + 3 + 2 - 1)
    assert set(np.unique(peer.points[:, 3:])) == {0.0, 1.0}
    assert peer.points.min() == 0.0
    assert peer.points.max() == 1.0


def test_peers_far_behind_leave_the_race_and_no_longer_limit_the_starts():
    runs = [
        *(made_up("a", OURS, s, [0.1]) for s in range(3)),
        *(made_up("a", "sklearn", s, [0.2]) for s in range(3)),
        made_up("a", "random", 0, [0.5]),  # more than twice the best peer
        *(made_up("a", "botorch", s, [0.3 + 0.02 * s]) for s in range(2)),  # 1.55 after two
    ]
    assert score.eliminated(runs[:3], "a") == set()
    assert score.eliminated(runs, "a") == {"random", "botorch"}
    (found,) = score.compared(runs, OURS)
    assert (found.best, found.starts) == ("sklearn", 3)
    # Without the race, the peer with one start would leave one start to compare.
    unfinished = [each for each in runs if each.key.peer != "random"]
    unfinished += [made_up("a", "smac", 0, [0.21])]
    (found,) = score.compared(unfinished, OURS)
    assert found.starts == 1


def test_a_race_skips_what_is_out_of_it(tmp_path, capsys):
    path = tmp_path / "field.jsonl"
    arguments = ["--problems", "wave-set", "--json", str(path), "--peers", "random,sklearn"]
    assert main([*arguments, "--starts", "1"]) == 0
    kept = read(path)
    slow = kept[Key("wave-set", "random", 0)]
    write(path, replace(slow, errors=[1.0] * N_CHECKPOINTS))
    assert main([*arguments, "--starts", "2", "--race"]) == 0
    assert sorted((key.peer, key.start) for key in read(path)) == [
        ("random", 0),
        ("sklearn", 0),
        ("sklearn", 1),
    ]


def test_costs_to_a_target_count_misses_as_the_budget_and_leave_out_what_nobody_solves():
    runs = [
        made_up("a", OURS, 0, [0.5, 0.05, 0.005]),
        made_up("a", "random", 0, [0.5, 0.5, 0.5]),
        made_up("b", OURS, 0, [0.5, 0.5, 0.5]),
        made_up("b", "random", 0, [0.5, 0.5, 0.5]),
    ]
    (found,) = score.spending(runs, OURS, 0)
    assert (found.problem, found.area, found.best_area) == ("a", 8.0, 12.0)
    assert found.ratio == pytest.approx(8 / 12)
    assert "regret 0.1" in score.spending_table(runs, OURS)


def test_the_geometric_mean_has_an_interval_over_problems_and_starts():
    runs = [
        *(made_up("a", OURS, s, [0.1 + 0.02 * s]) for s in range(4)),
        *(made_up("a", "random", s, [0.2]) for s in range(4)),
        *(made_up("b", OURS, s, [0.4]) for s in range(4)),
        *(made_up("b", "random", s, [0.2]) for s in range(4)),
    ]
    found = score.overall(score.compared(runs, OURS))
    assert found.low < found.mean < found.high
    assert (found.problems, found.level, found.worst.problem) == (2, 1, "b")
    assert found.worst.ratio == pytest.approx(0.401 / 0.201)
    assert "ahead or level on 1 of 2" in str(found)


def test_a_figure_is_drawn_from_kept_runs(tmp_path, capsys):
    path = tmp_path / "field.jsonl"
    problems = ["--problems", "wave-set", "--starts", "1", "--json", str(path)]
    assert main([*problems, "--peers", "random,sklearn"]) == 0
    target = tmp_path / "images" / "field.png"
    with pytest.raises(SystemExit):
        main([*problems, "--kept", "--figure", str(target)])
    assert "there are none" in capsys.readouterr().err
    key = Key("wave-set", "random", 0)
    write(path, replace(read(path)[key], key=Key("wave-set", OURS, 0)))
    for about in ("area", "cost"):
        before = path.read_text()
        assert main([*problems, "--kept", "--figure", str(target), "--about", about]) == 0
        assert target.read_bytes().startswith(b"\x89PNG")
        assert path.read_text() == before


def test_kept_runs_need_their_file(capsys):
    with pytest.raises(SystemExit):
        main(["--kept"])
    assert "--kept needs --json" in capsys.readouterr().err
