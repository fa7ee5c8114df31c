"""Backtests and hyperparameter searches on Dask workers in processes of their own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from tests.helpers.dask_cluster import cluster_of

import truvar as tv
from truvar.backtest import backtest
from truvar.integrations.sklearn import TruVaRSearchCV
from truvar.problem import problem_from_dict

IRIS = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(2) as client:
        yield client


def test_a_backtest_on_dask_workers_gives_the_same_numbers(cluster: Any) -> None:
    side = np.linspace(0, 1, 9)
    problem = problem_from_dict(
        {
            "domain": {"grid": {"x": [0, 1, 9], "z": [0, 1, 9]}},
            "goal": {"level_set": 0.5},
            "model": {"kernel": "rbf", "lengthscales": [0.3, 0.3], "variance": 1.0, "mean": 0.0},
            "noise": {"variance": 0.01},
            "cost": {"base": 1.0, "travel": {"x": 2.0}},
        }
    )
    x, z = np.meshgrid(side, side, indexing="ij")
    hill = np.exp(-((x - 0.4) ** 2 + (z - 0.6) ** 2) / 0.1).ravel()
    policies = {"truvar": "truvar", "pure": tv.TruVaR(eta=0.0)}
    alone = backtest(problem, hill, policies, replicates=2, budget=15)
    shared = backtest(problem, hill, policies, replicates=2, budget=15, executor=cluster)
    pd.testing.assert_frame_equal(
        alone.curves.drop(columns="seconds"), shared.curves.drop(columns="seconds")
    )


def test_the_fits_of_a_search_run_on_the_dask_workers(cluster: Any, tmp_path: Path) -> None:
    def score(estimator: Any, X: Any, y: Any) -> float:
        (tmp_path / str(os.getpid())).touch()
        return float(estimator.score(X, y))

    grid = {"C": np.logspace(-2, 2, 6)}
    search = TruVaRSearchCV(SVC(), grid, cv=3, scoring=score, budget=12, n_jobs=2, random_state=0)
    with joblib.parallel_config("dask"):
        search.fit(*IRIS)
    processes = {int(path.name) for path in tmp_path.iterdir()}
    assert processes
    assert processes <= set(cluster.run(os.getpid).values())
    assert search.best_score_ == pytest.approx(
        GridSearchCV(SVC(), grid, cv=3).fit(*IRIS).best_score_, abs=0.03
    )
