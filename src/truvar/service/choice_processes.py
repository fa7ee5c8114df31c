"""Processes that make the choices of a server that take long.

A choice in a process of its own does not slow down other requests, can be given a time limit, and can be given up: the
process is ended. It stores its suggestions at the end, in one transaction, so that a choice which is given up leaves no
trace. Processes are started when they are needed and end after some idle minutes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from truvar import exceptions
from truvar.exceptions import ChoiceFailedError, Finished, TruvarError
from truvar.service import choices
from truvar.service.choices import ChoiceRequest

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


class ChoiceProcess:
    """One process and what it is doing.

    Args:
        process: The process.

    Attributes:
        name: Name of the study that it has open.
        is_busy: Whether it is choosing.
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

    async def choose(self, store: str, name: str, request: ChoiceRequest) -> Choice:
        """Have the process choose.

        Raises:
            ChoiceFailedError: If the process ends before it answers.
            Finished: If there is nothing to suggest.
            TruvarError: If the request has a mistake.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.name = name
        message = json.dumps({"store": store, "name": name, "request": asdict(request)})
        line = b""
        with suppress(ConnectionError):
            self._process.stdin.write(message.encode() + b"\n")
            await self._process.stdin.drain()
            line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            code = await self._process.wait()
            LOG.error("a process that made a choice for the study %r ended with code %s", name, code)
            raise ChoiceFailedError(
                "the process that made the choice ended unexpectedly, perhaps for lack of memory; nothing was changed: "
                "use a smaller domain or batch, or another policy"
            )
        found = json.loads(line)
        if "exception" in found:
            raise _exception(found["exception"], found["message"])
        return Choice(found["answer"], found["version"], found["seconds"])

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
    """The processes of a server.

    Args:
        store: URL of the store.
        count: Number of processes at most.
        seconds: Time limit of a choice.
    """

    def __init__(self, store: str, count: int, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
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
        async with self._free:
            process = await self._get(name)
            process.begin()
            answered = False
            try:
                async with asyncio.timeout(self._seconds):
                    choice = await process.choose(self._store, name, request)
                answered = True
                return choice
            except TimeoutError:
                raise ChoiceFailedError(
                    f"the choice took longer than the {self._seconds:g} s that this server allows; nothing was "
                    "changed: ask for fewer suggestions, use a smaller domain or another policy"
                ) from None
            except (Finished, TruvarError) as error:
                answered = not isinstance(error, ChoiceFailedError)
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
        process = ChoiceProcess(await _start())
        self._processes.append(process)
        return process


async def _start() -> asyncio.subprocess.Process:
    # The process must find the same modules as this one, and none in the working directory that this one did not.
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "truvar.service.choice_worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        limit=MAX_ANSWER,
    )


def _exception(class_name: str, message: str) -> Exception:
    """Return the exception that a process reported."""
    found = getattr(exceptions, class_name, None) or getattr(choices, class_name, None)
    is_known = isinstance(found, type) and issubclass(found, (TruvarError, Finished))
    return found(message) if is_known else TruvarError(message)  # type: ignore[misc]
