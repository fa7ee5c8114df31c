"""The peers, each as its own program: a file per library.

A peer takes values by `tell`, returns the row to measure next by `ask` given what each row costs
now, and its answer by `report`. Coordinates are scaled to the unit cube, values to be maximised.
What a library lacks (a cost, a choice among given rows) is not added to it: it then chooses as if
all costs were equal. None chooses among noise levels, so that a peer measures at one of them,
whose number follows its name: botorch@2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import numpy as np

import truvar as tv
from benchmarks.field.cases import Priced
from benchmarks.instances import Array, Noise

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

    def is_sure(self) -> bool:
        """Return whether the peer states that F1 is at least 0.9, or the regret at most 0.01."""


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
        numbers_only: Whether it fails where all values of a column agree so far, as those of categories
            do at first.
        max_rows: Largest number of candidates that it takes in a reasonable time.
        takes_model: Whether kernel, mean and noise can be given to it.
        surveys_only: Whether it is for travel with a given model alone.
        level: Noise level at which it measures, where there are several.
    """

    module: str
    make: str
    package: str
    goals: tuple[str, ...]
    what: str
    needs_grid: bool = False
    needs_cost: bool = False
    numbers_only: bool = False
    max_rows: int = 30_000
    takes_model: bool = False
    surveys_only: bool = False
    level: int | None = None


ENTRIES = {
    OURS: Entry(
        "ours", "Default", "truvar", GOALS, "tv.Study(domain, goal, cost=...)", takes_model=True
    ),
    "botorch": Entry(
        *("botorch", "Plain", "botorch", GOALS, "SingleTaskGP + LogEI; level sets: straddle"),
        takes_model=True,
    ),
    "botorch-per-cost": Entry(
        *("botorch", "PerCost", "botorch", ("optimum",), "SingleTaskGP + LogEI per cost"),
        needs_cost=True,
        takes_model=True,
    ),
    "botorch-nei": Entry(
        "botorch", "Noisy", "botorch", ("optimum",), "SingleTaskGP + qLogNEI", takes_model=True
    ),
    "botorch-nipv": Entry(
        *("botorch", "IntegratedVariance", "botorch", ("level set",)),
        "SingleTaskGP + qNegIntegratedPosteriorVariance",
        max_rows=SLOW_ROWS,
        takes_model=True,
    ),
    "gittins": Entry(
        *("gittins", "Gittins", "botorch", ("optimum",)),
        "SingleTaskGP + Pandora's-box Gittins index, with its stop",
        takes_model=True,
    ),
    "hetgpy-csur": Entry(
        "hetgpy",
        "CSUR",
        "hetgpy",
        ("level set",),
        "hetGPy + cSUR",
        max_rows=SLOW_ROWS,
        takes_model=True,
        numbers_only=True,
    ),
    "hetgpy-icu": Entry(
        "hetgpy",
        "ICU",
        "hetgpy",
        ("level set",),
        "hetGPy + ICU",
        max_rows=SLOW_ROWS,
        takes_model=True,
        numbers_only=True,
    ),
    "hetgpy-mee": Entry(
        "hetgpy",
        "MEE",
        "hetgpy",
        ("level set",),
        "hetGPy + MEE",
        takes_model=True,
        numbers_only=True,
    ),
    "gpmp": Entry(
        *("gpmp", "ExcursionSet", "gpmpcontrib", ("level set",)),
        "GPmp-contrib, excursion set on the candidates",
        numbers_only=True,
    ),
    "gpcam": Entry(
        *("gpcam", "GpCAM", "gpcam", GOALS),
        "gpCAM with cost function and position; target probability or expected improvement",
        numbers_only=True,
        takes_model=True,
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
    "sgptools": Entry(
        *("sgptools", "Survey", "sgptools", ("level set",)),
        "SGP-Tools, the longest route of ContinuousSGP within the budget",
        takes_model=True,
        surveys_only=True,
    ),
    "optuna-gp": Entry(
        "others", "optuna_gp", "optuna", ("optimum",), "Optuna GPSampler", needs_grid=True
    ),
    "optuna-tpe": Entry(
        "others", "optuna_tpe", "optuna", ("optimum",), "Optuna TPESampler", needs_grid=True
    ),
    "smac": Entry("others", "smac", "smac", ("optimum",), "SMAC3 BlackBoxFacade", needs_grid=True),
    "sklearn": Entry(
        *("others", "Sklearn", "sklearn", GOALS),
        "scikit-learn GPR + EI; level sets: straddle",
        takes_model=True,
    ),
    "random": Entry("others", "Random", "sklearn", GOALS, "random candidates", takes_model=True),
}


LEVEL_PEERS = ("botorch", "hetgpy-csur", "hetgpy-mee", "sklearn", "random")
N_LEVELS = 3  # of the problems with noise levels to choose from

ENTRIES |= {
    f"{name}@{level}": replace(
        ENTRIES[name], level=level, what=f"{ENTRIES[name].what}, at noise level {level}"
    )
    for name in LEVEL_PEERS
    for level in range(N_LEVELS)
}


def is_installed(name: str) -> bool:
    """Return whether the package of a peer can be imported."""
    return find_spec(ENTRIES[name].package) is not None


def suits(name: str, priced: Priced) -> bool:
    """Return whether a peer is for a problem."""
    entry = ENTRIES[name]
    domain = priced.instance.domain
    goal = "level set" if isinstance(priced.instance.goal, tv.LevelSet) else "optimum"
    at_level = priced.levels is not None and name != OURS
    return (
        goal in entry.goals
        and at_level == (entry.level is not None)
        and (priced.known is None or entry.takes_model)
        and (domain.shape is not None or not entry.needs_grid)
        and (priced.varies or not entry.needs_cost)
        and (not entry.surveys_only or bool(priced.known and priced.price.travel))
        and not (domain.categorical and entry.numbers_only)
        and len(domain) <= entry.max_rows
    )


def make(name: str, priced: Priced) -> Peer:
    """Return a peer at the start of a run."""
    entry = ENTRIES[name]
    module = import_module(f"benchmarks.field.peers.{entry.module}")
    maker: Callable[[Priced], Peer] = getattr(module, entry.make)
    if entry.level is None:
        return maker(priced)
    return _AtLevel(maker(_only(priced, entry.level)), entry.level, len(priced.instance.domain))


def _only(priced: Priced, level: int) -> Priced:
    """Return a problem with one of its noise levels."""
    assert priced.levels is not None
    variance = float(priced.levels.variance[level])
    instance = replace(priced.instance, noise=Noise(float(np.sqrt(variance))))
    known = None if priced.known is None else replace(priced.known, noise=variance)
    return replace(priced, instance=instance, levels=None, known=known)


class _AtLevel:
    """A peer that measures at one noise level."""

    def __init__(self, peer: Peer, level: int, n_rows: int) -> None:
        self.peer = peer
        self.level = level
        self.n_rows = n_rows

    def tell(self, row: int, value: float) -> None:
        self.peer.tell(row % self.n_rows, value)

    def ask(self, costs: Array) -> int:
        own = costs[self.level * self.n_rows :][: self.n_rows]
        return self.peer.ask(own) + self.level * self.n_rows

    def report(self) -> int | np.ndarray:
        return self.peer.report()

    def is_sure(self) -> bool:
        return self.peer.is_sure()
