"""Policies by the names that command line and problem files use, without importing any of them.

This module imports neither NumPy nor scikit-learn, so that the command line and the shell
completion can list the policies cheaply. To register a policy, add one line to `POLICY_MODULES` of
`truvar/_names.py`.
"""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from truvar._names import POLICY_MODULES
from truvar.exceptions import InvalidArgumentError, UnknownPolicyError
from truvar.messages import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from truvar.acquisition.base import Policy

DEFAULT_POLICY = "auto"  # of a study that is given none

POLICY_METHODS = ("check_supported", "candidate_rows", "score")  # what every policy must have

POLICY_NAMES: dict[str, str] = {"auto": "WeightedTruVaR"} | {
    class_name.lower(): class_name for class_name in POLICY_MODULES
}
"""Name in commands and problem files ("ei") -> class name ("EI"); "auto" is the default."""


def policy_class(name: str) -> Callable[..., Policy]:
    """Import and return the class of a policy.

    Args:
        name: Name at the command line, such as "ei".

    Raises:
        UnknownPolicyError: If there is no policy of that name.
    """
    if name not in POLICY_NAMES:
        raise UnknownPolicyError(
            f"unknown policy {name!r}; expected one of {', '.join(POLICY_NAMES)}"
        )
    class_name = POLICY_NAMES[name]
    found: Callable[..., Policy] = getattr(import_module(POLICY_MODULES[class_name]), class_name)
    return found


@cache
def policy_classes() -> dict[str, Callable[..., Policy]]:
    """Import all policies and return their classes by command-line name."""
    return {name: policy_class(name) for name in POLICY_NAMES}


def has_cost_option(policy: Callable[..., Policy]) -> bool:
    """Return whether a policy class has the option `per_cost`, which "/cost" turns on."""
    options: Any = policy
    return "per_cost" in {option.name for option in fields(options)}


def policy_named(policy: Policy | str) -> Policy:
    """Return a policy given by name or as an object.

    Args:
        policy: A policy, which is returned unchanged, or a name: "ei" is `EI()`, "ei/cost" is
            `EI(per_cost=True)`.

    Raises:
        UnknownPolicyError: If there is no policy of that name.
        InvalidArgumentError: If `policy` is neither a name nor a policy, or "/cost" does not apply.
    """
    if isinstance(policy, str):
        name, _, suffix = policy.partition("/")
        if name not in POLICY_NAMES or suffix not in ("", "cost"):
            if name not in POLICY_NAMES and get_close_matches(name, POLICY_NAMES):
                raise UnknownPolicyError(unknown_name("policy", name, POLICY_NAMES))
            names = ", ".join(POLICY_NAMES)
            raise UnknownPolicyError(
                f"unknown policy {policy!r}; expected one of {names}, optionally followed by "
                '"/cost"'
            )
        found = policy_class(name)
        if not suffix:
            return found()
        if not has_cost_option(found):
            raise InvalidArgumentError(
                f'{name} always divides by the cost, got {policy!r}; leave out "/cost"'
            )
        return found(per_cost=True)
    missing = [method for method in POLICY_METHODS if not hasattr(policy, method)]
    if isinstance(policy, type) or len(missing) == len(POLICY_METHODS):
        raise InvalidArgumentError(
            f"policy must be an object such as TruVaR() or a name, got {policy!r}"
        )
    if missing:
        raise InvalidArgumentError(
            f"policy must have the methods {', '.join(POLICY_METHODS)}, but {policy!r} has no "
            f"{' and no '.join(missing)}; add them, or derive its class from BasePolicy"
        )
    return policy
