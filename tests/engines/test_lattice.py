"""Bounds on weighted sums from nodes on a lattice, against sums in extended precision."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.engines import _lattice as lattice
from truvar.engines import lazy
from truvar.engines._lattice import Lattice, LatticeBounds, lattice_bounds
from truvar.engines._products import Convolution
from truvar.models.posterior import Posterior

KERNELS = {"matern52": Matern([0.3, 0.5, 0.7], nu=2.5), "rbf": RBF([0.2, 0.4, 0.5])}
DOMAINS = {
    "line": {"x": 200},
    "plane": {"x": 41, "y": 37},
    "space": {"x": 9, "y": 12, "z": 11},
}


def problem(layout, kernel, steps):
    rng = np.random.default_rng(steps)
    sizes = DOMAINS[layout]
    axes = {name: np.linspace(0, 1, n) for name, n in sizes.items()}
    domain = tv.Domain.grid(**axes)
    known = KERNELS[kernel]
    known = type(known)(
        known.length_scale[: len(sizes)], **({"nu": 2.5} if kernel == "matern52" else {})
    )
    made = Posterior(ConstantKernel(2.0) * known, domain.points)
    for site in rng.permutation(len(domain))[:steps]:
        made.add(domain.points[site], 1e-4, int(site))
        made.observe(0.0)
    return domain, made


def exact_sums(made, w):
    v = made.factor.v.astype(np.longdouble)
    prior = np.asarray(made.k(made.sites, made.sites), np.longdouble)
    return w.astype(np.longdouble) @ (prior - v.T @ v) ** 2


@pytest.fixture
def few_nodes(monkeypatch):
    monkeypatch.setattr(lattice, "MAX_NODES", 300)
    monkeypatch.setattr(lattice, "MAX_HEAVY", 12)


@pytest.mark.usefixtures("few_nodes")
@pytest.mark.parametrize(("layout", "kernel", "steps"), list(product(DOMAINS, KERNELS, [0, 5, 40])))
def test_sums_are_within_the_error_of_their_estimates_at_every_level(
    layout, kernel, steps, monkeypatch
):
    monkeypatch.setattr(lattice, "MAX_NODES", {"line": 30, "plane": 300, "space": 900}[layout])
    domain, made = problem(layout, kernel, steps)
    bounds = lattice_bounds(made, domain)
    assert isinstance(bounds, LatticeBounds)
    w = np.random.default_rng(1).random(len(domain)) / made.variance
    some = np.random.default_rng(2).permutation(len(domain))[:60]
    for pending in range(3):
        exact = exact_sums(made, w)
        estimate, error = bounds.bounds(w, made.pending_variance)
        assert (np.abs(estimate - exact) <= error).all()
        widest = float(error[some].max())
        level = 1
        while (found := bounds.refine(some, level, made.pending_variance)) is not None:
            assert (np.abs(found[0] - exact[some]) <= found[1]).all()
            assert found[1].max() <= widest
            widest = float(found[1].max())
            level += 1
        if pending == 1:
            made.drop_pending()
        else:
            made.add(domain.points[7 + pending], 1e-4, 7 + pending)


def test_even_weights_have_close_bounds_and_a_closer_look_makes_them_closer(monkeypatch):
    monkeypatch.setattr(lattice, "MAX_NODES", 400)
    domain, made = problem("plane", "matern52", 10)
    bounds = lattice_bounds(made, domain)
    exact = exact_sums(made, np.ones(len(domain)))
    _, error = bounds.bounds(np.ones(len(domain)), made.pending_variance)
    everyone = np.arange(len(domain))
    _, closer = bounds.refine(everyone, 1, made.pending_variance)
    assert error.max() < 0.1 * exact.max()
    assert closer.max() < 0.5 * error.max()


@pytest.mark.usefixtures("few_nodes")
def test_a_peak_of_the_weights_does_not_widen_the_bounds():
    domain, made = problem("plane", "matern52", 10)
    bounds = lattice_bounds(made, domain)
    w = np.ones(len(domain))
    _, before = bounds.bounds(w, made.pending_variance)
    w[777] = 100.0
    estimate, after = bounds.bounds(w, made.pending_variance)
    assert len(bounds._heavy) == 12
    assert (np.abs(estimate - exact_sums(made, w)) <= after).all()
    assert after.max() < 1.5 * before.max()


def test_the_error_of_interpolation_is_that_of_the_squared_kernel():
    axes = [np.linspace(0, 1, 21), np.linspace(0, 2, 31)]
    nodes = Lattice(axes, [4, 3])
    points = nodes.points(np.arange(np.prod(nodes.shape)))
    x = np.array([[axes[0][9], axes[1][14]]])
    omega = np.outer(nodes.matrices()[0][9], nodes.matrices()[1][14]).ravel()
    kernel = Matern([0.4, 0.6], nu=2.5)
    squared = 1 - 2 * omega @ kernel(points, x).ravel() ** 2 + omega @ kernel(points) ** 2 @ omega
    found = nodes.errors(tv.models.kernels.Stationary(5, 3.0, np.array([0.4, 0.6])), 0.0)
    assert found[9 % 4, 14 % 3] == pytest.approx(np.sqrt(squared), rel=1e-6)
    assert omega.sum() == pytest.approx(1)
    assert omega @ points == pytest.approx(x[0])


@pytest.mark.parametrize("shape", [(9,), (8, 5), (4, 3, 6), (7, 1)])
def test_a_quadratic_form_by_fft_is_the_sum(shape):
    rng = np.random.default_rng(0)
    points = np.stack(
        [m.ravel() for m in np.meshgrid(*map(np.arange, shape), indexing="ij")], axis=1
    )
    kernel = RBF(1.3)
    table = kernel(np.zeros((1, len(shape))), points).reshape(shape)
    w = rng.standard_normal(shape)
    expected = w.ravel() @ kernel(points) @ w.ravel()
    assert Convolution(table).quadratic_form(w) == pytest.approx(expected, rel=1e-9)


def test_rough_kernels_tables_and_irregular_grids_have_no_lattice():
    domain, _ = problem("plane", "matern52", 0)
    assert lattice_bounds(Posterior(Matern(0.3, nu=1.5), domain.points), domain) is None
    assert lattice_bounds(Posterior(Matern(0.3, nu=0.5), domain.points), domain) is None
    uneven = tv.Domain.grid(x=np.linspace(0, 1, 30) ** 2, y=np.linspace(0, 1, 30))
    assert lattice_bounds(Posterior(Matern(0.3, nu=2.5), uneven.points), uneven) is None
    table = tv.Domain.table({"x": [0.0, 1.0, 2.0], "y": [0.0, 3.0, 1.0]}, columns=["x", "y"])
    assert lattice_bounds(Posterior(Matern(0.3, nu=2.5), table.points), table) is None


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_choices_with_a_lattice_are_within_the_tolerance_of_the_best(monkeypatch, tolerance):
    monkeypatch.setattr(lazy, "MAX_EXACT_SITES", 0)
    monkeypatch.setattr(lattice, "MAX_NODES", 200)
    monkeypatch.setattr(lazy.Lazy, "_prefers_norms", lambda *_: False)
    used = []
    original = LatticeBounds.bounds
    monkeypatch.setattr(
        LatticeBounds, "bounds", lambda self, w, v: used.append(1) or original(self, w, v)
    )
    domain = tv.Domain.grid(x=np.linspace(0, 1, 30), y=np.linspace(0, 1, 28))
    known = {"kernel": Matern(0.3, nu=2.5), "mean": 0.0, "noise": 1e-3, "policy": "weightedtruvar"}

    def engine(posterior, domain):
        return lazy.Lazy(posterior, domain, tolerance=tolerance)

    by_lattice = tv.Study(domain, tv.LevelSet(0.3), engine=engine, **known)
    for _ in range(20):
        dense = tv.Study(domain, tv.LevelSet(0.3), engine="dense64", **known)
        for row in by_lattice.measurements.itertuples():
            dense.tell({"x": row.x, "y": row.y}, row.value)
        one = by_lattice.ask()
        best = dense.ask()
        gap = by_lattice.policy_context().engine.optimality_gap
        assert gap <= tolerance
        assert best.gain <= one.gain * (1 + gap + 1e-9)
        by_lattice.tell(one, float(np.sin(5 * one.point["x"]) * np.cos(4 * one.point["y"])))
    assert len(used) == 20
