"""The expected effect of a measurement is predicted before it is made, and comes true."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.study.lookahead import QUANTILES, Lookahead


def a_study(goal: tv.LevelSet | tv.Maximize, **given) -> tv.Study:
    domain = tv.Domain.grid(x=np.linspace(0, 6, 40), y=np.linspace(0, 1, 5))
    model = {"kernel": RBF([0.8, 0.7]), "mean": 0.0, "noise": 0.05, "exact_model": True}
    return tv.Study(domain, goal, **(model | given))


def begin(study: tv.Study, steps: int = 6) -> tv.Suggestion:
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, float(np.sin(suggestion.point["x"]) + suggestion.point["y"]))
    return study.ask()


@pytest.mark.parametrize(
    "goal", [tv.LevelSet(0.5), tv.Maximize(), tv.Minimize(), tv.LevelSet(fraction_of_max=0.8)]
)
def test_the_share_of_variance_it_removes_is_what_telling_it_removes_whatever_the_value(
    goal,
) -> None:
    study = a_study(goal)
    suggestion = begin(study)
    ahead = study.lookahead(suggestion)
    before = study.result()
    for y in (-1.0, 2.0):
        told = deepcopy(study)
        told.tell(suggestion, y)
        undecided_before = before.potential
        left = (told.result().sd[undecided_before] ** 2).sum() / (
            before.sd[undecided_before] ** 2
        ).sum()
        assert ahead.variance_reduction == pytest.approx(1 - left)
        assert ahead.undecided == undecided_before.sum()


@pytest.mark.parametrize("goal", [tv.LevelSet(0.5), tv.Maximize()])
def test_the_number_it_is_expected_to_decide_is_the_mean_over_the_values_it_could_give(
    goal,
) -> None:
    """400 values: the mean of counts below 60 is within 4 standard errors but once in 15,000 seeds;
    the 16 values of
    the lookahead itself add less than one point."""
    study = a_study(goal)
    suggestion = begin(study)
    ahead = study.lookahead(suggestion)
    rng = np.random.default_rng(1)
    decided = []
    for _ in range(400):
        told = deepcopy(study)
        told.tell(suggestion, told.sample_measurement(suggestion, rng))
        decided.append(ahead.undecided - told.result().potential.sum())
    error = np.std(decided) / np.sqrt(len(decided))
    assert ahead.expected_decided == pytest.approx(np.mean(decided), abs=4 * error + 1)
    assert np.mean(decided) > 0.5


def test_pending_measurements_are_left_aside() -> None:
    study = a_study(tv.LevelSet(0.5))
    first = begin(study)
    alone = study.lookahead(first)
    study.ask(2)
    assert study.lookahead(first) == alone
    assert study.lookahead(first.id) == alone


def test_without_a_model_there_is_no_lookahead_and_without_noise_a_known_point_tells_nothing() -> (
    None
):
    learning = a_study(tv.LevelSet(0.5), kernel=None, mean=None, noise=None)
    assert learning.lookahead(learning.ask()) is None
    exact = a_study(tv.LevelSet(0.5), noise=0.0)
    suggestion = exact.ask()
    exact.tell(suggestion.point, 0.3)  # measured by somebody else, unasked
    assert exact.lookahead(suggestion) == Lookahead(int(exact.result().potential.sum()), 0.0, 0.0)


def test_in_a_box_between_its_points_it_holds_too() -> None:
    study = tv.Study(
        tv.Domain.box(x=(0, 6), y=(0, 1), representers=60),
        tv.Maximize(),
        kernel=RBF([1, 1]),
        mean=0.0,
        noise=0.01,
    )
    suggestion = begin(study, 4)
    ahead = study.lookahead(suggestion)
    before = study.result()
    study.tell(suggestion, 0.4)
    left = (study.result().sd[before.potential] ** 2).sum() / (
        before.sd[before.potential] ** 2
    ).sum()
    assert ahead.variance_reduction == pytest.approx(1 - left)


def test_the_quantiles_are_those_of_the_normal_distribution() -> None:
    assert np.asarray(QUANTILES) == pytest.approx(ndtri((np.arange(16) + 0.5) / 16), rel=1e-15)
