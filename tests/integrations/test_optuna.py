"""`TruVaRSampler` passes the tests that Optuna publishes for samplers, and uses noise, cost and
running trials."""

import importlib
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import truvar as tv
from truvar.exceptions import InvalidArgumentError, MissingDependencyError

optuna = pytest.importorskip("optuna")
suites = pytest.importorskip("optuna.testing.pytest_samplers")

from truvar.integrations._optuna_space import SearchSpace, labels  # noqa: E402
from truvar.integrations.optuna import TruVaRSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


class TestOptunasOwnSuite(
    suites.BasicSamplerTestCase, suites.RelativeSamplerTestCase, suites.SingleOnlySamplerTestCase
):
    @pytest.fixture
    def sampler(self):
        return lambda: TruVaRSampler(seed=0, points=64)


def study_of(direction="minimize", **options) -> "optuna.Study":
    sampler = TruVaRSampler(**{"seed": 0, "points": 128, **options})
    return optuna.create_study(direction=direction, sampler=sampler)


def bowl(trial) -> float:
    return (trial.suggest_float("x", -5, 5) - 1) ** 2 + (trial.suggest_float("y", -5, 5) + 2) ** 2


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_it_finds_an_optimum_in_either_direction_sooner_than_random_search(direction):
    sign = 1 if direction == "minimize" else -1
    study = study_of(direction)
    study.optimize(lambda trial: sign * bowl(trial), n_trials=25)
    random = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    random.optimize(lambda trial: sign * bowl(trial), n_trials=25)
    assert sign * study.best_value < 0.2
    assert sign * study.best_value < sign * random.best_value


def test_categorical_logarithmic_integer_and_stepped_parameters_are_searched():
    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        rate = trial.suggest_float("rate", 1e-6, 1.0, log=True)
        depth = trial.suggest_int("depth", 1, 9)
        share = trial.suggest_float("share", 0.0, 1.0, step=0.25)
        return (
            (kind != "b")
            + (np.log10(rate) + 4) ** 2 / 4
            + (depth - 3) ** 2 / 20
            + (share - 0.5) ** 2
        )

    study = study_of()
    study.optimize(objective, n_trials=40)
    best = study.best_params
    assert best["kind"] == "b"
    assert 1e-5 < best["rate"] < 1e-3
    assert abs(best["depth"] - 3) <= 2
    assert {type(trial.params["depth"]) for trial in study.trials} == {int}
    assert {trial.params["share"] * 4 % 1 for trial in study.trials} == {0.0}
    later = [trial.params["kind"] for trial in study.trials[20:]]
    assert later.count("b") > len(later) / 2


def test_running_trials_are_not_suggested_again():
    study = study_of()
    study.optimize(bowl, n_trials=6)
    batch = [study.ask() for _ in range(5)]
    points = np.array(
        [[trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)] for trial in batch]
    )
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(5, 1)]
    assert gaps.min() > 0.05


def test_threads_and_studies_in_a_database_share_trials(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(
        storage=storage, study_name="s", sampler=TruVaRSampler(seed=0, points=64)
    )
    study.optimize(bowl, n_trials=6, n_jobs=2)

    def other(seed: int) -> int:
        again = optuna.load_study(
            study_name="s", storage=storage, sampler=TruVaRSampler(seed=seed, points=64)
        )
        again.optimize(bowl, n_trials=2)
        return len(again.trials)

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(other, [1, 2])) == 10
    assert len({(t.params["x"], t.params["y"]) for t in study.trials}) == 10


def test_trials_of_a_region_that_fails_become_rare():
    def objective(trial):
        value = bowl(trial)
        if trial.params["x"] < 0:
            raise RuntimeError("broken")
        return value

    study = study_of()
    study.optimize(objective, n_trials=24, catch=(RuntimeError,))
    failed = [trial.state == optuna.trial.TrialState.FAIL for trial in study.trials]
    assert sum(failed) < 10
    assert study.best_value < 0.5


