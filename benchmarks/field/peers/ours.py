"""The default study."""

from __future__ import annotations

from benchmarks.field.problems import Priced
from benchmarks.instances import Array
from benchmarks.scratch.methods import DefaultStudy


class Default(DefaultStudy):
    """The default study with the cost of the problem, which it knows itself."""

    def __init__(self, priced: Priced) -> None:
        super().__init__(priced.instance, priced.price.for_study())

    def ask(self, costs: Array) -> int:
        return super().ask()
