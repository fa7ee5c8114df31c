"""`TruVaRSearchCV`: a search like `GridSearchCV` that evaluates only some configurations, and those on some folds."""

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
from truvar.exceptions import InvalidArgumentError
from truvar.integrations.cross_validation import FoldSearch
from truvar.integrations.parameter_encoding import encode

MIN_CONFIGURATIONS = 10  # a budget given as a share allows at least this many configurations on all folds
NO_FITS = "No fits were performed. Was the CV iterator empty? Were there no candidates?"  # as in scikit-learn


class TruVaRSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn carries no types
    """A grid search with cross-validation that needs a fraction of the fits of `GridSearchCV`.

    One fold is a cheap and noisy measurement of a configuration, all folds are an expensive and precise one. TruVaR
    chooses configurations and numbers of folds together, and learns from the fold scores how noisy they are.

    Args:
        estimator: Estimator to tune, as for `GridSearchCV`.
        param_grid: Grid of parameters, or a list of grids, as for `GridSearchCV`.
        scoring: Metric or metrics, as for `GridSearchCV`.
        n_jobs: Number of fits at the same time, as for `GridSearchCV`.
        refit: Whether to fit the best configuration to all data. With several metrics: the one to search by.
        cv: Cross-validation, as for `GridSearchCV`. The folds are drawn once.
        verbose: Above 0, the summary is printed.
        pre_dispatch: As for `GridSearchCV`.
        error_score: Score of a fit that fails, as for `GridSearchCV`.
        return_train_score: Whether `cv_results_` has training scores.
        budget: Largest number of fits (int), or a share of those of the whole grid (float), which is at least ten
            configurations on all folds.
        cost: "fits" if every fit costs the same, "seconds" if it costs its time, which is predicted from earlier fits.
        policy: Policy or its name. Default: `TruVaR()`.
        random_state: Seed of the order of the folds and of the fit of the model.

    Attributes:
        cv_results_: As for `GridSearchCV`, for the configurations that were evaluated, with NaN for folds that were
            not, and with `n_folds`. Means are over the evaluated folds. Configurations that were evaluated on all folds
            come first in `rank_test_score`.
        summary_: `Summary` of which configurations of the whole grid can still be best.
        best_params_: Parameters of the best configuration; also `best_score_`, `best_index_` and `best_estimator_`, as
            for `GridSearchCV`.

    Example:
        ```python
        grid = {"C": np.logspace(-2, 3, 11), "gamma": np.logspace(-4, 1, 11)}
        search = TruVaRSearchCV(SVC(), grid, cv=5, budget=80, random_state=0).fit(X, y)
        print(search.best_params_, search.summary_)
        ```
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
        """Search the grid, then fit the best configuration to all data.

        Args:
            X: Features.
            y: Labels or values. None for unsupervised estimators.
            **params: Passed to the estimator, the scorer and the splitter, as for `GridSearchCV`.

        Returns:
            This object.

        Raises:
            InvalidArgumentError: If the budget is too small, or several metrics are given and `refit` names none.
            UnknownPolicyError: If there is no policy of that name.
            UnsupportedNoiseLevelsError: If the policy cannot choose the number of folds and has no `level`.
        """
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
            budget=self._n_fits(len(configurations), len(splits)),
            policy=policy_named(self.policy or "truvar"),
            timed=self.cost == "seconds",
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        if self.verbose > 0:
            n_all = len(configurations) * len(splits)
            print(f"Fitting at most {search.budget} of the {n_all} folds of {len(configurations)} candidates")
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

    def _splits(self, X: Any, y: Any, split_params: dict[str, Any]) -> list[tuple[Any, Any]]:
        """Return the folds. They are drawn once, because a splitter that shuffles gives others each time."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        expected = cv.get_n_splits(X, y, **split_params)
        splits = list(cv.split(X, y, **split_params))
        if not splits:
            raise ValueError(NO_FITS)
        if len(splits) != expected:
            raise ValueError(
                "cv.split and cv.get_n_splits returned inconsistent results. "
                f"Expected {expected} splits, got {len(splits)}"
            )
        return splits

    def _configurations(self) -> list[dict[str, Any]]:
        """Return the configurations of the grid without duplicates."""
        configurations = list(ParameterGrid(self.param_grid))
        if not configurations:
            raise ValueError(NO_FITS)
        if len(configurations) == 1:
            return configurations
        duplicated = encode(configurations).duplicated()
        return [configuration for configuration, again in zip(configurations, duplicated, strict=True) if not again]

    def _n_fits(self, configurations: int, folds: int) -> int:
        """Return the largest number of fits."""
        n_all = configurations * folds
        if isinstance(self.budget, Integral):
            if self.budget < min(folds, n_all):
                raise InvalidArgumentError(
                    f"budget must allow one configuration on all {folds} folds, got {self.budget} fits; give "
                    f"{folds} or more, or a share of the grid's {n_all} such as 0.25"
                )
            return min(int(self.budget), n_all)
        return min(max(round(self.budget * n_all), MIN_CONFIGURATIONS * folds), n_all)

    def _score_of(self, outcome: dict[str, Any]) -> float:
        """Return the score to search by: the only one, or the one that `refit` names."""
        scores = outcome["test_scores"]
        if not isinstance(scores, dict):
            return float(scores)
        if not (isinstance(self.refit, str) and self.refit in scores):
            raise InvalidArgumentError(
                f"with several metrics refit must name the one to search by, one of {', '.join(scores)}, got "
                f"{self.refit!r}; give its name"
            )
        return float(scores[self.refit])

    def _conclude(
        self,
        search: FoldSearch,
        configurations: list[dict[str, Any]],
        outcomes: dict[tuple[int, int], dict[str, Any]],
        scorers: Any,
    ) -> None:
        """Set `cv_results_`, the best configuration and the summary."""
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
        self.summary_ = summarize(search, configurations, rows[self.best_index_])
        if self.verbose > 0:
            print(self.summary_)

    def _results(
        self, candidates: list[dict[str, Any]], rows: list[int], outcomes: dict[tuple[int, int], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the table of `GridSearchCV`, with NaN for folds that were not evaluated and means over the others."""
        folds = self.n_splits_
        example = next(iter(outcomes.values()))
        names = list(example["test_scores"]) if isinstance(example["test_scores"], dict) else None
        no_scores = np.nan if names is None else dict.fromkeys(names, np.nan)
        not_evaluated = {**example, "fit_time": np.nan, "score_time": np.nan, "test_scores": no_scores}
        if self.return_train_score:
            not_evaluated["train_scores"] = no_scores
        pairs = [(row, fold) for row in rows for fold in range(folds)]
        seen = np.array([pair in outcomes for pair in pairs]).reshape(-1, folds)
        out = [outcomes.get(pair, not_evaluated) for pair in pairs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns of NaN in means, which are replaced below
            results: dict[str, Any] = self._format_results(candidates, folds, out)
        kinds = ("test", "train") if self.return_train_score else ("test",)
        scores = [f"{kind}_{name}" for kind in kinds for name in names or ["score"]]
        for key in ("fit_time", "score_time", *scores):
            if key in example:
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

    def _refit(self, base: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        """Fit the best configuration to all data."""
        self.best_estimator_ = clone(base).set_params(**clone(self.best_params_, safe=False))
        start = time.time()
        if y is None:
            self.best_estimator_.fit(X, **fit_params)
        else:
            self.best_estimator_.fit(X, y, **fit_params)
        self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _ranks(mean: Array, complete: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return ranks by mean score, 1 for the best.

    Configurations evaluated on all folds come first, configurations without a score last.
    """
    failed = np.isnan(mean)
    if failed.all():
        return np.ones(len(mean), np.int32)
    group = np.where(failed, 2, np.where(complete, 0, 1))
    order = np.where(failed, 0.0, mean)
    keys = np.array(list(zip(group, -order, strict=True)), dtype=[("group", int), ("score", float)])
    _, inverse = np.unique(keys, return_inverse=True)
    return np.asarray(rankdata(inverse, method="min"), dtype=np.int32)


@dataclass(frozen=True)
class Summary:
    """Summary of a search: which configurations can still be best, according to the model of the scores.

    `str(summary)` is a text of a few lines.

    Attributes:
        table: A row per configuration of the grid: its parameters, the expected mean score over all folds (`mean`) with
            bounds (`lower`, `upper`), the number of evaluated `folds`, and whether it can still be best (`possible`).
        best: Parameters of the best configuration.
        score: Its mean score.
        epsilon: By how much another configuration can be better at most, if the bounds hold.
        fits: Number of fits.
        whole: Number of fits of the whole grid.
        folds: Number of folds.
        beta: Confidence parameter of the bounds.
        reason: Reason for which the search ended.
    """

    table: pd.DataFrame
    best: dict[str, Any]
    score: float
    epsilon: float
    fits: int
    whole: int
    folds: int
    beta: float
    reason: str

    @property
    def possible(self) -> pd.DataFrame:
        """Rows of the configurations that can still be best, by decreasing expected score."""
        return self.table[self.table["possible"]].sort_values("mean", ascending=False)

    def __str__(self) -> str:
        possible = int(self.table["possible"].sum())
        count = len(self.table)
        share = f"{self.fits} of {self.whole} fits ({self.fits / self.whole:.0%}); {self.reason}."
        best = ", ".join(f"{name}={_format_value(value)}" for name, value in self.best.items())
        best = best or "the estimator without changes"
        lines = [
            f"Best configuration evaluated on all {self.folds} folds: {best}, with a mean score of {self.score:.4g}."
        ]
        if count > 1:
            lines += [
                f"{possible} of {count} configurations can still be best; none is more than {self.epsilon:.2g} better.",
                f"This holds if the bounds hold (beta = {self.beta:.3g}). They come from a model that was learned from "
                "the same scores, so this is a heuristic and no proof.",
            ]
        return "\n".join([*lines, share])


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def summarize(search: FoldSearch, configurations: list[dict[str, Any]], best: int) -> Summary:
    """Return the summary of a search.

    Args:
        search: The search, finished.
        configurations: All configurations of the grid.
        best: Index of the best one.
    """
    result = search.result()
    table = pd.DataFrame(configurations)
    n_tried = search.tried.sum(axis=1)
    score = float("nan") if search.failed[best] else float(np.nanmean(search.scores[best]))
    columns: dict[str, Any]
    if result is None:
        columns = {"mean": score, "lower": score, "upper": score, "folds": n_tried, "possible": True}
        epsilon = 0.0
    else:
        possible = result.potential & ~search.failed
        columns = {
            "mean": result.mean,
            "lower": result.lower,
            "upper": result.upper,
            "folds": n_tried,
            "possible": possible,
        }
        epsilon = max(0.0, float(result.upper[possible].max(initial=-np.inf) - result.lower[best]))
    for name, values in columns.items():
        table[f"{name}_" if name in table.columns else name] = values
    return Summary(
        table=table,
        best=configurations[best],
        score=score,
        epsilon=epsilon,
        fits=int(n_tried.sum()),
        whole=n_tried.size * search.folds,
        folds=search.folds,
        beta=search.beta,
        reason=search.reason,
    )