def test_pruned_trials_count_with_their_last_value_but_as_no_better_than_the_median():
    study = study_of()
    distribution = {"x": optuna.distributions.FloatDistribution(0, 1)}
    for x, y in [(0.1, 1.0), (0.3, 2.0), (0.9, 3.0)]:
        study.add_trial(optuna.create_trial(params={"x": x}, distributions=distribution, value=y))
    for x, y in [(0.5, -9.0), (0.7, 5.0)]:
        pruned = {
            "params": {"x": x},
            "distributions": distribution,
            "intermediate_values": {0: 7.0, 1: y},
        }
        study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.PRUNED, **pruned))
    study.add_trial(
        optuna.create_trial(
            state=optuna.trial.TrialState.PRUNED, params={"x": 0.6}, distributions=distribution
        )
    )
    own = study.sampler.study(study)
    assert dict(zip(own.measurements["x"], own.measurements["value"], strict=True)) == {
        0.1: 1.0,
        0.3: 2.0,
        0.9: 3.0,
        0.5: 2.0,
        0.7: 5.0,
    }
    assert len(own.failures) == 1


def conditional(trial):
    kind = trial.suggest_categorical("kind", ["bowl", "line"])
    if kind == "line":
        return 1 + trial.suggest_float("slope", 0, 1)
    return (trial.suggest_float("x", -2, 2) - 1) ** 2 + (trial.suggest_float("y", -2, 2) + 0.5) ** 2


def test_conditional_parameters_are_searched_together_with_what_decides_about_them():
    study = study_of()
    study.optimize(conditional, n_trials=25)
    assert study.best_value < 0.02
    space = SearchSpace(study.sampler.infer_relative_search_space(study, None))
    space.learn_conditions([trial.params for trial in study.trials])
    assert len(space.conditions) == 3
    point = space.domain(64).canonical(np.array([space.encode({"kind": "line", "slope": 0.2})]))
    same = space.encode({"kind": "line", "slope": 0.2, "x": 1.7, "y": -1.0})
    np.testing.assert_array_equal(point[0], same)


def test_nested_conditions_are_learned_from_two_parameters():
    dist = optuna.distributions
    space = SearchSpace(
        {
            "a": dist.CategoricalDistribution(["p", "q"]),
            "b": dist.CategoricalDistribution(["u", "v"]),
            "c": dist.FloatDistribution(0, 1),
        }
    )
    trials = [{"a": "p"}, {"a": "q", "b": "u"}, {"a": "q", "b": "v", "c": 0.1}, {"a": "p"}]
    space.learn_conditions(trials)
    assert space.has_all_active({"a": "p"})
    assert space.has_all_active({"a": "q", "b": "u"})
    assert not space.has_all_active({"a": "q", "b": "v"})


def test_the_same_seed_in_two_processes_does_not_repeat_trials(tmp_path):
    """Two samplers with the same seed share a storage, as two processes do, and choose at the
    same time."""
    storage = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=storage, study_name="s")
    studies = [
        optuna.load_study(study_name="s", storage=storage, sampler=TruVaRSampler(seed=0, points=64))
        for _ in range(2)
    ]
    for _ in range(6):
        trials = [study.ask() for study in studies]
        for study, trial in zip(studies, trials, strict=True):
            study.tell(trial, bowl(trial))
    assert len({(t.params["x"], t.params["y"]) for t in studies[0].trials}) == 12


def test_a_choice_that_another_worker_is_making_is_not_made_again():
    study = study_of()
    study.optimize(bowl, n_trials=8)
    waiting = study._storage.create_new_trial(study._study_id)  # a worker that has not chosen yet
    trial = study.ask()
    late = study._storage.get_trial(waiting)
    chosen = study.sampler.sample_relative(
        study, late, study.sampler.infer_relative_search_space(study, late)
    )
    assert (
        abs(chosen["x"] - trial.suggest_float("x", -5, 5))
        + abs(chosen["y"] - trial.suggest_float("y", -5, 5))
        > 0.01
    )


