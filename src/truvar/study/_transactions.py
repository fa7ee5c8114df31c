"""Write transactions of a study, and the lock that makes it safe to share.

A study has one re-entrant lock. Every public method takes it (`synchronized`), so that threads use a study one after
the other. A transaction holds it from its beginning to its end. Tasks of one event loop share a thread and therefore a
re-entrant lock, so a transaction also remembers the task that opened it, and refuses the others.

What takes long is computed without the write lock of the store, on the events as they are. It is stored if nobody
wrote in the meantime, and computed again otherwise (`TransactionalStudy._change`).
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
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
SLOW_CHANGE = 0.1  # seconds of processor time; after a longer change the next one is computed without the write lock
SLOW_ELAPSED = 1.0  # seconds; the same for one that waits. On a busy machine every change takes a multiple of its time
ATTEMPTS = 3  # to store a change that was computed without the write lock; then it is computed with it
FREE_TEXTS = frozenset({"reason", "text"})  # details of events that people write
UNLOCKED = frozenset({"run", "transaction"})  # public methods of a study that take its lock step by step

# Transactions that the running code was called from, also through asyncio.to_thread and new tasks.
_enclosing: ContextVar[tuple[object, ...]] = ContextVar("enclosing", default=())


class WriteEvent(Protocol):
    """Function that writes an event."""

    def __call__(self, kind: str, action: Action | None = None, **details: Any) -> None:
        """Append an event to the log and take its effect; `action` is the action that it is about."""
        ...


class _ForkGuard:
    """A study as a fork sees it: `storage.forks.LockedObject`."""

    def __init__(self, study: weakref.ref[TransactionalStudy]) -> None:
        self._study = study
        self._no_lock = threading.RLock()  # of a study that is gone

    @property
    def fork_lock(self) -> Lock:
        """The lock of the study, which a fork takes."""
        study = self._study()
        return self._no_lock if study is None else study._lock

    def unlock_in_child(self) -> None:
        """Replace the lock after a fork."""
        study = self._study()
        if study is not None:
            study._unlock_in_child()


class TransactionalStudy:
    """The part of a `Study` that locks it and writes its events.

    Attributes:
        who: Author of the events that this object writes.
    """

    who: str
    _event_log: EventLog
    _state: StudyState

    def _initialize_transactions(self) -> None:
        self._lock = threading.RLock()
        self._write: WriteEvent | None = None  # while a transaction lasts
        self._task: Any = None  # that the transaction belongs to; None: no task
        self._token: object = object()  # of the transaction, for `_enclosing`
        self._fork_guard = _ForkGuard(weakref.ref(self))
        locked_objects.add(self._fork_guard)
        self._is_slow = True  # whether the last change took long, or there was none yet

    def _unlock_in_child(self) -> None:
        """Replace the lock after a fork, and have what its thread left undone as after an interrupt."""
        self._lock = threading.RLock()
        self._write = None
        self._state.distrust()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the lock of the study.

        Raises:
            StudyBusyError: If waiting for it could never end.
        """
        outermost = self._before_lock()
        with self._lock:
            self._after_lock(outermost)
            yield

    def _before_lock(self) -> bool:
        """Return whether this thread does not have the lock yet.

        Raises:
            StudyBusyError: If it is held by a transaction that this thread was started from.
        """
        outermost = not self._lock._is_owned()  # type: ignore[attr-defined]
        if outermost and self._write is not None and self._token in _enclosing.get():
            raise StudyBusyError(
                "a thread that is started within a transaction of a study cannot use the study, since the transaction "
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
        if outermost:  # whatever is left of a transaction was left by an interrupt at an awkward moment
            self._write = None
            self._state.restore()
        elif self._write is not None and self._task is not _current_task():
            raise StudyBusyError(
                "another asyncio task has a transaction of this study open; do not await within a transaction, or "
                "guard the study with an asyncio.Lock"
            )

    @contextmanager
    def _transaction(self) -> Iterator[WriteEvent]:
        """Yield a function that writes events, in an exclusive transaction on the event log.

        The study first takes over what others wrote. An event takes effect at once and is stored when the transaction
        ends; if that fails, its effect is undone. Within a transaction, a further one is part of it.
        """
        with self._exclusive():
            if self._write is not None:
                yield self._write
                return
            state = self._state
            appended: list[Event] = []
            before = state.snapshot()
            try:
                with self._event_log.transaction(state.version) as transaction:
                    state.replay(transaction.new_events)
                    before = state.snapshot()
                    state.restore_point = before
                    appended = transaction.appended
                    with self._writer(appended) as write:
                        yield write
                    check_cancelled()
                    transaction.summary = state.summary
                state.restore_point = None
            except BaseException:
                state.rollback(before)
                raise

    def _change(self, work: Callable[[WriteEvent], T], rewrites: bool = False) -> T:
        """Run a function that writes events, and store them.

        Args:
            work: Function of the function that writes. It may be called several times. Only the events of the last
                call are stored; the others leave no trace.
            rewrites: Whether the change concerns an earlier measurement, so that all later ones are taken in again,
                which takes long with a learned model. It is then made before others are kept from writing.

        Returns:
            The result of `work`.
        """
        with self._exclusive():
            if self._write is None and (self._is_slow or rewrites):
                for _ in range(ATTEMPTS):
                    results = self._change_on_snapshot(work)
                    if results:
                        return results[0]
            with self._transaction() as write:
                return self._timed(work, write)

    def _change_on_snapshot(self, work: Callable[[WriteEvent], T]) -> list[T]:
        """Run the function on the events as they are, and store its events if nobody wrote in the meantime.

        Returns:
            The result of the function; nothing if others wrote.
        """
        state = self._state
        state.replay(self._event_log.since(state.version))
        before = state.snapshot()
        state.restore_point = before
        appended: list[Event] = []
        others_wrote = False
        try:
            with self._writer(appended) as write:
                result = self._timed(work, write)
            check_cancelled()
            if appended:
                with self._event_log.transaction(before.version) as transaction:
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
    def _writer(self, appended: list[Event]) -> Iterator[WriteEvent]:
        """Yield the function that writes events to a list, and let it be that of the open transaction."""
        state = self._state

        def write(kind: str, action: Action | None = None, **details: Any) -> None:
            check_cancelled()
            if action is not None:
                details = action_to_details(state.config, action) | details
            for name in FREE_TEXTS & details.keys():
                if isinstance(details[name], str):
                    details[name] = visible(details[name])
            event = Event(state.version + 1, now(), visible(self.who), kind, details)
            models = state.apply(event, action)
            if models:
                details["models"] = {str(count): model for count, model in models.items()}
            appended.append(event)

        self._task = _current_task()
        self._token = object()
        self._write = write
        entered = _enclosing.set((*_enclosing.get(), self._token))
        try:
            yield write
        finally:
            self._write = None
            _enclosing.reset(entered)

    def _timed(self, work: Callable[[WriteEvent], T], write: WriteEvent) -> T:
        began = time.monotonic()
        worked = time.thread_time()
        try:
            return work(write)
        finally:
            elapsed = time.monotonic() - began
            self._is_slow = time.thread_time() - worked > SLOW_CHANGE or elapsed > SLOW_ELAPSED


def synchronized(cls: C) -> C:
    """Let every public method and property of a class of studies hold the lock of the study.

    Args:
        cls: A subclass of `TransactionalStudy`.

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
    def locked(self: TransactionalStudy, *args: Any, **kwargs: Any) -> T:
        outermost = self._before_lock()
        with self._lock:
            self._after_lock(outermost)
            try:
                return method(self, *args, **kwargs)
            except (TruvarError, Finished):
                raise
            except BaseException:
                self._state.distrust()
                raise

    return locked


def _current_task() -> Any:
    """Return the asyncio task that is running in this thread; None if there is none."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop is running
        return None
