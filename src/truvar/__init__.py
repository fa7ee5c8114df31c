"""Choose what to measure next to find a maximum or a level set.

Truncated variance reduction (TruVaR) and its baselines.

A public name is imported from its module when it is first used, so that `import truvar` loads
neither NumPy nor any other numerical library.
"""

# ruff: noqa: F403

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from truvar._deprecation import warn_deprecated
from truvar._names import PUBLIC_MODULES, RENAMED

if TYPE_CHECKING:  # for type checkers and editors, which cannot follow __getattr__
    from truvar.acquisition.analytic import *
    from truvar.acquisition.bamsoo import *
    from truvar.acquisition.confidence import ConstantBeta as ConstantBeta
    from truvar.acquisition.confidence import LogBeta as LogBeta
    from truvar.acquisition.confidence import RKHSBeta as RKHSBeta
    from truvar.acquisition.confidence import TheoremBeta as TheoremBeta
    from truvar.acquisition.entropy import *
    from truvar.acquisition.information import *
    from truvar.acquisition.plus import *
    from truvar.acquisition.sampling import *
    from truvar.acquisition.truvar import *
    from truvar.acquisition.weighted import *
    from truvar.backtest import backtest as backtest
    from truvar.domain.areas import read_area as read_area
    from truvar.domain.constraints import LinearConstraint as LinearConstraint
    from truvar.domain.constraints import PolygonConstraint as PolygonConstraint
    from truvar.domain.costs import Cost as Cost
    from truvar.domain.costs import NoiseLevels as NoiseLevels
    from truvar.domain.costs import Tasks as Tasks
    from truvar.domain.dates import Date as Date
    from truvar.domain.domain import Domain as Domain
    from truvar.domain.goals import AllOf as AllOf
    from truvar.domain.goals import LevelSet as LevelSet
    from truvar.domain.goals import Map as Map
    from truvar.domain.goals import Maximize as Maximize
    from truvar.domain.goals import Minimize as Minimize
    from truvar.domain.learned_cost import LearnedCost as LearnedCost
    from truvar.domain.parameters import Boolean as Boolean
    from truvar.domain.parameters import Categorical as Categorical
    from truvar.domain.parameters import Integer as Integer
    from truvar.domain.parameters import Log as Log
    from truvar.domain.parameters import Ordinal as Ordinal
    from truvar.domain.parameters import Range as Range
    from truvar.domain.travel import Euclidean as Euclidean
    from truvar.domain.travel import GreatCircle as GreatCircle
    from truvar.domain.travel import Network as Network
    from truvar.domain.travel import TravelMatrix as TravelMatrix
    from truvar.domain.vehicles import Vehicle as Vehicle
    from truvar.exceptions import Finished as Finished
    from truvar.exceptions import TruvarError as TruvarError
    from truvar.inference.certificate import Certificate as Certificate
    from truvar.models.likelihoods.binary import Binary as Binary
    from truvar.models.likelihoods.count import Count as Count
    from truvar.models.priors import Learned as Learned
    from truvar.models.priors import Quantity as Quantity
    from truvar.problem import Problem as Problem
    from truvar.problem import load_problem as load_problem
    from truvar.report.point_files import save_points as save_points
    from truvar.report.waypoints import save_waypoints as save_waypoints
    from truvar.service import connect as connect
    from truvar.study.readings import Reading as Reading
    from truvar.study.readings import Reduced as Reduced
    from truvar.study.result import Result as Result
    from truvar.study.stored import load as load
    from truvar.study.stored import studies as studies
    from truvar.study.study import Study as Study
    from truvar.study.suggestion import Suggestion as Suggestion
    from truvar.study.tracks import bin_track as bin_track

__version__ = "0.3.0"

_SUBPACKAGES = frozenset(
    {
        "acquisition",
        "algorithm",
        "domain",
        "engines",
        "inference",
        "integrations",
        "models",
        "paper",
        "problem",
        "remote",
        "report",
        "service",
        "storage",
        "study",
        "tabular",
        "testing",
        "theory",
    }
)
"""Subpackages that `truvar.NAME` imports; `truvar.backtest` is the function."""

_PUBLIC_MODULES = frozenset({"exceptions", "notebook", "plot"})
"""Modules that `truvar.NAME` imports."""

_LISTED_PACKAGES = frozenset({"integrations", "paper", "testing", "theory"})
"""Subpackages whose contents users import; the others are for those who extend truvar."""

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept any name
    __all__ = ["__version__", *sorted(PUBLIC_MODULES)]

    def __getattr__(name: str) -> Any:
        if name in RENAMED:
            warn_deprecated(f"truvar.{name}", f"truvar.{RENAMED[name]}", removed_in="0.4.0")
            return __getattr__(RENAMED[name])
        if name in PUBLIC_MODULES:
            value = getattr(import_module(PUBLIC_MODULES[name]), name)
            globals()[name] = value
            return value
        if name in _SUBPACKAGES | _PUBLIC_MODULES:
            return import_module(f"truvar.{name}")
        raise AttributeError(f"module 'truvar' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *_LISTED_PACKAGES, *_PUBLIC_MODULES})


class _Package(ModuleType):
    """Module type under which `truvar.backtest` stays the function.

    Importing the subpackage of that name would otherwise replace it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "backtest" and isinstance(value, ModuleType):
            value = value.backtest
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