def test_a_level_set_is_searched_if_it_is_the_goal():
    study = study_of(goal=tv.LevelSet(4.0))
    study.optimize(bowl, n_trials=25)
    result = study.sampler.study(study).result()
    points = result.domain.points
    truth = (points[:, 0] - 1) ** 2 + (points[:, 1] + 2) ** 2 > 4.0
    assert np.mean((result.mean > 4.0) == truth) > 0.9


def test_a_goal_of_several_quantities_is_refused():
    several = tv.AllOf(tv.LevelSet(0.5, of="loss"), tv.LevelSet(below=1, of="time"))
    with pytest.raises(InvalidArgumentError, match="must be about the one value of a trial"):
        TruVaRSampler(goal=several)


def test_a_sampler_survives_pickling():
    study = study_of()
    study.optimize(bowl, n_trials=6)
    again = pickle.loads(pickle.dumps(study.sampler))
    distribution = study.trials[0].distributions
    assert set(again.sample_relative(study, study.ask()._get_latest_trial(), distribution)) == {
        "x",
        "y",
    }


def test_cheap_trials_are_preferred_if_costs_are_reported():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("cost", 1.0 if x < 0.5 else 50.0)
        return float(np.sin(20 * x))

    def share(name):
        study = study_of(cost=name)
        study.optimize(objective, n_trials=20)
        return np.mean([trial.params["x"] < 0.5 for trial in study.trials])

    assert share("cost") > share("no such attribute")


def test_reported_noise_is_used():
    study = study_of()
    distribution = {"x": optuna.distributions.FloatDistribution(0, 1)}
    for x, y, noise in [
        (0.1, 0.0, 1e-6),
        (0.5, 0.0, 1e-6),
        (0.9, 0.0, 1e-6),
        (0.3, -9.0, 1e4),
        (0.7, -2.0, 1e-6),
    ]:
        study.add_trial(
            optuna.create_trial(
                params={"x": x}, distributions=distribution, value=y, user_attrs={"noise": noise}
            )
        )
    own = study.sampler.study(study)
    assert own.measurements["noise"].max() == 1e4
    assert own.result().best.point["x"] == pytest.approx(0.7, abs=0.2)


@pytest.mark.parametrize("option", ["noise", "cost"])
def test_an_attribute_that_is_not_a_number_is_reported(option):
    study = study_of(**{option: "loudness"})
    study.optimize(lambda trial: trial.set_user_attr("loudness", "loud") or bowl(trial), n_trials=1)
    message = "user attribute 'loudness' of trial 0 must be a number, got 'loud'"
    with pytest.raises(InvalidArgumentError, match=f"{message}.*TruVaRSampler\\({option}=...\\)"):
        study.optimize(bowl, n_trials=1)


def test_the_same_seed_gives_the_same_trials():
    runs = []
    for _ in range(2):
        study = study_of(seed=3)
        study.optimize(bowl, n_trials=6)
        runs.append([trial.params for trial in study.trials])
    assert runs[0] == runs[1]


def test_parameters_are_encoded_and_decoded():
    dist = optuna.distributions
    space = SearchSpace(
        {
            "f": dist.FloatDistribution(1e-4, 1.0, log=True),
            "i": dist.IntDistribution(2, 10, step=4),
            "c": dist.CategoricalDistribution(["u", None, True]),
        }
    )
    point = space.encode({"f": 1e-2, "i": 6, "c": None})
    np.testing.assert_allclose(point, [-2.0, 6.0, 1.0])
    assert space.decode(point) == {"f": 1e-2, "i": 6, "c": None}
    drawn = [space.decode(each) for each in space.domain(256).points]
    assert {p["i"] for p in drawn} == {2, 6, 10}
    assert {p["c"] for p in drawn} == {"u", None, True}
    assert all(1e-4 <= p["f"] <= 1.0 for p in drawn)


