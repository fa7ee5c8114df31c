"""A problem as a TOML file or a dict: domain, goal, model, noise, cost and policy, checked key by key.

`load_problem(path)` reads a file; paths inside it are relative to it. `Problem.study()` makes the study.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from truvar.acquisition import Policy, TopK
from truvar.acquisition.confidence import ConstantBeta, LogBeta, RKHSBeta, Schedule, TheoremBeta
from truvar.acquisition.registry import POLICY_NAMES, has_cost_option, policy_class
from truvar.domain.costs import Cost, CostLike, NoiseLevels, NoiseLike
from truvar.domain.domain import Domain, read_csv
from truvar.domain.goals import Goal, LevelSet, Maximize, Minimize
from truvar.exceptions import TruvarError
from truvar.models.fit import Learned, training_data
from truvar.models.kernels import named_kernel
from truvar.study.runner import check_limits
from truvar.study.study import Study
from truvar.validation import check_finite, check_integer

KEYS = {
    "": ["name", "seed", "start", "domain", "goal", "model", "noise", "cost", "policy", "run"],
    "domain": ["table", "columns", "grid", "box", "representers"],
    "goal": ["level_set", "fraction_of_max", "maximize", "minimize", "monotone"],
    "model": ["kernel", "lengthscales", "variance", "mean", "refit_every", "learn_noise", "training", "value"],
    "noise": ["variance", "column", "levels"],
    "cost": ["base", "column", "travel", "magnitude"],
    "run": ["budget", "steps", "epsilon"],
}


@dataclass(frozen=True)
class Problem:
    """What a problem file says, understood and checked; `study()` begins work on it."""

    name: str
    spec: Mapping[str, Any]
    folder: Path
    domain: Domain
    tables: Mapping[str, pd.DataFrame] | None = None  # those that the problem names; None: files in the folder

    @property
    def run(self) -> dict[str, Any]:
        """The limits of [run]: budget, steps, epsilon."""
        return dict(self.spec.get("run", {}))

    def study(self, **overrides: Any) -> Study:
        """A new study of the problem; keyword arguments replace what the file says."""
        model = self.spec.get("model", {})
        if "training" not in model:
            return self._unfitted(**overrides)
        store = overrides.pop("store", None)
        study = self._unfitted(**overrides)
        study.fit(_table(model["training"], self.folder, self.tables), model.get("value"))
        if store is None:
            return study
        return Study.from_json(study.to_json(), store=store, who=study.who)  # begun with its model, or not at all

    def _unfitted(self, **overrides: Any) -> Study:
        """The study before the model is learned from its training file."""
        spec = self.spec
        settings: dict[str, Any] = {
            "goal": _goal(spec.get("goal", {})),
            "kernel": _kernel(spec.get("model", {}), len(self.domain.columns)),
            "mean": spec.get("model", {}).get("mean"),
            "noise": _noise(spec.get("noise", {})),
            "cost": _cost(spec.get("cost", {})),
            "policy": _policy(spec.get("policy", {})),
            "start": spec.get("start"),
            "seed": spec.get("seed", 0),
            "limits": self.run,
            "name": self.name,
        }
        settings.update(overrides)
        return Study(self.domain, settings.pop("goal"), **settings)

    def to_dict(self) -> dict[str, Any]:
        """The problem as it was given."""
        return dict(self.spec)


def load_problem(path: str | Path) -> Problem:
    """The problem in a TOML file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            spec = tomllib.load(file)
    except FileNotFoundError:
        raise TruvarError(f"there is no problem file {path}; check the path") from None
    except IsADirectoryError:
        raise TruvarError(f"{path} is a folder; give the path of a problem file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TruvarError(f"{path} is not valid TOML: {error}; mend that place") from None
    return problem_from_dict(spec, folder=path.parent, name=path.stem)


def problem_from_dict(
    spec: Mapping[str, Any],
    folder: str | Path = ".",
    name: str = "study",
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> Problem:
    """The problem in a dict of the same form as the file. Everything is checked here, before any study is made.

    The tables that it names are files in `folder`, or else `tables`: no file is read then."""
    for section, keys in KEYS.items():
        table = spec if section == "" else spec.get(section, {})
        if not isinstance(table, Mapping):
            raise TruvarError(f"[{section}] must be a table of keys, got {_said(table)}; write them under [{section}]")
        _check_keys(table, keys, section)
    folder = Path(folder)
    name = _kind(spec.get("name", name), str, "name", "a text")
    problem = Problem(name, spec, folder, _domain(spec.get("domain", {}), folder, tables), tables)
    check_limits(**problem.run)
    model = spec.get("model", {})
    if "lengthscales" in model and not spec.get("noise"):
        raise TruvarError(
            "a model with known lengthscales needs a known noise, but there is no [noise]; give its variance (0 if "
            "there is none), or leave out the lengthscales to learn both"
        )
    problem._unfitted()  # a mistake anywhere shows now
    if "training" in model:
        if "value" in model:
            _kind(model["value"], str, "[model] value", "the name of a column")
        training_data(_table(model["training"], folder, tables), problem.domain.columns, model.get("value"))
    if model.get("learn_noise") is False and not spec.get("noise"):
        raise TruvarError("[model] learn_noise = false needs a known noise, but there is no [noise]; give its variance")
    return problem


def _table(path: str, folder: Path, tables: Mapping[str, pd.DataFrame] | None) -> pd.DataFrame:
    if tables is None:
        return read_csv(folder / path)
    if path not in tables:
        came = ", ".join(map(repr, tables)) or "none"
        raise TruvarError(
            f"the problem names the table {path!r}, but that did not come with it (came: {came}); send it"
        )
    return tables[path]


def _domain(spec: Mapping[str, Any], folder: Path, tables: Mapping[str, pd.DataFrame] | None) -> Domain:
    kind = _one_of(spec, ["table", "grid", "box"], "domain")
    for key, only in (("columns", "table"), ("representers", "box")):
        if key in spec and kind != only:
            raise TruvarError(f"[domain] {key} belongs to a {only}, but this domain is a {kind}; leave out {key}")
    if kind == "table":
        columns = spec.get("columns")
        if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
            raise TruvarError(f"[domain] columns must be a list of names, got {_said(columns)}; give one")
        path = _kind(spec["table"], str, "[domain] table", "the path of a CSV file")
        return Domain.table(_table(path, folder, tables), columns)
    example = "{x = [0, 1]}" if kind == "box" else "{x = [0, 1, 50]}"
    axes = _kind(spec[kind], Mapping, f"[domain] {kind}", f"a table of columns such as {example}")
    if kind == "box":
        for name, interval in axes.items():
            if name in ("representers", "seed"):
                raise TruvarError(f"a column of a box cannot be called {name!r}, which is an option; rename it")
            if not (isinstance(interval, list) and len(interval) == 2):
                raise TruvarError(
                    f"[domain] box: {name} must be [low, high] such as [0, 1], got {_said(interval)}; mend it"
                )
        return Domain.box(**{key: spec[key] for key in ("representers",) if key in spec}, **axes)
    return Domain.grid(**{name: _axis(name, axis) for name, axis in axes.items()})


def _axis(name: str, axis: Any) -> Any:
    """[low, high, count] as in the file."""
    if not (isinstance(axis, list) and len(axis) == 3 and type(axis[2]) is int and axis[2] > 0):
        raise TruvarError(
            f"grid axis {name!r} must be [low, high, number of points] such as [0, 1, 50], got {_said(axis)}; mend it"
        )
    return np.linspace(
        check_finite(axis[0], f"the low end of {name!r}"), check_finite(axis[1], f"the high end of {name!r}"), axis[2]
    )


def _goal(spec: Mapping[str, Any]) -> Goal:
    kind = _one_of(spec, ["level_set", "fraction_of_max", "maximize", "minimize"], "goal")
    monotone = _kind(spec.get("monotone", True), bool, "[goal] monotone", "true or false")
    if kind == "level_set":
        return LevelSet(spec[kind], monotone=monotone)
    if kind == "fraction_of_max":
        return LevelSet(fraction_of_max=spec[kind], monotone=monotone)
    if spec[kind] is not True:
        raise TruvarError(f"[goal] {kind} must be true, got {_said(spec[kind])}; write {kind} = true")
    return Maximize(monotone) if kind == "maximize" else Minimize(monotone)


def _kernel(spec: Mapping[str, Any], d: int) -> Any:
    name = _kind(spec.get("kernel", "matern52"), str, "[model] kernel", "the name of a kernel")
    learn_noise = _kind(spec.get("learn_noise", False), bool, "[model] learn_noise", "true or false")
    _kind(spec.get("training", ""), str, "[model] training", "the path of a CSV file")
    if "value" in spec and "training" not in spec:
        raise TruvarError(
            f"[model] value = {spec['value']!r} is the column of a training file, but none came; give training"
        )
    if "lengthscales" not in spec:
        if "variance" in spec:
            raise TruvarError(
                f"[model] variance needs lengthscales beside it, but it came alone ({spec['variance']!r}); give both, "
                "or neither to learn them"
            )
        every = check_integer(spec.get("refit_every", Learned.every), "[model] refit_every", minimum=1)
        return Learned(name, every=every, noise=learn_noise)
    for key in ("refit_every", "learn_noise", "training"):
        if key in spec:
            raise TruvarError(f"[model] {key} is for a model to be learned, but lengthscales came too; leave out one")
    scales = spec["lengthscales"] if isinstance(spec["lengthscales"], list) else [spec["lengthscales"]]
    if len(scales) not in (1, d):
        raise TruvarError(
            f"[model] lengthscales must be {f'1 or {d} numbers' if d > 1 else '1 number'}, but there are "
            f"{len(scales)}; give one per column"
        )
    scales = [check_finite(scale, "[model] every length-scale") for scale in scales]
    return named_kernel(name, scales, check_finite(spec.get("variance", 1.0), "[model] variance"))


def _noise(spec: Mapping[str, Any]) -> NoiseLike | None:
    if not spec:
        return None
    kind = _one_of(spec, ["variance", "column", "levels"], "noise")
    if kind == "variance":
        return check_finite(spec[kind], "[noise] variance")
    if kind == "column":
        return str(_kind(spec[kind], str, "[noise] column", "the name of a column"))
    levels = spec[kind]
    if not (isinstance(levels, list) and levels) or not all(
        isinstance(v, Mapping) and set(v) == {"variance", "cost"} for v in levels
    ):
        raise TruvarError(
            f"[noise] levels must be a list such as [{{variance = 1e-3, cost = 10}}], got {_said(levels)}; "
            "give every level its variance and cost"
        )
    return NoiseLevels([level["variance"] for level in levels], [level["cost"] for level in levels])


def _cost(spec: Mapping[str, Any]) -> CostLike | None:
    if not spec:
        return None
    if "column" in spec and "base" in spec:
        raise TruvarError(
            f"[cost] needs either base or column, but there was base = {spec['base']!r} and column = "
            f"{spec['column']!r}; leave out one"
        )
    for kind in ("travel", "magnitude"):
        _kind(spec.get(kind, {}), Mapping, f"[cost] {kind}", "rates by column such as {x = 0.25}")
    base: float | str = check_finite(spec.get("base", 0.0), "[cost] base")
    if "column" in spec:
        base = _kind(spec["column"], str, "[cost] column", "the name of a column")
    return Cost(base, spec.get("travel", {}), spec.get("magnitude", {}))


def _policy(spec: Mapping[str, Any]) -> Policy:
    given = _kind(spec.get("name", "truvar"), str, "[policy] name", "the name of a rule")
    name, _, divided = given.partition("/")
    if name not in POLICY_NAMES or divided not in ("", "cost"):
        hint = _close(name, list(POLICY_NAMES)) or "take one of them"
        raise TruvarError(
            f'[policy] name must be one of {", ".join(POLICY_NAMES)}, with "/cost" behind it or not, got '
            f"{_said(given)}; {hint}"
        )
    rule = policy_class(name)
    options = {key: value for key, value in spec.items() if key != "name"}
    _check_keys(options, [option.name for option in fields(rule)], "policy")  # type: ignore[arg-type]
    if divided:
        if not has_cost_option(rule):
            raise TruvarError(f'[policy] name = "{given}": {name} divides by the cost as it is; leave out /cost')
        options["per_cost"] = True
    _among(options, {"among": ["potential"], "anticipate": ["mean", "average"]})
    if "beta" in options:
        options["beta"] = _schedule(options["beta"])
    if isinstance(options.get("among"), Mapping):
        among = options["among"]
        _check_keys(among, ["top", "by"], "policy.among")
        options["among"] = TopK(check_integer(among.get("top"), "[policy] among.top", minimum=1), among.get("by", "ucb"))
    return rule(**options)


def _among(options: Mapping[str, Any], known: Mapping[str, list[str]]) -> None:
    """Options of a rule that are one of a few words, or a table that is read elsewhere."""
    for key, words in known.items():
        if key in options and options[key] not in words and not isinstance(options[key], Mapping):
            listed = " or ".join(f'"{word}"' for word in words)
            more = ", or a table such as {top = 50}" if key == "among" else ""
            raise TruvarError(
                f"[policy] {key} must be {listed}{more}, got {_said(options[key])}; mend it or leave it out"
            )


def _schedule(spec: Any) -> Schedule:
    """beta = 9.0, or {log = 1.0}, {theorem = 0.1}, {rkhs = 5.0, delta = 0.1}, the last with a horizon if need be."""
    if isinstance(spec, (int, float)):
        return ConstantBeta(check_finite(spec, "[policy] beta"))
    if isinstance(spec, Mapping):
        if set(spec) == {"log"}:
            return LogBeta(spec["log"])
        if set(spec) == {"theorem"}:
            return TheoremBeta(spec["theorem"])
        if {"rkhs", "delta"} <= set(spec) <= {"rkhs", "delta", "horizon"}:
            return RKHSBeta(spec["rkhs"], spec["delta"], spec.get("horizon", 1000))
    raise TruvarError(
        "[policy] beta must be a number, {log = 1.0}, {theorem = 0.1} or {rkhs = 5.0, delta = 0.1}, "
        f"but it was {_said(spec)}; give one of them"
    )


def _said(value: Any) -> str:
    """A value as the file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, list):
        return f"[{', '.join(map(_said, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key} = {_said(part)}' for key, part in value.items())}}}"
    return str(value)


def _one_of(spec: Mapping[str, Any], kinds: list[str], section: str) -> str:
    given = [kind for kind in kinds if kind in spec]
    if len(given) != 1:
        came, remedy = (" and ".join(given), "leave out the others") if given else ("none of them", "give one")
        raise TruvarError(f"[{section}] needs exactly one of {', '.join(kinds)}, but there was {came}; {remedy}")
    return given[0]


def _kind(value: Any, kind: type, what: str, expected: str) -> Any:
    """The value, if it is of that kind."""
    if not isinstance(value, kind):
        raise TruvarError(f"{what} must be {expected}, got {_said(value)}; correct it")
    return value


def _check_keys(table: Mapping[str, Any], known: list[str], section: str) -> None:
    for key in table:
        if key not in known:
            hint = _close(key, known) or f"it may have {', '.join(known)}"
            raise TruvarError(f"unknown key {key!r} in {f'[{section}]' if section else 'the problem'}; {hint}")


def _close(name: str, known: list[str]) -> str | None:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else None
