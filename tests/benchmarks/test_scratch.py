"""The comparison from scratch: its split, its starts and errors, its scores, and that it runs
and resumes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.instances import OUTLIER_NUMBER, Noise
from benchmarks.scratch.__main__ import main
from benchmarks.scratch.methods import NAMES, make, missing, suits
from benchmarks.scratch.problems import cases
from benchmarks.scratch.runs import FIRST, Run, RunFile, checkpoints, run
from benchmarks.scratch.score import FLOOR, compared, finished_wrongly, is_disaster
from scipy.stats import norm

import truvar as tv

STEPS = 8
PROBLEMS = ("ackley2", "bumps-set")
METHODS = ("truvar", "sklearn", "random")


@pytest.fixture(autouse=True)
def without_data(monkeypatch):
    monkeypatch.delenv("TRUVAR_DATA", raising=False)


@pytest.fixture(scope="module")
def runs():
    return {
        (problem, method): run(problem, method, 0, STEPS)
        for problem in PROBLEMS
        for method in METHODS
    }


def case_named(name):
    return next(case for case in cases() if case.name == name)


def made_up(problem, method, start, scores, kind="optimum", finished=None):
    points = list(range(5, 5 + 5 * len(scores), 5))
    return Run(
        *(problem, method, start, 60, "", kind, [0], points, scores, [], finished, scores[-1], 1.0),
    )


def test_every_problem_is_in_one_half_and_both_halves_have_both_kinds():
    found = cases()
    assert len({case.name for case in found}) == len(found)
    for half in ("tuning", "held-out"):
        kinds = [case.kind for case in found if case.half == half]
        assert min(kinds.count("optimum"), kinds.count("level set")) >= 6


@pytest.mark.parametrize("name", PROBLEMS)
def test_kept_runs_are_valid_for_a_problem_and_not_for_the_options_of_a_goal(name):
    instance = case_named(name).instance(0)
    with_options = replace(
        instance, goal=replace(instance.goal, monotone=not instance.goal.monotone)
    )
    assert with_options.fingerprint == instance.fingerprint
    assert replace(instance, goal=tv.LevelSet(0.25)).fingerprint != instance.fingerprint
    assert replace(instance, truth=instance.truth**2).fingerprint != instance.fingerprint
    assert replace(instance, noise=Noise(1.0)).fingerprint != instance.fingerprint


def test_every_problem_is_affordable_the_same_again_and_not_trivial():
    pytest.importorskip("matplotlib")  # the terrain comes with it
    for case in cases():
        first = case.instance(1)
        again = case.instance(1)
        assert first.fingerprint == again.fingerprint, case.name
        assert np.array_equal(first.truth, again.truth)
        assert 300 <= len(first.domain) <= 2000
        assert first.truth.shape == (len(first.domain),)
        if case.kind == "level set":
            share = (first.truth >= first.goal.threshold).mean()
            assert 0.01 < share < 0.7, case.name
            assert first.f1(first.truth >= first.goal.threshold) == 1.0
            assert first.f1(first.truth < first.goal.threshold) == 0.0
        else:
            regrets = [first.regret(row) for row in range(len(first.domain))]
            assert min(regrets) == 0.0
            assert max(regrets) == pytest.approx(1.0)


def test_errors_depend_on_problem_start_and_number_only():
    case = case_named("tails")
    instance = case.instance(0)
    errors = [instance.measure(row, 4) - instance.truth[row] for row in (0, 17)]
    assert errors[0] == pytest.approx(errors[1])
    assert instance.measure(0, 5) != instance.measure(0, 4)
    assert case.instance(1).noise.draw(case.instance(1).seed, 0, 4) != pytest.approx(errors[0])


def test_one_measurement_is_off_by_a_hundred_standard_deviations():
    instance = case_named("outlier").instance(0)
    errors = [
        (instance.measure(3, n) - instance.truth[3]) / instance.noise.sd for n in range(1, 61)
    ]
    assert errors[OUTLIER_NUMBER - 1] == pytest.approx(100.0)
    assert max(np.abs(np.delete(errors, OUTLIER_NUMBER - 1))) < 6


def test_a_run_scores_every_fifth_measurement_and_the_last():
    assert checkpoints(8) == [5, 8]
    assert checkpoints(60) == list(range(5, 61, 5))


def test_all_methods_begin_with_the_same_candidates_and_scores_are_shares(runs):
    for problem in PROBLEMS:
        firsts = {tuple(runs[problem, method].rows[:FIRST]) for method in METHODS}
        assert len(firsts) == 1
        assert len(set(firsts.pop())) == FIRST
    for found in runs.values():
        assert found.checkpoints == [5, 8]
        assert len(found.scores) == 2
        assert all(0.0 <= score <= 1.0 for score in [*found.scores, *found.measured, found.area])
        assert (
            len(found.rows) == STEPS
            if found.finished is None
            else len(found.rows) == found.finished
        )
        assert found.measured == sorted(found.measured, reverse=True)
        assert len(found.measured) == (2 if found.kind == "optimum" else 0)


def test_peers_measure_no_candidate_twice_and_random_recommends_what_it_measured(runs):
    for (_, method), found in runs.items():
        if method != "truvar":
            assert len(set(found.rows)) == len(found.rows)
    instance = case_named("ackley2").instance(0)
    found = runs["ackley2", "random"]
    observed = [instance.measure(row, number) for number, row in enumerate(found.rows, 1)]
    assert found.scores[-1] == pytest.approx(
        instance.regret(found.rows[int(np.argmin(observed))]), abs=1e-5
    )


def test_a_run_is_repeatable(runs):
    for method in ("sklearn", "random"):
        again = run("bumps-set", method, 0, STEPS)
        assert again.rows == runs["bumps-set", method].rows


def test_ours_is_the_default_study():
    method = make("truvar", case_named("ackley2").instance(0))
    default = tv.Study(tv.Domain.grid(x=[0, 1]), tv.Minimize())
    assert type(method.study.policy) is type(default.policy)
    assert method.study.goal == default.goal


def test_samplers_without_a_table_run_on_grids_only():
    assert suits("optuna-tpe", "optimum", grid=True)
    assert not suits("optuna-tpe", "optimum", grid=False)
    assert not suits("optuna-tpe", "level set", grid=True)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in METHODS])
def test_every_installed_peer_runs(name):
    if missing(name) is not None:
        pytest.skip(f"{missing(name)} is not installed")
    found = run("ackley2", name, 0, 5)
    assert found.rows[:FIRST] == case_named("ackley2").instance(0).first(FIRST)
    assert len(found.rows) == 5
    assert 0.0 <= found.area <= 1.0


def test_botorch_ranks_by_the_improvement_that_its_posterior_expects():
    pytest.importorskip("botorch")
    instance = case_named("branin").instance(0)
    peer = make("botorch", instance)
    for number, row in enumerate(instance.first(12), 1):
        peer.tell(row, instance.measure(row, number))
    mean, sd = peer.posterior
    z = (mean - max(peer.values)) / sd
    expected = sd * (z * norm.cdf(z) + norm.pdf(z))
    likely = expected > 1e-6 * expected.max()
    assert np.exp(peer.scores()[likely]) == pytest.approx(expected[likely], rel=1e-3)
    assert peer.ask() not in peer.rows


def test_the_peers_straddle_the_threshold():
    instance = case_named("bumps-set").instance(0)
    peer = make("sklearn", instance)
    for number, row in enumerate(instance.first(12), 1):
        peer.tell(row, instance.measure(row, number))
    mean, sd = peer.posterior
    assert (sd >= 0).all()
    scores = 1.96 * sd - np.abs(mean - instance.goal.threshold)
    left = np.setdiff1d(np.arange(len(mean)), peer.rows)
    assert peer.ask() == left[np.argmax(scores[left])]
    assert np.array_equal(peer.report(), mean >= instance.goal.threshold)


def test_a_finished_study_keeps_its_answer(monkeypatch):
    class Impatient:
        def tell(self, row, value):
            self.row = row

        def ask(self):
            raise tv.Finished("nothing is left to measure")

        def report(self):
            return self.row

    monkeypatch.setattr("benchmarks.scratch.runs.make", lambda name, instance: Impatient())
    found = run("ackley2", "truvar", 0, STEPS)
    instance = case_named("ackley2").instance(0)
    assert found.finished == FIRST
    assert found.rows == instance.first(FIRST)
    assert found.scores == [found.final] * 2
    assert found.final == pytest.approx(instance.regret(found.rows[-1]), abs=1e-5)


def test_a_method_is_compared_with_the_best_other_over_common_starts():
    runs = [
        made_up("a", "truvar", 0, [0.2, 0.0]),
        made_up("a", "truvar", 1, [0.9, 0.9]),  # nobody else has this start
        made_up("a", "sklearn", 0, [0.4, 0.2]),
        made_up("a", "random", 0, [0.9, 0.7]),
        made_up("b", "truvar", 0, [0.5, 0.9], "level set"),
        made_up("b", "random", 0, [0.7, 0.9], "level set"),
        made_up("c", "truvar", 0, [0.0, 0.0]),
    ]
    first, second = compared(runs, "truvar")
    assert (first.best, first.starts) == ("sklearn", 1)
    assert first.ratio == pytest.approx((0.1 + FLOOR) / (0.3 + FLOOR))
    assert second.ratio == pytest.approx((0.3 + FLOOR) / (0.2 + FLOOR))


def test_disasters_and_wrong_ends_are_told_apart():
    assert is_disaster(made_up("b", "truvar", 0, [0.9, 0.4], "level set"))
    assert not is_disaster(made_up("a", "truvar", 0, [0.9, 0.4]))
    assert finished_wrongly(made_up("b", "truvar", 0, [0.89], "level set", finished=4))
    assert not finished_wrongly(made_up("b", "truvar", 0, [0.89], "level set"))
    assert finished_wrongly(made_up("a", "truvar", 0, [0.02], finished=4))
    assert not finished_wrongly(made_up("a", "truvar", 0, [0.005], finished=4))


def test_the_command_keeps_runs_and_makes_them_again_on_demand(tmp_path, capsys):
    file = tmp_path / "runs.jsonl"
    options = [
        "--problems",
        ",".join(PROBLEMS),
        "--starts",
        "1",
        "--steps",
        str(STEPS),
        "--json",
        str(file),
    ]
    assert main([*options, "--methods", "random,truvar", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    assert "4 runs made" in out
    assert "| ackley2 | truvar" in out
    assert "truvar over the best other method" in out
    with file.open("a") as lines:
        lines.write('{"problem": "ackley2", "meth')  # a run that was interrupted while it wrote
    assert main([*options, "--methods", "random,truvar"]) == 0
    assert "0 runs made" in capsys.readouterr().out
    assert main([*options, "--methods", "random", "--again", "random"]) == 0
    assert "2 runs made" in capsys.readouterr().out
    lines = file.read_text().splitlines()
    kept = [json.loads(line) for line in (*lines[:4], *lines[5:])]
    assert [found["method"] for found in kept].count("random") == 4
    assert len(RunFile(file, STEPS).runs) == 4
    assert RunFile(file, STEPS + 1).runs == {}


def test_an_unknown_problem_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["--problems", "brainin"])
    assert "there is no problem 'brainin'; there are branin, camel" in capsys.readouterr().err
