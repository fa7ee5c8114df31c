"""`TruVaRSearchCV`: `GridSearchCV` that does not evaluate every configuration, nor each on every fold."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import (
    _fit_and_score,
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)
from sklearn.utils import check_random_state, indexable
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from truvar._typing import Array
from truvar.acquisition import policy_named
from truvar.exceptions import TruvarError
from truvar.integrations.cross_validation import FoldSearch
from truvar.integrations.parameter_encoding import encode

LEAST = 10  # configurations' worth of fits that a budget given as a share comes to at least


class TruVaRSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn carries no types
    """A search over a grid of parameters with cross-validation, for a fraction of the fits that `GridSearchCV` takes.

    One fold is a cheap and noisy measurement of a configuration, all of them are a dear and precise one: TruVaR mixes
    them, and learns from the fold scores how noisy they are. It takes what `GridSearchCV` takes, and

    budget        fits at most: a number (int), or a share of the grid's (float), at least ten configurations' worth
    cost          "fits": every fit costs the same; "seconds": what it takes, learned on the way
    policy        the decision rule, or its name; default `TruVaR()`
    random_state  of the order of the folds and of the model's fit

    `cv_results_` has the configurations that were evaluated, NaN for folds that were not; `mean_test_score` is the mean
    of those that were, and only configurations evaluated on all folds come first in `rank_test_score`. `summary_` says
    which configurations of the whole grid can still be best: print it, or read `summary_.table`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSearchCV._parameter_constraints,
        "param_grid": [dict, list],
        "budget": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right")],
        "cost": [StrOptions({"fits", "seconds"})],
        "policy": [HasMethods(["score", "candidate_rows", "check_supported"]), str, None],
        "random_state": ["random_state"],
    }
    _required_parameters: ClassVar[list[str]] = ["estimator", "param_grid"]

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        budget: float = 0.25,
        cost: str = "fits",
        policy: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_grid = param_grid
        self.budget = budget
        self.cost = cost
        self.policy = policy
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, **params: Any) -> TruVaRSearchCV:
        """Searches the grid, then fits the best configuration to all the data."""
        scorers, _ = self._get_scorers()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        splits = self._splits(X, y, routed.splitter.split)
        self.n_splits_ = len(splits)
        configurations = self._configurations()
        base = clone(self.estimator)
        settings = {
            "scorer": scorers,
            "fit_params": routed.estimator.fit,
            "score_params": routed.scorer.score,
            "return_train_score": self.return_train_score,
            "return_n_test_samples": True,
            "return_times": True,
            "error_score": self.error_score,
            "verbose": self.verbose,
        }
        search = FoldSearch(
            encode(configurations),
            folds=len(splits),
            budget=self._fits(len(configurations), len(splits)),
            rule=policy_named(self.policy or "truvar"),
            timed=self.cost == "seconds",
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        if self.verbose > 0:
            whole = len(configurations) * len(splits)
            print(f"Fitting at most {search.budget} of the {whole} folds of {len(configurations)} candidates")
        outcomes: dict[tuple[int, int], dict[str, Any]] = {}
        workers = joblib.effective_n_jobs(self.n_jobs)
        with Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch) as parallel:
            while pairs := search.ask(workers):
                found = parallel(
                    delayed(_fit_and_score)(
                        clone(base),
                        X,
                        y,
                        train=splits[fold][0],
                        test=splits[fold][1],
                        parameters=configurations[row],
                        split_progress=(fold, len(splits)),
                        candidate_progress=(row, len(configurations)),
                        **settings,
                    )
                    for row, fold in pairs
                )
                outcomes.update(zip(pairs, found, strict=True))
                for (row, fold), outcome in zip(pairs, found, strict=True):
                    seconds = outcome["fit_time"] + outcome["score_time"]
                    search.tell(row, fold, self._score_of(outcome), seconds)
        self._conclude(search, configurations, outcomes, scorers)
        if self.refit:
            self._refit(base, X, y, routed.estimator.fit)
        return self

    def _run_search(self, evaluate_candidates: Any) -> None:
        raise NotImplementedError("TruVaRSearchCV schedules single folds in fit, not candidates")

    # -- before --------------------------------------------------------------------------------------------------------

    def _splits(self, X: Any, y: Any, given: dict[str, Any]) -> list[tuple[Any, Any]]:
        """The folds, drawn once: a splitter that shuffles would give others each time."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        expected = cv.get_n_splits(X, y, **given)
        splits = list(cv.split(X, y, **given))
        if not splits:
            raise ValueError("No fits were performed. Was the CV iterator empty? Were there no candidates?")
        if len(splits) != expected:
            raise ValueError(
                "cv.split and cv.get_n_splits returned inconsistent results. "
                f"Expected {expected} splits, got {len(splits)}"
            )
        return splits

    def _configurations(self) -> list[dict[str, Any]]:
        """The configurations of the grid, each once."""
        configurations = list(ParameterGrid(self.param_grid))
        if not configurations:
            raise ValueError("No fits were performed. Was the CV iterator empty? Were there no candidates?")
        first = ~encode(configurations).duplicated() if len(configurations) > 1 else [True]
        return [configuration for configuration, is_first in zip(configurations, first, strict=True) if is_first]

    def _fits(self, configurations: int, folds: int) -> int:
        whole = configurations * folds
        if isinstance(self.budget, Integral):
            if self.budget < min(folds, whole):
                raise TruvarError(
                    f"budget must allow one configuration on all {folds} folds, got {self.budget} fits; give "
                    f"{folds} or more, or a share of the grid's {whole} such as 0.25"
                )
            return min(int(self.budget), whole)
        return min(max(round(self.budget * whole), LEAST * folds), whole)

    def _score_of(self, outcome: dict[str, Any]) -> float:
        """What configurations are chosen by: the score, or of several the one that `refit` names."""
        scores = outcome["test_scores"]
        if not isinstance(scores, dict):
            return float(scores)
        if not (isinstance(self.refit, str) and self.refit in scores):
            raise TruvarError(
                f"with several metrics refit must name the one to search by, one of {', '.join(scores)}, got "
                f"{self.refit!r}; give its name"
            )
        return float(scores[self.refit])

    # -- after ---------------------------------------------------------------------------------------------------------

    def _conclude(
        self,
        search: FoldSearch,
        configurations: list[dict[str, Any]],
        outcomes: dict[tuple[int, int], dict[str, Any]],
        scorers: Any,
    ) -> None:
        """`cv_results_`, the best configuration and the summary, from what was evaluated."""
        _warn_or_raise_about_fit_failures(list(outcomes.values()), self.error_score)
        if callable(self.scoring):
            _insert_error_scores(list(outcomes.values()), self.error_score)
        rows = sorted({row for row, _ in outcomes})
        results = self._results([configurations[row] for row in rows], rows, outcomes)
        self.multimetric_ = isinstance(next(iter(outcomes.values()))["test_scores"], dict)
        metric = self.refit if self.multimetric_ else "score"
        self.best_index_ = self._select_best_index(self.refit, metric, results)
        if not callable(self.refit):
            self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        self.cv_results_ = results
        self.summary_ = summary(search, configurations, rows[self.best_index_])
        if self.verbose > 0:
            print(self.summary_)

    def _results(
        self, candidates: list[dict[str, Any]], rows: list[int], outcomes: dict[tuple[int, int], dict[str, Any]]
    ) -> dict[str, Any]:
        """GridSearchCV's table, with NaN for the folds that were not evaluated, and with means over those that were."""
        folds, one = self.n_splits_, next(iter(outcomes.values()))
        names = list(one["test_scores"]) if isinstance(one["test_scores"], dict) else None
        nothing = np.nan if names is None else dict.fromkeys(names, np.nan)
        blank = {**dict.fromkeys(("fit_time", "score_time"), np.nan), "test_scores": nothing}
        if self.return_train_score:
            blank["train_scores"] = nothing
        pairs = [(row, fold) for row in rows for fold in range(folds)]
        seen = np.array([pair in outcomes for pair in pairs]).reshape(-1, folds)
        out = [outcomes.get(pair, {**one, **blank}) for pair in pairs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of means over folds that were not evaluated, which are replaced here
            results: dict[str, Any] = self._format_results(candidates, folds, out)
        kinds = ("test", "train") if self.return_train_score else ("test",)
        scores = [f"{kind}_{name}" for kind in kinds for name in names or ["score"]]
        for key in ("fit_time", "score_time", *scores):
            if key in one:
                values = np.array([outcome[key] for outcome in out]).reshape(-1, folds)
            else:
                values = np.column_stack([results[f"split{fold}_{key}"] for fold in range(folds)])
            mean = np.where(seen, values, 0.0).sum(axis=1) / seen.sum(axis=1)
            deviation = np.where(seen, values - mean[:, None], 0.0)
            results[f"mean_{key}"] = mean
            results[f"std_{key}"] = np.sqrt((deviation**2).sum(axis=1) / seen.sum(axis=1))
            if key in scores and not np.isfinite(mean).all():
                warnings.warn(f"One or more of the {key.split('_')[0]} scores are non-finite: {mean}", stacklevel=4)
            if key.startswith("test_"):
                results[f"rank_{key}"] = _ranks(mean, np.asarray(seen.all(axis=1)))
        results["n_folds"] = seen.sum(axis=1)
        return results

    def _refit(self, base: Any, X: Any, y: Any, given: dict[str, Any]) -> None:
        self.best_estimator_ = clone(base).set_params(**clone(self.best_params_, safe=False))
        start = time.time()
        if y is None:
            self.best_estimator_.fit(X, **given)
        else:
            self.best_estimator_.fit(X, y, **given)
        self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _ranks(mean: Array, complete: NDArray[np.bool_]) -> NDArray[np.int32]:
    """1 for the best: by mean score, first those evaluated on all folds, last those without a score."""
    worst = np.isnan(mean)
    if worst.all():
        return np.ones(len(mean), np.int32)
    class_ = np.where(worst, 2, np.where(complete, 0, 1))
    order = np.where(worst, 0.0, mean)
    keys = np.array(list(zip(class_, -order, strict=True)), dtype=[("class", int), ("score", float)])
    _, inverse = np.unique(keys, return_inverse=True)
    return np.asarray(rankdata(inverse, method="min"), dtype=np.int32)


@dataclass(frozen=True)
class Summary:
    """Which configurations can still be best, as far as the model of the scores knows. `print` it.

    table    every configuration of the grid: its parameters; the mean score on all folds that the model expects of it,
             with a lower and an upper bound; how many folds were evaluated; whether it can still be the best one
    best     the parameters that were chosen, and `score` their mean score
    epsilon  by how much any other configuration can be better than the best, if the bounds hold
    """

    table: pd.DataFrame
    best: dict[str, Any]
    score: float
    epsilon: float
    fits: int
    whole: int  # the fits of the whole grid
    folds: int
    beta: float
    reason: str

    @property
    def possible(self) -> pd.DataFrame:
        """The configurations that can still be best, the most promising first."""
        return self.table[self.table["possible"]].sort_values("mean", ascending=False)

    def __str__(self) -> str:
        possible, count = int(self.table["possible"].sum()), len(self.table)
        share = f"{self.fits} of {self.whole} fits ({self.fits / self.whole:.0%}); {self.reason}."
        chosen = ", ".join(f"{name}={_short(value)}" for name, value in self.best.items()) or "the estimator as it is"
        lines = [
            f"Best of what was evaluated on all {self.folds} folds: {chosen}, with a mean score of {self.score:.4g}."
        ]
        if count > 1:
            lines += [
                f"{possible} of {count} configurations can still be best; none is more than {self.epsilon:.2g} better.",
                f"This holds if the bounds do (beta = {self.beta:.3g}); they come from a model learned from these very "
                "scores: a heuristic, no proof.",
            ]
        return "\n".join([*lines, share])


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def summary(search: FoldSearch, configurations: list[dict[str, Any]], best: int) -> Summary:
    """What a search found out, its best configuration being number `best`."""
    result = search.result()
    table = pd.DataFrame(configurations)
    tried = search.tried.sum(axis=1)
    score = float(np.nanmean(search.scores[best])) if not search.failed[best] else float("nan")
    if result is None:
        known = {"mean": score, "lower": score, "upper": score, "folds": tried, "possible": True}
        epsilon, beta = 0.0, 0.0
    else:
        possible = result.potential & ~search.failed
        known = {
            "mean": result.mean,
            "lower": result.lower,
            "upper": result.upper,
            "folds": tried,
            "possible": possible,
        }
        epsilon = max(0.0, float(result.upper[possible].max(initial=-np.inf) - result.lower[best]))
        beta = search.beta
    for name, values in known.items():
        table[f"{name}_" if name in table.columns else name] = values
    return Summary(
        table,
        configurations[best],
        score,
        epsilon,
        int(tried.sum()),
        tried.size * search.folds,
        search.folds,
        beta,
        search.reason,
    )
