"""The session of a study: event log, state, and the lock and transactions that join them.

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
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, Self, TypeVar

from truvar._representation import visible
from truvar.domain.action import Action
from truvar.exceptions import ChangeCancelledError, Finished, StudyBusyError, TruvarError
from truvar.storage.base import Event, EventLog, now
from truvar.storage.forks import Lock, let_fork, locked_objects
from truvar.study._events import action_to_details
from truvar.study._state import StudyState

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])
# seconds of processor time; after a longer change the next one is computed without the write lock
MAX_QUICK_CPU_SECONDS = 0.1
# seconds; the same for one that waits. On a busy machine every change takes a multiple of its time
MAX_QUICK_SECONDS = 1.0
MAX_UNLOCKED_ATTEMPTS = (
    3  # to store a change that was computed without the write lock; then it is computed with it
)
FREE_TEXTS = ("reason", "text")  # details of events that people write
# public members of a study that take its lock step by step, or read nothing that is half changed
UNLOCKED = frozenset({"run", "transaction", "domain", "goal"})
TASK_POLL_SECONDS = 0.001  # between two looks at a task that has a transaction open


class EventWriter:
    """Writes the events of one transaction. As a context manager it is that transaction.

    Args:
        session: The session of the study.
        author: Author of the events.
        appended: List that the events are appended to.
        cancelled: Set by others once nobody waits for the change any longer; None: it is wanted.

    Attributes:
        author: Author of the events.
        task: The asyncio task that the transaction belongs to; None: no task.
    """

    def __init__(
        self,
        session: StudySession,
        author: str,
        appended: list[Event],
        cancelled: threading.Event | None = None,
    ) -> None:
        self.author = author
        self.task = _current_task()
        self._session = session
        self._appended = appended
        self._cancelled = cancelled

    def __enter__(self) -> Self:
        self._session.writer = self
        return self

    def __exit__(self, *_: object) -> None:
        self._session.writer = None

    def __call__(self, kind: str, action: Action | None = None, **details: Any) -> None:
        """Append an event to the log and take its effect.

        Args:
            kind: Kind of the event.
            action: The action that it is about, if any.
            **details: Its other details.
        """
        self.check_wanted()
        state = self._session.state
        if action is not None:
            details = action_to_details(state.config, action) | details
        for name in FREE_TEXTS:
            if isinstance(details.get(name), str):
                details[name] = visible(details[name])
        if kind == "told" and state.defers_values:
            details["with_next"] = True
        event = Event(state.version + 1, now(), visible(self.author), kind, details)
        models = state.apply(event, action)
        if models:
            details["models"] = {str(key): model for key, model in models.items()}
        self._appended.append(event)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have a learned model take the values told within after the last of them.

        The events say so, and a replay does the same. If one of the values is refused, none has
        taken effect.
        """
        state = self._session.state
        if not any(each.surrogate.is_refitted for each in state.learner.learners.values()):
            yield
            return
        n_before = len(self._appended)
        try:
            with state.deferred_values() as models:
                yield
        except BaseException:
            del self._appended[n_before:]
            raise
        if len(self._appended) == n_before:
            return
        last = self._appended[-1].details
        del last["with_next"]
        if models:
            last["models"] = {str(key): model for key, model in models.items()}

    def check_wanted(self) -> None:
        """Check that the change is still wanted: between two events, and before they are stored.

        Raises:
            ChangeCancelledError: If it was cancelled. It leaves no trace then.
        """
        if self._cancelled is not None and self._cancelled.is_set():
            raise ChangeCancelledError(
                "the change was cancelled before it was stored; nothing was changed"
            )


