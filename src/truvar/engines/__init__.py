"""Engines: ways to compute the truncated sums over the targets for every candidate.

All engines choose the same candidate; they differ in memory and time. `dense` keeps the covariance
matrix, `lazy` finds the best candidate by bounds without forming it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from truvar._names import offer
from truvar._typing import Array, Index
from truvar.domain.domain import Domain
from truvar.exceptions import InvalidArgumentError
from truvar.models.posterior import Posterior

_DENSE_BYTES = 1 << 30  # size of the largest matrix in double precision: 11,585 points
# The same on a regular grid, where products with the prior covariance are cheap: 8,192 points.
_GRID_BYTES = 1 << 29


class Engine(Protocol):
    """Sums over targets j of w_j min(C_jx^2, e_j d_x), given observations and pending actions.

    `rows` are the targets with a positive excess (a,), `excess` their e (a,), and `predictive`
    holds d. `row_weights` are their w (a,), at least 0; None: 1, as in eq. (3).

    Attributes:
        name: Name of the engine.
        posterior: Posterior that the engine follows.
    """

    name: str
    posterior: Posterior

    def sums(
        self, rows: Index, excess: Array, predictive: Array, row_weights: Array | None = None
    ) -> Array:
        """Return the sums of every site x and noise level k, with d (m, K): (m, K)."""
        ...

    def sums_at(
        self,
        rows: Index,
        excess: Array,
        sites: Index,
        predictive: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return the sums of some sites (c,), with d (c, K): (c, K)."""
        ...

    def best_sums(
        self,
        rows: Index,
        excess: Array,
        predictive: Array,
        weight: Array,
        row_weights: Array | None = None,
    ) -> Array:
        """Return sums of which only the highest, times its weight, is wanted: (m, K).

        They are exact wherever they could be that one, and then a function of the observations and
        the pending actions alone (`ties.rescore_near_best`). Elsewhere they are upper bounds that
        lie below it.
        """
        ...

    def covariance(self, rows: Index, sites: slice) -> Array:
        """Return Cov(rows, sites) for a slice of the sites: (a, c)."""
        ...


EngineLike: TypeAlias = "str | Callable[[Posterior, Domain], Engine] | None"


# The classes are imported when an engine is created, as each compiles its loops.
def _dense(posterior: Posterior, domain: Domain, single: bool | None = None) -> Engine:
    from truvar.engines._dense import Dense

    return Dense(posterior, single)


def _lazy(posterior: Posterior, domain: Domain) -> Engine:
    from truvar.engines.lazy import Lazy

    return Lazy(posterior, domain)


ENGINES: dict[str, Callable[[Posterior, Domain], Engine]] = {
    "dense": _dense,
    "dense32": partial(_dense, single=True),
    "dense64": partial(_dense, single=False),
    "lazy": _lazy,
}


def engine_for(posterior: Posterior, domain: Domain, engine: EngineLike = None) -> Engine:
    """Create an engine.

    Args:
        posterior: Posterior that the engine follows.
        domain: Domain of the study.
        engine: Name of an engine, or a function of posterior and domain that creates one; None:
            chosen by the size and structure of the domain.
    """
    if engine is None:
        matrix_bytes = 8 * posterior.n_targets * len(posterior.sites)
        engine = "dense" if matrix_bytes <= _max_matrix_bytes(posterior, domain) else "lazy"
    return check_engine(engine)(posterior, domain)


def check_engine(engine: EngineLike) -> Callable[[Posterior, Domain], Engine]:
    """Return the function that creates an engine.

    Raises:
        InvalidArgumentError: If there is no engine of that name.
    """
    if callable(engine):
        return engine
    if engine not in ENGINES:
        raise InvalidArgumentError(
            f"engine must be one of {', '.join(ENGINES)}, or None (chosen by size), got {engine!r}"
        )
    return ENGINES[engine]


def _max_matrix_bytes(posterior: Posterior, domain: Domain) -> int:
    if domain.layout is None:  # no grid: spares the import below
        return _DENSE_BYTES
    from truvar.engines._products import has_grid_product

    return _GRID_BYTES if has_grid_product(posterior, domain) else _DENSE_BYTES


__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "lazy": ("Lazy",),
        "search": ("BUDGET",),
        "ties": ("TIE_TOLERANCE", "near_best"),
    },
    defined=("ENGINES", "Engine", "EngineLike", "check_engine", "engine_for"),
)
