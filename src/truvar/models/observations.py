"""`Observations`: measurements with their values, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from truvar._typing import Array, Index, Mask
from truvar.domain.action import Action


class Observation(NamedTuple):
    """A measurement with its value."""

    action: Action
    value: float


class Observations(Sequence[Observation]):
    """An immutable sequence of measurements with their values, in the order they were told.

    Args:
        dimension: d', the number of coordinates of a point; with tasks, the task's index is the
            last one.
        pairs: The measurements with their values.
    """

    def __init__(self, dimension: int, pairs: Iterable[Observation] = ()) -> None:
        self.dimension = dimension
        self._pairs = tuple(pairs)

    @overload
    def __getitem__(self, position: int) -> Observation: ...

    @overload
    def __getitem__(self, position: slice) -> Observations: ...

    def __getitem__(self, position: int | slice) -> Observation | Observations:
        if isinstance(position, slice):
            return Observations(self.dimension, self._pairs[position])
        return self._pairs[position]

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self._pairs)

    @property
    def actions(self) -> list[Action]:
        """The measurements without their values."""
        return [action for action, _ in self._pairs]

    @cached_property
    def points(self) -> Array:
        """Coordinates, (t, d')."""
        return np.array([action.point for action, _ in self._pairs]).reshape(
            len(self._pairs), self.dimension
        )

    @cached_property
    def values(self) -> Array:
        """Measured values, (t,)."""
        return np.array([value for _, value in self._pairs], dtype=float)

    @cached_property
    def noise_given(self) -> Mask:
        """Whether the noise variance of each came with its value, (t,)."""
        return np.array([action.noise_given for action, _ in self._pairs], dtype=bool)

    @cached_property
    def tasks(self) -> Index:
        """Index of the task of each, (t,); 0 is the target."""
        return np.array([action.task for action, _ in self._pairs], dtype=int)

    def extend(self, pairs: Iterable[tuple[Action, float]]) -> Observations:
        """Return these observations and further ones."""
        return Observations(self.dimension, [*self._pairs, *(Observation(*pair) for pair in pairs)])

    def with_noise(self, noise_of: Callable[[Action], float]) -> Observations:
        """Return the observations with another noise variance, unless it came with the value."""
        changed = {
            position: replace(action, noise=noise_of(action))
            for position, (action, _) in enumerate(self._pairs)
            if not action.noise_given
        }
        return self.with_actions(changed)

    def with_actions(self, actions: Mapping[int, Action]) -> Observations:
        """Return the observations with other actions at some positions."""
        pairs = list(self._pairs)
        for position, action in actions.items():
            pairs[position] = Observation(action, pairs[position].value)
        return Observations(self.dimension, pairs)
