"""Measurements with their values, as arrays."""

from __future__ import annotations

import numpy as np

from truvar.domain.action import Action
from truvar.models.observations import Observations


def an_action(id_: int, *, noise_given: bool = False, task: int = 0) -> Action:
    return Action(
        id=id_,
        point=np.array([0.1 * id_, float(task)]),
        site=None,
        level=None,
        task=task,
        noise=0.5,
        cost=1.0,
        noise_given=noise_given,
    )


def three() -> Observations:
    told = [(an_action(1), 1.0), (an_action(2, noise_given=True), 2.0), (an_action(3, task=1), 3.0)]
    return Observations(2).extend(told)


def test_no_observations_have_arrays_of_the_right_shape() -> None:
    empty = Observations(2)
    assert empty.points.shape == (0, 2)
    assert empty.values.shape == empty.tasks.shape == empty.noise_given.shape == (0,)


def test_observations_are_pairs_and_arrays() -> None:
    observations = three()
    assert [(action.id, value) for action, value in observations] == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert observations[-1].action.id == 3
    assert observations[1:].values.tolist() == [2.0, 3.0]
    assert observations.tasks.tolist() == [0, 0, 1]
    assert observations.noise_given.tolist() == [False, True, False]
    assert observations.points.tolist() == [
        action.point.tolist() for action in observations.actions
    ]


def test_a_learned_noise_leaves_that_of_a_value_told_with_its_own() -> None:
    observations = three()
    changed = observations.with_noise(lambda action: 0.25 * action.id)
    assert [action.noise for action in changed.actions] == [0.25, 0.5, 0.75]
    assert [action.noise for action in observations.actions] == [0.5, 0.5, 0.5]
