"""A process of a server for choices and uploads: `python -m truvar.service._choice_worker`.

It reads requests from its standard input and writes answers to its standard output, one JSON object
per line. It keeps the study of its last request open. When the server ends, so does the process,
whatever it is doing: a choice that was not stored leaves no trace.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from truvar.exceptions import Finished, StudyNotFoundError, TruvarError
from truvar.messages import interface
from truvar.service._choices import ChoiceRequest, suggest
from truvar.service._limits import ServiceLimits
from truvar.storage.rdb import RDBStorage
from truvar.study.study import Study

NICENESS = 5  # of the process, so that the server itself answers first


class OpenStudy:
    """The study that the process keeps open."""

    def __init__(self) -> None:
        self._key: tuple[str, str] | None = None
        self._study: Study | None = None

    def get(self, store: str, name: str) -> Study:
        """Return a study of a store.

        Raises:
            StudyNotFoundError: If there is no such study.
            DamagedStudyError: If its events cannot be read.
        """
        if self._study is None or self._key != (store, name):
            self.forget()
            event_log = RDBStorage(store).find_event_log(name)
            if event_log is None:
                raise StudyNotFoundError(
                    f"there is no study {name!r}; GET /api/studies lists the studies"
                )
            self._study = Study.from_event_log(event_log, name, author="service")
            self._key = (store, name)
        return self._study

    def forget(self) -> None:
        """Close the study."""
        self._key = None
        self._study = None


def answer(opened: OpenStudy, line: bytes) -> dict[str, Any]:
    """Return the answer to a request.

    Args:
        opened: The study that is open.
        line: The request in JSON.
    """
    content = json.loads(line)
    if "upload" in content:
        return _answer_upload(content)
    request = ChoiceRequest.from_dict(content["request"])
    began = time.process_time()
    try:
        with interface(request.interface):
            study = opened.get(content["store"], content["name"])
            began = time.process_time()
            study.refresh()
            found = suggest(study, request)
    except Finished as end:
        return {"exception": type(end).__name__, "message": end.reason}
    except TruvarError as error:
        opened.forget()  # a damaged study is read again
        return {"exception": type(error).__name__, "message": str(error)}
    return {"answer": found, "version": study.version, "seconds": time.process_time() - began}


def _answer_upload(content: Mapping[str, Any]) -> dict[str, Any]:
    from truvar.service._uploads import (
        Upload,
        handle_upload,
    )  # imports slowly, and choices do not need it

    upload = Upload(**content["upload"])
    try:
        with interface(upload.interface):
            found, _ = handle_upload(upload, content["store"], ServiceLimits(**content["limits"]))
    except TruvarError as error:
        return {"exception": type(error).__name__, "message": str(error)}
    return {"answer": found.decode()}


def _read_requests(requests: queue.SimpleQueue[bytes], source: IO[bytes]) -> None:
    """Pass requests on, and end the process when the server closes the connection."""
    for line in source:
        requests.put(line)  # nosec B113
    os._exit(0)


def main() -> None:
    """Answer requests until the server closes the connection."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C in a terminal is for the server, which ends this process
    os.nice(NICENESS)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # what libraries print must not get between the answers
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests, sys.stdin.buffer), daemon=True).start()
    opened = OpenStudy()
    while True:
        line = requests.get()  # nosec B113
        answers.write(json.dumps(answer(opened, line)).encode() + b"\n")


if __name__ == "__main__":
    main()
