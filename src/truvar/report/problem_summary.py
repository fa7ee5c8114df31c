"""A problem in words, and warnings about what is valid in it but likely to be a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._typing import Array
from truvar.domain.goals import LevelSet
from truvar.domain.scales import is_geometric
from truvar.domain.table import LOG_RATIO
from truvar.messages import format_coordinates
from truvar.models.priors import PLUG_IN_REFIT_EVERY, Learned
from truvar.problem.build import build_kernel
from truvar.problem.schema import ModelSpec, parse_spec
from truvar.report.formatting import describe_columns, format_number, format_question
from truvar.report.status import describe_policy, describe_repeats, task_correlations
from truvar.report.terminal import TerminalStyle

if TYPE_CHECKING:
    from truvar.domain.costs import Tasks
    from truvar.domain.vehicles import Vehicle
    from truvar.problem import Problem
    from truvar.study.study import Study

_KNOWN_SD = "standard deviation ±"  # words before a noise that is known
_MIN_CORRELATION = 0.05  # of neighbouring points; below it each point says nothing about the next
_MAX_CORRELATION = 0.99  # of the two ends of an axis; above it nothing changes along the axis
# of a threshold from the mean, in prior standard deviations; beyond it no value is expected
_MAX_DISTANCE = 4.0
POINTS = {
    "table": "points of a table",
    "grid": "points of a grid",
    "box": "points that represent a box",
    "mixture": "mixtures",
}


def problem_summary(problem: Problem, study: Study, terminal: TerminalStyle) -> str:
    """Return a problem as it was read, one line for each part.

    Args:
        problem: The problem.
        study: The study made of it.
        terminal: Width, colours and letters to use.
    """
    heading = terminal.paint(terminal.plain(problem.name), "strong")
    return f"{heading}: {format_question(study)}\n{terminal.rows(problem_rows(problem, study))}"


def problem_rows(problem: Problem, study: Study) -> list[tuple[str, str]]:
    """Return the parts of a problem as they were read, each with its name.

    Args:
        problem: The problem.
        study: The study made of it.
    """
    spec = problem.spec
    vehicles = [("vehicles", _vehicles(study.vehicles))] if study.vehicles else []
    repeats = []
    if study.repeats is not None:
        repeats.append(("repeats", describe_repeats(study.repeats)))
    return [
        ("domain", _domain(problem, study)),
        ("model", _model(problem)),
        *([] if study.tasks is None else [("tasks", _tasks(study.tasks))]),
        _noise_row(spec, study),
        (
            "cost",
            f"{_cost(spec.get('cost', {}), study.tasks)}; the first measurement "
            f"{_first_cost(study)}",
        ),
        *vehicles,
        *repeats,
        ("policy", describe_policy(study.policy)),
        ("limits", ", ".join(f"{name} {value:g}" for name, value in problem.run.items()) or "none"),
    ]


def problem_warnings(problem: Problem, study: Study) -> list[str]:
    """Return a message for each part of a problem that is likely to be a mistake, with the remedy.

    Args:
        problem: The problem.
        study: The study made of it.
    """
    warnings = []
    if "lengthscales" in problem.spec.get("model", {}):
        warnings = [
            *_lengthscale_warnings(study),
            *_threshold_warnings(problem, study),
            *_noise_warnings(study),
        ]
    else:
        warnings = _scale_warnings(problem, study)
    budget = problem.run.get("budget")
    cheapest = float(study.candidates().cost.min())
    if budget is not None and budget < cheapest:
        warnings.append(
            f"the budget of {budget:g} does not pay for a single measurement, the cheapest costs "
            f"{cheapest:g}; raise "
            "[run] budget or lower the costs"
        )
    return warnings


# -- the parts in words
# ------------------------------------------------------------------------------------------------


def _domain(problem: Problem, study: Study) -> str:
    domain = study.domain
    kind = next(kind for kind in POINTS if kind in problem.spec["domain"])
    text = f"{len(domain)} {POINTS[kind]}: {describe_columns(domain)}"
    given = _given_constraints(problem)
    conditions = [entry for entry in given if isinstance(entry, str)]
    if conditions:
        text += f"; where {', '.join(conditions)}"
    n_polygons = len(given) - len(conditions)
    if n_polygons:
        text += f"; inside {'a polygon' if n_polygons == 1 else f'{n_polygons} polygons'}"
    return text


def _given_constraints(problem: Problem) -> list[Any]:
    return list(problem.spec["domain"].get("constraints") or [])


def _model(problem: Problem) -> str:
    spec = problem.spec.get("model", {})
    if "training" in spec:
        return (
            f"{spec.get('kernel', 'matern52')}, learned from {spec['training']}{_deviations(spec)}"
        )
    if "lengthscales" not in spec:
        return _learned_model(problem)
    lengthscales = (
        spec["lengthscales"] if isinstance(spec["lengthscales"], list) else [spec["lengthscales"]]
    )
    names = list(problem.domain.columns)
    if len(lengthscales) != len(names):
        names = ["every column"] * len(lengthscales)
    distances = " and ".join(
        f"{scale:g} along {name}" for scale, name in zip(lengthscales, names, strict=True)
    )
    mean = f"around {_mean(spec['mean'])}" if "mean" in spec else "around a mean that is learned"
    spread = f"values lie within about ± {2 * sqrt(spec.get('variance', 1.0)):.3g} {mean}"
    return f"{spec.get('kernel', 'matern52')}: {spread}, and are similar over distances of about {distances}"


def _learned_model(problem: Problem) -> str:
    spec = parse_spec(ModelSpec, problem.spec.get("model", {}))
    learned = build_kernel(spec, len(problem.domain.columns))
    if not isinstance(learned, Learned):
        raise AssertionError("a model without length-scales is learned")
    every = learned.refit_every or (None if learned.marginalise else PLUG_IN_REFIT_EVERY)
    schedule = "" if every is None else f", again after every {every}"
    deviations = _deviations(problem.spec.get("model", {}))
    parts = [f"{learned.kernel}{deviations}, learned from the values as they come{schedule}"]
    if learned.marginalise:
        initial = learned.initial_size(len(problem.domain.columns), len(problem.domain))
        parts.append("averaged over the plausible hyperparameters")
        parts.append(f"the first {initial} measurements are spread over the domain")
    else:
        parts.append("the most probable hyperparameters count as known")
    if learned.transform == "log":
        parts.append("values are modelled as their logarithms")
    elif "outcome" not in problem.spec and _may_take_a_power(problem, learned):
        parts.append("values are modelled as a power of them if they call for one")
    return "; ".join(parts)


def _may_take_a_power(problem: Problem, learned: Learned) -> bool:
    """Return whether a power of the values is tried: mean, noise and threshold must not be given relative to them."""
    noise = problem.spec.get("noise", {})
    has_noise = bool(noise) and noise.get("variance") != 0 and noise.get("sd") != 0
    is_relative = "mean" in problem.spec.get("model", {}) or not problem.goal.learns_power
    if problem.spec.get("tasks"):
        return False
    return learned.marginalise and learned.transform == "auto" and not has_noise and not is_relative


def _mean(mean: float | str) -> str:
    return f"column {mean}" if isinstance(mean, str) else f"{mean:g}"


def _deviations(spec: Mapping[str, Any]) -> str:
    """Return what a learned model describes, if that is not the values themselves."""
    return (
        f" for the deviations from column {spec['mean']}"
        if isinstance(spec.get("mean"), str)
        else ""
    )


def _tasks(tasks: Tasks) -> str:
    """Return the target and what can be measured instead, with correlation, precision and cost where they are given."""
    correlations = task_correlations(tasks)
    descriptions = []
    for k, name in enumerate(tasks.names):
        parts = ["the target"]
        if k > 0:
            parts = [
                "correlation learned"
                if correlations is None
                else f"correlation {correlations[k]:.2g}"
            ]
        if tasks.noise is not None:
            own = [
                f"± {sqrt(variance):.3g}"
                for variance in np.atleast_1d(np.asarray(tasks.noise[k], dtype=float))
            ]
            parts.append(" or ".join(own))
        if tasks.cost is not None:
            parts.append(f"cost {tasks.cost[k]:g}")
        descriptions.append(f"{name} ({', '.join(parts)})")
    return f"{descriptions[0]}; can be measured instead: {', '.join(descriptions[1:])}"


def _noise_row(spec: Mapping[str, Any], study: Study) -> tuple[str, str]:
    """Return what is said of single measurements: their noise, or what they give."""
    if study.outcome is not None:
        return "outcome", study.outcome.description
    text = _noise(spec.get("noise", {}), study.tasks)
    if text.startswith(_KNOWN_SD):
        text += study.quantity.after_number
    return "noise", text


def _noise(spec: Mapping[str, Any], tasks: Tasks | None) -> str:
    if tasks is not None and tasks.noise is not None:
        if "levels" in spec:
            costs = ", ".join(f"{level['cost']:g}" for level in spec["levels"])
            return f"that of the task, at levels to choose from for an additional cost of {costs}"
        return "that of the task"
    if "variance" in spec:
        return _sd_text(sqrt(spec["variance"]))
    if "sd" in spec:
        return _sd_text(spec["sd"])
    if "column" in spec:
        return f"variance from column {spec['column']}"
    if "levels" in spec:
        levels = [
            f"{_level_noise(level['variance'])} at cost {level['cost']:g}"
            for level in spec["levels"]
        ]
        return f"levels to choose from: {', '.join(levels)}"
    return "learned from the values as they come"


def _sd_text(sd: float | str) -> str:
    if isinstance(sd, str):
        return f"standard deviation from column {sd}"
    return f"{_KNOWN_SD} {sd:.3g}" if sd else "none"


def _level_noise(variance: float | str) -> str:
    return (
        f"variance from column {variance}"
        if isinstance(variance, str)
        else f"± {sqrt(variance):.3g}"
    )


def _cost(spec: Mapping[str, Any], tasks: Tasks | None) -> str:
    parts = [_base_cost(spec, tasks)]
    for name, rate in spec.get("travel", {}).items():
        parts.append(f"{_rate(rate)} per unit of {name} travelled")
    if "euclidean" in spec:
        rates = [f"{_rate(rate)} per unit of {name}" for name, rate in spec["euclidean"].items()]
        parts.append(f"{' and '.join(rates)} travelled in a straight line")
    if "great_circle" in spec:
        parts.append(
            f"{spec['great_circle'].get('rate', 1):g} per kilometre of the great circle travelled"
        )
    for key, words in (
        ("network", "the shortest route in the network"),
        ("matrix", "the distance given in"),
    ):
        if key in spec:
            rate = spec[key].get("rate", 1)
            parts.append(f"{'' if rate == 1 else f'{rate:g} times '}{words} {spec[key]['table']}")
    parts += [f"{price:g} whenever {name} changes" for name, price in spec.get("setup", {}).items()]
    parts += [f"{rate:g} per unit of |{name}|" for name, rate in spec.get("magnitude", {}).items()]
    text = ", plus ".join(parts)
    if "start" in spec:
        start = spec["start"]
        text += f"; from {start if isinstance(start, str) else format_coordinates(start)}"
    must_return = spec.get("must_return") or spec.get("returns")
    return f"{text}, with the return leg within the budget" if must_return else text


def _rate(rate: float | Mapping[str, float]) -> str:
    if isinstance(rate, Mapping):
        return " and ".join(f"{rate[direction]:g} {direction}" for direction in rate)
    return f"{rate:g}"


def _vehicles(vehicles: Mapping[str, Vehicle]) -> str:
    """Return the vehicles with their starts, speeds and budgets."""
    texts = []
    for name, vehicle in vehicles.items():
        parts = []
        if vehicle.start is not None:
            start = vehicle.start
            parts.append(f"from {start if isinstance(start, str) else format_coordinates(start)}")
        if vehicle.speed != 1:
            parts.append(f"speed {vehicle.speed:g}")
        if vehicle.budget is not None:
            parts.append(f"budget {vehicle.budget:g}")
        texts.append(f"{name} ({', '.join(parts)})" if parts else name)
    return ", ".join(texts)


def _base_cost(spec: Mapping[str, Any], tasks: Tasks | None) -> str:
    if tasks is not None and tasks.cost is not None:
        return "that of the task"
    if not spec:
        return "the same everywhere"
    if spec.get("learned"):
        return f"learned from the costs that are told{_expected_before(spec.get('prior'))}"
    return f"from column {spec['column']}" if "column" in spec else f"{spec.get('base', 0):g} each"


def _expected_before(prior: float | str | None) -> str:
    """Return what is expected before a cost is told."""
    if prior is None:
        return ""
    planned = f"column {prior}" if isinstance(prior, str) else f"{prior:g}"
    return f", {planned} expected before"


def _first_cost(study: Study) -> str:
    """Return the cost of the first measurement, by vehicle where their starts or speeds differ."""
    if not study.vehicles:
        return _cost_range(study, None)
    ranges = {name: _cost_range(study, name) for name in study.vehicles}
    if len(set(ranges.values())) == 1:
        return next(iter(ranges.values()))
    return ", ".join(f"{text} for {name}" for name, text in ranges.items())


def _cost_range(study: Study, vehicle: str | None) -> str:
    costs = study.candidates(vehicle).cost
    costs = costs[np.isfinite(costs)]  # what the budget pays for, and the route reaches
    if len(costs) == 0:
        return "more than the budget"
    low = format_number(float(costs.min()))
    high = format_number(float(costs.max()))
    return low if low == high else f"{low} to {high}"


# -- warnings
# --------------------------------------------------------------------------------------------------


def _lengthscale_warnings(study: Study) -> list[str]:
    """Find axes along which neighbouring points are unrelated, or along which nothing changes."""
    domain = study.domain
    counts = np.array([len(np.unique(column)) for column in domain.points.T], dtype=float)
    if np.prod(counts) != len(domain):  # scattered points: as if they were spread evenly
        counts = np.minimum(counts, len(domain) ** (1 / len(counts)))
    middle = domain.points[len(domain) // 2]
    warnings = []
    for k, name in enumerate(domain.columns):
        extent = float(domain.extent[k])
        if extent <= 0:
            continue
        spacing = extent / max(counts[k] - 1, 1)
        between_neighbours = _correlation(study, middle, k, spacing)
        end_to_end = _correlation(study, middle, k, extent)
        if between_neighbours < _MIN_CORRELATION:
            warnings.append(
                f"along {name} the kernel says that neighbouring points ({spacing:.3g} apart) are "
                "unrelated "
                f"(correlation {between_neighbours:.2g}), so that nearly every point would have to "
                "be measured; use a "
                "longer length-scale, or check its unit"
            )
        elif end_to_end > _MAX_CORRELATION and counts[k] > 1:
            warnings.append(
                f"along {name} the kernel says that nothing changes over the whole range of "
                f"{extent:.4g} (correlation "
                f"{end_to_end:.4f} from end to end); use a shorter length-scale, or check its unit"
            )
    return warnings


def _scale_warnings(problem: Problem, study: Study) -> list[str]:
    """Find columns of a table that are spaced by ratios, but are not said to have a log scale."""
    spec = problem.spec["domain"]
    domain = study.domain
    if "table" not in spec or "log" in spec:
        return []
    plain = [k for k in range(len(domain.columns)) if domain.parameters[k].numeric]
    found = [domain.columns[k] for k in plain if is_geometric(domain.points[:, k], LOG_RATIO)]
    if not found:
        return []
    listed = ", ".join(f'"{name}"' for name in found)
    return [
        f"the numbers of {' and '.join(found)} are spaced by ratios; for a log scale write log = "
        f"[{listed}] in "
        "[domain], or log = [] to keep them unchanged"
    ]


def _correlation(study: Study, point: Array, column: int, distance: float) -> float:
    """Return the prior correlation of a point and one at a distance along a column."""
    other = point.copy()
    other[column] += distance
    covariance = np.asarray(study.kernel(np.stack([point, other])))
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def _threshold_warnings(problem: Problem, study: Study) -> list[str]:
    goal = study.goal
    mean = problem.spec["model"].get("mean")
    if not isinstance(goal, LevelSet) or goal.threshold is None or mean is None:
        return []
    means = study.domain.column(mean) if isinstance(mean, str) else np.array([mean])
    distances = (goal.threshold - means) / sqrt(_signal_variance(study))
    distance = float(distances[np.argmin(np.abs(distances))])
    if abs(distance) <= _MAX_DISTANCE or (np.sign(distances) != np.sign(distance)).any():
        return []
    side = "above" if distance > 0 else "below"
    return [
        f"the threshold {goal.threshold:g} lies {abs(distance):.1f} standard deviations {side} the "
        f"mean {_mean(mean)}, "
        f"so that the model is sure before the first measurement that no value lies {side} it; "
        "check mean, variance "
        "and threshold"
    ]


def _noise_warnings(study: Study) -> list[str]:
    noise = float(study.candidates().noise.min())
    signal = _signal_variance(study)
    if noise <= signal:
        return []
    return [
        f"the smallest noise (variance {noise:.4g}) is larger than the signal (variance "
        f"{signal:.4g}), so that every "
        "point needs many measurements; check both variances"
    ]


def _signal_variance(study: Study) -> float:
    return float(np.max(study.kernel.diag(study.domain.points[:1])))
