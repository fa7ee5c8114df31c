"""BaMSOO finds optima in few evaluations, is SOO when the model knows nothing, and measures no
hopeless cell."""

from math import log, pi, sqrt

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv

BOX = tv.Domain.box(x=(-5, 10), y=(0, 15), representers=100)
CUBE = tv.Domain.box(x=(0, 1), y=(0, 1), z=(0, 1), representers=128)


def branin(point):
    x = point["x"]
    y = point["y"]
    return (
        (y - 5.1 / (4 * pi**2) * x * x + 5 / pi * x - 6) ** 2
        + 10 * (1 - 1 / (8 * pi)) * np.cos(x)
        + 10
    )


def hartmann3(point):
    rates = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    places = 1e-4 * np.array(
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    )
    x = np.array([point["x"], point["y"], point["z"]])
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(rates * (x - places) ** 2).sum(axis=1)))


def evaluations(function, optimum, study, most):
    """Return the number of evaluations until one is within 0.01 of the optimum."""
    for count in range(1, most + 1):
        suggestion = study.ask()
        value = function(suggestion.point)
        if abs(value - optimum) < 1e-2:
            return count
        study.tell(suggestion, value)
    return most + 1


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(ConstantKernel(1e4) * RBF([4, 8]), id="smooth"),
        pytest.param(tv.Learned("matern52", refit_every=5), id="learned"),
        pytest.param(ConstantKernel(1e5) * RBF([4, 4]), id="other scales", marks=pytest.mark.slow),
        pytest.param(
            ConstantKernel(1e4) * Matern([5, 10], nu=2.5), id="rough", marks=pytest.mark.slow
        ),
    ],
)
def test_branin_is_minimised_within_100_evaluations(kernel):
    study = tv.Study(BOX, tv.Minimize(), kernel=kernel, noise=0.0, policy="bamsoo")
    assert evaluations(branin, 0.397887, study, 100) <= 100


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(ConstantKernel(1.0) * RBF([1, 0.3, 0.2]), id="smooth"),
        pytest.param(tv.Learned("rbf", refit_every=5), id="learned"),
        pytest.param(ConstantKernel(1.0) * Matern(0.5, nu=2.5), id="rough", marks=pytest.mark.slow),
    ],
)
def test_hartmann_3_is_minimised_within_150_evaluations(kernel):
    study = tv.Study(CUBE, tv.Minimize(), kernel=kernel, noise=0.0, policy="bamsoo")
    assert evaluations(hartmann3, -3.86278, study, 150) <= 150


def soo(function, count):
    """Simultaneous optimistic optimisation (Munos 2011) on the unit square, thirds along the longer
    side: the points in
    the order of their evaluation."""
    seen = {}

    def value(x, y):
        key = round(x, 9), round(y, 9)
        if key not in seen:
            seen[key] = function({"x": x, "y": y})
        return seen[key]

    def cell(x, y, width, height):
        return value(x + width / 2, y + height / 2), x, y, width, height

    leaves = {0: [cell(0.0, 0.0, 1.0, 1.0)]}
    expansions = 0
    while len(seen) < count:
        floor = -np.inf
        for depth in range(min(max(leaves), int(sqrt(expansions))) + 1):
            if not leaves.get(depth):
                continue
            best = max(leaves[depth], key=lambda leaf: leaf[0])
            if best[0] < floor:
                continue
            floor = best[0]
            leaves[depth].remove(best)
            expansions += 1
            _, x, y, width, height = best
            for k in range(3):
                if width >= height - 1e-12:
                    child = cell(x + k * width / 3, y, width / 3, height)
                else:
                    child = cell(x, y + k * height / 3, width, height / 3)
                leaves.setdefault(depth + 1, []).append(child)
    return list(seen)[:count]


