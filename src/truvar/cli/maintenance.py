"""`truvar check` and `truvar backup`: look after a store."""

from __future__ import annotations

import argparse
from contextlib import suppress

from truvar.cli._common import Command, add_json, add_path
from truvar.cli._store import store_url
from truvar.messages import mask_passwords


def _check_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(sub, "store", metavar="STORE", help="the store: lake.db or a URL")
    add_path(
        sub,
        "--repair",
        metavar="COPY",
        help="write the undamaged beginning of every study to a new store",
    )
    add_json(sub, "the checks")


def _check(arguments: argparse.Namespace) -> int:
    """Check a store, and return 1 if anything is damaged."""
    from truvar.exceptions import StorageError
    from truvar.report.tables import to_json
    from truvar.storage import open_storage
    from truvar.storage.deletions import read_deletions
    from truvar.study.integrity import check_store

    repaired = None if arguments.repair is None else store_url(arguments.repair)
    checks = check_store(store_url(arguments.store), repaired)
    damaged = [check for check in checks if check.problem is not None]
    deletions = []
    with suppress(StorageError):  # a file that SQLite cannot read is among the checks
        deletions = read_deletions(open_storage(store_url(arguments.store)))
    if arguments.json:
        deleted = [deletion.to_dict() for deletion in deletions]
        print(
            to_json(
                {
                    "ok": not damaged,
                    "studies": [check.to_dict() for check in checks],
                    "deleted": deleted,
                }
            )
        )
    else:
        for check in checks:
            counts = f"{check.name}: {check.events} events, {check.steps} measurements"
            subject = counts if check.name else mask_passwords(arguments.store)
            print(f"{subject}: {check.problem or 'undamaged'}")
        for deletion in deletions:
            when = f"{deletion.time:%Y-%m-%d %H:%M} UTC"
            print(
                f"{deletion.name}: deleted by {deletion.who}, {when}, with {deletion.events} events"
            )
        if arguments.repair is not None:
            print(f"{mask_passwords(arguments.repair)} has the undamaged beginning of every study")
    return 1 if damaged else 0


def _backup_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(sub, "store", metavar="STORE", help="the store: lake.db or a URL; it may be in use")
    add_path(
        sub, "copy", metavar="FILE", help="new file for the copy, or the URL of an empty database"
    )


def _backup(arguments: argparse.Namespace) -> int:
    """Copy a store and check the copy."""
    from truvar.exceptions import StorageError
    from truvar.storage import open_storage
    from truvar.storage.backup import copy_store
    from truvar.study.integrity import check_store

    copy = store_url(arguments.copy)
    shown = mask_passwords(arguments.copy)
    count = copy_store(open_storage(store_url(arguments.store)), open_storage(copy))
    for check in check_store(copy):
        if check.problem is not None:
            raise StorageError(
                f"the copy {shown} is complete, but the study {check.name!r} is damaged "
                f"({check.problem}); see truvar "
                f"check {mask_passwords(arguments.store)}"
            )
    print(f"{shown}: {count} {'study' if count == 1 else 'studies'}, undamaged")
    return 0


CHECK = Command(
    "check",
    "check every event of a store, and save what is undamaged",
    "truvar check lake.db\ntruvar check lake.db --repair saved.db",
    _check_arguments,
    _check,
)
BACKUP = Command(
    "backup",
    "copy a store that may be in use to a new file, and check the copy",
    "truvar backup lake.db lake-2026-05-01.db\ntruvar backup postgresql://host/lake lake.db",
    _backup_arguments,
    _backup,
)
