"""HetGPy: level sets of noisy simulators, with replication."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from hetgpy import homGP
from hetgpy.contour import crit_cSUR, crit_ICU, crit_MEE

from benchmarks.field.peers.base import PricedPeer, UnitModel
from benchmarks.instances import Array

REFERENCE_POINTS = 200  # of the integral of ICU
KERNELS = {"rbf": "Gaussian", "matern32": "Matern3_2", "matern52": "Matern5_2"}


class _HetGPy(PricedPeer):
    """A homoscedastic model with Matern-5/2, and one of the criteria for contours.

    Criteria score one candidate at a time: they take several as one batch. Where the model is
    given, it takes length-scales, mean and the ratio of noise to signal; it estimates the variance
    all the same, and its Matern kernels are products over columns.
    """

    repeats = True  # a candidate may be measured again
    min_places = 2

    def fit(self) -> tuple[Array, Array]:
        self.model = homGP()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.array(self.values)
            if self.given is None:
                self.model.mle(self.points[self.rows], values, covtype="Matern5_2")
            else:
                self.model.mle(
                    self.points[self.rows],
                    values,
                    covtype=KERNELS[self.given.kernel],
                    known=self._known(self.given),
                )
            found = self.model.predict(self.points)
        return found["mean"].ravel(), np.sqrt(np.maximum(found["sd2"].ravel(), 0.0))

    def _known(self, given: UnitModel) -> dict[str, object]:
        """Return the parameters in the package's terms: exp(-d^2 / theta) for the Gaussian one."""
        is_gaussian = given.kernel == "rbf"
        theta = 2 * given.lengthscales**2 if is_gaussian else given.lengthscales
        return {"theta": theta, "g": given.noise / given.variance, "beta0": given.mean}

    def each(self, criterion: Callable[[Array], Array]) -> Array:
        """Return the scores of a criterion for every candidate alone."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [float(np.sum(criterion(x[None, :]))) for x in self.points]
        return np.nan_to_num(np.array(found), nan=-np.inf)


class MEE(_HetGPy):
    """Maximum empirical error."""

    def scores_at(self, costs: Array) -> Array:
        return np.asarray(crit_MEE(self.points, self.model, self.threshold))


class CSUR(_HetGPy):
    """Contour stepwise uncertainty reduction."""

    def scores_at(self, costs: Array) -> Array:
        return self.each(lambda x: crit_cSUR(x, self.model, self.threshold))


class ICU(_HetGPy):
    """Integrated contour uncertainty over a sample of the candidates."""

    def scores_at(self, costs: Array) -> Array:
        rng = np.random.default_rng([self.seed, len(self.rows)])
        count = min(REFERENCE_POINTS, len(self.points))
        reference = self.points[rng.choice(len(self.points), count, replace=False)]
        known = self.model.predict(x=reference)
        return self.each(lambda x: crit_ICU(x, self.model, reference, self.threshold, preds=known))
