"""The matrix-free engine: no bound ever falls below the sum that it bounds, rounding included.

Every bound is compared with its sum, computed in extended precision from the factor and kernel
values of the engine, in all states of a study: pending points, new epochs, hardly any noise, nearly
identical points.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, RationalQuadratic

import truvar as tv
from truvar.engines import engine_for
from truvar.engines._norms import Cells, ColumnNorms
from truvar.engines._products import GridProduct, InterpolatedProduct, LowRankProduct, prior_product
from truvar.engines.lazy import Lazy
from truvar.models.kernels import Coregionalized
from truvar.models.posterior import Posterior

GRID = tv.Domain.grid(x=np.linspace(0, 1, 17), y=np.linspace(2, 3, 13))
CUBE = tv.Domain.grid(x=np.linspace(0, 1, 6), y=np.linspace(0, 1, 5), z=np.linspace(0, 1, 7))
SCATTER = tv.Domain.table(
    pd.DataFrame(np.random.default_rng(3).uniform(size=(220, 2)), columns=["x", "y"])
)
LINE = tv.Domain.grid(x=np.geomspace(1e-3, 1, 200))
FIVE = tv.Domain.table(
    pd.DataFrame(np.random.default_rng(4).uniform(size=(200, 5)), columns=list("abcde"))
)


def with_near_duplicates(seed: int, gaps: tuple[float, ...]) -> tv.Domain:
    """Return points, the same points shifted by tiny gaps, and some more."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.1, 0.9, size=(30, 2))
    points = np.concatenate([*(base + gap for gap in (0.0, *gaps)), rng.uniform(size=(60, 2))])
    return tv.Domain.table(pd.DataFrame(points, columns=["x", "y"]))


CROWDED = with_near_duplicates(5, (1e-12, 1e-10, 1e-8, 1e-6))
DOMAINS = {
    "grid": GRID,
    "cube": CUBE,
    "plane": SCATTER,
    "line": LINE,
    "five columns": FIVE,
    "neighbours": CROWDED,
}


pytestmark = pytest.mark.usefixtures("small_cells")


def value(point: dict[str, float]) -> float:
    return float(sum(np.sin(5 * x + k) for k, x in enumerate(point.values())))


# -- products with the prior covariance
# --------------------------------------------------------------------------------

KERNELS: dict[str, Kernel] = {
    "rbf": RBF(0.2),
    "matern 5/2": ConstantKernel(2.3) * Matern(0.3, nu=2.5),
    "matern 3/2": Matern(0.3, nu=1.5),
    "matern 1/2": Matern(0.3, nu=0.5),
    "no compiled form": RationalQuadratic(0.3, 1.0) + ConstantKernel(0.5) * RBF(0.1),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_error_of_a_product_with_the_prior_covariance_is_within_its_bound(
    name: str, domain: tv.Domain
) -> None:
    posterior = Posterior(KERNELS[name], domain.points)
    product = prior_product(posterior, domain)
    rng = np.random.default_rng(0)
    prior = posterior.k(domain.points, domain.points).astype(np.longdouble)
    chosen = rng.random(len(domain)) < 0.7
    for weights in (rng.normal(size=len(domain)), np.where(chosen, prior[17].astype(float), 0.0)):
        found, error = product.multiply(weights)
        assert (np.abs(found - prior @ weights) <= error).all()
    weights = np.where(chosen, rng.uniform(0.0, 3.0, len(domain)), 0.0)
    squares = weights @ prior**2
    assert (product.squared_sums(weights) >= squares).all()
    assert (product.squared_sums(weights, cap=0.3) >= weights @ np.minimum(prior**2, 0.3)).all()
    if isinstance(product, GridProduct):
        np.testing.assert_allclose(product.squared_sums(weights), squares.astype(float), rtol=1e-9)


def test_the_method_of_a_product_follows_from_the_structure() -> None:
    def method(domain: tv.Domain, kernel: Kernel) -> type:
        return type(prior_product(Posterior(kernel, domain.points), domain))

    assert method(GRID, RBF(0.2)) is GridProduct
    assert method(LINE, RBF(0.2)) is InterpolatedProduct  # a grid that is not evenly spaced
    assert method(SCATTER, Matern(0.3, nu=2.5)) is InterpolatedProduct
    assert method(FIVE, RBF(1.0)) is LowRankProduct
    assert method(GRID, RBF(0.2) + RBF(0.7)) is LowRankProduct


def test_products_of_several_tasks() -> None:
    between = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.0], [-0.3, 0.0, 0.8]])
    n = len(GRID)
    sites = np.column_stack([np.tile(GRID.points, (3, 1)), np.repeat(np.arange(3), n)])
    posterior = Posterior(Coregionalized(RBF(0.2), between), sites, n_targets=n)
    product = prior_product(posterior, GRID)
    assert isinstance(product, GridProduct)
    prior = posterior.k(sites, sites[:n]).astype(np.longdouble)
    weights = np.random.default_rng(1).normal(size=n)
    found, error = product.multiply(weights)
    assert (np.abs(found - prior @ weights) <= error).all()
    assert (product.squared_sums(np.ones(n)) >= (prior**2).sum(axis=1)).all()
    assert (
        product.squared_sums(np.ones(n), cap=0.1) >= np.minimum(prior**2, 0.1).sum(axis=1)
    ).all()


