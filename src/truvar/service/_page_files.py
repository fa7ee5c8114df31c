"""The files of the page, and the script of its service worker.

The worker keeps the page for the time without a network. The server puts two constants in front of
`static/worker.js`: the names of the files, and a version that is another one as soon as any of them
changes. A browser compares the bytes of the script on every visit, so that a new release replaces
all that was kept.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import truvar

STATIC = Path(__file__).parent / "static"
_WORKER = "worker.js"
_VERSION_DIGITS = 16  # of the digest of the files


def worker_script(folder: Path = STATIC) -> str:
    """Return the script of the service worker.

    Args:
        folder: Folder of the files of the page.
    """
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _WORKER)
    digest = hashlib.sha256(truvar.__version__.encode())
    for path in paths:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    # The address of the page itself is that of the folder, not of its index.
    names = ["./", *(f"page/{path.name}" for path in paths if path.name != "index.html")]
    version = f"{truvar.__version__}-{digest.hexdigest()[:_VERSION_DIGITS]}"
    constants = f"const VERSION = {json.dumps(version)};\nconst FILES = {json.dumps(names)};\n"
    return constants + (folder / _WORKER).read_text(encoding="utf-8")
