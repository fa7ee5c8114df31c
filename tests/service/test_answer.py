"""The answer of a study in plain words, and what is said about budgets and places that failed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.report.status import describe_budget, describe_infeasible, status_text
from truvar.report.terminal import TerminalStyle
from truvar.service._answer import answer

AXES = {"x": np.linspace(0, 1, 12), "y": np.linspace(0, 1, 10)}
JARGON = re.compile(r"epsilon|regret|posterior|regime|policy|\bh\b|lemma", re.I)


def field(point):
    return 5 + 3 * np.sin(4 * point["x"]) * np.cos(3 * point["y"])


def study_of(goal, **options):
    settings = {"kernel": 4.0 * RBF([0.4, 0.4]), "mean": 5.0, "noise": 1e-4, "seed": 0, **options}
    return tv.Study(tv.Domain.grid(**AXES), goal, **settings)


def measured(goal, every=5, **options):
    study = study_of(goal, **options)
    for row in range(0, 120, every):
        study.tell(study.domain.point(row), field(study.domain.point(row)))
    return study


def words(study):
    found = answer(study, study.result())
    return found.headline, " ".join(found.details)


GOALS = [
    tv.Maximize(),
    tv.Minimize(),
    tv.LevelSet(6),
    tv.LevelSet(below=4),
    tv.LevelSet(fraction_of_max=0.8),
    tv.LevelSet(within=0.5),
    tv.LevelSet([3, 5, 7]),
    tv.LevelSet(between=(4, 6)),
    tv.Map(accuracy=0.3),
]


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_every_goal_has_an_answer_without_jargon(goal):
    new = answer(study_of(goal), study_of(goal).result())
    assert new.headline == "Not known yet"
    assert new.details == ("Nothing was measured yet.",)
    found = answer(study := measured(goal), study.result())
    assert found.headline != "Not known yet"
    assert found.details
    for text in (found.headline, *found.details):
        assert not JARGON.search(text), text
    assert found.to_dict() == {"headline": found.headline, "details": list(found.details)}


@pytest.mark.parametrize(
    ("goal", "asked", "other"),
    [(tv.LevelSet(6), "above", "below"), (tv.LevelSet(below=4), "below", "above")],
)
def test_a_level_set_counts_the_side_that_is_asked_for_first(goal, asked, other):
    study = measured(goal)
    classes = study.result().classes
    headline, details = words(study)
    threshold = 6 if asked == "above" else 4
    assert headline == f"{getattr(classes, asked).sum()} of 120 points are {asked} {threshold}"
    counts = f"{getattr(classes, other).sum()} {other} {threshold}, {classes.undecided.sum()}"
    assert details.startswith(f"{counts} undecided. Each class shown holds with at least 95 %;")


def test_the_number_that_may_be_wrong_is_that_of_the_classes():
    study = measured(tv.LevelSet(5), every=9)
    classes = study.result().classes
    assert classes.n_shown > 0
    _, details = words(study)
    expected = "none is wrong"
    if classes.max_wrong:
        verb = "is" if classes.max_wrong == 1 else "are"
        expected = f"at most {classes.max_wrong} of the {classes.n_shown} {verb} wrong"
    assert details.endswith(f"with 95 % probability {expected}.")


def test_bands_and_the_points_between_two_thresholds_are_counted():
    headline, details = words(measured(tv.LevelSet([3, 5, 7])))
    assert re.fullmatch(r"Above 7: \d+, 5 to 7: \d+, 3 to 5: \d+, below 3: \d+", headline)
    assert re.match(r"\d+ undecided of 120 points\.", details)
    headline, details = words(measured(tv.LevelSet(between=(4, 6))))
    assert re.fullmatch(r"\d+ of 120 points are between 4 and 6", headline)
    assert re.match(r"\d+ above 6, \d+ below 4, \d+ undecided\.", details)


def test_numbers_have_the_unit_of_the_quantity():
    named = {"quantity": "oxygen", "unit": "mg/l"}
    headline, _ = words(measured(tv.LevelSet(below=4), **named))
    assert re.fullmatch(r"\d+ of 120 points are below 4 mg/l", headline)
    headline, details = words(measured(tv.Map(accuracy=0.3), **named))
    assert re.fullmatch(r"Known to ± \S+ mg/l at 99 % of the points", headline)
    assert re.match(r"At all points ± \S+ mg/l\.", details)
    _, details = words(measured(tv.Maximize(), **named))
    assert re.match(r"Its oxygen is \S+ mg/l \(95 %", details)


def test_nothing_decided_is_said():
    study = study_of(tv.LevelSet(5))
    study.tell(study.domain.point(0), 5.0, noise=100.0)
    headline, _ = words(study)
    assert headline == "Undecided at all 120 points"


def test_an_optimum_has_its_place_value_and_distance():
    study = measured(tv.Maximize(), quantity="oxygen", unit="mg/l")
    result = study.result()
    headline, details = words(study)
    assert headline.startswith("Best: x ")
    assert details.startswith("Its oxygen is ")
    bound = f"{result.statements.regret_bound:.2g}"
    assert f"below the maximum, and at most {bound} mg/l with 95 % probability." in details
    assert "above the minimum" in words(measured(tv.Minimize()))[1]


def test_a_place_with_a_name_leads_with_it():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"station": list("abcde"), "x": np.linspace(0, 1, 5)})
    domain = tv.Domain.table(frame.set_index("station"), columns=["x"])
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=1e-4)
    for row in range(5):
        study.tell(domain.point(row), -((row - 3) ** 2) / 10)
    assert words(study)[0] == "Best: d (x 0.75)"


def test_a_constrained_optimum_says_whether_it_is_allowed():
    study = tv.Study(tv.Domain.grid(**AXES), tv.Maximize("a", subject_to="b <= 4"), noise=1e-4)
    for row in range(0, 120, 6):
        point = study.domain.point(row)
        study.tell(point, {"a": field(point), "b": 4 + point["x"] - point["y"]})
    assert re.search(r"It satisfies all constraints with \S+ % probability\.", words(study)[1])


@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
def test_a_model_that_the_measurements_contradict_is_named():
    study = study_of(tv.LevelSet(5), exact_model=True)
    for k in range(6):
        study.tell(study.domain.point(55), 5.0 + 50.0 * (-1) ** k)
    assert study.result().model_check.is_contradiction
    assert words(study)[1].endswith(
        "The measurements contradict the model; the certificate says how."
    )


def test_one_failure_is_one_place_and_not_a_share_of_the_domain():
    study = measured(tv.LevelSet(6), every=40)
    study.fail(study.domain.point(55), "no signal")
    result = study.result()
    assert (result.n_excluded, result.n_likely_to_fail) == (1, 0)
    assert result.infeasible_share > 0.05  # what was shown as a share of the domain
    rows = dict(describe_infeasible(study, result))
    assert set(rows) == {"excluded", "failed"}
    assert rows["excluded"] == "1 of 120 points"
    assert result.to_dict()["likely_to_fail"] == 0


def test_a_region_that_failed_several_times_is_likely_to_fail():
    study = study_of(tv.LevelSet(6))
    corner = (study.domain.points > [0.7, 0.5]).all(axis=1)
    for row in np.flatnonzero(corner)[::2]:
        study.fail(study.domain.point(int(row)))
    for row in np.flatnonzero(~corner)[::4]:
        study.tell(study.domain.point(int(row)), 5.0)
    result = study.result()
    likely = ~result.excluded & (result.feasibility < 0.5)
    assert result.n_likely_to_fail == likely.sum() > 0
    assert corner[likely].mean() > 0.5
    text = dict(describe_infeasible(study, result))["likely to fail"]
    assert text == f"{likely.sum()} of the other points, more likely than not"


def test_budgets_of_vehicles_are_told_where_the_study_has_none():
    boats = {"boat-1": tv.Vehicle(budget=20), "boat-2": tv.Vehicle(budget=30), "raft": tv.Vehicle()}
    study = study_of(tv.LevelSet(6), vehicles=boats)
    assert describe_budget(study) == "0 spent, left: boat-1 20 of 20, boat-2 30 of 30"
    study.tell(study.domain.point(0), 5.0, cost=4.5, vehicle="boat-1")
    assert describe_budget(study) == "4.5 spent, left: boat-1 15.5 of 20, boat-2 30 of 30"
    text = status_text(study, TerminalStyle())
    assert "no budget given" not in text
    assert describe_budget(study_of(tv.LevelSet(6))) == "0 spent, no budget given"