def test_a_missing_library_is_reported_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "truvar.integrations.optuna")
    message = r'TruVaRSampler needs optuna, which is missing: pip install "truvar\[optuna\]"'
    with pytest.raises(MissingDependencyError, match=message):
        importlib.import_module("truvar.integrations.optuna")


def test_values_reported_as_exact_may_contradict_each_other():
    study = study_of()
    distribution = {"x": optuna.distributions.FloatDistribution(0, 1)}
    for x, y in [(0.1, 0.0), (0.1, 1.0), (0.5, 0.3), (0.5, 0.1), (0.9, 2.0)]:
        study.add_trial(
            optuna.create_trial(
                params={"x": x}, distributions=distribution, value=y, user_attrs={"noise": 0.0}
            )
        )
    assert 0 <= study.ask(distribution).params["x"] <= 1


@pytest.mark.parametrize("name", ["seed", "constraints", "representers"])
def test_parameters_may_have_the_names_of_options(name):
    study = study_of()
    study.optimize(
        lambda trial: trial.suggest_float(name, 0, 1) + trial.suggest_float("x", 0, 1), n_trials=4
    )
    assert set(study.best_params) == {name, "x"}
    assert set(study.sampler.study(study).result().best.point) == {name, "x"}


def test_a_trial_pruned_before_any_completed_counts_as_no_better_than_the_first_that_did():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.report(x if trial.number else 100.0, 0)
        if trial.number == 0:
            raise optuna.TrialPruned
        return x

    study = study_of("maximize")
    study.optimize(objective, n_trials=6)
    values = {action.id: value for action, value in study.sampler._model.learner.observations}
    assert values[0] == values[1] == study.trials[1].value
    again = study.sampler.study(study).measurements
    assert again["value"][np.isclose(again["x"], study.trials[0].params["x"])].tolist() == [
        values[0]
    ]


def test_no_trial_is_lost_after_one_that_cannot_be_read():
    study = study_of()
    study.optimize(bowl, n_trials=3)
    good = study.ask()
    bad = study.ask()
    bad.set_user_attr("cost", "abc")
    study.tell(good, bowl(good))
    study.tell(bad, bowl(bad))
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="user attribute 'cost' of trial 4"):
            bowl(study.ask())
    study._storage._studies[study._study_id].trials[4].user_attrs["cost"] = 1.0
    bowl(study.ask())
    assert [action.id for action, _ in study.sampler._model.learner.observations] == [0, 1, 2, 3, 4]


def test_trials_that_violate_a_constraint_become_rare():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("least x", 0.6 - x)
        return x + (trial.suggest_float("y", 0, 1) - 0.5) ** 2

    study = study_of()
    study.optimize(objective, n_trials=20)
    violated = [trial.number for trial in study.trials if trial.params["x"] < 0.6]
    assert len(violated) < 9
    assert study.best_value < 0.65
    assert len(study.sampler.study(study).failures) == len(violated)


def test_trials_that_fail_before_they_ask_for_all_parameters_are_learned_from():
    study = study_of()
    study.optimize(early_failing, n_trials=25, catch=(RuntimeError,))
    failed = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.FAIL]
    assert all("x" not in trial.params for trial in failed)
    assert len(failed) < 10
    assert study.best_params["k"] == 4


def test_a_failure_that_passes_does_not_exclude_a_choice_for_good():
    noise = np.random.default_rng(0).standard_normal(30)

    def objective(trial):
        k = trial.suggest_int("k", 0, 9)
        if trial.number == 0:
            raise RuntimeError("machine lost")
        return (k - 3) ** 2 + 0.3 * noise[trial.number]

    study = study_of()
    study.enqueue_trial({"k": 3})
    study.optimize(objective, n_trials=20, catch=(RuntimeError,))
    assert study.best_params == {"k": 3}


def test_a_choice_that_fails_always_is_tried_twice_at_most():
    def objective(trial):
        k = trial.suggest_int("k", 0, 4)
        if k == 2:
            raise RuntimeError("broken")
        return (k - 2) ** 2 + 0.01 * trial.number

    study = study_of()
    study.optimize(objective, n_trials=18, catch=(RuntimeError,))
    assert [trial.params["k"] for trial in study.trials].count(2) <= 2


