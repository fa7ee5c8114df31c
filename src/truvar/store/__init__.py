"""Durable studies: their journals in a database that one URL gives. SQLite for one machine, PostgreSQL for teams.

Needs SQLAlchemy (`pip install "truvar[store]"`), which is imported only where a store is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from truvar.errors import optional
from truvar.study import Study

if TYPE_CHECKING:
    from truvar.store.database import Database, StoredJournal


def create(url: str, name: str | None) -> StoredJournal:
    """The journal of a new study, which is there once its first turn has ended."""
    return _database(url).create(name)


def load(url: str, name: str, who: str | None = None) -> Study:
    """The study of that name in a store, as its last event left it: `tv.load("sqlite:///lake.db", "lake")`."""
    return Study.resumed(_database(url).find(name), name, who)


def studies(url: str) -> pd.DataFrame:
    """The studies in a store: name, goal, steps, spent, pending, created, changed."""
    return _database(url).overview()


def _database(url: str) -> Database:
    optional("sqlalchemy", "a store", "store")
    from truvar.store.database import Database

    return Database(url)


__all__ = ["create", "load", "studies"]
