"""Tuning with scikit-learn: `TruVaRSearchCV` at equal processor time with other searches, and on
large grids.

    python -m benchmarks --only search
    python -m benchmarks.search --jobs wine --seeds 3
    python -m benchmarks.search --jobs grids

All methods search the same distributions with the same folds. Random search makes a number of
configurations; the processor time that it takes is what the others may take, their own decisions
included. The score of a run is that of the configuration that it chose: its mean over the folds,
computed after the run in the same way for all methods. It tells how well the search maximised what
it was asked to; on other data all configurations score lower.

| job | estimator | parameters |
|---|---|---|
| digits | SVC on 300 digits | C, gamma (log) |
| diabetes | scaled SVR | C, gamma, epsilon (log) |
| wine | scaling, PCA, SVC | C, gamma (log), components, kernel |
| cancer | HistGradientBoosting | learning rate, leaves, l2 (log), depth |

The constants of the search were chosen on digits, diabetes and wine. Four more jobs show whether it
suits only those; they run by name:

| job | estimator | parameters |
|---|---|---|
| logistic | logistic regression on the cancer data | C (log), share of the l1 penalty |
| neighbours | PCA and k nearest neighbours on 700 digits | components, neighbours, weights, power of the metric |
| forest | random forest on the wine data | features, samples per leaf, depth, criterion |
| ridge | ridge regression on powers of the diabetes data | penalty (log), degree, kind of powers |
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # makes HalvingRandomSearchCV importable
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.measure import Row, Stopwatch, at_least, at_most, clock, one_thread
from truvar.integrations import _cross_validation as cross_validation
from truvar.integrations.sklearn import TruVaRSearchCV

N_SEEDS = 10
FOLDS = 5
CALIBRATIONS = 3  # runs that find out how much of a method fits into the time
ATTEMPTS = 3  # repetitions of the runs until their time is right
TOLERANCE = 0.07  # relative, of that time
GRID_FITS = 60  # fits on large grids
LARGE = (20_000, 1_000_000)  # configurations
MAX_OVERHEAD = 10.0  # seconds, for 20,000 configurations


@dataclass(frozen=True)
class Job:
    """A tuning job.

    Attributes:
        name: Its name.
        data: Returns features and labels.
        estimator: The estimator.
        space: Distributions of its parameters.
        configurations: Configurations that random search makes.
        classifies: Whether the folds are stratified.
    """

    name: str
    data: Callable[[], tuple[Any, Any]]
    estimator: Any
    space: dict[str, Any]
    configurations: int
    classifies: bool = True

    @property
    def folds(self) -> Any:
        """The folds, the same for all methods."""
        kind = StratifiedKFold if self.classifies else KFold
        return kind(FOLDS, shuffle=True, random_state=0)


@cache
def _digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300]


@cache
def _more_digits() -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X[300:1000], y[300:1000]


@cache
def _diabetes() -> tuple[Any, Any]:
    return load_diabetes(return_X_y=True)


@cache
def _wine() -> tuple[Any, Any]:
    return load_wine(return_X_y=True)


@cache
def _cancer() -> tuple[Any, Any]:
    return load_breast_cancer(return_X_y=True)


JOBS = (
    Job(
        "digits", _digits, SVC(), {"C": loguniform(1e-1, 1e3), "gamma": loguniform(1e-6, 1e-1)}, 20
    ),
    Job(
        "diabetes",
        _diabetes,
        make_pipeline(StandardScaler(), SVR(max_iter=5000)),
        {
            "svr__C": loguniform(1e-1, 1e4),
            "svr__gamma": loguniform(1e-5, 1e1),
            "svr__epsilon": loguniform(1e-2, 1e2),
        },
        30,
        classifies=False,
    ),
    Job(
        "wine",
        _wine,
        make_pipeline(StandardScaler(), PCA(), SVC(max_iter=2000)),
        {
            "pca__n_components": randint(1, 14),
            "svc__C": loguniform(1e-3, 1e3),
            "svc__gamma": loguniform(1e-5, 1e1),
            "svc__kernel": ["rbf", "poly", "sigmoid"],
        },
        30,
    ),
    Job(
        "cancer",
        _cancer,
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
        {
            "learning_rate": loguniform(1e-3, 1.0),
            "max_leaf_nodes": randint(2, 64),
            "l2_regularization": loguniform(1e-6, 1e2),
            "max_depth": randint(1, 12),
        },
        20,
    ),
)

HELD_BACK = (
    Job(
        "logistic",
        _cancer,
        make_pipeline(StandardScaler(), LogisticRegression(solver="saga", max_iter=60)),
        {
            "logisticregression__C": loguniform(1e-4, 1e4),
            "logisticregression__l1_ratio": uniform(0, 1),
        },
        20,
    ),
    Job(
        "neighbours",
        _more_digits,
        make_pipeline(PCA(random_state=0), KNeighborsClassifier()),
        {
            "pca__n_components": randint(2, 60),
            "kneighborsclassifier__n_neighbors": randint(1, 30),
            "kneighborsclassifier__weights": ["uniform", "distance"],
            "kneighborsclassifier__p": uniform(1, 3),
        },
        20,
    ),
    Job(
        "forest",
        _wine,
        RandomForestClassifier(20, random_state=0),
        {
            "max_features": uniform(0.05, 0.95),
            "min_samples_leaf": randint(1, 30),
            "max_depth": randint(1, 12),
            "criterion": ["gini", "entropy"],
        },
        20,
    ),
    Job(
        "ridge",
        _diabetes,
        make_pipeline(StandardScaler(), PolynomialFeatures(), Ridge()),
        {
            "ridge__alpha": loguniform(1e-3, 1e5),
            "polynomialfeatures__degree": randint(1, 4),
            "polynomialfeatures__interaction_only": [True, False],
        },
        20,
        classifies=False,
    ),
)


# -- methods: each returns a score after the given amount of work
# ------------------------------------------------------


def with_random(job: Job, amount: int, seed: int) -> dict[str, Any]:
    """Return the configuration that random search chooses."""
    search = RandomizedSearchCV(
        job.estimator,
        job.space,
        n_iter=amount,
        cv=job.folds,
        refit=False,
        random_state=seed,
        error_score=-1.0,
    )
    return dict(search.fit(*job.data()).best_params_)


def with_truvar(job: Job, amount: int, seed: int) -> dict[str, Any]:
    """Return the configuration that truvar chooses."""
    search = TruVaRSearchCV(
        job.estimator,
        job.space,
        cv=job.folds,
        refit=False,
        budget=amount,
        random_state=seed,
        error_score=-1.0,
    )
    return dict(search.fit(*job.data()).best_params_)


def with_halving(job: Job, amount: int, seed: int) -> dict[str, Any]:
    """Return the configuration that successive halving chooses."""
    search = HalvingRandomSearchCV(
        job.estimator,
        job.space,
        n_candidates=amount,
        min_resources="exhaust",
        cv=job.folds,
        refit=False,
        random_state=seed,
        error_score=-1.0,
    )
    return dict(search.fit(*job.data()).best_params_)


def with_tpe(job: Job, amount: int, seed: int) -> dict[str, Any]:
    """Return the configuration that Optuna's TPE chooses."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)

    def objective(trial: Any) -> float:
        params = {}
        for name, axis in job.space.items():
            if isinstance(axis, list):
                params[name] = trial.suggest_categorical(name, axis)
            elif axis.dist.name == "randint":
                params[name] = trial.suggest_int(name, int(axis.args[0]), int(axis.args[1]) - 1)
            elif axis.dist.name == "uniform":
                params[name] = trial.suggest_float(name, axis.args[0], axis.args[0] + axis.args[1])
            else:
                params[name] = trial.suggest_float(name, *axis.args, log=True)
        return score(job, params)

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=amount)
    return dict(study.best_params)


