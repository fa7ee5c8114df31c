"""The peers, each as its own program: a file per library.

A peer takes values by `tell`, returns the row to measure next by `ask` given what each row costs
now, and its answer by `report`. Coordinates are scaled to the unit cube, values to be maximised.
What a library lacks (a cost, a choice among given rows) is not added to it: it then chooses as if
all costs were equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import numpy as np

import truvar as tv
from benchmarks.field.problems import Priced
from benchmarks.instances import Array

OURS = "truvar"
GOALS = ("level set", "optimum")
SLOW_ROWS = 5000  # candidates of the largest problem for peers that take seconds per suggestion


class Peer(Protocol):
    """A method in a run on one start of a problem."""

    def tell(self, row: int, value: float) -> None:
        """Take a measured value."""

    def ask(self, costs: Array) -> int:
        """Return the row to measure next, given what each costs now.

        Raises:
            Finished: If the method would stop here.
        """

    def report(self) -> int | np.ndarray:
        """Return the recommended row; for a level set, the mask of the rows above."""


@dataclass(frozen=True)
class Entry:
    """A peer of the table.

    Attributes:
        module: Module of this package that has `make_...`.
        make: Name of the function or class in it.
        package: Package that must be installed.
        goals: Goals that it is for.
        what: One line about it.
        needs_grid: Whether it chooses on grids only.
        needs_cost: Whether it differs from another one only where costs differ.
        max_rows: Largest number of candidates that it takes in a reasonable time.
    """

    module: str
    make: str
    package: str
    goals: tuple[str, ...]
    what: str
    needs_grid: bool = False
    needs_cost: bool = False
    max_rows: int = 30_000


ENTRIES = {
    OURS: Entry("ours", "Default", "truvar", GOALS, "tv.Study(domain, goal, cost=...)"),
    "botorch": Entry(
        *("botorch", "Plain", "botorch", GOALS, "SingleTaskGP + LogEI; level sets: straddle")
    ),
    "botorch-per-cost": Entry(
        *("botorch", "PerCost", "botorch", ("optimum",), "SingleTaskGP + LogEI per cost"),
        needs_cost=True,
    ),
    "botorch-nei": Entry("botorch", "Noisy", "botorch", ("optimum",), "SingleTaskGP + qLogNEI"),
    "botorch-nipv": Entry(
        *("botorch", "IntegratedVariance", "botorch", ("level set",)),
        "SingleTaskGP + qNegIntegratedPosteriorVariance",
        max_rows=SLOW_ROWS,
    ),
    "gittins": Entry(
        *("gittins", "Gittins", "botorch", ("optimum",)),
        "SingleTaskGP + Pandora's-box Gittins index, with its stop",
    ),
    "hetgpy-csur": Entry(
        "hetgpy", "CSUR", "hetgpy", ("level set",), "hetGPy + cSUR", max_rows=SLOW_ROWS
    ),
    "hetgpy-icu": Entry(
        "hetgpy", "ICU", "hetgpy", ("level set",), "hetGPy + ICU", max_rows=SLOW_ROWS
    ),
    "hetgpy-mee": Entry("hetgpy", "MEE", "hetgpy", ("level set",), "hetGPy + MEE"),
    "gpmp": Entry(
        *("gpmp", "ExcursionSet", "gpmpcontrib", ("level set",)),
        "GPmp-contrib, excursion set on the candidates",
    ),
    "gpcam": Entry(
        *("gpcam", "GpCAM", "gpcam", GOALS),
        "gpCAM with cost function and position; target probability or expected improvement",
    ),
    "trieste-efi": Entry(
        *("trieste", "Feasibility", "trieste", ("level set",)),
        "Trieste GPflow model + ExpectedFeasibility",
    ),
    "trieste-ivr": Entry(
        *("trieste", "IntegratedVariance", "trieste", ("level set",)),
        "Trieste GPflow model + IntegratedVarianceReduction",
        max_rows=SLOW_ROWS,
    ),
    "optuna-gp": Entry(
        "others", "optuna_gp", "optuna", ("optimum",), "Optuna GPSampler", needs_grid=True
    ),
    "optuna-tpe": Entry(
        "others", "optuna_tpe", "optuna", ("optimum",), "Optuna TPESampler", needs_grid=True
    ),
    "smac": Entry("others", "smac", "smac", ("optimum",), "SMAC3 BlackBoxFacade", needs_grid=True),
    "sklearn": Entry(
        *("others", "sklearn", "sklearn", GOALS), "scikit-learn GPR + EI; level sets: straddle"
    ),
    "random": Entry("others", "random", "sklearn", GOALS, "random candidates"),
}


def is_installed(name: str) -> bool:
    """Return whether the package of a peer can be imported."""
    return find_spec(ENTRIES[name].package) is not None


def suits(name: str, priced: Priced) -> bool:
    """Return whether a peer is for a problem."""
    entry = ENTRIES[name]
    domain = priced.instance.domain
    goal = "level set" if isinstance(priced.instance.goal, tv.LevelSet) else "optimum"
    return (
        goal in entry.goals
        and (domain.shape is not None or not entry.needs_grid)
        and (priced.price.varies or not entry.needs_cost)
        and len(domain) <= entry.max_rows
    )


def make(name: str, priced: Priced) -> Peer:
    """Return a peer at the start of a run."""
    entry = ENTRIES[name]
    module = import_module(f"benchmarks.field.peers.{entry.module}")
    maker: Callable[[Priced], Peer] = getattr(module, entry.make)
    return maker(priced)