def test_eight_workers_that_choose_at_once_do_not_repeat_each_other(monkeypatch):
    monkeypatch.setattr("truvar.integrations.optuna._CHOOSING_SECONDS", 1000.0)
    study = study_of()
    study.optimize(bowl, n_trials=6)
    waiting = [study._storage.create_new_trial(study._study_id) for _ in range(8)]
    space = study.sampler.infer_relative_search_space(study, None)
    trials = study.get_trials(deepcopy=True)
    chosen = []
    for each in waiting:  # all of them see the storage as it was before any of them had chosen
        monkeypatch.setattr(study, "_get_trials", lambda deepcopy, use_cache: trials)
        trial = study._storage.get_trial(each)
        chosen.append(study.sampler.sample_relative(study, trial, space))
    points = np.array([[params["x"], params["y"]] for params in chosen])
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(8, 1)]
    assert gaps.min() > 0.01


def test_the_study_of_the_trials_has_the_choices_as_values():
    study = study_of()
    study.optimize(
        lambda t: (t.suggest_categorical("kind", ["a", "b"]) == "a") + t.suggest_float("x", 1, 2),
        n_trials=6,
    )
    own = study.sampler.study(study)
    assert own.result().best.point["kind"] == "b"
    assert list(own.measurements["kind"]) == [trial.params["kind"] for trial in study.trials]


def test_choices_that_cannot_be_told_apart_are_labelled():
    assert labels(["a", None, 2]) == ["a", None, 2]
    assert labels([0.5, 1]) == [0.5, 1]
    assert labels([1, True]) == ["1", "True"]
    assert labels([1, "1", (2, 3)]) == ["0: 1", "1: 1", "2: (2, 3)"]


def early_failing(trial) -> float:
    k = trial.suggest_int("k", 1, 8)
    if k > 4:
        raise RuntimeError("broken")
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 - k


def partly_failing(trial) -> float:
    value = bowl(trial)
    if trial.params["x"] < -2:
        raise RuntimeError("broken")
    return value


@pytest.mark.parametrize("objective", [bowl, conditional, partly_failing, early_failing])
def test_a_resumed_sampler_chooses_what_an_uninterrupted_one_would(tmp_path, objective):
    """Optuna's samplers and storages of two processes share nothing but the database, as here."""

    def run(name: str, parts: tuple[int, ...]) -> list[dict]:
        storage = f"sqlite:///{tmp_path}/{name}.db"
        for count in parts:
            sampler = TruVaRSampler(seed=0, points=64)
            study = optuna.create_study(
                storage=storage, study_name="s", sampler=sampler, load_if_exists=True
            )
            study.optimize(objective, n_trials=count, catch=(RuntimeError,))
        return [trial.params for trial in study.trials]

    whole = run("whole", (24,))
    parts = run("parts", (7, 6, 11))
    assert len(whole) == len(parts) == 24
    for own, other in zip(whole, parts, strict=True):
        assert own.keys() == other.keys()
        for name, value in own.items():
            assert other[name] == (value if isinstance(value, str) else pytest.approx(value))


def test_running_trials_count_as_pending_in_the_model_that_chooses():
    study = study_of()
    study.optimize(bowl, n_trials=8)
    running = [study.ask() for _ in range(3)]
    for trial in running:
        bowl(trial)
    bowl(study.ask())
    pending = study.sampler._model.learner.pending
    expected = [[trial.params["x"], trial.params["y"]] for trial in running]
    np.testing.assert_allclose([action.point for action in pending], expected)
    study.tell(running[1], 1.0)
    bowl(study.ask())
    pending = [list(action.point) for action in study.sampler._model.learner.pending]
    assert expected[1] not in pending
    assert len(pending) == 3  # two of the first three, and the one that was asked for next
