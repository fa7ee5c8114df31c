"""`TruVaRSearchCV`: a search like `GridSearchCV` on some configurations and folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.model_selection import check_cv
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

from truvar._typing import Array, Mask
from truvar.acquisition import policy_named
from truvar.acquisition.registry import DEFAULT_POLICY
from truvar.exceptions import InvalidArgumentError
from truvar.integrations._configurations import Configuration, ConfigurationSpace
from truvar.integrations._cross_validation import LISTED, FoldSearch, Pair

# A budget given as a share allows at least this many configurations on all folds.
_MIN_CONFIGURATIONS = 10
# Callbacks came with scikit-learn 1.9.
_HAS_CALLBACKS = (
    hasattr(BaseSearchCV, "_init_callback_context")
    and "caller" in signature(_fit_and_score).parameters
)
# as in scikit-learn
_NO_FITS = "No fits were performed. Was the CV iterator empty? Were there no candidates?"


class TruVaRSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn carries no types
    """A grid search with cross-validation that needs a fraction of the fits of `GridSearchCV`.

    One fold is a cheap and noisy measurement of a configuration, all folds are an expensive and
    precise one. TruVaR chooses configurations and numbers of folds together, and learns from the
    fold scores how noisy they are.

    Args:
        estimator: Estimator to tune, as for `GridSearchCV`.
        param_grid: Grid of parameters, or a list of grids, as for `GridSearchCV`. Values may be
            given by distributions, as for `RandomizedSearchCV`.
        scoring: Metric or metrics, as for `GridSearchCV`.
        n_jobs: Number of fits at the same time, as for `GridSearchCV`.
        refit: Whether to fit the best configuration to all data, as for `GridSearchCV`. With
            several metrics: the one to search by; if it is False or a function, the first metric is
            searched by. A function is given the rows of `cv_results_` that were evaluated on all
            folds, and returns the index of one of these.
        cv: Cross-validation, as for `GridSearchCV`. The folds are drawn once.
        verbose: Above 0, the summary is printed.
        pre_dispatch: As for `GridSearchCV`.
        error_score: Score of a fit that fails, as for `GridSearchCV`.
        return_train_score: Whether `cv_results_` has training scores.
        budget: Largest number of fits (int), or a share of those of the whole grid (float), which
            is at least ten configurations on all folds, and exactly that many with distributions.
            It counts fits whatever `cost` is, so that it does not limit the time.
        cost: What gains are divided by: "fits" if every fit costs the same, "seconds" if it costs
            its time, which is predicted from earlier fits. Quick configurations are then preferred,
            and the budget of fits takes less time.
        policy: Policy or its name. Default: "auto", replaced by quick races over folds if a fit
            takes less than 50 ms of processor time, because the policy's decisions would then take
            a large share of the time.
        random_state: Seed of everything that is drawn.

    Attributes:
        cv_results_: As for `GridSearchCV`, for the configurations that were evaluated, with NaN for
            folds that were not. Means are over the evaluated folds. Configurations that were
            evaluated on all folds come first in `rank_test_score`; if there are none, `best_score_`
            is NaN, with a warning.
        n_folds_: Number of evaluated folds of each configuration of `cv_results_`.
        summary_: `_Summary` of which configurations can still be best: of the whole grid or, if it
            is large, of those that were looked at.
        best_params_: Parameters of the best configuration; also `best_score_`, `best_index_` and
            `best_estimator_`, as for `GridSearchCV`.

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
        "budget": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
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
            InvalidArgumentError: If the budget is too small, or several metrics are given and
                `refit` names none.
            UnknownPolicyError: If there is no policy of that name.
            UnsupportedNoiseLevelsError: If the policy cannot choose the number of folds and has no
                `level`.
        """
        scorers, _ = self._get_scorers()
        X, y = indexable(X, y)
        checked = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(checked)
        weight = checked.get("sample_weight")
        callbacks = _Callbacks(self, X, y, None if weight is None else {"sample_weight": weight})
        splits = self._splits(X, y, routed.splitter.split)
        self.n_splits_ = len(splits)
        space = ConfigurationSpace(self.param_grid)
        if space.size == 0:
            raise ValueError(_NO_FITS)
        base = clone(self.estimator)
        settings = {
            "scorer": scorers,
            "fit_params": routed.estimator.fit,
            "score_params": routed.scorer.score,
            "return_train_score": self.return_train_score,
            "return_n_test_samples": True,
            "return_times": True,
            "return_parameters": False,
            "error_score": self.error_score,
            "verbose": self.verbose,
        }
        search = FoldSearch(
            space,
            folds=len(splits),
            budget=self._n_fits(space.size, len(splits)),
            policy=policy_named(self.policy or DEFAULT_POLICY),
            timed=self.cost == "seconds",
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        if self.verbose > 0:
            print(
                f"Fitting {len(splits)} folds for each of {space.size:g} candidates, totalling at "
                f"most {search.budget} "
                "fits"
            )
        callbacks.begin_search(search.budget)
        outcomes: dict[Pair, dict[str, Any]] = {}
        with Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch) as parallel:
            while pairs := search.ask():
                contexts = [callbacks.for_fit() for _ in pairs]
                found = parallel(
                    delayed(_timed_fit_and_score)(
                        clone(base),
                        X,
                        y,
                        train=splits[fold][0],
                        test=splits[fold][1],
                        parameters=search.configurations[row],
                        split_progress=(fold, len(splits)),
                        candidate_progress=(row, len(search.configurations)),
                        **settings,
                        **context,
                    )
                    for (row, fold), context in zip(pairs, contexts, strict=True)
                )
                for (row, fold), (outcome, processor_seconds) in zip(pairs, found, strict=True):
                    outcomes[row, fold] = outcome
                    seconds = outcome["fit_time"] + outcome["score_time"]
                    search.tell(row, fold, self._score_of(outcome), seconds, processor_seconds)
        callbacks.end_search()
        self._conclude(search, space, outcomes, scorers)
        if self.refit:
            self._refit(base, X, y, routed.estimator.fit, callbacks)
        callbacks.end()
        return self

    def _run_search(self, evaluate_candidates: Any) -> None:
        raise NotImplementedError("TruVaRSearchCV schedules single folds in fit, not candidates")

    def _splits(self, X: Any, y: Any, split_params: dict[str, Any]) -> list[tuple[Any, Any]]:
        """Return the folds.

        They are drawn once, because a splitter that shuffles gives others each time.
        """
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        expected = cv.get_n_splits(X, y, **split_params)
        splits = list(cv.split(X, y, **split_params))
        if not splits:
            raise ValueError(_NO_FITS)
        if len(splits) != expected:
            raise ValueError(
                "cv.split and cv.get_n_splits returned inconsistent results. "
                f"Expected {expected} splits, got {len(splits)}"
            )
        return splits

    def _n_fits(self, configurations: float, folds: int) -> int:
        """Return the largest number of fits."""
        n_all = configurations * folds
        if isinstance(self.budget, Integral):
            if self.budget < min(folds, n_all):
                raise InvalidArgumentError(
                    f"budget must allow one configuration on all {folds} folds, got {self.budget} "
                    "fits; give "
                    f"{folds} or more, or a share of the grid's {n_all:g} such as 0.25"
                )
            return int(min(self.budget, n_all))
        least = _MIN_CONFIGURATIONS * folds
        return least if np.isinf(n_all) else int(min(max(round(self.budget * n_all), least), n_all))

    def _score_of(self, outcome: dict[str, Any]) -> float:
        """Return the score to search by: the only one, the one that `refit` names, or the first."""
        scores = outcome["test_scores"]
        if not isinstance(scores, dict):
            return float(scores)
        if callable(self.scoring):  # otherwise it was checked before the first fit
            self._check_refit_for_multimetric(scores)
        name = self.refit if isinstance(self.refit, str) else next(iter(scores))
        return float(scores[name])

    def _conclude(
        self,
        search: FoldSearch,
        space: ConfigurationSpace,
        outcomes: dict[Pair, dict[str, Any]],
        scorers: Any,
    ) -> None:
        """Set `cv_results_`, the best configuration and the summary."""
        candidates = space.listed() if space.size <= LISTED else search.configurations
        evaluated = {row for row, _ in outcomes}
        rows: list[int] = []
        kept: list[Configuration] = []
        for row, candidate in zip(search.rows_of(candidates), candidates, strict=True):
            if row in evaluated:  # equal configurations of a grid have the same scores
                rows.append(row)
                kept.append(candidate)
        fitted = [
            outcomes[row, fold]
            for row in rows
            for fold in range(search.folds)
            if (row, fold) in outcomes
        ]
        _warn_or_raise_about_fit_failures(fitted, self.error_score)
        if callable(self.scoring):
            _insert_error_scores(fitted, self.error_score)
        results = self._results(kept, rows, outcomes)
        self.multimetric_ = isinstance(next(iter(outcomes.values()))["test_scores"], dict)
        metric = self.refit if self.multimetric_ else "score"
        best: int | None = None
        if self.refit or not self.multimetric_:
            self.best_index_ = self._best_index(metric, results, search.tried[rows])
            best = rows[self.best_index_]
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
                if not search.tried[best].all() and not np.isnan(self.best_score_):
                    warnings.warn(
                        f"No configuration has a score on all {search.folds} folds, so best_score_ "
                        "is NaN, as for "
                        "GridSearchCV; best_params_ is the best of those that have scores on some. "
                        "Check that every "
                        "fold can be scored, for example by shuffling.",
                        stacklevel=3,
                    )
                    self.best_score_ = np.nan
            self.best_params_ = results["params"][self.best_index_]
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        self.cv_results_ = results
        self.n_folds_ = search.tried[rows].sum(axis=1)
        self.summary_ = _summarize(search, best)
        if self.verbose > 0:
            print(self.summary_)

    def _best_index(self, metric: Any, results: dict[str, Any], tried: Mask) -> int:
        """Return the index of the best configuration.

        A function is shown only those evaluated on all folds.
        """
        shown = np.flatnonzero(tried.all(axis=1))
        if not callable(self.refit) or len(shown) in (0, len(tried)):
            return int(self._select_best_index(self.refit, metric, results))
        restricted = {key: values[shown] for key, values in results.items() if key != "params"}
        restricted["params"] = [results["params"][index] for index in shown]
        return int(shown[self._select_best_index(self.refit, metric, restricted)])

    def _results(
        self, candidates: list[Configuration], rows: list[int], outcomes: dict[Pair, dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the table of `GridSearchCV`, with NaN for folds that were not evaluated.

        Means are over the others.
        """
        folds = self.n_splits_
        example = next(iter(outcomes.values()))
        names = list(example["test_scores"]) if isinstance(example["test_scores"], dict) else None
        no_scores = np.nan if names is None else dict.fromkeys(names, np.nan)
        not_evaluated = {
            **example,
            "fit_time": np.nan,
            "score_time": np.nan,
            "test_scores": no_scores,
        }
        if self.return_train_score:
            not_evaluated["train_scores"] = no_scores
        pairs = [(row, fold) for row in rows for fold in range(folds)]
        seen = np.array([pair in outcomes for pair in pairs]).reshape(-1, folds)
        out = [outcomes.get(pair, not_evaluated) for pair in pairs]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # scikit-learn warns of NaN in means, which are replaced below
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
                warnings.warn(
                    f"One or more of the {key.split('_')[0]} scores are non-finite: {mean}",
                    stacklevel=4,
                )
            if key.startswith("test_"):
                results[f"rank_{key}"] = _ranks(mean, np.asarray(seen.all(axis=1)))
        return results

    def _refit(
        self, base: Any, X: Any, y: Any, fit_params: dict[str, Any], callbacks: _Callbacks
    ) -> None:
        """Fit the best configuration to all data."""
        self.best_estimator_ = clone(base).set_params(**clone(self.best_params_, safe=False))
        with callbacks.refitting(self.best_estimator_):
            start = time.time()
            if y is None:
                self.best_estimator_.fit(X, **fit_params)
            else:
                self.best_estimator_.fit(X, y, **fit_params)
            self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _timed_fit_and_score(*args: Any, **options: Any) -> tuple[dict[str, Any], float]:
    """Return what `_fit_and_score` returns, and the processor time that its thread took."""
    start = time.thread_time()
    outcome = _fit_and_score(*args, **options)
    return outcome, time.thread_time() - start