def score(job: Job, params: dict[str, Any]) -> float:
    """Return the mean score of a configuration over the folds."""
    estimator = clone(job.estimator).set_params(**params)
    return float(cross_val_score(estimator, *job.data(), cv=job.folds, error_score=-1.0).mean())


METHODS: dict[str, tuple[str | None, Callable[[Job, int, int], dict[str, Any]]]] = {
    "truvar": (None, with_truvar),
    "random": (None, with_random),
    "halving": (None, with_halving),
    "TPE": ("optuna", with_tpe),
}


@dataclass(frozen=True)
class Outcome:
    """Scores of a method.

    Attributes:
        scores: Score of every seed.
        amount: Fits, configurations or trials.
        seconds: Mean processor time of a run.
    """

    scores: list[float]
    amount: int
    seconds: float


def measure(job: Job, seeds: int, methods: Sequence[str] = tuple(METHODS)) -> dict[str, Outcome]:
    """Return the outcomes of methods in the time that random search takes.

    How long a method takes depends on the seed, so its runs are repeated with another amount of
    work until their mean time is right.
    """
    found: dict[str, Outcome] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_random(job, 2, 0)  # what is imported and compiled once does not count
        with_truvar(job, 10 * FOLDS, 0)
        found["random"] = _runs(job, "random", job.configurations, seeds)
        for name, (library, _) in METHODS.items():
            if (
                name == "random"
                or name not in methods
                or (library is not None and find_spec(library) is None)
            ):
                continue
            seconds = found["random"].seconds
            amount = _calibrated(job, name, seconds)
            for _ in range(ATTEMPTS):
                found[name] = _runs(job, name, amount, seeds)
                ratio = seconds / found[name].seconds
                if abs(ratio - 1) <= TOLERANCE:
                    break
                amount = max(_least(name), round(amount * ratio))
    return found


