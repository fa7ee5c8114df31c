"""Studies from nothing: a design first, no early end on flat data, and answers that rest on
measurements."""

import warnings

import numpy as np
import pandas as pd
import pytest

import truvar as tv

AXIS = np.linspace(0.0, 1.0, 20)
GRID = tv.Domain.grid(x=AXIS, y=AXIS)
X, Y = GRID.points.T
BLOOM = 5.0 * np.exp(-((X - 0.72) ** 2 + (Y - 0.3) ** 2) / (2 * 0.12**2)) + 0.2 * np.sin(7 * X)
SMOOTH = np.sin(5 * X) * np.cos(4 * Y)


def measured(study: tv.Study, truth: np.ndarray, steps: int, noise: float = 0.0) -> tv.Result:
    """Run a study to that many measurements of the truth, or until it is finished."""
    rng = np.random.default_rng(study.seed)
    while study.steps < steps and study.finished is None:
        suggestion = study.ask()
        assert suggestion.index is not None
        study.tell(suggestion, float(truth[suggestion.index] + noise * rng.standard_normal()))
    return study.result()


def surrogate(study: tv.Study):
    return study._learner.surrogate


# -- the initial design
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [tv.LevelSet(1.0), tv.Maximize()])
def test_a_study_from_nothing_begins_with_points_spread_over_the_domain(
    goal: tv.LevelSet | tv.Maximize,
) -> None:
    study = tv.Study(GRID, goal)
    count = surrogate(study).n_initial
    assert count == 5
    result = measured(study, SMOOTH, count - 1)
    assert str(result.certificate).startswith("Nothing is claimed yet")
    assert result.potential.all()
    assert study.finished is None
    points = GRID.points[list(result.measured)]
    distances = np.linalg.norm(points[:, None] - points, axis=-1) + 10 * np.eye(len(points))
    assert distances.min() > 0.3
    result = measured(study, SMOOTH, count)
    assert not str(result.certificate).startswith("Nothing is claimed yet")


def test_the_design_follows_the_dimension_and_may_be_given() -> None:
    sizes = [tv.Learned().initial_size(d, 1000) for d in (1, 2, 6, 30)]
    assert sizes == [4, 5, 7, 10]
    assert tv.Learned().initial_size(2, 12) == 3
    assert tv.Learned(n_initial=9).initial_size(2, 1000) == 9


def test_measurements_told_before_shorten_the_design() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.5))
    for row in (3, 77, 150, 290, 391):
        study.tell(GRID.point(row), float(SMOOTH[row]))
    assert surrogate(study).fitted
    assert np.isfinite(study.result().epsilon)


def test_the_design_saves_travel() -> None:
    def length(cost: tv.Cost | None) -> float:
        study = tv.Study(GRID, tv.LevelSet(0.5), cost=cost, kernel=tv.Learned(n_initial=6))
        points = GRID.points[list(measured(study, SMOOTH, 6).measured)]
        return float(np.abs(np.diff(points, axis=0)).sum())

    assert length(tv.Cost(base=0.1, travel={"x": 10.0, "y": 10.0})) < 0.8 * length(None)


# -- flat data
# --------------------------------------------------------------------------------------------------


def test_equal_values_leave_the_rest_of_the_domain_undecided() -> None:
    study = tv.Study(GRID, tv.LevelSet(1.0))
    result = measured(study, np.zeros(len(GRID)), 12)
    assert study.finished is None
    assert result.potential.mean() > 0.3
    assert result.probability is not None
    assert result.probability.max() > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_a_sparse_bloom_is_found_from_a_start_that_does_not_see_it(seed: int) -> None:
    threshold = 2.0
    study = tv.Study(GRID, tv.LevelSet(threshold), seed=seed, start="random")
    result = measured(study, BLOOM, 40, noise=0.02)
    assert result.f1(BLOOM) > 0.9
    assert not (result.below & (threshold < BLOOM)).any()
    assert not (result.above & (threshold >= BLOOM)).any()


def test_equal_values_do_not_end_the_search_for_an_optimum() -> None:
    study = tv.Study(GRID, tv.Maximize())
    measured(study, np.full(len(GRID), 3.0), 15)
    assert study.finished is None
    assert len(set(study.result().measured)) >= 14


def test_a_policy_that_gains_nothing_at_its_proposals_explores_the_whole_box() -> None:
    class Silent(tv.Random):
        def propose(self, context):
            return np.array([[0.5, 0.5]])

        def score(self, context, candidates):
            return np.zeros((len(candidates.points), candidates.n_levels))

    study = tv.Study(
        tv.Domain.box(x=(0, 1), y=(0, 1), representers=64), tv.Maximize(), policy=Silent()
    )
    points = []
    for _ in range(10):
        suggestion = study.ask()
        points.append(list(suggestion.point.values()))
        study.tell(suggestion, float(np.sin(5 * points[-1][0])))
    assert len(np.unique(points, axis=0)) == 10
    assert [0.5, 0.5] not in points


# -- predictions
# --------------------------------------------------------------------------------------------------


