"""Goals, and the sets of points above, below and undecided that they update from the bounds (eqs. 5-7).

| paper | here |
|---|---|
| M_t | `Regions.potential`: undecided points, that is potential maximisers, or points not yet classified |
| H_t | `Regions.above`: points above the threshold, if the bounds hold |
| L_t | `Regions.below`: points below the threshold, if the bounds hold |
| h | `LevelSet.threshold`, or between `fraction_of_max` times the bounds of the maximum |

The three masks always partition D. For an optimum the points that are ruled out are `below` (the
maximum), or `above` (the minimum) when minimising. `monotone=False` replaces M_{t-1} by D, so that
points may become undecided again; `monotone=None` leaves the choice to the policy
(`Confidence.resolve_goal`), and means False where there is none.
"""

from __future__ import annotations

from truvar.domain.goals._base import Goal, Regions, Score
from truvar.domain.goals._level_set import Bands, LevelSet
from truvar.domain.goals._map import Map
from truvar.domain.goals._optimum import ConstrainedOptimum, Maximize, Minimize, Optimum
from truvar.domain.goals._several import AllOf, parse_constraints, probability_of

__all__ = [
    "AllOf",
    "Bands",
    "ConstrainedOptimum",
    "Goal",
    "LevelSet",
    "Map",
    "Maximize",
    "Minimize",
    "Optimum",
    "Regions",
    "Score",
    "parse_constraints",
    "probability_of",
]
