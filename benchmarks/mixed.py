"""Mixed problems: truvar beside Optuna's TPE and GP samplers and BoTorch's mixed optimiser.

`python -m benchmarks.mixed` prints, for every problem and method, the area under the curve of the
best value so far: the mean over the evaluations after the initial ones of (best so far - worst) /
(reference - worst), 1 for a method that starts with the reference. Higher is better. All methods
start from the same random points.

| problem | parameters | value |
|---|---|---|
| synthetic | two numbers, one of them log, an integer, three and two categories, an ordinal | a formula |
| svc | kernel, C (log), gamma (log), degree | accuracy in cross-validation on the digits |
| boosting | learning rate, leaves, l2 (all log), depth, a Boolean | minus the log loss on the breast-cancer data |

Optuna and BoTorch are optional; a method whose library is missing is left out and named.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

import truvar as tv

Point = dict[str, Any]
N_INITIAL = 6  # random points that every method starts with
BOTORCH_SAMPLES = (
    256  # points from which the best are searched on; with its defaults it is much slower
)
BOTORCH_RESTARTS = 6


@dataclass(frozen=True)
class MixedProblem:
    """A problem to maximise.

    Attributes:
        name: Its name.
        parameters: The sides of the box.
        f: The function.
        worst: A value that scores 0.
        reference: A value that scores 1.
        evaluations: Number of evaluations, the initial ones included.
        starts: Number of repetitions.
    """

    name: str
    parameters: dict[str, Any]
    f: Callable[[Point], float]
    worst: float
    reference: float
    evaluations: int
    starts: int

    @property
    def domain(self) -> tv.Domain:
        """The box."""
        return tv.Domain.box(representers=1000, **self.parameters)

    def initial(self, seed: int) -> list[Point]:
        """Return random points that all methods start with."""
        rng = np.random.default_rng(seed)
        domain = self.domain
        unit = rng.random((N_INITIAL, len(domain.columns)))
        columns = [parameter.from_unit(unit[:, k]) for k, parameter in enumerate(domain.parameters)]
        return [domain.named(x) for x in np.column_stack(columns)]


# -- problems
# --------------------------------------------------------------------------------------------------


def synthetic(point: Point) -> float:
    """Return a function with several local maxima; the highest value is 0."""
    shape = {"a": 0.0, "b": 0.6, "c": 1.0}[point["kind"]]
    rate = np.log10(point["rate"]) + 3.4 - 0.5 * shape
    depth = (point["depth"] - 7 + 2 * (point["kind"] == "a")) / 4
    x = point["x"] - 0.3 - 0.2 * (point["flag"])
    wave = 0.3 * (1 - np.cos(9 * x))
    batch = abs(np.log2(point["batch"]) - 5)
    return float(
        -(rate**2)
        - depth**2
        - 4 * x**2
        - wave
        - 0.25 * batch
        - 1.5 * (1 - shape)
        - 0.4 * (not point["flag"])
    )


@cache
def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    keep = np.random.default_rng(0).permutation(len(labels))[:600]
    return features[keep] / 16.0, labels[keep]


def svc(point: Point) -> float:
    """Return the mean accuracy of a support vector classifier in three folds."""
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    features, labels = _digits()
    model = SVC(
        kernel=point["kernel"],
        C=point["C"],
        gamma=point["gamma"],
        degree=point["degree"],
        max_iter=5000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cross_val_score(model, features, labels, cv=3).mean())


@cache
def _cancer() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


def boosting(point: Point) -> float:
    """Return minus the mean log loss of gradient boosting in three folds."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_score

    features, labels = _cancer()
    model = HistGradientBoostingClassifier(
        learning_rate=point["learning_rate"],
        max_leaf_nodes=point["leaves"],
        max_depth=point["depth"],
        l2_regularization=point["l2"],
        max_iter=30,
        early_stopping=point["early"],
        random_state=0,
    )
    return float(cross_val_score(model, features, labels, cv=3, scoring="neg_log_loss").mean())


PROBLEMS = [
    MixedProblem(
        "synthetic",
        {
            "rate": tv.Log(1e-6, 1e-1),
            "x": tv.Range(0.0, 1.0),
            "depth": tv.Integer(1, 16),
            "kind": tv.Categorical(["a", "b", "c"]),
            "flag": tv.Boolean(),
            "batch": tv.Ordinal([8, 16, 32, 64, 128]),
        },
        synthetic,
        worst=-8.0,
        reference=0.0,
        evaluations=40,
        starts=4,
    ),
    MixedProblem(
        "svc",
        {
            "kernel": tv.Categorical(["linear", "poly", "rbf", "sigmoid"]),
            "C": tv.Log(1e-3, 1e3),
            "gamma": tv.Log(1e-4, 1e1),
            "degree": tv.Integer(2, 6),
        },
        svc,
        worst=0.85,
        reference=0.975,
        evaluations=35,
        starts=2,
    ),
    MixedProblem(
        "boosting",
        {
            "learning_rate": tv.Log(1e-3, 1.0),
            "leaves": tv.Integer(2, 64, log=True),
            "depth": tv.Integer(1, 12),
            "l2": tv.Log(1e-6, 1e2),
            "early": tv.Boolean(),
        },
        boosting,
        worst=-0.3,
        reference=-0.09,
        evaluations=30,
        starts=2,
    ),
]


# -- methods
# --------------------------------------------------------------------------------------------------


