"""The cause that keeps points undecided, and what measurements that were not made would settle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Kernel

import truvar as tv
from truvar.inference.joint import StatementSource
from truvar.inference.statements import CONFIDENCE
from truvar.inference.undecided_causes import (
    Cause,
    _members,
    _unexplained,
    _unvisited,
    find_cause,
    main_cause,
)
from truvar.models.frozen import FrozenPosterior

LINE = tv.Domain.grid(x=np.linspace(0.0, 1.0, 101))
KERNEL = RBF(0.1)
NOISE = 0.01
THRESHOLD = 1.2


def source(x: list[float], values: list[float]) -> StatementSource:
    """Return the inputs of a study with a known model."""
    study = tv.Study(
        LINE, tv.LevelSet(THRESHOLD), kernel=KERNEL, mean=0.0, noise=NOISE, exact_model=True
    )
    study.tell_frame(pd.DataFrame({"x": x, "value": values}), "value")
    found = study.result().source
    assert isinstance(found, StatementSource)
    return found


def naive_count(x: list[float], values: list[float]) -> int:
    """Return how many points of the line are undecided, by the formulas of a Gaussian process."""
    at = np.array(x)[:, None]
    inverse = np.linalg.inv(KERNEL(at) + NOISE * np.eye(len(at)))
    across = KERNEL(at, LINE.points)
    mean = across.T @ inverse @ np.array(values)
    sd = np.sqrt(1.0 - np.einsum("ij,ik,kj->j", across, inverse, across))
    draws = np.abs(mean - THRESHOLD) / sd
    return int((draws < 1.6448536269514722).sum())


def test_what_a_measurement_would_settle_is_what_it_settles_on_average() -> None:
    x = [0.1, 0.2, 0.3, 0.4]
    values = [0.0, 0.5, 1.0, 0.2]
    members = _members(source(x, values))
    assert CONFIDENCE == 0.95
    assert members.n_undecided == naive_count(x, values)
    point = np.array([[0.7]])
    mean, variance = members.inputs.posterior.predict(point)
    step = np.sqrt(variance[0, 0] + NOISE)
    step *= np.random.default_rng(members.inputs.seed).standard_normal((1, 1))[0, 0]
    naive = [naive_count([*x, 0.7], [*values, mean[0, 0] + sign * step]) for sign in (1, -1)]
    found = members.count_after(point, np.array([[NOISE]]))
    assert found == pytest.approx(np.mean(naive), abs=1.0)


def test_measurements_that_tell_members_apart_shift_their_weights() -> None:
    """One of two members has the right mean; a value without noise decides between them."""
    inputs = source([0.1], [0.0])
    (member,) = inputs.posterior.members
    high = replace(member, prior_mean=lambda points: np.full(len(points), 8.0))
    posterior = FrozenPosterior((member, high))
    means, variances = posterior.predict(inputs.sites)
    both = replace(inputs, posterior=posterior, means=means, variances=variances, threshold=4.0)
    members = _members(both)
    after = members.count_after(np.array([[0.6]]), np.full((2, 1), 1e-6))
    assert members.n_undecided > 80
    assert after < 0.1 * members.n_undecided


def test_a_part_that_was_never_visited_is_named() -> None:
    inputs = source([0.05, 0.1, 0.15, 0.2], [0.0, -0.4, -0.9, -1.0])
    sentence = main_cause(inputs, LINE)
    assert sentence is not None
    assert "more than a length-scale from every measurement; one at (x" in sentence
    members = _members(inputs)
    cause = _unvisited(members, LINE)
    assert cause is not None
    assert 0 < cause.n_settled <= members.n_undecided
    assert f"about {cause.n_settled:.2g} more" in sentence


def test_a_value_that_is_left_out_is_named() -> None:
    inputs = replace(source([0.1, 0.3, 0.5], [0.0, 0.5, 0.1]), outliers=(1,))
    cause = _unexplained(_members(inputs), LINE)
    assert cause is not None
    assert cause.sentence.startswith("The value at (x 0.3) is unexplained and left out; a repeat")


def test_nothing_is_said_where_everything_is_decided_or_nothing_is_known() -> None:
    x = np.linspace(0.0, 1.0, 21).tolist()
    assert main_cause(source(x, [-3.0] * 21), LINE) is None
    assert main_cause(source([], []), LINE) is None


def test_the_certificate_says_it_in_its_last_sentence() -> None:
    study = tv.Study(
        LINE, tv.LevelSet(THRESHOLD), kernel=KERNEL, mean=0.0, noise=NOISE, exact_model=True
    )
    study.tell_frame(pd.DataFrame({"x": [0.05, 0.15], "value": [0.0, -0.9]}), "value")
    result = study.result()
    assert isinstance(result.source, StatementSource)
    sentence = main_cause(result.source, LINE)
    assert sentence is not None
    assert result.certificate.statement.endswith(sentence)


@dataclass(frozen=True)
class Survey:
    """Fields of which one thing is not known, and how they are measured.

    Attributes:
        opening: How the sentence about it begins.
        domain: The domain.
        kernel: Kernel that the fields are drawn from.
        sd: Standard deviation of the noise.
        n: Number of measurements, all at different places.
        mistake: Number that is added to one of the values.
        reach: Measurements are made at smaller x.
    """

    opening: str
    domain: tv.Domain
    kernel: Kernel
    sd: float
    n: int
    mistake: float = 0.0
    reach: float = np.inf

    def draw(self, seed: int) -> tuple[np.ndarray, list[tuple[int, float]], np.random.Generator]:
        """Return f, rows with their values, and the generator for further values."""
        rng = np.random.default_rng(seed)
        points = self.domain.points
        covariance = self.kernel(points) + 1e-6 * np.eye(len(points))
        f = np.linalg.cholesky(covariance) @ rng.standard_normal(len(points))
        rows = [row for row in rng.permutation(len(points)) if points[row, 0] < self.reach]
        data = [(int(row), self.measure(f, row, rng)) for row in rows[: self.n]]
        row, value = data[self.n // 2]
        data[self.n // 2] = (row, value + self.mistake)
        return f, data, rng

    def measure(self, f: np.ndarray, row: int, rng: np.random.Generator) -> float:
        """Return a value with its noise."""
        return float(f[row] + self.sd * rng.standard_normal())

    def result(self, f: np.ndarray, data: list[tuple[int, float]]) -> tv.Result:
        """Return the result of a study in which nothing is known but the values."""
        study = tv.Study(self.domain, tv.LevelSet(float(np.quantile(f, 0.7))), seed=1)
        rows = [{**self.domain.point(row), "value": value} for row, value in data]
        study.tell_frame(pd.DataFrame(rows), "value")
        return study.result()

    def cause(self, result: tv.Result) -> Cause | None:
        """Return the main cause, if it is the one of these fields."""
        assert isinstance(result.source, StatementSource)
        found = find_cause(result.source, self.domain)
        return found if found is not None and self.opening in found.sentence else None

    def promised_and_kept(self, seed: int) -> tuple[float, int] | None:
        """Return how many points are promised and how many are settled; None for another cause."""
        f, data, rng = self.draw(seed)
        before = self.result(f, data)
        cause = self.cause(before)
        if cause is None:
            return None
        rows = [
            int(((self.domain.points - point) ** 2).sum(axis=1).argmin()) for point in cause.points
        ]
        after = self.result(f, [*data, *((row, self.measure(f, row, rng)) for row in rows)])
        n_kept = int(before.classes.undecided.sum()) - int(after.classes.undecided.sum())
        return cause.n_settled, n_kept


LONG_LINE = tv.Domain.grid(x=np.linspace(0.0, 10.0, 300))
SQUARE = tv.Domain.grid(x=np.linspace(0.0, 10.0, 24), y=np.linspace(0.0, 10.0, 24))
SURVEYS = {
    "noise": Survey(
        "No place was measured twice; two repeats, at (x", LONG_LINE, RBF(3.0), 0.5, 10
    ),
    "a mistake": Survey(
        "contradicts the others; a repeat", SQUARE, RBF(2.5), 0.05, 30, mistake=6.0
    ),
    "an unvisited part": Survey(
        "from every measurement; one at (x", LONG_LINE, RBF(1.5), 0.05, 10, reach=4.5
    ),
}
NAMED_SEEDS = {"noise": 7, "a mistake": 1, "an unvisited part": 4}


@pytest.mark.parametrize("name", SURVEYS)
def test_the_cause_is_named_where_it_is_known(name: str) -> None:
    survey = SURVEYS[name]
    f, data, _ = survey.draw(NAMED_SEEDS[name])
    result = survey.result(f, data)
    cause = survey.cause(result)
    assert cause is not None
    assert cause.sentence in str(result.certificate)
    assert len(cause.points) == (2 if name == "noise" else 1)
    if name == "a mistake":
        row, _ = data[survey.n // 2]
        np.testing.assert_allclose(cause.points[0], SQUARE.points[row])
    if name == "an unvisited part":
        assert cause.points[0, 0] > survey.reach


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::truvar.exceptions.OutlierWarning")
@pytest.mark.parametrize("name", SURVEYS)
def test_the_number_that_is_promised_is_of_the_right_size(name: str) -> None:
    """On average over the fields that have the cause, after really making the measurements."""
    found = [SURVEYS[name].promised_and_kept(seed) for seed in range(16)]
    promised, kept = np.mean([each for each in found if each is not None], axis=0)
    print(f"{name}: promised {promised:.1f}, kept {kept:.1f}")
    assert promised / 3.0 <= kept <= 3.0 * promised
