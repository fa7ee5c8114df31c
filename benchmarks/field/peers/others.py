"""Peers that know no costs, as `benchmarks.scratch` runs them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.field.cases import Priced
from benchmarks.field.peers import Peer
from benchmarks.field.peers.base import PricedPeer, UnitModel
from benchmarks.instances import Array
from benchmarks.scratch import methods


class Sklearn(PricedPeer, methods.Sklearn):
    """Gaussian process regression of scikit-learn, with EI or straddle."""

    def fit(self) -> tuple[Array, Array]:
        if self.given is None:
            return super().fit()
        return _predicted(self.given, self.points, self.rows, np.array(self.values))


class Random(Sklearn, methods.Random):
    """Random rows; level sets are classified by the model of scikit-learn."""

    def ask(self, costs: Array) -> int:
        return methods.Random.ask(self)

    def report(self) -> int | np.ndarray:
        return methods.Random.report(self)


def _predicted(
    given: UnitModel, points: Array, rows: list[int], values: Array
) -> tuple[Array, Array]:
    """Return mean and standard deviation at all candidates with fixed hyperparameters."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

    if given.kernel == "rbf":
        shape = RBF(given.lengthscales)
    else:
        nu = {"matern32": 1.5, "matern52": 2.5}[given.kernel]
        shape = Matern(given.lengthscales, nu=nu)
    kernel = ConstantKernel(given.variance) * shape
    model = GaussianProcessRegressor(kernel, alpha=max(given.noise, 1e-10), optimizer=None)
    model.fit(points[rows], values - given.mean)
    mean, sd = model.predict(points, return_std=True)
    return mean + given.mean, sd


class _Regardless:
    """A method of `benchmarks.scratch`, regardless of costs."""

    def __init__(self, name: str, priced: Priced) -> None:
        self.method = methods.make(name, priced.instance)

    def tell(self, row: int, value: float) -> None:
        self.method.tell(row, value)

    def ask(self, costs: Array) -> int:
        return self.method.ask()

    def report(self) -> int | np.ndarray:
        return self.method.report()

    def is_sure(self) -> bool:
        return False


def _named(name: str) -> Callable[[Priced], Peer]:
    return lambda priced: _Regardless(name, priced)


optuna_gp = _named("optuna-gp")
optuna_tpe = _named("optuna-tpe")
smac = _named("smac")
