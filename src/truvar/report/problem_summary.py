"""What a problem says, in plain words, and what in it is likely to be a mistake although it is not wrong."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.domain.goals import LevelSet
from truvar.models.fit import Learned
from truvar.report.formatting import format_number
from truvar.report.status import describe_goal, describe_policy
from truvar.report.terminal import TerminalStyle

if TYPE_CHECKING:
    from truvar.problem import Problem
    from truvar.study.study import Study

ALONE = 0.05  # correlation of neighbours below which each of them stands alone
CONSTANT = 0.99  # correlation of the two ends of an axis above which nothing changes along it
FAR = 4.0  # prior standard deviations from the mean beyond which a threshold is hardly ever passed


def problem_summary(problem: Problem, study: Study, terminal: TerminalStyle) -> str:
    """The problem as it was understood, line by line."""
    domain, spec = study.domain, problem.spec
    kind = next(kind for kind in ("table", "grid", "box") if kind in spec["domain"])
    where = {"table": "points of a table", "grid": "points of a grid", "box": "points that stand for a box"}[kind]
    ranges = ", ".join(
        f"{name} from {low:.6g} to {high:.6g}" for name, (low, high) in zip(domain.columns, domain.bounds, strict=True)
    )
    prices = study.candidates().cost
    least, most = (format_number(float(v)) for v in (prices.min(), prices.max()))
    rows = [
        ("where", f"{len(domain)} {where}: {ranges}"),
        ("model", _model(problem)),
        ("noise", _noise(spec.get("noise", {}))),
        ("cost", f"{_cost(spec.get('cost', {}))}; the first one {least if least == most else f'{least} to {most}'}"),
        ("rule", f"{describe_policy(study.policy)}; engine {study.engine}"),
        ("limits", ", ".join(f"{name} {value:g}" for name, value in problem.run.items()) or "none"),
    ]
    head = terminal.paint(terminal.plain(problem.name), "strong")
    return f"{head}: {describe_goal(study.goal)}\n{terminal.rows(rows)}"


def problem_warnings(problem: Problem, study: Study) -> list[str]:
    """What looks like a mistake: each in one sentence, with what to do."""
    said = []
    if "lengthscales" in problem.spec.get("model", {}):
        said = [*_length_scales(study), *_threshold(problem, study), *_noise_above_signal(study)]
    budget, cheapest = problem.run.get("budget"), float(study.candidates().cost.min())
    if budget is not None and budget < cheapest:
        said.append(
            f"the budget of {budget:g} does not buy a single measurement, the cheapest costs {cheapest:g}; raise "
            "[run] budget or lower the costs"
        )
    return said


# -- in words ----------------------------------------------------------------------------------------------------------


def _model(problem: Problem) -> str:
    spec = problem.spec.get("model", {})
    if "training" in spec:
        return f"{spec.get('kernel', 'matern52')}, learned from {spec['training']}"
    if "lengthscales" not in spec:
        family = Learned(spec.get("kernel", "matern52"))
        every = spec.get("refit_every", family.every)
        return f"{family.kernel}, learned from the values as they come, anew after every {every}"
    scales = spec["lengthscales"] if isinstance(spec["lengthscales"], list) else [spec["lengthscales"]]
    names = problem.domain.columns if len(scales) == len(problem.domain.columns) else ["every column"] * len(scales)
    alike = " and ".join(f"{scale:g} along {name}" for scale, name in zip(scales, names, strict=True))
    mean = f"around {spec['mean']:g}" if "mean" in spec else "around a mean that is learned"
    spread = f"values lie within about ± {2 * sqrt(spec.get('variance', 1.0)):.3g} {mean}"
    return f"{spec.get('kernel', 'matern52')}: {spread}, and are alike over distances of about {alike}"


def _noise(spec: Mapping[str, Any]) -> str:
    if "variance" in spec:
        return f"a measurement is off by about ± {sqrt(spec['variance']):.3g}" if spec["variance"] else "none"
    if "column" in spec:
        return f"its variance stands in the column {spec['column']}"
    if "levels" in spec:
        levels = [f"± {sqrt(level['variance']):.3g} for {level['cost']:g}" for level in spec["levels"]]
        return f"to choose from: {', '.join(levels)}"
    return "learned from the values as they come"


def _cost(spec: Mapping[str, Any]) -> str:
    if not spec:
        return "the same everywhere"
    base = f"by the column {spec['column']}" if "column" in spec else f"{spec.get('base', 0):g} each"
    parts = [base]
    parts += [f"{rate:g} per unit of {name} travelled" for name, rate in spec.get("travel", {}).items()]
    parts += [f"{rate:g} per unit of {name}, up or down from 0" for name, rate in spec.get("magnitude", {}).items()]
    return ", plus ".join(parts)


# -- what looks wrong --------------------------------------------------------------------------------------------------


def _length_scales(study: Study) -> list[str]:
    """Neighbours that say nothing about each other, and axes along which nothing changes."""
    domain, said = study.domain, []
    counts = np.array([len(np.unique(column)) for column in domain.points.T], dtype=float)
    if np.prod(counts) != len(domain):  # scattered: as if spread evenly
        counts = np.minimum(counts, len(domain) ** (1 / len(counts)))
    middle = domain.points[len(domain) // 2]
    for k, name in enumerate(domain.columns):
        extent = float(domain.extent[k])
        if extent <= 0:
            continue
        spacing = extent / max(counts[k] - 1, 1)
        near, far = (_correlation(study, middle, k, distance) for distance in (spacing, extent))
        if near < ALONE:
            said.append(
                f"along {name} the kernel says that neighbouring points ({spacing:.3g} apart) have nothing to do with "
                f"each other (correlation {near:.2g}): nearly every point would have to be measured; make its "
                "length-scale longer, or check its unit"
            )
        elif far > CONSTANT and counts[k] > 1:
            said.append(
                f"along {name} the kernel says that nothing changes over the whole range of {extent:.4g} (correlation "
                f"{far:.4f} from end to end); make its length-scale shorter, or check its unit"
            )
    return said


def _correlation(study: Study, point: Any, column: int, distance: float) -> float:
    other = point.copy()
    other[column] += distance
    k = np.asarray(study.kernel(np.stack([point, other])))
    return float(k[0, 1] / np.sqrt(k[0, 0] * k[1, 1]))


def _threshold(problem: Problem, study: Study) -> list[str]:
    goal, mean = study.goal, problem.spec["model"].get("mean")
    if not isinstance(goal, LevelSet) or goal.threshold is None or mean is None:
        return []
    away = (goal.threshold - mean) / sqrt(_signal(study))
    if abs(away) <= FAR:
        return []
    where = "above" if away > 0 else "below"
    return [
        f"the threshold {goal.threshold:g} lies {abs(away):.1f} standard deviations {where} the mean {mean:g}: before "
        f"the first measurement the model is sure that no value lies {where} it; check mean, variance and threshold"
    ]


def _noise_above_signal(study: Study) -> list[str]:
    noise, signal = float(study.candidates().noise.min()), _signal(study)
    if noise <= signal:
        return []
    return [
        f"the noise (variance {noise:.4g}, at its best) is larger than the signal (variance {signal:.4g}): a single "
        "measurement tells little, and every point needs many; check both variances"
    ]


def _signal(study: Study) -> float:
    return float(np.max(study.kernel.diag(study.domain.points[:1])))
