"""Whether a study is finished: the quick looks agree with the whole check, and cost little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import truvar as tv
from truvar.inference import _level_set_goals, _optimum_goals
from truvar.inference._goals import inference_of
from truvar.models.frozen import FrozenPosterior
from truvar.study._conclusions import Conclusions

SQUARE = tv.Domain.grid(x=np.linspace(0.0, 1.0, 9), y=np.linspace(0.0, 1.0, 9))
KNOWN = {"kernel": Matern(0.4, nu=2.5), "noise": 1e-6}
PROBLEMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "level set": (tv.LevelSet(0.35), {**KNOWN, "mean": 0.0}),
    "level set, mean estimated": (tv.LevelSet(0.35), {**KNOWN, "mean": None}),
    "bands": (tv.LevelSet([-0.25, 0.35]), {**KNOWN, "mean": 0.0}),
    "share of the maximum": (tv.LevelSet(fraction_of_max=0.3), {**KNOWN, "mean": 0.0}),
    "maximum": (tv.Maximize(), {**KNOWN, "mean": 0.0}),
    "minimum, mean estimated": (tv.Minimize(), {**KNOWN, "mean": None}),
    "learned level set": (tv.LevelSet(0.35), {}),
    "learned maximum": (tv.Maximize(), {}),
}


def wave(point: dict[str, float]) -> float:
    return float(np.sin(7 * point["x"]) + 0.5 * point["y"])


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_quick_looks_agree_with_the_whole_check(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal, model = PROBLEMS[name]
    study = tv.Study(SQUARE, goal, policy="auto", seed=1, **model)
    answers = []
    for _ in range(60 if model else 20):
        quick = study.finished
        with monkeypatch.context() as patch:
            patch.setattr(_optimum_goals, "screening_optimality", lambda inputs: 1.0)
            patch.setattr(_level_set_goals, "screening_certainty", lambda inputs, goal: 1.0)
            assert Conclusions(study._state).finished == quick
        answers.append(quick)
        if quick is not None:
            break
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
    if model:
        assert answers[-1] is not None


def test_a_share_of_the_maximum_that_is_clearly_open_is_drawn_at_few_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = tv.Domain.grid(x=np.linspace(0.0, 1.0, 30), y=np.linspace(0.0, 1.0, 30))
    study = tv.Study(domain, tv.LevelSet(fraction_of_max=0.6), mean=0.0, **KNOWN)
    for point in ({"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}):
        study.tell(point, wave(point))
    drawn: list[int] = []
    draw = FrozenPosterior.draw

    def counted(self: FrozenPosterior, points: Any, count: int, seed: Any) -> Any:
        drawn.append(len(points))
        return draw(self, points, count, seed)

    monkeypatch.setattr(FrozenPosterior, "draw", counted)
    assert study.finished is None
    assert drawn
    assert max(drawn) <= 64


@pytest.mark.parametrize("name", ["level set", "bands", "maximum"])
def test_the_first_look_agrees_with_the_whole_check_of_an_exact_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one model the moments that choices are made with are those of the claims."""
    goal, model = PROBLEMS[name]
    study = tv.Study(SQUARE, goal, policy="auto", seed=1, **{**model, "exact_model": True})
    quick = study.finished
    while quick is None:
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
        quick = study.finished
        with monkeypatch.context() as patch:
            patch.setattr(type(inference_of(goal)), "is_clearly_open", lambda self, learner: False)
            assert Conclusions(study._state).finished == quick


@pytest.mark.parametrize("name", ["maximum", "minimum, mean estimated", "learned maximum"])
def test_a_look_at_the_most_promising_points_agrees_with_the_whole_check(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal, model = PROBLEMS[name]
    study = tv.Study(SQUARE, goal, policy="auto", seed=1, **model)
    n_looks = 0
    for _ in range(60 if model else 25):
        whole = study.finished
        with monkeypatch.context() as patch:
            # Of 81 points 20 are examined first, and few enough of them leave the study open.
            patch.setattr(_optimum_goals, "_N_EXAMINED_FIRST", 20)
            patch.setattr(_optimum_goals, "_MAX_CANDIDATES", 15)
            patch.setattr(_optimum_goals, "optimum_statements", _unexpected)
            first = inference_of(goal).is_clearly_open(study._learner)
        with monkeypatch.context() as patch:
            patch.setattr(_optimum_goals, "_MAX_CANDIDATES", 15)
            limited = Conclusions(study._state).finished
        n_looks += first
        assert not (first and limited is not None)
        if whole is not None:
            break
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
    assert n_looks > 0


def _unexpected(inputs: Any) -> Any:
    raise AssertionError("a first look needs no joint statements")


def test_an_open_study_of_many_points_predicts_few_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    points = rng.random((3000, 2))
    domain = tv.Domain.table({"x": points[:, 0], "y": points[:, 1]}, columns=["x", "y"])
    study = tv.Study(domain, tv.Maximize(), seed=1, kernel=RBF(0.3), noise=1e-4)
    for row in rng.permutation(3000)[:25].tolist():
        point = domain.point(row)
        study.tell(point, float(np.sin(3 * point["x"]) * np.sin(3 * point["y"])))
    predicted: list[int] = []
    predict = FrozenPosterior.predict

    def counting(self: FrozenPosterior, at: Any) -> Any:
        predicted.append(len(at))
        return predict(self, at)

    monkeypatch.setattr(FrozenPosterior, "predict", counting)
    # So many candidates are examined that the number of them alone leaves nothing open.
    monkeypatch.setattr(_optimum_goals, "_MAX_CANDIDATES", 3000)
    assert study.finished is None
    assert predicted
    assert max(predicted) <= _optimum_goals._N_EXAMINED_FIRST


def test_a_study_goes_on_while_the_model_of_its_choices_leaves_something_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goal, model = PROBLEMS["level set"]
    study = tv.Study(SQUARE, goal, policy="auto", seed=1, **model)
    while study.finished is None:
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
    with monkeypatch.context() as patch:
        patch.setattr(type(inference_of(goal)), "is_clearly_open", lambda self, learner: True)
        assert Conclusions(study._state).finished is None


def test_an_open_study_is_not_frozen_before_each_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    study = tv.Study(
        SQUARE, tv.LevelSet(0.35), kernel=RBF(0.2), mean=None, noise=0.1, policy="truvar"
    )
    frozen: list[int] = []
    freeze = type(study._learner.surrogate).freeze

    def counted(surrogate: Any) -> Any:
        frozen.append(1)
        return freeze(surrogate)

    monkeypatch.setattr(type(study._learner.surrogate), "freeze", counted)
    for _ in range(6):
        suggestion = study.ask()
        study.tell(suggestion, wave(suggestion.point))
    assert not frozen