class StudySession:
    """The event log and the state of a study, which one thread at a time uses.

    Args:
        state: The state after all events of the log.
        event_log: The event log.

    Attributes:
        state: The state.
        event_log: The event log.
        writer: Writes the events of the open transaction; None: there is none.
    """

    def __init__(self, state: StudyState, event_log: EventLog) -> None:
        self.state = state
        self.event_log = event_log
        self.writer: EventWriter | None = None
        self._lock = threading.RLock()
        locked_objects.add(self)
        self._is_slow = True  # whether the last change took long, or there was none yet

    @property
    def fork_lock(self) -> Lock:
        """The lock of the study, which a fork takes."""
        return self._lock

    def unlock_in_child(self) -> None:
        """Replace the lock after a fork, and have a half-made change undone before the next use."""
        self._lock = threading.RLock()
        self.writer = None
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
            StudyBusyError: If it is held by a transaction that may wait for this thread.
        """
        outermost = not self._lock._is_owned()  # type: ignore[attr-defined]
        if outermost:
            let_fork()
            writer = self.writer
            if writer is not None and writer.task is not None:
                self._await_task(writer)
        return outermost

    def _await_task(self, writer: EventWriter) -> None:
        """Wait until an asyncio task has ended its transaction, unless the task itself waits.

        Raises:
            StudyBusyError: If the task awaits something, which may be this thread.
        """
        while self.writer is writer:
            is_suspended = asyncio.current_task(writer.task.get_loop()) is not writer.task
            if is_suspended and self.writer is writer:
                raise StudyBusyError(
                    "an asyncio task awaits something within a transaction of this study, and may "
                    "wait for this thread; end the transaction first"
                )
            time.sleep(TASK_POLL_SECONDS)

    def _after_lock(self, outermost: bool) -> None:
        """Prepare the study for the thread that has just taken its lock.

        Raises:
            StudyBusyError: If another task of this thread has a transaction open.
        """
        if (
            outermost
        ):  # whatever is left of a transaction was left by an interrupt at an awkward moment
            self.writer = None
            if self.state.restore_point is not None:
                self.state.restore()
        elif self.writer is not None and self.writer.task is not _current_task():
            raise StudyBusyError(
                "another asyncio task has a transaction of this study open; do not await within a "
                "transaction, or "
                "guard the study with an asyncio.Lock"
            )

    @contextmanager
    def transaction(self, author: str) -> Iterator[EventWriter]:
        """Yield a function that writes events, in an exclusive transaction on the log.

        The study first replays what others wrote. An event takes effect immediately and is stored
        when the transaction ends; if that fails, its effect is undone. Within a transaction, a
        further one is part of it.

        Args:
            author: Author of the events.
        """
        outermost = self._before_lock()
        with self._lock:
            self._after_lock(outermost)
            if self.writer is not None:
                yield self.writer
                return
            with self._locked_transaction(author) as write:
                yield write

    @contextmanager
    def _locked_transaction(
        self, author: str, cancelled: threading.Event | None = None
    ) -> Iterator[EventWriter]:
        """Open a transaction on the event log; the caller has the lock and no transaction yet."""
        state = self.state
        began = False
        try:
            with self.event_log.transaction(state.version) as transaction:
                if transaction.new_events:
                    state.replay(transaction.new_events)
                before = state.snapshot()
                began = True
                state.restore_point = before
                with EventWriter(self, author, transaction.appended, cancelled) as write:
                    yield write
                write.check_wanted()
                transaction.summary = state.summary
            state.restore_point = None
        except BaseException:
            if began:
                state.rollback(before)
            raise

    def change(
        self,
        work: Callable[[EventWriter], T],
        author: str,
        *,
        rewrites: bool = False,
        cancelled: threading.Event | None = None,
    ) -> T:
        """Run a function that writes events, and store them. The caller has the lock of the study.

        Args:
            work: Function of the function that writes. It may be called several times. Only the
                events of the last call are stored; the others leave no trace.
            author: Author of the events.
            rewrites: Whether the change concerns an earlier measurement, so that all later ones are
                taken in again, which takes long with a learned model. It is then made before others
                are kept from writing.
            cancelled: Set by others once nobody waits for the change any longer.

        Returns:
            The result of `work`.
        """
        if self.writer is not None:
            return work(self.writer)
        if self._is_slow or rewrites:
            for _ in range(MAX_UNLOCKED_ATTEMPTS):
                results = self._change_on_snapshot(work, author, cancelled)
                if results:
                    return results[0]
        with self._locked_transaction(author, cancelled) as write:
            return self._timed(work, write)

    def _change_on_snapshot(
        self, work: Callable[[EventWriter], T], author: str, cancelled: threading.Event | None
    ) -> list[T]:
        """Run the function without the write lock, and store its events if nobody else wrote.

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
            with EventWriter(self, author, appended, cancelled) as write:
                result = self._timed(work, write)
            write.check_wanted()
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

    def _timed(self, work: Callable[[EventWriter], T], write: EventWriter) -> T:
        began = time.monotonic()
        worked = time.thread_time()
        try:
            return work(write)
        finally:
            elapsed = time.monotonic() - began
            self._is_slow = (
                time.thread_time() - worked > MAX_QUICK_CPU_SECONDS or elapsed > MAX_QUICK_SECONDS
            )

    def refresh(self) -> None:
        """Replay the events that others wrote."""
        if (
            self.writer is None
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
