"""The open studies of a server: two objects for each name, one to change and one to read, each in one thread at a time.

Whoever changes a study through its own store is noticed too: before every answer a study catches up with its journal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import pandas as pd

from truvar.exceptions import StorageError, TruvarError
from truvar.service.limits import ServiceLimits, is_text
from truvar.storage.rdb import RDBStorage
from truvar.study.study import Study

T = TypeVar("T")
PATIENCE = 1.0  # seconds that a list of studies waits for the states of all
LOG = logging.getLogger("truvar.service")


class Unknown(TruvarError):
    """There is no study of that name."""


class Taken(TruvarError):
    """There is a study of that name already."""


class Broken(TruvarError):
    """The study's record cannot be read."""


@dataclass
class Copy:
    """A study as one object, open or being opened, that one thread at a time works on."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # whose turn it is; waiting takes no thread
    working: threading.Lock = field(default_factory=threading.Lock)  # held while a thread works on it
    study: Study | None = None


@dataclass
class Entry:
    """A study of the desk, twice: whoever reads waits for no change, which may be a long choice."""

    written: Copy = field(default_factory=Copy)
    read: Copy = field(default_factory=Copy)
    problem: str | None = None  # why it cannot be opened
    version: int = 0  # number of the last event that is known
    looked: float = 0.0  # when the journal was last looked at
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # to what was asked, with their versions

    @property
    def idle(self) -> bool:
        return not (self.written.turn.locked() or self.read.turn.locked())


class StudySessions:
    """The studies of one store."""

    def __init__(self, url: str, limits: ServiceLimits) -> None:
        self.url, self.limits = url, limits
        self._storage = RDBStorage(url)
        with self._storage.write_transaction():  # a store that is not there yet is begun
            pass
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._found: dict[str, tuple[str, dict[str, Any]]] = {}  # when it was last changed, and its state
        self._looking: asyncio.Task[None] | None = None
        self._writer = asyncio.Lock()
        count = (os.cpu_count() or 1) + 2
        self._writers = ThreadPoolExecutor(count, thread_name_prefix="change")
        self._readers = ThreadPoolExecutor(count, thread_name_prefix="read")

    async def use(self, name: str, work: Callable[[Study], T]) -> T:
        """What is read off a study as its last change left it."""
        return await self._use(self._entry(name), name, work)

    async def change(self, name: str, work: Callable[[Study], T]) -> T:
        """What changes a study, which catches up by itself. In SQLite, where there is one writer at a time, the others
        wait here: in turn, and without looking whether the file is free."""
        entry = self._entry(name)
        async with entry.written.turn, self._writer if self._storage.is_sqlite else nullcontext():
            return await self._during(entry, self._writers, lambda: self._work(entry, entry.written, name, work))

    async def answer(self, name: str, what: str, make: Callable[[Study], bytes]) -> bytes:
        """What a study answers to a question, made once for each version of it."""

        entry = self._entry(name)

        def work(study: Study) -> bytes:
            if what not in entry.answers or entry.answers[what][0] != study.version:
                entry.answers[what] = study.version, make(study)
            return entry.answers[what][1]

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
            if self._storage.find_event_log(name) is not None:
                raise Taken(f"there is a study {name!r} already; give the new one another name")
            return make(self.url)

        entry = self._entry(name)
        async with entry.written.turn:
            entry.written.study = await self._in_thread(self._writers, work)
            entry.version = entry.written.study.version

    async def overview(self) -> list[dict[str, Any]]:
        """All studies of the store, the last changed first. Which of them are finished or broken takes opening them:
        that is done once for every change, beside the answer where it takes long."""
        frame = await self._in_thread(self._readers, self._storage.list_studies)
        rows = [{str(key): _plain(value) for key, value in row.items()} for row in frame.to_dict("records")]
        rows.sort(key=lambda row: row["changed"] or "", reverse=True)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_at(rows))
        await asyncio.wait({self._looking}, timeout=PATIENCE)
        for row in rows:
            row["state"] = "running" if row["steps"] or row["pending"] else "new"
            changed, found = self._found.get(row["name"], ("", {}))
            row |= found if changed == row["changed"] else {}
            entry = self._entries.get(row["name"])
            if entry is not None and entry.problem is not None:
                row |= {"state": "broken", "problem": entry.problem}
        return rows

    async def _look_at(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Opens those that have changed since they were last looked at."""
        for row in rows:
            name, changed = row["name"], row["changed"]
            if self._found.get(name, ("", {}))[0] != changed and (row["steps"] or row["pending"]):
                with suppress(TruvarError):  # gone, or the store cannot be used now: it is looked at again
                    self._found[name] = changed, await self._state_of(name)

    async def _state_of(self, name: str) -> dict[str, Any]:
        """Whether a study is finished or broken; one that is not open is not kept."""
        entry = self._entries.get(name, Entry())
        try:
            over = await self._use(entry, name, lambda study: study.finished is not None)
        except Broken:
            return {"state": "broken", "problem": entry.problem}
        return {"state": "finished"} if over else {}

    def close(self) -> None:
        """Ends the threads; what they do is finished first."""
        if self._looking is not None:
            self._looking.cancel()
        self._writers.shutdown(wait=True)
        self._readers.shutdown(wait=True)

    def _entry(self, name: str) -> Entry:
        entry = self._entries.setdefault(name, Entry())
        self._entries.move_to_end(name)
        idle = [n for n, e in self._entries.items() if n != name and e.idle]
        for other in idle[: max(0, len(self._entries) - self.limits.studies)]:
            del self._entries[other]
        return entry

    async def _use(self, entry: Entry, name: str, work: Callable[[Study], T]) -> T:
        async with entry.read.turn:
            return await self._during(entry, self._readers, lambda: self._work(entry, entry.read, name, work))

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Blocking work, beside the event loop, for whoever asked."""
        return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, work)

    async def _during(self, entry: Entry, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Work in a thread; those who wait for news hear of what it changed."""
        before = entry.version
        try:
            return await self._in_thread(threads, work)
        finally:
            if entry.version != before:
                entry.changed.set()
                entry.changed = asyncio.Event()

    def _work(self, entry: Entry, copy: Copy, name: str, work: Callable[[Study], T]) -> T:
        with copy.working:
            if copy.study is None:
                copy.study, entry.problem = self._open(entry, name), None
            study = copy.study
            try:
                if copy is entry.read:
                    self._catch_up(entry, name, study)
                    entry.looked = time.monotonic()
                    _note(entry, study)
                return work(study)
            finally:
                _note(entry, study)

    def _open(self, entry: Entry, name: str) -> Study:
        event_log = None if not is_text(name) else self._storage.find_event_log(name)
        if event_log is None:
            raise Unknown(f"there is no study {name!r} here; GET /api/studies lists those there are")
        try:
            return Study.from_event_log(event_log, name, who="service")
        except StorageError:
            raise
        except Exception as error:  # a record that was tampered with can be wrong in any way
            raise _broken(entry, name, error) from None

    def _catch_up(self, entry: Entry, name: str, study: Study) -> None:
        try:
            study.refresh()
        except StorageError:
            raise
        except Exception as error:
            entry.read.study = entry.written.study = None  # to be opened anew
            raise _broken(entry, name, error) from None


def _note(entry: Entry, study: Study) -> None:
    if study.version > entry.version:
        entry.version = study.version


def _broken(entry: Entry, name: str, error: Exception) -> Broken:
    known = isinstance(error, TruvarError)
    said = str(error) if known else f"{type(error).__name__}: {error}"
    LOG.warning("the study %r cannot be opened: %s", name, said, exc_info=None if known else error)
    entry.problem = f"its record cannot be read: {said}"
    return Broken(f"the study {name!r} cannot be opened; {entry.problem}")


def _plain(value: Any) -> Any:
    """For JSON: a time as text, a missing one as null."""
    return None if pd.isna(value) else value.isoformat() if isinstance(value, datetime) else value
