"""Studies whose tasks are learned: the first measurements, what is chosen, what is said, and
what it saves."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from tests.helpers.invalid_input import refused

import truvar as tv
from truvar.acquisition.registry import policy_classes
from truvar.report.status import status_data, status_text
from truvar.report.terminal import TerminalStyle

LINE = tv.Domain.grid(x=np.linspace(0, 1, 41))
SQUARE = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 9))
NAMES = ["yield", "assay"]
PAIR = tv.Tasks(names=NAMES, cost=[10.0, 1.0])
KERNEL = ConstantKernel(1.5) * RBF(0.2)


def hill(point: dict[str, float]) -> float:
    return float(np.sin(6 * point["x"]) + 0.3 * point.get("y", 0.0))


def measure(point: dict[str, float], *choice: Any) -> float:
    """The assay is in another unit than the yield, and has an offset."""
    return hill(point) if choice[-1] == "yield" else 700 + 40 * hill(point)


def tasks_of(study: tv.Study) -> str:
    return "".join(str(record.task)[0] for record in study.measurement_records())


def correlation(study: tv.Study) -> float:
    tasks = study.learned_tasks
    assert tasks is not None
    covariance = np.array(tasks.covariance)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


# -- the first measurements
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"kernel": KERNEL}, {"kernel": KERNEL, "mean": 0.0, "noise": 1e-4}]
)
def test_the_target_is_measured_first_and_then_the_cheaper_task_at_the_same_points(
    options: dict[str, Any],
) -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR, **options)
    study.run(measure, steps=3)
    assert study.epsilon == np.inf  # nothing is claimed yet
    study.run(measure, steps=8)
    assert tasks_of(study) == "yyyyaaaa"
    records = study.measurement_records()
    assert {record.index for record in records[:4]} == {record.index for record in records[4:]}
    assert np.isfinite(study.epsilon)


def test_a_batch_is_the_same_design() -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR)
    suggestions = study.ask(8)
    assert [suggestion.task for suggestion in suggestions] == ["yield"] * 4 + ["assay"] * 4
    for suggestion in suggestions[::-1]:
        study.tell(suggestion, measure(suggestion.point, suggestion.task))
    assert correlation(study) > 0.5


def test_a_task_that_costs_as_much_as_the_target_is_left_to_the_policy() -> None:
    study = tv.Study(
        LINE, tv.Maximize(), tasks=tv.Tasks(names=["yield", "assay", "expensive"], cost=[10, 1, 10])
    )
    study.run(measure, steps=8)
    assert tasks_of(study) == "yyyyaaaa"


def test_a_policy_that_measures_the_target_alone_does_not_begin_with_the_others() -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR, policy="ei")
    study.run(measure, steps=7)
    assert tasks_of(study) == "y" * 7


def test_values_that_were_told_count_for_the_design() -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR)
    for row in (0, 10, 20, 30, 40):
        for task in NAMES:
            study.tell(LINE.point(row), measure(LINE.point(row), task), task=task)
    assert study.ask(2)[0].task in NAMES
    assert np.isfinite(study.epsilon)
    assert correlation(study) > 0.9


def test_a_known_kernel_with_learned_tasks_is_not_finished_before_ten_values() -> None:
    study = tv.Study(LINE, tv.LevelSet(-50.0), kernel=KERNEL, mean=0.0, noise=1e-4, tasks=PAIR)
    for row in range(0, 36, 4):
        study.tell(LINE.point(row), hill(LINE.point(row)))
        assert study.finished is None
        assert study.check_stop(f1=0.5).reason is None
    study.tell(LINE.point(36), hill(LINE.point(36)))
    assert study.finished is not None


# -- what is learned
# --------------------------------------------------------------------------------------------------


def test_learned_tasks_have_the_units_of_the_user() -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR, policy="truvar")
    study.run(measure, steps=24)
    tasks = study.learned_tasks
    assert tasks is not None
    assert tasks.names == NAMES
    assert tasks.cost == [10.0, 1.0]
    assert correlation(study) > 0.95
    covariance = np.array(tasks.covariance)
    assert covariance[0, 0] == 1.0  # it multiplies the kernel of the target
    assert np.sqrt(covariance[1, 1]) == pytest.approx(40, rel=0.2)
    assert tasks.mean[1] == pytest.approx(700, abs=100)
    assert study.tasks == PAIR  # as it was given
    mean, sd = study.predict_measurement(study.ask())
    assert np.isfinite([mean, sd]).all()
    known = tv.Study(
        LINE, tv.Maximize(), kernel=study.kernel, tasks=tasks
    )  # what was learned can be given
    assert known.learned_tasks == known.tasks == tasks


def test_a_task_is_predicted_in_its_own_units() -> None:
    study = tv.Study(LINE, tv.LevelSet(0.5), tasks=PAIR)
    for suggestion in study.ask(8):
        study.tell(suggestion, measure(suggestion.point, suggestion.task))
    suggestions = study.ask(6)
    assert {suggestion.task for suggestion in suggestions} == set(NAMES)
    for suggestion in suggestions:
        mean, sd = study.predict_measurement(suggestion)
        assert mean == pytest.approx(measure(suggestion.point, suggestion.task), abs=6 * sd)
        assert sd < (2.0 if suggestion.task == "yield" else 80.0)


@pytest.mark.parametrize("exponent", [-40, 30])
def test_the_unit_of_a_task_changes_nothing(exponent: int) -> None:
    plain = tv.Study(LINE, tv.LevelSet(0.4), tasks=PAIR)
    scaled = tv.Study(LINE, tv.LevelSet(0.4), tasks=PAIR)
    factor = 2.0**exponent
    for _ in range(16):
        one = plain.ask()
        other = scaled.ask()
        assert (one.point, one.task) == (other.point, other.task)
        value = hill(one.point)
        plain.tell(one, value)
        scaled.tell(other, value if other.task == "yield" else factor * value)
    # The first value of a task says nothing about its unit, so that later searches do not start
    # from the same model.
    np.testing.assert_allclose(scaled.result().mean, plain.result().mean, atol=1e-5)
    assert "assay" in set(plain.measurements["task"])


def test_a_known_kernel_stays_as_it_is() -> None:
    study = tv.Study(LINE, tv.Maximize(), kernel=KERNEL, tasks=PAIR)
    study.run(measure, steps=14)
    assert study.kernel == KERNEL
    tasks = study.learned_tasks
    assert tasks is not None
    assert np.array(tasks.covariance)[0, 0] == 1.0
    assert correlation(study) > 0.9
    assert study.result().certificate.regime != "theorem"


def test_a_known_covariance_stays_as_it_is_with_a_learned_kernel() -> None:
    given = tv.Tasks([[1.0, 36.0], [36.0, 1600.0]], NAMES, cost=[10.0, 1.0])
    study = tv.Study(LINE, tv.Maximize(), tasks=given)
    study.run(measure, steps=14)
    tasks = study.learned_tasks
    assert tasks is not None
    assert tasks.covariance == [[1.0, 36.0], [36.0, 1600.0]]
    assert tasks.mean[1] == pytest.approx(700, abs=150)
    assert len(tasks.noise) == 2
    assert study.kernel(LINE.points[:1])[0, 0] == pytest.approx(1.0, abs=0.9)


def test_a_given_mean_is_that_of_the_target_and_given_noise_is_used() -> None:
    study = tv.Study(
        LINE, tv.Maximize(), mean=0.25, tasks=tv.Tasks(names=NAMES, cost=[10, 1], noise=[1e-4, 0.5])
    )
    study.run(measure, steps=10)
    tasks = study.learned_tasks
    assert tasks is not None
    assert tasks.mean[0] == 0.25
    assert tasks.mean[1] == pytest.approx(700, abs=150)
    assert tasks.noise == [1e-4, 0.5]
    assert set(study.measurements["noise"]) == {1e-4, 0.5}


def test_a_mean_function_describes_the_target_alone() -> None:
    study = tv.Study(LINE, tv.Maximize(), mean=lambda x: 100 + 50 * x[:, 0], tasks=PAIR)
    study.run(
        lambda point, task: measure(point, task) + (100 + 50 * point["x"]) * (task == "yield"),
        steps=14,
    )
    mean, _ = study.predict(LINE.points)
    assert np.abs(mean - 100 - 50 * LINE.points[:, 0]).max() < 4
    assert correlation(study) > 0.8


def test_logarithms_of_every_task_are_modelled_if_asked() -> None:
    study = tv.Study(LINE, tv.Maximize(), transform="log", tasks=PAIR)
    study.run(
        lambda point, task: float(np.exp(3 * hill(point))) * (1 if task == "yield" else 1e-3),
        steps=14,
    )
    assert study.transform.log
    assert study.transform.power == 1.0
    assert correlation(study) > 0.9
    refused(lambda: study.tell({"x": 0.5}, -1.0, task="assay"), "logarithms", "-1", "> 0")


def test_the_power_stays_one_with_tasks() -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR)
    study.run(lambda point, task: float(np.exp(4 * hill(point))), steps=14)
    assert study.transform.is_identity


def test_a_gross_error_of_a_task_is_left_out() -> None:
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR)
    for row in range(0, 40, 5):
        for task in NAMES:
            study.tell(LINE.point(row), measure(LINE.point(row), task), task=task)
    with pytest.warns(tv.exceptions.OutlierWarning):
        wrong = study.tell(LINE.point(40), 1e9, task="assay")
    assert study.result().outliers == (wrong,)
    assert correlation(study) > 0.9


def test_the_most_probable_hyperparameters_may_count_as_known() -> None:
    study = tv.Study(LINE, tv.Maximize(), kernel=tv.Learned(marginalise=False), tasks=PAIR)
    study.run(measure, steps=14)
    assert correlation(study) > 0.9


def test_a_model_of_the_target_can_be_fitted_to_a_table_first() -> None:
    x = np.linspace(0, 1, 25)
    table = pd.DataFrame({"x": x, "value": [hill({"x": each}) for each in x]})
    study = tv.Study(LINE, tv.Maximize(), tasks=PAIR)
    fitted = study.fit(table)
    study.run(measure, steps=12)
    assert study.kernel == fitted.kernel
    assert correlation(study) > 0.9


# -- choosing
# --------------------------------------------------------------------------------------------------


def test_noise_levels_are_a_choice_beside_the_task() -> None:
    levels = tv.NoiseLevels([1e-4, 0.05], [3.0, 0.0])
    tasks = tv.Tasks(names=NAMES, cost=[10.0, 1.0], noise=[[1e-4, 0.05], [0.1, 50.0]])
    study = tv.Study(LINE, tv.Maximize(), noise=levels, tasks=tasks)
    table = study.candidates()
    assert table.cost.shape == (82, 2)
    assert table.cost[0].tolist() == [13.0, 10.0]
    assert table.cost[41].tolist() == [4.0, 1.0]
    assert table.noise[0].tolist() == [1e-4, 0.05]
    assert table.noise[41].tolist() == [0.1, 50.0]
    calls: list[tuple[int, str]] = []

    def with_level(point: dict[str, float], level: int, task: str) -> float:
        calls.append((level, task))
        return measure(point, task)

    study.run(with_level, steps=14)
    assert [(record.level, record.task) for record in study.measurement_records()] == calls
    assert {task for _, task in calls} == set(NAMES)
    study.tell({"x": 0.5}, 0.1, level=1, task="assay")
    assert study.measurement_records()[-1].noise == 50.0
    assert study.measurement_records()[-1].cost == 1.0


def test_free_noise_levels_need_tasks_with_a_cost() -> None:
    levels = tv.NoiseLevels([1e-4, 0.05], [3.0, 0.0])
    refused(
        lambda: tv.Study(LINE, tv.Maximize(), noise=levels, tasks=tv.Tasks(names=NAMES)),
        "more than 0",
        "base",
    )


@pytest.mark.parametrize("name", sorted(policy_classes()))
def test_every_policy_chooses_with_learned_tasks(name: str) -> None:
    policy = policy_classes()[name]
    goal = tv.LevelSet(0.4) if "optimum" not in policy.supported_goals else tv.Maximize()
    study = tv.Study(SQUARE, goal, tasks=PAIR, policy=name)
    rng = np.random.default_rng(0)
    for row in rng.choice(81, 5, replace=False):
        for task in NAMES:
            study.tell(SQUARE.point(int(row)), measure(SQUARE.point(int(row)), task), task=task)
    for suggestion in study.ask(3):
        assert suggestion.task in NAMES
        study.tell(suggestion, measure(suggestion.point, suggestion.task))
    scores = study.gains()
    assert len(scores) == 162
    assert not np.isnan(scores).any()


@pytest.mark.parametrize("policy", ["truvar", "auto"])
def test_engines_choose_alike(policy: str) -> None:
    studies = [
        tv.Study(SQUARE, tv.LevelSet(0.4), tasks=PAIR, policy=policy, engine=engine)
        for engine in ("dense", "lazy")
    ]
    for _ in range(14):
        suggestions = [study.ask() for study in studies]
        assert (suggestions[0].point, suggestions[0].task) == (
            suggestions[1].point,
            suggestions[1].task,
        )
        for study, suggestion in zip(studies, suggestions, strict=True):
            study.tell(suggestion, measure(suggestion.point, suggestion.task))


def test_a_box_has_learned_tasks_too() -> None:
    study = tv.Study(
        tv.Domain.box(x=(0.0, 1.0), representers=30), tv.Maximize(), tasks=PAIR, policy="truvar"
    )
    result = study.run(measure, budget=70)
    assert abs(result.best.point["x"] - np.pi / 12) < 0.05
    assert "assay" in set(study.measurements["task"])


# -- storing and reporting
# ---------------------------------------------------------------------------------------------


def test_a_stored_study_goes_on_with_the_same_model(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = tv.Study(LINE, tv.LevelSet(0.4), tasks=PAIR, store=url, name="tasks")
    study.run(measure, steps=12)
    opened = tv.load(url, "tasks")
    copied = tv.Study.from_json(study.to_json())
    for other in (opened, copied):
        assert np.array_equal(other.result().mean, study.result().mean)
        assert other.learned_tasks == study.learned_tasks
    suggestion = study.ask()
    assert copied.ask() == suggestion


def test_status_and_report_say_what_was_learned() -> None:
    study = tv.Study(LINE, tv.LevelSet(0.4), tasks=PAIR)
    terminal = TerminalStyle()
    assert "not learned yet" in status_text(study, terminal)
    study.run(measure, steps=12)
    text = " ".join(status_text(study, terminal).split())
    assert f"correlation with yield, as learned: assay {correlation(study):.2f}" in text
    data = status_data(study)["learned_tasks"]
    assert [row["name"] for row in data] == NAMES
    assert data[1]["correlation"] == pytest.approx(correlation(study))
    assert data[1]["mean"] == study.learned_tasks.mean[1]


# -- what it saves
# --------------------------------------------------------------------------------------------------


def error_after(budget: float, related: float | None, seed: int) -> tuple[float, tv.Study]:
    """Return 1 - F1 of a level set after a budget; without tasks if `related` is None.

    The functions have about 15 length-scales of extent, so that four measurements tell little by
    themselves.
    """
    domain = tv.Domain.grid(x=np.linspace(0, 1, 61))
    lower = np.linalg.cholesky(Matern(0.06, nu=2.5)(domain.points) + 1e-9 * np.eye(61))
    rng = np.random.default_rng(seed)
    target = lower @ rng.standard_normal(61)
    proxy = lower @ rng.standard_normal(61)
    if related is not None:
        proxy = related * target + np.sqrt(1 - related**2) * proxy
    noise = np.random.default_rng(seed + 1000)
    options: dict[str, Any] = {"cost": 20.0}
    if related is not None:
        options = {"tasks": tv.Tasks(names=["target", "proxy"], cost=[20.0, 1.0])}

    def answer(point: dict[str, float], task: str = "target") -> float:
        row = round(60 * point["x"])
        value = (target if task == "target" else proxy)[row] + 0.03 * noise.standard_normal()
        return float(value if task == "target" else 100 + 7 * value)

    study = tv.Study(domain, tv.LevelSet(0.5), seed=seed, **options)
    study.run(answer, budget=budget)
    return 1 - study.result().f1(target), study


def test_a_cheap_and_well_correlated_task_reduces_the_cost_of_the_answer() -> None:
    seeds = (0, 1, 3)
    alone = [error_after(200, None, seed)[0] for seed in seeds]
    helped = [error_after(200, 0.98, seed) for seed in seeds]
    assert np.mean([error for error, _ in helped]) < 0.5 * np.mean(alone)
    for _, study in helped:
        assert correlation(study) > 0.8
        assert (study.measurements["task"] == "proxy").sum() >= 15


def test_a_task_that_says_nothing_is_soon_ignored() -> None:
    for seed in (1, 2, 3):
        alone, _ = error_after(300, None, seed)
        error, study = error_after(300, 0.0, seed)
        records = study.measurement_records()
        on_proxy = sum(record.cost for record in records if record.task == "proxy")
        assert on_proxy < 0.1 * study.spent
        assert abs(correlation(study)) < 0.5
        assert error < alone + 0.12
