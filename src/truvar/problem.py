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

from truvar.actions import Cost, CostLike, NoiseLevels, NoiseLike
from truvar.confidence import ConstantBeta, LogBeta, RKHSBeta, Schedule, TheoremBeta
from truvar.domain import Domain, number, read_csv
from truvar.errors import TruvarError
from truvar.fit import Learned
from truvar.kernels import named_kernel
from truvar.policies import POLICIES, Policy, Top
from truvar.regions import Goal, LevelSet, Maximize, Minimize
from truvar.study import Study

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

    @property
    def run(self) -> dict[str, Any]:
        """The limits of [run]: budget, steps, epsilon."""
        return dict(self.spec.get("run", {}))

    def study(self, **overrides: Any) -> Study:
        """A new study of the problem; keyword arguments replace what the file says."""
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
            "name": self.name,
        }
        settings.update(overrides)
        study = Study(self.domain, settings.pop("goal"), **settings)
        training = spec.get("model", {}).get("training")
        if training is not None:
            study.fit(read_csv(self.folder / training), spec["model"].get("value"))
        return study

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


def problem_from_dict(spec: Mapping[str, Any], folder: str | Path = ".", name: str = "study") -> Problem:
    """The problem in a dict of the same form as the file. Everything is checked here, before any study is made."""
    for section, keys in KEYS.items():
        table = spec if section == "" else spec.get(section, {})
        if not isinstance(table, Mapping):
            raise TruvarError(f"[{section}] must be a table of keys, but it was {table!r}")
        _check_keys(table, keys, section)
    folder = Path(folder)
    problem = Problem(str(spec.get("name", name)), spec, folder, _domain(spec.get("domain", {}), folder))
    if "training" not in spec.get("model", {}):
        problem.study()  # a mistake anywhere shows now
    return problem


def _domain(spec: Mapping[str, Any], folder: Path) -> Domain:
    kind = _one_of(spec, ["table", "grid", "box"], "domain")
    if kind == "table":
        return Domain.table(folder / str(spec["table"]), spec.get("columns"))
    axes = spec[kind]
    if not isinstance(axes, Mapping) or not axes:
        raise TruvarError(f"[domain] {kind} must name its columns, such as {{x = [0, 1]}}, but it was {axes!r}")
    if kind == "box":
        intervals: dict[str, Any] = {name: tuple(interval) for name, interval in axes.items()}
        return Domain.box(representers=int(spec.get("representers", 2500)), **intervals)
    return Domain.grid(**{name: _axis(name, axis) for name, axis in axes.items()})


def _axis(name: str, axis: Any) -> Any:
    """[low, high, count] as in the file."""
    if not (isinstance(axis, list) and len(axis) == 3 and isinstance(axis[2], int) and axis[2] > 0):
        raise TruvarError(f"grid axis {name!r} must be [low, high, number of points], but it was {axis!r}")
    return np.linspace(
        number(axis[0], f"the low end of {name!r}"), number(axis[1], f"the high end of {name!r}"), axis[2]
    )


def _goal(spec: Mapping[str, Any]) -> Goal:
    kind = _one_of(spec, ["level_set", "fraction_of_max", "maximize", "minimize"], "goal")
    monotone = bool(spec.get("monotone", True))
    if kind == "level_set":
        return LevelSet(spec[kind], monotone=monotone)
    if kind == "fraction_of_max":
        return LevelSet(fraction_of_max=spec[kind], monotone=monotone)
    if spec[kind] is not True:
        raise TruvarError(f"[goal] {kind} must be true, but it was {spec[kind]!r}")
    return Maximize(monotone) if kind == "maximize" else Minimize(monotone)


def _kernel(spec: Mapping[str, Any], d: int) -> Any:
    name = spec.get("kernel", "matern52")
    every = spec.get("refit_every", 3)
    if "lengthscales" not in spec:
        if "variance" in spec:
            raise TruvarError("[model] variance needs lengthscales beside it; give both, or neither to learn them")
        return Learned(name, every=every, noise=bool(spec.get("learn_noise", False)))
    if "refit_every" in spec:
        raise TruvarError("[model] lengthscales are known, so refit_every has no meaning; leave out one of the two")
    scales = np.atleast_1d(np.asarray(spec["lengthscales"], dtype=float))
    if len(scales) not in (1, d):
        raise TruvarError(f"[model] lengthscales must be 1 or {d} numbers, one per column, but there are {len(scales)}")
    return named_kernel(name, scales, number(spec.get("variance", 1.0), "[model] variance"))


def _noise(spec: Mapping[str, Any]) -> NoiseLike | None:
    if not spec:
        return None
    kind = _one_of(spec, ["variance", "column", "levels"], "noise")
    if kind != "levels":
        return spec[kind]  # type: ignore[no-any-return]
    try:
        return NoiseLevels([level["variance"] for level in spec[kind]], [level["cost"] for level in spec[kind]])
    except (KeyError, TypeError):
        raise TruvarError(
            f"[noise] levels must be a list such as [{{variance = 1e-3, cost = 10}}], but it was {spec[kind]!r}"
        ) from None


def _cost(spec: Mapping[str, Any]) -> CostLike | None:
    if not spec:
        return None
    if "column" in spec and "base" in spec:
        raise TruvarError("[cost] needs either base or column, not both")
    return Cost(spec.get("base", spec.get("column", 0.0)), spec.get("travel", {}), spec.get("magnitude", {}))


def _policy(spec: Mapping[str, Any]) -> Policy:
    name = spec.get("name", "truvar")
    if name not in POLICIES:
        raise TruvarError(f"[policy] name must be one of {', '.join(POLICIES)}, but it was {name!r}")
    rule = POLICIES[name]
    options = {key: value for key, value in spec.items() if key != "name"}
    _check_keys(options, [option.name for option in fields(rule)], "policy")  # type: ignore[arg-type]
    if "beta" in options:
        options["beta"] = _schedule(options["beta"])
    if isinstance(options.get("among"), Mapping):
        among = options["among"]
        _check_keys(among, ["top", "by"], "policy.among")
        options["among"] = Top(int(among["top"]), among.get("by", "ucb"))
    return rule(**options)


def _schedule(spec: Any) -> Schedule:
    """beta = 9.0, or {log = 1.0}, {theorem = 0.1}, {rkhs = 5.0, delta = 0.1}."""
    if isinstance(spec, (int, float)):
        return ConstantBeta(float(spec))
    if isinstance(spec, Mapping):
        if set(spec) == {"log"}:
            return LogBeta(spec["log"])
        if set(spec) == {"theorem"}:
            return TheoremBeta(spec["theorem"])
        if set(spec) == {"rkhs", "delta"}:
            return RKHSBeta(spec["rkhs"], spec["delta"])
    raise TruvarError(
        "[policy] beta must be a number, {log = 1.0}, {theorem = 0.1} or {rkhs = 5.0, delta = 0.1}, "
        f"but it was {spec!r}"
    )


def _one_of(spec: Mapping[str, Any], kinds: list[str], section: str) -> str:
    given = [kind for kind in kinds if kind in spec]
    if len(given) != 1:
        came = " and ".join(given) if given else "none of them"
        raise TruvarError(f"[{section}] needs exactly one of {', '.join(kinds)}, but there was {came}")
    return given[0]


def _check_keys(table: Mapping[str, Any], known: list[str], section: str) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it may have {', '.join(known)}"
            raise TruvarError(f"unknown key {key!r} in {f'[{section}]' if section else 'the problem'}{hint}")
