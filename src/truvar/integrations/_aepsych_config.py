"""Read an experiment from the settings that clients of AEPsych send: a text in INI format."""

from __future__ import annotations

from collections.abc import Mapping
from configparser import ConfigParser, ExtendedInterpolation
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
_ASKS = ("min_asks", "n_trials")  # names of the trials that a strategy asks for, by release
_TELLS = "min_total_tells"  # of this strategy and those before it
_COMMON = "common"  # section whose settings hold in all others
_TRUE = ("true", "yes", "1", "on")

_Section = Mapping[str, str]


@dataclass(frozen=True)
class Experiment:
    """An experiment as the settings describe it.

    Attributes:
        domain: The parameters that are searched.
        names: The parameters, those with one value too, in the order of `parnames`.
        fixed: Parameters with one value, which every answer has.
        goal: The level set of `target`, if there is one, otherwise the maximum.
        outcome: "binary", or None for numbers.
        n_asks: Trials to ask for until it is finished; None: their number does not count.
        n_tells: Trials to tell until it is finished; None: their number does not count.
        strategies: Names of the strategies, of which only the number of trials counts.
        name: Name by the section `metadata`; None without one.
        sections: The settings, by section.
    """

    domain: Domain
    names: tuple[str, ...]
    fixed: Mapping[str, Any]
    goal: Goal
    outcome: str | None
    n_asks: int | None
    n_tells: int | None
    strategies: tuple[str, ...]
    name: str | None
    sections: Mapping[str, _Section]


def read_experiment(
    settings: str | Mapping[str, Any], *, representers: int, seed: int
) -> Experiment:
    """Read an experiment.

    Args:
        settings: The settings, as a text or by section.
        representers: Number of points that the model is evaluated at; see `Domain.box`.
        seed: Seed of these points.

    Raises:
        InvalidArgumentError: If the text cannot be read, or asks for something else than one
            outcome of single stimuli.
    """
    sections = _sections(settings)
    common = sections[_COMMON]
    if int(_number(common.get("stimuli_per_trial", "1"), "stimuli_per_trial")) != 1:
        raise InvalidArgumentError(
            "one stimulus per trial can be compared with a threshold, got stimuli_per_trial = "
            f"{common['stimuli_per_trial']}; give 1"
        )
    names = tuple(_items(common.get("parnames", "")))
    sides, fixed = _parameters(names, sections)
    strategies = tuple(_items(common.get("strategy_names", "")))
    n_asks, n_tells = _limits(strategies, sections)
    return Experiment(
        domain=Domain(**box_fields(sides, representers, seed)),
        names=names,
        fixed=fixed,
        goal=_goal(sections),
        outcome=_outcome(common),
        n_asks=n_asks,
        n_tells=n_tells,
        strategies=strategies,
        name=_name(sections),
        sections=sections,
    )


def _sections(settings: str | Mapping[str, Any]) -> dict[str, _Section]:
    """Return the settings by section; each has those of [common], too.

    The dialect is AEPsych's: `#` begins a comment also behind a value, and `${section:name}` is
    the value of another setting.
    """
    parser = ConfigParser(
        allow_no_value=True,
        default_section=_COMMON,
        empty_lines_in_values=False,
        inline_comment_prefixes=("#",),
        interpolation=ExtendedInterpolation(),
    )
    try:
        if isinstance(settings, str):
            parser.read_string(settings)
        else:
            parser.read_dict(settings)
        sections = {name: dict(parser[name]) for name in parser}
    except ConfigError as error:
        message = " ".join(str(error).split())
        raise InvalidArgumentError(
            f"the settings must be a text in INI format: {message}; fix it"
        ) from None
    if not sections[_COMMON]:
        raise InvalidArgumentError(
            f"the settings need a section [common], got {parser.sections()}; add it"
        )
    return {
        name: {key: value or "" for key, value in part.items()} for name, part in sections.items()
    }


def _parameters(
    names: tuple[str, ...], sections: Mapping[str, _Section]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sides of the box, and the parameters with one value."""
    if not names:
        raise InvalidArgumentError("parnames must name a parameter, got none; give parnames = [x]")
    lows = _items(sections[_COMMON].get("lb", ""))
    highs = _items(sections[_COMMON].get("ub", ""))
    sides: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    for position, name in enumerate(names):
        if name not in sections:
            if position >= min(len(lows), len(highs)):
                raise InvalidArgumentError(
                    f"parameter {name!r} needs bounds, got none; add a section [{name}] with "
                    "lower_bound and upper_bound"
                )
            sides[name] = (_number(lows[position], "lb"), _number(highs[position], "ub"))
            continue
        section = sections[name]
        if section.get("par_type", "continuous") == "fixed":
            fixed[name] = _value(section.get("value", ""))
        else:
            sides[name] = _side(name, section)
    if not sides:
        raise InvalidArgumentError("a parameter must vary, got only fixed ones; give one bounds")
    return sides, fixed


def _side(name: str, section: _Section) -> Any:
    """Return a parameter as an argument of `Domain.box`."""
    kind = section.get("par_type", "continuous")
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
    is_log = section.get("log_scale", "").lower() in _TRUE
    return Log(low, high) if is_log else (low, high)


def _goal(sections: Mapping[str, _Section]) -> Goal:
    """Return the level set of the first `target`, otherwise the maximum."""
    for name, section in sections.items():
        if "target" in section:
            return LevelSet(_number(section["target"], f"target of [{name}]"))
    return Maximize()


def _outcome(common: _Section) -> str | None:
    kinds = _items(common.get("outcome_types", common.get("outcome_type", "binary")))
    if len(kinds) != 1:
        raise InvalidArgumentError(
            f"outcome_types must name one outcome, got {kinds}; give outcome_types = [binary]"
        )
    kind = {"single_probit": "binary", "single_continuous": "continuous"}.get(kinds[0], kinds[0])
    if kind not in _OUTCOMES:
        raise InvalidArgumentError(unknown_name("outcome type", kind, _OUTCOMES))
    return _OUTCOMES[kind]


def _limits(
    strategies: tuple[str, ...], sections: Mapping[str, _Section]
) -> tuple[int | None, int | None]:
    """Return how many trials to ask for, and how many to tell, until all strategies are done."""
    asks = 0
    tells = 0
    for name in strategies:
        if name not in sections:
            raise InvalidArgumentError(
                f"strategy_names has {name!r}, got no section [{name}]; add it"
            )
        section = sections[name]
        given = [section[each] for each in _ASKS if each in section]
        asks += int(_number(given[0], f"min_asks of [{name}]")) if given else 0
        tells = max(tells, int(_number(section.get(_TELLS, "0"), f"{_TELLS} of [{name}]")))
    return asks or None, tells or None


def _name(sections: Mapping[str, _Section]) -> str | None:
    """Return the name of the study: those of experiment and participant."""
    section = sections.get("metadata", {})
    parts = [section.get(key, "") for key in ("name", "experiment_name", "participant_id")]
    return "-".join(part for part in parts if part) or None


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
