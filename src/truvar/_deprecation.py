"""Deprecated names of the public API.

Policy: a public name that is renamed keeps working under its old name for at least two minor
releases. Every use of the old name raises a `DeprecationWarning` that says the new name and the
release in which the old one goes. The changelog lists each rename under the release that made it,
and each removal under the release that removes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def warn_deprecated(old: str, new: str, *, removed_in: str, stacklevel: int = 2) -> None:
    """Warn that a name is deprecated.

    Args:
        old: The deprecated name, as a caller writes it.
        new: The name to use instead.
        removed_in: The release that removes the old name.
        stacklevel: Frames between the caller to blame and this function; 2 is the caller of the
            function that warns.
    """
    message = f"{old} is deprecated and will be removed in truvar {removed_in}; use {new} instead"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


class deprecated_attribute:
    """An old name of an attribute of instances; reading it warns.

    Args:
        new: The attribute's present name.
        removed_in: The release that removes the old name.
    """

    def __init__(self, new: str, *, removed_in: str) -> None:
        self._new = new
        self._removed_in = removed_in
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __set__(self, instance: object, value: Any) -> None:
        name = type(instance).__name__
        warn_deprecated(f"{name}.{self._old}", f"{name}.{self._new}", removed_in=self._removed_in)
        setattr(instance, self._new, value)

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        warn_deprecated(
            f"{owner.__name__}.{self._old}",
            f"{owner.__name__}.{self._new}",
            removed_in=self._removed_in,
        )
        return getattr(instance, self._new)


def deprecated_fields(*, removed_in: str, **renamed: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that accepts old names of fields of a dataclass, and warns.

    Args:
        removed_in: The release that removes the old names.
        **renamed: From old names to present ones.

    Example:
        @deprecated_fields(removed_in="0.5.0", every="refit_every")
        @dataclass(frozen=True)
        class Learned:
            refit_every: int | None = None
    """

    def decorate(cls: type[T]) -> type[T]:
        initialize = cls.__init__

        @wraps(initialize)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            for old in renamed.keys() & kwargs.keys():
                new = renamed[old]
                if new in kwargs:
                    raise TypeError(f"{cls.__name__} got both {new} and {old}, its old name")
                warn_deprecated(
                    f"{cls.__name__}({old}=...)",
                    f"{cls.__name__}({new}=...)",
                    removed_in=removed_in,
                )
                kwargs[new] = kwargs.pop(old)
            initialize(self, *args, **kwargs)

        cls.__init__ = __init__  # type: ignore[method-assign]
        for old, new in renamed.items():
            attribute = deprecated_attribute(new, removed_in=removed_in)
            attribute.__set_name__(cls, old)
            setattr(cls, old, attribute)
        return cls

    return decorate


class deprecated_alias:
    """An old name of a method or class method.

    Looking the name up does not warn, so that introspection stays silent; calling it does.

    Args:
        new: The method's present name.
        removed_in: The release that removes the old name.

    Example:
        class Study:
            def lookahead(self, suggestion): ...

            outlook = deprecated_alias("lookahead", removed_in="0.4.0")
    """

    def __init__(self, new: str, *, removed_in: str) -> None:
        self._new = new
        self._removed_in = removed_in
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object | None, owner: type) -> Callable[..., Any]:
        method = getattr(owner if instance is None else instance, self._new)
        old = f"{owner.__name__}.{self._old}"
        new = f"{owner.__name__}.{self._new}"

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            warn_deprecated(old, new, removed_in=self._removed_in)
            return method(*args, **kwargs)

        return call


def renamed_arguments(removed_in: str, **renamed: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator of a class that still takes arguments by their old names, with a warning.

    Args:
        removed_in: The release that removes the old names.
        **renamed: Old name -> present name.

    Example:
        @renamed_arguments("0.5.0", returns="must_return")
        @dataclass(frozen=True)
        class Cost: ...
    """

    def decorate(decorated: type[T]) -> type[T]:
        original: Any = decorated.__init__

        @wraps(original)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            for old in renamed.keys() & kwargs.keys():
                new = renamed[old]
                name = decorated.__name__
                warn_deprecated(f"{name}({old}=)", f"{name}({new}=)", removed_in=removed_in)
                if new in kwargs:
                    raise TypeError(f"{name} got both {old} and {new}; give {new} alone")
                kwargs[new] = kwargs.pop(old)
            original(self, *args, **kwargs)

        decorated.__init__ = init  # type: ignore[method-assign]
        return decorated

    return decorate


def deprecated_argument(old: str, new: str, *, removed_in: str) -> Callable[[F], F]:
    """Return a decorator that accepts an old name of a keyword argument, and warns.

    Args:
        old: The old name.
        new: The argument's present name.
        removed_in: The release that removes the old name.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                if new in kwargs:
                    raise TypeError(f"{name} got both {new} and {old}, its old name")
                warn_deprecated(f"{name}({old}=...)", f"{name}({new}=...)", removed_in=removed_in)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast(F, call)

    return decorate
