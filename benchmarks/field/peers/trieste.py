"""Trieste: a GPflow model with two of its rules for level sets."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from trieste.acquisition.function import ExpectedFeasibility, IntegratedVarianceReduction
from trieste.data import Dataset
from trieste.models.gpflow import GaussianProcessRegression, build_gpr
from trieste.space import Box

from benchmarks.field.peers.base import PricedPeer
from benchmarks.instances import Array

tf.get_logger().setLevel("ERROR")  # it warns of tracing functions again

INTEGRATION_POINTS = 256
BATCH = 1024  # candidates scored at a time


class _Trieste(PricedPeer):
    """The default Gaussian process of Trieste; values standardised, as its documentation does."""

    def fit(self) -> tuple[Array, Array]:
        tf.random.set_seed(self.seed % 2**31)
        values = np.array(self.values)
        self.shift = float(values.mean())
        self.scale = float(values.std()) or 1.0
        d = self.points.shape[1]
        standard = (values - self.shift) / self.scale
        self.data = Dataset(
            tf.constant(self.points[self.rows], tf.float64),
            tf.constant(standard[:, None], tf.float64),
        )
        space = Box(np.zeros(d).tolist(), np.ones(d).tolist())
        self.model = GaussianProcessRegression(build_gpr(self.data, space))
        self.model.update(self.data)
        self.model.optimize(self.data)
        mean, variance = self.model.predict(tf.constant(self.points, tf.float64))
        sd = np.sqrt(np.maximum(variance.numpy()[:, 0], 0.0))
        return self.shift + self.scale * mean.numpy()[:, 0], self.scale * sd

    @property
    def standard_threshold(self) -> float:
        """The threshold in the units of the model."""
        assert self.threshold is not None
        return (self.threshold - self.shift) / self.scale

    def rule(self) -> Any:
        """Return the builder of the acquisition function."""
        raise NotImplementedError

    def scores_at(self, costs: Array) -> Array:
        function = self.rule().prepare_acquisition_function(self.model, self.data)
        points = tf.constant(self.points[:, None, :], tf.float64)
        parts = [
            function(points[k : k + BATCH]).numpy()[:, 0] for k in range(0, len(self.points), BATCH)
        ]
        return np.concatenate(parts)


class Feasibility(_Trieste):
    """ExpectedFeasibility with its default, the criterion of Bichon."""

    def rule(self) -> Any:
        return ExpectedFeasibility(self.standard_threshold)


class IntegratedVariance(_Trieste):
    """IntegratedVarianceReduction over a sample of the candidates, near the threshold."""

    def rule(self) -> Any:
        rng = np.random.default_rng([self.seed, len(self.rows)])
        count = min(INTEGRATION_POINTS, len(self.points))
        sample = self.points[rng.choice(len(self.points), count, replace=False)]
        return IntegratedVarianceReduction(
            tf.constant(sample, tf.float64), threshold=[self.standard_threshold]
        )
