"""A given kernel shares claims with learned ones, unless it is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.acquisition.confidence import TheoremBeta
from truvar.exceptions import InvalidArgumentError
from truvar.inference.joint import StatementSource
from truvar.models.given_model import MIN_WEIGHT, _log_evidence
from truvar.models.hyperparameters.known import MIN_TO_COMPARE

LINE = tv.Domain.grid(x=np.linspace(0, 1, 41))
RIGHT = ConstantKernel(2.0) * Matern(0.2, nu=2.5)
TOO_SMOOTH = ConstantKernel(0.2) * RBF(1.0)
NOISE = 0.01


def drawn(seed: int) -> Any:
    """Return values of a function of the right kernel at all points, with noise."""
    rng = np.random.default_rng(seed)
    covariance = RIGHT(LINE.points) + NOISE * np.eye(len(LINE))
    return np.linalg.cholesky(covariance) @ rng.standard_normal(len(LINE))


def study_of(
    kernel: Any, t: int = 14, seed: int = 0, values: Any = None, **settings: Any
) -> tv.Study:
    options = {"mean": 0.0, "noise": NOISE, **settings}
    study = tv.Study(LINE, tv.LevelSet(0.3), kernel=kernel, **options)
    given = drawn(seed) if values is None else values
    for row in np.random.default_rng(seed).permutation(len(LINE))[:t]:
        study.tell(LINE.point(int(row)), float(given[row]))
    return study


def inputs_of(study: tv.Study) -> StatementSource:
    return StatementSource.of(study._learner, LINE.points[0])


def given_share(study: tv.Study) -> float:
    """Return the weight of the given kernel, which has the first member if any."""
    posterior = inputs_of(study).posterior
    own = study._learner.surrogate.freeze().members[0]
    is_own = np.array_equal(posterior.members[0].lower, own.lower)
    return float(posterior.shares[0]) if is_own else 0.0


def test_a_right_kernel_keeps_most_of_the_weight() -> None:
    shares = [given_share(study_of(RIGHT, seed=seed)) for seed in range(6)]
    assert np.mean(shares) > 0.75
    assert min(shares) > 0.3


def test_a_wrong_kernel_loses_its_weight() -> None:
    shares = [given_share(study_of(TOO_SMOOTH, 20, seed)) for seed in range(4)]
    assert max(shares) < 0.01


def test_with_a_wrong_kernel_claims_are_those_of_the_learned_model() -> None:
    values = drawn(1)
    study = study_of(TOO_SMOOTH, 20, values=values)
    classes = study.result().classify()
    assert not (classes.above & (values < 0.3 - 0.3)).any()
    assert not (classes.below & (values > 0.3 + 0.3)).any()
    exact = study_of(TOO_SMOOTH, 20, values=values, exact_model=True).result().classify()
    wrong = (exact.above & (values < 0.3)) | (exact.below & (values >= 0.3))
    assert wrong.any()


@pytest.mark.parametrize("mean", [0.0, None])
def test_the_evidence_of_the_given_kernel_is_its_log_density(mean: float | None) -> None:
    """With an estimated constant the prior of it is wide, and the density that of the sum."""
    study = study_of(RIGHT, mean=mean)
    frame = study.measurements
    points = frame[["x"]].to_numpy()
    values = frame["value"].to_numpy()
    covariance = RIGHT(points) + NOISE * np.eye(len(points))
    if mean is None:
        covariance += 9.0 * 2.0
    log_density = -0.5 * values @ np.linalg.solve(covariance, values)
    log_density -= 0.5 * np.linalg.slogdet(covariance)[1]
    found = _log_evidence(study._learner.surrogate.freeze().members[0])
    # How far the constant is from zero counts little in a wide prior.
    assert found == pytest.approx(log_density, abs=1e-6 if mean is not None else 0.1)


@pytest.mark.parametrize(
    "settings",
    [{"exact_model": True}, {"policy": tv.TruVaR(beta=TheoremBeta(0.1), slack=0.1)}],
    ids=["exact_model", "theorem"],
)
def test_an_exact_model_and_the_theorem_take_the_kernel_as_it_is(settings: Any) -> None:
    study = study_of(TOO_SMOOTH, 20, **settings)
    inputs = inputs_of(study)
    assert len(inputs.posterior.members) == 1
    mean, variance = study._learner.surrogate.moments
    np.testing.assert_array_equal(inputs.means[0], mean)
    np.testing.assert_array_equal(inputs.variances[0], variance)


def test_few_measurements_do_not_tell_kernels_apart() -> None:
    assert len(inputs_of(study_of(RIGHT, MIN_TO_COMPARE - 1)).posterior.members) == 1
    assert len(inputs_of(study_of(RIGHT, MIN_TO_COMPARE)).posterior.members) > 1


def test_a_model_of_no_weight_has_no_member() -> None:
    """One of 1e-22 would have no draws."""
    shares = inputs_of(study_of(TOO_SMOOTH, 30)).posterior.shares
    assert shares.sum() == pytest.approx(1.0)
    assert shares.min() > MIN_WEIGHT / 100


def test_probabilities_do_not_depend_on_the_unit() -> None:
    unit = 2.0**16
    values = drawn(2)
    plain = study_of(RIGHT, values=values).result().probability
    study = tv.Study(
        LINE,
        tv.LevelSet(0.3 * unit),
        kernel=ConstantKernel(unit**2) * RIGHT,
        mean=0.0,
        noise=NOISE * unit**2,
    )
    for row in np.random.default_rng(0).permutation(len(LINE))[:14]:
        study.tell(LINE.point(int(row)), float(unit * values[row]))
    np.testing.assert_allclose(study.result().probability, plain, atol=1e-6)


def test_values_given_as_exact_stay_exact() -> None:
    study = study_of(RIGHT, values=np.sin(6 * LINE.points[:, 0]), noise=0.0)
    frame = study.measurements
    means, variances = inputs_of(study).posterior.predict(frame[["x"]].to_numpy())
    values = frame["value"].to_numpy()
    np.testing.assert_allclose(means, np.broadcast_to(values, means.shape), atol=1e-4)
    assert variances.max() < 1e-6


# -- the setting
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_stored_study_reopens_with_its_setting(is_exact: bool, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'study.db'}"
    study = study_of(TOO_SMOOTH, 20, store=store, name="line", exact_model=is_exact)
    again = tv.load(store, "line")
    assert (len(inputs_of(again).posterior.members) == 1) == is_exact
    np.testing.assert_array_equal(again.result().probability, study.result().probability)


def test_the_setting_is_stored_only_where_it_is_given() -> None:
    """Earlier releases store and read studies without it."""
    assert "exact_model" not in study_of(RIGHT, 1)._state.config.to_details()
    assert study_of(RIGHT, 1, exact_model=True)._state.config.to_details()["exact_model"] is True


@pytest.mark.parametrize("given", ["yes", 1, None])
def test_anything_but_true_or_false_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^exact_model must be"):
        study_of(RIGHT, 0, exact_model=given)