def test_predictions_average_over_hyperparameters_and_are_wider_than_a_plug_in_fit() -> None:
    coverage: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(8):
        for marginalise in (True, False):
            study = tv.Study(GRID, tv.Maximize(), kernel=tv.Learned(marginalise=marginalise))
            for row in np.random.default_rng(seed).choice(len(GRID), 8, replace=False):
                study.tell(GRID.point(int(row)), float(SMOOTH[row]))
            result = study.result()
            coverage[marginalise].append(
                float((np.abs(SMOOTH - result.mean) <= 2 * result.sd).mean())
            )
            mean, sd = study.predict(GRID.points)
            np.testing.assert_allclose(mean, result.mean, atol=1e-9)
            np.testing.assert_allclose(sd, result.sd, atol=1e-6)
    assert np.mean(coverage[True]) > np.mean(coverage[False]) + 0.05
    assert np.mean(coverage[True]) > 0.85


def test_skewed_values_are_modelled_by_a_power_and_reported_in_their_own_units() -> None:
    skewed = np.exp(3 * SMOOTH)
    study = tv.Study(GRID, tv.LevelSet(3.0))
    result = measured(study, skewed, 40)
    assert surrogate(study).transform.power < 0.9
    rows = list(result.measured)
    np.testing.assert_allclose(result.mean[rows], skewed[rows], rtol=0.1, atol=0.2)
    assert (result.lower <= result.upper).all()
    assert result.f1(skewed) > 0.9


def test_a_gross_error_does_not_wreck_the_model() -> None:
    rows = np.random.default_rng(0).choice(len(GRID), 25, replace=False)
    means = []
    for error in (0.0, 100 * SMOOTH.std()):
        study = tv.Study(GRID, tv.Maximize())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tv.exceptions.OutlierWarning)
            for i, row in enumerate(rows):
                study.tell(GRID.point(int(row)), float(SMOOTH[row] + error * (i == 10)))
        means.append(study.result().mean)
    assert np.abs(means[1] - SMOOTH).mean() < 2 * np.abs(means[0] - SMOOTH).mean() + 0.02
    observed = study.result().best_observed
    assert observed is not None
    assert observed.value <= SMOOTH.max()


# -- the answer
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_recommended_point_rests_on_measurements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = tv.Domain.table(
        pd.DataFrame({"a": rng.lognormal(size=150), "b": rng.random(150)}), ["a", "b"]
    )
    truth = rng.lognormal(size=150) * (1 + table.points[:, 1])
    study = tv.Study(table, tv.Maximize(), seed=seed)
    result = measured(study, truth, 20)
    best = result.best.index
    assert best is not None
    assert result.best_observed is not None
    assert result.best_observed.value == truth[list(result.measured)].max()
    if best not in result.measured:
        anchor = max(result.mean[row] for row in result.measured)
        assert result.best.mean > anchor


def test_a_stored_study_continues_as_if_it_had_never_been_closed(tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    open_study = tv.Study(GRID, tv.LevelSet(0.5))
    measured(open_study, SMOOTH, 14)
    stored = tv.Study(GRID, tv.LevelSet(0.5), store=url, name="s")
    for steps in (3, 7, 11, 14):
        measured(stored, SMOOTH, steps)
        stored = tv.load(url, "s")
    assert stored.result().measured == open_study.result().measured
    assert (stored.result().mean == open_study.result().mean).all()
    assert (stored.result().sd == open_study.result().sd).all()


def test_a_batch_has_different_points_and_less_variance_left() -> None:
    study = tv.Study(GRID, tv.LevelSet(0.5))
    measured(study, SMOOTH, 8)
    batch = study.ask(4)
    assert len({suggestion.index for suggestion in batch}) == 4
    context = study.policy_context()
    assert (context.moments[1] <= study.result().sd + 1e-9).all()


def test_the_transform_that_takes_logarithms_refuses_what_has_none() -> None:
    study = tv.Study(GRID, tv.Minimize(), transform="log")
    study.tell(GRID.point(0), 2.0)
    with pytest.raises(tv.exceptions.InvalidMeasurementError, match="transform"):
        study.tell(GRID.point(1), 0.0)
    assert len(study.measurements) == 1


def test_a_very_large_domain_is_learned_with_the_most_probable_hyperparameters() -> None:
    axis = np.linspace(0.0, 1.0, 480)
    study = tv.Study(tv.Domain.grid(x=axis, y=axis), tv.Maximize(), engine="lazy", policy="truvar")
    for x, y in np.random.default_rng(0).choice(axis, (7, 2)):
        study.tell({"x": x, "y": y}, float(np.sin(5 * x) * np.cos(4 * y)))
    assert surrogate(study).fitted
    assert surrogate(study).ensemble is None
    assert np.isfinite(study.result().sd).all()


@pytest.mark.parametrize("value", [1e51, -1e308])
def test_values_too_large_for_the_arithmetic_are_refused_and_nothing_is_lost(value: float) -> None:
    study = tv.Study(GRID, tv.Maximize())
    measured(study, SMOOTH, 6)
    suggestion = study.ask()
    with pytest.raises(tv.exceptions.InvalidMeasurementError, match="larger units"):
        study.tell(suggestion, value)
    study.tell(suggestion, 0.5)
    assert len(study.measurements) == 7


@pytest.mark.parametrize("scale", [1e-40, 1e48])
def test_values_of_any_ordinary_size_can_be_modelled(scale: float) -> None:
    result = measured(tv.Study(GRID, tv.Maximize()), scale * SMOOTH, 12)
    assert np.isfinite(result.mean).all()
    assert result.regret(scale * SMOOTH) < 0.3 * scale * np.ptp(SMOOTH)


def test_values_too_small_for_the_arithmetic_count_as_all_alike_and_do_not_end_the_study() -> None:
    study = tv.Study(GRID, tv.Maximize())
    measured(study, 1e-150 * SMOOTH, 10)
    assert study.finished is None
