"""How a command finds its study: the first word, `--store`, $TRUVAR_STORE, or the only store in the folder."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from truvar.exceptions import TruvarError

if TYPE_CHECKING:
    from truvar.study.study import Study

ENDINGS = (".db", ".sqlite", ".sqlite3")


def study_arguments(
    sub: argparse.ArgumentParser,
    words: str | None = None,
    help: str = "its store, such as lake.db (see below)",
    metavar: str = "STUDY",
) -> None:
    """The arguments of every command on a study; `words`: it has some of its own."""
    if words is None:
        sub.add_argument("words", nargs="?", metavar=metavar, help=help)
    else:
        sub.add_argument("words", nargs="*", metavar=words, help=f"{help}; the first may be the study's store")
    place = sub.add_argument_group(
        "which study",
        "A store is a file such as lake.db or a URL such as postgresql://host/lake.\n"
        "Where none is given it is $TRUVAR_STORE, or the only store in this folder.",
    )
    place.add_argument("--store", metavar="STORE", help="the store, instead of the first word")
    place.add_argument("--name", metavar="NAME", help="the study's name, where a store has several")
    place.add_argument("--who", metavar="WHO", help="who works on it, for the journal (default: you on this machine)")


def looks_like_store(word: str) -> bool:
    """A URL, or a file that is called like one."""
    return "://" in word or word.lower().endswith(ENDINGS)


def words_of(arguments: argparse.Namespace) -> list[str]:
    """The words behind the command, without the store."""
    words = [arguments.words] if isinstance(arguments.words, str) else list(arguments.words or [])
    return words[1:] if words and looks_like_store(words[0]) else words


def store_of(arguments: argparse.Namespace) -> str:
    """The URL of the store that is meant."""
    if isinstance(arguments.words, str) and not looks_like_store(arguments.words):
        what = "is a problem file; begin with truvar new, or give the store" if ".toml" in arguments.words else "came"
        raise TruvarError(f"a store such as lake.db or a URL was expected, but {arguments.words} {what}")
    words = [arguments.words] if isinstance(arguments.words, str) else list(arguments.words or [])
    first = words[0] if words and looks_like_store(words[0]) else None
    if first and arguments.store:
        raise TruvarError(f"the store was given twice, {first} and --store {arguments.store}; leave out one")
    given = first or arguments.store or os.environ.get("TRUVAR_STORE")
    return store_url(given) if given else store_url(_only_store_here())


def typed(arguments: argparse.Namespace) -> str:
    """What says which study, if it had to be typed: " lake.db --name lake"."""
    words = [arguments.words] if isinstance(arguments.words, str) else list(arguments.words or [])
    store = arguments.store or (words[0] if words and looks_like_store(words[0]) else None)
    parts = [shlex.quote(store)] if store else []
    parts += [f"--name {shlex.quote(arguments.name)}"] if arguments.name else []
    return "".join(f" {part}" for part in parts)


def store_url(text: str) -> str:
    """The URL of a store that was given by it or by the path of its file."""
    return text if "://" in text else f"sqlite:///{text}"


def open_study(arguments: argparse.Namespace) -> Study:
    """The study that is meant."""
    from truvar.study.stored import load

    return load(store_of(arguments), arguments.name, arguments.who)


def shown(url: str) -> str:
    """A store as people write it, without its password."""
    if url.startswith("sqlite:///"):
        return url.removeprefix("sqlite:///")
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _only_store_here() -> str:
    found = sorted(path.name for path in Path().iterdir() if path.suffix in ENDINGS)
    if len(found) == 1:
        return found[0]
    if found:
        raise TruvarError(f"this folder has {len(found)} stores, {', '.join(found)}; say which: --store {found[0]}")
    raise TruvarError(
        "there is no store in this folder, and none was given; begin with truvar new PROBLEM.toml, or give --store"
    )
