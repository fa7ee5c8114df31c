"""Values that may be typing mistakes are accepted and named; others are not."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.exceptions import OutlierWarning

LINE = tv.Domain.grid(x=np.linspace(0, 1, 41))


def known(**options):
    return tv.Study(LINE, tv.LevelSet(0.5), kernel=RBF(0.2), mean=0.0, noise=0.01, **options)


def test_a_value_far_from_the_prediction_of_a_known_model_is_accepted_and_named():
    study = known()
    suggestion = study.ask()
    finding = study.check_value(suggestion, 73.0)
    assert finding is not None
    assert study.steps == 0
    with pytest.warns(
        OutlierWarning, match=r"73 is 72\.\d standard deviations.*correct\(1, VALUE\)"
    ) as caught:
        id_ = study.tell(suggestion, 73.0)
    assert caught[0].filename == __file__
    assert study.measurements["value"].tolist() == [73.0]
    study.correct(id_, 0.73)
    assert study.measurements["value"].tolist() == [0.73]


def test_an_absurd_value_is_named_in_few_digits():
    study = known()
    finding = study.check_value(study.ask(), 1e60)
    assert finding is not None
    assert "1e+60 is 1.0e+60 standard deviations from" in finding


def test_plausible_values_are_told_without_a_warning():
    study = known()
    rng = np.random.default_rng(0)
    with no_warnings():
        for _ in range(8):
            suggestion = study.ask()
            assert study.check_value(suggestion, 0.3) is None
            study.tell(suggestion, study.sample_measurement(suggestion, rng))


@pytest.mark.parametrize(
    ("values", "value", "implausible"),
    [
        ([7.1, 6.4], 730.0, True),
        ([7.1, 6.4], 71.0, False),
        ([7.1, 6.4], 0.007, True),
        ([7.1, 6.4], 0.0, False),
        ([7.1, 6.4], -6.9, False),
        ([1e-5, 1e-2], 5.0, False),  # the values themselves range over three orders of magnitude
        ([1e-5, 1e-2], 5e2, True),
        ([], 5e6, False),
        ([0.0], 5e6, False),
        ([0.02], 7.1, False),  # the first value may be the tail of a peak
        ([7.1], 0.02, False),
        ([0.0, 0.02], 7.1, False),
        ([5.0, -4.9], 0.03, False),  # a sign changes at 0
    ],
)
def test_before_there_is_a_model_orders_of_magnitude_count(values, value, implausible):
    study = tv.Study(LINE, tv.Maximize())
    for k, told in enumerate(values):
        study.tell({"x": k / 4}, told)
    finding = study.check_value({"x": 1.0}, value)
    assert (finding is not None) == implausible
    if implausible:
        assert "orders of magnitude" in finding


def test_the_threshold_is_known_before_the_first_value():
    study = tv.Study(LINE, tv.LevelSet(7.0))
    assert study.check_value({"x": 0.5}, 6900.0) is not None
    assert study.check_value({"x": 0.5}, 6.9) is None


def test_values_far_below_a_threshold_are_plausible():
    study = tv.Study(LINE, tv.LevelSet(100.0))
    with no_warnings():
        study.tell({"x": 0.5}, 0.4)
        study.tell({"x": 0.25}, 0.002)
    assert study.check_value({"x": 0.75}, 60.0) is None
    assert study.check_value({"x": 0.75}, 1e8) is not None


def test_a_learned_model_questions_only_values_beyond_the_others():
    study = tv.Study(LINE, tv.Maximize())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in np.linspace(0, 1, 12):
            study.tell({"x": LINE.points[LINE.nearest(np.array([x])), 0]}, float(np.sin(6 * x)))
    assert study.check_value({"x": 0.5}, 40.0) is not None
    assert study.check_value({"x": 0.5}, 0.9) is None


def test_values_of_a_run_are_not_typed():
    study = known()
    with no_warnings():
        study.run(lambda point: 50.0, steps=2)
    assert study.steps == 2


def test_what_cannot_be_a_value_is_refused():
    with pytest.raises(tv.TruvarError, match="measured value"):
        known().check_value({"x": 0.5}, float("nan"))


PAIR = tv.Tasks(names=["yield", "assay"], cost=[10.0, 1.0])
KNOWN_PAIR = tv.Tasks(
    covariance=[[1.0, 0.5], [0.5, 1.0]], names=["yield", "assay"], cost=[10.0, 1.0]
)


@pytest.mark.parametrize("kernel", [None, ConstantKernel(1.0) * RBF(0.2)])
def test_the_first_value_of_a_task_whose_unit_is_not_known_is_plausible(kernel):
    study = tv.Study(LINE, tv.LevelSet(0.5), mean=0.0, kernel=kernel or tv.Learned(), tasks=PAIR)
    with no_warnings():
        for row in range(0, 40, 8):
            study.tell(LINE.point(row), float(np.sin(6 * row / 40)), task="yield")
        assert study.check_value(LINE.point(3), 500.0, task="assay") is None
        study.tell(LINE.point(3), 500.0, task="assay")


def test_the_first_value_of_a_task_whose_unit_is_known_may_be_implausible():
    study = tv.Study(LINE, tv.LevelSet(0.5), mean=0.0, tasks=KNOWN_PAIR)
    for row in range(0, 40, 8):
        study.tell(LINE.point(row), float(np.sin(6 * row / 40)), task="yield")
    assert study.check_value(LINE.point(3), 0.5, task="assay") is None
    assert "standard deviations" in study.check_value(LINE.point(3), 500.0, task="assay")
