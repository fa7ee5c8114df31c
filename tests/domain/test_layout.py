"""Tables whose rows are a grid are recognised as one, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

import truvar as tv
from truvar.domain.grid import mesh
from truvar.domain.layout import grid_layout
from truvar.engines._lattice import lattice_bounds
from truvar.engines._nodes import node_bounds
from truvar.engines._products import GridProduct, prior_product
from truvar.exceptions import InvalidDomainError
from truvar.models.posterior import Posterior

AXES = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.sampled_from([0.1, 1 / 3, 1.0, 250.0]),
        st.sampled_from([-7.3, 0.0, 1e3]),
    ),
    min_size=1,
    max_size=3,
)


def grid_points(axes):
    return mesh([first + step * np.arange(count) for count, step, first in axes])


def table_of(points):
    columns = "xyz"[: points.shape[1]]
    return tv.Domain.table(dict(zip(columns, points.T, strict=True)), columns=list(columns))


@settings(max_examples=60, deadline=None)
@given(AXES, st.integers(0, 2**32 - 1), st.floats(0.0, 0.3))
def test_permuted_rows_with_some_missing_are_a_grid(axes, seed, missing):
    points = grid_points(axes)
    rng = np.random.default_rng(seed)
    kept = max(1, int(np.ceil(len(points) * (1 - missing))))
    points = points[rng.permutation(len(points))[:kept]]
    layout = grid_layout(points)
    if layout is None:  # so few rows of a small grid are left that its axes have become longer gaps
        assert kept < len(grid_points(axes))
        return
    at = layout.indices(np.arange(len(points)))
    found = np.stack([axis[index] for axis, index in zip(layout.axes, at, strict=True)], axis=1)
    np.testing.assert_array_equal(found, points)  # to the last bit: they are the user's
    values = rng.normal(size=len(points))
    np.testing.assert_array_equal(layout.gather(layout.spread(values)), values)
    for axis in layout.axes:
        gaps = np.diff(axis)
        np.testing.assert_allclose(gaps, gaps[:1].repeat(len(gaps)), rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 1e-6, 1e-3, 0.1]))
def test_jittered_coordinates_are_not_a_grid(seed, jitter):
    points = mesh([np.linspace(0, 1, 12), np.linspace(0, 1, 9)])
    assert grid_layout(points) is not None
    rng = np.random.default_rng(seed)
    assert grid_layout(points + jitter * rng.uniform(-0.05, 0.05, points.shape)) is None


def test_scattered_sparse_and_repeated_points_are_not_a_grid():
    rng = np.random.default_rng(0)
    assert grid_layout(rng.random((200, 2))) is None
    points = mesh([np.arange(20.0), np.arange(20.0)])
    assert grid_layout(points[rng.permutation(400)[:150]]) is None
    assert grid_layout(np.vstack([points, points[:1]])) is None
    uneven = mesh([np.linspace(0, 1, 20) ** 2, np.arange(20.0)])
    assert grid_layout(uneven) is None


def test_categories_and_boxes_have_no_layout_and_grids_their_own():
    box = tv.Domain.box(x=(0.0, 1.0), y=(0.0, 1.0), z=(0.0, 1.0))
    assert box.layout is None
    table = tv.Domain.table(
        {"x": [0.0, 0.0, 1.0, 1.0], "kind": list("abab")}, columns=["x", "kind"]
    )
    assert table.layout is None
    grid = tv.Domain.grid(x=[0.0, 1.0, 5.0], y=[1.0, 2.0])
    assert grid.layout is not None
    assert grid.layout.cells is None


@pytest.mark.parametrize("missing", [0, 40])
@pytest.mark.parametrize("kernel", [Matern(0.3, nu=2.5), RBF(0.3)], ids=["matern52", "rbf"])
def test_bounds_of_a_table_on_a_grid_hold_in_the_order_of_its_rows(kernel, missing):
    rng = np.random.default_rng(3)
    points = mesh([np.linspace(0, 1, 24), np.linspace(0, 2, 21)])
    points = points[rng.permutation(len(points))[missing:]]
    domain = table_of(points)
    posterior = Posterior(kernel, domain.points)
    for site in rng.permutation(len(domain))[:6]:
        posterior.add(domain.points[site], 1e-4, int(site))
        posterior.observe(0.0)
    prior = posterior.k(domain.points, domain.points)
    product = prior_product(posterior, domain)
    assert isinstance(product, GridProduct)
    weights = rng.uniform(0.0, 1.0, len(domain))
    found, error = product.multiply(weights)
    assert (np.abs(found - prior @ weights) <= error + 1e-12).all()
    v = posterior.factor.v
    sums = weights @ (prior - v.T @ v) ** 2
    bounds = lattice_bounds(posterior, domain) or node_bounds(posterior, domain)
    assert bounds is not None
    for made in (lattice_bounds(posterior, domain), node_bounds(posterior, domain)):
        if made is not None:
            estimate, off = made.bounds(weights, posterior.pending_variance)
            assert (np.abs(estimate - sums) <= off + 1e-10).all()


@pytest.mark.parametrize("missing", [0, 7])
def test_a_table_on_a_grid_is_studied_like_the_grid_by_its_own_rows(missing):
    rng = np.random.default_rng(1)
    axes = [np.linspace(0, 1, 19), np.linspace(0, 1, 17)]
    points = mesh(axes)
    order = rng.permutation(len(points))[missing:]
    labels = [f"row {i}" for i in order]

    def value(point):
        return float(np.sin(6 * point[0]) + np.cos(5 * point[1]))

    def run(domain, engine):
        study = tv.Study(
            domain,
            tv.LevelSet(0.4),
            kernel=Matern(0.3, nu=2.5),
            mean=0.0,
            noise=1e-4,
            engine=engine,
        )
        chosen = []
        for _ in range(8):
            suggestion = study.ask()
            point = domain.points[suggestion.index]
            chosen.append(suggestion.index)
            study.tell(suggestion, value(point))
        return chosen, study.result()

    table = tv.Domain.table(
        {"name": labels, "x": points[order, 0], "y": points[order, 1]},
        columns=["x", "y"],
        label="name",
    )
    lazily, result = run(table, "lazy")
    densely, other = run(table, "dense")
    assert lazily == densely
    np.testing.assert_allclose(result.mean, other.mean, atol=1e-9)
    np.testing.assert_array_equal(table.points, points[order])
    assert table.label(lazily[0]) == labels[lazily[0]]
    assert table.axes is None


def test_a_grid_that_does_not_fit_into_memory_is_refused():
    axis = np.arange(1_000_000)
    with pytest.raises(InvalidDomainError, match="got 1,000,000,000,000,000,000,000,000 points"):
        tv.Domain.grid(a=axis, b=axis, c=axis, d=axis)
