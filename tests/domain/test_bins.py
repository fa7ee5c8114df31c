"""Bins: the point of a domain that a position of a track belongs to, and what a leg passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.domain.bins import Bins, first_of_each
from truvar.exceptions import InvalidArgumentError

SECTION = tv.Domain.grid(distance=np.linspace(0, 50, 11), depth=np.array([0.0, 5.0, 20.0]))


def stations() -> tv.Domain:
    rng = np.random.default_rng(1)
    places = np.column_stack([17 + 2 * rng.random(20), 54 + rng.random(20)])
    rows = [(*place, depth) for place in places.tolist() for depth in (5.0, 20.0, 60.0)]
    return tv.Domain.table(pd.DataFrame(rows, columns=["lon", "lat", "depth_m"]))


def test_a_position_in_a_grid_belongs_to_the_nearest_point() -> None:
    rng = np.random.default_rng(0)
    positions = np.column_stack([rng.uniform(-2.4, 52.4, 500), rng.uniform(-2.4, 27.4, 500)])
    rows = Bins(SECTION).assign(positions)
    for position, row in zip(positions, rows, strict=True):
        nearest = [np.abs(SECTION.points[:, k] - position[k]).min() for k in (0, 1)]
        found = np.abs(SECTION.points[row] - position)
        np.testing.assert_allclose(found, nearest)


def test_positions_beyond_half_a_gap_are_outside() -> None:
    outside = [[-2.6, 5.0], [52.6, 5.0], [10.0, -2.6], [10.0, 27.6]]
    assert Bins(SECTION).assign(np.array(outside)).tolist() == [-1] * 4
    near = Bins(SECTION, {"distance": 1.0}).assign(np.array([[10.9, 5.0], [11.1, 5.0]]))
    assert (near >= 0).tolist() == [True, False]


def test_stations_and_depths_are_told_apart() -> None:
    domain = stations()
    bins = Bins(domain)
    own = bins.assign(domain.points)
    assert own.tolist() == list(range(len(domain)))
    moved = domain.points + np.array([1e-4, 1e-4, 4.0])
    assert bins.assign(moved).tolist() == own.tolist()
    between = domain.points.copy()
    between[:, 0] += 0.5  # farther than half the distance of neighbouring stations
    found = bins.assign(between)
    distance = [
        np.hypot(
            (between[k, 0] - domain.points[row, 0]) * 0.58, between[k, 1] - domain.points[row, 1]
        )
        for k, row in enumerate(found)
        if row >= 0
    ]
    assert (found == -1).any()
    assert max(distance, default=0.0) < 0.1


def test_a_distance_of_one_column_leaves_that_of_the_others() -> None:
    domain = stations()
    wide = Bins(domain, {"lon": 5.0})
    far_north = domain.points + np.array([0.0, 30.0, 0.0])
    assert (wide.assign(far_north) == -1).all()
    assert (wide.assign(domain.points + np.array([0.0, 1e-4, 0.0])) >= 0).all()


def test_a_leg_passes_the_points_on_its_line() -> None:
    bins = Bins(SECTION)
    rows = bins.passed(np.array([0.0, 0.0]), np.array([[50.0, 0.0], [0.0, 20.0], [0.0, 0.0]]))
    points = [SECTION.points[each[each >= 0]] for each in rows]
    assert sorted(set(points[0][:, 0])) == np.linspace(0, 50, 11).tolist()
    assert set(points[0][:, 1]) == {0.0}
    assert set(map(tuple, points[1])) == {(0.0, 0.0), (0.0, 5.0), (0.0, 20.0)}
    assert set(rows[2]) == {0}


def test_the_first_of_equal_entries_is_marked() -> None:
    rows = np.array([[3, 1, 3, 1, 2], [0, 0, 0, 0, 0]])
    expected = [[True, True, False, False, True], [True, False, False, False, False]]
    assert first_of_each(rows).tolist() == expected


def test_domains_that_have_no_bins_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="got a box"):
        Bins(tv.Domain.box(x=(0, 1)))
    with pytest.raises(InvalidArgumentError, match="'mode' has none"):
        Bins(tv.Domain.table(pd.DataFrame({"x": [0.0, 1.0], "mode": ["a", "b"]}), ["x", "mode"]))
    with pytest.raises(InvalidArgumentError, match="did you mean 'depth'"):
        Bins(SECTION, {"dept": 1.0})
    with pytest.raises(InvalidArgumentError, match="within of 'depth'"):
        Bins(SECTION, {"depth": -1.0})
