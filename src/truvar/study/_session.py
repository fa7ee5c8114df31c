"""The session of a study: its event log and state, and the lock and transactions by which they change together.

A study has one re-entrant lock. Every public method takes it (`synchronized`), so that threads use
a study one after the other. A transaction holds it from its beginning to its end. Tasks of one
event loop share a thread and therefore a re-entrant lock, so a transaction also remembers the task
that opened it, and refuses the others.

Slow work runs without the write lock of the store, on the events as they are. It is stored if
nobody wrote in the meantime, and computed again otherwise (`StudySession.change`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeVar

from truvar._representation import visible
from truvar.domain.action import Action
from truvar.exceptions import Finished, StudyBusyError, TruvarError
from truvar.storage.base import Event, EventLog, now
from truvar.storage.forks import Lock, let_fork, locked_objects
from truvar.study._events import action_to_details
from truvar.study._state import StudyState
from truvar.study.cancellation import check_cancelled

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])
# seconds of processor time; after a longer change the next one is computed without the write lock
SLOW_CHANGE = 0.1
# seconds; the same for one that waits. On a busy machine every change takes a multiple of its time
SLOW_ELAPSED = 1.0
ATTEMPTS = (
    3  # to store a change that was computed without the write lock; then it is computed with it
)
FREE_TEXTS = ("reason", "text")  # details of events that people write
UNLOCKED = frozenset(
    {"run", "transaction"}
)  # public methods of a study that take its lock step by step

# Transactions that the running code was called from, also through asyncio.to_thread and new tasks.
_enclosing: ContextVar[tuple[object, ...]] = ContextVar("enclosing", default=())


class EventWriter:
    """Writes the events of one transaction.

    Args:
        state: The state that an event changes.
        author: Author of the events.
        appended: List that the events are appended to.

    Attributes:
        author: Author of the events.
    """

    def __init__(self, state: StudyState, author: str, appended: list[Event]) -> None:
        self.author = author
        self._state = state
        self._appended = appended

    def __call__(self, kind: str, action: Action | None = None, **details: Any) -> None:
        """Append an event to the log and take its effect.

        Args:
            kind: Kind of the event.
            action: The action that it is about, if any.
            **details: Its other details.
        """
        check_cancelled()
        state = self._state
        if action is not None:
            details = action_to_details(state.config, action) | details
        for name in FREE_TEXTS:
            if isinstance(details.get(name), str):
                details[name] = visible(details[name])
        event = Event(state.version + 1, now(), visible(self.author), kind, details)
        models = state.apply(event, action)
        if models:
            details["models"] = {str(count): model for count, model in models.items()}
        self._appended.append(event)


class StudySession:
    """The event log and the state of a study, which one thread at a time uses.

    Args:
        state: The state after all events of the log.
        event_log: The event log.

    Attributes:
        state: The state.
        event_log: The event log.
    """

    def __init__(self, state: StudyState, event_log: EventLog) -> None:
        self.state = state
        self.event_log = event_log
        self._lock = threading.RLock()
        self._write: EventWriter | None = None  # while a transaction lasts
        self._task: Any = None  # that the transaction belongs to; None: no task
        self._token: object = object()  # of the transaction, for `_enclosing`
        locked_objects.add(self)
        self._is_slow = True  # whether the last change took long, or there was none yet

    @property
    def fork_lock(self) -> Lock:
        """The lock of the study, which a fork takes."""
        return self._lock

    def unlock_in_child(self) -> None:
        """Replace the lock after a fork, and have what its thread left undone as after an interrupt."""
        self._lock = threading.RLock()
        self._write = None
        self.state.invalidate()

    def call(self, method: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function while this thread has the lock of the study.

        Raises:
            StudyBusyError: If waiting for the lock could never end.
        """
        outermost = self._before_lock()
        with self._lock:
            self._after_lock(outermost)
            try:
                return method(*args, **kwargs)
            except (TruvarError, Finished):
                raise
            except BaseException:
                self.state.invalidate()
                raise

    def _before_lock(self) -> bool:
        """Return whether this thread does not have the lock yet.

        Raises:
            StudyBusyError: If it is held by a transaction that this thread was started from.
        """
        outermost = not self._lock._is_owned()  # type: ignore[attr-defined]
        if outermost and self._write is not None and self._token in _enclosing.get():
            raise StudyBusyError(
                "a thread that is started within a transaction of a study cannot use the study, "
                "since the transaction "
                "may wait for it; end the transaction first"
            )
        if outermost:
            let_fork()
        return outermost

    def _after_lock(self, outermost: bool) -> None:
        """Prepare the study for the thread that has just taken its lock.

        Raises:
            StudyBusyError: If another task of this thread has a transaction open.
        """
        if (
            outermost
        ):  # whatever is left of a transaction was left by an interrupt at an awkward moment
            self._write = None
            self.state.restore()
        elif self._write is not None and self._task is not _current_task():
            raise StudyBusyError(
                "another asyncio task has a transaction of this study open; do not await within a "
                "transaction, or "
                "guard the study with an asyncio.Lock"
            )

    @contextmanager
    def transaction(self, author: str) -> Iterator[EventWriter]:
        """Take the lock of the study and yield a function that writes events, in an exclusive transaction on the log.

        The study first replays what others wrote. An event takes effect immediately and is stored
        when the transaction ends; if that fails, its effect is undone. Within a transaction, a
        further one is part of it.

        Args:
            author: Author of the events.
        """
        outermost = self._before_lock()
        with self._lock:
            self._after_lock(outermost)
            if self._write is not None:
                yield self._write
                return
            with self._locked_transaction(author) as write:
                yield write

    @contextmanager
    def _locked_transaction(self, author: str) -> Iterator[EventWriter]:
        """Open a transaction on the event log; the caller has the lock and no transaction yet."""
        state = self.state
        began = False
        try:
            with self.event_log.transaction(state.version) as transaction:
                state.replay(transaction.new_events)
                before = state.snapshot()
                began = True
                state.restore_point = before
                with self._writer(author, transaction.appended) as write:
                    yield write
                check_cancelled()
                transaction.summary = state.summary
            state.restore_point = None
        except BaseException:
            if began:
                state.rollback(before)
            raise

    def change(self, work: Callable[[EventWriter], T], author: str, *, rewrites: bool = False) -> T:
        """Run a function that writes events, and store them. The caller has the lock of the study.

        Args:
            work: Function of the function that writes. It may be called several times. Only the
                events of the last call are stored; the others leave no trace.
            author: Author of the events.
            rewrites: Whether the change concerns an earlier measurement, so that all later ones are
                taken in again, which takes long with a learned model. It is then made before others
                are kept from writing.

        Returns:
            The result of `work`.
        """
        if self._write is not None:
            return work(self._write)
        if self._is_slow or rewrites:
            for _ in range(ATTEMPTS):
                results = self._change_on_snapshot(work, author)
                if results:
                    return results[0]
        with self._locked_transaction(author) as write:
            return self._timed(work, write)

    def _change_on_snapshot(self, work: Callable[[EventWriter], T], author: str) -> list[T]:
        """Run the function on the events as they are, and store its events if nobody wrote in the meantime.

        Returns:
            The result of the function; nothing if others wrote.
        """
        state = self.state
        self.refresh()
        before = state.snapshot()
        state.restore_point = before
        appended: list[Event] = []
        others_wrote = False
        try:
            with self._writer(author, appended) as write:
                result = self._timed(work, write)
            check_cancelled()
            if appended:
                with self.event_log.transaction(before.version) as transaction:
                    others_wrote = bool(transaction.new_events)
                    if not others_wrote:
                        transaction.appended += appended
                        transaction.summary = state.summary
        except BaseException:
            state.rollback(before)
            raise
        if others_wrote:
            state.rollback(before)
            return []
        state.restore_point = None
        return [result]

    @contextmanager
    def _writer(self, author: str, appended: list[Event]) -> Iterator[EventWriter]:
        """Yield the function that writes events to a list, and let it be that of the open transaction."""
        write = EventWriter(self.state, author, appended)
        self._task = _current_task()
        self._token = object()
        self._write = write
        entered = _enclosing.set((*_enclosing.get(), self._token))
        try:
            yield write
        finally:
            self._write = None
            _enclosing.reset(entered)

    def _timed(self, work: Callable[[EventWriter], T], write: EventWriter) -> T:
        began = time.monotonic()
        worked = time.thread_time()
        try:
            return work(write)
        finally:
            elapsed = time.monotonic() - began
            self._is_slow = time.thread_time() - worked > SLOW_CHANGE or elapsed > SLOW_ELAPSED

    def refresh(self) -> None:
        """Replay the events that others wrote."""
        if (
            self._write is None
        ):  # a transaction has replayed them, and nobody else can write while it lasts
            self.state.replay(self.event_log.since(self.state.version))


class HasSession(Protocol):
    """A study with a session."""

    _session: StudySession


def synchronized(cls: C) -> C:
    """Let every public method and property of a class of studies hold the lock of the study.

    Args:
        cls: A class whose instances have a `StudySession` as `_session`.

    Returns:
        The class itself.
    """
    for name, member in list(vars(cls).items()):
        if name.startswith("_") or name in UNLOCKED:
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, _locked(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, member.getter(_locked(member.fget)))
    return cls


def _locked(method: Callable[..., T]) -> Callable[..., T]:
    @wraps(method)
    def locked(self: HasSession, *args: Any, **kwargs: Any) -> T:
        return self._session.call(method, self, *args, **kwargs)

    return locked


def _current_task() -> Any:
    """Return the asyncio task that is running in this thread; None if there is none."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop is running
        return None
