"""Storage of studies as event logs, in memory or in a database (SQLite or PostgreSQL).

A database needs SQLAlchemy (`pip install "truvar[store]"`), which is imported only when one is
opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar._names import offer
from truvar.exceptions import import_optional

if TYPE_CHECKING:
    from truvar.storage.rdb import RDBStorage

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "administration": ("delete_study", "rename_study"),
        "backup": ("copy_store",),
        "base": (
            "Event",
            "EventLog",
            "MAX_AUTHOR_LENGTH",
            "MAX_NAME_LENGTH",
            "MAX_STORED_NAME_LENGTH",
            "StudySummary",
            "Transaction",
            "check_study_name",
            "now",
            "whoami",
        ),
        "deletions": ("read_deletions",),
        "forks": ("Lock", "let_fork", "locked_objects"),
        "memory": ("InMemoryEventLog",),
        "rdb": ("RDBStorage",),
        "serialization": (
            "check_storable",
            "deserialize",
            "event_from_dict",
            "event_to_dict",
            "serialize",
            "study_from_json",
            "study_to_json",
        ),
        "tokens": ("Access", "StoredToken", "add_token", "list_tokens", "revoke_token"),
    },
    defined=("open_storage",),
)


def open_storage(url: str) -> RDBStorage:
    """Return the store at a URL such as `sqlite:///lake.db`. Nothing is read or created yet.

    Raises:
        MissingDependencyError: If SQLAlchemy or the driver of the database is not installed.
        InvalidArgumentError: If it is not the URL of an SQLite file or a PostgreSQL database.
    """
    import_optional("sqlalchemy", "a store", "store")
    from truvar.storage.rdb import RDBStorage

    return RDBStorage(url)
