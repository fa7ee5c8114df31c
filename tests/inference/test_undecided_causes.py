"""The cause that keeps points undecided, and what measurements that were not made would settle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.inference.joint import StatementSource
from truvar.inference.statements import CONFIDENCE
from truvar.inference.undecided_causes import _members, _unexplained, _unvisited, main_cause
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
