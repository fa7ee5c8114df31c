"""Sobol indices against closed forms and a naive computation."""

from __future__ import annotations

import numpy as np

from truvar._typing import Array
from truvar.inference.sensitivity import sobol_indices

SIDE = 24  # values of each column of the naive computation


def naive_indices(f: object, axes: list[Array]) -> tuple[Array, Array]:
    """Return first-order and total indices on a full grid, by conditional means with loops over
    the columns."""
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = f(mesh.reshape(-1, len(axes))).reshape([len(axis) for axis in axes])  # type: ignore[operator]
    first = []
    total = []
    for k in range(len(axes)):
        others = tuple(j for j in range(len(axes)) if j != k)
        first.append(values.mean(axis=others).var() / values.var())
        total.append(1 - values.mean(axis=k).var() / values.var())
    return np.array(first), np.array(total)


def test_indices_of_a_function_with_an_interaction_are_those_of_the_naive_computation() -> None:
    def f(x: Array) -> Array:
        return np.asarray(np.sin(3 * x[:, 0]) + 2 * x[:, 1] * x[:, 2] + 0.1 * x[:, 3])

    axes = [np.linspace(0, 1, SIDE) for _ in range(4)]
    first, total = naive_indices(f, axes)
    indices = sobol_indices(f, np.column_stack(axes))
    np.testing.assert_allclose(indices.first, first, atol=0.03)
    np.testing.assert_allclose(indices.total, total, atol=0.03)


def test_indices_of_the_ishigami_function_are_the_known_ones() -> None:
    def f(x: Array) -> Array:
        return np.asarray(
            np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
        )

    axis = np.linspace(-np.pi, np.pi, 4001)
    indices = sobol_indices(f, np.column_stack([axis] * 3))
    np.testing.assert_allclose(indices.first, [0.3139, 0.4424, 0.0], atol=0.05)
    np.testing.assert_allclose(indices.total, [0.5576, 0.4424, 0.2437], atol=0.05)


def test_a_constant_function_has_no_important_column() -> None:
    indices = sobol_indices(
        lambda x: np.ones(len(x)), np.random.default_rng(0).uniform(size=(50, 3))
    )
    assert indices.first.tolist() == [0.0] * 3
    assert indices.total.tolist() == [0.0] * 3
    assert indices.sd == 0.0
