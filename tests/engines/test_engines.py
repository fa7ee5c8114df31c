"""Engines: they agree on the choice, no bound prunes the best candidate, and the recursion keeps
its precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

import truvar as tv
from truvar._numba.threads import run_tiles, thread_count
from truvar.engines._dense import Dense
from truvar.engines._matrix import Matrix
from truvar.engines.lazy import Lazy
from truvar.models.posterior import Posterior

# -- choices
# --------------------------------------------------------------------------------------------------

GRID = tv.Domain.grid(x=np.linspace(0, 1, 17), y=np.linspace(0, 2, 15))
SCATTER = tv.Domain.table(
    pd.DataFrame(np.random.default_rng(2).uniform(size=(260, 2)), columns=["x", "y"])
)
LEVELS = tv.NoiseLevels([1e-6, 1e-3, 0.05], [15, 10, 2])
SETTINGS: dict[str, tuple[tv.Domain, Any, dict[str, Any]]] = {
    "maximum on a grid": (GRID, tv.Maximize(), {"kernel": RBF(0.3), "noise": 1e-4}),
    "minimum, scattered": (SCATTER, tv.Minimize(), {"kernel": Matern(0.3, nu=2.5), "noise": 1e-4}),
    "level set with travel": (
        GRID,
        tv.LevelSet(0.4),
        {
            "kernel": ConstantKernel(3.0) * Matern([0.3, 0.5], nu=1.5),
            "noise": 0.01,
            "cost": tv.Cost(1, {"x": 5.0}),
        },
    ),
    "level set, noise levels": (SCATTER, tv.LevelSet(0.4), {"kernel": RBF(0.2), "noise": LEVELS}),
    "uneven noise": (
        GRID,
        tv.LevelSet(0.0),
        {"kernel": RBF(0.3), "noise": lambda p: 1e-3 + 0.1 * p[:, 0]},
    ),
    "no compiled form": (
        SCATTER,
        tv.Maximize(),
        {"kernel": RationalQuadratic(0.3, 1.0), "noise": 1e-3},
    ),
    "implicit threshold": (
        GRID,
        tv.LevelSet(fraction_of_max=0.6),
        {"kernel": RBF(0.3), "noise": 1e-3},
    ),
    "pure variance reduction": (
        GRID,
        tv.LevelSet(0.4),
        {"kernel": RBF(0.3), "noise": 1e-3, "policy": tv.TruVaR(eta=0)},
    ),
}


@pytest.fixture
def bounds_on_small_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the matrix-free engine use its bounds on a small domain, where it would score every
    candidate."""
    monkeypatch.setattr("truvar.engines.lazy.MAX_NORMS_COST_SHARE", np.inf)


