"""Migration from version 1 to 2: goal, counters and times become columns of the studies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
    text,
    update,
)

# The definitions in this module are those of version 2 and must not be changed, nor imported from
# elsewhere.
METADATA = MetaData()
STUDIES = Table(
    "truvar_studies",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), unique=True, nullable=False),
    Column("goal", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("spent", Float, nullable=False),
    Column("pending", Integer, nullable=False),
    Column("created", DateTime(timezone=True)),
    Column("changed", DateTime(timezone=True)),
)
EVENTS = Table(
    "truvar_events",
    METADATA,
    Column("study_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("time", DateTime(timezone=True), nullable=False),
    Column("who", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("details", Text, nullable=False),
)
DEFAULTS = {"goal": "", "steps": "0", "spent": "0", "pending": "0"}
# Columns that version 1 did not have.
ADDED = ("goal", "steps", "spent", "pending", "created", "changed")
DAMAGED_GOAL = "damaged"  # text for the goal of a study whose events cannot be read


def upgrade(connection: Connection) -> None:
    """Add the columns and fill them from the events of each study.

    A study whose events are damaged does not stop the migration. Its goal becomes "damaged", and
    opening it raises.
    """
    for name in ADDED:
        connection.execute(
            text(f"ALTER TABLE truvar_studies ADD COLUMN {_definition(connection, name)}")
        )
    for study_id in connection.scalars(select(STUDIES.c.id)).all():
        of_study = EVENTS.c.study_id == study_id
        query = select(EVENTS.c.kind, EVENTS.c.details).where(of_study).order_by(EVENTS.c.number)
        rows = [(row.kind, row.details) for row in connection.execute(query)]
        try:
            values = _summary(rows)
        except (AttributeError, LookupError, TypeError, ValueError):
            values = {"goal": DAMAGED_GOAL}
        times = select(EVENTS.c.time).where(of_study).limit(1)
        values["created"] = times.order_by(EVENTS.c.number).scalar_subquery()
        values["changed"] = times.order_by(EVENTS.c.number.desc()).scalar_subquery()
        connection.execute(update(STUDIES).where(STUDIES.c.id == study_id).values(values))


def _definition(connection: Connection, name: str) -> str:
    """Return the definition of a column of STUDIES in the SQL of the database."""
    column = STUDIES.c[name]
    definition = f"{name} {column.type.compile(connection.dialect)}"
    return (
        definition if name not in DEFAULTS else f"{definition} DEFAULT '{DEFAULTS[name]}' NOT NULL"
    )


def _summary(rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the goal and the counters of a study from its events (kind, details as JSON)."""
    costs: dict[int, float] = {}
    pending: set[int] = set()
    events = [(kind, json.loads(details)) for kind, details in rows]
    for kind, details in events:
        id_ = details.get("id", 0)
        if kind == "asked":
            pending.add(id_)
        elif kind in ("told", "corrected"):
            costs[id_] = details["cost"]
            pending.discard(id_)
        elif kind in ("withdrawn", "expired"):
            pending.discard(id_)
            costs.pop(id_, None)
    goal = _goal_text(events[0][1]["goal"])
    return {
        "goal": goal,
        "steps": len(costs),
        "spent": sum(costs.values()),
        "pending": len(pending),
    }


def _goal_text(goal: dict[str, Any]) -> str:
    """Return a goal in words, from its JSON."""
    if goal["kind"] == "Maximize":
        return "maximum"
    if goal["kind"] == "Minimize":
        return "minimum"
    if goal["kind"] != "LevelSet":
        raise ValueError(f"unknown goal {goal['kind']!r}")
    if goal["threshold"] is not None:
        return f"above {goal['threshold']:g}"
    return f"above {100 * goal['fraction_of_max']:g} % of the maximum"
