"""GPmp-contrib: excursion sets on a list of candidates."""

from __future__ import annotations

import contextlib
import io

import gpmp.num as gnp
import gpmpcontrib
import numpy as np
from gpmpcontrib.optim.excursionset import ExcursionSetGridSearch

from benchmarks.field.peers.base import PricedPeer
from benchmarks.instances import Array

SMOOTHNESS = 2  # p of its Matern kernels: nu = p + 1/2


class ExcursionSet(PricedPeer):
    """`ExcursionSetGridSearch` with the package's Matern model, fitted by restricted likelihood."""

    min_places = 2

    def fit(self) -> tuple[Array, Array]:
        with contextlib.redirect_stdout(io.StringIO()):  # the package prints its progress
            model = gpmpcontrib.Model_ConstantMean_Maternp_REML(
                "field",
                output_dim=1,
                mean_specification={"type": "constant"},
                covariance_specification={"p": SMOOTHNESS},
            )
            candidates = gnp.array(self.points)
            self.search = ExcursionSetGridSearch(None, model, candidates, self.threshold)
            values = np.array(self.values)[:, None]
            self.search.set_data_with_model_selection(self.points[self.rows], values)
            self.search.update_predictions()
        mean = np.asarray(gnp.to_np(self.search.zpm)).ravel()
        variance = np.asarray(gnp.to_np(self.search.zpv)).ravel()
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def scores_at(self, costs: Array) -> Array:
        return np.asarray(gnp.to_np(self.search.sampling_criterion())).ravel()
