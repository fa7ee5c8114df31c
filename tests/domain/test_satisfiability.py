"""Conditions that hold nowhere in a box are told from those that hold in a region between the
samples."""

import numpy as np
import pytest

import truvar as tv
from truvar.domain.constraints import LinearConstraint, PolygonConstraint
from truvar.domain.satisfiability import holds_somewhere
from truvar.exceptions import InvalidArgumentError

BOX = tv.Domain.box(x=(0, 1), y=(-2, 2))
NARROW = tv.Domain.box(x=(0, 1), y=(0, 1), constraints="x + y <= 1")
MIXED = tv.Domain.box(
    lr=tv.Log(1e-6, 1e-1),
    depth=tv.Integer(1, 12),
    solver=["lbfgs", "saga"],
    day=tv.Date("2026-05-01", "2026-05-31"),
    x=(0, 1),
)


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (BOX, "x >= 1"),
        (BOX, "x + y >= 3"),
        (BOX, "x > 0.9999999 and y < -1.9999999"),
        (BOX, "x + y > 0.3 and x - y > 1.69999"),
        (BOX, "x - 2 * y == 0.123456"),
        (BOX, "x in (0.123456, 3)"),
        (MIXED, "lr < 1.00001e-6 and x > 0.99999"),
        (MIXED, "2.9 < depth < 3.1 and x < 1e-7"),
        (MIXED, "solver == 'saga' and x < 1e-7"),
        (MIXED, "day < '2026-05-02' and x < 1e-7"),
        (NARROW, "x > 0.99999 and y < 1e-6"),
    ],
)
def test_a_condition_that_holds_in_a_tiny_region_is_accepted(domain, text):
    assert holds_somewhere(domain, LinearConstraint(text))


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (BOX, "x > 3"),
        (BOX, "x > 1"),
        (BOX, "x + y > 3"),
        (BOX, "x + y > 1.3 and x - y > 0.8"),
        (BOX, "x == 1.5"),
        (BOX, "x in (2, 3)"),
        (MIXED, "lr > 0.2"),
        (MIXED, "2.1 < depth < 2.9"),
        (MIXED, "solver == 'saga' and solver == 'lbfgs'"),
        (MIXED, "day > '2026-05-31'"),
        (NARROW, "x > 0.9 and y > 0.9"),
    ],
)
def test_a_condition_that_holds_nowhere_is_refused_and_nothing_changes(domain, text):
    assert not holds_somewhere(domain, LinearConstraint(text))
    study = tv.Study(domain, tv.Maximize(), noise=0.1)
    for change in (study.exclude, study.allow):
        with pytest.raises(InvalidArgumentError, match=r"holds no point of the domain.*; check it"):
            change(text)
    assert study.exclusions == []


def test_random_conditions_agree_with_many_samples():
    rng = np.random.default_rng(0)
    side = np.linspace(0, 1, 201)
    samples = np.array(np.meshgrid(side, 4 * side - 2)).reshape(2, -1).T
    found = []
    for _ in range(150):
        parts = []
        for a, b, c in rng.uniform(-1, 1, size=(4, 3)):
            parts.append(f"{a} * x + {b} * y <= {c}")
        condition = LinearConstraint(" and ".join(parts))
        sampled = bool(condition.satisfied(samples, BOX.columns).any())
        assert holds_somewhere(BOX, condition) >= sampled
        found.append((holds_somewhere(BOX, condition), sampled))
    assert found.count((False, False)) >= 5
    assert found.count((True, False)) <= 3  # regions below the distance of the samples are rare


@pytest.mark.parametrize(
    ("ring", "expected"),
    [
        ([(0.5, 0.001), (0.5001, 0.001), (0.5, 0.0011)], True),  # between the samples
        ([(-1, 0.0001), (2, 0.0001), (2, 0.0002)], True),  # a sliver whose vertices are all outside
        ([(2, 0), (3, 0), (3, 1)], False),
        ([(-1, -1), (1.5, -9), (-9, -9)], False),
        ([(-9, -9), (9, -9), (9, 9), (-9, 9)], True),
    ],
)
def test_a_polygon_outside_the_box_is_refused(ring, expected):
    assert holds_somewhere(BOX, PolygonConstraint([ring])) is expected
