"""Engines: how the truncated sums over the targets are had for every candidate. One answer, several ways to it."""

from __future__ import annotations

from typing import Protocol

from truvar.actions import Index
from truvar.domain import Array
from truvar.engines.dense import Dense
from truvar.posterior import Posterior


class Engine(Protocol):
    """Sums over the rows j of min(C_jx^2, e_j d_x), given what was told and is pending."""

    name: str
    posterior: Posterior

    def sums(self, rows: Index, excess: Array, predictive: Array) -> Array:
        """For every site x and noise level k, with d (m, K). (m, K)"""
        ...

    def best_sums(self, rows: Index, excess: Array, predictive: Array, worth: Array) -> Array:
        """The same where only the highest sum x worth is wanted: exact wherever it could be that one, upper bounds that
        stay below it elsewhere. (m, K)"""
        ...

    def covariance(self, rows: Index, sites: slice) -> Array:
        """Cov(rows, sites) for a run of sites. (a, c)"""
        ...


def engine_for(posterior: Posterior) -> Engine:
    """The engine that suits the size and structure of the domain."""
    return Dense(posterior)


__all__ = ["Dense", "Engine", "engine_for"]