# -- norms
# --------------------------------------------------------------------------------------------------


def extended_covariance(posterior: Posterior, rows: Any) -> Any:
    """Return C of the rows with all sites, from the present factor, in extended precision."""
    v = posterior.factor.v.astype(np.longdouble)
    return (
        posterior.k(posterior.sites[rows], posterior.sites).astype(np.longdouble) - v[:, rows].T @ v
    )


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-10, 0.0])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_norms_stay_above_and_close_through_pending_and_dropped_steps(
    domain: tv.Domain, noise: float
) -> None:
    rng = np.random.default_rng(7)
    posterior = Posterior(ConstantKernel(1.7) * RBF(0.3), domain.points)
    base = np.where(rng.random(len(domain)) < 0.8, rng.uniform(0.0, 2.0, len(domain)), 0.0)
    norms = ColumnNorms(posterior, prior_product(posterior, domain), base)
    for step in range(40):
        if posterior.n_rows > posterior.n_observed and step % 3 == 0:
            posterior.observe(float(rng.normal())) if noise else posterior.drop_pending()
        if step % 7 == 6:
            posterior.drop_pending()
        site = int(rng.integers(len(domain)))
        posterior.add(domain.points[site], noise, site)
        assert norms.n_missing >= 1
        norms.update()
        assert norms.n_missing == 0
        exact = base @ extended_covariance(posterior, np.arange(len(domain))) ** 2
        assert (norms.upper >= exact).all()
        if noise >= 1e-2:
            np.testing.assert_allclose(
                norms.upper, exact.astype(float), rtol=0, atol=1e-4 * len(domain)
            )
    rebuilt = ColumnNorms(posterior, norms.product, base)
    rebuilt.update()
    assert (rebuilt.upper >= exact).all()


def test_cells_partition_the_targets_and_find_neighbours() -> None:
    points = np.random.default_rng(2).normal(size=(1000, 4))
    cells = Cells(points)
    everyone = np.ones(len(points), bool)
    sizes = cells.sizes(everyone)
    assert sizes.sum() == len(points)
    assert sizes.max() <= 64
    cell = int(cells.of[123])
    near = cells.near(cell, 100, everyone, sizes)
    assert len(set(near.tolist())) == len(near) >= 100
    assert set(np.flatnonzero(cells.of == cell)) <= set(near.tolist())
    few = points[:, 0] > 1
    assert few[cells.near(cell, 20, few, cells.sizes(few))].all()


# -- the search
# --------------------------------------------------------------------------------------------------


class CheckedLazy(Lazy):
    """A matrix-free engine that compares every bound and every choice with sums in extended
    precision."""

    pruned = 0  # choices for which most candidates needed no scoring in full

    def best_sums(
        self, rows: Any, excess: Any, predictive: Any, worth: Any, row_weights: Any = None
    ) -> Any:
        found = super().best_sums(rows, excess, predictive, worth, row_weights)
        square = extended_covariance(self.posterior, rows) ** 2
        w = np.ones(len(rows)) if row_weights is None else row_weights
        exact = np.stack(
            [w @ np.minimum(square, np.outer(excess, d)) for d in predictive.T], axis=1
        )
        if self._active_rows is None:
            assert (self.roots.astype(np.longdouble) ** 2 >= exact).all()
        best = float((exact * worth).max())
        chosen = np.unravel_index(int(np.argmax(found * worth)), found.shape)
        rounding = (
            1e-13 * np.sqrt(w.sum()) * self.max_variance * float(worth[chosen])
        )  # of C, at most
        assert (exact * worth)[chosen] * (1 + self.optimality_gap) >= best * (1 - 1e-9) - rounding
        assert self.optimality_gap <= 1e-9 or self.tolerance > 0
        self.pruned += self.rescored < len(self.roots) / 2
        return found


