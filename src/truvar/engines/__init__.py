"""Engines: how the truncated sums over the targets are had for every candidate. One answer, several ways to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.engines.dense import Dense
from truvar.engines.lazy import Lazy
from truvar.engines.products import convolves
from truvar.exceptions import TruvarError
from truvar.models.posterior import Posterior

DENSE_BYTES = 1 << 30  # of the largest matrix in double, 11,585 points; beside one in single if all scores are wanted
GRID_BYTES = 1 << 29  # on a regular grid, where products are cheap: 8,192 points


class Engine(Protocol):
    """Sums over the rows j of min(C_jx^2, e_j d_x), given what was told and is pending."""

    name: str
    posterior: Posterior

    def sums(self, rows: Index, excess: Array, predictive: Array) -> Array:
        """For every site x and noise level k, with d (m, K). (m, K)"""
        ...

    def sums_at(self, rows: Index, excess: Array, sites: Index, predictive: Array) -> Array:
        """The same for some sites only, with d (c, K). (c, K)"""
        ...

    def best_sums(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        """The same where only the highest sum x worth is wanted: exact wherever it could be that one, and then a
        function of what was told and is pending alone (`rounding.settle`); upper bounds below it elsewhere. (m, K)"""
        ...

    def covariance(self, rows: Index, sites: slice) -> Array:
        """Cov(rows, sites) for a run of sites. (a, c)"""
        ...


EngineLike: TypeAlias = "str | Callable[[Posterior, Domain], Engine] | None"
ENGINES: dict[str, Callable[[Posterior, Domain], Engine]] = {
    "dense": lambda posterior, domain: Dense(posterior),
    "dense32": lambda posterior, domain: Dense(posterior, single=True),
    "dense64": lambda posterior, domain: Dense(posterior, single=False),
    "lazy": Lazy,
}


def engine_for(posterior: Posterior, domain: Domain, engine: EngineLike = None) -> Engine:
    """The engine that was asked for by name, or by what makes it; None: the one that suits the domain."""
    if engine is None:
        most = GRID_BYTES if convolves(posterior, domain) else DENSE_BYTES
        engine = "dense" if 8 * posterior.n_targets * len(posterior.sites) <= most else "lazy"
    return check_engine(engine)(posterior, domain)


def check_engine(engine: EngineLike) -> Callable[[Posterior, Domain], Engine]:
    """What makes the engine, or a message that says which there are."""
    if callable(engine):
        return engine
    if engine not in ENGINES:
        raise TruvarError(f"engine must be one of {', '.join(ENGINES)}, or None (chosen by size), got {engine!r}")
    return ENGINES[engine]


__all__ = ["ENGINES", "Dense", "Engine", "EngineLike", "Lazy", "check_engine", "engine_for"]
