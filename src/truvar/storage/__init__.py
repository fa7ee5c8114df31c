"""Event logs of studies: in memory, or in a database that one URL gives (SQLite for one machine, PostgreSQL for teams).

A database needs SQLAlchemy (`pip install "truvar[store]"`), which is imported only where one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar.exceptions import import_optional

if TYPE_CHECKING:
    from truvar.storage.rdb import RDBStorage


def database(url: str) -> RDBStorage:
    """Return the database that the URL names."""
    import_optional("sqlalchemy", "a store", "store")
    from truvar.storage.rdb import RDBStorage

    return RDBStorage(url)
