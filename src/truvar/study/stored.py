"""Open and list the studies of a database."""

from __future__ import annotations

import pandas as pd

from truvar.storage import database
from truvar.study.study import Study


def load(url: str, name: str, who: str | None = None) -> Study:
    """Return the stored study of that name, as its last event left it: `tv.load("sqlite:///lake.db", "lake")`."""
    return Study.from_event_log(database(url).find(name), name, who)


def studies(url: str) -> pd.DataFrame:
    """Return the studies in a store: name, goal, steps, spent, pending, created, changed."""
    return database(url).overview()
