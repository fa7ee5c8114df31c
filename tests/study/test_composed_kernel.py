"""`Learned(kernel=ConstantKernel() * RBF() + ...)`: hyperparameters of a composed kernel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    Sum,
    WhiteKernel,
)

import truvar as tv
from truvar.exceptions import InvalidModelError
from truvar.models.fit import fit_kernel
from truvar.models.hyperparameters._fitted_kernel import with_distances_in_extents

LINE = tv.Domain.grid(x=np.linspace(0, 1000, 61))
SUM = ConstantKernel() * RBF() + ConstantKernel() * Matern(nu=1.5)


def trend(point):
    return 50 + 10 * np.sin(point["x"] / 150) + 0.01 * point["x"]


def told(kernel=SUM, steps=12, goal=None, noise_sd=0.1, **options):
    study = tv.Study(LINE, goal or tv.LevelSet(55), kernel=tv.Learned(kernel=kernel), **options)
    rng = np.random.default_rng(3)
    study.run(lambda point: trend(point) + noise_sd * rng.normal(), steps=steps)
    return study


@pytest.fixture(scope="module")
def study():
    return told()


def test_the_hyperparameters_follow_the_values_and_the_form_stays(study):
    assert isinstance(study.kernel, Sum)
    assert [type(part).__name__ for part in (study.kernel.k1.k2, study.kernel.k2.k2)] == [
        "RBF",
        "Matern",
    ]
    assert not np.allclose(study.kernel.theta, SUM.theta)
    assert 10.0 <= study.kernel.k1.k2.length_scale <= 10_000.0  # 0.01 to 10 extents
    truth = np.array([trend(LINE.point(k)) for k in range(len(LINE))])
    error = np.sqrt(np.mean((study.result().mean - truth) ** 2))
    assert error < 0.3 * truth.std()


def test_the_given_object_is_not_changed(study):
    assert SUM.k1.k2.length_scale == 1.0
    assert study.policy is not None


def test_events_replay_to_the_same_study(study):
    again = tv.Study.from_json(study.to_json())
    assert again.kernel == study.kernel
    np.testing.assert_array_equal(again.result().mean, study.result().mean)
    assert again.result().certificate.statement == study.result().certificate.statement
    assert again.ask() == study.ask()


def test_a_stored_study_opens_again(tmp_path):
    options = {"store": f"sqlite:///{tmp_path}/lab.db", "name": "sum"}
    before = told(steps=8, **options)
    after = tv.load(options["store"])
    assert after.kernel == before.kernel
    assert (
        tv.Study(
            LINE, tv.LevelSet(55), kernel=tv.Learned(kernel=SUM), if_exists="load", **options
        ).steps
        == 8
    )


@pytest.mark.parametrize(
    "kernel",
    [
        ConstantKernel() * RBF(),
        RBF(),
        RBF() * ConstantKernel(),
        ConstantKernel() * Matern(nu=2.5),
        Matern([1.0], nu=0.5),
    ],
    ids=repr,
)
def test_a_form_that_has_a_name_is_stored_and_opened_like_any_other(kernel, tmp_path):
    options = {"store": f"sqlite:///{tmp_path}/lab.db", "name": "one"}
    before = told(kernel, steps=7, **options)
    for after in (
        tv.load(options["store"]),
        tv.Study.from_json(before.to_json()),
        tv.Study(
            LINE, tv.LevelSet(55), kernel=tv.Learned(kernel=kernel), if_exists="load", **options
        ),
    ):
        assert after.kernel == before.kernel
        np.testing.assert_array_equal(after.result().mean, before.result().mean)
    after = tv.Study.from_json(before.to_json())
    for study in (before, after):
        study.run(trend, steps=9)
    assert after.kernel == before.kernel
    assert after.measurements.equals(before.measurements)


def test_a_form_that_has_a_name_is_stored_for_one_of_several_quantities():
    goal = tv.AllOf(tv.LevelSet(0.5, of="a"), tv.LevelSet(0.5, of="b"))
    own = tv.Quantity(kernel=tv.Learned(kernel=ConstantKernel() * RBF()))
    study = tv.Study(LINE, goal, quantities={"a": own})
    assert len(tv.Study.from_json(study.to_json()).domain) == len(LINE)


def test_claims_are_less_certain_than_the_fitted_kernel_alone(study):
    surrogate = study._state.learner.surrogate
    claimed = surrogate.freeze_average()
    assert len(claimed.members) > 10
    assert claimed.shares.sum() == pytest.approx(1.0)
    shares = claimed.shares
    means, variances = claimed.predict(LINE.points)
    mean = shares @ means
    spread = np.sqrt(shares @ (variances + (means - mean) ** 2))
    fitted = np.sqrt(surrogate.predict(LINE.points)[1])
    assert spread.mean() > fitted.mean()


def test_strict_statements_hold_as_often_as_they_say():
    """If each is true with 95 %, four of ten are wrong in one of 970 runs."""
    kernel = ConstantKernel(9.0) * RBF(120.0)
    root = np.linalg.cholesky(kernel(LINE.points) + 1e-8 * np.eye(len(LINE)))
    n_wrong = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = root @ rng.normal(size=len(LINE))
        study = tv.Study(
            LINE, tv.LevelSet(0.5), kernel=tv.Learned(kernel=ConstantKernel() * RBF()), seed=seed
        )
        study.run(
            lambda point, truth=truth, rng=rng: (
                truth[LINE.nearest(np.array([point["x"]]))] + 0.3 * rng.normal()
            ),
            steps=10,
        )
        classes = study.result().classify()
        is_right = (truth[classes.above] > 0.5).all() and (truth[classes.below] <= 0.5).all()
        n_wrong += not is_right
    assert n_wrong <= 3


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**20])
def test_units_of_the_values_do_not_matter(factor):
    kernel = tv.Learned(kernel=ConstantKernel() * RBF())
    one = tv.Study(LINE, tv.Maximize(), kernel=kernel)
    other = tv.Study(LINE, tv.Maximize(), kernel=kernel)
    for row in range(0, 60, 6):
        value = trend(LINE.point(row))
        one.tell(LINE.point(row), value)
        other.tell(LINE.point(row), factor * value)
    np.testing.assert_allclose(other.result().mean / factor, one.result().mean, rtol=1e-6)
    assert other.kernel.k2.length_scale == pytest.approx(one.kernel.k2.length_scale, rel=1e-4)


def test_given_noise_and_mean_are_kept():
    study = told(noise=0.04, mean=50.0, steps=8)
    assert study._state.learner.surrogate.noise == 0.04
    assert study.result().steps == 8


def test_default_bounds_are_in_extents_of_the_domain():
    extent = np.array([1000.0, 2.0])
    kernel = RBF([1.0, 1.0]) + RBF(1.0, (0.5, 3.0)) + RBF(5.0, "fixed") + ExpSineSquared()
    found = with_distances_in_extents(kernel, extent)
    np.testing.assert_allclose(
        found.get_params()["k1__k1__k1__length_scale_bounds"], [[10, 10_000], [0.02, 20]]
    )
    assert found.get_params()["k1__k1__k1__length_scale"].tolist() == [300.0, 1.0]
    assert found.get_params()["k1__k1__k2__length_scale_bounds"] == (0.5, 3.0)
    assert found.get_params()["k1__k2__length_scale_bounds"] == "fixed"
    assert found.get_params()["k2__length_scale_bounds"] == (0.1, 10.0)
    assert found.get_params()["k2__periodicity_bounds"] == pytest.approx((0.2, 2000.0))


def test_the_noise_prior_keeps_a_flexible_kernel_from_every_value():
    rng = np.random.default_rng(0)
    points = np.linspace(0, 1, 14)[:, None]
    values = np.sin(6 * points[:, 0]) + 0.2 * rng.normal(size=14)
    kernel = with_distances_in_extents(ConstantKernel() * RBF(), np.array([1.0]))
    plain = fit_kernel(kernel, points, values, None, None, 0)
    weighed = fit_kernel(kernel, points, values, None, None, 0, penalises_noise=True)
    assert 1e-4 < weighed.noise < 0.4
    assert weighed.noise != plain.noise


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": tv.Learned(kernel=RBF() + WhiteKernel())}, "contains a WhiteKernel"),
        ({"kernel": tv.Learned(kernel=RBF([1.0, 1.0]))}, "does not fit points with 1 columns"),
        ({"kernel": tv.Learned(kernel=RBF()), "outcome": "binary"}, "with an outcome"),
        (
            {"kernel": tv.Learned(kernel=RBF()), "tasks": tv.Tasks(names=["a", "b"])},
            "with tasks",
        ),
        ({"kernel": tv.Learned(kernel=RBF()), "transform": "log"}, "marginalise=False"),
    ],
)
def test_what_a_composed_kernel_cannot_do_is_refused(arguments, message):
    with pytest.raises(InvalidModelError, match=message):
        tv.Study(LINE, tv.LevelSet(0.5), **arguments)


def test_categories_are_refused():
    domain = tv.Domain.grid(x=np.linspace(0, 1, 5), solvent=tv.Categorical(["a", "b"]))
    with pytest.raises(InvalidModelError, match="numbers only"):
        tv.Study(domain, tv.Maximize(), kernel=tv.Learned(kernel=RBF()))


@pytest.mark.parametrize("kernel", [RBF, 3, "rbv"])
def test_what_is_no_kernel_is_refused(kernel):
    with pytest.raises(InvalidModelError, match="kernel"):
        tv.Learned(kernel=kernel)
