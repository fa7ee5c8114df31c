"""gpCAM, with the cost of going from the present position to each candidate."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from gpcam import GPOptimizer
from sklearn.gaussian_process.kernels import RBF, Matern

from benchmarks.field.peers.base import PricedPeer, UnitModel
from benchmarks.instances import Array

BAND = 0.25  # standard deviations of the values on either side of a threshold that are the target


class GpCAM(PricedPeer):
    """`GPOptimizer` with its defaults: expected improvement, or target probability around h."""

    min_places = 2

    def fit(self) -> tuple[Array, Array]:
        args: dict[str, Any] = {}
        if self.threshold is not None:
            width = BAND * float(np.std(self.values))
            args = {"a": self.threshold - width, "b": self.threshold + width}
        known = {} if self.given is None else self._known(self.given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.optimizer = GPOptimizer(
                self.points[self.rows],
                np.array(self.values),
                cost_function=self._cost if self.price.varies else None,
                args=args,
                **known,
            )
            if self.given is None:
                self.optimizer.train()
            mean = self.optimizer.posterior_mean(self.points)["m(x)"]
            variance = self.optimizer.posterior_covariance(self.points, variance_only=True)["v(x)"]
        return np.asarray(mean), np.sqrt(np.maximum(variance, 0.0))

    def _known(self, given: UnitModel) -> dict[str, Any]:
        """Return the arguments that give it the model."""
        if given.kernel == "rbf":
            shape = RBF(given.lengthscales)
        else:
            nu = {"matern32": 1.5, "matern52": 2.5}[given.kernel]
            shape = Matern(given.lengthscales, nu=nu)
        return {
            "init_hyperparameters": np.array([given.variance]),
            "kernel_function": lambda x, y, hyperparameters: hyperparameters[0] * shape(x, y),
            "prior_mean_function": lambda x, hyperparameters: np.full(len(x), given.mean),
            "noise_variances": np.full(len(self.rows), max(given.noise, 1e-10)),
        }

    def ask(self, costs: Array) -> int:
        _ = self.posterior
        self.costs = costs
        left = np.setdiff1d(np.arange(len(self.points)), self.rows)
        self.offered = left
        rule = "expected improvement" if self.threshold is None else "target probability"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.optimizer.ask(
                list(self.points[left]),
                acquisition_function=rule,
                position=self.points[self.rows[-1]],
            )
        chosen = np.asarray(found["x"][0], dtype=float).ravel()
        return int(left[np.abs(self.points[left] - chosen).sum(axis=1).argmin()])

    def _cost(self, origin: Array, x: Any) -> Array:
        """Return what the candidates cost that are offered; gpCAM divides the score by it."""
        return self.costs[self.offered] if len(x) == len(self.offered) else np.ones(len(x))
