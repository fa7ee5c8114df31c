"""Kernels of categories: the Hamming distance inside a stationary kernel, its likelihood,
gradient and fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

import truvar as tv
from truvar.exceptions import InvalidModelError
from truvar.models.hyperposterior import MarginalLikelihood
from truvar.models.kernels import Stationary

SHAPES = {
    0: lambda r: np.exp(-0.5 * r**2),
    1: lambda r: np.exp(-r),
    3: lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    5: lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
}


def naive_kernel(x, y, lengthscales, categorical, smoothness, variance):
    """Transcribe the definition, one pair at a time."""
    out = np.empty((len(x), len(y)))
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            square = 0.0
            for k, length in enumerate(lengthscales):
                distance = float(a[k] != b[k]) if k in categorical else a[k] - b[k]
                square += (distance / length) ** 2
            out[i, j] = variance * SHAPES[smoothness](np.sqrt(square))
    return out


def mixed_points(rng, n):
    """Return points with columns: number, four categories, number, two categories."""
    return np.column_stack(
        [rng.random(n), rng.integers(4, size=n), 2 * rng.random(n), rng.integers(2, size=n)]
    )


@pytest.mark.parametrize("smoothness", SHAPES)
def test_the_kernel_is_its_definition_and_positive_definite(smoothness):
    rng = np.random.default_rng(smoothness)
    x = mixed_points(rng, 25)
    y = mixed_points(rng, 40)
    lengthscales = np.array([0.3, 0.8, 0.5, 2.0])
    kernel = Stationary(smoothness, 1.7, lengthscales, categorical=(1, 3))
    expected = naive_kernel(x, y, lengthscales, (1, 3), smoothness, 1.7)
    assert np.allclose(kernel(x, y), expected, rtol=1e-12)
    assert np.allclose(kernel(y, x), expected.T, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel(y, y)).min() > -1e-9


def test_the_gradient_of_the_likelihood_is_that_of_differences():
    rng = np.random.default_rng(3)
    points = mixed_points(rng, 20)
    values = rng.standard_normal(20)
    likelihood = MarginalLikelihood(points, values, 5, categorical=(1, 3))
    theta = np.array([-0.5, 0.2, -0.3, 0.4, 0.1, -3.0])
    value, gradient = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(likelihood.value(theta))
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-5
        slope = (likelihood.value(theta + step) - likelihood.value(theta - step)) / 2e-5
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_categories_that_do_not_matter_get_long_length_scales():
    rng = np.random.default_rng(0)
    domain = tv.Domain.box(
        x=(0, 1), matters=["a", "b", "c"], idle=["d", "e", "f"], representers=200
    )
    study = tv.Study(domain, tv.Maximize(), noise=1e-4)
    height = {"a": 0.0, "b": 3.0, "c": -3.0}
    for row in rng.permutation(len(domain))[:40]:
        point = domain.point(int(row))
        study.tell(point, np.sin(6 * point["x"]) + height[point["matters"]])
    lengths = study.kernel.length_scale
    assert lengths[2] > 3 * lengths[1]
    points = [{"x": 0.3, "matters": name, "idle": "d"} for name in height]
    mean, _ = study.predict(points)
    assert np.allclose(mean, [np.sin(1.8) + height[name] for name in height], atol=0.15)


def test_a_known_kernel_takes_the_hamming_distance_too():
    domain = tv.Domain.grid(x=[0.0, 0.5, 1.0], kind=["a", "b", "c"])
    kernel = ConstantKernel(2.0) * Matern([0.4, 0.9], nu=2.5)
    study = tv.Study(domain, tv.Maximize(), kernel=kernel, mean=0.0, noise=0.1)
    expected = naive_kernel(domain.points, domain.points, [0.4, 0.9], (1,), 5, 2.0)
    assert np.allclose(study.kernel(domain.points), expected)
    study.tell({"x": 0.5, "kind": "b"}, 1.0)
    row = domain.locate({"x": 0.5, "kind": "b"})[0]
    assert np.allclose(study.result().mean, expected[:, row] / 2.1)
    with pytest.raises(InvalidModelError, match="a kernel of categories must be"):
        tv.Study(domain, tv.Maximize(), kernel=RBF(1.0) + RationalQuadratic(), mean=0.0, noise=0.1)
