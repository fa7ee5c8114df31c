"""Storage of studies as event logs, in memory or in a database given by a URL (SQLite or PostgreSQL).

A database needs SQLAlchemy (`pip install "truvar[store]"`), which is imported only when one is
opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar.exceptions import import_optional

if TYPE_CHECKING:
    from truvar.storage.rdb import RDBStorage


def open_storage(url: str) -> RDBStorage:
    """Return the store at a URL such as `sqlite:///lake.db`. Nothing is read or created yet.

    Raises:
        MissingDependencyError: If SQLAlchemy or the driver of the database is not installed.
        InvalidArgumentError: If it is not the URL of an SQLite file or a PostgreSQL database.
    """
    import_optional("sqlalchemy", "a store", "store")
    from truvar.storage.rdb import RDBStorage

    return RDBStorage(url)
