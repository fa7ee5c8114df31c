"""The paper's theory: beta, gamma_T, C*, Theorem 3.1 and its corollaries, and a planner.

`docs/theory.md` has the statements, the derivations and what was measured.
"""

from truvar.acquisition.confidence import lemma_beta, rkhs_beta
from truvar.theory._bounds import (
    DERIVED,
    PAPER,
    Constants,
    CostBound,
    EpochBound,
    Horizon,
    choose_noise,
    epoch_cost,
    improved,
    level_gains,
    simplified,
    theorem,
    within_gap,
)
from truvar.theory._covering import Covering, exact_cover
from truvar.theory._information import Gain, InformationGain, exact_gain, information
from truvar.theory._planner import Plan, simulate
from truvar.theory._setting import Conditioned, TheorySetting
from truvar.theory._submodularity import Submodularity, submodularity

__all__ = [
    "DERIVED",
    "PAPER",
    "Conditioned",
    "Constants",
    "CostBound",
    "Covering",
    "EpochBound",
    "Gain",
    "Horizon",
    "InformationGain",
    "Plan",
    "Submodularity",
    "TheorySetting",
    "choose_noise",
    "epoch_cost",
    "exact_cover",
    "exact_gain",
    "improved",
    "information",
    "lemma_beta",
    "level_gains",
    "rkhs_beta",
    "simplified",
    "simulate",
    "submodularity",
    "theorem",
    "within_gap",
]
