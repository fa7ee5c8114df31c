"""Create a study, or continue the stored one of the same name."""

from __future__ import annotations

from typing import Any

from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.exceptions import InvalidArgumentError, StudyExistsError
from truvar.storage.serialization import serialize
from truvar.study.stored import load
from truvar.study.study import Study


def create_or_continue(
    domain: Domain, goal: Goal, variables: str, **options: Any
) -> tuple[Study, bool]:
    """Return a new study, or the stored one of that name if it asks the same question.

    Args:
        domain: The domain.
        goal: The goal.
        variables: Name of what the domain is made from, for the message, such as "VOCS".
        **options: Further arguments of `Study`.

    Returns:
        The study, and whether it was continued.

    Raises:
        InvalidArgumentError: If the stored study has another domain or goal.
    """
    try:
        return Study(domain, goal, **options), False
    except StudyExistsError:
        author = options.get("author", options.get("who"))
        study = load(options["store"], options["name"], author)
    remedy = f"give another name, or the {variables} and goal that it was created with"
    if _variables(study.domain) != _variables(domain):
        raise InvalidArgumentError(
            f"the stored study {study.name!r} must have the variables of {variables}, {domain!r}, "
            f"got {study.domain!r}; {remedy}"
        )
    expected = study.policy.confidence.resolve_goal(goal)
    if serialize(study.goal) != serialize(expected):
        raise InvalidArgumentError(
            f"the stored study {study.name!r} must have the goal {expected!r}, got {study.goal!r}; "
            f"{remedy}"
        )
    return study, True


def _variables(domain: Domain) -> dict[str, Any]:
    """Return what a domain consists of; of a box, whichever representer points stand for it."""
    own = ("axes", "points") if domain.continuous else ()
    return {key: part for key, part in serialize(domain).items() if key not in own}
