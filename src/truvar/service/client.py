"""Deprecated address of `truvar.remote`, where the client of a server is now."""

from __future__ import annotations

from typing import Any

from truvar._deprecation import warn_deprecated

_MODULES = {"RemoteStudy": "study", "Server": "client", "connect": "client"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = f"truvar.remote.{_MODULES[name]}"
    warn_deprecated(f"{__name__}.{name}", f"{module}.{name}", removed_in="0.5.0")
    return getattr(import_module(module), name)