def with_truvar(problem: MixedProblem, seed: int) -> list[float]:
    """Return the values that a study measures."""
    study = tv.Study(problem.domain, tv.Maximize(), seed=seed)
    values = []
    for point in problem.initial(seed):
        values.append(problem.f(point))
        study.tell(point, values[-1])
    while len(values) < problem.evaluations:
        suggestion = study.ask()
        values.append(problem.f(suggestion.point))
        study.tell(suggestion, values[-1])
    return values


def _distributions(problem: MixedProblem) -> dict[str, Any]:
    from optuna import distributions

    found: dict[str, Any] = {}
    for name, parameter in problem.parameters.items():
        if isinstance(parameter, tv.Log):
            found[name] = distributions.FloatDistribution(parameter.low, parameter.high, log=True)
        elif isinstance(parameter, tv.Range):
            found[name] = distributions.FloatDistribution(parameter.low, parameter.high)
        elif isinstance(parameter, tv.Integer):
            found[name] = distributions.IntDistribution(
                parameter.low, parameter.high, log=parameter.log
            )
        elif isinstance(parameter, tv.Boolean):
            found[name] = distributions.CategoricalDistribution([False, True])
        else:
            found[name] = distributions.CategoricalDistribution(list(parameter.choices))
    return found


def with_optuna(sampler: Callable[[Any, int], Any]) -> Callable[[MixedProblem, int], list[float]]:
    """Return the method of a sampler."""

    def run(problem: MixedProblem, seed: int) -> list[float]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="maximize", sampler=sampler(optuna, seed))
        space = _distributions(problem)
        for point in problem.initial(seed):
            study.enqueue_trial(point)
        values = []
        for _ in range(problem.evaluations):
            trial = study.ask(space)
            values.append(problem.f(trial.params))
            study.tell(trial, values[-1])
        return values

    return run


def with_botorch(problem: MixedProblem, seed: int) -> list[float]:
    """Return the values of BoTorch's `MixedSingleTaskGP` and `optimize_acqf_mixed_alternating`,
    by log EI."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import MixedSingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
    from gpytorch.mlls import ExactMarginalLogLikelihood

    warnings.simplefilter("ignore")
    torch.manual_seed(seed)
    domain = problem.domain
    low = domain.bounds[:, 0]
    width = np.ptp(domain.bounds, axis=1)
    width[list(domain.categorical)] = 1.0
    levels = {
        k: ((domain.parameters[k].levels - low[k]) / width[k]).tolist() for k in domain.discrete
    }
    categorical = {k: levels[k] for k in domain.categorical}
    discrete = {k: levels[k] for k in domain.discrete if k not in categorical}
    points = [domain.array(point) for point in problem.initial(seed)]
    values = [problem.f(domain.named(x)) for x in points]
    bounds = torch.tensor(np.stack([np.zeros(len(low)), (domain.bounds[:, 1] - low) / width]))
    while len(values) < problem.evaluations:
        train = torch.tensor((np.array(points) - low) / width)
        outcomes = torch.tensor(values, dtype=torch.double)[:, None]
        model = MixedSingleTaskGP(
            train, outcomes, cat_dims=list(categorical), outcome_transform=Standardize(1)
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        found, _ = optimize_acqf_mixed_alternating(
            LogExpectedImprovement(model, best_f=outcomes.max()),
            bounds,
            discrete_dims=discrete,
            cat_dims=categorical,
            raw_samples=BOTORCH_SAMPLES,
            num_restarts=BOTORCH_RESTARTS,
        )
        x = domain.snap(low + found.detach().numpy() * width)[0]
        points.append(x)
        values.append(problem.f(domain.named(x)))
    return values


METHODS: dict[str, tuple[str | None, Callable[[MixedProblem, int], list[float]]]] = {
    "truvar": (None, with_truvar),
    "optuna TPE": (
        "optuna",
        with_optuna(lambda optuna, seed: optuna.samplers.TPESampler(seed=seed)),
    ),
    "optuna GP": ("optuna", with_optuna(lambda optuna, seed: optuna.samplers.GPSampler(seed=seed))),
    "botorch mixed": ("botorch", with_botorch),
}


def area(problem: MixedProblem, values: list[float]) -> float:
    """Return the area under the curve of the best value so far, after the initial points."""
    best = np.maximum.accumulate(values)[N_INITIAL:]
    return float(((best - problem.worst) / (problem.reference - problem.worst)).mean())


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default=",".join(problem.name for problem in PROBLEMS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument(
        "--starts", type=int, default=None, help="repetitions, instead of those of each problem"
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first repetition")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a line for each repetition, as soon as it is done",
    )
    options = parser.parse_args()
    for problem in PROBLEMS:
        if problem.name not in options.problems.split(","):
            continue
        for name in options.methods.split(","):
            library, method = METHODS[name]
            if library is not None and find_spec(library) is None:
                print(f"{problem.name:10} {name:14} left out: {library} is not installed")
                continue
            curves: list[list[float]] = []
            began = time.process_time()
            for seed in range(options.first, options.first + (options.starts or problem.starts)):
                curves.append(method(problem, seed))
                if options.json:
                    row = {
                        "problem": problem.name,
                        "method": name,
                        "start": seed,
                        "area": area(problem, curves[-1]),
                    }
                    print(json.dumps({**row, "best": max(curves[-1])}), flush=True)
            seconds = (time.process_time() - began) / len(curves)
            areas = [area(problem, curve) for curve in curves]
            if not options.json:
                best = np.mean([max(curve) for curve in curves])
                print(
                    f"{problem.name:10} {name:14} area {np.mean(areas):.4f}  best {best:.4f}  "
                    f"{seconds:.0f} s each  "
                    f"({', '.join(f'{each:.3f}' for each in areas)})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
