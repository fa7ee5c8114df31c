"""Methods compared: the default study of truvar, and what people would use instead, with their
default settings.

All methods see the same interface: rows and values come in through `tell`, `ask` returns the row to
measure next, and `report` the present answer. Peers are given the coordinates scaled to the unit
cube, and values to be maximised. They fit their model once per measurement and choose among the
rows that have not been measured yet.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from scipy.stats import norm

import truvar as tv
from benchmarks.decision.fields import Array
from benchmarks.instances import Instance
from benchmarks.scratch.problems import Kind

OURS = "truvar"
STRADDLE = 1.96  # standard deviations in the straddle score
RESTARTS = 2  # of scikit-learn's optimiser
SMAC_TRIALS = 1000  # more than any run has
BATCH = 2048  # candidates that BoTorch predicts or scores at a time


class Method(Protocol):
    """A method in a run on one instance."""

    def tell(self, row: int, value: float) -> None:
        """Take a measured value."""

    def ask(self) -> int:
        """Return the row to measure next.

        Raises:
            Finished: If the method considers the problem solved.
        """

    def report(self) -> int | np.ndarray:
        """Return the recommended row; for a level set, the mask of the rows that are above the
        threshold."""


class DefaultStudy:
    """The default study: nothing given but the domain, the goal and the cost."""

    def __init__(self, instance: Instance) -> None:
        self.study = tv.Study(instance.domain, instance.goal, cost=1.0, seed=instance.seed[1])
        self.suggestion: tv.Suggestion | None = None

    def tell(self, row: int, value: float) -> None:
        if self.suggestion is None:
            self.study.tell(self.study.domain.point(row), value)
        else:
            self.study.tell(self.suggestion, value)
        self.suggestion = None

    def ask(self) -> int:
        self.suggestion = self.study.ask()
        assert self.suggestion.index is not None
        return self.suggestion.index

    def report(self) -> int | np.ndarray:
        result = self.study.result()
        if result.classification is not None:
            return result.classification
        assert result.best.index is not None
        return result.best.index


def unit_points(domain: tv.Domain) -> Array:
    """Return the candidates in the unit cube, with a column of zeros and ones for each category."""
    columns = []
    for k, column in enumerate(domain.points.T):
        if k in domain.categorical:
            columns += [(column == level).astype(float) for level in np.unique(column)]
        else:
            columns.append((column - column.min()) / np.ptp(column))
    return np.column_stack(columns)


class _Peer:
    """Base of the peers: data for maximisation, the rows left, and the best observed row as the
    answer."""

    def __init__(self, instance: Instance) -> None:
        self.points = unit_points(instance.domain)
        self.shape = instance.domain.shape
        self.categorical = instance.domain.categorical
        self.sign = instance.goal.sign
        self.threshold = instance.goal.threshold if isinstance(instance.goal, tv.LevelSet) else None
        self.seed = int(np.random.default_rng([*instance.seed, 1]).integers(2**31))
        self.rows: list[int] = []
        self.values: list[float] = []

    def tell(self, row: int, value: float) -> None:
        self.rows.append(row)
        self.values.append(self.sign * value)

    def left(self) -> Array:
        return np.setdiff1d(np.arange(len(self.points)), self.rows)

    def report(self) -> int | np.ndarray:
        return self.rows[int(np.argmax(self.values))]


class ModelPeer(_Peer):
    """Base of the peers with a model: `fit` returns posterior mean and standard deviation on the
    whole domain."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._posterior: tuple[Array, Array] | None = None

    def fit(self) -> tuple[Array, Array]:
        raise NotImplementedError

    def tell(self, row: int, value: float) -> None:
        super().tell(row, value)
        self._posterior = None

    @property
    def posterior(self) -> tuple[Array, Array]:
        if self._posterior is None:
            self._posterior = self.fit()
        return self._posterior

    def scores(self) -> Array:
        """Return the score of every row: straddle for a level set, expected improvement for an
        optimum."""
        mean, sd = self.posterior
        if self.threshold is not None:
            return STRADDLE * sd - np.abs(mean - self.threshold)
        above = mean - max(self.values)
        z = above / np.maximum(sd, 1e-12)
        return np.where(sd > 1e-12, above * norm.cdf(z) + sd * norm.pdf(z), np.maximum(above, 0.0))

    def ask(self) -> int:
        left = self.left()
        return int(left[np.argmax(self.scores()[left])])

    def report(self) -> int | np.ndarray:
        mean, _ = self.posterior
        return int(np.argmax(mean)) if self.threshold is None else mean >= self.threshold


