"""The study of a command: by its first word, --store, $TRUVAR_STORE, or the only store here."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from truvar.cli._common import add_path
from truvar.exceptions import InvalidArgumentError, StoreNotFoundError
from truvar.messages import mask_passwords

if TYPE_CHECKING:
    from truvar.study.study import Study

STORE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def study_arguments(
    sub: argparse.ArgumentParser,
    words: str | None = None,
    help: str = "store of the study, such as lake.db (see below)",
    metavar: str = "STUDY",
) -> None:
    """Add the arguments that select a study.

    Args:
        sub: Parser of the command.
        words: Placeholder of the command's own words; None: it has none, and takes the store alone.
        help: Help of the words.
        metavar: Placeholder of the store where the command has no words of its own.
    """
    if words is None:
        add_path(sub, "words", nargs="?", metavar=metavar, help=help)
    else:
        add_path(
            sub, "words", nargs="*", metavar=words, help=f"{help}; the first word may be the store"
        )
    group = sub.add_argument_group(
        "which study",
        "A store is a file such as lake.db or a URL such as postgresql://host/lake.\n"
        "Default: $TRUVAR_STORE, or the only store in this folder.",
    )
    add_path(group, "--store", metavar="STORE", help="the store, instead of the first word")
    group.add_argument("--name", metavar="NAME", help="name of the study, if the store has several")
    group.add_argument(
        "--author",
        "--who",
        metavar="NAME",
        help="author of the events, which may be the vehicle at work (default: user@machine)",
    )


def is_store(word: str) -> bool:
    """Return whether a word is a URL or has the suffix of a store file."""
    return "://" in word or word.lower().endswith(STORE_SUFFIXES)


def own_words(arguments: argparse.Namespace) -> list[str]:
    """Return the words of a command without the store."""
    words = _all_words(arguments)
    return words[1:] if words and is_store(words[0]) else words


def selected_store(arguments: argparse.Namespace) -> str:
    """Return the URL of the store that the arguments select.

    Raises:
        InvalidArgumentError: If a word is not a store, or the store is given twice.
        StoreNotFoundError: If no store is given and the folder has not exactly one.
    """
    only_word = arguments.words if isinstance(arguments.words, str) else None
    if only_word is not None and not is_store(only_word):
        if only_word.endswith(".toml"):
            raise InvalidArgumentError(
                f"{only_word} is a problem file; create a study with truvar new, or give a store "
                "such as lake.db"
            )
        raise InvalidArgumentError(
            f"expected a store such as lake.db or a URL, got {only_word}; give one"
        )
    first = _first_store(arguments)
    if first is not None and arguments.store:
        both = mask_passwords(f"{first} and --store {arguments.store}")
        raise InvalidArgumentError(f"the store is given twice, {both}; leave out one")
    given = first or arguments.store or os.environ.get("TRUVAR_STORE") or _only_store_in_folder()
    return store_url(given)


def study_options(arguments: argparse.Namespace) -> str:
    """Return the words that select the study in another command, such as " lake.db --name lake"."""
    store = arguments.store or _first_store(arguments)
    parts = []
    if store:
        parts.append(shlex.quote(mask_passwords(store)))
    if arguments.name:
        parts.append(f"--name {shlex.quote(arguments.name)}")
    return "".join(f" {part}" for part in parts)


def store_url(text: str) -> str:
    """Return the URL of a store given by its URL or by the path of its file."""
    return text if "://" in text else f"sqlite:///{text}"


def store_label(url: str) -> str:
    """Return a store as users write it, without its password."""
    if url.startswith("sqlite:///"):
        return url.removeprefix("sqlite:///")
    scheme, _, rest = mask_passwords(url).partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def open_study(arguments: argparse.Namespace) -> Study:
    """Open the study that the arguments select; the database is opened once."""
    from truvar.study.stored import load

    return load(selected_store(arguments), arguments.name, arguments.author)


def _all_words(arguments: argparse.Namespace) -> list[str]:
    if isinstance(arguments.words, str):
        return [arguments.words]
    return list(arguments.words or [])


def _first_store(arguments: argparse.Namespace) -> str | None:
    """Return the first word if it is a store."""
    words = _all_words(arguments)
    return words[0] if words and is_store(words[0]) else None


def _only_store_in_folder() -> str:
    found = sorted(path.name for path in Path().iterdir() if path.suffix in STORE_SUFFIXES)
    if len(found) == 1:
        return found[0]
    if found:
        raise StoreNotFoundError(
            f"this folder has {len(found)} stores, {', '.join(found)}; select one: --store "
            f"{found[0]}"
        )
    raise StoreNotFoundError(
        "there is no store in this folder; create a study with truvar new PROBLEM.toml, or give "
        "--store"
    )