def test_with_a_model_that_excludes_nothing_it_is_soo():
    def hills(point):
        return np.sin(5 * point["x"]) + np.cos(3 * point["y"]) + 0.3 * point["x"] * point["y"]

    study = tv.Study(
        tv.Domain.box(x=(0, 1), y=(0, 1), representers=16),
        tv.Maximize(),
        kernel=ConstantKernel(100.0) * RBF(1e-4),  # no point tells of any other
        mean=0.0,
        noise=0.0,
        policy="bamsoo",
    )
    study.run(hills, steps=60)
    chosen = study.measurements[["x", "y"]].to_numpy()
    assert chosen == pytest.approx(np.array(soo(hills, 60)), abs=1e-8)


def test_a_cell_is_measured_only_if_its_upper_bound_reaches_the_best_value():
    study = tv.Study(
        BOX,
        tv.Minimize(),
        kernel=ConstantKernel(1e4) * RBF([4, 8]),
        mean=0.0,
        noise=0.0,
        policy="bamsoo",
    )
    spared = 0
    for _ in range(25):
        suggestion = study.ask()
        posterior = study._learner.posterior
        mean, variance = posterior.predict(
            np.array([[suggestion.point["x"], suggestion.point["y"]]])
        )
        if study.steps:
            n = 10_000  # cells at most
            reach = -mean[0] + sqrt(2 * log(pi**2 * n**2 / (6 * 0.05)) * variance[0])
            assert reach >= -study.measurements.iloc[:, -1].min() - 1e-9
        study.tell(suggestion, branin(suggestion.point))
    points = study.measurements[["x", "y"]].to_numpy()
    assert len(np.unique(points.round(9), axis=0)) == 25  # and none twice
    for x, y in soo(lambda p: -branin({"x": -5 + 15 * p["x"], "y": 15 * p["y"]}), 25):
        spared += not any(np.allclose([-5 + 15 * x, 15 * y], point) for point in points)
    assert spared > 0  # SOO would have measured others


def test_in_a_finite_domain_every_point_is_measured_at_most_once_until_none_is_left():
    rng = np.random.default_rng(3)
    domain = tv.Domain.grid(x=np.sort(rng.random(6)), y=np.sort(rng.random(5)))
    study = tv.Study(
        domain,
        tv.Maximize(monotone=False),
        kernel=ConstantKernel(100.0) * RBF(1e-4),
        mean=0.0,
        noise=1e-9,
        policy="bamsoo",
        exact_model=True,
    )
    chosen = []
    while len(chosen) < len(domain):
        suggestion = study.ask()
        chosen.append(suggestion.index)
        study.tell(suggestion, float(rng.random()))
    assert sorted(chosen) == list(range(len(domain)))
    with pytest.raises(tv.Finished):
        study.ask()


def test_a_batch_goes_on_as_if_the_posterior_mean_had_been_measured():
    def made():
        return tv.Study(
            BOX,
            tv.Minimize(),
            kernel=ConstantKernel(1e4) * RBF([4, 8]),
            mean=0.0,
            noise=0.0,
            policy="bamsoo",
        )

    waiting = made()
    lied = made()
    batch = waiting.ask(6)
    for suggestion in batch:
        again = lied.ask()
        assert again.point == pytest.approx(suggestion.point, abs=1e-9)
        mean, _ = lied._learner.posterior.predict(np.array([list(again.point.values())]))
        lied.tell(again, float(mean[0]))


def test_the_tree_follows_from_what_was_told_alone():
    first = tv.Study(
        BOX,
        tv.Minimize(),
        kernel=ConstantKernel(1e4) * RBF([4, 8]),
        mean=0.0,
        noise=0.0,
        policy="bamsoo",
    )
    first.run(branin, steps=20)
    second = tv.Study(BOX, tv.Minimize(), kernel=first.kernel, mean=0.0, noise=0.0, policy="bamsoo")
    for x, y in reversed(first.measurements[["x", "y"]].to_numpy().tolist()):
        second.tell({"x": x, "y": y}, branin({"x": x, "y": y}))
    assert second.ask().point == pytest.approx(first.ask().point, abs=1e-9)