SETTINGS: dict[str, tuple[tv.Domain, Any, dict[str, Any]]] = {
    "level set": (GRID, tv.LevelSet(0.5), {"kernel": RBF(0.2), "noise": 1e-3}),
    "maximum": (SCATTER, tv.Maximize(), {"kernel": Matern(0.2, nu=2.5), "noise": 1e-4}),
    "maximum, not monotone": (
        GRID,
        tv.Maximize(monotone=False),
        {"kernel": RBF(0.2), "noise": 1e-2},
    ),
    "implicit threshold": (
        SCATTER,
        tv.LevelSet(fraction_of_max=0.7),
        {"kernel": RBF(0.25), "noise": 1e-3},
    ),
    "noise levels": (
        SCATTER,
        tv.LevelSet(0.2),
        {"kernel": RBF(0.2), "noise": tv.NoiseLevels([1e-6, 1e-3, 0.05], [15, 10, 2])},
    ),
    "travel": (
        GRID,
        tv.LevelSet(0.2),
        {"kernel": 2.0 * Matern([0.2, 0.4], nu=1.5), "noise": 1e-2, "cost": tv.Cost(1, {"x": 9.0})},
    ),
    "tasks": (
        GRID,
        tv.Maximize(),
        {
            "kernel": RBF(0.2),
            "noise": 1e-3,
            "tasks": tv.Tasks(
                [[1, 0.8], [0.8, 1]], ["yield", "proxy"], noise=[1e-3, 1e-2], cost=[5, 1]
            ),
        },
    ),
    "five columns": (FIVE, tv.LevelSet(0.2), {"kernel": RBF(0.7), "noise": 1e-3}),
    "neighbours": (CROWDED, tv.LevelSet(0.2), {"kernel": RBF(0.2), "noise": 1e-6}),
    "neighbours, hardly noise": (
        CROWDED,
        tv.LevelSet(0.2),
        {"kernel": Matern(0.4, nu=2.5), "noise": 1e-10},
    ),
    "neighbours, no noise": (CROWDED, tv.Maximize(), {"kernel": Matern(0.4, nu=2.5), "noise": 0.0}),
}


def run_study(study: tv.Study, steps: int, batch: int = 1) -> None:
    """Run a study; the suggestions of a batch are told in reverse order."""
    while study.steps < steps and study.finished is None:
        try:
            suggestions = study.ask(batch)
        except tv.Finished:
            return
        for suggestion in reversed(suggestions):
            study.tell(suggestion, value(suggestion.point))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", SETTINGS)
def test_no_bound_falls_below_its_sum_and_no_choice_below_the_best(name: str, batch: int) -> None:
    domain, goal, settings = SETTINGS[name]
    study = tv.Study(
        domain, goal, engine=CheckedLazy, **{"mean": 0.0, "policy": "truvar", **settings}
    )
    run_study(study, 45, batch)
    assert study.steps >= 10
    engine = study.policy_context().engine
    assert isinstance(engine, CheckedLazy)
    assert engine.pruned >= 5


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "name", [name for name, (_, goal, _) in SETTINGS.items() if goal.has_thresholds]
)
def test_no_bound_falls_below_its_weighted_sum_and_no_choice_below_the_best(
    name: str, batch: int
) -> None:
    domain, goal, settings = SETTINGS[name]
    policy = tv.WeightedTruVaR(stops=1)
    study = tv.Study(domain, goal, mean=0.0, engine=CheckedLazy, policy=policy, **settings)
    run_study(study, 25, batch)
    assert study.steps >= 10
    engine = study.policy_context().engine
    assert isinstance(engine, CheckedLazy)
    assert engine.pruned >= 5


