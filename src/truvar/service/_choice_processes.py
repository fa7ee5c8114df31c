"""Processes that make the choices of a server, and handle the uploads, that take long.

Work in its own process does not slow down other requests, can be given a time limit, and can
be given up: the process is ended. It stores its result at the end, in one transaction, so that work
which is given up leaves no trace. Processes are started when they are needed and end after some
idle minutes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from truvar import exceptions
from truvar.exceptions import (
    ChoiceFailedError,
    Finished,
    LimitExceededError,
    ServiceError,
    TruvarError,
)
from truvar.service import _choices as choices
from truvar.service._choices import ChoiceRequest
from truvar.service._limits import ServiceLimits
from truvar.service._uploads import Upload

IDLE_SECONDS = 300.0  # after which a process without work ends
MAX_ANSWER = 64_000_000  # bytes of an answer
LOG = logging.getLogger("truvar.service")


@dataclass(frozen=True)
class Choice:
    """The result of a choice that was made in a process.

    Attributes:
        answer: The answer to the request.
        version: Version of the study after it.
        seconds: Processor time that it took.
    """

    answer: dict[str, Any]
    version: int
    seconds: float


class ProcessEndedError(Exception):
    """A process has ended before it answered."""


class ChoiceProcess:
    """One process and what it is doing.

    Args:
        process: The process.

    Attributes:
        name: Name of the study that it has open.
        is_busy: Whether it is at work.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._timer: asyncio.TimerHandle | None = None
        self.name: str | None = None
        self.is_busy = False

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.returncode is not None

    async def answer(self, name: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the process to a message about a study.

        Raises:
            ProcessEndedError: If the process ends before it answers.
            Finished: If there is nothing to suggest.
            TruvarError: If the request has a mistake.
        """
        assert self._process.stdin is not None  # nosec B101
        assert self._process.stdout is not None  # nosec B101
        self.name = name
        line = b""
        with suppress(ConnectionError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
            line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            code = await self._process.wait()
            LOG.error("a process that worked for the study %r ended with code %s", name, code)
            raise ProcessEndedError
        found: dict[str, Any] = json.loads(line)
        if "exception" in found:
            raise _exception(found["exception"], found["message"])
        return found

    def begin(self) -> None:
        """Mark the process as busy."""
        self.is_busy = True
        if self._timer is not None:
            self._timer.cancel()

    def end(self) -> None:
        """Mark the process as idle, and let it end if it stays so for long."""
        self.is_busy = False
        self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.kill)

    async def wait(self) -> None:
        """Wait until the process has ended and its pipes are closed."""
        await self._process.communicate()

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(ProcessLookupError):
            self._process.kill()


class ChoiceProcesses:
    """Some of the processes of a server, for choices or for uploads.

    Args:
        store: URL of the store.
        count: Number of processes at most.
        seconds: Time limit of a choice or upload.
        environment: Environment variables of the processes that differ from those of this one.
    """

    def __init__(
        self, store: str, count: int, seconds: float, environment: Mapping[str, str] | None = None
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._environment = environment or {}
        self._free = asyncio.Semaphore(count)
        self._processes: list[ChoiceProcess] = []

    async def choose(self, name: str, request: ChoiceRequest) -> Choice:
        """Choose in a process, as soon as one is free.

        Args:
            name: Name of the study.
            request: The request.

        Raises:
            ChoiceFailedError: If it takes longer than the time limit, or the process ends.
            Finished: If there is nothing to suggest.
            TruvarError: If the request has a mistake.
            OSError: If no process can be started.
        """
        try:
            found = await self._answer(
                name, {"store": self._store, "name": name, "request": asdict(request)}
            )
        except TimeoutError:
            raise ChoiceFailedError(
                f"the choice took longer than the {self._seconds:g} s that this server allows; "
                "nothing was "
                "changed: ask for fewer suggestions, use a smaller domain or another policy"
            ) from None
        except ProcessEndedError:
            raise ChoiceFailedError(
                "the process that made the choice ended unexpectedly, perhaps for lack of memory; "
                "nothing was changed: "
                "use a smaller domain or batch, or another policy"
            ) from None
        return Choice(found["answer"], found["version"], found["seconds"])

    async def upload(self, upload: Upload, limits: ServiceLimits) -> bytes:
        """Handle an upload in a process, as soon as one is free, and return the answer in JSON.

        Args:
            upload: The upload.
            limits: Limits of the server.

        Raises:
            LimitExceededError: If it takes longer than the time limit.
            ServiceError: If the process ends.
            TruvarError: If the upload has a mistake.
            OSError: If no process can be started.
        """
        message = {"store": self._store, "upload": asdict(upload), "limits": asdict(limits)}
        try:
            found = await self._answer(upload.name, message)
        except TimeoutError:
            raise LimitExceededError(
                f"what was sent takes longer than the {self._seconds:g} s that this server allows; "
                "nothing was "
                "changed: send a smaller one"
            ) from None
        except ProcessEndedError:
            raise ServiceError(
                "the process that read what was sent ended unexpectedly, perhaps for lack of "
                "memory; nothing was "
                "changed: send a smaller one"
            ) from None
        return str(found["answer"]).encode()

    async def _answer(self, name: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a process to a message; a process that does not answer is ended.

        Raises:
            TimeoutError: If it takes longer than the time limit.
            ProcessEndedError: If the process ends.
            Finished: If there is nothing to suggest.
            TruvarError: If the request has a mistake.
            OSError: If no process can be started.
        """
        async with self._free:
            process = await self._get(name)
            process.begin()
            answered = False
            try:
                async with asyncio.timeout(self._seconds):
                    found = await process.answer(name, message)
                answered = True
                return found
            except (Finished, TruvarError):
                answered = True
                raise
            finally:
                if answered:
                    process.end()
                else:  # the time is over, or the client has left
                    process.kill()  # and stays busy until it has ended

    async def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            await process.wait()
        self._processes.clear()

    async def _get(self, name: str) -> ChoiceProcess:
        """Return an idle process, one that has the study open if there is any."""
        self._processes = [process for process in self._processes if not process.has_ended]
        idle = [process for process in self._processes if not process.is_busy]
        idle.sort(key=lambda process: process.name != name)
        if idle:
            return idle[0]
        process = ChoiceProcess(await _start(self._environment))
        self._processes.append(process)
        return process


async def _start(environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    # The process must find the same modules as this one, and none in the working directory that
    # this one did not.
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "truvar.service._choice_worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **environment, "PYTHONPATH": path},
        limit=MAX_ANSWER,
    )


def _exception(class_name: str, message: str) -> Exception:
    """Return the exception that a process reported."""
    found = getattr(exceptions, class_name, None) or getattr(choices, class_name, None)
    is_known = isinstance(found, type) and issubclass(found, (TruvarError, Finished))
    return found(message) if is_known else TruvarError(message)  # type: ignore[misc]
