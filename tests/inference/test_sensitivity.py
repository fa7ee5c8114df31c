"""Importance of columns: Sobol indices of known functions."""

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.inference.sensitivity import column_importance


def test_an_additive_function_has_the_indices_of_its_parts():
    domain = tv.Domain.box(a=(0, 1), b=(0, 1), c=(0, 1))
    found = column_importance(domain, lambda points: 3 * points[:, 0] + points[:, 1])
    shares = {entry.column: (entry.first, entry.total) for entry in found}
    for column, expected in (("a", 0.9), ("b", 0.1), ("c", 0.0)):  # 9 : 1 : 0 of the variance
        assert shares[column] == pytest.approx((expected, expected), abs=0.01)


def test_ishigami_function_agrees_with_the_closed_form():
    domain = tv.Domain.box(x1=(-np.pi, np.pi), x2=(-np.pi, np.pi), x3=(-np.pi, np.pi))

    def ishigami(points):
        return np.sin(points[:, 0]) + 7 * np.sin(points[:, 1]) ** 2 + 0.1 * points[:, 2] ** 4 * np.sin(points[:, 0])

    found = column_importance(domain, ishigami, samples=4096)
    assert [entry.first for entry in found] == pytest.approx([0.3139, 0.4424, 0.0], abs=0.02)
    assert [entry.total for entry in found] == pytest.approx([0.5576, 0.4424, 0.2437], abs=0.02)


def test_columns_of_a_table_vary_over_their_own_values_and_a_constant_has_no_importance():
    rng = np.random.default_rng(0)
    domain = tv.Domain.table(pd.DataFrame({"x": rng.choice([0.0, 1.0], 40), "y": np.arange(40.0)}))
    seen = []

    def step(points):
        seen.append(points[:, 0])
        return points[:, 0]

    found = column_importance(domain, step)
    assert set(np.concatenate(seen)) == {0.0, 1.0}
    assert (found[0].total, found[1].total) == pytest.approx((1.0, 0.0), abs=0.02)
    assert column_importance(domain, lambda points: np.full(len(points), 5.0)) is None
