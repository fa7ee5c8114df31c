"""Quantities of a study: their models, and values that are told of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truvar.algorithm._several import SeveralLearner
from truvar.domain.costs import NoiseLevels
from truvar.domain.goals import Goal
from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError, InvalidModelError
from truvar.messages import for_interface, unknown_name
from truvar.models.priors import Learned, Prior, Quantity
from truvar.study._inputs import as_label, check_label, check_only_value, is_named
from truvar.study.records import RESERVED_COLUMNS
from truvar.study.suggestion import Suggestion
from truvar.validation import check_finite

if TYPE_CHECKING:
    from truvar.domain.domain import Domain
    from truvar.study._events import StudyConfig
    from truvar.study._state import StudyState
    from truvar.study.commands import Tell


def family_of(kernel: Any, transform: Any) -> Any:
    """Return the kernel, or `Learned(...)` for a name or None, with the transform given."""
    if kernel is None or isinstance(kernel, str):
        kernel = Learned(kernel or "matern52")
    if transform is None:
        return kernel
    if not isinstance(kernel, Learned):
        raise InvalidModelError(
            f"transform={transform!r} is for a learned model, got the known kernel {kernel}; leave "
            "out the kernel to "
            "learn it, or leave out the transform and give transformed values"
        )
    return replace(kernel, transform=transform)


def check_quantities(given: Any, goal: Goal, prior: Prior, domain: Domain) -> dict[str, Quantity]:
    """Return the settings of the quantities of a study.

    Args:
        given: Settings by the name of the quantity; None: none.
        goal: The goal of the study.
        prior: Its model.
        domain: Its domain.

    Raises:
        InvalidArgumentError: If the goal has no such quantity, the settings are something else, or
            a table of measurements has another column of that name.
    """
    names = list(goal.parts)
    if not names:
        if given:
            raise InvalidArgumentError(
                f"quantities are for goals of several, such as AllOf(...), got the goal {goal}; "
                "leave them out"
            )
        return {}
    for name in names:
        _check_name(name, domain)
    if prior.tasks is not None or isinstance(prior.noise, NoiseLevels):
        what = "tasks" if prior.tasks is not None else "noise levels"
        raise InvalidArgumentError(
            f"{what} are for studies of one quantity, got {len(names)} of them; leave {what} out, "
            "or give a cost of each quantity"
        )
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgumentError(
            f"quantities must be Quantity(...) by name, got {given!r}; give such as "
            f"{{{names[0]!r}: Quantity(noise=0.1)}}"
        )
    for name, quantity in (given or {}).items():
        if name not in names:
            raise InvalidArgumentError(unknown_name("quantity", str(name), names))
        if not isinstance(quantity, Quantity):
            raise InvalidArgumentError(
                f"the quantity {name!r} must be an object Quantity(...), got {quantity!r}; give "
                "such as Quantity(noise=0.1)"
            )
    return dict(given or {})


def name_of_quantity(quantity: Any, goal: Goal) -> Any:
    """Return the name of what is measured: that of the study, or else the one that its goal has.

    Args:
        quantity: The name that the study was given; None: none.
        goal: The goal, whose `of` names the quantity that it is about.

    Raises:
        InvalidArgumentError: If the two differ.
    """
    of = None if goal.parts else getattr(goal, "of", None)
    if quantity is None or of is None or quantity == of:
        return of if quantity is None else quantity
    raise InvalidArgumentError(
        f"the goal is about the quantity {of!r}, but quantity={quantity!r} was given; give one of "
        "them"
    )


def _check_name(name: str, domain: Domain) -> None:
    """Check that no other column of a table of measurements has the name of a quantity.

    Raises:
        InvalidArgumentError: If one has.
    """
    if name in domain.columns:
        raise InvalidArgumentError(
            f"the goal is about the quantity {name!r}, which is a column of the domain and not "
            "measured; rename one of them, or give conditions on columns as constraints of the "
            "domain"
        )
    if name in RESERVED_COLUMNS:
        raise InvalidArgumentError(
            f"a quantity must not be called {name!r}, as tables of measurements have a column of "
            f"that name; rename it, such as {name + '_measured'!r}"
        )


def several_learner(config: StudyConfig) -> SeveralLearner:
    """Return the learner of several quantities before the first measurement."""
    priors = {}
    for name in config.goal.parts:
        own = config.quantities.get(name, Quantity())
        kernel = config.prior.kernel
        if own.kernel is not None or own.transform is not None:
            kernel = family_of(kernel if own.kernel is None else own.kernel, own.transform)
        changes: dict[str, Any] = {"kernel": kernel}
        for part in ("mean", "noise"):
            if getattr(own, part) is not None:
                changes[part] = getattr(own, part)
        priors[name] = replace(config.prior, **changes)
    costs = {name: each.cost for name, each in config.quantities.items() if each.cost is not None}
    return SeveralLearner(
        config.domain,
        config.goal,
        config.policy,
        priors,
        config.cost,
        costs,
        config.seed,
        config.engine,
        config.repeats,
    )


def check_values(config: StudyConfig, y: Any) -> Any:
    """Return what was measured: a number, or a number by quantity where the goal has several.

    Args:
        config: The settings of the study.
        y: What the caller told; quantities that are missing or None were not measured.

    Raises:
        InvalidMeasurementError: If a quantity is unknown, none has a value, or one is no number.
    """
    names = list(config.goal.parts)
    outcome = config.prior.outcome
    if not names:
        if type(y) is float:  # what is told most often
            return y
        if not is_named(y):
            return check_label(y, outcome)
        _check_own_name(config, y)
        return check_label(check_only_value(y), outcome)
    example = ", ".join(f"{name!r}: 0.5" for name in names)
    remedy = for_interface(
        f"give {{{example}}}",
        cli=f"write {' '.join(f'{name}=0.5' for name in names)}",
        http=f'give "y": {{{example}}}'.replace("'", '"'),
    )
    if hasattr(y, "items") and not isinstance(y, Mapping):
        y = dict(y.items())
    if not isinstance(y, Mapping):
        if len(names) == 1:
            y = {names[0]: y}
        else:
            raise InvalidMeasurementError(
                f"this study has the quantities {', '.join(names)}, got the single value {y!r}; "
                f"{remedy}"
            )
    values: dict[str, float] = {}
    for name, value in y.items():
        if name not in names:
            raise InvalidMeasurementError(unknown_name("quantity", str(name), names))
        if value is None or (isinstance(value, float) and value != value):
            continue
        try:
            label = as_label(value)
            if label is not None:
                values[name] = check_label(label, outcome)
                continue
            values[name] = check_finite(value, f"the value of {name}")
        except InvalidArgumentError as error:
            raise InvalidMeasurementError(str(error)) from None
    if not values:
        raise InvalidMeasurementError(
            f"at least one of the quantities {', '.join(names)} must have a value, got none; "
            f"{remedy}, or say that the measurement failed"
        )
    return {name: values[name] for name in names if name in values}


def _check_own_name(config: StudyConfig, y: Any) -> None:
    """Check that the value of a study with a named quantity is not one of another quantity.

    Raises:
        InvalidMeasurementError: If it has another name.
    """
    if config.quantity is None or not isinstance(y, Mapping):
        return
    for name in y:
        if name != config.quantity:
            raise InvalidMeasurementError(unknown_name("quantity", str(name), [config.quantity]))


def with_known_values(state: StudyState, id_: int, y: Any) -> Any:
    """Return corrected values with those of the other quantities that the measurement has.

    Args:
        state: The state of the study.
        id_: The measurement.
        y: The correction; a quantity whose value is None is left without one.
    """
    observation = state.observation(id_)
    if observation is None or not isinstance(observation[1], Mapping) or not is_named(y):
        return y
    return {**observation[1], **dict(y.items())}


def format_values(y: Any, *, python: bool = False, cli: bool = False, http: bool = False) -> str:
    """Return a value, or the values of several quantities, for messages.

    Args:
        y: The value, or the values by quantity.
        python: Whether they are written as in a call.
        cli: Whether they are written as words of the command line.
        http: Whether they are written as in a request.
    """
    if not isinstance(y, Mapping):
        return f"{y:.10g}"
    if cli:
        return " ".join(shlex.quote(f"{name}={value:.10g}") for name, value in y.items())
    if http:
        return json.dumps({name: float(f"{value:.10g}") for name, value in y.items()})
    if python:
        return f"{{{', '.join(f'{name!r}: {value:.10g}' for name, value in y.items())}}}"
    return ", ".join(f"{name} {value:.10g}" for name, value in y.items())


def check_noise_told(goal: Goal, noise: float | None) -> None:
    """Check that no noise comes with the values of several quantities.

    Raises:
        InvalidMeasurementError: If one does.
    """
    if noise is not None and len(goal.parts) > 1:
        raise InvalidMeasurementError(
            f"the noise of a measurement is for studies of one quantity, got {noise:g} for several; "
            "give the noise of each when the study is created: quantities={...}"
        )


def level_told(state: StudyState, command: Tell, values: Any) -> int | None:
    """Return the column of the candidate table that a told measurement belongs to.

    Args:
        state: The state of the study.
        command: The measurement.
        values: Its checked values.
    """
    learner = state.learner
    if isinstance(learner, SeveralLearner) and not isinstance(command.what, Suggestion | int):
        return learner.level_of(values)
    return command.level
