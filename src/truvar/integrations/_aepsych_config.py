"""Read an experiment from the settings that clients of AEPsych send: a text in INI format."""

from __future__ import annotations

from collections.abc import Mapping
from configparser import ConfigParser, SectionProxy
from configparser import Error as ConfigError
from dataclasses import dataclass
from math import isfinite
from typing import Any

from truvar.domain.box import box_fields
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal, LevelSet, Maximize
from truvar.domain.parameters import Categorical, Integer, Log, Ordinal
from truvar.exceptions import InvalidArgumentError
from truvar.messages import unknown_name

_OUTCOMES = {"binary": "binary", "continuous": None}  # names there, and of `Study(outcome=...)`
_COUNTS = ("min_asks", "n_trials", "min_total_tells")  # names of the number of trials, by release
_TRUE = ("true", "yes", "1", "on")


@dataclass(frozen=True)
class Experiment:
    """An experiment as the settings describe it.

    Attributes:
        domain: The parameters that are searched.
        fixed: Parameters with one value, which every answer has.
        goal: The level set of `target`, if there is one, otherwise the maximum.
        outcome: "binary", or None for numbers.
        n_trials: Number of trials after which it is finished; None: never.
        strategies: Names of the strategies, of which only the number of trials counts.
        name: Name by the section `metadata`; None without one.
        sections: The settings, by section.
    """

    domain: Domain
    fixed: Mapping[str, Any]
    goal: Goal
    outcome: str | None
    n_trials: int | None
    strategies: tuple[str, ...]
    name: str | None
    sections: Mapping[str, Mapping[str, str]]


def read_experiment(text: str, *, representers: int, seed: int) -> Experiment:
    """Read an experiment.

    Args:
        text: The settings.
        representers: Number of points that the model is evaluated at; see `Domain.box`.
        seed: Seed of these points.

    Raises:
        InvalidArgumentError: If the text cannot be read, or asks for something else than one
            outcome of single stimuli.
    """
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except ConfigError as error:
        message = " ".join(str(error).split())
        raise InvalidArgumentError(
            f"the settings must be a text in INI format: {message}; fix it"
        ) from None
    if not parser.has_section("common"):
        raise InvalidArgumentError(
            f"the settings need a section [common], got {parser.sections()}; add it"
        )
    common = parser["common"]
    if int(_number(common.get("stimuli_per_trial", "1"), "stimuli_per_trial")) != 1:
        raise InvalidArgumentError(
            "one stimulus per trial can be compared with a threshold, got stimuli_per_trial = "
            f"{common['stimuli_per_trial']}; give 1"
        )
    sides, fixed = _parameters(parser)
    strategies = tuple(_items(common.get("strategy_names", "")))
    return Experiment(
        domain=Domain(**box_fields(sides, representers, seed)),
        fixed=fixed,
        goal=_goal(parser),
        outcome=_outcome(common),
        n_trials=_n_trials(parser, strategies),
        strategies=strategies,
        name=_name(parser),
        sections={name: dict(parser[name]) for name in parser.sections()},
    )


def _parameters(parser: ConfigParser) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sides of the box, and the parameters with one value."""
    common = parser["common"]
    names = _items(common.get("parnames", ""))
    if not names:
        raise InvalidArgumentError("parnames must name a parameter, got none; give parnames = [x]")
    lows = _items(common.get("lb", ""))
    highs = _items(common.get("ub", ""))
    sides: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    for position, name in enumerate(names):
        if not parser.has_section(name):
            if position >= min(len(lows), len(highs)):
                raise InvalidArgumentError(
                    f"parameter {name!r} needs bounds, got none; add a section [{name}] with "
                    "lower_bound and upper_bound"
                )
            sides[name] = (_number(lows[position], "lb"), _number(highs[position], "ub"))
            continue
        section = parser[name]
        if section.get("par_type", "continuous").strip() == "fixed":
            fixed[name] = _value(section.get("value", ""))
        else:
            sides[name] = _side(name, section)
    if not sides:
        raise InvalidArgumentError("a parameter must vary, got only fixed ones; give one bounds")
    return sides, fixed


def _side(name: str, section: SectionProxy) -> Any:
    """Return a parameter as an argument of `Domain.box`."""
    kind = section.get("par_type", "continuous").strip()
    if kind in ("categorical", "discrete"):
        choices = [_value(each) for each in _items(section.get("choices", ""))]
        are_numbers = all(isinstance(each, float) for each in choices)
        return Ordinal(sorted(choices)) if are_numbers and choices else Categorical(choices)
    if kind == "binary":
        return Integer(0, 1)
    if kind not in ("continuous", "integer"):
        known = ("continuous", "integer", "binary", "categorical", "discrete", "fixed")
        raise InvalidArgumentError(unknown_name(f"par_type of {name!r}:", kind, known))
    low = _number(section.get("lower_bound", ""), f"lower_bound of {name!r}")
    high = _number(section.get("upper_bound", ""), f"upper_bound of {name!r}")
    if kind == "integer":
        return Integer(int(low), int(high))
    is_log = section.get("log_scale", "").strip().lower() in _TRUE
    return Log(low, high) if is_log else (low, high)


def _goal(parser: ConfigParser) -> Goal:
    """Return the level set of the first `target`, otherwise the maximum."""
    for name in ("common", *parser.sections()):
        target = parser[name].get("target")
        if target is not None:
            return LevelSet(_number(target, f"target of [{name}]"))
    return Maximize()


def _outcome(common: SectionProxy) -> str | None:
    kinds = _items(common.get("outcome_types", common.get("outcome_type", "binary")))
    if len(kinds) != 1:
        raise InvalidArgumentError(
            f"outcome_types must name one outcome, got {kinds}; give outcome_types = [binary]"
        )
    kind = {"single_probit": "binary", "single_continuous": "continuous"}.get(kinds[0], kinds[0])
    if kind not in _OUTCOMES:
        raise InvalidArgumentError(unknown_name("outcome type", kind, _OUTCOMES))
    return _OUTCOMES[kind]


def _n_trials(parser: ConfigParser, strategies: tuple[str, ...]) -> int | None:
    total = 0
    for name in strategies:
        if not parser.has_section(name):
            raise InvalidArgumentError(
                f"strategy_names has {name!r}, got no section [{name}]; add it"
            )
        given = [parser[name][each] for each in _COUNTS if each in parser[name]]
        total += int(_number(given[0], f"min_asks of [{name}]")) if given else 0
    return total or None


def _name(parser: ConfigParser) -> str | None:
    """Return the name of the study: those of experiment and participant."""
    if not parser.has_section("metadata"):
        return None
    section = parser["metadata"]
    parts = [section.get(key, "") for key in ("name", "experiment_name", "participant_id")]
    return "-".join(part.strip() for part in parts if part.strip()) or None


def _items(text: str) -> list[str]:
    """Return the items of a list such as `[a, 'b']`, or of `a, b`."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    return [each.strip().strip("'\"") for each in inner.split(",") if each.strip()]


def _number(text: str, what: str) -> float:
    value = _value(text)
    if not isinstance(value, float):
        raise InvalidArgumentError(f"{what} must be a finite number, got {text!r}; give one")
    return value


def _value(text: str) -> float | str:
    """Return a finite number if the text is one, otherwise the text."""
    plain = text.strip().strip("'\"")
    try:
        number = float(plain)
    except ValueError:
        return plain
    return number if isfinite(number) else plain