class _Callbacks:
    """Calls of the callbacks of scikit-learn 1.9, in the order of `GridSearchCV`.

    Args:
        search: The search.
        X: Features.
        y: Labels or values.
        metadata: Sample weights, if there are some.
    """

    def __init__(
        self, search: TruVaRSearchCV, X: Any, y: Any, metadata: dict[str, Any] | None
    ) -> None:
        self._search = search
        self._data = {"estimator": search, "X": X, "y": y, "metadata": metadata}
        self._root: Any = None
        self._within: Any = None
        self._n_fits = 0
        if _HAS_CALLBACKS:
            root = search._init_callback_context(max_subtasks=1 + (search.refit is not False))
            self._root = root.call_on_fit_task_begin(**self._data)

    def begin_search(self, n_fits: int) -> None:
        """Begin the search of at most so many fits."""
        if self._root is not None:
            within = self._root.subcontext(
                task_name="search", max_subtasks=n_fits, sequential_subtasks=False
            )
            self._within = within.call_on_fit_task_begin(estimator=self._search)

    def for_fit(self) -> dict[str, Any]:
        """Return the arguments of a fit that callbacks need."""
        if self._root is None:
            return {}
        self._n_fits += 1
        context = self._within.subcontext(
            task_name="candidate-split-evaluation", task_id=self._n_fits - 1
        )
        return {"caller": self._search, "callback_ctx": context}

    def end_search(self) -> None:
        """End the search."""
        if self._root is not None:
            self._within.call_on_fit_task_end(estimator=self._search)

    @contextmanager
    def refitting(self, best: Any) -> Iterator[None]:
        """Surround the fit of the best estimator."""
        if self._root is None:
            yield
            return
        context = self._root.subcontext(task_name="refit-with-best-params")
        with context.propagate_callback_context(best):
            context.call_on_fit_task_begin(**self._data)
            yield
        context.call_on_fit_task_end(**self._data)

    def end(self) -> None:
        """End the fit."""
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._data)


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
class _Summary:
    """Summary of a search: which configurations can still be best, by the model of the scores.

    `str(summary)` is a text of a few lines.

    Attributes:
        table: A row per configuration that was looked at, which are all unless the grid is large:
            its parameters, the expected mean score over all folds (`mean`) with bounds (`lower`,
            `upper`), the number of evaluated `folds`, and whether it can still be best
            (`possible`).
        best: Parameters of the best configuration.
        score: Its mean score.
        epsilon: By how much another configuration can be better at most, if the bounds hold.
        fits: Number of fits.
        whole: Number of fits of the whole grid; infinite with distributions.
        folds: Number of folds.
        best_folds: Number of folds that the best configuration was evaluated on.
        beta: Confidence parameter of the bounds.
        reason: Reason for which the search ended.
    """

    table: pd.DataFrame
    best: dict[str, Any]
    score: float
    epsilon: float
    fits: int
    whole: float
    folds: int
    best_folds: int
    beta: float
    reason: str

    @property
    def possible(self) -> pd.DataFrame:
        """Rows of the configurations that can still be best, by decreasing expected score."""
        return self.table[self.table["possible"]].sort_values("mean", ascending=False)

    def __str__(self) -> str:
        possible = int(self.table["possible"].sum())
        count = len(self.table)
        share = f"{self.fits} of {self.whole:g} fits ({self.fits / self.whole:.0%}); {self.reason}."
        if np.isinf(self.whole):
            share = f"{self.fits} fits; {self.reason}."
        best = ", ".join(f"{name}={_format_value(value)}" for name, value in self.best.items())
        best = best or "the estimator without changes"
        extent = f"all {self.folds} folds"
        if self.best_folds < self.folds:
            extent = f"{self.best_folds} of {self.folds} folds only"
        lines = [
            f"Best configuration evaluated on {extent}: {best}, with a mean score of "
            f"{self.score:.4g}."
        ]
        if count > 1:
            lines += [
                f"{possible} of {count} configurations can still be best; none is more than "
                f"{self.epsilon:.2g} better.",
                f"This holds if the bounds hold (beta = {self.beta:.3g}). They come from a model "
                "that was learned from "
                "the same scores, so this is a heuristic and no proof.",
            ]
        return "\n".join([*lines, share])


def _format_value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _summarize(search: FoldSearch, best: int | None) -> _Summary:
    """Return the summary of a search.

    Args:
        search: The search, finished.
        best: Row of the best configuration; None: that of the highest posterior mean.
    """
    result = search.result()
    if best is None:
        best = 0 if result is None else int(np.argmax(result.mean))
    table = pd.DataFrame(search.configurations)
    n_tried = search.tried.sum(axis=1)
    score = (
        float("nan")
        if np.isnan(search.scores[best]).all()
        else float(np.nanmean(search.scores[best]))
    )
    columns: dict[str, Any]
    if result is None:
        columns = {
            "mean": score,
            "lower": score,
            "upper": score,
            "folds": n_tried,
            "possible": True,
        }
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
    return _Summary(
        table=table,
        best=search.configurations[best],
        score=score,
        epsilon=epsilon,
        fits=int(n_tried.sum()),
        whole=search.n_all,
        folds=search.folds,
        best_folds=int(n_tried[best]),
        beta=search.beta,
        reason=search.reason,
    )
