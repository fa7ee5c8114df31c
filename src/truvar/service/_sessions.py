"""Open studies of a server.

Every study is open up to three times: one object makes changes, one makes choices, and one is for
reading, so that neither readers nor those who tell a value wait for a choice. Choices that are
known to take a few milliseconds are made with the object for changes, and those that take long in a
process of their own (`choice_processes`). Each object is used by one thread at a time. Changes made
through the store by other programs are noticed too: an object reads new events of its event log
before it is used.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import pandas as pd

from truvar.exceptions import (
    DamagedStudyError,
    StorageError,
    StudyExistsError,
    StudyNotFoundError,
    TruvarError,
)
from truvar.service._auth import TokenStore
from truvar.service._choice_processes import ChoiceProcesses
from truvar.service._choices import ChoiceRequest, is_quick, suggest, takes_long
from truvar.service._limits import ServiceLimits, is_plain_text
from truvar.service._uploads import Upload, check_size, handle_upload
from truvar.storage.administration import delete_study, rename_study
from truvar.storage.rdb import RDBStorage
from truvar.storage.tokens import list_tokens
from truvar.study.study import Study

S = TypeVar("S")
T = TypeVar("T")
MAX_GROWTH = 3.0  # factor by which the expected time of a choice grows after one choice
CLOSE_SECONDS = 4.0  # that work under way has to end when the server stops
LISTING_SECONDS = 1.0  # that a list of studies waits until their states are known
UPLOAD_THREADS = 2  # for uploads that do not take long
# that open studies, so that a study which takes long to open leaves threads for the open ones
OPEN_THREADS = 2
ONE_PROCESSOR = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TRUVAR_THREADS": "1"}
LOG = logging.getLogger("truvar.service")


class _TakesLong(Exception):
    """A study turns out to need a process when it is opened."""


@dataclass
class StudyCopy:
    """One open `Study` object.

    Attributes:
        request_lock: Held by the request that uses the object; the next requests wait for it in the
            event loop, where waiting takes no thread.
        thread_lock: Protects `study`. A request that is cancelled releases `request_lock` while its
            thread still works on the object; the next thread waits for this lock.
        study: The object; None before it is opened.
    """

    request_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    thread_lock: threading.Lock = field(default_factory=threading.Lock)
    study: Study | None = None

    def close(self) -> None:
        """Forget the object, unless a thread works on it."""
        if self.study is not None and self.thread_lock.acquire(blocking=False):
            self.study = None
            self.thread_lock.release()


@dataclass(frozen=True)
class Answer:
    """An encoded answer.

    Attributes:
        content: The answer.
        version: Version of the study that it was made from.
        read_at: When the event log was read for it, on the monotonic clock.
    """

    content: bytes
    version: int
    read_at: float


@dataclass
class StudyEntry:
    """The open objects of one study, and what is known about it.

    Attributes:
        chooser: The object that suggestions are made with, as long as they may take more than a few
            milliseconds.
        writer: The object that other changes are made with.
        reader: The object that answers are read from.
        damage: Why the study cannot be opened; None: no reason is known.
        version: Number of the last known event.
        checked_at: When the event log was last read for new events, on the monotonic clock.
        changed: Set, and replaced, when the version changes.
        answers: Encoded answers.
        apart_lock: Held while an answer is made that takes long, so that two requests do not
            compute the same.
        choice_seconds: Processor time of the last choice, for each suggestion; None: none was made
            yet.
    """

    chooser: StudyCopy = field(default_factory=StudyCopy)
    writer: StudyCopy = field(default_factory=StudyCopy)
    reader: StudyCopy = field(default_factory=StudyCopy)
    damage: str | None = None
    version: int = 0
    checked_at: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[str, Answer] = field(default_factory=dict)
    apart_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    choice_seconds: float | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request uses the study."""
        return not any(copy.request_lock.locked() for copy in self.copies)

    @property
    def copies(self) -> tuple[StudyCopy, ...]:
        """The objects, open or not."""
        return (self.chooser, self.writer, self.reader)

    @property
    def is_unknown(self) -> bool:
        """Whether no object is open, no request under way and nothing known about the study."""
        return (
            self.is_idle and self.damage is None and all(copy.study is None for copy in self.copies)
        )

    @property
    def opened(self) -> Study | None:
        """An open object of the study, if there is any."""
        return next((copy.study for copy in self.copies if copy.study is not None), None)

    @contextmanager
    def idle_study(self) -> Iterator[Study | None]:
        """Yield an open object that no thread uses, and reserve it; None if there is none."""
        for copy in self.copies:
            if copy.study is not None and copy.thread_lock.acquire(blocking=False):
                try:
                    yield copy.study
                finally:
                    copy.thread_lock.release()
                return
        yield None

    def record_choice(self, seconds: float) -> None:
        """Take over how long a choice took; the known time grows by a limited factor at a time."""
        known = seconds if self.choice_seconds is None else self.choice_seconds
        self.choice_seconds = min(seconds, MAX_GROWTH * known)

    def announce_change(self) -> None:
        """Wake those who wait for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    def update_version(self, study: Study) -> None:
        """Take over the version of an object that has read more events."""
        self.version = max(self.version, study.version)


class StudySessions:
    """The studies of one store.

    Args:
        url: URL of the store; it is created if it does not exist.
        limits: Limits of the server.

    Attributes:
        url: URL of the store.
        limits: Limits of the server.
        tokens: Tokens of the store.
    """

    def __init__(self, url: str, limits: ServiceLimits) -> None:
        self.url = url
        self.limits = limits
        self._storage = RDBStorage(url)
        with self._storage.write_transaction():  # creates the store
            pass
        self.tokens = TokenStore(lambda: list_tokens(self._storage))
        self._entries: OrderedDict[str, StudyEntry] = OrderedDict()
        # State of a study for the list, with the time of the change that it was read after.
        self._states: dict[str, tuple[str, dict[str, Any]]] = {}
        self._state_update: asyncio.Task[None] | None = None
        self._processes = ChoiceProcesses(url, limits.choice_processes, limits.choice_seconds)
        self._upload_processes = ChoiceProcesses(
            url, limits.upload_processes, limits.upload_seconds, environment=ONE_PROCESSOR
        )
        self._working = 0  # threads that are at work
        self._working_changed = threading.Condition()
        threads = (os.cpu_count() or 1) + 2
        self._choice_threads = ThreadPoolExecutor(threads, thread_name_prefix="choose")
        self._write_threads = ThreadPoolExecutor(threads, thread_name_prefix="write")
        self._read_threads = ThreadPoolExecutor(threads, thread_name_prefix="read")
        self._upload_threads = ThreadPoolExecutor(UPLOAD_THREADS, thread_name_prefix="upload")
        self._open_threads = ThreadPoolExecutor(OPEN_THREADS, thread_name_prefix="open")

    async def read(self, name: str, work: Callable[[Study], T]) -> T:
        """Return what `work` reads from a study, which includes all events stored so far.

        Args:
            name: Name of the study.
            work: Function of the study; it must not change it.

        Raises:
            StudyNotFoundError: If there is no such study.
            DamagedStudyError: If its events cannot be read.
        """
        return await self._read(self._entry(name), name, work)

    async def write(self, name: str, work: Callable[[Study], T]) -> T:
        """Return the result of `work`, which changes a study.

        Args:
            name: Name of the study.
            work: Function of the study.

        Raises:
            StudyNotFoundError: If there is no such study.
            DamagedStudyError: If its events cannot be read.
        """
        entry = self._entry(name)
        async with entry.writer.request_lock:
            return await self._run(entry, entry.writer, self._write_threads, name, work)

    async def choose(self, name: str, request: ChoiceRequest) -> dict[str, Any]:
        """Return the answer to a request for suggestions.

        A choice that is expected to take long is made in its own process. One that is
        cancelled, in a process or not, leaves no trace.

        Args:
            name: Name of the study.
            request: The request.

        Raises:
            StudyNotFoundError: If there is no such study.
            DamagedStudyError: If its events cannot be read.
            ChoiceFailedError: If a choice in a process takes too long.
            Finished: If there is nothing to suggest.
            TruvarError: If the request has a mistake.
        """
        entry = self._entry(name)
        if is_quick(entry.choice_seconds, request.command.n):
            async with entry.writer.request_lock:
                return await self._choose_in_thread(entry, entry.writer, name, request)
        async with entry.chooser.request_lock:
            if takes_long(entry.opened, entry.choice_seconds, request.command.n):
                with suppress(OSError):  # no process can be started: choose in a thread
                    return await self._choose_in_process(entry, name, request)
            try:
                return await self._choose_in_thread(entry, entry.chooser, name, request)
            except _TakesLong:
                return await self._choose_in_process(entry, name, request)

    async def _choose_in_process(
        self, entry: StudyEntry, name: str, request: ChoiceRequest
    ) -> dict[str, Any]:
        entry.chooser.close()  # two open objects would need twice the memory
        choice = await self._processes.choose(name, request)
        entry.record_choice(choice.seconds / request.command.n)
        if choice.version > entry.version:
            entry.version = choice.version
            entry.announce_change()
        return choice.answer

    async def _choose_in_thread(
        self, entry: StudyEntry, copy: StudyCopy, name: str, request: ChoiceRequest
    ) -> dict[str, Any]:
        was_open = entry.opened is not None
        cancelled = threading.Event()

        def work(study: Study) -> dict[str, Any]:
            if not was_open and takes_long(study, entry.choice_seconds, request.command.n):
                raise _TakesLong
            if study.version < entry.version:  # other objects have asked, told or withdrawn
                study.refresh()
            began = time.thread_time()
            answer = suggest(study, request, cancelled)
            entry.record_choice((time.thread_time() - began) / request.command.n)
            return answer

        threads = self._choice_threads if copy is entry.chooser else self._write_threads
        if copy is entry.writer:
            entry.chooser.close()
        try:
            return await self._run(entry, copy, threads, name, work)
        finally:
            cancelled.set()

    async def read_cached(self, name: str, key: str, work: Callable[[Study], bytes]) -> bytes:
        """Return an answer that is made once for each version of a study.

        Clients that wait while an answer is made all get the next one, which has read every event
        that was stored before they asked, so that an answer which takes long is not made for each
        of them.

        Args:
            name: Name of the study.
            key: Name of the answer.
            work: Function that makes it.

        Raises:
            StudyNotFoundError: If there is no such study.
            DamagedStudyError: If its events cannot be read.
        """
        entry = self._entry(name)
        asked_at = time.monotonic()

        def cached(study: Study) -> bytes:
            known = entry.answers.get(key)
            content = (
                known.content
                if known is not None and known.version == study.version
                else work(study)
            )
            entry.answers[key] = Answer(content, study.version, entry.checked_at)
            return content

        async with entry.reader.request_lock:
            known = entry.answers.get(key)
            if known is not None and known.read_at >= asked_at:
                return known.content
            return await self._run(entry, entry.reader, self._read_threads, name, cached)

    async def read_apart(self, name: str, take: Callable[[Study], S], work: Callable[[S], T]) -> T:
        """Return an answer that takes long, one at a time for each study, while others use it.

        Args:
            name: Name of the study.
            take: Function of the study that quickly returns what the answer is made from.
            work: Function that makes the answer from that.

        Raises:
            StudyNotFoundError: If there is no such study.
            DamagedStudyError: If its events cannot be read.
        """
        entry = self._entry(name)
        async with entry.apart_lock:
            source = await self._read(entry, name, take)
            return await self.run(lambda: work(source))

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of work that needs no study, done in a thread for reading."""
        return await self._in_thread(self._read_threads, work)

    async def wait_for_change(self, name: str, version: int, seconds: float) -> int:
        """Return the version of a study once it differs from `version`, or after some seconds."""
        entry = self._entry(name)
        if entry.version == version:
            try:
                await asyncio.wait_for(entry.changed.wait(), seconds)
            except TimeoutError:
                if (
                    time.monotonic() - entry.checked_at >= seconds
                ):  # no other request has checked meanwhile
                    await self._read(entry, name, lambda study: None)
        return entry.version

    async def upload(self, upload: Upload) -> bytes:
        """Do what an upload asks for, and return the answer in JSON.

        One that may take long is handled in its own process. If it is cancelled there, it
        leaves no trace.

        Args:
            upload: The upload.

        Raises:
            StudyExistsError: If the name of a new study is taken.
            LimitExceededError: If it is larger than the server allows, or takes too long.
            TruvarError: If it has a mistake.
        """
        if upload.kind not in ("study", "problem"):
            answer, _ = await self._handle(upload)
            return answer
        entry = self._entry(upload.name)
        async with entry.writer.request_lock:
            if (
                await self._in_thread(
                    self._read_threads, lambda: self._storage.find_event_log(upload.name)
                )
                is not None
            ):
                raise StudyExistsError(
                    f"there is already a study {upload.name!r}; give the new one another name"
                )
            answer, study = await self._handle(upload)
            if study is not None:
                entry.writer.study = study
                entry.update_version(study)
            return answer

    async def _handle(self, upload: Upload) -> tuple[bytes, Study | None]:
        if upload.takes_long:
            await self._in_thread(self._upload_threads, lambda: check_size(upload, self.limits))
            with suppress(OSError):  # no process can be started: use a thread
                return await self._upload_processes.upload(upload, self.limits), None
        return await self._in_thread(
            self._upload_threads, lambda: handle_upload(upload, self.url, self.limits)
        )

    async def rename(self, name: str, new_name: str, author: str) -> None:
        """Give a study another name, which its event log then notes.

        Args:
            name: Its present name.
            new_name: The other name.
            author: Author of the change.

        Raises:
            StudyNotFoundError: If there is no such study.
            StudyExistsError: If the other name is taken.
            InvalidArgumentError: If the other name cannot be used.
        """

        def work() -> None:
            rename_study(self._storage, name, new_name)
            LOG.warning("the study %r was renamed to %r by %s", name, new_name, author)
            with suppress(DamagedStudyError):  # a study that cannot be opened can still be renamed
                Study.from_event_log(
                    self._storage.get_event_log(new_name), new_name, author=author
                ).note(f"renamed from {name!r} to {new_name!r}")

        await self._administer(name, work)

    async def delete(self, name: str, author: str) -> int:
        """Delete a study permanently and return the number of events that it had.

        The log of the server tells of it, and the store keeps a line.

        Args:
            name: Its name.
            author: Author of the change.

        Raises:
            StudyNotFoundError: If there is no such study.
        """

        def work() -> int:
            n_events = delete_study(self._storage, name, author)
            LOG.warning("the study %r with %d events was deleted by %s", name, n_events, author)
            return n_events

        return await self._administer(name, work)

    async def _administer(self, name: str, work: Callable[[], T]) -> T:
        """Run work on the row of a study while nobody changes it, and forget its entry."""
        entry = self._entry(name)
        async with entry.chooser.request_lock, entry.writer.request_lock, entry.reader.request_lock:
            result = await self._in_thread(self._write_threads, work)
        self._entries.pop(name, None)
        self._states.pop(name, None)
        entry.changed.set()  # those who follow the study find out that it is gone
        return result

    async def list_studies(self) -> list[dict[str, Any]]:
        """Return all studies of the store, the last changed first.

        Whether a study is finished or damaged shows only when it is opened. That is done once after
        each change, and continues after the answer if it takes long.
        """
        frame = await self._in_thread(self._read_threads, self._storage.list_studies)
        rows = [
            {str(key): _json_value(value) for key, value in row.items()}
            for row in frame.to_dict("records")
        ]
        rows.sort(key=lambda row: row["changed"] or "", reverse=True)
        if self._state_update is None or self._state_update.done():
            self._state_update = asyncio.create_task(self._update_states(rows))
        await asyncio.wait({self._state_update}, timeout=LISTING_SECONDS)
        for row in rows:
            row["state"] = "running" if row["steps"] or row["pending"] else "new"
            changed, state = self._states.get(row["name"], ("", {}))
            if changed == row["changed"]:
                row.update(state)
            entry = self._entries.get(row["name"])
            if entry is not None and entry.damage is not None:
                row.update(state="broken", problem=entry.damage)
        return rows

    async def end_processes(self) -> None:
        """End the processes for choices and uploads. Unfinished work has stored nothing."""
        await self._processes.close()
        await self._upload_processes.close()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Let the threads end their present work, for some seconds at most.

        Work that takes longer is given up with the process. It has stored nothing, as changes are
        stored at their end.
        """
        if self._state_update is not None:
            self._state_update.cancel()
        for threads in (
            self._choice_threads,
            self._write_threads,
            self._read_threads,
            self._upload_threads,
            self._open_threads,
        ):
            threads.shutdown(wait=False, cancel_futures=True)
        with self._working_changed:
            self._working_changed.wait_for(lambda: self._working == 0, seconds)

    @property
    def is_working(self) -> bool:
        """Whether a thread is at work."""
        return self._working > 0 or self.tokens.is_reading

    async def _update_states(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Read the state of the studies that changed since it was last read."""
        for row in rows:
            name = row["name"]
            changed = row["changed"]
            known = self._states.get(name, ("", {}))[0] == changed
            if not known and (row["steps"] or row["pending"]):
                with suppress(
                    TruvarError
                ):  # removed, or the store is not available now: read again next time
                    self._states[name] = (changed, await self._read_state(name))

    async def _read_state(self, name: str) -> dict[str, Any]:
        """Return whether a study is finished or damaged; one that is not open is closed again."""
        entry = self._entries.get(name, StudyEntry())
        try:
            finished = await self._read(entry, name, lambda study: study.finished is not None)
        except DamagedStudyError:
            return {"state": "broken", "problem": entry.damage}
        return {"state": "finished"} if finished else {}

    def _entry(self, name: str) -> StudyEntry:
        """Return the entry of a study; drop unknown ones, and unused ones beyond the limit."""
        entry = self._entries.setdefault(name, StudyEntry())
        self._entries.move_to_end(name)
        # A name that no study has is dropped first, so that requests for such names do not close
        # open studies.
        unknown = [
            other for other, found in self._entries.items() if other != name and found.is_unknown
        ]
        for other in unknown:
            del self._entries[other]
        if entry.is_unknown:
            return entry
        idle = [other for other, found in self._entries.items() if other != name and found.is_idle]
        excess = max(0, len(self._entries) - self.limits.studies)
        for other in idle[:excess]:
            del self._entries[other]
        return entry

    async def _read(self, entry: StudyEntry, name: str, work: Callable[[Study], T]) -> T:
        async with entry.reader.request_lock:
            return await self._run(entry, entry.reader, self._read_threads, name, work)

    async def _run(
        self,
        entry: StudyEntry,
        copy: StudyCopy,
        threads: ThreadPoolExecutor,
        name: str,
        work: Callable[[Study], T],
    ) -> T:
        """Run work on a study in a thread, and wake requests that wait for a change."""
        before = entry.version
        try:
            if copy.study is None:
                await self._in_thread(
                    self._open_threads, lambda: self._use(entry, copy, name, lambda study: None)
                )
            return await self._in_thread(threads, lambda: self._use(entry, copy, name, work))
        finally:
            if entry.version != before:
                entry.announce_change()

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Run blocking work in a thread, in the context of the request."""

        def counted() -> T:
            self._count_working(1)
            try:
                return work()
            finally:
                self._count_working(-1)

        return await asyncio.get_running_loop().run_in_executor(
            threads, copy_context().run, counted
        )

    def _count_working(self, change: int) -> None:
        with self._working_changed:
            self._working += change
            self._working_changed.notify_all()

    def _use(self, entry: StudyEntry, copy: StudyCopy, name: str, work: Callable[[Study], T]) -> T:
        """Open a study if need be, and work on it."""
        with copy.thread_lock:
            if copy.study is None:
                copy.study = self._open(entry, name)
                entry.damage = None
            study = copy.study
            try:
                if copy is entry.reader:
                    began = time.monotonic()
                    self._refresh(entry, name, study)
                    entry.checked_at = began
                    entry.update_version(study)
                return work(study)
            finally:
                entry.update_version(study)

    def _open(self, entry: StudyEntry, name: str) -> Study:
        event_log = self._storage.find_event_log(name) if is_plain_text(name) else None
        if event_log is None:
            raise StudyNotFoundError(
                f"there is no study {name!r}; GET /api/studies lists the studies of this server"
            )
        try:
            with entry.idle_study() as source:
                return Study.from_event_log(event_log, name, author="service", source=source)
        except (StorageError, StudyNotFoundError):  # the latter: it was deleted just now
            raise
        except Exception as error:  # a record that was tampered with can be wrong in any way
            raise _damaged(entry, name, error) from None

    def _refresh(self, entry: StudyEntry, name: str, study: Study) -> None:
        try:
            study.refresh()
        except StorageError:
            raise
        except Exception as error:
            for copy in entry.copies:  # all are opened again by the next request
                copy.study = None
            if isinstance(error, StudyNotFoundError):  # another program has deleted it
                raise
            raise _damaged(entry, name, error) from None


def _damaged(entry: StudyEntry, name: str, error: Exception) -> DamagedStudyError:
    """Log and record why a study cannot be opened, and return the exception."""
    expected = isinstance(error, TruvarError)
    reason = str(error) if expected else f"{type(error).__name__}: {error}"
    LOG.warning("cannot open the study %r: %s", name, reason, exc_info=None if expected else error)
    entry.damage = f"its stored events cannot be read: {reason}"
    return DamagedStudyError(f"the study {name!r} cannot be opened; {entry.damage}")


def _json_value(value: Any) -> Any:
    """Return a value of a table for JSON: a time as text, a missing value as None."""
    if pd.isna(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value
