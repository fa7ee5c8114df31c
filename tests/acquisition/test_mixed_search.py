"""Local searches run side by side, and in conditional spaces they look at no point twice."""

from __future__ import annotations

import numpy as np
import pytest

from truvar._typing import Array
from truvar.acquisition.mixed_search import best_in_domain, climb, climbing
from truvar.acquisition.optimizer import polish, polishing, search_together
from truvar.domain.domain import Domain
from truvar.domain.parameters import Categorical, Range
from truvar.integrations._optuna_space import Condition, ConditionalDomain

STARTS = np.array([[0.1, 0.2], [0.8, 0.9], [0.5, 0.5], [1.0, 0.0]])
UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])


def waves(points: Array) -> Array:
    return np.sin(9 * points[:, 0]) * np.cos(7 * points[:, 1]) - (points[:, 0] - 0.6) ** 2


def conditional_domain() -> ConditionalDomain:
    """Return a box with the column "depth" of the kind 1 alone, and "width" of the kind 0 alone."""
    box = Domain.box(
        kind=Categorical(["a", "b"]),
        depth=Range(0.0, 1.0),
        width=Range(0.0, 1.0),
        shared=Range(0.0, 1.0),
    )
    conditions = (
        Condition(1, (0,), np.array([False, True])),
        Condition(2, (0,), np.array([True, False])),
    )
    return ConditionalDomain(
        box.columns,
        box.points,
        box.bounds,
        continuous=True,
        parameters=box.parameters,
        conditions=conditions,
        inactive=(0.5, 0.5, 0.5, 0.5),
    )


def kinds(points: Array) -> Array:
    """Return a score with its maximum at kind 1, depth 0.3, shared 0.7, and a lower one of kind
    0."""
    first = 0.5 - (points[:, 2] - 0.2) ** 2
    second = 1.0 - (points[:, 1] - 0.3) ** 2
    return np.where(points[:, 0] == 1, second, first) - (points[:, 3] - 0.7) ** 2


def test_searches_side_by_side_end_where_each_ends_alone_in_fewer_calls() -> None:
    calls: list[int] = []

    def counted(points: Array) -> Array:
        calls.append(len(points))
        return waves(points)

    together = search_together(counted, [polishing(UNIT, start) for start in STARTS])
    n_together = len(calls)
    calls.clear()
    alone = [polish(counted, UNIT, start) for start in STARTS]
    assert n_together < len(calls) / 2
    for (end, value), expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(end, expected)
        assert value == waves(end[None, :])[0]


def test_a_search_along_some_sides_leaves_the_others_as_they_are() -> None:
    (end, _), *_ = search_together(waves, [polishing(UNIT, STARTS[0], np.array([1]))])
    assert end[0] == STARTS[0, 0]
    assert end[1] == pytest.approx(0.0, abs=1e-5)


def test_searches_of_a_conditional_space_score_the_points_that_stand_for_others() -> None:
    domain = conditional_domain()

    def score(points: Array) -> Array:
        np.testing.assert_array_equal(points, domain.canonical(points))
        return kinds(points)

    start = np.array([0.0, 0.5, 0.9, 0.1])
    for found in (climb(score, domain, start), best_in_domain(score, domain, start)):
        np.testing.assert_allclose(found, [1.0, 0.3, 0.5, 0.7], atol=1e-4)


def test_inactive_sides_are_not_moved_along() -> None:
    domain = conditional_domain()
    search = climbing(domain, np.array([1.0, 0.4, 0.5, 0.4]))
    asked = next(search)
    asked = search.send(kinds(asked))  # the first round of the continuous sides
    assert {len(np.unique(asked[:, k])) > 1 for k in (1, 3)} == {True}
    assert (asked[:, 2] == 0.5).all()
    assert len(asked) == 1 + 2 * 2 + 2
