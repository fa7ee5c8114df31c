"""truvar decides where to measure next: truncated variance reduction for optima and level sets."""

from truvar.acquisition import (
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
    TopK,
    TruVaR,
    Variance,
)
from truvar.acquisition.confidence import ConstantBeta, LogBeta, RKHSBeta, TheoremBeta
from truvar.backtest import backtest
from truvar.domain.costs import Cost, NoiseLevels, Tasks
from truvar.domain.domain import Domain
from truvar.domain.goals import LevelSet, Maximize, Minimize
from truvar.exceptions import Finished, TruvarError
from truvar.inference.certificate import Certificate
from truvar.models.fit import Learned
from truvar.problem import Problem, load_problem
from truvar.service import connect
from truvar.study.result import Result
from truvar.study.stored import load, studies
from truvar.study.study import Study
from truvar.study.suggestion import Suggestion

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
    "TopK",
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
