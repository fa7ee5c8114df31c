"""The open studies of a server: one object for each name, worked on by one thread at a time.

Whoever changes a study through its own store is noticed too: before every answer a study catches up with its journal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import pandas as pd

from truvar.errors import StoreError, TruvarError
from truvar.service.limits import Limits, is_text
from truvar.store.database import Database
from truvar.study import Study

T = TypeVar("T")
LOG = logging.getLogger("truvar.service")


class Unknown(TruvarError):
    """There is no study of that name."""


class Taken(TruvarError):
    """There is a study of that name already."""


class Broken(TruvarError):
    """The study's record cannot be read."""


@dataclass
class Entry:
    """An open study, or one that is being opened."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # whose turn it is; waiting takes no thread
    working: threading.Lock = field(default_factory=threading.Lock)  # held while a thread works on it
    study: Study | None = None
    problem: str | None = None  # why it cannot be opened
    version: int = 0  # number of the last event that is known
    looked: float = 0.0  # when the journal was last looked at
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, bytes] = field(default_factory=dict)  # to what was asked at this version


class Desk:
    """The studies of one store."""

    def __init__(self, url: str, limits: Limits) -> None:
        self.url, self.limits = url, limits
        self._database = Database(url)
        with self._database.writing():  # a store that is not there yet is begun
            pass
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._writer = asyncio.Lock()
        self._threads = ThreadPoolExecutor((os.cpu_count() or 1) + 2, thread_name_prefix="study")

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Blocking work, beside the event loop, for whoever asked."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)

    async def use(self, name: str, work: Callable[[Study], T]) -> T:
        """Work on a study, up to date, one at a time."""
        return await self._use(self._entry(name), name, work)

    async def change(self, name: str, work: Callable[[Study], T]) -> T:
        """The same for what changes it, and so catches up by itself. In SQLite, where there is one writer at a time,
        the others wait here: in turn, and without looking whether the file is free."""
        entry = self._entry(name)
        async with entry.turn, self._writer if self._database.sqlite else nullcontext():
            return await self._during(entry, lambda: self._work(entry, name, work, catch_up=False))

    async def answer(self, name: str, what: str, make: Callable[[Study], bytes]) -> bytes:
        """What a study answers to a question, made once for each version of it."""

        entry = self._entry(name)

        def work(study: Study) -> bytes:
            if what not in entry.answers:
                entry.answers[what] = make(study)
            return entry.answers[what]

        return await self._use(entry, name, work)

    async def news(self, name: str, since: int, within: float) -> int:
        """The version of a study once it is another than `since`, or after `within` seconds whichever it is."""
        entry = self._entry(name)
        if entry.version == since:
            try:
                await asyncio.wait_for(entry.changed.wait(), within)
            except TimeoutError:
                if time.monotonic() - entry.looked >= within:  # others may have looked meanwhile
                    await self._use(entry, name, lambda study: None)
        return entry.version

    async def create(self, make: Callable[[str], Study], name: str) -> None:
        """A new study in the store, made by what gets its URL."""

        def work() -> Study:
            if self._database.journal(name) is not None:
                raise Taken(f"there is a study {name!r} already; give the new one another name")
            return make(self.url)

        entry = self._entry(name)
        async with entry.turn:
            entry.study = await self.in_thread(work)
            entry.version = entry.study.version

    async def overview(self) -> list[dict[str, Any]]:
        """All studies of the store, the last changed first; those that are open know exactly whether they are over."""
        frame = await self.in_thread(self._database.overview)
        rows = [{str(key): _plain(value) for key, value in row.items()} for row in frame.to_dict("records")]
        for row in rows:
            row["state"] = "running" if row["steps"] or row["pending"] else "new"
            entry = self._entries.get(row["name"])
            if entry is not None and entry.problem is not None:
                row |= {"state": "broken", "problem": entry.problem}
            elif entry is not None and entry.study is not None and entry.study.finished is not None:
                row["state"] = "finished"
        return sorted(rows, key=lambda row: row["changed"] or "", reverse=True)

    def close(self) -> None:
        """Ends the threads; what they do is finished first."""
        self._threads.shutdown(wait=True)

    def _entry(self, name: str) -> Entry:
        entry = self._entries.setdefault(name, Entry())
        self._entries.move_to_end(name)
        idle = [n for n, e in self._entries.items() if n != name and not e.turn.locked()]
        for other in idle[: max(0, len(self._entries) - self.limits.studies)]:
            del self._entries[other]
        return entry

    async def _use(self, entry: Entry, name: str, work: Callable[[Study], T]) -> T:
        async with entry.turn:
            return await self._during(entry, lambda: self._work(entry, name, work, catch_up=True))

    async def _during(self, entry: Entry, work: Callable[[], T]) -> T:
        """Work in a thread; those who wait for news hear of what it changed."""
        before = entry.version
        try:
            return await self.in_thread(work)
        finally:
            if entry.version != before:
                entry.changed.set()
                entry.changed = asyncio.Event()

    def _work(self, entry: Entry, name: str, work: Callable[[Study], T], catch_up: bool) -> T:
        with entry.working:
            if entry.study is None:
                entry.study, entry.problem = self._open(entry, name), None
            study = entry.study
            try:
                if catch_up:
                    self._catch_up(entry, name, study)
                    entry.looked = time.monotonic()
                    self._note(entry, study)
                return work(study)
            finally:
                self._note(entry, study)

    def _note(self, entry: Entry, study: Study) -> None:
        if study.version != entry.version:
            entry.version = study.version
            entry.answers.clear()

    def _open(self, entry: Entry, name: str) -> Study:
        journal = None if not is_text(name) else self._database.journal(name)
        if journal is None:
            raise Unknown(f"there is no study {name!r} here; GET /api/studies lists those there are")
        try:
            return Study.resumed(journal, name, who="service")
        except StoreError:
            raise
        except Exception as error:  # a record that was tampered with can be wrong in any way
            raise _broken(entry, name, error) from None

    def _catch_up(self, entry: Entry, name: str, study: Study) -> None:
        try:
            study.refresh()
        except StoreError:
            raise
        except Exception as error:
            entry.study = None  # to be opened anew
            raise _broken(entry, name, error) from None


def _broken(entry: Entry, name: str, error: Exception) -> Broken:
    LOG.warning("the study %r cannot be opened", name, exc_info=error)
    said = str(error) if isinstance(error, TruvarError) else f"{type(error).__name__}: {error}"
    entry.problem = f"its record cannot be read: {said}"
    return Broken(f"the study {name!r} cannot be opened; {entry.problem}")


def _plain(value: Any) -> Any:
    """For JSON: a time as text, a missing one as null."""
    return None if pd.isna(value) else value.isoformat() if isinstance(value, datetime) else value
