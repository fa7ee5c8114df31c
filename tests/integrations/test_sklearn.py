"""`TruVaRSearchCV` behaves like the search estimators of scikit-learn and finds what a full grid
search finds."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.exceptions import InvalidArgumentError, UnknownPolicyError, UnsupportedNoiseLevelsError
from truvar.integrations._configurations import ConfigurationEncoder, ConfigurationSpace
from truvar.integrations._cross_validation import FoldSearch, estimate_fold_effects
from truvar.integrations.sklearn import TruVaRSearchCV

IRIS = load_iris(return_X_y=True)
GRID = {"C": np.logspace(-2, 3, 12), "gamma": np.logspace(-4, 1, 10)}


def small(**options) -> TruVaRSearchCV:
    return TruVaRSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, **{"cv": 3, "random_state": 0, **options})


def listed_space(configurations) -> ConfigurationSpace:
    return ConfigurationSpace(
        [{name: [value] for name, value in each.items()} for each in configurations]
    )


@pytest.fixture(scope="module")
def searched() -> TruVaRSearchCV:
    return TruVaRSearchCV(
        SVC(), GRID, cv=5, budget=60, random_state=0, return_train_score=True
    ).fit(*IRIS)


# -- checks of scikit-learn, as it runs them on GridSearchCV
# ----------------------------------------------------------

CHECKED = [
    TruVaRSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2, error_score="raise"),
    TruVaRSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, error_score="raise"),
]


def expected_failures(search):
    """Return the checks that scikit-learn does not ask of GridSearchCV either, and that fail."""
    return (
        {}
        if isinstance(search.estimator, LogisticRegression)
        else {"check_supervised_y_2d": "no warning of 2-d y"}
    )


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


# -- like GridSearchCV
# -------------------------------------------------------------------------------------------------


def test_a_full_budget_gives_the_results_of_grid_search():
    grid = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}, cv=3, return_train_score=True).fit(*IRIS)
    search = small(budget=1.0, return_train_score=True).fit(*IRIS)
    assert set(search.cv_results_) == set(grid.cv_results_)
    for key, values in grid.cv_results_.items():
        if "time" not in key and key != "params":
            np.testing.assert_array_equal(search.cv_results_[key], values)
    assert search.cv_results_["params"] == grid.cv_results_["params"]
    assert (search.best_params_, search.best_score_) == (grid.best_params_, grid.best_score_)
    assert search.best_index_ == grid.best_index_
    np.testing.assert_array_equal(search.predict(IRIS[0]), grid.predict(IRIS[0]))
    assert search.score(*IRIS) == grid.score(*IRIS)
    assert search.n_splits_ == 3
    np.testing.assert_array_equal(search.classes_, grid.classes_)


def test_the_results_have_only_evaluated_configurations(searched):
    results = searched.cv_results_
    scores = np.column_stack([results[f"split{fold}_test_score"] for fold in range(5)])
    np.testing.assert_array_equal((~np.isnan(scores)).sum(axis=1), searched.n_folds_)
    assert searched.n_folds_.sum() <= 60
    assert searched.n_folds_.min() >= 1
    assert len(set(searched.n_folds_)) > 1
    np.testing.assert_allclose(results["mean_test_score"], np.nanmean(scores, axis=1))
    np.testing.assert_allclose(results["std_test_score"], np.nanstd(scores, axis=1))
    assert np.isfinite(results["mean_train_score"]).all()
    assert np.isfinite(results["mean_fit_time"]).all()


def test_the_best_was_evaluated_on_all_folds_and_ranks_first(searched):
    results = searched.cv_results_
    best = searched.best_index_
    complete = searched.n_folds_ == 5
    assert complete[best]
    assert results["rank_test_score"][best] == 1
    assert searched.best_score_ == results["mean_test_score"][complete].max()
    assert results["rank_test_score"][complete].max() < results["rank_test_score"][~complete].min()


def test_a_quarter_of_the_fits_is_within_a_standard_error_of_the_full_grid():
    parameters = {"C": GRID["C"][::2], "gamma": GRID["gamma"]}
    search = TruVaRSearchCV(SVC(), parameters, cv=5, random_state=0).fit(*IRIS)
    assert search.n_folds_.sum() <= 75
    grid = GridSearchCV(SVC(), parameters, cv=5, refit=False).fit(*IRIS)
    error = grid.cv_results_["std_test_score"][grid.best_index_] / np.sqrt(5 - 1)
    assert search.best_score_ >= grid.best_score_ - error


def test_the_same_random_state_gives_the_same_search(searched):
    again = clone(searched).fit(*IRIS)
    assert again.cv_results_["params"] == searched.cv_results_["params"]
    np.testing.assert_array_equal(again.n_folds_, searched.n_folds_)


def test_the_candidates_are_the_same_whatever_the_number_of_jobs():
    runs = []
    for n_jobs in (1, 2):
        search = TruVaRSearchCV(SVC(), GRID, cv=5, budget=40, n_jobs=n_jobs, random_state=0)
        with joblib.parallel_config("threading"):  # processes would take seconds to start
            search.fit(*IRIS)
        runs.append(search)
    assert runs[0].cv_results_["params"] == runs[1].cv_results_["params"]
    np.testing.assert_array_equal(runs[0].n_folds_, runs[1].n_folds_)
    assert runs[1].n_folds_.sum() <= 40
    assert runs[1].best_score_ > 0.95


def test_equal_configurations_have_a_row_each_as_in_grid_search():
    search = TruVaRSearchCV(SVC(), {"C": [1.0, 1.0, 10.0]}, cv=3).fit(*IRIS)
    assert [params["C"] for params in search.cv_results_["params"]] == [1.0, 1.0, 10.0]
    assert search.cv_results_["mean_test_score"][0] == search.cv_results_["mean_test_score"][1]


@pytest.mark.parametrize(
    "space",
    [
        {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1), "kernel": ["rbf", "sigmoid"]},
        {"C": np.logspace(-3, 3, 1000), "gamma": np.logspace(-4, 1, 1000)},
        {name: np.logspace(-4, 1, 40_000) for name in ("C", "gamma", "tol", "coef0", "cache_size")},
    ],
    ids=["distributions", "a million configurations", "more than an index can count"],
)
def test_large_spaces_are_searched_through_a_sample(space):
    search = TruVaRSearchCV(SVC(), space, cv=3, budget=45, random_state=0).fit(*IRIS)
    assert search.n_folds_.sum() <= 45
    assert search.best_score_ > 0.96
    assert len(search.summary_.table) <= 2100
    assert str(search.summary_).count("fits") == 1


def test_distributions_have_a_budget_of_ten_configurations_by_default():
    search = TruVaRSearchCV(SVC(), {"C": loguniform(1e-3, 1e3)}, cv=3, random_state=0).fit(*IRIS)
    assert 27 <= search.n_folds_.sum() <= 30


def test_it_survives_pickling_and_cloning(searched):
    again = pickle.loads(pickle.dumps(searched))
    np.testing.assert_array_equal(again.predict(IRIS[0]), searched.predict(IRIS[0]))
    assert str(again.summary_) == str(searched.summary_)
    assert not hasattr(clone(searched), "best_params_")


def test_without_refit_there_is_a_best_setting_but_no_estimator():
    search = small(refit=False).fit(*IRIS)
    assert search.best_params_["C"] in (0.1, 1.0, 10.0)
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="predict"):
        search.predict(IRIS[0])
    with pytest.raises(NotFittedError):
        small().predict(IRIS[0])


def test_refit_may_be_a_function_of_the_results():
    search = small(refit=lambda results: 0).fit(*IRIS)
    assert search.best_index_ == 0
    assert search.best_params_ == search.cv_results_["params"][0]
    assert not hasattr(search, "best_score_")


def test_a_function_for_refit_sees_only_configurations_that_were_evaluated_on_all_folds():
    shown = {}

    def worst(results):
        shown.update(results)
        return int(np.argmin(results["mean_test_score"]))

    search = TruVaRSearchCV(SVC(), GRID, cv=5, budget=60, random_state=0, refit=worst).fit(*IRIS)
    is_complete = search.n_folds_ == 5
    assert 0 < is_complete.sum() < len(is_complete)
    assert shown.keys() == search.cv_results_.keys()
    assert len(shown["params"]) == len(shown["param_C"]) == is_complete.sum()
    assert is_complete[search.best_index_]
    means = search.cv_results_["mean_test_score"]
    assert means[search.best_index_] == means[is_complete].min()
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]


def test_with_several_metrics_refit_names_the_one_to_search_by():
    search = small(scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(*IRIS)
    assert search.multimetric_
    assert {"mean_test_accuracy", "rank_test_f1_macro", "split2_test_f1_macro"} <= set(
        search.cv_results_
    )
    assert search.best_score_ == search.cv_results_["mean_test_f1_macro"].max()
    assert 0 < search.score(*IRIS) <= 1


def test_several_metrics_may_be_searched_without_refit_or_with_a_function():
    search = small(scoring=["accuracy", "f1_macro"], refit=False).fit(*IRIS)
    assert not hasattr(search, "best_index_")
    assert "rank_test_f1_macro" in search.cv_results_
    search = small(scoring=["accuracy", "f1_macro"], refit=lambda results: 1).fit(*IRIS)
    assert search.best_index_ == 1
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        small(scoring=["accuracy", "f1_macro"], refit="recall").fit(*IRIS)


def test_a_scoring_function_may_return_several_metrics():
    def both(estimator, X, y):
        return {"right": estimator.score(X, y), "wrong": -estimator.score(X, y)}

    assert small(scoring=both, refit="right").fit(*IRIS).best_score_ > 0.9


def test_random_folds_are_drawn_once():
    search = small(cv=ShuffleSplit(4, random_state=np.random.RandomState(0)), budget=1.0).fit(*IRIS)
    assert search.n_splits_ == 4
    one = small(cv=iter(list(KFold(3, shuffle=True, random_state=0).split(*IRIS)))).fit(*IRIS)
    assert one.n_splits_ == 3


def test_groups_and_weights_reach_splitter_and_estimator():
    groups = np.arange(150) % 5
    search = small(cv=GroupKFold(5)).fit(*IRIS, groups=groups, sample_weight=np.ones(150))
    assert search.n_splits_ == 5
    with pytest.raises(ValueError, match="groups"):
        small(cv=GroupKFold(5)).fit(*IRIS)


def test_y_may_be_missing():
    X, _ = make_blobs(60, random_state=0)
    search = TruVaRSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1, 1, 8)}, cv=3).fit(X)
    assert 0.1 < search.best_params_["bandwidth"] < 10
    assert search.score_samples(X).shape == (60,)


def test_failing_configurations_are_excluded_with_a_warning():
    grid = {"C": [-1.0, 1.0]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = TruVaRSearchCV(SVC(), grid, cv=3, random_state=0).fit(*IRIS)
    assert any(warning.category is FitFailedWarning for warning in caught)
    assert any("non-finite" in str(warning.message) for warning in caught)
    failed = [params["C"] == -1.0 for params in search.cv_results_["params"]]
    assert np.isnan(search.cv_results_["mean_test_score"][failed]).all()
    assert search.cv_results_["rank_test_score"][failed] == 2
    assert search.best_params_["C"] > 0
    assert not search.summary_.table["possible"][0]


def test_a_fold_that_cannot_be_scored_leaves_no_best_score_as_in_grid_search():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.repeat(
        [0, 1], [40, 20]
    )  # without the last fold there is only one class, so that no fit is possible
    search = TruVaRSearchCV(SVC(), GRID, cv=KFold(3), budget=40, random_state=0)
    with pytest.warns(UserWarning, match="No configuration has a score on all 3 folds"):
        search.fit(X, y)
    assert not (np.isfinite(search.cv_results_["mean_test_score"]) & (search.n_folds_ == 3)).any()
    assert np.isnan(search.best_score_)
    n_best = search.n_folds_[search.best_index_]
    assert search.summary_.best_folds == n_best < 3
    assert f"evaluated on {n_best} of 3 folds only" in str(search.summary_)


def test_the_error_is_raised_if_every_fit_fails_or_none_may_fail():
    with pytest.raises(ValueError, match="fits failed"):
        TruVaRSearchCV(SVC(), {"C": [-1.0, -2.0]}, cv=3).fit(*IRIS)
    with pytest.raises(ValueError, match="C"):
        TruVaRSearchCV(SVC(), {"C": [-1.0, 1.0]}, cv=3, error_score="raise").fit(*IRIS)
    with pytest.warns(FitFailedWarning):
        search = TruVaRSearchCV(SVC(), {"C": [-1.0, 1.0]}, cv=3, error_score=0.0).fit(*IRIS)
    assert search.cv_results_["mean_test_score"][0] == 0.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"budget": 2},
            InvalidArgumentError,
            "all 3 folds, got 2 fits; give 3 or more, or a share",
        ),
        ({"budget": 0}, ValueError, "budget"),
        ({"budget": 1.5}, ValueError, "budget"),
        ({"cost": "euros"}, ValueError, "cost"),
        ({"param_grid": {"C": []}}, ValueError, "non-empty"),
        ({"param_grid": {"D": [1, 2]}}, ValueError, "Invalid parameter 'D'"),
        ({"param_grid": {"C": 1.0}}, TypeError, "C"),
        ({"cv": iter([])}, ValueError, "Was the CV iterator empty"),
        ({"policy": "ei"}, UnsupportedNoiseLevelsError, r"EI\(level=0\)"),
        ({"policy": "best"}, UnknownPolicyError, "best"),
    ],
)
def test_invalid_options_are_reported(options, error, message):
    with pytest.raises(error, match=message):
        small().set_params(**options).fit(*IRIS)


def test_a_grid_of_one_configuration_is_evaluated_and_fitted():
    search = TruVaRSearchCV(DummyClassifier(), {"strategy": ["prior"]}, cv=3).fit(*IRIS)
    assert search.best_params_ == {"strategy": "prior"}
    assert "3 of 3 fits" in str(search.summary_)
    assert "strategy=prior" in str(search.summary_)


def test_a_distribution_of_one_value_is_a_grid_of_one_configuration():
    search = TruVaRSearchCV(SVC(), {"degree": randint(3, 4)}, cv=3, random_state=0).fit(*IRIS)
    assert search.best_params_ == {"degree": 3}
    assert search.n_folds_.tolist() == [3]
    assert "3 of 3 fits" in str(search.summary_)


def test_another_policy_can_be_used():
    search = TruVaRSearchCV(
        SVC(), GRID, cv=5, budget=40, policy=tv.EI(level=4), random_state=0
    ).fit(*IRIS)
    assert set(search.n_folds_) == {5}
    assert search.best_score_ > 0.95


@pytest.mark.parametrize("least", [1.0, 0.001], ids=["expensive fits", "cheap fits"])
def test_cost_in_seconds_prefers_fast_configurations(least):
    """Half of the configurations take twenty times as long as the others and are not better."""

    def slow_share(timed, seed):
        rng = np.random.default_rng(seed)
        search = FoldSearch(
            listed_space([{"size": size} for size in range(40)]),
            folds=5,
            budget=60,
            policy=tv.WeightedTruVaR(),
            timed=timed,
            seed=seed,
        )
        while pairs := search.ask():
            for row, fold in pairs:
                seconds = least * (20.0 if row >= 20 else 1.0)
                search.tell(row, fold, np.sin(1.7 * row) + rng.normal(0, 0.1), seconds)
        return search.tried[20:].sum() / search.tried.sum()

    timed = np.mean([slow_share(True, seed) for seed in range(3)])
    assert timed < np.mean([slow_share(False, seed) for seed in range(3)]) - 0.1


def test_cost_in_seconds_is_an_option_of_the_search():
    assert (
        TruVaRSearchCV(SVC(), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=3, cost="seconds")
        .fit(*IRIS)
        .best_score_
        > 0.9
    )


# -- summary
# --------------------------------------------------------------------------------------------------


def test_the_summary_tells_which_configurations_can_still_be_best(searched, capsys):
    summary = searched.summary_
    assert len(summary.table) == 120
    assert summary.table["folds"].sum() == searched.n_folds_.sum()
    possible = summary.possible
    assert 0 < len(possible) < 120
    assert possible["upper"].min() >= summary.table["lower"].max() - 1e-12
    text = str(summary)
    assert f"{len(possible)} of 120 configurations can still be best" in text
    assert f"{summary.fits} of 600 fits" in text
    assert "no proof" in text
    small(verbose=1).fit(*IRIS)
    assert "can still be best" in capsys.readouterr().out


# -- encoding of parameters
# --------------------------------------------------------------------------------------------


def coordinates(grids) -> np.ndarray:
    space = ConfigurationSpace(grids)
    return ConfigurationEncoder(space, space.listed()).points(space.listed())


def test_geometrically_spaced_numbers_are_encoded_by_their_logarithms():
    np.testing.assert_allclose(coordinates({"C": [0.01, 0.1, 1, 10]})[:, 0], [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(coordinates({"a": [1, 2, 5, 10]})[:, 0], np.log10([1, 2, 5, 10]))
    np.testing.assert_allclose(coordinates({"a": [0, 0.1, 1, 10]})[:, 0], [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(coordinates({"a": [-1, 0, 1, 3]})[:, 0], [0, 0.25, 0.5, 1])


def test_categories_booleans_none_and_absent_parameters_are_categories():
    space = ConfigurationSpace({"kernel": ["rbf", "linear", "poly"]})
    encoder = ConfigurationEncoder(space, space.listed())
    assert encoder.domain(encoder.points(space.listed())).categorical == (0,)
    assert coordinates({"shrink": [True, False]}).shape == (2, 1)
    depth = coordinates({"depth": [None, 2, 4, 8]})
    np.testing.assert_allclose(depth, [[0.5, 1], [0, 0], [0.5, 0], [1, 0]])
    mixed = coordinates([{"kernel": ["linear"]}, {"kernel": ["rbf"], "gamma": [0.1, 1, 10]}])
    np.testing.assert_allclose(mixed, [[0, 0.5], [1, 0], [1, 0.5], [1, 1]])  # one category
    assert len(np.unique(coordinates({"a": [1, 1.0, True]}), axis=0)) == 3
    assert (
        len(
            np.unique(
                coordinates({"step": [PCA(), StandardScaler(), PCA(2), "passthrough"]}), axis=0
            )
        )
        == 4
    )


def test_numbers_of_a_distribution_are_encoded_by_their_cumulative_probability():
    space = ConfigurationSpace({"C": loguniform(1e-3, 1e3), "degree": randint(1, 5)})
    drawn = space.draw(40, np.random.default_rng(0))
    points = ConfigurationEncoder(space, drawn).points(drawn)
    np.testing.assert_allclose(points[:, 0], [np.log10(each["C"]) / 6 + 0.5 for each in drawn])
    near = space.neighbours(drawn[0], 20, np.random.default_rng(0))
    assert all(1e-3 <= each["C"] <= 1e3 and each["degree"] in range(1, 5) for each in near)
    assert all(each != drawn[0] or each["degree"] == drawn[0]["degree"] for each in near)


def test_a_list_of_grids_with_categories_and_none_is_searched_without_duplicates():
    X, y = make_classification(80, random_state=0)
    pipe = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
    grids = [
        {"svc__kernel": ["linear"], "svc__C": [0.1, 1, 10]},
        {"svc__kernel": ["rbf"], "svc__C": [0.1, 1, 10], "svc__class_weight": [None, "balanced"]},
        {"svc__kernel": ["linear"], "svc__C": [1], "scale": ["passthrough", StandardScaler()]},
    ]
    search = TruVaRSearchCV(pipe, grids, cv=3, budget=1.0).fit(X, y)
    assert np.ma.is_masked(search.cv_results_["param_svc__class_weight"])
    assert len(search.cv_results_["params"]) == len(
        {str(params) for params in search.cv_results_["params"]}
    )


def test_the_search_concentrates_on_the_best_category_and_decade():
    """One category and one decade are better than the others, so they get most folds."""
    grid = [{"kind": kind, "rate": rate} for kind in "abcd" for rate in np.logspace(-5, 0, 16)]
    rng = np.random.default_rng(0)

    def score(row):
        return (
            float(grid[row]["kind"] == "c")
            - (np.log10(grid[row]["rate"]) + 3) ** 2 / 4
            + rng.normal(0, 0.05)
        )

    search = FoldSearch(
        ConfigurationSpace([{name: [value] for name, value in each.items()} for each in grid]),
        folds=5,
        budget=80,
        policy=tv.TruVaR(),
        timed=False,
        seed=0,
    )
    while pairs := search.ask():
        for row, fold in pairs:
            search.tell(row, fold, score(row), 1.0)
    best = grid[int(np.argmax(search.result().mean))]
    assert best["kind"] == "c"
    assert 3e-4 < best["rate"] < 3e-3
    there = [search.tried[row].sum() for row, params in enumerate(grid) if params["kind"] == "c"]
    assert np.sum(there) > search.tried.sum() / 3


# -- folds
# --------------------------------------------------------------------------------------------------


def test_fold_effects_and_the_error_variance_are_estimated():
    rng = np.random.default_rng(0)
    effects = np.array([0.1, -0.05, 0.02, -0.07, 0.0])
    scores = rng.random((60, 1)) + effects + rng.normal(0, 0.01, (60, 5))
    scores[rng.random((60, 5)) < 0.4] = np.nan
    found, variance = estimate_fold_effects(scores)
    np.testing.assert_allclose(found, effects, atol=0.01)
    assert found.sum() == pytest.approx(0, abs=1e-12)
    assert np.sqrt(variance) == pytest.approx(0.01, rel=0.5)


def test_fold_effects_are_zero_without_scores():
    found, variance = estimate_fold_effects(np.full((4, 3), np.nan))
    np.testing.assert_array_equal(found, 0)
    assert variance > 0


def test_no_warnings_are_raised():
    with no_warnings():
        small(return_train_score=True).fit(*IRIS)