class Sklearn(ModelPeer):
    """Gaussian process regression of scikit-learn: Matern-5/2 with a length-scale per column,
    and white noise."""

    def fit(self) -> tuple[Array, Array]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        kernel = ConstantKernel() * Matern(np.ones(self.points.shape[1]), nu=2.5) + WhiteKernel()
        model = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=RESTARTS, random_state=self.seed % 2**31
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="Predicted variances smaller than 0")
            model.fit(self.points[self.rows], np.array(self.values))
            mean, sd = model.predict(self.points, return_std=True)
        # scikit-learn predicts measurements; the scores need the uncertainty of the function
        # itself.
        noise = model.kernel_.k2.noise_level * np.std(self.values) ** 2
        return mean, np.sqrt(np.maximum(sd**2 - noise, 0.0))


class Random(Sklearn):
    """Random rows. For a level set they are classified by the model of scikit-learn."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self.rng = np.random.default_rng(self.seed)

    def ask(self) -> int:
        return int(self.rng.choice(self.left()))

    def report(self) -> int | np.ndarray:
        return _Peer.report(self) if self.threshold is None else super().report()


class Botorch(ModelPeer):
    """SingleTaskGP of BoTorch with its defaults, values standardised; LogEI, or straddle for a
    level set."""

    def fit(self) -> tuple[Array, Array]:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(self.seed + len(self.rows))
        parts = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = self.fitted()
            with torch.no_grad():
                for batch in torch.tensor(self.points).split(BATCH):
                    found = self.model.posterior(batch)
                    parts.append((found.mean[:, 0], found.variance[:, 0].clamp_min(0.0).sqrt()))
        mean, sd = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return mean, sd

    def fitted(self) -> Any:
        """Return the model with its fitted hyperparameters."""
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms.outcome import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x = torch.tensor(self.points[self.rows])
        y = torch.tensor(self.values, dtype=torch.double)[:, None]
        model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def acquisition(self) -> Any:
        from botorch.acquisition import LogExpectedImprovement

        return LogExpectedImprovement(self.model, best_f=max(self.values))

    def scores(self) -> Array:
        _ = self.posterior  # fits the model
        if self.threshold is not None:
            return super().scores()
        return self.acquisition_scores()

    def acquisition_scores(self) -> Array:
        """Return the acquisition function of every row."""
        import torch

        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            rule = self.acquisition()
            batches = torch.tensor(self.points)[:, None, :].split(BATCH)
            return torch.cat([rule(batch) for batch in batches]).numpy()


class BotorchNoisy(Botorch):
    """SingleTaskGP of BoTorch with qLogNoisyExpectedImprovement."""

    def acquisition(self) -> Any:
        import torch
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        return qLogNoisyExpectedImprovement(
            self.model, torch.tensor(self.points[self.rows]), prune_baseline=True
        )


class _GridPeer(_Peer):
    """Base of the peers that suggest an index along each axis of a grid. They may suggest a row
    again."""

    def indices(self, row: int) -> list[int]:
        assert self.shape is not None
        return [int(k) for k in np.unravel_index(row, self.shape)]

    def row(self, indices: list[int]) -> int:
        assert self.shape is not None
        return int(np.ravel_multi_index(indices, self.shape))


class _Optuna(_GridPeer):
    """A sampler of Optuna."""

    def __init__(self, instance: Instance, sampler: str) -> None:
        import optuna

        super().__init__(instance)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = getattr(optuna.samplers, sampler)(seed=self.seed)
        self.study = optuna.create_study(direction="maximize", sampler=made)
        assert self.shape is not None
        self.axes: dict[str, Any] = {}
        for k, n in enumerate(self.shape):
            if k in self.categorical:
                axis = optuna.distributions.CategoricalDistribution(list(range(n)))
            else:
                axis = optuna.distributions.IntDistribution(0, n - 1)
            self.axes[f"x{k}"] = axis
        self.trial: Any = None

    def tell(self, row: int, value: float) -> None:
        import optuna

        super().tell(row, value)
        if self.trial is None:
            params = dict(zip(self.axes, self.indices(row), strict=True))
            trial = optuna.trial.create_trial(
                params=params, distributions=self.axes, value=self.values[-1]
            )
            self.study.add_trial(trial)
        else:
            self.study.tell(self.trial, self.values[-1])
        self.trial = None

    def ask(self) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask(self.axes)
        return self.row([int(self.trial.params[name]) for name in self.axes])


class _Smac(_GridPeer):
    """The black-box facade of SMAC3, whose model is a Gaussian process."""

    def __init__(self, instance: Instance) -> None:
        from ConfigSpace import Categorical, ConfigurationSpace, Integer
        from smac import BlackBoxFacade, Scenario

        super().__init__(instance)
        logging.getLogger("smac").setLevel(logging.ERROR)
        assert self.shape is not None
        self.space = ConfigurationSpace(seed=self.seed)
        for k, n in enumerate(self.shape):
            is_category = k in self.categorical
            name = f"x{k}"
            self.space.add(
                Categorical(name, list(range(n))) if is_category else Integer(name, (0, n - 1))
            )
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            self.space,
            deterministic=True,
            n_trials=SMAC_TRIALS,
            seed=self.seed,
            output_directory=self.folder.name,
        )
        self.facade = BlackBoxFacade(
            scenario,
            lambda config, seed=0: 0.0,
            initial_design=BlackBoxFacade.get_initial_design(scenario, n_configs=0),
            overwrite=True,
            logging_level=logging.ERROR,
        )
        self.trial: Any = None

    def tell(self, row: int, value: float) -> None:
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo, TrialValue

        super().tell(row, value)
        if self.trial is None:
            named = {f"x{k}": index for k, index in enumerate(self.indices(row))}
            self.trial = TrialInfo(Configuration(self.space, values=named), seed=0)
        self.facade.tell(self.trial, TrialValue(cost=-self.values[-1]))
        self.trial = None

    def ask(self) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.facade.ask()
        return self.row([int(self.trial.config[f"x{k}"]) for k in range(len(self.shape or ()))])


_METHODS: dict[str, tuple[Callable[[Instance], Method], tuple[Kind, ...], bool, str]] = {
    OURS: (DefaultStudy, ("optimum", "level set"), False, "truvar"),
    "botorch": (Botorch, ("optimum", "level set"), False, "botorch"),
    "botorch-nei": (BotorchNoisy, ("optimum",), False, "botorch"),
    "optuna-gp": (lambda instance: _Optuna(instance, "GPSampler"), ("optimum",), True, "optuna"),
    "optuna-tpe": (lambda instance: _Optuna(instance, "TPESampler"), ("optimum",), True, "optuna"),
    "smac": (_Smac, ("optimum",), True, "smac"),
    "sklearn": (Sklearn, ("optimum", "level set"), False, "sklearn"),
    "random": (Random, ("optimum", "level set"), False, "sklearn"),
}
"""Name -> how to make it, the kinds of problems it is for, whether it needs a grid, and the
package it needs."""

NAMES = tuple(_METHODS)

DESCRIPTIONS = {
    OURS: "tv.Study(domain, goal), nothing else given",
    "botorch": "BoTorch SingleTaskGP + LogEI; level sets: + straddle",
    "botorch-nei": "BoTorch SingleTaskGP + qLogNEI",
    "optuna-gp": "Optuna GPSampler, on grids",
    "optuna-tpe": "Optuna TPESampler, on grids",
    "smac": "SMAC3 BlackBoxFacade, on grids",
    "sklearn": "scikit-learn GPR (Matern-5/2, white noise) + EI; level sets: + straddle",
    "random": "random candidates; level sets: classified by scikit-learn's GPR",
}


def missing(name: str) -> str | None:
    """Return the package that a method needs and that is not installed."""
    packages = [_METHODS[name][3]]
    if name == "optuna-gp":
        packages.append("torch")  # imported by the sampler when it is first used
    return next((package for package in packages if find_spec(package) is None), None)


def suits(name: str, kind: Kind, grid: bool) -> bool:
    """Return whether a method is for a kind of problem, on a grid or on another table."""
    _, kinds, needs_grid, _ = _METHODS[name]
    return kind in kinds and (grid or not needs_grid)


def make(name: str, instance: Instance) -> Method:
    """Return a method at the start of a run."""
    return _METHODS[name][0](instance)
