"""truvar decides where to measure next: truncated variance reduction for optima and level sets."""

from truvar.actions import Cost, NoiseLevels, Tasks
from truvar.backtest import backtest
from truvar.confidence import ConstantBeta, LogBeta, RKHSBeta, TheoremBeta
from truvar.domain import Domain
from truvar.errors import Finished, TruvarError
from truvar.fit import Learned
from truvar.policies import (
    EI,
    ES,
    GCHK,
    MES,
    MRS,
    PES,
    PI,
    SUR,
    UCB,
    UCBPE,
    BaMSOO,
    Plus,
    Random,
    Straddle,
    Top,
    TruVaR,
    Variance,
)
from truvar.problem import Problem, load_problem
from truvar.regions import LevelSet, Maximize, Minimize
from truvar.result import Result, Suggestion
from truvar.service import connect
from truvar.store import load, studies
from truvar.study import Study
from truvar.theory import Certificate

__version__ = "0.1.0"

__all__ = [
    "EI",
    "ES",
    "GCHK",
    "MES",
    "MRS",
    "PES",
    "PI",
    "SUR",
    "UCB",
    "UCBPE",
    "BaMSOO",
    "Certificate",
    "ConstantBeta",
    "Cost",
    "Domain",
    "Finished",
    "Learned",
    "LevelSet",
    "LogBeta",
    "Maximize",
    "Minimize",
    "NoiseLevels",
    "Plus",
    "Problem",
    "RKHSBeta",
    "Random",
    "Result",
    "Straddle",
    "Study",
    "Suggestion",
    "Tasks",
    "TheoremBeta",
    "Top",
    "TruVaR",
    "TruvarError",
    "Variance",
    "__version__",
    "backtest",
    "connect",
    "load",
    "load_problem",
    "studies",
]
