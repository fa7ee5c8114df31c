"""The baselines: every policy of the paper and its kin that suits the problem, per cost where
that is sound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import truvar as tv
from benchmarks.decision.problems import Case
from truvar._typing import Array
from truvar.acquisition import Policy, PolicyContext, policy_named
from truvar.domain.candidates import Candidates


@dataclass(frozen=True)
class StraddlePerCost(tv.Straddle):
    """Straddle per unit cost, where it is positive: what is not ambiguous is worth nothing."""

    per_cost: bool = True
    signed = False

    def __post_init__(self) -> None:
        pass

    def score(self, context: PolicyContext, candidates: Candidates) -> Array:
        return np.maximum(
            super().score(context, candidates), 1e-9 * context.posterior.scale
        )  # never nothing: it goes on


def baselines(case: Case) -> dict[str, Policy]:
    """The policies to beat on this problem, by name."""
    if case.level_set and case.levels:
        chosen = {f"gchk level {k}": tv.GCHK(level=k) for k in range(3)}
        straddles = {f"straddle level {k}": tv.Straddle(level=k) for k in range(3)}
        return {"truvar": tv.TruVaR(), **chosen, **straddles, "sur/cost": tv.SUR(per_cost=True)}
    if case.level_set:
        names = ["truvar", "gchk", "straddle", "sur", "variance"]
        if case.costly:
            names += ["gchk/cost", "sur/cost", "variance/cost"]
    else:
        names = ["truvar", "ei", "pi", "ucb", "es", "pes", "mrs", "mes"]
        if case.costly:
            names += ["ei/cost", "pi/cost", "es/cost", "pes/cost", "mrs/cost", "mes/cost"]
    found = {name: policy_named(name) for name in names}
    return (
        {**found, "straddle/cost": StraddlePerCost()} if case.level_set and case.costly else found
    )