@pytest.fixture
def single_precision_for_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the dense engine use single precision however few rows there are."""
    monkeypatch.setattr("truvar.engines._dense.FEW_ROWS", 0)


def value(point: dict[str, float]) -> float:
    return float(np.sin(5 * point["x"]) * np.cos(3 * point["y"]))


@pytest.mark.parametrize("engine", ["lazy", "dense", "dense32"])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.usefixtures("bounds_on_small_domains", "single_precision_for_few_rows")
def test_engines_choose_the_same_candidate_or_one_within_rounding_of_the_best(
    name: str, engine: str
) -> None:
    """Batches of three, told out of order: every choice is within 1e-9 of the best exact score."""
    domain, goal, settings = SETTINGS[name]
    known = {"mean": 0.0, "policy": "truvar", **settings}
    exact = tv.Study(domain, goal, engine="dense64", **known)
    other = tv.Study(domain, goal, engine=engine, **known)
    assert (exact.engine, other.engine) == ("dense64", engine)
    for step in range(8):
        batch = []
        for _ in range(3):
            if other.finished is not None:
                return
            scores = exact.gains() / exact.candidates().cost.ravel()
            suggestion = other.ask()
            if scores.max() > 0:
                assert suggestion.gain / suggestion.cost >= scores.max() * (1 - 1e-9)
            expected = exact.ask()
            if expected.point != suggestion.point or expected.level != suggestion.level:
                assert expected.score == pytest.approx(suggestion.score, rel=1e-9)
                return  # a tie: from here on the studies may differ
            batch.append((expected, suggestion))
        for mine, its in batch if step % 2 else reversed(batch):
            exact.tell(mine, value(mine.point))
            other.tell(its, value(its.point))
    assert exact.steps == other.steps == 24


@pytest.mark.parametrize(
    "scale", [1e-9, 1e-7, 1.0, 1e7, 1e9]
)  # the first and the last are too far for single
@pytest.mark.usefixtures("single_precision_for_few_rows")
def test_sums_in_single_precision_bound_those_in_double(scale: float) -> None:
    """At every step and truncation the exact sums are at most the bounds, and not much less."""
    posterior = Posterior(scale * RBF(0.2), SCATTER.points)
    engine = Dense(posterior)
    single = Matrix(posterior, single=True)
    rng = np.random.default_rng(8)
    for step in range(40):
        if step % 5 == 4:
            posterior.drop_pending()
        site = int(rng.integers(len(SCATTER)))
        posterior.add(SCATTER.points[site], 1e-6 * scale, site)
        if step % 3 == 0:
            while posterior.n_observed < posterior.n_rows:
                posterior.observe(0.0)
        excess = posterior.pending_variance - scale * 10.0 ** rng.uniform(-9, -1)
        rows = np.flatnonzero(excess > 0)
        d = posterior.pending_variance + scale * 10.0 ** rng.uniform(
            -12, 40, len(SCATTER)
        )  # some beyond its numbers
        exact = engine.sums(rows, excess[rows], d[:, None])[:, 0]
        if 1e-8 < scale < 1e8:
            bound = single.upper_bounds(single.sums(rows, excess[rows], d), len(rows))
            assert (bound >= exact * (1 - 1e-12)).all()
            assert (np.sqrt(bound) <= 1.0001 * np.sqrt(exact) + 1e-3 * scale).all()
        best = engine.best_sums(rows, excess[rows], d[:, None], 1 / d[:, None])[:, 0] / d
        assert (exact / d)[best.argmax()] >= (exact / d).max() * (1 - 1e-9)


@pytest.mark.parametrize("engine", ["dense", "dense32", "dense64", "lazy"])
def test_the_gain_of_a_choice_does_not_depend_on_withdrawn_suggestions(engine: str) -> None:
    """Gains agree to the last bit although the rounding of an engine depends on its updates."""
    domain = tv.Domain.grid(x=np.linspace(0, 1, 20), y=np.linspace(0, 1, 20))
    known = {
        "kernel": Matern(0.4, nu=2.5),
        "mean": 0.0,
        "noise": 1e-8,
        "engine": engine,
        "policy": "truvar",
    }
    direct = tv.Study(domain, tv.LevelSet(0.3), **known)
    detour = tv.Study(domain, tv.LevelSet(0.3), **known)
    for _ in range(40):
        for withdrawn in [detour.ask() for _ in range(3)]:
            detour.withdraw(withdrawn, again=True)
        chosen = direct.ask()
        again = detour.ask()
        assert (again.index, again.gain) == (chosen.index, chosen.gain)
        direct.tell(chosen, value(chosen.point))
        detour.tell(again, value(again.point))


def test_the_engine_changes_to_double_precision_where_ties_are_frequent() -> None:
    """A grid that is large against the length-scale: nearly all candidates are equally good for
    many steps."""
    domain = tv.Domain.grid(x=np.linspace(0, 1, 24), y=np.linspace(0, 1, 24))
    studies = {
        engine: tv.Study(
            domain,
            tv.LevelSet(0.4),
            kernel=RBF(0.02),
            mean=0.0,
            noise=1e-4,
            engine=engine,
            policy="truvar",
        )
        for engine in ("dense", "dense64", "dense32")
    }
    for _ in range(12):
        suggestions = {engine: study.ask() for engine, study in studies.items()}
        assert len({suggestion.index for suggestion in suggestions.values()}) == 1
        for engine, study in studies.items():
            study.tell(suggestions[engine], value(suggestions[engine].point))
    by_engine = {engine: study.policy_context().engine for engine, study in studies.items()}
    precision = {
        name: engine._single for name, engine in by_engine.items() if isinstance(engine, Dense)
    }
    assert precision == {"dense": False, "dense64": False, "dense32": True}


@pytest.mark.parametrize(
    ("noise", "repeats"),
    [
        (0.0, 3),
        (1e-10, 30),
        (1e-6, 30),
        pytest.param(1e-10, 1000, marks=pytest.mark.slow),
        pytest.param(1e-6, 1000, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("engine", ["lazy", "dense", "dense32"])
@pytest.mark.usefixtures("bounds_on_small_domains", "single_precision_for_few_rows")
def test_on_an_adversarial_domain_the_true_best_is_never_pruned(
    engine: str, noise: float, repeats: int
) -> None:
    """Points that differ by 1e-8 to 1e-6, noise down to none, and one point measured many times."""
    rng = np.random.default_rng(5)
    base = rng.uniform(size=(200, 2))
    near = np.concatenate([base + gap for gap in (0.0, 1e-8, 1e-7, 1e-6)])
    frame = pd.DataFrame(np.concatenate([near, rng.uniform(size=(200, 2))]), columns=["x", "y"])
    study = tv.Study(
        tv.Domain.table(frame),
        tv.LevelSet(0.3),
        kernel=Matern(0.4, nu=2.5),
        mean=0.0,
        noise=noise,
        engine=engine,
        policy="truvar",
    )
    point = study.domain.point(17)
    for _ in range(repeats):
        study.tell(point, value(point))
    pruned = 0
    for _ in range(25):
        if study.finished is not None:
            break
        scores = study.gains() / study.candidates().cost.ravel()
        try:
            suggestion = study.ask()
        except tv.Finished:
            assert scores.max() <= 1e-12
            break
        if study.epoch.tau > 1e-9:
            # The table's own figure for the choice: two points 1e-8 apart are one to 1e-16 of their
            # variance, so that a gain there, summed in another order, differs by more than the
            # choice may.
            assert scores[suggestion.index] >= scores.max() * (1 - 1e-9) - 1e-13
        lazy = study.policy_context().engine
        pruned += isinstance(lazy, Lazy) and lazy.rescored < len(study.domain) / 2
        study.tell(suggestion, value(suggestion.point))
    assert pruned > 3 or engine != "lazy"  # it used its bounds


@pytest.mark.usefixtures("bounds_on_small_domains")
def test_a_tolerance_is_kept_and_the_gap_is_reported() -> None:
    def engine(posterior: Posterior, domain: tv.Domain) -> Lazy:
        return Lazy(posterior, domain, tolerance=0.02, budget=1)

    domain = tv.Domain.grid(x=np.linspace(0, 1, 40), y=np.linspace(0, 1, 40))
    study = tv.Study(
        domain, tv.Maximize(), kernel=RBF(0.1), mean=0.0, noise=1e-3, engine=engine, policy="truvar"
    )
    for _ in range(12):
        best = (study.gains() / study.candidates().cost.ravel()).max()
        suggestion = study.ask()
        lazy = study.policy_context().engine
        assert isinstance(lazy, Lazy)
        assert suggestion.score * (1 + lazy.optimality_gap) >= best * (1 - 1e-9)
        study.tell(suggestion, value(suggestion.point))


@pytest.mark.usefixtures("bounds_on_small_domains")
def test_where_bounds_are_loose_a_sample_finds_candidates_nearly_as_good_as_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("truvar.engines.search.MIN_BUDGET", 0.0)
    monkeypatch.setattr("truvar.engines.search.SAMPLE_SIZE", 400)

    def engine(posterior: Posterior, domain: tv.Domain) -> Lazy:
        return Lazy(posterior, domain, tolerance=1e-4, budget=0)

    domain = tv.Domain.grid(x=np.linspace(0, 1, 60), y=np.linspace(0, 1, 60))
    study = tv.Study(
        domain,
        tv.LevelSet(0.5),
        kernel=RBF(0.15),
        mean=0.0,
        noise=1e-3,
        engine=engine,
        policy="truvar",
    )
    shortfalls = []
    loose = False
    for _ in range(40):
        best = (study.gains() / study.candidates().cost.ravel()).max()
        suggestion = study.ask()
        if loose:  # the choice after one with a large gap begins with a sample
            shortfalls.append(1 - suggestion.score / best)
        lazy = study.policy_context().engine
        assert isinstance(lazy, Lazy)
        loose = lazy.optimality_gap > lazy.tolerance
        study.tell(suggestion, value(suggestion.point))
    assert len(shortfalls) >= 10
    assert np.mean(shortfalls) < 0.02
    assert max(shortfalls) < 0.25


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(tv.TruvarError, match="'sparse'"):
        tv.Study(GRID, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.1, engine="sparse")


# -- precision
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-6, 1e-10])
def test_after_200_steps_mean_and_variance_are_those_of_extended_precision(noise: float) -> None:
    rng = np.random.default_rng(11)
    sites = rng.uniform(size=(300, 2))
    measured = rng.integers(300, size=200)
    values = np.sin(4 * sites[measured, 0]) + sites[measured, 1]
    posterior = Posterior(RBF(0.3), sites, mean=0.0)
    for site, y in zip(measured, values, strict=True):
        posterior.add(sites[site], noise, int(site))
        posterior.observe(float(y))
    wide = np.asarray(sites, dtype=np.longdouble) / np.longdouble(0.3)
    square = ((wide[:, None, :] - wide[None, :, :]) ** 2).sum(axis=2)
    prior = np.exp(-square / 2)
    covariance = prior[np.ix_(measured, measured)] + np.longdouble(noise) * np.eye(
        200, dtype=np.longdouble
    )
    mean, variance = _extended(covariance, prior[measured], np.asarray(values, dtype=np.longdouble))
    assert np.abs(posterior.mean - mean).max() <= 1e-8
    assert np.abs(posterior.variance - variance).max() <= 1e-8


def _extended(covariance: Any, across: Any, values: Any) -> tuple[Any, Any]:
    """Return mean and variance by Gaussian elimination without pivots in 80-bit arithmetic."""
    a = np.concatenate([covariance, across, values[:, None]], axis=1)
    t = len(covariance)
    mean = np.zeros(across.shape[1], np.longdouble)
    explained = np.zeros(across.shape[1], np.longdouble)
    for i in range(t):
        row = a[i, t:] / np.sqrt(a[i, i])
        explained += row[:-1] ** 2
        mean += row[:-1] * row[-1]
        a[i + 1 :] -= np.outer(a[i + 1 :, i] / a[i, i], a[i])
    return mean, 1 - explained


# -- threads
# --------------------------------------------------------------------------------------------------


def test_the_number_of_threads_can_be_set_and_threads_share_the_tiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRUVAR_THREADS", "3")
    assert thread_count() == 3
    done: list[slice] = []
    tiles = [slice(i, i + 1) for i in range(20)]
    run_tiles(done.append, tiles, entries=10**9)
    assert sorted(done, key=lambda tile: tile.start) == tiles
    monkeypatch.setenv("TRUVAR_THREADS", "1")
    assert thread_count() == 1