def _runs(job: Job, name: str, amount: int, seeds: int) -> Outcome:
    chosen = []
    start = clock()
    for seed in range(seeds):
        chosen.append(METHODS[name][1](job, amount, seed))
    seconds = (clock() - start) / seeds
    return Outcome([score(job, params) for params in chosen], amount, seconds)


def _calibrated(job: Job, name: str, seconds: float) -> int:
    """Return the amount of work of a method that takes so long."""
    amount = job.configurations * (FOLDS if name == "truvar" else 1)
    for run in range(CALIBRATIONS):
        with Stopwatch() as watch:
            METHODS[name][1](job, amount, 1000 + run)
        amount = max(_least(name), round(amount * min(2.0, max(0.4, seconds / watch.seconds))))
    return amount


def _least(name: str) -> int:
    """Return the least amount of work of a method."""
    return 2 * FOLDS if name == "truvar" else 6


# -- rows
# --------------------------------------------------------------------------------------------------


def rows(quick: bool) -> list[Row]:
    """Return a row for every job and method, and the overhead on large grids."""
    found: list[Row] = []
    for job in JOBS[2:3] if quick else JOBS:
        outcomes = measure(job, 1 if quick else N_SEEDS)
        best = max(
            float(np.mean(each.scores)) for name, each in outcomes.items() if name != "truvar"
        )
        for name, each in outcomes.items():
            mean = float(np.mean(each.scores))
            error = float(np.std(each.scores) / np.sqrt(len(each.scores)))
            target = at_least(round(best, 4)) if name == "truvar" else None
            unit = {"truvar": "fits"}.get(name, "configurations")
            note = f"standard error {error:.2g}; {each.amount} {unit}, {each.seconds:.2f} s"
            found.append(
                Row(
                    f"search-{job.name}-{name}",
                    f"{job.name}: {name}, mean score",
                    mean,
                    "",
                    target,
                    note,
                )
            )
    for count in LARGE[:1] if quick else LARGE:
        found += [_overhead(count, "cheap"), _overhead(count, "expensive")]
    return found


def _overhead(count: int, kind: str) -> Row:
    """Return the processor time that a search of a large grid takes, with fits that count as
    cheap or as expensive."""
    side = round(count**0.5)
    grid = {"C": np.logspace(-3, 3, count // side), "gamma": np.logspace(-5, 1, side)}
    X, y = load_wine(return_X_y=True)
    with mock.patch.object(
        cross_validation, "CHEAP_SECONDS", {"cheap": np.inf, "expensive": 0.0}[kind]
    ):
        TruVaRSearchCV(SVC(), {"C": np.logspace(-1, 1, 40)}, cv=3, random_state=0).fit(
            X, y
        )  # compiles
        with Stopwatch() as watch:
            search = TruVaRSearchCV(
                SVC(), grid, cv=3, refit=False, budget=GRID_FITS, random_state=0
            ).fit(X, y)
    what = f"{count:,} configurations, {GRID_FITS} {kind} fits: processor time, the fits' few ms included"
    target = at_most(MAX_OVERHEAD) if count == LARGE[0] else None
    return Row(
        f"search-grid-{count}-{kind}",
        what,
        watch.seconds,
        "s",
        target,
        f"best score {search.best_score_:.3f}",
    )


def main() -> None:
    """Run some of the jobs and print their outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--jobs", default=",".join(job.name for job in JOBS), help="names, or grids for large grids"
    )
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    options = parser.parse_args()
    with one_thread():
        for count in LARGE if "grids" in options.jobs.split(",") else ():
            for kind in ("cheap", "expensive"):
                row = _overhead(count, kind)
                print(f"{row.what}: {row.measured:.2f} {row.unit}, {row.note}", flush=True)
        for job in (*JOBS, *HELD_BACK):
            if job.name not in options.jobs.split(","):
                continue
            for name, each in measure(job, options.seeds, options.methods.split(",")).items():
                scores = " ".join(f"{value:.4f}" for value in each.scores)
                mean = float(np.mean(each.scores))
                print(
                    f"{job.name:9} {name:8} {mean:.5f}  {each.amount:4} {each.seconds:.2f} s  "
                    f"{scores}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
