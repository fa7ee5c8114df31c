"""A level set that is not in the paper: real terrain, at unit cost and at the cost of walking."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from truvar.paper.experiment import FigureResult, ReproductionConfig
from truvar.paper.fields import terrain
from truvar.paper.fig2a import unit_cost
from truvar.paper.fig2b import travel_cost

_TITLE = "Level set of a terrain"
_RUNS = 20
_STEPS = 240  # measurements per run at unit cost
_BUDGET = 16000.0  # cost per run at the cost of walking


def make(config: ReproductionConfig) -> FigureResult:
    """Return the reproduced figure."""
    field = terrain()
    runs = replace(config, replicates=config.count(_RUNS, 3))
    unit = unit_cost(field, runs, _STEPS)
    travel = travel_cost(field, runs, _BUDGET)
    table = pd.concat({"unit": unit.table, "travel": travel.table}, names=["cost"])
    tables = {"unit-curves": unit.tables["curves"], "curves": travel.tables["curves"]}
    pictures = {
        "": travel.pictures[""],
        "routes": travel.pictures["routes"],
        "unit": unit.pictures[""],
    }
    facts = {"unit_cost": dict(unit.facts), "travel_cost": dict(travel.facts)}
    return FigureResult(_TITLE, table, facts, tables, pictures)
