"""Tuning an SVC on the digits of scikit-learn: `TruVaRSearchCV` in place of `GridSearchCV`, the same grid and folds."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.measure import Row, Stopwatch, at_least, at_most
from truvar.integrations.sklearn import TruVaRSearchCV

SHARES = (0.25, 0.05)  # of the grid's fits


def rows(quick: bool) -> list[Row]:
    X, y = load_digits(return_X_y=True)
    if quick:
        X = X[:150]
        y = y[:150]
    c_values, gamma_values = (4, 4) if quick else (14, 16)
    grid = {"C": np.logspace(-1, 3, c_values), "gamma": np.logspace(-6, -1, gamma_values)}
    folds = 3 if quick else 5
    with Stopwatch() as watch:
        whole = GridSearchCV(SVC(), grid, cv=folds, refit=False).fit(X, y)
    fits = folds * len(whole.cv_results_["params"])
    error = float(whole.cv_results_["std_test_score"][whole.best_index_] / np.sqrt(folds - 1))
    found = [
        Row(
            "search-grid",
            "SVC on digits: GridSearchCV, best score",
            float(whole.best_score_),
            note=f"{fits} fits, {watch.seconds:.0f} s; standard error {error:.2g}",
        )
    ]
    for share in SHARES:
        with Stopwatch() as watch:
            budget = max(round(share * fits), 4 * folds)
            search = TruVaRSearchCV(SVC(), grid, cv=folds, refit=False, budget=budget, random_state=0).fit(X, y)
        name = f"search-{share:g}"
        used = int(search.cv_results_["n_folds"].sum())
        short = float(whole.best_score_ - search.best_score_) / error if error else 0.0
        possible = f"{int(search.summary_.table['possible'].sum())} of {len(search.summary_.table)} can still be best"
        found += [
            Row(
                name,
                f"... TruVaRSearchCV with {share:.0%} of the fits, best score",
                float(search.best_score_),
                target=at_least(round(float(whole.best_score_) - error, 4)),
                note=f"{short:.2g} standard errors below the grid's; {watch.seconds:.0f} s; {possible}",
            ),
            Row(f"{name}-fits", "... its share of the fits", used / fits, target=at_most(0.25), note=f"{used} fits"),
        ]
    return found
