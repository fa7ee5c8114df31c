"""Open and list the studies of a database."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from truvar._deprecation import deprecated_argument
from truvar.exceptions import StudyNotFoundError
from truvar.messages import for_interface
from truvar.storage import open_storage
from truvar.study.study import Study

if TYPE_CHECKING:
    import pandas as pd


@deprecated_argument("who", "author", removed_in="0.5.0")
def load(url: str, name: str | None = None, author: str | None = None) -> Study:
    """Open a stored study, in the state that its last event left.

    The database is opened once, whether a name is given or not.

    Args:
        url: URL of the store, such as "sqlite:///lake.db" or
            "postgresql://user:password@host/database".
        name: Name of the study; None opens the only study of the store.
        author: Author of the events that this object writes; default: the user and the machine.

    Returns:
        The study. Others may work on it at the same time (see `Study.refresh`).

    Raises:
        StoreNotFoundError: If there is no store at that URL.
        StudyNotFoundError: If the store has no study of that name, or no name is given and it has
            not exactly one.
        StorageError: If the database cannot be used.

    Example:
        >>> study = tv.load("sqlite:///lake.db", "lake")
        >>> study.tell(study.ask(), 7.3)
    """
    store = open_storage(url)
    if name is None:
        names = store.study_names()
        if not names:
            raise StudyNotFoundError(f"the store {store.label} has no study yet; create one first")
        if len(names) > 1:
            found = ", ".join(map(repr, names))
            remedy = for_interface(f"name={names[0]!r}", cli=f"--name {shlex.quote(names[0])}")
            raise StudyNotFoundError(
                f"without a name the store {store.label} must have exactly one study, got {found}; "
                f"give {remedy}"
            )
        (name,) = names
    return Study.from_event_log(store.get_event_log(name), name, author)


def studies(url: str) -> pd.DataFrame:
    """List the studies of a store.

    Args:
        url: URL of the store.

    Returns:
        One row per study: name, goal, steps, spent, pending, created, changed.

    Raises:
        StoreNotFoundError: If there is no store at that URL.
        StorageError: If the database cannot be used.
    """
    return open_storage(url).list_studies()
