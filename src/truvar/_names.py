"""Public and storable names with the modules that define them: the one table of them.

Each name is in one of four groups. `truvar.NAME`, the command line, problem files and stored
studies look names up here, and a module is imported when one of its names is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

# Policies: public, storable, and known to command line and problem files by their lower-case names.
# Error messages and help list them in this order.
POLICY_MODULES: dict[str, str] = {
    "TruVaR": "truvar.acquisition.truvar",
    "WeightedTruVaR": "truvar.acquisition.weighted",
    "Plus": "truvar.acquisition.plus",
    "EI": "truvar.acquisition.analytic",
    "PI": "truvar.acquisition.analytic",
    "UCB": "truvar.acquisition.analytic",
    "UCBPE": "truvar.acquisition.analytic",
    "Thompson": "truvar.acquisition.sampling",
    "ES": "truvar.acquisition.entropy",
    "PES": "truvar.acquisition.entropy",
    "MRS": "truvar.acquisition.entropy",
    "MES": "truvar.acquisition.entropy",
    "BaMSOO": "truvar.acquisition.bamsoo",
    "GCHK": "truvar.acquisition.analytic",
    "Straddle": "truvar.acquisition.analytic",
    "SUR": "truvar.acquisition.entropy",
    "BES": "truvar.acquisition.information",
    "ITL": "truvar.acquisition.information",
    "Variance": "truvar.acquisition.analytic",
    "Random": "truvar.acquisition.sampling",
}

# Other parts of a study: public and storable.
_PART_MODULES = {
    "TopK": "truvar.acquisition.truvar",
    "ConstantBeta": "truvar.acquisition.confidence",
    "LogBeta": "truvar.acquisition.confidence",
    "RKHSBeta": "truvar.acquisition.confidence",
    "TheoremBeta": "truvar.acquisition.confidence",
    "LinearConstraint": "truvar.domain.constraints",
    "PolygonConstraint": "truvar.domain.constraints",
    "Cost": "truvar.domain.costs",
    "NoiseLevels": "truvar.domain.costs",
    "Tasks": "truvar.domain.costs",
    "Euclidean": "truvar.domain.travel",
    "GreatCircle": "truvar.domain.travel",
    "Network": "truvar.domain.travel",
    "TravelMatrix": "truvar.domain.travel",
    "Vehicle": "truvar.domain.vehicles",
    "AllOf": "truvar.domain.goals",
    "LearnedCost": "truvar.domain.learned_cost",
    "LevelSet": "truvar.domain.goals",
    "Map": "truvar.domain.goals",
    "Maximize": "truvar.domain.goals",
    "Minimize": "truvar.domain.goals",
    "Boolean": "truvar.domain.parameters",
    "Categorical": "truvar.domain.parameters",
    "Date": "truvar.domain.dates",
    "Integer": "truvar.domain.parameters",
    "Log": "truvar.domain.parameters",
    "Ordinal": "truvar.domain.parameters",
    "Range": "truvar.domain.parameters",
    "Binary": "truvar.models.likelihoods.binary",
    "Count": "truvar.models.likelihoods.count",
    "Learned": "truvar.models.priors",
    "Quantity": "truvar.models.priors",
}

# Public, but not stored by name: a domain is stored by its contents.
_UNSTORED_MODULES = {
    "backtest": "truvar.backtest",
    "Domain": "truvar.domain.domain",
    "read_area": "truvar.domain.areas",
    "Finished": "truvar.exceptions",
    "TruvarError": "truvar.exceptions",
    "Certificate": "truvar.inference.certificate",
    "Problem": "truvar.problem",
    "load_problem": "truvar.problem",
    "save_points": "truvar.report.point_files",
    "save_waypoints": "truvar.report.waypoints",
    "connect": "truvar.service",
    "Reading": "truvar.study.readings",
    "Reduced": "truvar.study.readings",
    "Result": "truvar.study.result",
    "load": "truvar.study.stored",
    "studies": "truvar.study.stored",
    "Study": "truvar.study.study",
    "bin_track": "truvar.study.tracks",
    "Suggestion": "truvar.study.suggestion",
}

# Stored by name, but not public: models that a study learned, and goals made from others.
_INTERNAL_MODULES = {
    "Bands": "truvar.domain.goals",
    "ConstrainedOptimum": "truvar.domain.goals",
    "Model": "truvar.models.fit",
    "EnsembleModel": "truvar.models.ensemble",
    "NoiseModel": "truvar.models._noise",
    "TaskModel": "truvar.models._coregionalization",
    "OutputTransform": "truvar.models.transforms",
    "BinaryLink": "truvar.models.likelihoods.binary",
}

PUBLIC_MODULES: dict[str, str] = {**POLICY_MODULES, **_PART_MODULES, **_UNSTORED_MODULES}
"""Public name -> module that defines it."""

STORED_MODULES: dict[str, str] = {**POLICY_MODULES, **_PART_MODULES, **_INTERNAL_MODULES}
"""Name of a class that can be stored -> module that defines it."""

RENAMED = {"Top": "TopK"}
"""Former name -> present name. Stored studies may contain the former one."""


def lazy_getattr(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that imports a name from its module when it is first used.

    Args:
        package: Name of the package that offers the names.
        modules: Name -> module that defines it.
    """

    def getattr_of_package(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return getattr_of_package


def offer(
    package: str,
    names: Mapping[str, Sequence[str]],
    *,
    defined: Sequence[str] = (),
    elsewhere: Mapping[str, str] | None = None,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package that imports names on first use.

    Args:
        package: Name of the package.
        names: Module of the package -> names that it offers to other packages.
        defined: Names that the package itself defines or imports.
        elsewhere: Further names -> full names of the modules that define them.
    """
    modules = {name: f"{package}.{module}" for module in names for name in names[module]}
    modules |= elsewhere or {}
    offered = sorted({*modules, *defined})
    return offered, lazy_getattr(package, modules), lambda: offered