@pytest.mark.parametrize(
    ("name", "policy"),
    [("noise levels", "truvar"), ("travel", "auto"), ("neighbours, hardly noise", "auto")],
)
def test_a_matrix_of_few_active_rows_gives_the_best_choice(
    name: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, goal, settings = SETTINGS[name]
    monkeypatch.setattr("truvar.engines.lazy.MIN_SCORED_FOR_MATRIX", 0)
    monkeypatch.setattr("truvar.engines.lazy.MAX_ENTRIES", len(domain) * len(domain))
    study = tv.Study(domain, goal, mean=0.0, engine=CheckedLazy, policy=policy, **settings)
    run_study(study, 12, batch=3)
    engine = study.policy_context().engine
    assert isinstance(engine, CheckedLazy)
    assert engine._active_rows is not None
    assert study.steps >= 10


@pytest.mark.parametrize("noise", [1e-6, 1e-10])
def test_bounds_hold_after_a_thousand_repeats_of_one_point(noise: float) -> None:
    known = {"kernel": RBF(0.3), "mean": 0.0, "noise": noise, "policy": "truvar"}
    study = tv.Study(CROWDED, tv.LevelSet(0.2), engine=CheckedLazy, **known)
    point = CROWDED.point(17)
    for _ in range(1000):
        study.tell(point, value(point))
    run_study(study, 1015)
    assert study.steps >= 1010


@pytest.mark.parametrize("budget", [0, 4])
@pytest.mark.parametrize("tolerance", [0.02, 0.3])
def test_the_reported_gap_covers_what_a_tolerance_gives_away(
    tolerance: float, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truvar.engines.search.MIN_BUDGET", 0.0)
    made: list[CheckedLazy] = []

    def engine(posterior: Posterior, domain: tv.Domain) -> CheckedLazy:
        made.append(CheckedLazy(posterior, domain, tolerance=tolerance, budget=budget))
        return made[-1]

    study = tv.Study(
        GRID,
        tv.LevelSet(0.3),
        kernel=RBF(0.1),
        mean=0.0,
        noise=1e-3,
        engine=engine,
        policy="truvar",
    )
    gaps = []
    while study.steps < 40:
        study.tell(study.ask(), 0.3)
        gaps.append(made[0].optimality_gap)
    assert max(gaps) > 1e-6  # the tolerance was used


def test_a_choice_is_exact_by_default_up_to_a_hundred_thousand_points() -> None:
    small = Lazy(Posterior(RBF(0.1), GRID.points), GRID)
    assert small.tolerance == 0
    points = np.random.default_rng(0).uniform(size=(140_000, 1))
    large = Lazy(Posterior(RBF(0.1), points), tv.Domain(("x",), points, np.array([[0.0, 1.0]])))
    assert large.tolerance == 0.02
    with pytest.raises(tv.TruvarError, match="between 0 and 1"):
        Lazy(small.posterior, GRID, tolerance=2.0)


@pytest.mark.parametrize(
    ("side", "regular", "name"), [(90, True, "dense"), (91, True, "lazy"), (91, False, "dense")]
)
def test_the_engine_is_chosen_by_size_and_structure(side: int, regular: bool, name: str) -> None:
    x = np.linspace(0, 1, side)
    domain = tv.Domain.grid(x=x, y=x if regular else x**2)
    assert tv.Study(domain, tv.Maximize(), kernel=RBF(0.1), mean=0.0, noise=1e-3).engine == name


def test_the_engine_can_be_forced() -> None:
    assert tv.Study(GRID, tv.Maximize(), kernel=RBF(0.1), mean=0.0, noise=1e-3).engine == "dense"
    posterior = Posterior(RBF(0.1), GRID.points)
    assert isinstance(engine_for(posterior, GRID, "lazy"), Lazy)
    assert isinstance(engine_for(posterior, GRID, partial(Lazy, tolerance=0.1)), Lazy)


def test_sums_of_some_sites_agree_with_those_of_all_sites() -> None:
    posterior = Posterior(RBF(0.2), SCATTER.points)
    rng = np.random.default_rng(1)
    for site in rng.integers(len(SCATTER), size=10):
        posterior.add(SCATTER.points[site], 1e-2, int(site))
    rows = np.flatnonzero(rng.random(len(SCATTER)) < 0.3)
    excess = rng.random(len(SCATTER))
    predictive = rng.uniform(0.1, 1.0, size=(len(SCATTER), 2))
    square = extended_covariance(posterior, rows) ** 2
    exact = np.stack(
        [np.minimum(square, np.outer(excess[rows], d)).sum(axis=0) for d in predictive.T], axis=1
    ).astype(float)
    some = rng.permutation(len(SCATTER))[:50]
    for name in ("dense", "lazy"):
        engine = engine_for(posterior, SCATTER, name)
        np.testing.assert_allclose(engine.sums(rows, excess[rows], predictive), exact, rtol=1e-10)
        np.testing.assert_allclose(
            engine.sums_at(rows, excess[rows], some, predictive[some]), exact[some], rtol=1e-10
        )
