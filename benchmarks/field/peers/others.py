"""Peers that know no costs, as `benchmarks.scratch` runs them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.field.peers import Peer
from benchmarks.field.problems import Priced
from benchmarks.instances import Array
from benchmarks.scratch.methods import make


class _Regardless:
    """A method of `benchmarks.scratch`, regardless of costs."""

    def __init__(self, name: str, priced: Priced) -> None:
        self.method = make(name, priced.instance)

    def tell(self, row: int, value: float) -> None:
        self.method.tell(row, value)

    def ask(self, costs: Array) -> int:
        return self.method.ask()

    def report(self) -> int | np.ndarray:
        return self.method.report()


def _named(name: str) -> Callable[[Priced], Peer]:
    return lambda priced: _Regardless(name, priced)


optuna_gp = _named("optuna-gp")
optuna_tpe = _named("optuna-tpe")
smac = _named("smac")
sklearn = _named("sklearn")
random = _named("random")
