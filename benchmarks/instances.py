"""One start of a problem whose truth is known to the benchmark and to nobody else."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

import truvar as tv

Array = np.ndarray

OUTLIER_NUMBER = 6  # the measurement that is wrong, counted from 1
_N_PARTS = 8  # of the truth, whose means are part of the fingerprint
OUTLIER_SD = 100.0  # its error in standard deviations of the noise


@dataclass(frozen=True)
class Noise:
    """Errors of the measurements.

    Attributes:
        sd: Standard deviation (Student-t: scale) of the error, a number or one per candidate.
        freedom: Degrees of freedom of Student-t errors; None: normal errors.
        outlier: Whether measurement number 6 is wrong by 100 standard deviations.
    """

    sd: float | Array
    freedom: float | None = None
    outlier: bool = False

    def draw(self, seed: tuple[int, ...], row: int, number: int) -> float:
        """Return the error of a measurement; `number` counts from 1."""
        rng = np.random.default_rng([*seed, number])
        standard = rng.standard_normal() if self.freedom is None else rng.standard_t(self.freedom)
        if self.outlier and number == OUTLIER_NUMBER:
            standard = OUTLIER_SD
        sd = self.sd if np.ndim(self.sd) == 0 else self.sd[row]
        return float(sd) * float(standard)


@dataclass(frozen=True)
class Instance:
    """One start of a problem.

    Attributes:
        domain: The candidates.
        truth: True values on the domain.
        goal: The goal.
        noise: Errors of the measurements.
        seed: Seed of the first points and of the errors.
        outcome: What a measurement gives of the truth; None: a number with such an error.
    """

    domain: tv.Domain
    truth: Array
    goal: tv.Maximize | tv.Minimize | tv.LevelSet | tv.Map
    noise: Noise
    seed: tuple[int, ...]
    outcome: tv.Binary | tv.Count | None = None

    def first(self, count: int) -> list[int]:
        """Return the rows that every method is told first."""
        rng = np.random.default_rng([*self.seed, 0])
        return [int(row) for row in rng.choice(len(self.domain), count, replace=False)]

    def measure(self, row: int, number: int) -> float:
        """Return the value of measurement `number` (from 1), taken at a row."""
        if self.outcome is not None:
            rng = np.random.default_rng([*self.seed, number])
            return self.outcome.sample(float(self.truth[row]), 1.0, rng)
        return float(self.truth[row]) + self.noise.draw(self.seed, row, number)

    def regret(self, row: int) -> float:
        """Return the distance of a row's true value from the optimum as a share of the range of
        the truth."""
        values = self.goal.sign * self.truth
        return float((values.max() - values[row]) / np.ptp(values))

    def f1(self, above: np.ndarray) -> float:
        """Return the F1 score of a classification of the domain."""
        true = self.truth >= self.goal.threshold
        both = int(above.sum()) + int(true.sum())
        return 2 * int((true & above).sum()) / both

    @property
    def fingerprint(self) -> str:
        """Checksum by which runs on another version of the instance are recognised.

        Truth and threshold are rounded, as the last digits of a simulated field depend on the
        processor.
        """
        # Options of a goal that only a study of truvar heeds do not make it another problem.
        threshold = getattr(self.goal, "threshold", None)
        goal = type(self.goal).__name__ + ("" if threshold is None else f" {threshold:.3g}")
        text = f"{goal} {np.round(np.mean(self.noise.sd), 6)} {self.noise.freedom} {self.noise.outlier}"
        scaled = (self.truth - self.truth.min()) / np.ptp(self.truth)
        means = np.array([part.mean() for part in np.array_split(scaled, _N_PARTS)])
        rounded = np.round(means, 3) + 0.0
        points = np.round(self.domain.points, 4) + 0.0  # no negative zeros
        checksum = zlib.crc32(text.encode())
        return f"{zlib.crc32(points.tobytes(), zlib.crc32(rounded.tobytes(), checksum)):08x}"
