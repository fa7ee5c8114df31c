"""Search spaces of Optuna as points of [0, 1]^d: logarithms where asked for, steps kept, one indicator a category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log, log2
from typing import Any

import numpy as np
from scipy.stats import qmc

from truvar._typing import Array

NEAR = (0.1, 0.01)  # how far from the best trials candidates are drawn, as shares of each parameter's range


class SearchSpace:
    """Named distributions and the coordinates that their values have."""

    def __init__(self, distributions: Mapping[str, Any]) -> None:
        self.distributions = dict(distributions)
        self.columns: tuple[str, ...] = tuple(
            column
            for name, d in self.distributions.items()
            for column in ([name] if _is_number(d) else [f"{name}={i}" for i in range(len(d.choices))])
        )

    def encode(self, params: Sequence[Mapping[str, Any]]) -> Array:
        """The points (n, d) of parameters by name."""
        points = np.zeros((len(params), len(self.columns)))
        column = 0
        for name, d in self.distributions.items():
            if _is_number(d):
                points[:, column] = [_share(d, p[name]) for p in params]
                column += 1
            else:
                for row, p in enumerate(params):
                    points[row, column + int(d.to_internal_repr(p[name]))] = 1.0
                column += len(d.choices)
        return points

    def candidates(
        self, count: int, seen: Sequence[Mapping[str, Any]], best: Sequence[Mapping[str, Any]], rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        """Different parameters to choose among: spread evenly, near the best trials, and those tried already, which a
        noisy objective may be asked for again."""
        names, size = list(self.distributions), len(self.distributions)
        sobol = qmc.Sobol(size, rng=rng)
        unit = [sobol.random_base2(ceil(log2(count)))[:count]]
        for p in best:
            centre = np.array([_unit(self.distributions[name], p[name]) for name in names])
            for scale in NEAR:
                near = np.clip(centre + scale * rng.standard_normal((count // 16, size)), 0.0, 1.0)
                change = rng.random(near.shape) < np.array([0.0 if _is_number(d) else 0.2 for d in self._all])
                keep = np.array([not _is_number(d) for d in self._all])
                near[:, keep] = np.where(change, rng.random(near.shape), centre)[:, keep]
                unit.append(near)
        drawn = [
            {name: _value(self.distributions[name], u) for name, u in zip(names, row, strict=True)}
            for row in np.vstack(unit)
        ]
        tried = [{name: p[name] for name in names} for p in seen[:count]]
        different = {self.encode([p]).tobytes(): p for p in [*drawn, *tried]}
        return list(different.values())

    @property
    def _all(self) -> list[Any]:
        return list(self.distributions.values())


def _is_number(d: Any) -> bool:
    return not hasattr(d, "choices")


def _is_whole(d: Any) -> bool:
    return _is_number(d) and isinstance(d.low, int)


def _share(d: Any, value: float) -> float:
    """Where a number lies between the bounds, 0 to 1."""
    if d.log:
        return (log(value) - log(d.low)) / (log(d.high) - log(d.low))
    return float((value - d.low) / (d.high - d.low))


def _unit(d: Any, value: Any) -> float:
    """The middle of the numbers of [0, 1] that `_value` turns into this value."""
    return _share(d, value) if _is_number(d) else (int(d.to_internal_repr(value)) + 0.5) / len(d.choices)


def _value(d: Any, u: float) -> Any:
    """The value of a distribution for a number of [0, 1]; each end gets as much of it as any other."""
    if not _is_number(d):
        return d.choices[min(int(u * len(d.choices)), len(d.choices) - 1)]
    if d.log:
        value = float(np.exp(log(d.low) + u * (log(d.high) - log(d.low))))
        value = round(value) if _is_whole(d) else value
    elif d.step is not None:
        steps = round((d.high - d.low) / d.step)
        value = d.low + min(int(u * (steps + 1)), steps) * d.step
    else:
        value = d.low + u * (d.high - d.low)
    value = min(max(value, d.low), d.high)
    return int(value) if _is_whole(d) else float(value)
